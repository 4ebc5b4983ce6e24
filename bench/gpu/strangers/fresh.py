"""Kernels that only judge predictions: compiled without a GPU, kept with their PTX, measured by addresses alone.

    python -m bench.gpu.strangers.fresh compile --out bench/data/fresh-kernels.json.gz       # needs nvcc and triton
    ncu (as bench.gpu.strangers says) python -m bench.gpu.strangers.fresh measure --out names.json
    python -m bench.gpu.strangers join names.json cycles.csv --out bench/data/h200-fresh.json.gz
    python -m bench.gpu.strangers predict --record bench/data/h200-fresh.json.gz --part all --out predicted.jsonl

An array is recorded by type, elements and, of int32, the number below which its random values are.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.gpu.microbench.built import BuiltGpu
from bench.gpu.strangers.__main__ import Launches, held_out, nvcc
from ptxgen.device import Kernel

KERNELS = Path(__file__).parents[2] / "data" / "fresh-kernels.json.gz"
#: What PTX says of the lines of its source.
_DEBUG = re.compile(
    r"^[ \t]*\.(?:loc|file)\b[^\n]*\n|^[ \t]*\.section[ \t]+\.debug\w*\s*\{[^}]*\}[^\n]*\n", re.MULTILINE
)


def _array(dtype: str, count: int, below: int = 0) -> dict[str, Any]:
    return {"dtype": dtype, "count": count} | ({"below": below} if below else {})


def _floats(count: int) -> dict[str, Any]:
    return _array("float32", count)


def cuda_launches() -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...], list[Any]]]:
    """Name, which begins with that of the entry, grid, block and arguments of each launch of fresh.cu."""
    for n in (1 << 16, 1 << 23):
        yield f"block_scan {n}", (n // 256,), (256,), [_floats(n), _floats(n), n]
    for blocks in (64, 2048):
        yield f"bitonic_sort {blocks} blocks", (blocks,), (512,), [_array("int32", 1024 * blocks, 1 << 30)]
    for size in (512, 3072):
        args = [_floats(size * size), _floats(25), _floats(size * size), size, size]
        yield f"conv5 {size}", (size // 32, size // 16), (32, 16), args
    for n in (2048, 16384):
        yield f"nbody {n}", (n // 256,), (256,), [_floats(4 * n), _floats(4 * n), n]
    yield "mandelbrot 1024", (2048,), (256,), [_array("int32", 1 << 19), 1024, 3 / 1024, 200]
    for rows, columns in ((1024, 1024), (8192, 8192)):
        args = [_floats(rows * columns), _floats(columns), _floats(rows), columns]
        yield f"gemv_rows {rows}x{columns}", (rows // 8,), (256,), args
    for rows in (8192, 1 << 19):
        args = [_floats(32 * rows), _array("int32", 32 * rows, rows), _floats(rows), _floats(rows), rows]
        yield f"spmv_ell {rows}", (rows // 128,), (128,), args
    for rows, columns in ((64, 4096), (8192, 4096)):
        args = [_array("float16", rows * columns), _array("float16", columns), _array("float16", rows * columns)]
        yield f"rms_norm {rows}x{columns}", (rows,), (256,), [*args, columns]
    for n in (4096, 16384):
        args = [_array("uint8", n * n // 2), _array("float16", n), _floats(n * n // 128), _floats(n), n]
        yield f"int4_gemv {n}", (n // 4,), (128,), args
    for n in (256, 1024):
        args = [*(_array("float64", n * n) for _ in range(3)), n]
        yield f"dgemm_tiled {n}", (n // 16, n // 16), (16, 16), args
    for n in (512, 2048):
        args = [_array("float16", n * n), _array("float16", n * n), _floats(n * n), n]
        yield f"wmma_gemm {n}", (n // 128, n // 64), (256,), args
    for n, size in ((1 << 18, 1 << 16), (1 << 22, 1 << 24)):
        args = [_floats(n), _array("int32", n, size), _floats(size), n]
        yield f"scatter_add {n} to {size}", (n // 256,), (256,), args
    for n in (1 << 18, 1 << 24):
        yield f"black_scholes {n}", (n // 256,), (256,), [*(_floats(n) for _ in range(4)), n]
    args = [_floats(514 * 514 * 130), _floats(514 * 514 * 130), 514, 514, 130]
    yield "stencil3d 514x514x130", (16, 64), (32, 8), args
    for rows, columns in ((256, 1024), (8192, 8192)):
        args = [_floats(rows * columns), _array("uint8", rows * columns), _floats(rows), columns]
        yield f"quantize_rows {rows}x{columns}", (rows,), (128,), args
    for blocks in (132, 4096):
        yield f"hash_rounds {blocks} blocks", (blocks,), (256,), [_array("int32", 256 * blocks), 200]


def compile_all(out: Path) -> None:
    from bench.gpu.strangers import fresh_triton

    texts: dict[str, int] = {}
    launches = list[dict[str, Any]]()
    text = nvcc(Path(__file__).with_name("fresh.cu"))
    for name, grid, block, args in cuda_launches():
        launches.append({
            "name": f"nvcc {name}", "grid": [*grid], "block": [*block], "shared": 0, "args": args,
            "entry": name.split()[0], "text": texts.setdefault(text, len(texts)),
        })  # fmt: skip
    for record, text in fresh_triton.compiled():
        text = _DEBUG.sub("", text).replace(", debug", "")
        launches.append({**record, "text": texts.setdefault(text, len(texts))})
    made = {"texts": list(texts), "launches": launches}
    out.write_bytes(gzip.compress(json.dumps(made).encode(), mtime=0))


def read(file: Path, part: str) -> dict[str, Any]:
    """Texts and launches of a part, these in an order that has nothing to do with their size or kind."""
    record = json.loads(gzip.decompress(file.read_bytes()))
    launches = {each["name"]: each for each in record["launches"] if part == "all" or not held_out(each)}
    record["launches"] = sorted(launches.values(), key=lambda each: hashlib.md5(each["name"].encode()).digest())
    return record


def _tensor(torch: Any, described: dict[str, Any]) -> Any:
    count, dtype = described["count"], described["dtype"]
    if dtype == "int32":
        return torch.randint(0, described.get("below", 256), (count,), device="cuda", dtype=torch.int32)
    if dtype == "uint8":  # bytes of fp8 too: none is NaN
        return torch.randint(0, 120, (count,), device="cuda", dtype=torch.uint8)
    return torch.randn(count, device="cuda", dtype=torch.float32).to(getattr(torch, dtype))


def _once(gpu: BuiltGpu, kernel: Kernel, shape: tuple[Any, ...], shared: int) -> None:
    report = gpu.launch(kernel, *shape, shared_bytes=shared)
    if not report.ok:
        raise RuntimeError(report.summary())


def measure(file: Path, part: str, out: Path, seconds: float) -> None:
    """Launch those of a part, warm and cold, and write what was launched."""
    end, record = time.monotonic() + seconds, read(file, part)
    found = Launches()
    gpu = BuiltGpu(record["texts"])
    for launch in record["launches"]:
        if time.monotonic() > end:
            print("out of time at", launch["name"], flush=True)
            break
        kernel = Kernel.from_ptx(record["texts"][launch["text"]], launch.get("entry"))
        tensors = [_tensor(found.torch, each) if isinstance(each, dict) else each for each in launch["args"]]
        args = [each.data_ptr() if hasattr(each, "data_ptr") else each for each in tensors]
        args += [0] * (len(kernel.entry.parameters) - len(args))
        block = launch["block"] if isinstance(launch["block"], int) else tuple(launch["block"])

        shape = tuple(launch["grid"]), block, args
        try:
            found.launch(launch, kernel.text, partial(_once, gpu, kernel, shape, launch["shared"]))
        except Exception as error:
            print(launch["name"], error, flush=True)
    made = {"device": gpu.name, "texts": list(found.texts), "launches": found.recorded}
    out.write_text(json.dumps(made), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("compile", "measure"))
    parser.add_argument("--record", type=Path, default=KERNELS)
    parser.add_argument("--part", choices=("seen", "all"), default="all", help="of the record that is measured")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.command == "compile":
        compile_all(options.out)
    else:
        measure(options.record, options.part, options.out, options.seconds)


if __name__ == "__main__":
    main()
