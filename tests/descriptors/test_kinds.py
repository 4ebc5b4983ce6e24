"""Instruction descriptors of every kind, and zero-column masks, against tables written down on their own."""

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxgen.descriptors import (
    BlockScaledInstructionDescriptor,
    DescriptorError,
    InstructionDescriptor,
    ZeroColumnMask,
)

NARROW = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}


def plain(**fields: Any) -> InstructionDescriptor:
    return InstructionDescriptor(
        **{"kind": "f8f6f4", "d_type": "f32", "a_type": "e4m3", "b_type": "e4m3", "m": 128, "n": 64, **fields}
    )


def scaled(**fields: Any) -> BlockScaledInstructionDescriptor:
    kind = fields.get("kind", "mxf8f6f4")
    fp4 = kind != "mxf8f6f4"
    base = {
        "kind": kind,
        "a_type": "e2m1" if fp4 else "e4m3",
        "b_type": "e2m1" if fp4 else "e4m3",
        "m": 128,
        "n": 64,
        "scale_type": "ue8m0",
        "dense_k": 64 if fp4 else 32,
    }
    return BlockScaledInstructionDescriptor(**{**base, **fields})


def legal(make: Any, **fields: Any) -> bool:
    try:
        value = make(**fields)
    except DescriptorError:
        return False
    facts = {name: getattr(value, name) for name in value.contexts}
    assert type(value).decode(value.encode(), **facts) == value
    return True


#: Bits by hand: M/16 at 24, N/8 at 17, then the types at 10, 7 and 4.
@pytest.mark.parametrize(
    ("fields", "bits"),
    [
        ({"a_type": "e5m2", "b_type": "e2m1"}, 8 << 24 | 8 << 17 | 5 << 10 | 1 << 7 | 1 << 4),
        ({"d_type": "f16", "a_type": "e2m3", "b_type": "e3m2"}, 8 << 24 | 8 << 17 | 4 << 10 | 3 << 7),
        ({"kind": "tf32", "a_type": "tf32", "b_type": "tf32"}, 8 << 24 | 8 << 17 | 2 << 10 | 2 << 7 | 1 << 4),
        (
            {"kind": "i8", "d_type": "s32", "a_type": "u8", "b_type": "s8", "saturate": True},
            8 << 24 | 8 << 17 | 1 << 10 | 0 << 7 | 2 << 4 | 1 << 3,
        ),
    ],
)
def test_bits_of_a_kind(fields: dict[str, Any], bits: int) -> None:
    assert plain(**fields).encode() == bits


@pytest.mark.parametrize(
    ("make", "fields", "k"),
    [
        (plain, {"kind": "f16", "a_type": "f16", "b_type": "f16"}, 16),
        (plain, {"kind": "tf32", "a_type": "tf32", "b_type": "tf32"}, 8),
        (plain, {}, 32),
        (plain, {"kind": "i8", "d_type": "s32", "a_type": "s8", "b_type": "s8"}, 32),
        (scaled, {}, 32),
        (scaled, {"kind": "mxf4"}, 64),
        (scaled, {"kind": "mxf4nvf4"}, 64),
    ],
)
def test_k(make: Any, fields: dict[str, Any], k: int) -> None:
    assert make(**fields).k == k
    assert make(**fields, cta_group=2, m=256, sparse=True).k == 2 * k


def test_shapes_of_i8() -> None:
    def made(n: int, group: int) -> bool:
        return legal(plain, kind="i8", d_type="s32", a_type="s8", b_type="s8", m=128, n=n, cta_group=group)

    assert [n for n in range(0, 300, 8) if made(n, 1)] == [8, 16, 24, *range(32, 257, 16)]
    assert [n for n in range(0, 300, 8) if made(n, 2)] == list(range(32, 257, 32))


@pytest.mark.parametrize("kind", ["mxf8f6f4", "mxf4", "mxf4nvf4"])
def test_every_shape_of_block_scaled_kinds(kind: str) -> None:
    for m, n, group, sparse in itertools.product((0, 64, 128, 256, 384), range(0, 272, 8), (1, 2), (False, True)):
        wanted = m == 128 if group == 1 else m == 256 or (m == 128 and not sparse)
        wanted = wanted and 0 < n <= 256 and n % (8 * group) == 0
        assert legal(scaled, kind=kind, m=m, n=n, cta_group=group, sparse=sparse) == wanted, (m, n, group, sparse)


def test_scale_types_and_ids() -> None:
    """PTX ISA tables 43, 44 and 57, K 96 with CUTLASS."""
    expected = {
        ("mxf8f6f4", "1X", 32): ({"ue8m0"}, {0, 1, 2, 3}),
        ("mxf8f6f4", "1X", 64): ({"ue8m0"}, {0, 1, 2, 3}),
        ("mxf4", "2X", 64): ({"ue8m0"}, {0, 2}),
        ("mxf4", "2X", 96): ({"ue8m0"}, {0, 1, 2, 3}),
        ("mxf4nvf4", "2X", 64): ({"ue8m0"}, {0, 2}),
        ("mxf4nvf4", "2X", 96): ({"ue8m0"}, {0, 1, 2, 3}),
        ("mxf4nvf4", "4X", 64): ({"ue4m3", "ue8m0"}, {0}),
        ("mxf4nvf4", "4X", 96): ({"ue4m3", "ue8m0"}, {0, 2}),
    }
    for kind, vector, k in itertools.product(("mxf8f6f4", "mxf4", "mxf4nvf4"), ("1X", "2X", "4X"), (32, 64, 96)):
        types, ids = expected.get((kind, vector, k), (set(), set()))
        for scale, a, b in itertools.product(("ue4m3", "ue8m0"), range(4), range(4)):
            fields = {"kind": kind, "scale_vec": vector, "dense_k": k, "scale_type": scale, "sfa_id": a, "sfb_id": b}
            assert legal(scaled, **fields) == (scale in types and a in ids and b in ids), fields


def test_bits_of_block_scales() -> None:
    value = scaled(sfa_id=3, sfb_id=2, n=256, m=256, cta_group=2, negate_a=True, b_major="mn", sparse=True)
    assert value.encode() == 3 << 29 | 2 << 27 | 1 << 23 | 32 << 17 | 1 << 16 | 1 << 13 | 2 << 4 | 1 << 2
    assert scaled(kind="mxf4nvf4", scale_type="ue4m3", dense_k=96).encode() == 1 << 31 | 1 << 27 | 8 << 17 | 9 << 7


@pytest.mark.parametrize("narrow", NARROW)
def test_types_of_less_than_a_byte_are_k_major(narrow: str) -> None:
    byte = narrow in ("e4m3", "e5m2")
    assert legal(plain, a_type=narrow, a_major="mn") == byte
    assert legal(scaled, b_type=narrow, b_major="mn") == byte
    assert plain(a_type=narrow).encode() >> 7 & 7 == NARROW[narrow]


@pytest.mark.parametrize("group", [1, 2])
def test_n_of_transposed_b_of_8_bits(group: int) -> None:
    """PTX ISA table 52: steps of 16 from 16, of 32 from 32 with pairs; wider types and K-major B keep table 39."""
    steps = [n for n in range(8, 257, 8) if n % (16 * group) == 0]
    for make, fields in (
        (plain, {"a_type": "e5m2", "b_type": "e4m3"}),
        (scaled, {"a_type": "e2m1", "b_type": "e5m2"}),
        (plain, {"kind": "i8", "d_type": "s32", "a_type": "u8", "b_type": "s8"}),
    ):
        shape: dict[str, Any] = {"m": 128 * group, "cta_group": group}
        found = [n for n in range(8, 257, 8) if legal(make, n=n, b_major="mn", **shape, **fields)]
        assert found == steps
    for fields in (
        {"b_major": "k"},
        {"a_major": "mn"},
        {"kind": "f16", "a_type": "f16", "b_type": "f16", "b_major": "mn"},
    ):
        assert legal(plain, n=8 * group, m=128 * group, cta_group=group, **fields)
    with pytest.raises(DescriptorError, match=f"n must be a multiple of {16 * group} for MN-major B of 8 bits"):
        plain(b_major="mn", n=8 * group, m=128 * group, cta_group=group)


def test_blocks_are_other_names_of_vectors() -> None:
    """PTX ISA 9.7.16.10.7.1: block16 is 4X; block32 is 1X of mxf8f6f4 and 2X of the others."""
    for kind, block, vector in (
        ("mxf8f6f4", "block32", "1X"),
        ("mxf4", "block32", "2X"),
        ("mxf4nvf4", "block32", "2X"),
        ("mxf4nvf4", "block16", "4X"),
    ):
        for scale, number in itertools.product(("ue8m0", "ue4m3"), range(4)):
            fields = {"kind": kind, "scale_type": scale, "sfa_id": number}
            assert legal(scaled, scale_vec=block, **fields) == legal(scaled, scale_vec=vector, **fields)
    assert not legal(scaled, scale_vec="block16")
    assert not legal(scaled, scale_vec="block16", kind="mxf4")


#: Legal values of all fields, by kind, written down from tables 39, 42, 51 and 52; what ties them is checked below.
SPACE: dict[str, dict[str, Any]] = {
    "f16": {"d_type": ["f16", "f32"], "types": ["f16", "bf16"]},
    "tf32": {"d_type": ["f32"], "types": ["tf32"]},
    "f8f6f4": {"d_type": ["f16", "f32"], "types": list(NARROW)},
    "i8": {"d_type": ["s32"], "types": ["u8", "s8"]},
}


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_the_whole_space_of_plain_kinds(data: Any) -> None:
    """Any combination of values is made exactly where the manual's tables have it, and comes back from its bits."""
    kind = data.draw(st.sampled_from(sorted(SPACE)))
    space = SPACE[kind]
    flag = st.booleans()
    fields: dict[str, Any] = {
        "kind": kind,
        "cta_group": data.draw(st.sampled_from([1, 2])),
        "ws": data.draw(flag),
        "sparse": data.draw(flag),
        "sparsity_selector": data.draw(st.sampled_from([0, 0, 1, 3])),
        "saturate": data.draw(flag) and data.draw(flag),
        "d_type": data.draw(st.sampled_from(space["d_type"])),
        "a_type": data.draw(st.sampled_from(space["types"])),
        "b_type": data.draw(st.sampled_from(space["types"])),
        "negate_a": data.draw(flag) and data.draw(flag),
        "negate_b": data.draw(flag) and data.draw(flag),
        "a_major": data.draw(st.sampled_from(["k", "k", "mn"])),
        "b_major": data.draw(st.sampled_from(["k", "k", "mn"])),
        "n": data.draw(st.sampled_from([8, 16, 24, 32, 40, 64, 128, 256])),
        "m": data.draw(st.sampled_from([32, 64, 128, 256])),
        "max_shift": data.draw(st.sampled_from([0, 0, 8, 32])),
    }
    assert legal(InstructionDescriptor, **fields) == by_the_tables(**fields), fields


def by_the_tables(
    kind: str,
    cta_group: int,
    ws: bool,
    sparse: bool,
    sparsity_selector: int,
    saturate: bool,
    d_type: str,
    a_type: str,
    b_type: str,
    negate_a: bool,
    negate_b: bool,
    a_major: str,
    b_major: str,
    n: int,
    m: int,
    max_shift: int,
) -> bool:
    if ws:  # table 39
        shape = cta_group == 1 and m <= 128 and n in ((64, 128) if sparse else (64, 128, 256))
    elif kind == "i8":
        shape = n in ((8, 16, 24, *range(32, 257, 16)) if cta_group == 1 else range(32, 257, 32))
    else:
        shape = n % (8 * cta_group) == 0
    if not ws:
        shape = shape and m in ((64, 128) if cta_group == 1 else (128, 256))
    types = kind != "f16" or d_type == "f32" or (a_type, b_type) == ("f16", "f16")
    signs = kind != "i8" or not (negate_a or negate_b)  # table 51
    wide = ("e4m3", "e5m2", "u8", "s8")
    narrow = ("e2m3", "e3m2", "e2m1")  # table 54
    majors = (a_major == "k" or a_type not in narrow) and (b_major == "k" or b_type not in narrow)
    transposed = b_major == "k" or b_type not in wide or n % (16 * cta_group) == 0  # table 52
    selector = sparsity_selector == 0 or kind in ("f16", "tf32")  # 9.7.16.10.8.4.5
    return (
        shape
        and types
        and signs
        and majors
        and transposed
        and selector
        and (ws or not max_shift)
        and (kind == "i8" or not saturate)  # table 42
    )


@pytest.mark.parametrize("kind", ["f16", "tf32", "f8f6f4", "i8"])
def test_every_low_bit_pattern_of_a_kind_decodes_to_itself_or_is_refused(kind: str) -> None:
    """All of bits 4 to 16; of bits 0 to 3, which tell nothing of the types, one pattern each besides 0."""
    accepted = set()
    for low in (each for high in range(1 << 13) for each in (high << 4, high << 4 | high % 15 + 1)):
        bits = 8 << 24 | 8 << 17 | low
        try:
            value = InstructionDescriptor.decode(bits, kind=kind)
        except DescriptorError:
            continue
        assert value.encode() == bits
        accepted.add((value.d_type, value.a_type, value.b_type))
    assert len(accepted) == {"f16": 5, "tf32": 1, "f8f6f4": 50, "i8": 4}[kind]


@pytest.mark.parametrize(
    ("make", "fields", "message"),
    [
        (
            plain,
            {"kind": "i8", "d_type": "s32", "a_type": "s8", "b_type": "s8", "negate_b": True},
            "negate_b must be False for kind::i8 (PTX ISA table 42)",
        ),
        (plain, {"sparsity_selector": 1, "sparse": True}, "sparsity_selector must be 0 for kind::f8f6f4, not 1"),
        (plain, {"a_type": "e2m1", "a_major": "mn"}, "a_major must be k for e2m1, not mn"),
        (plain, {"d_type": "s32"}, "d_type must be f16 or f32 for kind f8f6f4, not 's32'"),
        (scaled, {"kind": "mxf4", "scale_vec": "4X"}, "scale_vec must be 2X for kind::mxf4, not 4X"),
        (scaled, {"kind": "mxf4", "a_major": "mn"}, "a_major must be k for kind mxf4, not 'mn'"),
        (
            scaled,
            {"kind": "mxf4", "dense_k": 96, "sparse": True, "m": 256, "cta_group": 2},
            "dense_k must be 64 for sparse",
        ),
        (
            scaled,
            {"kind": "mxf4nvf4", "scale_vec": "2X", "scale_type": "ue4m3"},
            "scale_type must be ue8m0 for kind::mxf4nvf4 with scale_vec::2X, not ue4m3",
        ),
        (
            scaled,
            {"kind": "mxf4", "sfa_id": 1},
            "sfa_id must be 0 or 2 for kind::mxf4 with scale_vec::2X at K 64, not 1",
        ),
        (scaled, {"m": 64}, "m must be 128 with cta_group::1 (PTX ISA table 39), not 64"),
        (scaled, {"m": 64, "cta_group": 2}, "m must be 128 or 256 with cta_group::2 (PTX ISA table 39), not 64"),
        (scaled, {"n": 4, "cta_group": 2}, "n must be a multiple of 16 from 16 to 256 with cta_group::2"),
    ],
)
def test_refusals(make: Any, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DescriptorError) as caught:
        make(**fields)
    assert message in str(caught.value)


def columns(text: str) -> str:
    """The bits of an example of the manual, column 0 last."""
    return text.replace(" ", "")


#: The worked examples of PTX ISA 9.7.16.4.3; spans in columns, one more than the fields hold.
def test_masks_of_the_manual() -> None:
    spans: dict[str, Any] = {"skip_span": 3, "use_span": 4}
    assert ZeroColumnMask(**spans, enabled=False).mask(128) == 0
    two = ZeroColumnMask(**spans).mask(128)
    assert f"{two:0128b}".endswith(columns("111 0000 111 0000"))
    three = ZeroColumnMask(m=64, **spans, first_zero_0=True).mask(128)
    assert f"{three & (1 << 64) - 1:064b}".endswith(columns("111 0000 111 0000 111"))
    assert f"{three >> 64:064b}".endswith(columns("0000 111 0000 111 0000"))
    four = ZeroColumnMask(
        m=32,
        **spans,
        start_count_3=1,
        start_count_2=2,
        start_count_1=1,
        first_zero_1=True,
        first_zero_0=True,
        column_shift=2,
    ).mask(128)
    for part, bits in enumerate(("0000 111 0000 111", "0000 111 0000 11", "111 0000 111 00", "111 0000 111 000")):
        assert f"{four >> 32 * part & (1 << 32) - 1:032b}".endswith(columns(bits)), part


def test_bits_of_a_mask() -> None:
    value = ZeroColumnMask(m=64, skip_span=3, use_span=4, start_count_1=5, first_zero_1=True, column_shift=32)
    assert value.encode() == 32 << 56 | 3 << 48 | 2 << 40 | 1 << 39 | 1 << 33 | 5 << 8
    assert ZeroColumnMask.decode(value.encode(), m=64) == value
    assert "sub-mask 1 does not exist for M 128" in ZeroColumnMask.decode(value.encode()).warnings()
    assert "start_count_1 is not below its first span" in value.warnings()[0]
    with pytest.raises(DescriptorError, match="column_shift must be 0 to 16 for M 32, not 32"):
        ZeroColumnMask.decode(value.encode(), m=32)
    with pytest.raises(DescriptorError, match="reserved bits must be 0"):
        ZeroColumnMask.decode(value.encode() | 1 << 36)
    with pytest.raises(DescriptorError, match="n must be one of 64, 128, 256 for the zero-column mask, not 96"):
        value.mask(96)


# What sm_107 adds: PTX ISA 9.4, tables 48 and 51 to 53.


def test_ti16() -> None:
    def ti16(**fields: Any) -> InstructionDescriptor:
        types = {"d_type": "s32", "a_type": "s1z4m11", "b_type": "s1z4m11"}
        return InstructionDescriptor(**{"kind": "ti16", **types, "m": 64, "n": 24, **fields})

    assert ti16(negate_a=True).encode() == 4 << 24 | 3 << 17 | 1 << 13 | 3 << 10 | 3 << 7 | 2 << 4
    assert (ti16().k, ti16(sparse=True, sparsity_selector=1).k) == (16, 32)
    sizes = {(group, m): [n for n in range(8, 257, 8) if legal(ti16, cta_group=group, m=m, n=n)]
             for group, m in ((1, 64), (1, 128), (2, 128), (2, 256))}  # fmt: skip
    assert sizes[1, 64] == list(range(8, 257, 8))
    assert sizes[1, 128] == list(range(16, 257, 16))
    assert sizes[2, 128] == sizes[2, 256] == list(range(32, 257, 32))
    assert not legal(ti16, saturate=True)
    assert not legal(ti16, wide_k=True)
    assert not legal(plain, a_type="s1z4m11")
    assert any("sm_107" in each for each in ti16().warnings())
    assert "s1z4m11 × s1z4m11 → s32" in ti16().explain()
    assert "fact ti16-encoding (inferred): " in ti16().explain()


def test_wide_k() -> None:
    assert plain(wide_k=True).encode() == plain().encode() | 1 << 29
    assert (plain(wide_k=True).k, plain(wide_k=True, sparse=True).k) == (64, 128)
    assert not legal(plain, wide_k=True, m=64)
    assert legal(plain, wide_k=True, m=64, sparse=True)
    assert legal(plain, wide_k=True, ws=True, m=32)
    for narrow in NARROW:
        assert legal(plain, wide_k=True, a_type=narrow) == (narrow in ("e4m3", "e5m2"))
    assert not legal(plain, kind="f16", a_type="f16", b_type="f16", wide_k=True)
    assert "fact wide-k (inferred): " in plain(wide_k=True).explain()


def test_wide_k_of_block_scales() -> None:
    assert scaled(dense_k=64).encode() == scaled().encode() | 1 << 31
    assert (scaled(dense_k=64).k, scaled(dense_k=64, sparse=True).k) == (64, 128)
    fp4 = scaled(kind="mxf4", wide_k=True)
    assert fp4.encode() == scaled(kind="mxf4").encode() | 1 << 3
    assert fp4.k == 128
    assert not legal(scaled, kind="mxf4", wide_k=True, dense_k=96)
    assert not legal(scaled, kind="mxf4", wide_k=True, sparse=True)
    assert not legal(scaled, wide_k=True)
    assert not legal(scaled, kind="mxf4", wide_k=True, m=128, n=64, cta_group=2)
    assert legal(scaled, kind="mxf4", wide_k=True, m=256, n=64, cta_group=2)
    assert scaled(sfa_lanes=128).encode() == scaled().encode() | 1 << 26
