"""References of `tests/data/handwritten`, named like the kernels they belong to."""

from __future__ import annotations

import numpy as np

from tools.recorded.codecs import Array, Arrays, Outputs, dec, tf32


def attention_rows(i: Arrays, kind: str) -> Outputs:
    q, k, v = (dec(kind, i[name]).astype(np.float64) for name in "qkv")
    scores = q @ k.T * 0.125
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return {"o": p / p.sum(-1, keepdims=True) @ v}


def ampere_splitk(i: Arrays) -> Outputs:
    return {"c": i["a"].astype(np.float32) @ i["b"].astype(np.float32).T, "sem": np.zeros(9)}


def cluster_histogram(i: Arrays) -> Outputs:
    return {"bins": np.bincount(i["x"] % 128, minlength=128)}


def conv_im2col(i: Arrays) -> Outputs:
    x = np.pad(i["x"].astype(np.float32), ((0, 0), (1, 1), (1, 1), (0, 0)))
    f = i["f"].astype(np.float32)
    y = np.asarray(sum(x[:, t // 3 : t // 3 + 8, t % 3 : t % 3 + 12] @ f[:, t].T for t in range(9)))
    return {"y": y.reshape(192, 64)}


def cub_sort(i: Arrays) -> Outputs:
    x = np.sort(i["x"], axis=1)
    heads = np.concatenate([np.ones((3, 1), int), x[:, 1:] != x[:, :-1]], axis=1)
    return {
        "sorted": x,
        "ranks": np.cumsum(heads, axis=1),
        "maxima": (x[:, 3::4] - 8 * np.arange(64)).max(1),
        "bins": np.stack([np.bincount(row & 15, minlength=16) for row in x]),
    }


def dsmem_ring(i: Arrays) -> Outputs:
    y = np.asarray(sum(np.roll(i["x"], hop, axis=1) * (hop + 1) for hop in range(8)))
    # Thread t of CTA r stores its own sum at index r of CTA t.
    return {"y": y, "firsts": y[:, :, :8].transpose(0, 2, 1)}


def fp8_promotion(i: Arrays) -> Outputs:
    a, b = (
        dec("e4m3", i["a"]).astype(np.float64).reshape(128, 4, 128),
        dec("e5m2", i["b"]).astype(np.float64).reshape(96, 4, 128),
    )
    scaled = np.einsum("mbk,nbk->bmn", a, b) * i["sa"][:, :, None] * np.repeat(i["sb"], 32, axis=1)[:, None, :]
    return {"c": scaled.sum(0)}


def gather_gemm(i: Arrays) -> Outputs:
    c = np.empty((256, 32), np.float32)
    c[i["to"]] = tf32(i["a"][i["from"]]) @ tf32(i["b"]).T
    return {"c": c}


def grid_barrier(i: Arrays) -> Outputs:
    a = b = i["ping"].astype(np.float64)
    for _ in range(7):
        b, a = a, 0.25 * np.roll(a, 1) + 0.5 * a + 0.25 * np.roll(a, -1)
    return {"pong": a, "ping": b}


_SHAPES = ((100, 80, 128), (64, 24, 72), (37, 65, 8))


def grouped_gemm(i: Arrays) -> Outputs:
    out = np.full(i["c"].shape, np.nan, np.float32)
    out[:] = i["c"]
    for g, (m, n, k) in enumerate(_SHAPES):
        a = i["a"][g].reshape(-1)[: m * k].reshape(m, k).astype(np.float32)
        b = i["b"][g].reshape(-1)[: n * k].reshape(n, k).astype(np.float32)
        out[g].reshape(-1)[: m * n] = (a @ b.T).reshape(-1)
    return {"c": out}


def groups(i: Arrays) -> Outputs:
    x = i["x"][:, np.arange(128) ^ 5].astype(np.int64)
    tiles, warps = x.reshape(-1, 16), x.reshape(-1, 32)
    scans = np.cumsum(tiles, 1) - tiles + tiles.max(1, keepdims=True)
    same = (warps[:, :, None] & 3) == (warps[:, None, :] & 3)
    labels = (same * warps[:, None, :]).sum(2) * 64 + same.sum(2)
    chosen = warps % 3 == 0
    places = np.where(chosen, np.cumsum(chosen, 1) - 1, 0xFFFFFFFF)
    sums = x.sum(1)
    return {
        "scans": scans.reshape(4, 128),
        "labels": labels.reshape(4, 128),
        "places": places.reshape(4, 128),
        "counter": [chosen.sum()],
        "totals": np.concatenate([np.repeat(sums.reshape(2, 2).sum(1), 2), warps[3::4].sum(1)]),
    }


def _ackermann(m: int, n: int) -> int:
    return n + 1 if m == 0 else _ackermann(m - 1, 1 if n == 0 else _ackermann(m, n - 1))


def language(i: Arrays) -> Outputs:
    x = i["x"]
    rows = np.arange(100)
    first = np.stack([np.concatenate([np.sort(row[: 5 + r % 5]), row[5 + r % 5 :]]) for r, row in enumerate(x)])
    kinds = x.reshape(-1)[rows] % 3
    own = x.reshape(-1)[rows]
    return {
        "sorted": first,
        "called": np.choose(kinds, [2 * own, own * own, -own]),
        "areas": np.where(rows % 2, 3.0 * rows * rows, 2.0 * rows),
        "recursed": [_ackermann(r % 3, r % 4) for r in range(100)],
    }


def legacy(i: Arrays) -> Outputs:
    x = np.zeros(7 * 768, np.int64)
    x[:5000] = i["x"]
    parts = x.reshape(7, 6, 128).sum((0, 2))
    shifted = np.repeat(np.roll(parts, -1), 128) + np.arange(768)
    return {"parts": parts, "total": [x.sum()], "ticket": [0], "shifted": np.roll(shifted, -77)}


def libcu_pipeline(i: Arrays) -> Outputs:
    x = np.roll(i["x"].astype(np.int64), -37, axis=2).reshape(3, 5, 4, 128)
    sums = (x.sum(2) * np.arange(1, 6)[None, :, None]).sum(1)
    eights = np.repeat(sums.reshape(3, 16, 8).sum(2), 8, axis=1)
    return {"y": sums[:, ::-1] + eights, "total": [sums.sum()]}


def libcu_sync(i: Arrays) -> Outputs:
    x = i["x"]
    rows = np.sort(x.reshape(3, 4, 128), axis=2)
    items = rows.reshape(3, 4, 32, 4)
    first = items[..., 0].reshape(3, 8, 16)
    scanned = (np.cumsum(first, 2) - first).reshape(3, 4, 32) + items[..., 1].sum(2, keepdims=True)
    merged = np.sort(x, axis=1)
    chain = 1
    for row in merged:
        chain = chain * 3 + int(row[0])
    return {
        "sorted": rows.reshape(3, 512),
        "merged": merged,
        "scanned": scanned.reshape(3, 128),
        "passed": merged[:, 96 * 4] + 1,
        "chain": [chain],
    }


def libcu_tma(i: Arrays) -> Outputs:
    y = np.roll(i["x"], -1, axis=2) - i["x"]
    norms = (y.astype(np.float64) ** 2).sum((1, 2))
    return {"y": y, "norms": np.append(norms, norms.sum())}


def _plain(factors: Array, rows: int) -> Array:
    """Atoms [blocks, steps, 32, 4 row groups, 4 of K] as a matrix [rows, K / 32]: the first `rows` of each block."""
    f = dec("e8m0", factors).astype(np.float64)
    return f.transpose(0, 3, 2, 1, 4).reshape(len(f), 128, -1)[:, :rows].reshape(len(f) * rows, -1)


def mxfp8_pair(i: Arrays) -> Outputs:
    a = dec("e4m3", i["a"]).astype(np.float64) * np.repeat(_plain(i["sfa"], 128), 32, axis=1)
    b = dec("e5m2", i["b"]).astype(np.float64) * np.repeat(_plain(i["sfb"], 64), 32, axis=1)
    return {"c": a @ b.T}


def pingpong_gemm(i: Arrays) -> Outputs:
    x = i["a"].astype(np.float64) @ i["b"].astype(np.float64).T + i["bias"]
    return {"c": 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))}


def ring_noinc(i: Arrays) -> Outputs:
    return {"y": i["y"] + i["x"].sum((0, 1)) * [1, 2, 1, -1]}


def scan_lookback(i: Arrays) -> Outputs:
    return {"y": np.cumsum(i["x"], dtype=np.int32)}


def spinlock_table(i: Arrays) -> Outputs:
    rows = []
    for key in range(40):
        own = i["values"][i["keys"] == key]
        rows.append((len(own), own.min(), own.max()) if len(own) else (0, 0, 0))
    return {"by_key": rows, "locks": np.zeros(64)}


def splitk_cluster(i: Arrays) -> Outputs:
    a, b = i["a"].astype(np.float32), i["b"].astype(np.float32)
    return {"c": np.einsum("tpscmk,pscnk->tmn", a, b)}


_LANES = np.arange(32)


def _mask(lanes: Array) -> int:
    return int(sum(1 << int(lane) for lane in np.flatnonzero(lanes)))


def _facts_of(values: Array) -> list[int]:
    """Of one warp."""
    words = [int(v) & 0xFFFFFFFF for v in values]
    base = (int(values.max()) & 0xFFFFFFFF) ^ int(np.bitwise_xor.reduce(values.view(np.uint32)))
    odd, third = (values & 1) != 0, ((values & 1) == 0) & (_LANES % 3 == 0)
    found = []
    for lane, word in enumerate(words):
        fact = base
        if odd[lane]:
            same = odd & ((values & 6) == (values[lane] & 6))
            fact += _mask(odd).bit_count() * 1000 + int(_LANES[odd].sum()) + (_mask(same) & 0xFF)
        elif third[lane]:
            here = _mask(third & ((values & 2) != 0))
            reverse = int(f"{lane:032b}"[::-1], 2)
            clz, ffs = 32 - (word | 1).bit_length(), (word & -word).bit_length()
            fact ^= (here << 3 & 0xFFFFFFFF) | reverse | clz | ffs
        permuted = (word & 0xFF) | lane << 8 | (word >> 8 & 0xFF) << 16
        found.append((fact + 1 + (lane << 7 | word >> 25) + permuted) & 0xFFFFFFFF)
    return found


def warp_kit(i: Arrays) -> Outputs:
    x, by = i["x"], i["bytes"].astype(np.int64)
    warps = x.reshape(16, 32)
    tile = (x.reshape(16, 32)[np.arange(32) % 16].astype(np.int64) + np.arange(32)[:, None]).astype(np.int32)
    signed = np.where(by > 127, by - 256, by)
    lanes = np.tile(np.arange(32), 16)
    dots = signed @ [-2, 2, -1, 1] + (by[:, 0] + 1) % 256 + np.abs(x.astype(np.int64) - lanes) + 3
    h = np.stack([by[:, 0] * 0.5, by[:, 1] - 100.0], axis=1)
    return {
        "sorted": np.sort(warps, axis=1).reshape(-1),
        "facts": np.concatenate([_facts_of(warp) for warp in warps]),
        "transposed": np.stack([tile.T, tile.T]),
        "bins": np.bincount(x & 15, minlength=16),
        "dots": dots.astype(np.uint32).view(np.int32),
        "halves": h * 2 + np.minimum(h, -1),
    }


def wgmma_attention(i: Arrays) -> Outputs:
    q, k, v = (i[name].astype(np.float64) for name in "qkv")
    scores = np.where(np.tril(np.ones((150, 150), bool)), q @ k.transpose(0, 2, 1) * 0.125, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return {"o": p / p.sum(-1, keepdims=True) @ v}


def _kept(four: Array) -> list[float]:
    """The first two of four values that are not zero, and zeros to make two."""
    chosen = []
    for j, value in enumerate(four):
        if (value != 0 and len(chosen) < 2) or j - len(chosen) >= 2:
            chosen.append(j)
    return [value if j in chosen else 0 for j, value in enumerate(four)]


def wgmma_sparse(i: Arrays) -> Outputs:
    a = np.array([_kept(four) for four in i["a"].reshape(-1, 4)], np.float32).reshape(64, 64)
    return {"c": a @ i["b"].astype(np.float32)}
