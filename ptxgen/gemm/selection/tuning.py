"""Measures the kernels for a problem on the GPU of this machine, and remembers the fastest in the user's cache."""

from __future__ import annotations

import datetime
import math
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import DeviceArray
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.ladder import find
from ptxgen.gemm.selection.arguments import Packed
from ptxgen.gemm.selection.cubins import cubin_of
from ptxgen.gemm.selection.dispatch import (
    EMPTY,
    GEMV,
    Choice,
    Table,
    Tuned,
    best,
    forecast_choices,
    machine_of,
    read_table,
    user_path,
)
from ptxgen.gemm.types import TYPES
from ptxgen.gpu import Gpu
from ptxgen.gpu.timing import time_in_turns
from ptxgen.toolchain import AssemblerError
from ptxgen.toolchain.cache import write_whole

#: Bytes that the sets of matrices have together: more than twice the L2.
_ROTATED = 128 << 20
#: Elements of random values, repeated in every matrix; microseconds of one graph; launches of it at most.
_BLOCK, _GRAPH_US, _LAUNCHES = 1 << 21, 400.0, 200
_TURNS = 12
#: Elements of C that are compared with a product in float64.
_COMPARED = 96
_HEAD = (
    "# What `ptxgen tune` measured on this machine: microseconds of one launch. Delete rows, or the file, to forget.\n"
)


@dataclass(frozen=True)
class Timed:
    """A kernel and its time in microseconds: the median of its turns, and half the quartiles' distance over it."""

    choice: Choice
    us: float
    spread: float


def tune(
    gpu: Gpu, m: int, n: int, k: int, given: Mapping[str, Any], count: int, say: Callable[[str], None] = print
) -> list[Timed]:
    """The kernels for a problem as measured on a GPU, the fastest first.

    `given`: options that must hold; `count`: kernels of the forecast that take part. A kernel that computes anything
    else than the product is left out, and `say` told. Raises PlanError where no kernel takes the problem.
    """
    choices = candidates(gpu, m, n, k, given, count)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        cubins = list(pool.map(_assembled, choices))
    matrices = _Matrices(gpu, choices[0])
    ready: list[tuple[Choice, Callable[[int, int], None]]] = []
    for choice, cubin in zip(choices, cubins, strict=True):
        launch = None if cubin is None else _launch(gpu, choice, cubin, matrices)
        if launch is None:
            continue
        launch(0, 0)
        if (error := matrices.error()) > 1:
            say(f"left out, {error:.2g} times the rounding: {choice.plan.name} {' '.join(choice.plan.settings)}")
        else:
            ready.append((choice, launch))
    if not ready:
        raise PlanError(f"no kernel computes {m}×{n}×{k} on {gpu.name}")
    launches = _launches_of(choices[0], matrices)

    def body(launch: Callable[[int, int], None]) -> Callable[[int], None]:
        def enqueue(stream: int) -> None:
            for number in range(launches):
                launch(number % matrices.count, stream)

        return enqueue

    found = time_in_turns(gpu, [body(launch) for _, launch in ready], _TURNS)
    made = []
    for (choice, _), taken in zip(ready, found, strict=True):
        low, middle, high = statistics.quantiles([each / launches for each in taken], n=4)
        made.append(Timed(choice, middle, (high - low) / 2 / middle))
    return sorted(made, key=lambda each: each.us)


def candidates(gpu: Gpu, m: int, n: int, k: int, given: Mapping[str, Any], count: int) -> list[Choice]:
    """The choice of `best`, the first `count` of the forecast, and for one or two rows the GEMVs."""
    machine = machine_of(gpu).name
    made = [best(m, n, k, device=machine, **given), *forecast_choices(m, n, k, machine, given, count)]
    if m <= 2:
        for rows in (1, 2, 4):
            for parts in (2, 4, 8):
                with suppress(PlanError):
                    plan = find(GEMV).plan(**{**given, "vectors": m, "warp_rows": rows, "k_warps": parts})
                    made.append(Choice(plan, m, n, k))
    known = {(each.plan.name, each.plan.settings): each for each in made if not each.plan.scheduler.splits}
    return list(known.values())


def remember(gpu: Gpu, winners: Sequence[Timed]) -> None:
    """Add the fastest kernels to the user's table. Raises OSError, and PlanError where the user has no cache."""
    machine = machine_of(gpu).name
    path = user_path(machine)
    if path is None:
        raise PlanError("PTXGEN_CACHE is empty, so that nothing can be remembered")
    known = read_table(path) if path.is_file() else EMPTY
    rows = {(each.m, each.n, each.k, each.product, each.dependent): each for each in known.rows}
    for each in winners:
        made = row_of(each)
        rows[made.m, made.n, made.k, made.product, made.dependent] = made
    today = datetime.date.today().isoformat()
    table = Table(gpu.name, gpu.version, today, tuple(rows.values()))
    write_whole(path, as_toml(table).encode())


def row_of(timed: Timed) -> Tuned:
    """A measured kernel as a row of a table."""
    choice, config = timed.choice, timed.choice.plan.config
    settings = find(choice.plan.name).settings(config)
    left = ("dtype=", "b_dtype=", "c_dtype=", "dependent=", "a_major=", "b_major=", "bias=", "source=", "alpha=")
    options = tuple(each for each in settings if not each.startswith((*left, "activation=")))
    dtype = "bf16" if config.dtype == "f16" else config.dtype
    return Tuned(choice.m, choice.n, choice.k, dtype, choice.plan.name, options, round(timed.us, 3), config.dependent)


def as_toml(table: Table) -> str:
    """A table as the text of its file."""
    lines = [_HEAD, f'device = "{table.device}"', f'driver = "{table.driver}"', f'date = "{table.date}"']
    for row in sorted(table.rows, key=lambda each: (each.dtype, each.n, each.k, each.m, each.dependent)):
        shown = ", ".join(f'"{each}"' for each in row.options)
        lines += ["", "[[row]]", f"shape = [{row.m}, {row.n}, {row.k}]", f'dtype = "{row.dtype}"']
        lines += ["dependent = true"] * row.dependent
        lines += [f'kernel = "{row.kernel}"', f"options = [{shown}]", f"us = {row.us}"]
    return "\n".join(lines) + "\n"


def _assembled(choice: Choice) -> bytes | None:
    try:
        return cubin_of(choice.plan)
    except AssemblerError:
        return None


class _Matrices:
    """Sets of A, B and C for a problem on a GPU, of random values that the compared elements are known of."""

    def __init__(self, gpu: Gpu, choice: Choice) -> None:
        config, problem = choice.plan.config, choice.problem()
        first, second = ("b", "a") if choice.swapped else ("a", "b")
        self.gpu, self.m, self.n, self.k = gpu, choice.m, choice.n, choice.k
        self.types = {"a": problem.dtype(first), "b": problem.dtype(second), "c": choice.plan.c_dtype}
        majors = config.a_major, config.b_major
        self.majors = dict(zip("ab", reversed(majors) if choice.swapped else majors, strict=True))
        self.leading = {"a": problem.leading(first), "b": problem.leading(second), "c": problem.leading("c")}
        lines = {"a": (self.m, self.k), "b": (self.n, self.k)}
        sizes = {name: self.leading[name] * shape[self.majors[name] == "mn"] for name, shape in lines.items()}
        sizes["c"] = self.leading["c"] * self.m
        total = sum(sizes[name] * TYPES[self.types[name]].bits // 8 for name in "abc")
        self.count = max(2, -(-_ROTATED // total))
        source = np.random.default_rng(0)
        self.values: dict[str, NDArray[Any]] = {}
        for name in "ab":
            kind = TYPES[self.types[name]].numpy
            self.values[name] = source.standard_normal(_BLOCK + source.integers(97)).astype(np.float32).astype(kind)
        self.arrays: list[dict[str, DeviceArray]] = []
        for _ in range(self.count):
            made = {name: self._repeated(name, sizes[name]) for name in "ab"}
            made["c"] = gpu.empty(sizes["c"], TYPES[self.types["c"]].numpy)
            self.arrays.append(made)
        self.places = source.integers(self.m, size=_COMPARED), source.integers(self.n, size=_COMPARED)
        self.expected, self.allowed = self._product()

    def _repeated(self, name: str, size: int) -> DeviceArray:
        return self.gpu.array(np.resize(self.values[name], size))

    def _line(self, name: str, row: int) -> NDArray[np.float64]:
        """A row of A or B along K."""
        steps = np.arange(self.k)
        at = row * self.leading[name] + steps if self.majors[name] == "k" else steps * self.leading[name] + row
        values = self.values[name]
        return values[at % len(values)].astype(np.float64)

    def _product(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rows = [(self._line("a", i), self._line("b", j)) for i, j in zip(*self.places, strict=True)]
        exact = np.array([float(a @ b) for a, b in rows])
        # Rounding of C, and of the tensor cores' sums.
        size = np.array([float(np.abs(a) @ np.abs(b)) for a, b in rows])
        bits = 2.0**-11 if TYPES[self.types["a"]].bits == 8 else 2.0**-18
        return exact, np.abs(exact) * 2.0**-7 + size * bits * 4

    def error(self) -> float:
        """The largest error of the compared elements of the first C, over what is allowed; the array is poisoned."""
        c, size = self.arrays[0]["c"], TYPES[self.types["c"]].bits // 8
        at = self.places[0] * self.leading["c"] + self.places[1]
        read = np.zeros((_COMPARED, size), np.uint8)
        for row, place in zip(read, at, strict=True):
            self.gpu.call("cuMemcpyDtoH", row.ctypes.data, c.address + int(place) * size, size)
        self.gpu.call("cuMemsetD8", c.address, 0xFF, c.nbytes)  # NaN
        found = read.reshape(-1).view(TYPES[self.types["c"]].numpy).astype(np.float64)
        error = np.abs(found - self.expected) / self.allowed
        return float(np.max(np.where(np.isnan(error), np.inf, error)))


def _launch(gpu: Gpu, choice: Choice, cubin: bytes, matrices: _Matrices) -> Callable[[int, int], None] | None:
    """Enqueues a kernel on the set of a number and a stream; None where the driver refuses the kernel."""
    plan, problem = choice.plan, choice.problem()
    table = problem.tile_order
    order = None if table is None else gpu.array(table)
    packed = Packed.of(choice, problem, None if order is None else order.address)
    prepared = gpu.prepare(
        cubin, plan.entry, problem.grid, problem.block, plan.shared.bytes, packed.values, packed.places
    )
    words = problem.workspace_words
    workspace = gpu.array(np.zeros(words, np.uint32)) if words else None
    room = 0 if workspace is None else workspace.address
    addresses = [(each["a"].address, each["b"].address, each["c"].address, 0, room) for each in matrices.arrays]

    def launch(number: int, stream: int, kept: tuple[DeviceArray | None, ...] = (order, workspace)) -> None:
        if status := prepared(stream, addresses[number]):
            gpu.refused(status)

    return launch


def _launches_of(choice: Choice, matrices: _Matrices) -> int:
    """Launches of one graph."""
    us = max(choice.us, 1.0)
    return max(min(math.ceil(_GRAPH_US / us), _LAUNCHES), min(matrices.count, _LAUNCHES), 2)
