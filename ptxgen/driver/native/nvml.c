/* The part of NVIDIA's management library by which programs count and identify devices before they use them (XLA).
 * What it does not have is absent from the library. Names and numbers are those of the NVML API reference, 13.x.
 */
#include "runtime.h"
#include "standin.h"

#include <stdio.h>
#include <string.h>

enum { NVML_INVALID_ARGUMENT = 2, NVML_NOT_SUPPORTED = 3, NVML_NOT_FOUND = 6, NVML_INSUFFICIENT_SIZE = 7 };

static int device_handle; /* there is one */

static int copied(char *to, u32 size, const char *text) {
    if (!to)
        return NVML_INVALID_ARGUMENT;
    if (strlen(text) >= size)
        return NVML_INSUFFICIENT_SIZE;
    strcpy(to, text);
    return SUCCESS;
}

API int nvmlInit_v2(void) {
    return cuInit(0) ? NVML_NOT_FOUND : SUCCESS;
}

API int nvmlInit(void) {
    return nvmlInit_v2();
}

API int nvmlInitWithFlags(u32 flags) {
    (void)flags;
    return nvmlInit_v2();
}

API int nvmlShutdown(void) {
    return SUCCESS;
}

API const char *nvmlErrorString(int error) {
    return !error ? "Success" : error == NVML_NOT_SUPPORTED ? "Not Supported" : "Error";
}

API int nvmlSystemGetDriverVersion(char *text, u32 size) {
    return copied(text, size, "0.0 (ptxgen exec)");
}

API int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    return cuDriverGetVersion(version);
}

API int nvmlSystemGetCudaDriverVersion(int *version) {
    return cuDriverGetVersion(version);
}

API int nvmlDeviceGetCount_v2(u32 *count) {
    *count = 1;
    return SUCCESS;
}

API int nvmlDeviceGetCount(u32 *count) {
    return nvmlDeviceGetCount_v2(count);
}

API int nvmlDeviceGetHandleByIndex_v2(u32 index, void **device) {
    *device = &device_handle;
    return index ? NVML_INVALID_ARGUMENT : SUCCESS;
}

API int nvmlDeviceGetHandleByIndex(u32 index, void **device) {
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

API int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
    int ordinal;
    *device = &device_handle;
    return cuDeviceGetByPCIBusId(&ordinal, bus) ? NVML_NOT_FOUND : SUCCESS;
}

API int nvmlDeviceGetHandleByPciBusId(const char *bus, void **device) {
    return nvmlDeviceGetHandleByPciBusId_v2(bus, device);
}

API int nvmlDeviceGetIndex(void *device, u32 *index) {
    (void)device;
    *index = 0;
    return SUCCESS;
}

API int nvmlDeviceGetName(void *device, char *text, u32 size) {
    (void)device;
    char name[96];
    return cuDeviceGetName(name, sizeof name, 0) ? NVML_NOT_FOUND : copied(text, size, name);
}

API int nvmlDeviceGetUUID(void *device, char *text, u32 size) {
    (void)device;
    u8 id[16];
    char name[48] = "GPU-", *at = name + 4;
    if (cuDeviceGetUuid_v2(id, 0))
        return NVML_NOT_FOUND;
    for (int byte = 0; byte < 16; byte++)
        at += sprintf(at, byte == 4 || byte == 6 || byte == 8 || byte == 10 ? "-%02x" : "%02x", id[byte]);
    return copied(text, size, name);
}

API int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    (void)device;
    return cuDeviceComputeCapability(major, minor, 0) ? NVML_NOT_FOUND : SUCCESS;
}

struct NvmlMemory {
    u64 total, available, used;
};

API int nvmlDeviceGetMemoryInfo(void *device, struct NvmlMemory *memory) {
    (void)device;
    size_t available, total;
    if (cuMemGetInfo_v2(&available, &total))
        return NVML_NOT_FOUND;
    *memory = (struct NvmlMemory){total, available, total - available};
    return SUCCESS;
}
