/* What runs of instructions are made of: one operation for all lanes of some warps. `emulator.native.encode` packs the
   same structure. */

#ifndef PTXGEN_LANES_H
#define PTXGEN_LANES_H

#include <stdint.h>

/* Flags of an operation. */
enum {
    INVERT_A = 1 << 0, /* a predicate that is read negated */
    INVERT_B = 1 << 1,
    INVERT_C = 1 << 2,
    SIGNED_D = 1 << 3, /* a result that a wider register extends by its sign */
    SIGNED_E = 1 << 4,
    FTZ = 1 << 5,
    SAT = 1 << 6,
    AND_C = 1 << 7, /* a comparison is combined with the predicate c */
    OR_C = 1 << 8,
    XOR_C = 1 << 9,
};

struct operation {
    uint32_t code;
    uint32_t flags;
    int32_t guard;      /* 0: none; n: the register n - 1; -n: the same, negated */
    int32_t to[2];      /* registers, -1: none */
    int32_t from[3];    /* registers, -1: `value` */
    uint8_t sizes[8];   /* bytes of the registers: to[0], to[1], from[0], from[1], from[2] */
    uint64_t value[3];  /* constants, in the low bits */
};

/* The warps of a run: `count` of them, those of `warps` or 0 to count - 1; of each 32 bytes of `mask`, NULL for all. */
struct rows {
    char *const *registers;
    const int64_t *warps;
    const uint8_t *mask;
    int64_t first, count;
};

#endif
