"""Keys of what goes wrong: findings with a key in common may follow from one another (`Findings.report`)."""

from __future__ import annotations

from collections.abc import Hashable

#: One key, or several: a set relates findings, a single key makes all findings of a check that have it one.
Cause = Hashable | frozenset[Hashable]

#: No warp can proceed.
DEADLOCK = ("deadlock",)
#: Several warps store the same bytes, as one consumer that a compiler duplicates.
EQUAL_STORES = ("equal stores",)
#: Stores of the bytes that are there already race with loads, as those of constant inputs do.
UNCHANGED = ("unchanged by a store",)
#: A barrier is missing between the inits of mbarriers and their uses.
UNSYNCHRONIZED_INIT = ("unsynchronized init",)
#: Inits of mbarriers go to other addresses than their uses.
WRONG_INIT = ("wrong init",)
#: Arrivals at the barrier of a cluster and waits there do not alternate.
CLUSTER_BARRIER = ("cluster barrier",)
#: A CTA exits while peer CTAs use its shared memory.
PEER_EXIT = ("peer exit",)
#: Why an mbarrier may not be initialized where it is used.
NO_INIT = frozenset([UNSYNCHRONIZED_INIT, WRONG_INIT, CLUSTER_BARRIER])
#: Registers of a tcgen05.ld are read without tcgen05.wait::ld.
UNAWAITED_LOADS = ("unawaited loads",)
#: A griddepcontrol.wait is missing in the grid, or in the next one.
GRID_WAIT = {"before": ("grid wait",), "after": ("grid wait of the next grid",)}
#: Inits of mbarriers that no fence has shown to the async proxy.
UNFENCED_INIT = ("unfenced init",)


class Groups:
    """Keys of things that belong together: those of one call, and of calls that share one of them."""

    def __init__(self) -> None:
        self._keys: dict[Hashable, Hashable] = {}

    def of(self, *members: Hashable) -> Hashable:
        """The key of the group of these: that of the first which has one."""
        key = next((self._keys[each] for each in members if each in self._keys), members[0])
        for each in members:
            self._keys.setdefault(each, key)
        return key


def mbarrier(offset: int) -> Hashable:
    """What goes wrong with the mbarrier at an offset of shared memory, in whatever CTA."""
    return "mbarrier", offset


def miscounted(offset: int) -> Hashable:
    """Phases of the mbarrier at an offset complete too early, or waits for them pass too early."""
    return "miscounted", offset


def of_miscounted(offset: int) -> frozenset[Hashable]:
    """All that goes wrong with an mbarrier whose counts are wrong."""
    return frozenset([DEADLOCK, mbarrier(offset), miscounted(offset)])


def ended(offset: int) -> Hashable:
    """The mbarrier at an offset is invalidated, or made anew, while it may be in use."""
    return "ended", offset


def stuck(offset: int) -> Hashable:
    """The mbarrier at an offset lacks arrivals in one CTA, which may have gone to those of others."""
    return "stuck", offset


def refilled(offset: int) -> Hashable:
    """A copy that completes on the mbarrier at an offset overwrites what is in use, and its warp waits for nothing."""
    return "refilled", offset


#: Accesses that may still be reading where a copy writes.
READERS = ("threads", "the tensor core", "copies")


def in_use(line: int, reader: str) -> Hashable:
    """A copy of a line overwrites what is being read there, by one of `READERS`."""
    return "in use", line, reader


def early(warp: int) -> Hashable:
    """A warp reads what it has not waited for, and so gives it back too early."""
    return "early", warp


def flag(line: int) -> Hashable:
    """What goes wrong with the strong access to a flag in a line."""
    return "flag", line


def wait(line: int) -> Hashable:
    """What goes wrong with the wait in a line."""
    return "wait", line


def barrier(name: int) -> Hashable:
    """What goes wrong with a barrier of CTAs, by its number."""
    return "barrier", name


def unfinished(line: int) -> Hashable:
    """What an operation of a line is still working on is used: nobody has waited for it."""
    return "unfinished", line


def columns(line: int) -> Hashable:
    """Columns of tensor memory are used, or freed, in which an operation of a line is still working."""
    return "columns", line


def freed(line: int) -> Hashable:
    """Columns of tensor memory that a tcgen05.dealloc of a line frees are in use then, or later."""
    return "freed", line


def between(earlier: int, clock: int, later: int, now: int) -> Hashable:
    """What a warp did in one interval and another in one of its own are unordered: one barrier is missing."""
    return "between", earlier, clock, later, now


def sites(slot: int) -> Hashable:
    """Different bar.sync of a CTA complete a barrier together: from then on none orders what the source says."""
    return "sites", slot


def word(address: int) -> Hashable:
    """Strong and weak accesses of the word at an address race: a counter, flag or lock."""
    return "word", address


def in_flight(actor: int, clock: int) -> Hashable:
    """Copies (cp.async) of a warp are in flight in an interval of its: one wait is missing for all."""
    return "in flight", actor, clock


#: The first part of the causes of races between lanes.
LANES = "lanes"


def lanes(warp: int, interval: int) -> Hashable:
    """Lanes of a warp have not synchronized within an interval of theirs."""
    return LANES, warp, interval


def narrow(warp: int, clock: int) -> Hashable:
    """What a warp accesses in an interval is ordered by an mbarrier of too narrow a scope."""
    return "narrow", warp, clock


def registers(warpgroup: int) -> Hashable:
    """The warps of a warpgroup, in whatever CTA, change their registers differently."""
    return "registers", warpgroup


def past_operand(line: int) -> Hashable:
    """The MMA of a line reads past its operand."""
    return "past operand", line


def relaxed(line: int) -> Hashable:
    """What comes before the barrier.cluster.arrive.relaxed of a line is used by a peer after it."""
    return "relaxed", line


def too_early(line: int, what: str) -> Hashable:
    """An instruction uses what operations of a kind are still working on: one wait is missing for all of them."""
    return "too early", line, what


def unordered(line: int | None, other: int | None) -> Hashable:
    """The instructions of two lines, by different threads, are unordered; None: a line is with any other."""
    return "unordered", line, other
