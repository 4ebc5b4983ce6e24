"""Kernels in Gluon for Blackwell: tensor memory, products of all kinds, pairs of CTAs, cluster launch control."""

from __future__ import annotations

import functools

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
    add2,
    allocate_tensor_memory,
    clc,
    cluster,
    fence_async_shared,
    fma2,
    mbarrier,
    mul2,
    tcgen05_commit,
    tcgen05_mma,
    tcgen05_mma_scaled,
    tma,
)

from tools.recorded.references import witnesses as references

from ..launch import Buffer, Constant, Descriptor, Witness, output


@gluon.jit
def through_tensor_memory(x, y, M: gl.constexpr, N: gl.constexpr, SHAPE: gl.constexpr, BACK: gl.constexpr):
    """Stored to tensor memory in one shape, loaded in another, in halves too."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [gl.num_warps(), 1], [1, 0])
    rows = gl.arange(0, M, gl.SliceLayout(1, layout))
    columns = gl.arange(0, N, gl.SliceLayout(0, layout))
    at = rows[:, None] * N + columns[None, :]
    value = gl.load(x + at)
    kind: gl.constexpr = value.dtype
    stride: gl.constexpr = 1
    tmem = allocate_tensor_memory(kind, [M, N], TensorMemoryLayout([M, N], stride))
    tmem.store(gl.convert_layout(value, tmem.get_reg_layout(instr_variant=SHAPE)))
    left = tmem.slice(0, N // 2)
    right = tmem.slice(N // 2, N // 2)
    a = left.load(left.get_reg_layout(instr_variant=BACK))
    b = right.load(right.get_reg_layout(instr_variant=BACK))
    left.store(a + b)
    right.store(a - b)
    result = tmem.load(tmem.get_reg_layout(instr_variant=BACK))
    gl.store(y + at, gl.convert_layout(result, layout))


@gluon.jit
def product(
    a,
    b,
    c,
    M: gl.constexpr,
    N: gl.constexpr,
    K: gl.constexpr,
    TA: gl.constexpr,
    TB: gl.constexpr,
    FROM_TENSOR: gl.constexpr,
):
    """One product, operands stored to shared memory by threads in either order, A in tensor memory or not."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [gl.num_warps(), 1], [1, 0])
    kind: gl.constexpr = a.dtype.element_ty
    if TA:
        rows = gl.arange(0, K, gl.SliceLayout(1, layout))
        columns = gl.arange(0, M, gl.SliceLayout(0, layout))
        x = gl.load(a + rows[:, None] * M + columns[None, :])
        a_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for([K, M], kind)
        left = gl.allocate_shared_memory(kind, [K, M], a_layout, x).permute((1, 0))
    else:
        rows = gl.arange(0, M, gl.SliceLayout(1, layout))
        columns = gl.arange(0, K, gl.SliceLayout(0, layout))
        x = gl.load(a + rows[:, None] * K + columns[None, :])
        if FROM_TENSOR:
            left = allocate_tensor_memory(kind, [M, K], TensorMemoryLayout([M, K], 1))
            left.store(gl.convert_layout(x, left.get_reg_layout()))
        else:
            a_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, K], kind)
            left = gl.allocate_shared_memory(kind, [M, K], a_layout, x)
    if TB:
        rows = gl.arange(0, N, gl.SliceLayout(1, layout))
        columns = gl.arange(0, K, gl.SliceLayout(0, layout))
        y = gl.load(b + rows[:, None] * K + columns[None, :])
        b_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for([N, K], kind)
        right = gl.allocate_shared_memory(kind, [N, K], b_layout, y).permute((1, 0))
    else:
        rows = gl.arange(0, K, gl.SliceLayout(1, layout))
        columns = gl.arange(0, N, gl.SliceLayout(0, layout))
        y = gl.load(b + rows[:, None] * N + columns[None, :])
        b_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for([K, N], kind)
        right = gl.allocate_shared_memory(kind, [K, N], b_layout, y)
    fence_async_shared()
    total = allocate_tensor_memory(gl.float32, [M, N], TensorMemoryLayout([M, N], 1))
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    tcgen05_mma(left, right, total, use_acc=False)
    tcgen05_mma(left, right, total, mbarriers=[bar])
    mbarrier.wait(bar, 0)
    mbarrier.invalidate(bar)
    result = total.load()
    reg: gl.constexpr = total.get_reg_layout()
    out_rows = gl.arange(0, M, gl.SliceLayout(1, reg))
    out_columns = gl.arange(0, N, gl.SliceLayout(0, reg))
    gl.store(c + out_rows[:, None] * N + out_columns[None, :], result)


@gluon.jit
def scaled(
    ad,
    bd,
    sa,
    sb,
    c,
    M: gl.constexpr,
    N: gl.constexpr,
    K: gl.constexpr,
    A: gl.constexpr,
    B: gl.constexpr,
    VECTOR: gl.constexpr,
):
    """A block-scaled product whose scale factors go to tensor memory through registers."""
    a = gl.allocate_shared_memory(ad.dtype, ad.block_shape, ad.layout)
    b = gl.allocate_shared_memory(bd.dtype, bd.block_shape, bd.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    fence_async_shared()
    mbarrier.expect(bar, ad.nbytes_per_cta + bd.nbytes_per_cta)
    tma.async_load(ad, [0, 0], bar, a)
    tma.async_load(bd, [0, 0], bar, b)
    a_scale = allocate_tensor_memory(sa.dtype.element_ty, [M, K // VECTOR], TensorMemoryScalesLayout())
    b_scale = allocate_tensor_memory(sb.dtype.element_ty, [N, K // VECTOR], TensorMemoryScalesLayout())
    reg_a: gl.constexpr = a_scale.get_reg_layout()
    reg_b: gl.constexpr = b_scale.get_reg_layout()
    rows = gl.arange(0, M, gl.SliceLayout(1, reg_a))
    groups = gl.arange(0, K // VECTOR, gl.SliceLayout(0, reg_a))
    a_scale.store(gl.load(sa + rows[:, None] * (K // VECTOR) + groups[None, :]))
    rows = gl.arange(0, N, gl.SliceLayout(1, reg_b))
    groups = gl.arange(0, K // VECTOR, gl.SliceLayout(0, reg_b))
    b_scale.store(gl.load(sb + rows[:, None] * (K // VECTOR) + groups[None, :]))
    mbarrier.wait(bar, 0)
    total = allocate_tensor_memory(gl.float32, [M, N], TensorMemoryLayout([M, N], 1))
    tcgen05_mma_scaled(a, b.permute((1, 0)), total, a_scale, b_scale, A, B, use_acc=False, mbarriers=[bar])
    mbarrier.wait(bar, 1)
    mbarrier.invalidate(bar)
    result = total.load()
    reg: gl.constexpr = total.get_reg_layout()
    out_rows = gl.arange(0, M, gl.SliceLayout(1, reg))
    out_columns = gl.arange(0, N, gl.SliceLayout(0, reg))
    gl.store(c + out_rows[:, None] * N + out_columns[None, :], result)


@gluon.jit
def stealing(x, y, count, n, BLOCK: gl.constexpr):
    """A persistent kernel that takes over the work of CTAs that have not begun."""
    layout: gl.constexpr = gl.BlockedLayout([2], [32], [gl.num_warps()], [0])
    result = gl.allocate_shared_memory(gl.int64, [2], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    fence_async_shared()
    tile = gl.program_id(0)
    more = True
    phase = 0
    at = gl.arange(0, BLOCK, layout)
    while more:
        mbarrier.expect(bar, 16)
        clc.try_cancel(result, bar)
        value = gl.load(x + tile * BLOCK + at)
        gl.store(y + tile * BLOCK + at, gl.exp(value))
        gl.atomic_add(count + tile, 1)
        mbarrier.wait(bar, phase)
        answer = clc.load_result(result)
        more = answer.is_canceled()
        tile = answer.program_id(0)
        phase ^= 1
        gl.barrier()
    mbarrier.invalidate(bar)


@gluon.jit
def _load_tiles(ad, bd, a_ring, b_ring, full, empty, row, column, steps, STAGES: gl.constexpr, BK: gl.constexpr):
    for step in range(steps):
        slot = step % STAGES
        mbarrier.wait(empty.index(slot), (step // STAGES & 1) ^ 1)
        mbarrier.expect(full.index(slot), ad.nbytes_per_cta + bd.nbytes_per_cta)
        tma.async_load(ad, [row, step * BK], full.index(slot), a_ring.index(slot))
        tma.async_load(bd, [column, step * BK], full.index(slot), b_ring.index(slot))


@gluon.jit
def _multiply_tiles(total, a_ring, b_ring, full, empty, done, steps, STAGES: gl.constexpr):
    use = False
    for step in range(steps):
        slot = step % STAGES
        mbarrier.wait(full.index(slot), step // STAGES & 1)
        tcgen05_mma(a_ring.index(slot), b_ring.index(slot).permute((1, 0)), total, use_acc=use)
        tcgen05_commit(empty.index(slot))
        use = True
    tcgen05_commit(done)


@gluon.jit
def _store_tile(total, cd, done, row, column):
    mbarrier.wait(done, 0)
    tile = gl.allocate_shared_memory(cd.dtype, cd.block_shape, cd.layout)
    tile.store(total.load().to(cd.dtype))
    fence_async_shared()
    tma.async_store(cd, [row, column], tile)
    tma.store_wait(0)


@gluon.jit
def partitions(ad, bd, cd, K, STAGES: gl.constexpr):
    """A warp that loads, a warp that multiplies, a warpgroup that stores: with one CTA or a pair."""
    BM: gl.constexpr = ad.block_shape[0]
    BK: gl.constexpr = ad.block_shape[1]
    BN: gl.constexpr = bd.block_shape[0]
    pair: gl.constexpr = gl.num_ctas() == 2
    a_ring = gl.allocate_shared_memory(ad.dtype, [STAGES, BM, BK], ad.layout)
    b_ring = gl.allocate_shared_memory(bd.dtype, [STAGES, BN, BK], bd.layout)
    full = mbarrier.allocate_mbarrier(batch=STAGES, two_ctas=pair)
    empty = mbarrier.allocate_mbarrier(batch=STAGES)
    done = mbarrier.allocate_mbarrier()
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=1)
    mbarrier.init(done, count=1)
    fence_async_shared(cluster=pair)
    if pair:
        cluster.barrier()
    tmem: gl.constexpr = TensorMemoryLayout([128, BN], 1, cga_layout=[[1, 0]] if pair else [], two_ctas=pair)
    total = allocate_tensor_memory(gl.float32, [BM, BN], tmem)
    row, column = gl.program_id(0) * BM, gl.program_id(1) * BN
    steps = K // BK
    gl.warp_specialize(
        [
            (_store_tile, (total, cd, done, row, column)),
            (_load_tiles, (ad, bd, a_ring, b_ring, full, empty, row, column, steps, STAGES, BK)),
            (_multiply_tiles, (total, a_ring, b_ring, full, empty, done, steps, STAGES)),
        ],
        [1, 1],
        [40, 40],
    )


@gluon.jit
def gathered(xd, yd, index, BLOCK: gl.constexpr, WIDTH: gl.constexpr):
    """Rows by index from one tensor to rows by index of another, through TMA."""
    layout: gl.constexpr = gl.SliceLayout(0, gl.BlockedLayout([1, 4], [32, 1], [1, gl.num_warps()], [1, 0]))
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout)
    tile = gl.allocate_shared_memory(gl.bfloat16, [BLOCK, WIDTH], xd.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    fence_async_shared()
    mbarrier.expect(bar, BLOCK * WIDTH * 2)
    tma.async_gather(xd, gl.load(index + at), WIDTH // 2, bar, tile)
    mbarrier.wait(bar, 0)
    mbarrier.invalidate(bar)
    tma.async_scatter(yd, gl.load(index + gl.num_programs(0) * BLOCK + at), 0, tile)
    tma.store_wait(0)


@gluon.jit
def packed(x, y, z, w, n, BLOCK: gl.constexpr):
    """Packed arithmetic on pairs."""
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [gl.num_warps()], [0])
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout)
    a = gl.load(x + at, mask=at < n, other=0.0)
    b = gl.load(y + at, mask=at < n, other=0.0)
    gl.store(z + at, fma2(a, b, add2(a, b)), mask=at < n)
    gl.store(w + at, mul2(a, a), mask=at < n)


_KINDS = {"fp16": gl.float16, "bf16": gl.bfloat16, "e4m3": gl.float8e4nv, "e5m2": gl.float8e5, "e2m1x2": gl.uint8}


def _through(name: str, kind: str, m: int, n: int, shape: str, back: str, made: tuple[str, ...], warps: int) -> Witness:
    return Witness(
        f"tensor_memory_{name}",
        through_tensor_memory,
        (1,),
        made,
        {
            "x": Buffer(kind, (m, n)),
            "y": output(kind, m, n),
            "M": Constant(m),
            "N": Constant(n),
            "SHAPE": Constant(shape),
            "BACK": Constant(back),
        },
        functools.partial(references.through, kind=kind),
        options={"num_warps": warps},
        tolerance=(1e-2, 1e-2),
    )


def _product(
    name: str,
    kind: str,
    sizes: tuple[int, int, int],
    *,
    ta: bool = False,
    tb: bool = False,
    tensor: bool = False,
    warps: int = 4,
) -> Witness:
    m, n, k = sizes
    return Witness(
        f"tensor_product_{name}",
        product,
        (1,),
        ("g39_100",),
        {
            "a": Buffer(kind, (k, m) if ta else (m, k)),
            "b": Buffer(kind, (n, k) if tb else (k, n)),
            "c": output("fp32", m, n),
            "M": Constant(m),
            "N": Constant(n),
            "K": Constant(k),
            "TA": Constant(ta),
            "TB": Constant(tb),
            "FROM_TENSOR": Constant(tensor),
        },
        functools.partial(references.doubled_product, kind=kind, ta=ta, tb=tb),
        options={"num_warps": warps},
        tolerance=(1e-3, 1e-2),
    )


def _scaled(name: str, a: str, b: str, scale: str, vector: int, n: int = 64, k: int = 256) -> Witness:
    def described(buffer: str, kind: str, rows: int, other: str) -> tuple[Buffer, Descriptor]:
        packed = kind == "e2m1x2"
        padded = packed and other != "e2m1x2"
        width = k // 2 if packed else k
        layout = gl.NVMMASharedLayout.get_default_for([rows, width], _KINDS[kind], fp4_padded=padded)
        init = {"init": "bits"} if packed else {}
        return Buffer(kind, (rows, width), **init), Descriptor(buffer, (rows, width), layout=layout)

    (a_buffer, ad), (b_buffer, bd) = described("a", a, 128, b), described("b", b, n, a)
    scales = {"init": "randint", "lo": 122, "hi": 131} if scale == "e8m0" else {"init": "e4m3pos"}
    return Witness(
        f"scaled_{name}",
        scaled,
        (1,),
        ("g39_100",),
        {
            "ad": ad,
            "bd": bd,
            "sa": Buffer(scale, (128, k // vector), **scales),
            "sb": Buffer(scale, (n, k // vector), **scales),
            "c": output("fp32", 128, n),
            "M": Constant(128),
            "N": Constant(n),
            "K": Constant(k),
            "A": Constant(a.removesuffix("x2")),
            "B": Constant(b.removesuffix("x2")),
            "VECTOR": Constant(vector),
        },
        functools.partial(references.scaled, a=a, b=b, scale=scale, vector=vector),
        tolerance=(1e-3, 1e-1),
        buffers={"a": a_buffer, "b": b_buffer},
    )


def _partitions(name: str, kind: str, m: int, n: int, k: int, *, ctas: int = 1, stages: int = 3) -> Witness:
    across = [[1, 0]] if ctas == 2 else []
    depth = 128 // (2 if kind in ("fp16", "bf16") else 1)

    def layout(block: list[int], element: str) -> gl.NVMMASharedLayout:
        return gl.NVMMASharedLayout.get_default_for(block, _KINDS[element], cga_layout=across)

    bm = 128 * ctas
    return Witness(
        f"partitions_{name}",
        partitions,
        (m // bm, 2),
        ("g39_100",),
        {
            "ad": Descriptor("a", (bm, depth), layout=layout([bm, depth], kind)),
            "bd": Descriptor("b", (n, depth), layout=layout([n, depth], kind)),
            "cd": Descriptor("c", (bm, n), layout=layout([bm, n], "fp16")),
            "K": k,
            "STAGES": Constant(stages),
        },
        functools.partial(references.product, a=kind, b=kind, ta=False, tb=True),
        options={"num_ctas": ctas},
        tolerance=(2e-3, 5e-2),
        buffers={"a": Buffer(kind, (m, k)), "b": Buffer(kind, (2 * n, k)), "c": output("fp16", m, 2 * n)},
    )


_ROWS = gl.NVMMASharedLayout.get_default_for([1, 64], gl.bfloat16)

WITNESSES = [
    _through("32x32b_16x64b", "fp32", 128, 64, "32x32b", "16x64b", ("g39_100",), 4),
    _through("16x128b_16x256b", "fp32", 128, 64, "16x128b", "16x256b", ("g39_100",), 4),
    _through("implicit", "fp32", 64, 64, "32x32b", "32x32b", ("g39_100",), 4),
    _through("half_8_warps", "fp16", 128, 128, "32x32b", "32x32b", ("g39_100",), 8),
    _through("64_rows", "fp32", 64, 128, "16x256b", "16x128b", ("g39_100",), 4),
    _product("f16_tb", "fp16", (128, 64, 64), tb=True),
    _product("bf16_ta", "bf16", (128, 128, 32), ta=True),
    _product("e4m3_tb", "e4m3", (128, 64, 128), tb=True, warps=8),
    _product("e5m2_ta", "e5m2", (128, 32, 64), ta=True),
    _product("64_rows", "fp16", (64, 64, 64), tb=True),
    _product("from_tensor_memory", "fp16", (128, 64, 64), tensor=True),
    _product("wide", "bf16", (128, 256, 64)),
    _scaled("mxfp8", "e4m3", "e5m2", "e8m0", 32),
    _scaled("mxfp4", "e2m1x2", "e2m1x2", "e8m0", 32),
    _scaled("nvfp4", "e2m1x2", "e2m1x2", "e4m3", 16),
    _scaled("mixed", "e4m3", "e2m1x2", "e8m0", 32, n=128),
    _scaled("mixed_other", "e2m1x2", "e5m2", "e8m0", 32, n=32),
    Witness(
        "stealing", stealing, (300,), ("g39_100",),
        {
            "x": Buffer("fp32", (300, 128)), "y": output("fp32", 300, 128),
            "count": Buffer("i32", (300,), "zeros", role="inout"), "n": 300, "BLOCK": Constant(128),
        },
        references.stealing, options={"num_warps": 2}, tolerance=(1e-5, 1e-6),
    ),
    _partitions("f16", "fp16", 256, 64, 320),
    _partitions("f16_pair", "fp16", 512, 128, 256, ctas=2),
    _partitions("e4m3_pair", "e4m3", 256, 256, 512, ctas=2, stages=2),
    Witness(
        "gathered", gathered, (2,), ("g39_100",),
        {
            "xd": Descriptor("x", (1, 64), layout=_ROWS), "yd": Descriptor("y", (1, 64), layout=_ROWS),
            "index": Buffer("i32", (128,), "perm", n=128), "BLOCK": Constant(32), "WIDTH": Constant(64),
        },
        references.gathered_scattered, tolerance=(0, 0),
        buffers={"x": Buffer("bf16", (128, 128)), "y": Buffer("bf16", (128, 64), "zeros", role="inout")},
    ),
    Witness(
        "packed", packed, (2,), ("g39_100",),
        {
            "x": Buffer("fp32", (1000,)), "y": Buffer("fp32", (1000,)), "z": output("fp32", 1000),
            "w": output("fp32", 1000), "n": 1000, "BLOCK": Constant(512),
        },
        references.packed, tolerance=(1e-6, 1e-6),
    ),
]  # fmt: skip
