"""Public .ptx files: verdicts of check beside those of ptxas, and a lossless round trip of each.

ptxas 13.5 takes no target below sm_75 and no address size of 32 bits. A file for an older target is judged twice: as it
is, when check must object to nothing else that ptxas does not, and with its target raised to sm_75 (and its
version to the first that has that target).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import ptxgen
from ptxgen.instr.model.targets import parse_version
from ptxgen.toolchain import find_ptxas, ptxas_version
from tools.outside import clones

#: Repositories whose .ptx files are judged, each with the commit of the recorded measurement.
REPOSITORIES = {
    "vosen/ZLUDA": "8a7931be87d758835776f54ea2e33d30621c74ce",
    "gthparch/gpuocelot": "8286e947496c05a42a59e1129035250ecd7b8806",
    "garrick99/openptxas": "5f707ea24c00e46352a33716db730c4bb1f58c0b",
    "Han-Zhenzhong/ptx-vm": "48fa7d0e11adbce9d890666891a73fbd64dceed8",
    "jialunzhang-psu/ptx-90-parser": "b5d7089bc7970596036bd20d3028d5e0dc8a0a9a",
    "NVIDIA/cuda-samples": "c94ff366aed18c797b8a85dfaac7817b0228b420",
    "Rust-GPU/Rust-CUDA": "ac2674f03208462709f538f07b10e3f8153c93b6",
    "jcuda/jcuda-samples": "3de36547dec6b527d1e49d73b1817efd791b8fb6",
    "packed-and-compressed/ptx-shaders": "d1b8b396ffdea67b0c6d6f34c114ed99330de0bf",
    "xeno-by/libptx": "9e35e4b2805cbf8e23c10b1d161d942e512a2ba1",
    "BabaYara/dePTX": "1c015f558aed7e05851f8301f87eca76b2a60d76",
    "JuliaGPU/CUDA.jl": "fd1008df7adde63bd46e078d075e6180c783f9cc",
    "boopdotpng/cuda-matmuls": "672bc3aa4c41d55af982092cf51ca6bc13819115",
    "gorgonia/gorgonia": "b5cc2f84ba676d7ebeb671708070f4e43af0bc7e",
    "makepath/rtxpy": "58475ad3e89f60ce1760a9b2ae3d03389d98e746",
    "michaelballantyne/nvptx-samples": "26109dc7a487057fe27cdb48803a0f06724e6183",
    "mumax/3": "4ea68c172eb252bdeb7f8c030b9bd2b47016042d",
    "navdeepkk/gpu-gemms": "ca036a3f5c30163006ca9b642db77724051775b1",
    "victoryang00/test_fp8_on_4090": "f383e0f07e04f36bc35dbc6fb49bfc49afe514ee",
    "xlite-dev/LeetCUDA": "cb6a0497e829741fc5e3ad5e43a5beed0d85edcd",
}
#: The oldest target that ptxas 13.5 takes, and the PTX version that introduced it.
OLDEST, ITS_VERSION = 75, "6.3"
#: Seconds for one file.
TIMEOUT = 300

_TARGET = re.compile(r"^([ \t]*\.target[ \t]+)sm_(\d+)([af]?)", re.M)
_VERSION = re.compile(r"^([ \t]*\.version[ \t]+)(\d+\.\d+)", re.M)


@dataclass(slots=True)
class Verdict:
    """What both judges say of one file. `ours` and `ptxas` are objections, empty where the judge accepts."""

    path: str
    target: str = ""
    raised: bool = False
    ours: list[str] = field(default_factory=list)
    ptxas: list[str] = field(default_factory=list)
    crash: str = ""
    lossless: bool = True

    @property
    def agrees(self) -> bool:
        return not self.crash and self.lossless and bool(self.ours) == bool(self.ptxas)


def raised(text: str) -> tuple[str, bool]:
    """The text with its target raised to the oldest that ptxas takes, and whether it was."""
    match = _TARGET.search(text)
    if match is None or int(match[2]) >= OLDEST:
        return text, False
    text = _TARGET.sub(rf"\g<1>sm_{OLDEST}", text, count=1)
    # Options that sm_1x had: its map_f64_to_f32 is refused for later targets.
    text = re.sub(r"^([ \t]*\.target[^\n]*?),\s*map_f64_to_f32", r"\1", text, count=1, flags=re.M)
    version = _VERSION.search(text)
    if version and parse_version(version[2]) < parse_version(ITS_VERSION):
        text = _VERSION.sub(rf"\g<1>{ITS_VERSION}", text, count=1)
    return text, True


def target_of(text: str) -> str:
    """The target of a module, "" if it names none."""
    match = _TARGET.search(text)
    return f"sm_{match[2]}{match[3]}" if match else ""


def judge(path: str, text: str) -> Verdict:
    """Both verdicts on a file."""
    verdict = Verdict(path)
    given, verdict.raised = raised(text)
    verdict.target = target_of(given)
    try:
        for each in {text, given}:
            try:
                verdict.lossless = verdict.lossless and str(ptxgen.parse(each)) == each
            except ptxgen.PtxSyntaxError as error:
                if each == given:
                    verdict.ours.append(f"line {error.line}: syntax: {error}")
        if not verdict.ours:
            ptxgen.check(text)
            verdict.ours = [
                f"line {each.line}: {each.message} [{each.code}]"
                for each in ptxgen.check(given)
                if each.severity == "error"
            ]
    except Exception:
        verdict.crash = traceback.format_exc(limit=-3)
    verdict.ptxas = asked(given, verdict.target)
    return verdict


def asked(text: str, target: str) -> list[str]:
    """What ptxas objects to in a module that may have external names."""
    command = [str(find_ptxas()), "--compile-only", "-O0", "-o", "/dev/null", "/dev/stdin"]
    if target:
        command += ["-arch", target]
    try:
        done = subprocess.run(
            command, input=text.encode(), capture_output=True, check=False, timeout=TIMEOUT
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return ["no answer in time"]
    if done.returncode == 0:
        return []
    said = (done.stdout + done.stderr).decode(errors="replace")
    return [line for line in said.splitlines() if "error" in line or "fatal" in line] or [f"status {done.returncode}"]


def main(words: Sequence[str] | None = None) -> int:
    """Print a line for each repository and each disagreement; exit with 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("clones", type=Path, help="folder of clones: owner/name, owner+name or name")
    parser.add_argument("--only", nargs="*", help="repositories to take")
    parser.add_argument("--largest", type=int, default=2_000_000, help="bytes of a file, at most (default 2,000,000)")
    arguments = parser.parse_args(words)
    version = ptxas_version(find_ptxas())
    columns = ("files", "raised", "legal", "illegal", "differing")
    print(f"ptxas {version}\n{'repository':<36}{'commit':<14}{''.join(f'{each:>10}' for each in columns)}")
    differing: list[tuple[str, Verdict]] = []
    for repository in arguments.only or REPOSITORIES:
        clone = clones.find(arguments.clones, repository)
        if clone is None:
            print(f"{repository:<36}missing")
            continue
        counts: Counter[str] = Counter()
        for path, content in clone.files(["*.ptx"]):
            if len(content) > arguments.largest:
                counts["too large"] += 1
                continue
            verdict = judge(path, content.decode(errors="replace"))
            counts["files"] += 1
            counts["raised"] += verdict.raised
            counts["illegal" if verdict.ptxas else "legal"] += 1
            if not verdict.agrees:
                counts["differing"] += 1
                differing.append((repository, verdict))
        numbers = "".join(f"{counts[each]:>10}" for each in columns)
        print(f"{repository:<36}{clone.commit()[:12]:<14}{numbers}", flush=True)
    for repository, verdict in differing:
        print(f"\n{repository} {verdict.path} ({verdict.target}{', raised' if verdict.raised else ''})")
        if verdict.crash:
            print(verdict.crash)
        if not verdict.lossless:
            print("    not printed as it was read")
        for name, said in (("ptxgen", verdict.ours), ("ptxas", verdict.ptxas)):
            print(f"    {name}: {'legal' if not said else ''}", *said[:4], sep="\n        " if said else "")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
