// The primitives of CUB for warps and blocks.
#include <cub/block/block_shuffle.cuh>
#include <cub/cub.cuh>

template <int Threads, typename T>
__global__ void primitives(T* data, int* counts, int n)
{
    using Load = cub::BlockLoad<T, Threads, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Store = cub::BlockStore<T, Threads, 4, cub::BLOCK_STORE_VECTORIZE>;
    using Reduce = cub::BlockReduce<T, Threads, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
    using Scan = cub::BlockScan<T, Threads, cub::BLOCK_SCAN_RAKING>;
    using Sort = cub::BlockRadixSort<T, Threads, 4, int>;
    using Merge = cub::BlockMergeSort<T, Threads, 4>;
    using Histogram = cub::BlockHistogram<unsigned char, Threads, 4, 256, cub::BLOCK_HISTO_ATOMIC>;
    using Discontinuity = cub::BlockDiscontinuity<T, Threads>;
    using Exchange = cub::BlockExchange<T, Threads, 4>;
    using Shuffle = cub::BlockShuffle<T, Threads>;
    using Warp = cub::WarpReduce<T, 16>;
    using WarpScan = cub::WarpScan<T>;
    using WarpSort = cub::WarpMergeSort<T, 4, 32>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
        typename Reduce::TempStorage reduce;
        typename Scan::TempStorage scan;
        typename Sort::TempStorage sort;
        typename Merge::TempStorage merge;
        typename Histogram::TempStorage histogram;
        typename Discontinuity::TempStorage discontinuity;
        typename Exchange::TempStorage exchange;
        typename Shuffle::TempStorage shuffle;
        typename Warp::TempStorage warp[Threads / 16];
        typename WarpScan::TempStorage warp_scan[Threads / 32];
        typename WarpSort::TempStorage warp_sort[Threads / 32];
    } shared;
    T items[4];
    int values[4] = {0, 1, 2, 3}, heads[4];
    Load(shared.load).Load(data + blockIdx.x * Threads * 4, items, n, T(0));
    __syncthreads();
    T sum = Reduce(shared.reduce).Sum(items);
    T largest = Reduce(shared.reduce).Reduce(items, cuda::maximum<>{});
    __syncthreads();
    Scan(shared.scan).InclusiveSum(items, items);
    __syncthreads();
    Sort(shared.sort).Sort(items, values);
    __syncthreads();
    Merge(shared.merge).Sort(items, [](T a, T b) { return a > b; });
    __syncthreads();
    Discontinuity(shared.discontinuity).FlagHeads(heads, items, cuda::std::not_equal_to<>{});
    Exchange(shared.exchange).StripedToBlocked(items);
    __syncthreads();
    Shuffle(shared.shuffle).Up(items, items);
    items[0] += Warp(shared.warp[threadIdx.x / 16]).Sum(sum) + largest;
    WarpScan(shared.warp_scan[threadIdx.x / 32]).ExclusiveSum(items[1], items[1]);
    WarpSort(shared.warp_sort[threadIdx.x / 32]).Sort(items, cuda::std::less<>{});
    __syncthreads();
    unsigned char bytes[4] = {1, 2, 3, static_cast<unsigned char>(heads[0])};
    __shared__ int bins[256];
    Histogram(shared.histogram).Histogram(bytes, bins);
    __syncthreads();
    counts[threadIdx.x] = bins[threadIdx.x];
    Store(shared.store).Store(data, items);
    cub::ThreadStore<cub::STORE_CG>(counts, cub::ThreadLoad<cub::LOAD_CS>(counts + 1));
}

template __global__ void primitives<128, int>(int*, int*, int);
template __global__ void primitives<256, double>(double*, int*, int);
