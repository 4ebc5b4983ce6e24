"""What other values of one option would bring: predictions of the same problem, one change at a time."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ptxgen.gemm.config import parse_options
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.ladder import KernelEntry
from ptxgen.gemm.plan import GemmPlan
from ptxgen.timing.prediction import Prediction, TimingError

#: Options that change the speed of a kernel and not its problem, those that usually matter most first.
_OPTIONS = ("stages", "n_tile", "scheduler", "cluster_m", "m_tile", "accumulators", "panel", "epilogue", "chunk")
_OPTIONS += (
    "chunk_buffers",
    "cluster_n",
    "warpgroups",
    "consumers",
    "split_k",
    "k_clusters",
    "k_tile_bytes",
    "swizzle",
    "store_bytes",
)
#: Steps in which the range of an option with steps of more than 1 is tried, at most.
_STRIDES = 8


@dataclass(frozen=True)
class Change:
    """One option with another value, and the cycles of the launch with it."""

    option: str
    value: object
    cycles: float
    before: float

    @property
    def gain(self) -> float:
        """The part of the cycles that it saves; negative where it costs some."""
        return 1 - self.cycles / self.before

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            "option": self.option,
            "value": self.value,
            "cycles": round(self.cycles),
            "gain": round(self.gain, 4),
        }


@dataclass(frozen=True)
class Study:
    """Changes, the best first. `left`: candidates for which no time was left, `refused`: those that fit no kernel."""

    changes: list[Change]
    left: int = 0
    refused: int = 0


def changed(plan: GemmPlan, word: str) -> tuple[str, object]:
    """The option and its value of "stages=+1" (relative to the plan's) or "n_tile=224". Raises PlanError."""
    name, equals, text = word.partition("=")
    if not equals or not hasattr(plan.config, name):
        raise PlanError(f"a change is OPTION=VALUE or OPTION=+N, not {word!r}")
    now = getattr(plan.config, name)
    if re.fullmatch(r"[+-]\d+", text) and isinstance(now, int) and not isinstance(now, bool):
        return name, now + int(text)
    return name, parse_options({name: text})[name]


def candidates(entry: KernelEntry, plan: GemmPlan) -> Iterator[tuple[str, object]]:
    """Neighbors of the plan's values within ranges, and the other choices."""
    options = entry.described()
    for name in _OPTIONS:
        known: dict[str, Any] = options.get(name, {})
        now: Any = getattr(plan.config, name, None)
        if "range" in known:
            first, last, step = known["range"]
            stride = step if step == 1 else max(step, (last - first) // _STRIDES // step * step)
            yield from ((name, value) for value in (now + stride, now - stride) if first <= value <= last)
        else:
            yield from ((name, value) for value in known.get("choices", ()) if value != now)


def study(
    entry: KernelEntry,
    choices: Mapping[str, Any],
    before: Prediction,
    predict: Callable[[GemmPlan], Prediction],
    words: list[str],
    *,
    seconds: float,
) -> Study:
    """The changes of `words`, or, without any, all candidates for which there is time.

    Raises PlanError and TimingError for a change of `words` that does not fit.
    """
    plan, began = entry.plan(**choices), time.monotonic()
    wanted = [changed(plan, word) for word in words] if words else list(candidates(entry, plan))
    found, refused = list[Change](), 0
    for number, (name, value) in enumerate(wanted):
        if not words and time.monotonic() - began > seconds:
            return Study(_sorted(found), len(wanted) - number, refused)
        try:
            cycles = predict(entry.plan(**{**choices, name: value})).cycles
        except (PlanError, TimingError):
            if words:
                raise
            refused += 1
            continue
        found.append(Change(name, value, cycles, before.cycles))
    return Study(_sorted(found), 0, refused)


def _sorted(changes: list[Change]) -> list[Change]:
    return sorted(changes, key=lambda each: each.cycles)
