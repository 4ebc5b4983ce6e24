"""Run NVIDIA/cuda-samples, unmodified, under `ptxgen exec`: `make samples CUDA_SAMPLES=checkout`.

`python -m tools.samples CHECKOUT [NAME]... [--build FOLDER] [--write]`. Each sample is compiled by nvcc as its
CMakeLists.txt says, and run with arguments that make its problem small where it has such. With `--write` the table goes
to docs/stacks.md. Headers come from the wheels of the group `stacks` in pyproject.toml.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

from ptxgen.driver.build import library_folder
from ptxgen.toolchain import find_ptxas
from tools.stacks import PAGE, ROOT, write_section

TARGET = "sm_90a"
#: Samples, with arguments that make them small.
SAMPLES: dict[str, str] = {
    "asyncAPI": "",
    "clock": "",
    "cudaOpenMP": "",
    "fp16ScalarProduct": "",
    "matrixMul": "-wA=64 -hA=64 -wB=64 -hB=64",
    "simpleAssert": "",
    "simpleAtomicIntrinsics": "",
    "simpleAttributes": "",
    "simpleAWBarrier": "",
    "simpleCallback": "",
    "simpleCooperativeGroups": "",
    "simpleCubemapTexture": "",
    "simpleHyperQ": "-nstreams=4",
    "simpleIPC": "",
    "simpleLayeredTexture": "",
    "simpleMultiCopy": "",
    "simpleMultiGPU": "",
    "simpleOccupancy": "",
    "simplePitchLinearTexture": "",
    "simplePrintf": "",
    "simpleStreams": "",
    "simpleSurfaceWrite": "",
    "simpleTemplates": "",
    "simpleTexture": "",
    "simpleTextureDrv": "",
    "simpleVoteIntrinsics": "",
    "simpleZeroCopy": "",
    "systemWideAtomics": "",
    "template": "",
    "UnifiedMemoryStreams": "",
    "matrixMulDrv": "",
    "simpleDrvRuntime": "",
    "vectorAdd": "",
    "vectorAddDrv": "",
    "vectorAddMMAP": "",
    "vectorAdd_nvrtc": "",
    "clock_nvrtc": "",
    "inlinePTX_nvrtc": "",
    "matrixMul_nvrtc": "",
    "simpleAssert_nvrtc": "",
    "simpleAtomicIntrinsics_nvrtc": "",
    "convolutionTexture": "",
    "dct8x8": "",
    "deviceQuery": "",
    "deviceQueryDrv": "",
    "topologyQuery": "",
    "eigenvalues": "-matrix-size=64 -iters-timing=1",
    "histogram": "",
    "inlinePTX": "",
    "MC_EstimatePiInlineP": "",
    "MC_EstimatePiInlineQ": "",
    "radixSortThrust": "-n=4096 -iterations=1",
    "reduction": "-n=16384",
    "reductionMultiBlockCG": "-n=16384",
    "scalarProd": "",
    "shfl_scan": "",
    "streamOrderedAllocation": "",
    "streamOrderedAllocationIPC": "",
    "threadFenceReduction": "-n=16384",
    "bf16TensorCoreGemm": "",
    "binaryPartitionCG": "",
    "cudaCompressibleMemory": "",
    "cudaTensorCoreGemm": "",
    "globalToShmemAsyncCopy": "-wA=128 -hA=128 -wB=128 -hB=128",
    "graphConditionalNodes": "",
    "graphMemoryFootprint": "",
    "graphMemoryNodes": "",
    "jacobiCudaGraphs": "",
    "memMapIPCDrv": "",
    "newdelete": "",
    "ptxjit": "",
    "simpleCudaGraphs": "",
    "StreamPriorities": "",
    "warpAggregatedAtomicsCG": "",
    "lineOfSight": "",
    "binomialOptions": "",
    "BlackScholes": "",
    "dwtHaar1D": "",
    "fastWalshTransform": "",
    "FDTD3d": "-dimx=32 -dimy=32 -dimz=32 -timesteps=1",
    "HSOpticalFlow": "",
    "quasirandomGenerator": "",
    "stereoDisparity": "",
    "SobolQRNG": "-vectors=512 -dimensions=4",
    "alignedTypes": "",
    "LargeKernelParameter": "",
    "transpose": "-dimX=64 -dimY=64",
    "UnifiedMemoryPerf": "",
}
#: Samples that compare with a reference of their own, or of the host, and say so by their exit code alone.
EXIT_CODE_IS_CHECK = frozenset(
    [
        "asyncAPI",
        "cudaOpenMP",
        "FDTD3d",
        "ptxjit",
        "quasirandomGenerator",
        "reductionMultiBlockCG",
        "shfl_scan",
        "simpleHyperQ",
        "simpleIPC",
        "simpleMultiGPU",
        "simpleZeroCopy",
        "SobolQRNG",
        "streamOrderedAllocationIPC",
        "threadFenceReduction",
    ]
)
_WAIVED = 2
#: What samples print when their own check has passed.
_PASSED = re.compile(
    r"\bpass(ed)?\b|test succeeded|\bsuccess(ful(ly)?)?\b|\bOK\b|results? (match|agree)|correct|validated|verified",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Outcome:
    """How a sample ended; `problem` is why it did not run to exit code 0."""

    name: str
    code: int
    passed: bool
    seconds: float
    launches: int = 0
    instructions: int = 0
    findings: dict[str, int] = field(default_factory=dict)
    problem: str = ""


def _folder(checkout: Path, name: str) -> Path | None:
    return next((each for each in (checkout / "Samples").glob(f"[0-9]_*/{name}") if each.is_dir()), None)


def _includes() -> Iterator[str]:
    for each in sys.path:
        include = Path(each, "nvidia/cu13/include")
        for path in (include / "cccl", include):
            if path.is_dir():
                yield f"-I{path}"


def _libraries(cmake: str) -> Iterator[str]:
    """Options that link what the sample asks for: the stand-in for the driver, and NVRTC's wheel."""
    yield f"-L{library_folder()}"
    yield "-l:libcuda.so.1"
    if "nvrtc" in cmake:
        for each in sys.path:
            for found in Path(each, "nvidia/cu13/lib").glob("libnvrtc.so.1[0-9]"):
                yield f"-L{found.parent}"
                yield f"-l:{found.name}"
                yield from ("-Xlinker", f"-rpath={found.parent}")


def _runs_where_it_is_built(cmake: str) -> bool:
    """Whether the build makes files that the program looks for in its working directory."""
    return "CUDA_KERNEL_SOURCE" in cmake or "cooperative_groups.h" in cmake


def _compiled(checkout: Path, folder: Path, build: Path) -> Path:
    """The program of a sample. Raises CalledProcessError."""
    made = build / folder.name
    cmake = (folder / "CMakeLists.txt").read_text(encoding="utf-8")
    if made.is_file() and not _runs_where_it_is_built(cmake):
        return made
    words = re.search(r"add_executable\(\s*\w+\s+([^)]*)\)", cmake)
    listed = [folder / each for each in (words[1].split() if words else []) if each.endswith((".cu", ".cpp"))]
    sources = [each for each in listed if each.is_file()] or [*folder.glob("*.cu"), *folder.glob("*.cpp")]
    options = [
        "-std=c++17",
        "-O2",
        "-lineinfo",
        "-w",
        "-gencode",
        f"arch=compute_{TARGET[3:]},code=compute_{TARGET[3:]}",
    ]
    if "CUDA_SEPARABLE_COMPILATION ON" in cmake:
        options.append("-rdc=true")
    options += [f"-I{checkout / 'Common'}", f"-I{folder / 'inc'}", *_includes(), "-Xcompiler", "-fopenmp"]
    commands = [[*options, "-o", made, *sources, *_libraries(cmake)]]
    kernels = re.search(r'CUDA_KERNEL_SOURCE "[^"]*/([^/"]+)"', cmake)
    for kind, name in re.findall(r'set\(CUDA_(PTX|FATBIN)_FILE "[^"]*/([^/"]+)"', cmake):
        if kernels:
            commands.append([*options, f"-{kind.lower()}", "-o", build / name, folder / kernels[1]])
    if "cooperative_groups.h" in cmake:
        _link_headers(build, folder)
    if _runs_where_it_is_built(cmake):
        for each in (folder / "data").glob("*"):
            (build / each.name).unlink(missing_ok=True)
            (build / each.name).symlink_to(each)
    for command in commands:
        words = [find_ptxas().with_name("nvcc"), *command]
        subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True, cwd=folder)
    return made


def _link_headers(build: Path, folder: Path) -> None:
    """What programs of NVRTC find beside themselves: kernels, and headers."""
    for kernel in folder.glob("*_kernel.cu"):
        if not (build / kernel.name).exists():
            (build / kernel.name).symlink_to(kernel)
    for option in _includes():
        for name in ("cooperative_groups.h", "cooperative_groups", "nv", "cuda"):
            header = Path(option.removeprefix("-I"), name)
            if header.exists() and not (build / name).exists():
                (build / name).symlink_to(header)


def _problem(done: subprocess.CompletedProcess[str]) -> str:
    """The sentence that says why a run failed."""
    said, printed = done.stderr, done.stdout
    if done.returncode == _WAIVED:
        waived = [each.strip() for each in printed.splitlines() if re.search("waiv|support|requires", each)]
        return f"waived by the sample: {waived[-1] if waived else 'it says no more'}"
    lines = [each.removeprefix("ptxgen exec: ") for each in said.splitlines() if each.startswith("ptxgen exec: ")]
    reasons = [
        each for each in lines if re.search(r"does not support|cannot be|did not end|no PTX|refused|ended by", each)
    ]
    rest = [each.strip() for each in (said + printed).splitlines() if re.search(r"error|fail", each, re.IGNORECASE)]
    return next(iter([*reasons, *rest]), "no reason was printed")


def _ran(checkout: Path, name: str, build: Path, limit: int) -> Outcome:
    folder = _folder(checkout, name)
    if folder is None:
        return Outcome(name, -1, False, 0, problem="is not in this checkout")
    try:
        program = _compiled(checkout, folder, build)
    except subprocess.CalledProcessError as error:
        lines = [each for each in error.stderr.splitlines() if re.search(r"error|undefined|cannot find", each)]
        return Outcome(
            name, -1, False, 0, problem=f"does not compile: {re.sub(r'^.*/', '', lines[0]) if lines else ''}"
        )
    report = build / f"{name}.json"
    report.unlink(missing_ok=True)
    words = [sys.executable, "-m", "ptxgen", "exec", "--target", TARGET, "--timeout", str(limit), "--json", str(report)]
    began = time.monotonic()
    done = subprocess.run(
        [*words, "--fail-on", "never", "--", str(program), *SAMPLES.get(name, "").split()],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        cwd=build if _runs_where_it_is_built((folder / "CMakeLists.txt").read_text(encoding="utf-8")) else folder,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    seconds = time.monotonic() - began
    made = json.loads(report.read_text()) if report.is_file() else {"launches": [], "findings": []}
    found = [*made["findings"], *(each for launch in made["launches"] for each in launch["findings"])]
    checked = len(made["launches"]) > 0 and (name in EXIT_CODE_IS_CHECK or _PASSED.search(done.stdout) is not None)
    # The same statement in many launches is one finding.
    places = {(each["severity"], each["code"], each.get("source", "")) for each in found}
    codes = Counter(code if severity == "error" else f"{code} (advice)" for severity, code, _ in places)
    (build / f"{name}.out").write_text(f"{done.stdout}\n----\n{done.stderr}", encoding="utf-8")
    return Outcome(
        name,
        done.returncode,
        done.returncode == 0 and checked,
        seconds,
        len(made["launches"]),
        sum(each["instructions"] for each in made["launches"]),
        dict(sorted(codes.items())),
        _problem(done) if done.returncode else "",
    )


def _section(checkout: Path, outcomes: Sequence[Outcome]) -> str:
    commit = subprocess.run(["git", "-C", checkout, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True)
    ran = [each for each in outcomes if each.code == 0]
    checked = sum(each.passed for each in ran)
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    lines = [
        "## NVIDIA/cuda-samples",
        "",
        f"Written by `make samples` (tools/samples.py) from commit {commit.stdout.strip() or 'c94ff366'}, {today}, "
        f"nvcc {version('nvidia-cuda-nvcc')}, {TARGET}, `eager`.",
        f"{len(ran)} samples ran to exit code 0, {checked} of them with a check of their own that passed.",
        "Seconds are those of a whole run on a machine with other work; what did not end in 150 to 240 s is listed",
        "below.",
        "Findings are counted by statement; [found.md](found.md) has what is behind them.",
        "",
        "| sample | arguments | own check | launches | warp-instructions | findings | s |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in ran:
        found = ", ".join(f"{code} ×{count}" for code, count in each.findings.items()) or "none"
        arguments = f"`{SAMPLES[each.name]}`" if SAMPLES.get(each.name) else ""
        own = "passed" if each.passed else "none"
        figures = f"{each.launches} | {each.instructions:,} | {found} | {each.seconds:.0f}"
        lines.append(f"| {each.name} | {arguments} | {own} | {figures} |")
    others = [each for each in outcomes if each.code != 0]
    if others:
        lines += ["", "Not run to the end:", "", "| sample | why |", "|---|---|"]
        lines += [f"| {each.name} | {each.problem[:200].replace('|', '/')} |" for each in others]
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.samples", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path, help="a checkout of NVIDIA/cuda-samples")
    parser.add_argument("name", nargs="*", help="only these samples")
    parser.add_argument("--build", type=Path, help="folder that keeps programs and outcomes")
    parser.add_argument("--limit", type=int, default=150, help="seconds for one sample")
    parser.add_argument("--again", action="store_true", help="run again what has an outcome in the build folder")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ptxgen-samples-") as temporary:
        build: Path = arguments.build or Path(temporary)
        build.mkdir(parents=True, exist_ok=True)
        outcomes: list[Outcome] = []
        for name in arguments.name or SAMPLES:
            kept = build / f"{name}.outcome"
            if kept.is_file() and not arguments.again:
                outcomes.append(Outcome(**json.loads(kept.read_text())))
                continue
            made = _ran(arguments.checkout.resolve(), name, build.resolve(), arguments.limit)
            kept.write_text(json.dumps(asdict(made)), encoding="utf-8")
            outcomes.append(made)
            print(f"{name}: {made.code}, {'passed' if made.passed else made.problem or 'no check'}", flush=True)
        if arguments.write:
            write_section("cuda-samples", _section(arguments.checkout, outcomes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
