/* Memory and events that processes share. All processes of a program map one heap at one address, so that a handle of
 * memory is its address. */
#include "standin.h"

#include <stdlib.h>
#include <string.h>

enum { HANDLE_BYTES = 64 };
struct Handle {
    u64 magic, value;
    char rest[HANDLE_BYTES - 16];
};
static const u64 MEMORY_HANDLE = 0x70747867656d656d, EVENT_HANDLE = 0x7074786765766e74;

static void write_handle(struct Handle *handle, u64 magic, u64 value) {
    memset(handle, 0, sizeof *handle);
    handle->magic = magic;
    handle->value = value;
}

/* What this process has opened: to free it here does not free it for its owner. */
static struct Import {
    u64 address;
    struct Import *next;
} *imports;
static pthread_mutex_t imports_lock = PTHREAD_MUTEX_INITIALIZER;

bool forget_import(u64 address) {
    pthread_mutex_lock(&imports_lock);
    struct Import **at = &imports, *found;
    while (*at && (*at)->address != address)
        at = &(*at)->next;
    found = *at;
    if (found)
        *at = found->next;
    pthread_mutex_unlock(&imports_lock);
    free(found);
    return found != NULL;
}

API Result cuIpcGetMemHandle(struct Handle *handle, u64 address) {
    struct Range found;
    if (!find_range(address, &found))
        return INVALID_VALUE;
    write_handle(handle, MEMORY_HANDLE, found.address);
    return SUCCESS;
}

API Result cuIpcOpenMemHandle_v2(u64 *address, struct Handle handle, u32 flags) {
    (void)flags;
    Result result = connect_emulator();
    struct Range found;
    if (result)
        return result;
    if (handle.magic != MEMORY_HANDLE || !find_range(handle.value, &found))
        return INVALID_VALUE;
    *address = handle.value;
    struct Import *made = malloc(sizeof *made);
    pthread_mutex_lock(&imports_lock);
    *made = (struct Import){handle.value, imports};
    imports = made;
    pthread_mutex_unlock(&imports_lock);
    return SUCCESS;
}

API Result cuIpcOpenMemHandle(u64 *address, struct Handle handle, u32 flags) {
    return cuIpcOpenMemHandle_v2(address, handle, flags);
}

API Result cuIpcCloseMemHandle(u64 address) {
    return forget_import(address) ? SUCCESS : INVALID_VALUE;
}

/* Events of other processes: a word in the shared heap says whether the event was recorded. What it stands for has run
 * by then: an event with a handle is recorded when all before it in its stream has. */

API Result cuIpcGetEventHandle(struct Handle *handle, struct Event *event) {
    if (!event || !event->shared)
        return INVALID_HANDLE;
    write_handle(handle, EVENT_HANDLE, event->shared);
    return SUCCESS;
}

Result cuEventCreate(struct Event **event, u32 flags);

API Result cuIpcOpenEventHandle(struct Event **event, struct Handle handle) {
    Result result = connect_emulator();
    if (result)
        return result;
    if (handle.magic != EVENT_HANDLE)
        return INVALID_HANDLE;
    result = cuEventCreate(event, 0);
    (*event)->shared = handle.value;
    return result;
}
