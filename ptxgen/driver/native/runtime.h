/* What the runtime's files share, and the functions of the driver API that they call. */
#ifndef PTXGEN_RUNTIME_H
#define PTXGEN_RUNTIME_H

#include "standin.h"

/* Keeps an error for cudaGetLastError, and returns it. */
Result runtime_result(Result error);
Result start_runtime(void);
void clear_runtime_error(void);
enum { RUNTIME_VERSION = 13050 };
Result kernel_of(const void *host, struct Function **function);
Result variable_of(const void *host, u64 *address, size_t *bytes);

struct Extent { /* cudaExtent */
    size_t width, height, depth;
};

struct AllocationNode;
struct Copy3D;
struct KernelNode;
struct FillNode;
Result cuInit(u32 flags);
Result cuDriverGetVersion(int *version);
Result cuDeviceGetName(char *name, int length, int device);
Result cuDeviceGetUuid_v2(u8 *uuid, int device);
Result cuDeviceTotalMem_v2(size_t *bytes, int device);
Result cuDeviceGetAttribute(int *value, int attribute, int device);
Result cuDeviceGetPCIBusId(char *name, int length, int device);
Result cuDeviceGetByPCIBusId(int *device, const char *name);
Result cuDeviceComputeCapability(int *major, int *minor, int device);
Result cuDeviceCanAccessPeer(int *can, int device, int peer);
Result cuDevicePrimaryCtxRetain(void **context, int device);
Result cuDevicePrimaryCtxReset_v2(int device);
Result cuCtxGetCurrent(void **context);
Result cuCtxSetCurrent(void *context);
Result cuCtxGetLimit(size_t *value, u32 limit);
Result cuCtxSetLimit(u32 limit, size_t value);
Result cuCtxGetStreamPriorityRange(int *least, int *greatest);
Result cuFuncSetAttribute(struct Function *function, int attribute, int value);
Result cuFuncGetParamInfo(struct Function *function, size_t index, size_t *offset, size_t *bytes);
Result cuMemGetInfo_v2(size_t *available, size_t *total);
Result cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, struct Function *function, int blocks, int block);
Result cuOccupancyMaxPotentialClusterSize(int *size, struct Function *function, const struct DriverLaunch *launch);
Result cuOccupancyMaxActiveClusters(int *count, struct Function *function, const struct DriverLaunch *launch);
Result cuLibraryLoadFromFile(struct Module **library, const char *path, int *options, void **values, u32 count,
                             int *library_options, void **library_values, u32 library_count);
Result cuLibraryUnload(struct Module *library);
Result cuLibraryGetKernelCount(u32 *count, struct Module *library);
Result cuLibraryEnumerateKernels(struct Function **kernels, u32 most, struct Module *library);
Result cuGetProcAddress_v2(const char *name, void **function, int version, u64 flags, int *status);

#endif
