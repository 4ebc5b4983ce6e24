"""Which instructions decide nothing where data are not computed: neither control flow, nor addresses, nor what orders.

For timing: the machine schedule counts their cycles, and nothing executes them.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass

from ptxgen.emulator.load.program import Operation, Program
from ptxgen.syntax import Statement

#: Instructions that pass a carry on, which is no register here.
_CARRIES = re.compile(r"\.cc\b|^(addc|subc|madc)\b")
#: Instructions of several lanes that only compute registers, and those that load them from memory.
_OF_LANES = re.compile(r"^(shfl|vote|match|redux)\.")
_LOADS = re.compile(r"^(ld|ldu|ldmatrix|tcgen05\.ld)\b")
#: State spaces that generic addresses reach.
_GENERIC = frozenset({"global", "shared", "local", "generic"})


@dataclass(frozen=True)
class Unused:
    """The instructions of a program that need not be executed, and the statements whose loads decide something.

    Where one of `loads` reads bytes of shared memory that a copy has written, the copies must move their data.
    """

    operations: frozenset[Operation]
    loads: frozenset[Statement]

    @classmethod
    def of(cls, program: Program) -> Unused:
        """Of a program, found once.

        Whatever branches, accesses memory or synchronizes is executed; so is what its predicates, addresses and other
        operands come from, but not what it only stores where no used register is loaded from, nor what an MMA adds up:
        a branch on the result of an MMA, in registers or tensor memory, finds what was there before.
        The order of instructions plays no role: a register counts as used if anything uses it.
        """
        found = program.found.get(cls)
        if not isinstance(found, Unused):
            found = program.found[cls] = _found(program)
        return found


def _found(program: Program) -> Unused:
    accumulators = program.accumulators.keys()
    makers = [each for each in program.operations if _only_registers(each, accumulators)]
    others = set(program.operations).difference(makers)
    loaded = frozenset[str]()
    while True:
        used = set[int]().union(*(_used(each, accumulators, loaded) for each in others))
        left = makers
        used.update(*(each.use.vital | each.guard_reads for each in left if not _is_dropped(each)))
        while reached := {each for each in left if not _written(each).isdisjoint(used)}:
            used.update(*map(_read, reached))
            left = [each for each in left if each not in reached]
        spaces = set[str]().union(
            *(_spaces(each) for each in program.operations if not _written(each).isdisjoint(used))
        )
        if spaces <= loaded:
            deciding = (each for each in program.operations if _spaces(each) and not _written(each).isdisjoint(used))
            return Unused(
                frozenset(each for each in left if _is_dropped(each)), frozenset(each.statement for each in deciding)
            )
        loaded |= spaces


def _only_registers(operation: Operation, accumulators: Set[int]) -> bool:
    """Whether all that an instruction does is to write registers, and perhaps to load them or to join its lanes."""
    traits, opcode = operation.traits, operation.statement.opcode
    if traits is None or not _written(operation) or operation.kind == "terminator":
        return False
    if traits.move and not accumulators.isdisjoint(_read(operation) | _written(operation)):
        return False  # it may wait for an MMA
    if _OF_LANES.match(opcode) or _LOADS.match(opcode):
        return True
    does_more = traits.effects or traits.asynchronous or traits.synchronizes or traits.control is not None
    return operation.kind == "plain" and not does_more and not _CARRIES.search(opcode)


def _is_dropped(operation: Operation) -> bool:
    """Whether nothing executes such an instruction if nothing uses what it writes: accesses are events."""
    traits = operation.traits
    return operation.kind == "plain" and traits is not None and not traits.effects


def _spaces(operation: Operation) -> frozenset[str]:
    """The state spaces that an instruction loads registers from; of MMAs none, whose results are not computed, nor are
    those that are loaded from tensor memory."""
    traits = operation.traits
    if traits is None or traits.multiplies or operation.statement.opcode.startswith("mbarrier"):
        return frozenset()
    spaces = traits.spaces_read - {"tmem"}
    return spaces | _GENERIC if "generic" in spaces else spaces


def _read(operation: Operation) -> frozenset[int]:
    return operation.use.reads | operation.use.adds | operation.reads | operation.guard_reads


def _written(operation: Operation) -> frozenset[int]:
    return operation.use.writes | operation.writes


def _used(operation: Operation, accumulators: Set[int], loaded: Set[str]) -> frozenset[int]:
    """The registers that matter to an instruction that is executed."""
    reads, traits = _read(operation), operation.traits
    if traits is None:
        return reads
    if traits.multiplies:
        return reads - accumulators
    spaces = traits.spaces_written
    if "generic" in spaces:
        spaces |= _GENERIC
    if operation.use.stores and not operation.writes and not traits.synchronizes and spaces.isdisjoint(loaded):
        return operation.use.vital | operation.guard_reads
    return reads
