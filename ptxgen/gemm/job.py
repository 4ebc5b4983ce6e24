"""A GEMM as a job: random inputs, one launch on any device, and every element of C compared with NumPy.

`GemmJob.run` and its short form `run_gemm` give a `GemmResult`, which says what is wrong and which lines of the PTX
have to do with it. Executing is left to the device, showing to whoever asked.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ptxgen.device import Device, DeviceArray, Finding, Kernel, LaunchReport
from ptxgen.device.placed import Placed
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.plan import GemmPlan
from ptxgen.gemm.problem import GemmProblem
from ptxgen.gemm.reference.comparison import BLOCK, POISON, Comparison, compare, line_list, merged
from ptxgen.gemm.reference.plain import Reference
from ptxgen.gemm.reference.scaled import ScaledReference, reference_of
from ptxgen.gemm.scales import packed_bytes, unpack
from ptxgen.gemm.types import TYPES
from ptxgen.instr.model.recognize import traits_of
from ptxgen.instr.model.traits import Traits
from ptxgen.syntax import Instruction, walk

#: C starts on a multiple of this, as the driver's own allocations do.
C_ALIGNMENT = 256
_SCALARS = {"alpha": 3, "beta": -2}
_MIN_GUARD = 4096
_MAX_GUARD = 1 << 22


@dataclass(frozen=True)
class Guards:
    """The bytes around C and between its rows, which no kernel may touch; `damage` says what changed, if anything."""

    before: int
    after: int
    damage: str

    @property
    def ok(self) -> bool:
        return not self.damage


@dataclass(frozen=True)
class Diagnosis:
    """An error or advice about a run, with its PTX lines; `shown` are the lines to display.

    `finding` is the device's finding, if it comes from the device.
    """

    message: str
    lines: tuple[int, ...] = ()
    shown: tuple[int, ...] = ()
    finding: Finding | None = None

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class GemmResult:
    """The result of a job. `comparison` is None if the kernel did not complete; `timings` are in seconds."""

    problem: GemmProblem
    seed: int
    kernel: Kernel
    launch: LaunchReport
    comparison: Comparison | None
    guards: Guards
    tolerance_reason: str
    timings: dict[str, float] = field(default_factory=dict)
    #: Where the matrices lie on the device.
    arrays: Mapping[str, Placed] = field(default_factory=dict)
    #: Of the scales of a quantized C.
    scale_comparison: Comparison | None = None

    @property
    def ok(self) -> bool:
        """Whether the device found nothing wrong, every element is right and the surroundings of C are untouched."""
        return self.launch.ok and self.is_right

    @property
    def is_right(self) -> bool:
        """Whether every element is right and the surroundings of C are untouched, whatever the findings."""
        compared = (self.comparison, self.scale_comparison)
        right = self.comparison is not None and not any(each.wrong for each in compared if each is not None)
        return right and self.guards.ok

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
        return tuple(each.line for each in _instructions(self.kernel) if _stores_to_global(traits_of(each.opcode)))

    @cached_property
    def mma_lines(self) -> tuple[int, ...]:
        """Lines of the PTX that multiply."""
        return tuple(each.line for each in _instructions(self.kernel) if _multiplies(traits_of(each.opcode)))

    @property
    def errors(self) -> list[Diagnosis]:
        """The device's errors, then wrong elements of C, then writes outside C. Empty exactly when `ok`."""
        found = [_diagnosis(each) for each in self.launch.findings if each.severity == "error"]
        if not self.launch.ok and not found:
            found.append(Diagnosis(f"the launch ended as {self.launch.status}, and the device does not say where"))
        comparison = self.comparison
        if comparison is not None and comparison.wrong:
            first = (*self.mma_lines[:1], *self.store_lines[:1])
            found.append(Diagnosis(self._wrong_message(comparison), (*self.mma_lines, *self.store_lines), first))
        scales = self.scale_comparison
        if scales is not None and scales.wrong:
            words = f"{scales.wrong} of {scales.elements} scales of C are wrong; the first: {scales.first_wrong}"
            found.append(Diagnosis(f"{words}; {scales.pattern}", self.store_lines, self.store_lines[:1]))
        if not self.guards.ok:
            found.append(
                Diagnosis(
                    f"the kernel wrote outside C: {self.guards.damage}; C is stored by {line_list(self.store_lines)}",
                    self.store_lines,
                    self.store_lines[:1],
                )
            )
        return found

    @property
    def advice(self) -> list[Diagnosis]:
        """The device's advice, which may explain a wrong result, and stale values if C is wrong."""
        found = [_diagnosis(each) for each in self.launch.findings if each.severity == "advice"]
        if self.wrong and self.launch.stale_values:
            lines = tuple(sorted({each.line for each in self.launch.stale_values}))
            found.append(Diagnosis(self.launch.stale_values_text, lines, lines[:1]))
        return found

    def summary(self) -> str:
        """The outcome as text: one line, then errors and advice, with PTX lines."""
        problem = self.problem
        sizes = ", ".join(f"{name} {value:.12g}" for name, value in problem.sizes.items())
        lines = [f"{self.kernel.name}, {sizes}: {self.status}"]
        for severity, diagnoses in (("error", self.errors), ("advice", self.advice)):
            for each in diagnoses:
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
    """A plan applied to a problem with random inputs; the same seed gives the same inputs. Raises PlanError.

    `more`: other fields of GemmProblem. Unless it says otherwise, alpha is 3 and beta −2, so that a kernel that drops
    one is wrong. Lines of matrices start on 16 bytes where the kernel requires it, whatever M, N and K are.
    `whole_range`: elements and scales of a block-scaled problem are over all values of their types, NaN too.
    """

    plan: GemmPlan
    m: int
    n: int
    k: int
    seed: int = 0
    more: Mapping[str, Any] = field(default_factory=dict)
    whole_range: bool = False

    def __post_init__(self) -> None:
        _ = self.problem  # raises PlanError for sizes that the plan does not take
        if self.whole_range and not self.plan.scales:
            raise PlanError("only block-scaled kernels take elements and scales over their whole range")

    @cached_property
    def problem(self) -> GemmProblem:
        return self.plan.padded_problem(self.m, self.n, self.k, **{**_SCALARS, **self.more})

    @cached_property
    def reference(self) -> Reference:
        return reference_of(self.problem, self.seed, whole_range=self.whole_range)

    @property
    def host_bytes(self) -> int:
        """Roughly the memory that a run takes: inputs, their copies on an emulated device, C, and the comparison."""
        a, b, c = (TYPES[self.problem.dtype(name)].bytes for name in ("a", "b", "c"))
        inputs = self.k * (self.m * (4 + 3 * a) + self.n * (4 + 3 * b))
        source = 12 if self.plan.epilogue.combination.source else 0
        inputs += (self.problem.groups - 1) * self.k * self.n * (4 + 3 * b)
        per_batch = inputs + self.m * self.n * (3 * c + 1 + source)
        return self.problem.batches * per_batch + BLOCK * (8 * BLOCK * 6 + 4 * 8 * self.k)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the arrays of a result, before there is one."""
        lines, line = self.problem.extents("c")
        return {**{name: self.reference.shape(name) for name in ("a", "b")}, "c": (self.problem.batches * lines, line)}

    def run(self, device: Device, *, text: str | None = None) -> GemmResult:
        """Launch on a device and compare. `text` replaces the plan's PTX, for trying an edited kernel.

        Raises PtxSyntaxError or KernelError where such a text is no kernel, KernelArgumentError where it takes other
        parameters.
        """
        plan, timings = self.plan, {}
        with _timed(timings, "render"):
            source = plan.text if text is None else text
            kernel = Kernel.from_ptx(source, regions=plan.shared.named)
        with _timed(timings, "inputs"):
            device_a, device_b = (device.array(self.reference.lines(name)) for name in ("a", "b"))
            source = None if self.reference.source is None else device.array(self.reference.lines("source"))
            bias = None if self.reference.bias is None else device.array(self.reference.bias)
            order = None if self.problem.tile_order is None else device.array(self.problem.tile_order)
            groups = None if self.reference.groups is None else device.array(self.reference.groups)
            scales = tuple(device.array(each) for each in self.reference.scales)
            words = self.problem.workspace_words
            workspace = device.array(np.zeros(words, np.uint32)) if words else None
            guarded = _GuardedOutput(device, self.problem)
            c_scales = self._place_for_scales(device)
        with _timed(timings, "encode"):
            arguments = self.problem.arguments(
                device_a, device_b, guarded.address, source, bias, order, scales, c_scales, workspace, groups
            )
        with _timed(timings, "launch"):
            launch = device.launch(
                kernel, self.problem.grid, self.problem.block, arguments, shared_bytes=plan.shared.bytes
            )
        comparison, scale_comparison, guards = None, None, guarded.nothing_read
        if launch.status in ("ok", "findings"):  # else C is half done, and says nothing
            with _timed(timings, "compare"):
                c, guards = guarded.read()
                guards = self._with_skipped(c, guards)
                comparison = self.compare(c)
                scale_comparison = None if c_scales is None else self._compare_scales(c_scales.numpy())
        reason = self.reference.tolerance_reason
        arrays = {name: Placed.of(name, array) for name, array in (("a", device_a), ("b", device_b))}
        arrays["c"] = guarded.placed
        return GemmResult(
            self.problem, self.seed, kernel, launch, comparison, guards, reason, timings, arrays, scale_comparison
        )

    def _place_for_scales(self, device: Device) -> DeviceArray | None:
        """Poison where the kernel puts the scales of C, if it has any."""
        epilogue, problem = self.plan.epilogue, self.problem
        if not epilogue.quantizes:
            return None
        return device.array(np.full(packed_bytes(problem.m, problem.n, epilogue.scaled_type), POISON, np.uint8))

    def _compare_scales(self, blocks: np.ndarray) -> Comparison:
        """Compare the scales of C, in blocks, with the reference."""
        type = self.plan.epilogue.scaled_type
        assert isinstance(self.reference, ScaledReference)
        expected = self.reference.c_scales().astype(np.float64)
        found = unpack(blocks, self.problem.m, self.problem.n, type)
        tile = self.plan.m_tile, self.plan.n_tile // type.block
        return compare(found, lambda rows, columns: (expected[rows, columns], 0 * expected[rows, columns]), tile)

    def compare(self, c: np.ndarray) -> Comparison:
        """Compare C (M×N, of all batches one after the other) with the reference."""
        tile, m = (self.plan.m_tile, self.plan.n_tile), self.problem.m
        batches = [
            (batch, c[batch * m : batch * m + self.reference.stored_rows(batch)])
            for batch in range(self.problem.batches)
        ]
        return merged([compare(part, partial(self.reference.expect, batch=batch), tile) for batch, part in batches])

    def _with_skipped(self, c: np.ndarray, guards: Guards) -> Guards:
        """The rows of C whose tiles are skipped belong to its surroundings."""
        m, changed = self.problem.m, 0
        for batch in range(self.problem.batches):
            skipped = c[batch * m + self.reference.stored_rows(batch) : (batch + 1) * m]
            changed += int(np.count_nonzero(np.ascontiguousarray(skipped).view(np.uint8) != POISON))
        if not changed:
            return guards
        damage = f"{changed} bytes changed in rows of tiles that are to be skipped"
        return replace(guards, damage=" and ".join(filter(None, (guards.damage, damage))))


def run_gemm(
    device: Device, plan: GemmPlan, m: int, n: int, k: int, *, seed: int = 0, text: str | None = None, **more: Any
) -> GemmResult:
    """Run a plan on random inputs and compare: `GemmJob(plan, m, n, k, seed, more).run(device, text=text)`."""
    return GemmJob(plan, m, n, k, seed, more).run(device, text=text)


class _GuardedOutput:
    """C in a larger buffer of poison: what lies around it and between its rows shows stray stores."""

    def __init__(self, device: Device, problem: GemmProblem) -> None:
        self.lines, line = problem.extents("c")
        self.shape, self.leading = (problem.batches * self.lines, line), problem.leading("c")
        self.transposed = problem.plan.config.c_major == "m"
        self.dtype = TYPES[problem.plan.c_dtype].numpy
        self.bytes = self.shape[0] * self.leading * self.dtype.itemsize
        # An unguarded store of the last tile's rows goes as far as a tile of whole rows past the end.
        reach = min(problem.plan.m_tile * self.leading * self.dtype.itemsize, _MAX_GUARD)
        guard = -(-max(_MIN_GUARD, reach) // C_ALIGNMENT) * C_ALIGNMENT
        total = guard + C_ALIGNMENT + self.bytes + guard
        self.buffer: DeviceArray = device.array(np.full(total, POISON, dtype=np.uint8))
        self.start = guard + -(self.buffer.address + guard) % C_ALIGNMENT
        self.address = self.buffer.address + self.start

    @property
    def placed(self) -> Placed:
        size = self.dtype.itemsize
        return Placed("c", self.address, self.shape, (self.leading * size, size), size)

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
        rows = data[self.start : end].reshape(self.shape[0], -1)
        width = self.shape[1] * self.dtype.itemsize
        if changed := int(np.count_nonzero(rows[:, width:] != POISON)):
            damage.append(f"{changed} bytes changed between its rows")
        c = np.ascontiguousarray(rows[:, :width]).view(self.dtype)
        if self.transposed:
            c = c.reshape(-1, self.lines, self.shape[1]).swapaxes(1, 2).reshape(-1, self.lines)
        return c, Guards(before.size, after.size, " and ".join(damage))


def _diagnosis(finding: Finding) -> Diagnosis:
    lines = () if finding.line is None else (finding.line,)
    source = f" ({finding.source})" if finding.source else ""
    return Diagnosis(f"[{finding.code}] {finding.message}{source}", lines, lines, finding)


def _instructions(kernel: Kernel) -> Iterator[Instruction]:
    return (each for each in walk([kernel.entry]) if isinstance(each, Instruction))


def _stores_to_global(traits: Traits | None) -> bool:
    """Whether it only writes memory that may be global; atomics with a result are locks and counters."""
    return traits is not None and not traits.writes and not traits.spaces_written.isdisjoint(("global", "generic"))


def _multiplies(traits: Traits | None) -> bool:
    return traits is not None and traits.multiplies


@contextmanager
def _timed(timings: dict[str, float], step: str) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    finally:
        timings[step] = time.perf_counter() - start
