/* Replaces copies of NVIDIA's runtime inside programs and libraries.
 *
 * Shared ones are replaced by preloading this library. Static ones keep their symbols in most programs: after an object
 * is loaded, each public function of the runtime in it begins with a jump to ours. A library that is preloaded is
 * initialized before the program, so registration of kernels is replaced, too.
 */
#include "standin.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Functions of other names that a module of a stack replaces; `lookup` returns NULL for what it does not. */
void *stack_function(const char *name);

#if defined(__x86_64__)
enum { JUMP_BYTES = 14, ALIGNMENT = 16 };
static void write_jump(char *at, void *to) {
    static const u8 jump[6] = {0xff, 0x25}; /* jmp [rip + 0], whose operand follows */
    memcpy(at, jump, sizeof jump);
    memcpy(at + sizeof jump, &to, sizeof to);
}
/* Where a function that only jumps goes on; NULL for others. */
static char *jumps_to(char *at) {
    static const u8 landing[4] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */
    if (!memcmp(at, landing, sizeof landing))
        at += sizeof landing;
    if ((u8)*at == 0xeb) /* jmp rel8 */
        return at + 2 + (signed char)at[1];
    int distance;
    memcpy(&distance, at + 1, sizeof distance);
    return (u8)*at == 0xe9 ? at + 5 + distance : NULL; /* jmp rel32 */
}
#elif defined(__aarch64__)
enum { JUMP_BYTES = 16, ALIGNMENT = 4 };
static void write_jump(char *at, void *to) {
    static const u32 jump[2] = {0x58000050, 0xd61f0200}; /* ldr x16, #8; br x16 */
    memcpy(at, jump, sizeof jump);
    memcpy(at + sizeof jump, &to, sizeof to);
    __builtin___clear_cache(at, at + JUMP_BYTES);
}
/* Where a function that only jumps goes on; NULL for others. */
static char *jumps_to(char *at) {
    u32 instruction;
    memcpy(&instruction, at, sizeof instruction);
    if (instruction >> 26 != 5) /* b */
        return NULL;
    return at + ((int)(instruction << 6) >> 4);
}
#else
#error "ptxgen exec needs x86-64 or aarch64"
#endif

static bool replace(char *at, void *to) {
    u64 page = (u64)sysconf(_SC_PAGESIZE), first = (u64)at & ~(page - 1);
    size_t bytes = ((u64)at + JUMP_BYTES - first + page - 1) & ~(page - 1);
    if (mprotect((void *)first, bytes, PROT_READ | PROT_WRITE | PROT_EXEC))
        return false;
    write_jump(at, to);
    return !mprotect((void *)first, bytes, PROT_READ | PROT_EXEC);
}

/* What a function of an object is replaced by. Libraries whose runtime is stripped export thin wrappers `_cudaX`. */
static void *replacement(const char *name) {
    bool known;
    if (!strncmp(name, "cuda", 4) || !strncmp(name, "__cuda", 6))
        return runtime_function(name);
    if (!strncmp(name, "_cuda", 5))
        return runtime_function(name + 1);
    if (!strncmp(name, "_cu", 3) && name[3] >= 'A' && name[3] <= 'Z')
        return driver_function(name + 1, 1 << 30, &known);
    return stack_function(name);
}

/* Objects in which something was replaced, by where they are loaded. */
static u64 patched[256];
static size_t patched_count;

bool was_patched(const void *base) {
    for (size_t at = 0; at < patched_count; at++)
        if (patched[at] == (u64)base)
            return true;
    return false;
}

bool has_cuda_12;

static void patch_symbols(const char *file, const Elf64_Shdr *table, const Elf64_Shdr *strings, u64 base) {
    const Elf64_Sym *symbols = (const Elf64_Sym *)(file + table->sh_offset);
    for (size_t at = 0; at < table->sh_size / sizeof *symbols; at++) {
        const Elf64_Sym *each = symbols + at;
        if (!each->st_value || ELF64_ST_TYPE(each->st_info) != STT_FUNC || each->st_shndx == SHN_UNDEF)
            continue;
        /* A function shorter than the jump is followed by padding up to where the next may begin. Those without a size
         * are written in assembly: XLA's, which load the shared runtime (which is ours) and then return into themselves. */
        if (!each->st_size || (each->st_size < JUMP_BYTES && each->st_value % ALIGNMENT))
            continue;
        const char *name = file + strings->sh_offset + each->st_name;
        has_cuda_12 |= !strcmp(name, "cudaGetDeviceProperties_v2");
        void *to = replacement(name);
        /* The library itself calls not the wrapper but what that wraps. */
        char *wrapped = to && name[0] == '_' && name[1] == 'c' ? jumps_to((char *)base + each->st_value) : NULL;
        if (wrapped)
            replace(wrapped, to);
        if (to && replace((char *)base + each->st_value, to) && !was_patched((void *)base) &&
            patched_count < sizeof patched / sizeof *patched)
            patched[patched_count++] = base;
    }
}

static void patch_file(const char *path, u64 base) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (descriptor < 0)
        return;
    char *file = MAP_FAILED;
    if (!fstat(descriptor, &status) && status.st_size > (off_t)sizeof(Elf64_Ehdr))
        file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
    if (file == MAP_FAILED)
        return;
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file;
    size_t end = header->e_shoff + (size_t)header->e_shnum * sizeof(Elf64_Shdr);
    if (!memcmp(file, ELFMAG, SELFMAG) && header->e_shoff && end <= (size_t)status.st_size) {
        const Elf64_Shdr *sections = (const Elf64_Shdr *)(file + header->e_shoff);
        for (size_t at = 0; at < header->e_shnum; at++)
            if (sections[at].sh_type == SHT_SYMTAB || sections[at].sh_type == SHT_DYNSYM)
                patch_symbols(file, sections + at, sections + sections[at].sh_link, base);
    }
    munmap(file, (size_t)status.st_size);
}

/* Objects that were looked at, by the address of their program headers. */
static const void **seen;
static size_t seen_count, seen_capacity;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_new(const void *headers) {
    for (size_t at = 0; at < seen_count; at++)
        if (seen[at] == headers)
            return false;
    if (seen_count == seen_capacity) {
        seen_capacity = seen_capacity ? 2 * seen_capacity : 256;
        seen = realloc(seen, seen_capacity * sizeof *seen);
    }
    seen[seen_count++] = headers;
    return true;
}

/* Libraries that have no runtime in them, among them our own: the symbol that this finds is in it. */
static bool is_left_alone(const char *path, const struct dl_phdr_info *object) {
    Dl_info self;
    if (dladdr((void *)patch_new_objects, &self) && (u64)self.dli_fbase == object->dlpi_addr)
        return true;
    static const char *const names[] = {"/libc.so", "/libm.so", "/ld-linux", "/libpthread.so", "/libdl.so", "linux-vdso",
                                        "/libstdc++.so", "/libgcc_s.so", "/libpython3"};
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
        if (strstr(path, names[at]))
            return true;
    return false;
}

static int patch_object(struct dl_phdr_info *object, size_t size, void *data) {
    (void)size, (void)data;
    if (!is_new(object->dlpi_phdr))
        return 0;
    bool is_program = seen_count == 1;
    const char *path = is_program ? "/proc/self/exe" : object->dlpi_name;
    if (path && *path && !is_left_alone(path, object))
        patch_file(path, object->dlpi_addr);
    return 0;
}

void patch_new_objects(void) {
    if (!served())
        return;
    pthread_mutex_lock(&lock);
    dl_iterate_phdr(patch_object, NULL);
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor(200))) static void patch_at_start(void) {
    patch_new_objects();
}

/* For functions that only their addresses lead to (modules of Cython): 1 if the name has a replacement. */
API int ptxgen_replace_function(void *at, const char *name) {
    void *to = replacement(name);
    if (!to && name[0] == '_')
        to = replacement(name + 1);
    return to && replace(at, to);
}
