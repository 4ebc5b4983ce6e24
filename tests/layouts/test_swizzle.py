"""Swizzles against bit-by-bit rules of the manual."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxgen.layouts.swizzle import SWIZZLES, swizzle

XORED = {  # target bit: source bit
    "none": {},
    "32B": {4: 7},
    "64B": {4: 7, 5: 8},
    "128B": {4: 7, 5: 8, 6: 9},
    "128B_atom_32B": {5: 7, 6: 8},
    "128B_atom_64B": {6: 7},
}
names = st.sampled_from(sorted(XORED))
addresses = st.integers(0, (1 << 18) - 1)


def by_bits(name: str, address: int) -> int:
    result = address
    for target, source in XORED[name].items():
        if address & 1 << source:
            result ^= 1 << target
    return result


@given(names, addresses)
def test_matches_the_bits(name: str, address: int) -> None:
    assert SWIZZLES[name].apply(address) == by_bits(name, address)


@given(names, addresses)
def test_is_its_own_inverse(name: str, address: int) -> None:
    assert SWIZZLES[name].apply(SWIZZLES[name].apply(address)) == address


@given(names, addresses, st.integers(0, 7))
def test_arrays_and_base_offset(name: str, address: int, base: int) -> None:
    mode = SWIZZLES[name]
    array = np.array([address, address + 16, address + 128])
    assert mode.apply(array, base).tolist() == [mode.apply(int(a), base) for a in array]


@pytest.mark.parametrize("name", sorted(XORED))
def test_geometry(name: str) -> None:
    mode = SWIZZLES[name]
    pattern = [by_bits(name, a) ^ a for a in range(4096)]
    period = mode.period
    assert all(pattern[a] == pattern[a + period] for a in range(4096 - period))
    if mode.width:
        assert any(pattern[a] != pattern[a + period // 2] for a in range(4096 - period))
    assert mode.alignment % period == 0
    assert sorted(mode.apply(np.arange(4096)).tolist()) == list(range(4096))
    atom = mode.atom_bytes
    assert all(pattern[a] == pattern[a // atom * atom] for a in range(4096))


@given(st.integers(0, 7), st.integers(0, 63))
def test_base_offset_moves_the_pattern_to_the_tile(line: int, chunk: int) -> None:
    # A tile whose pattern restarts at its own start, `line` lines past the boundary, as if it began at 0.
    mode = SWIZZLES["128B"]
    start = line * 128
    assert mode.apply(start + chunk * 16, line) == start + mode.apply(chunk * 16)


def test_unknown_name() -> None:
    with pytest.raises(ValueError, match="swizzle must be one of none, 32B"):
        swizzle("96B")
    assert swizzle(SWIZZLES["32B"]) is swizzle("32B")
