"""Races on a flag, which explain those on what it should order.

A flag or lock is a word that a loop polls. If one side accesses it weakly, the accesses race (PTX ISA 8.7), and they
order nothing (8.8): so whatever the flag should order races too. That is one bug, with one fix.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ptxgen.emulator.checks import causes
from ptxgen.emulator.checks.messages.kernel_text import KernelText
from ptxgen.emulator.checks.order.vector_clock import VectorClock
from ptxgen.emulator.load.flow import innermost_loop, shortest_cycle
from ptxgen.emulator.load.registers import Register
from ptxgen.emulator.observer import Observer
from ptxgen.syntax import Address, Instruction, Name, Statement

if TYPE_CHECKING:
    from ptxgen.emulator.checks.order.happens_before import HappensBefore
    from ptxgen.emulator.checks.order.poll_loops import PollLoops
    from ptxgen.emulator.load.program import Block, Operation, Program
    from ptxgen.emulator.observer import MachineView, ProgramView

#: So many accesses to flags are kept.
_MANY = 256
#: Accesses that read, and those that write; atomic operations do both.
_READS = ("load", "strong load", "atomic operation")
_WRITES = ("store", "strong store", "atomic operation")


#: Opcodes by which the lanes of a warp decide together.
_COLLECTIVE = ("vote.", "match.", "shfl.", "redux.", "activemask.", "elect.")
#: Opcodes that the loop around a poll does not have.
_WORK = ("bar.sync", "barrier.", "mbarrier.", "cp.", "clusterlaunchcontrol.", "tcgen05.", "wgmma.", "mma.")


class Party(NamedTuple):
    """One of two racing accesses: its warp (`HappensBefore.actors`), in which of its intervals, and what it does."""

    actor: int
    clock: int
    statement: Statement | None
    what: str


class _Passed(NamedTuple):
    """A poll of a line that reads what another warp has stored: both warps, when, and what the one had observed."""

    writer: int
    stored_at: int
    observed: VectorClock | None
    reader: int
    read_at: int
    line: int


class FlagRace(NamedTuple):
    """Why two accesses race: the causes, and rule and fix if one of them is `weak` and to a flag, or if a poll that
    would order them passes too early.
    """

    causes: frozenset[Hashable] = frozenset()
    rule: str = ""
    fix: str = ""
    #: True if one of the two accesses is to the flag: their race is a bug, whatever becomes of the value.
    weak: bool = False


_NO_FLAG = FlagRace()


class WeakFlags(Observer):
    """The flags that are polled in races."""

    def __init__(self, happens_before: HappensBefore, loops: PollLoops | None = None) -> None:
        self._happens_before, self._loops = happens_before, loops
        self._program: Program | None = None
        #: The kernel's text, None before the launch.
        self.text: KernelText | None = None
        #: By load: whether an instruction reads a register that it writes.
        self._used: dict[Statement, bool] = {}
        #: By place of a flag: the line that polls it.
        self._places: dict[Hashable, int] = {}
        self._passed: dict[tuple[int, int, int, int], _Passed] = {}
        #: By line that polls a lock: the warps that access the lock in races.
        self._owners: dict[int, set[int]] = {}

    def launch_begins(self, machine: MachineView, program: ProgramView) -> None:
        self._program = program  # type: ignore[assignment]
        self.text = KernelText(program)  # type: ignore[arg-type]

    def race(self, warp: int, found: Party, earlier: Party, place: Hashable, scope: str) -> FlagRace:
        """Two accesses to a place race, the first one by a warp now; `scope` would include both."""
        polls = next((each.statement for each in (found, earlier) if each.statement in self._polled), None)
        if polls is None:
            line = self._places.get(place)
            if line is None:
                few = self._too_few(found, earlier)
                protected = self._protected_by(warp, found, earlier) if self._places else frozenset[Hashable]()
                return few._replace(causes=few.causes | protected)
            if line in self._owners:
                self._owners[line].update((found.actor, earlier.actor))
            return FlagRace(frozenset([causes.flag(line)]))
        line = self._places.setdefault(place, polls.line)
        if any(self._takes(polls, each.statement) for each in (found, earlier) if each.what in _WRITES):
            self._owners.setdefault(line, set()).update((found.actor, earlier.actor))
        if found.what in _READS and earlier.what in _WRITES:
            self._passes(found, earlier, line)
        parties = dict.fromkeys(each.statement for each in (found, earlier) if each.what in ("load", "store"))
        weak = " and ".join(_named(each) for each in parties if each is not None)
        if not weak or (polls not in parties and "store" not in (found.what, earlier.what)):
            # An atom.cas decides its loop, but only beside a weak store its word is a flag.
            return FlagRace(frozenset([causes.flag(line)]))
        return FlagRace(
            frozenset([causes.flag(line)]),
            f"Line {line} polls it as a flag, but {weak} {'are' if len(parties) > 1 else 'is'} weak, which orders "
            "nothing",
            f"st.release or red.release where it is set, ld.acquire or atom.acquire where it is polled, with scope "
            f".{scope}",
            weak=True,
        )

    def _too_few(self, found: Party, earlier: Party) -> FlagRace:
        """Whether a poll has let one of two racing accesses pass before the signal after the other."""
        if self._loops is None or found.what not in _READS or earlier.what not in _WRITES:
            return _NO_FLAG
        missed = self._loops.missed(found.actor, earlier.actor)
        if missed is None:
            return _NO_FLAG
        return FlagRace(
            frozenset([causes.flag(missed.line)]),
            f"The loop that polls in line {missed.line} may end before the signal of line {missed.store_line} by the "
            "writer: it ends without that signal, too",
            f"wait in line {missed.line} until all signals have come (a counter: as many as there are writers; a mask: "
            "the bit of each)",
        )

    def polls(self, load: Statement) -> bool:
        """Whether a loop polls what an instruction loads."""
        return load in self._polled

    def is_used(self, load: Statement) -> bool:
        """Whether some instruction may read a register that a load writes."""
        program = self._program
        if program is None:
            return True
        if load not in self._used:
            self._used[load] = any(
                _reads_what(program, rank, index)
                for rank, block in enumerate(program.blocks)
                for index, operation in enumerate(block.operations)
                if operation.statement is load
            )
        return self._used[load]

    def _takes(self, polls: Statement, sets: Statement | None) -> bool:
        """Whether a thread that polls a flag may set it afterwards: it is a lock."""
        program, rank = self._program, self._polled[polls]
        return program is not None and sets is not None and program.leads_to(rank, sets)

    def _passes(self, found: Party, earlier: Party, line: int) -> None:
        key = earlier.actor, earlier.clock, found.actor, found.clock
        if key not in self._passed and len(self._passed) < _MANY:
            writer = self._happens_before.resident_warp(earlier.actor)
            observed = self._happens_before.observed[writer].copy() if writer is not None else None
            self._passed[key] = _Passed(earlier.actor, earlier.clock, observed, found.actor, found.clock, line)

    def _protected_by(self, warp: int, found: Party, earlier: Party) -> frozenset[Hashable]:
        """The flags that would order an earlier access before a warp, or locks that both warps take."""
        locks = {line for line, owners in self._owners.items() if {found.actor, earlier.actor} <= owners}
        return frozenset(map(causes.flag, locks)) | self._ordered_by(warp, earlier)

    def _ordered_by(self, warp: int, earlier: Party) -> frozenset[Hashable]:
        """The flags that would order an earlier access before a warp."""
        order, reached, lines = self._happens_before, [(earlier.actor, earlier.clock)], set[int]()
        for passed in self._passed.values():
            if any(self._before(passed, *each) for each in reached):
                reached.append((passed.reader, passed.read_at))
                lines.add(passed.line)
        own, now = order.actor(warp), order.clock(warp)
        if any(
            (actor == own and clock <= now) or order.has_observed_actor(warp, actor, clock)
            for actor, clock in reached[1:]
        ):
            return frozenset(map(causes.flag, lines))
        return frozenset()

    def _before(self, passed: _Passed, actor: int, clock: int) -> bool:
        """Whether what a warp did in an interval comes before the store of a flag."""
        if passed.writer == actor:
            return clock <= passed.stored_at
        order = self._happens_before
        return passed.observed is not None and passed.observed.has_observed(
            order.epoch_of(actor), actor % order.members, clock
        )

    @cached_property
    def _polled(self) -> dict[Statement, int]:
        """Loads and atomic operations whose result decides whether their loop ends, and their blocks."""
        program = self._program
        if program is None:
            return {}
        blocks = program.blocks
        return {
            operation.statement: rank
            for rank, block in enumerate(blocks)
            for index, operation in enumerate(block.operations)
            if operation.statement.opcode.startswith(("ld.", "atom."))
            and _decides(operation, index, [blocks[each] for each in shortest_cycle(program.successors, rank)])
            and not (operation.statement.opcode.startswith("ld.") and self._swaps_around(rank))
        }

    def votes_around(self, load: Statement) -> bool:
        """Whether lanes vote, or exchange values, in the innermost loop around a load, or anywhere if it is in none."""
        program = self._program
        assert program is not None
        everywhere = range(len(program.blocks))
        return any(
            operation.statement.opcode.startswith(_COLLECTIVE)
            for rank, block in enumerate(program.blocks)
            if any(operation.statement is load for operation in block.operations)
            for each in innermost_loop(program.successors, rank) or everywhere
            for operation in program.blocks[each].operations
        )

    def _swaps_around(self, rank: int) -> bool:
        """Whether the innermost loop around a block has a compare-and-swap.

        Lanes that vote which of them swaps, as those that probe a hash table together, come back to the load past it.
        """
        program = self._program
        assert program is not None
        return any(
            operation.statement.opcode.startswith("atom.") and "cas" in operation.statement.opcode.split(".")
            for each in innermost_loop(program.successors, rank)
            for operation in program.blocks[each].operations
        )


def _decides(polls: Operation, index: int, loop: Sequence[Block]) -> bool:
    """Whether a branch of a loop, its blocks in order from that of an instruction on, depends on what this one reads.

    It is no flag if an atomic operation takes the value, as in the loop of an atom.cas, if each turn reads another
    address, as a search does, or if a turn synchronizes or copies, as the loop over tiles of a dynamic scheduler does.
    """
    if not loop:
        return False
    turn = [
        *loop[0].operations[index + 1 :],
        *(each for block in loop[1:] for each in block.operations),
        *loop[0].operations[: index + 1],  # where the loop comes back to the instruction
    ]
    if _moves(turn) or any(each.statement.opcode.startswith(_WORK) for each in turn):
        return False
    held, decides = set(polls.writes), False
    for operation in turn:
        if held.isdisjoint(operation.reads | operation.guard_reads):
            if operation.guard is None:
                held -= operation.writes
            continue
        if operation.statement.opcode.startswith(("atom.", "red.")) and not held.isdisjoint(operation.reads):
            return False
        if operation.traits is not None and operation.traits.control == "branch":
            decides = True
        held |= operation.writes
    return decides


def _moves(turn: Sequence[Operation]) -> bool:
    """Whether the last operation of a turn, a load or an atomic, has an address that depends on the turn before."""
    carried = set[int]().union(*(each.writes for each in turn))
    for operation in turn[:-1]:
        if not carried.isdisjoint(operation.reads):
            carried |= operation.writes
        elif operation.guard is None:
            carried -= operation.writes
    addresses = [each.base for each in turn[-1].statement.operands if isinstance(each, Address)]
    places = [turn[-1].names(base.text) for base in addresses if isinstance(base, Name)]
    return any(isinstance(place, Register) and place.index in carried for place in places)


def _reads_what(program: Program, rank: int, index: int) -> bool:
    """Whether any instruction may read a register that an instruction of a block writes."""
    todo = [(rank, index + 1, program.blocks[rank].operations[index].writes)]
    seen = set(todo)
    while todo:
        rank, index, held = todo.pop()
        for operation in program.blocks[rank].operations[index:]:
            if held & (operation.reads | operation.guard_reads):
                return True
            if operation.guard is None:
                held -= operation.writes
        for next in program.successors[rank] if held else ():
            if (state := (next, 0, held)) not in seen and next < len(program.blocks):
                seen.add(state)
                todo.append(state)
    return False


def _named(statement: Statement) -> str:
    opcode = statement.opcode if isinstance(statement, Instruction) else statement.text.strip()
    return f"{opcode} (line {statement.line})"
