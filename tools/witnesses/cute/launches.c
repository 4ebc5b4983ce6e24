/* Stands in for the CUDA runtime that CuTe DSL's host code calls: every call succeeds, and a launch is handed to Python. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct { uint32_t grid[3], block[3]; size_t shared_bytes; void *stream, *attributes; uint32_t attribute_count; } Config;
typedef void (*Callback)(const char *kernel, const Config *config, void **arguments);
static Callback callback;

void record_launches(Callback given) { callback = given; }

int _cudaLibraryLoadData(void **library) { *library = &callback; return 0; }
int _cudaLibraryGetKernel(void **kernel, void *library, const char *name) { (void)library; *kernel = strdup(name); return 0; }
int _cudaGetDevice(int *device) { *device = 0; return 0; }
int _cuKernelGetAttribute(int *value) { *value = 0; return 0; }
int _cudaFuncSetAttribute(void) { return 0; }
int _cudaKernelSetAttributeForDevice(void) { return 0; }
/* 97: shared memory that a block can have on request; 16: multiprocessors. */
int _cudaDeviceGetAttribute(int *value, int attribute) { *value = attribute == 97 ? 232448 : attribute == 16 ? 148 : 1; return 0; }
int _cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks) { *blocks = 1; return 0; }
int _cudaLaunchKernelEx(const Config *config, const char *kernel, void **arguments) { callback(kernel, config, arguments); return 0; }
int _cudaLaunchKernel(const char *kernel, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz,
                      void *stream, size_t shared_bytes, void **arguments) {
    Config config = {{gx, gy, gz}, {bx, by, bz}, shared_bytes, stream, NULL, 0};
    callback(kernel, &config, arguments);
    return 0;
}
