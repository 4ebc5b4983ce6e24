"""cp.async: the copies that a thread has issued, and the groups in which it waits for them. PTX ISA 9.7.9.25.3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.engines.work import AsyncWork

Lanes = NDArray[np.bool_]


@dataclass(slots=True, eq=False)
class Copy:
    """The copies of one instruction for some lanes of a warp, and whether they are signaled to an mbarrier."""

    work: AsyncWork
    done: bool = False
    signaled: bool = False

    @property
    def lanes(self) -> Lanes:
        return self.work.lanes


@dataclass(slots=True, eq=False)
class CopyGroup:
    """The copies that some lanes committed together; it may be empty."""

    lanes: Lanes
    copies: list[Copy]


@dataclass(slots=True)
class WarpCopies:
    """The copies of a warp: those in no group yet, and the groups in order."""

    open: list[tuple[Copy, Lanes]] = field(default_factory=list)
    groups: list[CopyGroup] = field(default_factory=list)
    #: Callbacks, each with the copies that must complete first.
    watches: list[tuple[list[Copy], Callable[[], None]]] = field(default_factory=list)

    def add(self, copy: Copy) -> None:
        self.open.append((copy, copy.lanes))

    def commit(self, lanes: Lanes) -> None:
        """Each of these lanes makes a group of its copies that are in none, of no copies if there are none."""
        self.groups.append(CopyGroup(lanes, [copy for copy, left in self.open if any_set(left & lanes)]))
        self.open = [(copy, left & ~lanes) for copy, left in self.open if any_set(left & ~lanes)]

    def awaited(self, lanes: Lanes, pending: int) -> list[CopyGroup]:
        """The groups that must be done before at most the `pending` latest of each of these lanes are not."""
        later = np.zeros(32, np.int64)
        found: list[CopyGroup] = []
        for group in reversed(self.groups):
            if any_set(group.lanes & lanes & (later >= pending)):
                found.append(group)
            later += group.lanes
        return found

    def forget(self, groups: list[CopyGroup]) -> None:
        """Drop groups that are done and waited for."""
        self.groups = [group for group in self.groups if group not in groups]

    def of(self, lanes: Lanes) -> list[Copy]:
        """All copies of these lanes that have not been waited for, in groups or not, nor signaled."""
        self.open = [(copy, left) for copy, left in self.open if not copy.signaled]
        inside = [copy for group in self.groups for copy in group.copies if any_set(group.lanes & lanes)]
        return [copy for copy in inside if not copy.signaled] + [
            copy for copy, left in self.open if any_set(left & lanes)
        ]

    def when_done(self, copies: list[Copy], action: Callable[[], None]) -> None:
        """Do something once these copies are done, which some are not yet."""
        self.watches.append((copies, action))

    def notice(self) -> None:
        """A copy is done: do what waited for it."""
        ready = [action for copies, action in self.watches if all(copy.done for copy in copies)]
        self.watches = [watch for watch in self.watches if not all(copy.done for copy in watch[0])]
        for action in ready:
            action()
