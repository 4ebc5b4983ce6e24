// nvcc -arch=sm_90a -std=c++17
// A GEMM of the Ampere kind: a ring of cp.async stages, XOR swizzle, ldmatrix, mma.sync; K is split over blockIdx.z, whose CTAs
// add their parts in order, each waiting for a semaphore of the tile (serial split-K).
#include "ptx.cuh"

constexpr int BM = 64, BN = 64, BK = 32, STAGES = 3;

// Rows of 64 bytes, two to a line of 128: chunk of 16 bytes ^ line.
DEVICE u32 place(int row, int chunk) { return row * 64 + ((chunk ^ (row / 2 % 4)) * 16); }

extern "C" __global__ void __launch_bounds__(128) ampere_splitk(const __half* a, const __half* b, float* c, int* semaphores, int m,
                                                                int n, int k, int k_of_part)
{
    __shared__ alignas(128) unsigned char as[STAGES][BM * BK * 2];
    __shared__ alignas(128) unsigned char bs[STAGES][BN * BK * 2];
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN, k0 = blockIdx.z * k_of_part;
    const int steps = (min(k_of_part, k - k0) + BK - 1) / BK;
    const int warp = threadIdx.x / 32, lane = lane_id();
    const int wm = warp / 2 * 32, wn = warp % 2 * 32;

    auto load = [&](int step) {
        if (step < steps) {
            for (int i = threadIdx.x; i < BM * 4; i += 128) {
                const int row = i / 4, chunk = i % 4, at = k0 + step * BK + chunk * 8;
                const bool inside_a = row0 + row < m && at < k, inside_b = col0 + row < n && at < k;
                copy_16(as[step % STAGES] + place(row, chunk), inside_a ? a + size_t(row0 + row) * k + at : a, inside_a);
                copy_16(bs[step % STAGES] + place(row, chunk), inside_b ? b + size_t(col0 + row) * k + at : b, inside_b);
            }
        }
        copy_commit();
    };
    float acc[2][4][4] = {};
    for (int s = 0; s < STAGES - 1; s++) load(s);
    for (int step = 0; step < steps; step++) {
        copy_wait<STAGES - 2>();
        __syncthreads();
        load(step + STAGES - 1);
        const u32 ta = shared_address(as[step % STAGES]), tb = shared_address(bs[step % STAGES]);
#pragma unroll
        for (int kk = 0; kk < BK / 16; kk++) {
            u32 fa[2][4], fb[2][4];
#pragma unroll
            for (int i = 0; i < 2; i++) ldmatrix_x4(fa[i], ta + place(wm + i * 16 + lane % 16, kk * 2 + lane / 16));
#pragma unroll
            for (int j = 0; j < 2; j++)
                ldmatrix_x4(fb[j], tb + place(wn + j * 16 + lane % 8 + lane / 16 * 8, kk * 2 + lane / 8 % 2));
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) mma_16816(acc[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
        }
    }
    copy_wait<0>();

    int* semaphore = semaphores + blockIdx.y * gridDim.x + blockIdx.x;
    if (gridDim.z > 1) {
        if (threadIdx.x == 0) {
            int state;
            do
                asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(state) : "l"(semaphore) : "memory");
            while (state != int(blockIdx.z));
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int row = row0 + wm + i * 16 + lane / 4 + half * 8, col = col0 + wn + j * 8 + lane % 4 * 2;
                if (row < m && col < n) {
                    float2* to = reinterpret_cast<float2*>(c + size_t(row) * n + col);
                    float2 value = make_float2(acc[i][j][half * 2], acc[i][j][half * 2 + 1]);
                    if (blockIdx.z > 0) {
                        const float2 old = *to;
                        value.x += old.x;
                        value.y += old.y;
                    }
                    *to = value;
                }
            }
    if (gridDim.z > 1) {
        __syncthreads();
        if (threadIdx.x == 0)
            asm volatile("st.global.release.gpu.b32 [%0], %1;" ::"l"(semaphore), "r"(blockIdx.z == gridDim.z - 1 ? 0 : blockIdx.z + 1)
                         : "memory");
    }
}
