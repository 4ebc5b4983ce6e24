"""NVIDIA Warp: kernels over arrays and tiles, in streams and graphs."""

import numpy as np
import warp as wp

wp.config.quiet = True
wp.init()


@wp.kernel
def saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel
def transpose(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float)):
    i, j = wp.tid()
    tile = wp.tile_load(a, shape=(16, 16), offset=(i * 16, j * 16))
    wp.tile_store(b, wp.tile_transpose(tile), offset=(j * 16, i * 16))


n = 500
host = np.arange(n, dtype=np.float32)
x, y = wp.array(host, dtype=float, device="cuda"), wp.ones(n, dtype=float, device="cuda")
wp.launch(saxpy, dim=n, inputs=[2.0, x, y], device="cuda")
np.testing.assert_allclose(y.numpy(), 2 * host + 1)

matrix = np.random.default_rng(0).random((48, 32), dtype=np.float32)
a, b = wp.array(matrix, device="cuda"), wp.zeros((32, 48), dtype=float, device="cuda")
wp.launch_tiled(transpose, dim=[3, 2], inputs=[a, b], block_dim=64, device="cuda")
np.testing.assert_array_equal(b.numpy(), matrix.T)

with wp.ScopedStream(wp.Stream("cuda")), wp.ScopedCapture("cuda") as capture:
    wp.launch(saxpy, dim=n, inputs=[1.0, x, y], device="cuda")
y.fill_(3.0)
for _ in range(2):
    wp.capture_launch(capture.graph)
np.testing.assert_allclose(y.numpy(), 2 * host + 3)
print("PASS")
