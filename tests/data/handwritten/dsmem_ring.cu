// nvcc -arch=sm_90a -std=c++17
// All-gather around a ring of eight CTAs: each forwards what it got to its neighbour by cp.async.bulk between shared memories and
// sums it; credits go back by remote arrivals; a last exchange by st.async.
#include "ptx.cuh"

constexpr int N = 256, CTAS = 8;

extern "C" __global__ void __cluster_dims__(CTAS, 1, 1) __launch_bounds__(N) dsmem_ring(const int* in, int* out, int* firsts)
{
    __shared__ alignas(16) int slots[2][N];
    __shared__ alignas(8) int got[CTAS];
    __shared__ u64 full[2], credit[2], told;
    const u32 rank = cluster_rank(), next = (rank + 1) % CTAS, before = (rank + CTAS - 1) % CTAS;
    const int t = threadIdx.x, group = blockIdx.x / CTAS;
    if (t == 0) {
        for (int i = 0; i < 2; i++) mbarrier_init(&full[i], 1), mbarrier_init(&credit[i], 1);
        mbarrier_init(&told, 1);
        mbarrier_expect(&told, 4 * CTAS);
        fence_mbarrier_init();
    }
    slots[0][t] = in[(group * CTAS + rank) * N + t];
    fence_async();
    cluster_sync();
    int sum = 0;
    for (int hop = 0; hop < CTAS; hop++) {
        const int now = hop % 2, then = now ^ 1;
        if (hop > 0) mbarrier_wait_cluster(&full[now], (hop - 1) / 2 % 2);
        if (t == 0 && hop < CTAS - 1) {
            // The neighbour's other slot must be free: it has told so after it used it.
            if (hop > 0) mbarrier_wait_cluster(&credit[then], (hop - 1) / 2 % 2);
            mbarrier_expect(&full[then], N * 4);
            asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                             cluster_map(shared_address(slots[then]), next)),
                         "r"(shared_address(slots[now])), "r"(N * 4), "r"(cluster_map(shared_address(&full[then]), next))
                         : "memory");
        }
        sum += slots[now][t] * (hop + 1);
        if (t == 0 && hop < CTAS - 1) mbarrier_wait_cluster(&full[then], hop / 2 % 2);  // after the barrier all know that their own has come too
        cluster_sync();
        if (t == 0 && hop < CTAS - 1) mbarrier_arrive_cluster(&credit[now], before);
    }
    if (t < CTAS)
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
                         cluster_map(shared_address(&got[rank]), t)),
                     "r"(sum), "r"(cluster_map(shared_address(&told), t))
                     : "memory");
    mbarrier_wait_cluster(&told, 0);
    out[(group * CTAS + rank) * N + t] = sum;
    if (t < CTAS) firsts[(group * CTAS + rank) * CTAS + t] = got[t];
    cluster_sync();
}
