/* Graphs: operations with dependencies; graph_run.c performs them. */
#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRAPH_MAGIC = 0x47524150 };

struct Graph *new_graph(void) {
    struct Graph *graph = calloc(1, sizeof *graph);
    graph->magic = GRAPH_MAGIC;
    return graph;
}

static struct Node *append(struct Graph *graph, const struct Operation *operation) {
    struct Node *node = calloc(1, sizeof *node);
    node->graph = graph;
    node->operation = *operation;
    node->enabled = true;
    node->order = graph->count;
    if (graph->count == graph->capacity) {
        graph->capacity = graph->capacity ? 2 * graph->capacity : 16;
        graph->nodes = realloc(graph->nodes, graph->capacity * sizeof *graph->nodes);
    }
    graph->nodes[graph->count++] = node;
    return node;
}

void depend(struct Node *node, struct Node *on) {
    node->dependencies = realloc(node->dependencies, (node->dependency_count + 1) * sizeof *node->dependencies);
    node->dependencies[node->dependency_count++] = on;
}

static struct EdgeData edge_of(const struct Node *node, const struct Node *on) {
    bool is_programmatic = node->programmatic == on;
    return (struct EdgeData){.from_port = is_programmatic ? PROGRAMMATIC_PORT : 0,
                             .type = is_programmatic ? PROGRAMMATIC_EDGE : FULL_EDGE};
}

void depend_by(struct Node *node, struct Node *on, const struct EdgeData *edge) {
    depend(node, on);
    if (edge && edge->type == PROGRAMMATIC_EDGE) {
        node->programmatic = on;
        on->has_dependents = true;
    }
}

struct Node *add_node(struct Graph *graph, struct Node *const *dependencies, size_t count,
                        const struct Operation *operation) {
    struct Node *node = append(graph, operation);
    if (operation->kind == OP_COPY || operation->kind == OP_FILL || operation->kind == OP_FREE) {
        char site[1024];
        call_site(site, sizeof site);
        node->operation.site = strdup(site);
    }
    for (size_t at = 0; at < count; at++)
        depend(node, dependencies[at]);
    return node;
}

/* What the edges are from the nodes with which a node was made. */
void take_edges(struct Node *node, struct Node *const *dependencies, const struct EdgeData *edges, size_t count) {
    for (size_t at = 0; edges && at < count; at++)
        if (edges[at].type == PROGRAMMATIC_EDGE) {
            node->programmatic = dependencies[at];
            dependencies[at]->has_dependents = true;
        }
}

struct Graph *copy_of(const struct Graph *graph) {
    struct Graph *made = new_graph();
    made->source = graph->source ? graph->source : graph;
    for (size_t at = 0; at < graph->count; at++) {
        struct Node *node = append(made, &graph->nodes[at]->operation);
        node->enabled = graph->nodes[at]->enabled;
        if (node->operation.kind == OP_GRAPH)
            node->operation.graph = copy_of(node->operation.graph);
        else if (node->operation.kind == OP_CONDITIONAL)
            node->operation.conditional = copy_of_conditional(node->operation.conditional);
    }
    for (size_t at = 0; at < graph->count; at++) {
        const struct Node *node = graph->nodes[at];
        for (size_t on = 0; on < node->dependency_count; on++) {
            struct EdgeData edge = edge_of(node, node->dependencies[on]);
            depend_by(made->nodes[at], made->nodes[node->dependencies[on]->order], &edge);
        }
    }
    made->before = graph->before;
    return made;
}

Result cuGraphNodeGetType(struct Node *node, int *type);

API Result cuGraphCreate(struct Graph **graph, u32 flags) {
    (void)flags;
    *graph = new_graph();
    return SUCCESS;
}

API Result cuGraphClone(struct Graph **clone, struct Graph *graph) {
    *clone = copy_of(graph);
    return SUCCESS;
}

API Result cuGraphDestroy(struct Graph *graph) {
    (void)graph; /* kept: executable graphs and nodes of others may name it */
    return SUCCESS;
}

API Result cuGraphInstantiateWithFlags(struct Graph **executable, struct Graph *graph, u64 flags) {
    (void)flags;
    *executable = copy_of(graph);
    return SUCCESS;
}

API Result cuGraphInstantiate_v2(struct Graph **executable, struct Graph *graph, void **error, char *log, size_t bytes) {
    (void)error;
    if (log && bytes)
        *log = 0;
    return cuGraphInstantiateWithFlags(executable, graph, 0);
}

API Result cuGraphInstantiateWithParams(struct Graph **executable, struct Graph *graph, void *parameters) {
    memset((char *)parameters + 16, 0, 12); /* no node has failed; the result is success */
    return cuGraphInstantiateWithFlags(executable, graph, 0);
}

API Result cuGraphExecDestroy(struct Graph *executable) {
    (void)executable;
    return SUCCESS;
}

API Result cuGraphUpload(struct Graph *executable, struct Stream *stream) {
    (void)executable, (void)stream;
    return SUCCESS;
}

API Result cuGraphLaunch(struct Graph *executable, struct Stream *stream) {
    if (!executable || executable->magic != GRAPH_MAGIC)
        return INVALID_HANDLE;
    /* What changes in the graph after this does not change this launch. */
    struct Operation operation = {.kind = OP_GRAPH, .graph = machine.delay ? copy_of(executable) : executable};
    return submit(stream, &operation);
}

/* The new graph must have the nodes of the old one; their parameters are taken over. */
static bool update(struct Graph *executable, const struct Graph *graph) {
    if (executable->count != graph->count)
        return false;
    for (size_t at = 0; at < graph->count; at++)
        if (executable->nodes[at]->operation.kind != graph->nodes[at]->operation.kind)
            return false;
    for (size_t at = 0; at < graph->count; at++)
        executable->nodes[at]->operation = graph->nodes[at]->operation;
    return true;
}

API Result cuGraphExecUpdate_v2(struct Graph *executable, struct Graph *graph, void *result) {
    enum { UPDATE_SUCCEEDED = 0, UPDATE_FAILED = 1, GRAPH_UPDATE_FAILURE = 910 };
    memset(result, 0, 24);
    bool updated = update(executable, graph);
    *(int *)result = updated ? UPDATE_SUCCEEDED : UPDATE_FAILED;
    return updated ? SUCCESS : GRAPH_UPDATE_FAILURE;
}

/* Nodes. */

static Result kernel_operation(const struct KernelNode *asked, bool second, struct Operation *made) {
    struct Function *function = asked->function || !second ? asked->function : asked->kernel;
    return prepare_launch(function, asked->grid, asked->block, asked->shared_bytes, asked->parameters, asked->extra,
                          made);
}

API Result cuGraphAddKernelNode_v2(struct Node **node, struct Graph *graph, struct Node *const *dependencies,
                                   size_t count, const struct KernelNode *asked) {
    struct Operation operation;
    Result result = kernel_operation(asked, true, &operation);
    if (!result)
        *node = add_node(graph, dependencies, count, &operation);
    return result;
}

API Result cuGraphAddKernelNode(struct Node **node, struct Graph *graph, struct Node *const *dependencies, size_t count,
                                const struct KernelNode *asked) {
    struct Operation operation;
    Result result = kernel_operation(asked, false, &operation);
    if (!result)
        *node = add_node(graph, dependencies, count, &operation);
    return result;
}

static Result set_kernel(struct Node *node, const struct KernelNode *asked) {
    struct Operation operation;
    Result result = kernel_operation(asked, false, &operation);
    if (result)
        return result;
    operation.kernel.shape.cluster = node->operation.kernel.shape.cluster;
    operation.kernel.shape.flags = node->operation.kernel.shape.flags;
    node->operation = operation;
    return SUCCESS;
}

API Result cuGraphKernelNodeSetParams_v2(struct Node *node, const struct KernelNode *asked) {
    return set_kernel(node, asked);
}

API Result cuGraphKernelNodeSetParams(struct Node *node, const struct KernelNode *asked) {
    return set_kernel(node, asked);
}

static Result set_executable_kernel(struct Graph *executable, struct Node *node, const struct KernelNode *asked) {
    return node->order < executable->count ? set_kernel(executable->nodes[node->order], asked) : INVALID_VALUE;
}

API Result cuGraphExecKernelNodeSetParams_v2(struct Graph *executable, struct Node *node,
                                             const struct KernelNode *asked) {
    return set_executable_kernel(executable, node, asked);
}

API Result cuGraphExecKernelNodeSetParams(struct Graph *executable, struct Node *node, const struct KernelNode *asked) {
    return set_executable_kernel(executable, node, asked);
}

/* The attributes of launches, by number: 2 is cooperative, 4 the cluster. */
API Result cuGraphKernelNodeSetAttribute(struct Node *node, int attribute, const void *value) {
    struct LaunchShape *shape = &node->operation.kernel.shape;
    if (attribute == 2)
        shape->flags = *(const int *)value ? shape->flags | COOPERATIVE : shape->flags & ~(u32)COOPERATIVE;
    else if (attribute == 4)
        memcpy(&shape->cluster, value, sizeof shape->cluster);
    return SUCCESS;
}

API Result cuGraphKernelNodeGetAttribute(struct Node *node, int attribute, void *value) {
    memset(value, 0, 64);
    if (attribute == 2)
        *(int *)value = (node->operation.kernel.shape.flags & COOPERATIVE) != 0;
    else if (attribute == 4)
        memcpy(value, &node->operation.kernel.shape.cluster, sizeof(struct Extent3));
    return SUCCESS;
}

API Result cuGraphKernelNodeCopyAttributes(struct Node *to, struct Node *from) {
    to->operation.kernel.shape.flags = from->operation.kernel.shape.flags;
    to->operation.kernel.shape.cluster = from->operation.kernel.shape.cluster;
    return SUCCESS;
}

struct Copy3D; /* CUDA_MEMCPY3D */
Result copy_operation(const struct Copy3D *asked, struct Operation *made);

API Result cuGraphAddMemcpyNode(struct Node **node, struct Graph *graph, struct Node *const *dependencies, size_t count,
                                const struct Copy3D *asked, void *context) {
    (void)context;
    struct Operation operation;
    Result result = copy_operation(asked, &operation);
    if (!result)
        *node = add_node(graph, dependencies, count, &operation);
    return result;
}

API Result cuGraphMemcpyNodeSetParams(struct Node *node, const struct Copy3D *asked) {
    return copy_operation(asked, &node->operation);
}

API Result cuGraphExecMemcpyNodeSetParams(struct Graph *executable, struct Node *node, const struct Copy3D *asked,
                                          void *context) {
    (void)context;
    return node->order < executable->count ? copy_operation(asked, &executable->nodes[node->order]->operation)
                                           : INVALID_VALUE;
}

static struct Operation fill_operation(const struct FillNode *asked) {
    return (struct Operation){.kind = OP_FILL, .fill = {(char *)asked->to, asked->pitch, asked->width, asked->height,
                                                        asked->value, asked->element}};
}

API Result cuGraphAddMemsetNode(struct Node **node, struct Graph *graph, struct Node *const *dependencies, size_t count,
                                const struct FillNode *asked, void *context) {
    (void)context;
    struct Operation operation = fill_operation(asked);
    *node = add_node(graph, dependencies, count, &operation);
    return SUCCESS;
}

API Result cuGraphMemsetNodeSetParams(struct Node *node, const struct FillNode *asked) {
    node->operation = fill_operation(asked);
    return SUCCESS;
}

API Result cuGraphExecMemsetNodeSetParams(struct Graph *executable, struct Node *node, const struct FillNode *asked,
                                          void *context) {
    (void)context;
    if (node->order >= executable->count)
        return INVALID_VALUE;
    executable->nodes[node->order]->operation = fill_operation(asked);
    return SUCCESS;
}

API Result cuGraphAddHostNode(struct Node **node, struct Graph *graph, struct Node *const *dependencies, size_t count,
                              const struct Host *asked) {
    struct Operation operation = {.kind = OP_HOST, .host = *asked};
    *node = add_node(graph, dependencies, count, &operation);
    return SUCCESS;
}

API Result cuGraphHostNodeSetParams(struct Node *node, const struct Host *asked) {
    node->operation.host = *asked;
    return SUCCESS;
}

API Result cuGraphExecHostNodeSetParams(struct Graph *executable, struct Node *node, const struct Host *asked) {
    if (node->order >= executable->count)
        return INVALID_VALUE;
    executable->nodes[node->order]->operation.host = *asked;
    return SUCCESS;
}

API Result cuGraphAddEmptyNode(struct Node **node, struct Graph *graph, struct Node *const *dependencies,
                               size_t count) {
    struct Operation operation = {.kind = OP_EMPTY};
    *node = add_node(graph, dependencies, count, &operation);
    return SUCCESS;
}

API Result cuGraphAddEventRecordNode(struct Node **node, struct Graph *graph, struct Node *const *dependencies,
                                     size_t count, struct Event *event) {
    struct Operation operation = {.kind = OP_RECORD, .event = event};
    event->recorded = true;
    *node = add_node(graph, dependencies, count, &operation);
    return SUCCESS;
}

API Result cuGraphAddEventWaitNode(struct Node **node, struct Graph *graph, struct Node *const *dependencies,
                                   size_t count, struct Event *event) {
    struct Operation operation = {.kind = OP_WAIT, .point = event->point};
    *node = add_node(graph, dependencies, count, &operation);
    return SUCCESS;
}

API Result cuGraphAddChildGraphNode(struct Node **node, struct Graph *graph, struct Node *const *dependencies,
                                    size_t count, struct Graph *child) {
    struct Operation operation = {.kind = OP_GRAPH, .graph = copy_of(child)};
    *node = add_node(graph, dependencies, count, &operation);
    return SUCCESS;
}

API Result cuGraphChildGraphNodeGetGraph(struct Node *node, struct Graph **graph) {
    *graph = node->operation.graph;
    return SUCCESS;
}

API Result cuGraphAddDependencies_v2(struct Graph *graph, struct Node *const *from, struct Node *const *to,
                                     const struct EdgeData *edges, size_t count) {
    (void)graph;
    for (size_t at = 0; at < count; at++)
        depend_by(to[at], from[at], edges ? edges + at : NULL);
    return SUCCESS;
}

API Result cuGraphAddDependencies(struct Graph *graph, struct Node *const *from, struct Node *const *to, size_t count) {
    return cuGraphAddDependencies_v2(graph, from, to, NULL, count);
}

API Result cuGraphRemoveDependencies(struct Graph *graph, struct Node *const *from, struct Node *const *to,
                                     size_t count) {
    (void)graph;
    for (size_t at = 0; at < count; at++) {
        struct Node *node = to[at];
        for (size_t on = 0; on < node->dependency_count; on++)
            if (node->dependencies[on] == from[at]) {
                node->programmatic = node->programmatic == from[at] ? NULL : node->programmatic;
                node->dependencies[on--] = node->dependencies[--node->dependency_count];
            }
    }
    return SUCCESS;
}

API Result cuGraphRemoveDependencies_v2(struct Graph *graph, struct Node *const *from, struct Node *const *to,
                                        const void *edges, size_t count) {
    (void)edges;
    return cuGraphRemoveDependencies(graph, from, to, count);
}

API Result cuGraphDestroyNode(struct Node *node) {
    struct Graph *graph = node->graph;
    for (size_t at = 0; at < graph->count; at++)
        cuGraphRemoveDependencies(graph, &node, graph->nodes + at, 1);
    for (size_t at = node->order; at + 1 < graph->count; at++) {
        graph->nodes[at] = graph->nodes[at + 1];
        graph->nodes[at]->order = at;
    }
    graph->count--;
    return SUCCESS;
}

API Result cuGraphNodeSetEnabled(struct Graph *executable, struct Node *node, u32 enabled) {
    if (node->order >= executable->count)
        return INVALID_VALUE;
    executable->nodes[node->order]->enabled = enabled != 0;
    return SUCCESS;
}

API Result cuGraphNodeGetEnabled(struct Graph *executable, struct Node *node, u32 *enabled) {
    if (node->order >= executable->count)
        return INVALID_VALUE;
    *enabled = executable->nodes[node->order]->enabled;
    return SUCCESS;
}

API Result cuGraphGetNodes(struct Graph *graph, struct Node **nodes, size_t *count) {
    for (size_t at = 0; nodes && at < *count && at < graph->count; at++)
        nodes[at] = graph->nodes[at];
    *count = graph->count;
    return SUCCESS;
}

API Result cuGraphGetRootNodes(struct Graph *graph, struct Node **nodes, size_t *count) {
    size_t found = 0;
    for (size_t at = 0; at < graph->count; at++)
        if (!graph->nodes[at]->dependency_count) {
            if (nodes && found < *count)
                nodes[found] = graph->nodes[at];
            found++;
        }
    *count = found;
    return SUCCESS;
}

API Result cuGraphGetEdges_v2(struct Graph *graph, struct Node **from, struct Node **to, struct EdgeData *edges,
                              size_t *count) {
    size_t found = 0;
    for (size_t at = 0; at < graph->count; at++)
        for (size_t on = 0; on < graph->nodes[at]->dependency_count; on++, found++)
            if (from && to && found < *count) {
                from[found] = graph->nodes[at]->dependencies[on];
                to[found] = graph->nodes[at];
                if (edges)
                    edges[found] = edge_of(to[found], from[found]);
            }
    *count = found;
    return SUCCESS;
}

API Result cuGraphGetEdges(struct Graph *graph, struct Node **from, struct Node **to, size_t *count) {
    return cuGraphGetEdges_v2(graph, from, to, NULL, count);
}

API Result cuGraphNodeGetDependencies_v2(struct Node *node, struct Node **found, struct EdgeData *edges, size_t *count) {
    for (size_t at = 0; found && at < *count && at < node->dependency_count; at++) {
        found[at] = node->dependencies[at];
        if (edges)
            edges[at] = edge_of(node, found[at]);
    }
    *count = node->dependency_count;
    return SUCCESS;
}

API Result cuGraphNodeGetDependencies(struct Node *node, struct Node **found, size_t *count) {
    return cuGraphNodeGetDependencies_v2(node, found, NULL, count);
}

API Result cuGraphNodeGetDependentNodes_v2(struct Node *node, struct Node **found, struct EdgeData *edges,
                                           size_t *count) {
    size_t dependents = 0;
    for (size_t at = 0; at < node->graph->count; at++)
        for (size_t on = 0; on < node->graph->nodes[at]->dependency_count; on++)
            if (node->graph->nodes[at]->dependencies[on] == node) {
                if (found && dependents < *count)
                    found[dependents] = node->graph->nodes[at];
                if (found && edges && dependents < *count)
                    edges[dependents] = edge_of(found[dependents], node);
                dependents++;
            }
    *count = dependents;
    return SUCCESS;
}

API Result cuGraphNodeGetDependentNodes(struct Node *node, struct Node **found, size_t *count) {
    return cuGraphNodeGetDependentNodes_v2(node, found, NULL, count);
}

API Result cuGraphExecChildGraphNodeSetParams(struct Graph *executable, struct Node *node, struct Graph *child) {
    if (node->order >= executable->count)
        return INVALID_VALUE;
    executable->nodes[node->order]->operation.graph = copy_of(child);
    return SUCCESS;
}

API Result cuGraphExecGetFlags(struct Graph *executable, u64 *flags) {
    (void)executable;
    *flags = 0;
    return SUCCESS;
}

/* Graphviz's language, as the driver writes it. */
API Result cuGraphDebugDotPrint(struct Graph *graph, const char *path, u32 flags) {
    (void)flags;
    FILE *file = fopen(path, "w");
    if (!file)
        return FILE_NOT_FOUND;
    fprintf(file, "digraph dot {\n");
    for (size_t at = 0; at < graph->count; at++) {
        const struct Operation *operation = &graph->nodes[at]->operation;
        int type;
        cuGraphNodeGetType(graph->nodes[at], &type);
        fprintf(file, "  node%zu [label=\"%zu: type %d%s%s\"];\n", at, at, type, type == KERNEL_NODE ? " " : "",
                type == KERNEL_NODE ? operation->kernel.function->name : "");
        for (size_t on = 0; on < graph->nodes[at]->dependency_count; on++)
            fprintf(file, "  node%zu -> node%zu;\n", graph->nodes[at]->dependencies[on]->order, at);
    }
    fprintf(file, "}\n");
    return fclose(file) ? FILE_NOT_FOUND : SUCCESS;
}

API Result cuGraphNodeGetType(struct Node *node, int *type) {
    static const int types[] = {
        [OP_EMPTY] = EMPTY_NODE, [OP_COPY] = COPY_NODE,   [OP_FILL] = FILL_NODE, [OP_LAUNCH] = KERNEL_NODE,
        [OP_HOST] = HOST_NODE,   [OP_GRAPH] = GRAPH_NODE, [OP_FREE] = FREE_NODE, [OP_RECORD] = RECORD_NODE,
        [OP_WAIT] = WAIT_NODE,   [OP_ALLOCATE] = ALLOCATION_NODE, [OP_CONDITIONAL] = CONDITIONAL_NODE,
    };
    *type = types[node->operation.kind];
    return SUCCESS;
}

API Result cuGraphNodeFindInClone(struct Node **found, struct Node *node, struct Graph *clone) {
    if (node->order >= clone->count)
        return INVALID_VALUE;
    *found = clone->nodes[node->order];
    return SUCCESS;
}

/* CUgraphNodeParams: a type, then the parameters of the node from byte 16 on. */
static Result add_node_of(struct Node **node, struct Graph *graph, struct Node *const *dependencies, size_t count,
                          void *asked) {
    const char *inner = (const char *)asked + 16;
    switch (*(const int *)asked) {
    case KERNEL_NODE:
        return cuGraphAddKernelNode_v2(node, graph, dependencies, count, (const struct KernelNode *)inner);
    case COPY_NODE: /* flags and a reserved word, the context, then the copy */
        return cuGraphAddMemcpyNode(node, graph, dependencies, count, (const struct Copy3D *)(inner + 16), NULL);
    case FILL_NODE:
        return cuGraphAddMemsetNode(node, graph, dependencies, count, (const struct FillNode *)inner, NULL);
    case HOST_NODE:
        return cuGraphAddHostNode(node, graph, dependencies, count, (const struct Host *)inner);
    case GRAPH_NODE:
        return cuGraphAddChildGraphNode(node, graph, dependencies, count, *(struct Graph *const *)inner);
    case EMPTY_NODE:
        return cuGraphAddEmptyNode(node, graph, dependencies, count);
    default:
        return add_special_node(node, graph, dependencies, count, *(const int *)asked, (void *)inner);
    }
}

API Result cuGraphAddNode_v2(struct Node **node, struct Graph *graph, struct Node *const *dependencies,
                             const struct EdgeData *edges, size_t count, void *asked) {
    Result result = add_node_of(node, graph, dependencies, count, asked);
    if (!result)
        take_edges(*node, dependencies, edges, count);
    return result;
}

API Result cuGraphAddNode_v3(struct Node **node, struct Graph *graph, struct Node *const *dependencies,
                             const struct EdgeData *edges, size_t count, void *asked) {
    return cuGraphAddNode_v2(node, graph, dependencies, edges, count, asked);
}

API Result cuGraphAddNode(struct Node **node, struct Graph *graph, struct Node *const *dependencies, size_t count,
                          void *asked) {
    return cuGraphAddNode_v2(node, graph, dependencies, NULL, count, asked);
}
