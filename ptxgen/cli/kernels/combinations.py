"""One combination of a sweep: planned, checked, assembled, run, timed. A worker does all of it."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import ptxgen.emulator  # noqa: F401  (so that workers begin with it)
from ptxgen import limits
from ptxgen.builder import TemplateError
from ptxgen.cli.launch import devices
from ptxgen.cli.launch.devices import Schedule
from ptxgen.device import Kernel, LaunchError
from ptxgen.gemm import GemmPlan, PlanError, find, parse_options
from ptxgen.gemm.job import GemmJob, GemmResult
from ptxgen.toolchain import AssemblerError, assemble

if TYPE_CHECKING:
    from ptxgen.device import Device, LaunchReport

#: Timed launches, whose median is the time on a GPU, and untimed launches before them.
LAUNCHES, WARM_UP = 20, 3


@dataclass(frozen=True)
class Combination:
    """Options of a kernel, as text, and the problem. It is run where there is a schedule, or on the GPU.

    `multiprocessors`: those of the GPU whose waves are counted. `machine`: the one whose time is predicted, or "".
    """

    kernel: str
    options: tuple[tuple[str, str], ...]
    m: int
    n: int
    k: int
    multiprocessors: int
    schedule: Schedule | None = None
    seed: int = 0
    gpu: bool = False
    machine: str = ""

    def __str__(self) -> str:
        return " ".join([self.kernel, *(f"{name}={value}" for name, value in self.options)])


@dataclass(frozen=True)
class Row:
    """What became of a combination. Sizes in bytes; `seconds` are those of a launch on a GPU.

    `status`: "ok", "illegal" (it cannot be planned), "refused" (by the check or ptxas), what a run that went wrong
    ended as, or "died"; `reason` says why it is not "ok", or why nothing is predicted. `waves` are tiles of C by the
    CTAs that the GPU holds at a time. `predicted_us`: microseconds of a launch as `ptxgen time` predicts them.
    """

    options: tuple[tuple[str, str], ...]
    status: str
    reason: str = ""
    registers: int | None = None
    shared_bytes: int | None = None
    tmem_columns: int | None = None
    spill_stores: int | None = None
    spill_loads: int | None = None
    warnings: int | None = None
    ptx_bytes: int | None = None
    tiles: int | None = None
    ctas_per_sm: int | None = None
    waves: float | None = None
    seconds: float | None = None
    tflops: float | None = None
    predicted_us: float | None = None
    predicted_tflops: float | None = None
    bound_by: str = ""

    @property
    def legal(self) -> bool:
        return self.status != "illegal"

    @property
    def ok(self) -> bool:
        return self.status == "ok"


def evaluate(combination: Combination) -> Row:
    """Plan, check, assemble and run a combination."""
    one, options = combination, combination.options
    try:
        plan = find(one.kernel).plan_for(one.m, one.n, one.k, **parse_options(dict(options)))
        job = GemmJob(plan, one.m, one.n, one.k, one.seed)
    except PlanError as error:
        return Row(options, "illegal", str(error))
    row = Row(options, "ok", shared_bytes=plan.shared.bytes, tmem_columns=plan.accumulator.columns, tiles=_tiles(job))
    try:
        text = plan.text
        kernel = Kernel.from_ptx(text, regions=plan.shared.named)
        errors = [each for each in kernel.diagnostics if each.severity == "error"]
        if errors:
            return replace(row, status="refused", reason=f"line {errors[0].line}: {errors[0].message}")
        cubin = assemble(text, plan.target)
    except (TemplateError, AssemblerError) as error:
        return replace(row, status="refused", reason=_one_line(error))
    per_sm = limits.ctas_per_sm(
        plan.target, threads=plan.roles.threads, registers=cubin.registers,
        shared_bytes=plan.shared.bytes + cubin.shared_bytes, tmem_columns=plan.accumulator.columns,
    )  # fmt: skip
    row = replace(
        row, registers=cubin.registers, spill_stores=cubin.spill_stores, spill_loads=cubin.spill_loads,
        warnings=len(cubin.warnings), ptx_bytes=len(text.encode()), ctas_per_sm=per_sm,
        waves=_waves(plan, _tiles(job), per_sm * one.multiprocessors),
    )  # fmt: skip
    if one.machine and not one.gpu:
        row = _predicted(row, plan, one)
    if one.schedule is None and not one.gpu:
        return row
    if not one.gpu:
        device = devices.open_device("emulator", one.kernel, plan.target, one.schedule or "eager", one.seed)
        return _judged(row, job.run(device))
    repeated = Repeated(devices.open_device("gpu", one.kernel, plan.target, "eager", one.seed))
    row = _judged(row, job.run(repeated))
    if not row.ok:
        return row
    seconds = statistics.median(repeated.seconds)
    return replace(row, seconds=seconds, tflops=2e-12 * one.m * one.n * one.k / seconds)


def _predicted(row: Row, plan: GemmPlan, one: Combination) -> Row:
    """The row with the time that is predicted, or the reason why none is."""
    from ptxgen.gemm.prediction.timed import predict_gemm
    from ptxgen.timing import TimingError

    try:
        found = predict_gemm(plan, one.m, one.n, one.k, one.machine)
    except (TimingError, LaunchError) as error:
        return replace(row, reason=f"no prediction: {_one_line(error)}")
    made = round(found.microseconds, 3), round(found.tflops, 1)
    return replace(row, predicted_us=made[0], predicted_tflops=made[1], bound_by=found.bound_by)


def _judged(row: Row, result: GemmResult) -> Row:
    """The row with how a run ended."""
    return row if result.ok else replace(row, status=result.status, reason=_one_line(result.errors[0]))


class Repeated:
    """A device that launches a kernel again and again where it is right, and keeps the seconds of those that count."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.name, self.target = device.name, device.target
        self.array, self.empty = device.array, device.empty
        self.seconds: list[float] = []

    def launch(self, *arguments: Any, **options: Any) -> LaunchReport:
        reports: list[LaunchReport] = []
        while len(reports) < WARM_UP + LAUNCHES and all(each.ok for each in reports):
            reports.append(self._device.launch(*arguments, **options))
        self.seconds = [each.seconds for each in reports[WARM_UP:]]
        return reports[-1]


def _tiles(job: GemmJob) -> int:
    """Tiles of C, or shares of them, those that fill up clusters included: one a CTA, or a turn of a persistent one."""
    return math.prod(replace(job.plan.scheduler, kind="grid").grid(job.m, job.n))


def _waves(plan: GemmPlan, tiles: int, slots: int) -> float | None:
    """Tiles by the CTAs that run at a time, in whole clusters; None where not one fits."""
    ctas = plan.scheduler.cluster_size
    if plan.scheduler.kind == "static":
        slots = min(slots, plan.scheduler.slots)
    return tiles / (slots // ctas * ctas) if slots >= ctas else None


def _one_line(said: object) -> str:
    """The words without line breaks; of several lines of ptxas the ones that say what is wrong."""
    if isinstance(said, AssemblerError):
        return " ".join(str(said.diagnostics[0]).split())
    return " ".join(str(said).split())


def as_json(row: Row) -> dict[str, Any]:
    """A row with its options as a dictionary."""
    values = {name: getattr(row, name) for name in Row.__dataclass_fields__ if name != "options"}
    return {"options": dict(row.options), "legal": row.legal, **values}
