"""Launches of kernels that compilers wrote: measured under Nsight Compute, recorded with their PTX, predicted.

    ncu --clock-control none --cache-control none --profile-from-start off --csv --page raw --log-file cycles.csv
        --metrics sm__cycles_elapsed.max,gpu__time_duration.sum python -m bench.gpu.strangers measure --out names.json
    python -m bench.gpu.strangers join names.json cycles.csv --out bench/data/h200-strangers.json.gz
    python -m bench.gpu.strangers predict --part seen --out predicted.jsonl

Each is launched three times with its arrays in the L2 as far as they fit, and three times after 512 MB were written.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench.gpu.microbench.launches import TIMES, profiled
from bench.gpu.microbench.validate import summary
from ptxgen.device import Kernel
from ptxgen.emulator import Emulator
from ptxgen.timing import predict

_MEMORY = 6 << 30
#: By type, elements of as many bytes for arrays whose values do not matter.
_WITHOUT_DATA = {
    "float64": np.uint64, "float32": np.float32, "bfloat16": np.uint16, "float16": np.uint16, "uint8": np.uint8,
}  # fmt: skip
RECORD = Path(__file__).parents[2] / "data" / "h200-strangers.json.gz"


def _described(value: Any) -> Any:
    """An argument as it is recorded: an array by type and elements, or a number."""
    if hasattr(value, "numel"):
        return {"dtype": str(value.dtype).removeprefix("torch."), "count": value.numel()}
    return value


class Launches:
    """Launches between the profiler's marks; `recorded` has one entry a launch."""

    def __init__(self) -> None:
        import torch  # type: ignore[import-not-found]

        self.torch, self.recorded = torch, list[dict[str, Any]]()
        self.texts: dict[str, int] = {}
        self._flushed = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")

    def launch(self, record: dict[str, Any], text: str, launch: Any) -> None:
        """Three launches warm and three cold."""
        launch()
        self.torch.cuda.synchronize()
        number = self.texts.setdefault(text, len(self.texts))
        for l2 in ("warm", "cold"):
            for _ in range(TIMES):
                if l2 == "cold":
                    self._flushed.random_(0, 255)
                self.torch.cuda.synchronize()
                self.torch.cuda.profiler.start()
                launch()
                self.torch.cuda.synchronize()
                self.torch.cuda.profiler.stop()
                self.recorded.append({**record, "l2": l2, "text": number})


def _triton(found: Launches, end: float) -> None:
    from bench.gpu.strangers import triton_kernels

    for name, function, grid, args, options in triton_kernels.launches():
        if time.monotonic() > end:
            print("out of time at", name, flush=True)
            return
        try:
            made = function[grid](*args, **options)
            record = {
                "name": f"triton {name}", "grid": [*grid], "block": 32 * made.metadata.num_warps,
                "shared": made.metadata.shared, "args": [_described(each) for each in args],
            }  # fmt: skip
            found.launch(record, made.asm["ptx"], lambda f=function, g=grid, a=args, o=options: f[g](*a, **o))
        except Exception as error:
            print(name, error, flush=True)


def nvcc(source: Path) -> str:
    """The PTX of a source for sm_90a."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernels.ptx"
        target = ["-gencode", "arch=compute_90a,code=compute_90a"]
        subprocess.run([shutil.which("nvcc") or "nvcc", "-ptx", "-O3", *target, source, "-o", file], check=True)
        return file.read_text()


def _cuda(found: Launches, end: float) -> None:
    torch = found.torch
    text = nvcc(Path(__file__).parent / "kernels.cu")
    from ptxgen.gpu import Gpu

    gpu = Gpu()
    for name, grid, block, args in _cuda_launches():
        if time.monotonic() > end:
            print("out of time at", name, flush=True)
            return
        kernel = Kernel.from_ptx(text, name.split()[0])
        made = [_array(torch, each) if isinstance(each, dict) else each for each in args]
        try:
            arrays = [gpu.array(each.cpu().numpy()) if hasattr(each, "numel") else each for each in made]
            record = {"name": f"nvcc {name}", "grid": [*grid], "block": [*block], "shared": 0, "args": args}
            record["entry"] = name.split()[0]
            found.launch(record, text, lambda k=kernel, g=grid, b=block, a=arrays: gpu.launch(k, g, b, a))
        except Exception as error:
            print(name, error, flush=True)


def _array(torch: Any, described: dict[str, Any]) -> Any:
    count = described["count"]
    if described["dtype"] == "int32":
        return torch.randint(0, 256, (count,), device="cuda", dtype=torch.int32)
    return torch.randn(count, device="cuda", dtype=torch.float32)


def _floats(count: int) -> dict[str, Any]:
    return {"dtype": "float32", "count": count}


def _cuda_launches() -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...], list[Any]]]:
    for n in (1 << 16, 1 << 22):
        yield f"saxpy4 {n}", (n // 256,), (256,), [_floats(4 * n), _floats(4 * n), 2.0, n]
    for n in (1 << 20, 1 << 25):
        yield f"saxpy {n}", (1056,), (256,), [_floats(n), _floats(n), 2.0, n]
    for size in (1024, 4096):
        for name in ("transpose_naive", "transpose_tiled"):
            args = [_floats(size * size), _floats(size * size), size, size]
            yield f"{name} {size}", (size // 32, size // 32), (32, 8), args
    for n in (1 << 18, 1 << 25):
        yield f"reduce_sum {n}", (min(n // 256, 1056),), (256,), [_floats(n), _floats(1), n]
    for n in (1 << 18, 1 << 24):
        arrays = [{"dtype": "int32", "count": n}, {"dtype": "int32", "count": 256}]
        yield f"histogram_shared {n}", (min(n // 256, 528),), (256,), [*arrays, n]
    for size in (1026, 8194):
        args = [_floats(size * size), _floats(size * size), size, size]
        yield f"stencil {size}", ((size - 2) // 32, (size - 2) // 8), (32, 8), args
    for rows, columns in ((128, 1024), (4096, 4096)):
        args = [_floats(rows * columns), _floats(rows * columns), columns]
        yield f"row_softmax {rows}x{columns}", (rows,), (256,), args
    for size in (256, 1024):
        args = [*(_floats(size * size) for _ in range(3)), size]
        yield f"sgemm_tiled {size}", (size // 32, size // 32), (32, 32), args
    for size in (512, 2048):
        args = [*(_floats(size * size) for _ in range(3)), size]
        yield f"sgemm_registers {size}", (size // 128, size // 128), (256,), args


def measure(out: Path, seconds: float) -> None:
    """Launch them all, and write what was launched."""
    end = time.monotonic() + seconds
    found = Launches()
    _cuda(found, end)
    _triton(found, end)
    record = {"device": found.torch.cuda.get_device_name(), "texts": list(found.texts), "launches": found.recorded}
    out.write_text(json.dumps(record), encoding="utf-8")


def _arguments(launch: dict[str, Any], kernel: Kernel, emulator: Emulator) -> list[Any]:
    """What a recorded launch was given: arrays of as many elements, indices at random; null for what Triton adds."""
    made: list[Any] = []
    for each in launch["args"]:
        if not isinstance(each, dict):
            made.append(each)
        elif each["dtype"] == "int32":
            below = each.get("below", 256)
            made.append(emulator.array(np.random.default_rng(1).integers(0, below, each["count"], np.int32)))
        else:
            made.append(emulator.empty((each["count"],), _WITHOUT_DATA[each["dtype"]]))
    return [*made, *[0] * (len(kernel.entry.parameters) - len(made))]


def compared(record: dict[str, Any], launch: dict[str, Any]) -> dict[str, Any]:
    """A launch with its predicted cycles, or why there are none."""
    began = time.monotonic()
    kernel = Kernel.from_ptx(record["texts"][launch["text"]], launch.get("entry"))
    emulator = Emulator("sm_90a", checks=False, memory_bytes=_MEMORY)
    found = {key: launch[key] for key in ("name", "l2", "cycles", "ns")}
    block = launch["block"] if isinstance(launch["block"], int) else tuple(launch["block"])
    try:
        predicted = predict(
            kernel, tuple(launch["grid"]), block, _arguments(launch, kernel, emulator), machine="h200",
            shared_bytes=launch["shared"], l2=launch["l2"], clock=round(launch["cycles"] / launch["ns"] * 1e3),
        )  # fmt: skip
    except ValueError as error:
        return {**found, "error": str(error)[:300]}
    seconds = round(time.monotonic() - began, 1)
    return {**found, "predicted": round(predicted.cycles), "bound_by": predicted.bound_by, "seconds": seconds}


def held_out(launch: Mapping[str, Any]) -> bool:
    """Whether a kernel only judges: half of them, by a hash of its name."""
    return hashlib.sha256(launch["name"].encode()).digest()[0] % 2 == 0


def predict_all(file: Path, out: Path, part: str, only: str, seconds: float) -> None:
    """Predict the launches of a record, those of a part whose name an expression finds, small ones first."""
    end = time.monotonic() + seconds
    record = json.loads(gzip.decompress(file.read_bytes()))
    rows = list[dict[str, Any]]()
    for launch in sorted(record["launches"], key=lambda each: each["cycles"]):
        if time.monotonic() > end:
            break
        if part != "all" and held_out(launch) != (part == "held-out"):
            continue
        if re.search(only, f"{launch['name']} {launch['l2']}"):
            rows.append(compared(record, launch))
            with out.open("a", encoding="utf-8") as rows_so_far:
                rows_so_far.write(json.dumps(rows[-1]) + "\n")
            print(f"{rows[-1].get('predicted', 0) / launch['cycles'] - 1:+7.1%}", rows[-1], flush=True)
    print(summary(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    measured = commands.add_parser("measure")
    measured.add_argument("--seconds", type=float, default=150)
    joined = commands.add_parser("join")
    joined.add_argument("files", type=Path, nargs=2)
    predicted = commands.add_parser("predict")
    predicted.add_argument("--part", choices=("seen", "held-out", "all"), required=True)
    predicted.add_argument("--record", type=Path, default=RECORD)
    predicted.add_argument("--only", default="", help="launches whose name and L2 this expression finds")
    predicted.add_argument("--seconds", type=float, default=3600)
    for each in (measured, joined, predicted):
        each.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.command == "measure":
        measure(options.out, options.seconds)
        return
    if options.command == "predict":
        predict_all(options.record, options.out, options.part, options.only, options.seconds)
        return
    names = json.loads(options.files[0].read_text())
    made = profiled(names["launches"], options.files[1])
    options.out.write_bytes(gzip.compress(json.dumps({**names, "launches": made}).encode(), mtime=0))


if __name__ == "__main__":
    main()
