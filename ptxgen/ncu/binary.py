"""Reads .ncu-rep files with NVIDIA's ncu-report package, and what that does not give with `container`."""

from __future__ import annotations

import importlib
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from ptxgen.ncu.container import Container, Result, read_container
from ptxgen.ncu.counters import samples_of
from ptxgen.ncu.schema import Clocks, Device, Instance, Launch, Metric, Report, ReportError, Rule, Value
from ptxgen.ncu.sources import Places, join

INSTALL = "pip install 'ptxgen[ncu]' (or pip install ncu-report)"
#: Who wrote the report, and the driver, as the file names them.
_TOOL, _DRIVER, _CUDA = "Nsight Compute Target", "Display Driver Version", "CUDA Version"


class NcuReportMissingError(ReportError):
    """The package ncu-report is not installed; the message says how to install it."""


# What of ncu_report is used.


class _Metric(Protocol):
    def unit(self) -> str: ...
    def value(self, idx: int | None = None) -> Value | None: ...
    def num_instances(self) -> int: ...
    def has_correlation_ids(self) -> bool: ...
    def correlation_ids(self) -> _Metric | None: ...


class _SourceInfo(Protocol):
    def file_name(self) -> str: ...
    def line(self) -> int: ...


class _Action(Protocol):
    NameBase_DEMANGLED: int
    NameBase_MANGLED: int

    def name(self, base: int = 0) -> str | None: ...
    def metric_names(self) -> Sequence[str]: ...
    def __getitem__(self, name: str) -> _Metric: ...
    def sass_by_pc(self, address: int) -> str: ...
    def ptx_by_pc(self, address: int) -> str: ...
    def source_info(self, address: int) -> _SourceInfo | None: ...
    def rule_results_as_dicts(self) -> list[dict[str, dict[str, object]]]: ...


class _Library(Protocol):
    def load_report(self, file_name: str) -> Sequence[Sequence[_Action]]: ...


def _library() -> _Library:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of SWIG's types, from Python 3.12 on
            return importlib.import_module("ncu_report")  # type: ignore[return-value]
    except ImportError as error:
        raise NcuReportMissingError(
            f"a .ncu-rep file needs NVIDIA's ncu-report package ({error}): {INSTALL}; or export the report where ncu "
            "is: ncu --import FILE --page raw --csv"
        ) from None


def require_library() -> None:
    """Raises NcuReportMissingError where .ncu-rep files cannot be read: better before a profile than after it."""
    _library()


def read_binary(path: str, data: bytes) -> Report:
    """A .ncu-rep file and its bytes. Raises ReportError where it is none or cut short, NcuReportMissingError."""
    container = read_container(data, path)
    library = _library()
    try:
        actions = [action for each in library.load_report(path) for action in each]
    except Exception as error:  # the library's own words; it raises plain exceptions of every kind
        raise ReportError(f"{path}: ncu-report cannot read it ({error})") from None
    # The package goes on without a word where it cannot read a result: without it, or with one that has no metrics.
    missing = len(container.results) > len(actions)
    if missing or any(action.name() is None or not action.metric_names() for action in actions):
        count = max(len(container.results), len(actions))
        raise ReportError(f"{path} is damaged: ncu-report cannot read one of its {count} results")
    if not actions:
        raise ReportError(f"{path} holds no profiled kernel: ncu found none to profile, or its filters left none")
    results = _in_order(actions, container.results)
    try:
        launches = tuple(
            _launch(action, index, result, container)
            for index, (action, result) in enumerate(zip(actions, results, strict=True))
        )
    except (KeyError, TypeError, UnicodeError, RuntimeError) as error:  # metrics without names, names that are no text
        raise ReportError(f"{path} is damaged: ncu-report fails on one of its results ({error})") from None
    return Report(
        path,
        "ncu-rep",
        launches,
        container.versions.get(_TOOL),
        container.versions.get(_DRIVER) or _cuda(container.versions.get(_CUDA)),
        container.command,
    )


def _cuda(version: str | None) -> str | None:
    """What reports of ncu 2025.3 say of the driver: the CUDA that it has."""
    return f"CUDA {version}" if version else None


def _in_order(actions: Sequence[_Action], results: Sequence[Result]) -> list[Result | None]:
    """The file's own result of each action: the n-th of a kernel is the n-th of its name."""
    by_name: dict[str, list[Result]] = {}
    for each in results:
        by_name.setdefault(each.mangled, []).append(each)
    seen: Counter[str] = Counter()
    found: list[Result | None] = []
    for action in actions:
        name = action.name(action.NameBase_MANGLED) or ""
        of_name = by_name.get(name, [])
        found.append(of_name[seen[name]] if seen[name] < len(of_name) else None)
        seen[name] += 1
    return found


def _launch(action: _Action, index: int, result: Result | None, container: Container) -> Launch:
    metrics = {name: _metric(name, action[name]) for name in action.metric_names()}
    mangled = action.name(action.NameBase_MANGLED) or ""
    made = described(
        Launch(
            name=action.name(action.NameBase_DEMANGLED) or mangled,
            index=index,
            mangled=mangled,
            metrics=metrics,
            rules=tuple(_rules(action)),
        ),
        locked=result.locked if result is not None else None,
    )
    starts = metrics.get("launch__function_pcs")
    places = Places(
        start=_integer(starts.instances[0].value) if starts is not None and starts.instances else None,
        sass=action.sass_by_pc,
        ptx=action.ptx_by_pc,
        source=lambda address: _place(action.source_info(address)),
    )
    samples = samples_of(metrics)
    if not samples:
        return made
    cubin = container.cubins.get(result.reference) if result is not None and result.reference is not None else None
    joined, gap = join(samples, places, cubin, mangled)
    return replace(made, samples=joined, gaps=(*made.gaps, gap) if gap else made.gaps)


def _metric(name: str, metric: _Metric) -> Metric:
    keys = metric.correlation_ids() if metric.has_correlation_ids() else None
    instances = tuple(
        Instance(_key(keys.value(number)) if keys is not None else None, metric.value(number))
        for number in range(metric.num_instances())
    )
    return Metric(name, metric.value(), metric.unit(), 0.0, instances)


def _key(value: Value | None) -> int | str | None:
    """A correlation id: an address or number, or an opcode."""
    return int(value) if isinstance(value, float) else value


def _integer(value: Value | None) -> int | None:
    return int(value) if isinstance(value, (int, float)) else None


def _place(info: _SourceInfo | None) -> str:
    return f"{info.file_name()}:{info.line()}" if info is not None else ""


def _rules(action: _Action) -> Iterator[Rule]:
    for each in action.rule_results_as_dicts():
        message, speedup = each["rule_message"], each.get("speedup_estimation", {})
        value = speedup.get("speedup")
        if not message["message"] and not _kind(message["type"]):
            continue  # a table without words
        yield Rule(
            name=str(each["rule_identifier"]),
            section=str(each["section_identifier"]),
            kind=_kind(message["type"]),
            message=str(message["message"]),
            speedup=float(value) if isinstance(value, (int, float)) else None,
            speedup_of=_speedup_of(speedup.get("type")),
        )


def _kind(value: object) -> str:
    """The kind of a message; the numbers are those of ncu_report.MsgType, not those of the file."""
    return {1: "INF", 2: "OPT", 3: "WRN", 4: "ERR"}.get(value if isinstance(value, int) else 0, "")


def _speedup_of(value: object) -> str:
    return {1: "local", 2: "global"}.get(value if isinstance(value, int) else 0, "")


def described(launch: Launch, *, locked: bool | None = None) -> Launch:
    """The launch with device, clocks, sizes and passes filled in from its metrics, where they are not known yet."""
    metrics = launch.metrics

    def whole(name: str) -> int | None:
        metric = metrics.get(name)
        return None if metric is None or metric.number is None else int(metric.number)

    def sizes(what: str) -> tuple[int, int, int] | None:
        x, y, z = (whole(f"launch__{what}_dim_{axis}") for axis in "xyz")
        if x is None or y is None or z is None:
            return None
        return max(x, 1), max(y, 1), max(z, 1)  # a launch without clusters has zeros

    display = metrics.get("device__attribute_display_name")
    major, minor = (whole(f"device__attribute_compute_capability_{part}") for part in ("major", "minor"))
    capability = f"{major}.{minor}" if major is not None and minor is not None else launch.device.capability
    return replace(
        launch,
        grid=launch.grid or sizes("grid"),
        block=launch.block or sizes("block"),
        cluster=launch.cluster or sizes("cluster"),
        device=Device(
            name=str(display.value) if display is not None and display.value else launch.device.name,
            capability=capability,
            index=launch.device.index if launch.device.index is not None else whole("launch__device_id"),
            multiprocessors=whole("device__attribute_multiprocessor_count") or whole("launch__sm_count"),
        ),
        clocks=Clocks(launch.value(*SM_CLOCK), launch.value("dram__cycles_elapsed.avg.per_second"), locked),
        passes=launch.passes if launch.passes is not None else whole("profiler__replayer_passes"),
        stream=launch.stream if launch.stream is not None else whole("launch__stream_id"),
    )


#: The clock of the SMs, by version of ncu.
SM_CLOCK = (
    "gpc__cycles_elapsed.avg.per_second",
    "sm__cycles_elapsed.avg.per_second",
    "smsp__cycles_elapsed.avg.per_second",
)
