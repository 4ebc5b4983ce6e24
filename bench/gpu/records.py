"""What `bench.hopper measure` writes, read back: one record a row, and what follows from it."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench.gpu.suite import Row, suite

#: Arms of the report: torch and cublasLt, of fp8 with fast accumulation and promoted.
KINDS = ("torch", "cublaslt", "fast.cu", "ptxgen")
#: From so many operations on a row is bound by power.
POWER_BOUND = 5e9


@dataclass(frozen=True)
class Figure:
    """The median time of an arm in microseconds, its spread (half the quartiles' distance over it), and its cycles."""

    us: float
    spread: float
    cycles: float | None
    name: str


@dataclass(frozen=True)
class Record:
    """A row as measured: the best arm of every kind, and all candidates of ours with their first figures."""

    row: Row
    machine: dict[str, Any]
    clock: dict[str, float]
    figures: dict[str, Figure]
    candidates: tuple[tuple[str, float], ...]

    @classmethod
    def of(cls, read: dict[str, Any]) -> Record:
        """From a line of `measure`."""
        figures: dict[str, Figure] = {}
        for name, arm in read["arms"].items():
            kind = arm["kind"] + " dependent" * bool(arm.get("dependent"))
            made = Figure(arm["us"], arm.get("spread", 0.0), arm.get("cycles"), name)
            if kind not in figures or made.us < figures[kind].us:
                figures[kind] = made
        machine = {name: read[name] for name in ("device", "driver", "torch", "cublaslt", "date")}
        first = {name: us for name, _, us in read["candidates"] if us is not None}
        compared = {name: arm["us"] for name, arm in read["arms"].items() if arm["kind"].startswith("ptxgen")}
        row = Row(**read["row"])
        # A first figure depends on the power of what ran before; it counts where a row is too short for that. Of fp8,
        # which the planner's ranking leaves out, only what was compared is kept.
        counts = row.flops < POWER_BOUND and row.dtype in ("bf16", "f16")
        found = tuple({**(first if counts else {}), **compared}.items())
        return cls(row, machine, read["clock"], figures, found)

    def ratio(self, other: str, ours: str = "ptxgen", *, cycles: bool = False) -> float | None:
        """Time (or cycles) of another arm over ours: above 1 we are faster; None where one is missing.

        `ours`: "ptxgen", "ptxgen dependent", or "fastest" of the two; "ptxgen scaled" and "fastest scaled" likewise.
        """
        if ours.startswith("fastest"):
            plain = ours.replace("fastest", "ptxgen")
            found = [name for name in (plain, f"{plain} dependent") if name in self.figures]
            ours = min(found, key=lambda name: self.figures[name].us, default=plain)
        them, us = self.figures.get(other), self.figures.get(ours)
        if them is None or us is None:
            return None
        if not cycles:
            return them.us / us.us
        return them.cycles / us.cycles if them.cycles and us.cycles else None

    @property
    def tflops(self) -> float:
        return self.row.flops / self.figures["ptxgen"].us / 1e6

    @property
    def terabytes(self) -> float:
        """Of A, B and C, each once, a second."""
        return self.row.bytes / self.figures["ptxgen"].us / 1e6


def to_json(records: Sequence[Record]) -> str:
    """One text of them all, a record a line; names of kernels are numbers of a list, as most are there often."""
    names = list(dict.fromkeys(name for each in records for name, _ in each.candidates))
    numbers = {name: number for number, name in enumerate(names)}
    machines = list({json.dumps(each.machine): each.machine for each in records}.values())

    def plain(record: Record) -> dict[str, Any]:
        made = asdict(record)
        made["machine"] = machines.index(record.machine)
        made["candidates"] = [[numbers[name], us] for name, us in record.candidates]
        return made

    def lines(values: Sequence[object]) -> str:
        return "[\n" + ",\n".join(json.dumps(each, ensure_ascii=False) for each in values) + "\n]"

    parts = {"machines": machines, "kernels": names, "records": [plain(each) for each in records]}
    return "{" + ",\n".join(f"{json.dumps(name)}: {lines(values)}" for name, values in parts.items()) + "}\n"


def from_json(text: str) -> list[Record]:
    """What `to_json` wrote, in the order of the suite."""
    read = json.loads(text)

    def record(each: dict[str, Any]) -> Record:
        figures = {kind: Figure(**figure) for kind, figure in each["figures"].items()}
        found = tuple((read["kernels"][number], us) for number, us in each["candidates"])
        return Record(Row(**each["row"]), read["machines"][each["machine"]], each["clock"], figures, found)

    return in_order(record(each) for each in read["records"])


def read_lines(paths: Iterable[Path]) -> list[Record]:
    """Records of the files, in the order of the suite."""
    return joined(Record.of(json.loads(line)) for path in paths for line in path.read_text().splitlines())


def joined(records: Iterable[Record]) -> list[Record]:
    """One record a row, in the order of the suite: of two of a row the later one.

    But those without a kind in common are of different products, such as fp8 with scales: then one record has both.
    """
    found: dict[str, Record] = {}
    for made in records:
        known = found.get(made.row.key)
        if known is not None and not set(known.figures) & set(made.figures):
            both = (*known.candidates, *made.candidates)
            made = replace(known, figures={**known.figures, **made.figures}, candidates=both)
        found[made.row.key] = made
    return in_order(found.values())


def in_order(records: Iterable[Record]) -> list[Record]:
    known = {each.row.key: each for each in records}
    keys = [row.key for dtype in ("bf16", "f16", "e4m3", "e5m2") for row in suite(dtype)]
    return [known[key] for key in keys if key in known]


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(math.log(each) for each in values))
