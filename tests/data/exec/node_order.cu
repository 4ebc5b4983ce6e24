// Which nodes of a graph nothing orders: `node_order WHAT [bug]`; with `bug` a dependency is missing.
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    auto error = (call);                                                                                               \
    if (int(error)) {                                                                                                  \
      fprintf(stderr, "%s:%d: error %d\n", #call, __LINE__, int(error));                                               \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

__global__ void set(int *x, int value) { x[threadIdx.x] = value; }
__global__ void twice(const int *x, int *y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
__global__ void produce(int *x, int value) {
  cudaTriggerProgrammaticLaunchCompletion();
  x[threadIdx.x] = value;
}
__global__ void consume(const int *x, int *y, bool waits) {
  if (waits)
    cudaGridDependencySynchronize();
  y[threadIdx.x] = 2 * x[threadIdx.x];
}

static int *x, *y, host[32];
static cudaStream_t stream, other;

static bool launch(cudaGraph_t graph) {
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  for (int at = 0; at < 2; at++)
    CHECK(cudaGraphLaunch(executable, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost));
  for (int each : host)
    if (each != 14)
      return false;
  return true;
}

static cudaGraphNode_t add_set(cudaGraph_t graph, int value) {
  cudaGraphNode_t node;
  cudaKernelNodeParams asked = {};
  void *parameters[] = {&x, &value};
  asked.func = (void *)set, asked.gridDim = dim3(1), asked.blockDim = dim3(32), asked.kernelParams = parameters;
  CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &asked));
  return node;
}

static cudaGraphNode_t add_twice(cudaGraph_t graph, const cudaGraphNode_t *before, size_t count) {
  cudaGraphNode_t node;
  cudaKernelNodeParams asked = {};
  void *parameters[] = {&x, &y};
  asked.func = (void *)twice, asked.gridDim = dim3(1), asked.blockDim = dim3(32), asked.kernelParams = parameters;
  CHECK(cudaGraphAddKernelNode(&node, graph, before, count, &asked));
  return node;
}

static bool kernels(bool bug) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t first = add_set(graph, 7);
  add_twice(graph, &first, bug ? 0 : 1); // two kernels
  return launch(graph);
}

// What orders two nodes may be a third one.
static bool between(bool bug) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t first = add_set(graph, 7), empty;
  CHECK(cudaGraphAddEmptyNode(&empty, graph, &first, bug ? 0 : 1));
  add_twice(graph, &empty, 1); // behind an empty node
  return launch(graph);
}

static bool copy(bool bug) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t first;
  int *from;
  CHECK(cudaMalloc(&from, sizeof host));
  for (int &each : host)
    each = 7;
  CHECK(cudaMemcpy(from, host, sizeof host, cudaMemcpyHostToDevice));
  CHECK(cudaGraphAddMemcpyNode1D(&first, graph, nullptr, 0, x, from, sizeof host, cudaMemcpyDeviceToDevice));
  add_twice(graph, &first, bug ? 0 : 1); // a copy and a kernel
  return launch(graph);
}

static bool fill(bool bug) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t first;
  cudaMemsetParams asked = {x, 0, 7, 4, 32, 1};
  CHECK(cudaGraphAddMemsetNode(&first, graph, nullptr, 0, &asked));
  add_twice(graph, &first, bug ? 0 : 1); // a fill and a kernel
  return launch(graph);
}

static bool child(bool bug) {
  cudaGraph_t graph, inner;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphCreate(&inner, 0));
  add_set(inner, 7);
  cudaGraphNode_t first;
  CHECK(cudaGraphAddChildGraphNode(&first, graph, nullptr, 0, inner));
  add_twice(graph, &first, bug ? 0 : 1); // a graph in a graph
  return launch(graph);
}

static bool inside(bool bug) {
  cudaGraph_t graph, inner;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphCreate(&inner, 0));
  cudaGraphNode_t first = add_set(inner, 7), node;
  add_twice(inner, &first, bug ? 0 : 1); // both in a graph in a graph
  CHECK(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, inner));
  return launch(graph);
}

static bool removed(bool bug) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t first = add_set(graph, 7), second = add_twice(graph, &first, 1); // its dependency is removed
  if (bug)
    CHECK(cudaGraphRemoveDependencies(graph, &first, &second, nullptr, 1));
  return launch(graph);
}

static bool capture(bool bug) {
  cudaGraph_t graph;
  cudaEvent_t forked, joined;
  CHECK(cudaEventCreate(&forked));
  CHECK(cudaEventCreate(&joined));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(forked, stream));
  CHECK(cudaStreamWaitEvent(other, forked));
  set<<<1, 32, 0, other>>>(x, 7);
  CHECK(cudaEventRecord(joined, other));
  if (!bug)
    CHECK(cudaStreamWaitEvent(stream, joined));
  twice<<<1, 32, 0, stream>>>(x, y); // joined too late
  if (bug)
    CHECK(cudaStreamWaitEvent(stream, joined));
  CHECK(cudaStreamEndCapture(stream, &graph));
  return launch(graph);
}

static void launch_dependent(bool waits) {
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t asked = {};
  asked.gridDim = dim3(1), asked.blockDim = dim3(32), asked.stream = stream, asked.attrs = &attribute, asked.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&asked, consume, (const int *)x, y, waits));
}

static bool dependent(bool bug) {
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  produce<<<1, 32, 0, stream>>>(x, 7);
  launch_dependent(!bug);
  CHECK(cudaStreamEndCapture(stream, &graph));
  return launch(graph);
}

static bool programmatic(bool bug) {
  cudaGraph_t graph;
  int value = 7;
  bool waits = !bug;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t first, second;
  cudaKernelNodeParams asked = {};
  void *stores[] = {&x, &value}, *loads[] = {&x, &y, &waits};
  asked.func = (void *)produce, asked.gridDim = dim3(1), asked.blockDim = dim3(32), asked.kernelParams = stores;
  CHECK(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &asked));
  asked.func = (void *)consume, asked.kernelParams = loads;
  CHECK(cudaGraphAddKernelNode(&second, graph, nullptr, 0, &asked));
  cudaGraphEdgeData edge = {}, found = {};
  edge.from_port = cudaGraphKernelNodePortProgrammatic, edge.type = cudaGraphDependencyTypeProgrammatic;
  size_t count = 1;
  CHECK(cudaGraphAddDependencies(graph, &first, &second, &edge, 1));
  CHECK(cudaGraphNodeGetDependencies(second, &first, &found, &count));
  return count == 1 && !memcmp(&edge, &found, sizeof edge) && launch(graph);
}

int main(int count, char **words) {
  static const struct {
    const char *name;
    bool (*run)(bool);
  } cases[] = {{"kernels", kernels}, {"between", between},     {"copy", copy},           {"fill", fill},
               {"child", child},     {"inside", inside},       {"removed", removed},     {"capture", capture},
               {"dependent", dependent}, {"programmatic", programmatic}};
  CHECK(cudaMalloc(&x, sizeof host));
  CHECK(cudaMalloc(&y, sizeof host));
  CHECK(cudaMemset(x, 0, sizeof host));
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamCreate(&other));
  for (auto &each : cases)
    if (count > 1 && !strcmp(each.name, words[1])) {
      bool right = each.run(count > 2);
      puts(right ? "PASS" : "FAIL");
      return !right;
    }
  return 3;
}
