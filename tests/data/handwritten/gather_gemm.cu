// nvcc -arch=sm_100a -std=c++17
// Rows of A chosen by an index: tile::gather4 loads four rows a copy; tf32 products; the epilogue scatters rows with tile::scatter4,
// at other rows.
#include "tcgen05.cuh"

constexpr int BM = 128, BN = 32, BK = 32;

struct alignas(1024) Shared {
    float a[BM * BK], b[BN * BK], c[BM * BN];
    u64 full, done;
    u32 tmem;
};

extern "C" __global__ void __launch_bounds__(128)
    gather_gemm(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map, const __grid_constant__ TensorMap c_map,
                const int* from, const int* to, int steps)
{
    extern __shared__ unsigned char raw[];
    Shared& s = *reinterpret_cast<Shared*>(raw);
    const int warp = threadIdx.x / 32, lane = lane_id(), row0 = blockIdx.x * BM;
    if (threadIdx.x == 0) {
        mbarrier_init(&s.full, 1), mbarrier_init(&s.done, 1);
        fence_mbarrier_init();
    }
    if (warp == 0) tmem_alloc(&s.tmem, 32);
    tcgen05_before();
    __syncthreads();
    tcgen05_after();
    const u32 tmem = s.tmem;
    const int4 rows = reinterpret_cast<const int4*>(from + row0)[lane];
    for (int step = 0; step < steps; step++) {
        if (warp == 0) {
            if (lane == 0) {
                mbarrier_expect(&s.full, (BM + BN) * BK * 4);
                tma_load_2d(s.b, &b_map, &s.full, step * BK, 0);
            }
            __syncwarp();
            asm volatile(
                "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::
                    "r"(shared_address(s.a + lane * 4 * BK)),
                "l"(&a_map), "r"(shared_address(&s.full)), "r"(step * BK), "r"(rows.x), "r"(rows.y), "r"(rows.z), "r"(rows.w)
                : "memory");
        }
        if (threadIdx.x == 32) {
            mbarrier_wait(&s.full, step & 1);
            tcgen05_after();
            const u32 idesc = 1 << 4 | 2 << 7 | 2 << 10 | BN / 8 << 17 | BM / 16 << 24;
            for (int k = 0; k < BK / 8; k++)
                asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\ttcgen05.mma.cta_group::1.kind::tf32 [%0], %1, %2, %3, p;\n}" ::"r"(
                                 tmem),
                             "l"(tcgen05_descriptor(shared_address(s.a)) + k * 2), "l"(tcgen05_descriptor(shared_address(s.b)) + k * 2),
                             "r"(idesc), "r"(step + k)
                             : "memory");
            tcgen05_commit(&s.done);
        }
        __syncwarp();
        mbarrier_wait(&s.done, step & 1);
        __syncthreads();
    }
    tcgen05_after();
    for (int i = 0; i < BN / 16; i++) {
        u32 d[16];
        tmem_ld_32x32b_x16(d, tmem + (warp * 32 << 16) + i * 16);
        tcgen05_wait_ld();
        for (int j = 0; j < 4; j++) {
            const int row = threadIdx.x, chunk = (i * 4 + j) ^ row % 8;
            *reinterpret_cast<uint4*>(reinterpret_cast<char*>(s.c) + row * 128 + chunk * 16) =
                make_uint4(d[j * 4], d[j * 4 + 1], d[j * 4 + 2], d[j * 4 + 3]);
        }
    }
    fence_async();
    tcgen05_before();
    __syncthreads();
    if (warp == 0) {
        const int4 places = reinterpret_cast<const int4*>(to + row0)[lane];
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(&c_map),
                     "r"(shared_address(s.c + lane * 4 * BN)), "r"(0), "r"(places.x), "r"(places.y), "r"(places.z), "r"(places.w)
                     : "memory");
        bulk_commit();
        bulk_wait<0>();
        tmem_free(tmem, 32);
    }
}
