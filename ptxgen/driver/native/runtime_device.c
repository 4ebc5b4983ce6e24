/* The runtime API over the stand-in driver: devices, their properties and limits. */
#include "runtime.h"

#include <string.h>

/* Devices. */

API Result cudaDriverGetVersion(int *version) {
    return cuDriverGetVersion(version);
}

API Result cudaRuntimeGetVersion(int *version) {
    *version = RUNTIME_VERSION;
    return SUCCESS;
}

API Result cudaGetDeviceCount(int *count) {
    Result result = cuInit(0);
    *count = !result;
    return runtime_result(result);
}

API Result cudaGetDevice(int *device) {
    *device = 0;
    return SUCCESS;
}

API Result cudaSetDevice(int device) {
    return runtime_result(device ? INVALID_DEVICE : start_runtime());
}

API Result cudaInitDevice(int device, u32 device_flags, u32 flags) {
    (void)device_flags, (void)flags;
    return cudaSetDevice(device);
}

API Result cudaSetDeviceFlags(u32 flags) {
    (void)flags;
    return SUCCESS;
}

API Result cudaGetDeviceFlags(u32 *flags) {
    *flags = 0;
    return SUCCESS;
}

API Result cudaSetValidDevices(int *devices, int count) {
    (void)devices, (void)count;
    return SUCCESS;
}

API Result cudaChooseDevice(int *device, const void *properties) {
    (void)properties;
    *device = 0;
    return SUCCESS;
}

API Result cudaDeviceSynchronize(void) {
    Result result = start_runtime();
    return runtime_result(result ? result : synchronize());
}

API Result cudaThreadSynchronize(void) {
    return cudaDeviceSynchronize();
}

API Result cudaDeviceReset(void) {
    clear_runtime_error();
    return cuDevicePrimaryCtxReset_v2(0);
}

API Result cudaThreadExit(void) {
    return cudaDeviceReset();
}

API Result cudaDeviceGetAttribute(int *value, int attribute, int device) {
    Result result = start_runtime();
    return runtime_result(result ? result : cuDeviceGetAttribute(value, attribute, device));
}

struct Property {
    int attribute, bytes, offsets[2];
};
enum { NO_OFFSET = -1 };
#define PROPERTY(attribute, bytes, before, now) {attribute, bytes, {before, now}},
#define PROPERTIES_BYTES(before, now) {-1, 0, {before, now}},
static const struct Property properties[] = {
#include "properties.h"
};

/* The first three members are the name, the UUID and the bytes of global memory; the last row has the sizes. */
static Result fill_properties(char *out, int device, int abi) {
    Result result = start_runtime();
    if (result)
        return runtime_result(result);
    if (device)
        return runtime_result(INVALID_DEVICE);
    size_t rows = sizeof properties / sizeof *properties;
    memset(out, 0, (size_t)properties[rows - 1].offsets[abi]);
    cuDeviceGetName(out + properties[0].offsets[abi], properties[0].bytes, 0);
    cuDeviceGetUuid_v2((u8 *)out + properties[1].offsets[abi], 0);
    cuDeviceTotalMem_v2((size_t *)(out + properties[2].offsets[abi]), 0);
    for (const struct Property *each = properties + 3; each < properties + rows - 1; each++) {
        if (each->offsets[abi] == NO_OFFSET)
            continue;
        u64 value = (u64)(int64_t)device_attribute(each->attribute);
        memcpy(out + each->offsets[abi], &value, (size_t)each->bytes);
    }
    return SUCCESS;
}

/* CUDA 12 calls its version of the structure _v2; CUDA 13 has another one under the plain name. */
API Result cudaGetDeviceProperties_v2(void *out, int device) {
    return fill_properties(out, device, 0);
}

API Result cudaGetDeviceProperties(void *out, int device) {
    return fill_properties(out, device, 1);
}

API Result cudaDeviceGetPCIBusId(char *name, int length, int device) {
    return cuDeviceGetPCIBusId(name, length, device);
}

API Result cudaDeviceGetByPCIBusId(int *device, const char *name) {
    return cuDeviceGetByPCIBusId(device, name);
}

API Result cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    return cuDeviceCanAccessPeer(can, device, peer);
}

API Result cudaDeviceGetLimit(size_t *value, u32 limit) {
    return runtime_result(cuCtxGetLimit(value, limit));
}

API Result cudaDeviceSetLimit(u32 limit, size_t value) {
    return runtime_result(cuCtxSetLimit(limit, value));
}

API Result cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    return cuCtxGetStreamPriorityRange(least, greatest);
}

API Result cudaDeviceSetCacheConfig(int config) {
    (void)config;
    return SUCCESS;
}

API Result cudaDeviceGetCacheConfig(int *config) {
    *config = 0;
    return SUCCESS;
}

API Result cudaDeviceSetSharedMemConfig(int config) {
    (void)config;
    return SUCCESS;
}

API Result cudaCtxResetPersistingL2Cache(void) {
    return SUCCESS;
}

API Result cudaProfilerStart(void) {
    return SUCCESS;
}

API Result cudaProfilerStop(void) {
    return SUCCESS;
}

API Result cudaDeviceGetSharedMemConfig(int *config) {
    *config = 1; /* banks of four bytes */
    return SUCCESS;
}

/* Peers: the only device has none. */

enum { PEER_ACCESS_NOT_ENABLED = 705 };

API Result cudaDeviceEnablePeerAccess(int peer, u32 flags) {
    (void)peer, (void)flags;
    return runtime_result(INVALID_DEVICE);
}

API Result cudaDeviceDisablePeerAccess(int peer) {
    return runtime_result(peer ? INVALID_DEVICE : PEER_ACCESS_NOT_ENABLED);
}

API Result cudaDeviceGetP2PAttribute(int *value, int attribute, int from, int to) {
    (void)value, (void)attribute, (void)from, (void)to;
    return runtime_result(INVALID_DEVICE); /* it asks for two devices */
}
