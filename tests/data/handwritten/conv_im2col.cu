// nvcc -arch=sm_90a -std=c++17
// A 3 x 3 convolution, NHWC, padded: A by im2col tensor copies (offsets of the filter's taps in the instruction), the filters by plain
// ones, products by wgmma. 64 output pixels a CTA.
#include "ptx.cuh"

struct alignas(1024) Shared {
    __half a[2][64 * 64], b[2][64 * 64];
    u64 full[2];
};

extern "C" __global__ void __launch_bounds__(128)
    conv_im2col(const __grid_constant__ TensorMap x_map, const __grid_constant__ TensorMap f_map, float* out, int height, int width)
{
    extern __shared__ unsigned char raw[];
    Shared& s = *reinterpret_cast<Shared*>(raw);
    const int warp = threadIdx.x / 32, lane = lane_id(), first = blockIdx.x * 64;
    const int n = first / (height * width), h = first / width % height, w = first % width;
    if (threadIdx.x == 0) {
        mbarrier_init(&s.full[0], 1), mbarrier_init(&s.full[1], 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    auto load = [&](int tap) {
        if (threadIdx.x == 0 && tap < 9) {
            u64* bar = &s.full[tap % 2];
            mbarrier_expect(bar, 2 * 8192);
            // The corner of the box is one pixel up and left of the first output pixel.
            asm volatile(
                "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::
                    "r"(shared_address(s.a[tap % 2])),
                "l"(&x_map), "r"(shared_address(bar)), "r"(0), "r"(w - 1), "r"(h - 1), "r"(n), "h"(u16(tap % 3)), "h"(u16(tap / 3))
                : "memory");
            tma_load_2d(s.b[tap % 2], &f_map, bar, tap * 64, 0);
        }
    };
    float acc[32];
    load(0);
    for (int tap = 0; tap < 9; tap++) {
        load(tap + 1);
        mbarrier_wait(&s.full[tap % 2], tap / 2 % 2);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 4; k++)
            wgmma_m64n64k16_f16(acc, wgmma_descriptor(s.a[tap % 2]) + k * 2, wgmma_descriptor(s.b[tap % 2]) + k * 2, tap + k > 0);
        wgmma_commit();
        wgmma_wait<0>();
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 32; i += 2)
        *reinterpret_cast<float2*>(out + size_t(first + warp * 16 + lane / 4 + i / 2 % 2 * 8) * 64 + i / 4 * 8 + lane % 4 * 2) =
            make_float2(acc[i], acc[i + 1]);
}
