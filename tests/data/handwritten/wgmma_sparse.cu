// nvcc -arch=sm_90a -std=c++17
// Two of four: A dense in global memory is compressed on the device (values and metadata), then wgmma.mma_async.sp multiplies it with a
// B that is stored with N contiguous (transposed by the descriptor).
#include "ptx.cuh"

struct alignas(1024) Shared {
    __half a[64 * 32];  // compressed: 64 rows of 32 values (K = 64)
    __half b[64 * 64];  // 64 rows of K, 64 columns: one 128-byte row per k
    u64 full;
};

// 64 columns of N; groups of 8 K rows every 1024 bytes. LBO is not used: N has one block of 128 bytes.
DEVICE u64 transposed(u32 address) { return (u64(1) << 62) | (u64(1024 >> 4) << 32) | (u64(1) << 16) | (address >> 4); }

DEVICE void multiply(float (&d)[32], u64 a, u64 b, u32 metadata)
{
    asm volatile(
        "wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16 "
        "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
        "%32, %33, {%34}, 0, 1, 1, 1, 0, 1;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),
          "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),
          "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
          "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(a), "l"(b), "r"(metadata));
}

extern "C" __global__ void __launch_bounds__(128)
    wgmma_sparse(const __half* a, const __grid_constant__ TensorMap b_map, float* c)
{
    extern __shared__ unsigned char raw[];
    Shared& s = *reinterpret_cast<Shared*>(raw);
    const int warp = threadIdx.x / 32, lane = lane_id();
    if (threadIdx.x == 0) {
        mbarrier_init(&s.full, 1);
        fence_mbarrier_init();
        mbarrier_expect(&s.full, 64 * 64 * 2);
        tma_load_2d(s.b, &b_map, &s.full, blockIdx.x * 64, 0);
    }
    // Compress: the first two non-zeros of each four, in their order. Rows of 64 bytes, 64-byte swizzle.
    for (int i = threadIdx.x; i < 64 * 16; i += 128) {
        const int row = i / 16, four = i % 16;
        int found = 0;
        __half kept[2];
        for (int j = 0; j < 4; j++) {
            const __half value = a[row * 64 + four * 4 + j];
            if ((__half2float(value) != 0.0f && found < 2) || j - found >= 2) kept[found++] = value;
        }
        const int byte = row * 64 + four * 4;
        const int swizzled = byte ^ (byte >> 7 & 3) << 4;
        *reinterpret_cast<__half2*>(reinterpret_cast<char*>(s.a) + swizzled) = __halves2half2(kept[0], kept[1]);
    }
    // Metadata of one product (K = 32): of every four threads the first two give 8 indices each, for two rows.
    u32 metadata[2] = {};
    for (int product = 0; product < 2; product++)
        for (int half = 0; half < 2; half++) {
            const int row = warp * 16 + lane / 4 + half * 8;
            for (int four = 0; four < 4; four++) {
                int found = 0;
                for (int j = 0; j < 4 && found < 2; j++) {
                    const __half value = a[row * 64 + product * 32 + lane % 2 * 16 + four * 4 + j];
                    if (__half2float(value) != 0.0f || j - found >= 2) metadata[product] |= j << (half * 16 + four * 4 + 2 * found++);
                }
            }
        }
    fence_async();
    __syncthreads();
    mbarrier_wait(&s.full, 0);
    float acc[32] = {};
    wgmma_fence();
    for (int product = 0; product < 2; product++) {
        // 64-byte swizzle: groups of 8 rows every 512 bytes.
        const u64 da = (u64(2) << 62) | (u64(512 >> 4) << 32) | (u64(1) << 16) | ((shared_address(s.a) + product * 32) >> 4);
        multiply(acc, da, transposed(shared_address(s.b) + product * 4096), metadata[product]);
    }
    wgmma_commit();
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < 32; i++)
        c[(warp * 16 + lane / 4 + i / 2 % 2 * 8) * 128 + blockIdx.x * 64 + i / 4 * 8 + lane % 4 * 2 + i % 2] = acc[i];
}
