"""What a launch holds when an instruction is reached: shared memory, tensor memory, registers, mbarriers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from ptxgen.device import Finding
from ptxgen.dtypes import scalar_type
from ptxgen.emulator.observer import Lanes, MachineView, Observer, ProgramView
from ptxgen.layouts.tma import tile_offsets
from ptxgen.syntax import Instruction


class BreakpointError(LookupError):
    """The launch has not reached the breakpoint, or has nothing of that name; the message lists the names."""


def _dtype(name: npt.DTypeLike) -> np.dtype[Any]:
    """A NumPy type, or a type of PTX by its name (`bf16`)."""
    if isinstance(name, str):
        try:
            return np.dtype(scalar_type(name))
        except KeyError:
            pass
    return np.dtype(name)


@dataclass(frozen=True)
class SharedView:
    """A named part of a CTA's shared memory: `bytes` of it from the offset `start` on, in `stages` equal ones."""

    name: str
    start: int
    bytes: NDArray[np.uint8]
    stages: int = 1

    def stage(self, number: int) -> SharedView:
        """One stage of a ring. Raises BreakpointError if there is none of that number."""
        if not 0 <= number < self.stages:
            raise BreakpointError(f"{self.name} has {self.stages} stages, no stage {number}")
        size = len(self.bytes) // self.stages
        at = number * size
        return SharedView(f"{self.name} stage {number}", self.start + at, self.bytes[at : at + size])

    def values(self, dtype: npt.DTypeLike) -> NDArray[Any]:
        """The bytes as elements, in the order in which they lie there."""
        kind = _dtype(dtype)
        return self.bytes[: len(self.bytes) // kind.itemsize * kind.itemsize].view(kind)

    def tile(self, shape: Sequence[int], dtype: npt.DTypeLike, *, swizzle: str = "none") -> NDArray[Any]:
        """The part as the tile that a TMA load of a box puts there: `shape` outermost first, as NumPy orders it.

        A row must fill the swizzle's row, as in a box of TMA. Raises BreakpointError where the tile is larger than the
        part, ValueError for a shape that no box has with this swizzle.
        """
        kind = _dtype(dtype)
        offsets = tile_offsets(list(shape)[::-1], kind.itemsize, swizzle, self.start)
        end = int(offsets.max()) + kind.itemsize
        if end > len(self.bytes) or int(offsets.min()) < 0:
            raise BreakpointError(f"a tile of {end} bytes is larger than {self.name}, which has {len(self.bytes)}")
        index = offsets[..., None] + np.arange(kind.itemsize)
        return self.bytes[index].reshape(-1).view(kind).reshape(tuple(shape))


@dataclass(frozen=True)
class MbarrierState:
    """An mbarrier: `phase` counts completed phases, `tx` are the bytes that the present one still expects."""

    name: str
    address: int
    phase: int
    pending: int
    expected: int
    tx: int

    @property
    def parity(self) -> int:
        """The parity of the present phase: a wait with it blocks."""
        return self.phase & 1

    def __str__(self) -> str:
        return (
            f"{self.name or hex(self.address)}: phase {self.phase} (parity {self.parity}), "
            f"{self.pending} of {self.expected} arrivals pending, {self.tx} bytes outstanding"
        )


class _Named(Mapping[str, Any]):
    """A mapping whose missing keys are answered with those that there are."""

    def __init__(self, what: str, found: Mapping[str, Any]) -> None:
        self._what, self._found = what, found

    def __getitem__(self, name: str) -> Any:
        if name not in self._found:
            there = ", ".join(list(self._found)[:20]) or "none"
            raise BreakpointError(f"no {self._what} {name!r}; there are: {there}{', ...' * (len(self._found) > 20)}")
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


@dataclass(frozen=True)
class State:
    """The state of a CTA when one of its warps has reached an instruction and has not executed it.

    `lanes` are those that have come, (32,). `registers` are those of the warp, (32,) words each as unsigned integers.
    `tensor` are the cells of its tensor memory: (128 lanes, 512 columns) of 32 bits.
    """

    line: int
    instruction: str
    hit: int
    time: int
    cta: tuple[int, int, int]
    warp: int
    lanes: NDArray[np.bool_]
    shared: Mapping[str, SharedView]
    registers: Mapping[str, NDArray[Any]]
    tensor: NDArray[np.uint32]
    mbarriers: Mapping[str, MbarrierState]
    #: The finding that stopped a breakpoint at a finding.
    finding: Finding | None = None
    #: The declared types of registers that are not plain bits.
    types: Mapping[str, str] = field(default_factory=dict)

    def register(self, name: str) -> NDArray[Any]:
        """A register as its declaration has it: floats and signed integers are no raw words. Raises BreakpointError."""
        words = self.registers[name]
        kind = _dtype(self.types[name]) if name in self.types else words.dtype
        return words.view(kind) if kind.itemsize == words.dtype.itemsize and words.dtype.kind == "u" else words

    def __str__(self) -> str:
        x, y, z = self.cta
        if self.finding is not None:
            at = f"line {self.line}: {self.instruction} (warp {self.warp}, CTA ({x}, {y}, {z}))"
            return f"finding [{self.finding.code}], hit {self.hit}, at {at}"
        return f"line {self.line}, hit {self.hit}: {self.instruction} (warp {self.warp}, CTA ({x}, {y}, {z}))"


class Breakpoint(Observer):
    """Takes the state at the n-th time that a warp reaches a line, of all warps or of one of each CTA (`warp`).

    With `finding` it takes it when the n-th finding of this code comes up, of any code if that is empty: the state of
    the CTA of the first warp that the finding names, or else of the warp that has run last.
    """

    def __init__(
        self, line: int | None = None, hit: int = 1, *, warp: int | None = None, finding: str | None = None
    ) -> None:
        if hit < 1:
            raise ValueError(f"hit must be 1 or more, not {hit}")
        if (line is None) == (finding is None):
            raise ValueError("a breakpoint is at a line, or at a finding")
        self.line, self.hit, self.warp, self.finding = line, hit, warp, finding
        self.hits = 0
        self._state: State | None = None
        self._machine: MachineView | None = None
        self._program: ProgramView | None = None
        #: The warp that last reached an instruction, its lanes, and the instruction.
        self._last: tuple[int, NDArray[np.bool_], Instruction] | None = None

    @property
    def state(self) -> State:
        """The state. Raises BreakpointError if no launch has come there so often."""
        if self._state is None:
            if self.line is None:
                what = f"finding {self.finding}" if self.finding else "finding"
                raise BreakpointError(f"no launch since has had a {what} {self.hit} times: {self.hits} came up")
            raise BreakpointError(self._missed())
        return self._state

    def __str__(self) -> str:
        return str(self.state)

    def _missed(self) -> str:
        """Why there is no state at the line."""
        if self._program is not None and self.line is not None:
            lines = [each.line for each in self._program.kernel.module.statements() if isinstance(each, Instruction)]
            if self.line not in lines:
                near = min(lines, key=lambda each: (each < (self.line or 0), abs(each - (self.line or 0))), default=0)
                return f"line {self.line} has no instruction; the nearest is line {near}"
        who = "no warp" if self.warp is None else f"warp {self.warp} never"
        if not self.hits:
            return f"line {self.line} was not reached: {who} {'has come' if self.warp is None else 'came'} there"
        return f"line {self.line} was reached {self.hits} times, not {self.hit}"

    @property
    def shared(self) -> Mapping[str, SharedView]:
        """Shared memory of the state."""
        return self.state.shared

    @property
    def registers(self) -> Mapping[str, NDArray[Any]]:
        """Registers of the state."""
        return self.state.registers

    @property
    def tensor(self) -> NDArray[np.uint32]:
        """Tensor memory of the state."""
        return self.state.tensor

    @property
    def mbarriers(self) -> Mapping[str, MbarrierState]:
        """Mbarriers of the state."""
        return self.state.mbarriers

    def launch_begins(self, machine: MachineView, program: ProgramView) -> None:
        self._machine, self._program = machine, program

    def instruction_issued(
        self, warps: NDArray[np.int64], lanes: Lanes, executes: Lanes, statement: Instruction
    ) -> None:
        if self.line is None:
            self._last = int(warps[-1]), lanes[-1], statement
            return
        if statement.line != self.line or self._state is not None:
            return
        assert self._machine is not None
        for position, warp in enumerate(warps.tolist()):
            if self.warp is not None and warp % self._machine.warps_per_cta != self.warp:
                continue
            self.hits += 1
            if self.hits == self.hit:
                self._state = self._taken(warp, lanes[position], statement)
                return

    def finding_reported(self, finding: Finding) -> None:
        if self.finding is None or self._state is not None or self.finding not in ("", finding.code):
            return
        self.hits += 1
        if self.hits == self.hit and self._last is not None:
            warp, lanes, statement = self._party(finding)
            self._state = replace(self._taken(warp, lanes, statement), finding=finding)

    def _party(self, finding: Finding) -> tuple[int, NDArray[np.bool_], Instruction]:
        """The first resident warp that a finding names, and its instruction."""
        assert self._machine is not None
        assert self._program is not None
        assert self._last is not None
        machine = self._machine
        for each in finding.accesses:
            for slot in np.unique(machine.cta_slot).tolist():
                if each.warp is None or machine.names.cta(slot) != each.cta:
                    continue
                statements = self._program.kernel.module.statements()
                at = [found for found in statements if isinstance(found, Instruction) and found.line == each.line]
                if at:
                    lanes = np.ones(32, np.bool_) if each.lanes is None else each.lanes >> np.arange(32) & 1 == 1
                    return slot * machine.warps_per_cta + each.warp, lanes, at[0]
        return self._last

    def _taken(self, warp: int, lanes: NDArray[np.bool_], statement: Instruction) -> State:
        machine, program = self._machine, self._program
        assert machine is not None
        assert program is not None
        slot = int(machine.cta_slot[warp])
        memory = machine.shared.data[slot].copy()
        shared = {
            part.name: SharedView(
                part.name,
                part.start,
                memory[part.start : part.start + part.size],
                part.size // part.element if part.ring else 1,
            )
            for part in machine.shared_names.parts
        }
        registers = {
            name: machine.registers[register.index][warp].copy()
            for name, register in program.registers_at(statement.line).items()
        }
        scope = program.kernel.analysis.scope(program.kernel.entry)
        types = {
            name: symbol.type.name
            for name in registers
            if (symbol := scope(name)) is not None
            and symbol.type is not None
            and symbol.type.kind in ("float", "signed")
        }
        mbarriers: dict[str, MbarrierState] = {}
        for address, each in sorted(machine.mbarriers[slot].items()):
            name = machine.shared_names.name(address)[0] or f"{address:#x}"
            mbarriers[name] = MbarrierState(name, address, each.phase, each.pending, each.expected, each.tx)
        return State(
            line=statement.line,
            instruction=" ".join(statement.text.split()),
            hit=self.hit,
            time=machine.timeline.now,
            cta=machine.names.cta(slot),
            warp=warp % machine.warps_per_cta,
            lanes=lanes.copy(),
            shared=_Named("shared variable or region", shared),
            registers=_Named("register", registers),
            tensor=machine.tensor.cells[slot].copy(),
            mbarriers=_Named("mbarrier", mbarriers),
            types=types,
        )
