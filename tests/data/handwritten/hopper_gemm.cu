// nvcc -arch=sm_90a -std=c++17
// A persistent, warp-specialised GEMM in clusters of two CTAs: a producer warpgroup gives its registers away and loads by TMA,
// each CTA sending half of B to both; two consumer warpgroups multiply with wgmma and store through stmatrix and TMA. Stages are
// handed back to both CTAs of the cluster.
#include "ptx.cuh"

constexpr int BM = 128, BN = 64, BK = 64, STAGES = 3;

struct alignas(1024) Shared {
    __half a[STAGES][BM * BK];
    __half b[STAGES][BN * BK];
    __half c[2][64 * BN];
    u64 full[STAGES], empty[STAGES];
};

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(384, 1)
    hopper_gemm(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
                const __grid_constant__ TensorMap c_map, int tiles_m, int tiles_n, int steps)
{
    extern __shared__ unsigned char raw[];
    Shared& s = *reinterpret_cast<Shared*>(raw);
    const int group = threadIdx.x / 128;
    const u32 rank = cluster_rank();
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(&s.full[i], 1);
            mbarrier_init(&s.empty[i], 4);  // two warpgroups of two CTAs
        }
        fence_mbarrier_init();
    }
    cluster_sync();
    const int clusters = gridDim.x / 2, pairs = tiles_m / 2 * tiles_n;
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x / 32 == 0 && elect_one()) {
            int stage = 0;
            u32 phase = 0;
            for (int pair = blockIdx.x / 2; pair < pairs; pair += clusters) {
                const int row = (pair / tiles_n * 2 + rank) * BM, col = pair % tiles_n * BN;
                for (int step = 0; step < steps; step++) {
                    mbarrier_wait_cluster(&s.empty[stage], phase ^ 1);
                    mbarrier_expect(&s.full[stage], (BM + BN) * BK * 2);
                    tma_load_2d(s.a[stage], &a_map, &s.full[stage], step * BK, row);
                    tma_load_2d_multicast(s.b[stage] + rank * (BN / 2) * BK, &b_map, &s.full[stage], step * BK, col + rank * (BN / 2), 3);
                    if (++stage == STAGES) stage = 0, phase ^= 1;
                }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int consumer = group - 1, warp = threadIdx.x / 32 % 4, lane = lane_id();
        int stage = 0;
        u32 phase = 0;
        for (int pair = blockIdx.x / 2; pair < pairs; pair += clusters) {
            const int row = (pair / tiles_n * 2 + rank) * BM + consumer * 64, col = pair % tiles_n * BN;
            float acc[32];
            int before = -1;
            for (int step = 0; step < steps; step++) {
                mbarrier_wait(&s.full[stage], phase);
                const u64 a = wgmma_descriptor(s.a[stage] + consumer * 64 * BK), b = wgmma_descriptor(s.b[stage]);
                wgmma_fence();
#pragma unroll
                for (int k = 0; k < BK / 16; k++) wgmma_m64n64k16_f16(acc, a + k * 2, b + k * 2, step + k > 0);
                wgmma_commit();
                wgmma_wait<1>();  // the step before this one
                if (before >= 0 && threadIdx.x % 128 < 2) mbarrier_arrive_cluster(&s.empty[before], threadIdx.x % 128);
                before = stage;
                if (++stage == STAGES) stage = 0, phase ^= 1;
            }
            wgmma_wait<0>();
            if (threadIdx.x % 128 < 2) mbarrier_arrive_cluster(&s.empty[before], threadIdx.x % 128);

            // The tile before must have left shared memory.
            if (threadIdx.x % 128 == 0) bulk_wait_read<0>();
            asm volatile("bar.sync %0, 128;" ::"r"(consumer + 1) : "memory");
            const u32 to = shared_address(s.c[consumer]);
#pragma unroll
            for (int n = 0; n < 4; n++) {
                const int r = warp * 16 + lane % 16, chunk = n * 2 + lane / 16;
                stmatrix_x4(to + r * 128 + ((chunk ^ (r % 8)) * 16), pack_half(acc[n * 8], acc[n * 8 + 1]),
                            pack_half(acc[n * 8 + 2], acc[n * 8 + 3]), pack_half(acc[n * 8 + 4], acc[n * 8 + 5]),
                            pack_half(acc[n * 8 + 6], acc[n * 8 + 7]));
            }
            fence_async();
            asm volatile("bar.sync %0, 128;" ::"r"(consumer + 1) : "memory");
            if (threadIdx.x % 128 == 0) {
                tma_store_2d(&c_map, s.c[consumer], col, row);
                bulk_commit();
            }
        }
        if (threadIdx.x % 128 == 0) bulk_wait<0>();
    }
    cluster_sync();  // a peer may still arrive here
}
