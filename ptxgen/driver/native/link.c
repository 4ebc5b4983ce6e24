/* Linking: the images that are to be one module are collected, and linked where the module is loaded (link.py). */
#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char MARK[BUNDLE_MARK_BYTES] = "ptxgen-bundle\n";

bool is_bundle(const u8 *image) {
    return !memcmp(image, MARK, sizeof MARK);
}

u64 bundle_bytes(const u8 *bundle) {
    u64 bytes;
    memcpy(&bytes, bundle + sizeof MARK, sizeof bytes);
    return bytes;
}

/* Adds an image to a bundle, which is made if it is NULL: its size, and its bytes up to the next multiple of 8. */
void append_image(u8 **bundle, const void *image, u64 bytes) {
    u64 before = *bundle ? bundle_bytes(*bundle) : sizeof MARK + sizeof(u64);
    u64 after = before + sizeof bytes + ((bytes + 7) & ~7ull);
    *bundle = realloc(*bundle, after);
    memcpy(*bundle, MARK, sizeof MARK);
    memcpy(*bundle + sizeof MARK, &after, sizeof after);
    memcpy(*bundle + before, &bytes, sizeof bytes);
    memset(*bundle + after - 8, 0, bytes ? 8 : 0);
    memcpy(*bundle + before + sizeof bytes, image, bytes);
}

enum { LINK_MAGIC = 0x4c494e4b };
struct Link {
    u32 magic;
    u8 *bundle;
};

API Result cuLinkCreate_v2(u32 count, int *options, void **values, struct Link **made) {
    (void)count, (void)options, (void)values;
    *made = calloc(1, sizeof **made);
    (*made)->magic = LINK_MAGIC;
    return SUCCESS;
}

API Result cuLinkAddData_v2(struct Link *link, int type, const void *data, size_t bytes, const char *name, u32 count,
                            int *options, void **values) {
    (void)type, (void)name, (void)count, (void)options, (void)values;
    if (!link || link->magic != LINK_MAGIC || !data || !bytes)
        return INVALID_VALUE;
    append_image(&link->bundle, data, bytes);
    return SUCCESS;
}

API Result cuLinkAddFile_v2(struct Link *link, int type, const char *path, u32 count, int *options, void **values) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return FILE_NOT_FOUND;
    fseek(file, 0, SEEK_END);
    long bytes = ftell(file);
    rewind(file);
    char *data = malloc(bytes > 0 ? (size_t)bytes : 1);
    Result result = fread(data, 1, (size_t)bytes, file) == (size_t)bytes ? SUCCESS : FILE_NOT_FOUND;
    fclose(file);
    if (!result)
        result = cuLinkAddData_v2(link, type, data, (size_t)bytes, path, count, options, values);
    free(data);
    return result;
}

API Result cuLinkComplete(struct Link *link, void **image, size_t *bytes) {
    if (!link || link->magic != LINK_MAGIC || !link->bundle)
        return INVALID_VALUE;
    *image = link->bundle;
    if (bytes)
        *bytes = bundle_bytes(link->bundle);
    return SUCCESS;
}

API Result cuLinkDestroy(struct Link *link) {
    if (!link || link->magic != LINK_MAGIC)
        return INVALID_VALUE;
    free(link->bundle);
    free(link);
    return SUCCESS;
}
