"""The command `python -m tools.main_loops`."""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import tools.main_loops
from ptxgen.gemm import find
from ptxgen.sass import Listing, load
from ptxgen.toolchain import assemble, ptxas_version
from tools.main_loops.loops import HEAD, Row, rows
from tools.measurements import record

RUNGS = (
    "modular-k6", "modular-k7", "modular-k8", "modular-k9", "tilus-v6", "converged", "mxfp8-o11", "mxfp8-converged",
    "nvfp4", "nvfp4-converged",
)  # fmt: skip
_SOURCES = Path(__file__).parent
_NOTES = """\
No kernel accesses local memory. The rungs of the articles elect one thread for a whole loop, so ptxas keeps stage,
phase and descriptors in vector registers and moves them to uniform ones (R2UR) where an instruction takes those.
The warps of `blackwell/converged`, `mxfp8-converged` and `nvfp4-converged` run their loops whole and elect a thread
for each K block, as CUTLASS's do: no R2UR, and fewer instructions. Where one of their figures is worse than
another's, this is why:

- **Instructions, beside DeepGEMM's MMA warp.** Its loop holds several copies of the K block, for its tails, and the
  row is their mean. Eight of ours move the upper words of descriptors, a constant, to the registers next to the
  lower ones.
- **CCTL.IVALL.** Our waits in clusters are `.acquire.cluster`, as the memory model requires where a peer CTA
  arrives. CUTLASS and DeepGEMM write no scope, which is `.cta`.
- **Stall cycles and waits.** The load loop of `blackwell/converged` has 81 stall cycles (DeepGEMM 75.8, CUTLASS 108
  to 111). The MMA loops of `mxfp8-converged` and `nvfp4-converged` have more stall cycles and waits than their
  parents; we do not know yet why ptxas waits more there. CUTLASS's block-scaled loops were not compiled for this
  table.
"""


def main() -> int:
    """Print the table; with --record write it to docs/measurements.md."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.main_loops",
        description=tools.main_loops.__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--cutlass", type=Path, metavar="CHECKOUT", help="of NVIDIA/cutlass")
    parser.add_argument("--deepgemm", type=Path, metavar="CHECKOUT", help="of deepseek-ai/DeepGEMM; needs --cutlass")
    parser.add_argument("--nvcc", type=Path, default=Path("nvcc"), help="of CUDA 13 (default nvcc)")
    parser.add_argument("--record", action="store_true", help="write the table to docs/measurements.md")
    chosen = parser.parse_args()
    if chosen.deepgemm and not chosen.cutlass:
        parser.error("--deepgemm needs --cutlass, whose headers it includes")
    for path in (chosen.cutlass, chosen.deepgemm):
        if path and not path.is_dir():
            parser.error(f"there is no folder {path}")
    table: list[Row] = []
    for rung in RUNGS:
        plan = find(rung).plan()
        table += rows(f"{rung} ({plan.config.dtype})", load(assemble(plan.text).data))
    said = []
    if chosen.cutlass:
        found = [chosen.cutlass / each for each in ("include", "tools/util/include")]
        table += rows("CUTLASS (bf16)", _compiled(parser, chosen.nvcc, "cutlass_sm100.cu", found))
        said.append(f"CUTLASS {_version(chosen.cutlass)}")
        if chosen.deepgemm:
            found.insert(0, chosen.deepgemm / "deep_gemm" / "include")
            table += rows("DeepGEMM (bf16)", _compiled(parser, chosen.nvcc, "deepgemm_sm100.cu", found))
            said.append("DeepGEMM")
    text = HEAD + "".join(f"{row.line()}\n" for row in table)
    print(text, end="")
    if chosen.record:
        nvcc = subprocess.run([chosen.nvcc, "--version"], capture_output=True, text=True, check=True).stdout
        release = re.search(r"V(\d+\.\d+\.\d+)", nvcc)
        versions = f"ptxas {ptxas_version()}, nvcc {release[1] if release else '?'}"
        head = (
            f"{datetime.date.today().isoformat()}, {versions}, {', '.join(said) or 'no other library'}; pairs of CTAs "
            "with 256x256 tiles and K blocks of 64, one warp for loads and one for MMAs (`tools/main_loops/*.cu` "
            "instantiates theirs). The figures are those of one K block; CUTLASS has a loop of its own for the first "
            "loads.\n\n"
        )
        record("main loops", head + text + "\n" + _NOTES)
    return 0


def _compiled(parser: argparse.ArgumentParser, nvcc: Path, source: str, include: Sequence[Path]) -> Listing:
    """A kernel of another library, by nvcc."""
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernel.cubin"
        options = ["-std=c++20", "-gencode", "arch=compute_100a,code=sm_100a", "-O3", "-DNDEBUG", "-cubin"]
        command = [nvcc, *options, "--expt-relaxed-constexpr", *(f"-I{path}" for path in include)]
        try:
            done = subprocess.run([*command, "-o", cubin, _SOURCES / source], capture_output=True, text=True)
        except OSError as error:
            parser.error(f"{nvcc} does not run: {error}")
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error" in line]
            parser.error(f"nvcc refuses {source}: {(lines or ['no reason given'])[0]}")
        return load(cubin.read_bytes())


def _version(checkout: Path) -> str:
    text = (checkout / "include" / "cutlass" / "version.h").read_text()
    return ".".join(re.findall(r"#define CUTLASS_(?:MAJOR|MINOR|PATCH)\s+(\d+)", text))


if __name__ == "__main__":
    sys.exit(main())
