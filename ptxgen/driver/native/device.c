/* Devices, contexts, limits and occupancy of the one emulated GPU. */
#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRIVER_VERSION = 13050, KIB = 1024 };

/* The handle of the only context, and the current one of each thread. */
static char context_data[256];
#define CONTEXT ((void *)context_data)
enum { DEEPEST = 64 };
static __thread void *stack[DEEPEST];
static __thread int depth;

static void *current(void) {
    return depth ? stack[depth - 1] : NULL;
}

API Result cuInit(u32 flags) {
    return flags ? INVALID_VALUE : connect_emulator();
}

API Result cuDriverGetVersion(int *version) {
    *version = DRIVER_VERSION;
    return SUCCESS;
}

API Result cuDeviceGetCount(int *count) {
    *count = 1;
    return SUCCESS;
}

API Result cuDeviceGet(int *device, int ordinal) {
    if (ordinal)
        return INVALID_DEVICE;
    *device = 0;
    return SUCCESS;
}

API Result cuDeviceGetName(char *name, int length, int device) {
    (void)device;
    u32 capability = machine.capability;
    snprintf(name, (size_t)length, "NVIDIA sm_%u%s (emulated by ptxgen)", capability, capability >= 90 ? "a" : "");
    return SUCCESS;
}

API Result cuDeviceGetUuid(u8 *uuid, int device) {
    (void)device;
    memcpy(uuid, "ptxgen emulator", 16);
    return SUCCESS;
}

API Result cuDeviceGetUuid_v2(u8 *uuid, int device) {
    return cuDeviceGetUuid(uuid, device);
}

API Result cuDeviceTotalMem_v2(size_t *bytes, int device) {
    (void)device;
    *bytes = machine.limit;
    return SUCCESS;
}

API Result cuDeviceGetPCIBusId(char *name, int length, int device) {
    (void)device;
    snprintf(name, (size_t)length, "0000:01:00.0");
    return SUCCESS;
}

API Result cuDeviceGetByPCIBusId(int *device, const char *name) {
    (void)name;
    *device = 0;
    return SUCCESS;
}

API Result cuDeviceCanAccessPeer(int *can, int device, int peer) {
    (void)device, (void)peer;
    *can = 0;
    return SUCCESS;
}

API Result cuDeviceGetP2PAttribute(int *value, int attribute, int from, int to) {
    (void)attribute, (void)from, (void)to;
    *value = 0;
    return SUCCESS;
}

/* The only device has no peers. */

enum { PEER_ACCESS_NOT_ENABLED = 705 };

API Result cuCtxEnablePeerAccess(void *context, u32 flags) {
    (void)context, (void)flags;
    return INVALID_CONTEXT;
}

API Result cuCtxDisablePeerAccess(void *context) {
    (void)context;
    return PEER_ACCESS_NOT_ENABLED;
}

API Result cuDeviceComputeCapability(int *major, int *minor, int device) {
    (void)device;
    *major = (int)machine.capability / 10;
    *minor = (int)machine.capability % 10;
    return SUCCESS;
}

API Result cuDeviceGetExecAffinitySupport(int *supported, int type, int device) {
    (void)type, (void)device;
    *supported = 0;
    return SUCCESS;
}

/* Values of CU_DEVICE_ATTRIBUTE_*: limits from the CUDA programming guide, clocks and widths of an H100 (the
 * datasheet's); what is emulated and what is not decides the rest. */
int device_attribute(int attribute) {
    bool small = machine.capability >= 120; /* GPUs of workstations */
    switch (attribute) {
    case 1: return 1024;                     /* threads of a block */
    case 2: case 3: return 1024;             /* block x, y */
    case 4: return 64;                       /* block z */
    case 5: return 2147483647;               /* grid x */
    case 6: case 7: return 65535;            /* grid y, z */
    case 8: return 48 * KIB;                 /* shared memory of a block without opting in */
    case 9: return 64 * KIB;                 /* constant memory */
    case 10: return 32;                      /* warp */
    case 11: return 2147483647;              /* pitch */
    case 12: case 82: return 65536;          /* registers of a block, of a multiprocessor */
    case 13: return 1980000;                 /* clock, kHz */
    case 14: case 30: return 512;            /* alignment of textures and surfaces */
    case 51: return 32;                      /* pitch alignment of textures */
    case 15: return 1;                       /* copies overlap */
    case 16: return (int)machine.multiprocessors;
    case 19: return 1;                       /* maps host memory */
    case 31: return 1;                       /* concurrent kernels */
    case 33: return 1;                       /* PCI bus */
    case 36: return 2619000;                 /* clock of memory, kHz */
    case 37: return 5120;                    /* bits of the memory bus */
    case 38: return 50 * KIB * KIB;          /* L2 */
    case 39: return small ? 1536 : 2048;     /* threads of a multiprocessor */
    case 40: return 3;                       /* copy engines */
    case 41: return 1;                       /* unified addresses */
    case 75: return (int)machine.capability / 10;
    case 76: return (int)machine.capability % 10;
    case 78: case 79: case 80: return 1;     /* priorities, L1 caches */
    case 81: return (int)machine.shared_per_multiprocessor;
    case 83: return 1;                       /* managed memory */
    case 87: return 2;                       /* ratio of single to double */
    case 89: case 90: return 1;              /* concurrent managed access, preemption */
    case 92: case 93: case 94: return 1;     /* waits of streams for values in memory, as they were */
    case 95: return 1;                       /* cooperative launches */
    case 97: return (int)machine.shared_per_multiprocessor - KIB;
    case 98: case 99: return 1;              /* flushes remote writes, registers host memory */
    case 102: return 1;                      /* virtual memory management */
    case 106: return small ? 24 : 32;        /* blocks of a multiprocessor */
    case 108: return 32 * KIB * KIB;         /* persisting L2 */
    case 109: return 134213632;              /* access policy window */
    case 111: return KIB;                    /* reserved shared memory */
    case 115: return 1;                      /* memory pools */
    case 119: return 1;                      /* pools are exported as file descriptors */
    case 120: return machine.capability >= 90;
    case 121: return 1;                      /* deferred mapping of arrays */
    case 122: case 123: return 1;            /* waits of streams for values in memory: 64 bits, NOR */
    case 127: return machine.capability >= 90; /* tensor maps */
    case 129: return 1;                      /* unified function pointers */
    case 131: return -1;                     /* NUMA node of the host */
    default: return 0;
    }
}

API Result cuDeviceGetAttribute(int *value, int attribute, int device) {
    if (device)
        return INVALID_DEVICE;
    enum { MEMORY_POOLS = 115 };
    *value = attribute == MEMORY_POOLS && is_warp(__builtin_return_address(0)) ? 0 : device_attribute(attribute);
    return SUCCESS;
}

API Result cuDevicePrimaryCtxRetain(void **context, int device) {
    if (device)
        return INVALID_DEVICE;
    *context = CONTEXT;
    return connect_emulator();
}

API Result cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    return SUCCESS;
}

API Result cuDevicePrimaryCtxReset_v2(int device) {
    (void)device;
    print_pending();
    sticky = SUCCESS;
    return SUCCESS;
}

API Result cuDevicePrimaryCtxSetFlags_v2(int device, u32 flags) {
    (void)device, (void)flags;
    return SUCCESS;
}

API Result cuDevicePrimaryCtxGetState(int device, u32 *flags, int *active) {
    (void)device;
    *flags = 0;
    *active = 1;
    return SUCCESS;
}

static Result push(void *context) {
    if (depth == DEEPEST)
        return INVALID_VALUE;
    stack[depth++] = context;
    return SUCCESS;
}

API Result cuCtxCreate_v2(void **context, u32 flags, int device) {
    (void)flags, (void)device;
    Result result = connect_emulator();
    *context = CONTEXT;
    return result ? result : push(CONTEXT);
}

API Result cuCtxCreate_v3(void **context, void *affinity, int count, u32 flags, int device) {
    (void)affinity, (void)count;
    return cuCtxCreate_v2(context, flags, device);
}

API Result cuCtxCreate_v4(void **context, void *parameters, u32 flags, int device) {
    (void)parameters;
    return cuCtxCreate_v2(context, flags, device);
}

API Result cuCtxDestroy_v2(void *context) {
    print_pending();
    if (current() == context)
        depth--;
    return SUCCESS;
}

API Result cuCtxGetCurrent(void **context) {
    *context = current();
    return SUCCESS;
}

API Result cuCtxSetCurrent(void *context) {
    if (!depth)
        return context ? push(context) : SUCCESS;
    if (context)
        stack[depth - 1] = context;
    else
        depth--;
    return SUCCESS;
}

API Result cuCtxPushCurrent_v2(void *context) {
    return push(context);
}

API Result cuCtxPopCurrent_v2(void **context) {
    if (!depth)
        return INVALID_CONTEXT;
    depth--;
    if (context)
        *context = stack[depth];
    return SUCCESS;
}

API Result cuCtxGetDevice(int *device) {
    *device = 0;
    return current() ? SUCCESS : INVALID_CONTEXT;
}

API Result cuCtxGetDevice_v2(int *device, void *context) {
    (void)context;
    *device = 0;
    return SUCCESS;
}

API Result cuCtxGetFlags(u32 *flags) {
    *flags = 0;
    return SUCCESS;
}

API Result cuCtxGetId(void *context, u64 *number) {
    (void)context;
    *number = 1;
    return SUCCESS;
}

API Result cuCtxSynchronize(void) {
    return synchronize();
}

API Result cuCtxSynchronize_v2(void *context) {
    (void)context;
    return synchronize();
}

API Result cuCtxGetApiVersion(void *context, u32 *version) {
    (void)context;
    *version = DRIVER_VERSION;
    return SUCCESS;
}

API Result cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return SUCCESS;
}

static size_t limits[16] = {KIB, KIB * KIB, 8 * KIB * KIB, 2, 2048, 64};

API Result cuCtxGetLimit(size_t *value, u32 limit) {
    if (limit >= sizeof limits / sizeof *limits)
        return INVALID_VALUE;
    *value = limits[limit];
    return SUCCESS;
}

API Result cuCtxSetLimit(u32 limit, size_t value) {
    if (limit >= sizeof limits / sizeof *limits)
        return INVALID_VALUE;
    limits[limit] = value;
    return SUCCESS;
}

API Result cuCtxGetCacheConfig(int *config) {
    *config = 0;
    return SUCCESS;
}

API Result cuCtxSetCacheConfig(int config) {
    (void)config;
    return SUCCESS;
}

API Result cuCtxGetSharedMemConfig(int *config) {
    *config = 1;
    return SUCCESS;
}

API Result cuCtxSetSharedMemConfig(int config) {
    (void)config;
    return SUCCESS;
}

API Result cuCtxResetPersistingL2Cache(void) {
    return SUCCESS;
}

API Result cuProfilerStart(void) {
    return SUCCESS;
}

API Result cuProfilerStop(void) {
    return SUCCESS;
}

/* Blocks of a kernel that a multiprocessor holds: threads, shared memory and registers decide. */
int resident_blocks(const struct Function *function, int block, size_t dynamic_bytes) {
    if (block <= 0)
        return 0;
    int warps = (block + 31) / 32, most = device_attribute(106);
    int by_warps = device_attribute(39) / 32 / warps;
    int registers = function->attributes[4] > 0 ? function->attributes[4] : 32;
    int by_registers = 65536 / ((registers * 32 + 255) / 256 * 256 * warps);
    size_t shared = (size_t)function->attributes[1] + dynamic_bytes + KIB;
    int by_shared = (int)(machine.shared_per_multiprocessor / shared);
    most = by_warps < most ? by_warps : most;
    most = by_registers < most ? by_registers : most;
    return by_shared < most ? by_shared : most;
}

API Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, struct Function *function, int block, size_t bytes) {
    if (!is_function(function))
        return INVALID_HANDLE;
    *count = resident_blocks(function, block, bytes);
    return SUCCESS;
}

API Result cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, struct Function *function, int block,
                                                                size_t bytes, u32 flags) {
    (void)flags;
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(count, function, block, bytes);
}

API Result cuOccupancyMaxPotentialBlockSize(int *grid, int *block, struct Function *function, size_t (*bytes_of)(int),
                                            size_t bytes, int limit) {
    if (!is_function(function))
        return INVALID_HANDLE;
    int most = function->attributes[0], best = 32, best_threads = 0;
    if (limit > 0 && limit < most)
        most = limit;
    for (int threads = most; threads >= 32; threads -= 32) {
        size_t needed = bytes_of ? bytes_of(threads) : bytes;
        int resident = resident_blocks(function, threads, needed) * threads;
        if (resident > best_threads) {
            best = threads;
            best_threads = resident;
        }
    }
    *block = best;
    *grid = (int)machine.multiprocessors * (best_threads / best ? best_threads / best : 1);
    return SUCCESS;
}

API Result cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, struct Function *function,
                                                     size_t (*bytes_of)(int), size_t bytes, int limit, u32 flags) {
    (void)flags;
    return cuOccupancyMaxPotentialBlockSize(grid, block, function, bytes_of, bytes, limit);
}

API Result cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, struct Function *function, int blocks, int block) {
    (void)block;
    if (!is_function(function) || blocks <= 0)
        return INVALID_VALUE;
    size_t each = machine.shared_per_multiprocessor / (size_t)blocks, used = (size_t)function->attributes[1] + KIB;
    *bytes = each > used ? each - used : 0;
    return SUCCESS;
}

API Result cuOccupancyMaxActiveClusters(int *count, struct Function *function, const struct DriverLaunch *launch) {
    (void)function;
    u32 size = 1;
    for (u32 at = 0; at < launch->attribute_count; at++)
        if (launch->attributes[at].id == 4) {
            struct Extent3 extent = launch->attributes[at].value.extent;
            size = extent.x * extent.y * extent.z;
        }
    *count = (int)(machine.multiprocessors / (size ? size : 1));
    if (!*count)
        *count = 1;
    return SUCCESS;
}

API Result cuOccupancyMaxPotentialClusterSize(int *size, struct Function *function, const struct DriverLaunch *launch) {
    (void)launch;
    *size = function->attributes[14] ? 16 : 8;
    return SUCCESS;
}
