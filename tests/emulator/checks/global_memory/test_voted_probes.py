"""Hash probes by lanes that vote before one of them swaps its key in, and twins in which a stale value matters.

`tests/data/probes` has them in CUDA C++, compiled by nvcc 13.5.37 with `-arch=sm_90a`: tables as cuCollections,
warpcore and SlabHash have them, in global and shared memory, with keys and pairs, ten in all.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxgen import Emulator, Kernel
from ptxgen.device import LaunchReport

DATA = Path(__file__).parents[3] / "data/probes"
#: Threads that serve one key; 1: each thread has its own.
TILES = {
    "cuco": 8,
    "warpcore": 16,
    "slab": 1,
    "matched": 1,
    "voted": 1,
    "pairs": 4,
    "bucket": 16,
    "in_shared": 32,
    "all_full": 32,
    "active": 1,
}
SLOTS = 64
SCHEDULES: tuple[tuple[Any, int], ...] = (("eager", 0), ("late", 0), ("random", 0), ("random", 1), ("random", 2))
CASES = [(name, *schedule) for name in TILES for schedule in SCHEDULES]


@cache
def text(stem: str) -> str:
    return (DATA / f"{stem}.ptx").read_text()


def run(stem: str, entry: str, schedule: Any, seed: int) -> tuple[LaunchReport, bool]:
    """Insert 24 keys, most of them several times; the report, and whether just these are in the table."""
    name = entry.removesuffix("_wrong")
    rng = np.random.default_rng(33)
    tile, empty = TILES[name], np.uint64(0xFFFFFFFFFFFFFFFF) if name == "pairs" else np.uint32(0xFFFFFFFF)
    keys = rng.integers(1, 1 << 30, 24).astype(np.uint32)[rng.integers(0, 24, 96 if tile == 1 else 24)]
    emulator = Emulator("sm_90a", schedule=schedule, seed=seed)
    table = emulator.array(np.full(SLOTS, empty))
    counts = emulator.array(np.zeros(1024, np.uint32))
    block, threads = (128, 128) if name == "in_shared" else (32, len(keys) * tile)
    report = emulator.launch(
        Kernel.from_ptx(text(stem), entry=entry),
        threads // block,
        block,
        [table, emulator.array(keys), counts, np.uint32(len(keys)), np.uint32(SLOTS - 1)],
    )
    found = table.numpy()
    there = (found[found != empty].astype(np.uint64) & np.uint64(0xFFFFFFFF)).tolist()
    return report, sorted(there) == sorted(set(keys.tolist()))


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("name", "schedule", "seed"), CASES)
def test_a_swap_decides_again(name: str, schedule: Any, seed: int) -> None:
    report, right = run("voted_probes", name, schedule, seed)
    assert (report.status, right) == ("ok", True), report.summary()
    assert all("ld.relaxed" in each.fix for each in report.findings), report.summary()


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("name", "schedule", "seed"), CASES)
def test_a_stale_value_matters(name: str, schedule: Any, seed: int) -> None:
    report, _ = run("voted_probes_wrong", f"{name}_wrong", schedule, seed)
    errors = {each.code for each in report.findings if each.severity == "error"}
    assert errors & {"global-race", "shared-race"}, report.summary()
