// nvcc -arch=sm_90a -std=c++17
// Cooperative groups: coalesced groups in divergent code, labelled partitions, scans and reductions of tiles, memcpy_async of a group, a
// cluster's arrive and wait with work between them, invoke_one, and a reduction over the cluster's shared memories.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128)
    groups(const int* in, int* scans, int* labels, unsigned* places, unsigned* counter, int* totals)
{
    __shared__ alignas(16) int items[128];
    __shared__ int partial;
    auto block = cg::this_thread_block();
    auto cluster = cg::this_cluster();
    auto warp = cg::tiled_partition<32>(block);
    auto tile = cg::tiled_partition<16>(warp);
    if (block.thread_rank() == 0) partial = 0;
    cg::memcpy_async(block, items, in + blockIdx.x * 128, sizeof(items));
    cg::wait(block);
    const int i = blockIdx.x * 128 + threadIdx.x, value = items[threadIdx.x ^ 5];
    scans[i] = cg::exclusive_scan(tile, value, cg::plus<int>()) + cg::reduce(tile, value, cg::greater<int>());

    auto same = cg::labeled_partition(warp, value & 3);
    labels[i] = cg::reduce(same, value, cg::plus<int>()) * 64 + same.size();

    places[i] = 0xFFFFFFFF;
    if (value % 3 == 0) {
        auto here = cg::coalesced_threads();
        unsigned first = 0;
        if (here.thread_rank() == 0) first = atomicAdd(counter, here.size());
        places[i] = here.shfl(first, 0) * 0 + here.thread_rank();
    }
    block.sync();
    const int of_warp = cg::reduce(warp, value, cg::plus<int>());
    cg::invoke_one(warp, [&] { atomicAdd(&partial, of_warp); });
    auto token = cluster.barrier_arrive();
    const int again = cg::inclusive_scan(warp, value);
    cluster.barrier_wait(cuda::std::move(token));
    if (block.thread_rank() == 0) {
        int all = 0;
        for (unsigned r = 0; r < cluster.num_blocks(); r++) all += *cluster.map_shared_rank(&partial, r);
        totals[blockIdx.x] = all;
    }
    if (threadIdx.x == 127) totals[gridDim.x + blockIdx.x] = again;
    cluster.sync();
}
