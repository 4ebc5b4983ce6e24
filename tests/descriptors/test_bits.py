"""The bit-field base on small formats of its own."""

from typing import Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxgen.descriptors import DescriptorError
from ptxgen.descriptors.bits import BitStruct
from ptxgen.descriptors.evidence import Evidence, unverified
from ptxgen.descriptors.fields import array, constant, field


class Small(BitStruct, bits=16, word_bits=8):
    """Split field, bias, constant, array and derived field in 16 bits."""

    split: int = field(0, 1, also=((4, 5),), bias=1, evidence=unverified("made up"))
    count: int = field(2, 3, maximum=2)
    mark = constant(6, 7, 0b10, "fixed")
    parts: tuple[int, ...] = array(
        [((8, 9),), ((10, 11),)], length="count", label=lambda i: f"part {i}", scale=2, unit="bytes"
    )
    total: int = field(12, 14, default=None, derive=lambda s: sum(s.parts) // 2)

    def encode(self) -> int:
        return self._encode()

    @classmethod
    def decode(cls, bits: int) -> Self:
        return cls._decode(bits)


def test_places() -> None:
    assert Small(split=1 + 0b1101, count=2, parts=(6, 2)).encode() == 0b0_100_01_11_10_11_10_01
    assert Small(split=1, count=0, parts=()).encode() == 0b10_00_00_00


@given(st.integers(0, (1 << 16) - 1))
def test_every_pattern_round_trips_or_is_refused(bits: int) -> None:
    legal = (
        bits >> 6 & 3 == 2
        and not bits >> 15
        and bits >> 2 & 3 < 3
        and not (bits >> 2 & 3 < 2 and bits >> 10 & 3)
        and not (bits >> 2 & 3 < 1 and bits >> 8 & 3)
    )
    if legal:
        value = Small.decode(bits)
        assert value.encode() == bits
        assert eval(repr(value)) == value
    else:
        with pytest.raises(DescriptorError):
            Small.decode(bits)


@pytest.mark.parametrize(
    ("bits", "message"),
    [
        (0x8080, "reserved bits must be 0, not 1 in word 1 bit 7"),
        (0x0000, "word 0 bits 6-7 must be 0b10 (fixed), not 0b0"),
        (0x0480, "part 1 must be 0 beyond count 0, not 1"),
        (0x008C, "count must be an integer from 0 to 2, not 3"),
    ],
)
def test_decode_messages(bits: int, message: str) -> None:
    with pytest.raises(DescriptorError) as caught:
        Small.decode(bits)
    assert message in str(caught.value)


@pytest.mark.parametrize("parts", [(2, 2, 2), (2,), "ab", 5, None])
def test_array_length(parts: object) -> None:
    with pytest.raises(DescriptorError, match=r"parts must be a sequence of 2 numbers \(count 2\)"):
        Small(split=1, count=2, parts=parts)  # type: ignore[arg-type]


def test_array_item() -> None:
    with pytest.raises(DescriptorError, match="part 1 must be a multiple of 2 from 0 to 6 bytes, not 3"):
        Small(split=1, count=2, parts=(2, 3))


def test_overlap_is_refused_at_declaration() -> None:
    with pytest.raises(TypeError, match="second overlaps"):

        class Overlap(BitStruct, bits=8):
            first: int = field(0, 3)
            second: int = field(3, 4)

    with pytest.raises(TypeError, match="passes bit 7"):

        class Outside(BitStruct, bits=8):
            first: int = field(4, 8)


def test_explain_shows_split_bits_and_evidence() -> None:
    text = Small(split=1, count=1, parts=(4,)).explain()
    assert "word 0 bits 0-1, word 0 bits 4-5" in text
    assert "split: unverified: made up" in text
    assert str(Evidence("measured", "H200")) == "measured: H200"
