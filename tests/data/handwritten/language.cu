// nvcc -arch=sm_90a -std=c++17 -rdc=true
// What compilers make of C++: recursion, function pointers, virtual functions, arrays in local memory, the heap, printf.
#include <cstdio>
#include "ptx.cuh"

__device__ __noinline__ u32 ackermann(u32 m, u32 n)
{
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

__device__ int twice(int x) { return 2 * x; }
__device__ int square(int x) { return x * x; }
__device__ int negate(int x) { return -x; }
using Function = int (*)(int);
__device__ Function functions[3] = {twice, square, negate};

struct Shape {
    __device__ virtual float area() const = 0;
    __device__ virtual ~Shape() {}
};
struct Circle : Shape {
    float r;
    __device__ explicit Circle(float r) : r(r) {}
    __device__ float area() const override { return 3.0f * r * r; }
};
struct Box : Shape {
    float w, h;
    __device__ Box(float w, float h) : w(w), h(h) {}
    __device__ float area() const override { return w * h; }
};

__device__ __noinline__ void insertion_sort(int* values, int count)
{
    for (int i = 1; i < count; i++) {
        const int value = values[i];
        int at = i;
        for (; at > 0 && values[at - 1] > value; at--) values[at] = values[at - 1];
        values[at] = value;
    }
}

extern "C" __global__ void language(const int* in, int* sorted, int* called, float* areas, u32* recursed, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int own[9];
    for (int j = 0; j < 9; j++) own[j] = in[i * 9 + j];
    insertion_sort(own, 5 + i % 5);
    for (int j = 0; j < 9; j++) sorted[i * 9 + j] = own[j];
    called[i] = functions[u32(in[i]) % 3](in[i]);
    Shape* shape = i % 2 ? static_cast<Shape*>(new Circle(float(i))) : new Box(float(i), 2.0f);
    areas[i] = shape->area();
    delete shape;
    recursed[i] = ackermann(i % 3, i % 4);
    if (i == 5) printf("thread %d: %d %f %s\n", i, called[i], areas[i], "done");
}
