/* Pools of memory: one, which keeps nothing, so that an access to what was freed, or beyond what was allocated, is seen. */
#include "standin.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static u64 pool_threshold;
static char the_pool[64];

API Result cuDeviceGetDefaultMemPool(void **pool, int device) {
    (void)device;
    *pool = the_pool;
    return SUCCESS;
}

API Result cuDeviceGetMemPool(void **pool, int device) {
    return cuDeviceGetDefaultMemPool(pool, device);
}

API Result cuDeviceSetMemPool(int device, void *pool) {
    (void)device, (void)pool;
    return SUCCESS;
}

API Result cuMemPoolCreate(void **pool, const void *properties) {
    (void)properties;
    *pool = the_pool;
    return SUCCESS;
}

API Result cuMemPoolDestroy(void *pool) {
    (void)pool;
    return SUCCESS;
}

API Result cuMemPoolTrimTo(void *pool, size_t keep) {
    (void)pool, (void)keep;
    return SUCCESS;
}

API Result cuMemPoolSetAccess(void *pool, const void *access, size_t count) {
    (void)pool, (void)access, (void)count;
    return SUCCESS;
}

/* Attributes 1 to 3 are ints, those from 4 on 64-bit numbers (CUmemPool_attribute). */
API Result cuMemPoolSetAttribute(void *pool, int attribute, const void *value) {
    (void)pool;
    if (attribute == 4)
        memcpy(&pool_threshold, value, sizeof pool_threshold);
    return SUCCESS;
}

API Result cuMemPoolGetAttribute(void *pool, int attribute, void *value) {
    (void)pool;
    if (attribute < 4)
        *(int *)value = 1;
    else
        *(u64 *)value = attribute == 4 ? pool_threshold : 0;
    return SUCCESS;
}

API Result cuMemGetDefaultMemPool(void **pool, const void *place, int type) {
    (void)place, (void)type;
    *pool = the_pool;
    return SUCCESS;
}

API Result cuMemGetMemPool(void **pool, const void *place, int type) {
    return cuMemGetDefaultMemPool(pool, place, type);
}

API Result cuMemPoolGetAccess(u32 *flags, void *pool, const void *place) {
    enum { READ_AND_WRITE = 3 };
    (void)pool, (void)place;
    *flags = READ_AND_WRITE;
    return SUCCESS;
}

/* Other processes have the same pool; the file that stands for it is empty. */

enum { FILE_DESCRIPTOR = 1 };

API Result cuMemPoolExportToShareableHandle(void *handle, void *pool, int type, u64 flags) {
    (void)pool, (void)flags;
    int descriptor = type == FILE_DESCRIPTOR ? memfd_create("ptxgen-pool", MFD_CLOEXEC) : -1;
    if (descriptor < 0)
        return INVALID_VALUE;
    memcpy(handle, &descriptor, sizeof descriptor);
    return SUCCESS;
}

API Result cuMemPoolImportFromShareableHandle(void **pool, void *handle, int type, u64 flags) {
    (void)handle, (void)flags;
    *pool = the_pool;
    return type == FILE_DESCRIPTOR ? SUCCESS : INVALID_VALUE;
}

struct Handle {
    char bytes[64];
};
Result cuIpcGetMemHandle(struct Handle *handle, u64 address);
Result cuIpcOpenMemHandle_v2(u64 *address, struct Handle handle, u32 flags);

API Result cuMemPoolExportPointer(struct Handle *handle, u64 address) {
    return cuIpcGetMemHandle(handle, address);
}

API Result cuMemPoolImportPointer(u64 *address, void *pool, const struct Handle *handle) {
    (void)pool;
    return cuIpcOpenMemHandle_v2(address, *handle, 0);
}
