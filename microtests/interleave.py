"""Tensor copies of interleaved tensors: channels in slices of 16 or 32 bytes. References: loops over slices.

From PTX ISA 5.5.6, and where it is silent from docs/hardware.md: dimensions are width, height, depth, slices of the
channels, images; a copy takes one slice of the channels, whatever the box says; rows in shared memory have no gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from microtests.harness import boxes
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.im2col import prefetching, sixteen
from microtests.tma import Load, coordinates, strides_of, tensor_of
from microtests.tma_store import operands, reduced, some_bytes, store_box
from ptxgen.descriptors import TensorMap
from ptxgen.instr import tma

_SLICE = {"16b": 16, "32b": 32}
#: Each slice with the swizzles that the driver takes for it.
_MODES = (("16b", "none"), ("16b", "32b"), ("16b", "64b"), ("16b", "128b"), ("32b", "32b"))
#: (dims, box, starts) of the tensor in slices, by rank: width, [height, [depth,]] slices of channels, images.
_TILES: dict[int, Any] = {
    3: ((11, 3, 4), (8, 1, 2), [(0, 0, 0), (5, 2, 3), (-2, 1, -1)]),
    4: ((11, 5, 3, 4), (8, 3, 1, 2), [(0, 0, 0, 0), (5, 3, 2, 3), (-2, -1, 1, -1)]),
    5: ((9, 4, 3, 2, 3), (8, 2, 2, 1, 2), [(0, 0, 0, 0, 0), (4, 3, 2, 1, 2), (-1, -1, -1, 1, -1)]),
}


def _slices(indices: np.ndarray) -> np.ndarray:
    """A row for each slice."""
    return indices.reshape(-1, 1)


def _load(
    draft: Draft,
    mode: tuple[str, str],
    rank: int,
    start: Sequence[int],
    *,
    steps: Sequence[int] | None = None,
    nan: bool = False,
) -> None:
    interleave, swizzle = mode
    size = _SLICE[interleave]
    dims, box, _ = _TILES[rank]
    tensor = tensor_of(dims, size)
    indices = _slices(boxes.tile(dims, start, box, steps))
    kernel = Load(draft, int(boxes.spread(indices.shape, size, swizzle, packed=True).max()) + 1)
    fill = b"\xf7\x7f" * (size // 2) if nan else bytes(size)
    expected = boxes.loaded(kernel.before, tensor, indices, swizzle, fill, packed=True)
    address = draft.tensormap(
        lambda array: TensorMap.tiled(
            "f16",
            array,
            dims,
            strides_of(dims, size),
            box,
            interleave=interleave,
            swizzle=swizzle,
            element_strides=steps,
            oob_fill="nan" if nan else "none",
        ),
        tensor.reshape(-1),
    )
    dim: Any = rank
    kernel.run(
        indices.size * size,
        lambda to, bar: draft(
            tma.load(f"[{to}]", f"[{address}]", coordinates(draft, start), f"[{bar}]", dim=dim, dst="shared::cluster")
        ),
        expected,
    )


@microtest(
    *(
        (mode, rank, number)
        for mode in _MODES
        for rank in _TILES
        for number in range(3)
        if mode[1] in ("none", "32b") or rank == 4
    )
)
def load(draft: Draft, mode: tuple[str, str], rank: int, number: int) -> None:
    """Inside, over the far edges, before the first element."""
    _load(draft, mode, rank, _TILES[rank][2][number])


@microtest(*(mode for mode in ((each,) for each in _MODES[:2] + _MODES[4:])))
def load_steps(draft: Draft, mode: tuple[str, str]) -> None:
    """Every second position along the width, every third along the height."""
    _load(draft, mode, 4, (1, 0, 1, 0), steps=(2, 3, 1, 1))


@microtest(("16b", "none"), ("32b", "32b"))
def load_nan_fill(draft: Draft, interleave: str, swizzle: str) -> None:
    """Elements outside are NaNs."""
    _load(draft, (interleave, swizzle), 4, (5, 3, 1, 3), nan=True)


def _store(draft: Draft, mode: tuple[str, str], rank: int, start: Sequence[int], op: Any = None) -> None:
    interleave, swizzle = mode
    size = _SLICE[interleave]
    dims, box, _ = _TILES[rank]
    indices = _slices(boxes.tile(dims, start, box))
    count = int(boxes.spread(indices.shape, size, swizzle, packed=True).max()) + 1
    kind: Any = "u32" if op else "bf16"
    memory_, initial = some_bytes(count), tensor_of(dims, size)
    if op:
        memory_ = operands("u32", len(memory_) // 4, 59)
        initial = operands("u32", initial.size // 4, 60).reshape(-1, size)
    form: Any = tma.reduce if op else tma.store
    given: dict[str, Any] = {"dim": rank, **({"op": op} if op else {})}
    store_box(
        draft,
        kind,
        dims,
        memory_,
        indices,
        box,
        swizzle,
        lambda to, source: draft(form(f"[{to}]", coordinates(draft, start), f"[{source}]", **given)),
        (lambda old, new: reduced(op, "u32", old.reshape(-1, 4), new.reshape(-1, 4)).reshape(old.shape))
        if op
        else lambda old, new: new,
        initial,
        lambda array: TensorMap.tiled(
            kind, array, dims, strides_of(dims, size), box, interleave=interleave, swizzle=swizzle
        ),
        packed=True,
    )


@microtest(
    *(
        (mode, rank, number)
        for mode in _MODES
        for rank in _TILES
        for number in range(2)
        if mode[1] in ("none", "32b") or rank == 4
    )
)
def store(draft: Draft, mode: tuple[str, str], rank: int, number: int) -> None:
    """Inside and over the far edges; what is outside is dropped."""
    _store(draft, mode, rank, _TILES[rank][2][number])


@microtest(*((mode, op) for mode in _MODES for op in ("add", "max", "xor") if op == "add" or mode[1] == "32b"))
def reduce(draft: Draft, mode: tuple[str, str], op: str) -> None:
    """Reductions alike."""
    _store(draft, mode, 4, (5, 3, 2, 3), op)


@microtest(*(((each,), rank) for each in _SLICE for rank in _TILES))
def prefetch(draft: Draft, which: tuple[str], rank: int) -> None:
    """A hint: nothing changes."""
    size = _SLICE[which[0]]
    dims, box, starts = _TILES[rank]
    dim: Any = rank
    prefetching(
        draft,
        lambda at: draft(tma.prefetch(at, coordinates(draft, starts[0]), dim=dim)),
        lambda array: TensorMap.tiled(
            "bf16", array, dims, strides_of(dims, size), box, interleave=which[0], swizzle="32b"
        ),
        (*dims, size // 2),
    )


#: (dims in slices, lower corner, upper corner), the copy's start, offsets, pixels.
_IMAGES: dict[str, Any] = {
    "3d": ((9, 3, 4), (-1,), (-1,), (-1, 1, 0), (2,), 16),
    "4d": ((6, 5, 3, 3), (-1, -1), (-1, -1), (-1, -1, 2, 0), (0, 1), 32),
    "5d": ((4, 3, 3, 2, 2), (-1, -1, 0), (-1, 0, -1), (-1, -1, 0, 1, 0), (1, 1, 0), 28),
}


@microtest(
    *(
        (name, mode, first)
        for name in _IMAGES
        for mode in _MODES
        for first in (0, 1)
        if mode[1] in ("none", "32b") or name == "4d"
    )
)
def load_im2col(draft: Draft, name: str, mode: tuple[str, str], first: int) -> None:
    """The pixels that a filter sees, of one slice of the channels; in steps of 2 too."""
    interleave, swizzle = mode
    size = _SLICE[interleave]
    dims, lower, upper, start, offsets, count = _IMAGES[name]
    spatial = len(dims) - 2
    steps = [2] * spatial if first else [1] * spatial
    tensor = tensor_of(dims, size)
    # The loop has channels first and then positions: one slice of the channels stands for them.
    whole, first_place = (1, *dims[:spatial], dims[-1]), (0, *start[:spatial], start[-1])
    flat = boxes.pixels(whole, first_place, lower, upper, offsets, 1, count, steps)
    plane = int(np.prod(dims[:spatial]))
    image, place = flat // plane, flat % plane
    indices = np.where(flat < 0, -1, (image * dims[spatial] + start[spatial]) * plane + place)
    kernel = Load(draft, int(boxes.spread(indices.shape, size, swizzle, packed=True).max()) + 1)
    expected = boxes.loaded(kernel.before, tensor, indices, swizzle, bytes(size), packed=True)
    address = draft.tensormap(
        lambda array: TensorMap.im2col(
            "bf16",
            array,
            dims,
            strides_of(dims, size),
            lower,
            upper,
            size // 2,
            count,
            interleave=interleave,
            swizzle=swizzle,
            element_strides=[*steps, 1, 1],
        ),
        tensor.reshape(-1),
    )
    dim: Any = len(dims)
    kernel.run(
        indices.size * size,
        lambda to, bar: draft(
            tma.load_im2col(
                f"[{to}]",
                f"[{address}]",
                coordinates(draft, start),
                f"[{bar}]",
                sixteen(draft, offsets),
                dim=dim,
                dst="shared::cluster",
                load_mode="im2col",
            )
        ),
        expected,
    )
