"""The vector clock of a warp: the clocks of warps, and the asynchronous operations whose completion it has observed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import count_nonzero
from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.order.remote_clocks import ClusterEpoch, RemoteClocks
from ptxgen.syntax import Statement

#: So many of `VectorClock.unacquired` are kept apart.
_FEW = 64
#: The interval of an access that is not ordered even with its own thread: a cp.async or tcgen05.ld before its wait.
PENDING = 2**31 - 1


@dataclass(slots=True)
class AsyncOperation:
    """An asynchronous operation: what it is (`tensor copy`), where it was issued, for which CTA slot, by which warp,
    and by which lane of it if one alone has issued it.
    """

    number: int
    what: str
    statement: Statement
    slot: int
    swizzle: str | None = None
    warp: int | None = None
    lane: int | None = None
    #: The offset of the mbarrier on which its completion arrives, once that is known.
    mbarrier: int | None = None

    @property
    def cause_in_tensor_memory(self) -> frozenset[Hashable]:
        """The causes of findings about columns of tensor memory that are used too early."""
        columns = causes.columns(self.statement.line)
        return frozenset([columns] if self.mbarrier is None else [columns, causes.mbarrier(self.mbarrier)])

    @property
    def cause(self) -> frozenset[Hashable]:
        """The cause of findings that follow from a missing wait for it."""
        unfinished = causes.unfinished(self.statement.line)
        return frozenset([unfinished] if self.mbarrier is None else [unfinished, causes.mbarrier(self.mbarrier)])


@dataclass(slots=True, eq=False)
class VectorClock:
    """A point in happens-before: clocks by warp of the (resident) cluster, and operations observed to be complete.

    `remote` has the clocks of other clusters; most programs never acquire any. `tensor` has clocks that
    count for accesses to tensor memory alone, which relaxed synchronization between tcgen05.fence orders.
    `unacquired` is what would be acquired too if every strong access acquired (`strong_accesses`): few vector clocks,
    which are joined only where that is needed.
    `sequenced` is ordered before strong loads alone (`stale_loads`).
    """

    epoch: ClusterEpoch
    clocks: NDArray[np.int64]
    operations: set[int] = field(default_factory=set)
    remote: RemoteClocks | None = None
    tensor: NDArray[np.int64] | None = None
    #: Clocks covered by fences, by the level of their scope; later strong stores publish them. This and `unacquired`
    #: are replaced, never changed in place.
    covered: dict[int, VectorClock] = field(default_factory=dict)
    unacquired: dict[VectorClock, None] = field(default_factory=dict)
    sequenced: VectorClock | None = None
    #: The last result of `outside`: for which clocks, and which remote ones.
    _outside: tuple[bytes, RemoteClocks | None, RemoteClocks] | None = None

    @property
    def apart(self) -> bool:
        """Whether the clock has more than operations and the clocks of its own cluster."""
        return bool(self.covered or self.unacquired) or not (self.remote is self.tensor is self.sequenced is None)

    def is_like(self, other: VectorClock) -> bool:
        """Whether two clocks differ in operations and the clocks of their own cluster only."""
        return (
            self.remote is other.remote
            and self.tensor is other.tensor
            and (self.unacquired is other.unacquired or not (self.unacquired or other.unacquired))
            and self.sequenced is other.sequenced
            and (self.covered is other.covered or not (self.covered or other.covered))
        )

    def copy(self) -> VectorClock:
        return VectorClock(
            self.epoch,
            self.clocks.copy(),
            set(self.operations),
            self.remote,
            self.tensor,
            self.covered,
            self.unacquired,
            self.sequenced,
        )

    @property
    def for_tensor_memory(self) -> NDArray[np.int64]:
        """The clocks that count for accesses to tensor memory."""
        return self.clocks if self.tensor is None else np.maximum(self.clocks, self.tensor)

    def join(self, other: VectorClock) -> None:
        self._join_certain(other)
        self._join_rest(other)

    def join_all(self, others: Sequence[VectorClock]) -> None:
        """As `join` of each of some."""
        self._join_clocks_of(others)
        for each in others:
            if each.operations:
                self.operations |= each.operations
            if each.apart:
                if each.sequenced is not None:
                    self.join_sequenced(each.sequenced)
                self._join_rest(each)

    def _join_rest(self, other: VectorClock) -> None:
        """Acquire what is not certain, or counts for tensor memory alone."""
        if other.tensor is not None:
            self.join_tensor(other.epoch, other.tensor)
        if other.covered:
            for within, vclock in other.covered.items():
                self.cover(within, vclock)
        if other.unacquired:
            self.add_unacquired(other.unacquired)

    def _join_certain(self, other: VectorClock) -> None:
        """Acquire what is certain, and does not count for tensor memory alone."""
        self.join_clocks(other)
        if other.operations:
            self.operations |= other.operations
        if other.sequenced is not None:
            self.join_sequenced(other.sequenced)

    def join_tensor(self, epoch: ClusterEpoch, clocks: NDArray[np.int64]) -> None:
        """Acquire clocks that count for tensor memory alone; that of other clusters is out of reach."""
        if epoch is self.epoch:
            self.tensor = clocks.copy() if self.tensor is None else np.maximum(self.tensor, clocks)

    def take(self, other: VectorClock) -> None:
        """Acquire all but the clocks from another, which includes all of this."""
        if len(self.operations) < len(other.operations):
            self.operations |= other.operations
        self.remote, self.tensor, self.covered = other.remote, other.tensor, other.covered
        self.unacquired, self.sequenced = other.unacquired, other.sequenced

    def cover(self, within: int, vclock: VectorClock) -> None:
        """Acquire what a fence covers, which is not changed any more."""
        before = self.covered.get(within)
        self.covered = {**self.covered, within: vclock if before is None else before._with(vclock)}

    def add_unacquired(self, others: dict[VectorClock, None]) -> None:
        """Note what was released, but is not acquired, and is not changed any more."""
        self.unacquired = {**self.unacquired, **others} if self.unacquired else others
        if len(self.unacquired) > _FEW:
            self.join_unacquired()

    def join_unacquired(self) -> VectorClock | None:
        """All unacquired clocks merged into one; None if there are none."""
        if len(self.unacquired) > 1:
            first, *others = self.unacquired
            made = first.certain()
            made.join_all(others)
            self.unacquired = {made: None}
        return next(iter(self.unacquired), None)

    def _with(self, other: VectorClock) -> VectorClock:
        """The certain part of both clocks, as a new clock."""
        if self is other or (other.operations <= self.operations and other.sequenced is None and self.has(other)):
            return self
        made = self.certain()
        made._join_certain(other)
        return made

    def sequence(self, other: VectorClock) -> None:
        """Strong loads must see what another has observed."""
        plain = VectorClock(self.epoch, self.clocks * 0)
        plain.join_clocks(other)
        self.join_sequenced(plain)
        if other.sequenced is not None:
            self.join_sequenced(other.sequenced)

    def join_sequenced(self, other: VectorClock) -> None:
        """Strong loads must see this too: clocks that are not changed any more."""
        mine = self.sequenced
        if mine is None:
            self.sequenced = other
        elif mine is not other and not mine.has(other):
            self.sequenced = VectorClock(self.epoch, self.clocks * 0)
            self.sequenced.join_clocks(mine)
            self.sequenced.join_clocks(other)

    def certain(self) -> VectorClock:
        """A copy without `unacquired` and `covered`, and without what counts for tensor memory alone."""
        return VectorClock(self.epoch, self.clocks.copy(), set(self.operations), self.remote, sequenced=self.sequenced)

    def has_observed(self, epoch: ClusterEpoch, member: int, clock: int) -> bool:
        """Whether this has a warp of a cluster up to an interval of its."""
        if epoch is self.epoch:
            return bool(self.clocks[member] >= clock)
        return self.remote is not None and self.remote.has_observed(epoch, member, clock)

    def has(self, other: VectorClock) -> bool:
        """Whether this has all clocks of another; of clusters that have ended it may say no although it does."""
        if other.epoch is self.epoch and count_nonzero(other.clocks > self.clocks):
            return False
        theirs = other.remote if other.epoch is self.epoch else other.outside()
        return theirs is None or (self.remote is not None and self.remote.has(theirs))

    def outside(self) -> RemoteClocks:
        """The clocks that other clusters acquire from this."""
        before, clocks = self._outside, self.clocks.tobytes()
        if before is None or before[1] is not self.remote or before[0] != clocks:
            before = self._outside = clocks, self.remote, RemoteClocks.of(self.epoch, self.clocks, self.remote)
        return before[2]

    def join_clocks(self, other: VectorClock) -> None:
        """Acquire the clocks of another alone."""
        near = other.epoch is self.epoch
        if near:  # whose clocks include what it has acquired from others of this cluster
            np.maximum(self.clocks, other.clocks, out=self.clocks)
        theirs = other.remote if near else other.outside()
        if theirs is None or theirs is self.remote:
            return
        self.remote = theirs if self.remote is None else self.remote.joined(theirs)
        if not near and theirs.slots >> self.epoch.slot & 1:
            np.maximum(self.clocks, theirs.clocks(self.epoch), out=self.clocks)

    def _join_clocks_of(self, others: Sequence[VectorClock]) -> None:
        """As `join_clocks` of each of some."""
        remote = dict[RemoteClocks, None]() if self.remote is None else {self.remote: None}
        far = False
        for other in others:
            if other.epoch is self.epoch:
                np.maximum(self.clocks, other.clocks, out=self.clocks)
                if other.remote is not None:
                    remote[other.remote] = None
            else:
                remote[other.outside()] = None
                far = True
        if remote:
            first, *rest = remote
            self.remote = first.joined_all(rest)
            if far and self.remote.slots >> self.epoch.slot & 1:
                np.maximum(self.clocks, self.remote.clocks(self.epoch), out=self.clocks)
