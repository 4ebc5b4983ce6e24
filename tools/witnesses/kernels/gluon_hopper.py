"""Kernels in Gluon, for Hopper and after: pipelines by hand, copies of every kind, clusters."""

from __future__ import annotations

import functools

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2
from triton.experimental.gluon.language.nvidia.hopper import (
    cluster,
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from tools.recorded.references import witnesses as references

from ..launch import Buffer, Constant, Descriptor, Witness, output


@gluon.jit
def staged(x, y, n, STAGES: gl.constexpr, BLOCK: gl.constexpr):
    """Rows through a ring of buffers with cp.async and its groups."""
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [gl.num_warps()], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    ring = gl.allocate_shared_memory(gl.float32, [STAGES, BLOCK], shared)
    at = gl.arange(0, BLOCK, layout)
    for stage in gl.static_range(STAGES - 1):
        async_copy.async_load(ring.index(stage), x + stage * BLOCK + at, mask=at < BLOCK)
        async_copy.commit_group()
    total = gl.zeros([BLOCK], gl.float32, layout)
    for row in range(n):
        ahead = row + STAGES - 1
        async_copy.async_load(ring.index(ahead % STAGES), x + ahead * BLOCK + at, mask=(at * 0 + ahead) < n)
        async_copy.commit_group()
        async_copy.wait_group(STAGES - 1)
        gl.barrier()
        total = total * 0.5 + ring.index(row % STAGES).load(layout)
        gl.store(y + row * BLOCK + at, total)
        gl.barrier()
    async_copy.wait_group(0)


@gluon.jit
def arriving(x, y, n, STAGES: gl.constexpr, BLOCK: gl.constexpr):
    """The same with mbarriers on which the copies arrive, and a second set that frees the buffers."""
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [gl.num_warps()], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    ring = gl.allocate_shared_memory(gl.float32, [STAGES, BLOCK], shared)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=gl.num_warps() * 32)
    at = gl.arange(0, BLOCK, layout)
    for stage in gl.static_range(STAGES - 1):
        async_copy.async_load(ring.index(stage), x + stage * BLOCK + at)
        async_copy.mbarrier_arrive(full.index(stage), increment_count=False)
    for row in range(n):
        ahead = row + STAGES - 1
        if ahead < n:
            async_copy.async_load(ring.index(ahead % STAGES), x + ahead * BLOCK + at)
            async_copy.mbarrier_arrive(full.index(ahead % STAGES), increment_count=False)
        mbarrier.wait(full.index(row % STAGES), row // STAGES & 1)
        value = ring.index(row % STAGES).load(layout)
        gl.barrier()
        gl.store(y + row * BLOCK + at, value * 2)
    for stage in gl.static_range(STAGES):
        mbarrier.invalidate(full.index(stage))


@gluon.jit
def warpgroup_product(ad, bd, c, K, STAGES: gl.constexpr, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr):
    """TMA ring, products in flight one behind, all by hand."""
    kind: gl.constexpr = ad.dtype
    a_ring = gl.allocate_shared_memory(kind, [STAGES, BM, BK], ad.layout)
    b_ring = gl.allocate_shared_memory(kind, [STAGES, BN, BK], bd.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
    fence_async_shared()
    row, column = gl.program_id(0) * BM, gl.program_id(1) * BN
    steps = K // BK
    for stage in gl.static_range(STAGES - 2):
        mbarrier.expect(full.index(stage), ad.nbytes_per_cta + bd.nbytes_per_cta, pred=stage < steps)
        tma.async_load(ad, [row, stage * BK], full.index(stage), a_ring.index(stage), pred=stage < steps)
        tma.async_load(bd, [column, stage * BK], full.index(stage), b_ring.index(stage), pred=stage < steps)
    layout: gl.constexpr = gl.NVMMADistributedLayout(
        [3, 0], [gl.num_warps(), 1], [16, BN, 256 // kind.primitive_bitwidth]
    )
    total = gl.zeros([BM, BN], gl.float32, layout)
    for step in range(steps):
        ahead = step + STAGES - 2
        slot = ahead % STAGES
        mbarrier.expect(full.index(slot), ad.nbytes_per_cta + bd.nbytes_per_cta, pred=ahead < steps)
        tma.async_load(ad, [row, ahead * BK], full.index(slot), a_ring.index(slot), pred=ahead < steps)
        tma.async_load(bd, [column, ahead * BK], full.index(slot), b_ring.index(slot), pred=ahead < steps)
        here = step % STAGES
        mbarrier.wait(full.index(here), step // STAGES & 1)
        total = warpgroup_mma(a_ring.index(here), b_ring.index(here).permute((1, 0)), total, is_async=True)
        total = warpgroup_mma_wait(1, deps=(total,))
    total = warpgroup_mma_wait(0, deps=(total,))
    for stage in gl.static_range(STAGES):
        mbarrier.invalidate(full.index(stage))
    rows = row + gl.arange(0, BM, gl.SliceLayout(1, layout))
    columns = column + gl.arange(0, BN, gl.SliceLayout(0, layout))
    gl.store(c + rows[:, None] * (gl.num_programs(1) * BN) + columns[None, :], total)


@gluon.jit
def from_registers(a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr):
    """A warpgroup's product with A in registers, scaled on the way, and B transposed in shared memory."""
    plain: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [gl.num_warps(), 1], [1, 0])
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, N, 16])
    operand: gl.constexpr = gl.DotOperandLayout(0, layout, 2)
    rows = gl.arange(0, M, gl.SliceLayout(1, plain))
    inner = gl.arange(0, K, gl.SliceLayout(0, plain))
    left = gl.load(a + rows[:, None] * K + inner[None, :])
    depth = gl.arange(0, K, gl.SliceLayout(1, plain))
    columns = gl.arange(0, N, gl.SliceLayout(0, plain))
    right = gl.load(b + depth[:, None] * N + columns[None, :])
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([K, N], gl.float16)
    b_shared = gl.allocate_shared_memory(gl.float16, [K, N], shared, right)
    fence_async_shared()
    x = gl.convert_layout(left, operand) * 2
    total = warpgroup_mma(x, b_shared, gl.zeros([M, N], gl.float32, layout), use_acc=False)
    out_rows = gl.arange(0, M, gl.SliceLayout(1, layout))
    out_columns = gl.arange(0, N, gl.SliceLayout(0, layout))
    gl.store(c + out_rows[:, None] * N + out_columns[None, :], total)


@gluon.jit
def warps_product(a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr):
    """mma.sync on fp8 through registers."""
    plain: gl.constexpr = gl.BlockedLayout([1, 16], [8, 4], [gl.num_warps(), 1], [1, 0])
    layout: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [gl.num_warps(), 1], [16, 8])
    rows = gl.arange(0, M, gl.SliceLayout(1, plain))
    inner = gl.arange(0, K, gl.SliceLayout(0, plain))
    columns = gl.arange(0, N, gl.SliceLayout(1, plain))
    x = gl.load(a + rows[:, None] * K + inner[None, :])
    y = gl.load(b + columns[:, None] * K + inner[None, :]).trans(1, 0)
    left = gl.convert_layout(x, gl.DotOperandLayout(0, layout, 4))
    right = gl.convert_layout(y, gl.DotOperandLayout(1, layout, 4))
    total = mma_v2(left, right, gl.zeros([M, N], gl.float32, layout))
    out_rows = gl.arange(0, M, gl.SliceLayout(1, layout))
    out_columns = gl.arange(0, N, gl.SliceLayout(0, layout))
    gl.store(c + out_rows[:, None] * N + out_columns[None, :], total)


@gluon.jit
def _load_part(xd, ring, full, empty, n, STAGES: gl.constexpr, BLOCK: gl.constexpr):
    for at in range(n):
        slot = at % STAGES
        mbarrier.wait(empty.index(slot), (at // STAGES & 1) ^ 1)
        mbarrier.expect(full.index(slot), xd.nbytes_per_cta)
        tma.async_load(xd, [at, gl.program_id(0) * BLOCK], full.index(slot), ring.index(slot))


@gluon.jit
def _sum_part(y, ring, full, empty, n, STAGES: gl.constexpr, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 2], [1, 32], [1, gl.num_warps()], [1, 0])
    total = gl.zeros([1, BLOCK], gl.float32, layout)
    for at in range(n):
        slot = at % STAGES
        mbarrier.wait(full.index(slot), at // STAGES & 1)
        total += ring.index(slot).load(layout).to(gl.float32)
        mbarrier.arrive(empty.index(slot), count=1)
    column = gl.arange(0, BLOCK, gl.SliceLayout(0, layout))
    gl.store(y + gl.program_id(0) * BLOCK + column[None, :], total)


@gluon.jit
def _largest_part(z, ring, full, empty, n, STAGES: gl.constexpr, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 2], [1, 32], [1, gl.num_warps()], [1, 0])
    highest = gl.full([1, BLOCK], -float("inf"), gl.float32, layout)
    for at in range(n):
        slot = at % STAGES
        mbarrier.wait(full.index(slot), at // STAGES & 1)
        highest = gl.maximum(highest, ring.index(slot).load(layout).to(gl.float32))
        mbarrier.arrive(empty.index(slot), count=1)
    column = gl.arange(0, BLOCK, gl.SliceLayout(0, layout))
    gl.store(z + gl.program_id(0) * BLOCK + column[None, :], highest)


@gluon.jit
def specialized(xd, y, z, n, STAGES: gl.constexpr, BLOCK: gl.constexpr):
    """A partition that loads, two that consume what it loads, of different numbers of warps."""
    ring = gl.allocate_shared_memory(gl.float16, [STAGES, 1, BLOCK], xd.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=2)
    fence_async_shared()
    gl.warp_specialize(
        [
            (_sum_part, (y, ring, full, empty, n, STAGES, BLOCK)),
            (_largest_part, (z, ring, full, empty, n, STAGES, BLOCK)),
            (_load_part, (xd, ring, full, empty, n, STAGES, BLOCK)),
        ],
        [2, 1],
        [64, 24],
    )


@gluon.jit
def reduced(x, sd, ld, hd, bd, od, ed, BLOCK: gl.constexpr):
    """TMA reductions of every operation to global memory."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [gl.num_warps(), 1], [1, 0])
    rows = gl.arange(0, BLOCK, gl.SliceLayout(1, layout))
    columns = gl.arange(0, BLOCK, gl.SliceLayout(0, layout))
    value = gl.load(x + gl.program_id(0) * BLOCK * BLOCK + rows[:, None] * BLOCK + columns[None, :])
    tile = gl.allocate_shared_memory(gl.int32, [BLOCK, BLOCK], sd.layout, value)
    fence_async_shared()
    tma.async_atomic_add(sd, [0, 0], tile)
    tma.async_atomic_min(ld, [0, 0], tile)
    tma.async_atomic_max(hd, [0, 0], tile)
    tma.async_atomic_and(bd, [0, 0], tile)
    tma.async_atomic_or(od, [0, 0], tile)
    tma.async_atomic_xor(ed, [0, 0], tile)
    tma.store_wait(0)


@gluon.jit
def patches(xd, y, N: gl.constexpr, H: gl.constexpr, W: gl.constexpr, C: gl.constexpr, PIXELS: gl.constexpr):
    """The nine shifts of a 3 x 3 convolution, each loaded by TMA as im2col with padding."""
    tile = gl.allocate_shared_memory(gl.float16, [PIXELS, C], xd.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    fence_async_shared()
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [gl.num_warps(), 1], [1, 0])
    first = gl.program_id(0) * PIXELS
    image, rest = first // (H * W), first % (H * W)
    rows = gl.arange(0, PIXELS, gl.SliceLayout(1, layout))
    columns = gl.arange(0, C, gl.SliceLayout(0, layout))
    phase = 0
    for r in gl.static_range(3):
        for s in gl.static_range(3):
            mbarrier.expect(bar, xd.nbytes_per_cta)
            tma.async_load_im2col(xd, [image, rest // W - 1, rest % W - 1, 0], [r, s], bar, tile)
            mbarrier.wait(bar, phase)
            phase ^= 1
            value = tile.load(layout)
            gl.barrier()
            where = y + (r * 3 + s) * (N * H * W * C) + (first + rows[:, None]) * C + columns[None, :]
            gl.store(where, value)
    mbarrier.invalidate(bar)


@gluon.jit
def scattered(x, index, y, z, BLOCK: gl.constexpr):
    """Shared memory by index: gather, scatter and atomics in it."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    at = gl.arange(0, BLOCK, layout)
    value = gl.load(x + at)
    where = gl.load(index + at)
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    table = gl.allocate_shared_memory(gl.int32, [BLOCK], shared, value)
    gl.barrier()
    gl.store(y + at, table.gather(where, 0))
    gl.barrier()
    table.scatter(value * 3, where, 0)
    gl.barrier()
    gl.store(z + at, table.load(layout))


@gluon.jit
def across(x, y, M: gl.constexpr, N: gl.constexpr):
    """A tensor spread over a cluster of four CTAs, reduced and transposed across them (distributed shared memory)."""
    rows_apart: gl.constexpr = gl.BlockedLayout(
        [1, 4], [4, 8], [gl.num_warps(), 1], [1, 0], cga_layout=[[1, 0], [2, 0]]
    )
    columns_apart: gl.constexpr = gl.BlockedLayout(
        [4, 1], [8, 4], [1, gl.num_warps()], [0, 1], cga_layout=[[0, 1], [0, 2]]
    )
    rows = gl.arange(0, M, gl.SliceLayout(1, rows_apart))
    columns = gl.arange(0, N, gl.SliceLayout(0, rows_apart))
    value = gl.load(x + rows[:, None] * N + columns[None, :])
    value = value - gl.sum(value, 0)[None, :] / M
    turned = gl.convert_layout(value, columns_apart)
    out_rows = gl.arange(0, M, gl.SliceLayout(1, columns_apart))
    out_columns = gl.arange(0, N, gl.SliceLayout(0, columns_apart))
    gl.store(y + out_columns[None, :] * M + out_rows[:, None], turned)


@gluon.jit
def spread(xd, y, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    """One load for both CTAs of a cluster, multicast, that each adds to its own half."""
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    tile = gl.allocate_shared_memory(gl.float16, [ROWS, COLUMNS], xd.layout)
    fence_async_shared(cluster=True)
    cluster.barrier()
    mbarrier.expect(bar, xd.nbytes_per_cta)
    tma.async_load(xd, [0, 0], bar, tile, multicast=True)
    mbarrier.wait(bar, 0)
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [gl.num_warps(), 1], [1, 0], cga_layout=[[0, 0]])
    value = tile.load(layout).to(gl.float32)
    rows = gl.arange(0, ROWS, gl.SliceLayout(1, layout))
    columns = gl.arange(0, COLUMNS, gl.SliceLayout(0, layout))
    gl.store(y + rows[:, None] * COLUMNS + columns[None, :], value + 1)
    cluster.barrier()
    mbarrier.invalidate(bar)


def _fp8(name: str) -> gl.dtype:
    return {"fp16": gl.float16, "bf16": gl.bfloat16, "e4m3": gl.float8e4nv, "e5m2": gl.float8e5}[name]


def _layout(block: list[int], kind: str, **more: object) -> gl.NVMMASharedLayout:
    return gl.NVMMASharedLayout.get_default_for(block, _fp8(kind), **more)


def _warpgroup_product(
    kind: str, stages: int, made: tuple[str, ...], n: int = 128, k: int = 256, **options: int
) -> Witness:
    narrow = kind in ("e4m3", "e5m2")
    depth = 128 if narrow else 64
    return Witness(
        f"warpgroup_product_{kind}",
        warpgroup_product,
        (2, 2),
        made,
        {
            "ad": Descriptor("a", (64 * options["num_warps"] // 4, depth), layout=_layout([64, depth], kind)),
            "bd": Descriptor("b", (n, depth), layout=_layout([n, depth], kind)),
            "c": output("fp32", 32 * options["num_warps"], 2 * n),
            "K": k,
            "STAGES": Constant(stages),
            "BM": Constant(16 * options["num_warps"]),
            "BN": Constant(n),
            "BK": Constant(depth),
        },
        functools.partial(references.f8_product, kind=kind)
        if narrow
        else functools.partial(references.product, a=kind, b=kind, ta=False, tb=True),
        options=options,
        tolerance=(0, 0) if narrow else (1e-3, 1e-2),
        buffers={"a": Buffer(kind, (32 * options["num_warps"], k)), "b": Buffer(kind, (2 * n, k))},
    )


_TILE = gl.NVMMASharedLayout.get_default_for([32, 32], gl.int32)

WITNESSES = [
    Witness(
        "staged", staged, (1,), ("g39_90", "g39_100"),
        {
            "x": Buffer("fp32", (9, 512)), "y": output("fp32", 9, 512), "n": 9, "STAGES": Constant(3),
            "BLOCK": Constant(512),
        },
        references.staged, tolerance=(1e-5, 1e-5),
    ),
    Witness(
        "arriving", arriving, (1,), ("g39_90", "g39_100"),
        {
            "x": Buffer("fp32", (9, 512)), "y": output("fp32", 9, 512), "n": 9, "STAGES": Constant(3),
            "BLOCK": Constant(512),
        },
        references.arriving, tolerance=(0, 0),
    ),
    _warpgroup_product("fp16", 4, ("g39_90",), num_warps=4),
    _warpgroup_product("e4m3", 3, ("g39_90",), n=64, k=512, num_warps=8),
    Witness(
        "from_registers", from_registers, (1,), ("g39_90",),
        {
            "a": Buffer("fp16", (64, 64)), "b": Buffer("fp16", (64, 128)), "c": output("fp32", 64, 128),
            "M": Constant(64), "N": Constant(128), "K": Constant(64),
        },
        references.from_registers, tolerance=(1e-4, 1e-3),
    ),
    Witness(
        "warps_product", warps_product, (1,), ("g39_90", "g39_100"),
        {
            "a": Buffer("e4m3", (32, 64)), "b": Buffer("e4m3", (32, 64)), "c": output("fp32", 32, 32),
            "M": Constant(32), "N": Constant(32), "K": Constant(64),
        },
        functools.partial(references.product, a="e4m3", b="e4m3", ta=False, tb=True),
        options={"num_warps": 2}, tolerance=(1e-3, 1e-2),
    ),
    Witness(
        "specialized", specialized, (3,), ("g39_90", "g39_100"),
        {
            "xd": Descriptor("x", (1, 256), layout=_layout([1, 256], "fp16")), "y": output("fp32", 768),
            "z": output("fp32", 768), "n": 11, "STAGES": Constant(4), "BLOCK": Constant(256),
        },
        references.specialized, tolerance=(1e-4, 1e-3), buffers={"x": Buffer("fp16", (11, 768))},
    ),
    Witness(
        "reduced", reduced, (3,), ("g39_90", "g39_100"),
        {
            "x": Buffer("i32", (96, 32), "randint", lo=-(2**30), hi=2**30),
            **{f"{name}d": Descriptor(name, (32, 32), layout=_TILE) for name in "slhboe"}, "BLOCK": Constant(32),
        },
        references.reduced, tolerance=(0, 0),
        buffers={name: Buffer("i32", (32, 32), "randint", lo=-(2**30), hi=2**30, role="inout") for name in "slhboe"},
    ),
    Witness(
        "patches", patches, (2,), ("g39_90", "g39_100"),
        {
            "xd": Descriptor(
                "x", (64, 32), layout=_layout([64, 32], "fp16"), im2col=([-1, -1], [-1, -1], [1, 1, 1, 1])
            ),
            "y": output("fp16", 9, 128, 32), "N": Constant(2), "H": Constant(8), "W": Constant(8), "C": Constant(32),
            "PIXELS": Constant(64),
        },
        references.patches, tolerance=(0, 0), buffers={"x": Buffer("fp16", (2, 8, 8, 32))},
    ),
    Witness(
        "scattered", scattered, (1,), ("g39_90",),
        {
            "x": Buffer("i32", (256,), "randint", lo=-99, hi=99), "index": Buffer("i32", (256,), "perm", n=256),
            "y": output("i32", 256), "z": output("i32", 256), "BLOCK": Constant(256),
        },
        references.scattered, tolerance=(0, 0),
    ),
    Witness(
        "across", across, (1,), ("g39_90", "g39_100"),
        {"x": Buffer("fp32", (64, 64)), "y": output("fp32", 64, 64), "M": Constant(64), "N": Constant(64)},
        references.across, options={"num_ctas": 4}, tolerance=(1e-4, 1e-5),
    ),
    Witness(
        "spread", spread, (1,), ("g39_90", "g39_100"),
        {
            "xd": Descriptor("x", (64, 64), layout=_layout([64, 64], "fp16", cga_layout=[[0, 0]])),
            "y": output("fp32", 64, 64), "ROWS": Constant(64), "COLUMNS": Constant(64),
        },
        references.spread, options={"num_ctas": 2}, tolerance=(0, 0), buffers={"x": Buffer("fp16", (64, 64))},
    ),
]  # fmt: skip
