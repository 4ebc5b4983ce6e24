/* The runtime API over the stand-in driver: memory, copies, streams and events. */
#include "arrays.h"
#include "runtime.h"

#include <string.h>

/* Functions of the driver whose parameters are those of the runtime's: declared, and called with an error kept. */
#define FORWARD(name, driver, declaration, arguments)                                                                 \
    Result driver declaration;                                                                                        \
    API Result name declaration {                                                                                     \
        Result result = start_runtime();                                                                              \
        return runtime_result(result ? result : driver arguments);                                                    \
    }

/* Memory. */

struct Handle;

FORWARD(cudaMallocManaged, cuMemAllocManaged, (void **pointer, size_t bytes, u32 flags), (pointer, bytes, flags))
FORWARD(cudaMallocHost, cuMemAllocHost_v2, (void **pointer, size_t bytes), (pointer, bytes))
FORWARD(cudaHostAlloc, cuMemHostAlloc, (void **pointer, size_t bytes, u32 flags), (pointer, bytes, flags))
FORWARD(cudaFree, cuMemFree_v2, (u64 address), (address))
FORWARD(cudaFreeHost, cuMemFreeHost, (void *pointer), (pointer))
FORWARD(cudaFreeAsync, cuMemFreeAsync, (u64 address, struct Stream *stream), (address, stream))
FORWARD(cudaHostRegister, cuMemHostRegister_v2, (void *pointer, size_t bytes, u32 flags), (pointer, bytes, flags))
FORWARD(cudaHostUnregister, cuMemHostUnregister, (void *pointer), (pointer))
FORWARD(cudaHostGetDevicePointer, cuMemHostGetDevicePointer_v2, (u64 * address, void *pointer, u32 flags),
        (address, pointer, flags))
FORWARD(cudaHostGetFlags, cuMemHostGetFlags, (u32 * flags, void *pointer), (flags, pointer))
FORWARD(cudaMemGetInfo, cuMemGetInfo_v2, (size_t *available, size_t *total), (available, total))
FORWARD(cudaDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, (void **pool, int device), (pool, device))
FORWARD(cudaDeviceGetMemPool, cuDeviceGetMemPool, (void **pool, int device), (pool, device))
FORWARD(cudaDeviceSetMemPool, cuDeviceSetMemPool, (int device, void *pool), (device, pool))
FORWARD(cudaMemPoolCreate, cuMemPoolCreate, (void **pool, const void *properties), (pool, properties))
FORWARD(cudaMemPoolDestroy, cuMemPoolDestroy, (void *pool), (pool))
FORWARD(cudaMemPoolTrimTo, cuMemPoolTrimTo, (void *pool, size_t keep), (pool, keep))
FORWARD(cudaMemPoolSetAttribute, cuMemPoolSetAttribute, (void *pool, int attribute, const void *value),
        (pool, attribute, value))
FORWARD(cudaMemPoolGetAttribute, cuMemPoolGetAttribute, (void *pool, int attribute, void *value),
        (pool, attribute, value))

FORWARD(cudaMemPoolSetAccess, cuMemPoolSetAccess, (void *pool, const void *access, size_t count), (pool, access, count))
FORWARD(cudaMemPoolGetAccess, cuMemPoolGetAccess, (u32 * flags, void *pool, const void *place), (flags, pool, place))
FORWARD(cudaMemPoolExportToShareableHandle, cuMemPoolExportToShareableHandle,
        (void *handle, void *pool, int type, u64 flags), (handle, pool, type, flags))
FORWARD(cudaMemPoolImportFromShareableHandle, cuMemPoolImportFromShareableHandle,
        (void **pool, void *handle, int type, u64 flags), (pool, handle, type, flags))
FORWARD(cudaMemPoolExportPointer, cuMemPoolExportPointer, (struct Handle * handle, u64 address), (handle, address))
FORWARD(cudaMemPoolImportPointer, cuMemPoolImportPointer, (u64 * address, void *pool, const struct Handle *handle),
        (address, pool, handle))
FORWARD(cudaMemGetDefaultMemPool, cuMemGetDefaultMemPool, (void **pool, const void *place, int type), (pool, place, type))
FORWARD(cudaMemGetMemPool, cuMemGetMemPool, (void **pool, const void *place, int type), (pool, place, type))
FORWARD(cudaIpcGetMemHandle, cuIpcGetMemHandle, (struct Handle * handle, u64 address), (handle, address))
FORWARD(cudaIpcCloseMemHandle, cuIpcCloseMemHandle, (u64 address), (address))
FORWARD(cudaIpcGetEventHandle, cuIpcGetEventHandle, (struct Handle * handle, struct Event *event), (handle, event))

struct Handle {
    char bytes[64];
};
Result cuIpcOpenMemHandle_v2(u64 *address, struct Handle handle, u32 flags);
Result cuIpcOpenEventHandle(struct Event **event, struct Handle handle);

API Result cudaIpcOpenMemHandle(u64 *address, struct Handle handle, u32 flags) {
    Result result = start_runtime();
    return runtime_result(result ? result : cuIpcOpenMemHandle_v2(address, handle, flags));
}

API Result cudaIpcOpenEventHandle(struct Event **event, struct Handle handle) {
    Result result = start_runtime();
    return runtime_result(result ? result : cuIpcOpenEventHandle(event, handle));
}

Result cuMemAlloc_v2(void **pointer, size_t bytes);
Result cuMemAllocPitch_v2(void **pointer, size_t *pitch, size_t width, size_t height, u32 element);

API Result cudaMalloc(void **pointer, size_t bytes) {
    Result result = start_runtime();
    if (!result && !bytes) {
        *pointer = NULL;
        return sticky;
    }
    return runtime_result(result ? result : cuMemAlloc_v2(pointer, bytes));
}

Result cuMemAllocAsync(void **pointer, size_t bytes, struct Stream *stream);

API Result cudaMallocAsync(void **pointer, size_t bytes, struct Stream *stream) {
    if (!bytes)
        return cudaMalloc(pointer, bytes);
    Result result = start_runtime();
    return runtime_result(result ? result : cuMemAllocAsync(pointer, bytes, stream));
}

API Result cudaMallocFromPoolAsync(void **pointer, size_t bytes, void *pool, struct Stream *stream) {
    (void)pool;
    return cudaMallocAsync(pointer, bytes, stream);
}

API Result cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
    Result result = start_runtime();
    return runtime_result(result ? result : cuMemAllocPitch_v2(pointer, pitch, width, height, 4));
}

struct Pitched { /* cudaPitchedPtr */
    char *pointer;
    size_t pitch, width, height;
};

API Result cudaMalloc3D(struct Pitched *out, struct Extent extent) {
    void *pointer;
    Result result = cudaMallocPitch(&pointer, &out->pitch, extent.width, extent.height * extent.depth);
    out->pointer = pointer;
    out->width = extent.width;
    out->height = extent.height;
    return result;
}

struct PointerAttributes { /* cudaPointerAttributes up to 12; 13 has reserved words after it */
    int type, device;
    const void *device_pointer, *host_pointer;
};
enum { UNREGISTERED = 0, HOST = 1, DEVICE = 2, MANAGED = 3 };
enum { NO_SUCH_DEVICE = -2 };

API Result cudaPointerGetAttributes(struct PointerAttributes *out, const void *pointer) {
    Result result = start_runtime();
    if (result)
        return runtime_result(result);
    struct Range range;
    if (!find_range((u64)pointer, &range)) {
        u64 address;
        if (!cuMemHostGetDevicePointer_v2(&address, (void *)pointer, 0))
            *out = (struct PointerAttributes){HOST, 0, (void *)address, pointer};
        else
            *out = (struct PointerAttributes){UNREGISTERED, NO_SUCH_DEVICE, NULL, pointer};
        return SUCCESS;
    }
    int type = range.kind == PINNED_MEMORY || range.kind == REGISTERED_MEMORY ? HOST
               : range.kind == MANAGED_MEMORY                                 ? MANAGED
                                                                              : DEVICE;
    *out = (struct PointerAttributes){type, 0, pointer, type == DEVICE ? NULL : pointer};
    return SUCCESS;
}

/* Prefetching and advice: parameters differ between CUDA 12 and 13, and nothing is done. */

API Result cudaMemPrefetchAsync(void) {
    return SUCCESS;
}

API Result cudaMemPrefetchAsync_v2(void) {
    return SUCCESS;
}

API Result cudaMemAdvise(void) {
    return SUCCESS;
}

API Result cudaMemAdvise_v2(void) {
    return SUCCESS;
}

/* Copies. */

Result cuMemcpyAsync(u64 to, u64 from, size_t bytes, struct Stream *stream);
Result cuMemcpy(u64 to, u64 from, size_t bytes);

/* Copies. Addresses alone decide where they go, as with unified addressing; a cudaMemcpyKind that says otherwise is
   noted, since the API leaves the result undefined. */

enum CopyKind { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, BY_ADDRESS };

static void note_direction(const char *call, u64 to, u64 from, size_t bytes, int kind) {
    if (kind < HOST_TO_HOST || kind >= BY_ADDRESS || !bytes)
        return;
    bool to_device = kind == HOST_TO_DEVICE || kind == DEVICE_TO_DEVICE;
    bool from_device = kind == DEVICE_TO_HOST || kind == DEVICE_TO_DEVICE;
    struct Range range;
    const u64 addresses[2] = {from, to};
    const bool expected[2] = {from_device, to_device};
    bool on_device[2], wrong = false;
    for (int side = 0; side < 2; side++) {
        bool known = find_range(addresses[side], &range);
        on_device[side] = known && range.kind != PINNED_MEMORY && range.kind != REGISTERED_MEMORY;
        u64 mapped;
        bool either = known ? range.kind != DEVICE_MEMORY && range.kind != VARIABLE_MEMORY
                            : !cuMemHostGetDevicePointer_v2(&mapped, (void *)addresses[side], 0);
        wrong |= !either && on_device[side] != expected[side];
    }
    if (wrong)
        note("wrong-direction %s %llu %d %d %d", call, (unsigned long long)bytes, kind, on_device[0], on_device[1]);
}

API Result cudaMemcpy(u64 to, u64 from, size_t bytes, int kind) {
    Result result = start_runtime();
    if (!result)
        note_direction("cudaMemcpy", to, from, bytes, kind);
    return runtime_result(result ? result : cuMemcpy(to, from, bytes));
}

API Result cudaMemcpyAsync(u64 to, u64 from, size_t bytes, int kind, struct Stream *stream) {
    Result result = start_runtime();
    if (!result)
        note_direction("cudaMemcpyAsync", to, from, bytes, kind);
    return runtime_result(result ? result : cuMemcpyAsync(to, from, bytes, stream));
}

API Result cudaMemcpyPeer(u64 to, int to_device, u64 from, int from_device, size_t bytes) {
    (void)to_device, (void)from_device;
    return cudaMemcpy(to, from, bytes, BY_ADDRESS);
}

API Result cudaMemcpyPeerAsync(u64 to, int to_device, u64 from, int from_device, size_t bytes, struct Stream *stream) {
    (void)to_device, (void)from_device;
    return cudaMemcpyAsync(to, from, bytes, BY_ADDRESS, stream);
}

static Result copy_2d(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width, size_t height,
                      struct Stream *stream) {
    Result result = start_runtime();
    struct Copy copy = {to, from, to_pitch, from_pitch, 0, 0, width, height, 1};
    return runtime_result(result ? result : copy_box(stream, &copy));
}

API Result cudaMemcpy2DAsync(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width, size_t height,
                             int kind, struct Stream *stream) {
    note_direction("cudaMemcpy2DAsync", (u64)to, (u64)from, width * height, kind);
    return copy_2d(to, to_pitch, from, from_pitch, width, height, stream);
}

API Result cudaMemcpy2D(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width, size_t height,
                        int kind) {
    note_direction("cudaMemcpy2D", (u64)to, (u64)from, width * height, kind);
    Result result = copy_2d(to, to_pitch, from, from_pitch, width, height, NULL);
    return result ? result : runtime_result(synchronize_stream(NULL));
}

struct Copy3DParameters { /* cudaMemcpy3DParms */
    void *from_array;
    struct Extent from_position;
    struct Pitched from;
    void *to_array;
    struct Extent to_position;
    struct Pitched to;
    struct Extent extent;
    int kind;
};

/* One side of a copy: where it begins, and how far rows and planes are apart. */
struct Side {
    char *address;
    size_t pitch, slice;
};

static struct Side side_of(const struct Array *array, const struct Pitched *memory, const struct Extent *at) {
    if (array)
        return (struct Side){inside_array(array, at->width * array->texel, at->height, at->depth), array->pitch,
                             array->slice};
    size_t slice = memory->pitch * memory->height;
    return (struct Side){memory->pointer + at->depth * slice + at->height * memory->pitch + at->width, memory->pitch,
                         slice};
}

struct Copy3DParameters;
Result box_of(const struct Copy3DParameters *asked, struct Copy *copy);

Result box_of(const struct Copy3DParameters *asked, struct Copy *copy) {
    const struct Array *to_array = asked->to_array, *from_array = asked->from_array;
    if ((to_array && !is_array(to_array)) || (from_array && !is_array(from_array)))
        return INVALID_HANDLE;
    struct Side to = side_of(to_array, &asked->to, &asked->to_position);
    struct Side from = side_of(from_array, &asked->from, &asked->from_position);
    /* With an array the width is in its texels, and otherwise in bytes. */
    size_t unit = to_array ? to_array->texel : from_array ? from_array->texel : 1;
    *copy = (struct Copy){to.address, from.address, to.pitch, from.pitch, to.slice, from.slice,
                          asked->extent.width * unit, asked->extent.height, asked->extent.depth};
    return SUCCESS;
}

API Result cudaMemcpy3DAsync(const struct Copy3DParameters *asked, struct Stream *stream) {
    struct Copy copy;
    Result result = start_runtime();
    if (!result)
        result = box_of(asked, &copy);
    return runtime_result(result ? result : copy_box(stream, &copy));
}

API Result cudaMemcpy3D(const struct Copy3DParameters *asked) {
    Result result = cudaMemcpy3DAsync(asked, NULL);
    return result ? result : runtime_result(synchronize_stream(NULL));
}

/* Copies from and to variables of the program. */

API Result cudaMemcpyToSymbolAsync(const void *symbol, u64 from, size_t bytes, size_t offset, int kind,
                                   struct Stream *stream) {
    u64 address;
    Result result = start_runtime();
    if (!result)
        result = variable_of(symbol, &address, NULL);
    return result ? runtime_result(result) : cudaMemcpyAsync(address + offset, from, bytes, kind, stream);
}

API Result cudaMemcpyToSymbol(const void *symbol, u64 from, size_t bytes, size_t offset, int kind) {
    Result result = cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, NULL);
    return result ? result : runtime_result(synchronize_stream(NULL));
}

API Result cudaMemcpyFromSymbolAsync(u64 to, const void *symbol, size_t bytes, size_t offset, int kind,
                                     struct Stream *stream) {
    u64 address;
    Result result = start_runtime();
    if (!result)
        result = variable_of(symbol, &address, NULL);
    return result ? runtime_result(result) : cudaMemcpyAsync(to, address + offset, bytes, kind, stream);
}

API Result cudaMemcpyFromSymbol(u64 to, const void *symbol, size_t bytes, size_t offset, int kind) {
    Result result = cudaMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind, NULL);
    return result ? result : runtime_result(synchronize_stream(NULL));
}

API Result cudaGetSymbolAddress(u64 *address, const void *symbol) {
    Result result = start_runtime();
    return runtime_result(result ? result : variable_of(symbol, address, NULL));
}

API Result cudaGetSymbolSize(size_t *bytes, const void *symbol) {
    u64 address;
    Result result = start_runtime();
    return runtime_result(result ? result : variable_of(symbol, &address, bytes));
}

/* Fills. */

Result cuMemsetD2D8Async(u64 to, size_t pitch, u8 value, size_t width, size_t height, struct Stream *stream);

API Result cudaMemset2DAsync(u64 to, size_t pitch, int value, size_t width, size_t height, struct Stream *stream) {
    Result result = start_runtime();
    return runtime_result(result ? result : cuMemsetD2D8Async(to, pitch, (u8)value, width, height, stream));
}

API Result cudaMemset2D(u64 to, size_t pitch, int value, size_t width, size_t height) {
    return cudaMemset2DAsync(to, pitch, value, width, height, NULL);
}

API Result cudaMemsetAsync(u64 to, int value, size_t bytes, struct Stream *stream) {
    return cudaMemset2DAsync(to, 0, value, bytes, 1, stream);
}

API Result cudaMemset(u64 to, int value, size_t bytes) {
    return cudaMemsetAsync(to, value, bytes, NULL);
}

API Result cudaMemset3DAsync(struct Pitched to, int value, struct Extent extent, struct Stream *stream) {
    for (size_t z = 0; z < extent.depth; z++) {
        Result result = cudaMemset2DAsync((u64)to.pointer + z * to.pitch * to.height, to.pitch, value, extent.width,
                                          extent.height, stream);
        if (result)
            return result;
    }
    return SUCCESS;
}

API Result cudaMemset3D(struct Pitched to, int value, struct Extent extent) {
    return cudaMemset3DAsync(to, value, extent, NULL);
}

/* Streams. */

FORWARD(cudaStreamCreateWithFlags, cuStreamCreate, (struct Stream * *stream, u32 flags), (stream, flags))
FORWARD(cudaStreamCreateWithPriority, cuStreamCreateWithPriority, (struct Stream * *stream, u32 flags, int priority),
        (stream, flags, priority))
FORWARD(cudaStreamDestroy, cuStreamDestroy_v2, (struct Stream * stream), (stream))
FORWARD(cudaStreamSynchronize, cuStreamSynchronize, (struct Stream * stream), (stream))
FORWARD(cudaStreamQuery, cuStreamQuery, (struct Stream * stream), (stream))
FORWARD(cudaStreamWaitEvent, cuStreamWaitEvent, (struct Stream * stream, struct Event *event, u32 flags),
        (stream, event, flags))
FORWARD(cudaStreamGetFlags, cuStreamGetFlags, (struct Stream * stream, u32 *flags), (stream, flags))
FORWARD(cudaStreamGetPriority, cuStreamGetPriority, (struct Stream * stream, int *priority), (stream, priority))
FORWARD(cudaStreamGetId, cuStreamGetId, (struct Stream * stream, u64 *number), (stream, number))
FORWARD(cudaStreamGetDevice, cuStreamGetDevice, (struct Stream * stream, int *device), (stream, device))
FORWARD(cudaStreamGetAttribute, cuStreamGetAttribute, (struct Stream * stream, int attribute, void *value),
        (stream, attribute, value))
FORWARD(cudaStreamSetAttribute, cuStreamSetAttribute, (struct Stream * stream, int attribute, const void *value),
        (stream, attribute, value))
FORWARD(cudaStreamCopyAttributes, cuStreamCopyAttributes, (struct Stream * to, struct Stream *from), (to, from))
FORWARD(cudaStreamAttachMemAsync, cuStreamAttachMemAsync,
        (struct Stream * stream, u64 address, size_t bytes, u32 flags), (stream, address, bytes, flags))
FORWARD(cudaLaunchHostFunc, cuLaunchHostFunc, (struct Stream * stream, void (*call)(void *), void *data),
        (stream, call, data))
FORWARD(cudaLaunchHostFunc_v2, cuLaunchHostFunc_v2,
        (struct Stream * stream, void (*call)(void *), void *data, u32 mode), (stream, call, data, mode))
FORWARD(cudaStreamAddCallback, cuStreamAddCallback,
        (struct Stream * stream, void (*call)(struct Stream *, Result, void *), void *data, u32 flags),
        (stream, call, data, flags))
FORWARD(cudaStreamIsCapturing, cuStreamIsCapturing, (struct Stream * stream, int *status), (stream, status))
FORWARD(cudaStreamBeginCapture, cuStreamBeginCapture_v2, (struct Stream * stream, int mode), (stream, mode))
FORWARD(cudaStreamEndCapture, cuStreamEndCapture, (struct Stream * stream, struct Graph **graph), (stream, graph))
FORWARD(cudaStreamGetCaptureInfo, cuStreamGetCaptureInfo_v3,
        (struct Stream * stream, int *status, u64 *id, struct Graph **graph, struct Node ***dependencies,
         const void **edges, size_t *count),
        (stream, status, id, graph, dependencies, edges, count))
FORWARD(cudaStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2,
        (struct Stream * stream, int *status, u64 *id, struct Graph **graph, struct Node ***dependencies, size_t *count),
        (stream, status, id, graph, dependencies, count))
FORWARD(cudaThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (int *mode), (mode))

API Result cudaStreamGetCaptureInfo_v3(struct Stream *stream, int *status, u64 *id, struct Graph **graph,
                                       struct Node ***dependencies, const void **edges, size_t *count) {
    return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, edges, count);
}

FORWARD(cudaStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies_v2,
        (struct Stream * stream, struct Node **dependencies, const void *edges, size_t count, u32 flags),
        (stream, dependencies, edges, count, flags))
FORWARD(cudaStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph,
        (struct Stream * stream, struct Graph *graph, struct Node *const *dependencies, const void *edges, size_t count,
         int mode),
        (stream, graph, dependencies, edges, count, mode))

/* In CUDA 12 the third parameter is the count; edges of CUDA 13 are NULL or an address. */
API Result cudaStreamUpdateCaptureDependencies(struct Stream *stream, struct Node **dependencies, u64 edges, size_t count,
                                               u32 flags) {
    enum { MOST_NODES = 1 << 16 };
    return edges && edges < MOST_NODES
               ? cudaStreamUpdateCaptureDependencies_v2(stream, dependencies, NULL, edges, (u32)count)
               : cudaStreamUpdateCaptureDependencies_v2(stream, dependencies, (void *)edges, count, flags);
}

API Result cudaStreamCreate(struct Stream **stream) {
    return cudaStreamCreateWithFlags(stream, 0);
}

/* Events. */

FORWARD(cudaEventCreateWithFlags, cuEventCreate, (struct Event * *event, u32 flags), (event, flags))
FORWARD(cudaEventRecord, cuEventRecord, (struct Event * event, struct Stream *stream), (event, stream))
FORWARD(cudaEventRecordWithFlags, cuEventRecordWithFlags, (struct Event * event, struct Stream *stream, u32 flags),
        (event, stream, flags))
FORWARD(cudaEventQuery, cuEventQuery, (struct Event * event), (event))
FORWARD(cudaEventSynchronize, cuEventSynchronize, (struct Event * event), (event))
FORWARD(cudaEventDestroy, cuEventDestroy_v2, (struct Event * event), (event))
FORWARD(cudaEventElapsedTime, cuEventElapsedTime, (float *milliseconds, struct Event *from, struct Event *to),
        (milliseconds, from, to))

API Result cudaEventElapsedTime_v2(float *milliseconds, struct Event *from, struct Event *to) {
    return cudaEventElapsedTime(milliseconds, from, to);
}

API Result cudaEventCreate(struct Event **event) {
    return cudaEventCreateWithFlags(event, 0);
}
