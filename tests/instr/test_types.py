"""Which register holds which type (PTX ISA 9.4). The tables follow ptxas; test_instr_check asks it."""

import pytest

from ptxgen.instr.model.types import TYPES, holds, holds_wider

#: register, wanted, holds, holds_wider
PAIRS = [
    ("u32", "u32", True, True),
    ("s32", "u32", True, True),
    ("b32", "f32", True, True),
    ("f32", "b32", True, True),
    ("f32", "u32", False, False),
    ("u32", "f32", False, False),
    ("u64", "u32", False, True),
    ("u16", "u32", False, False),
    ("b64", "f32", False, True),
    ("f64", "f32", False, False),
    ("f32", "b16", False, True),
    ("f32", "u16", False, False),
    ("u64", "b32", False, True),
    ("b16", "bf16", True, True),
    ("u16", "bf16", False, False),
    ("f16", "bf16", False, False),
    ("f16x2", "f16x2", True, True),
    ("f16x2", "u32", True, True),
    ("f16x2", "u16x2", True, True),
    ("f16x2", "s8x4", True, True),
    ("f16x2", "bf16x2", False, False),
    ("f16x2", "tf32", False, False),
    ("f16x2", "f32", False, False),
    ("b32", "e2m1x8", True, True),
    ("u32", "u16x2", False, False),
    ("b32", "u16x2", True, True),
    ("b32", "s8x4", True, True),
    ("s32", "s8x4", False, False),
    ("pred", "pred", True, True),
    ("pred", "b8", False, False),
    ("b8", "pred", False, False),
    ("b16", "pred", False, False),
]


@pytest.mark.parametrize(("register", "wanted", "same", "wider"), PAIRS)
def test_what_a_register_holds(register: str, wanted: str, same: bool, wider: bool) -> None:
    assert holds(TYPES[register], TYPES[wanted]) is same
    assert holds_wider(TYPES[register], TYPES[wanted]) is wider


def test_the_wider_rule_takes_all_that_the_plain_one_takes() -> None:
    assert all(holds_wider(a, b) for a in TYPES.values() for b in TYPES.values() if holds(a, b))


def test_names_and_widths() -> None:
    assert str(TYPES["b32"]) == ".b32"
    for name, type in TYPES.items():
        assert type.name == name
        if type.kind in ("unsigned", "signed", "float", "bits"):
            assert type.bits == int(name[1:])
    assert [TYPES[name].bytes for name in ("pred", "b8", "b128", "f16x2", "e2m1x2")] == [1, 1, 16, 4, 1]
