"""CUDA C++ with algorithms of CUB whose types and sizes a seed draws: `source(seed)` is one program."""

from __future__ import annotations

import random
from collections.abc import Callable

HEAD = r"""
#include <cub/cub.cuh>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cooperative_groups.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <vector>
#include <utility>

template <class T> struct Device {
  T *at = nullptr; size_t size;
  explicit Device(const std::vector<T> &host) : size(host.size()) {
    cudaMalloc(&at, size * sizeof(T)); cudaMemcpy(at, host.data(), size * sizeof(T), cudaMemcpyHostToDevice); }
  std::vector<T> host() const {
    std::vector<T> made(size); cudaMemcpy(made.data(), at, size * sizeof(T), cudaMemcpyDeviceToHost); return made; }
};
template <class T> std::vector<T> numbers(size_t n, int low, int high) {
  static unsigned state = 12345; std::vector<T> made(n);
  for (auto &each : made) { state = state * 1664525u + 1013904223u; each = T(low + int((state >> 8) % unsigned(high - low + 1))); }
  return made;
}
void say(bool right, const char *what) { printf("%s: %s\n", right ? "right" : "WRONG", what); fflush(stdout); }
#define DEVICE_WIDE(call) { size_t bytes = 0; void *space = nullptr; auto run = [&] { call; }; run(); cudaMalloc(&space, bytes ? bytes : 1); run(); cudaDeviceSynchronize(); cudaFree(space); }
"""


def _types(draw: random.Random) -> str:
    return draw.choice(["int", "unsigned", "long long", "float", "double", "short"])


def block_reduce(draw: random.Random, n: int) -> tuple[str, str, str]:
    kind, threads, items = _types(draw), draw.choice([32, 64, 96, 128, 256]), draw.choice([1, 2, 4])
    how = draw.choice(["RAKING", "WARP_REDUCTIONS", "RAKING_COMMUTATIVE_ONLY"])
    kernel = f"""
__global__ void k{n}(const {kind} *x, {kind} *out) {{
  using Block = cub::BlockReduce<{kind}, {threads}, cub::BLOCK_REDUCE_{how}>;
  __shared__ typename Block::TempStorage space;
  {kind} mine[{items}];
  for (int i = 0; i < {items}; i++) mine[i] = x[blockIdx.x * {threads * items} + threadIdx.x * {items} + i];
  {kind} sum = Block(space).Sum(mine);
  __syncthreads();
  {kind} top = Block(space).Reduce(mine, [](auto a, auto b) {{ return a > b ? a : b; }});
  if (threadIdx.x == 0) {{ out[2 * blockIdx.x] = sum; out[2 * blockIdx.x + 1] = top; }}
}}"""
    use = f"""
  auto x = numbers<{kind}>({3 * threads * items}, -9, 9); Device<{kind}> d(x), o(std::vector<{kind}>(6));
  k{n}<<<3, {threads}>>>(d.at, o.at); auto found = o.host(); bool right = true;
  for (int b = 0; b < 3; b++) {{ auto from = x.begin() + b * {threads * items}, to = from + {threads * items};
    right &= found[2 * b] == std::accumulate(from, to, {kind}(0)) && found[2 * b + 1] == *std::max_element(from, to); }}"""
    return kernel, use, f"BlockReduce {kind} {threads}x{items} {how}"


def block_scan(draw: random.Random, n: int) -> tuple[str, str, str]:
    kind, threads, items = _types(draw), draw.choice([32, 64, 96, 128, 256]), draw.choice([1, 2, 4])
    how = draw.choice(["RAKING", "RAKING_MEMOIZE", "WARP_SCANS"])
    load = draw.choice(["DIRECT", "TRANSPOSE", "WARP_TRANSPOSE", "STRIPED"])
    load = "TRANSPOSE" if load == "WARP_TRANSPOSE" and threads % 32 else load
    kernel = f"""
__global__ void k{n}(const {kind} *x, {kind} *out) {{
  using Load = cub::BlockLoad<{kind}, {threads}, {items}, cub::BLOCK_LOAD_{load if load != "STRIPED" else "VECTORIZE"}>;
  using Store = cub::BlockStore<{kind}, {threads}, {items}, cub::BLOCK_STORE_{load if load != "STRIPED" else "DIRECT"}>;
  using Scan = cub::BlockScan<{kind}, {threads}, cub::BLOCK_SCAN_{how}>;
  __shared__ union {{ typename Load::TempStorage load; typename Store::TempStorage store; typename Scan::TempStorage scan; }} space;
  {kind} mine[{items}];
  Load(space.load).Load(x, mine);
  __syncthreads();
  Scan(space.scan).{draw.choice(["InclusiveSum", "InclusiveSum"])}(mine, mine);
  __syncthreads();
  Store(space.store).Store(out, mine);
}}"""
    use = f"""
  auto x = numbers<{kind}>({threads * items}, -9, 9); Device<{kind}> d(x), o(std::vector<{kind}>(x.size()));
  k{n}<<<1, {threads}>>>(d.at, o.at); std::vector<{kind}> sums(x.size()); std::partial_sum(x.begin(), x.end(), sums.begin());
  bool right = o.host() == sums;"""
    return kernel, use, f"BlockScan {kind} {threads}x{items} {how} {load}"


def block_sort(draw: random.Random, n: int) -> tuple[str, str, str]:
    kind, threads, items = _types(draw), draw.choice([32, 64, 128]), draw.choice([1, 2, 3, 4])
    merge = draw.random() < 0.5
    if merge:
        sort, call = (
            f"cub::BlockMergeSort<{kind}, {threads}, {items}>",
            "Sort(mine, [](auto a, auto b) { return a < b; })",
        )
    else:
        sort, call = f"cub::BlockRadixSort<{kind}, {threads}, {items}>", "Sort(mine)"
    kernel = f"""
__global__ void k{n}({kind} *x) {{
  using Sort = {sort};
  __shared__ typename Sort::TempStorage space;
  {kind} mine[{items}];
  for (int i = 0; i < {items}; i++) mine[i] = x[threadIdx.x * {items} + i];
  Sort(space).{call};
  for (int i = 0; i < {items}; i++) x[threadIdx.x * {items} + i] = mine[i];
}}"""
    use = f"""
  auto x = numbers<{kind}>({threads * items}, 0, 99); Device<{kind}> d(x); k{n}<<<1, {threads}>>>(d.at);
  std::sort(x.begin(), x.end()); bool right = d.host() == x;"""
    return kernel, use, f"{'BlockMergeSort' if merge else 'BlockRadixSort'} {kind} {threads}x{items}"


def block_histogram(draw: random.Random, n: int) -> tuple[str, str, str]:
    threads, items, bins = draw.choice([32, 64, 128]), draw.choice([1, 2, 4]), draw.choice([16, 32, 100])
    how = draw.choice(["SORT", "ATOMIC"])
    kernel = f"""
__global__ void k{n}(const unsigned char *x, unsigned *out) {{
  using Block = cub::BlockHistogram<unsigned char, {threads}, {items}, {bins}, cub::BLOCK_HISTO_{how}>;
  __shared__ typename Block::TempStorage space; __shared__ unsigned counts[{bins}];
  unsigned char mine[{items}];
  for (int i = 0; i < {items}; i++) mine[i] = x[threadIdx.x * {items} + i];
  Block(space).Histogram(mine, counts);
  __syncthreads();
  for (int i = threadIdx.x; i < {bins}; i += {threads}) out[i] = counts[i];
}}"""
    use = f"""
  auto x = numbers<unsigned char>({threads * items}, 0, {bins - 1}); Device<unsigned char> d(x); Device<unsigned> o(std::vector<unsigned>({bins}));
  k{n}<<<1, {threads}>>>(d.at, o.at); std::vector<unsigned> counts({bins}); for (auto each : x) counts[each]++;
  bool right = o.host() == counts;"""
    return kernel, use, f"BlockHistogram {threads}x{items} bins {bins} {how}"


def block_exchange(draw: random.Random, n: int) -> tuple[str, str, str]:
    kind, threads, items = _types(draw), draw.choice([32, 64, 128]), draw.choice([2, 3, 4])
    kernel = f"""
__global__ void k{n}(const {kind} *x, {kind} *out) {{
  using Exchange = cub::BlockExchange<{kind}, {threads}, {items}>;
  __shared__ typename Exchange::TempStorage space;
  {kind} mine[{items}];
  for (int i = 0; i < {items}; i++) mine[i] = x[i * {threads} + threadIdx.x];
  Exchange(space).StripedToBlocked(mine, mine);
  __syncthreads();
  {kind} least = cub::ShuffleIndex<32>(mine[0], 0, 0xffffffff);
  int ranks[{items}];
  for (int i = 0; i < {items}; i++) {{ mine[i] -= least; ranks[i] = {threads * items - 1} - (threadIdx.x * {items} + i); }}
  Exchange(space).ScatterToBlocked(mine, mine, ranks);
  for (int i = 0; i < {items}; i++) out[threadIdx.x * {items} + i] = mine[i];
}}"""
    use = f"""
  auto x = numbers<{kind}>({threads * items}, 0, 99); Device<{kind}> d(x), o(x); k{n}<<<1, {threads}>>>(d.at, o.at);
  std::vector<{kind}> y(x.size()); for (size_t i = 0; i < x.size(); i++) y[x.size() - 1 - i] = x[i] - x[i / {32 * items} * {32 * items}];
  bool right = o.host() == y;"""
    return kernel, use, f"BlockExchange {kind} {threads}x{items}"


def warp_collectives(draw: random.Random, n: int) -> tuple[str, str, str]:
    kind, width = _types(draw), draw.choice([8, 16, 32])
    kernel = f"""
__global__ void k{n}({kind} *x, {kind} *out) {{
  using Scan = cub::WarpScan<{kind}, {width}>; using Reduce = cub::WarpReduce<{kind}, {width}>; using Sort = cub::WarpMergeSort<{kind}, 1, {width}>;
  __shared__ typename Scan::TempStorage scan[{128 // width}]; __shared__ typename Reduce::TempStorage reduce[{128 // width}];
  __shared__ typename Sort::TempStorage sort[{128 // width}];
  int w = threadIdx.x / {width}; {kind} v = x[threadIdx.x], sum; {kind} mine[1] = {{v}};
  Scan(scan[w]).ExclusiveSum(v, sum);
  {kind} all = Reduce(reduce[w]).Sum(v);
  all = cub::ShuffleIndex<{width}>(all, 0, 0xffffffff);
  Sort(sort[w]).Sort(mine, [](auto a, auto b) {{ return a < b; }});
  out[threadIdx.x] = sum + all; x[threadIdx.x] = mine[0];
}}"""
    use = f"""
  auto x = numbers<{kind}>(128, -9, 9); Device<{kind}> d(x), o(x); k{n}<<<1, 128>>>(d.at, o.at); std::vector<{kind}> y(128);
  for (int w = 0; w < 128; w += {width}) {{ {kind} all = std::accumulate(x.begin() + w, x.begin() + w + {width}, {kind}(0)), sum = 0;
    for (int i = w; i < w + {width}; i++) {{ y[i] = sum + all; sum += x[i]; }} std::sort(x.begin() + w, x.begin() + w + {width}); }}
  bool right = o.host() == y && d.host() == x;"""
    return kernel, use, f"WarpScan, WarpReduce, WarpMergeSort {kind} of {width}"


def device_wide(draw: random.Random, n: int) -> tuple[str, str, str]:
    kind, size = draw.choice(["int", "unsigned", "float"]), draw.randint(300, 3000)
    name, use = draw.choice(
        [
            (
                "DeviceReduce",
                "Device<T> o(std::vector<T>(1)); DEVICE_WIDE(cub::DeviceReduce::Sum(space, bytes, d.at, o.at, N)) right = o.host()[0] == std::accumulate(x.begin(), x.end(), T(0));",
            ),
            (
                "DeviceScan",
                "Device<T> o(x); DEVICE_WIDE(cub::DeviceScan::InclusiveSum(space, bytes, d.at, o.at, N)) std::partial_sum(x.begin(), x.end(), x.begin()); right = o.host() == x;",
            ),
            (
                "DeviceRadixSort",
                "Device<T> o(x); DEVICE_WIDE(cub::DeviceRadixSort::SortKeys(space, bytes, d.at, o.at, N)) std::sort(x.begin(), x.end()); right = o.host() == x;",
            ),
            (
                "DeviceMergeSort",
                "DEVICE_WIDE(cub::DeviceMergeSort::SortKeys(space, bytes, d.at, N, [] __device__ (T a, T b) { return a < b; })) std::sort(x.begin(), x.end()); right = d.host() == x;",
            ),
            (
                "DeviceSelect",
                "Device<T> o(x); Device<int> c(std::vector<int>(1)); DEVICE_WIDE(cub::DeviceSelect::If(space, bytes, d.at, o.at, c.at, N, [] __device__ (T a) { return a > T(3); })) std::vector<T> y; for (T v : x) if (v > T(3)) y.push_back(v); auto f = o.host(); right = c.host()[0] == int(y.size()) && std::equal(y.begin(), y.end(), f.begin());",
            ),
            (
                "DeviceRunLengthEncode",
                "for (auto &v : x) v = T(int(v) / 5); Device<T> e(x), o(x); Device<int> l(std::vector<int>(N)), c(std::vector<int>(1)); DEVICE_WIDE(cub::DeviceRunLengthEncode::Encode(space, bytes, e.at, o.at, l.at, c.at, N)) std::vector<T> y; std::vector<int> m; for (T v : x) { if (y.empty() || y.back() != v) { y.push_back(v); m.push_back(0); } m.back()++; } auto f = o.host(); auto g = l.host(); right = c.host()[0] == int(y.size()) && std::equal(y.begin(), y.end(), f.begin()) && std::equal(m.begin(), m.end(), g.begin());",
            ),
            (
                "DeviceHistogram",
                "Device<int> o(std::vector<int>(20)); DEVICE_WIDE(cub::DeviceHistogram::HistogramEven(space, bytes, d.at, o.at, 21, T(0), T(20), N)) std::vector<int> y(20); for (T v : x) y[int(v)]++; right = o.host() == y;",
            ),
            (
                "DeviceSegmentedReduce",
                "std::vector<int> s = {0, N / 7, N / 2, N / 2 + 1, N}; Device<int> q(s); Device<T> o(std::vector<T>(4)); DEVICE_WIDE(cub::DeviceSegmentedReduce::Sum(space, bytes, d.at, o.at, 4, q.at, q.at + 1)) auto f = o.host(); right = true; for (int i = 0; i < 4; i++) right &= f[i] == std::accumulate(x.begin() + s[i], x.begin() + s[i + 1], T(0));",
            ),
        ]
    )
    return (
        "",
        f"using T = {kind}; const int N = {size}; auto x = numbers<T>(N, 0, 19); Device<T> d(x); bool right = false; {use}",
        f"{name} {kind} {size}",
    )


def pipelined(draw: random.Random, n: int) -> tuple[str, str, str]:
    threads, stages, batch = draw.choice([32, 64, 128]), draw.choice([2, 3, 4]), draw.choice([1, 2])
    kernel = f"""
__global__ void k{n}(const int *x, int *out, int batches) {{
  namespace cg = cooperative_groups; auto block = cg::this_thread_block();
  __shared__ int tile[{stages}][{threads * batch}];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, {stages}> state;
  auto pipe = cuda::make_pipeline(block, &state);
  int total = 0;
  for (int c = 0, f = 0; c < batches; c++) {{
    for (; f < batches && f < c + {stages}; f++) {{
      pipe.producer_acquire();
      cuda::memcpy_async(block, tile[f % {stages}], x + f * {threads * batch}, cuda::aligned_size_t<4>({4 * threads * batch}), pipe);
      pipe.producer_commit();
    }}
    pipe.consumer_wait();
    for (int i = 0; i < {batch}; i++) total += tile[c % {stages}][({threads * batch} - 1) - (threadIdx.x + i * {threads})];
    pipe.consumer_release();
  }}
  out[threadIdx.x] = total;
}}"""
    use = f"""
  const int B = 6; auto x = numbers<int>(B * {threads * batch}, -9, 9); Device<int> d(x), o(std::vector<int>({threads}));
  k{n}<<<1, {threads}>>>(d.at, o.at, B); std::vector<int> y({threads});
  for (int b = 0; b < B; b++) for (int t = 0; t < {threads}; t++) for (int i = 0; i < {batch}; i++) y[t] += x[b * {threads * batch} + {threads * batch} - 1 - (t + i * {threads})];
  bool right = o.host() == y;"""
    return kernel, use, f"cuda::pipeline of {threads} threads, {stages} stages of {batch}"


def arrivals(draw: random.Random, n: int) -> tuple[str, str, str]:
    warps, rounds = draw.choice([2, 3, 4]), draw.randint(2, 5)
    kernel = f"""
__global__ void k{n}(int *out) {{
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ cuda::std::aligned_storage_t<sizeof(Barrier), alignof(Barrier)> space[2]; __shared__ int tile[{32 * warps}];
  Barrier *full = reinterpret_cast<Barrier *>(space), *empty = full + 1; int t = threadIdx.x, total = 0;
  if (t == 0) {{ init(full, {32 * warps}); init(empty, {32 * warps}); }}
  __syncthreads();
  for (int r = 0; r < {rounds}; r++) {{
    tile[t] = t * 3 + r;
    full->arrive_and_wait();
    total += tile[(t * 7 + r) % {32 * warps}];
    empty->wait(empty->arrive());
  }}
  out[t] = total;
}}"""
    use = f"""
  Device<int> o(std::vector<int>({32 * warps})); k{n}<<<1, {32 * warps}>>>(o.at); std::vector<int> y({32 * warps});
  for (int r = 0; r < {rounds}; r++) for (int t = 0; t < {32 * warps}; t++) y[t] += (t * 7 + r) % {32 * warps} * 3 + r; bool right = o.host() == y;"""
    return kernel, use, f"cuda::barrier of {warps} warps, {rounds} rounds"


def clusters(draw: random.Random, n: int) -> tuple[str, str, str]:
    size, threads = draw.choice([2, 4]), draw.choice([32, 64, 128])
    kernel = f"""
__global__ void __cluster_dims__({size}) k{n}(const int *x, int *out) {{
  namespace cg = cooperative_groups; auto cluster = cg::this_cluster();
  __shared__ int tile[{threads}], counts[8];
  int t = threadIdx.x, v = x[blockIdx.x * {threads} + t];
  tile[t] = v; if (t < 8) counts[t] = 0;
  cluster.sync();
  int *theirs = cluster.map_shared_rank(tile, (cluster.block_rank() + 1) % {size});
  atomicAdd(cluster.map_shared_rank(counts, v & {size - 1}) + (v >> 3 & 7), 1);
  out[blockIdx.x * {threads} + t] = v + theirs[{threads - 1} - t];
  cluster.sync();
  if (t < 8) out[{2 * size * threads} + blockIdx.x * 8 + t] = counts[t];
}}"""
    total = 2 * size * threads
    use = f"""
  auto x = numbers<int>({total}, 0, 63); Device<int> d(x), o(std::vector<int>({total + 16 * size})); k{n}<<<{2 * size}, {threads}>>>(d.at, o.at);
  std::vector<int> y({total + 16 * size}); for (int b = 0; b < {2 * size}; b++) for (int t = 0; t < {threads}; t++) {{
    int peer = b / {size} * {size} + (b + 1) % {size}, v = x[b * {threads} + t]; y[b * {threads} + t] = v + x[peer * {threads} + {threads - 1} - t];
    y[{total} + (b / {size} * {size} + (v & {size - 1})) * 8 + (v >> 3 & 7)]++; }}
  bool right = o.host() == y;"""
    return kernel, use, f"cluster of {size} by {threads}"


KERNELS: list[Callable[[random.Random, int], tuple[str, str, str]]] = [
    block_reduce, block_reduce, block_scan, block_scan, block_sort, block_sort, block_histogram, block_exchange,
    warp_collectives, device_wide, device_wide, device_wide, pipelined, arrivals, clusters,
]  # fmt: skip


def source(seed: str) -> str:
    """A program that runs one kernel of each entry of `KERNELS`, and says of each whether its result is right."""
    kernels, uses = [], []
    for number, make in enumerate(KERNELS):
        kernel, use, what = make(random.Random(f"{seed} {number}"), number)
        kernels.append(kernel)
        uses.append(f'  if (argc < 2 || atoi(argv[1]) == {number}) {{ {use}\n  say(right, "{number} {what}"); }}')
    return HEAD + "\n".join(kernels) + "\nint main(int argc, char **argv) {\n" + "\n".join(uses) + "\n}\n"
