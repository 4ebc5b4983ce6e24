"""Measures arms on a row: each is checked, then all take turns (ABBA) on rotating buffers, in one process."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.gpu.arms import Arm, Buffers, PtxgenArm
from bench.gpu.clock import PTX, Interval, Monitor, intervals
from bench.gpu.cuda import Driver, Function, Graph, Parameters
from bench.gpu.prepared import PreparedArm
from ptxgen.toolchain import assemble

#: Stamps between two looks at the list.
_STAMPS = 4096
#: The most launches of one graph.
_NODES = 400
#: Seconds after which a launch is taken to hang.
_HUNG = 40


@dataclass
class Timing:
    """What an arm took in every turn: microseconds and cycles of one launch."""

    us: list[float] = field(default_factory=list)
    cycles: list[float] = field(default_factory=list)

    def add(self, interval: Interval, launches: int) -> None:
        self.us.append(interval.ns / launches / 1e3)
        if interval.cycles is not None:
            self.cycles.append(interval.cycles / launches)

    @property
    def median(self) -> float:
        return statistics.median(self.us)

    def record(self) -> dict[str, float | int]:
        """Medians, and the spread: half the distance between the quartiles, relative to the median."""
        made: dict[str, float | int] = {"us": round(self.median, 3), "turns": len(self.us)}
        if len(self.us) > 1:
            low, _, high = statistics.quantiles(self.us, n=4)
            made["spread"] = round((high - low) / 2 / self.median, 5)
        if self.cycles:
            made["cycles"] = round(statistics.median(self.cycles), 1)
        return made


class Bench:
    """The GPU: a stream for everything, a list of stamps, a monitor, and a guard that ends a process that hangs."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        torch.cuda.init()
        self._stream = torch.cuda.Stream()
        torch.cuda.set_stream(self._stream)
        a = torch.randn(64, 64, device="cuda", dtype=torch.bfloat16)
        torch.mm(a, a)  # makes the context, and loads cuBLAS
        torch.cuda.synchronize()
        self.stream: int = self._stream.cuda_stream
        self.driver = Driver()
        self._stamp = Function(self.driver, assemble(PTX).data, "stamp")
        self._list = torch.zeros(4 + 4 * _STAMPS, dtype=torch.int64, device="cuda")
        self._stamp_parameters = Parameters([self._list.data_ptr().to_bytes(8, "little")])
        self.monitor = Monitor()
        self.alive = time.monotonic()
        threading.Thread(target=self._guard, daemon=True).start()

    def _guard(self) -> None:
        while time.monotonic() - self.alive < _HUNG:
            time.sleep(1)
        print(f"nothing ended for {_HUNG} s: giving up", flush=True)
        os._exit(3)

    def synchronize(self) -> None:
        self._stream.synchronize()
        self.alive = time.monotonic()

    def graph(self, arm: Arm, launches: int, sets: int) -> Graph:
        """Launches of an arm on one set of buffers after the other, between two stamps."""

        def body() -> None:
            self._mark()
            for number in range(launches):
                arm.launch(number % sets, self.stream)
            self._mark()

        return Graph(self.driver, self.stream, body)

    def _mark(self) -> None:
        self._stamp.launch((1, 1, 1), (1, 1, 1), self._stamp_parameters, self.stream)

    def run(self, graphs: Sequence[Graph]) -> list[Interval]:
        """Run graphs one after the other without a gap; their intervals."""
        found: list[Interval] = []
        most = _STAMPS // 2
        for start in range(0, len(graphs), most):
            part = graphs[start : start + most]
            self._list.zero_()
            for each in part:
                each.launch(self.stream)
            self.synchronize()
            found += intervals(self._list[4 : 4 + 8 * len(part)].tolist())
        return found

    def check(self, arm: Arm, buffers: Buffers) -> tuple[float, float] | None:
        """The errors of an arm where they are too large, else None."""
        buffers.poison()
        arm.launch(0, self.stream)
        self.synchronize()
        errors = buffers.errors()
        return None if buffers.right(errors, ours=isinstance(arm, PtxgenArm | PreparedArm)) else errors

    def launches(self, arm: Arm, sets: int, target_us: float) -> int:
        """How many launches take about so long; at least one on every set."""
        graph = self.graph(arm, 2, sets)
        self.run([graph])
        one = min(each.ns for each in self.run([graph] * 2)) / 2e3
        graph.close()
        return max(min(round(target_us / max(one, 0.5)), _NODES), sets)

    def quick(self, arm: Arm, sets: int, *, target_us: float = 300, turns: int = 4) -> float:
        """A first figure, to rank candidates: microseconds of one launch."""
        launches = self.launches(arm, sets, target_us)
        graph = self.graph(arm, launches, sets)
        try:
            first = self.run([graph])[0].ns
            turns = turns if first < 4e6 else 1
            return statistics.median(each.ns for each in self.run([graph] * turns)) / launches / 1e3
        finally:
            graph.close()

    def abba(self, arms: Sequence[Arm], sets: int, *, repeats: int, target_us: float, warm: float) -> dict[str, Timing]:
        """Every arm twice per repeat, forth and back, after `warm` seconds of the same work."""
        counts = [self.launches(arm, sets, target_us) for arm in arms]
        graphs = [self.graph(arm, count, sets) for arm, count in zip(arms, counts, strict=True)]
        end = time.monotonic() + warm
        while time.monotonic() < end:
            self.run(graphs)
        forth = list(range(len(arms)))
        order = (forth + forth[::-1]) * repeats
        found = self.run([graphs[each] for each in order])
        timings = {arm.name: Timing() for arm in arms}
        for each, interval in zip(order, found, strict=True):
            timings[arms[each].name].add(interval, counts[each])
        for graph in graphs:
            graph.close()
        return timings

    def turns(
        self, arms: Sequence[Arm], sets: int, target_us: float, seconds: float, *, turns: int
    ) -> dict[str, list[float]]:
        """Microseconds of one launch of every arm in each turn, forth and back; the graphs take at most `seconds`."""
        counts: list[int] = []
        graphs: list[Graph] = []
        total = 0.0
        for arm in arms:
            probe = self.graph(arm, 2, sets)
            one = min(each.ns for each in self.run([probe] * 2)) / 2e3
            probe.close()
            counts.append(max(min(round(target_us / max(one, 0.5)), _NODES), min(sets, round(4 * target_us / one)), 2))
            graphs.append(self.graph(arm, counts[-1], sets))
            total += one * counts[-1] / 1e6
        turns = max(2, min(turns, int(seconds / total) - 1))
        forth = list(range(len(arms)))
        order = (forth + forth[::-1]) * (turns // 2)
        self.run([graphs[each] for each in forth])
        found = self.run([graphs[each] for each in order])
        made: dict[str, list[float]] = {arm.name: [] for arm in arms}
        for each, interval in zip(order, found, strict=True):
            made[arms[each].name].append(interval.ns / counts[each] / 1e3)
        for graph in graphs:
            graph.close()
        return made

    def warm_up(self, limit: float = 8) -> None:
        """Multiply large matrices until half a second changes the power by less than 2 %."""
        torch = self.torch
        a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        start, before = time.monotonic(), 0.0
        while time.monotonic() - start < limit:
            now = time.monotonic()
            while time.monotonic() - now < 0.5:
                for _ in range(20):
                    torch.mm(a, b)
                self.synchronize()
            watts = self.monitor.since(now).get("watts", 0.0)
            if abs(watts - before) <= 0.02 * watts:
                break
            before = watts
