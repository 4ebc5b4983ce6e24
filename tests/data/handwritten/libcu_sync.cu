// nvcc -arch=sm_90a -std=c++17
// libcu++'s synchronisation between warps and CTAs: semaphores, a latch, a barrier with a completion, atomics with wait and notify, and
// CUB's warp primitives on shared storage.
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/warp/warp_exchange.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/semaphore>

struct Less {
    __device__ bool operator()(int a, int b) const { return a < b; }
};

extern "C" __global__ void __launch_bounds__(128)
    libcu_sync(const int* in, int* sorted, int* merged, int* scanned, int* passed, unsigned* flag, int* chain)
{
    using Exchange = cub::WarpExchange<int, 4, 32>;
    using WarpSort = cub::WarpMergeSort<int, 4, 32>;
    using Scan = cub::WarpScan<int, 16>;
    using Reduce = cub::WarpReduce<int>;
    using BlockSort = cub::BlockMergeSort<int, 128, 4>;
    __shared__ union {
        typename Exchange::TempStorage exchange[4];
        typename WarpSort::TempStorage sort[4];
        typename Scan::TempStorage scan[8];
        typename Reduce::TempStorage reduce[4];
        typename BlockSort::TempStorage block;
    } shared;
    __shared__ cuda::binary_semaphore<cuda::thread_scope_block> gate;
    using Latch = cuda::latch<cuda::thread_scope_block>;
    __shared__ alignas(Latch) unsigned char room[sizeof(Latch)];
    Latch& ready = reinterpret_cast<Latch&>(room);
    __shared__ int box;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        new (&gate) cuda::binary_semaphore<cuda::thread_scope_block>(0);
        new (&ready) Latch(4);
    }
    int items[4];
    for (int i = 0; i < 4; i++) items[i] = in[blockIdx.x * 512 + threadIdx.x * 4 + i];
    __syncthreads();
    Exchange(shared.exchange[warp]).BlockedToStriped(items, items);
    __syncwarp();
    __syncthreads();
    WarpSort(shared.sort[warp]).Sort(items, Less());
    for (int i = 0; i < 4; i++) sorted[blockIdx.x * 512 + threadIdx.x * 4 + i] = items[i];
    __syncthreads();
    int prefix;
    Scan(shared.scan[threadIdx.x / 16]).ExclusiveSum(items[0], prefix);
    __syncthreads();
    const int sum = Reduce(shared.reduce[warp]).Sum(items[1]);
    scanned[blockIdx.x * 128 + threadIdx.x] = prefix + __shfl_sync(~0u, sum, 0);
    __syncthreads();
    BlockSort(shared.block).Sort(items, Less());
    for (int i = 0; i < 4; i++) merged[blockIdx.x * 512 + threadIdx.x * 4 + i] = items[i];

    // Warp 3 gives a box to warp 1; all warps meet at the latch.
    if (threadIdx.x == 96) {
        box = items[0] + 1;
        gate.release();
    }
    int got = 0;
    if (threadIdx.x == 32) {
        gate.acquire();
        got = box;
    }
    __syncwarp();
    if (lane == 0) ready.arrive_and_wait();
    __syncwarp();
    if (threadIdx.x == 32) passed[blockIdx.x] = got;

    // A chain through the CTAs of the grid.
    if (threadIdx.x == 0) {
        cuda::atomic_ref<unsigned, cuda::thread_scope_device> turn(*flag);
        unsigned now;
        while ((now = turn.load(cuda::memory_order_acquire)) != blockIdx.x) turn.wait(now, cuda::memory_order_relaxed);
        *chain = *chain * 3 + merged[blockIdx.x * 512];
        turn.store(blockIdx.x + 1, cuda::memory_order_release);
        turn.notify_all();
    }
}
