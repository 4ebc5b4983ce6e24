/* Where in the program a launch is: a line of Python, or the frames of C++ as files and offsets, innermost first. */
#include "standin.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Object Object;

/* Functions of the Python that runs the program, if one does (stable ABI, 3.9 and newer). */
static struct {
    int (*is_initialized)(void);
    int (*ensure)(void);
    void (*release)(int);
    Object *(*frame)(void);
    Object *(*back)(Object *);
    Object *(*code)(Object *);
    int (*line)(Object *);
    Object *(*attribute)(Object *, const char *);
    const char *(*text)(Object *);
    void (*decrease)(Object *);
} python;

static bool find_python(void) {
    static int found;
    if (!found) {
        struct {
            void **to;
            const char *name;
        } all[] = {
            {(void **)&python.is_initialized, "Py_IsInitialized"}, {(void **)&python.ensure, "PyGILState_Ensure"},
            {(void **)&python.release, "PyGILState_Release"},      {(void **)&python.frame, "PyEval_GetFrame"},
            {(void **)&python.back, "PyFrame_GetBack"},            {(void **)&python.code, "PyFrame_GetCode"},
            {(void **)&python.line, "PyFrame_GetLineNumber"},      {(void **)&python.attribute, "PyObject_GetAttrString"},
            {(void **)&python.text, "PyUnicode_AsUTF8"},           {(void **)&python.decrease, "Py_DecRef"},
        };
        found = 1;
        for (size_t at = 0; at < sizeof all / sizeof *all; at++)
            if (!(*all[at].to = dlsym(RTLD_DEFAULT, all[at].name)))
                found = -1;
    }
    return found > 0 && python.is_initialized();
}

static void describe_frame(Object *frame, char *site, size_t bytes) {
    Object *code = python.code(frame);
    Object *file = python.attribute(code, "co_filename"), *name = python.attribute(code, "co_name");
    const char *path = file ? python.text(file) : NULL, *function = name ? python.text(name) : NULL;
    if (path && function)
        snprintf(site, bytes, "python\n%s:%d\n%s", path, python.line(frame), function);
    if (file)
        python.decrease(file);
    if (name)
        python.decrease(name);
    python.decrease(code);
}

static bool is_of_a_package(const char *site) {
    return strstr(site, "/site-packages/") || strstr(site, "/dist-packages/") || strstr(site, "python\n<") ||
           strstr(site, "/lib/python3");
}

/* The innermost frame of the user's own code; of a package where there is no other. */
static void python_site(char *site, size_t bytes) {
    int state = python.ensure();
    Object *frame = python.frame(), *owned = NULL;
    char innermost[512] = "";
    for (int depth = 0; frame && depth < 200; depth++) {
        *site = 0;
        describe_frame(frame, site, bytes);
        if (!*innermost)
            snprintf(innermost, sizeof innermost, "%s", site);
        if (*site && !is_of_a_package(site))
            break;
        *site = 0;
        Object *outer = python.back(frame);
        if (owned)
            python.decrease(owned);
        frame = owned = outer;
    }
    if (owned)
        python.decrease(owned);
    if (!*site)
        snprintf(site, bytes, "%s", innermost);
    python.release(state);
}

/* `native`, then a line for each frame outside this library: file, and offset of the call in it. */
static void native_site(char *site, size_t bytes) {
    enum { MOST = 24, SHOWN = 8 };
    void *frames[MOST];
    int count = backtrace(frames, MOST), shown = 0;
    Dl_info self, info;
    dladdr((void *)call_site, &self);
    size_t used = (size_t)snprintf(site, bytes, "native");
    for (int at = 0; at < count && shown < SHOWN && used < bytes; at++)
        if (dladdr(frames[at], &info) && info.dli_fname && info.dli_fbase != self.dli_fbase) {
            u64 offset = (u64)frames[at] - 1 - (u64)info.dli_fbase;
            used += (size_t)snprintf(site + used, bytes - used, "\n%s %#llx", info.dli_fname, (unsigned long long)offset);
            shown++;
        }
}

void call_site(char *site, size_t bytes) {
    *site = 0;
    if (find_python())
        python_site(site, bytes);
    if (!*site)
        native_site(site, bytes);
}
