// nvcc -arch=sm_100a -std=c++17
// A persistent GEMM of Blackwell by cluster launch control: a scheduler warp cancels CTAs that have not begun and takes their tiles;
// a TMA warp, an MMA warp with two accumulators in tensor memory, and four epilogue warps that store by TMA. The epilogue of a tile
// runs beside the products of the next.
#include "tcgen05.cuh"

constexpr int BM = 128, BN = 64, BK = 64, STAGES = 3;

struct alignas(1024) Shared {
    __half a[STAGES][BM * BK];
    __half b[STAGES][BN * BK];
    __half c[BM * BN];
    alignas(16) u32 response[4];
    u64 full[STAGES], empty[STAGES], done[2], free[2], next, taken;
    u32 tmem;
};

// The tile after this one, for every role: from the response of a cancellation. False if there is none.
DEVICE bool next_tile(Shared& s, u32 phase, int& x, int& y)
{
    mbarrier_wait(&s.next, phase);
    u32 got, cx, cy, cz;
    asm volatile(
        "{\n\t.reg .b128 r;\n\t.reg .pred p;\n\t"
        "ld.shared.b128 r, [%4];\n\t"
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, r;\n\t"
        "selp.u32 %0, 1, 0, p;\n\tmov.u32 %1, 0;\n\tmov.u32 %2, 0;\n\tmov.u32 %3, 0;\n\t"
        "@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%1, %2, %3, _}, r;\n}"
        : "=r"(got), "=r"(cx), "=r"(cy), "=r"(cz)
        : "r"(shared_address(s.response))
        : "memory");
    fence_async();
    mbarrier_arrive(&s.taken);
    x = cx, y = cy;
    return got;
}

extern "C" __global__ void __launch_bounds__(224)
    blackwell_clc(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
                  const __grid_constant__ TensorMap c_map, int steps)
{
    extern __shared__ unsigned char raw[];
    Shared& s = *reinterpret_cast<Shared*>(raw);
    const int warp = threadIdx.x / 32, lane = lane_id();
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) mbarrier_init(&s.full[i], 1), mbarrier_init(&s.empty[i], 1);
        for (int i = 0; i < 2; i++) mbarrier_init(&s.done[i], 1), mbarrier_init(&s.free[i], 4);
        mbarrier_init(&s.next, 1);
        mbarrier_init(&s.taken, 224 - 32 + 1);  // all but the scheduler's other lanes
        fence_mbarrier_init();
    }
    if (warp == 1) tmem_alloc(&s.tmem, 128);
    tcgen05_before();
    __syncthreads();
    tcgen05_after();
    const u32 tmem = s.tmem;
    int x = blockIdx.x, y = blockIdx.y;
    u32 phase = 0;
    bool more = true;

    if (warp == 6) {  // scheduler
        if (lane == 0)
            while (more) {
                mbarrier_expect(&s.next, 16);
                asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::"r"(
                                 shared_address(s.response)),
                             "r"(shared_address(&s.next))
                             : "memory");
                more = next_tile(s, phase, x, y);
                mbarrier_wait(&s.taken, phase);
                phase ^= 1;
            }
    } else if (warp == 4) {  // loads
        int stage = 0;
        u32 turn = 0;
        while (more) {
            if (elect_one())
                for (int step = 0, i = stage, t = turn; step < steps; step++) {
                    mbarrier_wait(&s.empty[i], t ^ 1);
                    mbarrier_expect(&s.full[i], (BM + BN) * BK * 2);
                    tma_load_2d(s.a[i], &a_map, &s.full[i], step * BK, y * BM);
                    tma_load_2d(s.b[i], &b_map, &s.full[i], step * BK, x * BN);
                    if (++i == STAGES) i = 0, t ^= 1;
                }
            for (int step = 0; step < steps; step++)
                if (++stage == STAGES) stage = 0, turn ^= 1;
            __syncwarp();
            more = next_tile(s, phase, x, y);
            phase ^= 1;
        }
    } else if (warp == 5) {  // products
        // D: F32, A and B: F16, K-major; N and M.
        const u32 idesc = 1 << 4 | BN / 8 << 17 | BM / 16 << 24;
        int stage = 0;
        u32 turn = 0;
        for (int tile = 0; more; tile++) {
            const int buffer = tile % 2;
            mbarrier_wait(&s.free[buffer], tile / 2 % 2 ^ 1);
            tcgen05_after();
            for (int step = 0; step < steps; step++) {
                mbarrier_wait(&s.full[stage], turn);
                tcgen05_after();
                if (elect_one()) {
                    const u64 a = tcgen05_descriptor(shared_address(s.a[stage])), b = tcgen05_descriptor(shared_address(s.b[stage]));
                    for (int k = 0; k < BK / 16; k++) tcgen05_mma_f16(tmem + buffer * BN, a + k * 2, b + k * 2, idesc, step + k > 0);
                    tcgen05_commit(&s.empty[stage]);
                    if (step == steps - 1) tcgen05_commit(&s.done[buffer]);
                }
                __syncwarp();
                if (++stage == STAGES) stage = 0, turn ^= 1;
            }
            more = next_tile(s, phase, x, y);
            phase ^= 1;
        }
    } else {  // epilogue: warps 0 to 3, each its quarter of the lanes
        for (int tile = 0; more; tile++) {
            const int buffer = tile % 2, row = warp * 32 + lane;
            mbarrier_wait(&s.done[buffer], tile / 2 % 2);
            tcgen05_after();
            u32 d[4][16];
#pragma unroll
            for (int i = 0; i < 4; i++) tmem_ld_32x32b_x16(d[i], tmem + (warp * 32 << 16) + buffer * BN + i * 16);
            tcgen05_wait_ld();
            tcgen05_before();
            __syncwarp();
            if (lane == 0) mbarrier_arrive(&s.free[buffer]);
            if (lane == 0) bulk_wait_read<0>();
            __syncwarp();
#pragma unroll
            for (int i = 0; i < 8; i++) {
                u32 h[4];
#pragma unroll
                for (int j = 0; j < 4; j++)
                    h[j] = pack_half(__uint_as_float(d[i / 2][i % 2 * 8 + j * 2]), __uint_as_float(d[i / 2][i % 2 * 8 + j * 2 + 1]));
                *reinterpret_cast<uint4*>(reinterpret_cast<char*>(s.c) + row * 128 + (i ^ row % 8) * 16) = make_uint4(h[0], h[1], h[2], h[3]);
            }
            fence_async();
            __syncwarp();
            if (lane == 0) {
                tma_store_2d(&c_map, s.c + warp * 32 * BN, x * BN, y * BM + warp * 32);
                bulk_commit();
            }
            more = next_tile(s, phase, x, y);
            phase ^= 1;
        }
        if (lane == 0) bulk_wait<0>();
    }
    tcgen05_before();
    __syncthreads();
    tcgen05_after();
    if (warp == 1) tmem_free(tmem, 128);
}
