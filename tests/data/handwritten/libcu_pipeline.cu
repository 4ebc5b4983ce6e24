// nvcc -arch=sm_90a -std=c++17
// libcu++: cuda::pipeline with two stages of memcpy_async, cuda::barrier with a completion-free phase, cuda::atomic_ref, and a
// cooperative-groups reduction.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;
constexpr int THREADS = 128, CHUNK = 512, STAGES = 2;

extern "C" __global__ void __launch_bounds__(THREADS) libcu_pipeline(const int* in, int* out, int* total, int chunks)
{
    __shared__ alignas(16) int stages[STAGES][CHUNK];
    __shared__ alignas(16) int tail[THREADS];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&bar, THREADS);
    auto pipe = cuda::make_pipeline(block, &state);
    in += blockIdx.x * chunks * CHUNK;

    int sum = 0;
    for (int done = 0, ahead = 0; done < chunks; done++) {
        for (; ahead < chunks && ahead < done + STAGES; ahead++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, stages[ahead % STAGES], in + ahead * CHUNK, cuda::aligned_size_t<16>(CHUNK * sizeof(int)), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        for (int i = threadIdx.x; i < CHUNK; i += THREADS) sum += stages[done % STAGES][(i + 37) % CHUNK] * (done + 1);
        pipe.consumer_release();
    }
    block.sync();
    tail[threadIdx.x] = sum;
    auto token = bar.arrive();
    auto warp = cg::tiled_partition<32>(block);
    auto eight = cg::tiled_partition<8>(warp);
    const int of_eight = cg::reduce(eight, sum, cg::plus<int>());
    bar.wait(std::move(token));
    out[blockIdx.x * THREADS + threadIdx.x] = tail[THREADS - 1 - threadIdx.x] + of_eight;
    const int of_warp = cg::reduce(warp, sum, cg::plus<int>());
    if (warp.thread_rank() == 0) {
        cuda::atomic_ref<int, cuda::thread_scope_device> all(*total);
        all.fetch_add(of_warp, cuda::std::memory_order_relaxed);
    }
}
