"""Bank conflicts against a count by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxgen.layouts.banks import access, bank


@pytest.mark.parametrize(
    ("addresses", "width", "wavefronts", "ideal"),
    [
        ([4 * t for t in range(32)], 4, 1, 1),
        ([0] * 32, 4, 1, 1),  # one word for all: a broadcast
        ([128 * t for t in range(32)], 4, 32, 1),
        ([256 * t for t in range(8)], 4, 8, 1),
        ([4 * (t ^ 5) for t in range(32)], 4, 1, 1),
        ([8 * t for t in range(32)], 4, 2, 1),
        ([8 * t for t in range(32)], 8, 2, 2),  # half warps
        ([16 * t for t in range(32)], 16, 4, 4),  # quarter warps
        ([128 * t for t in range(8)], 16, 8, 1),  # eight rows of 128 bytes without a swizzle
        ([128 * t + 16 * t for t in range(8)], 16, 1, 1),  # and with the rotation that the swizzle gives
        ([2 * t for t in range(32)], 2, 1, 1),
        (list(range(32)), 1, 1, 1),
    ],
)
def test_counts_by_hand(addresses: list[int], width: int, wavefronts: int, ideal: int) -> None:
    found = access(addresses, width)
    assert (found.wavefronts, found.ideal, found.conflicts) == (wavefronts, ideal, wavefronts - ideal)


@given(st.lists(st.integers(0, 4095), min_size=1, max_size=32))
def test_four_byte_accesses(words: list[int]) -> None:
    found = access([4 * word for word in words], 4)
    by_bank: dict[int, set[int]] = {}
    for word in words:
        by_bank.setdefault(word % 32, set()).add(word)
    assert found.wavefronts == found.ways == max(map(len, by_bank.values()))
    assert found.load == tuple(len(by_bank.get(each, ())) for each in range(32))
    assert sum(found.load) == len(set(words))


@pytest.mark.parametrize(
    ("addresses", "width", "message"),
    [
        ([0], 3, "a thread reads 1, 2, 4, 8 or 16 bytes, not 3"),
        ([], 4, "a warp has 1 to 32 threads, not 0"),
        ([0] * 33, 4, "not 33"),
        ([0, 6], 4, "addresses must be multiples of the 4 bytes of the access, not 0x6"),
    ],
)
def test_refusals(addresses: list[int], width: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        access(addresses, width)


def test_banks_of_bytes() -> None:
    assert [bank(each) for each in (0, 3, 4, 127, 128)] == [0, 0, 1, 31, 0]
