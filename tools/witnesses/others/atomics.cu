// Atomic operations of all kinds by the compiler's own builtins. LLVM makes loops around atom.cas of nand, of the maximum
// of floats, and of those of 8 and 16 bits; each begins with a weak load.
#define __global__ __attribute__((global))
typedef unsigned int u32;
typedef unsigned long long u64;

extern "C" __global__ void atomics(u32* p, u64* q, const u32* x, int n, float* f, double* d)
{
    int i = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
    if (i >= n)
        return;
    u32 v = x[i];
    __atomic_fetch_add(p + 0, v, __ATOMIC_RELAXED);
    __atomic_fetch_sub(p + 1, v, __ATOMIC_RELAXED);
    __atomic_fetch_and(p + 2, v | 0xff, __ATOMIC_RELAXED);
    __atomic_fetch_or(p + 3, v & 0xf0f, __ATOMIC_RELAXED);
    __atomic_fetch_xor(p + 4, v, __ATOMIC_SEQ_CST);
    __atomic_fetch_max(p + 5, v, __ATOMIC_RELAXED);
    __atomic_fetch_min((int*)p + 6, (int)v, __ATOMIC_ACQ_REL);
    __atomic_fetch_nand(p + 7, ~0u, __ATOMIC_RELAXED);
    __atomic_fetch_add((unsigned char*)(p + 8) + (i & 3), (unsigned char)1, __ATOMIC_RELAXED);
    __atomic_fetch_add((unsigned short*)(p + 9) + (i & 1), (unsigned short)v, __ATOMIC_RELAXED);
    __atomic_fetch_add(q, (u64)v << 20, __ATOMIC_RELAXED);
    __atomic_fetch_add(f, 1.0f, __ATOMIC_RELAXED);
    __atomic_fetch_max(f + 1, (float)v, __ATOMIC_RELAXED);
    __atomic_fetch_add(d, 0.5, __ATOMIC_RELAXED);
}
