// nvcc -arch=sm_90a -std=c++17
// libcu++'s face of the same machinery: cuda::barrier with transactions, cuda::device::memcpy_async_tx, cuda::ptx; a double-buffered
// stream whose results leave through cp_async_bulk; cuda::atomic with acquire and release, cuda::std::span.
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda/std/span>
#include <cuda/std/utility>

namespace ptx = cuda::ptx;
using barrier = cuda::barrier<cuda::thread_scope_block>;
constexpr int N = 512, THREADS = 128;

extern "C" __global__ void __launch_bounds__(THREADS)
    libcu_tma(const float* in, float* out, unsigned* ready, float* norms, int chunks)
{
    __shared__ alignas(128) float buffer[2][N], result[N];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ barrier bars[2];
    __shared__ float parts[THREADS / 32];
    if (threadIdx.x == 0) {
        init(&bars[0], THREADS);
        init(&bars[1], THREADS);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    in += blockIdx.x * chunks * N, out += blockIdx.x * chunks * N;
    auto load = [&](int chunk) {
        barrier& bar = bars[chunk % 2];
        if (threadIdx.x == 0) {
            cuda::device::memcpy_async_tx(buffer[chunk % 2], in + chunk * N, cuda::aligned_size_t<16>(N * sizeof(float)), bar);
            return cuda::device::barrier_arrive_tx(bar, 1, N * sizeof(float));
        }
        return bar.arrive();
    };
    auto token = load(0);
    float norm = 0;
    for (int chunk = 0; chunk < chunks; chunk++) {
        bars[chunk % 2].wait(cuda::std::move(token));
        if (chunk + 1 < chunks) token = load(chunk + 1);
        if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
        __syncthreads();
        cuda::std::span<const float, N> from(buffer[chunk % 2], N);
        for (int i = threadIdx.x; i < N; i += THREADS) {
            const float v = from[(i + 1) % N] - from[i];
            result[i] = v;
            norm += v * v;
        }
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        if (threadIdx.x == 0) {
            ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + chunk * N, result, unsigned(N * sizeof(float)));
            ptx::cp_async_bulk_commit_group();
        }
    }
    if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    for (int d = 16; d > 0; d /= 2) norm += __shfl_down_sync(~0u, norm, d);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = norm;
    __syncthreads();
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> count(*ready);
    if (threadIdx.x == 0) {
        norms[blockIdx.x] = parts[0] + parts[1] + parts[2] + parts[3];
        // The last CTA adds up.
        if (count.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1) {
            float all = 0;
            for (unsigned i = 0; i < gridDim.x; i++) all += norms[i];
            norms[gridDim.x] = all;
        }
    }
}
