"""NVIDIA Warp: one kernel over arrays."""

import numpy as np
import warp as wp

wp.config.quiet = True
wp.init()


@wp.kernel
def saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


n = 500
host = np.arange(n, dtype=np.float32)
x, y = wp.array(host, dtype=float, device="cuda"), wp.ones(n, dtype=float, device="cuda")
wp.launch(saxpy, dim=n, inputs=[2.0, x, y], device="cuda")
np.testing.assert_allclose(y.numpy(), 2 * host + 1)
print("PASS")
