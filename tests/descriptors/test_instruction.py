"""The instruction descriptor against a golden value, a field-by-field reference, and every shape and type."""

import itertools
from typing import Any

import pytest

from ptxgen.descriptors import BlockScaledInstructionDescriptor, DescriptorError, InstructionDescriptor

BASE: dict[str, Any] = {"d_type": "f32", "a_type": "bf16", "b_type": "bf16", "m": 128, "n": 256}


def make(**fields: Any) -> InstructionDescriptor:
    return InstructionDescriptor(**{**BASE, **fields})


def test_golden_value() -> None:
    assert make().encode() == 0x08400490


@pytest.mark.parametrize(
    ("fields", "bits"),
    [
        ({"a_type": "f16", "b_type": "f16", "d_type": "f16"}, 0x08400000),
        ({"a_major": "mn"}, 0x08400490 | 1 << 15),
        ({"b_major": "mn"}, 0x08400490 | 1 << 16),
        ({"negate_a": True}, 0x08400490 | 1 << 13),
        ({"negate_b": True}, 0x08400490 | 1 << 14),
        ({"sparse": True, "sparsity_selector": 3}, 0x08400490 | 0b111),
        ({"ws": True, "max_shift": 8}, 0x08400490 | 1 << 30),
        ({"ws": True, "max_shift": 32}, 0x08400490 | 3 << 30),
        ({"m": 64, "n": 8}, 4 << 24 | 1 << 17 | 0x490),
        ({"m": 256, "n": 16, "cta_group": 2}, 16 << 24 | 2 << 17 | 0x490),
        ({"m": 32, "n": 64, "ws": True}, 2 << 24 | 8 << 17 | 0x490),
    ],
)
def test_each_field(fields: dict[str, Any], bits: int) -> None:
    value = make(**fields)
    assert value.encode() == bits
    assert InstructionDescriptor.decode(bits, "f16", value.cta_group, value.ws) == value
    assert eval(repr(value)) == value


def legal_by_the_manual(m: int, n: int, cta_group: int, ws: bool, sparse: bool) -> bool:
    """Table 39, written down on its own."""
    if ws:
        return cta_group == 1 and m in (32, 64, 128) and n in ((64, 128) if sparse else (64, 128, 256))
    if cta_group == 1:
        return m in (64, 128) and n % 8 == 0 and 8 <= n <= 256
    return m in (128, 256) and n % 16 == 0 and 16 <= n <= 256


def test_every_shape() -> None:
    counts = {True: 0, False: 0}
    for m, n, group, ws, sparse in itertools.product(
        range(0, 321, 16), range(0, 289, 8), (1, 2), (False, True), (False, True)
    ):
        legal = legal_by_the_manual(m, n, group, ws, sparse)
        counts[legal] += 1
        try:
            value = make(m=m, n=n, cta_group=group, ws=ws, sparse=sparse)
        except DescriptorError:
            assert not legal, (m, n, group, ws, sparse)
            continue
        assert legal, (m, n, group, ws, sparse)
        assert InstructionDescriptor.decode(value.encode(), cta_group=group, ws=ws) == value
    assert counts[True] == 2 * (64 + 32) + 9 + 6


def test_every_type_combination() -> None:
    for d, a, b in itertools.product(("f16", "f32"), ("f16", "bf16"), ("f16", "bf16")):
        legal = d == "f32" or (a, b) == ("f16", "f16")
        if legal:
            assert make(d_type=d, a_type=a, b_type=b).encode() >> 4 & 3 == int(d == "f32")
        else:
            with pytest.raises(DescriptorError, match="must be f16 with d_type f16, not bf16"):
                make(d_type=d, a_type=a, b_type=b)


def test_every_low_bit_pattern_decodes_to_itself_or_is_refused() -> None:
    accepted = 0
    for low in range(1 << 17):
        bits = 0x08400000 | low
        reserved = low & (1 << 3 | 1 << 6)
        try:
            value = InstructionDescriptor.decode(bits)
        except DescriptorError:
            continue
        accepted += 1
        assert not reserved
        assert value.encode() == bits
    assert accepted == 5 * 2**7  # five type triples; selector, sparse, negate and major bits are free


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"m": 192}, "m must be 64 or 128 for kind::f16, cta_group::1, not 192; the nearest is 128"),
        ({"m": 32}, "m must be 64 or 128 for kind::f16, cta_group::1, not 32; the nearest is 64"),
        (
            {"m": 64, "cta_group": 2},
            "m must be 128 or 256 for kind::f16, cta_group::2, not 64; the nearest is 128",
        ),
        (
            {"n": 24, "cta_group": 2},
            "n must be a multiple of 16 from 16 to 256 for kind::f16, cta_group::2, not 24",
        ),
        (
            {"n": 0},
            "n must be a multiple of 8 from 8 to 256 for kind::f16, cta_group::1, not 0; the nearest is 8",
        ),
        ({"n": 12}, "n must be a multiple of 8 from 8 to 256 (PTX ISA table 39), not 12"),
        ({"n": 12, "cta_group": 2}, "n must be a multiple of 16 from 16 to 256 with cta_group::2 (PTX ISA table 39)"),
        ({"n": 512, "ws": True}, "n must be one of 64, 128, 256 with .ws (PTX ISA table 39), not 512"),
        ({"n": 512, "ws": True, "sparse": True}, "n must be 64 or 128 with .ws (PTX ISA table 39), not 512"),
        ({"m": 512}, "m must be 64 or 128 with cta_group::1 (PTX ISA table 39), not 512"),
        ({"m": 512, "cta_group": 2}, "m must be 128 or 256 with cta_group::2 (PTX ISA table 39), not 512"),
        ({"m": 512, "ws": True}, "m must be one of 32, 64, 128 with .ws (PTX ISA table 39), not 512"),
        ({"n": 264}, "not 264; the nearest is 256"),
        (
            {"m": 64, "n": 96, "ws": True},
            "n must be one of 64, 128, 256 for kind::f16, cta_group::1, .ws, not 96",
        ),
        (
            {"n": 256, "ws": True, "sparse": True},
            "n must be 64 or 128 for kind::f16, cta_group::1, .ws, sparse, not 256",
        ),
        ({"ws": True, "cta_group": 2}, "cta_group must be 1 for .ws, not 2"),
        ({"max_shift": 8}, "max_shift must be 0 without .ws, not 8"),
        ({"max_shift": 4, "ws": True}, "max_shift must be one of 0, 8, 16, 32, not 4"),
        ({"max_shift": False, "ws": True}, "max_shift must be one of 0, 8, 16, 32, not False (a bool)"),
        ({"sparsity_selector": 4}, "sparsity_selector must be an integer from 0 to 3, not 4"),
        ({"a_type": "e4m3"}, "a_type must be f16 or bf16 for kind f16, not 'e4m3'"),
        ({"a_type": 1}, "a_type must be f16 or bf16 for kind f16, not 1"),
        ({"d_type": "s32"}, "d_type must be f16 or f32 for kind f16, not 's32'"),
        ({"a_major": "m"}, "a_major must be k or mn, not 'm'"),
        ({"negate_a": 1}, "negate_a must be True or False, not 1"),
        ({"kind": "i4"}, "kind must be one of f16, tf32, f8f6f4, i8, ti16, not 'i4'"),
        ({"saturate": True}, "saturate must be False for kind::f16; it is for kind::i8"),
        ({"cta_group": 3}, "cta_group must be 1 or 2, not 3"),
        ({"cta_group": True}, "cta_group must be 1 or 2, not True (a bool)"),
        ({"m": 128.0}, "not 128.0 (a float)"),
    ],
)
def test_refusals(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DescriptorError) as caught:
        make(**fields)
    assert message in str(caught.value)


def test_decode_lists_everything_that_is_wrong() -> None:
    with pytest.raises(DescriptorError) as caught:
        InstructionDescriptor.decode(0x08400490 | 1 << 3 | 1 << 6 | 1 << 23 | 7 << 7)
    message = str(caught.value)
    assert "n must be a multiple of 8 from 8 to 256 (PTX ISA table 39), not 768, which takes bit 23" in message
    assert "reserved bits must be 0, not 1 in bit 6;" in message
    assert "a_type must be 0 (f16) or 1 (bf16), not 7" in message
    with pytest.raises(DescriptorError, match="kind must be one of f16, tf32, f8f6f4, i8, ti16, not 'mxf4'"):
        InstructionDescriptor.decode(0x08400490, kind="mxf4")
    with pytest.raises(DescriptorError, match="32-bit number"):
        InstructionDescriptor.decode(1 << 32)


def test_warnings() -> None:
    assert make().warnings() == ()
    assert "N 24 at M 128 is unverified" in make(n=24).warnings()[0]
    assert make(m=64, n=24).warnings() == ()
    assert "mixed A and B types" in make(a_type="f16").warnings()[0]
    assert "no effect without sparse" in make(sparsity_selector=1).warnings()[0]
    assert "warning: N 24" in make(n=24).explain()


def test_explain_names_kind_bits_and_meaning() -> None:
    text = make().explain()
    assert text.startswith("InstructionDescriptor 0x08400490 (kind=f16, cta_group=1, ws=False)")
    assert any(line.split() == ["bits", "17-22", "n", "0x20", "256"] for line in text.splitlines())


@pytest.mark.parametrize("n", [-8, 0, 4, 260, 264, 504, 512, 1 << 40])
def test_n_is_refused_by_its_rule_not_by_its_bits(n: int) -> None:
    with pytest.raises(DescriptorError, match=r"^n must be a multiple of 8 from 8 to 256"):
        InstructionDescriptor(d_type="f32", a_type="f16", b_type="f16", m=128, n=n)
    with pytest.raises(DescriptorError, match=r"n must be 8, 16, 24 or a multiple of 16 from 32 to 256|multiple of 8"):
        InstructionDescriptor(kind="i8", d_type="s32", a_type="s8", b_type="s8", m=128, n=n)


@pytest.mark.parametrize(
    ("name", "low", "unit", "value", "rule"),
    [
        ("n", 17, 8, 512, "a multiple of 8 from 8 to 256"),
        ("n", 17, 8, 520, "a multiple of 8 from 8 to 256"),
    ],
)
def test_overflows_are_named_not_reserved_bits(name: str, low: int, unit: int, value: int, rule: str) -> None:
    made = InstructionDescriptor(d_type="f32", a_type="f16", b_type="f16", m=128, n=64).encode()
    field = InstructionDescriptor.bit_fields[name]
    overflown = made & ~field.mask() | (value // unit) << low
    (problem,) = InstructionDescriptor.read(overflown).problems
    assert problem == f"{name} must be {rule} (PTX ISA table 39), not {value}, which takes bit 23 above its field"


@pytest.mark.parametrize(
    ("low", "number", "said"),
    [
        (17, 264 // 8, "n must be a multiple of 8 from 8 to 256 for kind::mxf8f6f4, cta_group::1, not 264"),
        (17, 512 // 8, "not 0; the nearest is 8 (PTX ISA table 39); N 512 would set bit 23, scale_type"),
        (17, 1024 // 8, "not 1 in bit 24; N of 1024 and more reaches it, and must be a multiple of 8 from 8 to 256"),
        (27, 512 // 128, "m must be 128 for kind::mxf8f6f4, cta_group::1, not 0"),
        (27, 512 // 128, "M 512 would set bit 29, sfa_id"),
    ],
)
def test_overflows_of_block_scaled_descriptors(low: int, number: int, said: str) -> None:
    """N and M have other fields behind theirs, which a number that is too large sets."""
    made = BlockScaledInstructionDescriptor(
        kind="mxf8f6f4", a_type="e4m3", b_type="e4m3", scale_type="ue8m0", m=128, n=64, dense_k=32
    ).encode()
    with pytest.raises(DescriptorError) as raised:
        BlockScaledInstructionDescriptor.decode(made & ~((1 << (2 if low == 27 else 6)) - 1 << low) | number << low)
    assert said in str(raised.value)


def test_an_overflow_of_m_sets_the_bit_of_k() -> None:
    made = InstructionDescriptor(d_type="f32", a_type="f16", b_type="f16", m=128, n=64).encode()
    (problem,) = InstructionDescriptor.read(made & ~(31 << 24) | 512 // 16 << 24).problems
    assert "m would be 512 with bit 29, but must be 64 or 128 with cta_group::1" in problem
