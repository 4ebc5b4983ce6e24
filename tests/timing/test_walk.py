"""Clusters that walk over tiles: what is extrapolated against a simulation of all; and data that decide something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bench.gpu.microbench import ptx
from ptxgen.attention import find as find_attention
from ptxgen.attention.timed import predict_attention
from ptxgen.device import Kernel
from ptxgen.emulator import Emulator
from ptxgen.gemm import find
from ptxgen.gemm.prediction.timed import predict_gemm
from ptxgen.timing import MACHINES, Prediction, predict, simulate
from ptxgen.timing.walk import lengths


def _none(tiles: int) -> Iterator[int]:
    return iter(())


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes predictions simulate all tiles."""
    return lambda: monkeypatch.setattr(simulate, "lengths", _none)


def _gemm(name: str, tiles: int, k: int = 1024, **options: Any) -> Prediction:
    """So many tiles of each cluster."""
    plan = find(name).plan(**options)
    machine = MACHINES["h200" if plan.target == "sm_90a" else "b200"]
    cluster = plan.scheduler.cluster
    slots = machine.cluster_slots(plan.scheduler.cluster_size)
    rows, columns = plan.scheduler.rows * cluster[0], plan.scheduler.columns * cluster[1]
    return predict_gemm(plan, rows * tiles, columns * slots, k, machine)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("hopper/overlapped", {"n_tile": 128, "cluster_m": 1, "consumers": "pingpong"}),
        ("blackwell/clc", {}),
    ],
    ids=str,
)
def test_tiles_that_repeat_are_extrapolated(name: str, options: dict[str, Any], whole: Any) -> None:
    found = _gemm(name, 10, **options)
    assert found.parts["extrapolated"] > 0
    assert "of the 10 tiles of one cluster" in found.simulated
    whole()
    expected = _gemm(name, 10, **options)
    assert expected.parts["extrapolated"] == 0
    assert found.cycles == pytest.approx(expected.cycles, rel=0.005)


def test_attention_is_extrapolated(whole: Any) -> None:
    plan = find_attention("hopper/attention-pingpong").plan(head_size=64)
    problem = plan.problem(plan.scheduler.rows, 512, heads=int(MACHINES["h200"].sms.value) * 6)
    found = predict_attention(problem, MACHINES["h200"])
    assert found.parts["extrapolated"] > 0
    whole()
    expected = predict_attention(problem, MACHINES["h200"])
    assert found.cycles == pytest.approx(expected.cycles, rel=0.005)


def test_few_tiles_are_all_simulated() -> None:
    assert list(lengths(5)) == []
    assert list(lengths(6)) == list(lengths(15)) == [4]
    assert list(lengths(16)) == [4, 8]
    found = _gemm("hopper/overlapped", 2, 256, m_tile=128, n_tile=64, cluster_m=1)
    assert found.parts["extrapolated"] == 0
    # Tiles that take few cycles.
    assert _gemm("hopper/overlapped", 10, 128, m_tile=128, n_tile=64, cluster_m=1).parts["extrapolated"] == 0


def test_cluster_launch_control_counts_all_tiles() -> None:
    """Twice the tiles take twice the MMAs."""
    few, many = (_gemm("blackwell/clc", tiles) for tiles in (8, 16))
    assert many.parts["simulated"] + many.parts["extrapolated"] == pytest.approx(
        2 * (few.parts["simulated"] + few.parts["extrapolated"]), rel=0.12
    )


_COPIED = """    mbarrier.init.shared::cta.b64 [%r6], 1;
    add.u32 %r20, %r6, 128;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r20], [%d1], 16, [%r6];
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [%r6], 0;
    @!%q bra wait;
    ADD
    ld.shared.b32 %r21, [%r20];
LOOP
"""
_LOOP = """    mov.u32 %r22, 1;
again:
    mad.lo.u32 %r22, %r22, %r22, %r21;
    sub.u32 %r21, %r21, 1;
    setp.ne.u32 %p, %r21, 0;
    @%p bra again;
    st.global.b32 [%d1+8], %r22;"""


def _copied(count: int, *, loops: bool, stored: int = 0) -> float:
    """Cycles of a launch that copies `count` to shared memory and loads it; `loops`: that often."""
    store = f"st.shared.b32 [%r20], {stored};" if stored else ""
    text = ptx.kernel(_COPIED.replace("ADD", store).replace("LOOP", _LOOP if loops else ""), "")
    text = text.replace(".reqntid 32", ".reqntid 1")
    emulator = Emulator("sm_90a", checks=False)
    data, out = emulator.array(np.full(4, count, np.uint32)), emulator.array(np.zeros(4, np.uint64))
    arguments = [out, data, 1, 0, 0, 0, bytes(128)]
    return predict(Kernel.from_ptx(text), 1, 1, arguments, machine="h200", shared_bytes=4096).cycles


def test_a_loop_over_what_a_copy_brought_has_its_data() -> None:
    few, many = (_copied(count, loops=True) for count in (10, 1000))
    assert many - few > 990 * 4
    # Without the loop the value decides nothing; where a thread has stored another since, that one counts.
    assert _copied(10, loops=False) == _copied(1000, loops=False)
    assert _copied(1000, loops=True, stored=10) == _copied(10, loops=True, stored=10)


def test_a_gemm_of_blackwell_needs_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its address in tensor memory is read from shared memory, to which no copy writes it."""
    computed: list[bool] = []
    launch = simulate.TimedEmulator.launch

    def noted(self: simulate.TimedEmulator, *args: Any, **options: Any) -> Any:
        computed.append(self._computes)
        return launch(self, *args, **options)

    monkeypatch.setattr(simulate.TimedEmulator, "launch", noted)
    for name in ("blackwell/converged", "blackwell/clc"):
        predict_gemm(find(name).plan(), 256, 256, 256, "b200")
    assert computed == [False, False]
