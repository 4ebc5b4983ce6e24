"""CuTe's notation, against coordinates counted by hand and the layouts that CUTLASS prints."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from ptxgen.descriptors import OperandTile
from ptxgen.layouts.cute import CuteLayout, CuteSwizzle, Tree, of_mode, of_offsets, parse
from ptxgen.layouts.swizzle import SWIZZLES


def offset_of(index: int, shape: Tree, stride: Tree) -> int:
    """The offset of one mode's coordinate, its first part fastest: cute::crd2idx, written anew."""
    if isinstance(shape, int):
        assert isinstance(stride, int)
        return index * stride
    assert isinstance(stride, tuple)
    total = 0
    for part, step in zip(shape, stride, strict=True):
        extent = size_of(part)
        total += offset_of(index % extent, part, step)
        index //= extent
    return total


def size_of(tree: Tree) -> int:
    return tree if isinstance(tree, int) else int(np.prod([size_of(each) for each in tree]))


@pytest.mark.parametrize(
    "text",
    ["(8,64):(64,1)", "((4,2),8):((1,64),4)", "(2,(2,(3,2))):(12,(1,(2,6)))", "8:3", "(4,8)", "((2,2),(2,2))"],
)
def test_offsets_by_coordinates(text: str) -> None:
    found = parse(text)
    offsets = found.offsets()
    assert offsets.shape == found.extents
    for index in itertools.product(*map(range, offsets.shape)):
        parts = zip(index, found.shape, found.stride, strict=True)
        assert offsets[index] == sum(offset_of(*each) for each in parts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(4,8)", "(4,8):(1,4)"),
        ("((2,2),(2,2))", "((2,2),(2,2)):((1,2),(4,8))"),
        ("( 8 , 64 ) : ( 64 , 1 )", "(8,64):(64,1)"),
        ("(_8,_64):(_64,_1)", "(8,64):(64,1)"),
        ("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)", "Swizzle<3,3,3> o (8,64):(64,1)"),
        ("Sw<2,4,3> o smem_ptr[8b](0x7f00) o (_8,_64):(_64,_1)", "Swizzle<2,4,3> o (8,64):(64,1)"),
        ("Sw<3,4,3> o smem_ptr[4b](unset) o (_8,_256):(_256,_1)", "Swizzle<3,5,3> o (8,256):(256,1)"),
        ("S<3,4,3> o 0 o (8,64):(64,1)", "Swizzle<3,4,3> o (8,64):(64,1)"),
        ("Swizzle<2,4,3>o(8,64):(64,1)", "Swizzle<2,4,3> o (8,64):(64,1)"),
        ("16:1", "(16):(1)"),
        ("Swizzle<3,3,3>", "Swizzle<3,3,3> o (8,64):(64,1)"),
        ("Sw<2,4,3>", "Swizzle<2,4,3> o (4,128):(128,1)"),
    ],
)
def test_texts(text: str, expected: str) -> None:
    assert str(parse(text)) == expected
    assert parse(expected) == parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(8,4",
        "8,4",
        "(8,):1",
        "(8,4):(1,2,3)",
        "(8,4):1",
        "Swizzle<3,4>o(8,8)",
        "Swizzle<3,4,2>o8:1",
        "(0,4)",
        "x",
        "8)",
    ],
)
def test_what_is_no_layout(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse(text)


@pytest.mark.parametrize("mode", [name for name in SWIZZLES if name != "none"])
def test_modes_are_cutes_swizzles(mode: str) -> None:
    address = np.arange(4096)
    assert (of_mode(mode).apply(address) == SWIZZLES[mode].apply(address)).all()
    for bits in (16, 32):
        scaled = of_mode(mode).scaled(bits)
        element = np.arange(1024)
        assert (scaled.apply(element) * bits // 8 == SWIZZLES[mode].apply(element * bits // 8)).all()


def test_the_names_of_cutlass() -> None:
    """include/cute/arch/mma_sm90_desc.hpp and mma_sm100_desc.hpp: <2,5,2> is 128B with 32-byte atoms."""
    assert [str(of_mode(each)) for each in ("32B", "64B", "128B", "128B_atom_32B")] == [
        "Swizzle<1,4,3>", "Swizzle<2,4,3>", "Swizzle<3,4,3>", "Swizzle<2,5,2>",
    ]  # fmt: skip
    assert str(of_mode("128B").scaled(16)) == "Swizzle<3,3,3>"


@pytest.mark.parametrize(("type_bits", "shift"), [(16, 3), (8, 4), (32, 2)])
def test_a_printed_layout_is_that_of_the_operand(type_bits: int, shift: int) -> None:
    """Before smem_ptr[..] a swizzle acts on bytes: the layout has the addresses of a K-major tile with 128B."""
    columns = 1024 // type_bits
    printed = parse(f"Sw<3,4,3> o smem_ptr[{type_bits}b](unset) o (_8,_{columns}):(_{columns},_1)")
    assert str(printed.swizzle) == f"Swizzle<3,{shift},3>"
    tile = OperandTile(element_bits=type_bits, major="k", swizzle="128B", rows=8, k=columns)
    assert (printed.offsets() * type_bits // 8 == tile.addresses(0)).all()


def test_negative_shifts() -> None:
    assert CuteSwizzle(2, 0, -3).apply(0b00011) == 0b11011
    assert CuteSwizzle(2, 0, 3).apply(0b11000) == 0b11011


def test_offsets_become_layouts_again() -> None:
    generator = random.Random(3)
    for _ in range(60):
        modes, strides = [], []
        step = 1
        for _ in range(generator.randint(1, 3)):
            parts = [generator.choice((2, 3, 4, 8)) for _ in range(generator.randint(1, 3))]
            steps = []
            for part in parts:
                steps.append(step)
                step *= part * generator.choice((1, 2))
            modes.append(tuple(parts) if len(parts) > 1 else parts[0])
            strides.append(tuple(steps) if len(parts) > 1 else steps[0])
        made = CuteLayout(tuple(modes), tuple(strides))
        found = of_offsets(made.offsets())
        assert found is not None
        assert (found.offsets() == made.offsets()).all()
    assert of_offsets(np.array([[0, 1], [2, 4]])) is None
    assert of_offsets(np.array([0, 1, 3])) is None
