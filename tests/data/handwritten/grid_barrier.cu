// nvcc -arch=sm_90a -std=c++17
// A cooperative grid: Jacobi steps on a ring, with a hand-written barrier of the whole grid between them (one arrival per CTA,
// a generation that all wait for).
#include "ptx.cuh"

DEVICE void grid_barrier(u32* arrived, u32* generation, u32 ctas)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 before, ticket, now;
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(before) : "l"(generation) : "memory");
        asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(ticket) : "l"(arrived) : "memory");
        if (ticket == ctas - 1) {
            asm volatile("st.relaxed.gpu.global.u32 [%0], 0;" ::"l"(arrived) : "memory");
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(generation) : "memory");
        } else {
            do
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(generation) : "memory");
            while (now == before);
        }
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(64) grid_barrier_jacobi(float* ping, float* pong, u32* arrived, u32* generation, int n,
                                                                      int steps)
{
    float *from = ping, *to = pong;
    for (int step = 0; step < steps; step++) {
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            to[i] = 0.25f * from[i == 0 ? n - 1 : i - 1] + 0.5f * from[i] + 0.25f * from[i == n - 1 ? 0 : i + 1];
        grid_barrier(arrived, generation, gridDim.x);
        float* old = from;
        from = to;
        to = old;
    }
}
