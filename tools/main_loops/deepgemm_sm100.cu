// DeepGEMM's bf16 GEMM in the design of modular-k8: pairs of CTAs, 256x256 tiles, K blocks of 64, six stages.
#include <deep_gemm/impls/sm100_bf16_gemm.cuh>

using namespace deep_gemm;

auto instance() {
    return reinterpret_cast<void*>(
        &sm100_bf16_gemm_impl<
            cute::UMMA::Major::K, cute::UMMA::Major::K,  // A and B
            0, 0, 0,                                     // M, N and K at run time
            128, 256, 64,                                // tile of a CTA
            1,                                           // groups
            128, 128, 128,                               // swizzles of A, B and D
            6,                                           // stages
            128, 128,                                    // threads beside the epilogue, and in it
            2, false,                                    // CTAs of a cluster, and whether they share A
            148, 128,                                    // multiprocessors, alignment of K
            false, false,                                // A and B exchanged, zero padding
            GemmType::Normal, false, cutlass::bfloat16_t, 100>);
}
