// nvcc -arch=sm_90a -std=c++17
// FP8 with promotion: products of e4m3 by e5m2 are summed over one block of K (128), then scaled by the block's factors and added to
// a second accumulator in FP32. A producer warp fills a ring, the consumer warpgroup frees its stages.
#include "ptx.cuh"

constexpr int STAGES = 2;

struct alignas(1024) Shared {
    u8 a[STAGES][64 * 128], b[STAGES][32 * 128];
    float scale[STAGES][64];
    u64 full[STAGES], empty[STAGES];
};

DEVICE void multiply(float (&d)[16], u64 a, u64 b, bool accumulate)
{
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %18, 0;\n\t"
        "wgmma.mma_async.sync.aligned.m64n32k32.f32.e4m3.e5m2 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, %16, %17, p, 1, 1;\n}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),
          "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
        : "l"(a), "l"(b), "r"(int(accumulate)));
}

extern "C" __global__ void __launch_bounds__(160)
    fp8_promotion(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map, const float* a_scales,
                  const float* b_scales, __nv_bfloat16* c, int m, int n, int blocks)
{
    extern __shared__ unsigned char raw[];
    Shared& s = *reinterpret_cast<Shared*>(raw);
    const int warp = threadIdx.x / 32, lane = lane_id();
    const int row0 = blockIdx.y * 64, col0 = blockIdx.x * 32;
    if (threadIdx.x == 128) {
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(&s.full[i], 1);
            mbarrier_init(&s.empty[i], 4);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    if (warp == 4) {
        if (elect_one())
            for (int block = 0; block < blocks; block++) {
                const int stage = block % STAGES;
                mbarrier_wait(&s.empty[stage], block / STAGES % 2 ^ 1);
                mbarrier_expect(&s.full[stage], (64 + 32) * 128 + 64 * 4);
                tma_load_2d(s.a[stage], &a_map, &s.full[stage], block * 128, row0);
                tma_load_2d(s.b[stage], &b_map, &s.full[stage], block * 128, col0);
                bulk_load(s.scale[stage], a_scales + block * m + row0, 64 * 4, &s.full[stage]);
            }
        return;
    }
    float sum[16] = {}, part[16];
    const int row = warp * 16 + lane / 4;
    for (int block = 0; block < blocks; block++) {
        const int stage = block % STAGES;
        const float of_b = __ldg(b_scales + block * gridDim.x + blockIdx.x);
        mbarrier_wait(&s.full[stage], block / STAGES % 2);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 4; k++) multiply(part, wgmma_descriptor(s.a[stage]) + k * 2, wgmma_descriptor(s.b[stage]) + k * 2, k > 0);
        wgmma_commit();
        const float high = s.scale[stage][row] * of_b, low = s.scale[stage][row + 8] * of_b;
        wgmma_wait<0>();
        if (elect_one()) mbarrier_arrive(&s.empty[stage]);
#pragma unroll
        for (int i = 0; i < 16; i++) sum[i] += part[i] * (i / 2 % 2 ? low : high);
    }
#pragma unroll
    for (int i = 0; i < 16; i += 2)
        *reinterpret_cast<__nv_bfloat162*>(c + (row0 + row + i / 2 % 2 * 8) * n + col0 + i / 4 * 8 + lane % 4 * 2) =
            __floats2bfloat162_rn(sum[i], sum[i + 1]);
}
