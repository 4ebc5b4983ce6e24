"""mbarrier objects: every form, with its modifiers. References from PTX ISA 9.7.13.15.

A script of one thread sees the phase by test_wait before and after each step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.script import Script, like
from ptxgen.builder import Register
from ptxgen.instr import mbarrier
from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.targets import parse_target


def variants(form: type[Instruction]) -> Iterator[Instruction]:
    """The variants of a Hopper, with objects of the first layout."""
    for made in form.variants():
        extra = getattr(made, "phase_type", None) or getattr(made, "layout", None)
        if extra or getattr(made, "report", None) is not None or getattr(made, "value", None) is not None:
            continue
        if not made.availability_problems(parse_target("sm_90a"), (9, 0)):
            yield made


class Word:
    """A variant as the name of a definition shows it."""

    def __init__(self, made: Instruction) -> None:
        self.made = made

    def __str__(self) -> str:
        optional = [name for name, spec in self.made.form.operands.items() if spec.optional]
        given = [name for name in optional if getattr(self.made, name) is not None]
        return ".".join([type(self.made).__name__, *self.made.modifiers]) + "".join(f",{name}" for name in given)


def each(*forms: type[Instruction]) -> list[Word]:
    return [Word(made) for form in forms for made in variants(form)]


class Barrier:
    """An object in shared memory, and how a script looks at it."""

    def __init__(self, draft: Draft, count: int | None) -> None:
        self.draft, self.script = draft, Script(draft)
        self.at = draft.shared(8, 8)
        if count is not None:
            draft(mbarrier.init(f"[{self.at}]", count, space="shared::cta"))

    def place(self, made: Any) -> str:
        """The object as an operand of a variant, which without a state space takes a generic address."""
        return f"[{self.at if made.space else self.draft.generic(self.at)}]"

    def arrive(self, count: int = 1) -> Register:
        state = self.draft.reg("b64", "state")
        self.draft(mbarrier.arrive(state, f"[{self.at}]", count, space="shared::cta"))
        return state

    def ended(self, state: Register, expected: bool) -> None:
        """Whether the phase of a state has ended."""
        found = self.draft.reg("pred", "ended")
        self.draft(mbarrier.test_wait(found, f"[{self.at}]", state, space="shared::cta"))
        self.script.see(found, int(expected))

    def parity(self, which: int, expected: bool) -> None:
        """Whether the phase of a parity has ended."""
        found = self.draft.reg("pred", "ended")
        self.draft(mbarrier.test_wait_parity(found, f"[{self.at}]", which, space="shared::cta"))
        self.script.see(found, int(expected))


@microtest(*each(mbarrier.init))
def init(draft: Draft, word: Word) -> None:
    """A fresh object: the phase before counts as ended; it ends after so many arrivals, and expects as many again."""
    barrier = Barrier(draft, None)
    draft(like(word.made, barrier.place(word.made), draft.scalar("u32", 3)))
    barrier.parity(1, True)
    barrier.parity(0, False)
    for _ in range(2):
        first = barrier.arrive()
        barrier.ended(first, False)
        second = barrier.arrive()
        barrier.ended(second, False)
        barrier.arrive()
        barrier.ended(first, True)
        barrier.ended(second, True)
    barrier.parity(1, True)
    barrier.parity(0, False)
    barrier.script.finish()


@microtest()
def init_by_all(draft: Draft) -> None:
    """All lanes of a warp make the same object at once: it is as if one had made it."""
    from ptxgen.instr import barrier as cta

    draft.launch(block=32)
    at = draft.shared(8, 8)
    draft(mbarrier.init(f"[{at}]", 32, space="shared::cta"), cta.bar_warp_sync(0xFFFFFFFF))
    state, before, after = draft.reg("b64", "state"), draft.reg("pred"), draft.reg("pred")
    draft(mbarrier.test_wait_parity(before, f"[{at}]", 0, space="shared::cta"), cta.bar_warp_sync(0xFFFFFFFF))
    draft(mbarrier.arrive(state, f"[{at}]", space="shared::cta"))
    draft.wait(at)
    draft(mbarrier.test_wait_parity(after, f"[{at}]", 0, space="shared::cta"))
    out = draft.offset(draft.output(np.tile(np.array([0, 1], np.uint32), (32, 1))), draft.thread, 8)
    draft.store(out, draft.as_word(before))
    draft.store(out, draft.as_word(after), 4)


@microtest(*each(mbarrier.inval))
def inval(draft: Draft, word: Word) -> None:
    """After it the memory may be a new object."""
    barrier = Barrier(draft, 2)
    barrier.arrive()
    draft(like(word.made, barrier.place(word.made)))
    draft(mbarrier.init(f"[{barrier.at}]", 1, space="shared::cta"))
    state = barrier.arrive()
    barrier.ended(state, True)
    barrier.script.finish()


_ARRIVALS = (mbarrier.arrive, mbarrier.arrive_remote, mbarrier.arrive_drop, mbarrier.arrive_drop_remote)


@microtest(
    *((made, sunk) for made in each(*_ARRIVALS) for sunk in (False, True)),
    only_if=lambda word, sunk: sunk or "remote" not in word.made.form.key,
)
def arrive(draft: Draft, word: Word, sunk: bool) -> None:
    """One arrival, or as many as it says; the state is of this phase. A drop lowers what later phases expect."""
    counted = word.made.count is not None  # type: ignore[attr-defined]
    dropped = "drop" in word.made.form.key
    barrier = Barrier(draft, 5)
    before = barrier.arrive()
    state: Any = "_" if sunk else draft.reg("b64", "state")
    count = [draft.scalar("u32", 2)] if counted else []
    draft(like(word.made, state, barrier.place(word.made), *count))
    taken = 2 if counted else 1
    barrier.ended(before, False)
    barrier.arrive(4 - taken)
    barrier.ended(before, True)
    if not sunk:
        barrier.ended(state, True)
    # The next phase expects fewer after a drop.
    expected = 5 - taken if dropped else 5
    following = barrier.arrive(expected - 1)
    barrier.ended(following, False)
    barrier.arrive()
    barrier.ended(following, True)
    barrier.script.finish()


_EXPECTING = (
    mbarrier.arrive_expect_tx,
    mbarrier.arrive_expect_tx_remote,
    mbarrier.arrive_drop_expect_tx,
    mbarrier.arrive_drop_expect_tx_remote,
)


@microtest(*each(*_EXPECTING))
def arrive_expect_tx(draft: Draft, word: Word) -> None:
    """The phase ends when all arrivals and all bytes are in, whichever comes last."""
    dropped = "drop" in word.made.form.key
    barrier = Barrier(draft, 2)
    before = barrier.arrive()
    draft(like(word.made, "_", barrier.place(word.made), 4096))
    barrier.ended(before, False)
    draft(mbarrier.complete_tx(f"[{barrier.at}]", 4000, space="shared::cta", sem="relaxed", scope="cta"))
    barrier.ended(before, False)
    draft(mbarrier.complete_tx(f"[{barrier.at}]", 96, space="shared::cta", sem="relaxed", scope="cta"))
    barrier.ended(before, True)
    following = barrier.arrive()
    barrier.ended(following, dropped)
    barrier.script.finish()


@microtest(*each(mbarrier.expect_tx))
def expect_tx(draft: Draft, word: Word) -> None:
    """Bytes that are expected hold the phase; no arrival is made. The count is up to 2**20 - 1."""
    barrier = Barrier(draft, 1)
    draft(like(word.made, barrier.place(word.made), draft.scalar("u32", 2**20 - 1)))
    state = barrier.arrive()
    barrier.ended(state, False)
    draft(mbarrier.complete_tx(f"[{barrier.at}]", 2**20 - 1, space="shared::cta", sem="relaxed", scope="cta"))
    barrier.ended(state, True)
    barrier.script.finish()


@microtest(*each(mbarrier.complete_tx))
def complete_tx(draft: Draft, word: Word) -> None:
    """Bytes that come before they are expected make the count negative, which holds the phase too."""
    barrier = Barrier(draft, 2)
    draft(like(word.made, barrier.place(word.made), 512))
    state = barrier.arrive()
    barrier.ended(state, False)
    draft(mbarrier.arrive_expect_tx("_", f"[{barrier.at}]", 512, space="shared::cta"))
    barrier.ended(state, True)
    barrier.script.finish()


@microtest(*each(mbarrier.arrive_no_complete, mbarrier.arrive_drop_no_complete))
def no_complete(draft: Draft, word: Word) -> None:
    """pending_count reads from the state how many were pending before."""
    barrier = Barrier(draft, 10)
    first, second = draft.reg("b64"), draft.reg("b64")
    draft(like(word.made, first, barrier.place(word.made), 3), like(word.made, second, barrier.place(word.made), 2))
    for state, expected in ((first, 10), (second, 7)):
        found = draft.reg("b32")
        draft(mbarrier.pending_count(found, state))
        barrier.script.see(found, expected)
    barrier.ended(first, False)
    barrier.arrive(5)
    barrier.ended(first, True)
    left = 5 if "drop" in word.made.form.key else 10
    state = barrier.arrive(left - 1)
    barrier.ended(state, False)
    barrier.arrive()
    barrier.ended(state, True)
    barrier.script.finish()


@microtest(*each(mbarrier.test_wait))
def test_wait(draft: Draft, word: Word) -> None:
    """False in the phase of the state, true in the next."""
    barrier = Barrier(draft, 2)
    state, found = barrier.arrive(), draft.reg("pred")
    draft(like(word.made, found, barrier.place(word.made), state))
    barrier.script.see(found, 0)
    barrier.arrive()
    again = draft.reg("pred")
    draft(like(word.made, again, barrier.place(word.made), state))
    barrier.script.see(again, 1)
    barrier.script.finish()


@microtest(*each(mbarrier.test_wait_parity))
def test_wait_parity(draft: Draft, word: Word) -> None:
    """Of three phases, with the parity constant and in a register."""
    barrier = Barrier(draft, 1)
    for phase in range(3):
        for parity in (0, 1):
            found = draft.reg("pred")
            draft(like(word.made, found, barrier.place(word.made), parity if phase else draft.scalar("u32", parity)))
            barrier.script.see(found, int(phase % 2 != parity))
        barrier.arrive()
    barrier.script.finish()


@microtest(*each(mbarrier.try_wait, mbarrier.try_wait_parity))
def try_wait(draft: Draft, word: Word) -> None:
    """True at once where the phase has ended, with and without a time limit."""
    barrier = Barrier(draft, 1)
    for phase in range(2):
        state, found = barrier.arrive(), draft.reg("pred")
        which: Any = phase if "parity" in word.made.form.key else state
        hint = {"hint": 100} if word.made.hint is not None else {}  # type: ignore[attr-defined]
        draft(like(word.made, found, barrier.place(word.made), which, **hint))
        barrier.script.see(found, 1)
    barrier.script.finish()


@microtest()
def try_wait_gives_up(draft: Draft) -> None:
    """False after the time limit, where nobody arrives."""
    barrier = Barrier(draft, 2)
    state, found = barrier.arrive(), draft.reg("pred")
    draft(mbarrier.try_wait(found, f"[{barrier.at}]", state, 1000, space="shared::cta"))
    barrier.script.see(found, 0)
    draft(mbarrier.try_wait_parity(found, f"[{barrier.at}]", 0, 1000, space="shared::cta"))
    barrier.script.see(found, 0)
    barrier.script.finish()


@microtest(1, 511, 2**20 - 1)
def counts(draft: Draft, count: int) -> None:
    """The smallest and the largest number of arrivals."""
    barrier = Barrier(draft, count)
    for _ in range(2):
        if count > 1:
            state = barrier.arrive(count - 1)
            barrier.ended(state, False)
        barrier.ended(barrier.arrive(), True)
    barrier.script.finish()


@microtest()
def several_warps(draft: Draft) -> None:
    """Each of 256 threads arrives, and reads after the phase what another stored before it."""
    import numpy as np

    from ptxgen.instr import barrier as cta
    from ptxgen.instr import integer, logic, memory

    draft.launch(block=256)
    tid = draft.thread
    at, box = draft.shared(8, 8), draft.shared(1024)
    out = draft.output(np.bitwise_xor(np.arange(256, dtype=np.uint32), 0xE3) * 9)
    ready = draft.label("ready")
    draft.branch(ready, draft.is_thread(0), negated=True)
    draft(mbarrier.init(f"[{at}]", 256, space="shared::cta"))
    draft.place(ready)
    draft(cta.bar_sync(0))
    value, other = draft.reg("b32"), draft.reg("b32")
    draft(integer.mul(value, tid, 9, half="lo", type="u32"))
    draft.store(draft.offset(box, tid, 4), value, space="shared")
    draft(mbarrier.arrive("_", f"[{at}]", space="shared::cta"))
    draft.wait(at)
    draft(logic.xor(other, tid, 0xE3, type="b32"))
    draft(memory.ld(value, f"[{draft.offset(box, other, 4)}]", space="shared", type="b32"))
    draft.store(draft.offset(out, tid, 4), value)


# Layouts (PTX 9.3): v0 is the one that an object has where nothing is said.


@microtest(*(("v0", space) for space in (None, "shared", "shared::cta")))
def init_layout(draft: Draft, layout: Any, space: Any) -> None:
    """The layout written out; check_layout shows which an object has."""
    barrier = Barrier(draft, None)
    place = f"[{barrier.at if space else draft.generic(barrier.at)}]"
    draft(mbarrier.init(place, 3, layout=layout, space=space))
    for asked in ("v0", "v1"):
        found = draft.reg("pred")
        which: Any = asked
        draft(mbarrier.check_layout(found, place, layout=which, space=space))
        barrier.script.see(found, int(asked == layout))
    state, count = draft.reg("b64"), draft.reg("b32")
    draft(mbarrier.arrive_no_complete(state, f"[{barrier.at}]", 1, space="shared::cta"))
    draft(mbarrier.pending_count(count, state, layout="v0"))
    barrier.script.see(count, 3)
    barrier.arrive(2)
    barrier.ended(state, True)
    barrier.script.finish()


@microtest(*((form, parity) for form in ("test_wait", "try_wait") for parity in (False, True)))
def primary_phase(draft: Draft, form: str, parity: bool) -> None:
    """.phase_type::primary, which is the phase that there is without it."""
    barrier = Barrier(draft, 2)
    state = barrier.arrive()
    for expected in (0, 1):
        found = draft.reg("pred")
        which: Any = 0 if parity else state
        draft(
            getattr(mbarrier, form + ("_parity" if parity else ""))(
                found, f"[{barrier.at}]", which, phase_type="primary", space="shared::cta"
            )
        )
        if expected or form == "test_wait":
            barrier.script.see(found, expected)
        if not expected:
            barrier.arrive()
    barrier.script.finish()


@microtest(*((form, parity) for form in ("test_wait", "try_wait") for parity in (False, True)))
def layout_v1(draft: Draft, form: str, parity: bool) -> None:
    """An object of layout v1, which also keeps reports: without copies its phases are those of any object."""
    barrier = Barrier(draft, None)
    place = f"[{barrier.at}]"
    draft(mbarrier.init(place, 2, layout="v1", space="shared::cta"))
    for asked in ("v0", "v1"):
        found = draft.reg("pred")
        which: Any = asked
        draft(mbarrier.check_layout(found, place, layout=which, space="shared::cta"))
        barrier.script.see(found, int(asked == "v1"))
    state = barrier.arrive()
    for expected in (0, 1):
        ended, report = draft.reg("pred"), draft.reg("pred")
        phase: Any = 0 if parity else state
        if expected or form == "test_wait":
            draft(
                getattr(mbarrier, form + ("_parity" if parity else ""))(
                    ended, place, phase, report=report, phase_type="primary", space="shared::cta"
                )
            )
            barrier.script.see(ended, expected)
            if expected:
                barrier.script.see(report, 0)
        if not expected:
            barrier.arrive()
    if parity:
        draft(getattr(mbarrier, f"{form}_parity")(ended, place, 0, phase_type="conditional", space="shared::cta"))
        barrier.script.see(ended, 1)
    barrier.script.finish()
