// nvcc -arch=sm_90a -std=c++17
// Single-pass prefix sum with decoupled look-back: tiles publish a flag with their sum in one 64-bit word, the first warp of
// a tile looks back over its predecessors. Tiles are taken from a counter, so that CTAs of any order make progress.
#include "ptx.cuh"

constexpr int THREADS = 128, ITEMS = 4, TILE = THREADS * ITEMS;
constexpr u32 EMPTY = 0, PARTIAL = 1, TOTAL = 2;

DEVICE u64 load_state(const u64* state)
{
    u64 value;
    asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(value) : "l"(state) : "memory");
    return value;
}
DEVICE void store_state(u64* state, u32 flag, int sum)
{
    asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(state), "l"(u64(flag) << 32 | u32(sum)) : "memory");
}

extern "C" __global__ void __launch_bounds__(THREADS) scan_lookback(const int* in, int* out, u64* states, u32* counter, int n)
{
    __shared__ int warp_sums[THREADS / 32];
    __shared__ int before_tile;
    __shared__ u32 taken;
    if (threadIdx.x == 0) taken = atomicAdd(counter, 1);
    __syncthreads();
    const u32 tile = taken;
    const int lane = lane_id(), warp = threadIdx.x / 32;

    int items[ITEMS], sum = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int at = tile * TILE + threadIdx.x * ITEMS + i;
        items[i] = at < n ? __ldg(in + at) : 0;
        sum += items[i];
    }
    int inclusive = sum;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const int other = __shfl_up_sync(~0u, inclusive, d);
        if (lane >= d) inclusive += other;
    }
    if (lane == 31) warp_sums[warp] = inclusive;
    __syncthreads();
    int before = inclusive - sum, total = 0;
#pragma unroll
    for (int w = 0; w < THREADS / 32; w++) {
        if (w < warp) before += warp_sums[w];
        total += warp_sums[w];
    }
    if (warp == 0) {
        if (lane == 0) store_state(states + tile, tile == 0 ? TOTAL : PARTIAL, total);
        int exclusive = 0;
        for (int back = int(tile) - 1; back >= 0; back -= 32) {
            u64 state = u64(TOTAL) << 32;
            if (back - lane >= 0)
                do
                    state = load_state(states + back - lane);
                while (u32(state >> 32) == EMPTY);
            const u32 ends = __ballot_sync(~0u, u32(state >> 32) == TOTAL);
            const int last = ends ? __ffs(ends) - 1 : 31;
            exclusive += __reduce_add_sync(~0u, lane <= last ? int(state) : 0);
            if (ends) break;
        }
        if (lane == 0) {
            if (tile != 0) store_state(states + tile, TOTAL, exclusive + total);
            before_tile = exclusive;
        }
    }
    __syncthreads();
    before += before_tile;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        before += items[i];
        const int at = tile * TILE + threadIdx.x * ITEMS + i;
        if (at < n) __stcs(out + at, before);
    }
}
