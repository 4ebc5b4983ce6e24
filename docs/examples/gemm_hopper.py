"""C = A·Bᵀ on sm_90a, from the concepts of ptxgen.gemm: `ptxgen run docs/examples/gemm_hopper.py --schedules 5`.

Warps 0 to 3 are the warpgroup that multiplies and stores, warp 4 loads. gemm_blackwell.py is its twin. bf16
in and out; any M, N and K that TMA takes (K a multiple of 8).
"""

import ml_dtypes
import numpy as np

from ptxgen import Job
from ptxgen.builder import KernelBuilder
from ptxgen.gemm import Epilogue, Operand, Pipeline, RegisterAccumulator, SharedMap, TileScheduler
from ptxgen.instr import barrier, control, integer, memory, predicate

TARGET, M_TILE, N_TILE, STAGES, THREADS = "sm_90a", 64, 96, 3, 160

a = Operand("a", "bf16", "k", M_TILE, "128B", wgmma=True)
b = Operand("b", "bf16", "k", N_TILE, "128B", wgmma=True)
accumulator = RegisterAccumulator.of(a, b, m=M_TILE, n=N_TILE)
tiles = TileScheduler("grid", M_TILE, N_TILE)
stores = Epilogue.of(accumulator, "bf16")
# Every warp of the warpgroup releases a stage.
ab = Pipeline("ab", STAGES, 1, a.tx_bytes + b.tx_bytes, empty_arrivals=4, holds="a K block of A and B")
shared = SharedMap.place([a.wanted(STAGES), b.wanted(STAGES), *ab.wanted], target=TARGET)
ab = ab.placed(shared)

k = KernelBuilder("gemm", TARGET, threads=THREADS, ctas_per_sm=1)
pipeline, operand, wgmma, scheduler, epilogue = (
    k.block(name) for name in ("pipeline", "operand", "wgmma", "scheduler", "epilogue")
)
for type, name in (
    *(("tensormap", "tensormap_a"), ("tensormap", "tensormap_b"), ("u64", "c")),
    *(("u32", "ldc"), ("u32", "m"), ("u32", "n"), ("u32", "k")),
):
    k.parameter(type, name)

# Setup: barriers, and which tile.
thread = k.named("r_thread", k.special("tid.x"))
warp = k.named("r_warp", thread >> 5)
k.named("r_lane", thread & 31)
k.dynamic_shared(shared.named, align=shared.alignment)
with k.when(k.compare(thread, "==", 0)):
    pipeline.initialize([ab])
k(barrier.bar_sync(0))
k_end = k.named("r_k_end")
k(memory.ld(k_end, "k", space="param", type="u32"))
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

with k.role("multiply", range(4), warp):
    k.named("r_group", 0)
    wgmma.descriptor_a(accumulator, a, shared.offset("a"))
    operand.descriptor(b, shared.offset("b"))
    epilogue.prepare(stores, 0, tmem=False)
    pipeline.start(ab, 0)
    wgmma.begin(accumulator)
    frees, lane0, release = k.named("p_frees"), k.named("p_lane0"), k.named("r_release", k.named("r_smem"))
    for block in k_blocks():
        pipeline.slot(ab)
        pipeline.wait_full(ab)
        k(barrier.bar_warp_sync("0xffffffff"))
        for each in (a, b):  # the descriptor of this stage
            stage, first = k.named(f"rd_stage_{each.name}"), k.named(f"rd_operand_{each.name}")
            k(integer.mad_wide(stage, k.named("r_ab_stage"), each.bytes // 16, first, type="u32"))
        wgmma.multiply(accumulator, a, b)
        # The wgmmas of the K block before are complete: release its stage.
        wgmma.wait(accumulator, 1)
        k(predicate.setp(frees, block, 0, lane0, compare="ne", combine="and", type="u32"))
        wgmma.release(ab, 1)
        k.named("r_release", k.named("r_ab_slot"))
        pipeline.advance(ab)
    wgmma.wait(accumulator, 0)
    epilogue.store_registers(stores)
k(control.ret())


def job(seed, m=100, n=136, depth=264):
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
        outputs={"c": ((m, n), ml_dtypes.bfloat16)},
        arguments=arguments,
        grid=tiles.grid(m, n),
        block=THREADS,
        shared_bytes=shared.bytes,
        reference=lambda inputs: {"c": inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64).T},
        tolerance=2.0**-8 + depth * 2.0**-23,
        reason="one rounding to bf16 and K additions of fp32",
        target=TARGET,
        regions=shared.named,
    )
