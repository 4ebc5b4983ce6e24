// Default streams of threads (nvcc --default-stream per-thread): `thread_streams WHAT`.
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>
#include <mutex>
#include <thread>

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

static int *x, *y, host[32];
static cudaEvent_t stored;
static bool issued;
static std::mutex mutex;
static std::condition_variable changed;

static bool is_right() {
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost));
  for (int each : host)
    if (each != 14)
      return false;
  return true;
}

// One thread stores what another one loads, each in its default stream.
static bool threads(bool waits, bool synchronizes) {
  std::thread first([&] {
    set<<<1, 32>>>(x, 7);
    CHECK(cudaEventRecord(stored));
    if (synchronizes)
      CHECK(cudaStreamSynchronize(0));
    std::lock_guard<std::mutex> held(mutex);
    issued = true;
    changed.notify_all();
  });
  std::thread second([&] {
    std::unique_lock<std::mutex> held(mutex);
    changed.wait(held, [] { return issued; });
    if (waits)
      CHECK(cudaStreamWaitEvent(0, stored));
    twice<<<1, 32>>>(x, y);
  });
  first.join();
  second.join();
  return is_right();
}

// The legacy default stream waits for those of threads; a stream that does not block waits for neither.
static bool legacy(bool blocks) {
  cudaStream_t other = cudaStreamLegacy;
  if (!blocks)
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  set<<<1, 32>>>(x, 7);
  twice<<<1, 32, 0, other>>>(x, y);
  return is_right();
}

static bool capture() {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK(cudaStreamBeginCapture(0, cudaStreamCaptureModeThreadLocal));
  set<<<1, 32>>>(x, 7);
  twice<<<1, 32>>>(x, y);
  CHECK(cudaStreamEndCapture(0, &graph));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, 0));
  return is_right();
}

int main(int count, char **words) {
  const char *what = count > 1 ? words[1] : "";
  CHECK(cudaMalloc(&x, sizeof host));
  CHECK(cudaMalloc(&y, sizeof host));
  CHECK(cudaMemset(x, 0, sizeof host));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaEventCreate(&stored));
  bool right = !strcmp(what, "event")         ? threads(true, false)
               : !strcmp(what, "synchronize") ? threads(false, true)
               : !strcmp(what, "unordered")   ? threads(false, false)
               : !strcmp(what, "legacy")      ? legacy(true)
               : !strcmp(what, "nonblocking") ? legacy(false)
               : !strcmp(what, "capture")     ? capture()
                                              : false;
  puts(right ? "PASS" : "FAIL");
  return !right;
}
