"""Every option of every layout changes what is drawn, or is refused: none changes the caption alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from ptxgen.descriptors import DescriptorError, TensorMap
from ptxgen.layouts.fragments import load_fragment, regrouped
from ptxgen.pictures import KINDS, draw
from ptxgen.pictures.kinds import Kind, Parameter
from ptxgen.pictures.model import Picture

MAP = TensorMap.tiled("bf16", 0, (512, 512), (1024,), (32, 16), swizzle="64B").encode().hex()
COLUMN = (
    TensorMap.im2col("f16", 0, (64, 32, 32, 4), (128, 4096, 131072), (0, 0), (0, 0), 64, 24, swizzle="128B")
    .encode()
    .hex()
)
#: Values of numbers and free words; of the rest all choices are tried.
VALUES: dict[str, list[Any]] = {
    "rows": [8, 16, 32, 64, 128, 256], "start": [0, 1152], "bytes": [4, 8], "at": [0, 8], "k": [0, 32, 64],
    "m": [8, 16, 32, 64, 128, 256], "n": [8, 16, 64], "cta_group": [1, 2], "num": [1, 2, 4], "half": [0, 8, 16],
    "selector": [0, 1], "lanes": [16, 32, 64], "id": [0, 1, 2], "parts": [1, 2], "halo": [0, 3],
    "byte_id": [0, 1, 2], "bits": [8, 32], "thread_id": [0, 1], "pitch": [0, 132, 144], "width": [4, 8],
    "swizzle": ["none", "64B"], "layout": ["(8,64):(64,1)", "(4,8)"], "size": ["5x4", "6x6"],
    "strides": ["1", "2"], "lower": ["0", "-1x-1"], "upper": ["0", "-1x-1"],
    "offset": ["0", "1x2"], "stride": ["1", "2x2"], "pixels": [8, 16],
    "value": [0x4000404000010000, 0x4000404000010040], "box": ["64x8", "32x16"], "map": [MAP, COLUMN],
}  # fmt: skip


def drawing(kind: Kind, given: dict[str, Any]) -> tuple[object, ...] | None:
    """What a picture shows without its caption; None where the words are refused."""
    words = [f"{name}={'yes' if value is True else 'no' if value is False else value}" for name, value in given.items()]
    try:
        picture = kind.draw(words)
    except DescriptorError:
        return None
    return picture.panels, picture.notes, repr(picture.data)


def values(parameter: Parameter) -> list[Any]:
    if parameter.choices:
        return [each for each in parameter.choices if each]
    return [False, True] if parameter.type is bool else VALUES[parameter.name]


def bases(kind: Kind, option: Parameter) -> list[dict[str, Any]]:
    """Words to which an option is added: each value of another option alone, beside each map where the kind has one."""
    maps = [each for each in kind.parameters if each.name == "map" and each != option]
    found: list[dict[str, Any]] = []
    for always in [{"map": value} for value in VALUES["map"]] if maps else [{}]:
        found += [always, *({**always, each.name: value} for each in kind.parameters for value in values(each))]
    return [each for each in found if option.name not in each]


OPTIONS = [(kind, parameter) for kind in KINDS.values() for parameter in kind.parameters]


@pytest.mark.parametrize(("kind", "option"), OPTIONS, ids=lambda each: each.name)
def test_options_change_what_is_drawn(kind: Kind, option: Parameter) -> None:
    for base in bases(kind, option):
        outcomes = {drawing(kind, {**base, option.name: value}) for value in values(option)}
        if len(outcomes) > 1:  # one of them may be a refusal
            return
    pytest.fail(f"no value of {option.name} of {kind.name} changes the picture")


@pytest.mark.parametrize(
    ("kind", "option"), [each for each in OPTIONS if each[1].when is not None], ids=lambda each: each.name
)
def test_options_without_a_meaning_are_refused(kind: Kind, option: Parameter) -> None:
    assert option.when is not None
    other = next(each for each in kind.parameters if each.name == option.when.other)
    without = [each for each in (other.default, *values(other)) if each not in option.when.values]
    assert without
    for value in without:
        words = [*([f"map={MAP}"] if kind.name == "tensormap" else []), *([f"{other.name}={value}"] if value else [])]
        for chosen in values(option):
            word = "yes" if chosen is True else "no" if chosen is False else chosen
            with pytest.raises(DescriptorError, match=f"{option.name} requires {other.name}="):
                kind.draw([*words, f"{option.name}={word}"])


def held(picture: Picture) -> dict[tuple[int, int], int]:
    """Elements that each register holds, by thread and register."""
    counts: dict[tuple[int, int], int] = {}
    for row in picture.panels[0].cells:
        for cell in row:
            assert cell is not None
            thread, register = cell.text.partition(".")[0].split()
            key = int(thread[1:]), int(register[1:])
            counts[key] = counts.get(key, 0) + 1
    return counts


#: Operands whose elements fill their registers.
OF = ("wgmma-d", "wgmma-a", "mma-a", "mma-b", "mma-d", "ldmatrix", "stmatrix")
BITS = (1, 4, 8, 16, 32, 64)


@pytest.mark.parametrize(("of", "bits"), [*itertools.product(OF, BITS)])
def test_registers_hold_as_many_elements_as_fit(of: str, bits: int) -> None:
    try:
        picture = draw("fragment", [of, f"bits={bits}"])
    except DescriptorError:
        return
    assert set(held(picture).values()) == {max(32 // bits, 1)}


@pytest.mark.parametrize("of", ["ldmatrix", "stmatrix"])
@pytest.mark.parametrize(("num", "trans"), [(1, False), (4, False), (2, True)])
@pytest.mark.parametrize("bits", [4, 8, 32])
def test_elements_of_ldmatrix_lie_where_its_16_bits_go(of: str, num: int, trans: bool, bits: int) -> None:
    """Moves the bits of memory by units of 16, as the manual says, and finds each element's in the registers."""
    words = [of, f"num={num}", f"bits={bits}", *(["trans"] if trans else [])]
    row, column = load_fragment("m8n8", num, trans)
    if bits == 32 and trans:
        with pytest.raises(DescriptorError, match="parts of elements of 32 bits"):
            draw("fragment", words)
        return
    memory = np.random.default_rng(0).permutation(8 * num * 8 * 16).reshape(8 * num, 8, 16)  # a number for each bit
    registers = memory[row, column].reshape(32, -1, 32)
    data = draw("fragment", words).data
    elements = memory.reshape(8 * num, -1, bits)[np.array(data["row"]), np.array(data["column"])]
    assert (elements.reshape(registers.shape) == registers).all()
    assert (regrouped((row, column), 16, bits)[0] == data["row"]).all()


def test_other_shapes_have_elements_of_8_bits() -> None:
    for words in (["ldmatrix", "m8n16"], ["ldmatrix", "m16n16", "trans"], ["stmatrix", "m16n8", "trans"]):
        assert draw("fragment", words) == draw("fragment", [*words, "bits=8"])
        with pytest.raises(DescriptorError, match="elements of 8 bits in registers, not of 16"):
            draw("fragment", [*words, "bits=16"])
