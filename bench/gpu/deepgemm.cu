// Launches DeepGEMM's fp8 kernel with 1D2D scales (MIT) on many buffers, for bench/hopper.py. Its source and CUTLASS's
// headers are not part of this project: python -m bench.gpu.deepgemm > kernels.inc, then nvcc -std=c++20 -O3
//     --expt-relaxed-constexpr --expt-extended-lambda -gencode=arch=compute_90a,code=sm_90a -shared -Xcompiler -fPIC
//     -I DEEPGEMM/deep_gemm/include -I CUTLASS/include -I . bench/gpu/deepgemm.cu -o libdeepgemm.so
#include <cuda.h>
#include <cuda_runtime.h>

#include <vector>

#include <deep_gemm/impls/sm90_fp8_gemm_1d2d.cuh>

namespace {
using namespace deep_gemm;

constexpr int SMS = 132, BLOCK_K = 128;

struct Kernel {
    const void *function;
    int n, k, block_m, block_n, swizzle_d, stages, threads, multicast, on_a, shared;
};

#define KERNEL(n, k, block_m, block_n, swizzle_d, stages, math, multicast, on_a, shared)                                     \
    {(const void *)&sm90_fp8_gemm_1d2d_impl<cute::UMMA::Major::K, 0, n, k, 1, block_m, block_n, BLOCK_K, 128, 128, swizzle_d, \
                                            stages, 128, math, multicast, on_a, SMS, GemmType::Normal, cutlass::bfloat16_t,  \
                                            epilogue::transform::EpilogueIdentity>,                                          \
     n, k, block_m, block_n, swizzle_d, stages, 128 + math, multicast, on_a, shared},
const Kernel kernels[] = {
#include "kernels.inc"
};

struct Problem {
    const Kernel *kernel;
    CUtensorMap a, b, d, sfa;
    float *sfb;
    unsigned m, n, k;
};
std::vector<Problem> problems(4096);

int tensormap(CUtensorMap &map, CUtensorMapDataType type, int size, void *address, cuuint64_t inner, cuuint64_t outer,
              unsigned box_inner, unsigned box_outer, int swizzle) {
    cuuint64_t dims[2] = {inner, outer}, strides[1] = {inner * size};
    cuuint32_t box[2] = {swizzle ? swizzle / size : box_inner, box_outer}, steps[2] = {1, 1};
    CUtensorMapSwizzle mode = swizzle == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                              : swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                              : swizzle == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                              : CU_TENSOR_MAP_SWIZZLE_NONE;
    return cuTensorMapEncodeTiled(&map, type, 2, address, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, mode,
                                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}
}  // namespace

// sfa: [K blocks, M rounded up to 4], M contiguous; sfb: [blocks of 128 of N, K blocks]. 1: there is no such kernel.
extern "C" int deepgemm_prepare(int number, int m, int n, int k, int block_m, int block_n, int stages, int multicast, int on_a,
                                void *a, void *sfa, void *b, void *sfb, void *c) {
    if (number >= (int)problems.size()) return 2;
    for (const Kernel &each : kernels) {
        if (each.n != n || each.k != k || each.block_m != block_m || each.block_n != block_n || each.stages != stages ||
            each.multicast != multicast || each.on_a != on_a)
            continue;
        Problem &p = problems[number];
        p = Problem{&each, {}, {}, {}, {}, (float *)sfb, (unsigned)m, (unsigned)n, (unsigned)k};
        int lines = (m + 3) / 4 * 4, blocks = (k + BLOCK_K - 1) / BLOCK_K;
        if (tensormap(p.a, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, a, k, m, BLOCK_K, block_m, 128)) return 3;
        if (tensormap(p.b, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, b, k, n, BLOCK_K, block_n, 128)) return 4;
        if (tensormap(p.d, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, c, n, m, block_n, block_m, each.swizzle_d)) return 5;
        if (tensormap(p.sfa, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, sfa, lines, blocks, block_m, 1, 0)) return 6;
        return cudaFuncSetAttribute(each.function, cudaFuncAttributeMaxDynamicSharedMemorySize, each.shared);
    }
    return 1;
}

extern "C" int deepgemm_launch(int number, void *stream, int dependent) {
    Problem &p = problems[number];
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {(unsigned)p.kernel->multicast, 1, 1};
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(SMS), config.blockDim = dim3(p.kernel->threads);
    config.dynamicSmemBytes = p.kernel->shared, config.stream = (cudaStream_t)stream;
    config.attrs = attributes, config.numAttrs = dependent ? 2 : 1;
    int *groups = nullptr;
    void *arguments[] = {&p.sfb, &groups, &p.m, &p.n, &p.k, &p.a, &p.b, &p.d, &p.sfa};
    return cudaLaunchKernelExC(&config, p.kernel->function, arguments);
}
