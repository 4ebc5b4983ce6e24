// nvcc -arch=sm_100a -std=c++17
// NVFP4: E2M1 values with one UE4M3 scale for 16, K = 64 a product. Scale factors are gathered from plain row-major arrays into the
// 32 x 16 byte atoms by threads, and copied to tensor memory by tcgen05.cp.32x128b.warpx4.
#include "tcgen05.cuh"

constexpr int BM = 128, BN = 64, BK = 256;  // elements; 128 bytes of K a row

struct alignas(1024) Shared {
    u8 a[BM * BK / 2], b[BN * BK / 2];
    u8 sfa[4][512], sfb[4][512];  // one atom for each 64 of K
    u64 full, done;
    u32 tmem;
};

DEVICE void copy_scales(u32 to, u32 from)
{
    // No swizzle; 8 rows of 16 bytes.
    const u64 how = (u64(1) << 46) | (u64(128 >> 4) << 32) | (from & 0x3FFFF) >> 4;
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(how) : "memory");
}

extern "C" __global__ void __launch_bounds__(128)
    nvfp4_gemm(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map, const u8* sfa, const u8* sfb, float* c,
               int n, int k)
{
    extern __shared__ unsigned char raw[];
    Shared& s = *reinterpret_cast<Shared*>(raw);
    const int warp = threadIdx.x / 32, lane = lane_id(), row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    if (threadIdx.x == 0) {
        mbarrier_init(&s.full, 1);
        mbarrier_init(&s.done, 1);
        fence_mbarrier_init();
    }
    if (warp == 0) tmem_alloc(&s.tmem, 128);
    tcgen05_before();
    __syncthreads();
    tcgen05_after();
    const u32 tmem = s.tmem, tsfa = tmem + 64, tsfb = tmem + 96;
    // D: F32. Scale type UE4M3 (0); formats E2M1 (1).
    const u32 idesc = 1 << 7 | 1 << 10 | BN / 8 << 17 | BM / 128 << 27;
    for (int step = 0; step < k / BK; step++) {
        if (threadIdx.x == 0) {
            mbarrier_expect(&s.full, sizeof(s.a) + sizeof(s.b));
            tma_load_2d(s.a, &a_map, &s.full, step * 128, row0);
            tma_load_2d(s.b, &b_map, &s.full, step * 128, col0);
        }
        // Row r of 128: 16 bytes of line r % 32, of which word r / 32.
        const int r = threadIdx.x, scales = k / 16;
        const uint4 own = *reinterpret_cast<const uint4*>(sfa + size_t(row0 + r) * scales + step * 16);
        const u32 words[4] = {own.x, own.y, own.z, own.w};
        for (int i = 0; i < 4; i++) *reinterpret_cast<u32*>(&s.sfa[i][r % 32 * 16 + r / 32 * 4]) = words[i];
        const uint4 other = r < BN ? *reinterpret_cast<const uint4*>(sfb + size_t(col0 + r) * scales + step * 16) : make_uint4(0, 0, 0, 0);
        const u32 more[4] = {other.x, other.y, other.z, other.w};
        for (int i = 0; i < 4; i++) *reinterpret_cast<u32*>(&s.sfb[i][r % 32 * 16 + r / 32 * 4]) = more[i];
        fence_async();
        __syncthreads();
        if (threadIdx.x == 0) {
            mbarrier_wait(&s.full, step & 1);
            tcgen05_after();
            for (int i = 0; i < 4; i++) {
                copy_scales(tsfa + i * 4, shared_address(s.sfa[i]));
                copy_scales(tsfb + i * 4, shared_address(s.sfb[i]));
                asm volatile(
                    "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %6, 0;\n\t"
                    "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%0], %1, %2, %3, [%4], [%5], p;\n}" ::"r"(tmem),
                    "l"(tcgen05_descriptor(shared_address(s.a)) + i * 2), "l"(tcgen05_descriptor(shared_address(s.b)) + i * 2), "r"(idesc),
                    "r"(tsfa + i * 4), "r"(tsfb + i * 4), "r"(step + i)
                    : "memory");
            }
            tcgen05_commit(&s.done);
        }
        mbarrier_wait(&s.done, step & 1);
    }
    tcgen05_after();
    for (int i = 0; i < BN / 16; i++) {
        u32 d[16];
        tmem_ld_32x32b_x16(d, tmem + (warp * 32 << 16) + i * 16);
        tcgen05_wait_ld();
        uint4* to = reinterpret_cast<uint4*>(c + size_t(row0 + warp * 32 + lane) * n + col0 + i * 16);
        for (int j = 0; j < 4; j++) to[j] = make_uint4(d[j * 4], d[j * 4 + 1], d[j * 4 + 2], d[j * 4 + 3]);
    }
    tcgen05_before();
    __syncthreads();
    if (warp == 0) tmem_free(tmem, 128);
}
