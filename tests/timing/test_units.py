"""Units of an SM that many use at a time; figures of an NVIDIA H200, 2026-11-29 (bench/data/h200-constants.json)."""

import json
from pathlib import Path

import numpy as np
import pytest

from bench.gpu.microbench import ptx
from ptxgen.device import Kernel
from ptxgen.emulator import Emulator
from ptxgen.gemm import find
from ptxgen.gemm.prediction.timed import predict_gemm
from ptxgen.timing import predict
from ptxgen.timing.engines import Turns
from ptxgen.timing.multiprocessor import MULTIPROCESSORS

_MEASURED = json.loads((Path(__file__).parents[2] / "bench/data/h200-constants.json").read_text())["cycles"]


def test_requests_that_take_turns_are_through_together() -> None:
    unit = Turns()
    for number in range(4):
        unit.add(0, number, 64)
    assert unit.through(250) == []
    assert unit.due == 256
    assert unit.through(256) == [0, 1, 2, 3]
    assert unit.busy == 256


def test_a_request_that_comes_later_delays_those_before_it() -> None:
    unit = Turns()
    unit.add(0, 1, 100)
    assert unit.due == 100
    unit.add(50, 2, 100)
    assert unit.due == 150  # 50 cycles are left, at half the rate
    assert unit.through(150) == [1]
    assert unit.due == 200


# A warp alone takes 39 cycles in the model, whose loop issues more slowly than it did.
@pytest.mark.parametrize("warps", [2, 4, 12])
def test_stores_to_the_peer_take_the_cycles_that_were_measured(warps: int) -> None:
    text = ptx.st_async(32 * warps)
    emulator = Emulator("sm_90a")
    out, data = emulator.empty((4,), np.uint64), emulator.array(np.zeros(64, np.uint64))
    took = []
    for n in (8, 40):
        arguments = [out, data, n, 0, 0, 0, bytes(128)]
        kernel = Kernel.from_ptx(text)
        found = predict(kernel, 2, 32 * warps, arguments, machine="h200", cluster=2, shared_bytes=65536)
        took.append(found.parts["simulated"])
    measured = _MEASURED[f"st.async.v4 to the peer, {warps} warps, grid 2"][0]
    assert (took[1] - took[0]) / 32 == pytest.approx(measured, rel=0.06)


@pytest.mark.parametrize(("m", "counts"), [(512, True), (4096, False)])
def test_an_idle_part_of_the_gpu_counts_more_cycles(m: int, counts: bool) -> None:
    # 1 to 16 CTAs: Nsight Compute counts the cycles of SMs whose clock stays higher than that of those at work.
    found = predict_gemm(
        find("hopper/overlapped").plan(cluster_m=1, n_tile=128, scheduler="grid", panel=0), m, 128, 512, "h200"
    )
    sm = MULTIPROCESSORS["h200"]
    launch = sm.launch.value + sm.launch_cta.value * m / 128
    more = found.parts["simulated"] * (sm.idle_clock.value - 1) if counts else 0
    assert found.parts["launch"] == pytest.approx(launch + more, abs=1)
