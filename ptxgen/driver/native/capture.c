/* Stream capture: what a stream is given becomes nodes of a graph.
 *
 * A node depends on the stream's frontier: the node before it, and what events of other streams added.
 */
#include "standin.h"

#include <stdlib.h>
#include <string.h>

enum { NOT_CAPTURING = 0, CAPTURING = 1 };

/* Streams that joined a capture leave it with the stream that began it. */
static struct Stream *joined[256];
static size_t joined_count;

static void set_frontier(struct Frontier *frontier, struct Node *const *nodes, size_t count) {
    struct Node **made = malloc((count + 1) * sizeof *made);
    if (count)
        memcpy(made, nodes, count * sizeof *made);
    free(frontier->nodes);
    *frontier = (struct Frontier){made, count};
}

static void add_to_frontier(struct Frontier *frontier, struct Node *const *nodes, size_t count) {
    frontier->nodes = realloc(frontier->nodes, (frontier->count + count + 1) * sizeof *frontier->nodes);
    for (size_t at = 0; at < count; at++) {
        bool known = false;
        for (size_t each = 0; each < frontier->count; each++)
            known |= frontier->nodes[each] == nodes[at];
        if (!known)
            frontier->nodes[frontier->count++] = nodes[at];
    }
}

void capture(struct Stream *stream, const struct Operation *operation) {
    struct Node *made = add_node(stream->capture, stream->frontier.nodes, stream->frontier.count, operation);
    struct Node *before = stream->frontier.count == 1 ? stream->frontier.nodes[0] : NULL;
    if (operation->kind == OP_LAUNCH && operation->kernel.shape.flags & PROGRAMMATIC && before &&
        before->operation.kind == OP_LAUNCH) {
        made->programmatic = before;
        before->has_dependents = true;
    }
    set_frontier(&stream->frontier, &made, 1);
}

/* Whether an event was recorded in a capture, and so stands for the frontier of its stream. */
bool capture_event(struct Stream *stream, struct Event *event) {
    event->capture = stream->capture;
    if (event->capture)
        set_frontier(&event->frontier, stream->frontier.nodes, stream->frontier.count);
    return event->capture != NULL;
}

/* A stream that waits on an event of a capture takes part in that capture. */
void capture_wait(struct Stream *stream, const struct Event *event) {
    if (!stream->capture) {
        stream->capture = event->capture;
        set_frontier(&stream->frontier, NULL, 0);
        if (joined_count < sizeof joined / sizeof *joined)
            joined[joined_count++] = stream;
    }
    if (stream->capture == event->capture)
        add_to_frontier(&stream->frontier, event->frontier.nodes, event->frontier.count);
}

API Result cuStreamBeginCapture_v2(struct Stream *stream, int mode) {
    (void)mode;
    struct Stream *chosen = stream_of(stream);
    if (!chosen->id)
        return CAPTURE_UNSUPPORTED;
    if (chosen->capture)
        return INVALID_VALUE;
    chosen->capture = new_graph();
    set_frontier(&chosen->frontier, NULL, 0);
    return SUCCESS;
}

API Result cuStreamBeginCapture(struct Stream *stream) {
    return cuStreamBeginCapture_v2(stream, 0);
}

API Result cuStreamBeginCaptureToGraph(struct Stream *stream, struct Graph *graph, struct Node *const *dependencies,
                                       const void *edges, size_t count, int mode) {
    (void)edges, (void)mode;
    struct Stream *chosen = stream_of(stream);
    if (chosen->capture || !graph)
        return INVALID_VALUE;
    chosen->capture = graph;
    set_frontier(&chosen->frontier, dependencies, count);
    return SUCCESS;
}

API Result cuStreamEndCapture(struct Stream *stream, struct Graph **graph) {
    struct Stream *chosen = stream_of(stream);
    struct Graph *made = chosen->capture;
    chosen->capture = NULL;
    for (size_t at = 0; at < joined_count;)
        if (joined[at]->capture == made) {
            joined[at]->capture = NULL;
            joined[at] = joined[--joined_count];
        } else {
            at++;
        }
    if (graph)
        *graph = made;
    return made ? SUCCESS : INVALID_VALUE;
}

API Result cuStreamIsCapturing(struct Stream *stream, int *status) {
    *status = capture_of(stream) ? CAPTURING : NOT_CAPTURING;
    return SUCCESS;
}

API Result cuStreamGetCaptureInfo_v3(struct Stream *stream, int *status, u64 *id, struct Graph **graph,
                                     struct Node ***dependencies, const void **edges, size_t *count) {
    struct Stream *chosen = stream_of(stream);
    *status = chosen->capture ? CAPTURING : NOT_CAPTURING;
    if (id)
        *id = (u64)chosen->capture;
    if (graph)
        *graph = chosen->capture;
    if (dependencies)
        *dependencies = chosen->capture ? chosen->frontier.nodes : NULL;
    if (edges)
        *edges = NULL;
    if (count)
        *count = chosen->capture ? chosen->frontier.count : 0;
    return SUCCESS;
}

API Result cuStreamGetCaptureInfo_v2(struct Stream *stream, int *status, u64 *id, struct Graph **graph,
                                     struct Node ***dependencies, size_t *count) {
    return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, NULL, count);
}

API Result cuStreamGetCaptureInfo(struct Stream *stream, int *status, u64 *id) {
    return cuStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}

API Result cuStreamUpdateCaptureDependencies(struct Stream *stream, struct Node **dependencies, size_t count,
                                             u32 flags) {
    enum { ADD = 0, SET = 1 };
    struct Stream *chosen = stream_of(stream);
    if (!chosen->capture)
        return INVALID_VALUE;
    if (flags == SET)
        set_frontier(&chosen->frontier, dependencies, count);
    else
        add_to_frontier(&chosen->frontier, dependencies, count);
    return SUCCESS;
}

API Result cuStreamUpdateCaptureDependencies_v2(struct Stream *stream, struct Node **dependencies, const void *edges,
                                                size_t count, u32 flags) {
    (void)edges;
    return cuStreamUpdateCaptureDependencies(stream, dependencies, count, flags);
}

API Result cuThreadExchangeStreamCaptureMode(int *mode) {
    (void)mode;
    return SUCCESS;
}
