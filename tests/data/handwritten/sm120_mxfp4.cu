// nvcc -arch=sm_120a -std=c++17
// A warp's block-scaled product of consumer Blackwell: mma.sync m16n8k64 of E2M1 with UE8M0 for 32, operands by ldmatrix from a padded
// tile that cp.async filled; and m16n8k32 of E4M3 by E2M3.
#include "ptx.cuh"

constexpr int K = 128;  // elements; 64 bytes a row

extern "C" __global__ void __launch_bounds__(64) sm120_mxfp4(const u8* a, const u8* b, const u8* sa, const u8* sb, float* c)
{
    __shared__ alignas(16) u8 as[32][K / 2 + 16], bs[8][K / 2 + 16];
    const int warp = threadIdx.x / 32, lane = lane_id();
    for (int i = threadIdx.x; i < 32 * 4; i += 64) copy_16(&as[i / 4][i % 4 * 16], a + i * 16);
    for (int i = threadIdx.x; i < 8 * 4; i += 64) copy_16(&bs[i / 4][i % 4 * 16], b + i * 16);
    copy_commit();
    copy_wait<0>();
    __syncthreads();
    float d[4] = {};
    for (int k = 0; k < K / 64; k++) {
        u32 fa[4], fb[2];
        ldmatrix_x4(fa, shared_address(&as[warp * 16 + lane % 16][k * 32 + lane / 16 * 16]));
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                     : "=r"(fb[0]), "=r"(fb[1])
                     : "r"(shared_address(&bs[lane % 8][k * 32 + lane / 8 % 2 * 16])));
        // Two factors a row: thread 4r of a quad gives row r, 4r + 1 row r + 8; of B, column r by thread 4r.
        const int row = warp * 16 + lane / 4 + lane % 2 * 8;
        const u32 fsa = *reinterpret_cast<const u16*>(sa + row * (K / 32) + k * 2);
        const u32 fsb = *reinterpret_cast<const u16*>(sb + lane / 4 * (K / 32) + k * 2);
        asm volatile(
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, {%10}, {0, 0}, {%11}, {0, 0};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]), "r"(fsa), "r"(fsb));
    }
    for (int i = 0; i < 4; i++) c[(warp * 16 + lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
}
