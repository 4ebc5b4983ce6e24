// Graphs, callbacks, memory of other processes and virtual memory, as programs use them: `graphs WHAT`.
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <mutex>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    auto error = (call);                                                                                               \
    if (int(error)) {                                                                                                  \
      fprintf(stderr, "%s:%d: error %d\n", #call, __LINE__, int(error));                                               \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

__global__ void set(int *x, int value) { x[threadIdx.x] = value; }
__global__ void add(int *to, const int *a, const int *b) { to[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }
__global__ void step(int *x, cudaGraphConditionalHandle handle, int until) {
  if (threadIdx.x == 0) {
    int next = ++*x;
    cudaGraphSetConditional(handle, next < until);
  }
}
__global__ void choose(cudaGraphConditionalHandle handle, unsigned value) { cudaGraphSetConditional(handle, value); }
__global__ void exchange(int *x) {
  __shared__ int tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = tile[63 - threadIdx.x]; // no barrier in a body
}

static int *device(int count) {
  int *made;
  CHECK(cudaMalloc(&made, count * sizeof(int)));
  CHECK(cudaMemset(made, 0, count * sizeof(int)));
  return made;
}

static bool all(const int *d, int count, int value) {
  std::vector<int> h(count);
  CHECK(cudaMemcpy(h.data(), d, count * sizeof(int), cudaMemcpyDeviceToHost));
  for (int each : h)
    if (each != value)
      return false;
  return true;
}

// A stream forks into two and joins them: five nodes, one root, dependencies as captured.
static bool capture() {
  int *a = device(32), *b = device(32), *c = device(32);
  cudaStream_t first, second;
  cudaEvent_t forked, joined;
  CHECK(cudaStreamCreate(&first));
  CHECK(cudaStreamCreate(&second));
  CHECK(cudaEventCreate(&forked));
  CHECK(cudaEventCreate(&joined));
  CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemsetAsync(c, 0, 128, first));
  CHECK(cudaEventRecord(forked, first));
  CHECK(cudaStreamWaitEvent(second, forked, 0));
  set<<<1, 32, 0, first>>>(a, 3);
  set<<<1, 32, 0, second>>>(b, 4);
  CHECK(cudaEventRecord(joined, second));
  CHECK(cudaStreamWaitEvent(first, joined, 0));
  cudaStreamCaptureStatus status;
  size_t waits;
  CHECK(cudaStreamGetCaptureInfo(first, &status, nullptr, nullptr, nullptr, nullptr, &waits));
  add<<<1, 32, 0, first>>>(c, a, b);
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(first, &graph));
  size_t nodes, roots = 0, edges = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  if (status != cudaStreamCaptureStatusActive || waits != 2 || nodes != 4 || roots != 1 || edges != 4)
    return false;
  // The parameters of a node, changed in the instance.
  std::vector<cudaGraphNode_t> list(nodes);
  CHECK(cudaGraphGetNodes(graph, list.data(), &nodes));
  cudaGraphExec_t instance;
  CHECK(cudaGraphInstantiate(&instance, graph, 0));
  CHECK(cudaGraphLaunch(instance, first));
  CHECK(cudaStreamSynchronize(first));
  if (!all(c, 32, 7))
    return false;
  cudaKernelNodeParams parameters;
  CHECK(cudaGraphKernelNodeGetParams(list[1], &parameters));
  int ten = 10;
  void *arguments[] = {parameters.kernelParams[0], &ten};
  parameters.kernelParams = arguments;
  CHECK(cudaGraphExecKernelNodeSetParams(instance, list[1], &parameters));
  CHECK(cudaGraphLaunch(instance, first));
  CHECK(cudaStreamSynchronize(first));
  return all(c, 32, 14);
}

// Memory of the graph itself, by nodes and by capture; launched twice.
static bool memory() {
  int *out = device(32);
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaMemAllocNodeParams asked = {};
  asked.bytesize = 128;
  asked.poolProps.allocType = cudaMemAllocationTypePinned;
  asked.poolProps.location.type = cudaMemLocationTypeDevice;
  cudaGraphNode_t allocated, filled, copied, freed;
  CHECK(cudaGraphAddMemAllocNode(&allocated, graph, nullptr, 0, &asked));
  cudaMemsetParams fill = {};
  fill.dst = asked.dptr;
  fill.value = 5;
  fill.elementSize = 4;
  fill.width = 32;
  fill.height = 1;
  CHECK(cudaGraphAddMemsetNode(&filled, graph, &allocated, 1, &fill));
  CHECK(cudaGraphAddMemcpyNode1D(&copied, graph, &filled, 1, out, asked.dptr, 128, cudaMemcpyDeviceToDevice));
  CHECK(cudaGraphAddMemFreeNode(&freed, graph, &copied, 1, asked.dptr));
  cudaGraphExec_t instance;
  CHECK(cudaGraphInstantiate(&instance, graph, 0));
  for (int times = 0; times < 2; times++) {
    CHECK(cudaMemset(out, 0, 128));
    CHECK(cudaGraphLaunch(instance, stream));
    CHECK(cudaStreamSynchronize(stream));
    if (!all(out, 32, 5))
      return false;
  }
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  int *temporary;
  CHECK(cudaMallocAsync(&temporary, 128, stream));
  set<<<1, 32, 0, stream>>>(temporary, 6);
  add<<<1, 32, 0, stream>>>(out, temporary, temporary);
  CHECK(cudaFreeAsync(temporary, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&instance, graph, 0));
  for (int times = 0; times < 2; times++)
    CHECK(cudaGraphLaunch(instance, stream));
  CHECK(cudaStreamSynchronize(stream));
  return all(out, 32, 12);
}

static cudaGraph_t body_of(cudaGraph_t graph, cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type,
                           cudaGraphNode_t after, unsigned count = 1, unsigned which = 0) {
  cudaGraphNodeParams asked = {};
  asked.type = cudaGraphNodeTypeConditional;
  asked.conditional.handle = handle;
  asked.conditional.type = type;
  asked.conditional.size = count;
  cudaGraphNode_t node;
  CHECK(cudaGraphAddNode(&node, graph, after ? &after : nullptr, nullptr, after ? 1 : 0, &asked));
  return asked.conditional.phGraph_out[which];
}

static cudaGraphNode_t kernel_in(cudaGraph_t graph, void *kernel, void **arguments, unsigned threads = 1) {
  cudaKernelNodeParams asked = {};
  asked.func = kernel;
  asked.gridDim = 1;
  asked.blockDim = threads;
  asked.kernelParams = arguments;
  cudaGraphNode_t node;
  CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &asked));
  return node;
}

// A loop of seven steps whose condition a kernel sets, at each of two launches; then one of three bodies.
static bool conditions(bool race) {
  int *count = device(1), *out = device(64);
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle again, which;
  CHECK(cudaGraphConditionalHandleCreate(&again, graph, 1, cudaGraphCondAssignDefault));
  int until = 7;
  void *arguments[] = {&count, &again, &until};
  kernel_in(body_of(graph, again, cudaGraphCondTypeWhile, nullptr), (void *)step, arguments);
  CHECK(cudaGraphConditionalHandleCreate(&which, graph, 0, cudaGraphCondAssignDefault));
  unsigned second = 1;
  void *chosen[] = {&which, &second};
  cudaGraphNode_t before = kernel_in(graph, (void *)choose, chosen);
  cudaGraph_t body = body_of(graph, which, cudaGraphCondTypeSwitch, before, 3, 1);
  int nine = 9;
  void *filled[] = {&out, &nine};
  if (race)
    kernel_in(body, (void *)exchange, filled, 64);
  else
    kernel_in(body, (void *)set, filled, 64);
  cudaGraphExec_t instance;
  CHECK(cudaGraphInstantiate(&instance, graph, 0));
  CHECK(cudaGraphLaunch(instance, 0));
  CHECK(cudaDeviceSynchronize());
  if (!all(count, 1, 7) || !all(out, 64, race ? 0 : 9))
    return false;
  CHECK(cudaGraphLaunch(instance, 0)); // the condition is 1 again: one more step
  CHECK(cudaDeviceSynchronize());
  return all(count, 1, 8);
}

// A child process adds to memory of its parent's, after an event of the parent's.
static bool processes() {
  int down[2], up[2];
  if (pipe(down) || pipe(up))
    return false;
  if (!fork()) {
    cudaIpcMemHandle_t handle;
    cudaIpcEventHandle_t event_handle;
    if (read(down[0], &handle, sizeof handle) < 0 || read(down[0], &event_handle, sizeof event_handle) < 0)
      _exit(1);
    int *x;
    cudaEvent_t event;
    CHECK(cudaIpcOpenMemHandle((void **)&x, handle, cudaIpcMemLazyEnablePeerAccess));
    CHECK(cudaIpcOpenEventHandle(&event, event_handle));
    CHECK(cudaStreamWaitEvent(0, event, 0));
    add<<<1, 32>>>(x, x, x);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaIpcCloseMemHandle(x));
    _exit(write(up[1], "!", 1) != 1);
  }
  int *x = device(32);
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
  set<<<1, 32>>>(x, 21);
  CHECK(cudaEventRecord(event, 0));
  cudaIpcMemHandle_t handle;
  cudaIpcEventHandle_t event_handle;
  CHECK(cudaIpcGetMemHandle(&handle, x));
  CHECK(cudaIpcGetEventHandle(&event_handle, event));
  char answer;
  int status;
  if (write(down[1], &handle, sizeof handle) < 0 || write(down[1], &event_handle, sizeof event_handle) < 0 ||
      read(up[0], &answer, 1) != 1 || wait(&status) < 0)
    return false;
  bool right = !status && all(x, 32, 42);
  CHECK(cudaFree(x)); // once, by its owner
  return right;
}

// A callback wakes a thread of the program, which reads what the stream has copied before the callback.
struct Shared {
  std::mutex mutex;
  std::condition_variable woken;
  bool ready = false;
};
static void wake(void *data) {
  auto *shared = (Shared *)data;
  std::lock_guard<std::mutex> guard(shared->mutex);
  shared->ready = true;
  shared->woken.notify_all();
}
static bool callback() {
  const int n = 4096;
  int *d = device(n), *pinned;
  bool right = true;
  CHECK(cudaMallocHost(&pinned, n * sizeof(int)));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  Shared shared;
  std::thread reader([&] {
    std::unique_lock<std::mutex> lock(shared.mutex);
    shared.woken.wait(lock, [&] { return shared.ready; });
    for (int at = 0; at < n; at++)
      right &= pinned[at] == 2;
  });
  for (int at = 0; at < n; at += 1024)
    set<<<1, 1024, 0, stream>>>(d + at, 2);
  CHECK(cudaMemcpyAsync(pinned, d, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaLaunchHostFunc(stream, wake, &shared));
  reader.join();
  return right;
}

static bool virtual_memory() {
  CHECK(cudaFree(nullptr));
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  size_t granularity;
  void *function;
  cudaDriverEntryPointQueryResult found;
#define DRIVER(name)                                                                                                   \
  decltype(&::name) name;                                                                                              \
  CHECK(cudaGetDriverEntryPointByVersion(#name, &function, 13000, cudaEnableDefault, &found));                         \
  name = (decltype(&::name))function
  DRIVER(cuMemGetAllocationGranularity);
  DRIVER(cuMemAddressReserve);
  DRIVER(cuMemCreate);
  DRIVER(cuMemMap);
  DRIVER(cuMemSetAccess);
  DRIVER(cuMemUnmap);
  DRIVER(cuMemRelease);
  DRIVER(cuMemAddressFree);
  CHECK(cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUdeviceptr range;
  CUmemGenericAllocationHandle pieces[2];
  CHECK(cuMemAddressReserve(&range, 2 * granularity, 0, 0, 0));
  for (int at = 0; at < 2; at++) {
    CHECK(cuMemCreate(&pieces[at], granularity, &properties, 0));
    CHECK(cuMemMap(range + at * granularity, granularity, 0, pieces[at], 0));
  }
  CUmemAccessDesc access = {};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CHECK(cuMemSetAccess(range, 2 * granularity, &access, 1));
  int *across = (int *)(range + granularity) - 16; // 64 bytes in one piece, 64 in the other
  set<<<1, 32>>>(across, 8);
  bool right = all(across, 32, 8);
  CHECK(cuMemUnmap(range, 2 * granularity));
  for (auto piece : pieces)
    CHECK(cuMemRelease(piece));
  CHECK(cuMemAddressFree(range, 2 * granularity));
  return right;
}

int main(int count, char **words) {
  const char *what = count > 1 ? words[1] : "";
  bool right = !strcmp(what, "capture")            ? capture()
               : !strcmp(what, "memory")           ? memory()
               : !strcmp(what, "conditions")       ? conditions(false)
               : !strcmp(what, "conditions-race")  ? conditions(true)
               : !strcmp(what, "callback")         ? callback()
               : !strcmp(what, "processes")        ? processes()
               : !strcmp(what, "virtual")          ? virtual_memory()
                                                   : false;
  puts(right ? "PASS" : "FAIL");
  return !right;
}
