"""Barriers of a warp and communication among its lanes. PTX ISA 9.7.9.6, 9.7.13.2 and 9.7.13.8 to 14."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.arithmetic.single import NAN
from ptxgen.emulator.arrays import all_set, any_set
from ptxgen.emulator.checks.registry import barriers
from ptxgen.emulator.load.operands import Binder, Reader, Writer, constant
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Blocking, Passing
from ptxgen.emulator.state.convergence import Arrays, Compute, Wait, bits_of, flags_of
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.perturbation import shuffled_by
from ptxgen.instr import barrier, warp
from ptxgen.instr.model.operands.specification import value_of
from ptxgen.instr.model.types import TYPES

if TYPE_CHECKING:
    from ptxgen.emulator.schedule.scheduler import Scheduler
    from ptxgen.emulator.state.machine import Machine

_Flags = NDArray[np.bool_]
_Masks = NDArray[np.uint32]

_Reduction = warp.redux | warp.redux_bits | warp.redux_float
_Comparison = warp.vote | warp.vote_ballot | warp.match_any | warp.match_all
#: Instructions with a mask of the lanes that execute them together.
_Collective = barrier.bar_warp_sync | warp.elect | warp.shfl | _Reduction | _Comparison
_LANES = np.arange(32, dtype=np.uint32)
_BITS = np.uint32(1) << _LANES
_ALL = np.uint32(0xFFFFFFFF)


def _together(
    op: _Collective,
    binder: Binder,
    statement: syntax.Instruction,
    sources: Sequence[Reader],
    writers: Sequence[Writer | None],
    compute: Compute,
    converged: Callable[[Machine, NDArray[np.int64], _Flags, Any], None] | None = None,
) -> Blocking:
    """A blocking instruction at which the lanes of a mask converge: `compute` makes results of their `sources`.

    The `writers` write them; the last may have no result where all lanes of a warp converge. `converged` is called with
    the warps whose lanes have converged, these lanes, and their masks; None: the lanes exchange values.
    """

    def exchange(machine: Machine, indices: NDArray[np.int64], active: _Flags, masks: Any) -> None:
        machine.events.lanes_exchange(indices, active, statement)

    converged = converged or exchange
    mask = binder.source(op.mask, "u32")
    # The promise of .no_membermask_overlap changes no result, so lanes with and without it meet.
    name, signature = op.form.opcode, op.opcode_text.replace(".no_membermask_overlap", "")

    def key(index: int) -> object:
        return Wait(name, index)

    def write(g: Group, results: Arrays) -> None:
        for writer, result in zip(writers, results, strict=False):
            if writer is not None:
                writer(g, result)

    def run(g: Group, scheduler: Scheduler) -> Passing:
        named = mask(g)
        operands = [g.full(source(g)) for source in sources]
        active = g.active
        if g.mask is None and np.ndim(named) == 0 and named == _ALL and not g.machine.convergence.any:
            converged(g.machine, g.indices, active, named)
            write(g, compute(active, named, operands))
            return key, None
        masks = g.full(named, np.uint32)
        present = g.machine.present[g.indices]
        outside = active & ((masks & _BITS) == 0)
        if any_set(outside):
            masks = np.where(outside, masks | _BITS, masks)
            _report(g, outside, statement)
        missing = (masks & bits_of(present & ~active)[:, None]) != 0
        if not any_set(missing & active) and not g.machine.convergence.any:
            converged(g.machine, g.indices, active, masks)
            write(g, compute(active, masks, operands))
            return key, None
        return key, slowly(g, scheduler, masks, operands)

    def slowly(g: Group, scheduler: Scheduler, masks: _Masks, operands: Arrays) -> _Flags:
        """Warp by warp: some lanes are elsewhere, or have waited here."""
        convergence, passing = g.machine.convergence, np.zeros((g.size, 32), np.bool_)
        collected: Arrays = []
        for position, index in enumerate(g.indices.tolist()):

            def computed(active: _Flags, masks: _Masks, operands: Arrays, index: int = index) -> Arrays:
                converged(g.machine, np.array([index]), active, masks)
                return compute(active, masks, operands)

            going, results = convergence.exchange(
                index,
                signature,
                g.active[position],
                g.machine.present[index],
                masks[position],
                [each[position] for each in operands],
                computed,
            )
            passing[position] = going
            if any_set(going):
                collected = collected or [np.zeros((g.size, 32), each.dtype) for each in results]
                for whole, each in zip(collected, results, strict=True):
                    whole[position] = each
                scheduler.warps.wake(Wait(name, index))
        part = g.narrowed(passing)
        if part is not None:
            kept = np.isin(g.indices, part.indices)
            g.machine.effects += 1
            write(part, [each[kept] for each in collected])
        return passing

    return run


@semantics(barrier.bar_warp_sync, kind="blocking")
def synchronize(op: barrier.bar_warp_sync, binder: Binder, statement: syntax.Instruction) -> Blocking:
    def converged(machine: Machine, indices: NDArray[np.int64], active: _Flags, masks: Any) -> None:
        events = machine.events
        if np.ndim(masks) == 0:
            events.lanes_converge(indices)
            return
        if not events.observes("lane_groups_converge"):
            return
        left_out = bits_of(machine.present[indices])[:, None] & ~masks
        narrow = (active & (left_out != 0)).any(axis=1)
        if not all_set(narrow):
            events.lanes_converge(indices[~narrow])
        for position in np.flatnonzero(narrow):
            here = active[position]
            members = bits_of(here)
            events.lane_groups_converge(
                int(indices[position]), [int(mask & members) for mask in np.unique(masks[position][here])]
            )

    return _together(op, binder, statement, (), (), lambda active, masks, operands: [], converged)


def _report(g: Group, outside: _Flags, statement: syntax.Instruction) -> None:
    position = int(outside.any(axis=1).argmax())
    lanes = ", ".join(map(str, np.flatnonzero(outside[position])))
    access = g.machine.findings.access(
        "accessor", statement, int(g.indices[position]), lanes=int(bits_of(outside[position]))
    )
    g.machine.findings.report(
        barriers.WARP_MASK,
        statement,
        summary=f"lanes {lanes} execute {statement.opcode} with a mask that does not include them",
        rule="The result is undefined",
        accesses=(access,),
    )


def _members(active: _Flags, masks: _Masks) -> _Flags | None:
    """Whose operands count for each lane: (warps, 32, 32), None where it is all lanes that are there."""
    if not masks.ndim:  # the whole warp
        return None
    here = bits_of(active)[:, None]
    if all_set(((masks & here) == here) | ~active):
        return None
    return flags_of(masks) & active[:, None, :]


def _reduced(function: np.ufunc, active: _Flags, masks: _Masks, values: NDArray[Any], neutral: Any) -> NDArray[Any]:
    """A combination of the members' values, in every lane."""
    members = _members(active, masks)
    if not masks.ndim:
        return np.broadcast_to(function.reduce(values, axis=1, keepdims=True, dtype=values.dtype), values.shape)
    nothing = np.asarray(neutral, values.dtype)
    if members is None:
        filled = np.where(active, values, nothing)
        return np.broadcast_to(function.reduce(filled, axis=1, keepdims=True, dtype=values.dtype), filled.shape)
    return function.reduce(np.where(members, values[:, None, :], nothing), axis=2, dtype=values.dtype)


@semantics(warp.elect, kind="blocking")
def elect(op: warp.elect, binder: Binder, statement: syntax.Instruction) -> Blocking:
    """The first lane of the mask; which one it is, PTX leaves open."""
    d, p = binder.destination(op.d, "b32"), binder.destination(op.p, "pred")

    def compute(active: _Flags, masks: _Masks, operands: Arrays) -> Arrays:
        leader = _reduced(np.minimum, active, masks, np.broadcast_to(_LANES, active.shape), 32)
        return [leader, leader == _LANES]

    return _together(op, binder, statement, (), (d, p), compute)


def _sources(mode: str) -> Callable[[Arrays], Arrays]:
    """The manual's algorithm: segments of lanes by the mask in bits 8-12 of c, clamped by its bits 0-4.

    From b and c to the lane that gives each lane its value, and whether it is in its segment.
    """
    lane = _LANES.astype(np.int64)

    def compute(operands: Arrays) -> Arrays:
        offset, control = (each.astype(np.int64) for each in operands)
        offset, clamp, segment = offset & 31, control & 31, control >> 8 & 31
        highest = (lane & segment) | (clamp & ~segment)
        if mode == "up":
            wanted, inside = lane - offset, lane - offset >= highest
        else:
            wanted = {"down": lane + offset, "bfly": lane ^ offset, "idx": (lane & segment) | (offset & ~segment)}[mode]
            inside = wanted <= highest
        return [np.where(inside, wanted, lane), inside]

    return compute


def _exchanged(active: _Flags, masks: _Masks, values: NDArray[Any], chosen: NDArray[np.int64]) -> Arrays:
    """The values of the chosen lanes and, unless the whole warp takes part, the lanes whose values are undefined."""
    chosen = np.broadcast_to(chosen, active.shape)
    results: Arrays = [np.take_along_axis(values, chosen, axis=1)]
    if masks.ndim:
        takes_part = np.take_along_axis(active, chosen, axis=1) & (masks >> chosen.astype(np.uint32) & 1 != 0)
        results.append(np.where(takes_part, -1, chosen))
    return results


def _shuffle_operands(
    op: warp.shfl | warp.shfl_without_sync, binder: Binder
) -> tuple[list[Reader], list[Writer | None]]:
    sources = [binder.source(operand, "b32") for operand in (op.a, op.b, op.c)]
    p = binder.destination(op.p, "pred") if op.p is not None else None
    return sources, [binder.destination(op.d, "b32"), p]


@semantics(warp.shfl, kind="blocking")
def shuffle(op: warp.shfl, binder: Binder, statement: syntax.Instruction) -> Blocking:
    """The value of a lane that does not participate is undefined; here it is the value of that lane's register."""
    (a, *control), (d, p) = _shuffle_operands(op, binder)
    assert d is not None
    undefined = _undefined(d, statement)
    chosen_by = _sources(op.mode)
    if p is None and all(value_of(each) is not None for each in (op.b, op.c)):
        # Constants choose the same lanes each time.
        constants = [np.full((1, 32), constant(operand, TYPES["u32"])) for operand in (op.b, op.c)]
        chosen = binder.lanes = chosen_by(constants)[0][0]

        def choose(active: _Flags, masks: _Masks, operands: Arrays) -> Arrays:
            if not masks.ndim:
                return [operands[0][:, chosen]]
            return _exchanged(active, masks, operands[0], chosen)

        return _together(op, binder, statement, [a], [d, undefined], choose)

    def compute(active: _Flags, masks: _Masks, operands: Arrays) -> Arrays:
        chosen, inside = chosen_by(operands[1:])
        value, *undefined = _exchanged(active, masks, operands[0], chosen)
        return [value, inside, *undefined]

    return _together(op, binder, statement, [a, *control], [d, p, undefined], compute)


def _undefined(write: Writer, statement: syntax.Instruction) -> Writer:
    """What follows the result of a shuffle: the lanes from which lanes have got an undefined value, -1 for the others.

    A rerun puts other values there.
    """
    source = shuffled_by(statement)

    def mark(g: Group, sources: NDArray[np.int64]) -> None:
        wrong = g.active & (sources >= 0)
        part, machine = g.narrowed(wrong), g.machine
        if part is None:
            return
        machine.events.shuffle_undefined(g.indices, wrong, sources, statement)
        if machine.perturbation is not None and source in machine.perturbation.sources:
            values = np.zeros((part.size, 32), np.uint32)
            machine.perturbation.fill(values, source)
            write(part, values)

    return mark


@semantics(warp.shfl_without_sync)
def shuffle_active(
    op: warp.shfl_without_sync, binder: Binder, statement: syntax.Instruction
) -> Callable[[Group], None]:
    (a, *control), (d, p) = _shuffle_operands(op, binder)
    chosen_by = _sources(op.mode)

    def run(g: Group) -> None:
        chosen, inside = chosen_by([g.full(each(g)) for each in control])
        assert d is not None
        d(g, np.take_along_axis(g.full(a(g)), chosen, axis=1))
        if p is not None:
            p(g, inside)

    return run


#: The operations of redux, each with the value that changes nothing.
_REDUCTIONS: dict[str, tuple[np.ufunc, dict[str, int]]] = {
    "add": (np.add, {"u32": 0, "s32": 0}),
    "min": (np.minimum, {"u32": 2**32 - 1, "s32": 2**31 - 1}),
    "max": (np.maximum, {"u32": 0, "s32": -(2**31)}),
    "and": (np.bitwise_and, {"u32": 2**32 - 1}),
    "or": (np.bitwise_or, {"u32": 0}),
    "xor": (np.bitwise_xor, {"u32": 0}),
}


@semantics(warp.redux, warp.redux_bits, kind="blocking")
def reduce(op: warp.redux | warp.redux_bits, binder: Binder, statement: syntax.Instruction) -> Blocking:
    type = op.type if isinstance(op, warp.redux) else "u32"
    function, neutral = _REDUCTIONS[op.op]

    def compute(active: _Flags, masks: _Masks, operands: Arrays) -> Arrays:
        return [_reduced(function, active, masks, operands[0], neutral[type])]

    a, d = binder.source(op.a, type), binder.destination(op.d, type)
    return _together(op, binder, statement, (a,), (d,), compute)


@semantics(warp.redux_float, kind="blocking")
def reduce_float(op: warp.redux_float, binder: Binder, statement: syntax.Instruction) -> Blocking:
    """Compared as integers, in which -0 is less than +0; NaNs win or do not count."""
    a, d = binder.source(op.a, "f32"), binder.destination(op.d, "f32")
    smaller = op.op == "min"
    function = np.minimum if smaller else np.maximum
    limit = np.int32(2**31 - 1) if smaller else np.int32(-(2**31))

    def compute(active: _Flags, masks: _Masks, operands: Arrays) -> Arrays:
        value = np.abs(operands[0]) if op.abs else operands[0]
        nan = np.isnan(value)
        word = np.ascontiguousarray(value).view(np.int32)
        ordered = np.where(word < 0, word ^ np.int32(0x7FFFFFFF), word)
        best = _reduced(function, active, masks, np.where(nan, limit, ordered), limit)
        result = np.where(best < 0, best ^ np.int32(0x7FFFFFFF), best).view(np.float32)
        none = _reduced(np.logical_or if op.NaN else np.logical_and, active, masks, nan, not op.NaN)
        return [np.where(none, NAN, result)]

    return _together(op, binder, statement, (a,), (d,), compute)


def _votes(mode: str) -> Compute:
    def compute(active: _Flags, masks: _Masks, operands: Arrays) -> Arrays:
        (value,) = operands
        some = _reduced(np.logical_or, active, masks, value, False)
        every = _reduced(np.logical_and, active, masks, value, True)
        return [{"any": some, "all": every, "uni": some == every}[mode]]

    return compute


def _ballots(active: _Flags, masks: _Masks, operands: Arrays) -> Arrays:
    return [_reduced(np.bitwise_or, active, masks, np.where(operands[0], _BITS, np.uint32(0)), 0)]


@semantics(warp.vote, warp.vote_ballot, kind="blocking")
def vote(op: warp.vote | warp.vote_ballot, binder: Binder, statement: syntax.Instruction) -> Blocking:
    ballot = isinstance(op, warp.vote_ballot)
    a, d = binder.predicate(op.a), binder.destination(op.d, "b32" if ballot else "pred")
    return _together(op, binder, statement, (a,), (d,), _ballots if ballot else _votes(op.mode))


@semantics(warp.vote_without_sync, warp.vote_ballot_without_sync)
def vote_active(
    op: warp.vote_without_sync | warp.vote_ballot_without_sync, binder: Binder, statement: syntax.Instruction
) -> Callable[[Group], None]:
    """Among the lanes that the emulator runs together here."""
    ballot = isinstance(op, warp.vote_ballot_without_sync)
    a, d = binder.predicate(op.a), binder.destination(op.d, "b32" if ballot else "pred")
    compute = _ballots if ballot else _votes(op.mode)

    def run(g: Group) -> None:
        active = g.active
        masks = np.broadcast_to(bits_of(active)[:, None], active.shape)
        d(g, compute(active, masks, [g.full(a(g))])[0])

    return run


@semantics(warp.match_any, warp.match_all, kind="blocking")
def match(op: warp.match_any | warp.match_all, binder: Binder, statement: syntax.Instruction) -> Blocking:
    a, d = binder.source(op.a, op.type), binder.destination(op.d, "b32")
    if isinstance(op, warp.match_any):
        writers: list[Writer | None] = [d]
    else:
        writers = [d, binder.destination(op.p, "pred") if op.p is not None else None]

    def compute(active: _Flags, masks: _Masks, operands: Arrays) -> Arrays:
        (value,) = operands
        members = flags_of(masks) & active[:, None, :]
        same = (value[:, :, None] == value[:, None, :]) & members
        if isinstance(op, warp.match_any):
            return [bits_of(same)]
        every = (same | ~members).all(axis=2)
        return [np.where(every, bits_of(members), np.uint32(0)), every]

    return _together(op, binder, statement, (a,), writers, compute)


@semantics(warp.activemask)
def active_mask(op: warp.activemask, binder: Binder, statement: syntax.Instruction) -> Callable[[Group], None]:
    """The lanes that the emulator runs together here; which they are, PTX leaves open (9.7.13.12).

    With `random`, lanes from paths that have joined without a .sync since then get the mask of a part of them: hardware
    need not have reconverged them. A count that assumes it shows as a wrong result.
    """
    program = binder.program
    d = binder.destination(op.d, "b32")

    def run(g: Group) -> None:
        active, timeline = g.active, g.machine.timeline
        apart = timeline.schedule == "random" and id(statement) in program.unconverged
        if apart and timeline.random.getrandbits(1):
            part = flags_of(np.uint32(timeline.random.getrandbits(32)))
            masks = np.where(part, bits_of(active & part)[:, None], bits_of(active & ~part)[:, None])
            d(g, masks)
        else:
            d(g, np.broadcast_to(bits_of(active)[:, None], (g.size, 32)))

    return run
