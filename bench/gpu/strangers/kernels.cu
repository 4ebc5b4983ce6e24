// Kernels as users of CUDA C++ write them: loads and stores, reductions, shared memory, atomics.
#include <cuda_bf16.h>

extern "C" __global__ void saxpy4(const float4 *x, float4 *y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 u = x[i], v = y[i];
  y[i] = make_float4(a * u.x + v.x, a * u.y + v.y, a * u.z + v.z, a * u.w + v.w);
}

extern "C" __global__ void saxpy(const float *x, float *y, float a, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void transpose_naive(const float *in, float *out, int rows, int columns) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < columns && y + j < rows) out[x * rows + y + j] = in[(y + j) * columns + x];
}

extern "C" __global__ void transpose_tiled(const float *in, float *out, int rows, int columns) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < columns && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * columns + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < rows && y + j < columns) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void reduce_sum(const float *in, float *out, int n) {
  __shared__ float part[8];
  float sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += in[i];
  for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 8) {
    sum = part[threadIdx.x];
    for (int d = 4; d; d /= 2) sum += __shfl_down_sync(0xff, sum, d);
    if (threadIdx.x == 0) atomicAdd(out, sum);
  }
}

extern "C" __global__ void histogram_shared(const unsigned *in, unsigned *out, int n) {
  __shared__ unsigned bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&bins[in[i] & 255], 1u);
  __syncthreads();
  atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

extern "C" __global__ void stencil(const float *in, float *out, int nx, int ny) {
  int x = blockIdx.x * 32 + threadIdx.x + 1, y = blockIdx.y * 8 + threadIdx.y + 1;
  if (x >= nx - 1 || y >= ny - 1) return;
  int i = y * nx + x;
  out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx]);
}

extern "C" __global__ void row_softmax(const float *in, float *out, int columns) {
  __shared__ float part[8];
  const float *row = in + (size_t)blockIdx.x * columns;
  float best = -1e30f, sum = 0;
  for (int i = threadIdx.x; i < columns; i += 256) best = fmaxf(best, row[i]);
  for (int d = 16; d; d /= 2) best = fmaxf(best, __shfl_xor_sync(~0u, best, d));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = best;
  __syncthreads();
  best = part[0];
  for (int i = 1; i < 8; i++) best = fmaxf(best, part[i]);
  __syncthreads();
  for (int i = threadIdx.x; i < columns; i += 256) sum += __expf(row[i] - best);
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < 8; i++) sum += part[i];
  for (int i = threadIdx.x; i < columns; i += 256) out[(size_t)blockIdx.x * columns + i] = __expf(row[i] - best) / sum;
}

extern "C" __global__ void sgemm_tiled(const float *a, const float *b, float *c, int n) {
  __shared__ float ta[32][32], tb[32][32];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 32 + y, column = blockIdx.x * 32 + x;
  float sum = 0;
  for (int k = 0; k < n; k += 32) {
    ta[y][x] = a[row * n + k + x];
    tb[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 32; i++) sum += ta[y][i] * tb[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

extern "C" __global__ void __launch_bounds__(256) sgemm_registers(const float *a, const float *b, float *c, int n) {
  __shared__ float ta[8][128], tb[8][128];
  int t = threadIdx.x, row = blockIdx.y * 128, column = blockIdx.x * 128;
  int tr = t / 16 * 8, tc = t % 16 * 8;
  float sum[8][8] = {};
  for (int k = 0; k < n; k += 8) {
    float4 u = *(const float4 *)&a[(row + t / 2) * n + k + t % 2 * 4];
    float4 v = *(const float4 *)&b[(k + t / 32) * n + column + t % 32 * 4];
    ta[t % 2 * 4][t / 2] = u.x, ta[t % 2 * 4 + 1][t / 2] = u.y, ta[t % 2 * 4 + 2][t / 2] = u.z,
                     ta[t % 2 * 4 + 3][t / 2] = u.w;
    *(float4 *)&tb[t / 32][t % 32 * 4] = v;
    __syncthreads();
    for (int i = 0; i < 8; i++) {
      float l[8], r[8];
      for (int j = 0; j < 8; j++) l[j] = ta[i][tr + j], r[j] = tb[i][tc + j];
      for (int j = 0; j < 8; j++)
        for (int h = 0; h < 8; h++) sum[j][h] += l[j] * r[h];
    }
    __syncthreads();
  }
  for (int j = 0; j < 8; j++)
    for (int h = 0; h < 8; h += 4)
      *(float4 *)&c[(row + tr + j) * n + column + tc + h] =
          make_float4(sum[j][h], sum[j][h + 1], sum[j][h + 2], sum[j][h + 3]);
}
