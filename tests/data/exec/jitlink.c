/* A library in the place of nvJitLink that links nothing: what ptxgen exec hands out must come from its inputs. */
#include <stddef.h>
#include <string.h>

enum { WRONG_INPUT = 12, NOTHING = 5 };

int nvJitLinkCreate(void **handle, unsigned count, const char **options) {
    static int number;
    (void)count, (void)options;
    *handle = &number;
    return 0;
}

int nvJitLinkAddData(void *handle, int type, const void *data, size_t bytes, const char *name) {
    (void)handle, (void)type, (void)name;
    return bytes > 8 && !memcmp(data, "!<arch>\n", 8) ? WRONG_INPUT : 0;
}

int nvJitLinkGetLinkedCubinSize(void *handle, size_t *bytes) {
    (void)handle;
    *bytes = 0;
    return NOTHING;
}

int nvJitLinkGetLinkedCubin(void *handle, void *image) {
    (void)handle, (void)image;
    return NOTHING;
}

int nvJitLinkGetLinkedPtxSize(void *handle, size_t *bytes) {
    (void)handle;
    *bytes = 0;
    return NOTHING;
}

int nvJitLinkGetLinkedPtx(void *handle, char *text) {
    (void)handle, (void)text;
    return NOTHING;
}
