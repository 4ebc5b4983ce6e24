// What the language compiles to: calls of every kind, recursion, virtual functions, tables, output, memory, bounds.
#include <cassert>
#include <cstdio>
#include <new>

__constant__ int table[16] = {1, 2, 3, 4, 5};
__constant__ float weights[4][4];
__device__ int counter = 7;
__device__ int* pointer = &counter;
__device__ const char* names[] = {"first", "second\t\"quoted\"\n", "\xff\x01"};
__managed__ double shared_with_host[8];
__device__ __align__(64) unsigned char bytes[100] = {0xde, 0xad};
struct Pair {
    char tag;
    double value;
    const int* where;
};
__device__ Pair pairs[2] = {{'a', 1.5, table}, {'b', -0.0, &table[3]}};

struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    float side;
    __device__ Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};
struct Circle : Shape {
    float radius;
    __device__ Circle(float r) : radius(r) {}
    __device__ float area() const override { return 3.14159f * radius * radius; }
};

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ int twice(int x) { return 2 * x; }
__device__ int thrice(int x) { return 3 * x; }
__device__ int (*operations[])(int) = {twice, thrice, fibonacci};

struct Large {
    int values[40];
    short more[3];
    char last;
};
__device__ __noinline__ Large change(Large l, double d, char c, short s)
{
    l.values[c & 31] += int(d) + s;
    l.last = c;
    return l;
}

__device__ __noinline__ int choose(int n, int x)
{
    switch (n) {
    case 0: return x * x;
    case 1: return x / 3;
    case 2: return x % 7;
    case 3: return x ^ 0x55;
    case 4: return __popc(x);
    case 5: return __clz(x) + fibonacci(x);
    case 6: return x << (x & 3);
    case 7: return table[x & 15];
    case 8: return -x;
    default: return ~x;
    }
}

template <typename F>
__device__ int apply(F f, int x) { return f(x); }

__global__ void __launch_bounds__(256, 2) calls(int* out, float* f, Large l, int n)
{
    int captured = n + threadIdx.x;
    out[0] = apply([=](int x) { return x + captured; }, n) + apply(operations[n % 3], n);
    out[1] = choose(n, out[2]) + fibonacci(n);
    Shape* shape = n & 1 ? static_cast<Shape*>(new Square(2.0f)) : static_cast<Shape*>(new Circle(1.0f));
    f[0] = shape ? shape->area() : 0.0f;
    delete shape;
    l = change(l, f[1], char(n), short(n));
    out[2] = l.values[n & 31] + l.last + l.more[1];
    *pointer += names[n & 1][0] + pairs[n & 1].tag + int(pairs[n & 1].value) + *pairs[0].where;
    shared_with_host[n & 7] = weights[n & 3][1] + bytes[n];
}

__global__ void output(const int* in, int n, char* heap)
{
    printf("%d of %s: %f %lld %p\n", threadIdx.x, "many", double(n), (long long)in[0], heap);
    assert(n > 0 && "must be positive");
    char local[64];
    for (int i = 0; i < n; ++i) local[i & 63] = heap[i];
    heap[0] = local[n & 63];
    int* mine = static_cast<int*>(alloca(n * sizeof(int)));
    mine[0] = in[0];
    heap[1] = mine[n / 2];
    void* block = malloc(n);
    if (block == nullptr) __trap();
    memcpy(block, in, n);
    memset(heap, 0, 16);
    free(block);
    if (n == 77) __brkpt();
    __nanosleep(100);
    __builtin_assume(n > 3);
    if (n < 2) __builtin_unreachable();
    asm volatile("{ .reg .pred p; setp.eq.s32 p, %0, 3; @p exit; }" ::"r"(n));
    asm volatile("membar.gl; // \"a comment\" with ; { in it\n\t" ::: "memory");
}

__global__ void __launch_bounds__(512, 1, 4) bounded(int* p) { *p = 1; }

__global__ void __maxnreg__(64) parameters(const __grid_constant__ Large l, long double* p, bool b, unsigned char c)
{
    const int* where = l.values;
    p[0] = where[c & 31] + b + l.last;
}

template <int N>
__global__ void __cluster_dims__(N, 1, 1) __launch_bounds__(128) shared_memory(int* out)
{
    extern __shared__ __align__(1024) unsigned char dynamic[];
    __shared__ double fixed[N][33];
    static __device__ int persistent;
    fixed[threadIdx.x % N][threadIdx.y] = dynamic[threadIdx.x];
    __syncthreads();
    out[blockIdx.x] = __syncthreads_count(fixed[0][threadIdx.z] > 0) + __syncthreads_and(1) + __syncthreads_or(0);
    out[blockIdx.y] = atomicAdd(&persistent, 1) + gridDim.z + blockDim.y + warpSize;
    __syncwarp(0xff);
}
template __global__ void shared_memory<1>(int*);
template __global__ void shared_memory<4>(int*);
