// nvcc -arch=sm_90a -std=c++17
// Causal attention of the flash kind: Q and K by wgmma from shared memory, softmax online in registers with exp2, P as wgmma's A from
// registers, V with N contiguous. K and V come through a ring of two stages.
#include "ptx.cuh"

constexpr int D = 64, TILE = 64, STAGES = 2;

struct alignas(1024) Shared {
    __half q[TILE * D], k[STAGES][TILE * D], v[STAGES][TILE * D];
    u64 q_full, full_k[STAGES], full_v[STAGES], empty_k[STAGES], empty_v[STAGES];
};

DEVICE void multiply_pv(float (&d)[32], const u32 (&a)[4], u64 b)
{
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
        "{%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),
          "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),
          "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
          "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
DEVICE float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

extern "C" __global__ void __launch_bounds__(256)
    wgmma_attention(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
                    const __grid_constant__ TensorMap v_map, __half* out, int length, float scale)
{
    extern __shared__ unsigned char raw[];
    Shared& s = *reinterpret_cast<Shared*>(raw);
    const int head = blockIdx.y, q0 = blockIdx.x * TILE, tiles = blockIdx.x + 1;
    if (threadIdx.x == 0) {
        mbarrier_init(&s.q_full, 1);
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(&s.full_k[i], 1), mbarrier_init(&s.full_v[i], 1);
            mbarrier_init(&s.empty_k[i], 1), mbarrier_init(&s.empty_v[i], 1);
        }
        fence_mbarrier_init();
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        if (threadIdx.x == 128) {
            mbarrier_expect(&s.q_full, TILE * D * 2);
            tma_load_3d(s.q, &q_map, &s.q_full, 0, q0, head);
            for (int t = 0; t < tiles; t++) {
                const int stage = t % STAGES;
                const u32 phase = t / STAGES % 2 ^ 1;
                mbarrier_wait(&s.empty_k[stage], phase);
                mbarrier_expect(&s.full_k[stage], TILE * D * 2);
                tma_load_3d(s.k[stage], &k_map, &s.full_k[stage], 0, t * TILE, head);
                mbarrier_wait(&s.empty_v[stage], phase);
                mbarrier_expect(&s.full_v[stage], TILE * D * 2);
                tma_load_3d(s.v[stage], &v_map, &s.full_v[stage], 0, t * TILE, head);
            }
        }
        return;
    }
    const int warp = threadIdx.x / 32, lane = lane_id(), row = q0 + warp * 16 + lane / 4;
    float o[32] = {}, largest[2] = {-INFINITY, -INFINITY}, sum[2] = {};
    mbarrier_wait(&s.q_full, 0);
    for (int t = 0; t < tiles; t++) {
        const int stage = t % STAGES;
        const u32 phase = t / STAGES % 2;
        float p[32];
        mbarrier_wait(&s.full_k[stage], phase);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; i++) wgmma_m64n64k16_f16(p, wgmma_descriptor(s.q) + i * 2, wgmma_descriptor(s.k[stage]) + i * 2, i > 0);
        wgmma_commit();
        wgmma_wait<0>();
        if (threadIdx.x == 0) mbarrier_arrive(&s.empty_k[stage]);
#pragma unroll
        for (int i = 0; i < 32; i++) {
            const int col = t * TILE + i / 4 * 8 + lane % 4 * 2 + i % 2;
            p[i] = col > row + i / 2 % 2 * 8 || col >= length ? -INFINITY : p[i] * scale;
        }
        float factor[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float now = largest[h];
#pragma unroll
            for (int i = 0; i < 32; i++)
                if (i / 2 % 2 == h) now = fmaxf(now, p[i]);
            now = fmaxf(now, __shfl_xor_sync(~0u, now, 1));
            now = fmaxf(now, __shfl_xor_sync(~0u, now, 2));
            factor[h] = exp2_fast(largest[h] - now);
            largest[h] = now;
            sum[h] *= factor[h];
        }
#pragma unroll
        for (int i = 0; i < 32; i++) {
            p[i] = exp2_fast(p[i] - largest[i / 2 % 2]);
            sum[i / 2 % 2] += p[i];
            o[i] *= factor[i / 2 % 2];
        }
        u32 a[4][4];
#pragma unroll
        for (int i = 0; i < 16; i++) a[i / 4][i % 4] = pack_half(p[i * 2], p[i * 2 + 1]);
        mbarrier_wait(&s.full_v[stage], phase);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; i++) multiply_pv(o, a[i], wgmma_descriptor(s.v[stage] + i * 16 * D));
        wgmma_commit();
        wgmma_wait<0>();
        if (threadIdx.x == 0) mbarrier_arrive(&s.empty_v[stage]);
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        sum[h] += __shfl_xor_sync(~0u, sum[h], 1);
        sum[h] += __shfl_xor_sync(~0u, sum[h], 2);
    }
#pragma unroll
    for (int i = 0; i < 32; i += 2) {
        const int h = i / 2 % 2, r = row + h * 8;
        if (r < length)
            *reinterpret_cast<__half2*>(out + (size_t(head) * length + r) * D + i / 4 * 8 + lane % 4 * 2) =
                __floats2half2_rn(o[i] / sum[h], o[i + 1] / sum[h]);
    }
}
