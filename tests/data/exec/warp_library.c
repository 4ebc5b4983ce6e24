/* What NVIDIA Warp's library exports, called as its Python package does: bodies here stand for its stripped runtime, and
 * end the program unless they are replaced. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CURRENT ((void *)~0ull)
#define STRIPPED(result, name, parameters)                                                                            \
    __attribute__((noinline)) result name parameters {                                                                \
        fprintf(stderr, "%s was not replaced\n", #name);                                                              \
        exit(9);                                                                                                      \
    }
STRIPPED(void *, wp_alloc_device, (void *context, size_t bytes, const char *tag))
STRIPPED(void, wp_free_device, (void *context, void *pointer))
STRIPPED(bool, wp_memcpy_h2d, (void *context, void *to, void *from, size_t bytes, void *stream))
STRIPPED(bool, wp_memcpy_d2h, (void *context, void *to, void *from, size_t bytes, void *stream))
STRIPPED(bool, wp_memcpy_batch, (void *context, void **to, void **from, size_t *bytes, size_t count, void *stream))
STRIPPED(bool, wp_memset_device, (void *context, void *to, int value, size_t bytes, void *stream))
STRIPPED(void, wp_memtile_device, (void *context, void *to, const void *value, size_t bytes, size_t count))
STRIPPED(void, wp_cuda_context_set_stream, (void *context, void *stream, int wait))
STRIPPED(void *, wp_cuda_context_get_stream, (void *context))
STRIPPED(bool, wp_cuda_stream_is_capturing, (void *stream))
STRIPPED(bool, wp_cuda_graph_begin_capture, (void *context, void *stream, int external, int mode))
STRIPPED(bool, wp_cuda_graph_end_capture, (void *context, void *stream, void **graph))
STRIPPED(bool, wp_cuda_graph_create_exec, (void *context, void *stream, void *graph, void **made))
STRIPPED(bool, wp_cuda_graph_launch, (void *graph, void *stream))

int cuInit(unsigned);
int cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
int cuStreamCreate(void **, unsigned);
int cuStreamSynchronize(void *);

/* to[t] = 2 * from[t] */
static const char ptx[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry twice(.param .u64 to, .param .u64 from)\n{\n"
    ".reg .b32 %t, %x; .reg .b64 %to, %from;\n"
    "ld.param.u64 %to, [to]; ld.param.u64 %from, [from];\n"
    "mov.u32 %t, %tid.x; mad.wide.u32 %to, %t, 4, %to; mad.wide.u32 %from, %t, 4, %from;\n"
    "ld.global.u32 %x, [%from]; shl.b32 %x, %x, 1; st.global.u32 [%to], %x; ret;\n}\n";

enum { COUNT = 32, BYTES = 4 * COUNT };
static void *function;

static void check(bool right, int number) {
    if (!right) {
        printf("wrong at %d\n", number);
        exit(1);
    }
}

static void twice(void *to, void *from, void *stream) {
    void *arguments[] = {&to, &from};
    check(!cuLaunchKernel(function, 1, 1, 1, COUNT, 1, 1, 0, stream, arguments, NULL), 0);
}

static void *array(void) {
    return wp_alloc_device(NULL, BYTES, NULL);
}

static void expect(void *from, uint32_t first, uint32_t step, int number) {
    uint32_t host[COUNT];
    check(wp_memcpy_d2h(NULL, host, from, BYTES, CURRENT) && !cuStreamSynchronize(wp_cuda_context_get_stream(NULL)), number);
    for (uint32_t at = 0; at < COUNT; at++)
        check(host[at] == first + at * step, number);
}

int main(void) {
    void *module, *stream, *to, *from, *graph, *executable;
    check(!cuInit(0) && !cuModuleLoadData(&module, ptx) && !cuModuleGetFunction(&function, module, "twice"), 1);
    check(!cuStreamCreate(&stream, 0), 2); /* as Warp makes them: ordered with the default stream */
    wp_cuda_context_set_stream(NULL, stream, 1);
    check(wp_cuda_context_get_stream(NULL) == stream, 3);

    /* An array is dropped right after the launch that reads it, and another one takes the next memory. */
    for (uint32_t round = 0; round < 4; round++) {
        uint32_t host[COUNT];
        for (uint32_t at = 0; at < COUNT; at++)
            host[at] = round * 100 + at;
        to = array(), from = array();
        check(wp_memcpy_h2d(NULL, from, host, BYTES, CURRENT), 4);
        twice(to, from, stream);
        wp_free_device(NULL, from);
        from = array();
        check(wp_memset_device(NULL, from, 0xff, BYTES, CURRENT), 5);
        expect(to, round * 200, 2, 6);
        wp_free_device(NULL, from);
        wp_free_device(NULL, to);
    }

    /* Fills of elements and of tiles, between launches of the same stream. */
    to = array(), from = array();
    uint32_t element = 0x01020304;
    wp_memtile_device(NULL, from, &element, sizeof element, COUNT);
    twice(to, from, stream);
    check(wp_memset_device(NULL, from, 0, BYTES, CURRENT), 7);
    expect(to, 2 * element, 0, 8);
    uint32_t tile[COUNT / 2];
    for (uint32_t at = 0; at < COUNT / 2; at++)
        tile[at] = 5;
    wp_memtile_device(NULL, from, tile, sizeof tile, 2);
    twice(to, from, stream);
    expect(to, 10, 0, 9);
    void *sides_to[] = {from}, *sides_from[] = {to};
    size_t bytes[] = {BYTES};
    check(wp_memcpy_batch(NULL, sides_to, sides_from, bytes, 1, CURRENT), 10);
    expect(from, 10, 0, 11);

    /* A graph with a fill, twice launched. */
    check(wp_cuda_graph_begin_capture(NULL, stream, 0, 1) && wp_cuda_stream_is_capturing(CURRENT), 12);
    twice(to, from, stream);
    twice(from, to, stream);
    check(wp_cuda_graph_end_capture(NULL, stream, &graph) && !wp_cuda_stream_is_capturing(CURRENT), 13);
    check(wp_cuda_graph_create_exec(NULL, stream, graph, &executable), 14);
    for (int launch = 0; launch < 2; launch++)
        check(wp_cuda_graph_launch(executable, CURRENT), 15);
    expect(from, 160, 0, 16);
    puts("PASS");
    return 0;
}
