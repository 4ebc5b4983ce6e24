"""Point queries: experts' questions with answers worked out from the manual's formulas, and every map both ways."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Callable

import numpy as np
import pytest

from ptxgen.descriptors import DescriptorError, TensorMap
from ptxgen.pictures import KINDS, draw
from ptxgen.pictures.points import MAPS, answer, layout_map, locate

MAP = TensorMap.tiled("bf16", 0, (512, 512), (1024,), (32, 16), swizzle="64B").encode().hex()


def tmem_load(shape: str) -> Callable[[int, int], tuple[int, int]]:
    """(lane, column) of (thread, register), PTX ISA 9.7.16.2.3.1: the figures of the shapes as formulas."""
    return {
        "32x32b": lambda t, r: (t, r),
        "16x64b": lambda t, r: (t // 4 + 8 * (t % 2), t // 2 % 2 + 2 * r),
        "16x128b": lambda t, r: (t // 4 + 8 * (r % 2), t % 4 + 4 * (r // 2)),
        "16x256b": lambda t, r: (t // 4 + 8 * (r // 2 % 2), 2 * (t % 4) + r % 2 + 8 * (r // 4)),
    }[shape]


@pytest.mark.parametrize("shape", ["32x32b", "16x64b", "16x128b", "16x256b"])
def test_every_register_of_a_load(shape: str) -> None:
    formula = tmem_load(shape)
    registers = {"32x32b": 4, "16x64b": 4, "16x128b": 8, "16x256b": 16}[shape]
    for thread, register in itertools.product(range(32), range(registers)):
        lane, column = formula(thread, register)
        [found] = locate("ld", [shape, "num=4"], thread=thread, register=register)
        assert (found["lane"], found["column"], found["bit"]) == (lane, column, 0)
        [back] = locate("ld", [shape, "num=4"], at=(lane, column))
        assert (back["thread"], back["register"]) == (thread, register)


@pytest.mark.parametrize(
    "words",
    [
        ("accumulator", "n=64"),
        ("accumulator", "m=64", "n=32"),
        ("ld", "16x128b", "num=4"),
        ("ld", "32x32b", "num=8", "pack=yes"),
        ("a", "m=64", "bits=8"),
        ("metadata", "f16"),
        ("cp", "64x128b"),
        ("scales", "rows=256"),
    ],
)
def test_a_base_moves_every_cell(words: tuple[str, ...]) -> None:
    """PTX ISA 9.7.16.1.1: the lane in bits 16 to 31 of an address, the column in bits 0 to 15."""
    kind, *options = words
    cells = layout_map(kind, options).rows()
    lanes = 16 if cells["lane"].max() < 112 else 0
    moved = layout_map(kind, [*options, f"base={lanes << 16 | 200:#x}"]).rows()
    assert cells.keys() == moved.keys()
    for name, column in cells.items():
        more = {"lane": lanes, "column": 200, "address": lanes << 16 | 200}.get(name, 0)
        assert np.array_equal(moved[name], column + more), name
    assert np.array_equal(moved["address"], moved["lane"] * 65536 + moved["column"])


def test_a_query_counts_from_the_base() -> None:
    assert locate("ld", ["32x32b", "base=0x200080"], at=(35, 133)) == [
        {"thread": 3, "register": 5, "bit": 0, "lane": 35, "column": 133, "address": 0x230085}
    ]
    [found] = locate("accumulator", ["n=64", "base=128"], address=0x0028_0083)
    assert (found["row"], found["n"]) == (40, 3)
    assert answer("ld", ["16x64b", "base=64"], thread=3, register=1).map.title.endswith("x2")


def test_every_element_of_fragments_by_the_manuals_formulas() -> None:
    """PTX ISA 9.7.14.5.8 (A, B and C of m16n8k16 with 16 bits) and 9.7.15.5.1.1.1 (D of wgmma)."""
    for lane, i in itertools.product(range(32), range(8)):
        group, within = lane // 4, lane % 4
        row = group if i < 2 or 4 <= i < 6 else group + 8
        column = within * 2 + (i & 1) + (8 if i >= 4 else 0)
        [found] = locate("fragment", ["mma-a"], at=(row, column))
        assert (found["thread"], found["register"], found["bit"]) == (lane, i // 2, 16 * (i % 2))
    for lane, i in itertools.product(range(32), range(4)):
        group, within = lane // 4, lane % 4
        [found] = locate("fragment", ["mma-b"], at=(within * 2 + (i & 1) + (8 if i >= 2 else 0), group))
        assert (found["thread"], found["register"], found["bit"]) == (lane, i // 2, 16 * (i % 2))
        [found] = locate("fragment", ["mma-d"], at=(group + (8 if i >= 2 else 0), within * 2 + (i & 1)))
        assert (found["thread"], found["register"], found["bit"]) == (lane, i, 0)
    for thread, i in itertools.product(range(0, 128, 5), range(16)):
        warp, lane = divmod(thread, 32)
        row, column = 16 * warp + lane // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (lane % 4) + i % 2
        [found] = locate("fragment", ["wgmma-d", "n=32"], at=(row, column))
        assert (found["thread"], found["warp"], found["lane"], found["register"]) == (thread, warp, lane, i)


def test_the_four_products_of_m8n8k4_by_the_manuals_formulas() -> None:
    """PTX ISA 9.7.14.5.1: quad pairs of threads t and t + 16, with A .row or .col, B .row or .col, D of f16 or f32."""
    for lane in range(32):
        product, low, high = 8 * (lane % 16 // 4), lane % 4, 4 * (lane // 16)
        for i in range(4):
            for word, (row, column) in {"row": (low + high, i), "col": (i + high, low)}.items():
                [found] = locate("fragment", ["mma-a", "k=4", f"layout={word}"], at=(row + product, column))
                assert (found["thread"], found["register"], found["bit"]) == (lane, i // 2, 16 * (i % 2))
            for word, (row, column) in {"row": (low, i + high), "col": (i, low + high)}.items():
                [found] = locate("fragment", ["mma-b", "k=4", f"layout={word}"], at=(row, column + product))
                assert (found["thread"], found["register"], found["bit"]) == (lane, i // 2, 16 * (i % 2))
        for i in range(8):
            [found] = locate("fragment", ["mma-d", "m=8", "bits=16"], at=(low + high + product, i))
            assert (found["thread"], found["register"], found["bit"]) == (lane, i // 2, 16 * (i % 2))
            row, column = (lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)
            [found] = locate("fragment", ["mma-d", "m=8", "k=4", "bits=32"], at=(row + product, column))
            assert (found["thread"], found["register"], found["bit"]) == (lane, i, 0)


@pytest.mark.parametrize(
    ("kind", "words", "larger", "columns"),
    [
        ("swizzle", ["64B"], ["rows=64"], ("address",)), ("pitch", ["pitch=132"], ["rows=64"], ("address",)),
        ("operand", ["k", "64B"], ["rows=64"], ("address",)), ("operand", ["mn", "64B"], ["rows=128"], ("address",)),
        ("ld", ["16x128b"], ["num=16"], ("thread", "register")), ("fragment", [], ["n=64"], ("thread", "register")),
        ("fragment", ["ldmatrix"], ["num=4"], ("thread", "register")),
    ],
)  # fmt: skip
def test_a_place_makes_the_layout_as_large_as_it_must_be(
    kind: str, words: list[str], larger: list[str], columns: tuple[str, ...]
) -> None:
    rows = answer(kind, [*words, *larger], at=(0,) * 2).map.rows()
    generator = random.Random(3)
    for index in generator.sample(range(len(rows[columns[0]])), 10):
        given = {name: int(rows[name][index]) for name in columns}
        assert locate(kind, words, None, **given) == locate(kind, [*words, *larger], None, **given)


@pytest.mark.parametrize("kind", ["accumulator", "scales", "operand", "ld"])
def test_a_range_is_all_of_its_elements(kind: str) -> None:
    words = ["rows=64"] if kind in ("operand", "scales") else []
    one_by_one = [locate(kind, words, at=(row, 1)) for row in range(11, 15)]
    together = locate(kind, words, at=(range(11, 15), 1))
    assert sorted(map(repr, together)) == sorted(repr(each) for found in one_by_one for each in found)
    with pytest.raises(DescriptorError, match="must be 0 to"):
        locate(kind, words, at=(range(11, 1000), 1))


def test_strided_boxes_are_those_of_the_tensormap() -> None:
    strides = (1, 2, 3)
    tensor = TensorMap.tiled(
        "f16", 0, (64, 64, 64), (128, 8192), (32, 9, 7), element_strides=strides, swizzle="64B"
    ).encode()
    words = ["box=32x9x7", "64B", "strides=2x3"]
    for c1, c2 in itertools.product(range(0, 9, 2), range(0, 7, 3)):
        [found] = locate("tma", words, at=(4, c1, c2))
        [mapped] = locate("tensormap", [f"map={tensor.hex()}"], at=(4, c1, c2))
        row = c1 // 2 + 5 * (c2 // 3)
        assert found["address"] == mapped["address"] == row * 64 + 8 ^ (row // 2 % 4) << 4
    assert "expect_tx 960 bytes" in answer("tma", words, at=(0, 0, 0)).map.notes[0]


def test_scales_by_the_formula_of_cublas() -> None:
    """cuBLAS, 1D block scaling factors layout, and PTX ISA 9.7.16.10.7.2 for tensor memory."""
    generator = random.Random(0)
    for _ in range(40):
        rows, along = 128 * generator.randint(1, 3), 4 * generator.randint(1, 5)
        row, scale = generator.randrange(rows), generator.randrange(along)
        found = locate("scales", [f"rows={rows}", f"along={along}"], at=(row, scale))
        tile = 512 * (row // 128 * (along // 4) + scale // 4)
        offset = tile + row % 32 * 16 + row % 128 // 32 * 4 + scale % 4
        assert [each["global_offset"] for each in found] == [offset] * 4
        assert [each["lane"] for each in found] == [row % 32 + 32 * quarter for quarter in range(4)]
        assert {each["column"] for each in found} == {row // 32 + rows // 32 * (scale // 4)}
        assert {each["byte"] for each in found} == {scale % 4}
    [one] = locate("scales", ["rows=128", "along=8", "stage=4"], at=(40, 6), lane=8)
    assert (one["global_offset"], one["shared_offset"]) == (512 + 8 * 16 + 4 + 2, 8 * 16 + 4 + 2)


def test_operands_by_the_canonical_layouts() -> None:
    """PTX ISA 9.7.16.3.3, with the XOR of 5.5.7."""
    generator = random.Random(1)
    for _ in range(60):
        row, k = generator.randrange(64), generator.randrange(64)
        [found] = locate("operand", ["k", "128B", "rows=64", "k=64"], at=(row, k))
        plain = row % 8 * 128 + row // 8 * 1024 + 2 * k
        assert found["address"] == plain ^ (plain >> 7 & 7) << 4
        [found] = locate("operand", ["mn", "64B", "rows=64", "k=64"], at=(row, k))
        plain = 2 * row % 64 + 2 * row // 64 * (64 * 64) + k % 8 * 64 + k // 8 * 512
        assert found["address"] == plain ^ (plain >> 7 & 3) << 4
        assert found["bank"] == found["address"] // 4 % 32
        [found] = locate("operand", ["k", "none", "rows=64", "k=64"], at=(row, k))
        assert found["address"] == row % 8 * 16 + row // 8 * 128 + 2 * k // 16 * 1024 + 2 * k % 16


def test_pixels_by_loops() -> None:
    """The walk of PTX ISA 5.5.4.1, position by position."""
    width, height, lower, upper, offset = 7, 5, (-1, -2), (-1, 0), (1, 2)
    base = itertools.product(
        range(3), range(lower[1], height + upper[1]), range(lower[0], width + upper[0])
    )  # image, h, w: the last is the fastest
    words = ["size=7x5", "lower=-1x-2", "upper=-1x0", "offset=1x2", "pixels=100"]
    for pixel, (image, h, w) in zip(range(100), base, strict=False):
        [found] = locate("im2col", words, at=(pixel,))
        w, h = w + offset[0], h + offset[1]
        assert (found["image"], found["h"], found["w"]) == (image, h, w)
        assert found["filled"] == (not (0 <= w < width and 0 <= h < height))


def test_rows_of_ldmatrix_fill_the_fragments_of_mma() -> None:
    """Loads a tile from the addresses of row-addresses, by the map of ldmatrix: registers hold A and B of mma.sync."""
    for order, operand, shape in (("mma-a", "mma-a", (16, 16)), ("mma-b", "mma-b", (16, 16))):
        tile = np.arange(shape[0] * shape[1]).reshape(shape)
        for thread, register, element in itertools.product(range(32), range(4), range(2)):
            [held] = locate("fragment", ["ldmatrix", "num=4"], thread=thread, register=register, bit=16 * element)
            matrix, row = divmod(held["row"], 8)
            [supplied] = locate("row-addresses", [order, "pitch=32"], at=(matrix, row))
            assert supplied["thread"] == 8 * matrix + row
            [back] = locate("row-addresses", [order, "pitch=32"], thread=8 * matrix + row)
            assert (back["matrix"], back["row"], back["address"]) == (matrix, row, supplied["address"])
            loaded = tile.ravel()[supplied["address"] // 2 + held["column"]]
            if operand == "mma-a":
                [at] = locate("fragment", [operand], thread=thread, register=register, bit=16 * element)
                assert loaded == tile[at["row"], at["column"]]
            else:  # registers 0 and 1 are B of columns 0 to 7, 2 and 3 of the next; the tile is [n, k]
                [at] = locate("fragment", [operand], thread=thread, register=register % 2, bit=16 * element)
                assert loaded == tile[at["column"] + 8 * (register // 2), at["row"]]


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["ldmatrix", "num=3"], "has .x1, .x2 and .x4"),
        (["ldmatrix", "shape=m16n16", "trans=yes", "num=4"], "has .x1 and .x2"),
        (["stmatrix", "shape=m16n8", "trans=yes", "num=3"], "has .x1, .x2 and .x4"),
        (["mma-d", "bits=8"], "elements of 16 or 32 or 64 bits"),
        (["wgmma-d", "bits=64"], "elements of 16 or 32 bits"),
        (["wgmma-a", "bits=4"], "elements of 1 or 8 or 16 or 32 bits"),
        (["mma-a", "k=32"], "K 8 or 16"),
        (["mma-a", "bits=4", "k=128"], "K 32 or 64"),
        (["mma-a", "m=8", "bits=8", "k=32"], "K 16"),
        (["mma-a", "m=8", "bits=16", "k=8"], "m8n8k4 of .f16 alone"),
    ],
)
def test_fragments_that_no_instruction_has_are_not_drawn(words: list[str], rule: str) -> None:
    with pytest.raises(ValueError, match=re.escape(rule)):
        locate("fragment", words, thread=0, register=0)


#: Words that make small maps of every kind.
EVERY = {
    "accumulator": ["m=128", "n=32", "cta_group=2"], "ld": ["16x128b", "num=2", "pack"], "a": ["m=64", "n=8"][:1],
    "metadata": ["i8"], "cp": ["64x128b"], "scales": ["rows=64", "along=4"], "fragment": ["wgmma-a"],
    "swizzle": ["64B"], "operand": ["mn", "64B"], "descriptor": [], "tma": ["box=16x4x3", "64B"],
    "row-addresses": ["mma-b", "swizzle=64B"], "tensormap": [f"map={MAP}"], "pitch": ["pitch=132"],
    "cute": ["(4,(2,3)):(2,(1,8))"], "im2col": ["size=4x3x2"],
}  # fmt: skip


@pytest.mark.parametrize("kind", MAPS)
def test_what_is_at_a_place_is_there(kind: str) -> None:
    """Every element's place leads back to it, and `at` finds all that a picture shows."""
    words = EVERY[kind]
    first = answer(kind, words, at=(0,) * len(MAPS[kind].make(**MAPS[kind].values(words)).at))
    found = first.map.rows()
    generator = random.Random(2)
    count = len(next(iter(found.values())))
    outputs = [name for name in found if name not in first.map.at]
    for index in generator.sample(range(count), min(20, count)):
        row = {name: int(each[index]) for name, each in found.items()}
        at = tuple(row[name] for name in first.map.at)
        assert row in locate(kind, words, at=at)
        assert row in answer(kind, words, None, **{name: row[name] for name in outputs}).rows


def test_every_layout_can_be_asked() -> None:
    assert list(MAPS)
    assert set(MAPS) == set(KINDS)


@pytest.mark.parametrize(
    ("kind", "words"),
    [("operand", ["mn", "64B"]), ("tma", ["box=16x4", "64B"]), ("descriptor", ["mn"]), ("pitch", ["pitch=132"])],
)
def test_answers_are_what_pictures_show(kind: str, words: list[str]) -> None:
    picture = np.array(draw(kind, words).data["address"])
    unit = 4 if kind == "pitch" else 1
    for row, column in itertools.product(range(0, picture.shape[0], 3), range(0, picture.shape[1], 2)):
        at = (column // 2, row) if kind == "tma" else (row, column * unit)
        [found] = locate(kind, words, at=at)
        assert found["address"] == picture[row, column - column % 2 if kind == "tma" else column]


@pytest.mark.parametrize(
    ("kind", "words", "at", "given", "message"),
    [
        ("ld", ["16x256b"], (16, 0), {}, "lane must be 0 to 15 in tcgen05.ld and st .16x256b.x1, not 16"),
        ("ld", [], (1,), {}, "at of ld must be LANE,COLUMN, not 1 numbers"),
        ("ld", [], None, {}, "a query needs at=LANE,COLUMN, or one of thread, register, bit, lane, column"),
        ("ld", [], None, {"row": 3}, "ld has no 'row' to ask for; it has thread, register, bit, lane, column"),
        ("nothing", [], (1, 2), {}, "there is no layout 'nothing' to ask"),
        ("scales", ["rows=128"], (130, 2), {}, "row must be 0 to 127 in scale factors of nvfp4"),
        ("scales", [], (-1, 2), {}, "row must be 0 to 127"),
        ("operand", ["rows=16", "k=64"], (16, 0), {}, "row must be 0 to 15 in K-major f16, swizzle 128B, 16 rows"),
        ("cp", ["4x256b"], None, {"lane": 5}, "tcgen05.cp.4x256b has nothing at lane 5"),
        ("fragment", ["mma-metadata", "selector=2"], (0, 0), {}, "the sparsity selector is 0 to 1, not 2"),
        ("fragment", ["mma-scale-a", "scales=2", "byte_id=1"], (0, 0), {}, "no 2 scale factors of a begin at byte 1"),
        ("im2col", ["size=2x2", "upper=-3x0"], (0,), {}, "lower 0 and upper -3x0 leave no pixel of 2x2"),
        ("row-addresses", ["m16n16"], (0, 0), {}, "ldmatrix.m16n16 has .x1 and .x2, not .x4"),
        ("row-addresses", ["stmatrix", "m16n16"], (0, 0), {}, "stmatrix has no .m16n16"),
        ("row-addresses", ["num=1"], None, {"thread": 8}, "thread must be 0 to 7 in row addresses of ldmatrix.m8n8.x1"),
        ("row-addresses", ["pitch=40"], (0, 0), {}, "pitch must be a multiple of 16"),
        ("cute", ["(8,4"], (0, 0), {}, "a ( of the layout is not closed"),
    ],
)  # fmt: skip
def test_refusals(kind: str, words: list[str], at: tuple[int, ...] | None, given: dict[str, int], message: str) -> None:
    with pytest.raises(DescriptorError) as caught:
        locate(kind, words, at, **given)
    assert message in str(caught.value)


def test_answers_are_json() -> None:
    assert json.loads(json.dumps(locate("cp", [], at=(5, 6)))) == locate("cp", [], at=(5, 6))
