// nvcc -arch=sm_90a -std=c++17
// Older ways that still run: a reduction by volatile shared memory, the last CTA that finishes the sum (__threadfence and a ticket), and
// a barrier of the grid by flipping the upper bit of a counter (as cooperative groups do).
#include <cooperative_groups.h>

__device__ void grid_sync(unsigned* arrived)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned add = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1;
        __threadfence();
        const unsigned old = atomicAdd(arrived, add);
        while (((old ^ *(volatile unsigned*)arrived) & 0x80000000u) == 0) {
        }
        __threadfence();
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(128)
    legacy(const int* in, int* parts, int* total, unsigned* ticket, unsigned* arrived, int* shifted, int n)
{
    __shared__ volatile int sums[128];
    __shared__ bool last;
    int sum = 0;
    for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) sum += in[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x < 64) sums[threadIdx.x] = sums[threadIdx.x] + sums[threadIdx.x + 64];
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int d = 32; d > 0; d /= 2) {
            const int v = sums[threadIdx.x] + (threadIdx.x < d ? sums[threadIdx.x + d] : 0);
            __syncwarp();
            sums[threadIdx.x] = v;
            __syncwarp();
        }
    }
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = sums[0];
        __threadfence();
        last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        __threadfence();
        int all = threadIdx.x < gridDim.x ? parts[threadIdx.x] : 0;
        all = __syncthreads_or(0) + all;
        for (int d = 16; d > 0; d /= 2) all += __shfl_xor_sync(~0u, all, d);
        if (threadIdx.x % 32 == 0) atomicAdd(total, all);
    }
    grid_sync(arrived);
    const int i = blockIdx.x * 128 + threadIdx.x;
    shifted[i] = parts[(blockIdx.x + 1) % gridDim.x] + i;
    grid_sync(arrived);
    const int other = shifted[(i + 77) % (gridDim.x * 128)];
    grid_sync(arrived);
    shifted[i] = other;
}
