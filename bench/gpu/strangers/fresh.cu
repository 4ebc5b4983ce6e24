// Kernels that only judge predictions, of other kinds than those of kernels.cu.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

extern "C" __global__ void block_scan(const float *in, float *out, int n) {
  __shared__ float sums[8];
  int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float value = i < n ? in[i] : 0.f;
  for (int d = 1; d < 32; d *= 2) {
    float other = __shfl_up_sync(~0u, value, d);
    if (lane >= d) value += other;
  }
  if (lane == 31) sums[warp] = value;
  __syncthreads();
  if (warp == 0) {
    float total = lane < 8 ? sums[lane] : 0.f;
    for (int d = 1; d < 8; d *= 2) {
      float other = __shfl_up_sync(~0u, total, d);
      if (lane >= d) total += other;
    }
    if (lane < 8) sums[lane] = total;
  }
  __syncthreads();
  if (warp) value += sums[warp - 1];
  if (i < n) out[i] = value;
}

extern "C" __global__ void __launch_bounds__(512) bitonic_sort(unsigned *data) {
  __shared__ unsigned keys[1024];
  unsigned *mine = data + blockIdx.x * 1024;
  keys[threadIdx.x] = mine[threadIdx.x];
  keys[threadIdx.x + 512] = mine[threadIdx.x + 512];
  for (int size = 2; size <= 1024; size *= 2)
    for (int step = size / 2; step; step /= 2) {
      __syncthreads();
      int i = 2 * threadIdx.x - (threadIdx.x & (step - 1));
      unsigned a = keys[i], b = keys[i + step];
      if ((a > b) == !(i & size)) keys[i] = b, keys[i + step] = a;
    }
  __syncthreads();
  mine[threadIdx.x] = keys[threadIdx.x];
  mine[threadIdx.x + 512] = keys[threadIdx.x + 512];
}

extern "C" __global__ void conv5(const float *in, const float *weights, float *out, int width, int height) {
  __shared__ float tile[20][36];
  int x0 = blockIdx.x * 32, y0 = blockIdx.y * 16;
  for (int i = threadIdx.y * 32 + threadIdx.x; i < 20 * 36; i += 512) {
    int y = y0 + i / 36 - 2, x = x0 + i % 36 - 2;
    tile[i / 36][i % 36] = x >= 0 && y >= 0 && x < width && y < height ? in[y * width + x] : 0.f;
  }
  __syncthreads();
  float sum = 0;
  for (int v = 0; v < 5; v++)
    for (int u = 0; u < 5; u++) sum += weights[v * 5 + u] * tile[threadIdx.y + v][threadIdx.x + u];
  out[(y0 + threadIdx.y) * width + x0 + threadIdx.x] = sum;
}

extern "C" __global__ void nbody(const float4 *bodies, float4 *forces, int n) {
  __shared__ float4 tile[256];
  float4 me = bodies[blockIdx.x * 256 + threadIdx.x], sum = make_float4(0, 0, 0, 0);
  for (int first = 0; first < n; first += 256) {
    tile[threadIdx.x] = bodies[first + threadIdx.x];
    __syncthreads();
#pragma unroll 8
    for (int j = 0; j < 256; j++) {
      float4 other = tile[j];
      float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
      float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
      float pull = other.w * inverse * inverse * inverse;
      sum.x += dx * pull, sum.y += dy * pull, sum.z += dz * pull;
    }
    __syncthreads();
  }
  forces[blockIdx.x * 256 + threadIdx.x] = sum;
}

extern "C" __global__ void mandelbrot(int *out, int width, float step, int most) {
  int i = blockIdx.x * 256 + threadIdx.x;
  float cx = i % width * step - 2.f, cy = i / width * step - 1.f, x = 0, y = 0;
  int n = 0;
  while (n < most && x * x + y * y < 4.f) {
    float t = x * x - y * y + cx;
    y = 2 * x * y + cy, x = t, n++;
  }
  out[i] = n;
}

extern "C" __global__ void gemv_rows(const float4 *a, const float4 *x, float *y, int columns) {
  int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
  float sum = 0;
  for (int i = lane; i < columns / 4; i += 32) {
    float4 u = a[(size_t)row * (columns / 4) + i], v = x[i];
    sum += u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
  }
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (!lane) y[row] = sum;
}

extern "C" __global__ void spmv_ell(const float *values, const int *columns, const float *x, float *y, int rows) {
  int row = blockIdx.x * 128 + threadIdx.x;
  float sum = 0;
  for (int j = 0; j < 32; j++) sum += values[j * rows + row] * x[columns[j * rows + row]];
  y[row] = sum;
}

extern "C" __global__ void rms_norm(const __half2 *in, const __half2 *weight, __half2 *out, int columns) {
  __shared__ float part[8];
  const __half2 *row = in + (size_t)blockIdx.x * (columns / 2);
  float sum = 0;
  for (int i = threadIdx.x; i < columns / 2; i += 256) {
    float2 v = __half22float2(row[i]);
    sum += v.x * v.x + v.y * v.y;
  }
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < 8; i++) sum += part[i];
  __half2 scale = __float2half2_rn(rsqrtf(sum / columns + 1e-6f));
  for (int i = threadIdx.x; i < columns / 2; i += 256)
    out[(size_t)blockIdx.x * (columns / 2) + i] = __hmul2(__hmul2(row[i], scale), weight[i]);
}

extern "C" __global__ void int4_gemv(const uint4 *weights, const __half2 *x, const float *scales, float *y, int k) {
  int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x & 31;
  float sum = 0;
  for (int i = lane; i < k / 32; i += 32) {
    uint4 packed = weights[(size_t)row * (k / 32) + i];
    unsigned words[4] = {packed.x, packed.y, packed.z, packed.w};
    __half2 part = __float2half2_rn(0.f);
    for (int w = 0; w < 4; w++)
      for (int j = 0; j < 4; j++) {
        unsigned bits = (words[w] >> (4 * j) & 0x000f000f) | 0x64006400;
        __half2 value = __hsub2(*(__half2 *)&bits, __float2half2_rn(1032.f));
        part = __hfma2(value, x[i * 16 + w * 4 + j], part);
      }
    float2 both = __half22float2(part);
    sum += (both.x + both.y) * scales[row * (k / 128) + i / 4];
  }
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (!lane) y[row] = sum;
}

extern "C" __global__ void dgemm_tiled(const double *a, const double *b, double *c, int n) {
  __shared__ double ta[16][16], tb[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  double sum = 0;
  for (int k = 0; k < n; k += 16) {
    ta[y][x] = a[row * n + k + x];
    tb[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; i++) sum += ta[y][i] * tb[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

extern "C" __global__ void __launch_bounds__(256) wmma_gemm(const __half *a, const __half *b, float *c, int n) {
  using namespace nvcuda::wmma;
  __shared__ __half ta[64][40], tb[32][136];
  int warp = threadIdx.x / 32, row = warp / 4 * 32, column = warp % 4 * 32;
  fragment<accumulator, 16, 16, 16, float> sums[2][2];
  for (int i = 0; i < 4; i++) fill_fragment(sums[i / 2][i % 2], 0.f);
  const __half *from_a = a + (size_t)blockIdx.y * 64 * n, *from_b = b + blockIdx.x * 128;
  for (int k = 0; k < n; k += 32) {
    int t = threadIdx.x;
    *(uint4 *)&ta[t / 4][t % 4 * 8] = *(const uint4 *)&from_a[(size_t)(t / 4) * n + k + t % 4 * 8];
    for (int i = t; i < 512; i += 256)
      *(uint4 *)&tb[i / 16][i % 16 * 8] = *(const uint4 *)&from_b[(size_t)(k + i / 16) * n + i % 16 * 8];
    __syncthreads();
    for (int step = 0; step < 32; step += 16) {
      fragment<matrix_a, 16, 16, 16, __half, row_major> left[2];
      fragment<matrix_b, 16, 16, 16, __half, row_major> right[2];
      for (int i = 0; i < 2; i++) {
        load_matrix_sync(left[i], &ta[row + 16 * i][step], 40);
        load_matrix_sync(right[i], &tb[step][column + 16 * i], 136);
      }
      for (int i = 0; i < 4; i++) mma_sync(sums[i / 2][i % 2], left[i / 2], right[i % 2], sums[i / 2][i % 2]);
    }
    __syncthreads();
  }
  float *to = c + (size_t)(blockIdx.y * 64 + row) * n + blockIdx.x * 128 + column;
  for (int i = 0; i < 4; i++) store_matrix_sync(to + i / 2 * 16 * n + i % 2 * 16, sums[i / 2][i % 2], n, mem_row_major);
}

extern "C" __global__ void scatter_add(const float *values, const int *places, float *out, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) atomicAdd(&out[places[i]], values[i]);
}

extern "C" __global__ void black_scholes(const float *price, const float *strike, const float *years, float *call, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n) return;
  float s = price[i], x = strike[i], t = years[i], root = 0.3f * sqrtf(t);
  float d1 = (__logf(s / x) + (0.02f + 0.045f) * t) / root, d2 = d1 - root;
  call[i] = s * normcdff(d1) - x * __expf(-0.02f * t) * normcdff(d2);
}

extern "C" __global__ void stencil3d(const float *in, float *out, int nx, int ny, int nz) {
  int x = blockIdx.x * 32 + threadIdx.x + 1, y = blockIdx.y * 8 + threadIdx.y + 1;
  size_t plane = (size_t)nx * ny, i = plane + (size_t)y * nx + x;
  float below = in[i - plane], here = in[i];
  for (int z = 1; z < nz - 1; z++, i += plane) {
    float above = in[i + plane];
    out[i] = 0.4f * here + 0.1f * (below + above + in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx]);
    below = here, here = above;
  }
}

extern "C" __global__ void quantize_rows(const float *in, signed char *out, float *scales, int columns) {
  __shared__ float part[4];
  const float4 *row = (const float4 *)(in + (size_t)blockIdx.x * columns);
  float most = 0;
  for (int i = threadIdx.x; i < columns / 4; i += 128) {
    float4 v = row[i];
    most = fmaxf(most, fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
  }
  for (int d = 16; d; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = most;
  __syncthreads();
  most = fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
  float scale = 127.f / most;
  for (int i = threadIdx.x; i < columns / 4; i += 128) {
    float4 v = row[i];
    char4 q = make_char4(__float2int_rn(v.x * scale), __float2int_rn(v.y * scale), __float2int_rn(v.z * scale),
                         __float2int_rn(v.w * scale));
    ((char4 *)(out + (size_t)blockIdx.x * columns))[i] = q;
  }
  if (!threadIdx.x) scales[blockIdx.x] = most / 127.f;
}

extern "C" __global__ void hash_rounds(unsigned *out, int rounds) {
  unsigned a = blockIdx.x * 256 + threadIdx.x, b = 0x9e3779b9u, c = a * 0x85ebca6bu;
  for (int i = 0; i < rounds; i++) {
    a = __umulhi(a, 0xd2511f53u) ^ b ^ c, b = a * 0xcd9e8d57u, c = __funnelshift_l(c, b, 13) + a;
  }
  out[blockIdx.x * 256 + threadIdx.x] = a ^ b ^ c;
}
