"""A trace of a launch for ui.perfetto.dev: a track per warp, and per kind of asynchronous work of each CTA.

Time is the emulator's: a microsecond of the trace is one block of instructions. It shows order, not duration: `eager`
completes asynchronous work at once, `late` when no thread can go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.emulator.load.source_lines import SourceLines
from ptxgen.emulator.observer import Lanes, MachineView, Observer, ProgramView
from ptxgen.emulator.state.mbarriers import MBarrier
from ptxgen.emulator.state.signals import Signal
from ptxgen.syntax import Instruction, Statement

if TYPE_CHECKING:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket
    from perfetto.trace_builder.proto_builder import TraceProtoBuilder

#: Nanoseconds of the trace for one block.
_BLOCK = 1000
_SEQUENCE = 1


class TraceError(RuntimeError):
    """The trace cannot be written; the message says what to install."""


def require_perfetto() -> None:
    """Raises TraceError without the package `perfetto`, which writes the file."""
    if find_spec("perfetto") is None:
        raise TraceError("a trace needs the package perfetto: pip install 'ptxgen[trace]'")


@dataclass(slots=True)
class _Slice:
    """What a track shows from one time to another; `end` is None while it lasts."""

    begin: int
    end: int | None
    name: str
    line: int
    #: Work that begins or ends with it: arrows.
    flows: list[int] = field(default_factory=list)
    ended_flows: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Track:
    group: str
    name: str
    slices: list[_Slice] = field(default_factory=list)


class Trace(Observer):
    """Records one launch, or several, one after the other. `roles` name warps of a CTA: {5: "load"}."""

    def __init__(self, roles: Mapping[int, str] | None = None) -> None:
        self.roles = dict(roles or {})
        #: Lines of what the PTX was compiled from, by line of the PTX.
        self._sources: SourceLines | None = None
        self._machine: MachineView | None = None
        #: Where the present launch begins, in blocks.
        self._start = 0
        self._tracks: dict[tuple[str, str], _Track] = {}
        self._launches = 0
        self._warps: dict[int, _Track] = {}
        self._waiting: dict[int, str] = {}
        self._running: dict[int, tuple[_Track, _Slice]] = {}
        self._signals: dict[int, list[int]] = {}
        self._flow_base = 0

    # What happens.

    def launch_begins(self, machine: MachineView, program: ProgramView) -> None:
        if self._machine is not None:
            self._start += self._machine.timeline.now + 1
        self._machine, self._launches = machine, self._launches + 1
        self._sources = SourceLines(program.kernel.module)
        self._flow_base = self._launches << 40
        for table in (self._warps, self._waiting, self._running, self._signals):
            table.clear()

    def slots_reused(self, slots: NDArray[np.int64]) -> None:
        assert self._machine is not None
        warps = self._machine.warps_per_cta
        for warp in [warp for warp in self._warps if warp // warps in set(slots.tolist())]:
            del self._warps[warp]

    def instruction_issued(
        self, warps: NDArray[np.int64], lanes: Lanes, executes: Lanes, statement: Instruction
    ) -> None:
        now = self._now()
        for warp in warps.tolist():
            track = self._warp(warp)
            last = track.slices[-1] if track.slices else None
            if last is not None and last.begin <= now < (last.end or 0):
                continue  # a later instruction of the block
            waited = self._waiting.pop(warp, None)
            if last is not None and waited is not None and last.end is not None and last.end < now:
                track.slices.append(_Slice(last.end, now, f"wait for {waited}", statement.line))
            if last is not None and last.line == statement.line and last.end == now:
                last.end = now + 1  # spins
                continue
            track.slices.append(_Slice(now, now + 1, self._named(statement.opcode, statement.line), statement.line))

    def _named(self, what: str, line: int) -> str:
        """What happens, with its line of the PTX, and that of the source where it is known."""
        source = self._sources.of(line) if self._sources is not None else ""
        return f"{what} (line {line}{f', {source}' if source else ''})"

    def mbarrier_polled(self, warp: int, mbarrier: MBarrier, statement: Statement) -> None:
        self._waiting[warp] = f"phase {mbarrier.phase} of {mbarrier.name}"

    def mbarrier_waited(
        self,
        warp: int,
        lanes: Lanes,
        mbarrier: MBarrier,
        statement: Statement,
        *,
        relaxed: bool,
        cluster: bool,
        result: int,
    ) -> None:
        slices = self._warp(warp).slices
        if slices:
            slices[-1].ended_flows += self._signals.pop(id(mbarrier), [])

    def barrier_arrives(
        self,
        slot: int,
        name: int,
        warp: int,
        lanes: Lanes,
        statement: Instruction,
        *,
        waits: bool,
        threads: int | None,
    ) -> None:
        if waits:
            self._waiting[warp] = f"barrier {name}"

    def work_issued(self, work: AsyncWork) -> None:
        assert self._machine is not None
        group, kind = self._machine.cta_name(work.slot), work.what
        taken = 1
        while self._open(group, _numbered(kind, taken)):
            taken += 1
        track = self._track(group, _numbered(kind, taken))
        line = work.statement.line
        made = _Slice(self._now(), None, self._named(kind, line), line, [self._flow(work)])
        track.slices.append(made)
        self._running[work.number] = track, made
        issuer = self._warp(work.warp).slices
        if issuer:
            issuer[-1].flows.append(self._flow(work))

    def work_completed(self, work: AsyncWork) -> None:
        found = self._running.pop(work.number, None)
        if found is not None:
            found[1].end = max(self._now(), found[1].begin + 1)

    def signal_arrives(self, mbarrier: MBarrier, signal: Signal) -> None:
        if signal.operation:
            self._signals.setdefault(id(mbarrier), []).append(self._flow_base + signal.operation)

    # Tracks.

    def _now(self) -> int:
        assert self._machine is not None
        return self._start + self._machine.timeline.now

    def _flow(self, work: AsyncWork) -> int:
        return self._flow_base + work.number

    def _open(self, group: str, name: str) -> bool:
        """Whether the last work of a track lasts, or has ended just now."""
        track = self._tracks.get((group, name))
        return track is not None and bool(track.slices) and (track.slices[-1].end or np.inf) > self._now()

    def _track(self, group: str, name: str) -> _Track:
        return self._tracks.setdefault((group, name), _Track(group, name))

    def _warp(self, warp: int) -> _Track:
        found = self._warps.get(warp)
        if found is None:
            assert self._machine is not None
            warp_id = warp % self._machine.warps_per_cta
            role = f" ({self.roles[warp_id]})" if warp_id in self.roles else ""
            found = self._track(self._machine.cta_name(int(self._machine.cta_slot[warp])), f"warp {warp_id}{role}")
            self._warps[warp] = found
        return found

    # The file.

    def write(self, path: str | Path) -> None:
        """Write the trace. Raises TraceError without the package `perfetto` (`pip install 'ptxgen[trace]'`)."""
        require_perfetto()
        from perfetto.trace_builder.proto_builder import TraceProtoBuilder

        builder = TraceProtoBuilder()
        groups: dict[str, int] = {}
        tracks = sorted(self._tracks.values(), key=lambda track: _order(track.name))
        for track in tracks:
            if track.group not in groups:
                groups[track.group] = len(groups) + 1
                descriptor = _packet(builder).track_descriptor
                descriptor.uuid, descriptor.name = groups[track.group], track.group
        for number, track in enumerate(tracks, len(groups) + 1):
            descriptor = _packet(builder).track_descriptor
            descriptor.uuid, descriptor.parent_uuid, descriptor.name = number, groups[track.group], track.name
            descriptor.sibling_order_rank = number
            _write(builder, number, track.slices, self._now() + 1)
        Path(path).write_bytes(builder.serialize())


def _packet(builder: TraceProtoBuilder) -> TracePacket:
    packet = builder.add_packet()
    packet.trusted_packet_sequence_id = _SEQUENCE
    return packet


def _write(builder: TraceProtoBuilder, track: int, slices: Sequence[_Slice], end: int) -> None:
    for each in slices:
        packet = _packet(builder)
        packet.timestamp = each.begin * _BLOCK
        event = packet.track_event
        event.type, event.track_uuid, event.name = event.TYPE_SLICE_BEGIN, track, each.name
        event.flow_ids.extend(each.flows)
        event.terminating_flow_ids.extend(each.ended_flows)
        annotation = event.debug_annotations.add()
        annotation.name, annotation.int_value = "line", each.line
        packet = _packet(builder)
        packet.timestamp = (end if each.end is None else each.end) * _BLOCK
        packet.track_event.type, packet.track_event.track_uuid = event.TYPE_SLICE_END, track


def _numbered(kind: str, number: int) -> str:
    """Work that overlaps other work of its kind has tracks of its own."""
    return kind if number == 1 else f"{kind} {number}"


def _order(name: str) -> tuple[bool, list[tuple[int, str]]]:
    """Warps first; `warp 10` comes after `warp 9`."""
    return not name.startswith("warp"), [(int(word), "") if word.isdigit() else (0, word) for word in name.split()]
