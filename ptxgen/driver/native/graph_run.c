/* Graphs as they run: an order that dependencies allow, and which nodes none of them orders.
 *
 * Under `eager` the first node runs that can, in the order in which nodes were added; under `late` the last one, and
 * under `random` any.
 */
#include "graph.h"
#include "queues.h"

#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 64, MOST_COMPARED = 4096 }; /* of larger graphs all nodes count as ordered */

static __thread struct Path path;
static u64 runs;

const struct Path *graph_path(void) {
    return &path;
}

static bool is_ready(const struct Node *node, const bool *done) {
    for (size_t at = 0; at < node->dependency_count; at++)
        if (!done[node->dependencies[at]->order])
            return false;
    return true;
}

static size_t words_of(const struct Graph *graph) {
    return (graph->count + WORD_BITS - 1) / WORD_BITS;
}

static bool precedes(const struct Graph *graph, size_t one, size_t other) {
    return graph->before[other * words_of(graph) + one / WORD_BITS] >> one % WORD_BITS & 1;
}

static bool are_all_ordered(const struct Graph *graph) {
    for (size_t one = 0; one < graph->count; one++)
        for (size_t other = 0; other < one; other++)
            if (!precedes(graph, one, other) && !precedes(graph, other, one))
                return false;
    return true;
}

/* A node of a graph was chosen to run: what precedes it. */
static void note_predecessors(struct Graph *graph, size_t at) {
    size_t words = words_of(graph);
    u64 *row = graph->before + at * words;
    const struct Node *node = graph->nodes[at];
    for (size_t on = 0; on < node->dependency_count; on++) {
        size_t dependency = node->dependencies[on]->order;
        for (size_t word = 0; word < words; word++)
            row[word] |= graph->before[dependency * words + word];
        row[dependency / WORD_BITS] |= (u64)1 << dependency % WORD_BITS;
    }
}

static void find_order(struct Graph *graph) {
    if (graph->before || graph->count > MOST_COMPARED)
        return;
    graph->before = calloc(graph->count * words_of(graph) + 1, sizeof *graph->before);
    bool *done = calloc(graph->count + 1, sizeof *done);
    for (bool any = true; any;) {
        any = false;
        for (size_t at = 0; at < graph->count; at++)
            if (!done[at] && is_ready(graph->nodes[at], done)) {
                note_predecessors(graph, at);
                done[at] = any = true;
            }
    }
    free(done);
    if (!are_all_ordered(graph))
        order_new_stream();
}

bool are_unordered_nodes(const struct Path *one, const struct Path *other) {
    for (size_t at = 0; at < one->depth && at < other->depth && at < MOST_NESTED; at++) {
        const struct Place *a = one->places + at, *b = other->places + at;
        if (a->run != b->run)
            return false; /* one after the other */
        if (a->node != b->node)
            return a->graph->before && !precedes(a->graph, a->node, b->node) && !precedes(a->graph, b->node, a->node);
    }
    return false;
}

/* A dependent launch runs right after what it depends on, so that both are compared. */
static struct Node *next_node(const struct Graph *graph, const bool *done, const struct Node *last) {
    u32 delay = machine.delay & 0xff;
    size_t count = graph->count, start = last ? last->order : delay == LATE ? 0 : count - 1;
    if (delay == RANDOM)
        start = draw((u32)count);
    struct Node *found = NULL;
    for (size_t step = 1; step <= count; step++) {
        size_t at = (delay == LATE ? start + count - step : start + step) % count;
        struct Node *node = graph->nodes[at];
        if (done[at] || !is_ready(node, done))
            continue;
        if (last && node->programmatic == last)
            return node;
        if (!found)
            found = node;
        if (!last || !last->has_dependents)
            break;
    }
    return found;
}

static Result run_node(const struct Node *node, bool follows) {
    struct Operation operation = node->operation;
    const char *site = operation.site ? operation.site : "";
    if (operation.kind == OP_LAUNCH) {
        operation.kernel.shape.stream = order_stream();
        operation.kernel.shape.flags |= follows ? FOLLOWS : 0;
    }
    Result result = perform(&operation);
    if (!result && operation.kind == OP_COPY)
        order_copied(&operation.copy, site);
    else if (!result && operation.kind == OP_FILL)
        order_filled(&operation.fill, site);
    return result;
}

Result run_graph(struct Graph *graph) {
    bool *done = calloc(graph->count + 1, sizeof *done);
    assign_defaults(graph->source ? graph->source : graph);
    find_order(graph);
    struct Place *place = path.places + path.depth;
    if (path.depth++ < MOST_NESTED)
        *place = (struct Place){__atomic_add_fetch(&runs, 1, __ATOMIC_RELAXED), graph, 0};
    Result result = SUCCESS;
    struct Node *last = NULL;
    for (size_t left = graph->count; left && !result && !sticky; left--) {
        struct Node *node = next_node(graph, done, last);
        if (!node) {
            result = INVALID_VALUE; /* a cycle */
            break;
        }
        if (path.depth <= MOST_NESTED)
            place->node = node->order;
        if (node->enabled)
            result = run_node(node, last && node->programmatic == last && last->enabled);
        done[node->order] = true;
        last = node;
    }
    path.depth--;
    free(done);
    return result;
}
