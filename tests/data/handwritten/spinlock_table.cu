// nvcc -arch=sm_90a -std=c++17
// A hash table that lanes of one warp fill at once: slots are claimed by compare-and-swap with probing, values are added under
// a spin lock of the slot (lanes of a warp contend for it: needs independent thread scheduling).
#include "ptx.cuh"

constexpr u32 SLOTS = 64, FREE = 0xFFFFFFFF;

DEVICE void lock(u32* word)
{
    while (atomicCAS(word, 0, 1) != 0) __nanosleep(20);
    __threadfence();
}
DEVICE void unlock(u32* word)
{
    __threadfence();
    atomicExch(word, 0);
}

struct Entry {
    volatile u32 count;
    volatile int smallest, largest;
};

// The slot of a key, which is claimed if it has none yet.
DEVICE u32 slot_of(u32* slots, u32 key)
{
    for (u32 at = key * 2654435761u >> 26;; at = (at + 1) % SLOTS) {
        const u32 found = atomicCAS(slots + at, FREE, key);
        if (found == FREE || found == key) return at;
    }
}

extern "C" __global__ void spinlock_table(const u32* keys, const int* values, u32* slots, u32* locks, Entry* entries, Entry* by_key, int n,
                                          int keys_in_all)
{
    const int i = threadIdx.x;
    if (i < n) {
        const u32 at = slot_of(slots, keys[i]);
        lock(locks + at);
        Entry* entry = entries + at;
        entry->smallest = entry->count == 0 ? values[i] : min(entry->smallest, values[i]);
        entry->largest = entry->count == 0 ? values[i] : max(entry->largest, values[i]);
        entry->count = entry->count + 1;
        unlock(locks + at);
    }
    __syncthreads();
    if (i < keys_in_all) {
        const Entry* entry = entries + slot_of(slots, i);
        by_key[i].count = entry->count;
        by_key[i].smallest = entry->smallest;
        by_key[i].largest = entry->largest;
    }
}
