// nvcc -arch=sm_90a -std=c++17
// Split-K over a cluster of four: every CTA multiplies its part of K (wgmma, both operands by one bulk copy each of pre-tiled
// data), leaves its partial tile in its shared memory, and reduces a quarter of the rows over distributed shared memory.
#include "ptx.cuh"

struct alignas(1024) Shared {
    __half a[64 * 64], b[64 * 64];
    float part[64 * 64];
    u64 full;
};

extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(128)
    splitk_cluster(const __half* a, const __half* b, float* c, int steps)
{
    extern __shared__ unsigned char raw[];
    Shared& s = *reinterpret_cast<Shared*>(raw);
    const u32 rank = cluster_rank();
    const int tile = blockIdx.x / 4, warp = threadIdx.x / 32, lane = lane_id();
    if (threadIdx.x == 0) {
        mbarrier_init(&s.full, 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    float acc[32] = {};
    for (int step = 0; step < steps; step++) {
        if (threadIdx.x == 0) {
            mbarrier_expect(&s.full, 2 * 8192);
            bulk_load(s.a, a + ((tile * 4 + rank) * steps + step) * 4096, 8192, &s.full);
            bulk_load(s.b, b + (rank * steps + step) * 4096, 8192, &s.full);
        }
        mbarrier_wait(&s.full, step & 1);
        // No swizzle: core matrices of 8 rows by 16 bytes; the 16-byte chunks of a row 1024 bytes apart, groups of 8 rows 128.
        // The upper bits of an address, the rank in the cluster, must not get into the descriptor.
        const u32 a0 = shared_address(s.a) & 0x3FFFF, b0 = shared_address(s.b) & 0x3FFFF;
        const u64 how = (u64(128 >> 4) << 32) | (u64(1024 >> 4) << 16);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 4; k++)
            wgmma_m64n64k16_f16(acc, how | ((a0 + k * 2048) >> 4), how | ((b0 + k * 2048) >> 4), true);
        wgmma_commit();
        wgmma_wait<0>();
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 32; i += 2) {
        const int row = warp * 16 + lane / 4 + i / 2 % 2 * 8, col = i / 4 * 8 + lane % 4 * 2;
        *reinterpret_cast<float2*>(&s.part[row * 64 + col]) = make_float2(acc[i], acc[i + 1]);
    }
    cluster_sync();
    for (int i = threadIdx.x; i < 16 * 64 / 4; i += 128) {
        const int row = rank * 16 + i / 16, col = i % 16 * 4;
        float4 sum = make_float4(0, 0, 0, 0);
        for (u32 peer = 0; peer < 4; peer++) {
            float4 v;
            asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                         : "r"(cluster_map(shared_address(&s.part[row * 64 + col]), peer)));
            sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        }
        *reinterpret_cast<float4*>(c + tile * 4096 + row * 64 + col) = sum;
    }
    cluster_sync();
}
