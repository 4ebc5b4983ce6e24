// Copies whose cudaMemcpyKind is that of the addresses, and copies whose kind is another.
#include <cstdio>
#include <cstring>

int main(int count, char **arguments) {
  bool wrong = count > 1 && !strcmp(arguments[1], "wrong");
  char *device, *other, *managed, *pinned, *mapped, host[64], pageable[64];
  memset(host, 7, sizeof host);
  cudaMalloc(&device, 64);
  cudaMalloc(&other, 64);
  cudaMallocManaged(&managed, 64);
  cudaMallocHost(&pinned, 64);
  cudaHostAlloc(&mapped, 64, cudaHostAllocMapped);
  cudaHostRegister(pageable, 64, cudaHostRegisterDefault);
  if (wrong) {
    cudaMemcpy(device, host, 64, cudaMemcpyDeviceToHost);
    cudaMemcpyAsync(host, device, 63, cudaMemcpyHostToDevice, 0);
    cudaMemcpy(other, host, 62, cudaMemcpyDeviceToDevice);
    cudaMemcpy2D(host, 8, device, 8, 8, 7, cudaMemcpyHostToHost);
  } else {
    cudaMemcpy(device, host, 64, cudaMemcpyHostToDevice);
    cudaMemcpy(other, device, 64, cudaMemcpyDeviceToDevice);
    cudaMemcpyPeer(other, 0, device, 0, 64);
    cudaMemcpy2D(host, 8, other, 8, 8, 8, cudaMemcpyDeviceToHost);
    cudaMemcpy(pinned, host, 64, cudaMemcpyHostToHost);
    for (char *either : {managed, pinned, mapped, pageable}) {
      cudaMemcpyAsync(either, device, 64, cudaMemcpyDeviceToHost, 0);
      cudaMemcpyAsync(device, either, 64, cudaMemcpyHostToDevice, 0);
      cudaMemcpyAsync(device, either, 64, cudaMemcpyDeviceToDevice, 0);
    }
    cudaMemcpy(host, device, 0, cudaMemcpyHostToDevice);
    cudaMemcpy(host, device, 64, cudaMemcpyDefault);
  }
  cudaDeviceSynchronize();
  puts(host[5] == 7 ? "PASS" : "FAIL");
}
