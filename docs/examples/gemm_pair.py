"""C = A·Bᵀ by pairs of CTAs on sm_100a, which take over further tiles by cluster launch control (CLC).

A pair multiplies tiles of 256x128 (`cta_group::2`). Warp 4 loads, warp 5 multiplies, warp 6 claims tiles, warps 0 to 3
store: `ptxgen run docs/examples/gemm_pair.py --schedules 5`. bf16 in and fp32 out; K a multiple of 8.
"""

import ml_dtypes
import numpy as np

from ptxgen import Job
from ptxgen.builder import KernelBuilder
from ptxgen.gemm import Accumulator, Epilogue, Operand, Pipeline, SharedMap, TileScheduler, Wanted
from ptxgen.instr import barrier, control, integer, memory, tcgen05

TARGET, M_TILE, N_TILE, STAGES, THREADS = "sm_100a", 256, 128, 3, 224
CLUSTER = (2, 1)

# Each CTA of a pair has half of the rows of A and half of those of B.
a = Operand("a", "bf16", "k", M_TILE // 2, "128B")
b = Operand("b", "bf16", "k", N_TILE // 2, "128B")
accumulator = Accumulator.of(a, b, m=M_TILE, n=N_TILE, cta_group=2, stages=2)
tiles = TileScheduler("clc", M_TILE // 2, N_TILE, CLUSTER)
stores = Epilogue.of(accumulator, "f32")
# The leader's barrier gets the bytes of both CTAs; the four store warps of both release an accumulator.
ab = Pipeline("ab", STAGES, 1, 2 * (a.tx_bytes + b.tx_bytes), 1, "a K block of A and B", cluster=True)
acc = Pipeline("acc", 2, 1, 0, 2 * 4, "an accumulator", cluster=True)
# Readers of a response: the load thread and four store warps of both CTAs, the MMA thread, the thread that claims.
clc = Pipeline("clc", 2, 1, 16, 2 * 5 + 2, "a response", cluster=True)
regions = [
    a.wanted(STAGES), b.wanted(STAGES), Wanted("response", 16 * clc.stages, 16, "responses of try_cancel"),
    *ab.wanted, *acc.wanted, *clc.wanted, Wanted("tmem", 4, 4, "tensor memory's address"),
]  # fmt: skip
shared = SharedMap.place(regions, target=TARGET)
ab, acc, clc = (each.placed(shared) for each in (ab, acc, clc))

k = KernelBuilder("gemm_pair", TARGET, threads=THREADS, ctas_per_sm=1, cluster=CLUSTER)
module, pipeline, operand, mma, scheduler, epilogue = (
    k.block(name) for name in ("module", "pipeline", "operand", "mma", "scheduler", "epilogue")
)
for type, name in (
    *(("tensormap", "tensormap_a"), ("tensormap", "tensormap_b"), ("u64", "c")),
    *(("u32", "ldc"), ("u32", "m"), ("u32", "n"), ("u32", "k")),
):
    k.parameter(type, name)

# Setup: barriers, tensor memory, and the first tile.
thread = k.named("r_thread", k.special("tid.x"))
warp = k.named("r_warp", thread >> 5)
k.named("r_lane", thread & 31)
k.dynamic_shared(shared.named, align=shared.alignment)
module.place(tiles, True)
with k.when(k.compare(thread, "==", 0)):
    pipeline.initialize([ab, acc, clc])
k(barrier.bar_warp_sync("0xffffffff"))
mma.allocate(accumulator, 0, shared.offset("tmem"))
module.everyone(CLUSTER)
tensor, k_end = k.named("r_tmem"), k.named("r_k_end")
k(memory.ld(tensor, f"smem+{shared.offset('tmem')}", space="shared", type="b32"))
k(memory.ld(k_end, "k", space="param", type="u32"))
scheduler.first(tiles)
pipeline.start(clc, 0)


def k_blocks():
    """A loop over K, whose position %r_k the loads take."""
    return k.range(0, k_end, a.k_tile, counter=k.named("r_k"))


def next_tile(end, **threads):
    """Read the next response: its tile, or leave the loop."""
    scheduler.next(tiles, clc, shared.offset("response"), **threads)
    k(control.bra(end).unless(k.named("p_more")))


def select_accumulator():
    """%r_accumulator: the columns of this tile."""
    k(integer.mad(k.named("r_accumulator"), k.named("r_acc_stage"), N_TILE, tensor, type="u32", half="lo"))


with k.role("load", 4, warp), k.elect():
    operand.tensormap("a")
    operand.tensormap("b")
    pipeline.start(ab, 1)
    with k.loop() as end:
        scheduler.origin(tiles)
        operand.row_a(a)
        operand.row_b(b, cta_group=2)
        for _ in k_blocks():
            pipeline.slot(ab)
            pipeline.wait_empty(ab)
            k.named("r_full", k.named("r_ab_slot") + ab.full)
            operand.expect(ab, pair=True)
            operand.load(a, shared.offset("a"), ab, cta_group=2, slice="")
            operand.load(b, shared.offset("b"), ab, cta_group=2, slice="")
            pipeline.advance(ab)
        next_tile(end)

# One thread of the pair issues its MMAs; the commits reach both CTAs.
with k.role("multiply", 5, warp), k.elect(), k.when(k.compare(k.named("r_pair_rank"), "==", 0)):
    operand.descriptor(a, shared.offset("a"))
    operand.descriptor(b, shared.offset("b"))
    mma.commit_mask(accumulator, tiles)
    pipeline.start(ab, 0)
    pipeline.start(acc, 1)
    with k.loop() as end:
        pipeline.slot(acc)
        pipeline.wait_empty(acc)
        k(tcgen05.fence(where="after_thread_sync"))
        select_accumulator()
        k.named("p_accumulate", 0)
        for _ in k_blocks():
            pipeline.slot(ab)
            pipeline.wait_full(ab)
            k(tcgen05.fence(where="after_thread_sync"))
            for each in (a, b):  # the descriptor of this stage
                stage, first = k.named(f"rd_stage_{each.name}"), k.named(f"rd_operand_{each.name}")
                k(integer.mad_wide(stage, k.named("r_ab_stage"), each.bytes // 16, first, type="u32"))
            mma.multiply(accumulator, a, b)
            mma.commit(accumulator, k.named("r_ab_slot") + ab.empty, "%rs_commit_mask")
            pipeline.advance(ab)
        mma.commit(accumulator, k.named("r_acc_slot") + acc.full, "%rs_pair_mask")
        pipeline.advance(acc)
        next_tile(end)

with k.role("claim", 6, warp), k.elect(), k.when(k.compare(k.named("r_cluster_x"), "==", 0)):
    k.named("r_try_stage", 0)
    k.named("r_try_phase", 1)
    with k.loop() as end:
        scheduler.try_cancel(tiles, clc, shared.offset("response"))
        pipeline.advance_as(clc, "try")
        next_tile(end)

with k.role("store", range(4), warp):
    epilogue.prepare(stores, 0)
    pipeline.start(acc, 0)
    with k.loop() as end:
        scheduler.origin(tiles)
        pipeline.slot(acc)
        pipeline.wait_full(acc)
        k(tcgen05.fence(where="after_thread_sync"))
        select_accumulator()
        epilogue.store(stores)
        k(tcgen05.fence(where="before_thread_sync"))
        k(barrier.bar_warp_sync("0xffffffff"))
        mma.release(acc, pair=True)
        pipeline.advance(acc)
        next_tile(end, warp=True, leader="%p_lane0")

k(barrier.bar_warp_sync("0xffffffff"))
module.everyone(CLUSTER)
mma.free(accumulator, 0)
k(control.ret())


def job(seed, m=700, n=200, depth=136):
    random = np.random.default_rng(seed)
    matrices = {
        name: random.standard_normal((rows, depth)).astype(ml_dtypes.bfloat16) for name, rows in (("a", m), ("b", n))
    }

    def arguments(arrays):
        maps = [each.tensormap(arrays[each.name], rows, depth, leading=depth) for each, rows in ((a, m), (b, n))]
        return [*maps, arrays["c"], n, m, n, depth]

    return Job(
        ptx=k.ptx(),
        inputs=matrices,
        outputs={"c": ((m, n), np.float32)},
        arguments=arguments,
        grid=tiles.grid(m, n),
        block=THREADS,
        cluster=CLUSTER,
        shared_bytes=shared.bytes,
        reference=lambda inputs: {"c": inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64).T},
        # Products of bf16 are exact in fp32; an element has K of them, of which K - 1 additions may each round.
        tolerance=depth * 2.0**-23,
        reason="K additions of fp32, each within one unit in the last place",
        target=TARGET,
        regions=shared.named,
    )
