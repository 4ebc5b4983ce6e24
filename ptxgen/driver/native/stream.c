/* The programs' calls on streams, events, and words of memory that streams write and wait for. */
#include "queues.h"

#include <stdlib.h>
#include <string.h>

enum { EVENT_MAGIC = 0x45564e54 };

static u32 streams_made;

/* Streams. */

static void begin_stream(struct Stream *stream, u32 flags, int priority) {
    stream->magic = STREAM_MAGIC;
    stream->flags = (int)flags;
    stream->priority = priority;
    stream->id = __atomic_add_fetch(&streams_made, 1, __ATOMIC_RELAXED);
    add_stream(stream);
    order_new_stream();
}

/* The thread's own default stream, which waits for the legacy one and is waited for as other blocking streams are. It
 * outlives its thread, since operations may be left in it. */
static struct Stream *thread_stream(void) {
    static __thread struct Stream *own;
    if (!own) {
        own = calloc(1, sizeof *own);
        begin_stream(own, 0, 0);
    }
    return own;
}

struct Stream *stream_of(struct Stream *stream) {
    enum { LEGACY = 1, PER_THREAD = 2 };
    if ((u64)stream > PER_THREAD)
        return stream;
    bool is_own = (u64)stream == PER_THREAD || ((u64)stream != LEGACY && has_thread_streams);
    return is_own ? thread_stream() : &default_stream;
}

API Result cuStreamCreateWithPriority(struct Stream **stream, u32 flags, int priority) {
    Result result = connect_emulator();
    if (result)
        return result;
    *stream = calloc(1, sizeof **stream);
    begin_stream(*stream, flags, priority);
    return SUCCESS;
}

API Result cuStreamCreate(struct Stream **stream, u32 flags) {
    return cuStreamCreateWithPriority(stream, flags, 0);
}

API Result cuStreamDestroy_v2(struct Stream *stream) {
    if ((u64)stream <= 2)
        return INVALID_HANDLE;
    stream->magic = 0; /* its memory is kept: its operations still run, and graphs and late calls may name it */
    return SUCCESS;
}

API Result cuStreamSynchronize(struct Stream *stream) {
    return capture_of(stream) ? CAPTURE_UNSUPPORTED : synchronize_stream(stream);
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

struct Callback {
    void (*call)(struct Stream *, Result, void *);
    struct Stream *stream;
    void *data;
};

static void call_back(void *data) {
    struct Callback callback = *(struct Callback *)data;
    free(data);
    callback.call(callback.stream, sticky, callback.data);
}

API Result cuStreamAddCallback(struct Stream *stream, void (*call)(struct Stream *, Result, void *), void *data,
                               u32 flags) {
    (void)flags;
    if (capture_of(stream))
        return CAPTURE_UNSUPPORTED;
    struct Callback *made = malloc(sizeof *made);
    *made = (struct Callback){call, stream, data};
    return cuLaunchHostFunc(stream, call_back, made);
}

/* Writes of words of memory, and waits for their values (stream memory operations). */

static Result write_value(struct Stream *stream, u64 address, u64 value, u32 bytes) {
    Result result = SUCCESS;
    for (u32 at = 0; at < bytes && !result; at += 4) {
        struct Operation operation = {
            .kind = OP_FILL, .fill = {(char *)address + at, 0, 1, 1, (u32)(value >> 8 * at), 4}};
        result = submit(stream, &operation);
    }
    return result;
}

static Result wait_for_value(struct Stream *stream, u64 address, u64 value, u32 bytes, u32 flags) {
    if (!in_heap((void *)address))
        return INVALID_VALUE;
    if (capture_of(stream))
        return unsupported("cuStreamWaitValue while a graph is captured");
    struct Operation operation = {.kind = OP_WAIT_VALUE, .value = {address, value, flags, bytes}};
    return submit(stream, &operation);
}

API Result cuStreamWriteValue32_v2(struct Stream *stream, u64 address, u32 value, u32 flags) {
    (void)flags;
    return write_value(stream, address, value, 4);
}

API Result cuStreamWriteValue64_v2(struct Stream *stream, u64 address, u64 value, u32 flags) {
    (void)flags;
    return write_value(stream, address, value, 8);
}

API Result cuStreamWaitValue32_v2(struct Stream *stream, u64 address, u32 value, u32 flags) {
    return wait_for_value(stream, address, value, 4, flags);
}

API Result cuStreamWaitValue64_v2(struct Stream *stream, u64 address, u64 value, u32 flags) {
    return wait_for_value(stream, address, value, 8, flags);
}

union MemoryOperation { /* CUstreamBatchMemOpParams: its members begin alike */
    struct {
        int kind;
        u64 address, value;
        u32 flags;
    };
    u64 padding[6];
};

API Result cuStreamBatchMemOp_v2(struct Stream *stream, u32 count, union MemoryOperation *asked, u32 flags) {
    enum { WAIT_32 = 1, WRITE_32 = 2, FLUSH = 3, WAIT_64 = 4, WRITE_64 = 5, BARRIER = 6 };
    (void)flags;
    Result result = SUCCESS;
    for (u32 at = 0; at < count && !result; at++) {
        const union MemoryOperation *each = asked + at;
        switch (each->kind) {
        case WAIT_32: result = wait_for_value(stream, each->address, (u32)each->value, 4, each->flags); break;
        case WAIT_64: result = wait_for_value(stream, each->address, each->value, 8, each->flags); break;
        case WRITE_32: result = write_value(stream, each->address, (u32)each->value, 4); break;
        case WRITE_64: result = write_value(stream, each->address, each->value, 8); break;
        case FLUSH: case BARRIER: break;
        default: result = unsupported("cuStreamBatchMemOp with an atomic operation");
        }
    }
    return result;
}

/* Events. */

API Result cuEventCreate(struct Event **event, u32 flags) {
    enum { INTERPROCESS = 4 };
    *event = calloc(1, sizeof **event);
    (*event)->magic = EVENT_MAGIC;
    Result result = flags & INTERPROCESS ? allocate(sizeof(u32), DEVICE_MEMORY, &(*event)->shared) : SUCCESS;
    if ((*event)->shared)
        *(u32 *)unguarded((void *)(*event)->shared) = 0;
    return result;
}

API Result cuEventRecord(struct Event *event, struct Stream *stream) {
    if (!event || event->magic != EVENT_MAGIC)
        return INVALID_HANDLE;
    event->recorded = true;
    if (capture_event(stream_of(stream), event))
        return SUCCESS;
    struct Operation operation = {.kind = OP_RECORD, .event = event};
    Result result = submit(stream, &operation);
    event->point = (struct Point){stream_of(stream), stream_of(stream)->issued};
    event->clock = stream_of(stream)->clock;
    /* Another process sees what has run, not what is queued here. */
    return result || !event->shared ? result : synchronize_stream(stream);
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
    if (event->capture)
        capture_wait(waiting, event);
    if (waiting->capture || !event->point.stream)
        return SUCCESS;
    order_join(&waiting->clock, &event->clock);
    wait_in_stream(waiting, event->point);
    return SUCCESS;
}

static Result event_waited(const struct Event *event) {
    order_waited(&event->clock, !any_pending());
    return after_waiting();
}

API Result cuEventSynchronize(struct Event *event) {
    if (!event || event->magic != EVENT_MAGIC)
        return INVALID_HANDLE;
    wait_for_point(event->point);
    return event_waited(event);
}

API Result cuEventQuery(struct Event *event) {
    if (!event || event->magic != EVENT_MAGIC)
        return INVALID_HANDLE;
    Result result = query_point(event->point);
    return result ? result : event_waited(event);
}

API Result cuEventDestroy_v2(struct Event *event) {
    if (!event || event->magic != EVENT_MAGIC)
        return INVALID_HANDLE;
    event->magic = 0; /* its memory is kept: its record may still be queued */
    return SUCCESS;
}

API Result cuEventElapsedTime(float *milliseconds, struct Event *from, struct Event *to) {
    if (!from || !to || !from->recorded || !to->recorded)
        return INVALID_HANDLE;
    cuEventSynchronize(from);
    Result result = cuEventSynchronize(to);
    if (result)
        return result;
    *milliseconds = (float)(to->milliseconds - from->milliseconds);
    return SUCCESS;
}

API Result cuEventElapsedTime_v2(float *milliseconds, struct Event *from, struct Event *to) {
    return cuEventElapsedTime(milliseconds, from, to);
}
