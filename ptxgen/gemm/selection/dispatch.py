"""Which kernel a problem should run with: measured on the device, interpolated between such, or predicted.

Measured choices are those of the user's own table (`ptxgen tune`), then those of ptxgen/gemm/tuned/MACHINE.toml, which
`make tune` writes. Where neither has the shape, the forecast of the menu decides (ptxgen.gemm.selection.menu), and
where that has no such kernel, the planner.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from ptxgen.device import Device
from ptxgen.gemm.config import parse_options
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.ladder import find
from ptxgen.gemm.plan import GemmPlan
from ptxgen.gemm.prediction.estimate import Estimate
from ptxgen.gemm.problem import GemmProblem
from ptxgen.gemm.selection.menu import RUNG, forecasts, product_of
from ptxgen.gemm.selection.planner import plan_gemm
from ptxgen.gemm.types import ALIASES
from ptxgen.timing import MACHINES, Machine
from ptxgen.toolchain.cache import cache_folder

_Matrix = TypeVar("_Matrix")

#: The kernel for a few rows of A, and up to how many it is taken without a measurement.
GEMV, _VECTORS = "hopper/gemv", 2
#: Warps that keep the memory of an H200 busy.
_WARPS = 132 * 24
#: Up to so many rows A and B may change places.
_FEW = 128
#: Options that mean the same then; scales change places with their matrices.
_KEPT = {"dtype", "c_dtype", "dependent", "promote", "scales"}
FOLDER = Path(__file__).parents[1] / "tuned"
#: Kernels of the forecast that are tried for one that takes the options.
_TRIED = 24
Known = Literal["measured", "interpolated", "predicted"]


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

    @property
    def product(self) -> str | None:
        """What it computes, as the menu names it."""
        return product_of({"dtype": self.dtype, "promote": "promote=false" not in self.options})

    def plan(self, more: Mapping[str, Any]) -> GemmPlan:
        """Its plan with more options. Raises PlanError where they do not go together."""
        own = parse_options(dict(each.split("=", 1) for each in self.options))
        if own.get("c_major") == "m":
            more = swapped(more)
        return find(self.kernel).plan(**{**own, "dtype": self.dtype, "dependent": self.dependent, **more})


@dataclass(frozen=True)
class Table:
    """What was measured on a device with a driver on a day."""

    device: str
    driver: str
    date: str
    rows: tuple[Tuned, ...]

    def nearest(self, m: int, n: int, k: int, product: str, *, dependent: bool = False) -> Tuned | None:
        """The row of N, K and the product with this M, else for few rows the smallest M up to twice that.

        None where there is none.
        """
        wanted = (n, k, product, dependent)
        same = [each for each in self.rows if (each.n, each.k, each.product, each.dependent) == wanted]
        near = [each for each in same if each.m == m or m < each.m <= min(2 * m, _FEW)]
        return min(near, key=lambda each: each.m, default=None)


EMPTY = Table("", "", "", ())


@cache
def tuning_table(machine: str, kind: str = "") -> Table:
    """The table of a machine by name ("h200"); an empty one where nothing was measured.

    `kind`: "" for 16-bit types, "fp8".
    """
    return read_table(FOLDER / f"{machine}{'-' if kind else ''}{kind}.toml")


def user_stamp(machine: str) -> tuple[Path, int] | None:
    """The file of what `ptxgen tune` measured for this user, and when it changed; None where there is none."""
    path = user_path(machine)
    try:
        return None if path is None else (path, path.stat().st_mtime_ns)
    except OSError:
        return None


def user_path(machine: str) -> Path | None:
    """Where the user's table of a machine is; None where there is no cache."""
    folder = cache_folder()
    return None if folder is None else folder / "tuned" / f"{machine}.toml"


@lru_cache(maxsize=8)
def read_again(path: Path, changed: int) -> Table:
    """A table from its file, which was changed then."""
    return read_table(path)


def read_table(path: Path) -> Table:
    """A table from its file; an empty one where there is none."""
    if not path.is_file():
        return EMPTY
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
            if name.lower() in (machine.name, machine.title.lower(), machine.target):  # the first of a target
                return machine
    known = ", ".join(f"{each.name} ({each.target})" for each in MACHINES.values())
    raise PlanError(f"unknown machine {names[0]!r}; known are {known}")


@dataclass(frozen=True)
class Choice:
    """A plan for C = A·Bᵀ, A of M×K and B of N×K, and what is known of its time.

    `known`: measured on this problem; interpolated: measured with as many or more rows, up to twice; predicted by the
    model. `us`: the expected microseconds, 0 for none. `tuned`: the measurement that it comes from, if it does.
    """

    plan: GemmPlan
    m: int
    n: int
    k: int
    tuned: Tuned | None = None
    us: float = 0.0

    @property
    def known(self) -> Known:
        """Where the expected time is from."""
        if self.tuned is None:
            return "predicted"
        return "measured" if self.tuned.m == self.m else "interpolated"

    @property
    def expected(self) -> str:
        """The expected time in words."""
        words = f"{self.known} from M {self.tuned.m}" if self.tuned and self.known == "interpolated" else self.known
        return f"{self.us:.3g} µs, {words}" if self.us else words

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


def _best(m: int, n: int, k: int, machine: str, options: tuple[tuple[str, Any], ...]) -> Choice:
    return _choice(m, n, k, machine, options, user_stamp(machine))


@lru_cache(maxsize=4096)
def _choice(
    m: int, n: int, k: int, machine: str, options: tuple[tuple[str, Any], ...], own: tuple[Path, int] | None
) -> Choice:
    given = dict(options)
    dependent, product = given.get("dependent", False), product_of(given)
    if product is not None:
        shipped = tuning_table(machine) if product == "bf16" else tuning_table(machine, "fp8")
        users = read_again(*own) if own else EMPTY
        for table, depends in ((users, dependent), (shipped, dependent), (shipped, False)):
            row = table.nearest(m, n, k, product, dependent=depends)
            made = _fitting(m, n, k, lambda row=row: row.plan(given), row) if row is not None else None
            if made is not None:
                return made
    made = forecast(m, n, k, machine, given)
    if made is None and m <= _VECTORS and MACHINES[machine].target == "sm_90a":
        made = _fitting(m, n, k, lambda: find(GEMV).plan(**{**gemv_options(m, n, k), **given}))
    return made or planned(m, n, k, MACHINES[machine], given)


def forecast(m: int, n: int, k: int, machine: str, given: Mapping[str, Any]) -> Choice | None:
    """The kernel of the menu that should be fastest with these options; None where none takes them."""
    return next(iter(forecast_choices(m, n, k, machine, given, 1)), None)


def forecast_choices(m: int, n: int, k: int, machine: str, given: Mapping[str, Any], count: int) -> list[Choice]:
    """The kernels of the menu that should be fastest with these options, the fastest first."""
    found: list[Choice] = []
    for us, options, turned in forecasts(m, n, k, machine, given, count + _TRIED):
        own = parse_options(dict(each.split("=", 1) for each in options))
        # Scales and biases take the shared memory of a stage; the rung's epilogue has no C of 32 bits.
        fewer = [{"stages": own["stages"] - 1}] if own.get("stages", 0) > 2 else []
        for more in ({}, *fewer, {"epilogue": "direct"}):
            made = _fitting(m, n, k, lambda own={**own, **more}, turned=turned: _menu_plan(own, given, turned))
            if made is not None:
                found.append(replace(made, us=us))
                break
        if len(found) == count:
            break
    return found


def _menu_plan(own: Mapping[str, Any], given: Mapping[str, Any], turned: bool) -> GemmPlan:
    """The plan of a kernel of the menu; `turned`: A and B change places. Raises PlanError."""
    return find(RUNG).plan(**{**own, **(swapped(given) if turned else given)})


def planned(m: int, n: int, k: int, machine: Machine, given: Mapping[str, Any]) -> Choice:
    """The planner's choice, whatever was measured; for few rows also of what computes Cᵀ, where the options allow it.

    Raises PlanError where nothing fits.
    """
    choices = [Choice(plan_gemm(m, n, k, machine, count=1, fixed=given).chosen.plan, m, n, k)]
    if m <= _FEW and machine.target == "sm_90a" and not set(given) - _KEPT:
        with suppress(PlanError):
            turned = plan_gemm(n, m, k, machine, count=1, fixed={**swapped(given), "c_major": "m"}).chosen.plan
            choices.append(Choice(turned, m, n, k))
    first = rank(choices, machine)[0]
    problem = first.problem()
    return replace(first, us=Estimate.of(first.plan, machine, problem.m, problem.n, problem.k).microseconds)


def swapped(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of C = A·Bᵀ as those of Cᵀ = B·Aᵀ. Raises PlanError for what only C has along N."""
    made = dict(given)
    if "bias" in made or "source" in made:
        raise PlanError("with A and B swapped a kernel has no bias along N and no source")
    for one, other in (("a_major", "b_major"), ("a_hint", "b_hint"), ("cluster_m", "cluster_n")):
        values = {name: made.pop(mine) for mine, name in ((one, other), (other, one)) if mine in made}
        made.update(values)
    if made.get("b_dtype"):
        made["dtype"], made["b_dtype"] = made["b_dtype"], made["dtype"]
    if made.get("scales", "none") != "none":
        made["scales"] = "2d1d" if made["scales"] == "1d2d" else "1d2d"
    return made


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
        made = Choice(plan(), m, n, k, row, row.us if row is not None else 0.0)
        made.problem()
    except PlanError:
        return None
    return made


def gemv_options(m: int, n: int, k: int) -> dict[str, int]:
    """Options of the GEMV: rows of B in short lines side by side; K is shared where there are too few rows."""
    rows = next((rows for rows, most in ((4, 1024), (2, 2048)) if k <= most), 1)
    split = next((split for split in (1, 2, 4) if n // rows * split >= _WARPS or k < 4096 * split), 8)
    return {"vectors": m, "warp_rows": rows, "k_warps": split}
