/* What streams are given to do: operations are performed as they are issued, or queued.
 *
 * Under the schedules `late` and `random` they are queued, and run when something waits for them, so that a program that
 * does not wait gets the wrong result: `late` runs as little as a wait requires, and of several streams the newest first;
 * `random` runs operations of any stream at any time.
 *
 * Under every schedule a launch may wait for the program, or for another stream: its kernel spins on memory that one of
 * them writes. The emulator then answers NOT_READY, the program goes on, and what the stream is given next is queued
 * (waiting.py is the emulator's side).
 */
#include "queues.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Time of the emulated device: emulated work, not the seconds that emulating it takes. */
u64 device_nanoseconds;
struct Stream default_stream = {.magic = STREAM_MAGIC};
struct Stream *all_streams = &default_stream;

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

/* What the emulator answers to a launch, once it has ended. Takes the reply. */
static Result end_launch(const struct Kernel *kernel, Result result, void *reply, size_t bytes, bool waited) {
    if (bytes >= sizeof(struct Launched)) {
        struct Launched launched;
        memcpy(&launched, reply, sizeof launched);
        device_nanoseconds += launched.nanoseconds;
        char *parts = (char *)reply + sizeof launched, *printed = parts + (size_t)launched.parts * PART_BYTES;
        print_later(printed, bytes - (size_t)(printed - (char *)reply));
        if (launched.parts)
            order_launched(kernel->function->name, launched.number,
                           (char *)kernel->parameters + kernel->function->parameter_bytes, parts, launched.parts,
                           waited);
    }
    free(reply);
    if (result >= FIRST_STICKY && result <= LAST_STICKY) {
        sticky = result; /* the launch itself succeeds: the next synchronization fails */
        return SUCCESS;
    }
    return result;
}

/* `waiting`, if given: the launch may wait for the program, and then NOT_READY is returned. */
static Result launch_now(const struct Kernel *kernel, int *waiting) {
    void *reply;
    size_t bytes = 0;
    struct LaunchShape shape = kernel->shape;
    shape.flags |= order_matters() ? WANTS_ACCESSES | (waiting ? MAY_WAIT : 0) : 0;
    Result result = request_launch(&shape, sizeof shape, kernel->parameters,
                                   kernel->function->parameter_bytes + kernel->site_bytes, &reply, &bytes, waiting);
    if (result == NOT_READY) {
        free(reply);
        return NOT_READY;
    }
    return end_launch(kernel, result, reply, bytes, false);
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
        return launch_now(&operation->kernel, NULL);
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
/* Calls that give streams something to do, or wait for them: a program that makes none may poll memory instead. */
static u64 activity;
static pid_t idle_owner; /* the process that has the thread for that */

u32 draw(u32 choices) {
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

bool any_pending(void) {
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

static void remove_first(struct Stream *stream) {
    struct Queued *first = stream->first;
    stream->first = first->next;
    if (!stream->first)
        stream->last = NULL;
    if (first->operation.kind == OP_LAUNCH)
        free(first->operation.kernel.parameters);
    free(first->operation.site);
    free(first->operation.staged);
    free(first);
}

static void keep_error(Result result) {
    if (result && !delayed_error)
        delayed_error = result;
}

/* Whether a launch that waits has ended since; then all of it is done. */
static bool end_waiting(struct Stream *stream) {
    struct pollfd answer = {.fd = stream->waiting, .events = POLLIN};
    if (poll(&answer, 1, 0) <= 0)
        return false;
    void *reply;
    size_t bytes;
    struct Queued *first = stream->first;
    Result result = receive_answer(stream->waiting, &reply, &bytes);
    stream->has_waiting = false;
    const struct Issue *before = order_begins(&first->issue);
    keep_error(end_launch(&first->operation.kernel, result, reply, bytes, true));
    order_ends(before);
    remove_first(stream);
    stream->done++;
    return true;
}

static bool has_value(const struct WaitedValue *waited) {
    enum { AT_LEAST = 0, EQUAL = 1, AND = 2, NOR = 3 };
    u64 found = 0, mask = waited->bytes == 8 ? ~0ull : 0xffffffffu;
    memcpy(&found, unguarded((void *)waited->address), waited->bytes);
    switch (waited->flags & 3) {
    case AT_LEAST: return waited->bytes == 8 ? (int64_t)(found - waited->value) >= 0
                                             : (int32_t)((u32)found - (u32)waited->value) >= 0;
    case EQUAL: return found == (waited->value & mask);
    case AND: return found & waited->value;
    default: return (~(found | waited->value) & mask) != 0;
    }
}

/* What others have done is ordered before the operations behind a wait for a value that they may have written. */
static void take_over(struct Stream *stream) {
    order_handed_on(&stream->clock);
    for (struct Queued *each = stream->first; each; each = each->next)
        order_handed_on(&each->issue.clock);
}

static bool run_to(struct Point point);

/* Runs the first operation of a stream; false if it cannot run now. */
static bool run_first(struct Stream *stream) {
    struct Queued *first = stream->first;
    if (stream->is_busy && !pthread_equal(stream->runner, pthread_self()))
        return false;
    if (stream->has_waiting)
        return end_waiting(stream);
    if (first->operation.kind == OP_WAIT && !sticky && !run_to(first->operation.point))
        return false;
    if (first->operation.kind == OP_WAIT_VALUE && !sticky) {
        if (!has_value(&first->operation.value))
            return false;
        take_over(stream);
    }
    if (first->operation.kind == OP_LAUNCH && !sticky) {
        const struct Issue *before = order_begins(&first->issue);
        Result result = launch_now(&first->operation.kernel, &stream->waiting);
        order_ends(before);
        stream->has_waiting = result == NOT_READY;
        if (stream->has_waiting)
            return false;
        keep_error(result);
        remove_first(stream);
        stream->done++;
        return true;
    }
    if (first->operation.kind == OP_HOST) { /* it may wait for another thread of the program */
        struct Queued callback = *first;
        remove_first(stream);
        bool was_busy = stream->is_busy;
        stream->is_busy = true;
        stream->runner = pthread_self();
        if (!sticky) {
            pthread_mutex_unlock(&queues_lock);
            const struct Issue *before = order_begins(&callback.issue);
            Result result = perform(&callback.operation);
            order_ends(before);
            pthread_mutex_lock(&queues_lock);
            keep_error(result);
        }
        stream->is_busy = was_busy;
        stream->done++;
        return true;
    }
    if (first->operation.kind != OP_WAIT && !sticky) {
        const struct Issue *before = order_begins(&first->issue);
        Result result = perform(&first->operation);
        order_ends(before);
        keep_error(result);
    }
    remove_first(stream);
    stream->done++;
    return true;
}

/* Runs a stream up to a point; false if it cannot come so far now. */
static bool run_to(struct Point point) {
    struct Stream *stream = point.stream;
    while (stream && stream->done < point.operations && stream->first)
        if (!run_first(stream))
            return false;
    return !stream || stream->done >= point.operations || pthread_equal(stream->runner, pthread_self());
}

/* Runs what can run of all streams; false if that is nothing. */
static bool run_what_can_run(void) {
    bool any = false;
    for (struct Stream *each = all_streams; each; each = each->next)
        while (each->first && run_first(each))
            any = true;
    return any;
}

/* Waits. */

static u64 milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (u64)now.tv_sec * 1000 + (u64)now.tv_nsec / 1000000;
}

/* Whether another thread of the program may still write what is waited for. */
static bool has_other_threads(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *each; folder && (each = readdir(folder));)
        count += each->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return count - (idle_owner == getpid()) > 1;
}

/* Nothing will let these streams go on: the launches end as deadlocks. */
static void give_up(void) {
    for (struct Stream *each = all_streams; each; each = each->next)
        if (each->has_waiting) {
            if (send(each->waiting, "", 1, MSG_NOSIGNAL) < 0)
                continue;
        } else if (each->first && each->first->operation.kind == OP_WAIT_VALUE) {
            const struct WaitedValue *waited = &each->first->operation.value;
            note("stream %u waits for a value at %#llx (cuStreamWaitValue) that nothing writes any more: deadlock",
                 each->id, (unsigned long long)waited->address);
            sticky = LAUNCH_TIMEOUT;
        }
}

/* Milliseconds after which a wait is given up: nothing in the program can end it, or nothing has. */
enum { ALONE_PATIENCE = 100, PATIENCE = 5000, WAIT = 5 };

static void let_others_go_on(void) {
    struct pollfd answers[CLOCKS];
    nfds_t count = 0;
    for (struct Stream *each = all_streams; each && count < CLOCKS; each = each->next)
        if (each->has_waiting)
            answers[count++] = (struct pollfd){.fd = each->waiting, .events = POLLIN};
    pthread_mutex_unlock(&queues_lock);
    poll(answers, count, WAIT);
    pthread_mutex_lock(&queues_lock);
}

/* Waits until a stream has come to a point, and runs what can run. */
static void come_to(struct Point point) {
    u64 since = 0, patience = 0;
    while (!run_to(point)) {
        if (run_what_can_run()) {
            since = 0;
            continue;
        }
        if (!since) {
            since = milliseconds();
            patience = has_other_threads() ? PATIENCE : ALONE_PATIENCE;
        }
        let_others_go_on();
        if (milliseconds() - since > patience) {
            give_up();
            since = 0;
        }
    }
}

void wait_for_point(struct Point point) {
    pthread_mutex_lock(&queues_lock);
    activity++;
    come_to(point);
    pthread_mutex_unlock(&queues_lock);
}

/* NOT_READY if a stream cannot come to a point now. Who asks again and again shall get an answer. */
Result query_point(struct Point point) {
    static u64 since;
    pthread_mutex_lock(&queues_lock);
    activity++;
    bool reached = run_to(point) || (run_what_can_run() && run_to(point));
    if (reached) {
        since = 0;
    } else {
        u64 now = milliseconds();
        since = since ? since : now;
        if (now - since > PATIENCE) {
            give_up();
            since = 0;
        }
        let_others_go_on();
    }
    pthread_mutex_unlock(&queues_lock);
    return reached ? SUCCESS : NOT_READY;
}

/* A GPU runs what it is given also if nobody waits for it. A program that polls memory, and so makes no call for a
 * while, gets all that can run. */
static void *run_when_idle(void *unused) {
    enum { LOOK = 50 * 1000, LOOKS = 6 };
    u64 seen = 0;
    for (int looks = 0;; usleep(LOOK)) {
        looks = seen == activity ? looks + 1 : 0;
        seen = activity;
        if (looks < LOOKS || !any_pending() || pthread_mutex_trylock(&queues_lock))
            continue;
        run_what_can_run();
        pthread_mutex_unlock(&queues_lock);
    }
    return unused;
}

static void start_idle_thread(void) {
    pthread_t made;
    if (idle_owner == getpid() || !order_matters())
        return;
    idle_owner = getpid();
    if (!pthread_create(&made, NULL, run_when_idle, NULL))
        pthread_detach(made);
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
        run_first(pending[draw(count)]); /* or it waits */
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

static Result queue(struct Stream *stream, const struct Operation *operation, const struct Issue *issue) {
    Result result = SUCCESS;
    pthread_mutex_lock(&queues_lock);
    activity++;
    wait_implicitly(stream);
    add_to_queue(stream, operation, issue);
    if ((machine.delay & 0xff) == RANDOM) {
        run_some();
    } else if (!machine.delay) {
        run_what_can_run();
        result = delayed_error;
        delayed_error = SUCCESS;
    }
    if (any_pending())
        start_idle_thread();
    pthread_mutex_unlock(&queues_lock);
    return result;
}

void wait_in_stream(struct Stream *stream, struct Point point) {
    if (machine.delay || any_pending()) {
        struct Operation operation = {.kind = OP_WAIT, .point = point};
        queue(stream, &operation, NULL);
    }
}

void add_stream(struct Stream *stream) {
    pthread_mutex_lock(&queues_lock);
    stream->next = all_streams;
    all_streams = stream;
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

/* The stream of the last operation of this process if that was a launch and the program has not synchronized since. */
static struct Stream *last_launch;

/* A programmatic dependent launch may begin before the launch has ended that comes right before it in its stream. */
static void follow_launch(struct Stream *stream, struct Operation *operation) {
    bool launches = operation->kind == OP_LAUNCH;
    struct Stream *before = __atomic_exchange_n(&last_launch, launches ? stream : NULL, __ATOMIC_ACQ_REL);
    if (launches && before == stream && operation->kernel.shape.flags & PROGRAMMATIC)
        operation->kernel.shape.flags |= FOLLOWS;
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
    follow_launch(stream_of(stream), &placed);
    if (order_matters() && (placed.kind == OP_COPY || placed.kind == OP_FILL || placed.kind == OP_FREE)) {
        call_site(site, sizeof site);
        placed.site = site;
    }
    const struct Issue *before = order_begins(&issue);
    Result result = SUCCESS;
    bool may_wait = placed.staged || placed.kind == OP_WAIT_VALUE || (placed.kind == OP_LAUNCH && order_matters());
    if (machine.delay || may_wait || any_pending())
        result = queue(stream_of(stream), &placed, &issue);
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

Result after_waiting(void) {
    print_pending();
    Result result = sticky ? sticky : delayed_error;
    delayed_error = SUCCESS;
    return result;
}

Result synchronize(void) {
    __atomic_store_n(&last_launch, NULL, __ATOMIC_RELEASE);
    Result result = connect_emulator();
    if (result)
        return result;
    if (machine.delay || any_pending()) {
        pthread_mutex_lock(&queues_lock);
        activity++;
        if ((machine.delay & 0xff) == RANDOM)
            run_some();
        for (struct Stream *each = all_streams; each; each = each->next)
            come_to((struct Point){each, each->issued});
        pthread_mutex_unlock(&queues_lock);
    }
    struct Clock all = {{0}};
    for (struct Stream *each = all_streams; each; each = each->next)
        order_join(&all, &each->clock);
    order_waited(&all, true);
    return after_waiting();
}

/* All that a stream has been given, and what it waits for as the default stream. */
static struct Point end_of(struct Stream *stream) {
    pthread_mutex_lock(&queues_lock);
    if (stream == &default_stream)
        wait_implicitly(stream);
    struct Point made = {stream, stream->issued};
    pthread_mutex_unlock(&queues_lock);
    return made;
}

static Result stream_waited(struct Stream *stream) {
    struct Clock waited = implicit_clock(stream);
    order_join(&waited, &stream->clock);
    order_waited(&waited, !any_pending());
    return after_waiting();
}

Result synchronize_stream(struct Stream *stream) {
    __atomic_store_n(&last_launch, NULL, __ATOMIC_RELEASE);
    Result result = connect_emulator();
    if (result)
        return result;
    struct Stream *chosen = stream_of(stream);
    if (machine.delay || any_pending())
        wait_for_point(end_of(chosen));
    return stream_waited(chosen);
}

API Result cuStreamQuery(struct Stream *stream) {
    __atomic_store_n(&last_launch, NULL, __ATOMIC_RELEASE);
    Result result = connect_emulator();
    if (result)
        return result;
    struct Stream *chosen = stream_of(stream);
    if (machine.delay || any_pending())
        result = query_point(end_of(chosen));
    return result ? result : stream_waited(chosen);
}

/* A process that ends lets its operations run. */
__attribute__((destructor)) static void finish_at_exit(void) {
    if ((machine.delay || any_pending()) && in_heap((void *)machine.base))
        synchronize();
}

