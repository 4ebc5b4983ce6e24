/* Runs the real ptxas (argv[0]), then adds the PTX to the cubin: before the table of sections, which moves after it.
 *
 * So registers, spills and errors are those of ptxas, and other tools take the cubin as it is.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PTX_MARK "//ptxgen-ptx\n"
enum { TABLE_AT = 40, TABLE_ENTRY = 58, TABLE_COUNT = 60, FAILED = 1, NOT_RUN = 127 };

static char *read_file(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *data = size < 0 ? NULL : calloc(1, (size_t)size + 1);
    if (data && fread(data, 1, (size_t)size, file) != (size_t)size) {
        free(data);
        data = NULL;
    }
    fclose(file);
    *bytes = (size_t)size;
    return data;
}

static uint64_t number(const char *at, size_t bytes) {
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    return value;
}

static int add_text(const char *cubin_path, const char *ptx_path) {
    size_t cubin_bytes, text_bytes;
    char *cubin = read_file(cubin_path, &cubin_bytes), *text = read_file(ptx_path, &text_bytes);
    if (!cubin || !text || cubin_bytes < 64 || memcmp(cubin, "\x7f" "ELF", 4))
        return 0; /* such as -c for a relocatable file elsewhere: it is left as it is */
    uint64_t table = number(cubin + TABLE_AT, 8);
    size_t table_bytes = number(cubin + TABLE_ENTRY, 2) * number(cubin + TABLE_COUNT, 2);
    if (table + table_bytes > cubin_bytes)
        return 0;
    size_t text_end = cubin_bytes + sizeof PTX_MARK - 1 + text_bytes + 1;
    uint64_t moved = (text_end + 7) / 8 * 8;
    char *made = calloc(1, moved + table_bytes);
    memcpy(made, cubin, cubin_bytes);
    memcpy(made + cubin_bytes, PTX_MARK, sizeof PTX_MARK - 1);
    memcpy(made + cubin_bytes + sizeof PTX_MARK - 1, text, text_bytes);
    memcpy(made + moved, cubin + table, table_bytes);
    memcpy(made + TABLE_AT, &moved, sizeof moved);
    FILE *file = fopen(cubin_path, "wb");
    if (!file || fwrite(made, 1, moved + table_bytes, file) != moved + table_bytes || fclose(file)) {
        fprintf(stderr, "ptxgen exec: cannot write %s\n", cubin_path);
        return FAILED;
    }
    return 0;
}

/* XLA's files have no suffix. */
static int is_ptx(const char *path) {
    char begin[8192];
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;
    size_t bytes = fread(begin, 1, sizeof begin - 1, file);
    fclose(file);
    begin[bytes] = 0;
    return strstr(begin, ".version") && strstr(begin, ".target");
}

int main(int count, char **arguments) {
    const char *output = "elf.o", *input = NULL;
    for (int at = 1; at < count; at++) {
        const char *word = arguments[at];
        if ((!strcmp(word, "-o") || !strcmp(word, "--output-file")) && at + 1 < count)
            output = arguments[++at];
        else if (!strncmp(word, "--output-file=", 14))
            output = word + 14;
        else if (word[0] != '-' && is_ptx(word))
            input = word;
    }
    pid_t child = fork();
    if (!child) {
        unsetenv("LD_PRELOAD");
        extern char **environ;
        syscall(SYS_execve, arguments[0], arguments, environ); /* not through our own hook */
        fprintf(stderr, "ptxgen exec: cannot run %s\n", arguments[0]);
        _exit(NOT_RUN);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return FAILED;
    if (!WIFEXITED(status) || WEXITSTATUS(status) || !input)
        return WIFEXITED(status) ? WEXITSTATUS(status) : FAILED;
    return add_text(output, input);
}
