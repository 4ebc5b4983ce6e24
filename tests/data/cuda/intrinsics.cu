// Integer, cast, warp and memory intrinsics, packed and 128-bit integers.
#include <cuda_runtime.h>

__global__ void integers(unsigned* u, int* i, long long* l, unsigned long long* ul)
{
    unsigned a = u[0], b = u[1], c = u[2];
    int x = i[0], y = i[1], z = i[2];
    u[3] = __brev(a) + __byte_perm(a, b, c) + __clz(x) + __ffs(y) + __popc(a) + __rhadd(x, y) + __uhadd(a, b);
    u[4] = __umulhi(a, b) + __mulhi(x, y) + __mul24(x, y) + __umul24(a, b) + __usad(a, b, c) + __sad(x, y, c);
    u[5] = __funnelshift_l(a, b, c) + __funnelshift_lc(a, b, c) + __funnelshift_r(a, b, c) + __funnelshift_rc(a, b, c);
    u[6] = __dp4a(a, b, c) + __dp4a(x, y, z) + __dp2a_lo(x, y, z) + __dp2a_hi(a, b, c) + __fns(a, b, y);
    u[7] = __vadd2(a, b) + __vadd4(a, b) + __vaddss2(a, b) + __vaddus4(a, b) + __vsub2(a, b) + __vsubss4(a, b);
    u[8] = __vabs2(a) + __vabsdiffs2(a, b) + __vabsdiffu4(a, b) + __vabsss4(a) + __vavgs2(a, b) + __vavgu4(a, b);
    u[9] = __vcmpeq2(a, b) + __vcmpgts4(a, b) + __vcmpleu2(a, b) + __vmaxs2(a, b) + __vminu4(a, b) + __vneg4(a);
    u[10] = __vsads2(a, b) + __vsadu4(a, b) + __vseteq4(a, b) + __vsetgtu2(a, b) + __vhaddu2(a, b) + __vnegss2(a);
    u[11] = __viaddmax_s32(x, y, z) + __vimax3_u32(a, b, c) + __vimin3_s16x2_relu(a, b, c) + __viaddmin_u16x2(a, b, c);
    bool low, high;
    u[12] = __vibmax_s16x2(a, b, &low, &high) + low + high + __vimax_s32_relu(x, y);
    l[0] = __mul64hi(l[1], l[2]) + __clzll(l[1]) + __ffsll(l[2]) + __popcll(ul[0]) + llabs(l[3]) + (l[4] >> (a & 63));
    ul[1] = __umul64hi(ul[2], ul[3]) + __brevll(ul[4]) + ul[5] / ul[6] + ul[7] % ul[8] + l[5] / l[6];
    __int128 wide = static_cast<__int128>(l[1]) * l[2] + l[3];
    unsigned __int128 wider = static_cast<unsigned __int128>(ul[2]) << (a & 127);
    wide = wide / 7 + (wide >> 3) - static_cast<__int128>(wider % 1000);
    l[7] = wide < 0 ? static_cast<long long>(wide) : static_cast<long long>(wide >> 64);
    i[3] = max(x, min(y, z)) + abs(x) - (x == y ? 3 : z) * (x & ~y | z ^ 5) + x / 10 + y % 10 + (x >> 31);
    short s = static_cast<short>(x);
    signed char t = static_cast<signed char>(s + y);
    i[4] = s * t + (s >> 3) + static_cast<unsigned char>(y) + static_cast<unsigned short>(z) + (t << 4);
}

__global__ void casts(float* f, double* d, int* i, long long* l, unsigned long long* ul)
{
    i[0] = __float2int_rd(f[0]) + __float2int_rn(f[1]) + __float2uint_ru(f[2]) + __float2uint_rz(f[3]);
    i[1] = __double2int_rd(d[0]) + __double2uint_rn(d[1]) + __double2hiint(d[2]) + __double2loint(d[3]);
    i[2] = __float_as_int(f[4]) + __float_as_uint(f[5]) + int(f[6]) + unsigned(d[4]) + char(f[7]) + short(d[5]);
    l[0] = __float2ll_ru(f[8]) + __double2ll_rd(d[6]) + __double_as_longlong(d[7]) + (long long)(f[9]);
    ul[0] = __float2ull_rz(f[10]) + __double2ull_rn(d[8]) + (unsigned long long)(d[9]);
    f[11] = __int2float_rd(i[3]) + __uint2float_ru(i[4]) + __ll2float_rz(l[1]) + __ull2float_rn(ul[1]) + float(i[5]);
    f[12] = __double2float_rd(d[10]) + __double2float_ru(d[11]) + __int_as_float(i[6]) + float(d[12]);
    d[13] = __int2double_rn(i[7]) + __ll2double_rd(l[2]) + __ull2double_ru(ul[2]) + __hiloint2double(i[8], i[9]) + f[13];
    d[14] = __longlong_as_double(l[3]) + double(static_cast<signed char>(i[10])) + double(static_cast<short>(i[11]));
}

__global__ void warps(int* i, unsigned* u, double* d, long long* l)
{
    unsigned mask = __activemask();
    int x = i[threadIdx.x];
    i[0] = __shfl_sync(mask, x, 3) + __shfl_up_sync(mask, x, 1, 16) + __shfl_down_sync(mask, x, 2) + __shfl_xor_sync(~0u, x, 8, 8);
    d[0] = __shfl_xor_sync(mask, d[1], 1);
    l[0] = __shfl_sync(mask, l[1], x);
    u[0] = __ballot_sync(mask, x) + __all_sync(mask, x) + __any_sync(mask, x > 3) + __match_any_sync(mask, x);
    int all;
    u[1] = __match_all_sync(mask, l[2], &all) + all + __reduce_add_sync(mask, x) + __reduce_min_sync(mask, x);
    u[2] = __reduce_max_sync(mask, u[3]) + __reduce_and_sync(mask, u[4]) + __reduce_or_sync(mask, u[5]) + __reduce_xor_sync(mask, u[6]);
    __syncwarp(mask);
    __syncthreads();
    __threadfence_block();
    __threadfence();
    __threadfence_system();
    u[7] = clock() + unsigned(clock64()) + __isGlobal(i) + __isShared(i) + __isLocal(&all) + __isConstant(i) + __isGridConstant(i);
    u[8] = __cvta_generic_to_shared(u) + threadIdx.x * blockIdx.y + gridDim.z * blockDim.x;
    __prof_trigger(1);
    asm volatile("mov.u32 %0, %%laneid; // lanes" : "=r"(u[9]));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(l[3]));
    asm("{.reg .b32 t1;\n\t mov.b32 t1, {%1, %2};\n\t/* packed */ add.u32 %0, t1, %3;}" : "=r"(u[10]) : "h"(short(x)), "h"(short(1)), "n"(5));
}

__global__ void memory(int* i, const int4* __restrict__ v, const double2* __restrict__ d, unsigned char* b, short2* s)
{
    int4 a = __ldg(v) ;
    int4 c = __ldcg(v + 1), e = __ldca(v + 2), f = __ldcs(v + 3), g = __ldlu(v + 4), h = __ldcv(v + 5);
    double2 k = __ldg(d + threadIdx.x);
    __stwb(i, a.x + c.y + e.z + f.w);
    __stcg(i + 1, g.x + int(k.x));
    __stcs(i + 2, h.y + int(k.y));
    __stwt(i + 3, *b + s->x);
    *reinterpret_cast<volatile int*>(i + 4) = *reinterpret_cast<volatile int*>(i + 5) + v[7].x;
    *reinterpret_cast<volatile unsigned char*>(b + 1) = b[2];
    *reinterpret_cast<float4*>(i + 8) = *reinterpret_cast<float4*>(i + 12);
    struct alignas(32) Wide { double x[4]; };
    *reinterpret_cast<Wide*>(i + 32) = *reinterpret_cast<const Wide*>(i + 64);
}
