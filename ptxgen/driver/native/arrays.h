/* CUDA arrays: pitched memory of the heap whose layout a program cannot see. */
#ifndef PTXGEN_ARRAYS_H
#define PTXGEN_ARRAYS_H

#include "standin.h"

struct Array {
    u32 magic;
    int format; /* CUarray_format */
    u32 channels, flags;
    u64 address;
    size_t width, height, depth; /* in texels; height and depth are 0 where there is no such dimension */
    size_t texel, pitch, slice;  /* in bytes */
};
enum { LAYERED = 1, CUBE = 4 }; /* CUDA_ARRAY3D_LAYERED, _CUBEMAP: the depth is that of layers, or faces */

struct ArrayDescriptor { /* CUDA_ARRAY3D_DESCRIPTOR */
    size_t width, height, depth;
    int format;
    u32 channels, flags;
};

/* How a texture reads, of both APIs. */
struct Sampling {
    int address_modes[3], filter;
    bool as_float, normalized;
    float border[4];
};

enum { ARRAY_RESOURCE = 0, LINEAR_RESOURCE = 2, PITCHED_RESOURCE = 3 }; /* CUresourcetype */
struct DriverResource { /* CUDA_RESOURCE_DESC */
    int type;
    union {
        struct Array *array;
        struct {
            u64 address;
            int format;
            u32 channels;
            size_t bytes;
        } linear;
        struct {
            u64 address;
            int format;
            u32 channels;
            size_t width, height, pitch;
        } pitched;
        int reserved[32];
    };
    u32 flags;
};
struct DriverTexture { /* CUDA_TEXTURE_DESC */
    int address_modes[3], filter;
    u32 flags, anisotropy;
    int mipmap_filter;
    float mipmap_bias, mipmap_least, mipmap_most, border[4];
    int reserved[12];
};

bool is_array(const void *handle);
/* The bytes of a texel, 0 for a format that is not supported. */
size_t texel_bytes(int format, u32 channels);
Result make_array(struct Array **made, const struct ArrayDescriptor *asked);
Result free_array(struct Array *array);
/* The address of a texel's bytes: `x` in bytes, `y` in rows, `z` in planes or layers. */
char *inside_array(const struct Array *array, size_t x, size_t y, size_t z);
/* An object of an array, or of memory that is described as one; the handle is its address. */
Result make_object(u64 *handle, const struct Array *array, const struct Sampling *sampling);
Result free_object(u64 handle);

#endif
