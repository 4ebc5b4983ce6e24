"""CuPy: a RawKernel, an ElementwiseKernel and operators of arrays; `overrun` stores one element too many."""

import sys

import cupy as cp
import numpy as np

raw = cp.RawKernel(
    r"""
extern "C" __global__ void scale(const float *x, float *y, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n)
    y[i] = 3 * x[i];
}
extern "C" __global__ void past(float *y, int n) {
  y[threadIdx.x + n] = 1;  // past the end
}
""",
    "scale",
)

x = cp.asarray(np.arange(1000, dtype=np.float32))
y = cp.empty_like(x)
if sys.argv[1:] == ["overrun"]:
    cp.RawModule(code=raw.code).get_function("past")((1,), (32,), (y, np.int32(1000)))
    cp.cuda.runtime.deviceSynchronize()
raw((8,), (128,), (x, y, np.int32(1000)))
np.testing.assert_array_equal(cp.asnumpy(y), 3 * np.arange(1000, dtype=np.float32))
square = cp.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)", "square")
np.testing.assert_array_equal(square(x, y).get(), (2 * np.arange(1000, dtype=np.float32)) ** 2)
np.testing.assert_allclose((x + y).get(), 4 * np.arange(1000, dtype=np.float32))
print("PASS")
