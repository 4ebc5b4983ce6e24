"""Kernels of Pallas (Mosaic GPU) and XLA: jax_kernels.py [no-wait]."""

import sys

import jax
import jax.experimental.pallas.mosaic_gpu as plgpu
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

no_wait = "no-wait" in sys.argv[1:]
hopper = jax.devices()[0].compute_capability == "9.0"
random = np.random.default_rng(0)
SHAPE = jax.ShapeDtypeStruct((128, 128), jnp.float16)
TILED = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))


def array(*shape):
    return jnp.asarray(random.integers(-4, 5, shape), jnp.float16)


def doubled(x, out, tile, arrived):
    plgpu.copy_gmem_to_smem(x, tile, arrived)
    if not no_wait:
        plgpu.barrier_wait(arrived)
    tile[...] = tile[...] * 2  # read too early
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(tile, out)
    plgpu.wait_smem_to_gmem(0)


def product(a, b, out, tile_a, tile_b, tile, sums, arrived, *multiplied):
    plgpu.copy_gmem_to_smem(a, tile_a, arrived)
    plgpu.copy_gmem_to_smem(b, tile_b, arrived)
    plgpu.barrier_wait(arrived)
    if hopper:
        plgpu.wgmma(sums, tile_a, tile_b)
        found = sums[...]
    else:
        plgpu.tcgen05_mma(sums, tile_a, tile_b, *multiplied, accumulate=False)
        plgpu.barrier_wait(*multiplied)
        found = plgpu.async_load_tmem(sums)
    tile[...] = found.astype(jnp.float16)
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(tile, out)
    plgpu.wait_smem_to_gmem(0)


def product_of_half(a, b, out, tile_a, tile_b, tile, arrived):
    pl.run_scoped(lambda sums: product(a, b, out, tile_a, tile_b, tile, sums, arrived), plgpu.ACC((64, 128)))


def multiply(a, b):
    tile, half = (plgpu.SMEM((rows, 128), jnp.float16, transforms=TILED) for rows in (128, 64))
    arrived = plgpu.Barrier(num_arrivals=2)
    if hopper:
        shape = jax.ShapeDtypeStruct((64, 128), jnp.float16)
        kernel = plgpu.kernel(product_of_half, out_type=shape, scratch_types=[half, tile, half, arrived])
        return jnp.concatenate([kernel(a[:64], b), kernel(a[64:], b)])
    scratch = [tile, tile, tile, plgpu.TMEM((128, 128), jnp.float32), arrived]
    scratch.append(plgpu.Barrier(orders_tensor_core=True))
    return plgpu.kernel(product, out_type=SHAPE, scratch_types=scratch)(a, b)


def add(a, b, out):
    rows = pl.ds(lax.axis_index("i") * 32, 32)
    out[rows] = a[rows] + b[rows]


a, b = array(128, 128), array(128, 128)
scratch = [plgpu.SMEM((128, 128), jnp.float16), plgpu.Barrier()]
right = (plgpu.kernel(doubled, out_type=SHAPE, scratch_types=scratch)(a) == a * 2).all()
if not no_wait:
    right &= (plgpu.kernel(add, out_type=SHAPE, grid=(4,), grid_names=("i",))(a, b) == a + b).all()
    expected = np.asarray(a, np.float32) @ np.asarray(b, np.float32)
    right &= np.array_equal(np.asarray(multiply(a, b)), expected.astype(np.float16))
    right &= np.array_equal(np.asarray(jnp.sort(a, axis=1)), np.sort(np.asarray(a), axis=1))
print("PASS" if right else "FAIL")
sys.exit(not right)
