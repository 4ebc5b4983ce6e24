"""Tensor copies to global memory, reductions, and what only prepares copies. References: loops over elements.

From PTX ISA 5.5 and 9.7.9.25.5, and where these are silent from docs/hardware.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from microtests.harness import boxes
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft, Tolerance
from microtests.harness.inputs import words
from microtests.harness.numbers import FORMATS, Format, add, decode, encode
from microtests.tma import RANKS, SIZES, WIDTHS, atoms, coordinates, hinted, strides_of, tensor_of
from ptxgen.descriptors import TensorMap
from ptxgen.instr import barrier, bulk, fence, tma


def store_box(
    draft: Draft,
    dtype: str,
    dims: Sequence[int],
    memory_: np.ndarray,
    indices: np.ndarray,
    box: Any,
    swizzle: str,
    copy: Any,
    combine: Any,
    initial: np.ndarray,
    make: Any = None,
    *,
    packed: bool = False,
    tolerance: Tolerance | None = None,
) -> None:
    """Shared memory to a tensor; `copy(address, source)` appends the instruction, `combine(old, new)` is its result."""
    size = SIZES[dtype]
    draft.launch(block=128)
    assert draft.thread
    place = draft.shared(len(memory_), 1024)
    numbers, values = boxes.stored(initial, memory_, indices, swizzle, packed=packed)
    expected = initial.copy()
    expected[numbers] = combine(initial[numbers], values)
    draft.output(expected.reshape(-1), initial=initial.reshape(-1), tolerance=tolerance)
    address = draft.tensormap(
        make or (lambda array: TensorMap.tiled(dtype, array, dims, strides_of(dims, size), box, swizzle=swizzle)), 0
    )
    draft.copy_in(place, memory_)
    draft(fence.fence_proxy_async(), barrier.bar_sync(0))
    end = draft.label("end")
    draft.branch(end, draft.is_thread(0), negated=True)
    copy(address, place)
    draft(bulk.commit_group(), bulk.wait_group(0))
    draft.place(end)


def some_bytes(count: int, seed: int = 52) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, -(-count // 1024) * 1024).astype(np.uint8)


_STORES = {
    1: ((104,), (32,), [(0,), (80,), (200,)]),
    2: ((32, 20), (16, 9), [(0, 0), (24, 15), (8, 20)]),
    3: ((16, 7, 5), (16, 4, 3), [(0, 0, 0), (8, 5, 3)]),
    4: ((16, 5, 4, 3), (8, 3, 2, 2), [(0, 0, 0, 0), (8, 3, 3, 2)]),
    5: ((16, 4, 3, 3, 2), (8, 3, 2, 2, 2), [(0, 0, 0, 0, 0), (8, 2, 2, 1, 1)]),
}


@microtest(*((rank, number) for rank, (_, _, starts) in _STORES.items() for number in range(len(starts))))
def store_ranks(draft: Draft, rank: Any, number: int) -> None:
    """Tiles of every rank; elements outside are dropped."""
    dims, box, starts = _STORES[rank]
    start = starts[number]
    indices = boxes.tile(dims, start, box)
    store_box(
        draft,
        "u16",
        dims,
        some_bytes(indices.size * 2),
        indices,
        box,
        "none",
        lambda to, source: draft(tma.store(f"[{to}]", coordinates(draft, start), f"[{source}]", dim=rank)),
        lambda old, new: new,
        tensor_of(dims, 2),
    )


@microtest(*((swizzle, dtype) for swizzle in WIDTHS for dtype in ("u8", "f16", "f32", "f64")))
def store_swizzles(draft: Draft, swizzle: str, dtype: str) -> None:
    """Every swizzle, over an edge."""
    atoms(draft, swizzle)
    size = SIZES[dtype]
    width = WIDTHS[swizzle] // size
    dims, box, start = (2 * width, 30), (width, 17), (width, 16)
    indices = boxes.tile(dims, start, box)
    memory_ = some_bytes(int(boxes.spread(indices.shape, size, swizzle).max()) + 1)
    if size == 4:
        memory_ = (memory_.view(np.uint32) % 1000).astype(np.float32).view(np.uint8)
    store_box(
        draft,
        dtype,
        dims,
        memory_,
        indices,
        box,
        swizzle,
        lambda to, source: draft(
            tma.store(f"[{to}]", coordinates(draft, start), f"[{source}]", dim=2, load_mode="tile")
        ),
        lambda old, new: new,
        tensor_of(dims, size),
    )


@microtest(((3, 0, 9, 5),), ((11, 7, 2, 40),))
def store_scatter4(draft: Draft, rows: Any) -> None:
    """Four rows of a matrix, in any order; those outside are dropped."""
    dims, width = (128, 12), 64
    indices = boxes.rows_of(dims, 32, rows, width)
    store_box(
        draft,
        "bf16",
        dims,
        some_bytes(512),
        indices,
        (width, 1),
        "128b",
        lambda to, source: draft(
            tma.store(f"[{to}]", coordinates(draft, (32, *rows)), f"[{source}]", dim=2, load_mode="tile::scatter4")
        ),
        lambda old, new: new,
        tensor_of(dims, 2),
    )


_KINDS: dict[str, Any] = {
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "s32": np.int32,
    "u64": np.uint64,
    "s64": np.int64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
_REDUCTIONS = {
    "add": ("u32", "s32", "u64", "f16", "bf16", "f32"),
    "min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("u32", "u64", "s32"),
    "or": ("u32", "u64"),
    "xor": ("u32", "u64"),
}


def reduced(op: str, kind: str, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Old and new bytes [n, size] combined, element by element."""
    dtype = _KINDS[kind]
    a, b = old.reshape(-1).view(dtype), new.reshape(-1).view(dtype)
    if op in ("and", "or", "xor"):
        found = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op](a, b)
    elif op == "inc":
        found = np.where(a >= b, 0, a + 1).astype(dtype)
    elif op == "dec":
        found = np.where((a == 0) | (a > b), b, a - 1).astype(dtype)
    else:
        with np.errstate(over="ignore"):
            found = {"add": np.add, "min": np.minimum, "max": np.maximum}[op](a, b)
    return np.ascontiguousarray(found.astype(dtype)).view(np.uint8).reshape(old.shape)


def operands(kind: str, count: int, seed: int) -> np.ndarray:
    """Bytes of elements: any integers, or floats whose sums are exact."""
    rng = np.random.default_rng(seed)
    if kind[0] in "us":
        small = rng.integers(0, 4, count)
        any_bits = rng.integers(0, 2**63, count, dtype=np.int64)
        return np.where(rng.random(count) < 0.3, small, any_bits).astype(_KINDS[kind]).view(np.uint8)
    return rng.integers(-100, 100, count).astype(np.float64).astype(_KINDS[kind]).view(np.uint8)


#: Types, and columns that end inside 16 bytes, at their end, and inside the first.
_RAGGED = [
    (kind, columns)
    for kind in ("u8", "u16", "u32", "u64", "bf16", "f32")
    for columns in (16 // SIZES[kind] + 1, 48 // SIZES[kind] - 1, 48 // SIZES[kind], 16 // SIZES[kind] - 1)
]


def ragged(size: int, columns: int, pitch: int, start: Sequence[int], box: Sequence[int], rows: int) -> np.ndarray:
    """What a tile writes of lines `pitch` elements apart: units of 16 bytes that begin inside the tensor."""
    unit = 16 // size
    written = -(-columns // unit) * unit
    return np.array(
        [
            [
                row * pitch + column if row < rows and column < written else -1
                for column in range(start[0], start[0] + box[0])
            ]
            for row in range(start[1], start[1] + box[1])
        ]
    )


@microtest(
    *(
        (op, kind, columns)
        for kind, columns in _RAGGED
        for op in ("store", "add")
        if kind not in ("u8", "u16") or op == "store"
    )
)
def store_ragged(draft: Draft, op: Any, kind: str, columns: Any) -> None:
    """Rows that end inside 16 bytes, with a gap behind them: whole units are written (fact tma-store-units)."""
    size = SIZES[kind]
    pitch, rows, box, start = 64 // size, 5, (64 // size, 4), (0, 2)
    initial, memory_ = operands(kind, pitch * rows, 71).reshape(-1, size), operands(kind, 1024 // size, 72)
    options: dict[str, Any] = {"dim": 2} if op == "store" else {"dim": 2, "op": op}
    store_box(
        draft,
        kind,
        (columns, rows),
        memory_,
        ragged(size, columns, pitch, start, box, rows),
        box,
        "none",
        lambda to, source: draft(
            (tma.store if op == "store" else tma.reduce)(f"[{to}]", coordinates(draft, start), f"[{source}]", **options)
        ),
        lambda old, new: new if op == "store" else reduced(op, kind, old, new),
        initial,
        lambda array: TensorMap.tiled(kind, array, (columns, rows), (pitch * size,), box),
    )


@microtest(*((op, kind) for op, kinds in _REDUCTIONS.items() for kind in kinds))
def reduce(draft: Draft, op: Any, kind: str) -> None:
    """Every operation with the types that it has, over an edge."""
    size = SIZES[kind]
    width = 64 // size
    dims, box, start = (2 * width, 12), (width, 8), (width, 6)
    indices = boxes.tile(dims, start, box)
    initial = operands(kind, int(np.prod(dims)), 53).reshape(-1, size)
    memory_ = operands(kind, 1024 // size, 54)
    store_box(
        draft,
        kind,
        dims,
        memory_,
        indices,
        box,
        "none",
        lambda to, source: draft(
            tma.reduce(f"[{to}]", coordinates(draft, start), f"[{source}]", dim=2, op=op, load_mode="tile")
        ),
        lambda old, new: reduced(op, kind, old, new),
        initial,
    )


@microtest(1, 2, 3, 4, 5)
def reduce_ranks(draft: Draft, rank: Any) -> None:
    """Tiles of every rank."""
    dims, box, starts = _STORES[rank]
    start = starts[-1]
    indices = boxes.tile(dims, start, box)
    initial = operands("u32", int(np.prod(dims)), 55).reshape(-1, 4)
    memory_ = operands("u32", 1024, 56)
    store_box(
        draft,
        "u32",
        dims,
        memory_,
        indices,
        box,
        "none",
        lambda to, source: draft(tma.reduce(f"[{to}]", coordinates(draft, start), f"[{source}]", dim=rank, op="add")),
        lambda old, new: reduced("add", "u32", old, new),
        initial,
    )


@microtest(*((op, hint) for op in ("store", "reduce") for hint in (False, True)))
def store_hint(draft: Draft, op: str, hint: bool) -> None:
    """With a policy for the cache."""
    dims, box, starts = _STORES[3]
    indices = boxes.tile(dims, starts[1], box)
    initial, memory_ = operands("u16", int(np.prod(dims)), 61).reshape(-1, 2), some_bytes(indices.size * 2)
    given: dict[str, Any] = {"dim": 3, **(hinted(draft) if hint else {})}
    if op == "reduce":
        initial, memory_ = operands("f16", int(np.prod(dims)), 62).reshape(-1, 2), operands("f16", 512, 63)
        given["op"] = "max"
    store_box(
        draft,
        "f16",
        dims,
        memory_,
        indices,
        box,
        "none",
        lambda to, source: draft(getattr(tma, op)(f"[{to}]", coordinates(draft, starts[1]), f"[{source}]", **given)),
        lambda old, new: reduced("max", "f16", old, new) if op == "reduce" else new,
        initial,
    )


@microtest(*(swizzle for swizzle in WIDTHS if swizzle != "none"))
def reduce_swizzles(draft: Draft, swizzle: str) -> None:
    """Reductions from every swizzle."""
    atoms(draft, swizzle)
    width = WIDTHS[swizzle] // 4
    dims, box, start = (2 * width, 30), (width, 17), (width, 16)
    indices = boxes.tile(dims, start, box)
    initial = operands("u32", int(np.prod(dims)), 64).reshape(-1, 4)
    memory_ = operands("u32", (int(boxes.spread(indices.shape, 4, swizzle).max()) // 1024 + 1) * 256, 65)
    store_box(
        draft,
        "u32",
        dims,
        memory_,
        indices,
        box,
        swizzle,
        lambda to, source: draft(tma.reduce(f"[{to}]", coordinates(draft, start), f"[{source}]", dim=2, op="add")),
        lambda old, new: reduced("add", "u32", old, new),
        initial,
    )


@microtest("add", "min", "max", "and")
def reduce_scatter4(draft: Draft, op: Any) -> None:
    """Four rows, of which two are the same: each is combined."""
    rows, dims, width = (3, 0, 9, 5), (128, 12), 32
    indices = boxes.rows_of(dims, 32, rows, width)
    initial, memory_ = operands("u32", 128 * 12, 66).reshape(-1, 4), operands("u32", 256, 67)
    store_box(
        draft,
        "u32",
        dims,
        memory_,
        indices,
        (width, 1),
        "128b",
        lambda to, source: draft(
            tma.reduce(
                f"[{to}]", coordinates(draft, (32, *rows)), f"[{source}]", dim=2, op=op, load_mode="tile::scatter4"
            )
        ),
        lambda old, new: reduced(op, "u32", old, new),
        initial,
    )


def _sum(dtype: str, format: Format, x: int, y: int) -> int:
    """Of .f64 a NaN comes back as it is (measured, H100)."""
    ftz = dtype == "f32_ftz"
    a, b = decode(x, format, ftz), decode(y, format, ftz)
    if dtype == "f64" and "nan" in (a.kind, b.kind):
        return y if b.kind == "nan" else x
    return encode(add(a, b, "rn"), format, ftz=ftz)


@microtest("f32", "f32_ftz", "tf32", "f64", "f16", "bf16")
def reduce_rounding(draft: Draft, dtype: str) -> None:
    """Sums of any floats, rounded to nearest. Subnormal numbers stay, but in tensors of f32_ftz (measured, H100)."""
    kind = {"f32_ftz": "f32", "tf32": "f32"}.get(dtype, dtype)
    format, size = FORMATS[kind], SIZES[dtype]
    rng = np.random.default_rng(69)
    dims, box = (32, 16), (32, 8)
    initial, given = (words(kind, 8 * size, count, rng) for count in (512, max(256, 1024 // size)))
    indices = boxes.tile(dims, (0, 8), box)

    def combine(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        pairs = zip(*(each.reshape(-1).view(given.dtype) for each in (old, new)), strict=True)
        sums = [_sum(dtype, format, int(x), int(y)) for x, y in pairs]
        return np.array(sums, given.dtype).view(np.uint8).reshape(old.shape)

    store_box(
        draft,
        dtype,
        dims,
        given.view(np.uint8),
        indices,
        box,
        "none",
        lambda to, source: draft(tma.reduce(f"[{to}]", coordinates(draft, (0, 8)), f"[{source}]", dim=2, op="add")),
        combine,
        initial.view(np.uint8).reshape(-1, size),
    )


def _quietly(draft: Draft, dims: Sequence[int], box: Sequence[int], make: Any, *, groups: bool = False) -> None:
    """A kernel in which thread 0 says something about a tensor that changes no value."""
    draft.launch(block=32)
    out = draft.offset(draft.output(np.arange(32, dtype=np.uint32)), draft.thread, 4)
    address = draft.tensormap(
        lambda array: TensorMap.tiled("bf16", array, dims, strides_of(dims, 2), box), tensor_of(dims, 2).reshape(-1)
    )
    end = draft.label("end")
    draft.branch(end, draft.is_thread(0), negated=True)
    draft(make(f"[{address}]"))
    if groups:
        draft(bulk.commit_group(), bulk.wait_group(0))
    draft.place(end)
    draft.store(out, draft.thread)


@microtest(*((rank, which) for rank in RANKS for which in ("plain", "tile", "hint")))
def prefetch(draft: Draft, rank: Any, which: str) -> None:
    """A hint: nothing changes."""
    dims, box, starts = RANKS[rank]
    options = {"plain": dict, "tile": lambda: {"load_mode": "tile"}, "hint": lambda: hinted(draft)}[which]()
    _quietly(draft, dims, box, lambda at: tma.prefetch(at, coordinates(draft, starts[0]), dim=rank, **options))


@microtest()
def prefetch_gather4(draft: Draft) -> None:
    """Of four rows."""
    _quietly(
        draft,
        (128, 12),
        (64, 1),
        lambda at: tma.prefetch(at, coordinates(draft, (32, 1, 0, 9, 3)), dim=2, load_mode="tile::gather4"),
    )


@microtest(*RANKS)
def applypriority(draft: Draft, rank: Any) -> None:
    """The normal priority in L2 again."""
    dims, box, starts = RANKS[rank]
    _quietly(draft, dims, box, lambda at: tma.applypriority(at, coordinates(draft, starts[0]), dim=rank), groups=True)
