/* Virtual memory management (cuMemCreate, cuMemMap): a reserved range is an allocation, in which what is created is
 * mapped where it is mapped first. One piece of memory has one address: it cannot be mapped a second time. */
#include "standin.h"

#include <stdlib.h>
#include <string.h>

enum { GRANULARITY = 2 << 20, PROPERTY_BYTES = 32 };

struct Created {
    size_t bytes;
    u64 address; /* where it is mapped, 0 before */
    int references;
    char properties[PROPERTY_BYTES]; /* CUmemAllocationProp */
    struct Created *next;
};
static struct Created *all_created;
static pthread_mutex_t created_lock = PTHREAD_MUTEX_INITIALIZER;

API Result cuMemGetAllocationGranularity(size_t *granularity, const void *properties, int which) {
    (void)properties, (void)which;
    *granularity = GRANULARITY;
    return SUCCESS;
}

API Result cuMemCreate(struct Created **handle, size_t bytes, const void *properties, u64 flags) {
    (void)flags;
    if (!bytes || bytes % GRANULARITY)
        return INVALID_VALUE;
    if (bytes > machine.limit)
        return OUT_OF_MEMORY;
    *handle = calloc(1, sizeof **handle);
    (*handle)->bytes = bytes;
    (*handle)->references = 1;
    memcpy((*handle)->properties, properties, PROPERTY_BYTES);
    pthread_mutex_lock(&created_lock);
    (*handle)->next = all_created;
    all_created = *handle;
    pthread_mutex_unlock(&created_lock);
    return SUCCESS;
}

static bool is_created(const struct Created *handle) {
    pthread_mutex_lock(&created_lock);
    const struct Created *each = all_created;
    while (each && each != handle)
        each = each->next;
    pthread_mutex_unlock(&created_lock);
    return each != NULL;
}

API Result cuMemRelease(struct Created *handle) {
    if (!is_created(handle) || !handle->references)
        return INVALID_VALUE;
    handle->references--; /* what is mapped stays until it is unmapped */
    return SUCCESS;
}

API Result cuMemAddressReserve(u64 *address, size_t bytes, size_t alignment, u64 wanted, u64 flags) {
    (void)alignment, (void)wanted, (void)flags; /* an address that is asked for is a hint */
    if (!bytes || bytes % GRANULARITY)
        return INVALID_VALUE;
    Result result = connect_emulator();
    return result ? result : allocate(bytes, DEVICE_MEMORY, address);
}

API Result cuMemAddressFree(u64 address, size_t bytes) {
    struct Range found;
    if (!find_range(address, &found) || found.address != address || found.bytes != bytes)
        return INVALID_VALUE;
    Result result = synchronize();
    return result ? result : release(address);
}

API Result cuMemMap(u64 address, size_t bytes, size_t offset, struct Created *handle, u64 flags) {
    struct Range found;
    if (flags || offset || !is_created(handle) || bytes != handle->bytes || !find_range(address, &found) ||
        address + bytes > found.address + found.bytes)
        return INVALID_VALUE;
    if (handle->address)
        return unsupported("cuMemMap of memory that is mapped already");
    handle->address = address;
    return SUCCESS;
}

API Result cuMemUnmap(u64 address, size_t bytes) {
    Result result = synchronize();
    pthread_mutex_lock(&created_lock);
    for (struct Created *each = all_created; each; each = each->next)
        if (each->address >= address && each->address < address + bytes)
            each->address = 0;
    pthread_mutex_unlock(&created_lock);
    return result;
}

API Result cuMemSetAccess(u64 address, size_t bytes, const void *access, size_t count) {
    (void)access, (void)count;
    struct Range found;
    return find_range(address, &found) && address + bytes <= found.address + found.bytes ? SUCCESS : INVALID_VALUE;
}

API Result cuMemGetAccess(u64 *flags, const void *place, u64 address) {
    enum { READ_AND_WRITE = 3 };
    struct Range found;
    (void)place;
    *flags = READ_AND_WRITE;
    return find_range(address, &found) ? SUCCESS : INVALID_VALUE;
}

API Result cuMemGetAllocationPropertiesFromHandle(void *properties, struct Created *handle) {
    if (!is_created(handle))
        return INVALID_VALUE;
    memcpy(properties, handle->properties, PROPERTY_BYTES);
    return SUCCESS;
}

API Result cuMemRetainAllocationHandle(struct Created **handle, u64 address) {
    pthread_mutex_lock(&created_lock);
    struct Created *each = all_created;
    while (each && !(each->address && address >= each->address && address < each->address + each->bytes))
        each = each->next;
    if (each)
        each->references++;
    pthread_mutex_unlock(&created_lock);
    *handle = each;
    return each ? SUCCESS : INVALID_VALUE;
}
