// nvcc -arch=sm_100a -std=c++17
// Attention in tensor memory: S = Q K' by one thread's MMA, softmax by four warps (a row a thread), P back to tensor memory as F16 and
// A of the second product, the output rescaled in tensor memory when a row's maximum grows.
#include "tcgen05.cuh"

constexpr int BM = 128, TILE = 64, D = 64;

struct alignas(1024) Shared {
    __half q[BM * D], k[TILE * D], v[TILE * D];  // V: rows of K, D contiguous
    u64 loaded, s_done, o_done;
    u32 tmem;
};

DEVICE float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

extern "C" __global__ void __launch_bounds__(128)
    tcgen05_attention(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
                      const __grid_constant__ TensorMap v_map, float* out, int tiles, float scale)
{
    extern __shared__ unsigned char raw[];
    Shared& s = *reinterpret_cast<Shared*>(raw);
    const int warp = threadIdx.x / 32, row = blockIdx.x * BM + threadIdx.x;
    if (threadIdx.x == 0) {
        mbarrier_init(&s.loaded, 1), mbarrier_init(&s.s_done, 1), mbarrier_init(&s.o_done, 1);
        fence_mbarrier_init();
    }
    if (warp == 0) tmem_alloc(&s.tmem, 256);
    tcgen05_before();
    __syncthreads();
    tcgen05_after();
    // Columns: S 0-63, P 64-95 (two F16 a column), O 128-191.
    const u32 ts = s.tmem, tp = s.tmem + 64, to = s.tmem + 128, own = warp * 32 << 16;
    const u32 for_s = 1 << 4 | TILE / 8 << 17 | BM / 16 << 24;
    const u32 for_o = 1 << 4 | 1 << 16 | D / 8 << 17 | BM / 16 << 24;  // B is MN-major
    float largest = -INFINITY, sum = 0;
    for (int t = 0; t < tiles; t++) {
        if (threadIdx.x == 0) {
            mbarrier_expect(&s.loaded, (t == 0 ? sizeof(s.q) : 0) + sizeof(s.k) + sizeof(s.v));
            if (t == 0) tma_load_2d(s.q, &q_map, &s.loaded, 0, blockIdx.x * BM);
            tma_load_2d(s.k, &k_map, &s.loaded, 0, t * TILE);
            tma_load_2d(s.v, &v_map, &s.loaded, 0, t * TILE);
            mbarrier_wait(&s.loaded, t & 1);
            for (int i = 0; i < D / 16; i++)
                tcgen05_mma_f16(ts, tcgen05_descriptor(shared_address(s.q)) + i * 2, tcgen05_descriptor(shared_address(s.k)) + i * 2, for_s,
                                i > 0);
            tcgen05_commit(&s.s_done);
        }
        __syncwarp();
        mbarrier_wait(&s.s_done, t & 1);
        tcgen05_after();
        float p[TILE];
#pragma unroll
        for (int i = 0; i < TILE / 16; i++) {
            u32 d[16];
            tmem_ld_32x32b_x16(d, ts + own + i * 16);
            tcgen05_wait_ld();
#pragma unroll
            for (int j = 0; j < 16; j++) p[i * 16 + j] = __uint_as_float(d[j]) * scale;
        }
        float now = largest;
#pragma unroll
        for (int i = 0; i < TILE; i++) now = fmaxf(now, p[i]);
        const float factor = exp2_fast(largest - now);
        largest = now;
        sum *= factor;
#pragma unroll
        for (int i = 0; i < TILE; i++) {
            p[i] = exp2_fast(p[i] - now);
            sum += p[i];
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            u32 h[16];
#pragma unroll
            for (int j = 0; j < 16; j++) h[j] = pack_half(p[i * 32 + j * 2], p[i * 32 + j * 2 + 1]);
            tmem_st_32x32b_x16(tp + own + i * 16, h);
        }
        if (t > 0 && __any_sync(~0u, factor != 1.0f)) {
#pragma unroll
            for (int i = 0; i < D / 16; i++) {
                u32 o[16];
                tmem_ld_32x32b_x16(o, to + own + i * 16);
                tcgen05_wait_ld();
#pragma unroll
                for (int j = 0; j < 16; j++) o[j] = __float_as_uint(__uint_as_float(o[j]) * factor);
                tmem_st_32x32b_x16(to + own + i * 16, o);
            }
        }
        tcgen05_wait_st();
        tcgen05_before();
        __syncthreads();
        if (threadIdx.x == 0) {
            tcgen05_after();
            for (int i = 0; i < TILE / 16; i++) {
                const u64 v = tcgen05_descriptor(shared_address(s.v) + i * 16 * 128);
                asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\t"
                             "tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p;\n}" ::"r"(to),
                             "r"(tp + i * 8), "l"(v), "r"(for_o), "r"(t + i)
                             : "memory");
            }
            tcgen05_commit(&s.o_done);
        }
        __syncwarp();
        mbarrier_wait(&s.o_done, t & 1);
        tcgen05_after();
    }
#pragma unroll
    for (int i = 0; i < D / 16; i++) {
        u32 o[16];
        tmem_ld_32x32b_x16(o, to + own + i * 16);
        tcgen05_wait_ld();
#pragma unroll
        for (int j = 0; j < 16; j++) out[size_t(row) * D + i * 16 + j] = __uint_as_float(o[j]) / sum;
    }
    tcgen05_before();
    __syncthreads();
    if (warp == 0) tmem_free(s.tmem, 256);
}
