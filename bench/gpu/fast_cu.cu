// Launches kernel 12 of pranjalssh/fast.cu (MIT) on many buffers, for bench/hopper.py. Its source is not part of this
// project: nvcc -std=c++17 -O3 --use_fast_math --expt-relaxed-constexpr -gencode=arch=compute_90a,code=sm_90a -shared
//     -Xcompiler -fPIC -I FOLDER_OF_FAST_CU bench/gpu/fast_cu.cu -o libfastcu.so
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

typedef __nv_bfloat16 bf16;
#define CEIL_DIV(M, N) (((M) + (N) - 1) / (N))
#define cudaCheck(status) (void)(status)

#include "examples/matmul/matmul_12.cuh"

namespace {
constexpr int BM = 128, BN = 256, BK = 64, THREADS = 384, STAGES = 3, SMS = 128, CLUSTER_M = 2, CLUSTER_N = 1;
struct Problem {
    CUtensorMap a, b, c;
    int m, n, k;
    int *order;
};
std::vector<Problem> problems(1024);
}  // namespace

// Its C is in columns: what is A·Bᵀ in rows is B·Aᵀ to it.
extern "C" int fast_cu_prepare(int number, int m, int n, int k, void *a, void *b, void *c) {
    using namespace M12;
    if (number >= (int)problems.size() || n % (BM * CLUSTER_M) || m % (BN * CLUSTER_N) || k % BK) return 1;
    Problem &p = problems[number];
    int rows = n, columns = m;
    p.a = create_tensor_map<BM, BK>((bf16 *)b, rows, k);
    p.b = create_tensor_map<BN, BK>((bf16 *)a, columns, k);
    p.c = create_tensor_map<BN, BM / 2, false, true>((bf16 *)c, columns, rows);
    p.m = rows, p.n = columns, p.k = k;
    std::vector<int> order(SMS * SPACE_LEN);
    createHilbert(CEIL_DIV(rows, BM * CLUSTER_M), CEIL_DIV(columns, BN * CLUSTER_N), SMS / CLUSTER_M / CLUSTER_N, order.data());
    if (!p.order && cudaMalloc((void **)&p.order, order.size() * sizeof(int))) return 2;
    return cudaMemcpy(p.order, order.data(), order.size() * sizeof(int), cudaMemcpyHostToDevice);
}

extern "C" int fast_cu_launch(int number, void *stream) {
    using namespace M12;
    auto *kernel = matmulKernel12<BM, BN, BK, THREADS, STAGES, SMS, CLUSTER_M, CLUSTER_N>;
    constexpr size_t shared = sizeof(SMem<BM, BN, BK, STAGES>);
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    Problem &p = problems[number];
    kernel<<<SMS, THREADS, shared, (cudaStream_t)stream>>>(p.m, p.n, p.k, p.c, p.a, p.b, p.order);
    return cudaGetLastError();
}
