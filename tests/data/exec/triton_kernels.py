"""Triton without PyTorch: a softmax and a product of matrices; `overrun` leaves out a mask."""

import ctypes
import sys

import numpy as np
import triton
import triton.language as tl
from triton.runtime.driver import driver

driver.active.get_current_device()
cuda = ctypes.CDLL("libcuda.so.1")
TYPES = {"float32": "fp32", "float16": "fp16"}


class Array:
    """An array in device memory, as Triton takes it."""

    def __init__(self, values):
        self.host = np.ascontiguousarray(values)
        self.dtype = TYPES[str(self.host.dtype)]
        self.pointer, size = ctypes.c_void_p(), ctypes.c_size_t(self.host.nbytes)
        assert cuda.cuMemAlloc_v2(ctypes.byref(self.pointer), size) == 0
        assert cuda.cuMemcpyHtoD_v2(self.pointer, self.host.ctypes.data_as(ctypes.c_void_p), size) == 0

    def data_ptr(self):
        return self.pointer.value

    def numpy(self):
        made = np.empty_like(self.host)
        size = ctypes.c_size_t(made.nbytes)
        assert cuda.cuMemcpyDtoH_v2(made.ctypes.data_as(ctypes.c_void_p), self.pointer, size) == 0
        return made


@triton.jit
def softmax(x, y, n, B: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


@triton.jit
def matmul(a, b, c, N: tl.constexpr):
    i, j, k = tl.arange(0, N), tl.arange(0, N), tl.arange(0, N)
    product = tl.dot(tl.load(a + i[:, None] * N + k[None, :]), tl.load(b + k[:, None] * N + j[None, :]))
    tl.store(c + i[:, None] * N + j[None, :], product)


@triton.jit
def copy(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)  # no mask
    tl.store(y + i, v)


def main():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((5, 200)).astype(np.float32)
    if sys.argv[1:] == ["overrun"]:
        copy[(1,)](Array(rows[0]), Array(rows[0] * 0), 256)
        return
    y = Array(rows * np.nan)
    softmax[(5,)](Array(rows), y, 200, 256)
    e = np.exp(rows - rows.max(1, keepdims=True))
    assert np.allclose(y.numpy(), e / e.sum(1, keepdims=True), atol=1e-6)
    a, b = rng.standard_normal((2, 64, 64)).astype(np.float16)
    c = Array(np.full((64, 64), np.nan, np.float32))
    matmul[(1,)](Array(a), Array(b), c, 64)
    assert np.allclose(c.numpy(), a.astype(np.float32) @ b.astype(np.float32), atol=1e-2)
    print("PASS")


main()
