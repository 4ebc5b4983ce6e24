"""An attention head for sm_100a: O = softmax(Q·Kᵀ / √64)·V, 128 queries a CTA.

One thread loads by TMA, one issues the MMAs, and 128 threads do the softmax of a row each. Limits: one head of 64
columns, bf16 in and fp32 out, no mask; any number of queries and keys. docs/tutorial-blackwell.md explains it.
"""

import math

import ml_dtypes
import numpy as np

from ptxgen import Job
from ptxgen.builder import KernelBuilder
from ptxgen.descriptors import InstructionDescriptor, SmemDescriptor, TensorMap
from ptxgen.instr import (
    barrier,
    control,
    conversion,
    floating,
    integer,
    mbarrier,
    memory,
    move,
    predicate,
    tcgen05,
    tma,
)

QUERIES, KEYS, WIDTH, STAGES = 128, 64, 64, 2
LINE = 128  # bytes of a row of Q, K and V, and of the 128-byte swizzle
Q_BYTES, K_BYTES, V_BYTES = QUERIES * LINE, KEYS * LINE, KEYS * LINE
S_COLUMN, P_COLUMN, O_COLUMN, COLUMNS = 0, KEYS, KEYS + KEYS // 2, 256
LOAD_WARP, MMA_WARP, THREADS = 4, 5, 192
TO_EXPONENT = math.log2(math.e) / math.sqrt(WIDTH)

# Rows of 128 bytes, swizzled: 8 of them are a group, and the next group is 1024 bytes further on.
K_MAJOR = SmemDescriptor(start_address=0, leading_byte_offset=16, stride_byte_offset=1024, swizzle="128B")
# The same bytes with N (columns of V) contiguous: the 1024 bytes are now 8 keys.
MN_MAJOR = SmemDescriptor(start_address=0, leading_byte_offset=V_BYTES, stride_byte_offset=1024, swizzle="128B")
TYPES = {"kind": "f16", "a_type": "bf16", "b_type": "bf16", "d_type": "f32", "m": QUERIES}
SCORES = InstructionDescriptor(n=KEYS, **TYPES)
OUTPUT = InstructionDescriptor(n=WIDTH, b_major="mn", **TYPES)

# Setup: parameters, shared memory, mbarriers, tensor memory.
k = KernelBuilder("attention", "sm_100a", threads=THREADS)
map_q, map_k, map_v = k.tensormap("map_q"), k.tensormap("map_k"), k.tensormap("map_v")
out, queries, keys = k.pointer("out"), k.scalar("u32", "queries"), k.scalar("u32", "keys")
q_tile = k.tile("q", Q_BYTES, K_MAJOR)
k_tile, v_tile = k.tile("k", STAGES * K_BYTES, K_MAJOR), k.tile("v", STAGES * V_BYTES, MN_MAJOR)
kv = k.ring("kv", STAGES)
q_full, s_full, p_full, o_full = (k.mbarriers(name, 1) for name in ("q_full", "s_full", "p_full", "o_full"))
slot = k.shared("tmem", 4)
thread, warp = k.special("tid.x"), k.warp()
first_query = k.special("ctaid.x") * QUERIES
blocks = (keys + (KEYS - 1)) // KEYS

with k.when(k.compare(thread, "==", 0)):
    for each, arrivals in ((q_full, 1), (s_full, 1), (p_full, QUERIES), (o_full, 1)):
        k(mbarrier.init(each, arrivals, space="shared::cta"))
    kv.initialize()
with k.role("allocates", 0, warp):
    k(tcgen05.alloc(slot, COLUMNS, cta_group=1, space="shared::cta"))
    k(tcgen05.relinquish_alloc_permit(cta_group=1))
k(tcgen05.fence(where="before_thread_sync"), barrier.bar_sync(0), tcgen05.fence(where="after_thread_sync"))
tensor = k.reg("b32", "tensor")
k(memory.ld(tensor, slot, space="shared", type="b32"))
s_tensor, p_tensor, o_tensor = tensor + S_COLUMN, tensor + P_COLUMN, tensor + O_COLUMN


def load(target, source, row, bar):
    """A box of whole rows; rows outside the tensor become zeros."""
    k(tma.load(target, source, [0, row], bar, dim=2, dst="shared::cta"))


def commit(bar):
    """An arrival on an mbarrier once all earlier MMAs of this thread are complete."""
    k(tcgen05.commit(bar, cta_group=1, space="shared::cluster"))


def wait(bar, parity):
    """Wait for a phase of an mbarrier, and order what follows in tensor memory after it."""
    k.wait(bar, parity)
    k(tcgen05.fence(where="after_thread_sync"))


# Loads: Q once, then the blocks of K and V into the ring.
with k.role("load", LOAD_WARP, warp), k.elect():
    k(mbarrier.arrive_expect_tx("_", q_full, Q_BYTES, space="shared::cta"))
    load(q_tile.address, map_q, first_query, q_full)
    filled = kv.producer()
    for block in k.range(blocks):
        filled.wait()
        full = filled.expect(K_BYTES + V_BYTES)
        row = block * KEYS
        load(filled.buffer(k_tile.address, K_BYTES), map_k, row, full)
        load(filled.buffer(v_tile.address, V_BYTES), map_v, row, full)
        filled.advance()

# MMAs: S = Q·Kᵀ for a block, then O = P·V for it once the softmax has written P.
with k.role("mma", MMA_WARP, warp), k.elect():
    q_descriptor = q_tile.descriptor()
    used = kv.consumer()
    parity = k.reg("b32", "parity")
    k(move.mov(parity, 0, type="b32"))
    k.wait(q_full, 0)
    for _ in k.range(blocks):
        used.wait()
        k_descriptor = k_tile.descriptor(used.buffer(k_tile.address, K_BYTES))
        v_descriptor = v_tile.descriptor(used.buffer(v_tile.address, V_BYTES))
        for step in range(WIDTH // 16):  # 16 columns of Q and K are 32 bytes of a row: 2 units of 16 bytes
            a, b = q_descriptor + 2 * step, k_descriptor + 2 * step
            k(tcgen05.mma(s_tensor, a, b, SCORES.encode(), int(step > 0), cta_group=1, kind="f16"))
        commit(s_full)
        wait(p_full, parity)
        for step in range(KEYS // 16):  # 16 keys are 8 columns of P, and 16 rows of V: 2048 bytes
            a, b = p_tensor + 8 * step, v_descriptor + 2048 * step // 16
            k(tcgen05.mma_ts(o_tensor, a, b, OUTPUT.encode(), int(step > 0), cta_group=1, kind="f16"))
        commit(o_full)
        commit(used.signaled)
        parity ^= 1
        used.advance()

# Softmax: thread i has row i. Maximum, sum and output are rescaled when a block has a larger maximum.
with k.role("softmax", range(4), warp):
    lanes = warp << 21  # a warp reaches its own 32 lanes, which are bits 16 and up of an address
    s_row, p_row, o_row = s_tensor + lanes, p_tensor + lanes, o_tensor + lanes
    largest, total, before, scale, bias = k.regs("f32", 5, "f")
    output = k.regs("f32", WIDTH, "output")
    for each, value in ((largest, -math.inf), (total, 0.0), *((each, 0.0) for each in output)):
        k(move.mov(each, value, type="f32"))
    parity, left, low = k.reg("b32", "parity"), k.reg("b32", "left"), k.reg("f32", "low")
    k(move.mov(parity, 0, type="b32"), move.mov(left, keys, type="b32"), move.mov(low, -math.inf, type="f32"))

    def scores():
        """The scores of the row, 32 at a time; keys that do not exist have minus infinity."""
        for column, values in k.tmem_load(s_row, KEYS, type="f32"):
            for index, value in enumerate(values):
                k(predicate.selp(value, value, low, k.compare(left, ">", column + index), type="f32"))
            yield column, values

    for _ in k.range(blocks):
        wait(s_full, parity)
        k(move.mov(before, largest, type="f32"))
        for _, values in scores():
            for value in values:
                k(floating.max(largest, largest, value, type="f32"))
        k(floating.sub(scale, before, largest, type="f32"), floating.mul(scale, scale, TO_EXPONENT, type="f32"))
        k(floating.ex2(scale, scale), floating.mul(bias, largest, -TO_EXPONENT, type="f32"))
        total *= scale
        chunks = k.tmem_store(p_row, KEYS // 2, width=16)
        for (_, values), (_, packed) in zip(scores(), chunks, strict=True):
            for value in values:
                k(floating.fma(value, value, TO_EXPONENT, bias, rounding="rn", type="f32"), floating.ex2(value, value))
                total += value
            for index, pair in enumerate(packed):  # the first operand of cvt goes to the upper half
                high, even = values[2 * index + 1], values[2 * index]
                k(conversion.cvt_half2(pair, high, even, rounding="rn", dtype="bf16x2"))
        k(tcgen05.fence(where="before_thread_sync"), mbarrier.arrive("_", p_full, space="shared::cta"))
        wait(o_full, parity)
        for column, values in k.tmem_load(o_row, WIDTH, type="f32"):
            for index, value in enumerate(values):
                each = output[column + index]
                k(floating.fma(each, each, scale, value, rounding="rn", type="f32"))
        parity ^= 1
        left -= KEYS
    row = first_query + thread
    with k.when(k.compare(row, "<", queries)):
        k(floating.rcp(total, total, rounding="rn", type="f32"))
        address = k.reg("b64", "address")
        k(integer.mad_wide(address, row, 4 * WIDTH, out, type="u32"))
        for column in range(0, WIDTH, 4):
            values = output[column : column + 4]
            for value in values:
                value *= total
            k(memory.st(f"{address}+{4 * column}", values, space="global", vec="v4", type="f32"))

# All MMAs are complete, and all of tensor memory is read.
k(tcgen05.fence(where="before_thread_sync"), barrier.bar_sync(0), tcgen05.fence(where="after_thread_sync"))
with k.role("frees", 0, warp):
    k(tcgen05.dealloc(tensor, COLUMNS, cta_group=1))
k(control.ret())


def arguments(arrays, queries, keys):
    """The entry's arguments: tensormaps of Q, K and V, whose boxes are tiles, then O and the sizes."""

    def rows(name, count, box):
        return TensorMap.tiled("bf16", arrays[name], (WIDTH, count), (LINE,), (WIDTH, box), swizzle="128B")

    return [rows("q", queries, QUERIES), rows("k", keys, KEYS), rows("v", keys, KEYS), arrays["out"], queries, keys]


def attention(inputs):
    """The reference in fp64."""
    q, key, value = (inputs[name].astype(np.float64) for name in ("q", "k", "v"))
    scores = q @ key.T / math.sqrt(WIDTH)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return {"out": weights @ value / weights.sum(axis=1, keepdims=True)}


def job(seed, queries=130, keys=140):
    random = np.random.default_rng(seed)
    sizes = {"q": queries, "k": keys, "v": keys}
    inputs = {name: random.standard_normal((rows, WIDTH)).astype(ml_dtypes.bfloat16) for name, rows in sizes.items()}
    largest = float(np.abs(inputs["v"].astype(np.float64)).max() / np.abs(attention(inputs)["out"]).max())
    return Job(
        ptx=k.ptx(),
        inputs=inputs,
        outputs={"out": ((queries, WIDTH), np.float32)},
        arguments=lambda arrays: arguments(arrays, queries, keys),
        grid=-(-queries // QUERIES),
        block=THREADS,
        reference=attention,
        # Each weight is rounded to bf16, by 2^-8 of it at most; the weights of a row add up to 1.
        tolerance=1.01 * 2.0**-8 * largest,
        reason="weights rounded to bf16, times the largest value; 1 % for fp32 and ex2",
        target="sm_100a",
    )
