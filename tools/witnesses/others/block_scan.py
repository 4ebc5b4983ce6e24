"""A scan per block, barriers that count and vote, and sums under a lock, in Numba: `python block_scan.py 90 > FILE`."""

import sys

from numba import cuda, types
from numba.cuda import compile_ptx

I4 = types.int32


def block_scan(x, sums, lock):
    shared = cuda.shared.array(128, I4)
    tid, i = cuda.threadIdx.x, cuda.grid(1)
    shared[tid] = x[i]
    cuda.syncthreads()
    distance = 1
    while distance < 128:
        value = shared[tid - distance] if tid >= distance else I4(0)
        cuda.syncthreads()
        shared[tid] += value
        cuda.syncthreads()
        distance *= 2
    sums[i] = shared[tid]
    many = cuda.syncthreads_count(I4(x[i] > 3))
    every = cuda.syncthreads_and(I4(x[i] > -1))
    some = cuda.syncthreads_or(I4(x[i] > 8))
    if tid == 0:
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        cuda.threadfence()
        lock[1] += many
        lock[2] += every
        lock[3] += some
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)


if __name__ == "__main__":
    array = types.Array(I4, 1, "C")
    print(compile_ptx(block_scan, (array, array, array), cc=(int(sys.argv[1]) // 10, 0), device=False)[0], end="")
