"""Which instructions read other values than their partners, where two functions number their registers differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from ptxgen.sass.canonical import Canonical
from ptxgen.sass.flow import ENTRY, Flow, Register

#: What the operands of a pair of instructions say: (register in a, register in b), the results first.
_Named = list[tuple[Register, Register]]


def other_definitions(
    a: Flow, b: Flow, a_codes: Sequence[Canonical], b_codes: Sequence[Canonical], pairs: Mapping[int, int]
) -> set[int]:
    """The instructions of `a` that read or write another register than their partners in `b`.

    `pairs` gives the partner of each instruction. A result that nothing reads must have its own number. An instruction
    with the same register numbers as its partner counts only where paired definitions of what it reads disagree:
    a definition without a partner is a difference of its own.
    """
    named: dict[int, _Named] = {}
    for i, j in pairs.items():
        if a_codes[i].registers != b_codes[j].registers:
            named[i] = list(zip(a_codes[i].registers, b_codes[j].registers, strict=False))
    used = _used(a)
    partners = set(pairs.values())
    found: set[int] = set()
    for i, j in pairs.items():
        ones, others = a.definitions[i], b.definitions[j]
        if i not in named and not _alone(ones, pairs.keys()) and not _alone(others, partners):
            wrong = not _reads_agree(a, b, i, j, pairs, named)
        else:
            wrong = i in named and not (
                len(ones) == len(others)
                and _reads_agree(a, b, i, j, pairs, named)
                and _writes_agree(a, b, i, j, named[i], used)
            )
        if wrong:
            found.add(i)
    return found


def _alone(read: Mapping[Register, frozenset[int]], paired: Set[int]) -> bool:
    """Whether some register that is read may come from an instruction without a partner."""
    return any(each != ENTRY and each not in paired for sources in read.values() for each in sources)


def _reads_agree(a: Flow, b: Flow, i: int, j: int, pairs: Mapping[int, int], named: Mapping[int, _Named]) -> bool:
    """Whether every register that an instruction reads has the definitions that its partner sees."""
    ones, others = a.definitions[i], b.definitions[j]
    return len(ones) == len(others) and all(
        one in ones and other in others and _same_sources(ones[one], others[other], one, other, pairs, named)
        for one, other in _reads(a, i, named.get(i), b, j)
    )


def _used(flow: Flow) -> set[tuple[int, Register]]:
    """Results that some instruction reads: (index, register)."""
    return {(each, register) for read in flow.definitions for register, sources in read.items() for each in sources}


def _reads(a: Flow, i: int, named: _Named | None, b: Flow, j: int) -> list[tuple[Register, Register]]:
    """The registers that an instruction reads, with those of its partner in the same operands."""
    ones = a.function.instructions[i].registers
    if named is None:
        return [(register, register) for register in ones.reads]
    others = b.function.instructions[j].registers
    results = set(_results(named, ones.writes, others.writes))
    found: list[tuple[Register, Register]] = []
    bases: dict[Register, list[Register]] = {}
    for position, (one, other) in enumerate(named):
        if position in results and not (one in ones.reads and other in others.reads):
            continue
        bases.setdefault(one, []).append(other)
        if one in ones.reads or one != other:
            found.append((one, other))
    for register in ones.reads - {one for one, _ in found}:
        if (base := _base(register, bases)) is None:
            found.append((register, register))
            continue
        distance = register[1] - base[1]
        found += [(register, (file, number + distance)) for file, number in bases[base]]
    return found


def _results(named: _Named, writes: frozenset[Register], others: frozenset[Register]) -> list[int]:
    """Positions of the operands that are results: the first operand of each register that is written."""
    found: list[int] = []
    seen: set[Register] = set()
    for position, (one, other) in enumerate(named):
        if one in writes and one not in seen and other in others:
            found.append(position)
        seen.add(one)
    return found


def _base(register: Register, bases: Mapping[Register, object]) -> Register | None:
    """The operand that a register belongs to: an operand names the first of several, the others follow it."""
    return max((each for each in bases if each[0] == register[0] and each[1] <= register[1]), default=None)


def _same_sources(
    ones: frozenset[int],
    others: frozenset[int],
    one: Register,
    other: Register,
    pairs: Mapping[int, int],
    named: Mapping[int, _Named],
) -> bool:
    """Whether two reads see the same results: of paired instructions, and the same one of several results."""
    if frozenset(ENTRY if each == ENTRY else pairs.get(each, -2 - each) for each in ones) != others:
        return False
    return all(one == other if each == ENTRY or each not in named else _turns(one, other, named[each]) for each in ones)


def _turns(one: Register, other: Register, named: _Named) -> bool:
    """Whether an instruction that writes `one` has `other` as the same result in its partner."""
    return any(
        first[0] == one[0] and first[1] <= one[1] and (second[0], second[1] + one[1] - first[1]) == other
        for first, second in named
    )


def _writes_agree(a: Flow, b: Flow, i: int, j: int, named: _Named, used: set[tuple[int, Register]]) -> bool:
    """Whether results that nothing reads have the same numbers, and both write as many registers."""
    ones, others = a.function.instructions[i].registers, b.function.instructions[j].registers
    if len(ones.writes) != len(others.writes):
        return False
    return all(
        one == other or any((i, each) in used for each in ones.writes if each[0] == one[0] and each[1] >= one[1])
        for position, (one, other) in enumerate(named)
        if position in _results(named, ones.writes, others.writes)
    )
