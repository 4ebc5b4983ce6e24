"""K 96 of kind::mxf4 and mxf4nvf4 (sm_103a): 48 bytes of K, absolute leading-dimension addresses, 3 or 6 scales a row.

PTX ISA 9.7.16.2.1.1 and 9.7.16.3.1.2. Rows of 128 bytes hold 2 2/3 instructions, so that some of them begin in one tile
and end in the next, and scales of some begin in the middle of a word.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.block_scales import scale_codes, scale_values, scaled_idesc
from tests.support.tensor_kernel import BASE
from tests.support.tensor_layouts import Bench, close, codes_of, errors, values_of

ROW = 128
K96 = 1 << 31


def tiles(bench: Bench, codes: NDArray[np.uint32]) -> list[int]:
    """The image's places of tiles with 128 bytes of K each: packed pairs, K-major, 128B swizzle (9.7.16.3.3)."""
    rows, k = codes.shape
    places = [bench.room(rows * ROW) for _ in range(k // 2 // ROW)]
    packed = (codes[:, 0::2] | codes[:, 1::2] << 4).astype(np.uint8)
    for row in range(rows):
        for byte in range(k // 2):
            at = BASE + places[byte // ROW] + row * ROW + byte % ROW
            bench.image[(at ^ (at >> 7 & 7) << 4) - BASE] = packed[row, byte]
    return places


def descriptor(places: list[int], number: int, absolute: bool = True) -> int:
    """Of the `number`-th 48 bytes of K; the next tile in the field of LBO, bit 52 (table 40)."""
    tile, byte = divmod(48 * number, ROW)
    following = places[min(tile + 1, len(places) - 1)]
    return (
        (BASE + places[tile] + byte) >> 4
        | (BASE + following) >> 4 << 16
        | 8 * ROW >> 4 << 32
        | 1 << 46
        | absolute << 52
        | 2 << 61
    )


def scale_words(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Row r on lane r % 32 of each quarter; a word has 4 scales of K, and there are 4 columns a word for 128 rows."""
    rows, scales = codes.shape
    cells = np.random.default_rng(9).integers(0, 2**32, (128, scales), dtype=np.uint64).astype(np.uint32)
    raw = cells.view(np.uint8).reshape(128, scales, 4)
    for row in range(rows):
        for quarter in range(4):
            for j in range(scales):
                raw[32 * quarter + row % 32, j // 4 * 4 + row // 32, j % 4] = codes[row, j]
    return cells


MMA = (
    "tcgen05.mma.cta_group::1.kind::{kind}.block_scale{size} [{{d}}], {left}, {{b}}, {{idesc}}, [{{sfa}}], [{{sfb}}], "
    "{more};"
)


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(
    ("kind", "size", "scale", "count"),
    [("mxf4", "", "ue8m0", 3), ("mxf4nvf4", ".block32", "ue8m0", 3), ("mxf4nvf4", ".block16", "ue4m3", 6)],
)
def test_a_row_of_four_instructions(kind: str, size: str, scale: str, count: int, schedule: Any) -> None:
    """They begin at bytes 0, 48, 96 and 144 of K; the third ends in the second tile."""
    bench, n, k = Bench(count), 64, 512
    a, b = codes_of(bench.rng, (128, k), "e2m1"), codes_of(bench.rng, (n, k), "e2m1")
    sfa, sfb = scale_codes(bench.rng, 128, 4 * count, scale), scale_codes(bench.rng, n, 4 * count, scale)
    at_a, at_b = bench.fill(scale_words(sfa)), bench.fill(scale_words(sfb))
    bench.sync()
    left, right, column = tiles(bench, a), tiles(bench, b), bench.take(n)
    for number in range(4):
        word, byte = divmod(number * count, 4)
        bench.issue(
            MMA.format(kind=kind, size=size, left="{a}", more=int(number > 0)),
            d=column,
            a=descriptor(left, number),
            b=descriptor(right, number),
            sfa=at_a + 4 * word,
            sfb=at_b + 4 * word,
            idesc=K96 | scaled_idesc(n, "e2m1", "e2m1", scale, (byte, byte), packed=True),
        )
    report, words = bench.run(schedule=schedule, target="sm_103a")
    assert not errors(report), report.summary()
    block = 96 // count
    x = values_of(a[:, :384], "e2m1") * np.repeat(scale_values(sfa, scale), block, axis=1)
    y = values_of(b[:, :384], "e2m1") * np.repeat(scale_values(sfb, scale), block, axis=1)
    close(words[:, column : column + n], x @ y.T, np.abs(x) @ np.abs(y).T, 384)


def one(target: str = "sm_103a", absolute: bool = True, number: int = 0, dense_k: int = K96) -> Any:
    """One instruction with A in tensor memory: the bench's report, its D, and what it should be."""
    bench, n = Bench(5), 32
    a, b = codes_of(bench.rng, (128, 96), "e2m1"), codes_of(bench.rng, (n, 512), "e2m1")
    sfa, sfb = scale_codes(bench.rng, 128, 4, "ue8m0"), scale_codes(bench.rng, n, 4, "ue8m0")
    at_a, at_b = bench.fill(scale_words(sfa)), bench.fill(scale_words(sfb))
    place = bench.fill(np.ascontiguousarray((a[:, 0::2] | a[:, 1::2] << 4).astype(np.uint8)).view(np.uint32))
    bench.sync()
    right, column = tiles(bench, b), bench.take(n)
    bench.issue(
        MMA.format(kind="mxf4", size="", left="[{a}]", more=0),
        d=column,
        a=place,
        b=descriptor(right, number, absolute),
        sfa=at_a,
        sfb=at_b,
        idesc=dense_k | scaled_idesc(n, "e2m1", "e2m1", "ue8m0", packed=True),
    )
    report, words = bench.run(target=target)
    x = values_of(a, "e2m1") * np.repeat(scale_values(sfa[:, :3], "ue8m0"), 32, axis=1)
    part = b[:, 96 * number : 96 * number + 96]
    y = values_of(part, "e2m1") * np.repeat(scale_values(sfb[:, :3], "ue8m0"), 32, axis=1)
    return report, words[:, column : column + n], x, y


@pytest.mark.parametrize(("number", "absolute"), [(0, False), (1, False), (2, True)])
def test_a_in_tensor_memory(number: int, absolute: bool) -> None:
    """12 columns of A. What fits into a row needs no absolute address."""
    report, found, x, y = one(number=number, absolute=absolute)
    assert not errors(report), report.summary()
    close(found, x @ y.T, np.abs(x) @ np.abs(y).T, 96)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"target": "sm_100a"}, "K 96 on sm_100a"),
        ({"target": "sm_100a", "dense_k": 0}, "the absolute LBO mode on sm_100a"),
        ({"absolute": False, "number": 2}, "48 bytes of K from byte 96 of a row pass its end"),
    ],
)
def test_faults(change: dict[str, Any], words: str) -> None:
    report, *_ = one(**change)
    assert (report.status, report.findings[-1].code) == ("fault", "illegal-descriptor")
    assert words in report.findings[-1].message
