/* Graphs: memory that they allocate, nodes that run a graph under a condition, and what nodes say of themselves. */
#include "standin.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Memory of graphs has its address from when its node is made. A graph may be launched again after it has freed it, so
 * that it stays allocated. */
static struct Owned {
    u64 address, bytes;
    struct Owned *next;
} *owned;
static pthread_mutex_t owned_lock = PTHREAD_MUTEX_INITIALIZER;
static u64 owned_bytes;

Result allocate_in_graph(u64 bytes, u64 *address) {
    Result result = bytes ? allocate(bytes, DEVICE_MEMORY, address) : INVALID_VALUE;
    if (result)
        return result;
    struct Owned *made = malloc(sizeof *made);
    pthread_mutex_lock(&owned_lock);
    *made = (struct Owned){*address, bytes, owned};
    owned = made;
    owned_bytes += bytes;
    pthread_mutex_unlock(&owned_lock);
    return SUCCESS;
}

bool is_graph_memory(u64 address) {
    pthread_mutex_lock(&owned_lock);
    struct Owned *each = owned;
    while (each && each->address != address)
        each = each->next;
    pthread_mutex_unlock(&owned_lock);
    return each != NULL;
}

struct AllocationNode { /* CUDA_MEM_ALLOC_NODE_PARAMS and cudaMemAllocNodeParams: a pool's properties come first */
    char pool[88];
    const void *access;
    size_t access_count, bytes;
    u64 address;
};

API Result cuGraphAddMemAllocNode(struct Node **node, struct Graph *graph, struct Node *const *dependencies,
                                  size_t count, struct AllocationNode *asked) {
    struct Operation operation = {.kind = OP_ALLOCATE};
    Result result = allocate_in_graph(asked->bytes, &operation.address);
    if (result)
        return result;
    asked->address = operation.address;
    *node = add_node(graph, dependencies, count, &operation);
    return SUCCESS;
}

API Result cuGraphAddMemFreeNode(struct Node **node, struct Graph *graph, struct Node *const *dependencies,
                                 size_t count, u64 address) {
    struct Operation operation = {.kind = OP_FREE, .address = address};
    struct Range found;
    if (!find_range(address, &found) || found.address != address)
        return INVALID_VALUE;
    *node = add_node(graph, dependencies, count, &operation);
    return SUCCESS;
}

API Result cuGraphMemAllocNodeGetParams(struct Node *node, struct AllocationNode *asked) {
    struct Range found;
    memset(asked, 0, sizeof *asked);
    asked->address = node->operation.address;
    if (find_range(asked->address, &found))
        asked->bytes = found.bytes;
    return SUCCESS;
}

API Result cuGraphMemFreeNodeGetParams(struct Node *node, u64 *address) {
    *address = node->operation.address;
    return SUCCESS;
}

API Result cuDeviceGraphMemTrim(int device) {
    return device ? INVALID_DEVICE : SUCCESS;
}

API Result cuDeviceGetGraphMemAttribute(int device, int attribute, u64 *value) {
    (void)attribute; /* what is used and reserved, now and at most, is the same here */
    *value = owned_bytes;
    return device ? INVALID_DEVICE : SUCCESS;
}

API Result cuDeviceSetGraphMemAttribute(int device, int attribute, u64 *value) {
    (void)attribute, (void)value;
    return device ? INVALID_DEVICE : SUCCESS;
}

/* Conditions. A handle is the address of a word in device memory, which cudaGraphSetConditional of kernels stores. */

struct Default { /* what a word is at each launch of the graph that it was made for */
    const struct Graph *graph;
    u64 handle;
    u32 value;
    struct Default *next;
};
static struct Default *defaults;

API Result cuGraphConditionalHandleCreate(u64 *handle, struct Graph *graph, void *context, u32 value, u32 flags) {
    enum { ASSIGN_DEFAULT = 1 };
    (void)context;
    Result result = allocate(sizeof value, DEVICE_MEMORY, handle);
    if (result)
        return result;
    *(u32 *)unguarded((void *)*handle) = value;
    if (flags & ASSIGN_DEFAULT) {
        struct Default *made = malloc(sizeof *made);
        *made = (struct Default){graph, *handle, value, defaults};
        defaults = made;
    }
    return SUCCESS;
}

void assign_defaults(const struct Graph *graph) {
    for (struct Default *each = defaults; each; each = each->next)
        if (each->graph == graph)
            *(u32 *)unguarded((void *)each->handle) = each->value;
}

struct Conditional {
    u64 handle;
    int type;
    u32 count;
    struct Graph **bodies;
};
enum { IF = 0, WHILE = 1, SWITCH = 2 };

struct ConditionalNode { /* CUDA_CONDITIONAL_NODE_PARAMS and cudaConditionalNodeParams */
    u64 handle;
    int type;
    u32 count;
    struct Graph **bodies;
    void *context;
};

static Result add_conditional(struct Node **node, struct Graph *graph, struct Node *const *dependencies, size_t count,
                              struct ConditionalNode *asked) {
    if (!in_heap((void *)asked->handle) || !asked->count || asked->type < IF || asked->type > SWITCH)
        return INVALID_VALUE;
    struct Conditional *made = malloc(sizeof *made);
    *made = (struct Conditional){asked->handle, asked->type, asked->count, NULL};
    made->bodies = calloc(asked->count, sizeof *made->bodies);
    for (u32 at = 0; at < made->count; at++)
        made->bodies[at] = new_graph();
    asked->bodies = made->bodies;
    struct Operation operation = {.kind = OP_CONDITIONAL, .conditional = made};
    *node = add_node(graph, dependencies, count, &operation);
    return SUCCESS;
}

struct Conditional *copy_of_conditional(const struct Conditional *conditional) {
    struct Conditional *made = malloc(sizeof *made);
    *made = *conditional;
    made->bodies = calloc(made->count, sizeof *made->bodies);
    for (u32 at = 0; at < made->count; at++)
        made->bodies[at] = copy_of(conditional->bodies[at]);
    return made;
}

Result run_conditional(const struct Conditional *conditional) {
    Result result = SUCCESS;
    const u32 *word = unguarded((void *)conditional->handle);
    if (conditional->type == WHILE) {
        while (*word && !result && !sticky)
            result = run_graph(conditional->bodies[0]);
        return result;
    }
    u32 chosen = conditional->type == SWITCH ? *word : !*word;
    return chosen < conditional->count ? run_graph(conditional->bodies[chosen]) : SUCCESS;
}

/* Nodes of events, memory and conditions, by type (CUgraphNodeType) and with their parameters. */
Result cuGraphAddEventWaitNode(struct Node **node, struct Graph *graph, struct Node *const *dependencies, size_t count,
                               struct Event *event);
Result cuGraphAddEventRecordNode(struct Node **node, struct Graph *graph, struct Node *const *dependencies, size_t count,
                                 struct Event *event);

Result add_special_node(struct Node **node, struct Graph *graph, struct Node *const *dependencies, size_t count, int type,
                        void *asked) {
    switch (type) {
    case WAIT_NODE:
        return cuGraphAddEventWaitNode(node, graph, dependencies, count, *(struct Event **)asked);
    case RECORD_NODE:
        return cuGraphAddEventRecordNode(node, graph, dependencies, count, *(struct Event **)asked);
    case ALLOCATION_NODE:
        return cuGraphAddMemAllocNode(node, graph, dependencies, count, asked);
    case FREE_NODE:
        return cuGraphAddMemFreeNode(node, graph, dependencies, count, *(u64 *)asked);
    case CONDITIONAL_NODE:
        return add_conditional(node, graph, dependencies, count, asked);
    default:
        return unsupported("cuGraphAddNode with this type of node");
    }
}

/* What nodes say of themselves. */

API Result cuGraphKernelNodeGetParams_v2(struct Node *node, struct KernelNode *out) {
    const struct Kernel *kernel = &node->operation.kernel;
    const struct Function *function = kernel->function;
    void **parameters = calloc(function->parameter_count + 1, sizeof *parameters); /* valid as long as the node */
    for (u32 at = 0; at < function->parameter_count; at++)
        parameters[at] = kernel->parameters + function->offsets[at];
    *out = (struct KernelNode){.function = kernel->function, .grid = kernel->shape.grid, .block = kernel->shape.block,
                               .shared_bytes = kernel->shape.shared_bytes, .parameters = parameters};
    return SUCCESS;
}

API Result cuGraphKernelNodeGetParams(struct Node *node, struct KernelNode *out) {
    struct KernelNode found;
    Result result = cuGraphKernelNodeGetParams_v2(node, &found);
    memcpy(out, &found, offsetof(struct KernelNode, kernel));
    return result;
}

API Result cuGraphMemsetNodeGetParams(struct Node *node, struct FillNode *out) {
    const struct Fill *fill = &node->operation.fill;
    *out = (struct FillNode){(u64)fill->to, fill->pitch, fill->value, fill->element, fill->width, fill->height};
    return SUCCESS;
}

API Result cuGraphHostNodeGetParams(struct Node *node, struct Host *out) {
    *out = node->operation.host;
    return SUCCESS;
}
