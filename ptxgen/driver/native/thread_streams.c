/* Functions for programs whose threads have default streams of their own (nvcc --default-stream per-thread).
 *
 * Such programs call variants whose names end in _ptsz or _ptds. Each notes that the process has such streams, so that
 * the handle 0 means the thread's own from then on, and goes on in the function that it is a variant of. A process that
 * mixes both kinds of code is taken for one whose threads have such streams.
 */
#include "standin.h"

#include <string.h>

bool has_thread_streams;

#if defined(__x86_64__)
#define NOTE_AND_GO_ON(name)                                                                                          \
    "movb $1, has_thread_streams(%rip)\n"                                                                             \
    "jmp " #name "@PLT\n"
#elif defined(__aarch64__)
#define NOTE_AND_GO_ON(name)                                                                                          \
    "adrp x16, has_thread_streams\n"                                                                                  \
    "mov w17, #1\n"                                                                                                   \
    "strb w17, [x16, #:lo12:has_thread_streams]\n"                                                                    \
    "b " #name "\n"
#endif

/* Written in assembly, since it passes on the arguments of any function. */
#define THREAD_STREAM_VARIANT(name, suffix)                                                                           \
    extern void name(void);                                                                                           \
    API void name##suffix(void);                                                                                      \
    __asm__(".text\n"                                                                                                 \
            ".p2align 4\n"                                                                                            \
            ".globl " #name #suffix "\n"                                                                              \
            ".type " #name #suffix ", %function\n" #name #suffix ":\n" NOTE_AND_GO_ON(name) ".size " #name #suffix    \
            ", .-" #name #suffix "\n");
#include "thread_stream_variants.h"

struct Variant {
    const char *name;
    void *plain, *variant;
};
#undef THREAD_STREAM_VARIANT
#define THREAD_STREAM_VARIANT(name, suffix) {#name #suffix, (void *)name, (void *)name##suffix},
static const struct Variant variants[] = {
#include "thread_stream_variants.h"
    {NULL, NULL, NULL},
};

void *thread_stream_variant(const char *name) {
    for (const struct Variant *each = variants; each->name; each++)
        if (!strcmp(each->name, name))
            return each->variant;
    return NULL;
}

void *thread_stream_variant_of(void *function) {
    for (const struct Variant *each = variants; each->name; each++)
        if (each->plain == function)
            return each->variant;
    return function;
}
