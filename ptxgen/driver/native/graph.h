/* Graphs: their nodes, and edges between them (graph.c, graph_run.c). */
#ifndef PTXGEN_GRAPH_H
#define PTXGEN_GRAPH_H

#include "standin.h"

struct Graph {
    u32 magic;
    const struct Graph *source; /* what it is a copy of */
    struct Node **nodes;
    size_t count, capacity;
    u64 *before; /* of a graph that has run: row m has bit n if node n precedes node m; NULL if not known */
};

struct EdgeData { /* CUgraphEdgeData */
    u8 from_port, to_port, type, reserved[5];
};
enum { FULL_EDGE = 0, PROGRAMMATIC_EDGE = 1, PROGRAMMATIC_PORT = 1 };

void take_edges(struct Node *node, struct Node *const *dependencies, const struct EdgeData *edges, size_t count);
void depend_by(struct Node *node, struct Node *on, const struct EdgeData *edge);

#endif
