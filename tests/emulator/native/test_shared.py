"""Machine code keeps and compares accesses to shared memory as the NumPy code does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.cas_loops import CasLoops
from ptxgen.emulator.checks.order.vector_clock import PENDING
from ptxgen.emulator.checks.shared.accesses import SharedAccesses
from ptxgen.emulator.checks.shared.lanes import LaneAccesses
from ptxgen.emulator.checks.shared.last_accesses import ThreadAccesses
from ptxgen.emulator.memory.granules import by_warp
from ptxgen.emulator.native.library import Library
from ptxgen.emulator.native.shared import Touched
from tests.emulator.native.test_memory import _restored, both, found  # noqa: F401

CTAS, WARPS, BYTES = 2, 3, 1024


def accesses(random: np.random.Generator, size: int) -> tuple[NDArray[np.int64], Any, NDArray[np.bool_]]:
    """The warps of an instruction, offsets of their lanes in shared memory, and which lanes take part."""
    warps = np.sort(random.choice(CTAS * WARPS, int(random.integers(1, 5)), replace=False))
    shape = len(warps), 32
    lanes = np.arange(warps.size * 32).reshape(shape)
    places = (lanes, lanes[:, ::-1], random.integers(0, BYTES // size, shape), lanes // 5)[int(random.integers(0, 4))]
    active = random.integers(0, 4, shape) > 0 if random.integers(0, 2) else np.ones(shape, np.bool_)
    active[:, 0] = True
    return warps, np.ascontiguousarray(places * size % BYTES), active


def test_granules(found: Library) -> None:  # noqa: F811
    random = np.random.default_rng(1)
    for _ in range(200):
        size = int(random.choice([1, 2, 4, 8, 16]))
        _, offsets, active = accesses(random, size)
        new = active & (random.integers(0, 2, active.shape) > 0) if random.integers(0, 2) else None
        mask = None if active.all() else active
        wanted, got = both(found, lambda _, given=(offsets, mask, size, new): by_warp(*given))
        for a, b in zip(wanted, got, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def test_lanes(found: Library) -> None:  # noqa: F811
    """Two tables of the last accesses by lane, one of them by machine code, stay alike, and find the same conflicts."""
    random = np.random.default_rng(2)
    reports: tuple[list[Any], list[Any]] = ([], [])
    tables: list[LaneAccesses] = []
    for report in reports:
        order: Any = SimpleNamespace(warps=WARPS, size=1, members=WARPS)
        made = LaneAccesses(order, CTAS, BYTES, CasLoops(), None)  # type: ignore[arg-type]
        made._report = lambda *given, report=report, **_: report.append(given[:3])  # type: ignore[method-assign]
        tables.append(made)
    for turn in range(300):
        size = int(random.choice([4, 8, 16] if turn < 150 else [1, 2, 4, 8, 16]))
        warps, offsets, active = accesses(random, size)
        if turn % 7 == 0:
            for table in tables:
                table.converged(warps, warps)
        statement: Any = SimpleNamespace(opcode="ldmatrix.sync" if turn % 11 == 0 else "ld.shared")
        changing = active & (random.integers(0, 2, active.shape) > 0) if turn % 3 == 0 else None
        given = warps, (warps // WARPS)[:, None], offsets, active, size, statement, changing
        both(found, lambda which, given=given: tables[which].access(*given))
        for name in ("_writer", "_reader", "_stored", "_loaded", "_storers", "_loaders", "_loading"):
            np.testing.assert_array_equal(getattr(tables[0], name), getattr(tables[1], name), name)
    assert reports[0] == reports[1]
    assert len(reports[0]) > 20


def test_warps(found: Library) -> None:  # noqa: F811
    """Accesses of warps are kept alike, and found to be unordered alike."""
    random, outcomes = np.random.default_rng(3), list[bool]()
    granules = BYTES // 16
    kept = [[ThreadAccesses(CTAS, 1, WARPS, granules) for _ in range(2)] for _ in range(2)]
    order: Any = SimpleNamespace(size=1, warps=WARPS, clocks=np.ones((CTAS * WARPS, WARPS), np.int64))
    for turn in range(300):
        warps, offsets, active = accesses(random, 4)
        order.clocks[:] = random.integers(max(turn // 10 - 3, 0), turn // 10 + 3, order.clocks.shape)
        slots, writes = warps // WARPS, turn % 3 == 0
        at, numbers, masks, changed = by_warp(offsets, active, 4, active & (random.integers(0, 2, active.shape) > 0))
        touched = Touched(warps, slots, at, numbers, masks, (WARPS, 1, granules), order.clocks)
        now = np.full(len(warps), PENDING if turn % 13 == 0 else turn // 10 + 1)

        def call(which: int, given: Any = (touched, warps, masks, changed if writes else None)) -> bool:
            touched, warps, masks, changed = given
            stores, loads = kept[which]
            shared: Any = SharedAccesses.__new__(SharedAccesses)
            shared._happens_before, shared.stores, shared.loads = order, stores, loads
            shared._races, shared._groups = SimpleNamespace(copy_lines={1: "cp.async"}), {}
            return shared._ordered(touched, shared._group(warps), masks, changed)

        wanted, got = both(found, call)
        assert wanted == got
        outcomes.append(wanted)
        kind = 0 if writes else 1
        both(found, lambda which, kind=kind, given=(touched, now, turn): kept[which][kind].add_own(*given))
        for one, other in zip(*kept, strict=True):
            for name in ("clock", "mask", "line", "latest"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert {True, False} == set(outcomes)
