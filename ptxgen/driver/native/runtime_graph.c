/* The runtime API over the stand-in driver: graphs. */
#include "runtime.h"

#include "graph.h"

#include <string.h>

#define FORWARD(name, driver, declaration, arguments)                                                                 \
    Result driver declaration;                                                                                        \
    API Result name declaration {                                                                                     \
        Result result = start_runtime();                                                                              \
        return runtime_result(result ? result : driver arguments);                                                    \
    }
Result cuGraphRemoveDependencies(struct Graph *graph, struct Node *const *from, struct Node *const *to, size_t count);
Result cuGraphKernelNodeGetParams_v2(struct Node *node, struct KernelNode *out);
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
struct UserObject;
FORWARD(cudaUserObjectCreate, cuUserObjectCreate,
        (struct UserObject * *made, void *data, void (*destroy)(void *), u32 count, u32 flags),
        (made, data, destroy, count, flags))
FORWARD(cudaUserObjectRetain, cuUserObjectRetain, (struct UserObject * object, u32 count), (object, count))
FORWARD(cudaUserObjectRelease, cuUserObjectRelease, (struct UserObject * object, u32 count), (object, count))
FORWARD(cudaGraphRetainUserObject, cuGraphRetainUserObject,
        (struct Graph * graph, struct UserObject *object, u32 count, u32 flags), (graph, object, count, flags))
FORWARD(cudaGraphReleaseUserObject, cuGraphReleaseUserObject,
        (struct Graph * graph, struct UserObject *object, u32 count), (graph, object, count))
FORWARD(cudaGraphGetNodes, cuGraphGetNodes, (struct Graph * graph, struct Node **nodes, size_t *count),
        (graph, nodes, count))
FORWARD(cudaGraphGetRootNodes, cuGraphGetRootNodes, (struct Graph * graph, struct Node **nodes, size_t *count),
        (graph, nodes, count))
FORWARD(cudaGraphAddMemAllocNode, cuGraphAddMemAllocNode, (NODES, struct AllocationNode *asked),
        (node, graph, dependencies, count, asked))
FORWARD(cudaGraphAddMemFreeNode, cuGraphAddMemFreeNode, (NODES, u64 address), (node, graph, dependencies, count, address))
FORWARD(cudaGraphMemAllocNodeGetParams, cuGraphMemAllocNodeGetParams,
        (struct Node * node, struct AllocationNode *asked), (node, asked))
FORWARD(cudaGraphMemFreeNodeGetParams, cuGraphMemFreeNodeGetParams, (struct Node * node, u64 *address), (node, address))
FORWARD(cudaDeviceGraphMemTrim, cuDeviceGraphMemTrim, (int device), (device))
FORWARD(cudaDeviceGetGraphMemAttribute, cuDeviceGetGraphMemAttribute, (int device, int attribute, u64 *value),
        (device, attribute, value))
FORWARD(cudaDeviceSetGraphMemAttribute, cuDeviceSetGraphMemAttribute, (int device, int attribute, u64 *value),
        (device, attribute, value))
FORWARD(cudaGraphConditionalHandleCreate_v2, cuGraphConditionalHandleCreate,
        (u64 * handle, struct Graph *graph, void *context, u32 value, u32 flags), (handle, graph, context, value, flags))
FORWARD(cudaGraphDestroyNode, cuGraphDestroyNode, (struct Node * node), (node))
FORWARD(cudaGraphDebugDotPrint, cuGraphDebugDotPrint, (struct Graph * graph, const char *path, u32 flags),
        (graph, path, flags))
FORWARD(cudaGraphExecGetFlags, cuGraphExecGetFlags, (struct Graph * executable, u64 *flags), (executable, flags))
FORWARD(cudaGraphExecChildGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams,
        (struct Graph * executable, struct Node *node, struct Graph *child), (executable, node, child))
FORWARD(cudaGraphExecMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams,
        (struct Graph * executable, struct Node *node, const struct FillNode *asked, void *context),
        (executable, node, asked, context))
FORWARD(cudaGraphMemsetNodeGetParams, cuGraphMemsetNodeGetParams, (struct Node * node, struct FillNode *out), (node, out))
FORWARD(cudaGraphHostNodeGetParams, cuGraphHostNodeGetParams, (struct Node * node, struct Host *out), (node, out))
FORWARD(cudaGraphGetEdges_v2, cuGraphGetEdges_v2,
        (struct Graph * graph, struct Node **from, struct Node **to, struct EdgeData *edges, size_t *count),
        (graph, from, to, edges, count))
FORWARD(cudaGraphNodeGetDependencies_v2, cuGraphNodeGetDependencies_v2,
        (struct Node * node, struct Node **found, struct EdgeData *edges, size_t *count), (node, found, edges, count))
FORWARD(cudaGraphNodeGetDependentNodes_v2, cuGraphNodeGetDependentNodes_v2,
        (struct Node * node, struct Node **found, struct EdgeData *edges, size_t *count), (node, found, edges, count))
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

API Result cudaGraphConditionalHandleCreate(u64 *handle, struct Graph *graph, u32 value, u32 flags) {
    return cudaGraphConditionalHandleCreate_v2(handle, graph, NULL, value, flags);
}

/* Since CUDA 13 these have a parameter for data of the edges, which versions before call _v2. */

Result cuGraphAddDependencies_v2(struct Graph *graph, struct Node *const *from, struct Node *const *to,
                                 const struct EdgeData *edges, size_t count);

API Result cudaGraphAddDependencies_v2(struct Graph *graph, struct Node *const *from, struct Node *const *to,
                                       const struct EdgeData *edges, size_t count) {
    return runtime_result(cuGraphAddDependencies_v2(graph, from, to, edges, count));
}

/* In CUDA 12 the fourth parameter is the count; edges of CUDA 13 are NULL or an address. */
enum { MOST_NODES = 1 << 16 };
static size_t count_of(u64 edges, size_t count) {
    return edges && edges < MOST_NODES ? edges : count;
}

API Result cudaGraphAddDependencies(struct Graph *graph, struct Node *const *from, struct Node *const *to, u64 edges,
                                    size_t count) {
    const struct EdgeData *data = edges < MOST_NODES ? NULL : (const struct EdgeData *)edges;
    return cudaGraphAddDependencies_v2(graph, from, to, data, count_of(edges, count));
}

API Result cudaGraphRemoveDependencies_v2(struct Graph *graph, struct Node *const *from, struct Node *const *to,
                                          const void *edges, size_t count) {
    (void)edges;
    return runtime_result(cuGraphRemoveDependencies(graph, from, to, count));
}

API Result cudaGraphRemoveDependencies(struct Graph *graph, struct Node *const *from, struct Node *const *to, u64 edges,
                                       size_t count) {
    return cudaGraphRemoveDependencies_v2(graph, from, to, NULL, count_of(edges, count));
}

/* Before, the last parameter of these is where the count is, in the place of the edges. */

API Result cudaGraphGetEdges(struct Graph *graph, struct Node **from, struct Node **to, void *edges, size_t *count) {
    return cudaGraphGetEdges_v2(graph, from, to, has_cuda_12 ? NULL : edges, has_cuda_12 ? edges : count);
}

API Result cudaGraphNodeGetDependencies(struct Node *node, struct Node **found, void *edges, size_t *count) {
    return cudaGraphNodeGetDependencies_v2(node, found, has_cuda_12 ? NULL : edges, has_cuda_12 ? edges : count);
}

API Result cudaGraphNodeGetDependentNodes(struct Node *node, struct Node **found, void *edges, size_t *count) {
    return cudaGraphNodeGetDependentNodes_v2(node, found, has_cuda_12 ? NULL : edges, has_cuda_12 ? edges : count);
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

/* cudaGraphNodeParams: a type, then the parameters of the node from byte 16 on; those of kernels and copies are the
 * runtime's own. In CUDA 12 cudaGraphAddNode has no edges. */

static Result add_node_of(NODES, void *asked) {
    char *inner = (char *)asked + 16;
    switch (*(const int *)asked) {
    case KERNEL_NODE:
        return cudaGraphAddKernelNode(node, graph, dependencies, count, (const struct RuntimeKernelNode *)inner);
    case COPY_NODE: /* flags and a reserved word, the context, then the copy */
        return cudaGraphAddMemcpyNode(node, graph, dependencies, count, (const struct Copy3DParameters *)(inner + 16));
    case FILL_NODE:
        return cudaGraphAddMemsetNode(node, graph, dependencies, count, (const struct FillNode *)inner);
    case HOST_NODE:
        return cudaGraphAddHostNode(node, graph, dependencies, count, (const struct Host *)inner);
    case GRAPH_NODE:
        return cudaGraphAddChildGraphNode(node, graph, dependencies, count, *(struct Graph *const *)inner);
    case EMPTY_NODE:
        return cudaGraphAddEmptyNode(node, graph, dependencies, count);
    default:
        return runtime_result(add_special_node(node, graph, dependencies, count, *(const int *)asked, inner));
    }
}

API Result cudaGraphAddNode_v2(struct Node **node, struct Graph *graph, struct Node *const *dependencies,
                               const struct EdgeData *edges, size_t count, void *asked) {
    Result result = add_node_of(node, graph, dependencies, count, asked);
    if (!result)
        take_edges(*node, dependencies, edges, count);
    return result;
}

API Result cudaGraphAddNode(struct Node **node, struct Graph *graph, struct Node *const *dependencies, const void *edges,
                            size_t count, void *asked) {
    return has_cuda_12 ? add_node_of(node, graph, dependencies, (size_t)edges, (void *)count)
                       : cudaGraphAddNode_v2(node, graph, dependencies, edges, count, asked);
}

API Result cudaGraphKernelNodeGetParams(struct Node *node, struct RuntimeKernelNode *out) {
    struct KernelNode found;
    Result result = cuGraphKernelNodeGetParams_v2(node, &found);
    *out = (struct RuntimeKernelNode){found.function, found.grid, found.block, found.shared_bytes, found.parameters, NULL};
    return runtime_result(result);
}

API Result cudaGraphMemcpyNodeSetParams(struct Node *node, const struct Copy3DParameters *asked) {
    return runtime_result(box_of(asked, &node->operation.copy));
}

API Result cudaGraphExecMemcpyNodeSetParams(struct Graph *executable, struct Node *node,
                                            const struct Copy3DParameters *asked) {
    struct Node *found;
    Result result = cuGraphNodeFindInClone(&found, node, executable);
    return result ? result : cudaGraphMemcpyNodeSetParams(found, asked);
}

/* Copies from and to variables of the program. */

static Result symbol_copy(struct Node *node, const void *symbol, size_t offset, char *other, size_t bytes, bool to_symbol) {
    u64 address;
    Result result = start_runtime();
    if (!result)
        result = variable_of(symbol, &address, NULL);
    char *variable = (char *)address + offset;
    if (!result)
        node->operation.copy = (struct Copy){to_symbol ? variable : other, to_symbol ? other : variable, 0, 0, 0, 0,
                                             bytes, 1, 1};
    return runtime_result(result);
}

API Result cudaGraphAddMemcpyNodeToSymbol(NODES, const void *symbol, char *from, size_t bytes, size_t offset, int kind) {
    Result result = cudaGraphAddMemcpyNode1D(node, graph, dependencies, count, NULL, from, bytes, kind);
    return result ? result : symbol_copy(*node, symbol, offset, from, bytes, true);
}

API Result cudaGraphAddMemcpyNodeFromSymbol(NODES, char *to, const void *symbol, size_t bytes, size_t offset, int kind) {
    Result result = cudaGraphAddMemcpyNode1D(node, graph, dependencies, count, to, NULL, bytes, kind);
    return result ? result : symbol_copy(*node, symbol, offset, to, bytes, false);
}
