/* Host-side happens-before: which operations of streams, and accesses of the program itself, nothing orders.
 *
 * Each stream, and the host, has a vector clock: of each stream so many operations have happened before. A submission
 * joins the host's clock, an event hands on its stream's, a wait of the host joins what it waited for. Two operations
 * conflict that access the same bytes, one of them writing, with neither in the other's clock. What the program itself
 * reads or writes of pinned and managed memory is caught by protecting its pages while an operation that conflicts is
 * not known to have ended; the stand-in's own copies go through a second mapping of the heap.
 *
 * Threads of the program share one clock: what orders them is not known here, so that nothing is claimed of it.
 */
#include "standin.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { MOST_DONE = 512, MOST_PARTS = 4096, SITE_BYTES = 512 };
/* How bytes are accessed; ptxgen/driver/footprint.py has the same numbers. */
enum { READ = 1, WRITE = 2, STRONG_READ = 4, STRONG_WRITE = 8, SYSTEM_READ = 16, SYSTEM_WRITE = 32, RELEASE = 64 };
enum { WRITES = WRITE | STRONG_WRITE | SYSTEM_WRITE, STRONG = STRONG_READ | STRONG_WRITE | SYSTEM_READ | SYSTEM_WRITE };

struct Part { /* bytes that are accessed in one way */
    u64 address, bytes_and_how;
};

/* An operation that has run. */
struct Done {
    struct Issue issue;
    struct Path path; /* in the graph that it is of */
    struct Part *parts;
    size_t count;
    u64 low, high; /* what it accesses lies between */
    u32 launch;    /* its number, 0 if it is none */
    const char *what;
    char site[SITE_BYTES];
};

static pthread_mutex_t order_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct Clock host_clock;
static struct Done *done[MOST_DONE];
static size_t done_count;
static bool has_streams, has_host_memory;
static struct Clock all_done; /* of all operations in `done` so far */
/* The operation that this thread performs: a callback of the program runs after what its stream has done before. */
static __thread const struct Issue *performing;
/* The launch that this thread ends has waited for others: what it reads of them is not unordered. */
static __thread bool has_waited;

static void join(struct Clock *to, const struct Clock *from) {
    for (int at = 0; at < CLOCKS; at++)
        if (from->of[at] > to->of[at])
            to->of[at] = from->of[at];
}

static u64 bytes_of(const struct Part *part) {
    return part->bytes_and_how & 0xffffffffffffff;
}

static u32 how_of(const struct Part *part) {
    return (u32)(part->bytes_and_how >> 56);
}

void order_new_stream(void) {
    has_streams = true;
}

void order_allocated(enum Kind kind) {
    has_host_memory |= kind != DEVICE_MEMORY && kind != VARIABLE_MEMORY;
}

/* Whether what operations access matters: with one stream and device memory alone all is ordered. */
bool order_matters(void) {
    return has_streams || has_host_memory;
}

/* Submission. */

struct Issue order_issue(struct Stream *stream, const struct Clock *implicit) {
    struct Issue made = {.slot = stream->id < CLOCKS ? (int)stream->id : -1};
    pthread_mutex_lock(&order_lock);
    join(&stream->clock, &host_clock);
    if (implicit)
        join(&stream->clock, implicit);
    if (performing)
        join(&stream->clock, &performing->clock);
    if (made.slot >= 0)
        made.number = ++stream->clock.of[made.slot];
    made.clock = stream->clock;
    pthread_mutex_unlock(&order_lock);
    return made;
}

void order_join(struct Clock *to, const struct Clock *from) {
    pthread_mutex_lock(&order_lock);
    join(to, from);
    pthread_mutex_unlock(&order_lock);
}

/* Pages of the program that are protected. */

struct Guard {
    u64 from, to;
    int allowed;
};

static struct Guard *guards;
static size_t guard_count, guard_capacity;
static struct sigaction handler_before;

static void on_fault(int number, siginfo_t *info, void *context);

static void watch_faults(void) {
    struct sigaction present, ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&ours.sa_mask);
    if (!sigaction(SIGSEGV, NULL, &present) && present.sa_sigaction != on_fault) {
        handler_before = present;
        sigaction(SIGSEGV, &ours, NULL);
    }
}

static bool is_ordered(const struct Done *each, const struct Clock *clock) {
    return each->issue.slot < 0 || clock->of[each->issue.slot] >= each->issue.number;
}

/* The pages in which a part of pinned or managed memory is seen; false if there are none. Of pinned memory, into which a
 * program reads files while kernels run, only whole pages of an allocation, so that no call of the system fails on what is
 * not being written, and those of small ones, such as flags, which no call of the system takes. */
enum { SMALL_BYTES = 64 };
static bool pages_of(const struct Part *part, struct Guard *made) {
    struct Range range;
    if (!find_range(part->address, &range) || (range.kind != PINNED_MEMORY && range.kind != MANAGED_MEMORY))
        return false;
    u64 page = (u64)sysconf(_SC_PAGESIZE), from = part->address, to = from + bytes_of(part);
    from = from == range.address ? from / page * page : (from + page - 1) / page * page;
    to = to >= range.address + range.bytes ? (to + page - 1) / page * page : to / page * page;
    if (range.bytes <= SMALL_BYTES || range.kind == MANAGED_MEMORY) {
        from = part->address / page * page;
        to = (part->address + bytes_of(part) + page - 1) / page * page;
    }
    *made = (struct Guard){from, to, how_of(part) & WRITES ? PROT_NONE : PROT_READ};
    return from < to;
}

static void guard_part(const struct Part *part) {
    struct Guard made;
    if (!pages_of(part, &made))
        return;
    struct Guard *last = guard_count ? guards + guard_count - 1 : NULL;
    if (last && last->allowed == made.allowed && made.from >= last->from && made.from <= last->to) {
        if (made.to > last->to) { /* parts come by address: those of one page, or of pages side by side */
            mprotect((void *)last->to, made.to - last->to, made.allowed);
            last->to = made.to;
        }
        return;
    }
    if (guard_count == guard_capacity) {
        guard_capacity = guard_capacity ? 2 * guard_capacity : 64;
        guards = realloc(guards, guard_capacity * sizeof *guards);
    }
    guards[guard_count++] = made;
    mprotect((void *)made.from, made.to - made.from, made.allowed);
}

/* A flag, written with the scope of the system: the program may read it at any time. */
static bool is_flag(const struct Part *part) {
    struct Range range;
    return how_of(part) & SYSTEM_WRITE && find_range(part->address, &range) && range.kind != DEVICE_MEMORY &&
           range.kind != VARIABLE_MEMORY;
}

/* One that is written by a kernel that has a release: the program that reads it sees all that came before it. */
static bool is_release(const struct Part *part) {
    return how_of(part) & RELEASE && is_flag(part);
}

static void guard_operation(const struct Done *each) {
    struct Guard unused;
    if (is_ordered(each, &host_clock))
        return;
    for (size_t at = 0; at < each->count; at++) /* nothing is claimed where the program may read a flag unseen */
        if (is_release(each->parts + at) && !pages_of(each->parts + at, &unused))
            return;
    enum { SEEN = READ | WRITE | STRONG_WRITE };
    for (int only_reads = 1; only_reads >= 0; only_reads--) /* pages that are written come last */
        for (size_t at = 0; at < each->count; at++) {
            const struct Part *part = each->parts + at;
            if (((how_of(part) & WRITES) == 0) == only_reads && (how_of(part) & SEEN || is_flag(part)))
                guard_part(part);
        }
    if (guard_count)
        watch_faults();
}

static void forget(size_t at) {
    free(done[at]->parts);
    free(done[at]);
    memmove(done + at, done + at + 1, (--done_count - at) * sizeof *done);
}

/* The host has waited for what a clock says. `idle`: no operation is queued that was submitted before. */
void order_waited(const struct Clock *clock, bool idle) {
    pthread_mutex_lock(&order_lock);
    join(&host_clock, clock);
    for (size_t at = 0; at < guard_count; at++)
        mprotect((void *)guards[at].from, guards[at].to - guards[at].from, PROT_READ | PROT_WRITE);
    bool guarded = guard_count;
    guard_count = 0;
    for (size_t at = 0; idle && at < done_count;)
        if (is_ordered(done[at], &host_clock))
            forget(at);
        else
            at++;
    for (size_t at = 0; guarded && at < done_count; at++)
        guard_operation(done[at]);
    pthread_mutex_unlock(&order_lock);
}

/* Conflicts. */

static bool conflict(u32 one, u32 other) {
    return ((one | other) & WRITES) && ((one | other) & ~(STRONG | RELEASE));
}

static const char *verb_of(u32 how) {
    return how & WRITES ? "writes" : "reads";
}

static void report(const char *kind, u64 address, const struct Done *one, u32 one_how, const char *what, const char *verb,
                   u32 stream, u32 launch, const char *site) {
    note("host-race %s\t%llx\t%s\t%s\t%u\t%u\t%s\t%s\t%s\t%u\t%u\t%s", kind, (unsigned long long)address, one->what,
         verb_of(one_how), (u32)one->issue.slot, one->launch, one->site, what, verb, stream, launch, site);
}

/* Whether a part of an operation may set a flag: a strong write, or a copy or fill of one word. */
static bool may_set(const struct Done *operation, const struct Part *part) {
    enum { WORD = 8 };
    return how_of(part) & (STRONG_WRITE | SYSTEM_WRITE) ||
           (!operation->launch && how_of(part) & WRITE && bytes_of(part) <= WORD);
}

/* Whether one operation sets a flag that another one reads by a strong load: it may order all that they do. */
static bool have_flag(const struct Done *one, const struct Done *other) {
    enum { READS = STRONG_READ | SYSTEM_READ };
    for (size_t at = 0, against = 0; at < one->count && against < other->count;) {
        const struct Part *a = one->parts + at, *b = other->parts + against;
        u64 a_end = a->address + bytes_of(a), b_end = b->address + bytes_of(b);
        if (a->address < b_end && b->address < a_end &&
            ((may_set(one, a) && how_of(b) & READS) || (how_of(a) & READS && may_set(other, b))))
            return true;
        if (a_end <= b_end)
            at++;
        else
            against++;
    }
    return false;
}

static bool overlap(const char *kind, const struct Done *one, const struct Done *other) {
    if (one->low >= other->high || other->low >= one->high || have_flag(one, other))
        return false;
    for (size_t at = 0, against = 0; at < one->count && against < other->count;) {
        const struct Part *a = one->parts + at, *b = other->parts + against;
        u64 a_end = a->address + bytes_of(a), b_end = b->address + bytes_of(b);
        if (a->address < b_end && b->address < a_end && conflict(how_of(a), how_of(b))) {
            u64 address = a->address > b->address ? a->address : b->address;
            report(kind, address, one, how_of(a), other->what, verb_of(how_of(b)), (u32)other->issue.slot, other->launch,
                   other->site);
            return true;
        }
        if (a_end <= b_end)
            at++;
        else
            against++;
    }
    return false;
}

/* Whether an operation conflicts with what the program does at an address; reported if so. */
static bool meets_host(const struct Done *operation, u64 address, bool writes) {
    for (size_t at = 0; at < operation->count; at++) {
        const struct Part *each = operation->parts + at;
        u32 how = how_of(each) & (READ | WRITE | STRONG_READ | STRONG_WRITE);
        if (address < each->address || address >= each->address + bytes_of(each) || !(writes ? how : how & WRITES))
            continue;
        char site[SITE_BYTES];
        call_site(site, sizeof site);
        report("host", address, operation, how, "the program", writes ? "writes" : "reads", 0, 0, site);
        return true;
    }
    return false;
}

/* What an operation has done is ordered before a read of a flag in these bytes that it has set. */
static void take_flag(u64 from, u64 to) {
    for (size_t at = 0; at < done_count; at++)
        for (size_t each = 0; each < done[at]->count; each++) {
            const struct Part *part = done[at]->parts + each;
            if (from < part->address + bytes_of(part) && to > part->address && is_release(part) &&
                !is_ordered(done[at], &host_clock)) {
                order_waited(&done[at]->issue.clock, false);
                break;
            }
        }
}

static void on_fault(int number, siginfo_t *info, void *context) {
    u64 address = (u64)info->si_addr, page = (u64)sysconf(_SC_PAGESIZE);
    struct Guard *guard = NULL;
    for (size_t at = 0; at < guard_count; at++)
        if (address >= guards[at].from && address < guards[at].to)
            guard = guards + at;
    if (!guard || info->si_code != SEGV_ACCERR) {
        if (handler_before.sa_flags & SA_SIGINFO)
            handler_before.sa_sigaction(number, info, context);
        else if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN)
            handler_before.sa_handler(number);
        else
            sigaction(SIGSEGV, &handler_before, NULL); /* and the access faults again */
        return;
    }
#ifdef __x86_64__
    bool writes = ((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2;
#else
    bool writes = guard->allowed != PROT_NONE;
    (void)context;
#endif
    mprotect((void *)(address / page * page), page, PROT_READ | PROT_WRITE);
    pthread_mutex_lock(&order_lock);
    if (!writes)
        take_flag(address, address + 1);
    struct Clock clock = host_clock;
    if (performing)
        join(&clock, &performing->clock);
    for (size_t at = 0, found = 0; at < done_count && !found; at++)
        if (!is_ordered(done[at], &clock))
            found = meets_host(done[at], address, writes);
    take_flag(address / page * page, address / page * page + page); /* those of the page are not seen any more */
    pthread_mutex_unlock(&order_lock);
}

/* Operations that have run. */

const struct Issue *order_begins(const struct Issue *issue) {
    const struct Issue *before = performing;
    performing = issue;
    return before;
}

void order_ends(const struct Issue *before) {
    performing = before;
}

/* The number of the stream whose operation runs. */
u32 order_stream(void) {
    return performing && performing->slot >= 0 ? (u32)performing->slot : 0;
}

/* A stream has found a value in memory for which it waited: what has run may have written it. */
void order_handed_on(struct Clock *to) {
    order_join(to, &all_done);
}

/* A callback begins: it may start or wake any thread of the program, so that what its stream has done before it is
 * ordered before all that the program does from now on. */
void order_calls_back(void) {
    if (performing)
        order_waited(&performing->clock, false);
}

/* An operation has run: `parts`, sorted by address, are what it has accessed. Takes them. */
static void has_run(const char *what, u32 launch, const char *site, struct Part *parts, size_t count) {
    if (!performing || performing->slot < 0 || !count) {
        free(parts);
        return;
    }
    struct Done *made = calloc(1, sizeof *made);
    *made = (struct Done){.issue = *performing, .path = *graph_path(), .parts = parts, .count = count, .launch = launch, .what = what};
    snprintf(made->site, sizeof made->site, "%s", site);
    made->low = parts[0].address;
    for (size_t at = 0; at < count; at++)
        if (parts[at].address + bytes_of(parts + at) > made->high)
            made->high = parts[at].address + bytes_of(parts + at);
    pthread_mutex_lock(&order_lock);
    join(&all_done, &made->issue.clock);
    for (size_t at = 0; at < done_count; at++) {
        if (done[at]->issue.slot == made->issue.slot) { /* one stream */
            if (are_unordered_nodes(&done[at]->path, &made->path))
                overlap("nodes", done[at], made);
        } else if (!has_waited && !is_ordered(done[at], &made->issue.clock) &&
                   !is_ordered(made, &done[at]->issue.clock)) {
            overlap("streams", done[at], made);
        }
    }
    if (done_count == MOST_DONE)
        forget(0);
    done[done_count++] = made;
    guard_operation(made);
    pthread_mutex_unlock(&order_lock);
}

static struct Part part(const void *address, size_t bytes, u32 how) {
    return (struct Part){(u64)address, bytes | (u64)how << 56};
}

static int by_address(const void *one, const void *other) {
    u64 a = ((const struct Part *)one)->address, b = ((const struct Part *)other)->address;
    return (a > b) - (a < b);
}

void order_copied(const struct Copy *copy, const char *site) {
    size_t rows = copy->height * copy->depth;
    if (!order_matters() || rows > MOST_PARTS)
        return;
    struct Part *parts = malloc(2 * rows * sizeof *parts);
    size_t count = 0;
    for (size_t z = 0; z < copy->depth; z++)
        for (size_t y = 0; y < copy->height; y++) {
            const char *from = copy->from + z * copy->from_slice + y * copy->from_pitch;
            const char *to = copy->to + z * copy->to_slice + y * copy->to_pitch;
            if (in_heap(from))
                parts[count++] = part(from, copy->width, READ);
            if (in_heap(to))
                parts[count++] = part(to, copy->width, WRITE);
        }
    qsort(parts, count, sizeof *parts, by_address);
    has_run("copy", 0, site, parts, count);
}

void order_filled(const struct Fill *fill, const char *site) {
    if (!order_matters() || fill->height > MOST_PARTS)
        return;
    struct Part *parts = malloc(fill->height * sizeof *parts);
    for (size_t y = 0; y < fill->height; y++)
        parts[y] = part(fill->to + y * fill->pitch, fill->width * fill->element, WRITE);
    has_run("fill", 0, site, parts, fill->height);
}

/* `waited`: it has waited for the program or another stream, which no clock shows. */
void order_launched(const char *name, u32 launch, const char *site, const void *parts, size_t count, bool waited) {
    struct Part *copied = malloc(count * sizeof *copied + 1);
    memcpy(copied, parts, count * sizeof *copied);
    has_waited = waited;
    has_run(name, launch, site, copied, count);
    has_waited = false;
}

/* Memory is given back: a stream's own free conflicts with what else may use it; then nothing is known of it. */
void order_freed(u64 address, u64 bytes, const char *site) {
    if (performing && order_matters() && bytes) {
        struct Part *parts = malloc(sizeof *parts);
        *parts = part((void *)address, bytes, WRITE);
        has_run("free", 0, site, parts, 1);
    }
    pthread_mutex_lock(&order_lock);
    for (size_t at = 0; at < done_count; at++)
        for (size_t each = 0; each < done[at]->count; each++) {
            struct Part *known = done[at]->parts + each;
            if (known->address >= address && known->address < address + bytes)
                known->bytes_and_how = 0;
        }
    pthread_mutex_unlock(&order_lock);
}
