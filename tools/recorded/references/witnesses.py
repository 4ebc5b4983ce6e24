"""References of the witnesses, in NumPy: what `tools/witnesses` declares them with, and their JSON names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tools.recorded.codecs import E4M3, E5M2, Array, Arrays, Outputs, bf16_dec, bf16_enc, dec, e4m3_enc, e5m2_enc, tf32


def product_of_majors(i: Arrays, operands: str, majors: str) -> Outputs:
    a, b = dec(operands, i["a"]), dec(operands, i["b"])
    if operands == "tf32":  # tensormaps of this type round to the nearest, ties to even
        a, b = (
            ((x.view(np.uint32) + 0xFFF + (x.view(np.uint32) >> 13 & 1)) & 0xFFFFE000).view(np.float32) for x in (a, b)
        )
    a = a.astype(np.float64) if majors[0] == "k" else a.astype(np.float64).T
    b = b.astype(np.float64) if majors[1] == "k" else b.astype(np.float64).T
    return {"c": a @ b.T}


def softmax(i: Arrays) -> Outputs:
    x = i["x"].astype(np.float64)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return {"y": e / e.sum(axis=1, keepdims=True)}


def gated(i: Arrays) -> Outputs:
    x, g = dec("bf16", i["x"]).astype(np.float64), dec("bf16", i["g"]).astype(np.float64)
    return {"y": g / (1 + np.exp(-g)) * x}


def five_dimensions(i: Arrays) -> Outputs:
    x = np.pad(i["x"].astype(np.float32), ((0, 0), (1, 4), (0, 4), (0, 8), (0, 32)))[:, :4, :8, 1:5, 8:24]
    y = np.zeros((3, 4, 5, 4, 16), np.float32)
    y[:] = x[:, :, :5] * 2
    return {"y": y, "z": i["z"].astype(np.float32) + x[:, :, :5].sum(0, keepdims=True)}


def gathered_doubled(i: Arrays) -> Outputs:
    x, index = bf16_dec(i["x"]), i["index"]
    y = np.zeros((64, 64), np.float32)
    y[i["to"]] = x[index, 64:] * 2
    return {"y": y}


def reductions(i: Arrays) -> Outputs:
    x = i["x"].reshape(4, 32, 64)
    total = x.astype(np.float64).sum(0)
    return {"s": i["s"] + total, "half": i["half"] + total, "brain": bf16_dec(i["brain"]) + total}


def atomics(i: Arrays) -> Outputs:
    x = i["x"]
    where = x & 31
    found = {name: i[name].copy() for name in ("add", "low", "high", "both", "either", "other", "unsigned", "wide")}
    np.add.at(found["add"], where, x)
    np.minimum.at(found["low"], where, x)
    np.maximum.at(found["high"], where, x)
    np.bitwise_and.at(found["both"], where, x)
    np.bitwise_or.at(found["either"], where, x)
    np.bitwise_xor.at(found["other"], where, x)
    np.maximum.at(found["unsigned"], where, x.view(np.uint32))
    np.add.at(found["wide"], where, x.astype(np.int64) << 32)
    return {**found, "taken": i["swapped"], "swapped": x}


def float_atomics(i: Arrays) -> Outputs:
    x = i["x"].astype(np.float64)
    where = np.arange(len(x)) % 16
    sums, low, high = np.zeros(16), i["low"].copy(), i["high"].copy()
    np.add.at(sums, where, x)
    np.minimum.at(low, where, i["x"])
    np.maximum.at(high, where, i["x"])
    return {"add": sums, "half": sums, "brain": sums, "low": low, "high": high, "double": sums}


def clustered(i: Arrays, kind: str) -> Outputs:
    c = dec(kind, i["a"]).astype(np.float64) @ dec(kind, i["b"]).astype(np.float64).T
    return {"c": c - c.max(1, keepdims=True)}


def padded(i: Arrays) -> Outputs:
    return {"y": np.pad(i["x"], ((0, 7), (0, 16)), constant_values=np.nan)}


def integers(i: Arrays) -> Outputs:
    a, b, c = (i[name].astype(np.int64) for name in ("x", "y", "s"))
    ua, ub = a.astype(np.uint32).astype(np.uint64), b.astype(np.uint32).astype(np.uint64)
    quotient = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    mixed = (np.minimum(a, b) & ~c) | np.abs(np.maximum(a, b))
    return {
        "quotient": quotient,
        "remainder": a - quotient * b,
        "shifted": (a << c).astype(np.int32) ^ (a >> c),
        "high": (ua * ub) >> np.uint64(32),
        "mixed": mixed.astype(np.int32),
        "unsigned": (ua // np.uint64(1000003) + (ub >> np.uint64(3)) % np.uint64(977)).astype(np.uint32),
    }


def narrow_integers(i: Arrays) -> Outputs:
    a, b = i["x"], i["y"]
    long = a.astype(np.int64) * 1234567890123 + b
    quotient = np.sign(long) * (np.abs(long) // 1000)
    rest = long - np.sign(long) * (np.abs(long) // 77) * 77
    return {
        "total": (a.astype(np.int32) + b.astype(np.int32) * 3).astype(np.int8),
        "wide": quotient + rest * (long >> 5),
        "compared": np.where(a < b, a & b, a | b),
    }


def conversions(i: Arrays) -> Outputs:
    x = i["x"]
    e4, e5 = E4M3[e4m3_enc(x)], E5M2[e5m2_enc(x)]
    return {
        "h": x.astype(np.float16),
        "b": bf16_dec(bf16_enc(x)),
        "e4": e4,
        "e5": e5,
        "i8": np.trunc(x),
        "u16": np.trunc(np.abs(x)),
        "back4": (e4 + 1).astype(np.float16),
        "back5": e5,
    }


def roundings(i: Arrays) -> Outputs:
    x = i["x"]
    near = x.astype(np.float16)
    over = np.abs(near.astype(np.float32)) > np.abs(x)
    down = np.where(over, np.nextafter(near, np.float16(0)), near)
    wide = x.astype(np.float64)
    return {
        "down": down,
        "wide": wide / 3 + np.abs(wide),
        "half": np.trunc(x * np.float32(100)).astype(np.float16),
        "whole": np.floor(x) + np.ceil(x * np.float32(0.5)) * 1000,
        "truncated": np.trunc(x * np.float32(1e6)),
    }


def functions(i: Arrays) -> Outputs:
    v = i["x"].astype(np.float64)
    t = np.abs(v)
    steps = np.linspace(0, 1, 2001)
    middle = (steps[1:] + steps[:-1]) / 2
    erf = 2 / np.sqrt(np.pi) * v * np.exp(-((v[:, None] * middle) ** 2)).mean(1)
    ten = (i["x"] * np.float32(10)).astype(np.float64)
    return {
        "y": np.stack(
            [
                np.exp(v),
                np.log2(t + 0.5),
                np.sin(v * 3) * np.cos(v),
                erf,
                1 / np.sqrt(t + 0.1),
                np.tanh(v),
                (t + 0.1) ** 2.5,
                np.arctan2(v, 0.7),
                v * 3 + np.clip(v, -0.5, 0.5),
                1 / (1 + np.exp(-v)) + v / 3,
                np.log1p(t) + np.expm1(v) + np.cbrt(v),
                np.fmod(ten, 3) + np.rint(v * 4),
            ]
        ),
    }


def _philox(counter: Array, seed: int, rounds: int) -> list[Array]:
    m = np.uint64(0xFFFFFFFF)
    c = [counter.astype(np.uint64), *(np.zeros(len(counter), np.uint64) for _ in range(3))]
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    for _ in range(rounds):
        p, q = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(q >> np.uint64(32)) ^ c[1] ^ key[0], q & m, (p >> np.uint64(32)) ^ c[3] ^ key[1], p & m]
        key = [(key[0] + np.uint64(0x9E3779B9)) & m, (key[1] + np.uint64(0xBB67AE85)) & m]
    return [each.astype(np.uint32) for each in c]


def _uniform(words: Array) -> Array:
    x = words.view(np.int32)
    return np.where(x < 0, -x - 1, x).astype(np.float32) * np.float32(4.6566127342e-10)


def randoms(i: Arrays) -> Outputs:
    at = np.arange(1000)
    first, _, _, _ = _philox(at, 42, 10)
    again, more, _, _ = _philox(at, 43, 10)
    r = np.sqrt(-2 * np.log(np.maximum(_uniform(again), 1e-7).astype(np.float64)))
    a, b, c, d = _philox(at, 42, 7)
    return {"u": _uniform(first), "g": r * np.cos(2 * np.pi * _uniform(more)), "k": (a ^ (b + c) ^ d).view(np.int32)}


def steps_to_one(i: Arrays) -> Outputs:
    value, count = i["x"].astype(np.int64), np.zeros(len(i["x"]), np.int32)
    while (value > 1).any():
        count += value > 1
        value = np.where(value > 1, np.where(value % 2 == 1, 3 * value + 1, value // 2), value)
    return {"y": count}


def calls(i: Arrays) -> Outputs:
    x = np.pad(i["x"].astype(np.float64), (0, 168)).reshape(3, 256)
    highest = x.max(1, keepdims=True)
    once = highest**3 * 0.75 + 0.75**2
    twice = (once + highest + 1) ** 3 * 0.5 + 0.25
    return {"y": (x * twice + once).reshape(-1)[:600]}


def scalars(i: Arrays) -> Outputs:
    target = np.abs(i["x"].astype(np.float64))
    low, high = np.zeros_like(target), np.full_like(target, 4.0)
    for _ in range(60):
        middle = (low + high) / 2
        below = middle**3 + middle < i["x"]
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return {"y": low}


def assembly(i: Arrays) -> Outputs:
    x = i["x"].astype(np.uint32)
    bits = (x[:, None] >> np.arange(31, -1, -1).astype(np.uint32)) & 1
    leading = np.where(x == 0, 32, bits.argmax(1))
    return {"y": bits.sum(1) * 100 + leading, "packed": ~(x & 255).astype(np.uint8).reshape(-1, 4)[:, ::-1]}


def quotients(i: Arrays) -> Outputs:
    return {"y": 1000 // i["x"]}


def far(i: Arrays) -> Outputs:
    return {"y": i["x"][::-1]}


def complex_product(i: Arrays) -> Outputs:
    a, b = i["x"].view(np.complex64)[:, 0], i["y"].view(np.complex64)[:, 0]
    return {"z": (a.astype(np.complex128) * b).astype(np.complex64).view(np.float32).reshape(-1, 2)}


def attention(i: Arrays, kind: str, group: int, causal: bool) -> Outputs:
    q, k, v = (dec(kind, i[name]).astype(np.float64) for name in "qkv")
    score = np.einsum("hid,hjd->hij", q, np.repeat(k, group, 0)) * 0.125
    if causal:
        score = np.where(np.tri(score.shape[1], dtype=bool), score, -np.inf)
    highest = score.max(2, keepdims=True)
    power = np.exp(score - highest)
    total = power.sum(2, keepdims=True)
    return {"o": power / total @ np.repeat(v, group, 0), "lse": (highest + np.log(total))[..., 0]}


def attention_backward(i: Arrays) -> Outputs:
    q, k, v, do = (i[name].astype(np.float64) for name in ("q", "k", "v", "do"))
    p = np.exp(np.einsum("hid,hjd->hij", q, k) * 0.125 - i["lse"].astype(np.float64)[..., None])
    dp = np.einsum("hid,hjd->hij", do, v)
    ds = p * (dp - i["delta"].astype(np.float64)[..., None]) * 0.125
    return {"dq": ds @ k, "dk": ds.transpose(0, 2, 1) @ q, "dv": p.transpose(0, 2, 1) @ do}


def scaled(i: Arrays, a: str, b: str, scale: str, vector: int, factors: Sequence[str] = ("sa", "sb")) -> Outputs:
    """c = a b with a scale factor for every `vector` elements of K, in the buffers `factors`; a may have none."""
    x, y = dec(a, i["a"]).astype(np.float64), dec(b, i["b"]).astype(np.float64)
    if factors[0] in i:
        x = x * np.repeat(dec(scale, i[factors[0]]).astype(np.float64), vector, 1)
    return {"c": x @ (y * np.repeat(dec(scale, i[factors[1]]).astype(np.float64), vector, 1)).T}


def convolution(i: Arrays) -> Outputs:
    x, w = i["x"].astype(np.float64), i["w"].astype(np.float64)
    wide = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    p, q = (x.shape[1] + 1) // 2, (x.shape[2] + 1) // 2
    y = sum(wide[:, r : r + 2 * p : 2, s : s + 2 * q : 2][:, :p, :q] @ w[:, r, s].T for r in range(3) for s in range(3))
    return {"y": np.maximum(y, 0)}


def experts(i: Arrays) -> Outputs:
    x, w = bf16_dec(i["x"]).astype(np.float64), bf16_dec(i["w"]).astype(np.float64)
    y = np.zeros((len(x), w.shape[1]))
    for block, expert in enumerate(i["expert_of"]):
        for slot in i["token"][block * 16 : block * 16 + 16]:
            if slot < 2 * len(x) and expert >= 0:
                y[slot // 2] += i["weight"][slot] * (w[expert] @ x[slot // 2])
    return {"y": y}


def unpacked(i: Arrays) -> Outputs:
    b = i["b"]
    low, high = (b << 4).astype(np.int8) >> 4, b >> 4
    w = np.stack([low, high], 2).reshape(len(b), -1).astype(np.float64)
    return {"c": bf16_dec(i["a"]).astype(np.float64) @ (w * np.repeat(i["scale"].astype(np.float64), 64, 1)).T}


def split(i: Arrays) -> Outputs:
    return {"c": i["a"].astype(np.float64) @ i["b"].astype(np.float64), "lock": np.array([3])}


def through(i: Arrays, kind: str) -> Outputs:
    x = dec(kind, i["x"]).astype(np.float32)
    a, b = np.split(x, 2, 1)
    return {"y": np.concatenate([a + b, a - b], 1)}


def doubled_product(i: Arrays, kind: str, ta: bool, tb: bool) -> Outputs:
    x, y = dec(kind, i["a"]).astype(np.float64), dec(kind, i["b"]).astype(np.float64)
    return {"c": 2 * (x.T if ta else x) @ (y.T if tb else y)}


def stealing(i: Arrays) -> Outputs:
    return {"y": np.exp(i["x"].astype(np.float64)), "count": np.ones(len(i["count"]), np.int32)}


def gathered_scattered(i: Arrays) -> Outputs:
    x, index = dec("bf16", i["x"]), i["index"]
    y = np.zeros((128, 64), np.float32)
    y[index[64:]] = x[index[:64], 32:96]
    return {"y": y}


def packed(i: Arrays) -> Outputs:
    x, y = i["x"].astype(np.float64), i["y"].astype(np.float64)
    return {"z": x * y + (x + y), "w": x * x}


def staged(i: Arrays) -> Outputs:
    x, total, rows = i["x"].astype(np.float64), 0.0, []
    for row in x:
        total = total * 0.5 + row
        rows.append(total)
    return {"y": np.stack(rows)}


def arriving(i: Arrays) -> Outputs:
    return {"y": i["x"].astype(np.float64) * 2}


def f8_product(i: Arrays, kind: str) -> Outputs:
    # wgmma of 8-bit floats adds 32 products and D at a time: each is cut 13 bits below the largest exponent among
    # them, and so is the total (measured, H200: docs/hardware.md).
    a, b = dec(kind, i["a"]).astype(np.float64), dec(kind, i["b"]).astype(np.float64)

    def exponents(values, least):
        return np.where(values == 0, -50, np.maximum(np.frexp(values)[1] - 1, least))

    least = {"e4m3": -6, "e5m2": -14}[kind]
    ea, eb = exponents(a, least), exponents(b, least)
    c = np.zeros((len(a), len(b)))
    for first in range(0, a.shape[1], 32):
        steps = range(first, first + 32)
        unit = 2.0 ** (np.max([exponents(c, -126), *(ea[:, k, None] + eb[:, k] for k in steps)], axis=0) - 13)
        total = np.trunc(c / unit) + sum(np.trunc(a[:, k, None] * b[:, k] / unit) for k in steps)
        kept = 2.0 ** (exponents(total, 0) - 13)
        c = np.trunc(total / kept) * kept * unit
    return {"c": c}


def from_registers(i: Arrays) -> Outputs:
    return {"c": (i["a"] * np.float16(2)).astype(np.float64) @ i["b"].astype(np.float64)}


def specialized(i: Arrays) -> Outputs:
    x = i["x"].astype(np.float64)
    return {"y": x.sum(0), "z": x.max(0)}


def reduced(i: Arrays) -> Outputs:
    x = i["x"].reshape(3, 32, 32)
    return {
        "s": i["s"] + x.sum(0, dtype=np.int32),
        "l": np.minimum(i["l"], x.min(0)),
        "h": np.maximum(i["h"], x.max(0)),
        "b": i["b"] & np.bitwise_and.reduce(x, 0),
        "o": i["o"] | np.bitwise_or.reduce(x, 0),
        "e": i["e"] ^ np.bitwise_xor.reduce(x, 0),
    }


def patches(i: Arrays) -> Outputs:
    x = i["x"].astype(np.float32)
    n, h, w, c = x.shape
    wide = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return {"y": np.stack([wide[:, r : r + h, s : s + w].reshape(n * h * w, c) for r in range(3) for s in range(3)])}


def scattered(i: Arrays) -> Outputs:
    z = np.empty_like(i["x"])
    z[i["index"]] = i["x"] * 3
    return {"y": i["x"][i["index"]], "z": z}


def across(i: Arrays) -> Outputs:
    x = i["x"].astype(np.float64)
    return {"y": (x - x.mean(0)).T}


def spread(i: Arrays) -> Outputs:
    return {"y": i["x"].astype(np.float32) + 1}


def product(i: Arrays, a: str, b: str, ta: bool, tb: bool) -> Outputs:
    x, y = dec(a, i["a"]).astype(np.float64), dec(b, i["b"]).astype(np.float64)
    if a == "tf32":
        x, y = tf32(x).astype(np.float64), tf32(y).astype(np.float64)
    return {"c": (x.T if ta else x) @ (y.T if tb else y)}


def rms_norm(i: Arrays) -> Outputs:
    x, w = bf16_dec(i["x"]), bf16_dec(i["w"])
    scale = 1 / np.sqrt((x.astype(np.float64) ** 2).mean(1) + 1e-5)
    return {"r": scale, "y": x * scale[:, None] * w}


def online_softmax(i: Arrays) -> Outputs:
    x = i["x"].astype(np.float64)[:, :333]
    e = np.exp(x - x.max(1, keepdims=True))
    return {"y": e / e.sum(1, keepdims=True)}


def layer_norm_backward(i: Arrays) -> Outputs:
    g, x, w = (i[name].astype(np.float64) for name in ("g", "x", "w"))
    centred = x - x.mean(1, keepdims=True)
    inverse = 1 / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    normal, weighted = centred * inverse, w * g
    dx = (weighted - normal * (normal * weighted).mean(1, keepdims=True) - weighted.mean(1, keepdims=True)) * inverse
    group = (np.arange(len(x)) // 3) % 2
    dw = np.stack([(g * normal)[group == k].sum(0) for k in (0, 1)])
    db = np.stack([g[group == k].sum(0) for k in (0, 1)])
    return {"dx": dx, "dw": dw, "db": db, "lock": np.array([0, 0, 1, 1])}


def welford(i: Arrays) -> Outputs:
    x = i["x"].astype(np.float64)
    return {"mean": x.mean(1), "variance": x.var(1)}


def scans(i: Arrays) -> Outputs:
    x, a = i["x"].astype(np.float64), i["a"].astype(np.float64)
    state = np.zeros_like(x)
    for k in range(x.shape[1]):
        state[:, k] = x[:, k] + (a[:, k] * state[:, k - 1] if k else 0)
    return {
        "total": x.cumsum(1),
        "product": a.cumprod(0),
        "backward": x[:, ::-1].cumsum(1)[:, ::-1],
        "state": state,
        "highest": np.maximum.accumulate(x, 0),
    }


def order(i: Arrays) -> Outputs:
    x = i["x"]
    return {
        "ascending": np.sort(x, 1),
        "descending": -np.sort(-x, 1),
        "best": x.max(1),
        "where": x.argmax(1),
        "least": x.argmin(1),
        "flipped": x[:, ::-1],
    }


def top(i: Arrays) -> Outputs:
    return {"y": -np.sort(-i["x"].astype(np.float32), 1)[:, :8]}


def counts(i: Arrays) -> Outputs:
    return {"h": np.bincount(i["x"], minlength=64)}


def shuffles(i: Arrays) -> Outputs:
    x = i["x"].astype(np.float32)
    return {
        "taken": np.take_along_axis(x, i["index"].astype(np.int64), 1),
        "pairs": np.stack([x, -x], 2).reshape(len(x), -1),
        "first": x[:, 0::2],
        "second": x[:, 1::2],
        "turned": x.T * 2,
    }


def cross_entropy(i: Arrays) -> Outputs:
    x, label = bf16_dec(i["x"]).astype(np.float64), i["label"]
    e = np.exp(x - x.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    used = label >= 0
    return {
        "loss": np.where(used, -np.log(p[np.arange(len(x)), label]), 0),
        "dx": np.where(used[:, None], p - np.eye(x.shape[1])[label], 0),
    }


def sums_of_exponentials(i: Arrays) -> Outputs:
    return {"y": np.exp(i["x"].astype(np.float64)).sum(1)}


def plain_product(i: Arrays) -> Outputs:
    return {"c": i["a"].astype(np.float64) @ i["b"]}


def block_scan(i: Arrays) -> Outputs:
    x = i["x"].reshape(4, 128)
    return {"sums": x.cumsum(1).reshape(-1), "lock": [0, (x > 3).sum(), 4, (x > 8).any(1).sum()]}


def atomics_of_llvm(i: Arrays) -> Outputs:
    p, x = i["p"], i["x"]
    p[:1] += x.sum(dtype=np.uint32)
    p[1:2] -= x.sum(dtype=np.uint32)
    p[2] &= np.bitwise_and.reduce(x | 0xFF)
    p[3] |= np.bitwise_or.reduce(x & 0xF0F)
    p[4] ^= np.bitwise_xor.reduce(x)
    p[5] = max(p[5], x.max())
    p.view(np.int32)[6] = min(p.view(np.int32)[6], x.view(np.int32).min())
    np.add.at(p[8:9].view(np.uint8), np.arange(len(x)) % 4, np.uint8(1))
    np.add.at(p[9:].view(np.uint16), np.arange(len(x)) % 2, x.astype(np.uint16))
    p[7] = p[7] if len(x) % 2 == 0 else ~p[7]
    most = x.max().astype(np.float32)
    return {"p": p, "q": i["q"] + (x.astype(np.uint64) << 20).sum(), "f": [len(x), most], "d": [len(x) / 2]}


def causal_attention_of_heads(i: Arrays) -> Outputs:
    q, k, v = (i[name].astype(np.float64) for name in "qkv")
    scores = np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(q.shape[-1])
    scores[..., ~np.tri(q.shape[1], dtype=bool)] = -np.inf
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return {"y": np.einsum("bhij,bjhd->bihd", p / p.sum(-1, keepdims=True), v)}
