/* Names: cuGetProcAddress, names and texts of errors. */
#include "standin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The newest variant of a function up to a version; a name with its suffix (`cuMemAlloc_v2`) stands for itself. */
void *driver_function(const char *name, int version, bool *known) {
    void *best = NULL;
    *known = false;
    for (const struct DriverName *each = driver_names; each->name; each++)
        if (!strcmp(each->name, name)) {
            *known = true;
            if (each->version <= version)
                best = each->function;
        }
    if (*known)
        return best;
    for (const struct DriverName *each = driver_names; each->name; each++)
        if (!strcmp(each->exported, name)) {
            *known = true;
            return each->function;
        }
    void *variant = thread_stream_variant(name);
    *known = variant != NULL;
    return variant;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct RuntimeName *)a)->name, ((const struct RuntimeName *)b)->name);
}

void *runtime_function(const char *name) {
    static size_t count;
    if (!count)
        while (runtime_names[count].name)
            count++;
    struct RuntimeName key = {name, NULL};
    const struct RuntimeName *found = bsearch(&key, runtime_names, count, sizeof key, by_name);
    if (found)
        return found->function;
    return thread_stream_variant(name);
}

enum { FOUND = 0, UNKNOWN_NAME = 1, VERSION_TOO_OLD = 2 };

API Result cuGetProcAddress_v2(const char *name, void **function, int version, u64 flags, int *status) {
    enum { THREAD_STREAMS = 2 }; /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
    bool known;
    *function = driver_function(name, version, &known);
    if (*function && flags & THREAD_STREAMS)
        *function = thread_stream_variant_of(*function);
    if (status)
        *status = *function ? FOUND : known ? VERSION_TOO_OLD : UNKNOWN_NAME;
    return *function || status ? SUCCESS : NOT_FOUND;
}

API Result cuGetProcAddress(const char *name, void **function, int version, u64 flags) {
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

/* Libraries that ask for tables of the driver and do well without them. */
static bool does_without_tables(const char *path) {
    return strstr(path, "nvrtc") || strstr(path, "nvJitLink") || strstr(path, "nvvm");
}

/* Private tables do not exist here. A runtime of NVIDIA's that was not replaced asks for them: say what to do. */
API Result cuGetExportTable(const void **table, const void *id) {
    (void)id;
    *table = NULL;
    Dl_info caller;
    if (dladdr(__builtin_return_address(0), &caller) && caller.dli_fname && !does_without_tables(caller.dli_fname) &&
        !was_patched(caller.dli_fbase))
        note("unpatched-runtime %s", caller.dli_fname);
    return NOT_FOUND;
}

/* Errors. */

struct ErrorName {
    Result error;
    const char *driver, *runtime, *text;
};
#define ERROR(number, driver, runtime) {number, driver, runtime, NULL},
static const struct ErrorName error_names[] = {
#include "errors.h"
    {-1, NULL, NULL, NULL},
};

static const struct ErrorName *error_of(Result error) {
    const struct ErrorName *each = error_names;
    while (each->error >= 0 && each->error != error)
        each++;
    return each->error < 0 ? NULL : each;
}

const char *error_name(Result error, bool runtime) {
    const struct ErrorName *found = error_of(error);
    if (!found)
        return NULL;
    return runtime ? found->runtime : found->driver;
}

/* Texts that programs and tests of them look for are spelled as users know them; other errors are named. */
const char *error_text(Result error) {
    switch (error) {
    case SUCCESS: return "no error";
    case INVALID_VALUE: return "invalid argument";
    case OUT_OF_MEMORY: return "out of memory";
    case NOT_INITIALIZED: return "initialization error";
    case 9: return "invalid configuration argument";
    case INVALID_SYMBOL: return "invalid device symbol";
    case INVALID_DEVICE_FUNCTION: return "invalid device function";
    case NO_DEVICE: return "no CUDA-capable device is detected";
    case INVALID_DEVICE: return "invalid device ordinal";
    case INVALID_IMAGE: return "device kernel image is invalid";
    case INVALID_CONTEXT: return "invalid device context";
    case NO_BINARY_FOR_GPU: return "no kernel image is available for execution on the device";
    case INVALID_PTX: return "a PTX JIT compilation failed";
    case FILE_NOT_FOUND: return "file not found";
    case INVALID_HANDLE: return "invalid resource handle";
    case NOT_FOUND: return "named symbol not found";
    case NOT_READY: return "device not ready";
    case 700: return "an illegal memory access was encountered";
    case 701: return "too many resources requested for launch";
    case 702: return "the launch timed out and was terminated";
    case 710: return "device-side assert triggered";
    case 715: return "an illegal instruction was encountered";
    case 716: return "misaligned address";
    case 719: return "unspecified launch failure";
    case 720: return "too many blocks in cooperative launch";
    case NOT_SUPPORTED: return "operation not supported";
    case CAPTURE_UNSUPPORTED: return "operation not permitted when stream is capturing";
    default: {
        const char *name = error_name(error, true);
        return name ? name : "unrecognized error code";
    }
    }
}

API Result cuGetErrorName(Result error, const char **name) {
    *name = error_name(error, false);
    return *name ? SUCCESS : INVALID_VALUE;
}

API Result cuGetErrorString(Result error, const char **text) {
    *text = error_of(error) ? error_text(error) : NULL;
    return *text ? SUCCESS : INVALID_VALUE;
}

/* The driver's log of errors: what is wrong is said on standard error, so that the log stays empty. */

static char log_handle;

API Result cuLogsRegisterCallback(void *callback, void *data, void **handle) {
    (void)callback, (void)data;
    if (handle)
        *handle = &log_handle;
    return SUCCESS;
}

API Result cuLogsUnregisterCallback(void *handle) {
    return handle == &log_handle ? SUCCESS : INVALID_VALUE;
}

API Result cuLogsCurrent(u32 *place, u32 flags) {
    (void)flags;
    *place = 0;
    return SUCCESS;
}

API Result cuLogsDumpToMemory(u32 *place, char *buffer, size_t *bytes, u32 flags) {
    (void)place, (void)flags;
    if (!bytes)
        return INVALID_VALUE;
    if (buffer && *bytes)
        *buffer = 0;
    *bytes = 0;
    return SUCCESS;
}
