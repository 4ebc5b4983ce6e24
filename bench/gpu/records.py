"""What `bench.hopper measure` writes, read back: one record a row, and what follows from it."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.gpu.suite import Row, suite

#: Arms of the report: torch and cublasLt, of fp8 with fast accumulation and promoted.
KINDS = ("torch", "cublaslt", "fast.cu", "ptxgen")


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
        found = tuple((name, us) for name, _, us in read["candidates"] if us is not None)
        return cls(Row(**read["row"]), machine, read["clock"], figures, found)

    def ratio(self, other: str, ours: str = "ptxgen", *, cycles: bool = False) -> float | None:
        """Time (or cycles) of another arm over ours: above 1 we are faster; None where one is missing."""
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

    def as_dict(self) -> dict[str, Any]:
        """Plain values; `from_dict` reads them."""
        return {**asdict(self), "row": asdict(self.row)}

    @classmethod
    def from_dict(cls, read: dict[str, Any]) -> Record:
        figures = {kind: Figure(**each) for kind, each in read["figures"].items()}
        found = tuple((name, us) for name, us in read["candidates"])
        return cls(Row(**read["row"]), read["machine"], read["clock"], figures, found)


def read_lines(paths: Iterable[Path]) -> list[Record]:
    """Records of the files, in the order of the suite; of two of a row, that of the later file."""
    found: dict[str, Record] = {}
    for path in paths:
        for line in path.read_text().splitlines():
            made = Record.of(json.loads(line))
            found[made.row.key] = made
    return in_order(found.values())


def in_order(records: Iterable[Record]) -> list[Record]:
    known = {each.row.key: each for each in records}
    keys = [row.key for dtype in ("bf16", "f16", "e4m3", "e5m2") for row in suite(dtype)]
    return [known[key] for key in keys if key in known]


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(math.log(each) for each in values))
