/* Floating-point instructions for all lanes of some warps: arithmetic, comparison, conversion, and what the special
   function unit approximates. As in lanes.c, the meaning of each is that of the NumPy code, to the bit. */

#include <math.h>

#include "operation.h"

/* Floating point. NaN results of .f32 are one pattern; of .f64 they are operands, made quiet. */

#define TINY 0x1p-126f
/* What rounds to nearest below TINY with as many exponents as it takes. */
#define TINY_NEAREST (0x1p-126 * (1 - 0x1p-25))

static inline u32 bits_of(f32 value)
{
    u32 bits;
    memcpy(&bits, &value, 4);
    return bits;
}
static inline f32 single_of(u32 bits)
{
    f32 value;
    memcpy(&value, &bits, 4);
    return value;
}
static inline u64 bits_of_double(f64 value)
{
    u64 bits;
    memcpy(&bits, &value, 8);
    return bits;
}
static inline f64 double_of(u64 bits)
{
    f64 value;
    memcpy(&value, &bits, 8);
    return value;
}

/* A subnormal becomes the zero of its sign. */
static inline f32 flushed(f32 value) { return fabsf(value) < TINY ? single_of(bits_of(value) & 0x80000000u) : value; }
static inline f32 canonical(f32 value) { return value != value ? single_of(0x7fffffff) : value; }
static inline f32 saturated(f32 value) { return value != value ? 0.0f : value <= 0.0f ? 0.0f : value >= 1.0f ? 1.0f : value; }

static inline f32 finished(f32 result, u32 flags) { return canonical(flags & SAT ? saturated(result) : result); }

static inline f32 sum(f32 a, f32 b, u32 flags)
{
    if (flags & FTZ)
        return finished(flushed(flushed(a) + flushed(b)), flags);
    return finished(a + b, flags);
}
static inline f32 product(f32 a, f32 b, u32 flags)
{
    if (!(flags & FTZ))
        return finished(a * b, flags);
    f64 exact = (f64)flushed(a) * (f64)flushed(b);
    f32 result = (f32)exact;
    if (fabs(exact) < TINY_NEAREST)
        result = single_of(bits_of(result) & 0x80000000u);
    return finished(result, flags);
}
static inline f32 fused_ftz(f32 a, f32 b, f32 c, u32 flags)
{
    a = flushed(a), b = flushed(b), c = flushed(c);
    f32 result = fmaf(a, b, c);
    if (fabsf(result) <= TINY) {
        /* Of the sum that is rounded to .f64 the rest decides where it is the limit itself. */
        f64 x = (f64)a * (f64)b, y = c, total = x + y, part = total - x;
        f64 rest = (x - (total - part)) + (y - part);
        f64 magnitude = fabs(total), more = total < 0 ? -rest : rest;
        if (magnitude < TINY_NEAREST || (magnitude == TINY_NEAREST && more < 0))
            result = single_of(bits_of(result) & 0x80000000u);
    }
    return finished(result, flags);
}

BINARY(add_f32, f32, f32, f32, sum(a, b, flags))
BINARY(sub_f32, f32, f32, f32, sum(a, -b, flags))
BINARY(mul_f32, f32, f32, f32, product(a, b, flags))
TERNARY(fma_f32, f32, f32, f32, f32, canonical(fmaf(a, b, c)))
TERNARY(fma_sat_f32, f32, f32, f32, f32, finished(fmaf(a, b, c), SAT))
TERNARY(fma_ftz_f32, f32, f32, f32, f32, fused_ftz(a, b, c, flags))
UNARY(neg_f32, f32, f32, canonical(-(flags & FTZ ? flushed(a) : a)))
UNARY(abs_f32, f32, f32, canonical(fabsf(flags & FTZ ? flushed(a) : a)))

/* The smaller or larger; a NaN loses, and -0 is less than +0. */
static inline f32 smaller(f32 a, f32 b)
{
    if (a != a || b != b)
        return canonical(a != a ? b : a);
    if (a == b)
        return single_of(bits_of(a) | (a == 0 ? bits_of(b) : 0));
    return a < b ? a : b;
}
static inline f32 larger(f32 a, f32 b)
{
    if (a != a || b != b)
        return canonical(a != a ? b : a);
    if (a == b)
        return single_of(a == 0 ? bits_of(a) & bits_of(b) : bits_of(a));
    return a > b ? a : b;
}
#define FLUSHED(x) (flags & FTZ ? flushed(x) : (x))
BINARY(min_f32, f32, f32, f32, smaller(FLUSHED(a), FLUSHED(b)))
BINARY(max_f32, f32, f32, f32, larger(FLUSHED(a), FLUSHED(b)))

static inline f64 quiet(f64 nan) { return double_of(bits_of_double(nan) | 1ull << 51); }
static inline f64 of_two(f64 result, f64 a, f64 b) { return b != b ? quiet(b) : a != a ? quiet(a) : result; }
BINARY(add_f64, f64, f64, f64, of_two(a + b, a, b))
BINARY(sub_f64, f64, f64, f64, of_two(a - b, a, b))
BINARY(mul_f64, f64, f64, f64, of_two(a *b, a, b))
TERNARY(fma_f64, f64, f64, f64, f64, b != b ? quiet(b) : c != c ? quiet(c) : a != a ? quiet(a) : fma(a, b, c))

#define ORDERED(TYPE, FLUSH)                                                                                           \
    COMPARE(setp_eq_##TYPE, TYPE, FLUSH(a) == FLUSH(b))                                                                \
    COMPARE(setp_ne_##TYPE, TYPE, FLUSH(a) < FLUSH(b) || FLUSH(a) > FLUSH(b))                                          \
    COMPARE(setp_lt_##TYPE, TYPE, FLUSH(a) < FLUSH(b))                                                                 \
    COMPARE(setp_le_##TYPE, TYPE, FLUSH(a) <= FLUSH(b))                                                                \
    COMPARE(setp_gt_##TYPE, TYPE, FLUSH(a) > FLUSH(b))                                                                 \
    COMPARE(setp_ge_##TYPE, TYPE, FLUSH(a) >= FLUSH(b))                                                                \
    COMPARE(setp_equ_##TYPE, TYPE, !(FLUSH(a) < FLUSH(b) || FLUSH(a) > FLUSH(b)))                                      \
    COMPARE(setp_neu_##TYPE, TYPE, !(FLUSH(a) == FLUSH(b)))                                                            \
    COMPARE(setp_ltu_##TYPE, TYPE, !(FLUSH(a) >= FLUSH(b)))                                                            \
    COMPARE(setp_leu_##TYPE, TYPE, !(FLUSH(a) > FLUSH(b)))                                                             \
    COMPARE(setp_gtu_##TYPE, TYPE, !(FLUSH(a) <= FLUSH(b)))                                                            \
    COMPARE(setp_geu_##TYPE, TYPE, !(FLUSH(a) < FLUSH(b)))                                                             \
    COMPARE(setp_num_##TYPE, TYPE, a == a && b == b)                                                                   \
    COMPARE(setp_nan_##TYPE, TYPE, a != a || b != b)
#define AS_IS(x) (x)
ORDERED(f32, FLUSHED)
ORDERED(f64, AS_IS)

/* Conversions of floats. */

UNARY(cvt_f64_f32, f64, f32, a)
UNARY(cvt_rn_f32_f64, f32, f64, a)

#define TO_INTEGER(NAME, TD, TA, LEAST, MOST, ROUND, NAN_IS)                                                           \
    UNARY(NAME, TD, TA, a != a ? (TD)NAN_IS : ROUND((f64)a) <= LEAST ? (TD)LEAST : ROUND((f64)a) >= MOST ? (TD)MOST : (TD)ROUND((f64)a))
#define TO_INTEGERS(ROUNDING, ROUND)                                                                                   \
    TO_INTEGER(cvt_##ROUNDING##_s32_f32, s32, f32, -2147483648.0, 2147483647.0, ROUND, 0)                              \
    TO_INTEGER(cvt_##ROUNDING##_u32_f32, u32, f32, 0.0, 4294967295.0, ROUND, 0)                                        \
    TO_INTEGER(cvt_##ROUNDING##_s32_f64, s32, f64, -2147483648.0, 2147483647.0, ROUND, 0x80000000u)                    \
    TO_INTEGER(cvt_##ROUNDING##_u32_f64, u32, f64, 0.0, 4294967295.0, ROUND, 0x80000000u)
TO_INTEGERS(rzi, trunc)
TO_INTEGERS(rni, rint)
TO_INTEGERS(rmi, floor)
TO_INTEGERS(rpi, ceil)

UNARY(cvt_f32_bf16, f32, u16, single_of((u32)a << 16))

/* A .f16 as .f32: its exponent is 112 less, also that of a subnormal one. */
static inline f32 of_half(u16 half)
{
    u32 magnitude = (half & 0x7fffu) << 13;
    u32 bits = bits_of(single_of(magnitude) * 0x1p112f);
    if (magnitude >= 0x7c00u << 13)
        bits = magnitude | 0x7f800000u;
    return canonical(single_of(bits | (half & 0x8000u) << 16));
}

/* To the nearest; NaN is 0x7fff. */
static inline u16 to_half(f32 value)
{
    u32 bits = bits_of(value), magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u, result;
    if (magnitude > 0x7f800000u)
        return 0x7fff;
    if (magnitude >= 0x47800000u) /* 65536 */
        result = 0x7c00;
    else if (magnitude < 0x38800000u) /* 2**-14: the sum has the subnormal number in its last bits */
        result = bits_of(single_of(magnitude) + 0.5f) - 0x3f000000u;
    else
        result = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    return (u16)(result | sign);
}
static inline u16 to_bfloat(f32 value)
{
    u32 bits = bits_of(value);
    return value != value ? 0x7fff : (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
UNARY(cvt_f32_f16, f32, u16, of_half(a))
UNARY(cvt_rn_f16_f32, u16, f32, to_half(a))
UNARY(cvt_rn_bf16_f32, u16, f32, to_bfloat(a))
BINARY(cvt_rn_f16x2_f32, u32, f32, f32, (u32)to_half(a) << 16 | to_half(b))
BINARY(cvt_rn_bf16x2_f32, u32, f32, f32, (u32)to_bfloat(a) << 16 | to_bfloat(b))

/* Two .f32 in a word. */

static inline f32 low(u64 pair) { return single_of((u32)pair); }
static inline f32 high(u64 pair) { return single_of((u32)(pair >> 32)); }
static inline u64 pair_of(f32 low, f32 high) { return (u64)bits_of(high) << 32 | bits_of(low); }
static inline f32 fused(f32 a, f32 b, f32 c, u32 flags)
{
    return flags & FTZ ? fused_ftz(a, b, c, flags) : canonical(fmaf(a, b, c));
}
BINARY(add_f32x2, u64, u64, u64, pair_of(sum(low(a), low(b), flags), sum(high(a), high(b), flags)))
BINARY(sub_f32x2, u64, u64, u64, pair_of(sum(low(a), -low(b), flags), sum(high(a), -high(b), flags)))
BINARY(mul_f32x2, u64, u64, u64, pair_of(product(low(a), low(b), flags), product(high(a), high(b), flags)))
TERNARY(fma_f32x2, u64, u64, u64, u64,
        pair_of(fused(low(a), low(b), low(c), flags), fused(high(a), high(b), high(c), flags)))

/* Quotients and roots: .f64 separates them from each value and tie of .f32 that they do not equal. */

static inline f32 quotient(f32 a, f32 b, u32 flags)
{
    f64 exact = (f64)FLUSHED(a) / (f64)FLUSHED(b);
    f32 result = (f32)exact;
    if (flags & FTZ && fabs(exact) < TINY_NEAREST)
        result = single_of(bits_of(result) & 0x80000000u);
    return canonical(result);
}
BINARY(div_rn_f32, f32, f32, f32, quotient(a, b, flags))
UNARY(rcp_rn_f32, f32, f32, quotient(1.0f, a, flags))
UNARY(sqrt_rn_f32, f32, f32, canonical((f32)sqrt((f64)(FLUSHED(a)))))

/* The special function unit, as `arithmetic.special` and `arithmetic.functions` have it. */

/* Rows of an interpolator (`arithmetic.interpolator.Rows`): coefficients by segment, the squares of offsets of `rest`
   bits, and of tanh, how many bits of the mantissa do not count. */
struct table {
    const f64 *c0, *c1, *c2, *squares;
    const s64 *shifts;
    s64 rest;
};
enum { RECIPROCAL, RECIPROCAL_ROOT, ROOT, LOGARITHM, POWER, SINE, TANGENT, TABLES };
static struct table tables[TABLES];

/* Give a table, before the first operation that uses it; it stays. */
EXPORT void ptxgen_table(s64 number, const f64 *c0, const f64 *c1, const f64 *c2, const f64 *squares, const s64 *shifts,
                         s64 rest)
{
    tables[number] = (struct table){c0, c1, c2, squares, shifts, rest};
}

static inline f64 segment(const struct table *table, s64 index, s64 x)
{
    return table->c1[index] * (f64)x + table->c0[index] + table->c2[index] * table->squares[x];
}
static inline f64 at(const struct table *table, s64 word)
{
    return segment(table, word >> table->rest, word & ((1 << table->rest) - 1));
}
/* Rounded towards zero. */
static inline f32 cut_off(f64 value) { return (f32)double_of(bits_of_double(value) & ~0x1fffffffull); }

#define NOT_A_NUMBER single_of(0x7fffffff)

static inline f32 special_reciprocal(f32 a)
{
    f32 result = cut_off(at(&tables[RECIPROCAL], bits_of(a))), magnitude = fabsf(a);
    if (result == result)
        return result;
    if (a != a)
        return NOT_A_NUMBER;
    return copysignf(magnitude < TINY ? INFINITY : magnitude == 0x1p126f ? (f32)TINY : 0.0f, a);
}
static inline f32 reciprocal(f32 a, u32 flags)
{
    f32 result = cut_off(at(&tables[RECIPROCAL], bits_of(a))), magnitude = fabsf(a);
    if (result == result)
        return result;
    if (flags & FTZ)
        return special_reciprocal(a);
    f32 scale = magnitude < TINY ? 0x1p24f : magnitude > 0x1p126f ? 0.25f : 1.0f;
    return product(special_reciprocal(a * scale), scale, 0);
}
/* a * (1 / b); `large`: of div.full, which takes a quarter of both where |b| is above 2**126. */
static inline f32 fast_quotient(f32 a, f32 b, u32 flags, int large)
{
    f32 result = cut_off(at(&tables[RECIPROCAL], bits_of(b))), magnitude = fabsf(b);
    if (result != result) {
        f32 scale = large && magnitude > 0x1p126f ? 0.25f : 1.0f;
        if (!(flags & FTZ) && magnitude < TINY)
            scale = 0x1p24f;
        a = product(a, scale, flags & FTZ);
        result = special_reciprocal(product(b, scale, flags & FTZ));
    }
    return product(result, a, flags & FTZ);
}

static inline f32 special_reciprocal_root(f32 a)
{
    u32 bits = bits_of(a);
    f32 result = cut_off(at(&tables[RECIPROCAL_ROOT], bits));
    if (result == result)
        return (bits & 0xffffff) == 1 << 23 ? nextafterf(result, INFINITY) : result; /* powers of four */
    return fabsf(a) < TINY ? copysignf(INFINITY, a) : a == INFINITY ? 0.0f : NOT_A_NUMBER;
}
static inline f32 special_root(f32 a)
{
    f32 result = cut_off(at(&tables[ROOT], bits_of(a)));
    if (result == result)
        return result;
    return fabsf(a) < TINY ? copysignf(0.0f, a) : a == INFINITY ? INFINITY : NOT_A_NUMBER;
}
static inline f32 special_logarithm(f32 a)
{
    f32 result = cut_off(floor(at(&tables[LOGARITHM], bits_of(a))) * 0x1p-36);
    if (bits_of(a) == 0x3f800000)
        return 0.0f;
    if (result == result)
        return result;
    return fabsf(a) < TINY ? -INFINITY : a == INFINITY ? INFINITY : NOT_A_NUMBER;
}
/* Without .ftz, that of a subnormal a is that of a * 2**24, from which AFTER makes the result. */
#define OF_SUBNORMAL(NAME, AFTER)                                                                                      \
    static inline f32 NAME(f32 a, u32 flags)                                                                           \
    {                                                                                                                  \
        if (flags & FTZ || !(fabsf(a) < TINY))                                                                         \
            return special_##NAME(a);                                                                                  \
        f32 result = special_##NAME(a * 0x1p24f);                                                                      \
        return AFTER;                                                                                                  \
    }
OF_SUBNORMAL(reciprocal_root, product(result, 0x1p12f, 0))
OF_SUBNORMAL(root, product(result, 0x1p-12f, 0))
OF_SUBNORMAL(logarithm, sum(result, -24.0f, 0))

static inline f32 special_power(f32 a)
{
    if (a != a)
        return NOT_A_NUMBER;
    f64 bounded = fabsf(a) < 256.0f ? a : a > 0 ? 255.0 : -255.0;
    s64 fixed = (s64)(bounded * 0x1p23);
    fixed -= fixed < 0 && (fixed & 0x7fffff);
    return cut_off(at(&tables[POWER], fixed & 0xffffffff));
}
static inline f32 power(f32 a, u32 flags)
{
    if (flags & FTZ || !(a < -126.0f))
        return special_power(a);
    f32 half = special_power(a * 0.5f);
    return product(half, half, 0);
}

/* Of an angle in turns. */
static inline f32 circular(f32 turns, int cosine)
{
    if (!(fabsf(turns) < INFINITY))
        return NOT_A_NUMBER;
    f64 magnitude = fabs((f64)turns);
    s64 part = (s64)((magnitude - floor(magnitude)) * 0x1p25);
    if (cosine)
        part += 1 << 23;
    int negative = (part & 1 << 24) != 0;
    if (!cosine)
        negative ^= bits_of(turns) >> 31;
    f32 value = cut_off(at(&tables[SINE], (part & 1 << 23 ? ~part : part) & 0x7fffff));
    return negative ? -value : value;
}
/* .f32 nearest to 1 / (2 pi). */
#define PER_TURN 0x1.45f306p-3
static inline f32 turns(f32 angle) { return cut_off((f64)angle * PER_TURN); }

static inline f32 tangent(f32 a)
{
    if (a != a)
        return NOT_A_NUMBER;
    if (fabsf(a) < 0x1p-8f)
        return a;
    s64 lead = bits_of(a) >> 19;
    return cut_off(segment(&tables[TANGENT], lead, (bits_of(a) & 0x7fffff) >> tables[TANGENT].shifts[lead] & 0x1ffff));
}

UNARY(rcp_approx_f32, f32, f32, reciprocal(a, flags))
UNARY(rsqrt_approx_f32, f32, f32, reciprocal_root(a, flags))
UNARY(sqrt_approx_f32, f32, f32, root(a, flags))
UNARY(lg2_approx_f32, f32, f32, logarithm(a, flags))
UNARY(ex2_approx_f32, f32, f32, power(a, flags))
UNARY(tanh_approx_f32, f32, f32, tangent(a))
UNARY(sin_approx_f32, f32, f32, circular(turns(a), 0))
UNARY(cos_approx_f32, f32, f32, circular(turns(a), 1))
BINARY(div_full_f32, f32, f32, f32, fast_quotient(a, b, flags, 1))
BINARY(div_approx_f32, f32, f32, f32, fast_quotient(a, b, flags, 0))

/* The operations by name. */

#define ORDERED_NAMES(TYPE)                                                                                            \
    N(setp_eq_##TYPE) N(setp_ne_##TYPE) N(setp_lt_##TYPE) N(setp_le_##TYPE) N(setp_gt_##TYPE) N(setp_ge_##TYPE)        \
    N(setp_equ_##TYPE) N(setp_neu_##TYPE) N(setp_ltu_##TYPE) N(setp_leu_##TYPE) N(setp_gtu_##TYPE)                     \
    N(setp_geu_##TYPE) N(setp_num_##TYPE) N(setp_nan_##TYPE)
#define TO_INTEGER_NAMES(ROUNDING)                                                                                     \
    N(cvt_##ROUNDING##_s32_f32) N(cvt_##ROUNDING##_u32_f32) N(cvt_##ROUNDING##_s32_f64) N(cvt_##ROUNDING##_u32_f64)

const struct named ptxgen_floats[] = {
    N(add_f32) N(sub_f32) N(mul_f32) N(fma_f32) N(fma_sat_f32) N(fma_ftz_f32) N(neg_f32) N(abs_f32) N(min_f32)
    N(max_f32) N(add_f64) N(sub_f64) N(mul_f64) N(fma_f64) ORDERED_NAMES(f32) ORDERED_NAMES(f64)
    N(cvt_f64_f32) N(cvt_rn_f32_f64) TO_INTEGER_NAMES(rzi) TO_INTEGER_NAMES(rni) TO_INTEGER_NAMES(rmi)
    TO_INTEGER_NAMES(rpi) N(cvt_f32_bf16)
    N(cvt_f32_f16) N(cvt_rn_f16_f32) N(cvt_rn_bf16_f32) N(cvt_rn_f16x2_f32) N(cvt_rn_bf16x2_f32)
    N(add_f32x2) N(sub_f32x2) N(mul_f32x2) N(fma_f32x2) N(div_rn_f32) N(rcp_rn_f32) N(sqrt_rn_f32)
    N(rcp_approx_f32) N(rsqrt_approx_f32) N(sqrt_approx_f32) N(lg2_approx_f32) N(ex2_approx_f32) N(tanh_approx_f32)
    N(sin_approx_f32) N(cos_approx_f32) N(div_full_f32) N(div_approx_f32)
};
const size_t ptxgen_float_count = sizeof ptxgen_floats / sizeof *ptxgen_floats;
