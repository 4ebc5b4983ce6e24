// nvcc -arch=sm_90a -std=c++17
// Ping-pong: two consumer warpgroups take turns on tiles, ordered by named barriers (bar.sync / bar.arrive), so that one multiplies while
// the other stores; loads carry an L2 policy and are prefetched; the epilogue is BF16 with bias and GELU.
#include "ptx.cuh"

constexpr int BM = 64, BN = 64, BK = 64, STAGES = 4;

struct alignas(1024) Shared {
    __half a[STAGES][BM * BK], b[STAGES][BN * BK];
    u64 full[STAGES], empty[STAGES];
};

DEVICE void load(void* to, const TensorMap* map, u64* bar, int x, int y, u64 policy)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(
            shared_address(to)),
        "l"(map), "r"(shared_address(bar)), "r"(x), "r"(y), "l"(policy)
        : "memory");
}

extern "C" __global__ void __launch_bounds__(384)
    pingpong_gemm(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map, const float* bias, __nv_bfloat16* c,
                  int n, int tiles, int tiles_n, int steps)
{
    extern __shared__ unsigned char raw[];
    Shared& s = *reinterpret_cast<Shared*>(raw);
    const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) mbarrier_init(&s.full[i], 1), mbarrier_init(&s.empty[i], 1);
        fence_mbarrier_init();
        asm volatile("prefetch.tensormap [%0];" ::"l"(&a_map) : "memory");
        asm volatile("prefetch.tensormap [%0];" ::"l"(&b_map) : "memory");
    }
    __syncthreads();
    if (group == 0) {
        if (threadIdx.x == 0) {
            u64 policy;
            asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
            int count = 0;
            for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x)
                for (int step = 0; step < steps; step++, count++) {
                    const int stage = count % STAGES;
                    mbarrier_wait(&s.empty[stage], count / STAGES % 2 ^ 1);
                    mbarrier_expect(&s.full[stage], (BM + BN) * BK * 2);
                    load(s.a[stage], &a_map, &s.full[stage], step * BK, tile / tiles_n * BM, policy);
                    load(s.b[stage], &b_map, &s.full[stage], step * BK, tile % tiles_n * BN, policy);
                }
        }
        return;
    }
    const int me = group - 1, warp = threadIdx.x / 32 % 4, lane = lane_id();
    // Barriers 1 and 2: a warpgroup's turn to multiply. The first needs none.
    if (me == 1) asm volatile("barrier.cta.arrive 1, 256;" ::: "memory");
    int own = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, own++) {
        if (own % 2 != me) continue;
        float acc[32];
        asm volatile("barrier.cta.sync %0, 256;" ::"r"(me + 1) : "memory");
        for (int step = 0; step < steps; step++) {
            const int count = own * steps + step, stage = count % STAGES;
            mbarrier_wait(&s.full[stage], count / STAGES % 2);
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < 4; k++)
                wgmma_m64n64k16_f16(acc, wgmma_descriptor(s.a[stage]) + k * 2, wgmma_descriptor(s.b[stage]) + k * 2, step + k > 0);
            wgmma_commit();
            if (step > 0) {
                wgmma_wait<1>();
                if (threadIdx.x % 128 == 0) mbarrier_arrive(&s.empty[(count - 1) % STAGES]);
            }
        }
        asm volatile("barrier.cta.arrive %0, 256;" ::"r"(2 - me) : "memory");  // the other's turn
        wgmma_wait<0>();
        if (threadIdx.x % 128 == 0) mbarrier_arrive(&s.empty[(own * steps + steps - 1) % STAGES]);
#pragma unroll
        for (int i = 0; i < 32; i += 2) {
            const int row = tile / tiles_n * BM + warp * 16 + lane / 4 + i / 2 % 2 * 8, col = tile % tiles_n * BN + i / 4 * 8 + lane % 4 * 2;
            float v[2];
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const float x = acc[i + j] + __ldg(bias + col + j);
                float t;
                asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(0.7978845608f * (x + 0.044715f * x * x * x)));
                v[j] = 0.5f * x * (1.0f + t);
            }
            *reinterpret_cast<__nv_bfloat162*>(c + size_t(row) * n + col) = __floats2bfloat162_rn(v[0], v[1]);
        }
    }
    // Whoever has no tile left still owes the other its turn, and takes the one that it is given.
    if (own % 2 == me) asm volatile("barrier.cta.sync %0, 256;" ::"r"(me + 1) : "memory");
}
