// 48 KiB of dynamic shared memory beside static ones: refused, unless the program has asked for as much.
#include <cstdio>

__global__ void fill(int *out) {
  extern __shared__ int bytes[];
  __shared__ int words[128];
  words[threadIdx.x] = 3 * threadIdx.x;
  bytes[threadIdx.x * 96] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = bytes[(127 - threadIdx.x) * 96] + words[threadIdx.x ^ 1];
}

int main() {
  int *out, host[128], most;
  cudaMalloc(&out, sizeof host);
  cudaFuncAttributes found;
  cudaFuncGetAttributes(&found, fill);
  most = found.maxDynamicSharedSizeBytes + (int)found.sharedSizeBytes;
  fill<<<1, 128, 48 << 10>>>(out);
  bool refused = cudaGetLastError() == cudaErrorInvalidValue;
  cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, 48 << 10);
  fill<<<1, 128, 48 << 10>>>(out);
  bool right = !cudaGetLastError() && !cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 128; i++) right &= host[i] == 127 - i + 3 * (i ^ 1);
  puts(refused && right && most == 48 << 10 ? "PASS" : "FAIL");
}
