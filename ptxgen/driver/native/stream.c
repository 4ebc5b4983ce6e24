/* Streams and events. Operations are performed as they are issued, or recorded while their stream captures a graph.
 *
 * Under the schedules `late` and `random` they are queued, and run when something waits for them, so that a program that
 * does not wait gets the wrong result: `late` runs as little as a wait requires, and of several streams the newest first;
 * `random` runs operations of any stream at any time.
 */
#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_MAGIC = 0x53545245, EVENT_MAGIC = 0x45564e54, NON_BLOCKING = 1 };

/* Time of the emulated device: emulated work, not the seconds that emulating it takes. */
u64 device_nanoseconds;
static u32 streams_made;
static struct Stream default_stream = {.magic = STREAM_MAGIC};
static struct Stream *all_streams = &default_stream;

/* The handles 0, 1 and 2 are those of default streams. */
struct Stream *stream_of(struct Stream *stream) {
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
            memmove(unguarded(copy->to + z * copy->to_slice + y * copy->to_pitch),
                    unguarded(copy->from + z * copy->from_slice + y * copy->from_pitch), copy->width);
    device_nanoseconds += 2000 + copy->width * copy->height * copy->depth / 1000;
}

static void fill_now(const struct Fill *fill) {
    for (size_t y = 0; y < fill->height; y++) {
        char *row = unguarded(fill->to + y * fill->pitch);
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
    u32 number, parts; /* of the launch; what it has accessed (order.c), if that was asked for */
};
enum { PART_BYTES = 16 };

static Result launch_now(const struct Kernel *kernel) {
    void *reply;
    size_t bytes;
    struct LaunchShape shape = kernel->shape;
    shape.flags |= order_matters() ? WANTS_ACCESSES : 0;
    Result result = request(LAUNCH, &shape, sizeof shape, kernel->parameters,
                            kernel->function->parameter_bytes + kernel->site_bytes, &reply, &bytes);
    if (bytes >= sizeof(struct Launched)) {
        struct Launched launched;
        memcpy(&launched, reply, sizeof launched);
        device_nanoseconds += launched.nanoseconds;
        char *parts = (char *)reply + sizeof launched, *printed = parts + (size_t)launched.parts * PART_BYTES;
        print_later(printed, bytes - (size_t)(printed - (char *)reply));
        if (launched.parts)
            order_launched(kernel->function->name, launched.number,
                           (char *)kernel->parameters + kernel->function->parameter_bytes, parts, launched.parts);
    }
    free(reply);
    if (result >= FIRST_STICKY && result <= LAST_STICKY) {
        sticky = result; /* the launch itself succeeds: the next synchronization fails */
        return SUCCESS;
    }
    return result;
}

static Result release_in_stream(u64 address, const char *site) {
    struct Range found;
    if (find_range(address, &found))
        order_freed(found.address, found.bytes, site);
    return release(address);
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
        order_calls_back();
        operation->host.call(operation->host.data);
        return SUCCESS;
    case OP_RECORD:
        operation->event->milliseconds = (double)device_nanoseconds / 1e6;
        return SUCCESS;
    case OP_GRAPH:
        return run_graph(operation->graph);
    case OP_CONDITIONAL:
        return run_conditional(operation->conditional);
    case OP_FREE:
        return release_in_stream(operation->address, operation->site ? operation->site : "");
    default:
        return SUCCESS;
    }
}

/* Queues. */

struct Queued {
    struct Operation operation;
    struct Issue issue;
    struct Queued *next;
};

static pthread_mutex_t queues_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static Result delayed_error;
static u64 random_state;

static u32 draw(u32 choices) {
    if (!random_state)
        random_state = (machine.delay >> 8) * 0x9E3779B97F4A7C15u + 1;
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (u32)(random_state >> 33) % choices;
}

static bool is_pending(const struct Stream *stream) {
    return stream->done < stream->issued;
}

static bool any_pending(void) {
    for (struct Stream *each = all_streams; each; each = each->next)
        if (is_pending(each))
            return true;
    return false;
}

static void add_to_queue(struct Stream *stream, const struct Operation *operation, const struct Issue *issue) {
    struct Queued *made = calloc(1, sizeof *made);
    made->operation = *operation;
    if (issue)
        made->issue = *issue;
    if (operation->site)
        made->operation.site = strdup(operation->site);
    if (operation->kind == OP_LAUNCH) {
        size_t bytes = operation->kernel.function->parameter_bytes + operation->kernel.site_bytes + 1;
        made->operation.kernel.parameters = malloc(bytes);
        memcpy(made->operation.kernel.parameters, operation->kernel.parameters, bytes);
    }
    if (stream->last)
        stream->last->next = made;
    else
        stream->first = made;
    stream->last = made;
    stream->issued++;
}

static void run_to(struct Point point);

static void run_first(struct Stream *stream) {
    struct Queued *first = stream->first;
    stream->first = first->next;
    if (!stream->first)
        stream->last = NULL;
    if (first->operation.kind == OP_WAIT) {
        run_to(first->operation.point);
    } else if (!sticky) {
        bool is_host = first->operation.kind == OP_HOST;
        if (is_host) /* which may wait for another thread of the program */
            pthread_mutex_unlock(&queues_lock);
        const struct Issue *before = order_begins(&first->issue);
        Result result = perform(&first->operation);
        order_ends(before);
        if (is_host)
            pthread_mutex_lock(&queues_lock);
        if (result && !delayed_error)
            delayed_error = result;
    }
    if (first->operation.kind == OP_LAUNCH)
        free(first->operation.kernel.parameters);
    free(first->operation.site);
    free(first);
    stream->done++;
}

static void run_to(struct Point point) {
    while (point.stream && point.stream->done < point.operations && point.stream->first)
        run_first(point.stream);
}

static void run_all(struct Stream *stream) {
    run_to((struct Point){stream, stream->issued});
}

/* Under `random`: as many operations of as many streams as comes up. */
static void run_some(void) {
    while (draw(2)) {
        struct Stream *pending[64];
        u32 count = 0;
        for (struct Stream *each = all_streams; each && count < 64; each = each->next)
            if (is_pending(each) && each->first)
                pending[count++] = each;
        if (!count)
            return;
        run_first(pending[draw(count)]);
    }
}

/* The default stream waits for all blocking streams, and they for it (CUDA programming guide, "Default Stream"). */
static void wait_implicitly(struct Stream *stream) {
    struct Operation wait = {.kind = OP_WAIT};
    if (stream == &default_stream) {
        for (struct Stream *each = all_streams; each; each = each->next)
            if (each != stream && !(each->flags & NON_BLOCKING) && is_pending(each)) {
                wait.point = (struct Point){each, each->issued};
                add_to_queue(stream, &wait, NULL);
            }
    } else if (!(stream->flags & NON_BLOCKING) && is_pending(&default_stream)) {
        wait.point = (struct Point){&default_stream, default_stream.issued};
        add_to_queue(stream, &wait, NULL);
    }
}

static void queue(struct Stream *stream, const struct Operation *operation, const struct Issue *issue) {
    pthread_mutex_lock(&queues_lock);
    wait_implicitly(stream);
    add_to_queue(stream, operation, issue);
    if ((machine.delay & 0xff) == RANDOM)
        run_some();
    pthread_mutex_unlock(&queues_lock);
}

/* The clock of what a stream waits for because of the default stream, which has that of all blocking ones. */
static struct Clock implicit_clock(struct Stream *stream) {
    struct Clock made = {{0}};
    if (stream == &default_stream) {
        for (struct Stream *each = all_streams; each; each = each->next)
            if (each != stream && !(each->flags & NON_BLOCKING))
                order_join(&made, &each->clock);
    } else if (!(stream->flags & NON_BLOCKING)) {
        made = default_stream.clock;
    }
    return made;
}

static struct Issue next_issue(struct Stream *stream) {
    struct Clock implicit = implicit_clock(stream);
    return order_issue(stream, &implicit);
}

Result submit(struct Stream *stream, const struct Operation *operation) {
    if (capture_of(stream)) {
        capture(stream_of(stream), operation);
        return SUCCESS;
    }
    if (sticky)
        return sticky;
    struct Issue issue = next_issue(stream_of(stream));
    char site[1024];
    struct Operation placed = *operation;
    if (order_matters() && (placed.kind == OP_COPY || placed.kind == OP_FILL || placed.kind == OP_FREE)) {
        call_site(site, sizeof site);
        placed.site = site;
    }
    const struct Issue *before = order_begins(&issue);
    Result result = SUCCESS;
    if (machine.delay)
        queue(stream_of(stream), &placed, &issue);
    else
        result = perform(&placed);
    /* What a copy or fill accesses is known before it runs. */
    if (!result && placed.kind == OP_COPY)
        order_copied(&placed.copy, placed.site ? placed.site : "");
    else if (!result && placed.kind == OP_FILL)
        order_filled(&placed.fill, placed.site ? placed.site : "");
    order_ends(before);
    return result;
}

static Result after_waiting(void) {
    print_pending();
    Result result = sticky ? sticky : delayed_error;
    delayed_error = SUCCESS;
    return result;
}

Result synchronize(void) {
    Result result = connect_emulator();
    if (result)
        return result;
    if (machine.delay) {
        pthread_mutex_lock(&queues_lock);
        if ((machine.delay & 0xff) == RANDOM)
            run_some();
        for (struct Stream *each = all_streams; each; each = each->next)
            run_all(each);
        pthread_mutex_unlock(&queues_lock);
    }
    struct Clock all = {{0}};
    for (struct Stream *each = all_streams; each; each = each->next)
        order_join(&all, &each->clock);
    order_waited(&all, true);
    return after_waiting();
}

Result synchronize_stream(struct Stream *stream) {
    Result result = connect_emulator();
    if (result)
        return result;
    if (machine.delay) {
        struct Stream *chosen = stream_of(stream);
        pthread_mutex_lock(&queues_lock);
        if (chosen == &default_stream)
            wait_implicitly(chosen);
        run_all(chosen);
        pthread_mutex_unlock(&queues_lock);
    }
    struct Clock waited = implicit_clock(stream_of(stream));
    order_join(&waited, &stream_of(stream)->clock);
    order_waited(&waited, !any_pending());
    return after_waiting();
}

/* A process that ends lets its operations run. */
__attribute__((destructor)) static void finish_at_exit(void) {
    if (machine.delay && in_heap((void *)machine.base))
        synchronize();
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
    pthread_mutex_lock(&queues_lock);
    (*stream)->next = all_streams;
    all_streams = *stream;
    pthread_mutex_unlock(&queues_lock);
    order_new_stream();
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

API Result cuStreamQuery(struct Stream *stream) {
    return synchronize_stream(stream); /* who asks again and again shall get an answer */
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

/* Waits on and writes of words in memory (stream memory operations). */

API Result cuStreamWriteValue32_v2(struct Stream *stream, u64 address, u32 value, u32 flags) {
    (void)flags;
    struct Operation operation = {.kind = OP_FILL, .fill = {(char *)address, 0, 1, 1, value, 4}};
    return submit(stream, &operation);
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
    if (!machine.delay)
        return SUCCESS;
    struct Operation operation = {.kind = OP_WAIT, .point = event->point};
    queue(waiting, &operation, NULL);
    return SUCCESS;
}

API Result cuEventSynchronize(struct Event *event) {
    if (!event || event->magic != EVENT_MAGIC)
        return INVALID_HANDLE;
    pthread_mutex_lock(&queues_lock);
    run_to(event->point);
    pthread_mutex_unlock(&queues_lock);
    order_waited(&event->clock, !any_pending());
    return after_waiting();
}

API Result cuEventQuery(struct Event *event) {
    return cuEventSynchronize(event);
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
