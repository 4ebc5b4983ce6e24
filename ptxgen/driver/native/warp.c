/* NVIDIA Warp: warp.so has a stripped runtime, so its own functions for memory are replaced (warp/native/warp.h). */
#include "runtime.h"

#include <dlfcn.h>
#include <string.h>

/* Its pools of memory are switched off: they would call the stripped runtime. */
bool is_warp(const void *caller) {
    Dl_info found;
    return dladdr(caller, &found) && found.dli_fname && strstr(found.dli_fname, "/warp.so");
}

static void *allocate_bytes(size_t bytes, enum Kind kind) {
    u64 address;
    return bytes && !start_runtime() && !allocate(bytes, kind, &address) ? (void *)address : NULL;
}

static void *alloc_pinned(size_t bytes, const char *tag) {
    (void)tag;
    return allocate_bytes(bytes, PINNED_MEMORY);
}

static void *alloc_device(void *context, size_t bytes, const char *tag) {
    (void)context, (void)tag;
    return allocate_bytes(bytes, DEVICE_MEMORY);
}

static void *alloc_managed(void *context, size_t bytes, const char *tag) {
    (void)context, (void)tag;
    return allocate_bytes(bytes, MANAGED_MEMORY);
}

static void *alloc_device_async(void *context, size_t bytes, struct Stream *stream, const char *tag) {
    (void)stream;
    return alloc_device(context, bytes, tag);
}

Result cuMemFree_v2(u64 address);
Result cuMemFreeAsync(u64 address, struct Stream *stream);

static void free_pinned(void *pointer) {
    if (pointer)
        cuMemFree_v2((u64)pointer);
}

/* Python drops an array right after a launch that uses it: its memory is free once that has run, for which the caller
 * does not wait. */
static void free_device(void *context, void *pointer) {
    (void)context;
    if (pointer)
        cuMemFreeAsync((u64)pointer, NULL);
}

static void free_device_async(void *context, void *pointer, void **deferred) {
    if (deferred)
        *deferred = NULL;
    free_device(context, pointer);
}

static bool is_capturing(struct Stream *stream) {
    return capture_of(stream) != NULL;
}

static bool copy(void *context, void *to, void *from, size_t bytes, struct Stream *stream) {
    (void)context;
    struct Copy box = {to, from, 0, 0, 0, 0, bytes, 1, 1};
    return !start_runtime() && !copy_box(stream, &box);
}

static bool copy_peer(void *context, void *to, void *from_context, void *from, size_t bytes, struct Stream *stream) {
    (void)from_context;
    return copy(context, to, from, bytes, stream);
}

static bool fill(void *context, void *to, int value, size_t bytes, struct Stream *stream) {
    (void)context;
    struct Operation operation = {.kind = OP_FILL, .fill = {to, 0, bytes, 1, (u32)value, 1}};
    return !submit(stream, &operation);
}

static void fill_tiles(void *context, char *to, const void *value, size_t bytes, size_t count) {
    (void)context;
    for (size_t at = 0; at < count; at++)
        memcpy(to + at * bytes, value, bytes);
}

static const struct RuntimeName functions[] = {
    {"wp_alloc_pinned", (void *)alloc_pinned},
    {"wp_alloc_device", (void *)alloc_device},
    {"wp_alloc_device_default", (void *)alloc_device},
    {"wp_alloc_device_async", (void *)alloc_device_async},
    {"wp_alloc_device_managed", (void *)alloc_managed},
    {"wp_free_pinned", (void *)free_pinned},
    {"wp_free_device", (void *)free_device},
    {"wp_free_device_default", (void *)free_device},
    {"wp_free_device_async", (void *)free_device_async},
    {"wp_cuda_stream_is_capturing", (void *)is_capturing},
    {"wp_memcpy_h2d", (void *)copy},
    {"wp_memcpy_d2h", (void *)copy},
    {"wp_memcpy_d2d", (void *)copy},
    {"wp_memcpy_p2p", (void *)copy_peer},
    {"wp_memset_device", (void *)fill},
    {"wp_memtile_device", (void *)fill_tiles},
};

void *warp_function(const char *name) {
    for (size_t at = 0; at < sizeof functions / sizeof *functions; at++)
        if (!strcmp(functions[at].name, name))
            return functions[at].function;
    return NULL;
}
