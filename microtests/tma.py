"""Tensor copies: every mode, rank, type and swizzle, multicast, reductions. References: loops over elements.

From PTX ISA 5.5 and 9.7.9.25.5, and where these are silent from docs/hardware.md (fill, rows narrower than a swizzle).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from microtests.harness import boxes
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.inputs import words
from microtests.harness.numbers import F32, TF32, decode, encode
from ptxgen.builder import Register
from ptxgen.descriptors import TensorMap
from ptxgen.instr import barrier, cache, cluster, fence, integer, logic, mbarrier, move, predicate, tma

SIZES = {
    "u8": 1,
    "u16": 2,
    "u32": 4,
    "s32": 4,
    "u64": 8,
    "s64": 8,
    "f16": 2,
    "bf16": 2,
    "f32": 4,
    "f64": 8,
    "f32_ftz": 4,
    "tf32": 4,
    "tf32_ftz": 4,
}
_FILL = 0xA5


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

    def run(self, count: int, copy: Any, expected: np.ndarray, *, meet: bool = False) -> None:
        """`copy(destination, barrier)` appends the copy of `count` bytes; `expected` is [ctas, size] after it.

        With `meet` no CTA reads its memory before the receivers have the data.
        """
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
            if meet:
                draft(cluster.arrive(), cluster.wait())
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


def coordinates(draft: Draft, start: Sequence[int]) -> list[Register]:
    return [draft.scalar("s32", each) for each in start]


def fill_of(dtype: str, nan: bool) -> bytes:
    """The NaN of elements outside is 0x7FF7 in every 16 bits (measured, H200)."""
    return b"\xf7\x7f" * (SIZES[dtype] // 2) if nan else bytes(SIZES[dtype])


def load_tile(
    draft: Draft,
    dtype: str,
    dims: Sequence[int],
    box: Sequence[int],
    start: Sequence[int],
    swizzle: str = "none",
    *,
    nan: bool = False,
    steps: Sequence[int] | None = None,
    at: int = 0,
    dst: Any = "shared::cluster",
    **options: Any,
) -> None:
    size = SIZES[dtype]
    tensor = tensor_of(dims, size)
    # Without interleave nothing is skipped along a row, whatever the map says (driver API, measured on an H100).
    indices = boxes.tile(dims, start, box, None if steps is None else (1, *steps[1:]))
    length = int(boxes.spread(indices.shape, size, swizzle, at).max()) + 1
    kernel, dim = Load(draft, length), len(dims)
    given: dict[str, Any] = {"dim": dim, "dst": dst, **options}
    expected = boxes.loaded(kernel.before, tensor, indices, swizzle, fill_of(dtype, nan), at)
    address = draft.tensormap(
        lambda array: TensorMap.tiled(
            dtype,
            array,
            dims,
            strides_of(dims, size),
            box,
            swizzle=swizzle,
            element_strides=steps,
            oob_fill="nan" if nan else "none",
        ),
        tensor.reshape(-1),
    )

    def copy(place: Register, bar: Register) -> None:
        to = place
        if at:
            to = draft.reg("b32")
            draft(integer.add(to, place, at, type="u32"))
        draft(tma.load(f"[{to}]", f"[{address}]", coordinates(draft, start), f"[{bar}]", **given))

    kernel.run(indices.size * size, copy, expected)


RANKS = {
    1: ((100,), (32,), [(0,), (80,), (-16,), (200,)]),
    2: ((32, 20), (16, 9), [(0, 0), (24, 15), (-8, -3), (8, 20)]),
    3: ((16, 7, 5), (16, 4, 3), [(0, 0, 0), (0, 5, 3), (-8, -2, -1)]),
    4: ((16, 5, 4, 3), (8, 3, 2, 2), [(0, 0, 0, 0), (8, 3, 3, 2), (8, -1, -1, -1)]),
    5: ((16, 4, 3, 3, 2), (8, 3, 2, 2, 2), [(0, 0, 0, 0, 0), (8, 2, 2, 1, 1), (0, -1, -1, 2, -1)]),
}


@microtest(*((rank, number) for rank, (_, _, starts) in RANKS.items() for number in range(len(starts))))
def load_ranks(draft: Draft, rank: int, number: int) -> None:
    """Tiles of every rank: inside, over the far edges, before the first element, all outside."""
    dims, box, starts = RANKS[rank]
    load_tile(draft, "u16", dims, box, starts[number])


@microtest(*SIZES)
def load_types(draft: Draft, dtype: str) -> None:
    """Every element type, over an edge."""
    width = 64 // SIZES[dtype]
    load_tile(draft, dtype, (2 * width, 12), (width, 8), (width // 2 * 3, 6))


@microtest(*(dtype for dtype in SIZES if dtype[0] in "fbt" and not dtype.endswith("ftz")))
def load_nanfill_of(draft: Draft, dtype: str) -> None:
    """Elements outside are NaNs."""
    width = 64 // SIZES[dtype]
    load_tile(draft, dtype, (2 * width, 12), (width, 8), (width // 2 * 3, -2), nan=True)


def atoms(draft: Draft, swizzle: str) -> None:
    """Swizzles of larger pieces came with sm_100, the one of 96 bytes is sm_103a's."""
    if "atom" in swizzle:
        draft.requires("8.6", "sm_100+")
    if swizzle == "96b":
        draft.requires("8.8", "sm_103a")


WIDTHS = {"none": 128, "32b": 32, "64b": 64, "96b": 96, "128b": 128, "128b_atom_32b": 128, "128b_atom_64b": 128}


@microtest(
    *(
        (swizzle, dtype, at)
        for swizzle in WIDTHS
        for dtype in ("u8", "bf16", "f32", "u64")
        for at in (0, 128, 384, 640)
    ),
    only_if=lambda swizzle, dtype, at: dtype == "bf16" or at in (0, 384),
)
def load_swizzles(draft: Draft, swizzle: str, dtype: str, at: int) -> None:
    """Every swizzle, at several places of its period, over an edge."""
    atoms(draft, swizzle)
    width = WIDTHS[swizzle] // SIZES[dtype]
    load_tile(draft, dtype, (width * 2, 30), (width, 17), (width, 16), swizzle, at=at)


@microtest(
    *(
        (swizzle, width)
        for swizzle, width in (("32b", 16), ("64b", 16), ("64b", 48), ("128b", 16), ("128b", 64), ("128b", 112))
    )
)
def load_narrow(draft: Draft, swizzle: str, width: int) -> None:
    """Rows narrower than those of the swizzle keep its pitch; what lies between stays as it is (measured, H200)."""
    load_tile(draft, "u8", (128, 20), (width, 11), (16, 3), swizzle)


@microtest(*((tuple(steps),) for steps in ((1, 2), (1, 4), (1, 8))))
def load_element_strides(draft: Draft, steps: Any) -> None:
    """Every so-manieth element of the box."""
    box = (16 * steps[0], 4 * steps[1])
    load_tile(draft, "u16", (96, 40), box, (8, 5), steps=steps)


@microtest("shared::cta", "shared::cluster")
def load_destination(draft: Draft, dst: str) -> None:
    """Both spellings of the destination."""
    load_tile(draft, "f16", (64, 16), (32, 8), (32, 4), dst=dst)


def hinted(draft: Draft) -> dict[str, Any]:
    """What a copy is given for a cache policy."""
    policy = draft.reg("b64", "policy")
    draft(cache.createpolicy_fractional(policy, 1.0, first="evict_first"))
    return {"hint": True, "policy": policy}


def ranks(draft: Draft, receivers: Sequence[int]) -> Register:
    """A mask of CTAs."""
    mask = draft.reg("b16", "mask")
    draft(move.mov(mask, sum(1 << rank for rank in receivers), type="u16"))
    return mask


@microtest("none", "tile", "hint")
def load_spellings(draft: Draft, which: str) -> None:
    """The mode written out, and a cache policy, which changes no result."""
    options = {"none": dict, "tile": lambda: {"load_mode": "tile"}, "hint": lambda: hinted(draft)}[which]()
    load_tile(draft, "f16", (64, 16), (32, 8), (0, 0), **options)


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
    mask = ranks(draft, receivers)
    kernel.run(
        1024,
        lambda to, bar: draft(
            tma.load(
                f"[{to}]",
                f"[{address}]",
                coordinates(draft, start),
                f"[{bar}]",
                dim=2,
                dst="shared::cluster",
                multicast="cluster",
                mask=mask,
            )
        ),
        expected,
    )


# gather4 and scatter4.


@microtest(*((swizzle, rows) for swizzle in ("none", "64b", "128b") for rows in ((3, 0, 9, 3), (11, -1, 2, 40))))
def load_gather4(draft: Draft, swizzle: str, rows: Any) -> None:
    """Four rows of a matrix, in any order and outside too."""
    dims, width = (128, 12), 64 if swizzle == "none" else WIDTHS[swizzle] // 2
    tensor = tensor_of(dims, 2)
    indices = boxes.rows_of(dims, 32, rows, width)
    kernel = Load(draft, int(boxes.spread(indices.shape, 2, swizzle).max()) + 1)
    expected = boxes.loaded(kernel.before, tensor, indices, swizzle, bytes(2))
    address = draft.tensormap(
        lambda array: TensorMap.tiled("bf16", array, dims, strides_of(dims, 2), (width, 1), swizzle=swizzle),
        tensor.reshape(-1),
    )
    kernel.run(
        indices.size * 2,
        lambda to, bar: draft(
            tma.load(
                f"[{to}]",
                f"[{address}]",
                coordinates(draft, (32, *rows)),
                f"[{bar}]",
                dim=2,
                dst="shared::cluster",
                load_mode="tile::gather4",
            )
        ),
        expected,
    )


@microtest("tf32", "tf32_ftz", "f32", "f32_ftz")
def load_floats(draft: Draft, dtype: str) -> None:
    """Any .f32: tf32 maps round to nearest, subnormals too, and make every NaN one; others change nothing (H100)."""
    dims, box, start = (64, 16), (32, 8), (32, 12)
    rng = np.random.default_rng(68)
    given = words("f32", 32, 1024, rng)
    after = given.copy()
    if dtype.startswith("tf32"):
        after = np.array(
            [
                encode(decode(int(word), F32), TF32) << 13 if decode(int(word), F32).kind != "nan" else 0x7FFFE000
                for word in given
            ],
            np.uint32,
        )
    indices = boxes.tile(dims, start, box)
    kernel = Load(draft, 1024)
    rounded = after.view(np.uint8).reshape(-1, 4)
    expected = boxes.loaded(kernel.before, rounded, indices, "none", bytes(4))
    address = draft.tensormap(lambda array: TensorMap.tiled(dtype, array, dims, strides_of(dims, 4), box), given)
    kernel.run(
        1024,
        lambda to, bar: draft(
            tma.load(f"[{to}]", f"[{address}]", coordinates(draft, start), f"[{bar}]", dim=2, dst="shared::cluster")
        ),
        expected,
    )


@microtest(*((group, own) for group in (1, 2) for own in (True, False) if own or group == 2))
def load_cta_group(draft: Draft, group: Any, own: bool) -> None:
    """The second CTA of a pair loads into its memory; with .cta_group::2 the barrier may be the first one's."""
    dims, box, start = (64, 32), (64, 8), (0, 5)
    tensor = tensor_of(dims, 2)
    indices = boxes.tile(dims, start, box)
    kernel = Load(draft, 1024, ctas=2, receivers=(1,) if own else (0,))
    expected = np.array([kernel.before, boxes.loaded(kernel.before, tensor, indices, "128b", bytes(2))])
    address = draft.tensormap(
        lambda array: TensorMap.tiled("bf16", array, dims, strides_of(dims, 2), box, swizzle="128b"), tensor.reshape(-1)
    )

    def copy(to: Register, bar: Register) -> None:
        if not own:
            first = draft.reg("b32")
            draft(cluster.mapa(first, bar, 0, space="shared::cluster", type="u32"))
            bar = first
        draft(
            tma.load(
                f"[{to}]",
                f"[{address}]",
                coordinates(draft, start),
                f"[{bar}]",
                dim=2,
                dst="shared::cluster",
                cta_group=group,
            )
        )

    kernel.run(1024, copy, expected, meet=True)


@microtest()
def load_multicast_16b(draft: Draft) -> None:
    """The mask's width written out."""
    dims, box, start = (64, 32), (64, 8), (0, 5)
    tensor = tensor_of(dims, 2)
    kernel = Load(draft, 1024, ctas=4, receivers=(1, 3))
    image = boxes.loaded(kernel.before, tensor, boxes.tile(dims, start, box), "none", bytes(2))
    expected = np.array([image if rank in (1, 3) else kernel.before for rank in range(4)])
    address = draft.tensormap(
        lambda array: TensorMap.tiled("bf16", array, dims, strides_of(dims, 2), box), tensor.reshape(-1)
    )
    kernel.run(
        1024,
        lambda to, bar: draft(
            tma.load(
                f"[{to}]",
                f"[{address}]",
                coordinates(draft, start),
                f"[{bar}]",
                dim=2,
                dst="shared::cluster",
                multicast="cluster::16b",
                mask=ranks(draft, (1, 3)),
            )
        ),
        expected,
    )
