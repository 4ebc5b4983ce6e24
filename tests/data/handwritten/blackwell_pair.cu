// nvcc -arch=sm_100a -std=c++17
// Pairs of CTAs: one MMA of 256 x 128 over both CTAs' shared and tensor memories. Each CTA loads its 128 rows of A and its half of
// B, announcing the bytes on the leader's barrier; commits free the stages of both; both store their rows.
#include "tcgen05.cuh"

constexpr int BM = 128, BN = 128, BK = 64, STAGES = 2;

struct alignas(1024) Shared {
    __half a[STAGES][BM * BK];
    __half b[STAGES][BN / 2 * BK];
    u64 full[STAGES], empty[STAGES], done;
    u32 tmem;
};

DEVICE void tma_load_pair(void* to, const TensorMap* map, u64* bar, int x, int y)
{
    // The barrier of the leader: the bit of the rank in the pair is cleared.
    asm volatile(
        "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
            shared_address(to)),
        "l"(map), "r"(shared_address(bar) & 0xFEFFFFFF), "r"(x), "r"(y)
        : "memory");
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128)
    blackwell_pair(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map, float* c, int n, int steps)
{
    extern __shared__ unsigned char raw[];
    Shared& s = *reinterpret_cast<Shared*>(raw);
    const int warp = threadIdx.x / 32, lane = lane_id();
    const u32 rank = cluster_rank();
    if (warp == 0 && elect_one()) {
        for (int i = 0; i < STAGES; i++) mbarrier_init(&s.full[i], 1), mbarrier_init(&s.empty[i], 1);
        mbarrier_init(&s.done, 1);
        fence_mbarrier_init();
    }
    cluster_sync();
    if (warp == 1) tmem_alloc<2>(&s.tmem, BN);
    tcgen05_before();
    cluster_sync();
    tcgen05_after();
    const u32 tmem = s.tmem;
    const int row = blockIdx.x * BM, col = blockIdx.y * BN;
    if (warp == 2 && elect_one()) {
        for (int step = 0; step < steps; step++) {
            const int stage = step % STAGES;
            mbarrier_wait_cluster(&s.empty[stage], step / STAGES % 2 ^ 1);
            if (rank == 0) mbarrier_expect(&s.full[stage], 2 * (BM + BN / 2) * BK * 2);
            tma_load_pair(s.a[stage], &a_map, &s.full[stage], step * BK, row);
            tma_load_pair(s.b[stage], &b_map, &s.full[stage], step * BK, col + rank * (BN / 2));
        }
    } else if (warp == 3 && rank == 0 && elect_one()) {
        const u32 idesc = 1 << 4 | BN / 8 << 17 | 2 * BM / 16 << 24;
        for (int step = 0; step < steps; step++) {
            const int stage = step % STAGES;
            mbarrier_wait_cluster(&s.full[stage], step / STAGES % 2);
            tcgen05_after();
            for (int k = 0; k < BK / 16; k++) {
                const u64 a = tcgen05_descriptor(shared_address(s.a[stage])) + k * 2;
                const u64 b = tcgen05_descriptor(shared_address(s.b[stage])) + k * 2;
                asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\ttcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(
                                 tmem),
                             "l"(a), "l"(b), "r"(idesc), "r"(step + k)
                             : "memory");
            }
            tcgen05_commit_pair(&s.empty[stage], 3);
        }
        tcgen05_commit_pair(&s.done, 3);
    }
    __syncwarp();
    mbarrier_wait_cluster(&s.done, 0);
    tcgen05_after();
    for (int i = 0; i < BN / 16; i++) {
        u32 d[16];
        tmem_ld_32x32b_x16(d, tmem + (warp * 32 << 16) + i * 16);
        tcgen05_wait_ld();
        uint4* to = reinterpret_cast<uint4*>(c + size_t(row + warp * 32 + lane) * n + col + i * 16);
#pragma unroll
        for (int j = 0; j < 4; j++) to[j] = make_uint4(d[j * 4], d[j * 4 + 1], d[j * 4 + 2], d[j * 4 + 3]);
    }
    tcgen05_before();
    cluster_sync();
    tcgen05_after();
    if (warp == 1) tmem_free<2>(tmem, BN);
}
