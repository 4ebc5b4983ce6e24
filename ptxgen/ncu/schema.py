"""A profile as data: reports, kernel launches, metrics, rules, samples. One schema for .ncu-rep and the CSV pages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ptxgen.ncu.units import Quantity, base_unit

Value = int | float | str
#: Where a report came from: the file of Nsight Compute, or a page that `ncu --page ... --csv` prints.
Page = Literal["ncu-rep", "details", "raw", "source"]
JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


class ReportError(ValueError):
    """A file that is no usable profile: one sentence on what is there instead."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One value of a metric: of an address, an opcode, a size. `key` is what it is of (correlation id), if known."""

    key: int | str | None
    value: Value | None


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric as the report has it. `value` is None where the report lists the metric without a value.

    `resolution` is half a unit of the last digit that a CSV page prints, in `unit`; 0 where the value is exact.
    """

    name: str
    value: Value | None
    unit: str = ""
    resolution: float = 0.0
    instances: tuple[Instance, ...] = ()

    @property
    def number(self) -> float | None:
        """The value as a number, None for text, NaN and no value."""
        if isinstance(self.value, str) or self.value is None or math.isnan(self.value):
            return None
        return float(self.value)

    @property
    def base(self) -> Quantity | None:
        """The number in its base unit (ns, hz, byte, byte/s, ...), None if there is none."""
        number = self.number
        if number is None:
            return None
        factor, unit = base_unit(self.unit)
        return Quantity(number * factor, unit, self.resolution * factor)

    def to_json(self) -> dict[str, JsonValue]:
        made: dict[str, JsonValue] = {"value": _finite(self.value), "unit": self.unit}
        if self.resolution:
            made["resolution"] = self.resolution
        if self.instances:
            made["instances"] = [{"key": each.key, "value": _finite(each.value)} for each in self.instances]
        return made


@dataclass(frozen=True, slots=True)
class Rule:
    """What a rule of Nsight Compute says. `kind` is OPT, INF, WRN, ERR or empty; `speedup` an estimate in percent."""

    name: str
    section: str
    kind: str
    message: str
    speedup: float | None = None
    #: "global" is of the kernel's time, "local" of one unit.
    speedup_of: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was sampled and counted at one instruction, joined to its SASS and PTX.

    `address` is the PC, `offset` counts from the start of the function. `samples` counts all samples of warps that
    stood here, `stalls` splits them by reason. `ptx_line`, `source` (file:line) and `control` are there where the
    report holds a cubin with line tables.
    """

    address: int | None
    offset: int | None
    sass: str
    ptx: str = ""
    ptx_line: int | None = None
    source: str = ""
    control: str = ""
    samples: int = 0
    not_issued: int = 0
    executed: int | None = None
    stalls: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Device:
    """The GPU of a launch. `capability` is such as "9.0"; the name is not on every page."""

    name: str = ""
    capability: str = ""
    index: int | None = None
    multiprocessors: int | None = None

    def __str__(self) -> str:
        return f"{self.name or 'a GPU without a name'} (compute capability {self.capability or 'unknown'})"


@dataclass(frozen=True, slots=True)
class Clocks:
    """Clocks while the launch was measured, in hz. `locked`: whether ncu held them at base; None if unknown."""

    sm: float | None = None
    memory: float | None = None
    locked: bool | None = None


@dataclass(frozen=True)
class Launch:
    """One profiled launch. `name` is demangled; `index` counts from 0 in its report; `cluster` is None if unknown."""

    name: str
    index: int
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    cluster: tuple[int, int, int] | None = None
    device: Device = Device()
    clocks: Clocks = Clocks()
    #: Times that the kernel was run again for other counters.
    passes: int | None = None
    mangled: str = ""
    process: str = ""
    stream: int | None = None
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    samples: tuple[Sample, ...] = ()
    #: Parts that could not be read or joined, with reasons.
    gaps: tuple[str, ...] = ()

    def quantity(self, *names: str) -> Quantity | None:
        """The first of these metrics that has a number, in its base unit."""
        for name in names:
            metric = self.metrics.get(name)
            if metric is not None and (found := metric.base) is not None:
                return found
        return None

    def value(self, *names: str) -> float | None:
        """The number of `quantity`, without its unit."""
        found = self.quantity(*names)
        return None if found is None else found.value

    def to_json(self) -> dict[str, JsonValue]:
        """Everything, with metrics in name order."""
        return {
            "name": self.name,
            "index": self.index,
            "mangled": self.mangled,
            "process": self.process,
            "stream": self.stream,
            "passes": self.passes,
            "grid": _sizes(self.grid),
            "block": _sizes(self.block),
            "cluster": _sizes(self.cluster),
            "device": {
                "name": self.device.name,
                "capability": self.device.capability,
                "index": self.device.index,
                "multiprocessors": self.device.multiprocessors,
            },
            "clocks": {"sm": self.clocks.sm, "memory": self.clocks.memory, "locked": self.clocks.locked},
            "metrics": {name: self.metrics[name].to_json() for name in sorted(self.metrics)},
            "rules": [
                {
                    "name": each.name,
                    "section": each.section,
                    "kind": each.kind,
                    "message": each.message,
                    "speedup": each.speedup,
                    "speedup_of": each.speedup_of,
                }
                for each in self.rules
            ],
            "samples": [_sample(each) for each in self.samples],
            "gaps": list(self.gaps),
        }


@dataclass(frozen=True)
class Report:
    """A file. `version` is that of the ncu that measured; None where the file does not say (the CSV pages)."""

    path: str
    page: Page
    launches: tuple[Launch, ...]
    version: str | None = None
    driver: str | None = None
    #: The command line that ncu profiled, as the file keeps it.
    command: str = ""
    gaps: tuple[str, ...] = ()

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of its kernels, each once, in order."""
        return tuple(dict.fromkeys(each.name for each in self.launches))

    def select(self, kernel: str | None) -> Report:
        """The report with the launches of one kernel: its name, or a part that only it has.

        Raises ReportError that lists the kernels.
        """
        if kernel is None:
            return self
        names = [name for name in self.kernels if name == kernel] or [name for name in self.kernels if kernel in name]
        if len(names) != 1:
            have = ", ".join(shortened(name) for name in self.kernels) or "none"
            found = f"{len(names)} kernels match {kernel!r}" if names else f"there is no kernel {kernel!r}"
            raise ReportError(f"{self.path}: {found}; its kernels: {have}")
        launches = tuple(each for each in self.launches if each.name == names[0])
        return Report(self.path, self.page, launches, self.version, self.driver, self.command, self.gaps)

    def to_json(self) -> dict[str, JsonValue]:
        return {
            "path": self.path,
            "page": self.page,
            "version": self.version,
            "driver": self.driver,
            "command": self.command,
            "gaps": list(self.gaps),
            "launches": [each.to_json() for each in self.launches],
        }


def shortened(name: str, most: int = 72) -> str:
    """A kernel's name, a long one (templates) cut in the middle."""
    if len(name) <= most:
        return name
    return f"{name[: most - 21]}…{name[-20:]}"


def _finite(value: Value | None) -> Value | None:
    """JSON has no NaN and no infinity: these become text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _sizes(sizes: tuple[int, int, int] | None) -> list[JsonValue] | None:
    return None if sizes is None else list(sizes)


def _sample(each: Sample) -> dict[str, JsonValue]:
    return {
        "address": each.address,
        "offset": each.offset,
        "sass": each.sass,
        "ptx": each.ptx,
        "ptx_line": each.ptx_line,
        "source": each.source,
        "control": each.control,
        "samples": each.samples,
        "not_issued": each.not_issued,
        "executed": each.executed,
        "stalls": dict(each.stalls),
    }
