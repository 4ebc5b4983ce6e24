"""What a call of `ptxgen.torch.gemm` costs on the host, beside torch.mm; its kernel in a CUDA graph; first calls.

python -m bench.gpu.host --out host.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_SHAPES = ((16, 512, 512), (64, 1024, 512), (256, 512, 1024), (8, 4096, 4096), (200, 5120, 5120), (4096, 4096, 1024))
_CALLS, _ROUNDS = 40, 30


def _host(call: Callable[[], object], synchronize: Callable[[], object]) -> float:
    """Microseconds of host time a call."""
    synchronize()
    start = time.perf_counter()
    for _ in range(_CALLS):
        call()
    taken = time.perf_counter() - start
    synchronize()
    return taken / _CALLS * 1e6


def host_times(torch: Any, gemm: Any) -> list[dict[str, Any]]:
    """Medians of calls in turns, for operands that lie in all four ways."""
    made = []
    for m, n, k in _SHAPES:
        for a_major, b_major in (("k", "k"), ("k", "n"), ("m", "k"), ("m", "n")):
            a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
            b = torch.randn(k, n, device="cuda", dtype=torch.bfloat16)
            a = a if a_major == "k" else a.t().contiguous().t()
            b = b if b_major == "n" else b.t().contiguous().t()
            if a_major == "m" and m % 8:
                continue
            error = (gemm(a, b).float() - a.float() @ b.float()).abs().max().item()
            calls = {"gemm": lambda a=a, b=b: gemm(a, b), "torch.mm": lambda a=a, b=b: torch.mm(a, b)}
            taken: dict[str, list[float]] = {name: [] for name in calls}
            for _ in range(_ROUNDS):
                for name, call in calls.items():
                    taken[name].append(_host(call, torch.cuda.synchronize))
            made.append(
                {
                    "shape": [m, n, k],
                    "layout": f"A along {a_major}, B along {b_major}",
                    "error": error,
                    **{name: round(statistics.median(each), 2) for name, each in taken.items()},
                }
            )
    return made


def graphs(torch: Any, gemm: Any) -> list[dict[str, Any]]:
    """A graph of calls over one of the same launches alone, both after a warm-up, in turns."""
    from ptxgen.torch import gemm_op

    made = []
    for m, n, k in _SHAPES:
        sets = max(2, min(24, 2 * 60 * 2**20 // (2 * k * (m + n))))
        matrices = [
            (
                torch.randn(m, k, device="cuda", dtype=torch.bfloat16),
                torch.randn(n, k, device="cuda", dtype=torch.bfloat16).t(),
            )
            for _ in range(sets)
        ]
        gemm(*matrices[0])
        gemm(*matrices[0])
        ready = gemm_op._launches.known[gemm_op._key(*matrices[0], None, None)]
        kept = [torch.empty(m, n, device="cuda", dtype=torch.bfloat16) for _ in matrices]

        def alone(ready: Any = ready, matrices: Any = matrices, kept: Any = kept) -> None:
            stream = torch.cuda.current_stream().cuda_stream
            for (a, b), c in zip(matrices, kept, strict=True):
                ready.launch(stream, (a.data_ptr(), b.data_ptr(), c.data_ptr(), 0))

        def calls(matrices: Any = matrices) -> list[Any]:
            return [gemm(a, b) for a, b in matrices]

        def torchs(matrices: Any = matrices) -> list[Any]:
            return [torch.mm(a, b) for a, b in matrices]

        found = {}
        for name, body in (("gemm", calls), ("alone", alone), ("torch.mm", torchs)):
            graph = torch.cuda.CUDAGraph()
            torch.cuda.synchronize()
            with torch.cuda.graph(graph):
                held = body()
            found[name] = (graph, held)
        taken: dict[str, list[float]] = {name: [] for name in found}
        for turn in range(24):
            for name, (graph, _) in found.items():
                start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                start.record()
                for _ in range(4):
                    graph.replay()
                end.record()
                end.synchronize()
                if turn > 3:
                    taken[name].append(start.elapsed_time(end) * 1e3 / sets / 4)
        medians = {name: round(statistics.median(each), 3) for name, each in taken.items()}
        made.append({"shape": [m, n, k], **medians, "alone / gemm": round(medians["alone"] / medians["gemm"], 4)})
    return made


_FIRST = """
import json, time, torch
a, b = torch.randn(333, 2880, device="cuda").bfloat16(), torch.randn(2880, 2880, device="cuda").bfloat16()
torch.mm(a, b); torch.cuda.synchronize()
start = time.perf_counter()
import ptxgen.torch
imported = time.perf_counter()
ptxgen.torch.gemm(a, b.t()); torch.cuda.synchronize()
first = time.perf_counter()
c = torch.randn(777, 2880, device="cuda").bfloat16(); torch.cuda.synchronize()
second = time.perf_counter()
ptxgen.torch.gemm(c, b.t()); torch.cuda.synchronize()
third = time.perf_counter()
print(json.dumps({"import": imported - start, "first call": first - imported, "another shape": third - second}))
"""


def first_calls() -> dict[str, dict[str, float]]:
    """Seconds of the import, of a process's first call and of another shape's, without and with cubins on disk."""
    made = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("cold", "warm"):
            environment = {**os.environ, "PTXGEN_CACHE": folder}
            done = subprocess.run(
                [sys.executable, "-c", _FIRST], env=environment, capture_output=True, text=True, check=False
            )
            made[name] = {} if done.returncode else json.loads(done.stdout)
            if done.returncode:
                print(done.stderr[-1500:], flush=True)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    import torch  # type: ignore[import-not-found]

    from ptxgen.torch import gemm

    found: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": str(torch.__version__)}
    for name, part in (
        ("first calls", first_calls),
        ("host", lambda: host_times(torch, gemm)),
        ("graphs", lambda: graphs(torch, gemm)),
    ):
        found[name] = part()
        print(json.dumps({name: found[name]}), flush=True)
    if options.out:
        options.out.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
