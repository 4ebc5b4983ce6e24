/* The runtime API over the stand-in driver: graphs. */
#include "runtime.h"

#include <string.h>

#define FORWARD(name, driver, declaration, arguments)                                                                 \
    Result driver declaration;                                                                                        \
    API Result name declaration {                                                                                     \
        Result result = start_runtime();                                                                              \
        return runtime_result(result ? result : driver arguments);                                                    \
    }
#define NODES struct Node **node, struct Graph *graph, struct Node *const *dependencies, size_t count

FORWARD(cudaGraphCreate, cuGraphCreate, (struct Graph * *graph, u32 flags), (graph, flags))
FORWARD(cudaGraphClone, cuGraphClone, (struct Graph * *clone, struct Graph *graph), (clone, graph))
FORWARD(cudaGraphDestroy, cuGraphDestroy, (struct Graph * graph), (graph))
FORWARD(cudaGraphExecDestroy, cuGraphExecDestroy, (struct Graph * executable), (executable))
FORWARD(cudaGraphInstantiateWithFlags, cuGraphInstantiateWithFlags,
        (struct Graph * *executable, struct Graph *graph, u64 flags), (executable, graph, flags))
FORWARD(cudaGraphInstantiateWithParams, cuGraphInstantiateWithParams,
        (struct Graph * *executable, struct Graph *graph, void *parameters), (executable, graph, parameters))
FORWARD(cudaGraphUpload, cuGraphUpload, (struct Graph * executable, struct Stream *stream), (executable, stream))
FORWARD(cudaGraphLaunch, cuGraphLaunch, (struct Graph * executable, struct Stream *stream), (executable, stream))
FORWARD(cudaGraphExecUpdate, cuGraphExecUpdate_v2, (struct Graph * executable, struct Graph *graph, void *result_info),
        (executable, graph, result_info))
FORWARD(cudaGraphAddHostNode, cuGraphAddHostNode, (NODES, const struct Host *asked),
        (node, graph, dependencies, count, asked))
FORWARD(cudaGraphAddEmptyNode, cuGraphAddEmptyNode, (NODES), (node, graph, dependencies, count))
FORWARD(cudaGraphAddEventRecordNode, cuGraphAddEventRecordNode, (NODES, struct Event *event),
        (node, graph, dependencies, count, event))
FORWARD(cudaGraphAddEventWaitNode, cuGraphAddEventWaitNode, (NODES, struct Event *event),
        (node, graph, dependencies, count, event))
FORWARD(cudaGraphAddChildGraphNode, cuGraphAddChildGraphNode, (NODES, struct Graph *child),
        (node, graph, dependencies, count, child))
FORWARD(cudaGraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph, (struct Node * node, struct Graph **graph),
        (node, graph))
FORWARD(cudaGraphGetNodes, cuGraphGetNodes, (struct Graph * graph, struct Node **nodes, size_t *count),
        (graph, nodes, count))
FORWARD(cudaGraphGetRootNodes, cuGraphGetRootNodes, (struct Graph * graph, struct Node **nodes, size_t *count),
        (graph, nodes, count))
FORWARD(cudaGraphNodeGetType, cuGraphNodeGetType, (struct Node * node, int *type), (node, type))
FORWARD(cudaGraphNodeFindInClone, cuGraphNodeFindInClone,
        (struct Node * *found, struct Node *node, struct Graph *clone), (found, node, clone))
FORWARD(cudaGraphNodeSetEnabled, cuGraphNodeSetEnabled, (struct Graph * executable, struct Node *node, u32 enabled),
        (executable, node, enabled))
FORWARD(cudaGraphNodeGetEnabled, cuGraphNodeGetEnabled, (struct Graph * executable, struct Node *node, u32 *enabled),
        (executable, node, enabled))
FORWARD(cudaGraphHostNodeSetParams, cuGraphHostNodeSetParams, (struct Node * node, const struct Host *asked),
        (node, asked))
FORWARD(cudaGraphExecHostNodeSetParams, cuGraphExecHostNodeSetParams,
        (struct Graph * executable, struct Node *node, const struct Host *asked), (executable, node, asked))
FORWARD(cudaGraphMemsetNodeSetParams, cuGraphMemsetNodeSetParams, (struct Node * node, const struct FillNode *asked),
        (node, asked))
FORWARD(cudaGraphKernelNodeSetAttribute, cuGraphKernelNodeSetAttribute,
        (struct Node * node, int attribute, const void *value), (node, attribute, value))
FORWARD(cudaGraphKernelNodeGetAttribute, cuGraphKernelNodeGetAttribute,
        (struct Node * node, int attribute, void *value), (node, attribute, value))
FORWARD(cudaGraphKernelNodeCopyAttributes, cuGraphKernelNodeCopyAttributes, (struct Node * to, struct Node *from),
        (to, from))

API Result cudaGraphInstantiate(struct Graph **executable, struct Graph *graph, u64 flags) {
    return cudaGraphInstantiateWithFlags(executable, graph, flags);
}

/* Since CUDA 13 these have a parameter for data of the edges, which versions before call _v2. */

Result cuGraphAddDependencies(struct Graph *graph, struct Node *const *from, struct Node *const *to, size_t count);

API Result cudaGraphAddDependencies_v2(struct Graph *graph, struct Node *const *from, struct Node *const *to,
                                       const void *edges, size_t count) {
    (void)edges;
    return runtime_result(cuGraphAddDependencies(graph, from, to, count));
}

/* In CUDA 12 the fourth parameter is the count; edges of CUDA 13 are NULL or an address. */
API Result cudaGraphAddDependencies(struct Graph *graph, struct Node *const *from, struct Node *const *to, u64 edges,
                                    size_t count) {
    enum { MOST_NODES = 1 << 16 };
    return cudaGraphAddDependencies_v2(graph, from, to, NULL, edges && edges < MOST_NODES ? edges : count);
}

/* Nodes of kernels name functions of the program. */

struct RuntimeKernelNode { /* cudaKernelNodeParams */
    const void *host;
    struct Extent3 grid, block;
    u32 shared_bytes;
    void **parameters, **extra;
};

static Result operation_of(const struct RuntimeKernelNode *asked, struct Operation *made) {
    Result result = start_runtime();
    struct Function *function;
    if (!result)
        result = kernel_of(asked->host, &function);
    if (!result)
        result = prepare_launch(function, asked->grid, asked->block, asked->shared_bytes, asked->parameters,
                                asked->extra, made);
    return runtime_result(result);
}

API Result cudaGraphAddKernelNode(NODES, const struct RuntimeKernelNode *asked) {
    struct Operation operation;
    Result result = operation_of(asked, &operation);
    if (!result)
        *node = add_node(graph, dependencies, count, &operation);
    return result;
}

static void set_kernel(struct Node *node, struct Operation *operation) {
    operation->kernel.shape.cluster = node->operation.kernel.shape.cluster;
    operation->kernel.shape.flags = node->operation.kernel.shape.flags;
    node->operation = *operation;
}

API Result cudaGraphKernelNodeSetParams(struct Node *node, const struct RuntimeKernelNode *asked) {
    struct Operation operation;
    Result result = operation_of(asked, &operation);
    if (!result)
        set_kernel(node, &operation);
    return result;
}

API Result cudaGraphExecKernelNodeSetParams(struct Graph *executable, struct Node *node,
                                            const struct RuntimeKernelNode *asked) {
    struct Operation operation;
    struct Node *found;
    Result result = cuGraphNodeFindInClone(&found, node, executable);
    if (!result)
        result = operation_of(asked, &operation);
    if (!result)
        set_kernel(found, &operation);
    return result;
}

/* Nodes of copies. */

struct Copy3DParameters;
Result box_of(const struct Copy3DParameters *asked, struct Copy *copy);

API Result cudaGraphAddMemcpyNode(NODES, const struct Copy3DParameters *asked) {
    struct Operation operation = {.kind = OP_COPY};
    Result result = box_of(asked, &operation.copy);
    if (!result)
        *node = add_node(graph, dependencies, count, &operation);
    return runtime_result(result);
}

API Result cudaGraphAddMemcpyNode1D(NODES, char *to, const char *from, size_t bytes, int kind) {
    (void)kind;
    struct Operation operation = {.kind = OP_COPY, .copy = {to, from, 0, 0, 0, 0, bytes, 1, 1}};
    *node = add_node(graph, dependencies, count, &operation);
    return SUCCESS;
}

API Result cudaGraphMemcpyNodeSetParams1D(struct Node *node, char *to, const char *from, size_t bytes, int kind) {
    (void)kind;
    node->operation.copy = (struct Copy){to, from, 0, 0, 0, 0, bytes, 1, 1};
    return SUCCESS;
}

API Result cudaGraphExecMemcpyNodeSetParams1D(struct Graph *executable, struct Node *node, char *to, const char *from,
                                              size_t bytes, int kind) {
    struct Node *found;
    Result result = cuGraphNodeFindInClone(&found, node, executable);
    return result ? result : cudaGraphMemcpyNodeSetParams1D(found, to, from, bytes, kind);
}

Result cuGraphAddMemsetNode(struct Node **node, struct Graph *graph, struct Node *const *dependencies, size_t count,
                            const struct FillNode *asked, void *context);

API Result cudaGraphAddMemsetNode(NODES, const struct FillNode *asked) {
    return runtime_result(cuGraphAddMemsetNode(node, graph, dependencies, count, asked, NULL));
}
