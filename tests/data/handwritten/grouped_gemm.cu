// nvcc -arch=sm_90a -std=c++17
// A grouped GEMM whose tensormaps are made on the device: a template is copied to shared memory, its address, dimensions and
// stride replaced for each group, published with tensormap.cp_fenceproxy and acquired before the loads.
#include "ptx.cuh"

struct Group {
    int m, n, k;
};

struct alignas(1024) Shared {
    __half a[64 * 64], b[64 * 64];
    alignas(128) TensorMap map[2];
    u64 full;
};

DEVICE void replace(TensorMap* map, const void* address, int inner, int outer, u64 stride)
{
    const u32 at = shared_address(map);
    asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(at), "l"(address) : "memory");
    asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"r"(at), "r"(inner) : "memory");
    asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(at), "r"(outer) : "memory");
    asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" ::"r"(at), "l"(stride) : "memory");
}
DEVICE void publish(TensorMap* to, const TensorMap* from)
{
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(to),
                 "r"(shared_address(from))
                 : "memory");
}
DEVICE void acquire(const TensorMap* map)
{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

extern "C" __global__ void __launch_bounds__(128)
    grouped_gemm(const __grid_constant__ TensorMap example, const __half* a, const __half* b, float* c, const Group* groups,
                 TensorMap* maps, int count, int of_a, int of_b, int of_c)
{
    extern __shared__ unsigned char raw[];
    Shared& s = *reinterpret_cast<Shared*>(raw);
    const int warp = threadIdx.x / 32, lane = lane_id();
    if (threadIdx.x == 0) {
        mbarrier_init(&s.full, 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    maps += blockIdx.x * 2;
    u32 phase = 0;
    int before = 0, current = -1;
    // All tiles of all groups, dealt out to the CTAs.
    for (int g = 0; g < count; g++) {
        const Group group = groups[g];
        const int tiles_n = (group.n + 63) / 64, tiles = (group.m + 63) / 64 * tiles_n;
        for (int tile = (gridDim.x - before % gridDim.x + blockIdx.x) % gridDim.x; tile < tiles; tile += gridDim.x) {
            if (warp == 0) {
                if (current != g) {
                    if (lane < 2) {
                        s.map[lane] = example;
                        replace(&s.map[lane], lane ? b + g * of_b : a + g * of_a, group.k, lane ? group.n : group.m, group.k * 2);
                    }
                    __syncwarp();
                    publish(&maps[0], &s.map[0]);
                    publish(&maps[1], &s.map[1]);
                    acquire(&maps[0]);
                    acquire(&maps[1]);
                }
            }
            current = g;
            float acc[32] = {};
            for (int k = 0; k < group.k; k += 64) {
                if (threadIdx.x == 0) {
                    mbarrier_expect(&s.full, 2 * 8192);
                    tma_load_2d(s.a, &maps[0], &s.full, k, tile / tiles_n * 64);
                    tma_load_2d(s.b, &maps[1], &s.full, k, tile % tiles_n * 64);
                }
                mbarrier_wait(&s.full, phase);
                phase ^= 1;
                wgmma_fence();
#pragma unroll
                for (int i = 0; i < 4; i++) wgmma_m64n64k16_f16(acc, wgmma_descriptor(s.a) + i * 2, wgmma_descriptor(s.b) + i * 2, true);
                wgmma_commit();
                wgmma_wait<0>();
                __syncthreads();
            }
#pragma unroll
            for (int i = 0; i < 32; i++) {
                const int row = tile / tiles_n * 64 + warp * 16 + lane / 4 + i / 2 % 2 * 8;
                const int col = tile % tiles_n * 64 + i / 4 * 8 + lane % 4 * 2 + i % 2;
                if (row < group.m && col < group.n) c[g * of_c + row * group.n + col] = acc[i];
            }
        }
        before += tiles;
    }
}
