// The mathematical functions in single and double precision, with fast and rounded forms.
#include <cuda_runtime.h>

template <typename T>
__device__ T everything(T x, T y, T z, int n)
{
    T s = sin(x) + cos(y) + tan(z) + asin(x) + acos(y) + atan(z) + atan2(x, y) + sinh(x) + cosh(y) + tanh(z) + asinh(x);
    s += acosh(x) + atanh(y) + exp(x) + exp2(y) + exp10(z) + expm1(x) + log(x) + log2(y) + log10(z) + log1p(x) + logb(y);
    s += pow(x, y) + sqrt(x) + rsqrt(y) + cbrt(z) + rcbrt(x) + hypot(x, y) + rhypot(y, z) + norm3d(x, y, z) + rnorm4d(x, y, z, x);
    s += erf(x) + erfc(y) + erfcx(z) + erfinv(x) + erfcinv(y) + normcdf(z) + normcdfinv(x) + lgamma(y) + tgamma(z);
    s += j0(x) + j1(y) + jn(n, z) + y0(x) + y1(y) + yn(n, z) + cyl_bessel_i0(x) + cyl_bessel_i1(y);
    s += fma(x, y, z) + fmod(x, y) + remainder(y, z) + fdim(x, y) + fmax(x, z) + fmin(y, z) + copysign(x, y) + fabs(z);
    s += floor(x) + ceil(y) + trunc(z) + round(x) + rint(y) + nearbyint(z) + nextafter(x, y) + ldexp(x, n) + scalbn(y, n);
    s += sinpi(x) + cospi(y) + isnan(x) + isinf(y) + isfinite(z) + signbit(x) + ilogb(y) + T(lround(z)) + T(llrint(x));
    T one, two;
    int power;
    sincos(x, &one, &two);
    s += one * two + frexp(y, &power) + power + modf(z, &one) + remquo(x, y, &power);
    sincospi(y, &one, &two);
    return s + one - two / s;
}

__global__ void functions(float* f, double* d, int n)
{
    f[0] = everything(f[1], f[2], f[3], n);
    d[0] = everything(d[1], d[2], d[3], n);
}

__global__ void fast(float* f, double* d)
{
    float x = f[0], y = f[1], z = f[2], s, c;
    f[3] = __sinf(x) + __cosf(y) + __tanf(z) + __expf(x) + __exp10f(y) + __logf(z) + __log2f(x) + __log10f(y) + __powf(x, y);
    f[4] = __fadd_rn(x, y) + __fadd_rz(y, z) + __fsub_ru(x, z) + __fmul_rd(x, y) + __fmaf_rn(x, y, z) + __fmaf_ru(z, y, x);
    f[5] = __fdiv_rn(x, y) + __fdiv_rd(y, z) + __frcp_rn(x) + __frcp_rz(y) + __fsqrt_rn(z) + __fsqrt_ru(x) + __frsqrt_rn(y);
    f[6] = __fdividef(x, y) + __saturatef(z) + __fmaf_ieee_rn(x, y, z);
    __sincosf(x, &s, &c);
    f[7] = s * c + x * y + z - x / y;
    d[0] = __dadd_rz(d[1], d[2]) + __dmul_ru(d[3], d[4]) + __dsub_rd(d[5], d[6]) + __fma_rz(d[1], d[2], d[3]);
    d[1] = __ddiv_rn(d[1], d[2]) + __ddiv_ru(d[3], d[4]) + __drcp_rd(d[5]) + __dsqrt_rz(d[6]) + __drcp_rn(d[7]);
#if __CUDA_ARCH__ >= 1000
    float2 p = __ffma2_rn(make_float2(x, y), make_float2(y, z), make_float2(z, x));
    f[8] = p.x + __fadd2_rz(p, p).y + __fmul2_ru(p, p).x;
#endif
}
