"""Machine code finds where warps are, and which run next, as the NumPy code does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ptxgen.emulator.load.program import EXITED
from ptxgen.emulator.native.library import Library
from ptxgen.emulator.state.warps import Warps
from tests.emulator.native.test_memory import _restored, both, found  # noqa: F401

WARPS = 9


def warps_of() -> Warps:
    timeline = SimpleNamespace(schedule="eager", starves=False)
    machine: Any = SimpleNamespace(warps=WARPS, timeline=timeline, perturbation=None)
    block = SimpleNamespace(aligned=False, separable=False, resumes=False, strong=False, targets=())
    program: Any = SimpleNamespace(blocks=[block] * 5)
    return Warps(machine, program)


def test_where_warps_are(found: Library) -> None:  # noqa: F811
    random = np.random.default_rng(6)
    two = warps_of(), warps_of()
    uniform = set[bool]()
    for turn in range(300):
        some = np.flatnonzero(random.integers(0, 2, WARPS))
        kind = random.integers(0, 4, (len(some), 1))
        pc = random.integers(0, 5, (len(some), 32))
        pc = np.where(kind == 0, pc, pc[:, :1])
        pc = np.where(random.integers(0, 4, pc.shape) > 0, pc, np.where(kind == 2, EXITED, pc))
        pc = np.where(kind == 3, EXITED, pc)
        held = random.integers(0, 4, pc.shape) == 0 if turn % 2 else np.zeros(pc.shape, np.bool_)
        for each in two:
            each.pc[some], each.held[some] = pc, held
            each.steps = turn
        both(found, lambda which, some=some: two[which].refresh(some))
        for name in ("current", "ready", "uniform"):
            np.testing.assert_array_equal(getattr(two[0], name), getattr(two[1], name))
        wanted, got = both(found, lambda which: two[which].pick())
        assert (wanted is None) == (got is None)
        if wanted is not None:
            np.testing.assert_array_equal(wanted.indices, got.indices)
            np.testing.assert_array_equal(wanted.active, got.active)
            assert (wanted.mask is None) == (got.mask is None)
            uniform.add(got.mask is None)
    assert uniform == {False, True}
