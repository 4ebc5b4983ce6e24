/* Objects of the program that live as long as a graph refers to them. Graphs are kept (graph.c), so that what one of
 * them retains is destroyed only where the program releases it from the graph.
 */
#include "runtime.h"
#include "standin.h"

#include <stdlib.h>

struct UserObject {
    void *data;
    void (*destroy)(void *);
    u32 references;
};
enum { MOVES_REFERENCES = 1 };

API Result cuUserObjectCreate(struct UserObject **made, void *data, void (*destroy)(void *), u32 count, u32 flags) {
    (void)flags;
    if (!made || !destroy || !count)
        return INVALID_VALUE;
    *made = malloc(sizeof **made);
    **made = (struct UserObject){data, destroy, count};
    return SUCCESS;
}

API Result cuUserObjectRetain(struct UserObject *object, u32 count) {
    if (!object || !count)
        return INVALID_VALUE;
    __atomic_add_fetch(&object->references, count, __ATOMIC_RELAXED);
    return SUCCESS;
}

API Result cuUserObjectRelease(struct UserObject *object, u32 count) {
    if (!object || !count)
        return INVALID_VALUE;
    if (!__atomic_sub_fetch(&object->references, count, __ATOMIC_ACQ_REL)) {
        object->destroy(object->data);
        free(object);
    }
    return SUCCESS;
}

API Result cuGraphRetainUserObject(struct Graph *graph, struct UserObject *object, u32 count, u32 flags) {
    (void)graph;
    return flags & MOVES_REFERENCES ? SUCCESS : cuUserObjectRetain(object, count);
}

API Result cuGraphReleaseUserObject(struct Graph *graph, struct UserObject *object, u32 count) {
    (void)graph;
    return cuUserObjectRelease(object, count);
}
