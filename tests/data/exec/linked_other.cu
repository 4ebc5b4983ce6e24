// The other half of linked.cu: functions and variables of its own that have the same names, and some that are shared.
template <class T> __device__ __noinline__ T in_both(T x) { return x * 3; }
static __device__ int counter = 9;
static __device__ __noinline__ int helper(int x) { return 100 * x; }
__device__ int offset[4] = {5, 15, 25, 35};
__device__ int doubled(int x);
__device__ int other(int x) { return doubled(x) + helper(1); }

__global__ void reversed(int *out) {
  __shared__ int tile[64];
  int t = threadIdx.x;
  tile[63 - t] = helper(t) + counter + in_both(t);
#ifndef RACE
  __syncthreads();
#endif
  if (t < 32) out[31 - t] = tile[63 - t];
  else if (tile[t] < 0) out[t - 32] = 1;  // of the other warp
}
