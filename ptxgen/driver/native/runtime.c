/* The runtime API over the stand-in driver: registration of what nvcc embeds, launches, devices, streams, events.
 *
 * It replaces NVIDIA's runtime in the program (patch.c); its interface is public.
 */
#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"


static __thread Result last_error;
static __thread bool started;

/* A fault of a kernel shows with the first call that waits for it, and stays. */
Result runtime_result(Result error) {
    if (error && error != NOT_READY)
        last_error = error;
    return error;
}

static bool is_sticky(Result error) {
    return error >= FIRST_STICKY && error <= LAST_STICKY;
}

Result start_runtime(void) {
    if (started)
        return SUCCESS;
    Result result = cuInit(0);
    if (result)
        return result;
    void *context;
    cuCtxGetCurrent(&context);
    if (!context) {
        cuDevicePrimaryCtxRetain(&context, 0);
        cuCtxSetCurrent(context);
    }
    started = true;
    return SUCCESS;
}

/* Registration. */

struct Binary {
    const void *image;
    struct Module *library;
};

/* A kernel or variable of the program: the host's handle, and what stands for it on the device. */
struct Symbol {
    const void *host;
    const char *name;
    struct Binary *binary;
    struct Function *function;
    u64 address;
    size_t bytes;
    bool managed;
};

static pthread_mutex_t symbols_lock = PTHREAD_MUTEX_INITIALIZER;
static struct Symbol **symbols; /* a hash table with open addressing, by host handle */
static size_t symbol_count, symbol_capacity;

static size_t slot_of(const void *host) {
    size_t slot = ((u64)host * 0x9E3779B97F4A7C15u) >> 20;
    for (slot &= symbol_capacity - 1; symbols[slot] && symbols[slot]->host != host;)
        slot = (slot + 1) & (symbol_capacity - 1);
    return slot;
}

static void grow_symbols(void) {
    struct Symbol **old = symbols;
    size_t old_capacity = symbol_capacity;
    symbol_capacity = old_capacity ? 2 * old_capacity : 256;
    symbols = calloc(symbol_capacity, sizeof *symbols);
    for (size_t at = 0; at < old_capacity; at++)
        if (old[at])
            symbols[slot_of(old[at]->host)] = old[at];
    free(old);
}

static struct Symbol *register_symbol(void **handle, const void *host, const char *name, size_t bytes, bool managed) {
    struct Symbol *made = calloc(1, sizeof *made);
    *made = (struct Symbol){host, name, (struct Binary *)handle, NULL, 0, bytes, managed};
    pthread_mutex_lock(&symbols_lock);
    if (2 * (symbol_count + 1) > symbol_capacity)
        grow_symbols();
    size_t slot = slot_of(host);
    symbol_count += !symbols[slot];
    symbols[slot] = made;
    pthread_mutex_unlock(&symbols_lock);
    return made;
}

static struct Symbol *symbol_of(const void *host) {
    pthread_mutex_lock(&symbols_lock);
    struct Symbol *found = symbol_capacity ? symbols[slot_of(host)] : NULL;
    pthread_mutex_unlock(&symbols_lock);
    return found;
}

API void **__cudaRegisterFatBinary(void *image) {
    struct Binary *made = calloc(1, sizeof *made);
    made->image = image;
    return (void **)made;
}

API void __cudaRegisterFatBinaryEnd(void **handle) {
    (void)handle;
}

API void __cudaUnregisterFatBinary(void **handle) {
    (void)handle; /* symbols of a library that is closed are not named any more */
}

API void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *thread,
                                void *block, void *block_extent, void *grid_extent, int *warp) {
    (void)device, (void)limit, (void)thread, (void)block, (void)block_extent, (void)grid_extent, (void)warp;
    register_symbol(handle, host, name, 0, false);
}

API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t bytes,
                           int constant, int global) {
    (void)device, (void)external, (void)constant, (void)global;
    register_symbol(handle, host, name, bytes, false);
}

static struct Symbol *managed[1024];
static size_t managed_count;

API void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external,
                                  size_t bytes, int constant, int global) {
    (void)device, (void)external, (void)constant, (void)global;
    struct Symbol *made = register_symbol(handle, host, name, bytes, true);
    if (managed_count < sizeof managed / sizeof *managed)
        managed[managed_count++] = made;
}

static Result library_of(struct Binary *binary, struct Module **library) {
    Result result = SUCCESS;
    pthread_mutex_lock(&symbols_lock);
    if (!binary->library)
        result = load_module(binary->image, &binary->library);
    *library = binary->library;
    pthread_mutex_unlock(&symbols_lock);
    return result;
}

/* The function of a kernel of the program, or of a handle (cudaKernel_t) that is one already. */
Result kernel_of(const void *host, struct Function **function) {
    struct Symbol *symbol = symbol_of(host);
    if (!symbol) {
        *function = (struct Function *)host;
        return is_function(host) ? SUCCESS : INVALID_DEVICE_FUNCTION;
    }
    if (!symbol->function) {
        struct Module *library;
        Result result = library_of(symbol->binary, &library);
        if (result)
            return result;
        if (find_function(library, symbol->name, &symbol->function))
            return INVALID_DEVICE_FUNCTION;
    }
    *function = symbol->function;
    return SUCCESS;
}

Result variable_of(const void *host, u64 *address, size_t *bytes) {
    struct Symbol *symbol = symbol_of(host);
    if (!symbol)
        return INVALID_SYMBOL;
    if (!symbol->address) {
        struct Module *library;
        Result result = library_of(symbol->binary, &library);
        if (result)
            return result;
        if (find_variable(library, symbol->name, &symbol->address, NULL))
            return INVALID_SYMBOL;
        know_range(symbol->address, symbol->bytes, symbol->managed ? MANAGED_MEMORY : VARIABLE_MEMORY);
        if (symbol->managed)
            *(u64 *)symbol->host = symbol->address;
    }
    *address = symbol->address;
    if (bytes)
        *bytes = symbol->bytes;
    return SUCCESS;
}

/* The host reads managed variables through pointers of nvcc's; code of nvcc calls this before the first access. */
API char __cudaInitModule(void **handle) {
    Result result = start_runtime();
    for (size_t at = 0; !result && at < managed_count; at++)
        if (managed[at]->binary == (struct Binary *)handle) {
            u64 address;
            variable_of(managed[at]->host, &address, NULL);
        }
    return 1;
}

/* Launches. */

struct Configuration {
    struct Extent3 grid, block;
    size_t shared_bytes;
    struct Stream *stream;
};
enum { DEEPEST = 16 };
static __thread struct Configuration configurations[DEEPEST];
static __thread int configured;

API u32 __cudaPushCallConfiguration(struct Extent3 grid, struct Extent3 block, size_t shared_bytes,
                                    struct Stream *stream) {
    if (configured == DEEPEST)
        return INVALID_VALUE;
    configurations[configured++] = (struct Configuration){grid, block, shared_bytes, stream};
    return SUCCESS;
}

API Result __cudaPopCallConfiguration(struct Extent3 *grid, struct Extent3 *block, size_t *shared_bytes,
                                      struct Stream **stream) {
    if (!configured)
        return 52; /* cudaErrorMissingConfiguration */
    struct Configuration *last = &configurations[--configured];
    *grid = last->grid;
    *block = last->block;
    *shared_bytes = last->shared_bytes;
    *stream = last->stream;
    return SUCCESS;
}

/* The function of a kernel that is to be launched. Programs may ignore the error: a kernel that cannot run is noted. */
static Result launched_kernel(const void *host, struct Function **function) {
    Result result = start_runtime();
    if (result)
        return result;
    result = kernel_of(host, function);
    const struct Symbol *symbol = result ? symbol_of(host) : NULL;
    if (symbol)
        note("no-kernel %s", symbol->name);
    return result;
}

static Result launch(const void *host, struct Extent3 grid, struct Extent3 block, void **parameters,
                     size_t shared_bytes, struct Stream *stream, bool cooperative) {
    struct Function *function;
    Result result = launched_kernel(host, &function);
    if (result)
        return result;
    struct LaunchAttribute attribute = {.id = 2, .value.flag = cooperative};
    struct DriverLaunch asked = {grid.x, grid.y, grid.z, block.x, block.y, block.z, (u32)shared_bytes, stream,
                                 &attribute, 1};
    result = launch_with_attributes(&asked, function, parameters, NULL);
    enum { INVALID_CONFIGURATION = 9 }; /* of the runtime alone */
    return result == INVALID_VALUE && !is_valid_shape(grid, block) ? INVALID_CONFIGURATION : result;
}

API Result cudaLaunchKernel(const void *host, struct Extent3 grid, struct Extent3 block, void **parameters,
                            size_t shared_bytes, struct Stream *stream) {
    return runtime_result(launch(host, grid, block, parameters, shared_bytes, stream, false));
}

API Result cudaLaunchCooperativeKernel(const void *host, struct Extent3 grid, struct Extent3 block, void **parameters,
                                       size_t shared_bytes, struct Stream *stream) {
    return runtime_result(launch(host, grid, block, parameters, shared_bytes, stream, true));
}

API Result __cudaGetKernel(const void **kernel, const void *host) {
    *kernel = host;
    return SUCCESS;
}

API Result __cudaLaunchKernel(const void *kernel, struct Extent3 grid, struct Extent3 block, void **parameters,
                              size_t shared_bytes, struct Stream *stream) {
    return cudaLaunchKernel(kernel, grid, block, parameters, shared_bytes, stream);
}

struct RuntimeLaunch { /* cudaLaunchConfig_t */
    struct Extent3 grid, block;
    size_t shared_bytes;
    struct Stream *stream;
    struct LaunchAttribute *attributes;
    u32 attribute_count;
};

static struct DriverLaunch driver_launch(const struct RuntimeLaunch *asked) {
    return (struct DriverLaunch){asked->grid.x, asked->grid.y, asked->grid.z, asked->block.x, asked->block.y,
                                 asked->block.z, (u32)asked->shared_bytes, asked->stream, asked->attributes,
                                 asked->attribute_count};
}

API Result cudaLaunchKernelExC(const struct RuntimeLaunch *asked, const void *host, void **parameters) {
    struct Function *function;
    Result result = launched_kernel(host, &function);
    if (result)
        return runtime_result(result);
    struct DriverLaunch launch = driver_launch(asked);
    return runtime_result(launch_with_attributes(&launch, function, parameters, NULL));
}

API Result cudaLaunchKernelEx(const struct RuntimeLaunch *asked, const void *host, void **parameters) {
    return cudaLaunchKernelExC(asked, host, parameters);
}

/* Errors. */

API Result cudaGetLastError(void) {
    Result error = last_error;
    if (!is_sticky(error))
        last_error = SUCCESS;
    return error;
}

void clear_runtime_error(void) {
    last_error = SUCCESS;
}

API Result cudaPeekAtLastError(void) {
    return last_error;
}

API const char *cudaGetErrorString(Result error) {
    return error_text(error);
}

API const char *cudaGetErrorName(Result error) {
    const char *name = error_name(error, true);
    return name ? name : "unrecognized error code";
}

/* Functions. */

#define WITH_KERNEL(host, function)                                                                                   \
    struct Function *function;                                                                                        \
    do {                                                                                                              \
        Result problem = start_runtime();                                                                             \
        if (!problem)                                                                                                 \
            problem = kernel_of(host, &function);                                                                     \
        if (problem)                                                                                                  \
            return runtime_result(problem);                                                                           \
    } while (0)

API Result cudaFuncSetAttribute(const void *host, int attribute, int value) {
    WITH_KERNEL(host, function);
    return runtime_result(cuFuncSetAttribute(function, attribute, value));
}

API Result cudaKernelSetAttributeForDevice(const void *kernel, int attribute, int value, int device) {
    (void)device;
    return cudaFuncSetAttribute(kernel, attribute, value);
}

API Result cudaFuncSetCacheConfig(const void *host, int config) {
    (void)host, (void)config;
    return SUCCESS;
}

API Result cudaFuncSetSharedMemConfig(const void *host, int config) {
    (void)host, (void)config;
    return SUCCESS;
}

struct FunctionAttributes { /* cudaFuncAttributes, of all versions since 12.0 */
    size_t shared_bytes, constant_bytes, local_bytes;
    int threads, registers, ptx_version, binary_version, cache_mode, dynamic_shared_bytes, carveout;
    int needs_cluster, cluster_x, cluster_y, cluster_z, cluster_policy, large_clusters;
    int reserved[16];
};

API Result cudaFuncGetAttributes(struct FunctionAttributes *out, const void *host) {
    WITH_KERNEL(host, function);
    const int *given = function->attributes;
    memset(out, 0, sizeof *out);
    out->shared_bytes = (size_t)given[1];
    out->constant_bytes = (size_t)given[2];
    out->local_bytes = (size_t)given[3];
    out->threads = given[0];
    out->registers = given[4];
    out->ptx_version = given[5];
    out->binary_version = given[6];
    out->dynamic_shared_bytes = given[8];
    out->carveout = given[9];
    memcpy(&out->needs_cluster, given + 10, 6 * sizeof(int)); /* up to whether large clusters are allowed */
    out->cluster_policy = given[15];
    out->large_clusters = given[14];
    return SUCCESS;
}

API Result cudaFuncGetName(const char **name, const void *host) {
    WITH_KERNEL(host, function);
    *name = function->name;
    return SUCCESS;
}

API Result cudaFuncGetParamInfo(const void *host, size_t index, size_t *offset, size_t *bytes) {
    WITH_KERNEL(host, function);
    return runtime_result(cuFuncGetParamInfo(function, index, offset, bytes));
}

API Result cudaGetFuncBySymbol(struct Function **found, const void *host) {
    WITH_KERNEL(host, function);
    *found = function;
    return SUCCESS;
}

API Result cudaGetKernel(struct Function **found, const void *host) {
    return cudaGetFuncBySymbol(found, host);
}

API Result cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *count, const void *host, int block, size_t bytes) {
    WITH_KERNEL(host, function);
    *count = resident_blocks(function, block, bytes);
    return SUCCESS;
}

API Result cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, const void *host, int block, size_t bytes,
                                                                  u32 flags) {
    (void)flags;
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(count, host, block, bytes);
}

API Result cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *host, int blocks, int block) {
    WITH_KERNEL(host, function);
    return runtime_result(cuOccupancyAvailableDynamicSMemPerBlock(bytes, function, blocks, block));
}

API Result cudaOccupancyMaxPotentialClusterSize(int *size, const void *host, const struct RuntimeLaunch *asked) {
    WITH_KERNEL(host, function);
    struct DriverLaunch launch = driver_launch(asked);
    return runtime_result(cuOccupancyMaxPotentialClusterSize(size, function, &launch));
}

API Result cudaOccupancyMaxActiveClusters(int *count, const void *host, const struct RuntimeLaunch *asked) {
    WITH_KERNEL(host, function);
    struct DriverLaunch launch = driver_launch(asked);
    return runtime_result(cuOccupancyMaxActiveClusters(count, function, &launch));
}

/* Libraries and entry points of the driver. */

API Result cudaLibraryLoadData(struct Module **library, const void *image, int *options, void **values, u32 count,
                               int *library_options, void **library_values, u32 library_count) {
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    Result result = start_runtime();
    return runtime_result(result ? result : load_module(image, library));
}

API Result cudaLibraryLoadFromFile(struct Module **library, const char *path, int *options, void **values, u32 count,
                                   int *library_options, void **library_values, u32 library_count) {
    Result result = start_runtime();
    return runtime_result(result ? result
                                 : cuLibraryLoadFromFile(library, path, options, values, count, library_options,
                                                         library_values, library_count));
}

API Result cudaLibraryUnload(struct Module *library) {
    return runtime_result(cuLibraryUnload(library));
}

API Result cudaLibraryGetKernel(struct Function **kernel, struct Module *library, const char *name) {
    return runtime_result(find_function(library, name, kernel));
}

API Result cudaLibraryGetGlobal(u64 *address, size_t *bytes, struct Module *library, const char *name) {
    return runtime_result(find_variable(library, name, address, bytes));
}

API Result cudaLibraryGetManaged(u64 *address, size_t *bytes, struct Module *library, const char *name) {
    return runtime_result(find_variable(library, name, address, bytes));
}

API Result cudaLibraryGetKernelCount(u32 *count, struct Module *library) {
    return runtime_result(cuLibraryGetKernelCount(count, library));
}

API Result cudaLibraryEnumerateKernels(struct Function **kernels, u32 most, struct Module *library) {
    return runtime_result(cuLibraryEnumerateKernels(kernels, most, library));
}

API Result cudaGetDriverEntryPointByVersion(const char *name, void **function, u32 version, u64 flags, int *status) {
    Result result = start_runtime();
    return runtime_result(result ? result : cuGetProcAddress_v2(name, function, (int)version, flags, status));
}

API Result cudaGetDriverEntryPoint(const char *name, void **function, u64 flags, int *status) {
    return cudaGetDriverEntryPointByVersion(name, function, RUNTIME_VERSION, flags, status);
}

API Result cudaGetExportTable(const void **table, const void *id) {
    (void)id;
    *table = NULL;
    return NOT_FOUND;
}
