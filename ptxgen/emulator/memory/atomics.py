"""Read-modify-write of many lanes at once, as if one after the other in the order of the lanes.

Each round serves the lanes that come next at their address, so that a round never has an address twice. Where the
operation is associative, a scan over the lanes of each address needs as many rounds as the logarithm of their number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[Any]
#: After so many lanes that succeed at an address the others take turns.
_SWAPS = 16
#: From the words in memory and the operands of the lanes to the new words.
Operation = Callable[..., Words]


def update(words: Words, index: NDArray[np.int64], operation: Operation, *operands: Words) -> Words:
    """Change `words[index]` by the operation for each lane in turn; gives the words that each lane found."""
    turns, most = _turns(index)
    found = np.empty((len(index), *words.shape[1:]), words.dtype)
    rounds: list[Any] = [slice(None)]
    if most > 1:
        rounds = np.split(np.argsort(turns, kind="stable"), np.cumsum(np.bincount(turns))[:-1])
    for lanes in rounds:
        at = index[lanes]
        found[lanes] = old = words[at]
        words[at] = operation(old, *(operand[lanes] for operand in operands))
    return found


def accumulate(words: Words, index: NDArray[np.int64], operation: Operation, operand: Words) -> Words:
    """As `update`, for an associative operation of one operand: f(f(a, b), c) = f(a, f(b, c))."""
    turns, most = _turns(index)
    if most <= 2:
        return update(words, index, operation, operand)
    order = np.lexsort((turns, index))
    place, turn, total = index[order], turns[order], operand[order]
    step = 1
    while step < most:  # after each step, `total` combines up to 2 * step operands that end at its own
        later = np.flatnonzero(turn >= step)
        total[later] = operation(total[later - step], total[later])
        step *= 2
    found = np.empty_like(operand)
    first = turn == 0
    base = words[place]
    before = np.concatenate([total[:1], total[:-1]])
    old = operation(base, before)
    old[first] = base[first]
    found[order] = old
    last = np.append(first[1:], True)
    words[place[last]] = operation(base[last], total[last])
    return found


def swap(words: Words, index: NDArray[np.int64], expected: Words, new: Words) -> Words:
    """As `update`, where each lane puts a new word in place of the one that it expects, if it finds that one.

    Lanes that fail between two that succeed are served together: of those that loop until they succeed most fail.
    """
    found = np.empty_like(expected)
    left = np.arange(len(index))
    for _ in range(_SWAPS):
        at = index[left]
        old = found[left] = words[at]
        hits = np.flatnonzero(expected[left] == old)
        if not len(hits):
            return found
        places, first = np.unique(at[hits], return_index=True)
        winners = hits[first]
        words[places] = new[left[winners]]
        place = np.minimum(np.searchsorted(places, at), len(places) - 1)
        left = left[(places[place] == at) & (np.arange(len(left)) > winners[place])]
    swapped = update(
        words, index[left], lambda old, *pair: np.where(old == pair[0], pair[1], old), expected[left], new[left]
    )
    found[left] = swapped
    return found


def _turns(index: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """How many lanes before each one have its address, and the largest number of lanes at an address."""
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    positions = np.arange(len(index))
    turns = np.empty(len(index), np.int64)
    turns[order] = positions - np.maximum.accumulate(np.where(first, positions, 0))
    return turns, int(turns.max(initial=0)) + 1
