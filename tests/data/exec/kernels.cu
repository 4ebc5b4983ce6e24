// Kernels as authors of CUDA C++ write them, each right and with a planted mistake: kernels NAME [right|MISTAKE].
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <vector>

namespace cg = cooperative_groups;

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    cudaError_t error = (call);                                                                                        \
    if (error != cudaSuccess) {                                                                                        \
      printf("%s: %s\n", #call, cudaGetErrorString(error));                                                            \
      exit(3);                                                                                                         \
    }                                                                                                                  \
  } while (0)

template <typename T> static T *device(const std::vector<T> &values) {
  T *made;
  CHECK(cudaMalloc(&made, values.size() * sizeof(T)));
  CHECK(cudaMemcpy(made, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return made;
}

template <typename T> static std::vector<T> host(const T *values, size_t count) {
  std::vector<T> made(count);
  CHECK(cudaMemcpy(made.data(), values, count * sizeof(T), cudaMemcpyDeviceToHost));
  return made;
}

static std::vector<float> integers(size_t count, unsigned seed) { // small ones, whose sums are exact
  std::vector<float> made(count);
  for (auto &each : made)
    each = (float)((seed = seed * 1664525 + 1013904223) >> 28) - 8;
  return made;
}

// A tiled product of matrices.
template <bool late> __global__ void multiply(const float *a, const float *b, float *c, int n) {
  __shared__ float tile_a[16][16], tile_b[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    tile_a[y][x] = a[row * n + k + x]; // overwritten too early
    tile_b[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; i++)
      sum += tile_a[y][i] * tile_b[i][x];
    if (!late)
      __syncthreads();
  }
  c[row * n + column] = sum;
}

static bool matmul(bool bug) {
  const int n = 48;
  auto a = integers(n * n, 1), b = integers(n * n, 2);
  float *da = device(a), *db = device(b), *dc = device(std::vector<float>(n * n, NAN));
  (bug ? multiply<true> : multiply<false>)<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(da, db, dc, n);
  auto c = host(dc, n * n);
  bool right = true;
  for (int i = 0; i < n * n; i++) {
    float sum = 0;
    for (int k = 0; k < n; k++)
      sum += a[i / n * n + k] * b[k * n + i % n];
    right &= c[i] == sum;
  }
  return right;
}

// A sum of all elements: warps by shuffles, blocks by shared memory, the last block adds what the others have left.
template <bool no_fence> __global__ void sum_all(const int *x, int n, volatile int *partial, unsigned *done, int *total) {
  __shared__ int warps[4];
  __shared__ bool last;
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum += x[i];
  for (int step = 16; step; step /= 2)
    sum += __shfl_down_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0)
    warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = warps[0] + warps[1] + warps[2] + warps[3];
    if (!no_fence)
      __threadfence();
    last = atomicAdd(done, 1) == gridDim.x - 1;
    if (last) {
      if (!no_fence)
        __threadfence();
      int all = 0;
      for (int i = 0; i < gridDim.x; i++)
        all += partial[i]; // not ordered after the other blocks
      *total = all;
    }
  }
}

__global__ void sum_by_atomics(const int *x, int n, int *total) {
  __shared__ int block;
  if (threadIdx.x == 0)
    block = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&block, x[i]);
  __syncthreads();
  if (threadIdx.x == 0)
    atomicAdd(total, block);
}

static bool reduction(bool bug) {
  const int n = 1000;
  std::vector<int> x(n);
  int expected = 0;
  for (int i = 0; i < n; i++)
    expected += x[i] = i * i % 31 - 9;
  int *dx = device(x), *partial = device(std::vector<int>(4)), *total = device(std::vector<int>(2));
  unsigned *done = device(std::vector<unsigned>(1));
  (bug ? sum_all<true> : sum_all<false>)<<<4, 128>>>(dx, n, partial, done, total);
  sum_by_atomics<<<(n + 127) / 128, 128>>>(dx, n, total + 1);
  auto sums = host(total, 2);
  return sums[0] == expected && sums[1] == expected;
}

// Steps of a stencil, with the whole grid in step.
template <bool no_sync> __global__ void smooth(float *from, float *to, int n, int steps) {
  cg::grid_group grid = cg::this_grid();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int step = 0; step < steps; step++) {
    to[i] = from[(i + n - 1) % n] + from[(i + 1) % n]; // while another block is a step behind
    if (!no_sync)
      grid.sync();
    float *other = from;
    from = to;
    to = other;
  }
}

static bool cooperative(bool bug) {
  const int n = 256;
  int steps = 3, count = n;
  auto x = integers(n, 3);
  float *a = device(x), *b = device(std::vector<float>(n));
  void *arguments[] = {&a, &b, &count, &steps};
  CHECK(cudaLaunchCooperativeKernel(bug ? (void *)smooth<true> : (void *)smooth<false>, 4, n / 4, arguments, 0, 0));
  auto y = host(b, n);
  for (int step = 0; step < steps; step++) {
    std::vector<float> next(n);
    for (int i = 0; i < n; i++)
      next[i] = x[(i + n - 1) % n] + x[(i + 1) % n];
    x = next;
  }
  return y == x;
}

// A tile through TMA, transposed on its way out.
template <int mistake> // 1: no wait for the copy, 2: expects too many bytes, 3: no fence before the store
__global__ void transpose(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap out) {
  __shared__ alignas(128) int tile[32 * 32], turned[32 * 32];
  __shared__ alignas(8) unsigned long long arrived;
  unsigned barrier = (unsigned)__cvta_generic_to_shared(&arrived), to = (unsigned)__cvta_generic_to_shared(tile),
           from = (unsigned)__cvta_generic_to_shared(turned);
  int x = blockIdx.x * 32, y = blockIdx.y * 32;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"((unsigned)sizeof tile * (mistake == 2 ? 2 : 1)));
    asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(&in), "r"(x), "r"(y), "r"(barrier)
                 : "memory");
  }
  if (mistake != 1) {
    unsigned done = 0;
    while (!done)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" // waits forever
                   : "=r"(done)
                   : "r"(barrier)
                   : "memory");
  }
  for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x)
    turned[i % 32 * 32 + i / 32] = tile[i]; // read too early
  if (mistake != 3)
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&out), "r"(y), "r"(x), // stored too early
                 "r"(from)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

static CUtensorMap encoded(int *data, int rows, int columns) {
  void *found;
  cudaDriverEntryPointQueryResult answer;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &answer));
  cuuint64_t extent[] = {(cuuint64_t)columns, (cuuint64_t)rows}, pitch[] = {(cuuint64_t)columns * 4};
  cuuint32_t box[] = {32, 32}, step[] = {1, 1};
  CUtensorMap made;
  CUresult result = ((decltype(&cuTensorMapEncodeTiled))found)(
      &made, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, data, extent, pitch, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    printf("cuTensorMapEncodeTiled: %d\n", result);
    exit(3);
  }
  return made;
}

static bool tma(const char *mistake) {
  const int rows = 64, columns = 96;
  std::vector<int> x(rows * columns);
  for (int i = 0; i < rows * columns; i++)
    x[i] = 7 * i;
  int *in = device(x), *out = device(std::vector<int>(rows * columns, -1));
  auto kernel = !strcmp(mistake, "no-wait")     ? transpose<1>
                : !strcmp(mistake, "too-many")  ? transpose<2>
                : !strcmp(mistake, "no-fence")  ? transpose<3>
                                                : transpose<0>;
  kernel<<<dim3(columns / 32, rows / 32), 128>>>(encoded(in, rows, columns), encoded(out, columns, rows));
  auto y = host(out, rows * columns);
  bool right = true;
  for (int i = 0; i < rows * columns; i++)
    right &= y[i % columns * rows + i / columns] == x[i];
  return right;
}

// A histogram whose bins are distributed over the blocks of a cluster.
template <int mistake> // 1: no barrier after the bins are cleared, 2: none before the block ends
__global__ void __cluster_dims__(2, 1, 1) histogram(const int *x, int n, int *bins) {
  __shared__ int mine[32];
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x < 32)
    mine[threadIdx.x] = 0; // the other block may have counted
  if (mistake == 1)
    __syncthreads();
  else
    cluster.sync();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(cluster.map_shared_rank(mine, x[i] / 32) + x[i] % 32, 1); // into a block that may have ended
  if (mistake != 2)
    cluster.sync();
  if (mistake != 2 && threadIdx.x < 32)
    atomicAdd(bins + cluster.block_rank() * 32 + threadIdx.x, mine[threadIdx.x]);
}

static bool clusters(const char *mistake) {
  const int n = 500;
  std::vector<int> x(n), expected(64);
  for (int i = 0; i < n; i++)
    expected[x[i] = i * i % 61]++;
  int *dx = device(x), *bins = device(std::vector<int>(64));
  auto kernel = !strcmp(mistake, "no-first")  ? histogram<1>
                : !strcmp(mistake, "no-last") ? histogram<2>
                                              : histogram<0>;
  kernel<<<2, 64>>>(dx, n, bins);
  return host(bins, 64) == expected;
}

int main(int count, char **words) {
  const char *what = count > 1 ? words[1] : "matmul", *mistake = count > 2 ? words[2] : "right";
  auto is = [&](const char *name) { return strcmp(what, name) == 0; };
  bool bug = strcmp(mistake, "right") != 0;
  bool right = is("matmul")        ? matmul(bug)
               : is("reduction")   ? reduction(bug)
               : is("cooperative") ? cooperative(bug)
               : is("tma")         ? tma(mistake)
               : is("clusters")    ? clusters(mistake)
                                   : false;
  puts(right ? "PASS" : "FAIL");
  return right ? 0 : 1;
}
