"""Tensor copies of the pixels that a filter sees: im2col, and along the width alone im2col::w. References: loops.

From PTX ISA 5.5.4, 5.5.5 and 9.7.9.25.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from microtests.harness import boxes
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.tma import Load, coordinates, fill_of, hinted, ranks, strides_of, tensor_of
from microtests.tma_store import operands, reduced, some_bytes, store_box
from ptxgen.builder import Register
from ptxgen.descriptors import TensorMap
from ptxgen.instr import bulk, move, tma

#: Elements of 16 bits in a row of each swizzle.
_CHANNELS = {"none": 8, "32b": 16, "64b": 32, "128b": 64}
#: (dims W [H [D]] N, lower corner, upper corner), the copy's start, offsets, pixels.
_IMAGES: dict[str, Any] = {
    "3d": ((9, 3), (-1,), (-1,), (-1, 0), (2,), 16),
    "3d-upper": ((9, 3), (0,), (-2,), (0, 1), (1,), 12),
    "4d": ((6, 5, 3), (-1, -1), (-1, -1), (-1, -1, 0), (0, 0), 32),
    "4d-offset": ((6, 5, 3), (-1, -1), (-1, -1), (2, 1, 1), (2, 1), 24),
    "4d-end": ((6, 5, 2), (0, 0), (-2, -2), (1, 1, 1), (2, 2), 20),
    "5d": ((4, 3, 3, 2), (-1, -1, 0), (-1, 0, -1), (-1, -1, 0, 0), (1, 1, 0), 28),
    "5d-offset": ((4, 3, 3, 2), (-1, -1, -1), (-1, -1, -1), (1, 0, 1, 0), (2, 1, 2), 32),
}


def sixteen(draft: Draft, values: Sequence[int]) -> list[Register]:
    """Registers of 16 bits."""
    found = []
    for value in values:
        register = draft.reg("b16", "offset")
        draft(move.mov(register, value, type="u16"))
        found.append(register)
    return found


def _load(
    draft: Draft,
    name: str,
    swizzle: str = "none",
    *,
    steps: Sequence[int] | None = None,
    first: int = 0,
    ctas: int = 1,
    receivers: Sequence[int] = (0,),
    nan: bool = False,
    **options: Any,
) -> None:
    """`first` is the first channel; `options` are the copy's."""
    sizes, lower, upper, place, offsets, count = _IMAGES[name]
    channels = _CHANNELS[swizzle]
    dims, start = (2 * channels, *sizes), (first, *place)
    count = count // 2 if steps else count
    tensor = tensor_of(dims, 2)
    indices = boxes.pixels(dims, start, lower, upper, offsets, channels, count, steps)
    size = int(boxes.spread(indices.shape, 2, swizzle).max()) + 1
    kernel = Load(draft, size, ctas=ctas, receivers=receivers)
    image = boxes.loaded(kernel.before, tensor, indices, swizzle, fill_of("bf16", nan))
    expected = np.array([image if rank in receivers else kernel.before for rank in range(ctas)])
    address = draft.tensormap(
        lambda array: TensorMap.im2col(
            "bf16",
            array,
            dims,
            strides_of(dims, 2),
            lower,
            upper,
            channels,
            count,
            swizzle=swizzle,
            element_strides=None if steps is None else [1, *steps, 1],
            oob_fill="nan" if nan else "none",
        ),
        tensor.reshape(-1),
    )
    where: Any = sixteen(draft, offsets)
    if "multicast" in options:
        options["mask"] = ranks(draft, receivers)
    dim: Any = len(dims)
    options = {"dst": "shared::cluster", **options}
    kernel.run(
        indices.size * 2,
        lambda to, bar: draft(
            tma.load_im2col(
                f"[{to}]",
                f"[{address}]",
                coordinates(draft, start),
                f"[{bar}]",
                where,
                dim=dim,
                load_mode="im2col",
                **options,
            )
        ),
        expected,
    )


@microtest(*((name, swizzle) for name in _IMAGES for swizzle in _CHANNELS))
def load(draft: Draft, name: str, swizzle: str) -> None:
    """Over the edges of images and on into the next, with every swizzle."""
    _load(draft, name, swizzle, first=_CHANNELS[swizzle] if "offset" in name else 0)


@microtest(*_IMAGES)
def load_nan_fill(draft: Draft, name: str) -> None:
    """Pixels outside are NaNs."""
    _load(draft, name, "32b", nan=True)


@microtest("3d", "4d", "5d")
def load_steps(draft: Draft, name: str) -> None:
    """Strides of the filter: the base moves by them."""
    _load(draft, name, steps=[2] * (len(_IMAGES[name][0]) - 1))


@microtest(*((name, which) for name in ("3d", "4d", "5d") for which in ("hint", "shared::cta")))
def load_spellings(draft: Draft, name: str, which: str) -> None:
    """A cache policy, and the other spelling of the destination."""
    options: dict[str, Any] = hinted(draft) if which == "hint" else {"dst": which}
    _load(draft, name, **options)


@microtest("cluster", "cluster::16b")
def load_multicast(draft: Draft, multicast: str) -> None:
    """For several CTAs."""
    _load(draft, "4d", "64b", ctas=4, receivers=(0, 1, 3), multicast=multicast)


@microtest(1, 2)
def load_cta_group(draft: Draft, group: int) -> None:
    """Of a pair of CTAs the second loads, with a barrier of its own, or of either."""
    _load(draft, "4d", ctas=2, receivers=(1,), cta_group=group)


_STORED = {
    "3d-upper": ((9, 3), (0,), (-2,), (0, 1), 12),
    "4d-inside": ((6, 5, 3), (0, 0), (-1, -2), (1, 1, 0), 24),
    "5d-inside": ((4, 3, 3, 2), (0, 0, 0), (0, 0, -1), (0, 0, 0, 0), 28),
}


def _store(draft: Draft, name: str, swizzle: str, op: Any = None, **options: Any) -> None:
    sizes, lower, upper, place, count = _STORED[name]
    channels, kind = _CHANNELS[swizzle], "bf16"
    dims, start = (2 * channels, *sizes), (channels, *place)
    indices = boxes.pixels(dims, start, lower, upper, [0] * len(lower), channels, count)
    size = int(boxes.spread(indices.shape, 2, swizzle).max()) + 1
    dim: Any = len(dims)
    form: Any = tma.reduce if op else tma.store
    given: dict[str, Any] = {"dim": dim, "load_mode": "im2col_no_offs", **({"op": op} if op else {}), **options}
    memory_, initial = some_bytes(size), tensor_of(dims, 2)
    if op:
        memory_ = operands(kind, -(-size // 1024) * 512, 57)
        initial = operands(kind, len(initial), 58).reshape(-1, 2)
    store_box(
        draft,
        kind,
        dims,
        memory_,
        indices,
        None,
        swizzle,
        lambda to, source: draft(form(f"[{to}]", coordinates(draft, start), f"[{source}]", **given)),
        (lambda old, new: reduced(op, kind, old, new)) if op else lambda old, new: new,
        initial,
        lambda array: TensorMap.im2col(
            kind, array, dims, strides_of(dims, 2), lower, upper, channels, count, swizzle=swizzle
        ),
    )


@microtest(*((name, swizzle) for name in _STORED for swizzle in _CHANNELS))
def store(draft: Draft, name: str, swizzle: str) -> None:
    """The inverse, without offsets."""
    _store(draft, name, swizzle)


@microtest(*((name, op) for name in _STORED for op in ("add", "min", "max")))
def reduce(draft: Draft, name: str, op: str) -> None:
    """Reductions alike."""
    _store(draft, name, "32b", op)


@microtest("store", "reduce")
def store_hint(draft: Draft, which: str) -> None:
    """With a policy for the cache."""
    _store(draft, "4d-inside", "none", "add" if which == "reduce" else None, **hinted(draft))


def prefetching(draft: Draft, copy: Any, make: Any, dims: Sequence[int]) -> None:
    """Thread 0 prefetches; the kernel does what it would do without."""
    draft.launch(block=32)
    out = draft.offset(draft.output(np.arange(32, dtype=np.uint32)), draft.thread, 4)
    address = draft.tensormap(make, tensor_of(dims, 2).reshape(-1))
    end = draft.label("end")
    draft.branch(end, draft.is_thread(0), negated=True)
    copy(f"[{address}]")
    draft.place(end)
    draft.store(out, draft.thread)


@microtest(*((name, hint) for name in ("3d", "4d", "5d") for hint in (False, True)))
def prefetch(draft: Draft, name: str, hint: bool) -> None:
    """A hint: nothing changes."""
    sizes, lower, upper, place, offsets, count = _IMAGES[name]
    dims, options = (16, *sizes), hinted(draft) if hint else {}
    dim: Any = len(dims)
    prefetching(
        draft,
        lambda at: draft(
            tma.prefetch_im2col(
                at, coordinates(draft, (0, *place)), sixteen(draft, offsets), dim=dim, load_mode="im2col", **options
            )
        ),
        lambda array: TensorMap.im2col("bf16", array, dims, strides_of(dims, 2), lower, upper, 8, count),
        dims,
    )


@microtest("3d", "4d", "5d")
def applypriority(draft: Draft, name: str) -> None:
    """The normal priority in L2 again."""
    sizes, lower, upper, place, offsets, count = _IMAGES[name]
    dims = (16, *sizes)
    dim: Any = len(dims)
    prefetching(
        draft,
        lambda at: draft(
            tma.applypriority_im2col(
                at, coordinates(draft, (0, *place)), sixteen(draft, offsets), dim=dim, load_mode="im2col"
            ),
            bulk.commit_group(),
            bulk.wait_group(0),
        ),
        lambda array: TensorMap.im2col("bf16", array, dims, strides_of(dims, 2), lower, upper, 8, count),
        dims,
    )


# Along the width alone: no Hopper has it.

#: (dims W [H [D]] N, lower, upper), the copy's start, the offset in width.
_LINES: dict[str, Any] = {
    "3d": ((9, 5), -1, 1, (3, 1), 2),
    "4d": ((7, 5, 9), -1, 0, (0, 2, 4), 1),
    "5d": ((6, 3, 2, 9), 0, 0, (-1, 1, 1, 2), 0),
}


def _wide_map(
    name: str, mode: str, swizzle: str, step: int = 1, *, nan: bool = False
) -> tuple[Any, tuple[int, ...], int, int]:
    """(makes the map of an array, dims, channels, pixels)."""
    sizes, lower, upper, _, _ = _LINES[name]
    channels, count = _CHANNELS[swizzle], 128 if mode.endswith("128") else 20
    dims, wide = (channels, *sizes), "w128" if mode.endswith("128") else "w"
    return lambda array: TensorMap.im2col_wide(
        "bf16", array, dims, strides_of(dims, 2), lower, upper, channels, 20, wide_mode=wide, swizzle=swizzle,
        element_strides=[1, step] + [1] * (len(sizes) - 1), oob_fill="nan" if nan else "none",
    ), dims, channels, count  # fmt: skip


@microtest(
    *(
        (name, mode, swizzle, step)
        for name in _LINES
        for mode in ("im2col::w", "im2col::w::128")
        for swizzle, step in (("32b", 1), ("64b", 2), ("128b", 1))
    )
)
def load_wide(draft: Draft, name: str, mode: Any, swizzle: str, step: int) -> None:
    """A line of pixels, on into the next image; without a halo."""
    _load_wide(draft, name, mode, swizzle, step)


@microtest(*((name, mode, halo) for name in _LINES for mode in ("im2col::w", "im2col::w::128") for halo in (1, 2, 9)))
def load_wide_halo(draft: Draft, name: str, mode: Any, halo: int) -> None:
    """The pixels after the last, and of im2col::w::128 after each 32: over the edge of the image, too."""
    _load_wide(draft, name, mode, "64b", 2 if halo == 2 else 1, halo=halo)


@microtest(*((name, mode) for name in _LINES for mode in ("im2col::w", "im2col::w::128")))
def load_wide_nan_fill(draft: Draft, name: str, mode: Any) -> None:
    """Pixels outside are NaNs, those of a halo too."""
    _load_wide(draft, name, mode, "64b", 1, halo=3, nan=True)


@microtest("cluster", "cluster::16b", "hint", "shared::cta", 1, 2)
def load_wide_spellings(draft: Draft, which: Any) -> None:
    """For several CTAs, with a policy, to the own CTA, and of a pair of CTAs."""
    options: dict[str, Any] = {}
    if which in (1, 2):
        options = {"ctas": 2, "receivers": (1,), "cta_group": which}
    elif which == "hint":
        options = hinted(draft)
    elif which == "shared::cta":
        options = {"dst": which}
    else:
        options = {"ctas": 4, "receivers": (0, 2), "multicast": which}
    _load_wide(draft, "4d", "im2col::w", "64b", 1, **options)


def _load_wide(
    draft: Draft,
    name: str,
    mode: Any,
    swizzle: str,
    step: int,
    *,
    ctas: int = 1,
    receivers: Sequence[int] = (0,),
    halo: int = 0,
    nan: bool = False,
    **options: Any,
) -> None:
    _, lower, upper, place, offset = _LINES[name]
    make, dims, channels, count = _wide_map(name, mode, swizzle, step, nan=nan)
    tensor = tensor_of(dims, 2)
    halos = 4 if mode.endswith("128") else 1
    indices = boxes.wide_pixels(dims, (0, *place), lower, upper, offset, channels, count, step, halo=halo, halos=halos)
    size = int(boxes.spread(indices.shape, 2, swizzle).max()) + 1
    kernel = Load(draft, size, ctas=ctas, receivers=receivers)
    image = boxes.loaded(kernel.before, tensor, indices, swizzle, fill_of("bf16", nan))
    expected = np.array([image if rank in receivers else kernel.before for rank in range(ctas)])
    address = draft.tensormap(make, tensor.reshape(-1))
    where, dim = sixteen(draft, (halo, offset)), len(dims)
    if "multicast" in options:
        options["mask"] = ranks(draft, receivers)
    given: dict[str, Any] = {"dst": "shared::cluster", "dim": dim, "load_mode": mode, **options}
    kernel.run(
        indices.size * 2,
        lambda to, bar: draft(
            tma.load_im2col(f"[{to}]", f"[{address}]", coordinates(draft, (0, *place)), f"[{bar}]", where, **given)
        ),
        expected,
    )


@microtest(*((name, mode) for name in _LINES for mode in ("im2col::w", "im2col::w::128")))
def prefetch_wide(draft: Draft, name: str, mode: Any) -> None:
    """A hint: nothing changes."""
    make, dims, _, _ = _wide_map(name, mode, "64b")
    _, _, _, place, offset = _LINES[name]
    dim: Any = len(dims)
    prefetching(
        draft,
        lambda at: draft(
            tma.prefetch_im2col(
                at, coordinates(draft, (0, *place)), sixteen(draft, (0, offset)), dim=dim, load_mode=mode
            )
        ),
        make,
        dims,
    )
