"""Which instructions stand in another order than their partners, and where a branch goes in spite of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from ptxgen.sass.flow import Flow


def moved(a: Flow, pairs: Mapping[int, int]) -> dict[int, int]:
    """By how many places in a block each instruction moved that is not among the most that kept their order.

    Places are counted in those that kept it; a negative number is one towards the beginning.
    """
    found: dict[int, int] = {}
    for block in a.blocks:
        ones = [i for i in range(block.start, block.end) if i in pairs]
        partners = [pairs[i] for i in ones]
        kept = _longest(partners)
        if len(kept) == len(ones):
            continue
        places = [partners[each] for each in kept]
        staying = set(kept)
        before = 0
        for position, i in enumerate(ones):
            if position in staying:
                before += 1
            else:
                found[i] = bisect_left(places, partners[position]) - before
    return found


def _longest(values: Sequence[int]) -> list[int]:
    """The positions of a longest increasing part of a sequence."""
    last: list[int] = []  # by length, the position of the least value that ends a part so long
    ends: list[int] = []
    previous: list[int] = []
    for position, value in enumerate(values):
        length = bisect_left(ends, value)
        previous.append(last[length - 1] if length else -1)
        last[length : length + 1] = [position]
        ends[length : length + 1] = [value]
    found: list[int] = []
    position = last[-1] if last else -1
    while position >= 0:
        found.append(position)
        position = previous[position]
    return found[::-1]


def arrival(target: int, staying: Sequence[bool]) -> int:
    """The first instruction from a branch target on that has a partner and kept its place; the end if none has."""
    while target < len(staying) and not staying[target]:
        target += 1
    return target
