/* How an operation reads and writes the registers of its warps, and the forms that operations have. */

#ifndef PTXGEN_OPERATION_H
#define PTXGEN_OPERATION_H

#include <stddef.h>
#include <string.h>

#include "lanes.h"
#include "types.h"

#define LANES 32

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
    const TYPE *NAME##_lanes = lanes_of(op, WHICH, rows, warp, NAME##_constant, sizeof(TYPE));

/* Where results go: to their register, whose lanes may be those of an operand, or to `temporary` for `put`. */
static inline void *into(const struct operation *op, const struct rows *rows, int64_t warp, const u8 *mask,
                         void *temporary, int size)
{
    if (mask || op->to[0] < 0 || op->sizes[0] != size)
        return temporary;
    return rows->registers[op->to[0]] + warp * LANES * size;
}

/* A lane depends on no other one, even where the results are in the register of an operand. */
#define EACH_LANE _Pragma("GCC ivdep") for (int lane = 0; lane < LANES; lane++)

#define UNARY(NAME, TD, TA, EXPRESSION)                                                                                \
    static void NAME(const struct operation *op, const struct rows *rows)                                              \
    {                                                                                                                  \
        const u32 flags = op->flags;                                                                                   \
        (void)flags;                                                                                                   \
        OPERAND(a, 0, TA)                                                                                              \
        EACH_WARP({                                                                                                    \
            LOAD(a, 0, TA)                                                                                             \
            TD temporary[LANES];                                                                                       \
            TD *result = into(op, rows, warp, mask, temporary, sizeof(TD));                                            \
            EACH_LANE {                                                                                                \
                TA a = a_lanes[lane];                                                                                  \
                result[lane] = (TD)(EXPRESSION);                                                                       \
            }                                                                                                          \
            if (result == temporary)                                                                                   \
                put(op, 0, rows, warp, result, sizeof(TD), mask);                                                      \
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
            TD temporary[LANES];                                                                                       \
            TD *result = into(op, rows, warp, mask, temporary, sizeof(TD));                                            \
            EACH_LANE {                                                                                                \
                TA a = a_lanes[lane];                                                                                  \
                TB b = b_lanes[lane];                                                                                  \
                result[lane] = (TD)(EXPRESSION);                                                                       \
            }                                                                                                          \
            if (result == temporary)                                                                                   \
                put(op, 0, rows, warp, result, sizeof(TD), mask);                                                      \
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
            TD temporary[LANES];                                                                                       \
            TD *result = into(op, rows, warp, mask, temporary, sizeof(TD));                                            \
            EACH_LANE {                                                                                                \
                TA a = a_lanes[lane];                                                                                  \
                TB b = b_lanes[lane];                                                                                  \
                TC c = c_lanes[lane];                                                                                  \
                result[lane] = (TD)(EXPRESSION);                                                                       \
            }                                                                                                          \
            if (result == temporary)                                                                                   \
                put(op, 0, rows, warp, result, sizeof(TD), mask);                                                      \
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
            EACH_LANE {                                                                                                \
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

/* An operation and its name, by which `emulator.native.encode` finds it. */
typedef void (*function)(const struct operation *, const struct rows *);
struct named {
    const char *name;
    function run;
};

#define N(NAME) {#NAME, NAME},

/* The operations of floats.c. */
extern const struct named ptxgen_floats[];
extern const size_t ptxgen_float_count;

#endif
