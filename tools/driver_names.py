"""Generate the tables of public CUDA names that the stand-in driver of `ptxgen exec` has (ptxgen/driver/native).

    python -m tools.driver_names CUDA13/include CUDA12/include

The folders are the headers of NVIDIA's wheels nvidia-cuda-runtime (CUDA 13) and nvidia-cuda-runtime-cu12. Taken from
them are facts alone: names and versions of functions, names and numbers of errors, and the offsets of the members of
cudaDeviceProp, which differ between both. Their versions are in the head of each table.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

NATIVE = Path(__file__).parents[1] / "ptxgen/driver/native"
#: Suffixes of the variants of a function, oldest first.
_VARIANTS = ("", "_v2", "_v3", "_v4", "_v5")
#: Members of cudaDeviceProp that are a device attribute (CU_DEVICE_ATTRIBUTE_*), by the attribute's number.
_PROPERTIES = {
    "sharedMemPerBlock": 8, "regsPerBlock": 12, "warpSize": 10, "memPitch": 11, "maxThreadsPerBlock": 1,
    "maxThreadsDim[0]": 2, "maxThreadsDim[1]": 3, "maxThreadsDim[2]": 4, "maxGridSize[0]": 5, "maxGridSize[1]": 6,
    "maxGridSize[2]": 7, "clockRate": 13, "totalConstMem": 9, "major": 75, "minor": 76, "textureAlignment": 14,
    "texturePitchAlignment": 51, "deviceOverlap": 15, "multiProcessorCount": 16, "canMapHostMemory": 19,
    "surfaceAlignment": 30, "concurrentKernels": 31, "pciBusID": 33, "asyncEngineCount": 40, "unifiedAddressing": 41,
    "memoryClockRate": 36, "memoryBusWidth": 37, "l2CacheSize": 38, "persistingL2CacheMaxSize": 108,
    "maxThreadsPerMultiProcessor": 39, "streamPrioritiesSupported": 78, "globalL1CacheSupported": 79,
    "localL1CacheSupported": 80, "sharedMemPerMultiprocessor": 81, "regsPerMultiprocessor": 82, "managedMemory": 83,
    "singleToDoublePrecisionPerfRatio": 87, "concurrentManagedAccess": 89, "computePreemptionSupported": 90,
    "cooperativeLaunch": 95, "sharedMemPerBlockOptin": 97, "maxBlocksPerMultiProcessor": 106,
    "accessPolicyMaxWindowSize": 109, "reservedSharedMemPerBlock": 111, "hostRegisterSupported": 99,
    "memoryPoolsSupported": 115, "clusterLaunch": 120, "unifiedFunctionPointers": 129, "hostNumaId": 131,
}  # fmt: skip
#: Functions that code of nvcc or libraries (CuTe DSL's wrappers) call and no C header declares.
_REGISTRATION = (
    "__cudaRegisterFatBinary", "__cudaRegisterFatBinaryEnd", "__cudaUnregisterFatBinary", "__cudaRegisterFunction",
    "__cudaRegisterVar", "__cudaRegisterManagedVar", "__cudaInitModule", "__cudaPushCallConfiguration",
    "__cudaPopCallConfiguration", "__cudaGetKernel", "__cudaLaunchKernel", "cudaLaunchKernelEx",
    "cudaProfilerStart", "cudaProfilerStop",
)  # fmt: skip


def driver_tables(include: Path) -> tuple[list[str], list[tuple[str, int, str]]]:
    """All exported functions, and (name, version, exported) for cuGetProcAddress, in order."""
    header = (include / "cuda.h").read_text()
    typedefs = "".join((include / name).read_text() for name in ("cudaTypedefs.h", "cudaProfilerTypedefs.h"))
    names = set(re.findall(r"CUDAAPI\s+(cu[A-Z]\w+)\s*\(", header))
    newest = dict(re.findall(r"#\s*define\s+(cu[A-Z]\w+)\s+(cu[A-Z]\w+_v\d)\b", header))
    newest |= {m[1]: m[2] for m in re.finditer(r"#\s*define\s+(cu[A-Z]\w+)\s+__CUDA_API_PT[DS][SZ]\((cu\w+)\)", header)}
    versions: dict[str, set[int]] = {}
    for match in re.finditer(r"PFN_(cu[A-Z]\w+?)_v(\d{4,5})\b", typedefs):
        versions.setdefault(match[1], set()).add(int(match[2]))
    exported, rows = names | set(newest.values()), list[tuple[str, int, str]]()
    for name in sorted({each for each in exported | set(versions) if not re.search(r"_v\d$|_ptds$|_ptsz$", each)}):
        known = sorted(versions.get(name, {0}))
        for place, version in enumerate(known):
            variant = name + _VARIANTS[min(place, len(_VARIANTS) - 1)]
            if place == len(known) - 1 and re.search(r"_v\d$", newest.get(name, "")):
                variant = newest[name]
            exported.add(variant)
            rows.append((name, version, variant))
    return sorted(each for each in exported if not re.search(r"_ptds$|_ptsz$", each)), rows


def runtime_names(includes: Iterable[Path]) -> list[str]:
    """All functions of the runtime, of several versions of it."""
    found = set(_REGISTRATION)
    for include in includes:
        header = (include / "cuda_runtime_api.h").read_text()
        found |= set(re.findall(r"CUDARTAPI\s+(cuda[A-Z]\w+)\s*\(", header))
        found |= set(re.findall(r"__host__[^;\n]*?\b(cuda[A-Z]\w+)\s*\(", header))
        found |= {match[1] for match in re.finditer(r"define\s+(cuda\w+)\s+__CUDART_API_PT", header)}
        found |= {match[1] for match in re.finditer(r"__CUDART_API_PT[DS][SZ]\((cuda\w+)\)", header)}
        found |= {match[1] for match in re.finditer(r"#\s*define\s+cuda\w+\s+(cuda\w+_v\d+)\b", header)}
    return sorted(each for each in found if not each.endswith(("_ptsz", "_ptds")))


def thread_stream_variants(includes: Iterable[Path]) -> list[tuple[str, str]]:
    """Functions with a variant for per-thread default streams, each with that one's suffix."""
    found = {("__cudaLaunchKernel", "_ptsz"), ("cudaLaunchKernel", "_ptsz"), ("cudaLaunchKernelExC", "_ptsz")}
    for include in includes:
        for header in ("cuda.h", "cuda_runtime_api.h"):
            text = (include / header).read_text()
            for match in re.finditer(r"__CUDA(?:RT)?_API_(PT[DS][SZ])\((cu\w+)\)", text):
                found.add((match[2], f"_{match[1].lower()}"))
    return sorted(found)


def errors(include: Path) -> Iterator[tuple[int, str, str]]:
    """(number, name in the driver, name in the runtime) of each error that either has."""
    driver = re.findall(r"\b(CUDA_(?:ERROR_\w+|SUCCESS))\s*=\s*(\d+)", (include / "cuda.h").read_text())
    runtime = re.findall(r"\b(cuda(?:Error\w+|Success))\s*=\s*(\d+)", (include / "driver_types.h").read_text())
    by_driver = {int(number): name for name, number in reversed(driver)}
    by_runtime = {int(number): name for name, number in reversed(runtime)}
    for number in sorted(by_driver.keys() | by_runtime.keys()):
        yield number, by_driver.get(number, ""), by_runtime.get(number, "")


def offsets(include: Path) -> dict[str, tuple[int, int]]:
    """(offset, size) of the members of cudaDeviceProp, as a C compiler lays them out."""
    members = ["name", "uuid", "totalGlobalMem", *_PROPERTIES]
    text = (include / "driver_types.h").read_text()
    known = [each for each in members if re.search(rf"\b{re.escape(each.split('[')[0])}\b\s*[;\[]", text)]
    lines = [f'printf("{each} %zu %zu\\n", offsetof(P, {each}), sizeof(((P *)0)->{each}));' for each in known]
    program = (
        "#include <stddef.h>\n#include <stdio.h>\n#include <driver_types.h>\ntypedef struct cudaDeviceProp P;\n"
        f'int main(void) {{ printf("total %zu 0\\n", sizeof(P)); {" ".join(lines)} }}\n'
    )
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "offsets.c"), Path(folder, "offsets")
        source.write_text(program, encoding="utf-8")
        if not (include / "crt").exists():  # CUDA 12 has it in another wheel, and nothing here needs it
            Path(folder, "crt").mkdir()
            Path(folder, "crt/host_defines.h").write_text(
                "#define __device_builtin__\n#define __align__(n) __attribute__((aligned(n)))\n"
                "#define __builtin_align__(n) __align__(n)\n",
                encoding="utf-8",
            )
        subprocess.run(["cc", "-w", f"-I{include}", f"-I{folder}", "-o", str(made), str(source)], check=True)
        output = subprocess.run([str(made)], check=True, capture_output=True, text=True).stdout
    rows = (line.split() for line in output.splitlines())
    return {name: (int(offset), int(size)) for name, offset, size in rows}


def version(include: Path) -> str:
    """`13.5` of the headers in a folder."""
    number = re.search(r"#define CUDART_VERSION\s+(\d+)", (include / "cuda_runtime_api.h").read_text())
    assert number is not None
    return f"{int(number[1]) // 1000}.{int(number[1]) % 1000 // 10}"


def main() -> None:
    """Write the tables."""
    new, old = map(Path, sys.argv[1:3])

    def write(name: str, what: str, lines: Iterable[str]) -> None:
        source = f"the headers of CUDA {version(new)} and {version(old)}"
        head = f"/* {what}\n * Generated by tools/driver_names.py from {source}. */\n"
        (NATIVE / name).write_text(head + "".join(f"{line}\n" for line in lines))

    exported, rows = driver_tables(new)
    write("driver_functions.h", "Functions of the driver.", (f"DRIVER_FUNCTION({each})" for each in exported))
    write(
        "driver_versions.h",
        "What cuGetProcAddress finds: name, first version, function.",
        (f"DRIVER_VERSION({name}, {number}, {variant})" for name, number, variant in rows),
    )
    names = runtime_names((new, old))
    write("runtime_functions.h", "Functions of the runtime, sorted.", (f"RUNTIME_FUNCTION({each})" for each in names))
    known = {*exported, *names}
    write(
        "thread_stream_variants.h",
        "Functions with a variant for per-thread default streams.",
        (
            f"THREAD_STREAM_VARIANT({name}, {suffix})"
            for name, suffix in thread_stream_variants((new, old))
            if name in known
        ),
    )
    write(
        "errors.h",
        "Errors: number, name in the driver, name in the runtime.",
        (f"ERROR({number}, {quoted(driver)}, {quoted(runtime)})" for number, driver, runtime in errors(new)),
    )
    now, before = offsets(new), offsets(old)
    lines = []
    for name in ["name", "uuid", "totalGlobalMem", *_PROPERTIES]:
        size = (now.get(name) or before[name])[1]
        places = [table[name][0] if name in table else -1 for table in (before, now)]
        lines.append(f"PROPERTY({_PROPERTIES.get(name, 0)}, {size}, {places[0]}, {places[1]}) /* {name} */")
    lines.append(f"PROPERTIES_BYTES({before['total'][0]}, {now['total'][0]})")
    write("properties.h", "Members of cudaDeviceProp: attribute, bytes, offset in CUDA 12 and 13 (-1: none).", lines)


def quoted(name: str) -> str:
    """A C string, NULL for none."""
    return f'"{name}"' if name else "NULL"


if __name__ == "__main__":
    main()
