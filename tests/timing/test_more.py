"""Instructions, loads and atomic operations against what an NVIDIA H200 took (bench/data/h200-more.json)."""

import json
from pathlib import Path

import numpy as np
import pytest

from bench.gpu.microbench import atomics, instructions, memory
from bench.gpu.microbench.__main__ import Measurement
from ptxgen.device import Kernel
from ptxgen.emulator import Emulator
from ptxgen.timing import predict

_MEASURED = json.loads((Path(__file__).parents[2] / "bench/data/h200-more.json").read_text())["cycles"]
_TESTS = {each.name: each for part in (instructions, memory, atomics) for each in part.measurements()}


def cycles(test: Measurement, words: int, more: int = 8) -> float:
    """Cycles of one operation, with so many words of data, as the microbenchmark takes them."""
    took = []
    for n in (test.counts[0], test.counts[0] + more):
        emulator = Emulator("sm_90a", checks=False)
        out, data = emulator.empty((264,), np.uint64), emulator.array(np.zeros(words, np.uint64))
        arguments = [out, data, n, test.depth, test.bytes, test.rows, bytes(128)]
        kernel = Kernel.from_ptx(test.text)
        found = predict(kernel, test.grid, test.threads, arguments, machine="h200", shared_bytes=65536)
        took.append(found.parts["simulated"])
    return (took[1] - took[0]) / more / test.each


@pytest.mark.parametrize(
    "name",
    [
        "setp and selp", "mul.hi.u32", "popc", "cvt.s32.f32", "cvt.f32.s32", "cvt.f64.f32", "fma.f64", "shfl.bfly",
        "redux.add", "mma m16n8k16 bf16", "mma m16n8k8 tf32", "mma m16n8k32 s8", "mma m8n8k4 f64",
    ],
)  # fmt: skip
def test_instructions_of_16_warps_take_what_was_measured(name: str) -> None:
    test = _TESTS[f"throughput {name}"]
    assert cycles(test, 64, 2) == pytest.approx(_MEASURED[test.name][0], rel=0.1)


@pytest.mark.parametrize(
    ("name", "within"),
    [
        # Loads are in flight together: ptxas issues all 8 before the first of their sums.
        ("ld.global.cg of 4 bytes, lanes 4 apart, 16 warps, grid 132", 0.1),
        ("ld.global.cg of 16 bytes, lanes 16 apart, 16 warps, grid 132", 0.1),
        ("ld.global.cg of 4 bytes, lanes 128 apart, 16 warps, grid 132", 0.3),
        ("L1, ld of 16 bytes, lanes 16 apart", 0.1),
        ("L1, ld of 4 bytes, lanes 128 apart", 0.05),
        ("st.global of 16 bytes, lanes 16 apart, 16 warps, grid 132", 0.1),
    ],
)
def test_loads_and_stores_take_what_was_measured(name: str, within: float) -> None:
    test = _TESTS[name]
    assert cycles(test, test.grid << 14, 4) == pytest.approx(_MEASURED[name][0], rel=within)


@pytest.mark.parametrize(
    ("name", "words"),
    [("atom.global, one word, grid 132", 1), ("atom.global, 32 words, grid 132", 16)],
)
def test_atomic_operations_of_all_sms_take_turns(name: str, words: int) -> None:
    test = _TESTS[name]
    assert cycles(test, words, 8) == pytest.approx(_MEASURED[name][0], rel=0.1)


def test_atomic_operations_on_shared_memory_take_a_cycle_a_lane() -> None:
    name = "atom.shared, one bank, 16 warps"
    assert cycles(_TESTS[name], 64) == pytest.approx(_MEASURED[name][0], rel=0.1)
