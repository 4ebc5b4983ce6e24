/* Integer, logic, comparison, selection and conversion instructions for all lanes of some warps.

   The meaning of each is that of the NumPy code in `emulator.semantics`, to the bit; tests/emulator/native compares
   them. Compiled without contraction of sums and products, with signed integers that wrap, and on x86-64 for processors
   that have a fused multiply-add (`library.py`). */

#include "operation.h"

/* Warps of which all operations of a run execute before the next ones: their registers stay in the cache. */
#define CHUNK 16

/* Integers. */

static inline u64 high_u64(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
static inline s64 high_s64(s64 a, s64 b) { return (s64)((__int128)a * b >> 64); }

/* All ones where b is 0; a signed b of -1 would overflow. */
#define QUOTIENT_U(T, a, b) ((b) == 0 ? (T)~(T)0 : (T)((a) / (b)))
#define REMAINDER_U(T, a, b) ((b) == 0 ? (T)~(T)0 : (T)((a) % (b)))
#define QUOTIENT_S(T, a, b) ((b) == 0 ? (T)~(T)0 : (b) == -1 ? (T)(0 - (a)) : (T)((a) / (b)))
#define REMAINDER_S(T, a, b) ((b) == 0 ? (T)~(T)0 : (b) == -1 ? (T)0 : (T)((a) % (b)))

#define INTEGERS_OF(BITS)                                                                                              \
    BINARY(add_b##BITS, u##BITS, u##BITS, u##BITS, a + b)                                                              \
    BINARY(sub_b##BITS, u##BITS, u##BITS, u##BITS, a - b)                                                              \
    BINARY(mul_lo_b##BITS, u##BITS, u##BITS, u##BITS, a *b)                                                           \
    TERNARY(mad_lo_b##BITS, u##BITS, u##BITS, u##BITS, u##BITS, a *b + c)                                              \
    BINARY(min_u##BITS, u##BITS, u##BITS, u##BITS, a < b ? a : b)                                                      \
    BINARY(max_u##BITS, u##BITS, u##BITS, u##BITS, a > b ? a : b)                                                      \
    BINARY(min_s##BITS, s##BITS, s##BITS, s##BITS, a < b ? a : b)                                                      \
    BINARY(max_s##BITS, s##BITS, s##BITS, s##BITS, a > b ? a : b)                                                      \
    BINARY(div_u##BITS, u##BITS, u##BITS, u##BITS, QUOTIENT_U(u##BITS, a, b))                                            \
    BINARY(div_s##BITS, s##BITS, s##BITS, s##BITS, QUOTIENT_S(s##BITS, a, b))                                            \
    BINARY(rem_u##BITS, u##BITS, u##BITS, u##BITS, REMAINDER_U(u##BITS, a, b))                                           \
    BINARY(rem_s##BITS, s##BITS, s##BITS, s##BITS, REMAINDER_S(s##BITS, a, b))                                           \
    UNARY(neg_b##BITS, u##BITS, u##BITS, 0 - a)                                                                        \
    UNARY(abs_s##BITS, u##BITS, s##BITS, a < 0 ? 0 - (u##BITS)a : (u##BITS)a)                                          \
    BINARY(and_b##BITS, u##BITS, u##BITS, u##BITS, a &b)                                                               \
    BINARY(or_b##BITS, u##BITS, u##BITS, u##BITS, a | b)                                                               \
    BINARY(xor_b##BITS, u##BITS, u##BITS, u##BITS, a ^ b)                                                              \
    UNARY(not_b##BITS, u##BITS, u##BITS, ~a)                                                                           \
    UNARY(mov_b##BITS, u##BITS, u##BITS, a)                                                                            \
    BINARY(shl_b##BITS, u##BITS, u##BITS, u32, b < BITS ? (u##BITS)(a << (b & (BITS - 1))) : 0)                        \
    BINARY(shr_u##BITS, u##BITS, u##BITS, u32, b < BITS ? a >> (b & (BITS - 1)) : 0)                                   \
    BINARY(shr_s##BITS, s##BITS, s##BITS, u32, a >> (b < BITS ? b : BITS - 1))                                         \
    TERNARY(selp_b##BITS, u##BITS, u##BITS, u##BITS, pred, (c != 0) != ((flags & INVERT_C) != 0) ? a : b)              \
    COMPARE(setp_eq_b##BITS, u##BITS, a == b)                                                                          \
    COMPARE(setp_ne_b##BITS, u##BITS, a != b)                                                                          \
    COMPARE(setp_lt_u##BITS, u##BITS, a < b)                                                                           \
    COMPARE(setp_le_u##BITS, u##BITS, a <= b)                                                                          \
    COMPARE(setp_gt_u##BITS, u##BITS, a > b)                                                                           \
    COMPARE(setp_ge_u##BITS, u##BITS, a >= b)                                                                          \
    COMPARE(setp_lt_s##BITS, s##BITS, a < b)                                                                           \
    COMPARE(setp_le_s##BITS, s##BITS, a <= b)                                                                          \
    COMPARE(setp_gt_s##BITS, s##BITS, a > b)                                                                           \
    COMPARE(setp_ge_s##BITS, s##BITS, a >= b)

INTEGERS_OF(16)
INTEGERS_OF(32)
INTEGERS_OF(64)

#define WIDE_OF(BITS, WIDER)                                                                                           \
    BINARY(mul_hi_u##BITS, u##BITS, u##BITS, u##BITS, (u##WIDER)a *(u##WIDER)b >> BITS)                                \
    BINARY(mul_hi_s##BITS, s##BITS, s##BITS, s##BITS, (s##WIDER)a *(s##WIDER)b >> BITS)                                \
    TERNARY(mad_hi_u##BITS, u##BITS, u##BITS, u##BITS, u##BITS, ((u##WIDER)a * (u##WIDER)b >> BITS) + c)               \
    TERNARY(mad_hi_s##BITS, u##BITS, s##BITS, s##BITS, u##BITS, (u##BITS)((s##WIDER)a * (s##WIDER)b >> BITS) + c)      \
    BINARY(mul_wide_u##BITS, u##WIDER, u##BITS, u##BITS, (u##WIDER)a *(u##WIDER)b)                                     \
    BINARY(mul_wide_s##BITS, s##WIDER, s##BITS, s##BITS, (s##WIDER)a *(s##WIDER)b)                                     \
    TERNARY(mad_wide_u##BITS, u##WIDER, u##BITS, u##BITS, u##WIDER, (u##WIDER)a *(u##WIDER)b + c)                      \
    TERNARY(mad_wide_s##BITS, u##WIDER, s##BITS, s##BITS, u##WIDER, (u##WIDER)((s##WIDER)a * (s##WIDER)b) + c)

WIDE_OF(16, 32)
WIDE_OF(32, 64)
BINARY(mul_hi_u64, u64, u64, u64, high_u64(a, b))
BINARY(mul_hi_s64, s64, s64, s64, high_s64(a, b))
TERNARY(mad_hi_u64, u64, u64, u64, u64, high_u64(a, b) + c)
TERNARY(mad_hi_s64, u64, s64, s64, u64, (u64)high_s64(a, b) + c)

UNARY(popc_b32, u32, u32, __builtin_popcount(a))
UNARY(popc_b64, u32, u64, __builtin_popcountll(a))
UNARY(clz_b32, u32, u32, a ? __builtin_clz(a) : 32)
UNARY(clz_b64, u32, u64, a ? __builtin_clzll(a) : 64)

static inline u32 reversed(u32 a)
{
    a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
    a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
    a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(a);
}
UNARY(brev_b32, u32, u32, reversed(a))

/* The function of three words whose table is `flags >> 16`: each term is there or not. */
#define TERM(INDEX, x, y, z) (-(flags >> (16 + INDEX) & 1) & (x) & (y) & (z))
TERNARY(lop3_b32, u32, u32, u32, u32,
        TERM(0, ~a, ~b, ~c) | TERM(1, ~a, ~b, c) | TERM(2, ~a, b, ~c) | TERM(3, ~a, b, c) | TERM(4, a, ~b, ~c) |
            TERM(5, a, ~b, c) | TERM(6, a, b, ~c) | TERM(7, a, b, c))

static inline u64 both(u32 low, u32 high) { return (u64)high << 32 | low; }
TERNARY(shf_l_wrap, u32, u32, u32, u32, both(a, b) << (c & 31) >> 32)
TERNARY(shf_r_wrap, u32, u32, u32, u32, both(a, b) >> (c & 31))
TERNARY(shf_l_clamp, u32, u32, u32, u32, both(a, b) << (c < 32 ? c : 32) >> 32)
TERNARY(shf_r_clamp, u32, u32, u32, u32, both(a, b) >> (c < 32 ? c : 32))

/* prmt without a mode: of each digit of c the low three bits name a byte, the fourth spreads its sign. */
static inline u32 byte_of(u64 bytes, u32 digit)
{
    u32 byte = (u32)(bytes >> (digit & 7) * 8) & 0xff;
    return digit & 8 ? (byte & 0x80 ? 0xff : 0) : byte;
}
TERNARY(prmt_b32, u32, u32, u32, u32,
        byte_of(both(a, b), c) | byte_of(both(a, b), c >> 4) << 8 | byte_of(both(a, b), c >> 8) << 16 |
            byte_of(both(a, b), c >> 12) << 24)

/* The first bit and the number of bits count modulo 256; bits past the top are zeros, or copies of the sign. */
static inline u32 field_u32(u32 a, u32 start, u32 length)
{
    start &= 255, length &= 255;
    if (start >= 32 || !length)
        return 0;
    a >>= start;
    return length < 32 ? a & ((1u << length) - 1) : a;
}
static inline s32 field_s32(s32 a, u32 start, u32 length)
{
    start &= 255, length &= 255;
    if (!length)
        return 0;
    if (start >= 32)
        return a >> 31;
    u32 end = start + length < 32 ? start + length : 32;
    return (s32)((u32)a << (32 - end)) >> (32 - end + start);
}
TERNARY(bfe_u32, u32, u32, u32, u32, field_u32(a, b, c))
TERNARY(bfe_s32, s32, s32, u32, u32, field_s32(a, b, c))

/* Predicates. */

#define A_IS ((a != 0) != ((flags & INVERT_A) != 0))
#define B_IS ((b != 0) != ((flags & INVERT_B) != 0))
BINARY(and_pred, pred, pred, pred, A_IS &B_IS)
BINARY(or_pred, pred, pred, pred, A_IS | B_IS)
BINARY(xor_pred, pred, pred, pred, A_IS ^ B_IS)
UNARY(not_pred, pred, pred, !A_IS)
UNARY(mov_pred, pred, pred, A_IS)

/* Packing: d = {a, b}, {d, e} = a. */

BINARY(pack_b64, u64, u32, u32, both(a, b))
BINARY(pack_b32, u32, u16, u16, (u32)b << 16 | a)

#define UNPACK(NAME, WHOLE, PART, BITS)                                                                                \
    static void NAME(const struct operation *op, const struct rows *rows)                                              \
    {                                                                                                                  \
        OPERAND(a, 0, WHOLE)                                                                                           \
        EACH_WARP({                                                                                                    \
            LOAD(a, 0, WHOLE)                                                                                          \
            PART low[LANES];                                                                                           \
            PART high[LANES];                                                                                          \
            for (int lane = 0; lane < LANES; lane++) {                                                                 \
                low[lane] = (PART)a_lanes[lane];                                                                       \
                high[lane] = (PART)(a_lanes[lane] >> BITS);                                                            \
            }                                                                                                          \
            put(op, 0, rows, warp, low, sizeof(PART), mask);                                                           \
            put(op, 1, rows, warp, high, sizeof(PART), mask);                                                          \
        })                                                                                                             \
    }
UNPACK(unpack_b64, u64, u32, 32)
UNPACK(unpack_b32, u32, u16, 16)

/* Conversions between integers. */

#define CONVERT_FROM(TA)                                                                                               \
    UNARY(cvt_b8_##TA, u8, TA, a)                                                                                      \
    UNARY(cvt_b16_##TA, u16, TA, a)                                                                                    \
    UNARY(cvt_b32_##TA, u32, TA, a)                                                                                    \
    UNARY(cvt_b64_##TA, u64, TA, a)                                                                                    \
    UNARY(cvt_rn_f32_##TA, f32, TA, a)                                                                                 \
    UNARY(cvt_rn_f64_##TA, f64, TA, a)

#define INTEGER_TYPES(X) X(u8) X(u16) X(u32) X(u64) X(s8) X(s16) X(s32) X(s64)
INTEGER_TYPES(CONVERT_FROM)

/* The operations by name; those of floats.c have the numbers after these. */

#define INTEGER_NAMES(BITS)                                                                                            \
    N(add_b##BITS) N(sub_b##BITS) N(mul_lo_b##BITS) N(mad_lo_b##BITS) N(min_u##BITS) N(max_u##BITS) N(min_s##BITS)     \
    N(max_s##BITS) N(div_u##BITS) N(div_s##BITS) N(rem_u##BITS) N(rem_s##BITS) N(neg_b##BITS) N(abs_s##BITS)           \
    N(and_b##BITS) N(or_b##BITS) N(xor_b##BITS) N(not_b##BITS) N(mov_b##BITS) N(shl_b##BITS) N(shr_u##BITS)            \
    N(shr_s##BITS) N(selp_b##BITS) N(setp_eq_b##BITS) N(setp_ne_b##BITS) N(setp_lt_u##BITS) N(setp_le_u##BITS)         \
    N(setp_gt_u##BITS) N(setp_ge_u##BITS) N(setp_lt_s##BITS) N(setp_le_s##BITS) N(setp_gt_s##BITS) N(setp_ge_s##BITS)  \
    N(mul_hi_u##BITS) N(mul_hi_s##BITS) N(mad_hi_u##BITS) N(mad_hi_s##BITS)
#define WIDE_NAMES(BITS) N(mul_wide_u##BITS) N(mul_wide_s##BITS) N(mad_wide_u##BITS) N(mad_wide_s##BITS)
#define CONVERT_NAMES(TA)                                                                                              \
    N(cvt_b8_##TA) N(cvt_b16_##TA) N(cvt_b32_##TA) N(cvt_b64_##TA) N(cvt_rn_f32_##TA) N(cvt_rn_f64_##TA)

static const struct named integers[] = {
    INTEGER_NAMES(16) INTEGER_NAMES(32) INTEGER_NAMES(64) WIDE_NAMES(16) WIDE_NAMES(32)
    N(popc_b32) N(popc_b64) N(clz_b32) N(clz_b64) N(brev_b32) N(lop3_b32)
    N(shf_l_wrap) N(shf_r_wrap) N(shf_l_clamp) N(shf_r_clamp) N(prmt_b32) N(bfe_u32) N(bfe_s32)
    N(and_pred) N(or_pred) N(xor_pred) N(not_pred) N(mov_pred)
    N(pack_b64) N(pack_b32) N(unpack_b64) N(unpack_b32)
    INTEGER_TYPES(CONVERT_NAMES)
};

#define INTEGERS (sizeof integers / sizeof *integers)

static inline const struct named *named(size_t number)
{
    return number < INTEGERS ? &integers[number] : &ptxgen_floats[number - INTEGERS];
}

/* Whether this processor has what the library is compiled for. */
EXPORT int ptxgen_supported(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#else
    return 1;
#endif
}

/* The name of an operation by its number, NULL after the last. */
EXPORT const char *ptxgen_operation(int32_t number)
{
    return number >= 0 && (size_t)number < INTEGERS + ptxgen_float_count ? named((size_t)number)->name : NULL;
}

/* Execute operations one after the other, for `count` warps: those of `warps`, or the first ones where it is NULL.
   `mask` has a byte for each lane of these, or is NULL: all execute. */
EXPORT void ptxgen_run(const struct operation *run, int64_t length, char *const *registers, const int64_t *warps,
                       int64_t count, const uint8_t *mask)
{
    for (int64_t first = 0; first < count; first += CHUNK) {
        struct rows rows = {registers, warps, mask, first, count - first < CHUNK ? count - first : CHUNK};
        for (int64_t at = 0; at < length; at++)
            named(run[at].code)->run(&run[at], &rows);
    }
}
