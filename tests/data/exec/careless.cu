// A program that asks for no error.
#include <cstdio>

__global__ void increase(int *x) { x[threadIdx.x] += 1; }

int main() {
  int *x;
  cudaMalloc(&x, 32 * sizeof(int));
  for (int round = 0; round < 2; round++) increase<<<1, 32>>>(x);
  cudaDeviceSynchronize();
  puts("PASS");
}
