// Barriers, pipelines, asynchronous copies and cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/annotated_ptr>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>

namespace cg = cooperative_groups;

__global__ void barriers(int* out, const int4* in)
{
    __shared__ alignas(16) int4 tile[256];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        cuda::device::experimental::cp_async_bulk_global_to_shared(tile, in, sizeof(tile), bar);
    }
    __syncthreads();
    auto token = cuda::device::barrier_arrive_tx(bar, 1, threadIdx.x == 0 ? sizeof(tile) : 0);
    bar.wait(std::move(token));
    cuda::memcpy_async(tile + threadIdx.x, in + threadIdx.x, cuda::aligned_size_t<16>(16), bar);
    bar.arrive_and_wait();
    while (!bar.try_wait_for(bar.arrive(), cuda::std::chrono::nanoseconds(100))) {}
    bar.arrive_and_drop();
    out[threadIdx.x] = tile[threadIdx.x].x;
}

__global__ void pipelines(int* out, const int* in, int n)
{
    constexpr int stages = 3;
    extern __shared__ int buffer[];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    auto mine = cuda::make_pipeline();
    for (int i = 0; i < n; ++i) {
        pipe.producer_acquire();
        cuda::memcpy_async(block, buffer + (i % stages) * 128, in + i * 128, cuda::aligned_size_t<16>(512), pipe);
        pipe.producer_commit();
        mine.producer_acquire();
        cuda::memcpy_async(buffer + threadIdx.x, in + threadIdx.x, sizeof(int), mine);
        mine.producer_commit();
        cuda::pipeline_consumer_wait_prior<1>(mine);
        mine.consumer_release();
        pipe.consumer_wait();
        out[i] += buffer[(i % stages) * 128];
        pipe.consumer_release();
    }
    cg::memcpy_async(block, buffer, in, 512);
    cg::wait(block);
}

__global__ void groups(int* out, float* f)
{
    auto grid = cg::this_grid();
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto small = cg::tiled_partition<4>(warp);
    int v = out[grid.thread_rank()];
    v += cg::reduce(warp, v, cg::plus<int>());
    v += cg::reduce(small, v, cg::bit_xor<int>());
    v += cg::inclusive_scan(warp, v) + cg::exclusive_scan(small, v, cg::greater<int>());
    *f += cg::reduce(warp, *f, cg::less<float>());
    if (v & 1) {
        auto active = cg::coalesced_threads();
        v += active.shfl(v, 0) + active.num_threads() + active.ballot(v) + active.shfl_down(v, 1);
        auto same = cg::labeled_partition(active, v & 7);
        v += cg::reduce(same, v, cg::plus<int>()) + same.thread_rank();
        auto parts = cg::binary_partition(warp, v & 2);
        v += parts.any(v) + parts.meta_group_size();
    }
    cg::invoke_one(warp, [&] { out[1] = v; });
    auto token = block.barrier_arrive();
    block.barrier_wait(std::move(token));
    cg::reduce_update_async(warp, *reinterpret_cast<cuda::atomic<int>*>(out), v, cg::plus<int>());
    grid.sync();
    out[grid.thread_rank()] = v;
}

__global__ void __cluster_dims__(2, 1, 1) clusters(int* out)
{
    __shared__ int mine[32];
    auto cluster = cg::this_cluster();
    mine[threadIdx.x] = cluster.block_rank();
    cluster.sync();
    int* other = cluster.map_shared_rank(mine, cluster.block_rank() ^ 1);
    out[threadIdx.x] = other[threadIdx.x] + cluster.query_shared_rank(other) + cluster.dim_blocks().x;
    auto token = cluster.barrier_arrive();
    cluster.barrier_wait(std::move(token));
    __cluster_barrier_arrive_relaxed();
    __cluster_barrier_wait();
    out[32] = __clusterRelativeBlockRank() + __clusterSizeInBlocks() + __clusterGridDimInClusters().x;
}

__global__ void properties(int* p, int n)
{
    cuda::annotated_ptr<int, cuda::access_property::persisting> kept(p);
    cuda::annotated_ptr<int, cuda::access_property::streaming> once(p + 64);
    cuda::access_property mixed(p, 1024, 4096, cuda::access_property::persisting{}, cuda::access_property::streaming{});
    cuda::annotated_ptr<int, cuda::access_property> ranged(p + 128, mixed);
    kept[threadIdx.x] = once[threadIdx.x] + ranged[threadIdx.x];
    cuda::apply_access_property(p, 256, cuda::access_property::persisting{});
    cuda::discard_memory(p + 1024, 1024);
    __shared__ alignas(cuda::latch<cuda::thread_scope_block>) char memory[sizeof(cuda::latch<cuda::thread_scope_block>)];
    auto* latch = reinterpret_cast<cuda::latch<cuda::thread_scope_block>*>(memory);
    if (threadIdx.x == 0) new (latch) cuda::latch<cuda::thread_scope_block>(blockDim.x);
    __syncthreads();
    latch->arrive_and_wait();
    using semaphore = cuda::counting_semaphore<cuda::thread_scope_device, 4>;
    auto* s = reinterpret_cast<semaphore*>(p + 512);
    s->acquire();
    s->release(n);
}
