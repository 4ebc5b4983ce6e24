// nvcc -arch=sm_90a -std=c++17
// CUB's block primitives one after the other on one union of shared memory: load transposed, radix sort, discontinuity, scan,
// reduce, histogram, store.
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>

constexpr int THREADS = 64, ITEMS = 4;

extern "C" __global__ void __launch_bounds__(THREADS) cub_sort(const int* in, int* sorted, int* ranks, int* maxima, unsigned* bins)
{
    using Load = cub::BlockLoad<int, THREADS, ITEMS, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Store = cub::BlockStore<int, THREADS, ITEMS, cub::BLOCK_STORE_TRANSPOSE>;
    using Sort = cub::BlockRadixSort<int, THREADS, ITEMS>;
    using Flags = cub::BlockDiscontinuity<int, THREADS>;
    using Scan = cub::BlockScan<int, THREADS, cub::BLOCK_SCAN_RAKING>;
    using Reduce = cub::BlockReduce<int, THREADS, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
    using Histogram = cub::BlockHistogram<unsigned char, THREADS, ITEMS, 16, cub::BLOCK_HISTO_ATOMIC>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
        typename Sort::TempStorage sort;
        typename Flags::TempStorage flags;
        typename Scan::TempStorage scan;
        typename Reduce::TempStorage reduce;
        typename Histogram::TempStorage histogram;
    } shared;
    __shared__ unsigned counts[16];
    const int base = blockIdx.x * THREADS * ITEMS;
    int items[ITEMS], flags[ITEMS], ranked[ITEMS];
    unsigned char low[ITEMS];
    Load(shared.load).Load(in + base, items);
    __syncthreads();
    Sort(shared.sort).Sort(items);
    __syncthreads();
    Flags(shared.flags).FlagHeads(flags, items, cuda::std::not_equal_to<>());
    __syncthreads();
    Scan(shared.scan).InclusiveSum(flags, ranked);
    __syncthreads();
    const int largest = Reduce(shared.reduce).Reduce(items[ITEMS - 1] - threadIdx.x * 8, cuda::maximum<>());
    if (threadIdx.x == 0) maxima[blockIdx.x] = largest;
    __syncthreads();
    for (int i = 0; i < ITEMS; i++) low[i] = items[i] & 15;
    Histogram(shared.histogram).Histogram(low, counts);
    __syncthreads();
    if (threadIdx.x < 16) bins[blockIdx.x * 16 + threadIdx.x] = counts[threadIdx.x];
    Store(shared.store).Store(sorted + base, items);
    __syncthreads();
    Store(shared.store).Store(ranks + base, ranked);
}
