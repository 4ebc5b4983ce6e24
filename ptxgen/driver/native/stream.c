/* Streams and events: operations are performed as they are issued, or recorded while their stream captures a graph. */
#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_MAGIC = 0x53545245, EVENT_MAGIC = 0x45564e54 };

/* Time of the emulated device: emulated work, not the seconds that emulating it takes. */
u64 device_nanoseconds;
static u32 streams_made;
static struct Stream default_stream = {.magic = STREAM_MAGIC};

/* The handles 0, 1 and 2 are those of default streams. */
static struct Stream *stream_of(struct Stream *stream) {
    return (u64)stream <= 2 ? &default_stream : stream;
}

u32 stream_number(struct Stream *stream) {
    return stream_of(stream)->id;
}

struct Graph *capture_of(struct Stream *stream) {
    return stream_of(stream)->capture;
}

static void copy_now(const struct Copy *copy) {
    for (size_t z = 0; z < copy->depth; z++)
        for (size_t y = 0; y < copy->height; y++)
            memmove(copy->to + z * copy->to_slice + y * copy->to_pitch,
                    copy->from + z * copy->from_slice + y * copy->from_pitch, copy->width);
    device_nanoseconds += 2000 + copy->width * copy->height * copy->depth / 1000;
}

static void fill_now(const struct Fill *fill) {
    for (size_t y = 0; y < fill->height; y++) {
        char *row = fill->to + y * fill->pitch;
        if (fill->element == 1) {
            memset(row, (int)fill->value, fill->width);
            continue;
        }
        for (size_t x = 0; x < fill->width; x++)
            memcpy(row + x * fill->element, &fill->value, fill->element);
    }
    device_nanoseconds += 2000;
}

/* What LAUNCH returns before the text that the kernel has printed. */
struct Launched {
    u64 nanoseconds;
};

static Result launch_now(const struct Kernel *kernel) {
    void *reply;
    size_t bytes;
    Result result = request(LAUNCH, &kernel->shape, sizeof kernel->shape, kernel->parameters,
                            kernel->function->parameter_bytes + kernel->site_bytes, &reply, &bytes);
    if (bytes >= sizeof(struct Launched)) {
        struct Launched launched;
        memcpy(&launched, reply, sizeof launched);
        device_nanoseconds += launched.nanoseconds;
        print_later((char *)reply + sizeof launched, bytes - sizeof launched);
    }
    free(reply);
    if (result >= FIRST_STICKY && result <= LAST_STICKY) {
        sticky = result; /* the launch itself succeeds: the next synchronization fails */
        return SUCCESS;
    }
    return result;
}

Result perform(const struct Operation *operation) {
    switch (operation->kind) {
    case OP_COPY:
        copy_now(&operation->copy);
        return SUCCESS;
    case OP_FILL:
        fill_now(&operation->fill);
        return SUCCESS;
    case OP_LAUNCH:
        return launch_now(&operation->kernel);
    case OP_HOST:
        print_pending();
        operation->host.call(operation->host.data);
        return SUCCESS;
    case OP_GRAPH:
        return run_graph(operation->graph);
    case OP_FREE:
        return release(operation->address);
    default:
        return SUCCESS;
    }
}

Result submit(struct Stream *stream, const struct Operation *operation) {
    struct Graph *graph = capture_of(stream);
    if (graph) {
        record(graph, operation);
        return SUCCESS;
    }
    if (sticky)
        return sticky;
    return perform(operation);
}

Result synchronize(void) {
    Result result = connect_emulator();
    if (result)
        return result;
    print_pending();
    return sticky;
}

/* Streams. */

API Result cuStreamCreateWithPriority(struct Stream **stream, u32 flags, int priority) {
    Result result = connect_emulator();
    if (result)
        return result;
    *stream = calloc(1, sizeof **stream);
    (*stream)->magic = STREAM_MAGIC;
    (*stream)->flags = (int)flags;
    (*stream)->priority = priority;
    (*stream)->id = __atomic_add_fetch(&streams_made, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}

API Result cuStreamCreate(struct Stream **stream, u32 flags) {
    return cuStreamCreateWithPriority(stream, flags, 0);
}

API Result cuStreamDestroy_v2(struct Stream *stream) {
    if ((u64)stream <= 2)
        return INVALID_HANDLE;
    stream->magic = 0; /* its memory is kept: graphs and late calls may still name it */
    return SUCCESS;
}

API Result cuStreamSynchronize(struct Stream *stream) {
    return capture_of(stream) ? CAPTURE_UNSUPPORTED : synchronize();
}

API Result cuStreamQuery(struct Stream *stream) {
    (void)stream;
    print_pending();
    return sticky;
}

API Result cuStreamGetFlags(struct Stream *stream, u32 *flags) {
    *flags = (u32)stream_of(stream)->flags;
    return SUCCESS;
}

API Result cuStreamGetPriority(struct Stream *stream, int *priority) {
    *priority = stream_of(stream)->priority;
    return SUCCESS;
}

API Result cuStreamGetId(struct Stream *stream, u64 *number) {
    *number = stream_of(stream)->id;
    return SUCCESS;
}

API Result cuStreamGetDevice(struct Stream *stream, int *device) {
    (void)stream;
    *device = 0;
    return SUCCESS;
}

Result cuDevicePrimaryCtxRetain(void **context, int device);

API Result cuStreamGetCtx(struct Stream *stream, void **context) {
    (void)stream;
    return cuDevicePrimaryCtxRetain(context, 0);
}

API Result cuStreamGetCtx_v2(struct Stream *stream, void **context, void **green) {
    if (green)
        *green = NULL;
    return cuStreamGetCtx(stream, context);
}

API Result cuStreamGetAttribute(struct Stream *stream, int attribute, void *value) {
    (void)stream, (void)attribute;
    memset(value, 0, 64);
    return SUCCESS;
}

API Result cuStreamSetAttribute(struct Stream *stream, int attribute, const void *value) {
    (void)stream, (void)attribute, (void)value;
    return SUCCESS;
}

API Result cuStreamCopyAttributes(struct Stream *to, struct Stream *from) {
    (void)to, (void)from;
    return SUCCESS;
}

API Result cuStreamAttachMemAsync(struct Stream *stream, u64 address, size_t bytes, u32 flags) {
    (void)stream, (void)address, (void)bytes, (void)flags;
    return SUCCESS;
}

API Result cuLaunchHostFunc(struct Stream *stream, void (*call)(void *), void *data) {
    struct Operation operation = {.kind = OP_HOST, .host = {call, data}};
    return submit(stream, &operation);
}

API Result cuLaunchHostFunc_v2(struct Stream *stream, void (*call)(void *), void *data, u32 mode) {
    (void)mode;
    return cuLaunchHostFunc(stream, call, data);
}

API Result cuStreamAddCallback(struct Stream *stream, void (*call)(struct Stream *, Result, void *), void *data,
                               u32 flags) {
    (void)flags;
    if (capture_of(stream))
        return CAPTURE_UNSUPPORTED;
    print_pending();
    call(stream, sticky, data);
    return SUCCESS;
}

/* Waits on and writes of words in memory (stream memory operations). */

API Result cuStreamWriteValue32_v2(struct Stream *stream, u64 address, u32 value, u32 flags) {
    (void)flags;
    struct Operation operation = {.kind = OP_FILL, .fill = {(char *)address, 0, 1, 1, value, 4}};
    return submit(stream, &operation);
}

/* Events. */

/* Streams that joined a capture leave it with the stream that began it. */
static struct Stream *capturing_streams[256];
static size_t capturing_count;

API Result cuEventCreate(struct Event **event, u32 flags) {
    (void)flags;
    *event = calloc(1, sizeof **event);
    (*event)->magic = EVENT_MAGIC;
    return SUCCESS;
}

API Result cuEventRecord(struct Event *event, struct Stream *stream) {
    if (!event || event->magic != EVENT_MAGIC)
        return INVALID_HANDLE;
    event->capture = capture_of(stream);
    event->recorded = true;
    event->milliseconds = (double)device_nanoseconds / 1e6;
    return SUCCESS;
}

API Result cuEventRecordWithFlags(struct Event *event, struct Stream *stream, u32 flags) {
    (void)flags;
    return cuEventRecord(event, stream);
}

/* A stream that waits on an event of a capture takes part in that capture. */
API Result cuStreamWaitEvent(struct Stream *stream, struct Event *event, u32 flags) {
    (void)flags;
    if (!event || event->magic != EVENT_MAGIC)
        return INVALID_HANDLE;
    struct Stream *waiting = stream_of(stream);
    if (event->capture && !waiting->capture) {
        waiting->capture = event->capture;
        if (capturing_count < sizeof capturing_streams / sizeof *capturing_streams)
            capturing_streams[capturing_count++] = waiting;
    }
    return SUCCESS;
}

API Result cuEventQuery(struct Event *event) {
    (void)event;
    print_pending();
    return sticky;
}

API Result cuEventSynchronize(struct Event *event) {
    (void)event;
    return synchronize();
}

API Result cuEventDestroy_v2(struct Event *event) {
    if (!event || event->magic != EVENT_MAGIC)
        return INVALID_HANDLE;
    event->magic = 0;
    free(event);
    return SUCCESS;
}

API Result cuEventElapsedTime(float *milliseconds, struct Event *from, struct Event *to) {
    if (!from || !to || !from->recorded || !to->recorded)
        return INVALID_HANDLE;
    if (sticky)
        return sticky;
    *milliseconds = (float)(to->milliseconds - from->milliseconds);
    return SUCCESS;
}

API Result cuEventElapsedTime_v2(float *milliseconds, struct Event *from, struct Event *to) {
    return cuEventElapsedTime(milliseconds, from, to);
}

/* Capture. */

enum { NOT_CAPTURING = 0, CAPTURING = 1 };

API Result cuStreamBeginCapture_v2(struct Stream *stream, int mode) {
    (void)mode;
    if ((u64)stream == 0)
        return CAPTURE_UNSUPPORTED;
    struct Stream *chosen = stream_of(stream);
    if (chosen->capture)
        return INVALID_VALUE;
    chosen->capture = new_graph();
    return SUCCESS;
}

API Result cuStreamBeginCapture(struct Stream *stream) {
    return cuStreamBeginCapture_v2(stream, 0);
}

API Result cuStreamBeginCaptureToGraph(struct Stream *stream, struct Graph *graph, const void *dependencies,
                                       const void *edges, size_t count, int mode) {
    (void)dependencies, (void)edges, (void)count, (void)mode;
    stream_of(stream)->capture = graph;
    return SUCCESS;
}

API Result cuStreamEndCapture(struct Stream *stream, struct Graph **graph) {
    struct Stream *chosen = stream_of(stream);
    *graph = chosen->capture;
    chosen->capture = NULL;
    for (size_t at = 0; at < capturing_count;)
        if (capturing_streams[at]->capture == *graph) {
            capturing_streams[at]->capture = NULL;
            capturing_streams[at] = capturing_streams[--capturing_count];
        } else {
            at++;
        }
    return *graph ? SUCCESS : INVALID_VALUE;
}

API Result cuStreamIsCapturing(struct Stream *stream, int *status) {
    *status = capture_of(stream) ? CAPTURING : NOT_CAPTURING;
    return SUCCESS;
}

API Result cuStreamGetCaptureInfo_v3(struct Stream *stream, int *status, u64 *id, struct Graph **graph,
                                     const void **dependencies, const void **edges, size_t *count) {
    struct Graph *capture = capture_of(stream);
    *status = capture ? CAPTURING : NOT_CAPTURING;
    if (id)
        *id = (u64)capture;
    if (graph)
        *graph = capture;
    if (dependencies)
        *dependencies = NULL;
    if (edges)
        *edges = NULL;
    if (count)
        *count = 0;
    return SUCCESS;
}

API Result cuStreamGetCaptureInfo_v2(struct Stream *stream, int *status, u64 *id, struct Graph **graph,
                                     const void **dependencies, size_t *count) {
    return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, NULL, count);
}

API Result cuStreamGetCaptureInfo(struct Stream *stream, int *status, u64 *id) {
    return cuStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}

API Result cuStreamUpdateCaptureDependencies(void) {
    return SUCCESS;
}

API Result cuStreamUpdateCaptureDependencies_v2(void) {
    return SUCCESS;
}

API Result cuThreadExchangeStreamCaptureMode(int *mode) {
    (void)mode;
    return SUCCESS;
}
