// Small programs of CUDA C++ for tests/driver/test_nvcc.py; the first argument says which.
#if __has_include(<nv/target>)
#include <cooperative_groups.h>
#define HAS_GROUPS
#endif
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <vector>

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    cudaError_t error = (call);                                                                                        \
    if (error != cudaSuccess) {                                                                                        \
      printf("%s: %s\n", #call, cudaGetErrorString(error));                                                            \
      exit(3);                                                                                                         \
    }                                                                                                                  \
  } while (0)

__device__ int counter;
__constant__ float factor = 2.0f;
__managed__ int managed = 7;

__global__ void scale(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    x[i] *= factor;
    atomicAdd(&counter, 1);
  }
  if (i == 0)
    printf("device says %d\n", n);
}

__global__ void reverse(float *x, bool wait) {
  __shared__ float tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  if (wait)
    __syncthreads();
  x[threadIdx.x] = tile[63 - threadIdx.x]; // the race of `race`
}

__global__ void past(float *x, int n) {
  x[n + threadIdx.x] = 1; // the overrun of `overrun`
}

__global__ void add_one(int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] += 1;
}

__global__ void bump_managed(int *p) { managed += *p; }

__global__ void spin(volatile int *flag) {
  while (*flag == 0)
    ;
}

#ifdef HAS_GROUPS
__global__ void grid_sum(int *partial, int *total) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  if (threadIdx.x == 0)
    partial[blockIdx.x] = blockIdx.x + 1;
  grid.sync();
  if (blockIdx.x == 0 && threadIdx.x == 0)
    for (int i = 0; i < gridDim.x; i++)
      *total += partial[i];
}

__global__ void __cluster_dims__(2, 1, 1) exchange(int *out) {
  __shared__ int mine;
  auto cluster = cooperative_groups::this_cluster();
  if (threadIdx.x == 0)
    mine = 10 + cluster.block_rank();
  cluster.sync();
  if (threadIdx.x == 0)
    out[blockIdx.x] = *cluster.map_shared_rank(&mine, cluster.block_rank() ^ 1);
  cluster.sync();
}
#endif

__global__ void check_that(int *x) {
  if (x[0] != 5)
    __trap();
}

static int scaled() {
  const int n = 1000;
  std::vector<float> h(n);
  for (int i = 0; i < n; i++)
    h[i] = i;
  float *d;
  CHECK(cudaMalloc(&d, n * sizeof(float)));
  CHECK(cudaMemcpy(d, h.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  float three = 3;
  CHECK(cudaMemcpyToSymbol(factor, &three, sizeof three));
  scale<<<(n + 255) / 256, 256>>>(d, n);
  CHECK(cudaGetLastError());
  printf("host speaks first\n");
  fflush(stdout);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(h.data(), d, n * sizeof(float), cudaMemcpyDeviceToHost));
  int count;
  CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
  bool right = count == n;
  for (int i = 0; i < n; i++)
    right &= h[i] == 3 * i;
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  printf("sm_%d%d with %d multiprocessors\n", properties.major, properties.minor, properties.multiProcessorCount);
  CHECK(cudaFree(d));
  return right;
}

static int reversed(bool wait) {
  float *d;
  CHECK(cudaMalloc(&d, 64 * sizeof(float)));
  CHECK(cudaMemset(d, 0, 64 * sizeof(float)));
  for (int i = 0; i < 3; i++)
    reverse<<<1, 64>>>(d, wait);
  CHECK(cudaDeviceSynchronize());
  return 1;
}

static int overrun() {
  float *d;
  CHECK(cudaMalloc(&d, 100 * sizeof(float)));
  past<<<1, 32>>>(d, 100);
  cudaError_t launched = cudaGetLastError(), waited = cudaDeviceSynchronize(), after = cudaMemset(d, 0, 4);
  printf("%s, %s, %s\n", cudaGetErrorName(launched), cudaGetErrorName(waited), cudaGetErrorName(after));
  return 1;
}

static int streams() {
  const int n = 256;
  int *pinned, *d;
  CHECK(cudaMallocHost(&pinned, n * sizeof(int)));
  CHECK(cudaMalloc(&d, n * sizeof(int)));
  for (int i = 0; i < n; i++)
    pinned[i] = i;
  cudaStream_t a, b;
  cudaEvent_t copied, begin, end;
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
  CHECK(cudaEventRecord(begin, a));
  CHECK(cudaMemcpyAsync(d, pinned, n * sizeof(int), cudaMemcpyHostToDevice, a));
  CHECK(cudaEventRecord(copied, a));
  CHECK(cudaStreamWaitEvent(b, copied, 0));
  add_one<<<2, 128, 0, b>>>(d, n);
  CHECK(cudaMemcpyAsync(pinned, d, n * sizeof(int), cudaMemcpyDeviceToHost, b));
  CHECK(cudaStreamSynchronize(b));
  CHECK(cudaEventRecord(end, b));
  CHECK(cudaEventSynchronize(end));
  float ms = -1;
  CHECK(cudaEventElapsedTime(&ms, begin, end));
  bool right = ms > 0;
  for (int i = 0; i < n; i++)
    right &= pinned[i] == i + 1;
  int *mapped = (int *)malloc(n * sizeof(int)), *device;
  memset(mapped, 0, n * sizeof(int));
  CHECK(cudaHostRegister(mapped, n * sizeof(int), cudaHostRegisterMapped));
  CHECK(cudaHostGetDevicePointer(&device, mapped, 0));
  add_one<<<2, 128>>>(device, n);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < n; i++)
    right &= mapped[i] == 1;
  CHECK(cudaHostUnregister(mapped));
  free(mapped);
  return right;
}

static void count_call(void *data) { ++*(int *)data; }

static int graphs() {
  const int n = 64;
  int *d, h[n], calls = 0;
  CHECK(cudaMalloc(&d, n * sizeof(int)));
  cudaStream_t a, b;
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaStreamCreate(&b));
  cudaEvent_t fork, join;
  CHECK(cudaEventCreate(&fork));
  CHECK(cudaEventCreate(&join));
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemsetAsync(d, 0, n * sizeof(int), a));
  CHECK(cudaEventRecord(fork, a));
  CHECK(cudaStreamWaitEvent(b, fork, 0));
  add_one<<<1, 64, 0, b>>>(d, n);
  CHECK(cudaEventRecord(join, b));
  CHECK(cudaStreamWaitEvent(a, join, 0));
  add_one<<<1, 64, 0, a>>>(d, n);
  CHECK(cudaLaunchHostFunc(a, count_call, &calls));
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(a, &graph));
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  bool right = calls == 0;
  for (int i = 0; i < 2; i++)
    CHECK(cudaGraphLaunch(executable, a));
  CHECK(cudaStreamSynchronize(a));
  CHECK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i++)
    right &= h[i] == 2;
  right &= calls == 2;

  // The same by hand, with a kernel whose parameters change afterwards.
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t clear, kernel;
  cudaMemsetParams fill = {};
  fill.dst = d;
  fill.elementSize = 4;
  fill.width = n;
  fill.height = 1;
  fill.value = 5;
  CHECK(cudaGraphAddMemsetNode(&clear, graph, nullptr, 0, &fill));
  int count = n, half = n / 2;
  void *arguments[] = {&d, &count}, *fewer[] = {&d, &half};
  cudaKernelNodeParams node = {};
  node.func = (void *)add_one;
  node.gridDim = dim3(1);
  node.blockDim = dim3(64);
  node.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&kernel, graph, &clear, 1, &node));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  node.kernelParams = fewer;
  CHECK(cudaGraphExecKernelNodeSetParams(executable, kernel, &node));
  CHECK(cudaGraphLaunch(executable, 0));
  CHECK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i++)
    right &= h[i] == (i < half ? 6 : 5);
  return right;
}

static int managed_memory() {
  int *shared;
  CHECK(cudaMallocManaged(&shared, sizeof(int)));
  *shared = 5;
  managed = 1;
  bump_managed<<<1, 1>>>(shared);
  CHECK(cudaDeviceSynchronize());
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, shared));
  return managed == 6 && attributes.type == cudaMemoryTypeManaged;
}

#ifdef HAS_GROUPS
static int cooperative() {
  int blocks = 0, *partial, *total, h = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, grid_sum, 64, 0));
  CHECK(cudaMalloc(&partial, 8 * sizeof(int)));
  CHECK(cudaMalloc(&total, sizeof(int)));
  CHECK(cudaMemset(total, 0, sizeof(int)));
  void *arguments[] = {&partial, &total};
  CHECK(cudaLaunchCooperativeKernel((void *)grid_sum, 8, 64, arguments, 0, 0));
  CHECK(cudaMemcpy(&h, total, sizeof(int), cudaMemcpyDeviceToHost));
  return blocks > 0 && h == 36;
}

static int clusters() {
  int *d, h[4];
  CHECK(cudaMalloc(&d, sizeof h));
  exchange<<<4, 32>>>(d);
  CHECK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
  return h[0] == 11 && h[1] == 10 && h[2] == 11 && h[3] == 10;
}
#else
static int without_groups() {
  puts("no cooperative groups");
  return 1;
}
static int (*const cooperative)() = without_groups, (*const clusters)() = without_groups;
#endif

static int deadlock() {
  int *flag;
  CHECK(cudaMalloc(&flag, sizeof(int)));
  CHECK(cudaMemset(flag, 0, sizeof(int)));
  spin<<<1, 1>>>(flag);
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 1;
}

static int freed() {
  int *d;
  CHECK(cudaMalloc(&d, 256 * sizeof(int)));
  CHECK(cudaFree(d));
  add_one<<<1, 32>>>(d, 32);
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 1;
}

static int copy_too_long() {
  int *d, h[8] = {};
  CHECK(cudaMalloc(&d, 4 * sizeof(int)));
  printf("%s\n", cudaGetErrorName(cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice)));
  return 1;
}

// Two streams, pinned memory; without `wait` the kernel does not wait for the copy of the other stream.
static int two_streams(bool wait) {
  const int n = 64;
  int *pinned, *d;
  CHECK(cudaMallocHost(&pinned, n * sizeof(int)));
  CHECK(cudaMalloc(&d, n * sizeof(int)));
  CHECK(cudaMemset(d, 0, n * sizeof(int)));
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < n; i++)
    pinned[i] = 10 * i;
  cudaStream_t a, b;
  cudaEvent_t copied;
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaStreamCreate(&b));
  CHECK(cudaEventCreate(&copied));
  CHECK(cudaMemcpyAsync(d, pinned, n * sizeof(int), cudaMemcpyHostToDevice, a));
  CHECK(cudaEventRecord(copied, a));
  if (wait)
    CHECK(cudaStreamWaitEvent(b, copied, 0));
  add_one<<<1, 64, 0, b>>>(d, n);
  CHECK(cudaMemcpyAsync(pinned, d, n * sizeof(int), cudaMemcpyDeviceToHost, b));
  CHECK(cudaStreamSynchronize(b));
  bool right = true;
  for (int i = 0; i < n; i++)
    right &= pinned[i] == 10 * i + 1;
  CHECK(cudaStreamSynchronize(a));
  return right;
}

static int read_early(bool wait) {
  const int n = 64;
  int *pinned, *d;
  cudaStream_t a;
  CHECK(cudaMallocHost(&pinned, n * sizeof(int)));
  CHECK(cudaMalloc(&d, n * sizeof(int)));
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaMemset(d, 0, n * sizeof(int)));
  add_one<<<1, 64, 0, a>>>(d, n);
  CHECK(cudaMemcpyAsync(pinned, d, n * sizeof(int), cudaMemcpyDeviceToHost, a));
  if (wait)
    CHECK(cudaStreamSynchronize(a));
  bool right = true;
  for (int i = 0; i < n; i++)
    right &= pinned[i] == 1;
  return right;
}

static int managed_early(bool wait) {
  const int n = 2048;
  int *shared;
  CHECK(cudaMallocManaged(&shared, n * sizeof(int)));
  memset(shared, 0, n * sizeof(int));
  add_one<<<n / 128, 128>>>(shared, n);
  if (wait)
    CHECK(cudaDeviceSynchronize());
  bool right = true;
  for (int i = 0; i < n; i++)
    right &= shared[i] == 1; // the read of `managed-early`
  CHECK(cudaDeviceSynchronize());
  return right;
}

static void read_back(void *data) { *(int *)data += ((int *)data)[1]; }

// The stream `b` frees what a kernel in `a` uses; a callback reads what its own stream has copied.
static int free_early(bool wait) {
  const int n = 64;
  int *d, *pinned;
  cudaStream_t a, b;
  cudaEvent_t used;
  CHECK(cudaStreamCreate(&a));
  CHECK(cudaStreamCreate(&b));
  CHECK(cudaEventCreate(&used));
  CHECK(cudaMallocHost(&pinned, n * sizeof(int)));
  CHECK(cudaMallocAsync(&d, n * sizeof(int), a));
  CHECK(cudaMemsetAsync(d, 0, n * sizeof(int), a));
  add_one<<<1, 64, 0, a>>>(d, n);
  CHECK(cudaMemcpyAsync(pinned, d, n * sizeof(int), cudaMemcpyDeviceToHost, a));
  CHECK(cudaEventRecord(used, a));
  if (wait)
    CHECK(cudaStreamWaitEvent(b, used, 0));
  CHECK(cudaFreeAsync(d, b));
  CHECK(cudaLaunchHostFunc(a, read_back, pinned));
  CHECK(cudaDeviceSynchronize());
  return pinned[0] == 2;
}

__global__ void count_multiprocessors(int *used, int *wrong) {
  unsigned id, count;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  asm volatile("mov.u32 %0, %%nsmid;" : "=r"(count));
  atomicAdd(used + id, 1);
  if (id >= count)
    *wrong = 1;
}

static int multiprocessors() {
  int count, *used, *wrong, h[64] = {}, sum = 0;
  CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  CHECK(cudaMalloc(&used, count * sizeof(int)));
  CHECK(cudaMalloc(&wrong, sizeof(int)));
  CHECK(cudaMemset(used, 0, count * sizeof(int)));
  CHECK(cudaMemset(wrong, 0, sizeof(int)));
  count_multiprocessors<<<100, 1>>>(used, wrong);
  CHECK(cudaMemcpy(h, used, count * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < count; i++)
    sum += h[i];
  CHECK(cudaMemcpy(h, wrong, sizeof(int), cudaMemcpyDeviceToHost));
  return sum == 100 && !h[0];
}

__global__ void store_index(int *x) { x[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }

static int repeated() {
  int *d, h[64];
  CHECK(cudaMalloc(&d, 64 * sizeof(int)));
  CHECK(cudaMemset(d, 0, 64 * sizeof(int)));
  for (int i = 0; i < 20; i++)
    store_index<<<1, 64>>>(d);
  for (int i = 0; i < 5; i++)
    add_one<<<1, 64>>>(d, 64);
  CHECK(cudaMemset(d, 0, 4));
  store_index<<<1, 64>>>(d);
  CHECK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
  bool right = true;
  for (int i = 0; i < 64; i++)
    right &= h[i] == i;
  return right;
}

__global__ void dynamic(int *x) {
  extern __shared__ int tile[];
  tile[threadIdx.x] = threadIdx.x;
  x[threadIdx.x] = tile[threadIdx.x];
}

static int bad_launches() {
  int *d;
  CHECK(cudaMalloc(&d, 32 * sizeof(int)));
  add_one<<<1, 2048>>>(d, 32);
  printf("%s, ", cudaGetErrorName(cudaGetLastError()));
  dynamic<<<1, 32, 100 << 10>>>(d);
  printf("%s, ", cudaGetErrorName(cudaGetLastError()));
  CHECK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
  dynamic<<<1, 32, 100 << 10>>>(d);
  printf("%s, ", cudaGetErrorName(cudaGetLastError()));
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 1;
}

static int textures() {
  cudaMipmappedArray_t array;
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaChannelFormatDesc bytes = cudaCreateChannelDesc(8, 8, 8, 8, cudaChannelFormatKindUnsigned);
  if (bytes.x != 8 || bytes.w != 8 || bytes.f != cudaChannelFormatKindUnsigned) puts("wrong format");
  printf("%s\n", cudaGetErrorName(cudaMallocMipmappedArray(&array, &format, make_cudaExtent(16, 16, 0), 2)));
  return 1;
}

static int trapped() {
  int *d;
  CHECK(cudaMalloc(&d, sizeof(int)));
  CHECK(cudaMemset(d, 0, sizeof(int)));
  check_that<<<1, 1>>>(d);
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 1;
}

int main(int count, char **words) {
  const char *what = count > 1 ? words[1] : "scaled";
  auto is = [&](const char *name) { return strcmp(what, name) == 0; };
  int right = is("scaled")        ? scaled()
              : is("race")        ? reversed(false)
              : is("no-race")     ? reversed(true)
              : is("overrun")     ? overrun()
              : is("streams")     ? streams()
              : is("graphs")      ? graphs()
              : is("managed")     ? managed_memory()
              : is("cooperative") ? cooperative()
              : is("clusters")    ? clusters()
              : is("deadlock")    ? deadlock()
              : is("freed")       ? freed()
              : is("copy")        ? copy_too_long()
              : is("wait")        ? two_streams(true)
              : is("no-wait")     ? two_streams(false)
              : is("read")        ? read_early(true)
              : is("read-early")  ? read_early(false)
              : is("managed-late")  ? managed_early(true)
              : is("managed-early") ? managed_early(false)
              : is("free-late")     ? free_early(true)
              : is("free-early")    ? free_early(false)
              : is("repeated")    ? repeated()
              : is("sms")         ? multiprocessors()
              : is("launches")    ? bad_launches()
              : is("textures")    ? textures()
              : is("trapped")     ? trapped()
                                  : 0;
  if (is("crash")) {
    scaled();
    abort();
  }
  puts(right ? "PASS" : "FAIL");
  return right ? 0 : 1;
}
