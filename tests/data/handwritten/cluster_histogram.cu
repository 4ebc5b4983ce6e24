// nvcc -arch=sm_90a -std=c++17
// A histogram whose bins are spread over the shared memories of a cluster: cooperative groups' map_shared_rank and atomics on
// peers' memory, every CTA owning a part of the bins.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

constexpr int BINS_PER_CTA = 32;

extern "C" __global__ void __launch_bounds__(96) cluster_histogram(const unsigned* in, unsigned* bins, int n)
{
    __shared__ unsigned own[BINS_PER_CTA];
    auto cluster = cg::this_cluster();
    const int all = BINS_PER_CTA * cluster.num_blocks();
    for (int i = threadIdx.x; i < BINS_PER_CTA; i += blockDim.x) own[i] = 0;
    cluster.sync();
    for (int i = cluster.block_rank() * blockDim.x + threadIdx.x; i < n; i += cluster.num_blocks() * blockDim.x) {
        const int bin = in[i] % all;
        atomicAdd(cluster.map_shared_rank(own, bin / BINS_PER_CTA) + bin % BINS_PER_CTA, 1u);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < BINS_PER_CTA; i += blockDim.x) bins[cluster.block_rank() * BINS_PER_CTA + i] = own[i];
}
