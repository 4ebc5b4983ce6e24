// Numbers of 8, 6 and 4 bits: conversions in both directions, scales.
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

template <typename Narrow>
__device__ void through(Narrow* n, float* f, double* d, __half* h, __nv_bfloat16* b, int i)
{
    n[0] = Narrow(f[0]);
    n[1] = Narrow(d[0]);
    n[2] = Narrow(h[0]);
    n[3] = Narrow(b[0]);
    n[4] = Narrow(i);
    f[1] = float(n[5]);
    h[1] = __half(n[6]);
    b[1] = __nv_bfloat16(n[7]);
    d[1] = double(n[8]);
}

template <typename Two, typename Four>
__device__ void packed(Two* two, Four* four, float2* f, float4* g, __half2* h, __nv_bfloat162* b)
{
    two[0] = Two(f[0]);
    two[1] = Two(h[0]);
    two[2] = Two(b[0]);
    four[0] = Four(g[0]);
    four[1] = Four(h[0], h[1]);
    four[2] = Four(b[0], b[1]);
    h[2] = __half2(two[3]);
    f[1] = float2(two[4]);
    g[1] = float4(four[3]);
}

__global__ void eight(void* n, float* f, double* d, __half* h, __nv_bfloat16* b, int i)
{
    through(static_cast<__nv_fp8_e4m3*>(n), f, d, h, b, i);
    through(static_cast<__nv_fp8_e5m2*>(n), f, d, h, b, i);
    through(static_cast<__nv_fp8_e8m0*>(n), f, d, h, b, i);
    auto* f2 = reinterpret_cast<float2*>(f);
    auto* f4 = reinterpret_cast<float4*>(f);
    auto* h2 = reinterpret_cast<__half2*>(h);
    auto* b2 = reinterpret_cast<__nv_bfloat162*>(b);
    packed(static_cast<__nv_fp8x2_e4m3*>(n), static_cast<__nv_fp8x4_e4m3*>(n), f2, f4, h2, b2);
    packed(static_cast<__nv_fp8x2_e5m2*>(n), static_cast<__nv_fp8x4_e5m2*>(n), f2, f4, h2, b2);
}

__global__ void six_and_four(void* n, float* f, double* d, __half* h, __nv_bfloat16* b, int i)
{
    through(static_cast<__nv_fp6_e2m3*>(n), f, d, h, b, i);
    through(static_cast<__nv_fp6_e3m2*>(n), f, d, h, b, i);
    through(static_cast<__nv_fp4_e2m1*>(n), f, d, h, b, i);
    auto* f2 = reinterpret_cast<float2*>(f);
    auto* f4 = reinterpret_cast<float4*>(f);
    auto* h2 = reinterpret_cast<__half2*>(h);
    auto* b2 = reinterpret_cast<__nv_bfloat162*>(b);
    packed(static_cast<__nv_fp6x2_e2m3*>(n), static_cast<__nv_fp6x4_e2m3*>(n), f2, f4, h2, b2);
    packed(static_cast<__nv_fp6x2_e3m2*>(n), static_cast<__nv_fp6x4_e3m2*>(n), f2, f4, h2, b2);
    packed(static_cast<__nv_fp4x2_e2m1*>(n), static_cast<__nv_fp4x4_e2m1*>(n), f2, f4, h2, b2);
}
