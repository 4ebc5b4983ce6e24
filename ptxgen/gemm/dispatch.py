"""Which kernel a problem should run with: what was measured on the device where there is a figure, else the planner.

The tables of measured choices are ptxgen/gemm/tuned/MACHINE.toml, which `make tune` writes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from ptxgen.device import Device
from ptxgen.gemm.config import parse_options
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.estimate import Estimate
from ptxgen.gemm.ladder import find
from ptxgen.gemm.plan import GemmPlan
from ptxgen.gemm.planner import plan_gemm
from ptxgen.gemm.problem import GemmProblem
from ptxgen.gemm.types import ALIASES
from ptxgen.timing import MACHINES, Machine

_Matrix = TypeVar("_Matrix")

#: The kernel for a few rows of A, and up to how many it is taken without a measurement.
GEMV, _VECTORS = "hopper/gemv", 2
#: Warps that keep the memory of an H200 busy.
_WARPS = 132 * 24
#: Up to so many rows A and B may change places.
_FEW = 128
#: Options that mean the same then; scales change places with their matrices.
_KEPT = {"dtype", "c_dtype", "dependent", "promote", "scales"}
FOLDER = Path(__file__).parent / "tuned"


@dataclass(frozen=True)
class Tuned:
    """A measured choice: a kernel by name with its options as `--set` takes them; microseconds of one launch.

    `dependent`: among programmatic dependent launches.
    """

    m: int
    n: int
    k: int
    dtype: str
    kernel: str
    options: tuple[str, ...]
    us: float
    dependent: bool = False

    def plan(self, more: Mapping[str, Any]) -> GemmPlan:
        """Its plan with more options. Raises PlanError where they do not go together."""
        own = parse_options(dict(each.split("=", 1) for each in self.options))
        if own.get("c_major") == "m":
            more = _swapped(more)
        return find(self.kernel).plan(**{**own, "dtype": self.dtype, "dependent": self.dependent, **more})


@dataclass(frozen=True)
class Table:
    """What was measured on a device with a driver on a day."""

    device: str
    driver: str
    date: str
    rows: tuple[Tuned, ...]

    def nearest(self, m: int, n: int, k: int, dtype: str, *, dependent: bool = False) -> Tuned | None:
        """The row of N, K and the type with the smallest M from m up to twice that; None where there is none."""
        wanted = (n, k, dtype, dependent)
        same = [each for each in self.rows if (each.n, each.k, each.dtype, each.dependent) == wanted]
        return min((each for each in same if m <= each.m <= 2 * m), key=lambda each: each.m, default=None)


@cache
def tuning_table(machine: str) -> Table:
    """The table of a machine by name ("h200"); an empty one where nothing was measured."""
    path = FOLDER / f"{machine}.toml"
    if not path.is_file():
        return Table("", "", "", ())
    read = tomllib.loads(path.read_text(encoding="utf-8"))
    rows = tuple(_row(each) for each in read["row"])
    return Table(read["device"], read["driver"], read["date"], rows)


def _row(read: Mapping[str, Any]) -> Tuned:
    m, n, k = read["shape"]
    dependent = read.get("dependent", False)
    return Tuned(m, n, k, read["dtype"], read["kernel"], tuple(read["options"]), read["us"], dependent)


def machine_of(device: str | Device) -> Machine:
    """The machine that a device is, or is nearest to: by name ("h200", "NVIDIA H200"), or by target ("sm_90a").

    Raises PlanError for a device that is neither.
    """
    names = (device,) if isinstance(device, str) else (device.name, device.target)
    for name in names:
        for machine in MACHINES.values():
            if name.lower() in (machine.name, machine.title.lower(), machine.target):
                return machine
    known = ", ".join(f"{each.name} ({each.target})" for each in MACHINES.values())
    raise PlanError(f"unknown machine {names[0]!r}; known are {known}")


@dataclass(frozen=True)
class Choice:
    """A plan for C = A·Bᵀ, A of M×K and B of N×K. `tuned`: the measurement that it comes from, if it does."""

    plan: GemmPlan
    m: int
    n: int
    k: int
    tuned: Tuned | None = None

    @property
    def swapped(self) -> bool:
        """Whether the kernel computes Cᵀ = B·Aᵀ, and stores it so that C has its rows: M and N change places."""
        return self.plan.config.c_major == "m"

    def problem(self, **more: Any) -> GemmProblem:
        """The problem as the kernel sees it; lines of matrices start on 16 bytes. `more`: fields of GemmProblem."""
        m, n = (self.n, self.m) if self.swapped else (self.m, self.n)
        return self.plan.padded_problem(m, n, self.k, **more)

    def operands(self, a: _Matrix, b: _Matrix) -> tuple[_Matrix, _Matrix]:
        """A and B as the kernel takes them; so it takes their scales."""
        return (b, a) if self.swapped else (a, b)


def best(m: int, n: int, k: int, dtype: str = "bf16", device: str | Device = "h200", **options: Any) -> Choice:
    """The kernel that should be fastest for C = A·Bᵀ, A of M×K and B of N×K, on a device.

    `device`: a machine's name, a target, or a Device. `options` are those of the kernels that must hold, such as
    `bias="bf16"`, `b_major="mn"`, or `dependent=True` for programmatic dependent launches. Raises PlanError where no
    kernel takes the problem.
    """
    given = tuple(sorted({**options, "dtype": ALIASES.get(dtype, dtype)}.items()))
    return _best(m, n, k, machine_of(device).name, given)


@lru_cache(maxsize=1024)
def _best(m: int, n: int, k: int, machine: str, options: tuple[tuple[str, Any], ...]) -> Choice:
    given = dict(options)
    table, dependent = tuning_table(machine), given.get("dependent", False)
    dtype = "bf16" if given["dtype"] == "f16" else given["dtype"]  # as fast, and measured
    row = table.nearest(m, n, k, dtype, dependent=dependent) or table.nearest(m, n, k, dtype)
    made = _fitting(m, n, k, lambda: row.plan(given), row) if row is not None else None
    if made is None and m <= _VECTORS and MACHINES[machine].target == "sm_90a":
        made = _fitting(m, n, k, lambda: find(GEMV).plan(**{**gemv_options(m, n, k), **given}))
    return made or planned(m, n, k, MACHINES[machine], given)


def planned(m: int, n: int, k: int, machine: Machine, given: Mapping[str, Any]) -> Choice:
    """The planner's choice, whatever was measured; for few rows also of what computes Cᵀ, where the options allow it.

    Raises PlanError where nothing fits.
    """
    choices = [Choice(plan_gemm(m, n, k, machine, count=1, fixed=given).chosen.plan, m, n, k)]
    if m <= _FEW and machine.target == "sm_90a" and not set(given) - _KEPT:
        with suppress(PlanError):
            swapped = plan_gemm(n, m, k, machine, count=1, fixed={**_swapped(given), "c_major": "m"}).chosen.plan
            choices.append(Choice(swapped, m, n, k))
    return rank(choices, machine)[0]


def _swapped(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Options of C = A·Bᵀ as those of Cᵀ = B·Aᵀ."""
    return {**given, "scales": "2d1d"} if given.get("scales") == "1d2d" else given


def rank(choices: Sequence[Choice], machine: Machine, clock: float | None = None) -> list[Choice]:
    """Choices for one problem as the planner's model orders them, the fastest first; `clock` in MHz."""
    estimates: dict[int, Estimate] = {}
    for each in choices:
        problem = each.problem()
        estimates[id(each)] = Estimate.of(each.plan, machine, problem.m, problem.n, problem.k, clock)
    tied = min(each.cycles for each in estimates.values()) * (1 + machine.tie.value)

    def key(each: Choice) -> tuple[float, float, float]:
        estimate = estimates[id(each)]
        return max(estimate.cycles, tied), estimate.l2_bytes, estimate.cycles

    return sorted(choices, key=key)


def _fitting(m: int, n: int, k: int, plan: Callable[[], GemmPlan], row: Tuned | None = None) -> Choice | None:
    """The choice of a plan, if it goes with the options and the problem."""
    try:
        made = Choice(plan(), m, n, k, row)
        made.problem()
    except PlanError:
        return None
    return made


def gemv_options(m: int, n: int, k: int) -> dict[str, int]:
    """Options of the GEMV: rows of B in short lines side by side; K is shared where there are too few rows."""
    rows = next((rows for rows, most in ((4, 1024), (2, 2048)) if k <= most), 1)
    split = next((split for split in (1, 2, 4) if n // rows * split >= _WARPS or k < 4096 * split), 8)
    return {"vectors": m, "warp_rows": rows, "k_warps": split}
