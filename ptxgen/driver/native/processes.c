/* Hooks on exec: a ptxas that the program runs leaves its PTX in the cubin that it makes (ptxas.c). */
#include "standin.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static const char *wrapper(void) {
    const char *path = getenv("PTXGEN_EXEC_PTXAS");
    return path && *path ? path : NULL;
}

static bool is_ptxas(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return !strcmp(name, "ptxas") || !strcmp(name, "ptxas-blackwell");
}

/* A program named without its folder, in PATH. */
static bool search(const char *name, char *found, size_t bytes) {
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        if (snprintf(found, bytes, "%.*s/%s", (int)length, path, name) < (int)bytes && !access(found, X_OK))
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

/* The arguments with the path of the real program first; freed with the process image. */
static char **with_program(const char *path, char *const *arguments) {
    size_t count = 0;
    while (arguments[count])
        count++;
    char **made = calloc(count + 2, sizeof *made);
    memcpy(made + 1, arguments + 1, (count ? count - 1 : 0) * sizeof *made);
    made[0] = strdup(path);
    return made;
}

typedef int (*Execve)(const char *, char *const *, char *const *);

API int execve(const char *path, char *const *arguments, char *const *environment) {
    static Execve real;
    if (!real)
        real = next_symbol("execve");
    if (wrapper() && is_ptxas(path))
        return real(wrapper(), with_program(path, arguments), environment);
    return real(path, arguments, environment);
}

API int execv(const char *path, char *const *arguments) {
    return execve(path, arguments, environ);
}

API int execvpe(const char *name, char *const *arguments, char *const *environment) {
    static Execve real;
    if (!real)
        real = next_symbol("execvpe");
    char path[PATH_MAX];
    if (wrapper() && is_ptxas(name)) {
        if (strchr(name, '/'))
            return execve(name, arguments, environment);
        if (search(name, path, sizeof path))
            return execve(path, arguments, environment);
    }
    return real(name, arguments, environment);
}

API int execvp(const char *name, char *const *arguments) {
    return execvpe(name, arguments, environ);
}

typedef int (*Spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                     char *const *, char *const *);

API int posix_spawn(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
                    const posix_spawnattr_t *attributes, char *const *arguments, char *const *environment) {
    static Spawn real;
    if (!real)
        real = next_symbol("posix_spawn");
    if (wrapper() && is_ptxas(path))
        return real(child, wrapper(), actions, attributes, with_program(path, arguments), environment);
    return real(child, path, actions, attributes, arguments, environment);
}

API int posix_spawnp(pid_t *child, const char *name, const posix_spawn_file_actions_t *actions,
                     const posix_spawnattr_t *attributes, char *const *arguments, char *const *environment) {
    static Spawn real;
    if (!real)
        real = next_symbol("posix_spawnp");
    char path[PATH_MAX];
    if (wrapper() && is_ptxas(name)) {
        if (strchr(name, '/'))
            return posix_spawn(child, name, actions, attributes, arguments, environment);
        if (search(name, path, sizeof path))
            return posix_spawn(child, path, actions, attributes, arguments, environment);
    }
    return real(child, name, actions, attributes, arguments, environment);
}
