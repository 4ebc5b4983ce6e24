"""Measures Hopper's constants on the GPU here, and writes them with device, driver and date.

    python -m bench.gpu.microbench --out hopper-constants.json [--seconds 120]
    python -m bench.gpu.microbench --emulate      # a few repetitions of each in the emulator: do the kernels end?

Cycles are those of clock64 of one multiprocessor; each figure is (t(n2) - t(n1)) / (n2 - n1), the median of launches.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from bench.gpu.microbench import ptx
from ptxgen.descriptors import TensorMap
from ptxgen.device import Device, DeviceArray, Kernel

_PITCH, _SMS = 8192, 132
#: Rows of the matrix: 128 of each CTA, so that none stores outside of the tensor.
_ROWS = 128 * _SMS
#: Launches of each measurement; the first one loads code and data.
_LAUNCHES = 5
_SHARED = 200 * 1024


@dataclass(frozen=True)
class Measurement:
    """One measurement: its kernel, launch, and the two repetitions between which time is taken."""

    name: str
    text: str
    counts: tuple[int, int]
    threads: int = 32
    grid: int = 1
    depth: int = 1
    bytes: int = 0
    rows: int = 0
    #: Timed operations in one repetition.
    each: int = 1
    cluster: int = 1
    #: Starts of `depth` for launches one after the other: fresh addresses.
    fresh: bool = False
    box: int = 64


def _wgmma() -> Iterator[Measurement]:
    for kind in ("bf16", "e4m3"):
        for source in ("ss", "rs"):
            for n in (8, 16, 32, 64, 96, 128, 192, 256) if kind == "bf16" else (32, 64, 128, 256):
                for batch in (1, 4, 16) if kind == "bf16" else (4, 16):
                    text = ptx.wgmma(n, kind, source, batch)
                    yield Measurement(f"wgmma {kind} {source} n{n} batch {batch}", text, (4, 36), 128)
    for n in (64, 128, 192, 256):
        for warpgroups in (1, 2):
            for pending in (0, 1):
                text = ptx.wgmma(n, "bf16", "ss", 4, warpgroups=warpgroups, pending=pending)
                yield Measurement(
                    f"wgmma bf16 ss n{n} batch 4, {warpgroups} warpgroups, {pending} pending",
                    text,
                    (4, 68),
                    128 * warpgroups,
                )


def _tma() -> Iterator[Measurement]:
    text = ptx.tma_ring()
    for grid in (1, _SMS):
        for rows in (8, 32, 64, 128, 256):
            size = rows * 128
            for depth in (1, 2, 3, 4, 6, 8, 12):
                if depth * size <= _SHARED - 2048:
                    name = f"tma L2 grid {grid} rows {rows} depth {depth}"
                    yield Measurement(name, text, (24, 88), 32, grid, depth, size, rows, box=rows)
    for grid in (_SMS // 4, _SMS // 2, _SMS):
        for sharing in (1, 2, 4, 11, 33, _SMS):
            for depth in (2, 4, 6) if grid == _SMS else (4,):
                name = f"tma L2 apart grid {grid}, {sharing} CTAs share rows, depth {depth}"
                yield Measurement(name, ptx.tma_ring(sharing), (24, 152), 32, grid, depth, 1 << 14, 128, box=128)
    for ctas in (2, 4):
        for grid in (ctas, 120):
            for rows in (32, 64, 128):
                for to in (1, ctas):
                    name = f"tma L2 apart, multicast to {to} of {ctas}, rows {rows} of each, grid {grid}"
                    text = ptx.multicast(ctas)
                    yield Measurement(name, text, (24, 152), 1, grid, to, rows * 128, rows, cluster=ctas, box=rows)
    store = ptx.tma_store()
    for rows in (8, 64, 128):
        for depth in (0, 1):
            for grid in (1, _SMS):
                name = f"tma store grid {grid} rows {rows} {'read' if depth else 'complete'}"
                yield Measurement(name, store, (8, 72), 32, grid, depth, rows * 128, rows, box=rows)


def _others() -> Iterator[Measurement]:
    yield Measurement("mbarrier arrive and own wait", ptx.arrive_and_wait(), (16, 272))
    yield Measurement("mbarrier try_wait of an ended phase", ptx.ended_wait(), (16, 272))
    yield Measurement("mbarrier ping-pong, round trip", ptx.ping_pong(), (16, 272), 64)
    yield Measurement("ld.shared chase", ptx.chase("ld.shared.u32", "shared"), (16, 272))
    yield Measurement("ld.global.ca chase", ptx.chase("ld.global.ca.u64", "global"), (4096, 8192), depth=0)
    yield Measurement("ld.global.cg chase, L2", ptx.chase("ld.global.cg.u64", "global"), (4096, 8192), depth=1 << 18)
    yield Measurement(
        "ld.global.cg chase, memory", ptx.chase("ld.global.cg.u64", "global"), (64, 1088), depth=1 << 22, fresh=True
    )
    for threads in (32, 128, 256, 512):
        for name, text in ptx.simple(threads).items():
            yield Measurement(f"{name}, {threads // 32} warps", text, (8, 136), threads, each=8)
    for grid in (1, _SMS):
        yield Measurement(f"st.global.v4, 8 warps, grid {grid}", ptx.st_global(), (8, 40), 256, grid)
        yield Measurement(
            f"ld.global.cg.v4 x4, 16 warps, grid {grid}, 16 MB", ptx.ld_global(), (8, 72), 512, grid, depth=16
        )
        yield Measurement(
            f"ld.global.cg.v4 x4, 16 warps, grid {grid}, 128 MB", ptx.ld_global(), (8, 72), 512, grid, depth=128
        )
    for warps in (1, 2, 4, 8, 12):
        for grid in (2, _SMS):
            name = f"st.async.v4 to the peer, {warps} warps, grid {grid}"
            yield Measurement(name, ptx.st_async(32 * warps), (8, 40), 32 * warps, grid, cluster=2)
    for arrives in ("release", "relaxed"):
        for ctas in (2, 4):
            name = f"barrier.cluster of {ctas}, 4 warps, arrive.{arrives}"
            yield Measurement(name, ptx.cluster_barrier(arrives), (8, 72), 128, ctas, cluster=ctas)


def _beside() -> Iterator[Measurement]:
    """wgmma and arithmetic of another warpgroup, each alone and both at a time."""
    for source in ("ss", "rs"):
        text = ptx.beside(source, "", tensor=True, timed="wgmma")
        yield Measurement(f"wgmma {source} m64n128k16 alone", text, (8, 72), 256, each=8)
        for name in (*ptx.ARITHMETIC, "softmax"):
            text = ptx.beside(source, name, tensor=True, timed="wgmma")
            yield Measurement(f"wgmma {source} m64n128k16 beside {name}", text, (8, 72), 256, each=8)
            text = ptx.beside(source, name, tensor=True, timed="arithmetic")
            yield Measurement(f"{name} x64 beside wgmma {source}", text, (8, 72), 256, each=64)
    for name in (*ptx.ARITHMETIC, "softmax"):
        text = ptx.beside("ss", name, tensor=False, timed="arithmetic")
        yield Measurement(f"{name} x64 alone", text, (8, 72), 256, each=64)


def measurements() -> list[Measurement]:
    return [*_others(), *_wgmma(), *_tma(), *_beside()]


def _chain(words: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Offsets that lead from line to line of 128 bytes: in 4 KB, in random order in 8 MB, far apart in the rest."""
    made = np.zeros(words, np.uint64)
    for first, size, step in ((0, 512, 16), (1 << 18, 1 << 20, 16), (1 << 22, words - (1 << 22), 16 * 37)):
        places = np.arange(first, first + size - step, step, dtype=np.int64)
        if first == 1 << 18:
            places = np.random.default_rng(1).permutation(places)
        following = np.roll(places, -1)
        made[places] = following * 8
    return made


class Runner:
    """A device with the arrays that all kernels take."""

    def __init__(self, device: Device, words: int) -> None:
        self.device = device
        self.data = device.array(_chain(words))
        self.out = device.empty((2 * _SMS,), np.uint64)
        self._kernels: dict[str, Kernel] = {}
        self._start = 0

    def launch(self, test: Measurement, n: int, matrix: DeviceArray) -> float:
        """Cycles of one launch, the mean over its CTAs."""
        kernel = self._kernels.setdefault(test.text, Kernel.from_ptx(test.text))
        # Loads walk over 2048 rows, which lie in the L2, or over 512 columns.
        every = "store" in test.name or "apart" in test.name
        dims = (_PITCH, min(_ROWS if every else 2048, matrix.shape[0]))
        tensormap = TensorMap.tiled("bf16", matrix, dims, (_PITCH * 2,), (64, max(test.box, 1)), swizzle="128b")
        depth = test.depth
        if test.fresh:
            depth += 16 * 37 * 1200 * self._start
            self._start += 1
        arguments = [self.out, self.data, n, depth, test.bytes, test.rows, tensormap]
        shared = _SHARED if test.name.startswith("tma") else 64 * 1024
        cluster = (test.cluster, 1, 1) if test.cluster > 1 else None
        report = self.device.launch(kernel, test.grid, test.threads, arguments, cluster=cluster, shared_bytes=shared)
        if not report.ok:
            raise RuntimeError(f"{test.name}: {report.summary()}")
        return float(self.out.numpy()[: test.grid].mean())

    def cycles(self, test: Measurement, matrix: DeviceArray) -> tuple[float, float]:
        """Cycles of one operation, and those of a launch without any."""
        first, second = test.counts
        times = [statistics.median([self.launch(test, n, matrix) for _ in range(_LAUNCHES)][1:]) for n in test.counts]
        slope = (times[1] - times[0]) / (second - first)
        return slope / test.each, times[0] - slope * first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--emulate", action="store_true")
    parser.add_argument("--only", default="", help="measurements whose name this expression finds")
    options = parser.parse_args()
    if options.emulate:
        _emulate(options.only)
        return
    from ptxgen.gpu import Gpu

    began, gpu = time.monotonic(), Gpu()
    runner = Runner(gpu, 1 << 26)
    matrix = gpu.array(np.zeros((_ROWS, _PITCH), np.uint16))
    found: dict[str, list[float] | str] = {}
    for test in measurements():
        if not re.search(options.only, test.name):
            continue
        if time.monotonic() - began > options.seconds:
            found[test.name] = "not reached"
            continue
        try:
            found[test.name] = [round(each, 2) for each in runner.cycles(test, matrix)]
        except Exception as error:
            found[test.name] = str(error)[:200]
        print(test.name, found[test.name], flush=True)
    record = {"device": gpu.name, "cuda": gpu.version, "date": date.today().isoformat(), "cycles": found}
    if options.out:
        options.out.write_text(json.dumps(record, indent=0), encoding="utf-8")


def _emulate(only: str) -> None:
    from ptxgen.emulator import Emulator

    seen = set[str]()
    for test in measurements():
        if test.text in seen or not re.search(only, test.name):
            continue
        seen.add(test.text)
        emulator = Emulator("sm_90a")
        runner = Runner(emulator, (1 << 22) + 4096)
        report = runner.launch(
            Measurement(
                test.name,
                test.text,
                (1, 2),
                test.threads,
                min(test.grid, max(2, test.cluster)),
                test.depth,
                test.bytes,
                test.rows,
                cluster=test.cluster,
                box=test.box,
            ),
            max(3, test.depth % 16),
            emulator.array(np.zeros((256, _PITCH), np.uint16)),
        )
        print(test.name, report, flush=True)


if __name__ == "__main__":
    main()
