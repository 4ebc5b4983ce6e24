"""Tensor copies of what came with sm_100: elements of 4 and 6 bits, and the swizzle that flips 8 bytes.

References from PTX ISA 5.5.1.1 and 5.5.7, by loops over pieces of 16 elements: in global memory they follow each other,
in shared memory the padded types have 16 bytes for each, whose rest stays as it is and does not count as bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from microtests.harness import boxes
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.tma import Load, coordinates, hinted
from microtests.tma_store import some_bytes
from ptxgen.builder import Register
from ptxgen.descriptors import TensorMap
from ptxgen.instr import barrier, bulk, fence, integer, tma

#: Bits of an element in global memory, bytes of sixteen in shared memory.
_TYPES = {"16u4_align8b": (4, 8), "16u4_align16b": (4, 16), "16u6_align16b": (6, 16)}
_COLUMNS, _ROWS, _WIDTH = 384, 20, 128
#: First column, rows: inside, over the far edges, before the tensor, in any order.
_PLACES = (
    (128, (2, 3, 4, 5)),
    (256, (17, 18, 19, 20)),
    (384, (1, 2, 3, 4)),
    (-128, (0, 1, 2, 3)),
    (128, (-2, -1, 0, 1)),
)
_SWIZZLES = {
    "16u4_align8b": ("none", "64b", "128b", "128b_atom_32b", "128b_atom_64b"),
    "16u4_align16b": ("none", "128b", "128b_atom_32b"),
    "16u6_align16b": ("none", "128b", "128b_atom_32b", "128b_atom_64b"),
}


class Pieces:
    """Sixteen elements each: where they lie in a tensor, -1 outside, and in shared memory, [rows, pieces]."""

    def __init__(self, dtype: str, column: int, rows: Sequence[int], swizzle: str) -> None:
        bits, self.room = _TYPES[dtype]
        #: Bytes of a piece, and of a row of the tensor.
        self.size, self.row = 2 * bits, _COLUMNS * bits // 8
        at = column + 16 * np.arange(_WIDTH // 16)
        inside = (np.array(rows)[:, None] >= 0) & (np.array(rows)[:, None] < _ROWS) & (at >= 0) & (at < _COLUMNS)
        self.places = np.where(inside, np.array(rows)[:, None] * self.row + at * bits // 8, -1)
        spread = boxes.spread(self.places.shape, self.room, swizzle)
        self.shared = spread[:, :: self.room] if self.room == 16 else spread.reshape(*self.places.shape, 8)[..., 0]
        self.end = int(spread.max()) + 1

    @property
    def bytes(self) -> int:
        return self.places.size * self.size


def _map(dtype: str, swizzle: str, rows: int) -> Any:
    row = _COLUMNS * _TYPES[dtype][0] // 8
    return lambda array: TensorMap.tiled(
        dtype, array.address, (_COLUMNS, _ROWS), (row,), (_WIDTH, rows), swizzle=swizzle
    )


@microtest(
    *((dtype, swizzle, number) for dtype in _TYPES for swizzle in _SWIZZLES[dtype] for number in range(len(_PLACES))),
    only_if=lambda dtype, swizzle, number: swizzle == "128b" or number in (0, 1),
)
def load(draft: Draft, dtype: str, swizzle: str, number: int) -> None:
    """Tiles of four rows."""
    column, rows = _PLACES[number]
    _load(draft, dtype, swizzle, column, rows, (column, rows[0]), 4)


@microtest(*((dtype, rows) for dtype in _TYPES for rows in ((7, 0, 19, 3), (5, -1, 40, 5))))
def load_gather4(draft: Draft, dtype: str, rows: Any) -> None:
    """Four rows by number."""
    _load(draft, dtype, "128b", 128, rows, (128, *rows), 1, load_mode="tile::gather4")


@microtest(*_TYPES)
def load_hint(draft: Draft, dtype: str) -> None:
    """With a policy for the cache, to the own CTA."""
    column, rows = _PLACES[0]
    _load(draft, dtype, "none", column, rows, (column, rows[0]), 4, **{**hinted(draft), "dst": "shared::cta"})


def _load(
    draft: Draft,
    dtype: str,
    swizzle: str,
    column: int,
    rows: Sequence[int],
    start: Sequence[int],
    box: int,
    **options: Any,
) -> None:
    draft.requires("8.6", "sm_100+")
    pieces = Pieces(dtype, column, rows, swizzle)
    tensor = some_bytes(_ROWS * pieces.row)
    kernel = Load(draft, pieces.end)
    expected = kernel.before.copy()
    for place, to in zip(pieces.places.ravel(), pieces.shared.ravel(), strict=True):
        expected[to : to + pieces.size] = 0 if place < 0 else tensor[place : place + pieces.size]
    address = draft.tensormap(_map(dtype, swizzle, box), tensor)
    given: dict[str, Any] = {"dst": "shared::cluster", **options}
    kernel.run(
        pieces.bytes,
        lambda to, bar: draft(
            tma.load(f"[{to}]", f"[{address}]", coordinates(draft, start), f"[{bar}]", dim=2, **given)
        ),
        expected,
    )


@microtest(
    *(
        (dtype, swizzle, number)
        for dtype in ("16u4_align8b", "16u6_align16b")
        for swizzle in _SWIZZLES[dtype]
        for number in (0, 1, 2)
    )
)
def store(draft: Draft, dtype: str, swizzle: str, number: int) -> None:
    """Tiles to global memory: of the bytes of 6-bit elements the lower 6 bits, one after the other (.b6p2x16)."""
    column, rows = _PLACES[number]
    _store(draft, dtype, swizzle, column, rows, (column, rows[0]), 4)


@microtest("16u4_align8b", "16u6_align16b")
def store_scatter4(draft: Draft, dtype: str) -> None:
    """Four rows by number."""
    rows = (7, 0, 19, 40)
    _store(draft, dtype, "128b", 128, rows, (128, *rows), 1, load_mode="tile::scatter4")


def _store(
    draft: Draft,
    dtype: str,
    swizzle: str,
    column: int,
    rows: Sequence[int],
    start: Sequence[int],
    box: int,
    **options: Any,
) -> None:
    draft.requires("8.6", "sm_100+")
    pieces = Pieces(dtype, column, rows, swizzle)
    initial, memory = some_bytes(_ROWS * pieces.row, 61), some_bytes(pieces.end, 62)
    expected = initial.copy()
    for place, of in zip(pieces.places.ravel(), pieces.shared.ravel(), strict=True):
        if place < 0:
            continue
        data = memory[of : of + pieces.room]
        if dtype == "16u6_align16b":
            number = sum((int(byte) & 63) << 6 * index for index, byte in enumerate(data))
            data = np.frombuffer(number.to_bytes(12, "little"), np.uint8)
        expected[place : place + pieces.size] = data
    draft.launch(block=128)
    assert draft.thread
    source = draft.shared(len(memory), 1024)
    draft.output(expected, initial=initial)
    address = draft.tensormap(_map(dtype, swizzle, box), 0)
    draft.copy_in(source, memory)
    draft(fence.fence_proxy_async(), barrier.bar_sync(0))
    end = draft.label("end")
    draft.branch(end, draft.is_thread(0), negated=True)
    draft(tma.store(f"[{address}]", coordinates(draft, start), f"[{source}]", dim=2, **options))
    draft(bulk.commit_group(), bulk.wait_group(0))
    draft.place(end)


@microtest(*((dtype, at) for dtype in ("u8", "bf16", "f32", "u64") for at in (0, 128, 384)))
def load_flipped(draft: Draft, dtype: str, at: int) -> None:
    """As the swizzle with 32-byte atoms; on odd lines the halves of 16 bytes change places, too (fact tma-flip-8b)."""
    draft.requires("8.6", "sm_100+")
    size = {"u8": 1, "bf16": 2, "f32": 4, "u64": 8}[dtype]
    dims, box, start = (256 // size, 30), (128 // size, 17), (128 // size, 16)
    tensor = some_bytes(256 * 30).reshape(-1, size)[: dims[0] * 30]
    indices = boxes.tile(dims, start, box)
    kernel = Load(draft, 17 * 128 + at)
    expected = kernel.before.copy()
    places = boxes.spread(indices.shape, size, "128b_atom_32b", at)
    values = np.where((indices < 0)[..., None], np.uint8(0), tensor[np.maximum(indices, 0)])
    expected[places ^ (places >> 7 & 1) << 3] = values.reshape(places.shape)
    address = draft.tensormap(
        lambda array: TensorMap.tiled(dtype, array.address, dims, (256,), box, swizzle="128b_atom_32b_flip_8b"), tensor
    )

    def copy(place: Register, bar: Register) -> None:
        to = draft.reg("b32")
        draft(integer.add(to, place, at, type="u32"))
        draft(tma.load(f"[{to}]", f"[{address}]", coordinates(draft, start), f"[{bar}]", dim=2, dst="shared::cluster"))

    kernel.run(indices.size * size, copy, expected)
