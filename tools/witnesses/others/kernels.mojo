"""Sums of rows by shuffles and shared memory, and a product of matrices by tiles in shared memory."""

from max.gpu import thread_idx, block_idx, block_dim, barrier, lane_id, warp_id
from max.gpu.host import DeviceContext
from max.gpu.memory import AddressSpace
from max.gpu.primitives import warp
from std.math import exp
from std.memory import stack_allocation

comptime F = UnsafePointer[Float32, MutAnyOrigin]


def row_sums(x: F, y: F, n: Int):
    var s = stack_allocation[8, Float32, address_space=AddressSpace.SHARED]()
    var acc: Float32 = 0
    for i in range(Int(thread_idx.x), n, Int(block_dim.x)):
        acc += exp(x[Int(block_idx.x) * n + i])
    acc = warp.sum(acc)
    if lane_id() == 0:
        s[Int(warp_id())] = acc
    barrier()
    if thread_idx.x == 0:
        var t: Float32 = 0
        for i in range(Int(block_dim.x) // 32):
            t += s[i]
        y[Int(block_idx.x)] = t


def matmul(a: F, b: F, c: F, m: Int, n: Int, k: Int):
    var sa = stack_allocation[256, Float32, address_space=AddressSpace.SHARED]()
    var sb = stack_allocation[256, Float32, address_space=AddressSpace.SHARED]()
    var tx = Int(thread_idx.x)
    var ty = Int(thread_idx.y)
    var row = Int(block_idx.y) * 16 + ty
    var col = Int(block_idx.x) * 16 + tx
    var acc: Float32 = 0
    for t in range((k + 15) // 16):
        sa[ty * 16 + tx] = a[row * k + t * 16 + tx] if row < m and t * 16 + tx < k else Float32(0)
        sb[ty * 16 + tx] = b[(t * 16 + ty) * n + col] if col < n and t * 16 + ty < k else Float32(0)
        barrier()
        for q in range(16):
            acc += sa[ty * 16 + q] * sb[q * 16 + tx]
        barrier()
    if row < m and col < n:
        c[row * n + col] = acc


def main() raises:
    var context = DeviceContext()
    _ = context.compile_function[row_sums]()
    _ = context.compile_function[matmul]()
