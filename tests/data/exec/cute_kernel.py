"""CuTe DSL: an elementwise sum, with pointers of the driver's interface."""

import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
import numpy as np
from cuda.bindings import runtime
from cutlass.cute.runtime import make_ptr


@cute.kernel
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    i = cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + cute.arch.thread_idx()[0]
    if i < cute.size(c):
        c[i] = a[i] + b[i]


@cute.jit
def launch(a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, n: cutlass.Int32):
    layout = cute.make_layout(n)
    add(cute.make_tensor(a, layout), cute.make_tensor(b, layout), cute.make_tensor(c, layout)).launch(
        grid=(cute.ceil_div(n, 128), 1, 1), block=(128, 1, 1)
    )


def device(values):
    error, address = runtime.cudaMalloc(values.nbytes)
    assert error == 0
    runtime.cudaMemcpy(address, values.ctypes.data, values.nbytes, runtime.cudaMemcpyKind.cudaMemcpyHostToDevice)
    return address


host = np.arange(300, dtype=np.float32)
a, b, c = device(host), device(10 * host), device(np.zeros_like(host))
pointers = [make_ptr(cutlass.Float32, each, cute.AddressSpace.gmem, assumed_align=16) for each in (a, b, c)]
launch(*pointers, 300)
found = np.empty_like(host)
(error,) = runtime.cudaMemcpy(found.ctypes.data, c, found.nbytes, runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost)
assert error == 0, error
np.testing.assert_array_equal(found, 11 * host)
# It compiles a kernel with options of its own, and loads that as machine code.
assert utils.HardwareInfo().get_max_active_clusters(2) >= 1
print("PASS")
