/* Shared declarations of the stand-in driver and runtime.
 *
 * Types and numbers are those of CUDA's public interface (CUDA Driver API and Runtime API reference, 13.x), declared
 * anew: no header of NVIDIA's is used. Handles are pointers to the structs below.
 */
#ifndef PTXGEN_STANDIN_H
#define PTXGEN_STANDIN_H

#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All else is hidden, so that no name of ours replaces one of the program's. */
#define API __attribute__((visibility("default")))

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
/* CUresult or cudaError_t: those that are used here have the same numbers in both. */
typedef int Result;

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INVALID_SYMBOL = 13, /* of the runtime alone */
    INVALID_DEVICE_FUNCTION = 98, /* of the runtime alone */
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    INVALID_PTX = 218,
    FILE_NOT_FOUND = 301,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600, /* also the answer to a launch that waits for the program, or for another stream */
    LAUNCH_TIMEOUT = 702,
    FIRST_STICKY = 700,
    LAST_STICKY = 719,
    NOT_SUPPORTED = 801,
    CAPTURE_UNSUPPORTED = 900,
};

/* Messages to the emulator; ptxgen/driver/protocol.py has the same numbers. */
enum Message {
    HELLO = 1,
    ALLOCATE = 2,
    FREE = 3,
    LOAD = 4,
    UNLOAD = 5,
    FUNCTION = 6,
    VARIABLE = 7,
    ENTRIES = 8,
    LAUNCH = 9,
    TENSORMAP = 10,
    RANGE = 11,
    NOTE = 12,
};

/* What an allocation is for; ptxgen/driver/protocol.py has the same numbers. */
enum Kind { DEVICE_MEMORY = 0, PINNED_MEMORY = 1, MANAGED_MEMORY = 2, REGISTERED_MEMORY = 3, VARIABLE_MEMORY = 4 };

struct Extent3 {
    u32 x, y, z;
};

enum Delay { AT_ONCE = 0, LATE = 1, RANDOM = 2 };

/* What HELLO returns. */
struct Machine {
    u64 base, limit;
    u32 capability, multiprocessors, shared_per_multiprocessor;
    u32 delay; /* when operations of streams run: an enum Delay, and from bit 8 on a seed */
};

/* connection.c */
extern struct Machine machine;
extern Result sticky;
Result connect_emulator(void);
bool in_heap(const void *address);
/* The same memory in a mapping of the stand-in's own, which is never protected. */
void *unguarded(const void *address);
bool served(void);
/* Sends one message in two parts and returns the status; `reply` (if given) must be freed. */
Result request(enum Message message, const void *first, size_t first_bytes, const void *second, size_t second_bytes,
               void **reply, size_t *reply_bytes);
/* The same for a launch: where the answer is NOT_READY, the rest of it comes at `*waiting`, a socket of its own. */
Result request_launch(const void *first, size_t first_bytes, const void *second, size_t second_bytes, void **reply,
                      size_t *reply_bytes, int *waiting);
/* The rest of an answer; closes the socket. */
Result receive_answer(int waiting, void **reply, size_t *reply_bytes);
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
Result unsupported(const char *name);
void print_later(const char *text, size_t bytes);
void print_pending(void);

/* memory.c */
Result allocate(u64 bytes, enum Kind kind, u64 *address);
Result release(u64 address);
struct Range {
    u64 address, bytes;
    u32 kind, padding;
};
bool find_range(u64 address, struct Range *found);
void know_range(u64 address, u64 bytes, enum Kind kind);
struct Copy;
struct Stream;
Result copy_box(struct Stream *stream, const struct Copy *copy);

/* order.c: what happens before what, by streams; those from CLOCKS on are not followed */
enum { CLOCKS = 32 };
struct Clock {
    u64 of[CLOCKS];
};
struct Issue { /* the place of an operation: number `number` of stream `slot`, after what `clock` says */
    int slot;
    u64 number;
    struct Clock clock;
};
struct Fill;
void order_new_stream(void);
void order_allocated(enum Kind kind);
bool order_matters(void);
struct Issue order_issue(struct Stream *stream, const struct Clock *implicit);
void order_join(struct Clock *to, const struct Clock *from);
void order_waited(const struct Clock *clock, bool idle);
const struct Issue *order_begins(const struct Issue *issue);
void order_handed_on(struct Clock *to);
void order_ends(const struct Issue *before);
u32 order_stream(void);
void order_calls_back(void);
void order_copied(const struct Copy *copy, const char *site);
void order_filled(const struct Fill *fill, const char *site);
void order_launched(const char *name, u32 launch, const char *site, const void *parts, size_t count, bool waited);
void order_freed(u64 address, u64 bytes, const char *site);

/* stream.c: operations of streams */
struct Function;
struct Graph;
struct Event;

enum OperationKind {
    OP_EMPTY, OP_COPY, OP_FILL, OP_LAUNCH, OP_HOST, OP_GRAPH, OP_FREE, OP_RECORD, OP_WAIT, OP_ALLOCATE, OP_CONDITIONAL,
    OP_WAIT_VALUE,
};

struct Copy { /* the site, where in the program it was issued, is the operation's own */
    char *to;
    const char *from;
    size_t to_pitch, from_pitch, to_slice, from_slice, width, height, depth;
};

struct Fill {
    char *to;
    size_t pitch, width, height; /* width in elements */
    u32 value, element;
};

struct LaunchShape {
    u32 function;
    struct Extent3 grid, block, cluster;
    u32 shared_bytes, flags;
    u32 stream;
};
enum { COOPERATIVE = 1, PROGRAMMATIC = 2, WANTS_ACCESSES = 4, MAY_WAIT = 8, FOLLOWS = 16 };

struct Kernel {
    struct Function *function;
    struct LaunchShape shape;
    u8 *parameters; /* and after them where in the program the launch is */
    size_t site_bytes;
};

struct Host {
    void (*call)(void *);
    void *data;
};

/* A stream waits until a word of memory has a value (CUstreamWaitValue_flags). */
struct WaitedValue {
    u64 address, value;
    u32 flags, bytes;
};

/* A place in a stream: after so many of its operations. */
struct Point {
    struct Stream *stream;
    u64 operations;
};

struct Operation {
    enum OperationKind kind;
    char *site; /* where in the program a copy, fill or free was issued; NULL where nobody asks */
    void *staged; /* what a copy from memory that is not pinned reads; freed once it has run */
    union {
        struct Copy copy;
        struct Fill fill;
        struct Kernel kernel;
        struct Host host;
        struct Graph *graph;
        struct Event *event;
        struct Point point; /* the stream waits until another one has come so far */
        struct WaitedValue value;
        u64 address;
        struct Conditional *conditional;
    };
};

/* Nodes of a graph that the next operation of a capturing stream depends on. */
struct Frontier {
    struct Node **nodes;
    size_t count;
};

struct Queued;
struct Stream {
    u32 magic, id;
    struct Graph *capture;
    struct Frontier frontier; /* while it captures */
    int flags, priority;
    struct Queued *first, *last; /* operations that have not run yet */
    u64 issued, done;            /* operations so far */
    bool has_waiting, is_busy;   /* the first one is a launch that waits; a callback of the program runs */
    int waiting;                 /* where the rest of the answer to that launch comes */
    pthread_t runner;            /* of the callback */
    struct Clock clock;          /* of its last operation */
    struct Stream *next;         /* of all streams, the newest first */
};

struct Event {
    u32 magic;
    struct Graph *capture;
    struct Frontier frontier; /* of the stream that recorded it, if that captured */
    bool recorded;
    double milliseconds;
    u64 shared; /* a word of the heap for other processes: how many records have run; 0 if it has none */
    struct Point point;
    struct Clock clock;
};

extern u64 device_nanoseconds;
/* The stream that a handle means: 0, 1 and 2 are those of default streams. */
struct Stream *stream_of(struct Stream *stream);
struct Graph *capture_of(struct Stream *stream);
Result submit(struct Stream *stream, const struct Operation *operation);
Result perform(const struct Operation *operation);
Result synchronize(void);
Result synchronize_stream(struct Stream *stream);
bool any_pending(void);
u32 stream_number(struct Stream *stream);

/* capture.c */
void capture(struct Stream *stream, const struct Operation *operation);
bool capture_event(struct Stream *stream, struct Event *event);
void capture_wait(struct Stream *stream, const struct Event *event);

/* graph.c */
struct Node {
    struct Graph *graph;
    struct Operation operation;
    struct Node **dependencies;
    size_t dependency_count;
    struct Node *programmatic; /* a kernel beside which this one may run: the edge from it is programmatic */
    bool enabled, has_dependents; /* the latter: it is `programmatic` of another node */
    size_t order; /* place in the graph */
};
struct Node *add_node(struct Graph *graph, struct Node *const *dependencies, size_t count,
                      const struct Operation *operation);
struct Graph *new_graph(void);
struct Graph *copy_of(const struct Graph *graph);
void depend(struct Node *node, struct Node *on);

/* graph_run.c */
enum { MOST_NESTED = 4 };
struct Place { /* a node of a graph that runs for the `run`th time of all */
    u64 run;
    const struct Graph *graph;
    size_t node;
};
struct Path { /* from the outermost graph to the node that runs; empty outside of graphs */
    size_t depth;
    struct Place places[MOST_NESTED];
};
Result run_graph(struct Graph *graph);
const struct Path *graph_path(void);
bool are_unordered_nodes(const struct Path *one, const struct Path *other);

/* CUgraphNodeType. */
enum {
    KERNEL_NODE = 0, COPY_NODE = 1, FILL_NODE = 2, HOST_NODE = 3, GRAPH_NODE = 4, EMPTY_NODE = 5, WAIT_NODE = 6,
    RECORD_NODE = 7, ALLOCATION_NODE = 10, FREE_NODE = 11, CONDITIONAL_NODE = 13,
};
struct KernelNode { /* CUDA_KERNEL_NODE_PARAMS_v2, whose first members are those of _v1 */
    struct Function *function;
    struct Extent3 grid, block;
    u32 shared_bytes;
    void **parameters, **extra;
    struct Function *kernel;
    void *context;
};
struct FillNode { /* CUDA_MEMSET_NODE_PARAMS */
    u64 to;
    size_t pitch;
    u32 value, element;
    size_t width, height;
};

/* graph_nodes.c: memory of graphs, and nodes that run graphs under a condition */
Result allocate_in_graph(u64 bytes, u64 *address);
bool is_graph_memory(u64 address);
Result add_special_node(struct Node **node, struct Graph *graph, struct Node *const *dependencies, size_t count, int type,
                        void *asked);
void assign_defaults(const struct Graph *graph);
struct Conditional *copy_of_conditional(const struct Conditional *conditional);
Result run_conditional(const struct Conditional *conditional);

/* module.c */
enum { FUNCTION_ATTRIBUTES = 18 };
struct Module;
struct Function {
    u32 magic, number;
    struct Module *module;
    char *name;
    u32 parameter_count, parameter_bytes;
    u32 *offsets, *sizes;
    int attributes[FUNCTION_ATTRIBUTES];
    struct Function *next;
};
bool is_function(const void *handle);
bool is_valid_shape(struct Extent3 grid, struct Extent3 block);
Result load_module(const void *image, struct Module **made);
Result find_function(struct Module *module, const char *name, struct Function **found);
Result find_variable(struct Module *module, const char *name, u64 *address, size_t *bytes);
Result prepare_launch(struct Function *function, struct Extent3 grid, struct Extent3 block, u32 shared_bytes,
                      void **parameters, void **extra, struct Operation *made);

/* link.c: several images that are loaded as one module (images.py) */
enum { BUNDLE_MARK_BYTES = 16 };
bool is_bundle(const u8 *image);
u64 bundle_bytes(const u8 *bundle);
void append_image(u8 **bundle, const void *image, u64 bytes);

/* Types of the public interface. */
struct LaunchAttribute {
    int id, padding;
    union {
        char bytes[64];
        int flag;
        struct Extent3 extent;
    } value;
};
struct DriverLaunch {
    u32 grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    struct Stream *stream;
    struct LaunchAttribute *attributes;
    u32 attribute_count;
};
Result launch_with_attributes(const struct DriverLaunch *launch, struct Function *function, void **parameters,
                              void **extra);

/* device.c */
int device_attribute(int attribute);
int resident_blocks(const struct Function *function, int block, size_t dynamic_bytes);

/* lookup.c */
const char *error_name(Result error, bool runtime);
const char *error_text(Result error);
struct DriverName {
    const char *name;
    int version;
    void *function;
    const char *exported;
};
struct RuntimeName {
    const char *name;
    void *function;
};
extern const struct DriverName driver_names[];
extern const struct RuntimeName runtime_names[];
void *driver_function(const char *name, int version, bool *known);
void *runtime_function(const char *name);

/* thread_streams.c */
extern bool has_thread_streams;
void *thread_stream_variant(const char *name);
/* The variant of a function that takes the handle 0 for the thread's own stream; the function itself if it has none. */
void *thread_stream_variant_of(void *function);

/* warp.c */
bool is_warp(const void *caller);

/* callsite.c */
void call_site(char *site, size_t bytes);

/* ipc.c */
bool forget_import(u64 address);

/* patch.c */
void patch_new_objects(void);
extern bool has_cuda_12; /* a copy of the runtime of CUDA 12 was replaced */
bool was_patched(const void *base);
void *next_symbol(const char *name);

/* An image in which PTX stands for a cubin: an ELF header, this mark, and the text. */
#define PTX_MARK "//ptxgen-ptx\n"
enum { PTX_HEADER_BYTES = 64 + sizeof PTX_MARK - 1 };
void write_ptx_header(char *image, size_t text_bytes);

#endif
