// Kernels that wait for the host or for another stream, and a host that waits for a kernel by memory alone.
// Compiled with -lineinfo; the first argument chooses what is done.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <chrono>
#include <thread>

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    cudaError_t error = (call);                                                                                        \
    if (error != cudaSuccess) {                                                                                        \
      printf("%s: %s\n", #call, cudaGetErrorName(error));                                                              \
      exit(3);                                                                                                         \
    }                                                                                                                  \
  } while (0)

__global__ void wait_for(volatile unsigned *latch) {
  while (latch[0] < 1)  // spins
    ;
}

__global__ void wait_and_copy(volatile unsigned *latch, const int *from, int *to) {
  if (threadIdx.x == 0) {
    while (latch[0] < 1)
      ;
    __threadfence_system();
  }
  __syncthreads();
  to[threadIdx.x] = from[threadIdx.x];
}

__global__ void count_while(volatile unsigned *latch, unsigned *count) {
  unsigned n = 0;
  while (latch[0] < 1)
    n++;
  *count = n > 0;
}

__global__ void sleep_while(volatile unsigned *latch) {
  while (latch[0] < 1)
    __nanosleep(100);
}

__global__ void fill(int *x, int value) { x[threadIdx.x] = value; }

__global__ void fill_and_signal(int *x, int value, unsigned *flag) {
  x[threadIdx.x] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system();
    *(volatile unsigned *)flag = 1;
  }
}

__global__ void fill_and_set(int *x, int value, volatile unsigned *flag) {  // without a fence
  x[threadIdx.x] = value;
  __syncthreads();
  if (threadIdx.x == 0)
    *flag = 1;
}

__global__ void count_steps(volatile unsigned *progress, int *sum) {
  int total = 0;
  for (int i = 1; i <= 20; i++) {
    total += i;
    *progress = i;
  }
  *sum = total;
}

struct Body {
  int weight, unused[3];
};

__global__ void double_weights(Body *bodies) { bodies[threadIdx.x].weight *= 2; }

// A server: each request is a number other than 0, 1000 ends it.
__global__ void serve(volatile int *request, volatile int *answer) {
  for (int round = 1;; round++) {
    int asked;
    while ((asked = request[round & 1]) == 0)
      ;
    if (asked == 1000)
      return;
    request[round & 1] = 0;
    __threadfence_system();
    answer[0] = asked * 2;
    __threadfence_system();
    answer[1] = round;
  }
}

static unsigned *pinned_flag() {
  unsigned *flag;
  CHECK(cudaMallocHost(&flag, 64));
  *flag = 0;
  return flag;
}

static void verdict(bool right) {
  puts(right ? "PASS" : "wrong");
  exit(!right);
}

static bool all(const int *x, int n, int value) {
  for (int i = 0; i < n; i++)
    if (x[i] != value)
      return false;
  return true;
}

int main(int count, char **arguments) {
  const char *what = count > 1 ? arguments[1] : "latch";
  auto is = [&](const char *name) { return !strcmp(what, name); };
  cudaStream_t one, two;
  CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  int *x, *y, *host;
  const size_t bytes = 64 * sizeof(int);
  CHECK(cudaMallocHost(&host, bytes));
  CHECK(cudaMalloc(&x, bytes));
  CHECK(cudaMalloc(&y, bytes));
  CHECK(cudaMemset(x, 0, bytes));
  CHECK(cudaMemset(y, 0, bytes));
  CHECK(cudaDeviceSynchronize());

  if (is("latch") || is("managed") || is("sleep") || is("count") || is("event") || is("query") || is("thread")) {
    unsigned *flag = pinned_flag(), *counted = (unsigned *)y;
    if (is("managed")) {
      CHECK(cudaMallocManaged(&flag, 4));
      *flag = 0;
    }
    if (is("sleep"))
      sleep_while<<<1, 32, 0, one>>>(flag);
    else if (is("count"))
      count_while<<<1, 1, 0, one>>>(flag, counted);
    else
      wait_for<<<1, 1, 0, one>>>(flag);
    cudaStream_t last = one;
    if (is("event")) {
      cudaEvent_t event;
      CHECK(cudaEventCreate(&event));
      CHECK(cudaEventRecord(event, one));
      CHECK(cudaStreamWaitEvent(two, event, 0));
      last = two;
    }
    fill<<<1, 64, 0, last>>>(x, 7);
    CHECK(cudaMemcpyAsync(host, x, bytes, cudaMemcpyDeviceToHost, last));
    std::thread setter;
    auto set = [=] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      *(volatile unsigned *)flag = 1;
    };
    if (is("thread") || is("query"))
      setter = std::thread(set);
    else
      *(volatile unsigned *)flag = 1;
    long asked = 0;
    while (is("query") && cudaStreamQuery(last) == cudaErrorNotReady)
      asked++;
    CHECK(cudaStreamSynchronize(last));
    CHECK(cudaDeviceSynchronize());
    if (setter.joinable())
      setter.join();
    verdict(all(host, 64, 7));
  }
  if (is("copy")) {  // another stream's copy lets the kernel go on
    unsigned *flag = (unsigned *)y, one_value = 1;
    wait_for<<<1, 1, 0, one>>>(flag);
    fill<<<1, 64, 0, one>>>(x, 5);
    CHECK(cudaMemcpyAsync(flag, &one_value, 4, cudaMemcpyHostToDevice, two));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(host, x, bytes, cudaMemcpyDeviceToHost));
    verdict(all(host, 64, 5));
  }
  if (is("kernel") || is("callback") || is("graph")) {  // another stream's kernel, callback or graph
    int *data;
    unsigned *flag = pinned_flag();
    if (is("kernel")) {
      CHECK(cudaMalloc(&flag, 64));
      CHECK(cudaMemset(flag, 0, 64));
    }
    CHECK(cudaMalloc(&data, bytes));
    CHECK(cudaMemset(data, 0, bytes));
    CHECK(cudaDeviceSynchronize());
    wait_and_copy<<<1, 64, 0, one>>>(flag, data, x);
    int expected = 9;
    if (is("kernel")) {
      fill_and_signal<<<1, 64, 0, two>>>(data, 9, flag);
    } else if (is("graph")) {
      cudaGraph_t graph;
      cudaGraphExec_t executable;
      CHECK(cudaStreamBeginCapture(two, cudaStreamCaptureModeGlobal));
      fill_and_signal<<<1, 64, 0, two>>>(data, 9, flag);
      CHECK(cudaStreamEndCapture(two, &graph));
      CHECK(cudaGraphInstantiate(&executable, graph, 0));
      CHECK(cudaGraphLaunch(executable, two));
    } else {
      expected = 0;
      CHECK(cudaLaunchHostFunc(two, [](void *at) { *(volatile unsigned *)at = 1; }, flag));
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(host, x, bytes, cudaMemcpyDeviceToHost));
    verdict(all(host, 64, expected));
  }
  if (is("server")) {
    int *shared;
    CHECK(cudaHostAlloc(&shared, 64, cudaHostAllocMapped));
    memset(shared, 0, 64);
    volatile int *request = shared, *answer = shared + 4;
    serve<<<1, 1, 0, one>>>(request, answer);
    bool right = true;
    for (int round = 1; round <= 5; round++) {
      request[round & 1] = round * 11;
      while (answer[1] != round)
        ;
      right &= answer[0] == round * 22;
    }
    request[6 & 1] = 1000;
    CHECK(cudaDeviceSynchronize());
    verdict(right);
  }
  if (is("poll")) {  // the host waits for a flag, then reads what was written before it
    int *shared;
    unsigned *flag = pinned_flag();
    CHECK(cudaMallocHost(&shared, bytes));
    memset(shared, 0, bytes);
    fill_and_signal<<<1, 64, 0, one>>>(shared, 3, flag);
    while (*(volatile unsigned *)flag == 0)
      ;
    bool right = all(shared, 64, 3);
    CHECK(cudaDeviceSynchronize());
    verdict(right);
  }
  if (is("unfenced") || is("progress")) {
    int *shared;
    unsigned *flag = pinned_flag();
    CHECK(cudaMallocHost(&shared, bytes));
    memset(shared, 0, bytes);
    if (is("unfenced"))
      fill_and_set<<<1, 64, 0, one>>>(shared, 3, flag);
    else
      count_steps<<<1, 1, 0, one>>>(flag, shared);
    while (*(volatile unsigned *)flag == 0)
      ;
    bool right = is("progress") || all(shared, 64, 3);  // no release came before the flag
    CHECK(cudaDeviceSynchronize());
    verdict(right && (is("unfenced") || shared[0] == 210));
  }
  if (is("bodies") || is("bodies-early")) {  // managed memory, of which a kernel accesses a part of each element
    Body *bodies;
    CHECK(cudaMallocManaged(&bodies, 40 * sizeof *bodies));
    for (int i = 0; i < 40; i++)
      bodies[i].weight = i;
    double_weights<<<1, 40>>>(bodies);
    if (is("bodies"))
      CHECK(cudaDeviceSynchronize());
    else
      bodies[3].weight = 6;  // while the kernel may run
    CHECK(cudaDeviceSynchronize());
    bool right = true;
    for (int i = 0; i < 40; i++)
      right &= bodies[i].weight == 2 * i;
    verdict(right);
  }
  if (is("value") || is("value-stream")) {  // a stream waits for a value in memory
    unsigned *flag = pinned_flag();
    void *wait, *write;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &wait, 12000, cudaEnableDefault, &found));
    CHECK(cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &write, 12000, cudaEnableDefault, &found));
    typedef CUresult (*Value)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
    if (((Value)wait)(one, (CUdeviceptr)flag, 2, CU_STREAM_WAIT_VALUE_GEQ))
      verdict(false);
    fill<<<1, 64, 0, one>>>(x, 4);
    if (cudaStreamQuery(one) != cudaErrorNotReady)
      verdict(false);
    if (is("value"))
      *(volatile unsigned *)flag = 3;
    else if (((Value)write)(two, (CUdeviceptr)flag, 2, 0))
      verdict(false);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(host, x, bytes, cudaMemcpyDeviceToHost));
    verdict(all(host, 64, 4));
  }
  if (is("never") || is("never-exit") || is("never-query") || is("never-value")) {  // nothing lets the kernel go on
    unsigned *flag = pinned_flag();
    if (is("never-value")) {
      void *wait;
      cudaDriverEntryPointQueryResult found;
      CHECK(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &wait, 12000, cudaEnableDefault, &found));
      ((CUresult(*)(CUstream, CUdeviceptr, cuuint32_t, unsigned))wait)(one, (CUdeviceptr)flag, 2, 0);
    } else {
      wait_for<<<1, 1, 0, one>>>(flag);
    }
    fill<<<1, 64, 0, one>>>(x, 7);
    if (is("never-exit"))
      return 0;
    cudaError_t error = cudaSuccess;
    while (is("never-query") && (error = cudaStreamQuery(one)) == cudaErrorNotReady)
      ;
    error = error ? error : cudaStreamSynchronize(one);
    printf("%s\n", cudaGetErrorName(error));
    return error != cudaSuccess;
  }
  printf("there is no %s\n", what);
  return 2;
}
