"""A GEMM as a job: random inputs, one launch on any device, and every element of C compared with NumPy.

`GemmJob.run` and its short form `run_gemm` give a `GemmResult`, which says what is wrong and which lines of the PTX
have to do with it. Executing is left to the device, showing to whoever asked.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ptxgen.device import Device, DeviceArray, Finding, Kernel, LaunchReport, SharedRegion
from ptxgen.dtypes import scalar_type
from ptxgen.kernels.gemm import GemmPlan, GemmProblem, OutputType
from ptxgen.syntax import Instruction, walk

#: What C and its surroundings hold before the launch, byte by byte.
POISON = 0xCD
#: C starts on a multiple of this, as the driver's own allocations do.
C_ALIGNMENT = 256
_MIN_GUARD = 4096
_MAX_GUARD = 1 << 22
#: Significant bits of the narrow types, the hidden one included, and the exponent of their smallest normal number.
_ROUNDED = {"bf16": (8, -126), "f16": (11, -14)}
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_BLOCK = 1024  # rows and columns of C that are compared at once


@dataclass(frozen=True)
class Element:
    """One element of C: what it holds, what it should, and how far these may be apart."""

    row: int
    column: int
    got: float
    expected: float
    tolerance: float

    def __str__(self) -> str:
        return (
            f"C[{self.row}, {self.column}] is {self.got:.6g}, expected {self.expected:.6g} with a tolerance of "
            f"{self.tolerance:.3g}"
        )


@dataclass(frozen=True)
class Comparison:
    """C against the reference, element by element.

    `largest_error` is the largest distance (infinite for NaN) at `largest_at`, where `tolerance` is allowed; `ratio`
    is the largest share of its own tolerance that any element takes: above 1 is wrong. `unwritten` counts the wrong
    elements that still hold the poison. `pattern` says where in the tiles the wrong elements are.
    """

    elements: int
    wrong: int
    unwritten: int
    largest_error: float
    largest_at: tuple[int, int]
    tolerance: float
    ratio: float
    first_wrong: Element | None
    pattern: str


@dataclass(frozen=True)
class Guards:
    """The bytes before and after C, which no kernel may touch; `damage` says what changed, empty if nothing did."""

    before: int
    after: int
    damage: str

    @property
    def ok(self) -> bool:
        return not self.damage


@dataclass(frozen=True)
class Complaint:
    """One thing that is wrong with a run, and the lines of the PTX that it is about; `shown` are the first to read.

    `finding` is what the device said, if it was the device.
    """

    message: str
    lines: tuple[int, ...] = ()
    shown: tuple[int, ...] = ()
    finding: Finding | None = None

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class GemmResult:
    """How a job went. `comparison` is None where the kernel did not run to its end; `timings` are in seconds."""

    problem: GemmProblem
    seed: int
    kernel: Kernel
    launch: LaunchReport
    comparison: Comparison | None
    guards: Guards
    tolerance_reason: str
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the device found nothing wrong, every element is right and the surroundings of C are untouched."""
        return self.launch.ok and self.comparison is not None and self.comparison.wrong == 0 and self.guards.ok

    @property
    def status(self) -> str:
        """The launch's status, or "wrong" where it is "ok" but C or its surroundings are not."""
        return "wrong" if self.launch.ok and not self.ok else self.launch.status

    @property
    def wrong(self) -> int | None:
        """How many elements are wrong; None if C was not compared."""
        return None if self.comparison is None else self.comparison.wrong

    @property
    def guards_ok(self) -> bool:
        return self.guards.ok

    @cached_property
    def store_lines(self) -> tuple[int, ...]:
        """Lines of the PTX that store to global memory."""
        return tuple(each.line for each in _instructions(self.kernel) if _stores_to_global(each.opcode))

    @cached_property
    def mma_lines(self) -> tuple[int, ...]:
        """Lines of the PTX that multiply."""
        return tuple(each.line for each in _instructions(self.kernel) if _multiplies(each.opcode))

    @property
    def complaints(self) -> list[Complaint]:
        """What is wrong: the device's findings, then C, then its surroundings. Empty exactly when `ok`."""
        found = [_complaint(each) for each in self.launch.findings if each.severity == "error"]
        if not self.launch.ok and not found:
            found.append(Complaint(f"the launch ended as {self.launch.status}, and the device does not say where"))
        comparison = self.comparison
        if comparison is not None and comparison.wrong:
            first = (*self.mma_lines[:1], *self.store_lines[:1])
            found.append(Complaint(self._wrong_message(comparison), (*self.mma_lines, *self.store_lines), first))
        if not self.guards.ok:
            found.append(
                Complaint(
                    f"the kernel wrote outside C: {self.guards.damage}; C is stored by {line_list(self.store_lines)}",
                    self.store_lines,
                    self.store_lines[:1],
                )
            )
        return found

    @property
    def advice(self) -> list[Complaint]:
        """What the device advises; it does not make the run wrong, but may tell why it is: so may older values."""
        found = [_complaint(each) for each in self.launch.findings if each.severity == "advice"]
        if self.wrong and self.launch.older_values:
            lines = tuple(sorted({each.line for each in self.launch.older_values}))
            found.append(Complaint(self.launch.older_values_text, lines, lines[:1]))
        return found

    def summary(self) -> str:
        """The outcome as text: one line, then what is wrong and what the device advises, with lines of the PTX."""
        problem = self.problem
        lines = [f"{self.kernel.name}, M {problem.m}, N {problem.n}, K {problem.k}: {self.status}"]
        for severity, complaints in (("error", self.complaints), ("advice", self.advice)):
            for each in complaints:
                place = f"line {each.lines[0]}: " if len(each.lines) == 1 else ""
                lines.append(f"{place}{severity}: {each.message}")
                if each.finding is not None and each.finding.consequences:
                    lines.append(f"    {each.finding.consequences_line}")
        return "\n".join(lines)

    def _wrong_message(self, comparison: Comparison) -> str:
        parts = [f"{comparison.wrong} of {comparison.elements} elements of C are wrong"]
        if comparison.unwritten == comparison.wrong:
            parts[0] += ", none of them ever stored (they hold the poison)"
        elif comparison.unwritten:
            parts[0] += f", {comparison.unwritten} of them never stored (they hold the poison)"
        parts += [f"the first: {comparison.first_wrong}", comparison.pattern]
        parts.append(
            f"the accumulators are made by {line_list(self.mma_lines)}, C is stored by {line_list(self.store_lines)}"
        )
        return "; ".join(parts)


@dataclass(frozen=True)
class GemmJob:
    """A plan applied to a problem with random inputs; the same seed gives the same inputs. Raises PlanError."""

    plan: GemmPlan
    m: int
    n: int
    k: int
    seed: int = 0

    def __post_init__(self) -> None:
        _ = self.problem  # raises PlanError for sizes that the plan does not take

    @cached_property
    def problem(self) -> GemmProblem:
        return self.plan.problem(self.m, self.n, self.k)

    @property
    def c_dtype(self) -> OutputType:
        return self.plan.c_dtype

    @cached_property
    def inputs(self) -> tuple[np.ndarray, np.ndarray]:
        """A (M×K) and B (N×K), standard normal, rounded to the input type."""
        random = np.random.default_rng(self.seed)
        dtype = np.dtype(scalar_type(self.plan.config.dtype))
        a = random.standard_normal((self.m, self.k), dtype=np.float32).astype(dtype)
        b = random.standard_normal((self.n, self.k), dtype=np.float32).astype(dtype)
        return a, b

    @property
    def host_bytes(self) -> int:
        """Roughly the memory that a run takes: inputs, their copies on an emulated device, C, and the comparison."""
        inputs = (self.m + self.n) * self.k * (4 + 3 * self.plan.c_bytes)
        return inputs + self.m * self.n * (3 * self.plan.c_bytes + 1) + _BLOCK * (8 * _BLOCK * 6 + 4 * 8 * self.k)

    @property
    def tolerance_reason(self) -> str:
        """Why the comparison allows what it allows."""
        reason = (
            "K·2⁻²³·Σ|a·b|: the products are exact in fp32, and K of them added in any order are off by at most "
            "K·2⁻²⁴·Σ|a·b|, doubled because tensor cores may truncate where others round"
        )
        if self.c_dtype in _ROUNDED:
            bits, _ = _ROUNDED[self.c_dtype]
            power = str(bits).translate(_SUPERSCRIPTS)
            reason += f"; plus half an ulp for the rounding to {self.c_dtype} (at most 2⁻{power}·|c|)"
        return reason

    def tolerances(self, expected: npt.NDArray[np.float64], sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """What each element may be off by; `sums` holds Σ|a·b|."""
        accumulation = self.k * 2.0**-23 * sums
        if self.c_dtype not in _ROUNDED:
            return accumulation
        return accumulation + half_ulp(np.abs(expected) + accumulation, self.c_dtype)

    def run(self, device: Device, *, text: str | None = None) -> GemmResult:
        """Launch on a device and compare. `text` replaces the plan's PTX, for trying an edited kernel.

        Raises PtxSyntaxError or KernelError where such a text is no kernel, KernelArgumentError where it takes other
        parameters.
        """
        plan, timings = self.plan, {}
        with _timed(timings, "render"):
            source = plan.text if text is None else text
            regions = [SharedRegion(each.name, each.offset, each.bytes) for each in plan.shared.regions]
            kernel = Kernel.from_ptx(source, regions=regions)
        with _timed(timings, "inputs"):
            a, b = self.inputs
            device_a, device_b = device.array(a), device.array(b)
            guarded = _GuardedOutput(device, (self.m, self.n), self.c_dtype, plan.m_tile)
        with _timed(timings, "encode"):
            arguments = self.problem.arguments(device_a, device_b, guarded.address)
        with _timed(timings, "launch"):
            launch = device.launch(
                kernel, self.problem.grid, self.problem.block, arguments, shared_bytes=plan.shared.bytes
            )
        comparison, guards = None, guarded.nothing_read
        if launch.status in ("ok", "findings"):  # else C is half done, and says nothing
            with _timed(timings, "compare"):
                c, guards = guarded.read()
                comparison = self.compare(c)
        return GemmResult(self.problem, self.seed, kernel, launch, comparison, guards, self.tolerance_reason, timings)

    def compare(self, c: np.ndarray) -> Comparison:
        """Compare C with the float64 product of the inputs, in which 8- and 11-bit significands multiply exactly."""
        a, b = self.inputs
        wrong = np.zeros((self.m, self.n), dtype=bool)
        unwritten = 0
        largest, largest_at, tolerance, ratio = -1.0, (0, 0), 0.0, 0.0
        first: Element | None = None
        for top in range(0, self.m, _BLOCK):
            rows = a[top : top + _BLOCK].astype(np.float64)
            for left in range(0, self.n, _BLOCK):
                columns = b[left : left + _BLOCK].astype(np.float64)
                expected = rows @ columns.T
                allowed = self.tolerances(expected, np.abs(rows) @ np.abs(columns).T)
                part = c[top : top + _BLOCK, left : left + _BLOCK]
                values = part.astype(np.float64)
                with np.errstate(invalid="ignore"):  # NaN and infinity in C are wrong, not a warning
                    errors = np.abs(values - expected)
                errors = np.where(np.isnan(errors), np.inf, errors)
                bad = ~(errors <= allowed)
                wrong[top : top + _BLOCK, left : left + _BLOCK] = bad
                unwritten += int(np.count_nonzero(bad & _is_poison(part)))
                with np.errstate(divide="ignore", invalid="ignore"):
                    shares = np.where(errors == 0, 0.0, errors / allowed)
                ratio = max(ratio, float(shares.max()))
                row, column = np.unravel_index(int(errors.argmax()), errors.shape)
                if errors[row, column] > largest:
                    largest, tolerance = float(errors[row, column]), float(allowed[row, column])
                    largest_at = (top + int(row), left + int(column))
                if bad.any() and (first is None or first.row >= top):
                    row, column = np.unravel_index(int(bad.argmax()), bad.shape)
                    found = Element(
                        top + int(row),
                        left + int(column),
                        float(values[row, column]),
                        float(expected[row, column]),
                        float(allowed[row, column]),
                    )
                    if first is None or (found.row, found.column) < (first.row, first.column):
                        first = found
        return Comparison(
            wrong.size,
            int(np.count_nonzero(wrong)),
            unwritten,
            largest,
            largest_at,
            tolerance,
            ratio,
            first,
            describe_pattern(wrong, self.plan.m_tile, self.plan.n_tile),
        )


def run_gemm(
    device: Device, plan: GemmPlan, m: int, n: int, k: int, *, seed: int = 0, text: str | None = None
) -> GemmResult:
    """Run a plan on random inputs and compare: `GemmJob(plan, m, n, k, seed).run(device, text=text)`."""
    return GemmJob(plan, m, n, k, seed).run(device, text=text)


def half_ulp(values: npt.NDArray[np.float64], dtype: OutputType) -> npt.NDArray[np.float64]:
    """Half the distance between neighbors of `dtype` ("bf16" or "f16") at the size of each value, which is >= 0.

    Numbers of 2^e to 2^(e+1) with p significant bits are 2^(e-p+1) apart, so that rounding to nearest is off by at
    most 2^(e-p): 2^-p relative at worst (p is 8 for bf16, 11 for f16). Subnormal numbers are as far apart as the
    smallest normal ones.
    """
    bits, smallest = _ROUNDED[dtype]
    _, exponents = np.frexp(values)
    return np.ldexp(1.0, np.maximum(np.where(values == 0, smallest, exponents - 1), smallest) - bits)


def describe_pattern(wrong: npt.NDArray[np.bool_], m_tile: int, n_tile: int) -> str:
    """Where the wrong elements are: which tiles, and which rows and columns within them. Empty if there are none."""
    rows, columns = np.nonzero(wrong)
    if not rows.size:
        return ""
    tiles = sorted(set(zip((rows // m_tile).tolist(), (columns // n_tile).tolist(), strict=True)))
    in_tile_rows, in_tile_columns = np.unique(rows % m_tile), np.unique(columns % n_tile)
    tile_height, tile_width = min(m_tile, wrong.shape[0]), min(n_tile, wrong.shape[1])
    every_row, every_column = in_tile_rows.size == tile_height, in_tile_columns.size == tile_width
    if rows.size == wrong.size:
        return "every element is wrong"
    # How many elements the tiles concerned have at these rows and columns: are they all wrong, or some?
    mask_rows = np.isin(np.arange(wrong.shape[0]) % m_tile, in_tile_rows)
    mask_columns = np.isin(np.arange(wrong.shape[1]) % n_tile, in_tile_columns)
    possible = sum(
        int(np.count_nonzero(mask_rows[i * m_tile : (i + 1) * m_tile]))
        * int(np.count_nonzero(mask_columns[j * n_tile : (j + 1) * n_tile]))
        for i, j in tiles
    )
    places = []
    if not every_row:
        places.append(f"row{'s' * (in_tile_rows.size > 1)} {number_list(in_tile_rows.tolist())}")
    if not every_column:
        places.append(f"column{'s' * (in_tile_columns.size > 1)} {number_list(in_tile_columns.tolist())}")
    where = _which_tiles(tiles, -(-wrong.shape[0] // m_tile), -(-wrong.shape[1] // n_tile))
    if not places and possible == rows.size:
        return f"they are all elements {where}"
    share = ""
    if 2 * rows.size >= possible > rows.size:
        share = f" (all there but {possible - rows.size})"
    elif rows.size < possible:
        share = f" ({100 * rows.size / possible:.2g} % of the elements there)"
    if not places:
        return f"the wrong elements are spread over all rows and columns {where}{share}"
    return f"all wrong elements are in {' and '.join(places)} {where}{share}"


def _which_tiles(tiles: list[tuple[int, int]], rows: int, columns: int) -> str:
    """Which of rows × columns tiles these are, in ascending order, as the end of "elements ..."."""
    if len(tiles) == rows * columns:
        return "of each tile" if len(tiles) > 1 else "of the only tile"
    tile_rows, tile_columns = sorted({i for i, _ in tiles}), sorted({j for _, j in tiles})
    if len(tile_rows) * columns == len(tiles):
        return f"of the tiles in tile row{'s' * (len(tile_rows) > 1)} {number_list(tile_rows)} of {rows}"
    if len(tile_columns) * rows == len(tiles):
        return f"of the tiles in tile column{'s' * (len(tile_columns) > 1)} {number_list(tile_columns)} of {columns}"
    shown = ", ".join(f"({i}, {j})" for i, j in tiles[:4]) + (", ..." if len(tiles) > 4 else "")
    return f"of {len(tiles)} of {rows * columns} tiles (row, column): {shown}"


def number_list(numbers: list[int], limit: int = 6) -> str:
    """Ascending numbers, shortened: "0-31", "3, 7-9", "0, 8, ..., 120 (every 8th)", "1, 4, 6, ... 90 (17 in all)"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    if len(runs) <= limit:
        return ", ".join(texts)
    steps = {after - before for before, after in pairwise(numbers)}
    if len(steps) == 1:
        step = steps.pop()
        suffix = {2: "nd", 3: "rd"}.get(step, "th")
        return f"{numbers[0]}, {numbers[1]}, ..., {numbers[-1]} (every {step}{suffix})"
    return f"{', '.join(texts[: limit - 1])}, ... {texts[-1]} ({len(numbers)} in all)"


def line_list(lines: tuple[int, ...]) -> str:
    """Lines of a text as words: "line 7", "lines 7, 9", "no line"."""
    if not lines:
        return "no line"
    return f"line{'s' * (len(lines) > 1)} {number_list(sorted(lines))}"


class _GuardedOutput:
    """C in a larger buffer of poison: what lies before and after it shows stray stores."""

    def __init__(self, device: Device, shape: tuple[int, int], dtype: OutputType, m_tile: int) -> None:
        self.shape, self.dtype = shape, np.dtype(scalar_type(dtype))
        self.bytes = shape[0] * shape[1] * self.dtype.itemsize
        # An unguarded store of the last tile's rows goes as far as a tile of whole rows past the end.
        reach = min(m_tile * shape[1] * self.dtype.itemsize, _MAX_GUARD)
        guard = -(-max(_MIN_GUARD, reach) // C_ALIGNMENT) * C_ALIGNMENT
        total = guard + C_ALIGNMENT + self.bytes + guard
        self.buffer: DeviceArray = device.array(np.full(total, POISON, dtype=np.uint8))
        self.start = guard + -(self.buffer.address + guard) % C_ALIGNMENT
        self.address = self.buffer.address + self.start

    @property
    def nothing_read(self) -> Guards:
        return Guards(self.start, self.buffer.nbytes - self.start - self.bytes, "")

    def read(self) -> tuple[np.ndarray, Guards]:
        """C, and whether its surroundings are as they were."""
        data = self.buffer.numpy()
        end = self.start + self.bytes
        before, after = data[: self.start], data[end:]
        damage = []
        for band, where in ((before, "before its start"), (after, "past its end")):
            changed = np.flatnonzero(band != POISON)
            if changed.size:
                distance = self.start - int(changed[-1]) if band is before else int(changed[0]) + 1
                damage.append(f"{changed.size} bytes changed {where}, the nearest {distance} bytes off")
        c = data[self.start : end].view(self.dtype).reshape(self.shape)
        return c, Guards(before.size, after.size, " and ".join(damage))


def _complaint(finding: Finding) -> Complaint:
    lines = () if finding.line is None else (finding.line,)
    source = f" ({finding.source})" if finding.source else ""
    return Complaint(f"[{finding.code}] {finding.message}{source}", lines, lines, finding)


def _is_poison(values: np.ndarray) -> npt.NDArray[np.bool_]:
    data = np.ascontiguousarray(values)
    return (data.view(np.uint8).reshape(*data.shape, data.dtype.itemsize) == POISON).all(axis=-1)


def _instructions(kernel: Kernel) -> Iterator[Instruction]:
    return (each for each in walk([kernel.entry]) if isinstance(each, Instruction))


def _stores_to_global(opcode: str) -> bool:
    name, *modifiers = opcode.split(".")
    if name in ("st", "red"):
        return not any(part.startswith(("shared", "local", "param")) for part in modifiers)
    # Bulk copies name their destination first: cp.async.bulk.tensor.2d.global.shared::cta.
    spaces = [part for part in modifiers if part.startswith(("global", "shared"))]
    return name == "cp" and "bulk" in modifiers and spaces[:1] == ["global"]


def _multiplies(opcode: str) -> bool:
    return opcode.startswith(("tcgen05.mma.", "wgmma.mma_async.", "mma.sync."))


@contextmanager
def _timed(timings: dict[str, float], step: str) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    finally:
        timings[step] = time.perf_counter() - start
