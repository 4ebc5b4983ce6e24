// Blackwell's tensor core as inline PTX, for the kernels of this folder.
#pragma once
#include "ptx.cuh"

template <int CTAS = 1>
DEVICE void tmem_alloc(u32* to, u32 columns)
{
    if constexpr (CTAS == 1)
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(to)), "r"(columns) : "memory");
    else
        asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(to)), "r"(columns) : "memory");
}
template <int CTAS = 1>
DEVICE void tmem_free(u32 address, u32 columns)
{
    if constexpr (CTAS == 1)
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n\t"
                     "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns) : "memory");
    else
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;\n\t"
                     "tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns) : "memory");
}
DEVICE void tcgen05_before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
DEVICE void tcgen05_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }
DEVICE void tcgen05_commit(u64* bar)
{
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared_address(bar)) : "memory");
}
DEVICE void tcgen05_commit_pair(u64* bar, u16 ctas)
{
    asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
                     shared_address(bar)),
                 "h"(ctas)
                 : "memory");
}
DEVICE void tcgen05_wait_ld() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }
DEVICE void tcgen05_wait_st() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }

// K-major, swizzled: groups of 8 rows, of 128, 64 or 32 bytes. The layout's code is 2, 4 or 6.
DEVICE u64 tcgen05_descriptor(u32 address, u32 layout = 2, u32 group = 1024)
{
    return (u64(layout) << 61) | (u64(1) << 46) | (u64(group >> 4) << 32) | (u64(1) << 16) | ((address & 0x3FFFF) >> 4);
}
DEVICE void tcgen05_mma_f16(u32 d, u64 a, u64 b, u32 idesc, bool accumulate)
{
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\t"
                 "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(d),
                 "l"(a), "l"(b), "r"(idesc), "r"(int(accumulate))
                 : "memory");
}

DEVICE void tmem_ld_32x32b_x16(u32 (&r)[16], u32 address)
{
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x16.b32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, [%16];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]), "=r"(r[8]),
                   "=r"(r[9]), "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]), "=r"(r[14]), "=r"(r[15])
                 : "r"(address));
}
DEVICE void tmem_st_32x32b_x16(u32 address, const u32 (&r)[16])
{
    asm volatile("tcgen05.st.sync.aligned.32x32b.x16.b32 [%16], {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15};" ::"r"(r[0]),
                 "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]), "r"(r[6]), "r"(r[7]), "r"(r[8]), "r"(r[9]), "r"(r[10]),
                 "r"(r[11]), "r"(r[12]), "r"(r[13]), "r"(r[14]), "r"(r[15]), "r"(address)
                 : "memory");
}
