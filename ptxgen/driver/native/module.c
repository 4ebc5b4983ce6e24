/* Modules, libraries, functions, variables, launches and tensor maps. */
#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FUNCTION_MAGIC = 0x46554e43, MODULE_MAGIC = 0x4d4f4455 };

struct Module {
    u32 magic, number;
    struct Function *functions;
    pthread_mutex_t lock;
};

/* Images. */

enum { WRAPPER_MAGIC = 0x466243b1 };
static const u32 FATBIN_MAGIC = 0xBA55ED50;

static u64 word(const u8 *at, size_t bytes) {
    u64 value = 0;
    memcpy(&value, at, bytes);
    return value;
}

/* Bytes of an image, which callers do not say: PTX ends with a 0, a fatbin and an ELF file have tables. */
static u64 image_bytes(const u8 *image) {
    if (!memcmp(image, "\x7f" "ELF", 4)) {
        u64 sections = word(image + 40, 8) + word(image + 58, 2) * word(image + 60, 2);
        u64 segments = word(image + 32, 8) + word(image + 54, 2) * word(image + 56, 2);
        return sections > segments ? sections : segments;
    }
    if (is_bundle(image))
        return word(image + BUNDLE_MARK_BYTES, 8);
    if (word(image, 4) == FATBIN_MAGIC)
        return word(image + 6, 2) + word(image + 8, 8);
    return strlen((const char *)image) + 1;
}

Result load_module(const void *image, struct Module **made) {
    const u8 *data = image;
    u8 *bundle = NULL;
    if (!data)
        return INVALID_VALUE;
    if (word(data, 4) == WRAPPER_MAGIC) {
        /* Relocatable device code: the images that the linker had follow what it made. */
        const u8 *const *parts = word(data + 4, 4) == 2 ? (const u8 *const *)word(data + 16, 8) : NULL;
        data = (const u8 *)word(data + 8, 8);
        if (parts && *parts) {
            append_image(&bundle, data, image_bytes(data));
            for (; *parts; parts++)
                append_image(&bundle, *parts, image_bytes(*parts));
            data = bundle;
        }
    }
    void *reply;
    Result result = request(LOAD, data, image_bytes(data), NULL, 0, &reply, NULL);
    if (!result) {
        *made = calloc(1, sizeof **made);
        (*made)->magic = MODULE_MAGIC;
        (*made)->number = *(u32 *)reply;
        pthread_mutex_init(&(*made)->lock, NULL);
    }
    free(bundle);
    free(reply);
    return result;
}

static Result load_file(const char *path, struct Module **made) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return FILE_NOT_FOUND;
    fseek(file, 0, SEEK_END);
    long bytes = ftell(file);
    rewind(file);
    char *data = calloc(1, (size_t)bytes + 1);
    Result result = fread(data, 1, (size_t)bytes, file) == (size_t)bytes ? SUCCESS : FILE_NOT_FOUND;
    fclose(file);
    if (!result)
        result = load_module(data, made);
    free(data);
    return result;
}

API Result cuModuleLoadData(struct Module **module, const void *image) {
    return load_module(image, module);
}

API Result cuModuleLoadDataEx(struct Module **module, const void *image, u32 count, int *options, void **values) {
    (void)count, (void)options, (void)values;
    return load_module(image, module);
}

API Result cuModuleLoadFatBinary(struct Module **module, const void *image) {
    return load_module(image, module);
}

API Result cuModuleLoad(struct Module **module, const char *path) {
    return load_file(path, module);
}

API Result cuModuleUnload(struct Module *module) {
    if (!module || module->magic != MODULE_MAGIC)
        return INVALID_HANDLE;
    return request(UNLOAD, &module->number, sizeof module->number, NULL, 0, NULL, NULL);
}

API Result cuModuleGetLoadingMode(int *mode) {
    *mode = 2; /* lazy */
    return SUCCESS;
}

API Result cuLibraryLoadData(struct Module **library, const void *image, int *options, void **values, u32 count,
                             int *library_options, void **library_values, u32 library_count) {
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    return load_module(image, library);
}

API Result cuLibraryLoadFromFile(struct Module **library, const char *path, int *options, void **values, u32 count,
                                 int *library_options, void **library_values, u32 library_count) {
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    return load_file(path, library);
}

API Result cuLibraryUnload(struct Module *library) {
    return cuModuleUnload(library);
}

API Result cuLibraryGetModule(struct Module **module, struct Module *library) {
    *module = library;
    return SUCCESS;
}

/* Functions. */

bool is_function(const void *handle) {
    return handle && ((const struct Function *)handle)->magic == FUNCTION_MAGIC;
}

/* What FUNCTION returns before the offsets and sizes of the parameters. */
struct FunctionReply {
    u32 number, parameter_count, parameter_bytes;
    int attributes[FUNCTION_ATTRIBUTES];
};

static struct Function *make_function(struct Module *module, const char *name, const void *data) {
    struct FunctionReply reply;
    memcpy(&reply, data, sizeof reply);
    size_t bytes = reply.parameter_count * sizeof(u32);
    struct Function *made = calloc(1, sizeof *made);
    made->magic = FUNCTION_MAGIC;
    made->number = reply.number;
    made->module = module;
    made->name = strdup(name);
    made->parameter_count = reply.parameter_count;
    made->parameter_bytes = reply.parameter_bytes;
    memcpy(made->attributes, reply.attributes, sizeof made->attributes);
    made->offsets = malloc(2 * bytes + 1);
    made->sizes = made->offsets + reply.parameter_count;
    memcpy(made->offsets, (const char *)data + sizeof reply, 2 * bytes);
    return made;
}

Result find_function(struct Module *module, const char *name, struct Function **found) {
    if (!module || module->magic != MODULE_MAGIC)
        return INVALID_HANDLE;
    pthread_mutex_lock(&module->lock);
    struct Function *function = module->functions;
    while (function && strcmp(function->name, name))
        function = function->next;
    Result result = SUCCESS;
    if (!function) {
        void *reply;
        result = request(FUNCTION, &module->number, sizeof module->number, name, strlen(name), &reply, NULL);
        if (!result) {
            function = make_function(module, name, reply);
            function->next = module->functions;
            module->functions = function;
        }
        free(reply);
    }
    pthread_mutex_unlock(&module->lock);
    *found = function;
    return result;
}

Result find_variable(struct Module *module, const char *name, u64 *address, size_t *bytes) {
    if (!module || module->magic != MODULE_MAGIC)
        return INVALID_HANDLE;
    u64 *reply;
    Result result = request(VARIABLE, &module->number, sizeof module->number, name, strlen(name), (void **)&reply, NULL);
    if (!result) {
        if (address)
            *address = reply[0];
        if (bytes)
            *bytes = reply[1];
    }
    free(reply);
    return result;
}

API Result cuModuleGetFunction(struct Function **function, struct Module *module, const char *name) {
    return find_function(module, name, function);
}

API Result cuLibraryGetKernel(struct Function **kernel, struct Module *library, const char *name) {
    return find_function(library, name, kernel);
}

API Result cuModuleGetGlobal_v2(u64 *address, size_t *bytes, struct Module *module, const char *name) {
    return find_variable(module, name, address, bytes);
}

API Result cuLibraryGetGlobal(u64 *address, size_t *bytes, struct Module *library, const char *name) {
    return find_variable(library, name, address, bytes);
}

API Result cuLibraryGetManaged(u64 *address, size_t *bytes, struct Module *library, const char *name) {
    return find_variable(library, name, address, bytes);
}

static Result list_entries(struct Module *module, char **names, u32 *count) {
    size_t bytes;
    Result result = request(ENTRIES, &module->number, sizeof module->number, NULL, 0, (void **)names, &bytes);
    *count = 0;
    for (size_t at = 0; !result && at < bytes; at++)
        *count += (*names)[at] == 0;
    return result;
}

API Result cuModuleGetFunctionCount(u32 *count, struct Module *module) {
    char *names;
    Result result = list_entries(module, &names, count);
    free(names);
    return result;
}

API Result cuLibraryGetKernelCount(u32 *count, struct Module *library) {
    return cuModuleGetFunctionCount(count, library);
}

API Result cuModuleEnumerateFunctions(struct Function **functions, u32 most, struct Module *module) {
    char *names;
    u32 count;
    Result result = list_entries(module, &names, &count);
    const char *name = names;
    for (u32 at = 0; !result && at < count && at < most; at++, name += strlen(name) + 1)
        result = find_function(module, name, functions + at);
    free(names);
    return result;
}

API Result cuLibraryEnumerateKernels(struct Function **kernels, u32 most, struct Module *library) {
    return cuModuleEnumerateFunctions(kernels, most, library);
}

API Result cuKernelGetFunction(struct Function **function, struct Function *kernel) {
    *function = kernel;
    return is_function(kernel) ? SUCCESS : INVALID_HANDLE;
}

API Result cuKernelGetLibrary(struct Module **library, struct Function *kernel) {
    *library = kernel->module;
    return SUCCESS;
}

API Result cuKernelGetName(const char **name, struct Function *kernel) {
    *name = kernel->name;
    return SUCCESS;
}

API Result cuFuncGetName(const char **name, struct Function *function) {
    *name = function->name;
    return SUCCESS;
}

API Result cuFuncGetModule(struct Module **module, struct Function *function) {
    *module = function->module;
    return SUCCESS;
}

API Result cuFuncLoad(struct Function *function) {
    return is_function(function) ? SUCCESS : INVALID_HANDLE;
}

API Result cuFuncIsLoaded(int *state, struct Function *function) {
    *state = 1;
    return is_function(function) ? SUCCESS : INVALID_HANDLE;
}

API Result cuFuncGetAttribute(int *value, int attribute, struct Function *function) {
    if (!is_function(function))
        return INVALID_HANDLE;
    if (attribute < 0 || attribute >= FUNCTION_ATTRIBUTES)
        return INVALID_VALUE;
    *value = function->attributes[attribute];
    return SUCCESS;
}

API Result cuKernelGetAttribute(int *value, int attribute, struct Function *kernel, int device) {
    (void)device;
    return cuFuncGetAttribute(value, attribute, kernel);
}

API Result cuFuncSetAttribute(struct Function *function, int attribute, int value) {
    if (!is_function(function))
        return INVALID_HANDLE;
    if (attribute < 8 || attribute >= FUNCTION_ATTRIBUTES)
        return INVALID_VALUE;
    enum { DYNAMIC_SHARED = 8, SHARED_MODE = 17, OVERSIZED = 3 };
    int most = device_attribute(97) - function->attributes[1];
    if (attribute == DYNAMIC_SHARED && value > most)
        return INVALID_VALUE;
    // CUDA 13.4 has the mode; Triton 3.9 sets it, and the number of bytes only where that fails.
    if (attribute == SHARED_MODE && value == OVERSIZED)
        function->attributes[DYNAMIC_SHARED] = most;
    function->attributes[attribute] = value;
    return SUCCESS;
}

API Result cuKernelSetAttribute(int attribute, int value, struct Function *kernel, int device) {
    (void)device;
    return cuFuncSetAttribute(kernel, attribute, value);
}

API Result cuFuncSetCacheConfig(struct Function *function, int config) {
    (void)function, (void)config;
    return SUCCESS;
}

API Result cuKernelSetCacheConfig(struct Function *kernel, int config, int device) {
    (void)kernel, (void)config, (void)device;
    return SUCCESS;
}

API Result cuFuncSetSharedMemConfig(struct Function *function, int config) {
    (void)function, (void)config;
    return SUCCESS;
}

API Result cuFuncGetParamInfo(struct Function *function, size_t index, size_t *offset, size_t *bytes) {
    if (!is_function(function))
        return INVALID_HANDLE;
    if (index >= function->parameter_count)
        return INVALID_VALUE;
    if (offset)
        *offset = function->offsets[index];
    if (bytes)
        *bytes = function->sizes[index];
    return SUCCESS;
}

API Result cuKernelGetParamInfo(struct Function *kernel, size_t index, size_t *offset, size_t *bytes) {
    return cuFuncGetParamInfo(kernel, index, offset, bytes);
}

API Result cuFuncGetParamCount(struct Function *function, size_t *count) {
    *count = function->parameter_count;
    return SUCCESS;
}

API Result cuKernelGetParamCount(struct Function *kernel, size_t *count) {
    return cuFuncGetParamCount(kernel, count);
}

/* Launches. */

/* Ends of the list `extra`, and its keys (CU_LAUNCH_PARAM_*). */
enum { EXTRA_END = 0, EXTRA_POINTER = 1, EXTRA_BYTES = 2 };

static void take_extra(void **extra, u8 *parameters, u32 bytes) {
    const void *data = NULL;
    size_t size = 0;
    for (size_t at = 0; (u64)extra[at] != EXTRA_END; at += 2)
        if ((u64)extra[at] == EXTRA_POINTER)
            data = extra[at + 1];
        else if ((u64)extra[at] == EXTRA_BYTES)
            size = *(size_t *)extra[at + 1];
    if (data)
        memcpy(parameters, data, size < bytes ? size : bytes);
}

Result prepare_launch(struct Function *function, struct Extent3 grid, struct Extent3 block, u32 shared_bytes,
                      void **parameters, void **extra, struct Operation *made) {
    if (!is_function(function))
        return INVALID_HANDLE;
    memset(made, 0, sizeof *made);
    made->kind = OP_LAUNCH;
    made->kernel.function = function;
    made->kernel.shape =
        (struct LaunchShape){.function = function->number, .grid = grid, .block = block, .shared_bytes = shared_bytes};
    char site[1024];
    call_site(site, sizeof site);
    made->kernel.site_bytes = strlen(site);
    made->kernel.parameters = calloc(1, function->parameter_bytes + made->kernel.site_bytes + 1);
    memcpy(made->kernel.parameters + function->parameter_bytes, site, made->kernel.site_bytes);
    if (parameters)
        for (u32 at = 0; at < function->parameter_count; at++)
            memcpy(made->kernel.parameters + function->offsets[at], parameters[at], function->sizes[at]);
    else if (extra)
        take_extra(extra, made->kernel.parameters, function->parameter_bytes);
    return SUCCESS;
}

bool is_valid_shape(struct Extent3 grid, struct Extent3 block) {
    u64 threads = (u64)block.x * block.y * block.z;
    return grid.x && grid.y && grid.z && grid.x < 1u << 31 && grid.y < 1 << 16 && grid.z < 1 << 16 && threads &&
           threads <= 1024 && block.x <= 1024 && block.y <= 1024 && block.z <= 64;
}

/* What the driver refuses at once: a shape that no GPU takes, and more shared memory than the kernel has opted in to. */
static bool is_refused(const struct Function *function, const struct LaunchShape *shape) {
    if (!is_valid_shape(shape->grid, shape->block)) {
        note("invalid-launch %s grid (%u, %u, %u), block (%u, %u, %u)", function->name, shape->grid.x, shape->grid.y,
             shape->grid.z, shape->block.x, shape->block.y, shape->block.z);
        return true;
    }
    u32 fixed = (u32)function->attributes[1], opted_in = (u32)function->attributes[8];
    enum { WITHOUT_OPTING_IN = 48 * 1024 };
    u32 most = fixed < WITHOUT_OPTING_IN ? WITHOUT_OPTING_IN - fixed : 0;
    if (opted_in > most)
        most = opted_in;
    if (!shape->shared_bytes || shape->shared_bytes <= most)
        return false;
    note("shared-opt-in %s %u %u", function->name, shape->shared_bytes, most);
    return true;
}

static Result issue(struct Stream *stream, struct Operation *operation) {
    if (is_refused(operation->kernel.function, &operation->kernel.shape)) {
        free(operation->kernel.parameters);
        return INVALID_VALUE;
    }
    operation->kernel.shape.stream = stream_number(stream);
    bool captured = capture_of(stream) != NULL;
    Result result = submit(stream, operation);
    if (!captured)
        free(operation->kernel.parameters);
    return result;
}

API Result cuLaunchKernel(struct Function *function, u32 grid_x, u32 grid_y, u32 grid_z, u32 block_x, u32 block_y,
                          u32 block_z, u32 shared_bytes, struct Stream *stream, void **parameters, void **extra) {
    struct Operation operation;
    Result result = prepare_launch(function, (struct Extent3){grid_x, grid_y, grid_z},
                                   (struct Extent3){block_x, block_y, block_z}, shared_bytes, parameters, extra,
                                   &operation);
    return result ? result : issue(stream, &operation);
}

API Result cuLaunchCooperativeKernel(struct Function *function, u32 grid_x, u32 grid_y, u32 grid_z, u32 block_x,
                                     u32 block_y, u32 block_z, u32 shared_bytes, struct Stream *stream,
                                     void **parameters) {
    struct Operation operation;
    Result result = prepare_launch(function, (struct Extent3){grid_x, grid_y, grid_z},
                                   (struct Extent3){block_x, block_y, block_z}, shared_bytes, parameters, NULL,
                                   &operation);
    operation.kernel.shape.flags |= COOPERATIVE;
    return result ? result : issue(stream, &operation);
}

Result launch_with_attributes(const struct DriverLaunch *launch, struct Function *function, void **parameters,
                              void **extra) {
    struct Operation operation;
    Result result = prepare_launch(function, (struct Extent3){launch->grid_x, launch->grid_y, launch->grid_z},
                                   (struct Extent3){launch->block_x, launch->block_y, launch->block_z},
                                   launch->shared_bytes, parameters, extra, &operation);
    if (result)
        return result;
    struct LaunchShape *shape = &operation.kernel.shape;
    for (u32 at = 0; at < launch->attribute_count; at++) {
        const struct LaunchAttribute *attribute = launch->attributes + at;
        if (attribute->id == 2 && attribute->value.flag)
            shape->flags |= COOPERATIVE;
        else if (attribute->id == 6 && attribute->value.flag)
            shape->flags |= PROGRAMMATIC;
        else if (attribute->id == 4)
            shape->cluster = attribute->value.extent;
    }
    return issue(launch->stream, &operation);
}

API Result cuLaunchKernelEx(const struct DriverLaunch *launch, struct Function *function, void **parameters,
                            void **extra) {
    return launch_with_attributes(launch, function, parameters, extra);
}

/* Tensor maps. */

enum { MOST_DIMENSIONS = 5, TENSOR_MAP_BYTES = 128 };

struct TiledMap {
    u32 type, rank;
    u64 address, dimensions[MOST_DIMENSIONS], strides[MOST_DIMENSIONS];
    u32 box[MOST_DIMENSIONS], element_strides[MOST_DIMENSIONS];
    u32 interleave, swizzle, promotion, fill;
    int lower[MOST_DIMENSIONS], upper[MOST_DIMENSIONS]; /* corners of im2col */
    u32 channels, pixels, mode, padding;
};
enum { MODE_TILED = 0, MODE_IM2COL = 1 };

static Result encode(void *map, const struct TiledMap *asked) {
    void *reply;
    size_t bytes;
    Result result = request(TENSORMAP, asked, sizeof *asked, NULL, 0, &reply, &bytes);
    if (!result && bytes == TENSOR_MAP_BYTES)
        memcpy(map, reply, TENSOR_MAP_BYTES);
    free(reply);
    return result;
}

static void take_tensor(struct TiledMap *asked, const u64 *dimensions, const u64 *strides, const u32 *element_strides) {
    for (u32 at = 0; at < asked->rank && at < MOST_DIMENSIONS; at++) {
        asked->dimensions[at] = dimensions[at];
        asked->strides[at] = at + 1 < asked->rank ? strides[at] : 0;
        asked->element_strides[at] = element_strides[at];
    }
}

API Result cuTensorMapEncodeTiled(void *map, u32 type, u32 rank, void *address, const u64 *dimensions,
                                  const u64 *strides, const u32 *box, const u32 *element_strides, u32 interleave,
                                  u32 swizzle, u32 promotion, u32 fill) {
    if (rank < 1 || rank > MOST_DIMENSIONS || !dimensions || !strides || !box || !element_strides)
        return INVALID_VALUE;
    struct TiledMap asked = {.type = type, .rank = rank, .address = (u64)address, .interleave = interleave,
                             .swizzle = swizzle, .promotion = promotion, .fill = fill, .mode = MODE_TILED};
    take_tensor(&asked, dimensions, strides, element_strides);
    memcpy(asked.box, box, rank * sizeof *box);
    return encode(map, &asked);
}

API Result cuTensorMapEncodeIm2col(void *map, u32 type, u32 rank, void *address, const u64 *dimensions,
                                   const u64 *strides, const int *lower, const int *upper, u32 channels, u32 pixels,
                                   const u32 *element_strides, u32 interleave, u32 swizzle, u32 promotion, u32 fill) {
    if (rank < 3 || rank > MOST_DIMENSIONS)
        return INVALID_VALUE;
    struct TiledMap asked = {.type = type, .rank = rank, .address = (u64)address, .interleave = interleave,
                             .swizzle = swizzle, .promotion = promotion, .fill = fill, .channels = channels,
                             .pixels = pixels, .mode = MODE_IM2COL};
    take_tensor(&asked, dimensions, strides, element_strides);
    memcpy(asked.lower, lower, (rank - 2) * sizeof *lower);
    memcpy(asked.upper, upper, (rank - 2) * sizeof *upper);
    return encode(map, &asked);
}

API Result cuTensorMapReplaceAddress(void *map, void *address) {
    memcpy(map, &address, sizeof address); /* bytes 0 to 7 hold the address */
    return SUCCESS;
}
