"""Predictions of launches: units against what was measured, extrapolation, and what cannot be predicted."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bench.gpu.microbench import ptx
from bench.gpu.microbench.__main__ import Measurement, measurements
from ptxgen.descriptors import TensorMap
from ptxgen.device import Kernel
from ptxgen.emulator import Emulator
from ptxgen.gemm import find
from ptxgen.gemm.prediction.timed import predict_gemm
from ptxgen.timing import MACHINES, TimingError, predict
from ptxgen.timing.engines import Share
from ptxgen.timing.simulate import TimedEmulator

_DATA = Path(__file__).parents[2] / "bench" / "data"
RECORD = json.loads((_DATA / "h200-constants.json").read_text())["cycles"]
BESIDE = json.loads((_DATA / "h200-beside.json").read_text())["cycles"]
#: What one SM has alone.
_ALONE = Share(l2=108, loads=90, stores=32, memory=40, outside_row=1.17)


def slope(test: Measurement, first: int = 4, more: int = 4) -> float:
    """Cycles of one operation, by the kernel's own clock, under the machine schedule."""
    emulator = TimedEmulator(MACHINES["h200"], _ALONE)
    data, out = emulator.array(np.zeros(1024, np.uint64)), emulator.empty((264,), np.uint64)
    matrix = emulator.array(np.zeros((256, 8192), np.uint16))
    times: list[float] = []
    for n in (first, first + more):
        box = TensorMap.tiled("bf16", matrix, (8192, 256), (16384,), (64, max(test.box, 1)), swizzle="128b")
        arguments = [out, data, n, test.depth, test.bytes, test.rows, box]
        report = emulator.launch(Kernel.from_ptx(test.text), 1, test.threads, arguments, shared_bytes=200 * 1024)
        assert report.ok, report.summary()
        times.append(float(out.numpy()[0]))
    return (times[1] - times[0]) / more / test.each


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [
        # 1 %: the interval of one busy unit is all that counts. 10 to 15 %: a latency and the instructions of a loop
        # add up, each off by a few cycles. 25 %: loops of up to 140 cycles, nearly all instructions and polling.
        ("wgmma bf16 ss n128 batch 4, 2 warpgroups, 1 pending", 0.01),
        ("wgmma bf16 ss n64 batch 4, 1 warpgroups, 1 pending", 0.01),
        ("bar.sync, 8 warps", 0.25),
        ("mbarrier arrive and own wait", 0.15),
        ("mbarrier ping-pong, round trip", 0.25),
        ("fma, 4 warps", 0.15),
        ("tma L2 grid 1 rows 128 depth 1", 0.15),
        ("tma L2 grid 1 rows 256 depth 4", 0.1),
        # The loop's instructions and its wait take 30 to 43 cycles more than measured, whatever the rows: of 110, 334
        # and 578 cycles that is 40, 13 and 5 %.
        ("tma store grid 1 rows 8 complete", 0.42),
        ("tma store grid 1 rows 64 complete", 0.14),
        ("tma store grid 1 rows 128 read", 0.06),
    ],
)
def test_units_take_what_was_measured(name: str, tolerance: float) -> None:
    test = next(each for each in measurements() if each.name == name)
    assert slope(test) == pytest.approx(RECORD[name][0], rel=tolerance)


def test_a_stored_row_takes_what_was_measured() -> None:
    few, many = (f"tma store grid 1 rows {rows} read" for rows in (64, 128))
    tests = {each.name: each for each in measurements()}
    measured = (RECORD[many][0] - RECORD[few][0]) / 64
    # Equal loops apart from the rows, so that only rounding to cycles is left.
    assert (slope(tests[many]) - slope(tests[few])) / 64 == pytest.approx(measured, rel=0.02)


def test_the_recorded_names_are_those_of_the_measurements() -> None:
    # The script no longer makes the copies "from memory", whose data lay in the L2 ("notes" of the record).
    recorded = {name for name in {**RECORD, **BESIDE} if not name.startswith("tma memory")}
    assert {each.name for each in measurements()} == recorded


def test_a_gemm_issues_its_mmas_and_copies_and_says_who_waits() -> None:
    plan = find("hopper/overlapped").plan(n_tile=64, cluster_m=1, scheduler="grid", panel=0, stages=4)
    found = predict_gemm(plan, 128, 64, 512, "h200")
    tensor = [each for each in found.spans if each.unit == "tensor"]
    # 8 K blocks of 64, each 4 MMAs of K 16 for each of two warpgroups of 64 rows.
    assert len(tensor) == 8 * 4 * 2
    loaded = sum(each.bytes for each in found.spans if each.unit == "tma")
    assert loaded == (128 + 64) * 512 * 2
    # No MMA of N 64 can follow another in less than 32 cycles.
    begins = sorted(each.begin for each in tensor)
    assert min(b - a for a, b in pairwise(begins)) > 32 - 1e-6  # sums of cycles round
    assert found.cycles > found.parts["launch"] + 8 * 4 * 2 * 32
    waits = {name for role in found.roles for name in role.waits}
    assert waits >= {"ab_full[0]", "wgmma.wait_group"}
    for role in found.roles:
        assert role.issuing + sum(role.waits.values()) <= found.parts["simulated"] + 1
    assert found.microseconds == pytest.approx(found.cycles / found.clock)


def test_stream_k_has_a_time_only_where_no_tile_is_split() -> None:
    plan = find("hopper/overlapped").plan(n_tile=64, cluster_m=1, scheduler="stream", panel=0, stages=4)
    with pytest.raises(TimingError, match=r"splits tiles here \(1 of them, 132 clusters\)"):
        predict_gemm(plan, 128, 64, 512, "h200")
    found = predict_gemm(plan, 128 * 132, 64, 128, "h200")
    assert found.utilization["tensor"] > 0.05


@pytest.mark.parametrize("name", ["blackwell/nvfp4", "blackwell/mxfp4"])
def test_packed_operands(name: str) -> None:
    found = predict_gemm(find(name).plan(), 256, 256, 512, "b200")
    assert any(each.unit == "tensor" for each in found.spans)


def test_longer_sums_take_the_cycles_of_their_k_blocks() -> None:
    plan = find("hopper/overlapped").plan(n_tile=128, cluster_m=1, scheduler="grid", panel=0, stages=4)
    short, long = (predict_gemm(plan, 128, 128, k, "h200").cycles for k in (512, 1024))
    # 8 K blocks more, each of 4 MMAs of 64 cycles for each of two warpgroups, at most a quarter more with its copies.
    assert 8 * 512 <= long - short <= 1.25 * 8 * 512


def test_equal_clusters_are_simulated_three_times() -> None:
    plan = find("hopper/overlapped").plan(n_tile=64, cluster_m=1, scheduler="grid", panel=0, stages=4)
    found = predict_gemm(plan, 128 * 132, 64 * 6, 128, "h200")
    assert found.parts["extrapolated"] > 0
    assert "count as equal" in found.simulated


def test_memory_stays_as_it_is() -> None:
    text = ptx.repeated("    st.global.b32 [%d1], %r4;\n", threads=32)
    emulator = Emulator("sm_90a", checks=False)
    data, out = emulator.array(np.arange(64, dtype=np.uint64)), emulator.array(np.full(4, 7, np.uint64))
    before = data.numpy().copy()
    arguments = [out, data, 2, 0, 0, 0, bytes(128)]
    found = predict(Kernel.from_ptx(text), 1, 32, arguments, machine="h200", shared_bytes=64 * 1024)
    assert found.cycles > 2840
    assert (data.numpy() == before).all()
    assert (out.numpy() == 7).all()


def test_what_cannot_be_predicted_is_one_sentence() -> None:
    hang = ptx.kernel(
        "    mbarrier.init.shared::cta.b64 [%r6], 1;\n",
        "w:\n    mbarrier.try_wait.parity.shared::cta.b64 %q, [%r6], 0;\n    @!%q bra w;\n",
    )
    emulator = Emulator("sm_90a", checks=False)
    out = emulator.array(np.zeros(4, np.uint64))
    arguments = [out, out, 2, 0, 0, 0, bytes(128)]
    with pytest.raises(TimingError, match="ends as deadlock"):
        predict(Kernel.from_ptx(hang), 1, 32, arguments, machine="h200", shared_bytes=4096)
    # A flag that another CTA, which is not simulated, would set: long before the limit of steps.
    spin = ptx.kernel(
        "", "w:\n    ld.acquire.gpu.global.u32 %r9, [%d1];\n    setp.eq.u32 %q, %r9, 0;\n    @%q bra w;\n"
    )
    with pytest.raises(TimingError, match="ends as deadlock"):
        predict(Kernel.from_ptx(spin), 1, 32, arguments, machine="h200", shared_bytes=4096)
    with pytest.raises(TimingError, match="unknown machine 'a100'"):
        predict(Kernel.from_ptx(hang), 1, 32, arguments, machine="a100", shared_bytes=4096)
    with pytest.raises(TimingError, match="does not run"):
        predict(Kernel.from_ptx(hang), 1, 32, arguments, machine="b200", shared_bytes=4096)
    slow = replace(MACHINES["h200"], name="h200", sms=MACHINES["h200"].sms)
    assert predict(Kernel.from_ptx(ptx.kernel("", "")), 1, 32, arguments, machine=slow).cycles > 2840
