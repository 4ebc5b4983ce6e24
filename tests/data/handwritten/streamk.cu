// nvcc -arch=sm_90a -std=c++17
// Stream-K: the K steps of all tiles are dealt out evenly. Who does the last step of a tile owns it, waits by flags for those
// who did its earlier steps, and adds their parts from a workspace.
#include "ptx.cuh"

constexpr int BM = 32, BN = 32, BK = 16, THREADS = 64;

extern "C" __global__ void __launch_bounds__(THREADS)
    streamk(const __half* a, const __half* b, float* c, float* workspace, u32* flags, int m, int n, int k)
{
    __shared__ alignas(16) __half as[BM][BK + 8], bs[BN][BK + 8];
    const int tiles_n = n / BN, tiles = m / BM * tiles_n, steps = k / BK, all = tiles * steps;
    const int share = (all + gridDim.x - 1) / gridDim.x;
    int at = blockIdx.x * share;
    const int end = min(at + share, all), warp = threadIdx.x / 32, lane = lane_id();
    while (at < end) {
        const int tile = at / steps, first = at % steps, last = min(steps, first + end - at);
        const int row0 = tile / tiles_n * BM, col0 = tile % tiles_n * BN;
        float acc[4][4] = {};
        for (int step = first; step < last; step++) {
            __syncthreads();
            const int r = threadIdx.x / 2, h = threadIdx.x % 2 * 8;
            *reinterpret_cast<uint4*>(&as[r][h]) = __ldg(reinterpret_cast<const uint4*>(a + (row0 + r) * k + step * BK + h));
            *reinterpret_cast<uint4*>(&bs[r][h]) = __ldg(reinterpret_cast<const uint4*>(b + (col0 + r) * k + step * BK + h));
            __syncthreads();
            u32 fa[4], fb[4];
            ldmatrix_x4(fa, shared_address(&as[warp * 16 + lane % 16][lane / 16 * 8]));
#pragma unroll
            for (int j = 0; j < 2; j++) {
                ldmatrix_x4(fb, shared_address(&bs[j * 16 + lane % 8 + lane / 16 * 8][lane / 8 % 2 * 8]));
                mma_16816(acc[j * 2], fa, fb[0], fb[1]);
                mma_16816(acc[j * 2 + 1], fa, fb[2], fb[3]);
            }
        }
        at += last - first;
        if (last < steps) {  // somebody else ends this tile
            float* part = workspace + blockIdx.x * BM * BN;
#pragma unroll
            for (int i = 0; i < 16; i++) __stcg(part + i * THREADS + threadIdx.x, acc[i / 4][i % 4]);
            __threadfence();
            __syncthreads();
            if (threadIdx.x == 0) atomicExch(flags + blockIdx.x, tile + 1);
        } else {
            for (int other = blockIdx.x - 1; first > 0 && (other + 1) * share > tile * steps; other--) {
                if (threadIdx.x == 0)
                    while (*reinterpret_cast<volatile u32*>(flags + other) != tile + 1) {
                    }
                __threadfence();
                __syncthreads();
                const float* part = workspace + other * BM * BN;
#pragma unroll
                for (int i = 0; i < 16; i++) acc[i / 4][i % 4] += __ldcg(part + i * THREADS + threadIdx.x);
            }
#pragma unroll
            for (int i = 0; i < 16; i++)
                c[(row0 + warp * 16 + lane / 4 + i / 2 % 2 * 8) * n + col0 + i / 4 * 8 + lane % 4 * 2 + i % 2] = acc[i / 4][i % 4];
        }
    }
}
