"""References of `tests/data/cases`: products of matrices in float32, and small kernels."""

from __future__ import annotations

import math

import numpy as np

from tools.recorded.codecs import Array, Arrays, Outputs, dec


def product_f32(i: Arrays, a: str, b: str, ta: bool = False, tb: bool = True) -> Outputs:
    """c = a b of types `a` and `b`; ta: a is stored [K, M], tb: b is stored [N, K]."""
    x, y = dec(a, i["a"]).astype(np.float32), dec(b, i["b"]).astype(np.float32)
    return {"c": (x.T if ta else x) @ (y.T if tb else y)}


def product_i64(i: Arrays) -> Outputs:
    return {"c": i["a"].astype(np.int64) @ i["b"].astype(np.int64).T}


def scaled_f32(i: Arrays, a: str, b: str, scale: str, vector: int, atoms: bool = False) -> Outputs:
    """c = a b with a scale factor for every `vector` elements of K; atoms: scale factors lie in 32x4x4 blocks."""

    def scaled(dtype: str, values: Array, factors: Array) -> Array:
        if atoms:
            factors = factors.reshape(*factors.shape[1:3], 32, 4, 4)
            rows, columns = factors.shape[:2]
            factors = factors.transpose(0, 3, 2, 1, 4).reshape(rows * 128, columns * 4)
        return dec(dtype, values).astype(np.float32) * np.repeat(dec(scale, factors).astype(np.float32), vector, 1)

    return {"c": scaled(a, i["a"], i["sa"]) @ scaled(b, i["b"], i["sb"]).T}


def doubled(i: Arrays) -> Outputs:
    return {"y": 2 * i["x"].astype(np.float32)}


def attention_f32(i: Arrays, causal: bool) -> Outputs:
    q, k, v = (i[name].astype(np.float32) for name in "qkv")
    scores = np.einsum("hmd,hnd->hmn", q, k) * 0.125
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[1:], bool)), scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return {"o": (powers / powers.sum(-1, keepdims=True)) @ v}


def elementwise_math(i: Arrays) -> Outputs:
    u, v = i["x"].astype(np.float32), i["y"].astype(np.int64)
    positive = np.maximum(u, 0)
    return {
        "o32": np.where(u > 0, np.log(positive + 1) * np.sqrt(positive), np.exp(u) * np.sin(u) + np.cos(u)),
        "o16": u / (1 + np.exp(-1.702 * u)) + np.vectorize(math.erf)(u),
        "oi": ((v // 7) * (v % 5) ^ (v << 3)) + (v >> 2) + ((v * 12345) >> 32),
    }


def f16_atomics(i: Arrays) -> Outputs:
    return {"o": i["x"].astype(np.float32).reshape(7, 64).sum(0)}


def hist_atomics(i: Arrays) -> Outputs:
    x = i["x"][:1200]
    return {
        "h": np.bincount(x & 31, minlength=32),
        "mx": np.maximum(0, x.max())[None],
        "mn": np.minimum(0, x.min())[None],
        "cnt": np.array([5]),
    }


def layer_norm(i: Arrays) -> Outputs:
    x = i["x"].astype(np.float32)
    mean, inverse = x.mean(1), 1 / np.sqrt(x.var(1) + 1e-5)
    return {"y": (x - mean[:, None]) * inverse[:, None] * i["w"] + i["b"], "mean": mean, "rstd": inverse}


def lock_reduce(i: Arrays) -> Outputs:
    x = np.zeros(512, np.float32)
    x[:500] = i["x"]
    return {"out": x.reshape(4, 128).sum(0), "lock": np.zeros(1)}


def scan_sort_argmax(i: Arrays) -> Outputs:
    x = i["x"]
    return {"y": np.cumsum(x, 1), "z": np.sort(x, 1), "am": np.argmax(x, 1)}


def softmax_f32(i: Arrays) -> Outputs:
    powers = np.exp(i["x"] - i["x"].max(1, keepdims=True))
    return {"y": powers / powers.sum(1, keepdims=True)}


def gather_scatter(i: Arrays) -> Outputs:
    y = i["y"].copy()
    y[i["oidx"]] = 2 * i["x"][i["idx"]]
    return {"y": y}


def tma_reduce_add(i: Arrays) -> Outputs:
    return {"out": i["out"] + i["x"].reshape(4, 16, 96).sum(0)}
