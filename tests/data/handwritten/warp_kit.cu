// nvcc -arch=sm_90a -std=c++17
// Warp-level pieces in one kernel that waits for its predecessor grid (programmatic dependent launch): bitonic sort by shuffles,
// redux, match, ballots in divergent code, a transpose with padding, a histogram with privatised counters, packed 16-bit and DP4A
// arithmetic, bit tricks.
#include "ptx.cuh"

DEVICE int bitonic(int value)
{
    const int lane = lane_id();
#pragma unroll
    for (int size = 2; size <= 32; size *= 2)
#pragma unroll
        for (int stride = size / 2; stride > 0; stride /= 2) {
            const int other = __shfl_xor_sync(~0u, value, stride);
            const bool up = (lane & size) == 0, low = (lane & stride) == 0;
            value = up == low ? min(value, other) : max(value, other);
        }
    return value;
}

extern "C" __global__ void __launch_bounds__(256)
    warp_kit(const int* in, int* sorted, u32* facts, int* transposed, u32* bins, const uchar4* bytes, int* dots, __half2* halves)
{
    __shared__ int tile[32][33];
    __shared__ u32 counters[4][16];
    const int t = threadIdx.x, lane = lane_id(), warp = t / 32, i = blockIdx.x * 256 + t;
    if (t < 64) counters[t / 16][t % 16] = 0;
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    const int value = __ldcs(in + i);
    sorted[i] = bitonic(value);

    u32 fact = __reduce_max_sync(~0u, value) ^ __reduce_xor_sync(~0u, value);
    if (value & 1) {
        const u32 here = __activemask();
        fact += __popc(here) * 1000 + __reduce_add_sync(here, lane);
        fact += __match_any_sync(here, value & 6) & 0xFF;
    } else if (lane % 3 == 0) {
        const u32 here = __ballot_sync(__activemask(), value & 2);
        fact ^= here << 3 | __brev(lane) | __clz(value | 1) | __ffs(value);
    }
    __syncwarp();
    int everyone;
    __match_all_sync(~0u, lane / 40, &everyone);
    facts[i] = fact + everyone + __funnelshift_l(value, lane, 7) + __byte_perm(value, lane, 0x5140);

    __syncthreads();
    for (int r = warp; r < 32; r += 8) tile[r][lane] = in[blockIdx.x * 1024 % 512 + (r * 32 + lane) % 512] + r;
    atomicAdd(&counters[warp % 4][value & 15], 1u);
    __syncthreads();
    for (int r = warp; r < 32; r += 8) transposed[blockIdx.x * 1024 + r * 32 + lane] = tile[lane][r];
    if (t < 16) atomicAdd(bins + t, counters[0][t] + counters[1][t] + counters[2][t] + counters[3][t]);

    const uchar4 b = bytes[i];
    const u32 packed = *reinterpret_cast<const u32*>(&b);
    dots[i] = __dp4a(int(packed), int(0x01FF02FE), int(__vadd4(packed, 0x01010101) & 0xFF)) + __sad(value, lane, 3u);
    const __half2 h = __floats2half2_rn(float(b.x) * 0.5f, float(b.y) - 100.0f);
    halves[i] = __hfma2(h, __float2half2_rn(2.0f), __hmin2(h, __float2half2_rn(-1.0f)));
}
