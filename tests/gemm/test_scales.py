"""Quantizers and packers of block-scaled operands, against loops over the formats' definitions and recorded inputs."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxgen.dtypes import scalar_type
from ptxgen.gemm import PlanError
from ptxgen.gemm.scales import (
    MXFP4,
    MXFP8,
    NVFP4,
    Rounding,
    ScaledType,
    dequantize,
    pack,
    pack_elements,
    packed_bytes,
    quantize,
    require_packed,
    scale_values,
    tensor_scale,
    unpack,
    unpack_elements,
)
from tools.recorded.codecs import dec, make_inputs
from tools.recorded.references.compilers import scaled_f32

CASES = Path(__file__).parents[1] / "data" / "cases"
#: Exponent bits, fraction bits, and the magnitudes that are infinity or NaN (OCP Microscaling Formats 1.0).
FORMATS = {
    "e4m3": (4, 3, {0x7F}),
    "e5m2": (5, 2, {0x7C, 0x7D, 0x7E, 0x7F}),
    "e3m2": (3, 2, set[int]()),
    "e2m3": (2, 3, set[int]()),
    "e2m1": (2, 1, set[int]()),
}
EMAX = {"e4m3": 8, "e5m2": 15, "e3m2": 4, "e2m3": 2, "e2m1": 2}
TYPES = [
    *(ScaledType("mxf8f6f4", dtype, "ue8m0", 32) for dtype in FORMATS),
    MXFP4,
    NVFP4,
    ScaledType("mxf4nvf4", "e2m1", "ue8m0", 16),
    ScaledType("mxf4nvf4", "e2m1", "ue8m0", 32),
]
NAMES = [f"{each.kind}-{each.dtype}-{each.scale}-{each.block}" for each in TYPES]


def magnitudes(dtype: str) -> list[float]:
    """The finite values of codes without a sign, by code."""
    exponent_bits, fraction_bits, special = FORMATS[dtype]
    bias, found = (1 << exponent_bits - 1) - 1, list[float]()
    for code in range(1 << exponent_bits + fraction_bits):
        if code in special:
            continue
        exponent, fraction = code >> fraction_bits, code & (1 << fraction_bits) - 1
        if exponent:
            found.append((1 + fraction / 2**fraction_bits) * 2.0 ** (exponent - bias))
        else:
            found.append(fraction / 2**fraction_bits * 2.0 ** (1 - bias))
    return found


def nearest_code(value: float, dtype: str) -> int:
    """To nearest even, saturated; the code without a sign."""
    table = magnitudes(dtype)
    size = min(abs(value), table[-1])
    return min(range(len(table)), key=lambda code: (abs(table[code] - size), code % 2))


def quantized(row: list[float], type: ScaledType, rounding: Rounding = "floor") -> tuple[list[float], list[int]]:
    """One row by the definitions: values of elements, bytes of scales."""
    top, elements, scales = magnitudes(type.dtype)[-1], list[float](), list[int]()
    for start in range(0, len(row), type.block):
        block = row[start : start + type.block]
        if any(not math.isfinite(each) for each in block):
            scales.append(0xFF if type.scale == "ue8m0" else 0x7F)
            elements += [0.0] * type.block
            continue
        largest = max(abs(each) for each in block)
        if type.scale == "ue4m3":
            scales.append(nearest_code(largest / top, "e4m3"))
            by = magnitudes("e4m3")[scales[-1]]
        else:
            power = -127 if largest == 0 else math.frexp(largest)[1] - 1 - EMAX[type.dtype]
            if rounding == "ceil" and largest:
                power = next(p for p in itertools.count(power - 2) if largest / 2.0**p <= top)
            power = max(-127, min(127, power))
            scales.append(power + 127)
            by = 2.0**power
        for each in block:
            made = magnitudes(type.dtype)[nearest_code(each / by if by else 0.0, type.dtype)]
            elements.append(math.copysign(made, each))
    return elements, scales


def values(type: ScaledType, rows: int = 5) -> NDArray[np.float64]:
    """Numbers of all sizes, with zeros, ties, saturation, subnormals, infinity and NaN in rows of their own."""
    rng = np.random.default_rng(len(type.dtype) + type.block)
    made = rng.standard_normal((rows, 4 * type.block)) * 2.0 ** rng.integers(-12, 13, (rows, 1))
    made[0, : type.block] = 0
    made[1, : type.block] = np.arange(type.block) / 4
    made[2, 3], made[3, type.block + 1] = math.inf, math.nan
    made[4, :4] = 1e38, -3e38, 1e-30, 2.0**-140
    made[4, type.block : 2 * type.block] = 2.0**-130
    return made


@pytest.mark.parametrize("rounding", ["floor", "ceil"])
@pytest.mark.parametrize("type", TYPES, ids=NAMES)
def test_quantize_does_what_the_definitions_say(type: ScaledType, rounding: Rounding) -> None:
    given = values(type)
    elements, scales = quantize(given, type, rounding=rounding)
    assert elements.dtype == scalar_type(type.dtype)
    for row, (made, bytes_) in enumerate(zip(elements.astype(float), scales, strict=True)):
        expected, expected_scales = quantized(given[row].tolist(), type, rounding)
        assert bytes_.tolist() == expected_scales
        assert made.tolist() == expected


@pytest.mark.parametrize("type", TYPES, ids=NAMES)
def test_dequantize_inverts_what_is_representable(type: ScaledType) -> None:
    """Every element with every scale: a product, exact; NaN where the scale is."""
    table = magnitudes(type.dtype)
    finite = np.array([*table, *(-each for each in table)])
    codes = np.arange(256 if type.scale == "ue8m0" else 128, dtype=np.uint8)
    row = np.resize(finite, -(-len(finite) // type.block) * type.block)
    elements = np.broadcast_to(row, (len(codes), len(row))).astype(scalar_type(type.dtype))
    scales = np.repeat(codes[:, None], len(row) // type.block, axis=1)
    made = dequantize(elements, scales, type)
    for code in codes.tolist():
        if type.scale == "ue8m0":
            by = math.nan if code == 0xFF else 2.0 ** (code - 127)
        else:
            by = math.nan if code == 0x7F else magnitudes("e4m3")[code]
        np.testing.assert_array_equal(made[code], row * by)


@pytest.mark.parametrize("type", TYPES, ids=NAMES)
def test_quantizing_twice_changes_nothing(type: ScaledType) -> None:
    given = np.random.default_rng(3).standard_normal((4, 128))
    once = dequantize(*quantize(given, type), type)
    np.testing.assert_array_equal(dequantize(*quantize(once, type, rounding="ceil"), type), once)
    assert np.abs(once - given).max() < 0.5 * np.abs(given).max()


def test_extremes_of_the_scales() -> None:
    assert scale_values(np.array([0, 127, 254], np.uint8), "ue8m0").tolist() == [2.0**-127, 1.0, 2.0**127]
    assert math.isnan(scale_values(np.array([0xFF], np.uint8), "ue8m0")[0])
    assert scale_values(np.array([0, 1, 0x7E, 0xFE], np.uint8), "ue4m3").tolist() == [0, 2.0**-9, 448, 448]
    assert np.isnan(scale_values(np.array([0x7F, 0xFF], np.uint8), "ue4m3")).all()
    _, scales = quantize(np.full((1, 64), [1e300] * 32 + [0.0] * 32))
    assert scales.tolist() == [[254, 0]]


def test_a_tensor_scale_brings_the_largest_block_to_448() -> None:
    given = np.random.default_rng(4).standard_normal((16, 64)) * 1e-6
    assert quantize(given, NVFP4)[1].max() == 0  # all of it is lost without
    by = tensor_scale(given)
    elements, scales = quantize(given, NVFP4, tensor_scale=by)
    assert scale_values(scales, "ue4m3").max() == 448
    assert np.abs(dequantize(elements, scales, NVFP4, tensor_scale=by) - given).max() < np.abs(given).max() / 6
    assert tensor_scale(given, MXFP8) == tensor_scale(np.zeros((2, 16))) == 1


def test_a_tensor_scale_is_that_of_the_finite_values() -> None:
    """One NaN costs its block, not the matrix; and the scale is positive however small the values are."""
    given = np.random.default_rng(5).standard_normal((4, 64)) * 1e-6
    by = tensor_scale(given)
    given[1, 3], given[2, 40] = math.nan, -math.inf
    assert tensor_scale(given) == pytest.approx(by, rel=0.5)
    elements, scales = quantize(given, NVFP4, tensor_scale=tensor_scale(given))
    assert [int(scales[1, 0]), int(scales[2, 2])] == [0x7F, 0x7F]
    made = dequantize(elements, scales, NVFP4, tensor_scale=tensor_scale(given))
    assert np.abs(made[0] - given[0]).max() < 1e-6
    assert np.isnan(made[1, :16]).all()
    assert np.isfinite(made[1, 16:]).all()
    assert tensor_scale(np.full((1, 16), math.nan)) == 1
    assert quantize(np.full((1, 16), 5e-324), NVFP4, tensor_scale=tensor_scale(np.full((1, 16), 5e-324)))[1][0, 0] == 0


@pytest.mark.parametrize(("rows", "scales"), [(128, 4), (256, 8), (130, 5), (1, 1), (384, 3)])
def test_blocks_are_those_of_cublas(rows: int, scales: int) -> None:
    """The formula of "1D block scaling factors layout" in cuBLAS's documentation, element by element."""
    matrix = np.random.default_rng(rows).integers(0, 256, (rows, scales), dtype=np.uint8)
    packed, along = pack(matrix, fill=0x55), -(-scales // 4)
    seen = np.full(len(packed), 0x55, np.uint8)
    for outer, inner in itertools.product(range(rows), range(scales)):
        offset = (inner // 4 + outer // 128 * along) * 512 + outer % 32 * 16 + outer % 128 // 32 * 4 + inner % 4
        seen[offset] = matrix[outer, inner]
    assert packed.tolist() == seen.tolist()
    assert len(packed) == packed_bytes(rows, 32 * scales)
    np.testing.assert_array_equal(unpack(packed, rows, 32 * scales), matrix)


def test_blocks_are_those_of_torchao() -> None:
    """torchao.prototype.mx_formats.utils.to_blocked: views and a transposition."""
    matrix = np.random.default_rng(0).integers(0, 256, (384, 12), dtype=np.uint8)
    blocks = matrix.reshape(3, 128, 3, 4).transpose(0, 2, 1, 3)
    rearranged = blocks.reshape(-1, 4, 32, 4).transpose(0, 2, 1, 3).reshape(-1, 32, 16)
    assert pack(matrix).tolist() == rearranged.ravel().tolist()
    np.testing.assert_array_equal(unpack(rearranged.reshape(3, 3, 32, 16), 384, 384), matrix)


def recorded() -> list[str]:
    found = (json.loads(path.read_text()) for path in sorted(CASES.glob("*.json")))
    return [each["name"] for each in found if each["reference"]["name"] == "scaled_f32"]


def test_there_are_recorded_cases() -> None:
    assert len(recorded()) == 9


@pytest.mark.parametrize("name", recorded())
def test_the_inputs_of_recorded_kernels(name: str) -> None:
    """Their scales unpack, dequantize and multiply to what the case's own reference gives."""
    case = json.loads((CASES / f"{name}.json").read_text())
    reference, inputs = case["reference"], make_inputs(case["buffers"])
    scale = {"e8m0": "ue8m0", "e4m3": "ue4m3"}[reference["scale"]]
    operands = list[NDArray[np.float64]]()
    for side in "ab":
        recorded_type = reference[side]
        dtype = recorded_type.removesuffix("x2")
        kind = "mxf8f6f4" if reference["vector"] == 32 and scale == "ue8m0" else "mxf4nvf4"
        type = ScaledType(kind, dtype, scale, reference["vector"])
        elements = unpack_elements(inputs[side], dtype)
        np.testing.assert_array_equal(elements.astype(np.float32), dec(recorded_type, inputs[side]))
        np.testing.assert_array_equal(pack_elements(elements, dtype), inputs[side])
        rows, k = elements.shape
        scales = inputs[f"s{side}"]
        if reference.get("atoms"):
            packed = scales.ravel()
            scales = unpack(scales, rows, k, type)
            np.testing.assert_array_equal(pack(scales), packed)
        else:
            np.testing.assert_array_equal(unpack(pack(scales), rows, k, type), scales)
        operands.append(dequantize(elements, scales, type))
    expected = np.asarray(scaled_f32(inputs, **{key: reference[key] for key in reference if key != "name"})["c"])
    np.testing.assert_allclose(operands[0] @ operands[1].T, expected, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("dtype", FORMATS)
def test_elements_pack_from_the_lowest_bits_up(dtype: str) -> None:
    exponent, fraction, _ = FORMATS[dtype]
    bits = 1 + exponent + fraction
    codes = np.random.default_rng(bits).integers(0, 1 << bits, (3, 32), dtype=np.uint8)
    elements = codes.view(scalar_type(dtype))
    packed = pack_elements(elements, dtype)
    for row, line in zip(codes.tolist(), packed, strict=True):
        word = sum(code << i * bits for i, code in enumerate(row))
        assert bytes(line) == word.to_bytes(32 * bits // 8, "little")
    assert unpack_elements(packed, dtype).view(np.uint8).tolist() == codes.tolist()
    assert pack_elements(elements, dtype, padded=True).tolist() == codes.tolist()


def test_scales_of_the_wrong_layout_or_size_are_refused() -> None:
    scales = np.zeros((256, 8), np.uint8)
    expected = "2×2 blocks of 128 rows by 4 scales of K, 512 bytes each: 2048 bytes, flat or as 2×2×32×16 or 2×2×2×256"
    for given, end in (
        (scales, "they are 256×8 bytes, which is row-major: pack them first"),
        (scales.T, "they are 8×256 bytes, which is column-major: transpose, then pack them"),
        (np.zeros(1024, np.uint8), "they are 1024 bytes"),
        (np.zeros((2, 2, 16, 32), np.uint8), "they are 2×2×16×32 bytes"),
    ):
        with pytest.raises(PlanError) as error:
            require_packed("SFA", given, 256, 256)
        assert str(error.value) == f"SFA of 256×256 e4m3 must be {expected}; {end}"
    with pytest.raises(PlanError, match="padded but row-major"):
        require_packed("SFB", np.zeros((128, 4), np.uint8), 100, 96)
    assert len(require_packed("SFA", pack(scales).reshape(1, 2, 2, 2, 256), 256, 256)) == 2048
    with pytest.raises(PlanError, match=f"scales of 256×256 e4m3 must be {expected}"):
        unpack(scales, 256, 256)
    with pytest.raises(PlanError, match="unpack the blocks first"):
        dequantize(quantize(np.zeros((256, 256)))[0], pack(scales))


def test_what_there_is_not_is_refused() -> None:
    with pytest.raises(PlanError, match="kind::mxf4 multiplies e2m1, not e4m3"):
        ScaledType("mxf4", "e4m3", "ue8m0", 32)
    with pytest.raises(PlanError, match="not ue4m3 with blocks of 32"):
        ScaledType("mxf4nvf4", "e2m1", "ue4m3", 32)
    with pytest.raises(PlanError, match="kind must be"):
        ScaledType("f16", "e4m3", "ue8m0", 32)
    with pytest.raises(PlanError, match="K must be a multiple of 32"):
        quantize(np.zeros((4, 48)))
    with pytest.raises(PlanError, match="matrix"):
        quantize(np.zeros(64))
    with pytest.raises(PlanError, match="tensor_scale must be positive"):
        quantize(np.zeros((1, 32)), tensor_scale=0)
    for type in (MXFP8, NVFP4):
        with pytest.raises(PlanError, match="rounding must be floor or ceil, not even"):
            quantize(np.zeros((1, 32)), type, rounding="even")  # type: ignore[arg-type]
    for fill in (-1, 256):
        with pytest.raises(PlanError, match=f"fill must be a byte, 0 to 255, not {fill}"):
            pack(np.zeros((4, 4), np.uint8), fill)
    with pytest.raises(PlanError, match="bytes of ue8m0 or ue4m3, not float32"):
        pack(np.zeros((4, 4), np.float32))
    with pytest.raises(PlanError, match="elements must be a matrix of e4m3"):
        dequantize(np.zeros((1, 32), np.float32), np.zeros((1, 1), np.uint8))
    with pytest.raises(PlanError, match="a row of e2m1 must be a multiple of 2"):
        pack_elements(np.zeros((1, 3), scalar_type("e2m1")), "e2m1")
    with pytest.raises(PlanError, match="a multiple of 3 bytes"):
        unpack_elements(np.zeros((1, 4), np.uint8), "e3m2")
