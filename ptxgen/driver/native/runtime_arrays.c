/* The runtime API over the stand-in driver: arrays, texture and surface objects. */
#include "arrays.h"
#include "runtime.h"

#include <string.h>

struct ChannelFormat { /* cudaChannelFormatDesc: bits of the components */
    int x, y, z, w, kind;
};
enum { SIGNED = 0, UNSIGNED = 1, FLOAT = 2 };

/* The format and number of channels, 0 for a format that the driver does not have. */
static u32 format_of(const struct ChannelFormat *asked, int *format) {
    static const int formats[3][3] = {{8, 9, 10}, {1, 2, 3}, {0, 16, 32}}; /* by kind, of 8, 16 and 32 bits */
    int size = asked->x == 8 ? 0 : asked->x == 16 ? 1 : asked->x == 32 ? 2 : -1;
    if (size < 0 || asked->kind < SIGNED || asked->kind > FLOAT)
        return 0;
    *format = formats[asked->kind][size];
    return asked->w ? 4 : asked->z ? 3 : asked->y ? 2 : 1;
}

static struct ChannelFormat channels_of(const struct Array *array) {
    int bits = (int)(8 * array->texel / array->channels);
    int kind = array->format >= 16 ? FLOAT : array->format >= 8 ? SIGNED : UNSIGNED;
    return (struct ChannelFormat){bits, array->channels > 1 ? bits : 0, array->channels > 2 ? bits : 0,
                                  array->channels > 2 ? bits : 0, kind};
}

API struct ChannelFormat cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
    return (struct ChannelFormat){x, y, z, w, kind};
}

API Result cudaGetChannelDesc(struct ChannelFormat *out, const struct Array *array) {
    if (!is_array(array))
        return runtime_result(INVALID_HANDLE);
    *out = channels_of(array);
    return SUCCESS;
}

API Result cudaMalloc3DArray(struct Array **array, const struct ChannelFormat *asked, struct Extent extent, u32 flags) {
    struct ArrayDescriptor made = {extent.width, extent.height, extent.depth, 0, 0, flags};
    Result result = start_runtime();
    made.channels = format_of(asked, &made.format);
    return runtime_result(result ? result : make_array(array, &made));
}

API Result cudaMallocArray(struct Array **array, const struct ChannelFormat *asked, size_t width, size_t height,
                           u32 flags) {
    return cudaMalloc3DArray(array, asked, (struct Extent){width, height, 0}, flags);
}

API Result cudaFreeArray(struct Array *array) {
    Result result = start_runtime();
    return runtime_result(result ? result : free_array(array));
}

API Result cudaArrayGetInfo(struct ChannelFormat *format, struct Extent *extent, u32 *flags, const struct Array *array) {
    if (!is_array(array))
        return runtime_result(INVALID_HANDLE);
    if (format)
        *format = channels_of(array);
    if (extent)
        *extent = (struct Extent){array->width, array->height, array->depth};
    if (flags)
        *flags = array->flags;
    return SUCCESS;
}

/* Copies between memory and an array: offsets and widths in bytes, heights in rows. */

static Result copy_to(const struct Array *to, size_t x, size_t y, const char *from, size_t pitch, size_t width,
                      size_t height, struct Stream *stream) {
    Result result = start_runtime();
    if (!result && !is_array(to))
        result = INVALID_HANDLE;
    if (result)
        return runtime_result(result);
    struct Copy copy = {inside_array(to, x, y, 0), from, to->pitch, pitch, 0, 0, width, height, 1};
    return runtime_result(copy_box(stream, &copy));
}

static Result copy_from(char *to, size_t pitch, const struct Array *from, size_t x, size_t y, size_t width, size_t height,
                        struct Stream *stream) {
    Result result = start_runtime();
    if (!result && !is_array(from))
        result = INVALID_HANDLE;
    if (result)
        return runtime_result(result);
    struct Copy copy = {to, inside_array(from, x, y, 0), pitch, from->pitch, 0, 0, width, height, 1};
    return runtime_result(copy_box(stream, &copy));
}

static Result waited(Result result) {
    return result ? result : runtime_result(synchronize_stream(NULL));
}

API Result cudaMemcpy2DToArrayAsync(struct Array *to, size_t x, size_t y, const char *from, size_t pitch, size_t width,
                                    size_t height, int kind, struct Stream *stream) {
    (void)kind;
    return copy_to(to, x, y, from, pitch, width, height, stream);
}

API Result cudaMemcpy2DToArray(struct Array *to, size_t x, size_t y, const char *from, size_t pitch, size_t width,
                               size_t height, int kind) {
    (void)kind;
    return waited(copy_to(to, x, y, from, pitch, width, height, NULL));
}

API Result cudaMemcpy2DFromArrayAsync(char *to, size_t pitch, const struct Array *from, size_t x, size_t y, size_t width,
                                      size_t height, int kind, struct Stream *stream) {
    (void)kind;
    return copy_from(to, pitch, from, x, y, width, height, stream);
}

API Result cudaMemcpy2DFromArray(char *to, size_t pitch, const struct Array *from, size_t x, size_t y, size_t width,
                                 size_t height, int kind) {
    (void)kind;
    return waited(copy_from(to, pitch, from, x, y, width, height, NULL));
}

API Result cudaMemcpy2DArrayToArray(struct Array *to, size_t to_x, size_t to_y, const struct Array *from, size_t from_x,
                                    size_t from_y, size_t width, size_t height, int kind) {
    (void)kind;
    if (!is_array(from))
        return runtime_result(INVALID_HANDLE);
    return waited(copy_to(to, to_x, to_y, inside_array(from, from_x, from_y, 0), from->pitch, width, height, NULL));
}

/* Deprecated: bytes from an offset on. Rows of an array have no gaps here. */

API Result cudaMemcpyToArrayAsync(struct Array *to, size_t x, size_t y, const char *from, size_t bytes, int kind,
                                  struct Stream *stream) {
    (void)kind;
    return copy_to(to, x, y, from, 0, bytes, 1, stream);
}

API Result cudaMemcpyToArray(struct Array *to, size_t x, size_t y, const char *from, size_t bytes, int kind) {
    (void)kind;
    return waited(copy_to(to, x, y, from, 0, bytes, 1, NULL));
}

API Result cudaMemcpyFromArrayAsync(char *to, const struct Array *from, size_t x, size_t y, size_t bytes, int kind,
                                    struct Stream *stream) {
    (void)kind;
    return copy_from(to, 0, from, x, y, bytes, 1, stream);
}

API Result cudaMemcpyFromArray(char *to, const struct Array *from, size_t x, size_t y, size_t bytes, int kind) {
    (void)kind;
    return waited(copy_from(to, 0, from, x, y, bytes, 1, NULL));
}

/* Objects. Resources and their numbers are those of the driver, but for how they say formats. */

struct Resource { /* cudaResourceDesc */
    int type;
    union {
        struct Array *array;
        struct {
            u64 address;
            struct ChannelFormat format;
            size_t bytes;
        } linear;
        struct {
            u64 address;
            struct ChannelFormat format;
            size_t width, height, pitch;
        } pitched;
    };
};
struct TextureDescriptor { /* cudaTextureDesc */
    int address_modes[3], filter, read_mode, srgb;
    float border[4];
    int normalized;
    u32 anisotropy;
    int mipmap_filter;
    float mipmap_bias, mipmap_least, mipmap_most;
    int no_trilinear, seamless;
};

Result cuTexObjectCreate(u64 *handle, const struct DriverResource *resource, const struct DriverTexture *asked,
                         const void *view);
Result cuTexObjectDestroy(u64 handle);
Result cuTexObjectGetResourceDesc(struct DriverResource *out, u64 handle);
Result cuSurfObjectCreate(u64 *handle, const struct DriverResource *resource);

static Result driver_resource(const struct Resource *asked, struct DriverResource *made) {
    *made = (struct DriverResource){.type = asked->type};
    switch (asked->type) {
    case LINEAR_RESOURCE:
        made->linear.address = asked->linear.address;
        made->linear.channels = format_of(&asked->linear.format, &made->linear.format);
        made->linear.bytes = asked->linear.bytes;
        return made->linear.channels ? SUCCESS : INVALID_VALUE;
    case PITCHED_RESOURCE:
        made->pitched.address = asked->pitched.address;
        made->pitched.channels = format_of(&asked->pitched.format, &made->pitched.format);
        made->pitched.width = asked->pitched.width;
        made->pitched.height = asked->pitched.height;
        made->pitched.pitch = asked->pitched.pitch;
        return made->pitched.channels ? SUCCESS : INVALID_VALUE;
    default:
        made->array = asked->array;
        return SUCCESS;
    }
}

API Result cudaCreateTextureObject(u64 *handle, const struct Resource *resource, const struct TextureDescriptor *asked,
                                   const void *view) {
    enum { READ_AS_INTEGER = 1, NORMALIZED_COORDINATES = 2, SRGB = 16 };
    struct DriverResource full;
    struct DriverTexture texture = {
        .filter = asked->filter,
        .flags = (asked->read_mode ? 0 : READ_AS_INTEGER) | (asked->normalized ? NORMALIZED_COORDINATES : 0) |
                 (asked->srgb ? SRGB : 0),
        .anisotropy = asked->anisotropy, .mipmap_filter = asked->mipmap_filter, .mipmap_bias = asked->mipmap_bias,
        .mipmap_least = asked->mipmap_least, .mipmap_most = asked->mipmap_most,
    };
    memcpy(texture.address_modes, asked->address_modes, sizeof texture.address_modes);
    memcpy(texture.border, asked->border, sizeof texture.border);
    Result result = start_runtime();
    if (!result)
        result = driver_resource(resource, &full);
    return runtime_result(result ? result : cuTexObjectCreate(handle, &full, &texture, view));
}

API Result cudaDestroyTextureObject(u64 handle) {
    Result result = start_runtime();
    return runtime_result(result ? result : cuTexObjectDestroy(handle));
}

API Result cudaCreateSurfaceObject(u64 *handle, const struct Resource *resource) {
    struct DriverResource full;
    Result result = start_runtime();
    if (!result)
        result = driver_resource(resource, &full);
    return runtime_result(result ? result : cuSurfObjectCreate(handle, &full));
}

API Result cudaDestroySurfaceObject(u64 handle) {
    return cudaDestroyTextureObject(handle);
}
