/* Short names of types, and of what the library exports. */

#ifndef PTXGEN_TYPES_H
#define PTXGEN_TYPES_H

#include <stdint.h>
#include <string.h>

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

#define EXPORT __attribute__((visibility("default")))

#endif
