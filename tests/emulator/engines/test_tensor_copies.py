"""What tensor copies touch, against the bytes that an H100 left behind; and what only Blackwell has, against loops."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxgen.descriptors import TensorMap
from ptxgen.descriptors.tensormap import Im2colMap, TiledMap
from ptxgen.emulator.engines import tensor_copies
from ptxgen.emulator.engines.tensor_copies import Box
from ptxgen.emulator.memory import GlobalMemory, MemoryFault
from ptxgen.emulator.memory.reductions import TENSOR_TYPES, combiner
from tests.support.paths import DATA

RECORDING = DATA / "tma" / "h100_copies.jsonl.gz"
POISON = 0xCD
TENSOR = 1 << 17
SHARED = 49152
Bytes = NDArray[np.uint8]

#: Special words of each width, from which the recorded reductions chose.
SPECIAL = {
    16: [0, 0x8000, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 0x7F80, 0xFF80, 0x7FC0, 0x7F81, 1, 0x8001, 0x3FF, 0x7F, 0x83FF,
         0x7BFF, 0x7F7F, 0xFFFF, 0x7FFF],
    32: [0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 1, 0x80000001, 0x7FFFFF, 0x807FFFFF, 0x800000,
         0x80800000, 0x7F7FFFFF, 0xFFFFFFFF, 0x7FFFFFFF, 2, 3],
    64: [0, 1 << 63, 0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48, (0x7FF0 << 48) + 1, 1, (1 << 63) + 1, (1 << 52) - 1,
         (0x7FEF << 48) + 5, 2**64 - 1, 2**63 - 1, 2, 3],
}  # fmt: skip
#: All arrays were this large when the recording was made; random ones depend on it.
WHOLE = 1 << 20


@cache
def contents(name: str, seed: int) -> Bytes:
    """The bytes that a name stands for."""
    if name.startswith("edge"):
        bits = int(name[4:])
        rng, count = np.random.default_rng(seed), WHOLE * 8 // bits
        high, low = (rng.integers(0, limit, count, dtype=np.uint64) for limit in (2**63, 2))
        words = high * np.uint64(2) + low
        words = words >> np.uint64(64 - bits) if bits < 64 else words
        special = np.array(SPECIAL[bits], np.uint64)
        chosen = rng.integers(0, 3, count) == 0
        words = np.where(chosen, special[rng.integers(0, len(special), count)], words)
        return words.astype(f"u{bits // 8}").view(np.uint8)
    if name == "f32bits":
        rng, count = np.random.default_rng(len(name) + sum(name.encode())), WHOLE // 4
        words, kind = rng.integers(0, 2**32, count, dtype=np.uint32), rng.integers(0, 6, count)
        words = np.where(kind == 0, words & 0x807FFFFF, words)  # subnormal
        words = np.where(kind == 1, words | 0x7F800000, words)  # NaN
        words = np.where(kind == 2, (words & 0xFFFFE000) | 0x1000, words)  # a tie in tf32, and its neighbors
        near = rng.integers(0, 3, count).astype(np.uint32) + np.uint32(0xFFF)
        return np.where(kind == 3, (words & 0xFFFFE000) + near, words).astype(np.uint32).view(np.uint8)
    count = WHOLE // 2
    made = {
        "idx16": lambda: np.arange(count) % 51000 + 1,
        "idx": lambda: np.arange(count) % 12000 + 53000,
        "zero": lambda: np.zeros(count),
        "cd": lambda: np.full(count, POISON * 0x101),
    }
    if name == "idx32":
        return (np.arange(WHOLE // 4) + 1).astype(np.uint32).view(np.uint8)
    return made[name]().astype(np.uint16).view(np.uint8)


@cache
def recorded() -> list[dict[str, Any]]:
    with gzip.open(RECORDING, "rt") as lines:
        return [json.loads(line) for line in lines]


def answer(record: dict[str, Any]) -> Bytes:
    text = record["shared"] if "shared" in record else record["global"]
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)


def memory_with(data: Bytes, tensormap: Any) -> tuple[GlobalMemory, Any, Bytes]:
    """Global memory with a tensor, the map of it there, and the tensor's bytes as a view."""
    memory = GlobalMemory()
    memory.allocate(1 << 14)
    address = memory.allocate(TENSOR)
    memory.view(address, TENSOR)[:] = data[:TENSOR]
    return memory, tensormap.replace(address=address), memory.view(address, TENSOR)


def box_of(entry: str, tensormap: TiledMap | Im2colMap, record: dict[str, Any]) -> Box:
    coords = record["coords"][: tensormap.rank]
    if isinstance(tensormap, TiledMap):
        return tensor_copies.tile(tensormap, coords)
    return tensor_copies.pixels(tensormap, coords, record["offsets"][: tensormap.rank - 2])


def test_every_recorded_copy() -> None:
    """All bytes that an H100 wrote, and none beside them: tiles, columns, strides, interleave, stores, reductions."""
    seen: Counter[str] = Counter()
    for record in recorded():
        if record["entry"].startswith("bulk"):
            continue
        entry, op = (*record["entry"].split(), "")[:2]
        decoded = TensorMap.decode(bytes.fromhex(record["map"]))
        memory, tensormap, tensor = memory_with(contents(record["data"], 1), decoded)
        if "fault" in record:
            seen["fault"] += 1
            check_fault(entry, op, tensormap, record)
            continue
        seen[entry.rstrip("12345")] += 1
        box = box_of(entry, tensormap, record)
        granules = box.granules(1024)
        before = contents(record["data"], 1)[:TENSOR]
        if "shared" in record:
            shared = np.full(SHARED + 1024, POISON, np.uint8)
            box.put(shared, granules, box.gather(memory))
            found = shared[1024:]
        else:
            given = contents(record["image"], 2)[:SHARED].reshape(-1, 16)[granules - 64].ravel()
            if op:
                assert decoded.dtype in TENSOR_TYPES[op]
                with np.errstate(all="ignore"):
                    box.reduce(memory, given, combiner(op, decoded.dtype))
            else:
                box.scatter(memory, given)
            found = tensor
        expected = answer(record)
        assert (found[: len(expected)] == expected).all(), record
        if "beginning" not in record:
            rest = found[len(expected) :]
            assert (rest == (POISON if "shared" in record else before[len(expected) :])).all(), record
    assert seen == {"tile": 151, "im": 79, "store": 10, "ims": 6, "reduce": 30, "fault": 17}, seen


def check_fault(entry: str, op: str, tensormap: Any, record: dict[str, Any]) -> None:
    """What ended the kernel is refused here."""
    if record.get("shift"):
        assert record["shift"] % 128
        return  # the instruction looks at the shared address: test_emulator_tma.py
    if op:
        assert tensormap.dtype not in TENSOR_TYPES[op], record
        return
    if min(record["coords"][: tensormap.rank]) < 0 and entry.startswith("ims"):
        return  # so it does at negative coordinates of stores
    if (tensormap.mode == "tiled") == entry.startswith("im") or not entry.endswith(str(tensormap.rank)):
        return  # so it does at the mode and the rank
    with pytest.raises(MemoryFault):
        box_of(entry, tensormap, record)


def test_recorded_bulk_reductions() -> None:
    count = 0
    for record in recorded():
        if not record["entry"].startswith("bulk"):
            continue
        op, *_, dtype = record["entry"].split()[1].split(".")
        expected = answer(record)
        size = int(record["data"][4:]) // 8
        old = contents(record["data"], 1)[:16384].view(f"u{size}")
        new = contents(record["image"], 2)[:16384].view(f"u{size}")
        with np.errstate(all="ignore"):
            found = combiner(op, dtype)(old, new)
        assert (found.view(np.uint8)[: len(expected)] == expected).all(), record["entry"]
        count += 1
    assert count == 13


# What no Hopper has: packed types, gather4 and scatter4, the flip, the wide modes.


def moved(box: Box, memory: GlobalMemory, start: int = 1024) -> Bytes:
    shared = np.full(SHARED, POISON, np.uint8)
    box.put(shared, box.granules(start), box.gather(memory))
    return shared


def random_bytes(seed: int, size: int = TENSOR) -> Bytes:
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)


#: Bits in global memory, bytes of sixteen values in shared memory.
PACKED = {"16u4_align8b": (4, 8), "16u4_align16b": (4, 16), "16u6_align16b": (6, 16)}


@pytest.mark.parametrize("swizzle", ["none", "128B"])
@pytest.mark.parametrize("dtype", sorted(PACKED))
def test_packed_types(dtype: str, swizzle: str) -> None:
    """Sixteen values at a time, with a gap behind them that stays as it was (PTX ISA 5.5.1.1)."""
    bits, padded = PACKED[dtype]
    data, row = random_bytes(1), 256 * bits // 8
    made = TensorMap.tiled(dtype, 0, (256, 20), (row,), (128, 6), swizzle=swizzle)
    memory, tensormap, _ = memory_with(data, made)
    for column, first in ((0, 0), (128, 3), (128, 17), (-128, 2), (256, 1)):
        box = tensor_copies.tile(tensormap, (column, first))
        expected = np.full(SHARED, POISON, np.uint8)
        pitch = 128 if swizzle == "128B" else 128 // 16 * padded
        for r in range(6):
            for group in range(8):
                packed = 2 * bits
                at = 1024 + r * pitch + group * padded
                if swizzle == "128B":
                    at ^= (at >> 7 & 7) << 4
                inside = 0 <= first + r < 20 and 0 <= column < 256
                begin = (first + r) * row + (column + 16 * group) * bits // 8
                expected[at : at + packed] = data[begin : begin + packed] if inside else 0
        assert (moved(box, memory) == expected).all(), (column, first)
        assert box.bytes == 6 * 128 * bits // 8
    if dtype != "16u4_align8b":
        with pytest.raises(MemoryFault, match="the first coordinate of the tensor copy") as caught:
            tensor_copies.tile(tensormap, (64, 0))
        assert "must be a multiple of 128" in str(caught.value.rule)


def test_six_bits_are_packed_by_stores() -> None:
    """The low six bits of every byte, in order, as one number: .b6p2x16."""
    made = TensorMap.tiled("16u6_align16b", 0, (256, 4), (192,), (128, 3))
    memory, tensormap, tensor = memory_with(random_bytes(2), made)
    expected, given = tensor.copy(), random_bytes(3, 3 * 128)
    tensor_copies.tile(tensormap, (128, 2)).scatter(memory, given)
    for r in range(2):  # the third row is outside
        number = sum((int(byte) & 63) << 6 * i for i, byte in enumerate(given[r * 128 : (r + 1) * 128]))
        begin = (2 + r) * 192 + 96
        expected[begin : begin + 96] = np.frombuffer(number.to_bytes(96, "little"), np.uint8)
    assert (tensor == expected).all()


def test_halves_flip_in_odd_lines() -> None:
    """As the 32-byte atom, and in every other 128-byte line the halves of each 16 bytes change places (5.5.7)."""
    data = random_bytes(4)
    made = TensorMap.tiled("f32", 0, (32, 64), (128,), (32, 10), swizzle="128B_atom_32B_flip_8B")
    memory, tensormap, _ = memory_with(data, made)
    for start in (1024, 1024 + 128, 1024 + 384):
        expected = np.full(SHARED, POISON, np.uint8)
        for i in range(1280):
            at = start + i
            at ^= (at >> 7 & 3) << 5
            expected[at ^ (8 if at >> 7 & 1 else 0)] = data[3 * 128 + i]
        assert (moved(tensor_copies.tile(tensormap, (0, 3)), memory, start) == expected).all()


@pytest.mark.parametrize("swizzle", ["none", "64B"])
def test_four_rows(swizzle: str) -> None:
    """gather4 and scatter4: the same columns of four rows, in the order that they are named, twice if so."""
    data = random_bytes(5)
    made = TensorMap.tiled("u16", 0, (64, 30), (160,), (24, 1), swizzle=swizzle)
    memory, tensormap, tensor = memory_with(data, made)
    for column, rows in ((8, (3, 29, 0, 3)), (56, (30, -1, 5, 6)), (-8, (1, 2, 3, 4))):
        box = tensor_copies.four_rows(tensormap, (column, *rows))
        expected, lines = np.full(SHARED, POISON, np.uint8), np.zeros((4, 48), np.uint8)
        for k, row in enumerate(rows):
            for i in range(24):
                if 0 <= row < 30 and 0 <= column + i < 64:
                    lines[k, 2 * i : 2 * i + 2] = data[row * 160 + (column + i) * 2 :][:2]
            for i in range(48):
                at = 1024 + k * (64 if swizzle == "64B" else 48) + i
                expected[at ^ (((at >> 7) & 3) << 4 if swizzle == "64B" else 0)] = lines[k, i]
        assert (moved(box, memory) == expected).all()
        assert box.bytes == 192
    given = random_bytes(6, 192)
    tensor_copies.four_rows(tensormap, (8, 4, 4, 9, 4)).reduce(memory, given, combiner("add", "u16"))
    words, new = data.view(np.uint16).copy(), given.view(np.uint16).reshape(4, 24)
    for k, row in enumerate((4, 4, 9, 4)):
        words[row * 80 + 8 : row * 80 + 32] += new[k]
    assert (tensor.view(np.uint16) == words[: TENSOR // 2]).all()
    interleaved = {"dims": (64, 30, 2), "strides": (160, 4800), "box": (24, 1, 1), "interleave": 1}
    for changes in ({"box": (24, 2)}, interleaved):
        wrong = TensorMap.tiled("u16", 0, **{"dims": (64, 30), "strides": (160,), **changes})
        with pytest.raises(MemoryFault):
            tensor_copies.four_rows(wrong, (8, 1, 2, 3, 4))


def wide_map(step: int, fixed: bool) -> TensorMap:
    return TensorMap.im2col_wide(
        "u16",
        0,
        (16, 7, 5, 9),
        (32, 32 * 7, 32 * 35),
        -1,
        1,
        16,
        20,
        wide_mode=int(fixed),
        swizzle="64B",
        element_strides=[1, step, 1, 1],
    )


#: First pixel, wHalo, wOffset, stride.
COLUMNS = {
    False: [(0, 0, 0, 1), (3, 0, 2, 1), (-1, 0, 1, 2), (-3, 0, 0, 3), (4, 2, 0, 1), (-1, 13, 5, 1), (-1, 1, 1, 3)],
    True: [(0, 0, 0, 1), (3, 0, 2, 1), (-1, 0, 1, 2), (-3, 0, 0, 3), (-1, 1, 0, 1), (-1, 1, 3, 2), (-1, 13, 30, 1)],
}


@pytest.mark.parametrize(
    ("fixed", "start", "halo", "offset", "step"), [(fixed, *each) for fixed in COLUMNS for each in COLUMNS[fixed]]
)
def test_wide_columns(fixed: bool, start: int, halo: int, offset: int, step: int) -> None:
    """Along the width from the given pixel, from the box's end back to its beginning in the next image (5.5.5).

    Then the halo, and of im2col::w::128 those of the four quarters, a pixel of each in turn.
    """
    data = random_bytes(7)
    memory, tensormap, _ = memory_with(data, wide_map(step, fixed))
    box = tensor_copies.wide_pixels(tensormap, (0, start, 2, 4), halo, offset, fixed=fixed)
    count, group = (128, 32) if fixed else (20, 20)
    walk, w, image = [], start, 4
    while len(walk) < count + halo:
        walk.append((w, image))
        w += step
        if w > 6 + 1:
            w, image = -1, image + 1
    pixels = walk[:count] + [walk[end + i] for i in range(halo) for end in range(group, count + 1, group)]
    expected = np.full(SHARED, POISON, np.uint8)
    for number, (w, image) in enumerate(pixels):
        for i in range(32):
            at = 1024 + 64 * number + i
            inside = 0 <= w + offset < 7 and image < 9
            value = data[image * 32 * 35 + 2 * 32 * 7 + (w + offset) * 32 + i] if inside else 0
            expected[at ^ ((at >> 7) & 3) << 4] = value
    assert (moved(box, memory) == expected).all()
    assert box.bytes == (count + halo * count // group) * 32


@pytest.mark.parametrize("fixed", [False, True])
def test_wide_columns_that_cannot_be(fixed: bool) -> None:
    _, tensormap, _ = memory_with(random_bytes(7), wide_map(1, fixed))
    for swizzle in ("none", "128B_atom_32B_flip_8B"):
        with pytest.raises(MemoryFault, match="uses a map with swizzle"):
            tensor_copies.wide_pixels(tensormap.replace(swizzle=swizzle), (0, 0, 0, 0), 0, 0, fixed=fixed)
    for halo, offset, words in ((32 if fixed else 512, 0, "wHalo"), (0, 32, "wOffset")):
        with pytest.raises(MemoryFault, match=words):
            tensor_copies.wide_pixels(tensormap, (0, 0, 0, 0), halo, offset, fixed=fixed)
    with pytest.raises(MemoryFault, match="past the end of the map's pixel box") as caught:
        tensor_copies.wide_pixels(tensormap, (0, 8, 0, 0), 0, 0, fixed=fixed)
    assert "ends at 7" in str(caught.value.rule)


@pytest.mark.parametrize("width", [48, 40])
def test_swizzle_of_96_bytes(width: int) -> None:
    """Rows every 96 bytes, of which 16-byte neighbors change places on odd lines (5.5.7)."""
    data = random_bytes(8)
    made = TensorMap.tiled("u16", 0, (64, 8), (128,), (width, 4), swizzle="96B")
    memory, tensormap, _ = memory_with(data, made)
    expected = np.full(SHARED, POISON, np.uint8)
    for row in range(4):
        for i in range(2 * width):
            at = 1024 + 96 * row + i
            expected[at ^ 16 if at // 128 % 2 else at] = data[128 * (2 + row) + 16 + i]
    assert (moved(tensor_copies.tile(tensormap, (8, 2)), memory) == expected).all()
