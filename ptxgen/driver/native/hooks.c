/* Hooks on the dynamic linker and on compilers: PTX is kept where a cubin would be made.
 *
 * An image of ours is the header of an ELF file, a mark and the text (`write_ptx_header`); the emulator alone reads it.
 */
#include "standin.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void write_ptx_header(char *image, size_t text_bytes) {
    memset(image, 0, 64);
    static const u8 identification[9] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x33, 7};
    memcpy(image, identification, sizeof identification);
    image[16] = 2;         /* executable */
    image[18] = (char)190; /* EM_CUDA */
    image[20] = 1;
    u64 end = PTX_HEADER_BYTES + text_bytes; /* the table of sections, which has none: it says how long the image is */
    memcpy(image + 40, &end, sizeof end);
    image[52] = 64;
    memcpy(image + 64, PTX_MARK, sizeof PTX_MARK - 1);
}

typedef void *(*Dlsym)(void *, const char *);

static Dlsym real_dlsym(void) {
    static Dlsym real;
    if (!real) {
        static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
        for (size_t at = 0; !real && at < sizeof versions / sizeof *versions; at++)
            real = (Dlsym)dlvsym(RTLD_NEXT, "dlsym", versions[at]);
    }
    return real;
}

void *next_symbol(const char *name) {
    return real_dlsym()(RTLD_NEXT, name);
}

/* A library named without its folder is looked for where its caller says (RUNPATH), and the caller is us here. */
static void *open_as_caller(const void *caller, const char *name, int flags, void *(*real)(const char *, int)) {
    Dl_info info;
    if (!dladdr(caller, &info) || !info.dli_fname)
        return NULL;
    void *object = real(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD), *found = NULL;
    Dl_serinfo head, *paths = NULL;
    if (object && !dlinfo(object, RTLD_DI_SERINFOSIZE, &head) && (paths = calloc(1, head.dls_size))) {
        paths->dls_size = head.dls_size;
        paths->dls_cnt = head.dls_cnt;
        u32 count = dlinfo(object, RTLD_DI_SERINFO, paths) ? 0 : paths->dls_cnt;
        for (u32 at = 0; !found && at < count; at++) {
            char path[4096];
            if (snprintf(path, sizeof path, "%s/%s", paths->dls_serpath[at].dls_name, name) < (int)sizeof path &&
                !access(path, R_OK))
                found = real(path, flags);
        }
    }
    free(paths);
    if (object)
        dlclose(object);
    return found;
}

API void *dlopen(const char *name, int flags) {
    static void *(*real)(const char *, int);
    if (!real)
        real = next_symbol("dlopen");
    void *found = real(name, flags);
    if (!found && name && !strchr(name, '/') && served()) {
        found = open_as_caller(__builtin_return_address(0), name, flags, real);
        if (!found)
            real(name, flags); /* for dlerror */
    }
    if (found && name)
        patch_new_objects();
    return found;
}

/* NVRTC: the PTX of a program is handed out as its cubin. Options get line information. */

static int (*nvrtc_ptx_size)(void *, size_t *), (*nvrtc_ptx)(void *, char *);
static int (*nvrtc_compile)(void *, int, const char *const *);

static int compile_with_lines(void *program, int count, const char *const *options) {
    const char **all = calloc((size_t)count + 1, sizeof *all);
    memcpy(all, options, (size_t)count * sizeof *all);
    bool has_lines = false;
    for (int at = 0; at < count; at++)
        has_lines |= strstr(options[at], "lineinfo") || strstr(options[at], "device-debug") || !strcmp(options[at], "-G");
    if (!has_lines)
        all[count++] = "-lineinfo";
    int result = nvrtc_compile(program, count, all);
    free(all);
    return result;
}

static int ptx_as_cubin_size(void *program, size_t *bytes) {
    size_t text;
    int error = nvrtc_ptx_size(program, &text);
    if (!error)
        *bytes = PTX_HEADER_BYTES + text;
    return error;
}

static int ptx_as_cubin(void *program, char *image) {
    size_t text;
    int error = nvrtc_ptx_size(program, &text);
    if (error)
        return error;
    write_ptx_header(image, text);
    return nvrtc_ptx(program, image + PTX_HEADER_BYTES);
}

static void *nvrtc_symbol(void *library, const char *name, void *real) {
    if (!strcmp(name, "nvrtcCompileProgram")) {
        nvrtc_compile = real;
        return compile_with_lines;
    }
    if (strcmp(name, "nvrtcGetCUBINSize") && strcmp(name, "nvrtcGetCUBIN"))
        return real;
    nvrtc_ptx_size = real_dlsym()(library, "nvrtcGetPTXSize");
    nvrtc_ptx = real_dlsym()(library, "nvrtcGetPTX");
    if (!nvrtc_ptx_size || !nvrtc_ptx)
        return real;
    return strcmp(name, "nvrtcGetCUBIN") ? (void *)ptx_as_cubin_size : (void *)ptx_as_cubin;
}

/* For programs that are linked to NVRTC these come before the library's own. */

static bool find_nvrtc(void) {
    if (!nvrtc_ptx_size)
        nvrtc_ptx_size = next_symbol("nvrtcGetPTXSize");
    if (!nvrtc_ptx)
        nvrtc_ptx = next_symbol("nvrtcGetPTX");
    if (!nvrtc_compile)
        nvrtc_compile = next_symbol("nvrtcCompileProgram");
    return nvrtc_ptx_size && nvrtc_ptx && nvrtc_compile;
}
enum { NVRTC_INTERNAL_ERROR = 11 };

API int nvrtcCompileProgram(void *program, int count, const char *const *options) {
    return find_nvrtc() ? compile_with_lines(program, count, options) : NVRTC_INTERNAL_ERROR;
}

API int nvrtcGetCUBINSize(void *program, size_t *bytes) {
    return find_nvrtc() ? ptx_as_cubin_size(program, bytes) : NVRTC_INTERNAL_ERROR;
}

API int nvrtcGetCUBIN(void *program, char *image) {
    return find_nvrtc() ? ptx_as_cubin(program, image) : NVRTC_INTERNAL_ERROR;
}

/* nvJitLink: the PTX of link-time optimization, or what was added if that is all PTX, is handed out as the cubin. */

struct Link {
    void *handle;
    char *ptx;
    size_t bytes;
    u8 *bundle; /* all inputs that are PTX */
    int inputs, texts;
    bool optimizes;
    struct Link *next;
};
static struct Link *links;
static pthread_mutex_t links_lock = PTHREAD_MUTEX_INITIALIZER;
enum { PTX_INPUT = 2, MOST_OPTIONS = 128 };

static int (*link_create)(void **, u32, const char **);
static int (*link_add)(void *, int, const void *, size_t, const char *);
static int (*link_cubin_size)(void *, size_t *), (*link_cubin)(void *, void *);
static int (*link_ptx_size)(void *, size_t *), (*link_ptx)(void *, char *);

static struct Link *link_of(void *handle) {
    pthread_mutex_lock(&links_lock);
    struct Link *found = links;
    while (found && found->handle != handle)
        found = found->next;
    pthread_mutex_unlock(&links_lock);
    return found;
}

static int create_with_ptx(void **handle, u32 count, const char **options) {
    const char *all[MOST_OPTIONS];
    bool optimizes = false, makes_ptx = false;
    u32 kept = 0;
    for (u32 at = 0; at < count && kept < MOST_OPTIONS - 1; at++) {
        optimizes |= !strcmp(options[at], "-lto");
        makes_ptx |= !strcmp(options[at], "-ptx");
        all[kept++] = options[at];
    }
    if (optimizes && !makes_ptx)
        all[kept++] = "-ptx";
    int error = link_create(handle, kept, all);
    if (error)
        return error;
    struct Link *made = calloc(1, sizeof *made);
    made->handle = *handle;
    made->optimizes = optimizes;
    pthread_mutex_lock(&links_lock);
    made->next = links;
    links = made;
    pthread_mutex_unlock(&links_lock);
    return 0;
}

/* libcudadevrt.a is machine code, which -ptx refuses; the emulator has its functions (device_runtime.py). */
static bool is_device_runtime(const void *data, size_t bytes) {
    static const char archive[] = "!<arch>\n", member[] = "cuda_device_runtime.o";
    return bytes > sizeof archive && !memcmp(data, archive, sizeof archive - 1) &&
           memmem(data, bytes, member, sizeof member - 1);
}

static int keep_ptx(void *handle, int type, const void *data, size_t bytes, const char *name) {
    struct Link *link = link_of(handle);
    if (link && link->optimizes && is_device_runtime(data, bytes))
        return 0;
    if (link) {
        link->inputs++;
        if (type == PTX_INPUT) {
            link->texts++;
            append_image(&link->bundle, data, bytes);
            free(link->ptx);
            link->ptx = calloc(1, bytes + 1);
            memcpy(link->ptx, data, bytes);
            link->bytes = strlen(link->ptx) + 1;
        }
    }
    return link_add(handle, type, data, bytes, name);
}

static bool has_ptx(struct Link *link) {
    if (!link)
        return false;
    if (!link->optimizes)
        return link->texts && link->inputs == link->texts;
    size_t bytes;
    if (link_ptx_size(link->handle, &bytes))
        return false;
    free(link->ptx);
    link->ptx = calloc(1, bytes + 1);
    link->bytes = bytes;
    return !link_ptx(link->handle, link->ptx);
}

/* Several modules are linked where the program loads them (link.py). */
static bool is_linked_late(const struct Link *link) {
    return !link->optimizes && link->texts > 1;
}

static int linked_size(void *handle, size_t *bytes) {
    struct Link *link = link_of(handle);
    if (!has_ptx(link))
        return link_cubin_size(handle, bytes);
    *bytes = is_linked_late(link) ? bundle_bytes(link->bundle) : PTX_HEADER_BYTES + link->bytes;
    return 0;
}

static int linked_image(void *handle, void *image) {
    struct Link *link = link_of(handle);
    if (!link || !link->ptx || (!link->optimizes && link->inputs != link->texts))
        return link_cubin(handle, image);
    if (is_linked_late(link)) {
        memcpy(image, link->bundle, bundle_bytes(link->bundle));
        return 0;
    }
    write_ptx_header(image, link->bytes);
    memcpy((char *)image + PTX_HEADER_BYTES, link->ptx, link->bytes);
    return 0;
}

/* Names carry a version: `__nvJitLinkCreate_13_0`, or `nvJitLinkCreate`. */
static void *link_symbol(void *library, const char *name, void *real) {
    const char *plain = name + (name[0] == '_' ? 2 : 0), *action = plain + strlen("nvJitLink");
    char other[128];
    const char *suffix = strchr(action, '_') ? strchr(action, '_') : "";
    snprintf(other, sizeof other, "%.*snvJitLinkGetLinkedPtxSize%s", (int)(plain - name), "__", suffix);
    if (!link_ptx_size)
        link_ptx_size = real_dlsym()(library, other);
    snprintf(other, sizeof other, "%.*snvJitLinkGetLinkedPtx%s", (int)(plain - name), "__", suffix);
    if (!link_ptx)
        link_ptx = real_dlsym()(library, other);
    if (!link_ptx_size || !link_ptx)
        return real;
    if (!strncmp(action, "Create", 6)) {
        link_create = real;
        return create_with_ptx;
    }
    if (!strncmp(action, "AddData", 7)) {
        link_add = real;
        return keep_ptx;
    }
    if (!strncmp(action, "GetLinkedCubinSize", 18)) {
        link_cubin_size = real;
        return linked_size;
    }
    if (!strncmp(action, "GetLinkedCubin", 14)) {
        link_cubin = real;
        return linked_image;
    }
    return real;
}

API void *dlsym(void *library, const char *name) {
    /* RTLD_NEXT is relative to the caller, which is known by where the call returns to: this must be a tail call. */
    if (library == RTLD_NEXT) {
        Dlsym call = real_dlsym();
        return call(library, name);
    }
    void *real = real_dlsym()(library, name);
    if (!real || !served())
        return real;
    if (!strncmp(name, "nvrtc", 5)) {
        bool is_ours = real == (void *)nvrtcCompileProgram || real == (void *)nvrtcGetCUBIN ||
                       real == (void *)nvrtcGetCUBINSize;
        if (!is_ours)
            return nvrtc_symbol(library, name, real);
        return find_nvrtc() ? real : NULL; /* NULL: no NVRTC is loaded for all, and the caller loads its own */
    }
    if (!strncmp(name, "nvJitLink", 9) || !strncmp(name, "__nvJitLink", 11))
        return link_symbol(library, name, real);
    return real;
}
