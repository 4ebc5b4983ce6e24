"""Which instructions read other values than their partners, where two functions number their registers differently."""

from __future__ import annotations

from collections.abc import Mapping

from ptxgen.sass.dataflow import Dataflow, Read
from ptxgen.sass.flow import ENTRY, Register

#: A source without a partner.
_NONE = -2


def other_definitions(a: Dataflow, b: Dataflow, pairs: Mapping[int, int]) -> set[int]:
    """The instructions of `a` that read other results than their partners in `b`.

    `pairs` gives the partner of each instruction. A result that nothing reads must have its own number. What is read of
    an instruction without a partner, or with another predicate than its partner, does not count: that is a difference
    of its own, and decides which results arrive.
    """
    back = {j: i for i, j in pairs.items() if _guard(a, i) == _guard(b, j)}
    known = set(back.values())
    return {i for i, j in pairs.items() if not (_reads_agree(a, b, i, j, back, known) and _writes_agree(a, b, i, j))}


def _guard(side: Dataflow, index: int) -> str:
    return side.canonical[index].key.partition(" ")[0]


def swapped(a: Dataflow, b: Dataflow, i: int, j: int, pairs: Mapping[int, int]) -> bool:
    """Whether two instructions read the same results by operands whose order does not matter, in another order."""
    ones = {(a.named(i, each), pairs.get(each.source, each.source)) for each in a.reads[i]}
    return ones == {(b.named(j, each), each.source) for each in b.reads[j]}


def _reads_agree(a: Dataflow, b: Dataflow, i: int, j: int, back: Mapping[int, int], known: set[int]) -> bool:
    """Whether every operand has the results that its partner sees. `back`: partners that count, in `known`."""
    ones = a.reads[i]
    others = {
        Read(each.slot, ENTRY if each.source == ENTRY else back.get(each.source, _NONE), each.result, each.shift)
        for each in b.reads[j]
    }
    if ones == others:
        return True
    alone = {each.slot for each in others if each.source == _NONE}
    alone |= {each.slot for each in ones if each.source != ENTRY and each.source not in known}
    return {each for each in ones if each.slot not in alone} == {each for each in others if each.slot not in alone}


def _writes_agree(a: Dataflow, b: Dataflow, i: int, j: int) -> bool:
    """Whether both write as many registers, and results that nothing reads have the same numbers."""
    ones, others = (side.flow.function.instructions[at].registers.writes for side, at in ((a, i), (b, j)))
    if ones == others or a.flow.function.instructions[i].opcode == "CALL":
        return True
    if len(ones) != len(others):
        return False
    pairs = zip(a.canonical[i].registers, b.canonical[j].registers, strict=False)
    named = [(one, other) for one, other in pairs if one in ones and other in others and one != other]
    return all(_is_read(a, i, ones, one) and _is_read(b, j, others, other) for one, other in named)


def _is_read(side: Dataflow, index: int, writes: frozenset[Register], first: Register) -> bool:
    """Whether something reads a result, or one of the registers after it."""
    return any((index, each) in side.read for each in writes if each[0] == first[0] and each[1] >= first[1])
