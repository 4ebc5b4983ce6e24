/* CUDA arrays, texture and surface objects of the driver API.
 *
 * An object's handle is the address of a record in the heap, which the emulator reads (ptxgen/emulator/textures.py).
 */
#include "arrays.h"

#include <stdlib.h>
#include <string.h>

enum { ARRAY_MAGIC = 0x59415252 };
static const u64 RECORD_MARK = 0x3152555458455450;

/* CUarray_format. */
enum {
    U8_FORMAT = 1, U16_FORMAT = 2, U32_FORMAT = 3, S8_FORMAT = 8, S16_FORMAT = 9, S32_FORMAT = 10, F16_FORMAT = 16,
    F32_FORMAT = 32,
};
enum { READ_AS_INTEGER = 1, NORMALIZED_COORDINATES = 2, SRGB = 16 };
enum { BORDER = 3 };

struct Record {
    u64 mark, address;
    u32 width, height, depth, layers;
    u64 pitch, slice;
    u32 format, channels, address_modes[3], filter, flags;
    float border[4];
    u32 padding;
};

/* Of objects that have not been destroyed: what they were made of, for those who ask. */
struct Object {
    u64 handle;
    struct DriverResource resource;
    struct DriverTexture texture;
    struct Object *next;
};
static struct Object *objects;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool is_array(const void *handle) {
    return handle && ((const struct Array *)handle)->magic == ARRAY_MAGIC;
}

size_t texel_bytes(int format, u32 channels) {
    if (channels != 1 && channels != 2 && channels != 4)
        return 0;
    switch (format) {
    case U8_FORMAT: case S8_FORMAT:
        return channels;
    case U16_FORMAT: case S16_FORMAT: case F16_FORMAT:
        return 2 * channels;
    case U32_FORMAT: case S32_FORMAT: case F32_FORMAT:
        return 4 * channels;
    default:
        return 0;
    }
}

Result make_array(struct Array **made, const struct ArrayDescriptor *asked) {
    size_t texel = texel_bytes(asked->format, asked->channels);
    enum { KNOWN_FLAGS = 1 | 2 | 4 | 8 }; /* layers, surface loads and stores, the faces of cubes, gathers */
    if (!made || !asked->width)
        return INVALID_VALUE;
    if (!texel || asked->flags & ~(u32)KNOWN_FLAGS)
        return unsupported("cuArrayCreate of this format");
    size_t pitch = asked->width * texel, slice = pitch * (asked->height ? asked->height : 1);
    u64 address;
    Result result = connect_emulator();
    if (!result)
        result = allocate(slice * (asked->depth ? asked->depth : 1), DEVICE_MEMORY, &address);
    if (result)
        return result;
    *made = malloc(sizeof **made);
    **made = (struct Array){ARRAY_MAGIC, asked->format, asked->channels, asked->flags, address, asked->width,
                            asked->height, asked->depth, texel, pitch, slice};
    return SUCCESS;
}

Result free_array(struct Array *array) {
    if (!array)
        return SUCCESS;
    if (!is_array(array))
        return INVALID_HANDLE;
    Result result = synchronize();
    if (!result)
        result = release(array->address);
    array->magic = 0;
    free(array);
    return result;
}

char *inside_array(const struct Array *array, size_t x, size_t y, size_t z) {
    return (char *)array->address + z * array->slice + y * array->pitch + x;
}

Result make_object(u64 *handle, const struct Array *array, const struct Sampling *sampling) {
    if (sampling->filter && !sampling->as_float && array->format != F16_FORMAT && array->format != F32_FORMAT)
        return INVALID_VALUE;
    Result result = connect_emulator();
    if (!result)
        result = allocate(sizeof(struct Record), DEVICE_MEMORY, handle);
    if (result)
        return result;
    bool layered = array->flags & (LAYERED | CUBE);
    struct Record record = {
        .mark = RECORD_MARK, .address = array->address, .width = (u32)array->width, .height = (u32)array->height,
        .depth = layered ? 0 : (u32)array->depth, .layers = layered ? (u32)array->depth : 0, .pitch = array->pitch,
        .slice = array->slice, .format = (u32)array->format, .channels = array->channels,
        .filter = (u32)sampling->filter,
        .flags = (sampling->as_float ? 0 : READ_AS_INTEGER) | (sampling->normalized ? NORMALIZED_COORDINATES : 0),
    };
    for (int axis = 0; axis < 3; axis++)
        record.address_modes[axis] = (u32)sampling->address_modes[axis];
    memcpy(record.border, sampling->border, sizeof record.border);
    memcpy(unguarded((void *)*handle), &record, sizeof record);
    return SUCCESS;
}

Result free_object(u64 handle) {
    Result result = synchronize();
    return result ? result : release(handle);
}

/* Arrays. */

API Result cuArray3DCreate_v2(struct Array **array, const struct ArrayDescriptor *asked) {
    return make_array(array, asked);
}

struct FlatDescriptor { /* CUDA_ARRAY_DESCRIPTOR */
    size_t width, height;
    int format;
    u32 channels;
};

API Result cuArrayCreate_v2(struct Array **array, const struct FlatDescriptor *asked) {
    struct ArrayDescriptor full = {asked->width, asked->height, 0, asked->format, asked->channels, 0};
    return make_array(array, &full);
}

API Result cuArrayDestroy(struct Array *array) {
    return is_array(array) ? free_array(array) : INVALID_HANDLE;
}

API Result cuArray3DGetDescriptor_v2(struct ArrayDescriptor *out, const struct Array *array) {
    if (!is_array(array))
        return INVALID_HANDLE;
    *out = (struct ArrayDescriptor){array->width, array->height, array->depth, array->format, array->channels, array->flags};
    return SUCCESS;
}

API Result cuArrayGetDescriptor_v2(struct FlatDescriptor *out, const struct Array *array) {
    if (!is_array(array))
        return INVALID_HANDLE;
    *out = (struct FlatDescriptor){array->width, array->height, array->format, array->channels};
    return SUCCESS;
}

/* Copies of bytes from an offset of a one-dimensional array on. */

static Result copy_line(char *to, const char *from, size_t bytes, struct Stream *stream, bool wait) {
    struct Copy copy = {to, from, 0, 0, 0, 0, bytes, 1, 1};
    Result result = copy_box(stream, &copy);
    return result || !wait ? result : synchronize_stream(NULL);
}

API Result cuMemcpyHtoA_v2(struct Array *to, size_t offset, const void *from, size_t bytes) {
    return is_array(to) ? copy_line(inside_array(to, offset, 0, 0), from, bytes, NULL, true) : INVALID_HANDLE;
}

API Result cuMemcpyAtoH_v2(void *to, struct Array *from, size_t offset, size_t bytes) {
    return is_array(from) ? copy_line(to, inside_array(from, offset, 0, 0), bytes, NULL, true) : INVALID_HANDLE;
}

API Result cuMemcpyHtoAAsync_v2(struct Array *to, size_t offset, const void *from, size_t bytes, struct Stream *stream) {
    return is_array(to) ? copy_line(inside_array(to, offset, 0, 0), from, bytes, stream, false) : INVALID_HANDLE;
}

API Result cuMemcpyAtoHAsync_v2(void *to, struct Array *from, size_t offset, size_t bytes, struct Stream *stream) {
    return is_array(from) ? copy_line(to, inside_array(from, offset, 0, 0), bytes, stream, false) : INVALID_HANDLE;
}

API Result cuMemcpyDtoA_v2(struct Array *to, size_t offset, u64 from, size_t bytes) {
    return cuMemcpyHtoA_v2(to, offset, (void *)from, bytes);
}

API Result cuMemcpyAtoD_v2(u64 to, struct Array *from, size_t offset, size_t bytes) {
    return cuMemcpyAtoH_v2((void *)to, from, offset, bytes);
}

API Result cuMemcpyAtoA_v2(struct Array *to, size_t to_offset, struct Array *from, size_t from_offset, size_t bytes) {
    return is_array(from) ? cuMemcpyHtoA_v2(to, to_offset, inside_array(from, from_offset, 0, 0), bytes) : INVALID_HANDLE;
}

/* Objects. */

/* The memory of a resource as if it were an array. */
static Result array_of(const struct DriverResource *resource, struct Array *made) {
    switch (resource->type) {
    case ARRAY_RESOURCE:
        if (!is_array(resource->array))
            return INVALID_HANDLE;
        *made = *resource->array;
        return SUCCESS;
    case LINEAR_RESOURCE: {
        size_t texel = texel_bytes(resource->linear.format, resource->linear.channels);
        if (!texel || resource->linear.bytes < texel)
            return INVALID_VALUE;
        *made = (struct Array){.format = resource->linear.format, .channels = resource->linear.channels,
                               .address = resource->linear.address, .width = resource->linear.bytes / texel,
                               .texel = texel};
        return SUCCESS;
    }
    case PITCHED_RESOURCE: {
        size_t texel = texel_bytes(resource->pitched.format, resource->pitched.channels);
        if (!texel || !resource->pitched.width || !resource->pitched.height)
            return INVALID_VALUE;
        *made = (struct Array){.format = resource->pitched.format, .channels = resource->pitched.channels,
                               .address = resource->pitched.address, .width = resource->pitched.width,
                               .height = resource->pitched.height, .texel = texel, .pitch = resource->pitched.pitch};
        return SUCCESS;
    }
    default:
        return unsupported("cuTexObjectCreate of a mipmapped array");
    }
}

static void remember(u64 handle, const struct DriverResource *resource, const struct DriverTexture *texture) {
    struct Object *made = calloc(1, sizeof *made);
    made->handle = handle;
    made->resource = *resource;
    if (texture)
        made->texture = *texture;
    pthread_mutex_lock(&lock);
    made->next = objects;
    objects = made;
    pthread_mutex_unlock(&lock);
}

/* Copies what an object was made of, and forgets it if asked to; false if there is no such object. */
static bool recall(u64 handle, struct Object *out, bool forget) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (struct Object **at = &objects; *at && !found; at = &(*at)->next)
        if ((*at)->handle == handle) {
            struct Object *each = *at;
            found = true;
            *out = *each;
            if (forget) {
                *at = each->next;
                free(each);
            }
            break;
        }
    pthread_mutex_unlock(&lock);
    return found;
}

API Result cuTexObjectCreate(u64 *handle, const struct DriverResource *resource, const struct DriverTexture *asked,
                             const void *view) {
    struct Array array;
    if (view || asked->flags & SRGB)
        return unsupported(view ? "cuTexObjectCreate with a view" : "cuTexObjectCreate with sRGB");
    Result result = array_of(resource, &array);
    if (result)
        return result;
    struct Sampling sampling = {.filter = asked->filter, .as_float = !(asked->flags & READ_AS_INTEGER),
                                .normalized = asked->flags & NORMALIZED_COORDINATES};
    memcpy(sampling.address_modes, asked->address_modes, sizeof sampling.address_modes);
    memcpy(sampling.border, asked->border, sizeof sampling.border);
    if (resource->type == LINEAR_RESOURCE) { /* what lies outside of linear memory is fetched as 0 */
        sampling = (struct Sampling){.address_modes = {BORDER, BORDER, BORDER}, .as_float = sampling.as_float};
    }
    result = make_object(handle, &array, &sampling);
    if (!result)
        remember(*handle, resource, asked);
    return result;
}

API Result cuSurfObjectCreate(u64 *handle, const struct DriverResource *resource) {
    if (resource->type != ARRAY_RESOURCE)
        return INVALID_VALUE;
    struct Array array;
    struct Sampling sampling = {0};
    Result result = array_of(resource, &array);
    if (!result)
        result = make_object(handle, &array, &sampling);
    if (!result)
        remember(*handle, resource, NULL);
    return result;
}

API Result cuTexObjectDestroy(u64 handle) {
    struct Object object;
    if (!handle)
        return SUCCESS;
    return recall(handle, &object, true) ? free_object(handle) : INVALID_VALUE;
}

API Result cuSurfObjectDestroy(u64 handle) {
    return cuTexObjectDestroy(handle);
}

API Result cuTexObjectGetResourceDesc(struct DriverResource *out, u64 handle) {
    struct Object object;
    if (!recall(handle, &object, false))
        return INVALID_VALUE;
    *out = object.resource;
    return SUCCESS;
}

API Result cuSurfObjectGetResourceDesc(struct DriverResource *out, u64 handle) {
    return cuTexObjectGetResourceDesc(out, handle);
}

API Result cuTexObjectGetTextureDesc(struct DriverTexture *out, u64 handle) {
    struct Object object;
    if (!recall(handle, &object, false))
        return INVALID_VALUE;
    *out = object.texture;
    return SUCCESS;
}
