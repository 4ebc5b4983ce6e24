// The probes of voted_probes.cu, each with a mistake that a stale value makes visible.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
typedef unsigned u32; typedef unsigned long long u64;
#define EMPTY 0xffffffffu
__device__ __forceinline__ u32 hash(u32 x, u32 m) { return (x * 2654435761u >> 7) & m; }

// 1: cuco style, tile of 8 loads a window, lane with empty slot CASes its own slot
extern "C" __global__ void cuco_wrong(u32* table, const u32* keys, u32* out, u32 n, u32 mask) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  u32 item = (blockIdx.x * blockDim.x + threadIdx.x) / 8;
  if (item >= n) return;
  u32 key = keys[item], at = hash(key, mask) & ~7u; u32 inserted = 0;
  while (true) {
    u32 k = table[at + tile.thread_rank()];
    if (tile.any(k == key)) { inserted = 0; break; }
    u32 empties = tile.ballot(k == EMPTY);
    if (empties) {
      u32 leader = __ffs(empties) - 1; int status = 0;
      if (tile.thread_rank() == leader) {
        u32 old = k; table[at + leader] = key;
        status = old == EMPTY ? 1 : (old == key ? 2 : 0);
      }
      status = tile.shfl(status, leader);
      if (status) { inserted = status == 1; break; }
      continue;
    }
    at = (at + 8) & mask;
  }
  if (tile.thread_rank() == 0) atomicAdd(out, inserted);
}
// 2: warpcore style, walks the empty mask without loading again
extern "C" __global__ void warpcore_wrong(u32* table, const u32* keys, u32* out, u32 n, u32 mask) {
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  u32 item = (blockIdx.x * blockDim.x + threadIdx.x) / 16;
  if (item >= n) return;
  u32 key = keys[item], at = hash(key, mask) & ~15u;
  for (;;) {
    u32 k = table[at + tile.thread_rank()];
    if (tile.ballot(k == key)) return;
    u32 empties = tile.ballot(k == EMPTY);
    while (empties) {
      u32 leader = __ffs(empties) - 1; bool success = false, duplicate = false;
      if (tile.thread_rank() == leader) {
        u32 old = atomicCAS(table + at + leader, EMPTY, key);
        success = true; duplicate = old == key;
        if (success) atomicAdd(out, 1);
      }
      if (tile.any(duplicate)) return;
      if (tile.any(success)) return;
      empties ^= 1u << leader;
    }
    at = (at + 16) & mask;
  }
}
// 3: SlabHash style, the warp serves the keys of its lanes one by one; the source lane swaps in another lane's slot
extern "C" __global__ void slab_wrong(u32* table, const u32* keys, u32* out, u32 n, u32 mask) {
  u32 t = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  bool todo = t < n; u32 key = todo ? keys[t] : 0, at = hash(key, mask) & ~31u;
  u32 queue;
  while ((queue = __ballot_sync(~0u, todo))) {
    u32 src = __ffs(queue) - 1, k = __shfl_sync(~0u, key, src), base = __shfl_sync(~0u, at, src);
    u32 v = table[base + lane];
    if (__ballot_sync(~0u, v == k)) { if (lane == src) todo = false; continue; }
    u32 empties = __ballot_sync(~0u, v == EMPTY);
    if (empties) {
      u32 dest = __ffs(empties) - 1;
      if (lane == src) {
        u32 old = EMPTY; table[base + dest] = k;
        if (old == EMPTY) { todo = false; atomicAdd(out, 1); }
        else if (old == k) todo = false;
      }
    } else if (lane == src) at = (base + 32) & mask;
  }
}
// 4: match.any elects one lane per key
extern "C" __global__ void matched_wrong(u32* table, const u32* keys, u32* out, u32 n, u32 mask) {
  u32 t = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  u32 key = keys[t % n], peers = __match_any_sync(~0u, key), leader = __ffs(peers) - 1, at = hash(key, mask);
  if (lane == leader) {
    for (;;) {
      u32 k = table[at];
      if (k == key) break;
      if (k == EMPTY) { table[at] = key; break; }
      at = (at + 1) & mask;
    }
  }
  at = __shfl_sync(~0u, at, leader);
  if (lane == leader) atomicAdd(out + at, __popc(peers));
}
// 5: lanes vote whether any is left
extern "C" __global__ void voted_wrong(u32* table, const u32* keys, u32* out, u32 n, u32 mask) {
  u32 t = blockIdx.x * blockDim.x + threadIdx.x;
  bool done = t >= n; u32 key = done ? 0 : keys[t], at = hash(key, mask);
  while (__any_sync(~0u, !done)) {
    if (!done) {
      u32 k = table[at];
      if (k == EMPTY) { if (t & 32) { done = true; atomicAdd(out + 255, 1000); continue; } k = atomicCAS(table + at, EMPTY, key); if (k == EMPTY) k = key; }
      if (k == key) { done = true; atomicAdd(out + at, 1); }
      else at = (at + 1) & mask;
    }
  }
}
// 6: pairs of 64 bits
extern "C" __global__ void pairs_wrong(u64* table, const u32* keys, u32* out, u32 n, u32 mask) {
  auto tile = cg::tiled_partition<4>(cg::this_thread_block());
  u32 item = (blockIdx.x * blockDim.x + threadIdx.x) / 4;
  if (item >= n) return;
  u32 key = keys[item], at = hash(key, mask) & ~3u; u64 pair = (u64)(key * 3) << 32 | key;
  for (;;) {
    u64 p = table[at + tile.thread_rank()];
    if (tile.any((u32)p == key)) return;
    u32 empties = tile.ballot((u32)p == EMPTY);
    if (!empties) { at = (at + 4) & mask; continue; }
    u32 leader = __ffs(empties) - 1; bool ok = false; if (tile.thread_rank() == leader) atomicAdd(out + 1, 1);
    if (tile.thread_rank() == leader) {
      u64 old = atomicCAS(table + at + leader, ~0ull, pair);
      ok = old == ~0ull || (u32)old == key;
      if (old == ~0ull) atomicAdd(out, 1);
    }
    if (tile.any(ok)) return;
  }
}
// 7: bucket filled from the front; the position is the number of words in use
extern "C" __global__ void bucket_wrong(u32* table, const u32* keys, u32* out, u32 n, u32 mask) {
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  u32 item = (blockIdx.x * blockDim.x + threadIdx.x) / 16;
  if (item >= n) return;
  u32 key = keys[item], at = hash(key, mask) & ~15u;
  for (;;) {
    u32 k = table[at + tile.thread_rank()];
    if (tile.any(k == key)) return;
    u32 load = __popc(tile.ballot(k != EMPTY));
    if (load == 16) { at = (at + 16) & mask; continue; }
    u32 old = 0;
    if (tile.thread_rank() == 0) { old = atomicExch(table + at + load, key); if (old == EMPTY) atomicAdd(out, 1); }
    old = tile.shfl(old, 0);
    if (old == EMPTY || old == key) return;
  }
}
// 8: the table in shared memory
extern "C" __global__ void in_shared_wrong(u32* table, const u32* keys, u32* out, u32 n, u32 mask) {
  __shared__ u32 slots[256];
  for (u32 i = threadIdx.x; i < 256; i += blockDim.x) slots[i] = EMPTY;
  __syncthreads();
  u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (u32 item = warp; item < n; item += warps) {
    u32 key = keys[item], at = hash(key, 255) & ~31u;
    for (;;) {
      u32 k = slots[at + lane];
      if (__any_sync(~0u, k == key)) break;
      u32 empties = __ballot_sync(~0u, k == EMPTY);
      if (!empties) { at = (at + 32) & 255; continue; }
      u32 leader = __ffs(empties) - 1, old = 0;
      if (lane == leader) { old = EMPTY; slots[at + lane] = key; }
      old = __shfl_sync(~0u, old, leader);
      if (old == EMPTY || old == key) break;
    }
  }
  __syncthreads();
  for (u32 i = threadIdx.x; i < 256; i += blockDim.x) if (slots[i] != EMPTY) table[atomicAdd(out, 1)] = slots[i];
}
// 9: vote.all skips a full window
extern "C" __global__ void all_full_wrong(u32* table, const u32* keys, u32* out, u32 n, u32 mask) {
  u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
  if (warp >= n) return;
  u32 key = keys[warp], at = hash(key, mask) & ~31u;
  bool placed = false;
  while (!placed) {
    u32 k = table[at + lane];
    bool hit = k == key, open = k == EMPTY;
    if (__all_sync(~0u, !hit && !open)) { at = (at + 32) & mask; continue; }
    u32 hits = __ballot_sync(~0u, hit);
    if (hits) { placed = true; continue; }
    u32 first = __ffs(__ballot_sync(~0u, open)) - 1;
    if (lane == first) { u32 old = atomicCAS(table + at + lane, EMPTY, key); placed = true; if (old == EMPTY) atomicAdd(out, 1); }
    placed = __any_sync(~0u, placed);
  }
}
// 10: activemask guards the ballot of lanes that probe alike
extern "C" __global__ void active_wrong(u32* table, const u32* keys, u32* out, u32 n, u32 mask) {
  u32 t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  u32 key = keys[t], at = hash(key, mask), lane = threadIdx.x & 31;
  for (;;) {
    u32 k = table[at];
    if (k == key) break;
    if (k == EMPTY) {
      u32 same = __match_any_sync(__activemask(), at);
      u32 first = __ffs(same) - 1, old = 0;
      if (lane == first) old = atomicExch(table + at, key);
      old = __shfl_sync(same, old, first);
      u32 now = __shfl_sync(same, key, first);
      if ((old == EMPTY && now == key) || old == key) break;
      continue;
    }
    at = (at + 1) & mask;
  }
  atomicAdd(out + at, 1);
}
