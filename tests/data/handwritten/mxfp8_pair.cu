// nvcc -arch=sm_100a -std=c++17
// MXFP8 over a pair of CTAs: E4M3 by E5M2, one UE8M0 for 32, a product of 256 x 64. Scale factors come already in the 32 x 16 byte
// atoms, by threads; both CTAs hold their rows' A factors and all of B's (tcgen05.cp of the pair).
#include "tcgen05.cuh"

constexpr int BM = 128, BN = 64, BK = 128;

struct alignas(1024) Shared {
    u8 a[BM * BK], b[BN / 2 * BK];
    u8 sfa[512], sfb[512];
    u64 full, done;
    u32 tmem;
};

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128)
    mxfp8_pair(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map, const u8* sfa, const u8* sfb, float* c,
               int n, int steps)
{
    extern __shared__ unsigned char raw[];
    Shared& s = *reinterpret_cast<Shared*>(raw);
    const int warp = threadIdx.x / 32, lane = lane_id();
    const u32 rank = cluster_rank();
    if (threadIdx.x == 0) {
        mbarrier_init(&s.full, 2), mbarrier_init(&s.done, 1);
        fence_mbarrier_init();
    }
    cluster_sync();
    if (warp == 0) tmem_alloc<2>(&s.tmem, 128);
    tcgen05_before();
    cluster_sync();
    tcgen05_after();
    const u32 tmem = s.tmem, tsfa = tmem + 64, tsfb = tmem + 68;
    const int block_row = blockIdx.x, block_col = blockIdx.y;
    // A E4M3 (0), B E5M2 (1), scales UE8M0 (1).
    const u32 idesc = 1 << 10 | BN / 8 << 17 | 1 << 23 | 2 * BM / 128 << 27;
    for (int step = 0; step < steps; step++) {
        if (threadIdx.x == 0) {
            // Each announces its own bytes on the leader's barrier.
            const u32 bar = cluster_map(shared_address(&s.full), 0);
            asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(bar),
                         "r"(u32(sizeof(s.a) + sizeof(s.b)))
                         : "memory");
            asm volatile(
                "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::
                    "r"(shared_address(s.a)),
                "l"(&a_map), "r"(bar), "r"(step * BK), "r"(block_row * BM)
                : "memory");
            asm volatile(
                "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::
                    "r"(shared_address(s.b)),
                "l"(&b_map), "r"(bar), "r"(step * BK), "r"(block_col * BN + int(rank) * BN / 2)
                : "memory");
        }
        // Scale factors by threads: 512 bytes each.
        reinterpret_cast<u32*>(s.sfa)[threadIdx.x] = reinterpret_cast<const u32*>(sfa + (block_row * steps + step) * 512)[threadIdx.x];
        reinterpret_cast<u32*>(s.sfb)[threadIdx.x] = reinterpret_cast<const u32*>(sfb + (block_col * steps + step) * 512)[threadIdx.x];
        fence_async();
        cluster_sync();
        if (rank == 0 && threadIdx.x == 0) {
            mbarrier_wait_cluster(&s.full, step & 1);
            tcgen05_after();
            const u64 how = (u64(1) << 46) | (u64(128 >> 4) << 32);
            asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(tsfa), "l"(how | (shared_address(s.sfa) & 0x3FFFF) >> 4) : "memory");
            asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(tsfb), "l"(how | (shared_address(s.sfb) & 0x3FFFF) >> 4) : "memory");
            for (int i = 0; i < BK / 32; i++)
                asm volatile(
                    "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %6, 0;\n\t"
                    "tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.block32 [%0], %1, %2, %3, [%4], [%5], p;\n}" ::"r"(tmem),
                    "l"(tcgen05_descriptor(shared_address(s.a)) + i * 2), "l"(tcgen05_descriptor(shared_address(s.b)) + i * 2),
                    "r"(idesc | i << 4 | i << 29), "r"(tsfa), "r"(tsfb), "r"(step + i)
                    : "memory");
            tcgen05_commit_pair(&s.done, 3);
        }
        __syncwarp();
        mbarrier_wait_cluster(&s.done, step & 1);
    }
    tcgen05_after();
    for (int i = 0; i < BN / 16; i++) {
        u32 d[16];
        tmem_ld_32x32b_x16(d, tmem + (warp * 32 << 16) + i * 16);
        tcgen05_wait_ld();
        uint4* to = reinterpret_cast<uint4*>(c + size_t(block_row * BM + warp * 32 + lane) * n + block_col * BN + i * 16);
        for (int j = 0; j < 4; j++) to[j] = make_uint4(d[j * 4], d[j * 4 + 1], d[j * 4 + 2], d[j * 4 + 3]);
    }
    tcgen05_before();
    cluster_sync();
    if (warp == 0) tmem_free<2>(tmem, 128);
}
