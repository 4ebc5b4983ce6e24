"""Tensor copies: every mode, rank, type and swizzle, multicast, reductions. References: loops over elements.

From PTX ISA 5.5 and 9.7.9.25.5, and where these are silent from docs/hardware.md (fill, rows narrower than a swizzle).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from microtests.harness import boxes
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from ptxgen.build import Register
from ptxgen.descriptors import TensorMap
from ptxgen.instr import barrier, bulk, cache, cluster, fence, integer, logic, mbarrier, move, predicate, tma

SIZES = {
    "u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "f32_ftz": 4,
    "tf32": 4, "tf32_ftz": 4,
}  # fmt: skip
_FILL = 0xA5
_IM2COL: Any = getattr(TensorMap, "im2col", None)


def _has_im2col(*values: object) -> bool:
    """Whether these tensormaps can be made."""
    return _IM2COL is not None or "tile" in values


def _dim(rank: int) -> Any:
    """A rank as the calls take it."""
    return rank


def strides_of(dims: Sequence[int], size: int) -> list[int]:
    found, step = [], size
    for extent in dims[:-1]:
        step *= extent
        found.append(step)
    return found


def tensor_of(dims: Sequence[int], size: int, seed: int = 51) -> np.ndarray:
    """Random bytes [elements, size]; as floats they are normal numbers, of few bits."""
    rng = np.random.default_rng(seed)
    count = int(np.prod(dims))
    made = rng.integers(0, 256, (count, size)).astype(np.uint8)
    if size == 4:  # .f32 that are .tf32 too, and not subnormal
        made = (rng.integers(-1000, 1000, count).astype(np.float32)).view(np.uint8).reshape(count, 4)
    return made


class Load:
    """The kernel of a load: shared memory of known bytes, a barrier, the copy by thread 0, the dump."""

    def __init__(self, draft: Draft, size: int, *, ctas: int = 1, receivers: Sequence[int] = (0,)) -> None:
        self.draft, self.size, self.ctas, self.receivers = draft, -(-size // 1024) * 1024, ctas, receivers
        draft.launch(grid=ctas, block=128, cluster=ctas if ctas > 1 else None)
        self.tid = draft.thread
        self.box, self.bar = draft.shared(self.size, 1024), draft.shared(8, 8)
        self.before = np.full(self.size, _FILL, np.uint8)

    def run(self, count: int, copy: Any, expected: np.ndarray) -> None:
        """`copy(destination, barrier)` appends the copy of `count` bytes; `expected` is [ctas, size] after it."""
        draft = self.draft
        draft.copy_in(self.box, self.before)
        ready, issued = draft.label("ready"), draft.label("issued")
        draft.branch(ready, draft.is_thread(0), negated=True)
        draft(mbarrier.init(f"[{self.bar}]", 1, space="shared::cta"), fence.fence_mbarrier_init())
        draft.place(ready)
        draft(fence.fence_proxy_async(), barrier.bar_sync(0))
        draft.branch(issued, draft.is_thread(0), negated=True)
        draft(mbarrier.arrive_expect_tx("_", f"[{self.bar}]", count, space="shared::cta"))
        draft.place(issued)
        rank = None
        if self.ctas > 1:
            draft(cluster.arrive(), cluster.wait())
            rank = draft.special("cluster_ctarank")
        after = draft.label("after")
        draft.branch(after, draft.is_thread(0), negated=True)
        if rank is not None:
            first = draft.reg("pred", "first")
            draft(predicate.setp(first, rank, self.ctas - 1, compare="eq", type="u32"))
            draft.branch(after, first, negated=True)
        copy(self.box, self.bar)
        draft.place(after)
        if rank is not None:
            self._wait_if_receiver(rank)
        else:
            draft.wait(self.bar)
        out = draft.output(np.ascontiguousarray(expected).reshape(self.ctas, self.size))
        if rank is not None:
            out = draft.offset(out, rank, self.size)
        draft.copy_out(self.box, out, self.size)
        if rank is not None:
            draft(cluster.arrive(), cluster.wait())

    def _wait_if_receiver(self, rank: Register) -> None:
        draft = self.draft
        mask = sum(1 << number for number in self.receivers)
        bit, inside, done = draft.reg("b32"), draft.reg("pred"), draft.label("done")
        draft(logic.shr(bit, draft.scalar("u32", mask), rank, type="b32"), logic.and_(bit, bit, 1, type="b32"))
        draft(predicate.setp(inside, bit, 1, compare="eq", type="u32"))
        draft.branch(done, inside, negated=True)
        draft.wait(self.bar)
        draft.place(done)


def _coordinates(draft: Draft, start: Sequence[int]) -> list[Register]:
    return [draft.scalar("s32", each) for each in start]


def _fill(dtype: str, nan: bool) -> bytes:
    """The NaN of elements outside is 0x7FF7 in every 16 bits (measured, H200)."""
    return b"\xf7\x7f" * (SIZES[dtype] // 2) if nan else bytes(SIZES[dtype])


def _load_tile(
    draft: Draft, dtype: str, dims: Sequence[int], box: Sequence[int], start: Sequence[int], swizzle: str = "none", *,
    nan: bool = False, steps: Sequence[int] | None = None, at: int = 0, dst: Any = "shared::cluster", **options: Any,
) -> None:  # fmt: skip
    size = SIZES[dtype]
    tensor = tensor_of(dims, size)
    # Without interleave nothing is skipped along a row, whatever the map says (driver API, measured on an H100).
    indices = boxes.tile(dims, start, box, None if steps is None else (1, *steps[1:]))
    length = int(boxes.spread(indices.shape, size, swizzle, at).max()) + 1
    kernel = Load(draft, length)
    expected = boxes.loaded(kernel.before, tensor, indices, swizzle, _fill(dtype, nan), at)
    address = draft.tensormap(
        lambda array: TensorMap.tiled(
            dtype, array, dims, strides_of(dims, size), box, swizzle=swizzle, element_strides=steps,
            oob_fill="nan" if nan else "none",
        ),
        tensor.reshape(-1),
    )  # fmt: skip

    def copy(place: Register, bar: Register) -> None:
        to = place
        if at:
            to = draft.reg("b32")
            draft(integer.add(to, place, at, type="u32"))
        draft(tma.load(f"[{to}]", f"[{address}]", _coordinates(draft, start), f"[{bar}]", dim=_dim(len(dims)), dst=dst,
                       **options))  # fmt: skip

    kernel.run(indices.size * size, copy, expected)


_RANKS = {
    1: ((100,), (32,), [(0,), (80,), (-16,), (200,)]),
    2: ((32, 20), (16, 9), [(0, 0), (24, 15), (-8, -3), (8, 20)]),
    3: ((16, 7, 5), (16, 4, 3), [(0, 0, 0), (0, 5, 3), (-8, -2, -1)]),
    4: ((16, 5, 4, 3), (8, 3, 2, 2), [(0, 0, 0, 0), (8, 3, 3, 2), (8, -1, -1, -1)]),
    5: ((16, 4, 3, 3, 2), (8, 3, 2, 2, 2), [(0, 0, 0, 0, 0), (8, 2, 2, 1, 1), (0, -1, -1, 2, -1)]),
}


@microtest(*((rank, number) for rank, (_, _, starts) in _RANKS.items() for number in range(len(starts))))
def load_ranks(draft: Draft, rank: int, number: int) -> None:
    """Tiles of every rank: inside, over the far edges, before the first element, all outside."""
    dims, box, starts = _RANKS[rank]
    _load_tile(draft, "u16", dims, box, starts[number])


@microtest(*SIZES)
def load_types(draft: Draft, dtype: str) -> None:
    """Every element type, over an edge."""
    width = 64 // SIZES[dtype]
    _load_tile(draft, dtype, (2 * width, 12), (width, 8), (width // 2 * 3, 6))


@microtest(*(dtype for dtype in SIZES if dtype[0] in "fbt" and not dtype.endswith("ftz")))
def load_nan_fill(draft: Draft, dtype: str) -> None:
    """Elements outside are NaNs."""
    width = 64 // SIZES[dtype]
    _load_tile(draft, dtype, (2 * width, 12), (width, 8), (width // 2 * 3, -2), nan=True)


def _atoms(draft: Draft, swizzle: str) -> None:
    """Swizzles of larger pieces came with sm_100."""
    if "atom" in swizzle:
        draft.requires("8.6", "sm_100+")


_WIDTHS = {"none": 128, "32b": 32, "64b": 64, "128b": 128, "128b_atom_32b": 128, "128b_atom_64b": 128}


@microtest(*((swizzle, dtype, at) for swizzle in _WIDTHS for dtype in ("u8", "bf16", "f32", "u64")
             for at in (0, 128, 384, 640)),
           only_if=lambda swizzle, dtype, at: dtype == "bf16" or at in (0, 384))  # fmt: skip
def load_swizzles(draft: Draft, swizzle: str, dtype: str, at: int) -> None:
    """Every swizzle, at several places of its period, over an edge."""
    _atoms(draft, swizzle)
    width = _WIDTHS[swizzle] // SIZES[dtype]
    _load_tile(draft, dtype, (width * 2, 30), (width, 17), (width, 16), swizzle, at=at)


@microtest(*((swizzle, width) for swizzle, width in (("32b", 16), ("64b", 16), ("64b", 48), ("128b", 16), ("128b", 64),
                                                     ("128b", 112))))  # fmt: skip
def load_narrow(draft: Draft, swizzle: str, width: int) -> None:
    """Rows narrower than those of the swizzle keep its pitch; what lies between stays as it is (measured, H200)."""
    _load_tile(draft, "u8", (128, 20), (width, 11), (16, 3), swizzle)


@microtest(*((tuple(steps),) for steps in ((1, 2), (1, 4), (1, 8))))
def load_element_strides(draft: Draft, steps: Any) -> None:
    """Every so-manieth element of the box."""
    box = (16 * steps[0], 4 * steps[1])
    _load_tile(draft, "u16", (96, 40), box, (8, 5), steps=steps)


@microtest("shared::cta", "shared::cluster")
def load_destination(draft: Draft, dst: str) -> None:
    """Both spellings of the destination."""
    _load_tile(draft, "f16", (64, 16), (32, 8), (32, 4), dst=dst)


@microtest("none", "tile", "hint")
def load_spellings(draft: Draft, which: str) -> None:
    """The mode written out, and a cache policy, which changes no result."""
    options: dict[str, Any] = {}
    if which == "tile":
        options["load_mode"] = "tile"
    if which == "hint":
        policy = draft.reg("b64", "policy")
        draft(cache.createpolicy_fractional(policy, 1.0, first="evict_first"))
        options.update(hint=True, policy=policy)
    _load_tile(draft, "f16", (64, 16), (32, 8), (0, 0), **options)


@microtest(*(((size, tuple(to)),) for size, to in ((2, (0, 1)), (4, (0, 1, 3)), (4, (2,)), (8, (1, 6, 7)))))
def load_multicast(draft: Draft, which: Any) -> None:
    """The last CTA loads once for several, each of which gets the data and the bytes at its own barrier."""
    ctas, receivers = which
    dims, box, start, swizzle = (64, 32), (64, 8), (0, 5), "128b"
    tensor = tensor_of(dims, 2)
    indices = boxes.tile(dims, start, box)
    kernel = Load(draft, 1024, ctas=ctas, receivers=receivers)
    image = boxes.loaded(kernel.before, tensor, indices, swizzle, bytes(2))
    expected = np.array([image if rank in receivers else kernel.before for rank in range(ctas)])
    address = draft.tensormap(
        lambda array: TensorMap.tiled("bf16", array, dims, strides_of(dims, 2), box, swizzle=swizzle),
        tensor.reshape(-1),
    )
    mask = draft.reg("b16", "mask")
    draft(move.mov(mask, sum(1 << rank for rank in receivers), type="u16"))
    kernel.run(1024, lambda to, bar: draft(
        tma.load(f"[{to}]", f"[{address}]", _coordinates(draft, start), f"[{bar}]", dim=2, dst="shared::cluster",
                 multicast="cluster", mask=mask)
    ), expected)  # fmt: skip


# im2col.

#: (dims C W [H [D]] N, lower corner, upper corner, steps), the copy's start, offsets, pixels.
_IMAGES: dict[str, Any] = {
    "3d": ((16, 9, 3), (-1,), (-1,), (0, -1, 0), (2,), 16),
    "3d-upper": ((16, 9, 3), (0,), (-2,), (8, 0, 1), (1,), 12),
    "4d": ((16, 6, 5, 3), (-1, -1), (-1, -1), (0, -1, -1, 0), (0, 0), 32),
    "4d-offset": ((16, 6, 5, 3), (-1, -1), (-1, -1), (0, 2, 1, 1), (2, 1), 24),
    "4d-end": ((16, 6, 5, 2), (0, 0), (-2, -2), (8, 1, 1, 1), (2, 2), 20),
    "5d": ((16, 4, 3, 3, 2), (-1, -1, 0), (-1, 0, -1), (0, -1, -1, 0, 0), (1, 1, 0), 28),
    "5d-offset": ((16, 4, 3, 3, 2), (-1, -1, -1), (-1, -1, -1), (0, 1, 0, 1, 0), (2, 1, 2), 32),
}


@microtest(*((name, swizzle) for name in _IMAGES for swizzle in ("none", "32b")), only_if=_has_im2col)
def load_im2col(draft: Draft, name: str, swizzle: str) -> None:
    """The pixels that one element of a filter sees, over the edges of images and on into the next."""
    dims, lower, upper, start, offsets, count = _IMAGES[name]
    channels = 16 if swizzle == "32b" else 8
    if swizzle == "32b":
        start = (0, *start[1:])
    _im2col(draft, dims, lower, upper, start, offsets, channels, count, swizzle)


@microtest("3d", "4d", "5d", only_if=_has_im2col)
def load_im2col_steps(draft: Draft, name: str) -> None:
    """Strides of the filter: the base moves by them."""
    dims, lower, upper, start, offsets, count = _IMAGES[name]
    _im2col(draft, dims, lower, upper, start, offsets, 8, count // 2, "none", steps=[2] * (len(dims) - 2))


def _im2col(
    draft: Draft, dims: Sequence[int], lower: Sequence[int], upper: Sequence[int], start: Sequence[int],
    offsets: Sequence[int], channels: int, count: int, swizzle: str, steps: Sequence[int] | None = None,
) -> None:  # fmt: skip
    tensor = tensor_of(dims, 2)
    indices = boxes.pixels(dims, start, lower, upper, offsets, channels, count, steps)
    kernel = Load(draft, int(boxes.spread(indices.shape, 2, swizzle).max()) + 1)
    expected = boxes.loaded(kernel.before, tensor, indices, swizzle, bytes(2))
    moves = None if steps is None else [1, *steps, 1]
    address = draft.tensormap(
        lambda array: _IM2COL(
            "bf16", array, dims, strides_of(dims, 2), lower, upper, channels, count, swizzle=swizzle,
            element_strides=moves,
        ),
        tensor.reshape(-1),
    )  # fmt: skip
    where: list[Any] = []
    for offset in offsets:
        register = draft.reg("b16", "offset")
        draft(move.mov(register, offset, type="u16"))
        where.append(register)
    kernel.run(indices.size * 2, lambda to, bar: draft(
        tma.load_im2col(f"[{to}]", f"[{address}]", _coordinates(draft, start), f"[{bar}]", where, dim=_dim(len(dims)),
                        dst="shared::cluster", load_mode="im2col")
    ), expected)  # fmt: skip


# gather4 and scatter4.


@microtest(*((swizzle, rows) for swizzle in ("none", "64b", "128b") for rows in ((3, 0, 9, 3), (11, -1, 2, 40))))
def load_gather4(draft: Draft, swizzle: str, rows: Any) -> None:
    """Four rows of a matrix, in any order and outside too."""
    dims, width = (128, 12), 64 if swizzle == "none" else _WIDTHS[swizzle] // 2
    tensor = tensor_of(dims, 2)
    indices = boxes.rows_of(dims, 32, rows, width)
    kernel = Load(draft, int(boxes.spread(indices.shape, 2, swizzle).max()) + 1)
    expected = boxes.loaded(kernel.before, tensor, indices, swizzle, bytes(2))
    address = draft.tensormap(
        lambda array: TensorMap.tiled("bf16", array, dims, strides_of(dims, 2), (width, 1), swizzle=swizzle),
        tensor.reshape(-1),
    )
    kernel.run(indices.size * 2, lambda to, bar: draft(
        tma.load(f"[{to}]", f"[{address}]", _coordinates(draft, (32, *rows)), f"[{bar}]", dim=2, dst="shared::cluster",
                 load_mode="tile::gather4")
    ), expected)  # fmt: skip


# Stores and reductions.


def _store(draft: Draft, dtype: str, dims: Sequence[int], memory_: np.ndarray, indices: np.ndarray, box: Any,
           swizzle: str, copy: Any, combine: Any, initial: np.ndarray, make: Any = None) -> None:  # fmt: skip
    """Shared memory to a tensor; `copy(address, source)` appends the instruction, `combine(old, new)` is its result."""
    size = SIZES[dtype]
    draft.launch(block=128)
    tid = draft.thread
    place = draft.shared(len(memory_), 1024)
    numbers, values = boxes.stored(initial, memory_, indices, swizzle)
    expected = initial.copy()
    expected[numbers] = combine(initial[numbers], values)
    draft.output(expected.reshape(-1), initial=initial.reshape(-1))
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
    del tid


def _bytes(count: int, seed: int = 52) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, -(-count // 1024) * 1024).astype(np.uint8)


_STORES = {
    1: ((100,), (32,), [(0,), (80,), (200,)]),
    2: ((32, 20), (16, 9), [(0, 0), (24, 15), (8, 20)]),
    3: ((16, 7, 5), (16, 4, 3), [(0, 0, 0), (8, 5, 3)]),
    4: ((16, 5, 4, 3), (8, 3, 2, 2), [(0, 0, 0, 0), (8, 3, 3, 2)]),
    5: ((16, 4, 3, 3, 2), (8, 3, 2, 2, 2), [(0, 0, 0, 0, 0), (8, 2, 2, 1, 1)]),
}


@microtest(*((rank, number) for rank, (_, _, starts) in _STORES.items() for number in range(len(starts))))
def store_ranks(draft: Draft, rank: int, number: int) -> None:
    """Tiles of every rank; elements outside are dropped."""
    dims, box, starts = _STORES[rank]
    start = starts[number]
    indices = boxes.tile(dims, start, box)
    _store(draft, "u16", dims, _bytes(indices.size * 2), indices, box, "none", lambda to, source: draft(
        tma.store(f"[{to}]", _coordinates(draft, start), f"[{source}]", dim=_dim(rank))
    ), lambda old, new: new, tensor_of(dims, 2))  # fmt: skip


@microtest(*((swizzle, dtype) for swizzle in _WIDTHS for dtype in ("u8", "f16", "f32", "f64")))
def store_swizzles(draft: Draft, swizzle: str, dtype: str) -> None:
    """Every swizzle, over an edge."""
    _atoms(draft, swizzle)
    size = SIZES[dtype]
    width = _WIDTHS[swizzle] // size
    dims, box, start = (2 * width, 30), (width, 17), (width, 16)
    indices = boxes.tile(dims, start, box)
    memory_ = _bytes(int(boxes.spread(indices.shape, size, swizzle).max()) + 1)
    if size == 4:
        memory_ = (memory_.view(np.uint32) % 1000).astype(np.float32).view(np.uint8)
    _store(draft, dtype, dims, memory_, indices, box, swizzle, lambda to, source: draft(
        tma.store(f"[{to}]", _coordinates(draft, start), f"[{source}]", dim=2, load_mode="tile")
    ), lambda old, new: new, tensor_of(dims, size))  # fmt: skip


@microtest("3d-upper", "4d-inside", "5d-inside", only_if=_has_im2col)
def store_im2col(draft: Draft, name: str) -> None:
    """The inverse of im2col, without offsets."""
    dims, lower, upper, start, count = {
        "3d-upper": ((16, 9, 3), (0,), (-2,), (8, 0, 1), 12),
        "4d-inside": ((16, 6, 5, 3), (0, 0), (-1, -2), (0, 1, 1, 0), 24),
        "5d-inside": ((16, 4, 3, 3, 2), (0, 0, 0), (0, 0, -1), (8, 0, 0, 0, 0), 28),
    }[name]
    channels = 8
    indices = boxes.pixels(dims, start, lower, upper, [0] * len(lower), channels, count)
    _store(draft, "bf16", dims, _bytes(indices.size * 2), indices, None, "none", lambda to, source: draft(
        tma.store(f"[{to}]", _coordinates(draft, start), f"[{source}]", dim=_dim(len(dims)), load_mode="im2col_no_offs")
    ), lambda old, new: new, tensor_of(dims, 2), lambda array: _IM2COL(
        "bf16", array, dims, strides_of(dims, 2), lower, upper, channels, count
    ))  # fmt: skip


@microtest(((3, 0, 9, 5),), ((11, 7, 2, 40),))
def store_scatter4(draft: Draft, rows: Any) -> None:
    """Four rows of a matrix, in any order; those outside are dropped."""
    dims, width = (128, 12), 64
    indices = boxes.rows_of(dims, 32, rows, width)
    _store(draft, "bf16", dims, _bytes(512), indices, (width, 1), "128b", lambda to, source: draft(
        tma.store(f"[{to}]", _coordinates(draft, (32, *rows)), f"[{source}]", dim=2, load_mode="tile::scatter4")
    ), lambda old, new: new, tensor_of(dims, 2))  # fmt: skip


_KINDS: dict[str, Any] = {
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
_REDUCTIONS = {
    "add": ("u32", "s32", "u64", "f16", "bf16", "f32"), "min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "max": ("u32", "s32", "u64", "s64", "f16", "bf16"), "inc": ("u32",), "dec": ("u32",),
    "and": ("u32", "u64", "s32"), "or": ("u32", "u64"), "xor": ("u32", "u64"),
}  # fmt: skip


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


@microtest(*((op, kind) for op, kinds in _REDUCTIONS.items() for kind in kinds))
def reduce(draft: Draft, op: Any, kind: str) -> None:
    """Every operation with the types that it has, over an edge."""
    size = SIZES[kind]
    width = 64 // size
    dims, box, start = (2 * width, 12), (width, 8), (width, 6)
    indices = boxes.tile(dims, start, box)
    initial = operands(kind, int(np.prod(dims)), 53).reshape(-1, size)
    memory_ = operands(kind, 1024 // size, 54)
    _store(draft, kind, dims, memory_, indices, box, "none", lambda to, source: draft(
        tma.reduce(f"[{to}]", _coordinates(draft, start), f"[{source}]", dim=2, op=op, load_mode="tile")
    ), lambda old, new: reduced(op, kind, old, new), initial)  # fmt: skip


@microtest(1, 2, 3, 4, 5)
def reduce_ranks(draft: Draft, rank: Any) -> None:
    """Tiles of every rank."""
    dims, box, starts = _STORES[rank]
    start = starts[-1]
    indices = boxes.tile(dims, start, box)
    initial = operands("u32", int(np.prod(dims)), 55).reshape(-1, 4)
    memory_ = operands("u32", 1024, 56)
    _store(draft, "u32", dims, memory_, indices, box, "none", lambda to, source: draft(
        tma.reduce(f"[{to}]", _coordinates(draft, start), f"[{source}]", dim=_dim(rank), op="add")
    ), lambda old, new: reduced("add", "u32", old, new), initial)  # fmt: skip


@microtest("tile", "im2col", only_if=_has_im2col)
def prefetch(draft: Draft, mode: str) -> None:
    """A hint: nothing changes."""
    dims = (64, 16) if mode == "tile" else (16, 6, 5, 3)
    tensor = tensor_of(dims, 2)
    draft.launch(block=32)
    out = draft.offset(draft.output(np.arange(32, dtype=np.uint32)), draft.thread, 4)
    make: Any = (
        (lambda array: TensorMap.tiled("bf16", array, dims, strides_of(dims, 2), (32, 8)))
        if mode == "tile"
        else (lambda array: _IM2COL("bf16", array, dims, strides_of(dims, 2), (-1, -1), (-1, -1), 8, 16))
    )
    address = draft.tensormap(make, tensor.reshape(-1))
    end = draft.label("end")
    draft.branch(end, draft.is_thread(0), negated=True)
    start = _coordinates(draft, [0] * len(dims))
    if mode == "tile":
        draft(tma.prefetch(f"[{address}]", start, dim=2))
    else:
        where = draft.regs("b16", 2)
        for register in where:
            draft(move.mov(register, 1, type="u16"))
        draft(tma.prefetch_im2col(f"[{address}]", start, where, dim=4, load_mode="im2col"))
    draft.place(end)
    draft.store(out, draft.thread)
