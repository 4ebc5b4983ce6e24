"""Every spelling of tensor copies: mode and rank, destination, multicast, .cta_group, operation, cache policy.

Small copies; what the modes take is tested in tma and im2col. Of a cluster the last CTA loads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from microtests.harness import boxes
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.im2col import sixteen
from microtests.tma import SIZES, Load, coordinates, hinted, ranks, strides_of, tensor_of
from microtests.tma_store import operands, reduced, store_box
from ptxgen.builder import Register
from ptxgen.descriptors import TensorMap
from ptxgen.instr import cluster, tma

_DIMS = (32, 6, 4, 3, 3)
_BOX = (16, 4, 3, 2, 2)
_CHANNELS, _PIXELS = 32, 20
#: By the size of an element: swizzles of rows of 16 and of 32 elements.
_SWIZZLES = {2: ("32b", "64b"), 4: ("64b", "128b")}


@dataclass(frozen=True)
class Copied:
    """What a mode copies: its rank, coordinates and offsets, elements by number, swizzle, and how its map is made."""

    rank: int
    start: tuple[int, ...]
    indices: boxes.Indices
    swizzle: str
    make: Callable[[Any], TensorMap]
    offsets: tuple[int, ...] = ()


def _copied(mode: str, rank: int, kind: str, *, before: int) -> Copied:
    """`before`: how far boxes may begin before the tensor."""
    dims, size = _DIMS[:rank], SIZES[kind]
    strides = strides_of(dims, size)
    half, full = _SWIZZLES[size]
    if mode == "tile":
        box, start = _BOX[:rank], (16, 3, -before, 0, 1)[:rank]
        return Copied(
            rank,
            start,
            boxes.tile(dims, start, box),
            "none",
            lambda array: TensorMap.tiled(kind, array, dims, strides, box),
        )
    if mode in ("tile::gather4", "tile::scatter4"):
        rows, box = (5, 0, 7, 2), (16, 1)
        return Copied(
            rank,
            (16, *rows),
            boxes.rows_of(dims, 16, rows, 16),
            half,
            lambda array: TensorMap.tiled(kind, array, dims, strides, box, swizzle=half),
        )
    spatial = rank - 2
    if mode in ("im2col", "im2col_no_offs"):
        lower, upper = [-before] * spatial, [0] * spatial
        start, offsets = (0, *range(spatial), 1), (1,) * spatial if mode == "im2col" else ()
        indices = boxes.pixels(dims, start, lower, upper, offsets or (0,) * spatial, _CHANNELS, _PIXELS)
        return Copied(
            rank,
            start,
            indices,
            full,
            lambda array: TensorMap.im2col(kind, array, dims, strides, lower, upper, _CHANNELS, _PIXELS, swizzle=full),
            offsets,
        )
    fixed, halo, offset = mode.endswith("128"), 2, 1
    start = (0, 2, *range(1, spatial), 0)
    indices = boxes.wide_pixels(
        dims, start, -before, 0, offset, _CHANNELS, 128 if fixed else _PIXELS, halo=halo, halos=4 if fixed else 1
    )
    return Copied(
        rank,
        start,
        indices,
        full,
        lambda array: TensorMap.im2col_wide(
            kind, array, dims, strides, -before, 0, _CHANNELS, _PIXELS, wide_mode="w128" if fixed else "w", swizzle=full
        ),
        (halo, offset),
    )


_MODES = (
    *((mode, rank) for rank in range(1, 6) for mode in (None, "tile")),
    ("tile::gather4", 2),
    *((mode, rank) for rank in range(3, 6) for mode in ("im2col", "im2col::w", "im2col::w::128")),
)


@microtest(
    *(
        (mode, rank, to, group, hint)
        for mode, rank in _MODES
        for to in ("shared::cta", "shared::cluster", "cluster", "cluster::16b")
        for group in (None, 1, 2)
        for hint in (False, True)
    )
)
def load(draft: Draft, mode: Any, rank: int, to: str, group: Any, hint: bool) -> None:
    """To the own CTA, or by multicast to two of four.

    With .cta_group::2 the mbarrier is one of an even CTA, and the even one of each pair learns of the copy; with
    cluster::16b, of an odd one, and the odd ones learn of it.
    """
    what = _copied(mode or "tile", rank, "bf16", before=1)
    tensor = tensor_of(_DIMS[:rank], 2)
    size = int(boxes.spread(what.indices.shape, 2, what.swizzle).max()) + 1
    multicast = to.startswith("cluster")
    ctas = 4 if multicast else 2
    given = (1, 2) if multicast else (1,)
    # A CTA's own mbarrier, but with .cta_group::2 that of one of each pair.
    even = group == 2 and to != "shared::cta" and to != "cluster::16b"
    told = given if group != 2 else tuple(each & ~1 if even else each | 1 for each in given)
    kernel = Load(draft, size, ctas=ctas, receivers=told)
    image = boxes.loaded(kernel.before, tensor, what.indices, what.swizzle, bytes(2))
    expected = np.array([image if each in given else kernel.before for each in range(ctas)])
    address = draft.tensormap(what.make, tensor.reshape(-1))
    options: dict[str, Any] = {
        "dim": what.rank,
        "load_mode": mode,
        "cta_group": group,
        **(hinted(draft) if hint else {}),
    }
    options["dst"] = to if not multicast else "shared::cluster"
    if multicast:
        options |= {"multicast": to, "mask": ranks(draft, given)}

    def copy(place: Register, bar: Register) -> None:
        if even:
            peer = draft.reg("b32", "peer")
            draft(cluster.mapa(peer, bar, ctas - 2, space="shared::cluster", type="u32"))
            bar = peer
        form: Any = tma.load_im2col if what.offsets else tma.load
        info = [sixteen(draft, what.offsets)] if what.offsets else []
        draft(form(f"[{place}]", f"[{address}]", coordinates(draft, what.start), f"[{bar}]", *info, **options))

    kernel.run(math.prod(what.indices.shape) * 2, copy, expected, meet=True)


_STORED = (
    *((mode, rank) for rank in range(1, 6) for mode in (None, "tile")),
    ("tile::scatter4", 2),
    *(("im2col_no_offs", rank) for rank in range(3, 6)),
)
_OPERATIONS = (None, "add", "min", "max", "inc", "dec", "and", "or", "xor")


@microtest(*((mode, rank, op, hint) for mode, rank in _STORED for op in _OPERATIONS for hint in (False, True)))
def store(draft: Draft, mode: Any, rank: Any, op: Any, hint: bool) -> None:
    """Stores, and every operation of reductions."""
    kind, form = "u32", tma.reduce if op else tma.store
    what = _copied(mode or "tile", rank, kind, before=0)
    size = int(boxes.spread(what.indices.shape, 4, what.swizzle).max()) + 1
    memory = operands(kind, -(-size // 1024) * 256, 71)
    initial = operands(kind, math.prod(_DIMS[:rank]), 72).reshape(-1, 4)

    def copy(to: Register, source: Register) -> None:
        options: dict[str, Any] = {"dim": rank, "load_mode": mode, **(hinted(draft) if hint else {})}
        options |= {"op": op} if op else {}
        draft(form(f"[{to}]", coordinates(draft, what.start), f"[{source}]", **options))

    store_box(
        draft,
        kind,
        _DIMS[:rank],
        memory,
        what.indices,
        None,
        what.swizzle,
        copy,
        lambda old, new: reduced(op, kind, old, new) if op else new,
        initial,
        what.make,
    )
