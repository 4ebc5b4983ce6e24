// Atomics of every width, scope and order: the built-in functions, cuda::atomic_ref and the halves.
#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T>
__device__ void arithmetic(T* p, T v)
{
    T x = atomicAdd(p, v);
    x += atomicAdd_block(p, v) + atomicAdd_system(p, v);
    x += atomicExch(p, v) + atomicExch_block(p, x);
    *p = x;
}

template <typename T>
__device__ void integers(T* p, T v)
{
    arithmetic(p, v);
    T x = atomicMin(p, v) + atomicMax_system(p, v) + atomicAnd(p, v) + atomicOr_block(p, v) + atomicXor(p, v);
    x += atomicCAS(p, v, x) + atomicCAS_system(p, v, x);
    *p = x;
}

template <cuda::thread_scope Scope, typename T>
__device__ void reference(T* p, T v)
{
    cuda::atomic_ref<T, Scope> r(*p);
    T x = r.load(cuda::std::memory_order_relaxed) + r.load(cuda::std::memory_order_acquire) + r.load(cuda::std::memory_order_seq_cst);
    x += r.fetch_add(v, cuda::std::memory_order_acq_rel) + r.fetch_sub(v, cuda::std::memory_order_release) + r.exchange(x);
    while (!r.compare_exchange_weak(x, v, cuda::std::memory_order_acq_rel, cuda::std::memory_order_relaxed)) {}
    r.store(x, cuda::std::memory_order_release);
    r.store(v, cuda::std::memory_order_relaxed);
    r.store(v);
    cuda::atomic_thread_fence(cuda::std::memory_order_seq_cst, Scope);
    cuda::atomic_thread_fence(cuda::std::memory_order_acquire, Scope);
    r.notify_all();
    r.wait(v);
}

__global__ void builtin(int* i, unsigned* u, unsigned long long* l, float* f, double* d, __half* h, __half2* h2,
                        __nv_bfloat16* b, __nv_bfloat162* b2, float2* f2, float4* f4, unsigned short* s)
{
    integers(i, 3);
    integers(u, 5u);
    integers(l, 7ull);
    arithmetic(f, 1.5f);
    *d = atomicAdd(d, 2.5) + atomicAdd_system(d, 1.0);
    *u = atomicInc(u, 10u) + atomicDec(u, 10u) + atomicSub(u, 3u);
    *s = atomicCAS(s, *s, static_cast<unsigned short>(4));
    *h = atomicAdd(h, __float2half(1.0f));
    *h2 = atomicAdd(h2, __float2half2_rn(1.0f));
    *b = atomicAdd(b, __float2bfloat16(1.0f));
    *b2 = atomicAdd(b2, __float2bfloat162_rn(1.0f));
    *f2 = atomicAdd(f2, make_float2(1, 2));
    *f4 = atomicAdd(f4, make_float4(1, 2, 3, 4));
    __shared__ int counter;
    counter = 0;
    __syncthreads();
    atomicAdd(&counter, 1);
    atomicMax_block(&counter, threadIdx.x);
    __syncthreads();
    *i = counter;
}

struct alignas(16) Wide {
    unsigned long long low, high;
};

__global__ void scoped(int* i, unsigned long long* l, float* f, double* d, Wide* w)
{
    reference<cuda::thread_scope_block>(i, 1);
    reference<cuda::thread_scope_device>(i, 2);
    reference<cuda::thread_scope_system>(i, 3);
    reference<cuda::thread_scope_system>(l, 4ull);
    cuda::atomic_ref<float, cuda::thread_scope_device> floats(*f);
    *f = floats.fetch_add(1.0f) + floats.fetch_max(2.0f);
    cuda::atomic_ref<double, cuda::thread_scope_device> doubles(*d);
    *d = doubles.fetch_add(1.0) + doubles.fetch_min(2.0);
    __nv_atomic_fetch_add(i, 1, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_CLUSTER);
    __nv_atomic_thread_fence(__NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_CLUSTER);
    Wide wanted{1, 2}, seen{3, 4};
    __nv_atomic_compare_exchange(w, &seen, &wanted, false, __NV_ATOMIC_ACQ_REL, __NV_ATOMIC_ACQUIRE,
                                 __NV_THREAD_SCOPE_DEVICE);
    __nv_atomic_exchange(w, &wanted, &seen, __NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_SYSTEM);
    __nv_atomic_load(w, &seen, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);
    __nv_atomic_store(w, &seen, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
}
