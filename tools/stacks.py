"""Run programs of each stack under `ptxgen exec`, right ones and such with a planted mistake: `make stacks`.

`python -m tools.stacks [STACK]... [--write]`; with `--write` results, versions and the date go to docs/stacks.md;
where stacks are named, the lines of the others stay.
A stack whose package is missing is left out by name; nvcc comes from its wheel or PATH, headers of CCCL from its wheel
(nvidia-cuda-cccl) or CPATH.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.measurements import replace_section

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "tests/data/exec"
PAGE = ROOT / "docs/stacks.md"
_TIME_LIMIT = 900


@dataclass(frozen=True)
class Case:
    """One run: `mark` is a text in the line of the source at which `code` is expected; neither where all is right.

    A `code` without a `mark` may be anywhere: kernels in strings have lines of their own.
    """

    stack: str
    package: str
    source: str
    arguments: tuple[str, ...]
    target: str
    code: str = ""
    mark: str = ""

    @property
    def name(self) -> str:
        return " ".join([self.source, *self.arguments])


def _nvcc(arguments: str, code: str = "", mark: str = "") -> Iterator[Case]:
    for target in ("sm_90a", "sm_100a"):
        yield Case("nvcc", "nvidia-cuda-nvcc", "kernels.cu", tuple(arguments.split()), target, code, mark)


def _python(
    stack: str, package: str, source: str, arguments: str = "", code: str = "", mark: str = "", targets: str = "sm_90a"
) -> Iterator[Case]:
    for target in targets.split():
        yield Case(stack, package, source, tuple(arguments.split()), target, code, mark)


CASES: tuple[Case, ...] = (
    *_nvcc("matmul right"),
    *_nvcc("matmul bug", "shared-race", "overwritten too early"),
    *_nvcc("reduction right"),
    *_nvcc("cooperative right"),
    *_nvcc("cooperative bug", "global-race", "while another block is a step behind"),
    *_nvcc("tma right"),
    *_nvcc("tma no-wait", "shared-race", "read too early"),
    *_nvcc("tma too-many", "expect-tx", "mbarrier.arrive.expect_tx"),
    *_nvcc("tma no-fence", "missing-proxy-fence", "stored too early"),
    *_nvcc("clusters right"),
    *_nvcc("clusters no-first", "shared-race", "into a block that may have ended"),
    *_nvcc("clusters no-last", "cta-exit", "into a block that may have ended"),
    *_python("Triton", "triton", "triton_kernels.py", targets="sm_90a sm_100a"),
    *_python("Triton", "triton", "triton_kernels.py", "overrun", "out-of-bounds", "no mask", "sm_90a sm_100a"),
    *_python("Triton and torch", "torch", "torch_triton.py", targets="sm_90a sm_100a"),
    *_python("Numba-CUDA", "numba-cuda", "numba_kernels.py"),
    *_python("Numba-CUDA", "numba-cuda", "numba_kernels.py", "race", "shared-race", "no barrier"),
    *_python("NVRTC", "nvidia-cuda-nvrtc", "nvrtc_kernel.py", "cubin"),
    *_python("NVRTC", "nvidia-cuda-nvrtc", "nvrtc_kernel.py", "ptx"),
    *_python("CuPy", "cupy-cuda13x", "cupy_kernels.py"),
    *_python("CuPy", "cupy-cuda13x", "cupy_kernels.py", "overrun", "out-of-bounds"),
    *_python("CuTe DSL", "nvidia-cutlass-dsl", "cute_kernel.py", targets="sm_90a sm_100a"),
    *_python("JAX", "jax-cuda13-plugin", "jax_kernels.py", targets="sm_90a sm_100a"),
    *_python("JAX", "jax-cuda13-plugin", "jax_kernels.py", "no-wait", "shared-race", "read too early"),
    *_python("TileLang", "tilelang", "tilelang_kernel.py", targets="sm_90a sm_100a"),
    *_python("Warp", "warp-lang", "warp_kernels.py"),
    *_python("Taichi", "taichi", "taichi_kernel.py"),
)


@cache
def _version(package: str) -> str:
    """The version of an installed package; empty if it is missing."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _headers() -> list[str]:
    """The option that names CCCL's headers, if its wheel is installed."""
    try:
        files = importlib.metadata.files("nvidia-cuda-cccl") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    found = next((each for each in files if each.as_posix().endswith("/nv/target")), None)
    return ["-I", str(Path(str(found.locate())).parent.parent)] if found is not None else []


@cache
def _program(source: str, target: str, folder: Path) -> Path:
    """A program of nvcc. Raises CalledProcessError."""
    from ptxgen.toolchain import find_ptxas

    made = folder / f"{Path(source).stem}-{target}"
    compiler = find_ptxas().with_name("nvcc")
    options = ["-std=c++17", "-lineinfo", f"-arch={target}", *_headers()]
    subprocess.run([str(compiler), *options, "-o", str(made), str(SOURCES / source)], check=True)
    return made


@dataclass(frozen=True)
class Outcome:
    """How a case ended: `wrong` says what was not as expected."""

    case: Case
    said: str
    wrong: str
    seconds: float


def _ran(case: Case, folder: Path) -> Outcome:
    source = SOURCES / case.source
    command = (
        [str(_program(case.source, case.target, folder))] if source.suffix == ".cu" else [sys.executable, str(source)]
    )
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    words = [sys.executable, "-m", "ptxgen", "exec", "--target", case.target, "--timeout", str(_TIME_LIMIT)]
    began = time.monotonic()
    done = subprocess.run(
        [*words, "--json", str(report), "--", *command, *case.arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    seconds = time.monotonic() - began
    made = json.loads(report.read_text()) if report.is_file() else {"launches": [], "findings": []}
    found = [*made["findings"], *(each for launch in made["launches"] for each in launch["findings"])]
    errors = [each for each in found if each["severity"] == "error"]
    codes = sorted({f"{each['code']} at {each['source']}" for each in errors})
    said = "; ".join(codes) or ("PASS" if "PASS" in done.stdout else f"exit code {done.returncode}")
    return Outcome(case, said, _wrong(case, done, errors, len(made["launches"])), seconds)


def _wrong(case: Case, done: subprocess.CompletedProcess[str], errors: Sequence[dict[str, str]], launches: int) -> str:
    if not launches:
        said = [each for each in done.stderr.splitlines() if each.strip() and not each.startswith("ptxgen exec: no ")]
        return f"no launch: {said[-1] if said else 'nothing was printed'}"
    if not case.code:
        return "" if done.returncode == 0 and "PASS" in done.stdout and not errors else "not PASS without an error"
    if not case.mark:
        return "" if any(each["code"] == case.code for each in errors) else f"no {case.code}"
    text = (SOURCES / case.source).read_text(encoding="utf-8").splitlines()
    line = next(number for number, each in enumerate(text, 1) if case.mark in each)
    place = re.compile(rf"{re.escape(case.source)}:{line}\b")
    if any(each["code"] == case.code and place.match(each["source"]) for each in errors):
        return ""
    return f"no {case.code} at {case.source}:{line}"


_ROW = re.compile(r"^\| ([^|]+) \| `[^`]+` \| sm_\w+ \| .* \| \d+ \|$", re.MULTILINE)
_MEASURED = re.compile(r"^Measured .*?, Python \S+, (.*)\.$", re.MULTILINE)


def _page(outcomes: Sequence[Outcome], missing: Sequence[str], before: str) -> str:
    """The page; of stacks that did not run now the lines of the page `before` stay."""
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    measured = _MEASURED.search(before)
    versions = dict(each.rsplit(" ", 1) for each in measured[1].split(", ")) if measured else {}
    versions |= {each.case.package: _version(each.case.package) for each in outcomes}
    rows: dict[str, list[str]] = {}
    for found in _ROW.finditer(before):
        rows.setdefault(found[1], []).append(found[0])
    for stack in {each.case.stack for each in outcomes}:
        rows.pop(stack, None)
    for each in outcomes:
        said = f"**{each.wrong}**" if each.wrong else each.said
        case = each.case
        row = f"| {case.stack} | `{case.name}` | {case.target} | {said} | {each.seconds:.0f} |"
        rows.setdefault(case.stack, []).append(row)
    lines = [
        "Written by `make stacks` ([exec.md](exec.md) says how programs run). A right program must print PASS, without",
        "an error among its findings; one with a planted mistake must have the finding at the line of the mistake. The",
        "programs are in `tests/data/exec`. Seconds are those of a whole run on a machine with other work.",
        "",
        f"Measured {today}, Python {platform.python_version()}, "
        f"{', '.join(f'{name} {version}' for name, version in sorted(versions.items()))}.",
        "",
        "| stack | program | target | what was found | s |",
        "|---|---|---|---|---|",
        *(row for stack in dict.fromkeys(each.stack for each in CASES) for row in rows.get(stack, [])),
    ]
    if missing:
        lines += ["", f"Not installed: {', '.join(missing)}."]
    return "\n".join([*lines, ""])


def write_section(name: str, text: str) -> None:
    """Put a section into the page, in place of the one of that name."""
    PAGE.write_text(replace_section(PAGE.read_text(encoding="utf-8"), name, text), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.stacks", description=(__doc__ or "").splitlines()[0])
    stacks = list(dict.fromkeys(each.stack for each in CASES))
    parser.add_argument("stack", nargs="*", help=f"only these: {', '.join(stacks)}")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    arguments = parser.parse_args()
    if unknown := set(arguments.stack) - set(stacks):
        parser.error(f"there is no stack {', '.join(sorted(unknown))}; choose of {', '.join(stacks)}")
    chosen = [each for each in CASES if not arguments.stack or each.stack in arguments.stack]
    missing = list(dict.fromkeys(each.package for each in chosen if not _version(each.package)))
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="ptxgen-stacks-") as folder:
        for case in chosen:
            if case.package not in missing:
                outcomes.append(_ran(case, Path(folder)))
                each = outcomes[-1]
                print(
                    f"{case.stack}, {case.name}, {case.target}: {each.wrong or each.said} ({each.seconds:.0f} s)",
                    flush=True,
                )
    for package in missing:
        print(f"{package} is not installed")
    if arguments.write:
        before = PAGE.read_text(encoding="utf-8") if arguments.stack and PAGE.is_file() else ""
        write_section("stacks", _page(outcomes, missing, before))
    return int(any(each.wrong for each in outcomes))


if __name__ == "__main__":
    sys.exit(main())
