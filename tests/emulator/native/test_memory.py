"""Machine code accesses memory and its shadow as the NumPy code does."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxgen.emulator.checks.changes import changing_lanes
from ptxgen.emulator.checks.global_memory.shadow import ShadowMemory
from ptxgen.emulator.memory import GlobalMemory, MemoryFault, SharedMemory
from ptxgen.emulator.memory.access import _gathered, _locate
from ptxgen.emulator.memory.located import Bytes
from ptxgen.emulator.native import library as native
from ptxgen.emulator.native.library import Library, library, main
from ptxgen.emulator.state.clusters import Clusters
from ptxgen.emulator.state.group import Group

BYTES = 4096
Lanes = NDArray[np.int64]


@pytest.fixture(scope="module")
def found() -> Library:
    main()
    made = library()
    if made is None:
        pytest.skip("no library of machine code here")
    return made


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = native._Chosen.library
    yield
    native._Chosen.library = before


def both(found: Library, call: Any) -> tuple[Any, Any]:
    """What a call gives by the NumPy code, and by machine code."""
    native._Chosen.library = None
    wanted = call(0)
    native._Chosen.library = found
    return wanted, call(1)


def lanes(random: np.random.Generator, size: int) -> tuple[Lanes, NDArray[np.bool_] | None]:
    """Offsets of accesses of one to three warps, in a row, with gaps, at random or all the same; some masked."""
    warps = int(random.integers(1, 4))
    places = np.arange(warps * 32).reshape(warps, 32)
    kind = random.integers(0, 4)
    if kind == 1:
        places = places * 2
    elif kind == 2:
        places = random.integers(0, BYTES // 16, (warps, 32))
    elif kind == 3:
        places = places % 5
    mask = random.integers(0, 3, (warps, 32)) > 0 if random.integers(0, 2) else None
    offsets = places * size % BYTES
    return np.ascontiguousarray(offsets if mask is None else np.where(mask, offsets, 0)), mask


@pytest.mark.parametrize("single_bytes", [False, True])
def test_shadow_memory(found: Library, single_bytes: bool) -> None:
    """Two shadows, one of them by machine code, have the same entries after the same accesses."""
    random = np.random.default_rng(1)
    shadows, earlier = [ShadowMemory(BYTES) for _ in range(2)], [ShadowMemory(BYTES) for _ in range(2)]
    for turn in range(400):
        size = int(random.choice([1, 2, 4, 8, 16] if single_bytes else [2, 4, 8, 16]))
        offsets, mask = lanes(random, size)
        entries = random.integers(1, 1 << 20, offsets.shape).astype(np.int32)
        if turn % 3 == 0:
            at, kept = offsets.ravel(), entries.ravel()
            both(found, lambda which, at=at, size=size, kept=kept: shadows[which].keep(at, size, kept))
        elif turn % 3 == 1:
            wanted, got = both(
                found,
                lambda which, at=offsets, mask=mask, size=size, kept=entries: shadows[which].keep_first(
                    at, mask, size, kept
                ),
            )
            assert wanted == got
            others = [reader.copy() for reader in (shadows[0]._halves, shadows[1]._halves)]
            both(
                found,
                lambda which, at=offsets, mask=mask, size=size, kept=entries ^ (turn % 2 << 8): shadows[
                    which
                ].keep_lost(earlier[which], at, mask, size, kept),
            )
            assert all((before == each._halves).all() for before, each in zip(others, shadows, strict=True))
            assert earlier[0].used == earlier[1].used
            np.testing.assert_array_equal(earlier[0]._halves, earlier[1]._halves)
        for size in (1, 2, 4, 8, 16) if turn % 8 == 7 else (4, 16):
            offsets, _ = lanes(random, size)
            wanted, got = both(found, lambda which, at=offsets, size=size: shadows[which].at(at, size))
            np.testing.assert_array_equal(wanted, got)
            assert wanted.dtype == got.dtype


def test_gathered_values(found: Library) -> None:
    random = np.random.default_rng(2)
    data = random.integers(0, 256, BYTES + 64).astype(np.uint8)
    for dtype in (np.uint8, np.uint16, np.float16, np.uint32, np.float32, np.int64, np.float64):
        for count in (1, 2, 4):
            of = np.dtype(dtype)
            offsets, _ = lanes(random, of.itemsize * count)
            wanted, got = both(found, lambda _, at=offsets, of=of, n=count: _gathered(data, at, of, n))
            for a, b in zip(wanted, got, strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))


def test_offsets_and_faults(found: Library) -> None:
    """The same offsets, or the same fault: misaligned, outside the heap, between arrays, freed."""
    random, memory = np.random.default_rng(3), GlobalMemory()
    arrays = [memory.allocate(size) for size in (1000, 256, 4096, 12)]
    memory.free(arrays[1])
    outcomes = set[str]()
    for turn in range(600):
        size = int(random.choice([1, 2, 4, 8, 16]))
        offsets, mask = lanes(random, size)
        addresses = (offsets % (960 if turn % 3 else 4096) + arrays[turn % 4]).view(np.uint64)
        if turn % 5 == 4:
            wrong = int(random.choice([1, -(1 << 45), 1 << 40, -8192, 1 << 63]))
            place = tuple(random.integers(0, extent) for extent in addresses.shape)
            addresses[place] = (int(addresses[place]) + wrong) % (1 << 64)

        def call(_: int, at: Any = addresses, size: int = size, mask: Any = mask) -> Any:
            try:
                return memory.offsets(at, size, mask, "a load")
            except MemoryFault as fault:
                return fault.summary, fault.rule, fault.place

        wanted, got = both(found, call)
        outcomes.add("fault" if isinstance(wanted, tuple) else "offsets")
        assert type(wanted) is type(got)
        if isinstance(wanted, tuple):
            assert wanted == got
        else:
            np.testing.assert_array_equal(wanted, got)
    assert outcomes == {"fault", "offsets"}


def test_changing_lanes(found: Library) -> None:
    """Which lanes of a store change memory, in any order of lanes."""
    random = np.random.default_rng(7)
    taken = 0
    for turn in range(400):
        size, count = int(random.choice([1, 2, 4, 8])), int(random.choice([1, 2]))
        offsets, mask = lanes(random, size * count)
        data = random.integers(0, 2, BYTES).astype(np.uint8)
        kind = np.dtype(random.choice(["u", "i", "f"]) + str(size)) if size > 1 else np.dtype(np.uint8)
        bits = [random.integers(0, 2, (*offsets.shape, size)).astype(np.uint8) for _ in range(count)]
        values = [each.view(kind)[..., 0] for each in bits]
        if turn % 5 == 0:
            values = [value[:1, :1] for value in values]
        active = np.ones(offsets.shape, np.bool_) if mask is None else mask
        given = active, Bytes(data, offsets), size * count, values
        wanted, got = both(found, lambda _, given=given: changing_lanes(*given))
        np.testing.assert_array_equal(wanted, got)
        taken += bool(got.any())
    assert taken > 100


@pytest.mark.parametrize("groups", [False, True])
def test_own_shared_memory(found: Library, groups: bool) -> None:
    """Where accesses to shared memory are, and those that are misaligned or outside."""
    random, warps_per_cta = np.random.default_rng(8), 2
    shared, outcomes = SharedMemory(3, 4096, groups=groups), set[bool]()
    clusters = Clusters((3, 1, 1), (1, 1, 1), 3, warps_per_cta)
    machine: Any = SimpleNamespace(shared=shared, clusters=clusters, cta_slot=clusters.cta_slot, warps=99)
    for turn in range(300):
        size = int(random.choice([1, 2, 4, 8, 16]))
        warps = np.sort(random.choice(3 * warps_per_cta, int(random.integers(1, 5)), replace=False))
        first = 1024 if turn % 3 else 1024 - size * int(random.integers(0, 3))
        addresses = first + size * random.integers(0, 3072 // size + (turn % 4 == 0), (len(warps), 32))
        addresses += (turn % 7 == 0) * (random.integers(0, 99, addresses.shape) == 0)
        addresses |= (turn % 11 == 0) << 32  # addresses count modulo the window
        mask = random.integers(0, 3, addresses.shape) > 0 if turn % 2 else None
        group = Group(machine, warps, mask)

        def call(_: int, given: Any = (group, "shared", addresses, size, "a load")) -> Any:
            try:
                return _locate(*given)
            except MemoryFault as fault:
                return str(fault), fault.place

        wanted, got = both(found, call)
        outcomes.add(isinstance(wanted, Bytes))
        if not isinstance(wanted, Bytes):
            assert wanted == got
            continue
        active = np.ones(addresses.shape, np.bool_) if mask is None else mask
        np.testing.assert_array_equal(wanted.slots, got.slots)
        for name in ("offsets", "inside"):
            np.testing.assert_array_equal(getattr(wanted, name)[active], getattr(got, name)[active])
    assert outcomes == {False, True}
