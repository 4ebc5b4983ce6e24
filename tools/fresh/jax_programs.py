"""Kernels of JAX's Pallas with shapes and options that a seed draws: jax_programs.py SEED [NAMES]."""

from __future__ import annotations

import random
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.gpu import (
    attention_mgpu,
    blackwell_matmul_mgpu,
    hopper_matmul_mgpu,
    hopper_mixed_type_matmul_mgpu,
    ragged_dot_mgpu,
    softmax,
    transposed_ragged_dot_mgpu,
)

seed, wanted = sys.argv[1], sys.argv[2:]
draw = random.Random()
blackwell = jax.devices()[0].compute_capability.startswith("1")
numbers = np.random.default_rng(0)


def array(*shape, dtype=jnp.float16):
    return jnp.asarray(numbers.standard_normal(shape), dtype)


def close(found, expected, tolerance=2e-2):
    np.testing.assert_allclose(
        np.asarray(found, np.float32), np.asarray(expected, np.float32), rtol=tolerance, atol=tolerance
    )


def host(*values):
    return [np.asarray(each, np.float32) for each in values]


def hopper_matmul():
    kind = draw.choice([jnp.float16, jnp.bfloat16])
    modes = hopper_matmul_mgpu.MatmulDimension
    config = hopper_matmul_mgpu.TuningConfig(
        tile_m=64, tile_n=draw.choice([64, 128]), tile_k=64, max_concurrent_steps=draw.choice([2, 3, 4]),
        epi_tile_m=64, epi_tile_n=64, grid_minor_dim=draw.choice(list(modes)), grid_tile_width=draw.choice([1, 2]),
        wg_dimension=draw.choice(list(modes)), cluster_dimension=draw.choice([None, *modes]),
    )  # fmt: skip
    a, b = array(256, 256, dtype=kind), array(256, 512, dtype=kind)
    found = hopper_matmul_mgpu.matmul(a, b, None, config)
    x, y = host(a, b)
    close(found, x @ y, 8e-2)
    return config


def hopper_mixed():
    kind = draw.choice([jnp.float16, jnp.bfloat16])
    modes = hopper_mixed_type_matmul_mgpu.MatmulDimension
    config = hopper_mixed_type_matmul_mgpu.TuningConfig(
        tile_m=64, tile_n=draw.choice([64, 128]), tile_k=64, max_concurrent_steps=draw.choice([2, 3]),
        epi_tile_m=64, epi_tile_n=64, wg_dimension=draw.choice(list(modes)), cluster_dimension=draw.choice([None, *modes]),
    )  # fmt: skip
    a, b = jnp.asarray(numbers.integers(-9, 10, (256, 128)), jnp.int8), array(128, 256, dtype=kind)
    found = hopper_mixed_type_matmul_mgpu.mixed_matmul_kernel(a, b, out_dtype=kind, config=config)
    x, y = host(a, b)
    close(np.asarray(found, np.float32) / 16, x @ y / 16, 8e-2)
    return config


def hopper_attention():
    causal, d = draw.random() < 0.5, draw.choice([64, 128])
    config = attention_mgpu.TuningConfig(
        block_q=64,
        block_kv=draw.choice([64, 128]),
        max_concurrent_steps=2,
        use_schedule_barrier=draw.random() < 0.5,
        causal=causal,
    )
    heads, group = 2, draw.choice([1, 2])
    q = array(1, 128 * draw.choice([1, 2]), heads, d)
    k, v = (array(1, 256, heads // group, d) for _ in range(2))
    try:
        found = attention_mgpu.attention(q, k, v, config)
    except ValueError as error:
        if "Causal" not in str(error):
            raise
        config, causal = attention_mgpu.TuningConfig(block_q=64, block_kv=64, max_concurrent_steps=2), False
        found = attention_mgpu.attention(q, k, v, config)
    x, y, z = host(q, k, v)
    y, z = (np.repeat(each, group, 2) for each in (y, z))
    s = np.einsum("bqhd,bkhd->bhqk", x, y)
    if causal:
        s = np.where(np.tril(np.ones(s.shape[2:], bool)), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    close(found, np.einsum("bhqk,bkhd->bqhd", p / p.sum(-1, keepdims=True), z), 2e-2)
    return f"{config} {q.shape}"


def blackwell_matmul():
    kind = draw.choice([jnp.float16, jnp.bfloat16])
    pair = draw.random() < 0.5
    config = blackwell_matmul_mgpu.TuningConfig(
        tile_m=128, tile_n=draw.choice([64, 128]), tile_k=64, max_concurrent_steps=draw.choice([2, 3, 4]), collective=pair,
        epilogue_tile_n=draw.choice([32, 64]), grid_tile_width=draw.choice([1, 2]),
        grid_minor_dim=draw.choice(list(blackwell_matmul_mgpu.MatmulDimension)),
    )  # fmt: skip
    a, b = array(256 * draw.choice([1, 2]), 256, dtype=kind), array(256, 256, dtype=kind)
    found = blackwell_matmul_mgpu.matmul_kernel(a, b, config)
    x, y = host(a, b)
    close(found, x @ y, 8e-2)
    return f"{config} {a.shape}"


def ragged():
    groups = draw.choice([2, 3])
    sizes = numbers.multinomial(128, [1 / groups] * groups)
    across = draw.random() < 0.5
    a = array(128, 128)
    b = array(groups, 64, 128) if across else array(groups, 128, 64)
    options = {
        "block_m": 64,
        "block_n": 64,
        "block_k": 64,
        "max_concurrent_steps": draw.choice([2, 3]),
        "grid_block_n": 1,
    }
    found = ragged_dot_mgpu.ragged_dot(a, b, group_sizes=jnp.asarray(sizes, jnp.int32), transpose_rhs=across, **options)
    x, y = host(a, b)
    parts = np.split(x, np.cumsum(sizes)[:-1])
    expected = np.concatenate([part @ (y[i].T if across else y[i]) for i, part in enumerate(parts)])
    close(found, expected, 8e-2)
    return f"{sizes} {options} {across}"


def ragged_across():
    groups = 2
    sizes = numbers.multinomial(128, [1 / groups] * groups)
    a, b = array(128, 64), array(128, 64)
    options = {
        "block_m": 64,
        "block_n": 64,
        "block_k": 64,
        "max_concurrent_steps": draw.choice([2, 3]),
        "grid_block_n": 1,
    }
    found = transposed_ragged_dot_mgpu.transposed_ragged_dot(a, b, group_sizes=jnp.asarray(sizes, jnp.int32), **options)
    x, y = host(a, b)
    cuts = np.cumsum(sizes)[:-1]
    close(found, np.stack([u.T @ v for u, v in zip(np.split(x, cuts), np.split(y, cuts), strict=True)]), 8e-2)
    return f"{sizes} {options}"


def triton_softmax():
    n, count = draw.choice([64, 200, 513]), draw.choice([3, 6])
    x = array(count, n, dtype=jnp.float32)
    (v,) = host(x)
    e = np.exp(v - v.max(1, keepdims=True))
    close(softmax.softmax(x), e / e.sum(1, keepdims=True), 1e-4)
    return f"{count}x{n}: softmax"


def xla():
    rows, n = draw.choice([3, 7]), draw.choice([50, 300, 700])
    x = array(rows, n, dtype=jnp.float32)
    (v,) = host(x)

    @jax.jit
    def several(t):
        return (
            jnp.cumsum(t, 1),
            jax.nn.softmax(t, 1),
            jnp.sort(t, 1),
            jnp.argmax(t, 1),
            jnp.zeros(17).at[jnp.arange(t.size) % 17].add(t.ravel()),
        )

    total, soft, order, at, binned = several(x)
    close(total, v.cumsum(1), 1e-3)
    e = np.exp(v - v.max(1, keepdims=True))
    close(soft, e / e.sum(1, keepdims=True), 1e-4)
    assert np.array_equal(order, np.sort(v, 1))
    assert np.array_equal(at, v.argmax(1))
    close(binned, np.bincount(np.arange(v.size) % 17, v.ravel(), 17), 1e-2)
    return f"{rows}x{n}: cumsum, softmax, sort, argmax, scatter-add"


HOPPER = [hopper_matmul, hopper_matmul, hopper_mixed, hopper_attention, hopper_attention, ragged, ragged_across]
BLACKWELL = [blackwell_matmul, blackwell_matmul, blackwell_matmul]
for number, kernel in enumerate([triton_softmax, xla, *(BLACKWELL if blackwell else HOPPER)]):
    draw.seed(f"{seed} {number}")
    if wanted and kernel.__name__ not in wanted:
        continue
    try:
        print(f"right: {kernel.__name__} {kernel()}", flush=True)
    except Exception as error:
        text = " ".join(str(error).split())[:300]
        print(f"WRONG: {kernel.__name__} {type(error).__name__}: {text}", flush=True)
