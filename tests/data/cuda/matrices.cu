// Warp matrices of every type and shape, and half-precision arithmetic.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

template <int M, int N, int K, typename A, typename B, typename C, typename D = C, typename Element = C>
__device__ void multiply(const void* a, const void* b, void* d)
{
    wmma::fragment<wmma::matrix_a, M, N, K, A, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, B, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, M, N, K, C> fc;
    wmma::fill_fragment(fc, Element(0));
    wmma::load_matrix_sync(fa, static_cast<const typename decltype(fa)::storage_element_type*>(a), K * 4);
    wmma::load_matrix_sync(fb, static_cast<const typename decltype(fb)::storage_element_type*>(b), K * 4);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(static_cast<C*>(d), fc, N, wmma::mem_row_major);
    wmma::store_matrix_sync(static_cast<C*>(d), fc, N, wmma::mem_col_major);
}

__global__ void every(const void* a, const void* b, void* d)
{
    multiply<16, 16, 16, __half, __half, float>(a, b, d);
    multiply<32, 8, 16, __half, __half, float>(a, b, d);
    multiply<8, 32, 16, __half, __half, __half>(a, b, d);
    multiply<16, 16, 16, __nv_bfloat16, __nv_bfloat16, float>(a, b, d);
    multiply<16, 16, 16, signed char, signed char, int>(a, b, d);
    multiply<32, 8, 16, unsigned char, unsigned char, int>(a, b, d);
    multiply<16, 16, 8, wmma::precision::tf32, wmma::precision::tf32, float>(a, b, d);
    multiply<8, 8, 4, double, double, double>(a, b, d);
}

__device__ __half2 lows(__half2 a, __half2 b) { return __lows2half2(a, b); }
__device__ __nv_bfloat162 lows(__nv_bfloat162 a, __nv_bfloat162 b) { return __lows2bfloat162(a, b); }

template <typename T>
__device__ T halves(T a, T b, T c)
{
    a = __hadd2(a, b) * __hsub2(b, c) + __hfma2_relu(a, b, c) - __hneg2(a);
    a = __hmul2_sat(__h2div(a, b), c) + __hmin2(a, b) + __hmax2_nan(a, c) + __habs2(b);
    a = a + h2exp(b) + h2log2(c) + h2sqrt(a) + h2rsqrt(b) + h2rcp(c) + h2sin(a) + h2tanh(b) + h2ceil(c) + h2rint(a);
    a = __hcmadd(a, b, c) + __lowhigh2highlow(a) + lows(a, b);
    return a;
}

__global__ void arithmetic(__half2* h, __nv_bfloat162* b, unsigned* bits, float* f, int* i)
{
    h[0] = halves(h[0], h[1], h[2]);
    b[0] = halves(b[0], b[1], b[2]);
    bits[0] = __heq2_mask(h[0], h[1]) | __hgt2_mask(b[0], b[1]) | __hbeq2(h[0], h[1]) | __hltu2_mask(h[0], h[1]);
    __half x = h[0].x;
    __nv_bfloat16 y = b[0].x;
    f[0] = __half2float(hsin(x)) + __bfloat162float(hexp(y)) + float(x > __half(2)) + float(__hisnan(y));
    i[0] = __half2int_rz(x) + __half2uint_ru(x) + __bfloat162int_rd(y) + __half2short_rn(x) + __half2ll_rn(x);
    h[3] = __floats2half2_rn(f[0], f[1]);
    b[3] = __floats2bfloat162_rn(f[0], f[1]);
    h[4].x = __ll2half_rn(i[0]) + __ushort2half_rd(i[1]) + __double2half(f[2]);
    b[4].x = __uint2bfloat16_rz(i[0]) + __double2bfloat16(f[3]) + __float2bfloat16_ru(f[4]);
    h[5] = __shfl_xor_sync(~0u, h[5], 4);
    b[5] = __ldcg(b + 6);
    h[6] = __ldg(h + 7);
}
