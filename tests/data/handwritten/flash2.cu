// nvcc -arch=sm_90a -std=c++17
// Attention of the Ampere kind: mma.sync in BF16, K and V by cp.async in two groups that are waited for apart, swizzled rows of 128 bytes,
// ldmatrix.trans for V, softmax online; out of bounds by zero-fill of cp.async.
#include "ptx.cuh"

constexpr int BM = 64, BN = 32, D = 64;

DEVICE u32 place(int row, int chunk) { return row * 128 + ((chunk ^ row % 8) * 16); }
DEVICE void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
DEVICE u32 pack(float x, float y)
{
    __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
    return *reinterpret_cast<u32*>(&pair);
}

extern "C" __global__ void __launch_bounds__(128)
    flash2(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v, __nv_bfloat16* out, int length, float scale)
{
    __shared__ alignas(1024) unsigned char qs[BM * 128], ks[BN * 128], vs[BN * 128];
    const int warp = threadIdx.x / 32, lane = lane_id(), q0 = blockIdx.x * BM;
    auto fetch = [&](unsigned char* to, const __nv_bfloat16* from, int first, int rows) {
        for (int i = threadIdx.x; i < rows * 8; i += 128) {
            const bool inside = first + i / 8 < length;
            copy_16(to + place(i / 8, i % 8), inside ? from + (first + i / 8) * D + i % 8 * 8 : from, inside);
        }
        copy_commit();
    };
    fetch(qs, q, q0, BM);
    fetch(ks, k, 0, BN);
    copy_wait<1>();
    __syncthreads();
    u32 fq[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++) ldmatrix_x4(fq[i], shared_address(qs) + place(warp * 16 + lane % 16, i * 2 + lane / 16));
    float o[8][4] = {}, largest[2] = {-INFINITY, -INFINITY}, sum[2] = {};
    const int row = q0 + warp * 16 + lane / 4;
    for (int n0 = 0; n0 < length; n0 += BN) {
        fetch(vs, v, n0, BN);
        copy_wait<1>();  // K is there
        __syncthreads();
        float p[4][4] = {};
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                u32 fk[4];
                ldmatrix_x4(fk, shared_address(ks) + place(j * 16 + lane % 8 + lane / 16 * 8, i * 2 + lane / 8 % 2));
                multiply(p[j * 2], fq[i], fk[0], fk[1]);
                multiply(p[j * 2 + 1], fq[i], fk[2], fk[3]);
            }
        __syncthreads();
        if (n0 + BN < length) fetch(ks, k, n0 + BN, BN);
        else copy_commit();
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float now = largest[h];
#pragma unroll
            for (int i = 0; i < 8; i++) {
                float& x = p[i / 2][h * 2 + i % 2];
                x = n0 + i / 2 * 8 + lane % 4 * 2 + i % 2 < length ? x * scale : -INFINITY;
                now = fmaxf(now, x);
            }
            now = fmaxf(now, __shfl_xor_sync(~0u, now, 1));
            now = fmaxf(now, __shfl_xor_sync(~0u, now, 2));
            const float factor = exp2f(largest[h] - now);
            largest[h] = now;
            sum[h] *= factor;
#pragma unroll
            for (int i = 0; i < 8; i++) {
                p[i / 2][h * 2 + i % 2] = exp2f(p[i / 2][h * 2 + i % 2] - now);
                sum[h] += p[i / 2][h * 2 + i % 2];
            }
#pragma unroll
            for (int i = 0; i < 16; i++) o[i / 2][h * 2 + i % 2] *= factor;
        }
        copy_wait<1>();  // V is there
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const u32 a[4] = {pack(p[i * 2][0], p[i * 2][1]), pack(p[i * 2][2], p[i * 2][3]), pack(p[i * 2 + 1][0], p[i * 2 + 1][1]),
                              pack(p[i * 2 + 1][2], p[i * 2 + 1][3])};
#pragma unroll
            for (int j = 0; j < 4; j++) {
                u32 fv[4];
                ldmatrix_x4_trans(fv, shared_address(vs) + place(i * 16 + lane % 16, j * 2 + lane / 16));
                multiply(o[j * 2], a, fv[0], fv[1]);
                multiply(o[j * 2 + 1], a, fv[2], fv[3]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        sum[h] += __shfl_xor_sync(~0u, sum[h], 1);
        sum[h] += __shfl_xor_sync(~0u, sum[h], 2);
        if (row + h * 8 < length)
#pragma unroll
            for (int j = 0; j < 8; j++)
                *reinterpret_cast<u32*>(out + (row + h * 8) * D + j * 8 + lane % 4 * 2) = pack(o[j][h * 2] / sum[h], o[j][h * 2 + 1] / sum[h]);
    }
}
