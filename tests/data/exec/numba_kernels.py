"""Numba-CUDA: a sum of arrays; `race` reverses an array without a barrier."""

import sys
import warnings

import numpy as np
from numba import cuda, float32

warnings.simplefilter("ignore")


@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


@cuda.jit
def reverse(a, out):
    tile = cuda.shared.array(64, float32)
    i = cuda.threadIdx.x
    tile[i] = a[i]
    out[i] = tile[63 - i]  # no barrier


a = np.arange(1000, dtype=np.float32)
given, out = cuda.to_device(a), cuda.device_array_like(a)
if sys.argv[1:] == ["race"]:
    reverse[1, 64](given, out)
    cuda.synchronize()
else:
    add[8, 128](given, given, out)
    assert (out.copy_to_host() == 2 * a).all()
    print("PASS")
