/* Memory of the driver API: allocations, copies, fills, attributes of pointers. */
#include "arrays.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* Ranges that are allocated, by address: those of this process, and what it has asked the emulator about. */
static struct Range *ranges;
static size_t range_count, range_capacity;
static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;

/* The number of ranges that begin at an address or before it. */
static size_t ranges_up_to(u64 address) {
    size_t low = 0, high = range_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void know_range(u64 address, u64 bytes, enum Kind kind) {
    pthread_mutex_lock(&ranges_lock);
    size_t at = ranges_up_to(address);
    if (at && ranges[at - 1].address == address) {
        ranges[at - 1] = (struct Range){address, bytes, kind, 0};
    } else {
        if (range_count == range_capacity) {
            range_capacity = range_capacity ? 2 * range_capacity : 64;
            ranges = realloc(ranges, range_capacity * sizeof *ranges);
        }
        memmove(ranges + at + 1, ranges + at, (range_count - at) * sizeof *ranges);
        ranges[at] = (struct Range){address, bytes, kind, 0};
        range_count++;
    }
    pthread_mutex_unlock(&ranges_lock);
}

static void forget_range(u64 address) {
    pthread_mutex_lock(&ranges_lock);
    size_t at = ranges_up_to(address);
    if (at && ranges[at - 1].address == address) {
        memmove(ranges + at - 1, ranges + at, (range_count - at) * sizeof *ranges);
        range_count--;
    }
    pthread_mutex_unlock(&ranges_lock);
}

bool find_range(u64 address, struct Range *found) {
    if (!in_heap((void *)address))
        return false;
    pthread_mutex_lock(&ranges_lock);
    size_t at = ranges_up_to(address);
    bool known = at && address < ranges[at - 1].address + (ranges[at - 1].bytes ? ranges[at - 1].bytes : 1);
    if (known)
        *found = ranges[at - 1];
    pthread_mutex_unlock(&ranges_lock);
    if (known)
        return true;
    void *reply;
    size_t bytes;
    Result result = request(RANGE, &address, sizeof address, NULL, 0, &reply, &bytes);
    if (!result && bytes == sizeof *found) {
        memcpy(found, reply, sizeof *found);
        know_range(found->address, found->bytes, (enum Kind)found->kind);
    }
    free(reply);
    return !result;
}

Result allocate(u64 bytes, enum Kind kind, u64 *address) {
    if (sticky)
        return sticky;
    struct {
        u64 bytes;
        u32 kind, padding;
    } asked = {bytes, kind, 0};
    void *reply;
    Result result = request(ALLOCATE, &asked, sizeof asked, NULL, 0, &reply, NULL);
    if (!result) {
        memcpy(address, reply, sizeof *address);
        know_range(*address, bytes, kind);
        order_allocated(kind);
    }
    free(reply);
    return result;
}

Result release(u64 address) {
    if (is_graph_memory(address) || forget_import(address))
        return SUCCESS;
    Result result = request(FREE, &address, sizeof address, NULL, 0, NULL, NULL);
    if (!result)
        forget_range(address);
    return result;
}

static Result allocate_for(void **pointer, size_t bytes, enum Kind kind) {
    if (!pointer || !bytes)
        return INVALID_VALUE;
    u64 address;
    Result result = allocate(bytes, kind, &address);
    if (!result)
        *pointer = (void *)address;
    return result;
}

API Result cuMemGetInfo_v2(size_t *available, size_t *total) {
    Result result = connect_emulator();
    if (result)
        return result;
    pthread_mutex_lock(&ranges_lock);
    u64 used = 0;
    for (size_t at = 0; at < range_count; at++)
        used += ranges[at].bytes;
    pthread_mutex_unlock(&ranges_lock);
    *available = used < machine.limit ? machine.limit - used : 0;
    *total = machine.limit;
    return SUCCESS;
}

API Result cuMemAlloc_v2(void **pointer, size_t bytes) {
    return allocate_for(pointer, bytes, DEVICE_MEMORY);
}

API Result cuMemAllocPitch_v2(void **pointer, size_t *pitch, size_t width, size_t height, u32 element) {
    (void)element;
    *pitch = (width + 511) / 512 * 512;
    return allocate_for(pointer, *pitch * height, DEVICE_MEMORY);
}

API Result cuMemAllocManaged(void **pointer, size_t bytes, u32 flags) {
    (void)flags;
    return allocate_for(pointer, bytes, MANAGED_MEMORY);
}

API Result cuMemAllocHost_v2(void **pointer, size_t bytes) {
    return allocate_for(pointer, bytes, PINNED_MEMORY);
}

API Result cuMemHostAlloc(void **pointer, size_t bytes, u32 flags) {
    (void)flags;
    return allocate_for(pointer, bytes, PINNED_MEMORY);
}

API Result cuMemAllocAsync(void **pointer, size_t bytes, struct Stream *stream) {
    if (capture_of(stream)) {
        struct Operation operation = {.kind = OP_ALLOCATE};
        Result result = allocate_in_graph(bytes, &operation.address);
        *pointer = (void *)operation.address;
        return result ? result : submit(stream, &operation);
    }
    return allocate_for(pointer, bytes, DEVICE_MEMORY);
}

API Result cuMemAllocFromPoolAsync(void **pointer, size_t bytes, void *pool, struct Stream *stream) {
    (void)pool;
    return cuMemAllocAsync(pointer, bytes, stream);
}

API Result cuMemFree_v2(u64 address) {
    if (!address)
        return SUCCESS;
    Result result = synchronize();
    return result ? result : release(address);
}

API Result cuMemFreeHost(void *pointer) {
    return cuMemFree_v2((u64)pointer);
}

API Result cuMemFreeAsync(u64 address, struct Stream *stream) {
    struct Operation operation = {.kind = OP_FREE, .address = address};
    return address ? submit(stream, &operation) : SUCCESS;
}

API Result cuMemGetAddressRange_v2(u64 *base, size_t *bytes, u64 address) {
    struct Range found;
    if (!find_range(address, &found))
        return NOT_FOUND;
    if (base)
        *base = found.address;
    if (bytes)
        *bytes = found.bytes;
    return SUCCESS;
}

/* Memory of the program becomes device memory: its pages are copied into the heap and mapped to where they were. */
struct Registered {
    u64 host, device, bytes;
    struct Registered *next;
};
static struct Registered *registered;

/* Pages of the program that become pages of the heap. */
struct Move {
    ucontext_t caller, mover;
    u64 inside, first, size;
    bool moved;
};
static __thread struct Move *moving;

static void move_pages(void) {
    memcpy((void *)moving->inside, (void *)moving->first, moving->size);
    /* The heap is mapped with MAP_SHARED: an old size of 0 makes mremap duplicate it (mremap(2)). */
    void *twin = mremap((void *)moving->inside, 0, moving->size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)moving->first);
    moving->moved = twin != MAP_FAILED;
}

/* The pages may hold this thread's stack, so that it runs on another one while they move. */
static bool share_pages(u64 inside, u64 first, u64 size) {
    enum { STACK = 1 << 16 };
    struct Move *move = calloc(1, sizeof *move);
    char *stack = malloc(STACK);
    bool moved = false;
    if (move && stack && !getcontext(&move->mover)) {
        *move = (struct Move){.mover = move->mover, .inside = inside, .first = first, .size = size};
        move->mover.uc_stack.ss_sp = stack;
        move->mover.uc_stack.ss_size = STACK;
        move->mover.uc_link = &move->caller;
        makecontext(&move->mover, move_pages, 0);
        moving = move;
        moved = !swapcontext(&move->caller, &move->mover) && move->moved;
    }
    free(stack);
    free(move);
    return moved;
}

API Result cuMemHostRegister_v2(void *pointer, size_t bytes, u32 flags) {
    (void)flags;
    Result result = connect_emulator();
    if (result)
        return result;
    if (in_heap(pointer))
        return SUCCESS;
    u64 page = (u64)sysconf(_SC_PAGESIZE), first = (u64)pointer / page * page;
    u64 size = ((u64)pointer + bytes + page - 1) / page * page - first, address;
    result = allocate(size + page, REGISTERED_MEMORY, &address);
    if (result)
        return result;
    u64 inside = (address + page - 1) / page * page;
    if (!share_pages(inside, first, size)) {
        release(address);
        return INVALID_VALUE;
    }
    struct Registered *made = malloc(sizeof *made);
    *made = (struct Registered){(u64)pointer, inside + ((u64)pointer - first), bytes, registered};
    registered = made;
    return SUCCESS;
}

static bool is_registered(const void *pointer) {
    for (struct Registered *each = registered; each; each = each->next)
        if ((u64)pointer >= each->host && (u64)pointer < each->host + each->bytes)
            return true;
    return false;
}

API Result cuMemHostUnregister(void *pointer) {
    for (struct Registered **at = &registered; *at; at = &(*at)->next)
        if ((*at)->host == (u64)pointer) {
            *at = (*at)->next; /* the pages stay shared, which nothing shows */
            return SUCCESS;
        }
    return in_heap(pointer) ? SUCCESS : INVALID_VALUE;
}

API Result cuMemHostGetDevicePointer_v2(u64 *address, void *pointer, u32 flags) {
    (void)flags;
    for (struct Registered *each = registered; each; each = each->next)
        if ((u64)pointer >= each->host && (u64)pointer < each->host + each->bytes) {
            *address = each->device + ((u64)pointer - each->host);
            return SUCCESS;
        }
    if (!in_heap(pointer))
        return INVALID_VALUE;
    *address = (u64)pointer;
    return SUCCESS;
}

API Result cuMemHostGetFlags(u32 *flags, void *pointer) {
    (void)pointer;
    *flags = 3;
    return SUCCESS;
}

/* Copies. */

struct Copy3D;
Result copy_operation(const struct Copy3D *asked, struct Operation *made);

/* Whether a side of a copy lies in one allocation, or not in device memory at all. */
static bool is_whole(const char *side, size_t pitch, size_t slice, const struct Copy *copy) {
    if (!in_heap(side))
        return true;
    u64 last = (copy->depth - 1) * slice + (copy->height - 1) * pitch + copy->width;
    struct Range found;
    if (find_range((u64)side, &found) && (u64)side + last <= found.address + found.bytes)
        return true;
    note("invalid-copy %#llx %llu", (unsigned long long)(u64)side, (unsigned long long)last);
    return false;
}

Result copy_box(struct Stream *stream, const struct Copy *copy) {
    if (!copy->width || !copy->height || !copy->depth)
        return SUCCESS;
    if (!is_whole(copy->to, copy->to_pitch, copy->to_slice, copy) ||
        !is_whole(copy->from, copy->from_pitch, copy->from_slice, copy))
        return INVALID_VALUE;
    struct Operation operation = {.kind = OP_COPY, .copy = *copy};
    /* Copies from and to memory that is not pinned have read or written it when they return. Small ones do not wait for
     * the stream (CUDA Runtime API, "API synchronization behavior"), which may wait for the program. */
    enum { SMALL_BYTES = 64 * 1024 };
    bool pageable = (!in_heap(copy->to) && !is_registered(copy->to)) || (!in_heap(copy->from) && !is_registered(copy->from));
    bool read_back = pageable && !in_heap(copy->to), pending = !machine.delay && any_pending();
    if (pageable && !read_back && pending && !capture_of(stream) && copy->height * copy->depth == 1 &&
        copy->width <= SMALL_BYTES) {
        operation.staged = malloc(copy->width);
        memcpy(operation.staged, copy->from, copy->width);
        operation.copy.from = operation.staged;
        pageable = false;
    }
    Result result = submit(stream, &operation);
    bool waits = machine.delay || pending ? pageable : read_back;
    return result || !waits || capture_of(stream) ? result : synchronize_stream(stream);
}

static Result copy_bytes(u64 to, u64 from, size_t bytes, struct Stream *stream, bool wait) {
    Result result = connect_emulator();
    struct Copy copy = {(char *)to, (const char *)from, 0, 0, 0, 0, bytes, 1, 1};
    if (!result)
        result = copy_box(stream, &copy);
    return result || !wait ? result : synchronize_stream(NULL);
}

#define COPY_FUNCTIONS(suffix, to_type, from_type)                                                                    \
    API Result cuMemcpy##suffix##_v2(to_type to, from_type from, size_t bytes) {                                      \
        return copy_bytes((u64)to, (u64)from, bytes, NULL, true);                                                     \
    }                                                                                                                 \
    API Result cuMemcpy##suffix##Async_v2(to_type to, from_type from, size_t bytes, struct Stream *stream) {          \
        return copy_bytes((u64)to, (u64)from, bytes, stream, false);                                                  \
    }
COPY_FUNCTIONS(HtoD, u64, const void *)
COPY_FUNCTIONS(DtoH, void *, u64)
COPY_FUNCTIONS(DtoD, u64, u64)

API Result cuMemcpy(u64 to, u64 from, size_t bytes) {
    return copy_bytes(to, from, bytes, NULL, true);
}

API Result cuMemcpyAsync(u64 to, u64 from, size_t bytes, struct Stream *stream) {
    return copy_bytes(to, from, bytes, stream, false);
}

API Result cuMemcpyPeer(u64 to, void *to_context, u64 from, void *from_context, size_t bytes) {
    (void)to_context, (void)from_context;
    return copy_bytes(to, from, bytes, NULL, true);
}

API Result cuMemcpyPeerAsync(u64 to, void *to_context, u64 from, void *from_context, size_t bytes,
                             struct Stream *stream) {
    (void)to_context, (void)from_context;
    return copy_bytes(to, from, bytes, stream, false);
}

enum { HOST_SIDE = 1, ARRAY_SIDE = 3 };

/* CUDA_MEMCPY2D and CUDA_MEMCPY3D have sides of one shape, up to the members of depth. */
struct Copy2D {
    size_t from_x, from_y;
    int from_type;
    const char *from_host;
    u64 from_device;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    int to_type;
    char *to_host;
    u64 to_device;
    void *to_array;
    size_t to_pitch;
    size_t width, height;
};

struct Copy3D {
    size_t from_x, from_y, from_z, from_level;
    int from_type;
    const char *from_host;
    u64 from_device;
    void *from_array, *from_reserved;
    size_t from_pitch, from_height;
    size_t to_x, to_y, to_z, to_level;
    int to_type;
    char *to_host;
    u64 to_device;
    void *to_array, *to_reserved;
    size_t to_pitch, to_height;
    size_t width, height, depth;
};

/* The operation that CUDA_MEMCPY3D describes. */
Result copy_operation(const struct Copy3D *asked, struct Operation *made) {
    const struct Array *from_array = asked->from_type == ARRAY_SIDE ? asked->from_array : NULL;
    const struct Array *to_array = asked->to_type == ARRAY_SIDE ? asked->to_array : NULL;
    if ((asked->from_type == ARRAY_SIDE && !is_array(from_array)) || (asked->to_type == ARRAY_SIDE && !is_array(to_array)))
        return INVALID_HANDLE;
    const char *from = asked->from_type == HOST_SIDE ? asked->from_host : (const char *)asked->from_device;
    char *to = asked->to_type == HOST_SIDE ? asked->to_host : (char *)asked->to_device;
    size_t from_pitch = asked->from_pitch ? asked->from_pitch : asked->width;
    size_t to_pitch = asked->to_pitch ? asked->to_pitch : asked->width;
    size_t from_slice = from_pitch * (asked->from_height ? asked->from_height : asked->height);
    size_t to_slice = to_pitch * (asked->to_height ? asked->to_height : asked->height);
    struct Copy copy = {to + asked->to_z * to_slice + asked->to_y * to_pitch + asked->to_x,
                        from + asked->from_z * from_slice + asked->from_y * from_pitch + asked->from_x,
                        to_pitch, from_pitch, to_slice, from_slice, asked->width, asked->height, asked->depth};
    if (from_array) {
        copy.from = inside_array(from_array, asked->from_x, asked->from_y, asked->from_z);
        copy.from_pitch = from_array->pitch;
        copy.from_slice = from_array->slice;
    }
    if (to_array) {
        copy.to = inside_array(to_array, asked->to_x, asked->to_y, asked->to_z);
        copy.to_pitch = to_array->pitch;
        copy.to_slice = to_array->slice;
    }
    *made = (struct Operation){.kind = OP_COPY, .copy = copy};
    return SUCCESS;
}

static Result copy_3d(const struct Copy3D *asked, struct Stream *stream) {
    struct Operation operation;
    Result result = connect_emulator();
    if (!result)
        result = copy_operation(asked, &operation);
    return result ? result : copy_box(stream, &operation.copy);
}

API Result cuMemcpy3DAsync_v2(const struct Copy3D *asked, struct Stream *stream) {
    return copy_3d(asked, stream);
}

API Result cuMemcpy3D_v2(const struct Copy3D *asked) {
    Result result = copy_3d(asked, NULL);
    return result ? result : synchronize_stream(NULL);
}

API Result cuMemcpy2DAsync_v2(const struct Copy2D *asked, struct Stream *stream) {
    struct Copy3D full = {
        .from_x = asked->from_x, .from_y = asked->from_y, .from_type = asked->from_type,
        .from_host = asked->from_host, .from_device = asked->from_device, .from_array = asked->from_array,
        .from_pitch = asked->from_pitch,
        .to_x = asked->to_x, .to_y = asked->to_y, .to_type = asked->to_type, .to_host = asked->to_host,
        .to_device = asked->to_device, .to_array = asked->to_array, .to_pitch = asked->to_pitch,
        .width = asked->width, .height = asked->height, .depth = 1,
    };
    return copy_3d(&full, stream);
}

API Result cuMemcpy2D_v2(const struct Copy2D *asked) {
    Result result = cuMemcpy2DAsync_v2(asked, NULL);
    return result ? result : synchronize_stream(NULL);
}

API Result cuMemcpy2DUnaligned_v2(const struct Copy2D *asked) {
    return cuMemcpy2D_v2(asked);
}

/* Fills. */

static Result fill(u64 to, size_t pitch, u32 value, u32 element, size_t width, size_t height, struct Stream *stream) {
    Result result = connect_emulator();
    if (result || !width || !height)
        return result;
    struct Copy extent = {.width = width * element, .height = height, .depth = 1};
    if (!in_heap((void *)to) || !is_whole((char *)to, pitch, 0, &extent))
        return INVALID_VALUE;
    struct Operation operation = {.kind = OP_FILL, .fill = {(char *)to, pitch, width, height, value, element}};
    return submit(stream, &operation);
}

#define FILL_FUNCTIONS(bits, type)                                                                                    \
    API Result cuMemsetD##bits##_v2(u64 to, type value, size_t count) {                                               \
        return fill(to, 0, value, bits / 8, count, 1, NULL);                                                          \
    }                                                                                                                 \
    API Result cuMemsetD##bits##Async(u64 to, type value, size_t count, struct Stream *stream) {                      \
        return fill(to, 0, value, bits / 8, count, 1, stream);                                                        \
    }                                                                                                                 \
    API Result cuMemsetD2D##bits##_v2(u64 to, size_t pitch, type value, size_t width, size_t height) {                \
        return fill(to, pitch, value, bits / 8, width, height, NULL);                                                 \
    }                                                                                                                 \
    API Result cuMemsetD2D##bits##Async(u64 to, size_t pitch, type value, size_t width, size_t height,                \
                                        struct Stream *stream) {                                                      \
        return fill(to, pitch, value, bits / 8, width, height, stream);                                               \
    }
FILL_FUNCTIONS(8, u8)
FILL_FUNCTIONS(16, u16)
FILL_FUNCTIONS(32, u32)

/* Advice and prefetching change nothing here; versions of the calls differ in what they say of the place. */

API Result cuMemPrefetchAsync(void) {
    return SUCCESS;
}

API Result cuMemPrefetchAsync_v2(void) {
    return SUCCESS;
}

API Result cuMemAdvise(void) {
    return SUCCESS;
}

API Result cuMemAdvise_v2(void) {
    return SUCCESS;
}

/* Attributes of pointers. */

Result cuDevicePrimaryCtxRetain(void **context, int device);

enum { HOST_TYPE = 1, DEVICE_TYPE = 2 };

static void clear_attribute(void *value, int attribute) {
    switch (attribute) {
    case 1: case 3: case 4: case 7: case 11: case 12: case 14: case 17: case 18: case 19: case 20:
        memset(value, 0, 8);
        break;
    case 9:
        *(int *)value = -2;
        break;
    case 6: case 8: case 10: case 13: case 15: case 21:
        *(char *)value = 0;
        break;
    default:
        memset(value, 0, 4);
    }
}

API Result cuPointerGetAttribute(void *value, int attribute, u64 address) {
    Result result = connect_emulator();
    if (result)
        return result;
    struct Range range;
    if (!find_range(address, &range)) {
        clear_attribute(value, attribute);
        return INVALID_VALUE;
    }
    bool device = range.kind == DEVICE_MEMORY || range.kind == VARIABLE_MEMORY;
    switch (attribute) {
    case 1:
        cuDevicePrimaryCtxRetain(value, 0);
        break;
    case 2:
        *(u32 *)value = device || range.kind == MANAGED_MEMORY ? DEVICE_TYPE : HOST_TYPE;
        break;
    case 3:
        *(u64 *)value = address;
        break;
    case 4:
        *(u64 *)value = address;
        return device ? INVALID_VALUE : SUCCESS;
    case 7: case 20:
        *(u64 *)value = range.address;
        break;
    case 8:
        *(bool *)value = range.kind == MANAGED_MEMORY;
        break;
    case 9:
        *(int *)value = 0;
        break;
    case 11: case 19:
        *(u64 *)value = range.address;
        break;
    case 12: case 18:
        *(u64 *)value = range.bytes;
        break;
    case 13:
        *(bool *)value = true;
        break;
    case 16:
        *(u32 *)value = 3;
        break;
    default:
        clear_attribute(value, attribute);
    }
    return SUCCESS;
}

API Result cuPointerGetAttributes(u32 count, const int *attributes, void **values, u64 address) {
    for (u32 at = 0; at < count; at++)
        cuPointerGetAttribute(values[at], attributes[at], address);
    return SUCCESS;
}

API Result cuPointerSetAttribute(const void *value, int attribute, u64 address) {
    (void)value, (void)attribute, (void)address;
    return SUCCESS;
}
