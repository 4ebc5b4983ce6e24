"""Machine descriptions: every number has a source, and cycles that follow from them are those measured."""

from __future__ import annotations

import pytest

from ptxgen.timing import MACHINES, Machine

B200, H200 = MACHINES["b200"], MACHINES["h200"]
#: Cycles per K block of 128 bytes of one CTA with bf16, by number of stages, as measured. Only the two round trips are
#: fitted to them (SemiAnalysisAI/microbench-blackwell, cutlass_gemm_mainloop/results.csv).
MAINLOOPS = {
    (128, 256): (False, {2: 976, 3: 659, 4: 521}),
    (128, 128): (False, {2: 739, 3: 499, 4: 381, 5: 312, 6: 272}),
    (64, 256): (False, {2: 923, 3: 628, 4: 518, 6: 518}),
    (128, 64): (True, {2: 484, 3: 322, 4: 245, 5: 202, 6: 201}),
    (64, 128): (True, {2: 505, 3: 339, 4: 261, 5: 261}),
    (64, 64): (True, {2: 415, 3: 276, 4: 209, 5: 169, 6: 142}),
}


@pytest.mark.parametrize(("m", "n"), MAINLOOPS)
def test_main_loops_of_one_cta_are_within_a_tenth_of_the_measured(m: int, n: int) -> None:
    in_l2, measured = MAINLOOPS[m, n]
    mma = 4 * B200.mma_cycles(m, n)
    for stages, cycles in measured.items():
        assert B200.k_block_cycles(mma, m + n, 2, stages, in_l2=in_l2) == pytest.approx(cycles, rel=0.1)


@pytest.mark.parametrize(
    ("m", "n", "group", "cycles"),
    [(128, 64, 1, 48), (128, 96, 1, 56), (128, 256, 1, 128), (64, 64, 1, 32), (64, 128, 1, 64), (256, 64, 2, 40),
     (256, 256, 2, 128)],
)  # fmt: skip
def test_intervals_of_tcgen05_are_those_of_the_fit(m: int, n: int, group: int, cycles: float) -> None:
    assert B200.mma_cycles(m, n, group) == cycles


@pytest.mark.parametrize(("n", "cycles"), [(256, 128), (128, 64), (64, 32)])
def test_intervals_of_wgmma_are_half_of_n(n: int, cycles: float) -> None:
    assert H200.mma_cycles(64, n) == cycles


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_the_largest_tile_reaches_the_tensor_throughput(machine: Machine) -> None:
    m = 128 if machine is B200 else 64
    work = 2 * m * 256 * 16 / machine.mma_cycles(m, 256)
    tensor = machine.tensor
    assert work == tensor["f16"].value == 2 * tensor["tf32"].value == tensor["f8f6f4"].value / 2


@pytest.mark.parametrize("name", MACHINES)
def test_every_number_has_a_unit_and_a_source(name: str) -> None:
    figures = dict(MACHINES[name].figures())
    assert {"sms", "clock", "hbm_bandwidth", "l2_bandwidth", "l2_bytes", "shared_bytes", "tmem_columns"} <= set(figures)
    for each in figures.values():
        assert each.value >= 0
        assert each.unit
        assert each.evidence.source
    assert MACHINES[name].name == name
    assert figures["l2_bandwidth"].shown == {"b200": "21 TB/s", "h200": "25 TB/s", "h100": "25 TB/s"}[name]
    assert figures["l2_bytes"].shown == {"b200": "126.5 MB", "h200": "60 MB", "h100": "50 MB"}[name]
    assert figures["shared_bytes"].value == 227 * 1024
    assert figures["tmem_columns"].value == (512 if name == "b200" else 0)
