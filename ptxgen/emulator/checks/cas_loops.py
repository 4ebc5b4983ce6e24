"""Weak loads whose value an atomic operation at the same address checks, so that their races are but advice.

`assumed = *address; do old = atomicCAS(address, assumed, assumed + value); while (old != assumed)`: the load races by
the manual's words (8.7), yet its value counts only where the compare-and-swap finds it in memory. nvcc compiles the
CUDA programming guide's example to a weak load, and so does LLVM lower atomic operations that it has to build.

The value may also decide that no atomic operation is needed: `while (value > old)` around the loop is how Warp and
others build the maximum of floats, and graph searches test `visited[v]` before `atomicExch(&visited[v], 1)`. The
decision is that of the moment of the load, which nothing orders with the other accesses anyway. A function that returns
the old value then returns what was loaded in place of what the atomic operation found. `rechecked_loads` says what the
text must show. A rerun with other bytes there cannot: nothing would be tried at all. Where the text does not show it,
as for lanes that vote, reruns with older values may (`Rerun.decided_again`).

Where the value goes through local memory or a call, as in builds for debugging, nothing follows it: the load counts as
one of these once a thread has used an atomic operation at the address from which that load of its has read.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks.rechecked_loads import CALLED, ELSEWHERE, HIDDEN, RecheckedLoads
from ptxgen.emulator.checks.write_once import WriteOnceLoads
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.observer import Observer

if TYPE_CHECKING:
    from ptxgen.emulator.load.program import Program
    from ptxgen.emulator.observer import MachineView, ProgramView

_RACE = "The load is weak and the other access is strong, so they race; but its value only "
_COMPARED = _RACE + "feeds the compare and the new value of the {atomic} of line {line}, which checks it"
_TRIED = _RACE + "decides whether the {atomic} of line {line} is tried, which decides again"
_CHANGED = (
    "The load is weak and the other access is strong, so they race; but the atom.cas of line {line} changes the word "
    "only from the value that leads the load's thread to an atom.cas, which decides again"
)

STRONG_LOAD = "make the load strong: ld.relaxed with the scope of the atomic operation"


_NAMES = ("cas", "exch", "add", "min", "max", "inc", "dec", "and", "or", "xor")


class _Text:
    """What the text of a program says of its weak loads; launches share it."""

    def __init__(self, program: Program) -> None:
        self._program = program
        #: By the line of a load, those of the atom.cas that alone change what it reads (`write_once`).
        self._once: dict[int, frozenset[int]] = {}

    @classmethod
    def of(cls, program: Program) -> _Text:
        """That of a program, made once."""
        found = program.found.get(cls)
        if not isinstance(found, _Text):
            found = program.found[cls] = cls(program)
        return found

    @cached_property
    def atomics(self) -> dict[int, str]:
        """The atomic operations by line: `atom.cas`, `red.max`."""
        found: dict[int, str] = {}
        for operation in self._program.operations:
            name, *parts = operation.statement.opcode.split(".")
            if name in ("atom", "red"):
                found[operation.statement.line] = f"{name}.{next((each for each in parts if each in _NAMES), '')}"
        return found

    @property
    def lines(self) -> dict[int, int]:
        """By the line of each such load, that of its atomic operation; lines with another load are left out."""
        return self._analysis[0]

    @property
    def unknown(self) -> dict[int, int]:
        """Lines of weak loads whose use the text does not show: line -> `HIDDEN` or `CALLED`."""
        return self._analysis[1] if self._hides else {}

    def changes_once(self, load: int) -> frozenset[int]:
        """The lines of the atom.cas that may change the words that loads of a line read, if each changes once."""
        if not self.atomics:
            return frozenset()
        if load not in self._once:
            found = [
                self._write_once.swaps_after(operation, rank, index)
                for rank, block in enumerate(self._program.blocks)
                for index, operation in enumerate(block.operations)
                if operation.statement.line == load and operation.statement.opcode.startswith("ld.")
            ]
            self._once[load] = frozenset.intersection(*found) if found else frozenset()  # none: ldu
        return self._once[load]

    @cached_property
    def _write_once(self) -> WriteOnceLoads:
        return WriteOnceLoads(self._program, self._loads)

    @cached_property
    def _loads(self) -> RecheckedLoads:
        return RecheckedLoads(self._program)

    @cached_property
    def _hides(self) -> bool:
        """Whether the program has calls or local memory, without which the text shows everything."""
        opcodes = (operation.statement.opcode for operation in self._program.operations)
        return any(opcode.startswith("call") or ".local" in opcode for opcode in opcodes)

    @cached_property
    def _analysis(self) -> tuple[dict[int, int], dict[int, int]]:
        found: dict[int, set[int]] = {}
        for rank, block in enumerate(self._program.blocks) if self.atomics else ():
            for index, operation in enumerate(block.operations):
                if operation.statement.opcode.startswith("ld."):
                    line = operation.statement.line
                    found.setdefault(line, set()).add(self._loads.atomic_after(operation, rank, index))
        followed = {load: lines for load, lines in found.items() if ELSEWHERE not in lines}
        return (
            {load: max(lines) for load, lines in followed.items() if min(lines) > 0},
            {load: min(lines) for load, lines in followed.items() if min(lines) in (HIDDEN, CALLED)},
        )


class CasLoops(Observer):
    """Which loads of the program these are."""

    def __init__(self) -> None:
        self._text: _Text | None = None
        #: The addresses from which each thread has last read by loads of unknown use: a pair of state space and, for
        #: (warps, 32), the address, by line.
        self._read: dict[int, tuple[str, dict[int, NDArray[np.int64]]]] = {}
        #: By the line of such loads, that of an atomic operation at the same address by the same thread.
        self._swapped: dict[int, int] = {}

    def launch_begins(self, machine: MachineView, program: ProgramView) -> None:
        self._text = _Text.of(program)  # type: ignore[arg-type]

    def memory_loads(self, access: MemoryAccess) -> None:
        if self._text is None or access.order is not None or not self._text.unknown:
            return
        line = access.statement.line
        if line in self._text.unknown and line not in self._swapped:
            _, read = self._read.setdefault(line, (access.space, {}))
            addresses = np.where(access.active, access.places.offsets, -1)
            read.update(zip(access.warps.tolist(), addresses, strict=True))

    def memory_updates(
        self, access: MemoryAccess, turns: NDArray[np.int64] | None, *, returns: bool, uses: bool
    ) -> None:
        if not self._read or self._text is None:
            return
        active, swaps = access.active, ".cas." in access.statement.opcode
        for line, (space, read) in list(self._read.items()):
            if not swaps and self._text.unknown[line] == HIDDEN:
                continue
            for position, warp in enumerate(access.warps.tolist()):
                before = read.get(warp) if space[:6] == access.space[:6] else None
                if before is not None and any_set(active[position] & (access.places.offsets[position] == before)):
                    self._swapped[line] = access.statement.line
                    del self._read[line]
                    break

    def excuse(self, load: int | None, strong: int | None) -> str:
        """Why a weak load of a line is harmless beside the strong access of another; empty if it is not."""
        if load is None or self._text is None:
            return ""
        line = self._text.lines.get(load, self._swapped.get(load))
        if line is None:
            return _CHANGED.format(line=strong) if strong in self._text.changes_once(load) else ""
        atomic = self._text.atomics.get(line, "atomic operation")
        return (_COMPARED if atomic == "atom.cas" else _TRIED).format(atomic=atomic, line=line)
