// nvcc -arch=sm_90a -std=c++17
// A ring filled by cp.async with cp.async.mbarrier.arrive.noinc, drained by consumer warps that hand results to a writer warp through
// named barriers, which stores with a bulk reduction (cp.reduce.async.bulk) into global memory.
#include "ptx.cuh"

constexpr int ITEMS = 256, STAGES = 3;

extern "C" __global__ void __launch_bounds__(160) ring_noinc(const float* in, float* sums, int chunks)
{
    __shared__ alignas(16) float ring[STAGES][ITEMS];
    __shared__ alignas(16) float out[ITEMS];
    __shared__ u64 full[STAGES], empty[STAGES];
    const int warp = threadIdx.x / 32, lane = lane_id();
    if (threadIdx.x == 0)
        for (int i = 0; i < STAGES; i++) mbarrier_init(&full[i], 32), mbarrier_init(&empty[i], 64);
    __syncthreads();
    if (warp == 0) {
        for (int c = 0; c < chunks; c++) {
            const int stage = c % STAGES;
            mbarrier_wait(&empty[stage], c / STAGES % 2 ^ 1);
            for (int i = lane; i < ITEMS / 4; i += 32) copy_16(&ring[stage][i * 4], in + (blockIdx.x * chunks + c) * ITEMS + i * 4);
            asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&full[stage])) : "memory");
        }
        copy_wait<0>();
    } else if (warp <= 2) {
        const int t = threadIdx.x - 32;
        float4 sum = make_float4(0, 0, 0, 0);
        for (int c = 0; c < chunks; c++) {
            const int stage = c % STAGES;
            mbarrier_wait(&full[stage], c / STAGES % 2);
            const float4 v = *reinterpret_cast<const float4*>(&ring[stage][t * 4]);
            mbarrier_arrive(&empty[stage]);
            sum.x += v.x, sum.y += v.y * 2, sum.z += v.z, sum.w -= v.w;
        }
        *reinterpret_cast<float4*>(&out[t * 4]) = sum;
        fence_async();
        asm volatile("barrier.cta.arrive 1, 96;" ::: "memory");
    } else if (warp == 3) {
        asm volatile("barrier.cta.sync 1, 96;" ::: "memory");
        if (lane == 0) {
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(sums), "r"(shared_address(out)),
                         "r"(ITEMS * 4)
                         : "memory");
            bulk_commit();
            bulk_wait<0>();
        }
    }
}
