/* NVIDIA Warp: warp.so has a stripped runtime, so its own functions for memory are replaced (warp/native/warp.h). */
#include "runtime.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Its pools of memory are switched off: they would call the stripped runtime. */
bool is_warp(const void *caller) {
    Dl_info found;
    return dladdr(caller, &found) && found.dli_fname && strstr(found.dli_fname, "/warp.so");
}

/* The stream of Warp's context, which its functions mean by CURRENT_STREAM. */
static struct Stream *current_stream;
#define CURRENT_STREAM ((struct Stream *)~0ull)

static struct Stream *chosen(struct Stream *stream) {
    return stream == CURRENT_STREAM ? current_stream : stream;
}

static void *get_stream(void *context) {
    (void)context;
    return current_stream;
}

Result cuEventCreate(struct Event **event, u32 flags);
Result cuEventRecord(struct Event *event, struct Stream *stream);
Result cuStreamWaitEvent(struct Stream *stream, struct Event *event, u32 flags);
Result cuEventDestroy_v2(struct Event *event);

static void set_stream(void *context, struct Stream *stream, int wait_for_last) {
    (void)context;
    struct Event *event;
    if (wait_for_last && !cuEventCreate(&event, 0)) {
        cuEventRecord(event, current_stream);
        cuStreamWaitEvent(stream, event, 0);
        cuEventDestroy_v2(event);
    }
    current_stream = stream;
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
    return capture_of(chosen(stream)) != NULL;
}

static bool copy(void *context, void *to, void *from, size_t bytes, struct Stream *stream) {
    (void)context;
    struct Copy box = {to, from, 0, 0, 0, 0, bytes, 1, 1};
    return !start_runtime() && !copy_box(chosen(stream), &box);
}

static bool copy_batch(void *context, void **to, void **from, size_t *bytes, size_t count, struct Stream *stream) {
    bool copied = true;
    for (size_t at = 0; at < count; at++)
        copied &= copy(context, to[at], from[at], bytes[at], stream);
    return copied;
}

static bool copy_peer(void *context, void *to, void *from_context, void *from, size_t bytes, struct Stream *stream) {
    (void)from_context;
    return copy(context, to, from, bytes, stream);
}

static bool fill_elements(char *to, u32 value, u32 element, size_t count, struct Stream *stream) {
    struct Operation operation = {.kind = OP_FILL, .fill = {to, 0, count, 1, value, element}};
    return !start_runtime() && !submit(chosen(stream), &operation);
}

static bool fill(void *context, void *to, int value, size_t bytes, struct Stream *stream) {
    (void)context;
    return fill_elements(to, (u32)value, 1, bytes, stream);
}

static void fill_tiles(void *context, char *to, const void *value, size_t bytes, size_t count) {
    if (bytes == 1 || bytes == 2 || bytes == 4) {
        u32 element = 0;
        memcpy(&element, value, bytes);
        fill_elements(to, element, (u32)bytes, count, CURRENT_STREAM);
        return;
    }
    char *tiles = malloc(bytes * count);
    if (!tiles)
        return;
    for (size_t at = 0; at < count; at++)
        memcpy(tiles + at * bytes, value, bytes);
    copy(context, to, tiles, bytes * count, CURRENT_STREAM);
    if (!capture_of(current_stream)) /* a graph reads it at each launch */
        free(tiles);
}

/* Graphs: capture and replay. Nodes that Warp adds by hand (loops and branches of a graph) are left to its own code. */

Result cuStreamBeginCapture_v2(struct Stream *stream, int mode);
Result cuStreamEndCapture(struct Stream *stream, struct Graph **graph);
Result cuGraphInstantiateWithFlags(struct Graph **executable, struct Graph *graph, u64 flags);
Result cuGraphLaunch(struct Graph *executable, struct Stream *stream);
Result cuGraphDestroy(struct Graph *graph);
Result cuGraphExecDestroy(struct Graph *executable);
Result cuEventElapsedTime(float *milliseconds, struct Event *from, struct Event *to);

static bool begin_capture(void *context, struct Stream *stream, int external, int mode) {
    (void)context;
    return external ? capture_of(chosen(stream)) != NULL : !cuStreamBeginCapture_v2(chosen(stream), mode);
}

static bool end_capture(void *context, struct Stream *stream, struct Graph **graph) {
    (void)context;
    return !cuStreamEndCapture(chosen(stream), graph);
}

static bool create_executable(void *context, struct Stream *stream, struct Graph *graph, struct Graph **executable) {
    (void)context, (void)stream;
    return !cuGraphInstantiateWithFlags(executable, graph, 0);
}

static bool launch_graph(struct Graph *executable, struct Stream *stream) {
    return !cuGraphLaunch(executable, chosen(stream));
}

static bool destroy_graph(void *context, struct Graph *graph) {
    (void)context;
    return !cuGraphDestroy(graph);
}

static bool destroy_executable(void *context, struct Graph *executable) {
    (void)context;
    return !cuGraphExecDestroy(executable);
}

static float elapsed_time(struct Event *from, struct Event *to) {
    float milliseconds = 0;
    cuEventElapsedTime(&milliseconds, from, to);
    return milliseconds;
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
    {"wp_cuda_context_get_stream", (void *)get_stream},
    {"wp_cuda_context_set_stream", (void *)set_stream},
    {"wp_cuda_stream_is_capturing", (void *)is_capturing},
    {"wp_cuda_graph_begin_capture", (void *)begin_capture},
    {"wp_cuda_graph_end_capture", (void *)end_capture},
    {"wp_cuda_graph_create_exec", (void *)create_executable},
    {"wp_cuda_graph_launch", (void *)launch_graph},
    {"wp_cuda_graph_destroy", (void *)destroy_graph},
    {"wp_cuda_graph_exec_destroy", (void *)destroy_executable},
    {"wp_cuda_event_elapsed_time", (void *)elapsed_time},
    {"wp_memcpy_h2d", (void *)copy},
    {"wp_memcpy_d2h", (void *)copy},
    {"wp_memcpy_d2d", (void *)copy},
    {"wp_memcpy_p2p", (void *)copy_peer},
    {"wp_memcpy_batch", (void *)copy_batch},
    {"wp_memset_device", (void *)fill},
    {"wp_memtile_device", (void *)fill_tiles},
};

void *warp_function(const char *name) {
    for (size_t at = 0; at < sizeof functions / sizeof *functions; at++)
        if (!strcmp(functions[at].name, name))
            return functions[at].function;
    return NULL;
}
