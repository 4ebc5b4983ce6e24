"""What the text says of the registers that instructions read and write, for the checks of uninitialized registers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ptxgen.emulator.state.group import Group

#: Dependences of each quarter of a register: (register, quarter) pairs.
Quarters = Sequence[Sequence[tuple[int, int]]]


@dataclass(slots=True)
class Use:
    """What an instruction does to registers, by index: `vital` are those that it reads as addresses.

    `stores`: what it reads goes to memory. `adds` are those that it reads besides if `if_true` says so.
    For `taint`: `lanewise`; of a shuffle the `lanes` that give each lane its value, where they are constant; of some
    of what it writes the `quarters` of registers that each quarter depends on.
    """

    reads: frozenset[int]
    writes: frozenset[int]
    vital: frozenset[int]
    guarded: bool
    stores: bool
    adds: frozenset[int] = frozenset()
    if_true: Callable[[Group], NDArray[np.bool_]] | None = None
    lanewise: bool = False
    lanes: NDArray[np.int64] | None = None
    quarters: Mapping[int, Quarters] = field(default_factory=dict)


def tainted(uses: Iterable[Use], registers: frozenset[int]) -> frozenset[int]:
    """These registers, and all to which such instructions may write values derived from them."""
    through = [use for use in uses if use.lanewise or use.lanes is not None]
    found, before = set(registers), 0
    while len(found) > before:
        before = len(found)
        for use in through:
            if not use.reads.isdisjoint(found):
                found |= use.writes
    return frozenset(found)


def never_sure(
    blocks: Sequence[Sequence[Use]], successors: Sequence[Sequence[int]], entries: Mapping[int, frozenset[int]]
) -> frozenset[int]:
    """The registers that some instruction reads to which, by the text alone, nothing may have been written before.

    `entries` are the blocks in which functions begin, with the registers that hold their parameters.
    """
    read = {each for uses in blocks for use in uses for each in use.reads | use.adds}
    number = {each: bit for bit, each in enumerate(read)}

    def mask(registers: Set[int]) -> int:
        return sum(1 << number[each] for each in registers if each in number)

    # What a block reads first, and what it surely writes.
    early, sure = [0] * len(blocks), [0] * len(blocks)
    for index, uses in enumerate(blocks):
        first, written = set[int](), set[int]()
        for use in uses:
            first |= (use.reads | use.adds) - written
            if not use.guarded:
                written |= use.writes
        early[index], sure[index] = mask(first), mask(written)
    everything = (1 << len(number)) - 1
    before = [everything] * len(blocks)
    waiting = list(entries)
    for entry, parameters in entries.items():
        before[entry] = mask(parameters)
    while waiting:
        index = waiting.pop()
        after = before[index] | sure[index]
        for following in successors[index]:
            if before[following] & ~after:
                before[following] &= after
                waiting.append(following)
    unsure = 0
    for index in range(len(blocks)):
        unsure |= early[index] & ~before[index]
    return frozenset(each for each, bit in number.items() if unsure >> bit & 1)


def writers_of(uses: Sequence[Use], registers: frozenset[int]) -> Mapping[int, frozenset[int]]:
    """The numbers of the instructions that write each of some registers."""
    found: dict[int, set[int]] = {each: set() for each in registers}
    for number, use in enumerate(uses):
        for each in use.writes & registers:
            found[each].add(number)
    return {each: frozenset(numbers) for each, numbers in found.items()}
