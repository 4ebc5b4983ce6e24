/* Integer, floating-point, logic, comparison and selection instructions for all lanes of some warps.

   The meaning of each is that of the NumPy code in `emulator.semantics`, to the bit; tests/emulator/native compares
   them. Compiled without contraction of sums and products, with signed integers that wrap, and on x86-64 for processors
   that have a fused multiply-add (`library.py`). */

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "lanes.h"

#define LANES 32
/* Warps of which all operations of a run execute before the next ones: their registers stay in the cache. */
#define CHUNK 16

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;
typedef u8 pred;

/* Reading and writing registers. */

#define NARROW(FROM, TO)                                                                                               \
    {                                                                                                                  \
        const FROM *wide = from;                                                                                       \
        TO *narrow = to;                                                                                               \
        for (int lane = 0; lane < LANES; lane++)                                                                       \
            narrow[lane] = (TO)wide[lane];                                                                             \
    }

static __attribute__((noinline)) const void *narrowed(const void *from, int have, void *to, int want)
{
    switch (have << 4 | want) {
    case 2 << 4 | 1: NARROW(u16, u8) break;
    case 4 << 4 | 1: NARROW(u32, u8) break;
    case 4 << 4 | 2: NARROW(u32, u16) break;
    case 8 << 4 | 1: NARROW(u64, u8) break;
    case 8 << 4 | 2: NARROW(u64, u16) break;
    case 8 << 4 | 4: NARROW(u64, u32) break;
    }
    return to;
}

/* The lanes of an operand in a warp; `temporary` already has them where it is a constant. */
static inline const void *lanes_of(const struct operation *op, int which, const struct rows *rows, int64_t warp,
                                   void *temporary, int size)
{
    if (op->from[which] < 0)
        return temporary;
    int have = op->sizes[2 + which];
    const char *row = rows->registers[op->from[which]] + warp * LANES * have;
    return have == size ? (const void *)row : narrowed(row, have, temporary, size);
}

static __attribute__((noinline)) void spread(const struct operation *op, int which, void *temporary, int size)
{
    if (op->from[which] >= 0)
        return;
    for (int lane = 0; lane < LANES; lane++)
        memcpy((char *)temporary + lane * size, &op->value[which], (size_t)size);
}

#define PUT(FROM, TO)                                                                                                  \
    {                                                                                                                  \
        const FROM *given = value;                                                                                     \
        TO *into = row;                                                                                                \
        if (!mask)                                                                                                     \
            for (int lane = 0; lane < LANES; lane++)                                                                   \
                into[lane] = (TO)given[lane];                                                                          \
        else                                                                                                           \
            for (int lane = 0; lane < LANES; lane++)                                                                   \
                into[lane] = mask[lane] ? (TO)given[lane] : into[lane];                                                \
    }                                                                                                                  \
    break;

static __attribute__((noinline)) void put(const struct operation *op, int which, const struct rows *rows, int64_t warp,
                       const void *restrict value, int size, const u8 *restrict mask)
{
    if (op->to[which] < 0)
        return;
    int have = op->sizes[which];
    void *restrict row = rows->registers[op->to[which]] + warp * LANES * have;
    int is_signed = (op->flags & (which ? SIGNED_E : SIGNED_D)) != 0;
    switch (have << 8 | size << 4 | (have > size && is_signed)) {
    case 1 << 8 | 1 << 4: PUT(u8, u8)
    case 2 << 8 | 2 << 4: PUT(u16, u16)
    case 4 << 8 | 4 << 4: PUT(u32, u32)
    case 8 << 8 | 8 << 4: PUT(u64, u64)
    case 2 << 8 | 1 << 4: PUT(u8, u16)
    case 4 << 8 | 1 << 4: PUT(u8, u32)
    case 8 << 8 | 1 << 4: PUT(u8, u64)
    case 4 << 8 | 2 << 4: PUT(u16, u32)
    case 8 << 8 | 2 << 4: PUT(u16, u64)
    case 8 << 8 | 4 << 4: PUT(u32, u64)
    case 2 << 8 | 1 << 4 | 1: PUT(s8, s16)
    case 4 << 8 | 1 << 4 | 1: PUT(s8, s32)
    case 8 << 8 | 1 << 4 | 1: PUT(s8, s64)
    case 4 << 8 | 2 << 4 | 1: PUT(s16, s32)
    case 8 << 8 | 2 << 4 | 1: PUT(s16, s64)
    case 8 << 8 | 4 << 4 | 1: PUT(s32, s64)
    }
}

/* The lanes that execute an operation in a warp: NULL for all, `none` if there is none. */
static const u8 none[LANES];

static __attribute__((noinline)) const u8 *acting(const struct operation *op, const struct rows *rows, int64_t position, int64_t warp,
                               u8 *temporary)
{
    const u8 *mask = rows->mask ? rows->mask + position * LANES : NULL;
    if (!op->guard)
        return mask;
    int32_t number = op->guard > 0 ? op->guard - 1 : -op->guard - 1;
    const u8 *guard = (const u8 *)rows->registers[number] + warp * LANES;
    u8 invert = op->guard < 0, some = 0, all = 1;
    for (int lane = 0; lane < LANES; lane++) {
        u8 here = guard[lane] ^ invert;
        if (mask)
            here &= mask[lane];
        temporary[lane] = here;
        some |= here;
        all &= here;
    }
    return !some ? none : all ? NULL : temporary;
}

#define EACH_WARP(BODY)                                                                                                \
    for (int64_t position = rows->first; position < rows->first + rows->count; position++) {                           \
        int64_t warp = rows->warps ? rows->warps[position] : position;                                                 \
        u8 guarded[LANES];                                                                                             \
        const u8 *mask = acting(op, rows, position, warp, guarded);                                                    \
        if (mask == none)                                                                                              \
            continue;                                                                                                  \
        BODY                                                                                                           \
    }

#define OPERAND(NAME, WHICH, TYPE)                                                                                     \
    TYPE NAME##_constant[LANES];                                                                                       \
    spread(op, WHICH, NAME##_constant, sizeof(TYPE));

#define LOAD(NAME, WHICH, TYPE)                                                                                        \
    const TYPE *restrict NAME##_lanes = lanes_of(op, WHICH, rows, warp, NAME##_constant, sizeof(TYPE));

#define UNARY(NAME, TD, TA, EXPRESSION)                                                                                \
    static void NAME(const struct operation *op, const struct rows *rows)                                              \
    {                                                                                                                  \
        const u32 flags = op->flags;                                                                                   \
        (void)flags;                                                                                                   \
        OPERAND(a, 0, TA)                                                                                              \
        EACH_WARP({                                                                                                    \
            LOAD(a, 0, TA)                                                                                             \
            TD result[LANES];                                                                                          \
            for (int lane = 0; lane < LANES; lane++) {                                                                 \
                TA a = a_lanes[lane];                                                                                  \
                result[lane] = (TD)(EXPRESSION);                                                                       \
            }                                                                                                          \
            put(op, 0, rows, warp, result, sizeof(TD), mask);                                                          \
        })                                                                                                             \
    }

#define BINARY(NAME, TD, TA, TB, EXPRESSION)                                                                           \
    static void NAME(const struct operation *op, const struct rows *rows)                                              \
    {                                                                                                                  \
        const u32 flags = op->flags;                                                                                   \
        (void)flags;                                                                                                   \
        OPERAND(a, 0, TA)                                                                                              \
        OPERAND(b, 1, TB)                                                                                              \
        EACH_WARP({                                                                                                    \
            LOAD(a, 0, TA)                                                                                             \
            LOAD(b, 1, TB)                                                                                             \
            TD result[LANES];                                                                                          \
            for (int lane = 0; lane < LANES; lane++) {                                                                 \
                TA a = a_lanes[lane];                                                                                  \
                TB b = b_lanes[lane];                                                                                  \
                result[lane] = (TD)(EXPRESSION);                                                                       \
            }                                                                                                          \
            put(op, 0, rows, warp, result, sizeof(TD), mask);                                                          \
        })                                                                                                             \
    }

#define TERNARY(NAME, TD, TA, TB, TC, EXPRESSION)                                                                      \
    static void NAME(const struct operation *op, const struct rows *rows)                                              \
    {                                                                                                                  \
        const u32 flags = op->flags;                                                                                   \
        (void)flags;                                                                                                   \
        OPERAND(a, 0, TA)                                                                                              \
        OPERAND(b, 1, TB)                                                                                              \
        OPERAND(c, 2, TC)                                                                                              \
        EACH_WARP({                                                                                                    \
            LOAD(a, 0, TA)                                                                                             \
            LOAD(b, 1, TB)                                                                                             \
            LOAD(c, 2, TC)                                                                                             \
            TD result[LANES];                                                                                          \
            for (int lane = 0; lane < LANES; lane++) {                                                                 \
                TA a = a_lanes[lane];                                                                                  \
                TB b = b_lanes[lane];                                                                                  \
                TC c = c_lanes[lane];                                                                                  \
                result[lane] = (TD)(EXPRESSION);                                                                       \
            }                                                                                                          \
            put(op, 0, rows, warp, result, sizeof(TD), mask);                                                          \
        })                                                                                                             \
    }

/* setp: d is the comparison, e its opposite, both combined with c. */
#define COMPARE(NAME, TA, EXPRESSION)                                                                                  \
    static void NAME(const struct operation *op, const struct rows *rows)                                              \
    {                                                                                                                  \
        const u32 flags = op->flags;                                                                                   \
        OPERAND(a, 0, TA)                                                                                              \
        OPERAND(b, 1, TA)                                                                                              \
        OPERAND(c, 2, pred)                                                                                            \
        const u8 invert = (flags & INVERT_C) != 0;                                                                     \
        EACH_WARP({                                                                                                    \
            LOAD(a, 0, TA)                                                                                             \
            LOAD(b, 1, TA)                                                                                             \
            pred result[LANES];                                                                                        \
            pred other[LANES];                                                                                         \
            for (int lane = 0; lane < LANES; lane++) {                                                                 \
                TA a = a_lanes[lane];                                                                                  \
                TA b = b_lanes[lane];                                                                                  \
                result[lane] = (EXPRESSION) ? 1 : 0;                                                                   \
            }                                                                                                          \
            for (int lane = 0; lane < LANES; lane++)                                                                   \
                other[lane] = result[lane] ^ 1;                                                                        \
            if (flags & (AND_C | OR_C | XOR_C)) {                                                                      \
                LOAD(c, 2, pred)                                                                                       \
                combine(flags, result, c_lanes, invert);                                                               \
                combine(flags, other, c_lanes, invert);                                                                \
            }                                                                                                          \
            put(op, 1, rows, warp, other, 1, mask);                                                                    \
            put(op, 0, rows, warp, result, 1, mask);                                                                   \
        })                                                                                                             \
    }

static void combine(u32 flags, pred *restrict result, const pred *restrict with, u8 invert)
{
    if (flags & AND_C)
        for (int lane = 0; lane < LANES; lane++)
            result[lane] &= with[lane] ^ invert;
    else if (flags & OR_C)
        for (int lane = 0; lane < LANES; lane++)
            result[lane] |= with[lane] ^ invert;
    else
        for (int lane = 0; lane < LANES; lane++)
            result[lane] ^= with[lane] ^ invert;
}

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

/* The operations by name. */

typedef void (*function)(const struct operation *, const struct rows *);
struct named {
    const char *name;
    function run;
};

#define N(NAME) {#NAME, NAME},
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
#define ORDERED_NAMES(TYPE)                                                                                            \
    N(setp_eq_##TYPE) N(setp_ne_##TYPE) N(setp_lt_##TYPE) N(setp_le_##TYPE) N(setp_gt_##TYPE) N(setp_ge_##TYPE)        \
    N(setp_equ_##TYPE) N(setp_neu_##TYPE) N(setp_ltu_##TYPE) N(setp_leu_##TYPE) N(setp_gtu_##TYPE)                     \
    N(setp_geu_##TYPE) N(setp_num_##TYPE) N(setp_nan_##TYPE)
#define TO_INTEGER_NAMES(ROUNDING)                                                                                     \
    N(cvt_##ROUNDING##_s32_f32) N(cvt_##ROUNDING##_u32_f32) N(cvt_##ROUNDING##_s32_f64) N(cvt_##ROUNDING##_u32_f64)

static const struct named operations[] = {
    INTEGER_NAMES(16) INTEGER_NAMES(32) INTEGER_NAMES(64) WIDE_NAMES(16) WIDE_NAMES(32)
    N(popc_b32) N(popc_b64) N(clz_b32) N(clz_b64) N(brev_b32) N(lop3_b32)
    N(shf_l_wrap) N(shf_r_wrap) N(shf_l_clamp) N(shf_r_clamp) N(prmt_b32) N(bfe_u32) N(bfe_s32)
    N(and_pred) N(or_pred) N(xor_pred) N(not_pred) N(mov_pred)
    N(pack_b64) N(pack_b32) N(unpack_b64) N(unpack_b32)
    INTEGER_TYPES(CONVERT_NAMES)
    N(add_f32) N(sub_f32) N(mul_f32) N(fma_f32) N(fma_sat_f32) N(fma_ftz_f32) N(neg_f32) N(abs_f32) N(min_f32)
    N(max_f32) N(add_f64) N(sub_f64) N(mul_f64) N(fma_f64) ORDERED_NAMES(f32) ORDERED_NAMES(f64)
    N(cvt_f64_f32) N(cvt_rn_f32_f64) TO_INTEGER_NAMES(rzi) TO_INTEGER_NAMES(rni) TO_INTEGER_NAMES(rmi)
    TO_INTEGER_NAMES(rpi) N(cvt_f32_bf16)
};

#define EXPORT __attribute__((visibility("default")))

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
    size_t count = sizeof operations / sizeof *operations;
    return number >= 0 && (size_t)number < count ? operations[number].name : NULL;
}

/* Execute operations one after the other, for `count` warps: those of `warps`, or the first ones where it is NULL.
   `mask` has a byte for each lane of these, or is NULL: all execute. */
EXPORT void ptxgen_run(const struct operation *run, int64_t length, char *const *registers, const int64_t *warps,
                       int64_t count, const uint8_t *mask)
{
    for (int64_t first = 0; first < count; first += CHUNK) {
        struct rows rows = {registers, warps, mask, first, count - first < CHUNK ? count - first : CHUNK};
        for (int64_t at = 0; at < length; at++)
            operations[run[at].code].run(&run[at], &rows);
    }
}
