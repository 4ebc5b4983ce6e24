"""Sums of tensor cores against words that a B200 gave to others (tests/data/silicon), bit for bit."""

import gzip
import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxgen.emulator.arithmetic import matrix_multiply, split_multiply, tensor_sums
from ptxgen.emulator.arithmetic.formats import values
from tests.support.paths import DATA

FOLDER = DATA / "silicon"
Row = dict[str, Any]


def lines(name: str) -> list[Row]:
    """The rows of a file, without its heading."""
    data = (FOLDER / name).read_bytes()
    text = gzip.decompress(data) if name.endswith(".gz") else data
    heading, *rows = map(json.loads, text.decode().splitlines())
    assert {"device", "source", "commit", "license"} <= heading.keys()
    return rows


def singles(hexadecimal: str) -> NDArray[np.float32]:
    return np.frombuffer(bytes.fromhex(hexadecimal), ">u4").astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("d_type", ["f32", "f16"])
@pytest.mark.parametrize("kind", ["bf16", "f16", "tf32", "e4m3", "e5m2"])
def test_mma_sync(kind: str, d_type: str) -> None:
    """mma.sync of sm_100: 800 recorded dot products of each type; K is 16, of tf32 4, of 8 bits 32."""
    rows = [row for row in lines("mma_sync_sums_b200.jsonl.gz") if row["type"] == kind and d_type in row]
    if not rows:
        assert (kind, d_type) in {("bf16", "f16"), ("tf32", "f16")}
        return
    a, b = (np.stack([singles(row[side]) for row in rows])[:, None] for side in "ab")
    c = np.stack([singles(row["c"]) for row in rows])[:, None]
    c = c.astype({"f16": np.float16, "f32": np.float32}[d_type]).astype(np.float32)
    if kind in ("e4m3", "e5m2"):
        found = split_multiply.halves(a, b, c, d_type, None, tensor_sums.USUAL)
    else:
        found = tensor_sums.fused(a, b, c, (kind, kind, d_type))
    recorded = np.concatenate([singles(row[d_type]) for row in rows])
    words = found.astype(np.float32).view(np.uint32).reshape(-1)
    assert len(rows) == 800
    assert (words == recorded.view(np.uint32)).all()


def operand(codes: list[int], type: str) -> NDArray[np.float32]:
    """Values [1, K] of words as the recording has them."""
    words = np.array(codes, np.uint32)
    if type in ("tf32", "bf16"):
        return (words & np.uint32(0xFFFFE000 if type == "tf32" else 0xFFFF0000)).view(np.float32)[None]
    if type == "f16":
        return words.astype(np.uint16).view(np.float16).astype(np.float32)[None]
    if type in ("s8", "u8"):
        return words.astype(np.uint8).view({"s8": np.int8, "u8": np.uint8}[type]).astype(np.float32)[None]
    return values(type)[words][None]


def tcgen05_word(row: Row) -> int:
    """What the emulator's arithmetic makes of a row."""
    a, b = operand(row["a"], row["a_type"]), operand(row["b"], row["b_type"])
    if row["d_type"] == "s32":
        before = np.array([[row["c"]]], np.uint32)
        product = matrix_multiply.multiply(a, b)
        return int(matrix_multiply.total(product, before, saturate=row["saturate"])[0, 0])
    if row["d_type"] == "f16":
        c = np.array([[row["c"]]], np.uint16).view(np.float16).astype(np.float32)
    else:
        c = np.array([[row["c"]]], np.uint32).view(np.float32)
    types = row["a_type"], row["b_type"], row["d_type"]
    if "scale" not in row:
        sums = tensor_sums.fused(a, b, c, types)
    else:
        count = row["scale_vec"]
        octets = [np.array([row[name][:count]], np.uint8) for name in ("scale_a", "scale_b")]
        left, right = (matrix_multiply.scale_factors(each, row["scale"]) for each in octets)
        scales = left, right
        if row["kind"] == "mxf8f6f4":
            sums = tensor_sums.fused(a, b, c, types, scales=scales)
        else:
            sums = tensor_sums.fused_groups(a, b, c, scales, scale_type=row["scale"])
    return int(tensor_sums.words_of(sums, row["d_type"])[0, 0])


@pytest.mark.parametrize("row", lines("tcgen05_mma_words_b200.jsonl"), ids=lambda row: row["name"])
def test_tcgen05_mma(row: Row) -> None:
    assert tcgen05_word(row) == row["d"]


def test_cancelling_groups_count() -> None:
    """MMA-Sim and sf-tensor/tcgen05: 16 products that cancel still have their factors' exponent; zeros have none."""
    a, b = np.zeros((1, 64), np.float32), np.ones((1, 64), np.float32)
    a[0, :2], a[0, 16] = (1, -1), 1
    scales = np.array([[2.0**40, 1.0, 1.0, 1.0]]), np.ones((1, 4))
    c = np.array([[2.0**-10]], np.float32)
    assert tensor_sums.fused_groups(a, b, c, scales)[0, 0] == 0  # 40 - 35 bits: 2**5 is the smallest that is left
    a[0, :2] = 0
    assert tensor_sums.fused_groups(a, b, c, scales)[0, 0] == 1 + 2.0**-10


@pytest.mark.parametrize(("depth", "word"), [(25, 0), (26, 1)])
def test_groups_have_a_floor(depth: int, word: int) -> None:
    """sf-tensor/tcgen05: nothing below 2**-174 counts. The least number less 2**-depth of it is cut, or stays."""
    a, b = np.zeros((1, 64), np.float32), np.ones((1, 64), np.float32)
    a[0, 0], a[0, 16] = 1, -1
    scales = np.array([[2.0**-75, 2.0 ** (-75 - depth), 1.0, 1.0]]), np.full((1, 4), 2.0**-74)
    found = tensor_sums.fused_groups(a, b, None, scales)
    assert found.view(np.uint32)[0, 0] == word


def test_subnormal_scale_factors_count_as_the_least_normal_one() -> None:
    """MMA-Sim and sf-tensor/tcgen05: the exponent of a subnormal .ue4m3 is -6."""
    a, b = np.zeros((1, 64), np.float32), np.ones((1, 64), np.float32)
    a[0, 0], a[0, 16] = 1, -1
    scales = np.full((1, 4), 2.0**-9), np.full((1, 4), 2.0**-9)
    for size, kept in ((-47, True), (-48, False)):  # -12 - 35: 2**-47 is the smallest that is left
        c = np.array([[2.0**size]], np.float32)
        assert (tensor_sums.fused_groups(a, b, c, scales, scale_type="ue4m3")[0, 0] == c[0, 0]) == kept


@pytest.mark.parametrize(
    ("types", "least"),
    [(("bf16", "bf16", "f32"), -133), (("tf32", "tf32", "f32"), -133), (("f16", "f16", "f16"), -21)],
)
@pytest.mark.parametrize("rule", [tensor_sums.USUAL, tensor_sums.HOPPER])
def test_floor(types: tuple[str, str, str], least: int, rule: tensor_sums.Rule) -> None:
    """Two products that together are the smallest number of D, or not, as the cut falls."""
    unit = -149 if types[2] == "f32" else -24
    for lowest, kept in ((least - rule.fraction, True), (least - rule.fraction - 1, False)):
        a = np.array([[2.0 ** (unit // 2), 2.0 ** (lowest // 2)]], np.float32)
        b = np.array([[2.0 ** (unit - unit // 2), -(2.0 ** (lowest - lowest // 2))]], np.float32)
        found = tensor_sums.fused(a, b, None, types, rule)
        if types[2] == "f32":
            assert (found[0, 0] == 0) == kept  # cut towards zero: any bit less than the unit is nothing
        else:
            a[0, 0] /= 2  # half of the smallest number is rounded to even: to zero, if nothing is added to it
            b[0, 1] *= -1
            assert (tensor_sums.fused(a, b, None, types, rule)[0, 0] != 0) == kept
