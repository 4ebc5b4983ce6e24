// Relocatable device code (nvcc -rdc=true), with linked_other.cu.
#include <cstdio>

extern __device__ int offset[4];
__device__ int other(int x);
__global__ void reversed(int *out);

template <class T> __device__ __noinline__ T in_both(T x) { return x * 3; }
static __device__ __noinline__ int helper(int x) { return x + 1; }
static __device__ int counter = 7;
__device__ int doubled(int x) { return 2 * x; }
__global__ void sums(int *out) {
  int t = threadIdx.x;
  out[t] = other(helper(t)) + offset[t & 3] + counter + in_both(t);
}

int main() {
  int *out;
  cudaMallocManaged(&out, 32 * sizeof(int));
  sums<<<1, 32>>>(out);
  cudaDeviceSynchronize();
  for (int t = 0; t < 32; t++)
    if (out[t] != 2 * (t + 1) + 100 + 5 + (t & 3) * 10 + 7 + 3 * t) return 2;
  reversed<<<1, 64>>>(out);
  cudaDeviceSynchronize();
  for (int t = 0; t < 32; t++)
    if (out[31 - t] != 100 * t + 9 + 3 * t) return 3;
  puts("PASS");
}
