"""C = A·Bᵀ on sm_100a, from the concepts of ptxgen.gemm: `ptxgen run docs/examples/gemm_blackwell.py --schedules 5`.

Warp 4 loads, warp 5 multiplies, warps 0 to 3 store. The blocks append what the packaged kernels have; docs/builder.md
lists what they share with the caller. bf16 in and fp32 out; any M, N and K that TMA takes (K a multiple of 8).
"""

import ml_dtypes
import numpy as np

from ptxgen import Job
from ptxgen.builder import KernelBuilder
from ptxgen.gemm import Accumulator, Epilogue, Operand, Pipeline, SharedMap, TileScheduler, Wanted
from ptxgen.instr import barrier, control, integer, memory, tcgen05

TARGET, M_TILE, N_TILE, STAGES, THREADS = "sm_100a", 128, 64, 3, 192

# What the kernel is made of, checked here: tiles and their layouts, rings with arrivals and bytes, shared memory.
a = Operand("a", "bf16", "k", M_TILE, "128B")
b = Operand("b", "bf16", "k", N_TILE, "128B")
accumulator = Accumulator.of(a, b, m=M_TILE, n=N_TILE, cta_group=1, stages=1)
tiles = TileScheduler("grid", M_TILE, N_TILE)
stores = Epilogue.of(accumulator, "f32")
ab = Pipeline("ab", STAGES, 1, a.tx_bytes + b.tx_bytes, empty_arrivals=1, holds="a K block of A and B")
acc = Pipeline("acc", 1, 1, 0, empty_arrivals=0, holds="the accumulator")
regions = [a.wanted(STAGES), b.wanted(STAGES), *ab.wanted, *acc.wanted, Wanted("tmem", 4, 4, "tensor memory's address")]
shared = SharedMap.place(regions, target=TARGET)
ab, acc = ab.placed(shared), acc.placed(shared)

k = KernelBuilder("gemm", TARGET, threads=THREADS, ctas_per_sm=1)
module, pipeline, operand, mma, scheduler, epilogue = (
    k.block(name) for name in ("module", "pipeline", "operand", "mma", "scheduler", "epilogue")
)
for type, name in (
    *(("tensormap", "tensormap_a"), ("tensormap", "tensormap_b"), ("u64", "c")),
    *(("u32", "ldc"), ("u32", "m"), ("u32", "n"), ("u32", "k")),
):
    k.parameter(type, name)

# Setup: barriers, tensor memory, and which tile.
thread = k.named("r_thread", k.special("tid.x"))
warp = k.named("r_warp", thread >> 5)
k.named("r_lane", thread & 31)
k.dynamic_shared(shared.named, align=shared.alignment)
with k.when(k.compare(thread, "==", 0)):
    pipeline.initialize([ab, acc])
k(barrier.bar_warp_sync("0xffffffff"))
mma.allocate(accumulator, 0, shared.offset("tmem"))
module.everyone(None)
tensor, k_end = k.named("r_tmem"), k.named("r_k_end")
k(memory.ld(tensor, f"smem+{shared.offset('tmem')}", space="shared", type="b32"))
k(memory.ld(k_end, "k", space="param", type="u32"))
k.named("r_accumulator", tensor)
scheduler.first(tiles)
scheduler.origin(tiles)


def k_blocks():
    """A loop over K, whose position %r_k the loads take."""
    return k.range(0, k_end, a.k_tile, counter=k.named("r_k"))


with k.role("load", 4, warp), k.elect():
    operand.tensormap("a")
    operand.tensormap("b")
    operand.row_a(a)
    operand.row_b(b, cta_group=1)
    pipeline.start(ab, 1)
    for _ in k_blocks():
        pipeline.slot(ab)
        pipeline.wait_empty(ab)
        k.named("r_full", k.named("r_ab_slot") + ab.full)
        operand.expect(ab, pair=False)
        operand.load(a, shared.offset("a"), ab, cta_group=1, slice="")
        operand.load(b, shared.offset("b"), ab, cta_group=1, slice="")
        pipeline.advance(ab)

with k.role("multiply", 5, warp), k.elect():
    operand.descriptor(a, shared.offset("a"))
    operand.descriptor(b, shared.offset("b"))
    pipeline.start(ab, 0)
    k.named("p_accumulate", 0)
    for _ in k_blocks():
        pipeline.slot(ab)
        pipeline.wait_full(ab)
        k(tcgen05.fence(where="after_thread_sync"))
        for each in (a, b):  # the descriptor of this stage
            stage, first = k.named(f"rd_stage_{each.name}"), k.named(f"rd_operand_{each.name}")
            k(integer.mad_wide(stage, k.named("r_ab_stage"), each.bytes // 16, first, type="u32"))
        mma.multiply(accumulator, a, b)
        mma.commit(accumulator, k.named("r_ab_slot") + ab.empty)
        pipeline.advance(ab)
    mma.commit(accumulator, k.named("r_smem") + acc.full)

with k.role("store", range(4), warp):
    pipeline.start(acc, 0)
    pipeline.slot(acc)
    pipeline.wait_full(acc)
    k(tcgen05.fence(where="after_thread_sync"))
    epilogue.prepare(stores, 0)
    epilogue.store(stores)

k(barrier.bar_warp_sync("0xffffffff"))
module.everyone(None)
mma.free(accumulator, 0)
k(control.ret())


def job(seed, m=200, n=100, depth=328):
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
        shared_bytes=shared.bytes,
        reference=lambda inputs: {"c": inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64).T},
        # Products of bf16 are exact in fp32; an element has K of them, of which K - 1 additions may each round.
        tolerance=depth * 2.0**-23,
        reason="K additions of fp32, each within one unit in the last place",
        target=TARGET,
        regions=shared.named,
    )
