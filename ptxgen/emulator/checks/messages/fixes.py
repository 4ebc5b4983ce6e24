"""What orders two racing accesses: the fix of a race, by what the two are and how far apart their threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ptxgen.device.report import Access

if TYPE_CHECKING:
    from ptxgen.emulator.checks.messages.kernel_text import KernelText

#: Innermost group of two threads: warp, CTA, cluster or grid.
Distance = Literal["warp", "cta", "cluster", "grid"]

#: Barrier that orders the threads of two accesses, by their distance.
_BARRIERS: dict[Distance, str] = {
    "warp": "bar.warp.sync",
    "cta": "bar.sync",
    "cluster": "barrier.cluster.arrive and barrier.cluster.wait",
}
#: Accesses by threads that do not race with each other.
_STRONG = ("strong load", "strong store", "atomic operation")
_WEAK = ("load", "store")
_OF_THREADS = (*_WEAK, *_STRONG, "cp.async")
_SCOPES: dict[Distance, str] = {"cta": "cta", "cluster": "cluster", "grid": "gpu"}


def between(one: Access, other: Access) -> str:
    """` between line 12 and line 15`, in the order of the text; empty where a line is unknown."""
    if one.line is None or other.line is None:
        return ""
    first, second = sorted((one.line, other.line))
    if first == second:
        return f" between two executions of line {first}"
    return f" between line {first} and line {second}"


def _barrier(barrier: str, one: Access, other: Access, text: KernelText | None) -> str:
    """A barrier between two accesses, the later one first; at the end of a loop if one between their lines is there
    already, and in both places if neither is and the next turn's access comes later.
    """
    if text is not None and one.line is not None and other.line is not None:
        first, last = sorted((one.line, other.line))
        if text.has_barrier(first, last) and text.comes_back(last, first):
            return f"{barrier} after line {last}, before line {first} is executed again"
        if one.line == first < last and text.comes_back_without_barrier(last, first):
            again = f"another after line {last}, before line {first} is executed again"
            return f"{barrier}{between(one, other)}, and {again}"
    return f"{barrier}{between(one, other)}"


def _across_ctas(found: Access, other: Access, instead: str) -> str | None:
    """The fix of a race of two CTAs that no cluster joins: a flag, or a strong access `instead`."""
    reader = next((each for each in (found, other) if each.role == "reader"), None)
    writer = other if reader is found else found
    if reader is None:
        first, second = f"line {other.line}", f"line {found.line}"
        return f"order {first} and {second} by st.release.gpu and ld.acquire.gpu of a flag, or make them two launches"
    flag = (
        f"st.release.gpu or red.release.gpu of a flag after line {writer.line}, and ld.acquire.gpu of it before line "
        f"{reader.line}, with a barrier where one thread does so for others"
    )
    return f"{flag}; or {instead}" if instead else flag


def of_unfinished(what: str, line: int, found: Access, text: KernelText | None = None) -> str | None:
    """The fix where an access comes before an asynchronous operation of a line is complete (`what`: "tcgen05.mma").

    None: that of the check.
    """
    if (early := wait_of_open_group(what, line, text)) is not None:
        return f"cp.async.bulk.commit_group by the thread of line {line}, before line {early}"
    if what.startswith("tcgen05"):
        commit = f"tcgen05.commit by the issuing thread after line {line}"
        return f"{commit}, and a wait for its mbarrier before line {found.line}"
    if what.startswith("wgmma"):
        return f"wgmma.commit_group after line {line} and wgmma.wait_group 0, before line {found.line}"
    if what in ("bulk store", "tensor store", "bulk reduction", "tensor reduction"):
        wait = "cp.async.bulk.commit_group and cp.async.bulk.wait_group.read 0"
        return f"{wait} by the thread of line {line}, then a barrier, before line {found.line}"
    return None


def wait_of_open_group(what: str, line: int, text: KernelText | None) -> int | None:
    """The line of the wait_group that comes before the group of a line's bulk store is committed; None if none does."""
    stores = what in ("bulk store", "tensor store", "bulk reduction", "tensor reduction")
    return text.waits_before_commit(line) if stores and text is not None else None


#: Why a wait does not cover a bulk store, with the lines of both.
OPEN_GROUP = (
    "The cp.async.bulk.wait_group of line {wait} does not wait for line {line}, whose group no commit_group has closed"
)


def of_threads(
    found: Access, what: str, other: Access, kind: str, distance: Distance, text: KernelText | None = None
) -> str | None:
    """The fix where accesses of two warps race: `what` the later one is ("load", "atomic operation"), and `kind` the
    earlier one. None: that of the check.
    """
    if what not in _OF_THREADS or kind not in _OF_THREADS:
        return None
    strong = what in _STRONG or kind in _STRONG
    weak = next((each for each, does in ((found, what), (other, kind)) if does in _WEAK), None)
    instead = ""
    if strong and weak is not None and distance in _SCOPES:
        plain = "load" if weak.role == "reader" else "store"
        stead = "ld.relaxed" if weak.role == "reader" else "st.relaxed"
        instead = f"a strong {plain} in line {weak.line} ({stead}.{_SCOPES[distance]} or .volatile, or an atomic)"
    barrier = _BARRIERS.get(distance, "")
    if not barrier:
        return _across_ctas(found, other, instead if weak is not None and weak.role == "reader" else "")
    if what == kind == "store":
        order = f"{barrier}{between(found, other)}"
        if found.line == other.line:
            return f"let one warp store it, or put {order}"
        return f"{order}, or give the two bytes of their own"
    order = _barrier(barrier, found, other, text)
    load, store = (found.line, other.line) if what == "load" else (other.line, found.line)
    if {what, kind} == {"load", "store"} and text and load and store and text.updates(load, store):
        return f"red or atom in place of line {load} and line {store}, or, if they are of different steps, {order}"
    return f"{order}{f'; or {instead}' if instead else ''}"


def of_cp_async(later: Access, distance: Distance) -> str:
    """The fix where an access comes before a wait for a cp.async, of this warp ("warp") or of another one."""
    wait = "cp.async.wait_all (or cp.async.commit_group and cp.async.wait_group N)"
    if distance == "warp":
        return f"{wait} before line {later.line}, then bar.warp.sync where another lane has copied"
    moved = f"; or, if line {later.line} reads what was there before, the copy after it and a barrier"
    instead = moved if later.role == "reader" else ""
    return f"{wait} by the copying threads, then {_BARRIERS[distance]}, before line {later.line}{instead}"


def of_operation(found: Access, what: str, other: Access, *, apart: bool = False) -> str:
    """The fix where an asynchronous operation (`what`: "tensor copy", "tcgen05.mma") races with a thread's access, of a
    peer CTA if they are `apart`.
    """
    if apart:
        return (
            f"let the threads of line {other.line} arrive after it on an mbarrier of the CTA that issues line "
            f"{found.line} (mbarrier.arrive.release.cluster.shared::cluster), and the issuing thread wait for them "
            "(or barrier.cluster)"
        )
    if found.role == "reader":
        return (
            f"fence.proxy.async after line {other.line}, then bar.sync or an mbarrier that the issuing thread waits "
            f"for, before line {found.line}"
        )
    return (
        f"let the threads of line {other.line} arrive on an mbarrier after it, and the issuing thread wait for them "
        f"before line {found.line} (or bar.sync)"
    )
