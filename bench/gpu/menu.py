"""The kernels that a dispatcher may choose among: families of tiles, each a list of specs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import product
from math import gcd
from typing import Any

from bench.gpu.arms import Spec
from ptxgen.gemm import GemmPlan, PlanError, find

RUNG = "hopper/overlapped"
GEMV = "hopper/gemv"
#: Shared memory of a CTA in bytes, and what an epilogue with one or two chunks takes of it besides its columns.
_SHARED, _RESERVED = 232448, 2048
#: Shared memory that leaves an SM an L1 cache.
_CARVED = 167936
_ALONE = {"cluster_m": 1, "panel": 0}
_PANELS = {"cluster_m": 1, "panel": 8}
_CLUSTERS = ({"cluster_m": 2}, {"cluster_n": 2})
_FOURS = ({"cluster_m": 2, "cluster_n": 2}, {"cluster_m": 4}, {"cluster_n": 4})
_LARGE = (
    *((64, n_tile) for n_tile in (64, 96, 128, 160, 192, 256)),
    *((128, n_tile) for n_tile in (48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256)),
    *((192, n_tile) for n_tile in (64, 96, 112, 128, 144, 160, 176, 192)),
    *((256, n_tile) for n_tile in (80, 96, 112, 128)),
)
#: Clusters of four and eight.
_BOTH = (*_FOURS, {"cluster_m": 4, "cluster_n": 2}, {"cluster_m": 2, "cluster_n": 4})
#: Tiles that clusters multicast.
_MULTICAST = (
    *((64, n_tile) for n_tile in range(48, 177, 8)),
    *((128, n_tile) for n_tile in range(48, 225, 8)),
    *((192, n_tile) for n_tile in range(80, 209, 8)),
    *((256, n_tile) for n_tile in range(80, 177, 8)),
)
#: Tiles of a warpgroup that takes turns.
_TURNS = (*((64, n_tile) for n_tile in range(64, 257, 16)), *((128, n_tile) for n_tile in range(64, 201, 8)))
#: Tiles of split K beside those of two and four CTAs with sums of their own.
_SPLIT = (
    *((64, n_tile) for n_tile in range(128, 257, 32)),
    *((128, n_tile) for n_tile in (*range(96, 193, 16), 208, 224, 256)),
    *((192, n_tile) for n_tile in (96, 112, 128, 144, 160)),
    *((256, n_tile) for n_tile in (64, 80, 96)),
)
_SPLIT_SWAPPED = (
    *((64, n_tile) for n_tile in (64, 96, 112, 128, 144, 160, 176, 192, 208, 224, 256)),
    *((128, n_tile) for n_tile in (32, 64, 80, *range(96, 225, 8), 240, 256)),
    *((192, n_tile) for n_tile in (96, 112, 128, 144, 160)),
)
_SPLITS = (
    *({"split_k": parts, "sums": "ring"} for parts in range(2, 9)),
    *({"split_k": parts} for parts in (3, 5, 6)),
)
#: Tiles of two wgmmas side by side, with the chunks of C that leave the most stages.
_WIDE = (
    *((64, n_tile, {}) for n_tile in (272, 288, 320, 384)),
    (128, 272, {}),
    (128, 288, {"chunk": 32, "chunk_buffers": 2}),
    (128, 304, {"chunk": 152, "chunk_buffers": 1}),
    (128, 320, {}),
    (128, 336, {"chunk": 168, "chunk_buffers": 1}),
    (128, 352, {"chunk": 32, "chunk_buffers": 2}),
    (128, 384, {}),
    (192, 208, {"chunk": 104, "chunk_buffers": 1}),
    (192, 224, {"chunk": 32, "chunk_buffers": 1}),
    (192, 240, {"chunk": 120, "chunk_buffers": 1}),
    (192, 256, {}),
)
#: The same with a stage more, whose chunks are short.
_WIDE_RINGS = (
    (64, 272, {"chunk": 16, "chunk_buffers": 4}),
    (128, 272, {"chunk": 16, "chunk_buffers": 4}),
    (128, 304, {"chunk": 16, "chunk_buffers": 2}),
    (192, 208, {"chunk": 16, "chunk_buffers": 2}),
    (192, 240, {"chunk": 16, "chunk_buffers": 1}),
)
_WIDE_SPLIT = ((64, 272), (64, 320), (64, 384), (128, 272), (128, 288), (128, 320), (128, 384), (192, 256))
#: Tiles whose K blocks several clusters may share.
_OF_CLUSTERS = (
    *((64, n_tile) for n_tile in (64, 96, *range(128, 257, 16))),
    *((128, n_tile) for n_tile in (64, 80, *range(96, 257, 16), 104, 120, 152, 168, 184, 200)),
    *((192, n_tile) for n_tile in (96, 128, 144, 160, 192, 208)),
    *((256, n_tile) for n_tile in (80, 96, 112, 128, 144)),
)
#: Operands as products: their options by name.
PRODUCTS: dict[str, dict[str, Any]] = {
    "bf16": {"dtype": "bf16"},
    "fast": {"dtype": "e4m3", "c_dtype": "bf16", "promote": False},
    "promoted": {"dtype": "e4m3", "c_dtype": "bf16", "promote": True},
}


def _steps(first: int, last: int, step: int = 8) -> range:
    return range(first, last + 1, step)


def _many() -> Iterator[dict[str, Any]]:
    """Persistent kernels for many tiles, with and without clusters."""
    for n_tile in _steps(64, 200):
        yield {**_PANELS, "n_tile": n_tile, "consumers": "pingpong"}
    for n_tile in _steps(96, 200, 16):
        for cluster in _CLUSTERS:
            yield {**_PANELS, "n_tile": n_tile, "consumers": "pingpong", **cluster}
    for m_tile, last in ((128, 256), (192, 208), (256, 128)):
        groups = {"warpgroups": 2} if m_tile == 256 else {}
        for n_tile in _steps(64, last):
            yield {**_PANELS, "m_tile": m_tile, "n_tile": n_tile, **groups}
        for n_tile, cluster in product(_steps(96, last, 16), _CLUSTERS):
            yield {**_PANELS, "m_tile": m_tile, "n_tile": n_tile, **groups, **cluster}
    for n_tile in _steps(96, 256, 32):
        yield {**_PANELS, "m_tile": 64, "n_tile": n_tile}
    for (m_tile, n_tile), cluster in product(_LARGE, _FOURS):
        groups = {"warpgroups": 2} if m_tile == 256 else {}
        yield {**_PANELS, "m_tile": m_tile, "n_tile": n_tile, **groups, **cluster}
        yield {**_ALONE, "scheduler": "grid", "m_tile": m_tile, "n_tile": n_tile, **groups, **cluster}
        if m_tile == 128 and n_tile <= 192:
            yield {**_PANELS, "n_tile": n_tile, "consumers": "pingpong", **cluster}
    for n_tile in _steps(136, 176):
        wide = {"m_tile": 256, "n_tile": n_tile, "warpgroups": 2}
        for cluster in (_ALONE, *_CLUSTERS):
            yield {**_PANELS, **wide, **cluster, "panel": 8}
            yield {**_ALONE, **wide, **cluster, "scheduler": "grid"}
    for n_tile in _steps(96, 256, 16):
        yield {**_PANELS, "c_major": "m", "m_tile": 128, "n_tile": n_tile}
        yield {**_PANELS, "c_major": "m", "m_tile": 128, "n_tile": n_tile, "consumers": "pingpong"}


def _few() -> Iterator[dict[str, Any]]:
    """One tile a CTA, A and B in their own place."""
    grid = {**_ALONE, "scheduler": "grid"}
    keep = {"a_hint": "evict_last", "b_hint": "evict_first"}
    for n_tile in _steps(32, 256, 16):
        yield {**grid, "m_tile": 64, "n_tile": n_tile}
        yield {**grid, "m_tile": 64, "n_tile": n_tile, **keep}
    for m_tile, first, last in ((128, 32, 256), (192, 64, 208), (256, 64, 128)):
        groups = {"warpgroups": 2} if m_tile == 256 else {}
        for n_tile in _steps(first, last):
            yield {**grid, "m_tile": m_tile, "n_tile": n_tile, **groups}
    for m_tile, n_tile, cluster in product((64, 128, 192), _steps(64, 256, 16), _CLUSTERS):
        yield {**grid, "m_tile": m_tile, "n_tile": n_tile, **cluster}
    for m_tile, n_tile, parts in product((64, 128, 192), _steps(64, 256, 16), (2, 4)):
        yield {**grid, "m_tile": m_tile, "n_tile": n_tile, "split_k": parts}
    for (m_tile, n_tile), more in product(_SPLIT, _SPLITS):
        yield {**grid, "m_tile": m_tile, "n_tile": n_tile, **more}
    for n_tile in (32, 48, 64, 96, 128):
        yield {**grid, "m_tile": 64, "n_tile": n_tile, "share": 2}
        yield {**grid, "m_tile": 64, "n_tile": n_tile, "share": 2, "split_k": 2}


def _swapped() -> Iterator[dict[str, Any]]:
    """A and B change places: the rows of A are the columns of a tile."""
    grid = {**_ALONE, "scheduler": "grid", "c_major": "m"}
    keep = {"a_hint": "evict_first", "b_hint": "evict_last"}
    for m_tile, n_tile in product((64, 128), _steps(16, 256)):
        yield {**grid, **keep, "m_tile": m_tile, "n_tile": n_tile}
    for m_tile, n_tile in product((192, 256), _steps(16, 208, 16)):
        groups = {"warpgroups": 2} if m_tile == 256 and n_tile > 96 else {}
        yield {**grid, **keep, "m_tile": m_tile, "n_tile": n_tile, **groups}
    for m_tile, n_tile in product((64, 128), (*_steps(16, 64), *_steps(72, 256))):
        yield {**grid, **keep, "m_tile": m_tile, "n_tile": n_tile, "split_k": 2}
    for m_tile, n_tile in product((64, 128), (*_steps(16, 64, 16), *_steps(80, 256, 16))):
        yield {**grid, **keep, "m_tile": m_tile, "n_tile": n_tile, "split_k": 4}
    for (m_tile, n_tile), more in product(_SPLIT_SWAPPED, _SPLITS):
        yield {**grid, **keep, "m_tile": m_tile, "n_tile": n_tile, **more}
    for n_tile in _steps(16, 128, 16):
        yield {**grid, **keep, "m_tile": 64, "n_tile": n_tile, "split_k": 8}
        yield {**grid, **keep, "m_tile": 64, "n_tile": n_tile, "share": 2}
        yield {**grid, **keep, "m_tile": 64, "n_tile": n_tile, "share": 2, "split_k": 2}
    for n_tile in (16, 32, 64):
        yield {**grid, **keep, "m_tile": 64, "n_tile": n_tile, "share": 3}
        yield {**grid, **keep, "m_tile": 64, "n_tile": n_tile, "share": 2, "split_k": 4}
        yield {**grid, **keep, "m_tile": 64, "n_tile": n_tile, "share": 2, "scheduler": "static", "slots": 264}
    for m_tile, n_tile in product((64, 128), (16, 32, 64, 96, 128)):
        yield {**grid, **keep, "m_tile": m_tile, "n_tile": n_tile, "scheduler": "static"}
    for n_tile in _steps(64, 256):
        yield {**grid, "m_tile": 128, "n_tile": n_tile}
        yield {**grid, "m_tile": 128, "n_tile": n_tile, "cluster_n": 2}
    for n_tile in _steps(96, 256, 16):
        yield {**grid, "m_tile": 64, "n_tile": n_tile, "cluster_n": 2}
        yield {**grid, "m_tile": 192, "n_tile": n_tile}


def _clusters() -> Iterator[dict[str, Any]]:
    """Clusters that multicast along one or both sides, also of a split K; A and B in their own place or not."""
    for turned, (m_tile, n_tile), cluster in product(({}, {"c_major": "m"}), _MULTICAST, (*_CLUSTERS, *_BOTH)):
        groups = {"warpgroups": 2} if m_tile == 256 else {}
        tile = {"m_tile": m_tile, "n_tile": n_tile, **groups, **turned, **cluster}
        yield {**_PANELS, **tile}
        yield {**_ALONE, "scheduler": "grid", **tile}
    for turned, (m_tile, n_tile), cluster in product(({}, {"c_major": "m"}), _TURNS, (_ALONE, *_CLUSTERS, *_BOTH)):
        yield {**_PANELS, "m_tile": m_tile, "n_tile": n_tile, "consumers": "pingpong", **turned, **cluster, "panel": 8}
    for turned, (m_tile, n_tile) in product(({}, {"c_major": "m"}), _MULTICAST[::2]):
        for cluster, parts in ((_CLUSTERS[0], (2, 3, 4)), (_CLUSTERS[1], (2, 3, 4)), (_BOTH[0], (2,))):
            for part in parts:
                split = {"split_k": part, "sums": "ring"}
                yield {**_ALONE, "scheduler": "grid", "m_tile": m_tile, "n_tile": n_tile, **turned, **cluster, **split}


def _wide() -> Iterator[dict[str, Any]]:
    """Tiles of more columns than one wgmma has, or than the registers of a launch leave it."""
    keep = {"a_hint": "evict_first", "b_hint": "evict_last"}
    grid = {**_ALONE, "scheduler": "grid"}
    for turned, clusters in product(({}, {"c_major": "m"}), ((*_CLUSTERS, _FOURS[0]), (_CLUSTERS[0],))):
        for m_tile, n_tile, chunks in _WIDE if len(clusters) > 1 else _WIDE_RINGS:
            tile = {"m_tile": m_tile, "n_tile": n_tile, **chunks, **turned}
            yield {**_PANELS, **tile}
            yield {**grid, **tile, **(keep if turned else {})}
            for cluster in clusters:
                yield {**_PANELS, **tile, **cluster}
                yield {**grid, **tile, **cluster}
    for (m_tile, n_tile, chunks), cluster in product(_WIDE[4:8], _FOURS[1:]):
        yield {**_PANELS, "m_tile": m_tile, "n_tile": n_tile, **chunks, **cluster}
        yield {**grid, "m_tile": m_tile, "n_tile": n_tile, **chunks, **cluster}
    for turned, (m_tile, n_tile), parts in product(({}, {"c_major": "m", **keep}), _WIDE_SPLIT, (2, 3, 4)):
        yield {**grid, "m_tile": m_tile, "n_tile": n_tile, "split_k": parts, "sums": "ring", **turned}


def _k_clusters() -> Iterator[dict[str, Any]]:
    """K split over several clusters, which multicast, or split their share themselves, or both."""
    grid = {**_ALONE, "scheduler": "grid"}
    ring = {"sums": "ring"}
    shares = [
        *product(({},), (2, 3, 4, 6)),
        *product(_CLUSTERS, (2, 3, 4, 6, 8)),
        *product(_FOURS[:1], (2, 3, 4, 6, 8)),
        *product(_BOTH[3:], (2, 3, 4)),
        *product(({"split_k": 2, **ring},), (2, 3, 4, 6)),
        *product(({"split_k": 3, **ring}, {"split_k": 4, **ring}), (2, 3, 4, 6, 8)),
        *product(({"split_k": 8, **ring},), (2, 3, 4)),
        *product(({**_CLUSTERS[0], "split_k": 2, **ring}, {**_CLUSTERS[1], "split_k": 2, **ring}), (2, 3, 4, 6)),
        *product(({**_CLUSTERS[0], "split_k": 4, **ring}, {**_CLUSTERS[1], "split_k": 4, **ring}), (2, 3, 4)),
        *product(({**_FOURS[0], "split_k": 2, **ring},), (2, 3, 4)),
    ]
    for turned, (m_tile, n_tile), (split, clusters) in product(({}, {"c_major": "m"}), _OF_CLUSTERS, shares):
        groups = {"warpgroups": 2} if m_tile == 256 else {}
        yield {**grid, "m_tile": m_tile, "n_tile": n_tile, **groups, **turned, **split, "k_clusters": clusters}


def _planned(product: Mapping[str, Any], options: Mapping[str, Any]) -> GemmPlan:
    """The plan of a family's options, with as many stages as fit. Raises PlanError."""
    chosen = {**product, **options}
    share = chosen.pop("share", 1)
    m_tile, n_tile, parts = chosen.get("m_tile", 128), chosen["n_tile"], chosen.get("split_k", 1)
    persistent = chosen.get("scheduler", "static") != "grid"
    chunk = gcd(n_tile, 64)
    if chunk <= 16 < n_tile:
        chunk = n_tile // 2 if n_tile % 16 == 0 else n_tile
    chunk = chosen.pop("chunk", chunk)
    buffers = chosen.pop("chunk_buffers", 2 if persistent and n_tile // chunk > 1 else 1)
    rows = 64 * (m_tile // 64)
    epilogue = rows * chunk * 2 * buffers * (2 if chosen.get("consumers") == "pingpong" else 1)
    if chosen.get("sums", "own") == "own":
        warps = m_tile // (32 if chosen.get("warpgroups") == 2 and m_tile == 256 else 16)
        epilogue += -(-warps // parts) * (parts - 1) * (m_tile * n_tile * 4 // warps) if parts > 1 else 0
    hinted = bool(chosen.get("a_hint")) and n_tile <= 64
    limit = (_CARVED if hinted or share > 1 else _SHARED) // share - 1024 * (share > 1)
    stages = min((limit - _RESERVED - epilogue) // ((m_tile + n_tile) * 128), 12)
    while stages >= 2:
        with suppress(PlanError):
            return find(RUNG).plan(**chosen, chunk=chunk, chunk_buffers=buffers, stages=stages)
        stages -= 1
    raise PlanError("no stage fits")


@cache
def menu(product: str) -> dict[Spec, GemmPlan]:
    """The kernels of a product ("bf16", "fast" or "promoted") by spec."""
    made: dict[Spec, GemmPlan] = {}
    for options in (*_many(), *_few(), *_swapped(), *_clusters(), *_wide(), *_k_clusters()):
        if product == "promoted" and options.get("consumers") == "pingpong":
            continue  # nothing hides the additions: 1.2 to 1.6 times as long (docs/hopper-tuning.md)
        try:
            plan = _planned(PRODUCTS[product], options)
        except PlanError:
            continue
        made[Spec(plan.name, tuple(find(plan.name).settings(plan.config)))] = plan
    return made


def vectors(m: int) -> list[Spec]:
    """The GEMVs of m rows of bf16, 1 or 2."""
    plans = [
        find(GEMV).plan(dtype="bf16", vectors=m, warp_rows=rows, k_warps=split)
        for rows, split in product((1, 2, 4), (1, 2, 4, 8))
    ]
    return [Spec(each.name, tuple(find(each.name).settings(each.config))) for each in plans]
