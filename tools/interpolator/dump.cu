// Outputs of the approximate functions on a GPU, for tools/interpolator: hashes of all inputs, and some ranges whole.
//
//     nvcc -O2 -std=c++17 -gencode=arch=compute_90a,code=sm_90a tools/interpolator/dump.cu -o dump && ./dump FOLDER
//
// FOLDER must exist. FUNCTION~chunks and FUNCTION~strided have 4096 hashes of 2^20 outputs each (recorded.py),
// FUNCTION~dump~START~STRIDE~COUNT has outputs as words of 32 bits, of .f64 the upper ones. Half a minute in all.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error) {                                                                       \
            std::printf("%s, line %d\n", cudaGetErrorString(error), __LINE__);             \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (0)

typedef uint32_t u32;
typedef uint64_t u64;

__device__ inline u32 mixed(u32 x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

__device__ inline u64 weight(u32 k) { return ((u64)k * 0x9E3779B97F4A7C15ull + 0xD1B54A32D192ED03ull) | 1; }

__device__ inline void pair(u32 n, float &a, float &b) {
    u32 x = mixed(n), y = mixed(n * 0x9E3779B1u + 0x7F4A7C15u);
    if (n >> 20 & 1) x = (x & 0x807fffffu) | ((((y >> 23 & 255) + (x >> 23 & 31) - 16) & 255) << 23);
    a = __uint_as_float(x), b = __uint_as_float(y);
}

#define FUNCTION(NAME, TEXT, SUFFIX, BODY)                                                 \
    struct NAME {                                                                          \
        static const char *name() { return TEXT SUFFIX; }                                  \
        static __device__ u64 of(u32 n) { BODY }                                           \
    };
#define SINGLE(NAME, TEXT)                                                                 \
    FUNCTION(NAME, TEXT, "", float d; asm(TEXT " %0, %1;" : "=f"(d) : "f"(__uint_as_float(n))); return __float_as_uint(d);)
#define HALF(NAME, TEXT)                                                                   \
    FUNCTION(NAME, TEXT, "", uint16_t d; asm(TEXT " %0, %1;" : "=h"(d) : "h"((uint16_t)n)); return d;)
#define PACKED(NAME, TEXT) FUNCTION(NAME, TEXT, "", u32 d; asm(TEXT " %0, %1;" : "=r"(d) : "r"(n)); return d;)
#define DOUBLE(NAME, TEXT, LOW, SUFFIX)                                                    \
    FUNCTION(NAME, TEXT, SUFFIX, double d; asm(TEXT " %0, %1;" : "=d"(d) : "d"(__hiloint2double(n, LOW)));                 \
             return __double_as_longlong(d);)
#define QUOTIENT(NAME, TEXT)                                                               \
    FUNCTION(NAME, TEXT, "", float a; float b; float d; pair(n, a, b);                     \
             asm(TEXT " %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b)); return __float_as_uint(d);)

SINGLE(Ex2, "ex2.approx.f32") SINGLE(Ex2Ftz, "ex2.approx.ftz.f32")
SINGLE(Lg2, "lg2.approx.f32") SINGLE(Lg2Ftz, "lg2.approx.ftz.f32")
SINGLE(Rcp, "rcp.approx.f32") SINGLE(RcpFtz, "rcp.approx.ftz.f32")
SINGLE(Rsqrt, "rsqrt.approx.f32") SINGLE(RsqrtFtz, "rsqrt.approx.ftz.f32")
SINGLE(Sqrt, "sqrt.approx.f32") SINGLE(SqrtFtz, "sqrt.approx.ftz.f32")
SINGLE(Sin, "sin.approx.f32") SINGLE(SinFtz, "sin.approx.ftz.f32")
SINGLE(Cos, "cos.approx.f32") SINGLE(CosFtz, "cos.approx.ftz.f32")
SINGLE(Tanh, "tanh.approx.f32")
HALF(Ex2F16, "ex2.approx.f16") HALF(Ex2Bf16, "ex2.approx.ftz.bf16")
HALF(TanhF16, "tanh.approx.f16") HALF(TanhBf16, "tanh.approx.bf16")
PACKED(Ex2F16x2, "ex2.approx.f16x2") PACKED(Ex2Bf16x2, "ex2.approx.ftz.bf16x2")
PACKED(TanhF16x2, "tanh.approx.f16x2") PACKED(TanhBf16x2, "tanh.approx.bf16x2")
DOUBLE(RcpF64, "rcp.approx.ftz.f64", 0, "") DOUBLE(RcpF64Low, "rcp.approx.ftz.f64", mixed(n), ".low")
DOUBLE(RsqrtF64, "rsqrt.approx.ftz.f64", 0, "") DOUBLE(RsqrtF64Low, "rsqrt.approx.ftz.f64", mixed(n), ".low")
DOUBLE(RsqrtSlow, "rsqrt.approx.f64", mixed(n), "")
QUOTIENT(Div, "div.approx.f32") QUOTIENT(DivFtz, "div.approx.ftz.f32")
QUOTIENT(DivFull, "div.full.f32") QUOTIENT(DivFullFtz, "div.full.ftz.f32")

template <class F> __global__ void hash(u64 *out, bool strided) {
    __shared__ u64 sums[256];
    u32 set = blockIdx.x;
    u64 sum = 0;
    for (u32 k = threadIdx.x; k < 1u << 20; k += blockDim.x) sum += F::of(strided ? k << 12 | set : set << 20 | k) * weight(k);
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half; half >>= 1) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (!threadIdx.x) out[set] = sums[0];
}

template <class F> __global__ void range(u64 *out, u32 start, u32 stride, u32 count) {
    for (u32 k = blockIdx.x * blockDim.x + threadIdx.x; k < count; k += gridDim.x * blockDim.x) out[k] = F::of(start + k * stride);
}

static std::string folder;

static void save(const std::string &name, const void *data, size_t size) {
    FILE *file = std::fopen((folder + "/" + name).c_str(), "wb");
    if (!file || std::fwrite(data, 1, size, file) != size || std::fclose(file)) {
        std::printf("cannot write %s\n", name.c_str());
        std::exit(1);
    }
}

struct Range {
    u32 start, stride, count;
};

template <class F> void dump(const std::vector<Range> &ranges = {}, bool upper = false) {
    const size_t most = 1 << 23;
    u64 *device;
    std::vector<u64> host(most);
    CHECK(cudaMalloc(&device, 8 * most));
    for (int strided = 0; strided < 2; strided++) {
        CHECK(cudaMemset(device, 0xee, 8 * 4096));
        hash<F><<<4096, 256>>>(device, strided);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(host.data(), device, 8 * 4096, cudaMemcpyDeviceToHost));
        save(std::string(F::name()) + (strided ? "~strided" : "~chunks"), host.data(), 8 * 4096);
    }
    for (const Range &each : ranges) {
        CHECK(cudaMemset(device, 0xee, 8 * most));
        range<F><<<2112, 256>>>(device, each.start, each.stride, each.count);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(host.data(), device, 8ull * each.count, cudaMemcpyDeviceToHost));
        std::vector<u32> words(each.count);
        for (u32 k = 0; k < each.count; k++) words[k] = (u32)(upper ? host[k] >> 32 : host[k]);
        char place[64];
        std::snprintf(place, sizeof place, "~dump~%08x~%u~%u", each.start, each.stride, each.count);
        save(F::name() + std::string(place), words.data(), 4ull * each.count);
    }
    CHECK(cudaFree(device));
}

// Whole binades that begin at 2^first, 2^(first + 1), ...
static std::vector<Range> binades(int first, int count) {
    std::vector<Range> found;
    for (int each = first; each < first + count; each++) found.push_back({0x3f800000u + (each << 23), 1, 1 << 23});
    return found;
}

int main(int count, char **words) {
    if (count != 2) return std::printf("usage: %s FOLDER\n", words[0]), 2;
    folder = words[1];
    dump<RcpFtz>(binades(0, 1)), dump<RsqrtFtz>(binades(0, 2)), dump<SqrtFtz>(binades(0, 2));
    dump<Ex2Ftz>(binades(0, 1)), dump<Lg2Ftz>(binades(0, 1)), dump<SinFtz>(binades(-1, 2)), dump<CosFtz>(binades(-1, 2));
    dump<Tanh>(binades(-8, 11));
    dump<Ex2>(), dump<Lg2>(), dump<Rcp>(), dump<Rsqrt>(), dump<Sqrt>(), dump<Sin>(), dump<Cos>();
    const std::vector<Range> all = {{0, 1, 1 << 16}};
    dump<Ex2F16>(all), dump<Ex2Bf16>(all), dump<TanhF16>(all), dump<TanhBf16>(all);
    dump<Ex2F16x2>(), dump<Ex2Bf16x2>(), dump<TanhF16x2>(), dump<TanhBf16x2>();
    dump<RcpF64>({{0x3ff00000u, 1, 1 << 20}}, true), dump<RsqrtF64>({{0x3ff00000u, 1, 1 << 21}}, true);
    dump<RcpF64Low>(), dump<RsqrtF64Low>(), dump<RsqrtSlow>();
    dump<Div>(), dump<DivFtz>(), dump<DivFull>(), dump<DivFullFtz>();
    CHECK(cudaDeviceSynchronize());
}
