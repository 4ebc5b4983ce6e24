/* A library that exports a thin wrapper of its own copy of the runtime, without symbols, and calls that copy itself, as
 * libcute_dsl_runtime.so does. */
#include <stdio.h>

/* What the copy does where no driver of NVIDIA's is. */
static __attribute__((noinline, noclone, optimize("O2"))) int own_copy(int *count) {
    puts("the copy of the runtime runs");
    *count = -1;
    return 500;
}

__attribute__((noinline, optimize("O2"))) int _cudaGetDeviceCount(int *count) {
    return own_copy(count);
}

int main(void) {
    int wrapped = 0, own = 0;
    int status = _cudaGetDeviceCount(&wrapped) | own_copy(&own);
    puts(!status && wrapped == 1 && own == 1 ? "PASS" : "FAIL");
    return status;
}
