"""Who waits for whom in a deadlock: which waits are the cause, and which follow from them."""

from __future__ import annotations

from collections.abc import Sequence


def causes_of(waits_for: Sequence[set[int]]) -> list[int]:
    """By wait, the one that it follows from in the end, itself if from none: of waits in a cycle the first, and of what
    a wait leads to a cycle, or a wait, that waits for nothing else.
    """
    reached = [_reach(waits_for, node) for node in range(len(waits_for))]
    ends = [node for node, others in enumerate(reached) if all(node in reached[other] for other in others)]
    return [min(min(reached[end]) for end in ends if end in others) for others in reached]


def _reach(waits_for: Sequence[set[int]], node: int) -> set[int]:
    """A node and all to which there is a way from it."""
    found, pending = {node}, [node]
    while pending:
        fresh = waits_for[pending.pop()] - found
        found |= fresh
        pending += fresh
    return found
