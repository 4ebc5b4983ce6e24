"""The trace of a launch, read back with the protobuf classes of the package perfetto."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

import ptxgen
from ptxgen.emulator.engines.timeline import Schedule
from ptxgen.emulator.observers import Trace
from ptxgen.gemm import find
from ptxgen.gemm.job import GemmJob

protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


def read(path: Path) -> tuple[dict[int, str], dict[int, list[tuple[int, int, str, list[int], list[int]]]]]:
    """Names of the tracks, and of each its slices: begin, end, name, flows that begin and that end with it."""
    trace = protos.Trace()
    trace.ParseFromString(path.read_bytes())
    names: dict[int, str] = {}
    events = defaultdict(list)
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            names[packet.track_descriptor.uuid] = packet.track_descriptor.name
        else:
            events[packet.track_event.track_uuid].append((packet.timestamp, packet.track_event))
    slices = {}
    for track, found in events.items():
        begins, ends = found[::2], found[1::2]
        assert all(event.type == event.TYPE_SLICE_BEGIN for _, event in begins)
        assert all(event.type == event.TYPE_SLICE_END for _, event in ends)
        slices[track] = [
            (begin, end, event.name, list(event.flow_ids), list(event.terminating_flow_ids))
            for (begin, event), (end, _) in zip(begins, ends, strict=True)
        ]
    return names, slices


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_a_specialized_gemm_shows_copies_products_and_waits(schedule: Schedule, tmp_path: Path) -> None:
    trace = Trace({4: "load", 5: "mma"})
    job = GemmJob(find("blackwell/tilus-roles").plan(), 128, 128, 256)
    assert job.run(ptxgen.Emulator("sm_100a", schedule, observers=[trace])).ok
    trace.write(tmp_path / "gemm.pftrace")
    names, slices = read(tmp_path / "gemm.pftrace")
    by_name = {names[track]: found for track, found in slices.items()}
    assert {"warp 0", "warp 4 (load)", "warp 5 (mma)", "tensor copy", "tcgen05.mma"} <= by_name.keys()
    for found in by_name.values():  # slices of a track follow each other
        assert all(begin < end for begin, end, *_ in found)
        assert all(before[1] <= after[0] for before, after in pairwise(found))
    copies = [each for name, found in by_name.items() if name.startswith("tensor copy") for each in found]
    assert sum("tensor copy" in name for _, _, name, *_ in copies) == 2 * 4  # A and B of four K tiles
    issued = {flow for _, _, _, flows, _ in by_name["warp 4 (load)"] for flow in flows}
    assert {flow for _, _, _, flows, _ in copies for flow in flows} <= issued
    if schedule != "eager":
        assert any(name.startswith("wait for phase") for _, _, name, *_ in by_name["warp 5 (mma)"])
        waited = {flow for _, _, _, _, ended in by_name["warp 5 (mma)"] for flow in ended}
        assert waited & issued


def test_launches_follow_each_other(tmp_path: Path) -> None:
    trace = Trace()
    emulator = ptxgen.Emulator("sm_100a", observers=[trace])
    kernel = ptxgen.Kernel.from_ptx(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n    ret;\n}\n"
    )
    for _ in range(3):
        emulator.launch(kernel, 1, 32, [])
    trace.write(tmp_path / "three.pftrace")
    _, slices = read(tmp_path / "three.pftrace")
    ((first, second, third),) = slices.values()
    assert first[1] < second[0]
    assert second[1] < third[0]


def test_a_trace_changes_no_result() -> None:
    plan = find("blackwell/swizzled").plan()
    plain = GemmJob(plan, 128, 128, 64).run(ptxgen.Emulator("sm_100a", "random", 3))
    traced = GemmJob(plan, 128, 128, 64).run(ptxgen.Emulator("sm_100a", "random", 3, observers=[Trace()]))
    assert plain.launch.instructions == traced.launch.instructions
    assert plain.launch.findings == traced.launch.findings
