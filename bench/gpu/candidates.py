"""Which of our kernels a row is tried with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, product
from math import gcd
from typing import Any

from bench.gpu.arms import Spec
from bench.gpu.records import Record
from bench.gpu.suite import Row
from ptxgen.gemm import GemmPlan, PlanError, best, find
from ptxgen.gemm.concepts.epilogue import chunk_columns
from ptxgen.gemm.selection.dispatch import GEMV, Choice
from ptxgen.gemm.selection.planner import plan_gemm
from ptxgen.timing import MACHINES

#: The rung whose options span the space.
RUNG = "hopper/overlapped"
_FP8 = ("e4m3", "e5m2")
#: From so many operations on, the time between two launches does not matter.
_LONG = 2e11
#: Multiprocessors of an H200.
_SMS = 132
#: Columns of C from which on few rows have many tiles.
_MANY = 16384


@dataclass(frozen=True)
class Candidate:
    """A kernel and what the planner predicts (or the tuning table has), in microseconds; 0: nothing."""

    spec: Spec
    predicted: float


def candidates(row: Row, count: int, *, alone: bool = False) -> list[Candidate]:
    """The planner's first `count` configurations, and unless `alone` beside them others that it does not choose."""
    made = _vectors(row) if not alone and row.m <= 2 and row.dtype not in _FP8 else []
    for fixed in _products(row):
        with suppress(PlanError):
            planned = plan_gemm(row.m, row.n, row.k, MACHINES["h200"], count=count, fixed=fixed).ranked
            made += [Candidate(_spec(each.plan), round(each.microseconds, 3)) for each in planned]
    others = iter(()) if alone else _few_rows(row) if row.m <= 128 else _many_rows(row)
    for options, fixed in product(others, _products(row)):
        for dependent in (False, True) if row.flops < _LONG else (False,):
            try:
                plan = find(RUNG).plan(**fixed, **options, dependent=dependent)
                Choice(plan, row.m, row.n, row.k).problem()
            except PlanError:
                continue
            made.append(Candidate(_spec(plan), 0.0))
    return list({each.spec: each for each in made}.values())


def _products(row: Row) -> list[dict[str, Any]]:
    """Options of what a row is measured as: of fp8 two products, with promoted sums and without."""
    if row.dtype not in _FP8:
        return [{"dtype": row.dtype}]
    return [{"dtype": row.dtype, "c_dtype": "bf16", "promote": promote} for promote in (True, False)]


def _few_rows(row: Row) -> Iterator[dict[str, Any]]:
    """Decode: A and B swapped, the rows of A as columns of the tile; from 64 on in their own place, too."""
    alone = {"cluster_m": 1, "panel": 0, "chunk_buffers": 1}
    tokens = next(each for each in (16, 32, 64, 128) if row.m <= each)
    keep = {"a_hint": "evict_first", "b_hint": "evict_last"}
    for m_tile, hints in product((64, 128), ({}, keep)):
        swapped = {**alone, "c_major": "m", "m_tile": m_tile, "n_tile": tokens, "chunk": min(tokens, 64), **hints}
        stages = _stages(m_tile + tokens)
        yield {**swapped, "scheduler": "grid", "stages": stages}
        yield {**swapped, "scheduler": "grid", "stages": max(stages // 2, 2)}  # two CTAs in a multiprocessor
        yield {**swapped, "scheduler": "stream", "stages": stages}
    yield from _few_tiles(row, {**alone, **keep}, tokens)
    if row.n >= _MANY:
        yield from _persistent(row, {**alone, **keep, "chunk_buffers": 2}, tokens)
        shared = {"c_major": "m", "m_tile": 64, "n_tile": tokens, "chunk": min(tokens, 64), "scheduler": "grid"}
        yield {**alone, **keep, **shared, "stages": max(_stages(64 + tokens) // 2, 2), "split_k": 4}
    if row.m >= 64:
        for m_tile, n_tile in ((64, 32), (64, 48), (64, 64), (64, 96), (64, 128), (128, 48), (128, 64), (128, 96)):
            own = {**alone, "m_tile": m_tile, "n_tile": n_tile, "chunk": gcd(n_tile, 64)}
            yield {**own, "scheduler": "grid", "stages": _stages(m_tile + n_tile)}
    yield from _even(row)


def _even(row: Row) -> Iterator[dict[str, Any]]:
    """In their own place: as many columns a tile as make one to four whole waves, or a wave of parts of K."""
    alone = {"cluster_m": 1, "panel": 0, "chunk_buffers": 1, "scheduler": "grid"}
    keep = {"a_hint": "evict_last", "b_hint": "evict_first"}
    rows = (64, 128) if row.m > 64 else (64,)
    for waves, m_tile, hints in product(range(1, 5), rows, ({}, keep)):
        n_tile = -(-row.n * -(-row.m // m_tile) // (_SMS * waves) // 8) * 8
        if chunk_columns(n_tile, 64) == 8:
            n_tile = -(-n_tile // 16) * 16
        if not 16 <= n_tile <= 256:
            continue
        own = {**alone, **hints, "m_tile": m_tile, "n_tile": n_tile, "chunk": chunk_columns(n_tile, 64)}
        stages = _stages(m_tile + n_tile)
        if waves <= 2:  # two CTAs share an SM
            yield {**own, "stages": max(stages // waves, 2)}
        if waves > 1:
            yield {**own, "stages": stages, "chunk_buffers": 2, "scheduler": "static"}
    for m_tile, n_tile, parts in product(rows, (32, 48, 64, 80, 96, 128), (2, 4, 8)):
        ctas = -(-row.n // n_tile) * -(-row.m // m_tile) * parts
        if 100 <= ctas <= 140 and row.k >= 256 * parts:
            stages = _stages(m_tile + n_tile, m_tile * n_tile * 4 * (parts - 1) // parts)
            own = {"m_tile": m_tile, "n_tile": n_tile, "chunk": chunk_columns(n_tile, 64), "split_k": parts}
            yield {**alone, **keep, **own, "stages": stages}


def _few_tiles(row: Row, options: Mapping[str, Any], tokens: int) -> Iterator[dict[str, Any]]:
    """Swapped, K split over a cluster, with at least four K blocks a CTA.

    Two CTAs share an SM where one warpgroup multiplies: kernels with two take the registers of an SM.
    """
    blocks = row.k // (128 if row.dtype in _FP8 else 64)
    for m_tile, parts in product((64, 128), (2, 4, 8)):
        tiles = -(-row.n // m_tile) * -(-row.m // tokens)
        shared = m_tile == 64
        if tiles >= _SMS or tiles * parts > _SMS * (1 + shared) or blocks < 4 * parts:
            continue
        split = {"c_major": "m", "m_tile": m_tile, "n_tile": tokens, "chunk": min(tokens, 64), "split_k": parts}
        stages = _stages(m_tile + tokens, m_tile * tokens * 4 * (parts - 1) // parts)
        if tiles * parts <= _SMS:
            yield {**options, **split, "scheduler": "grid", "stages": stages}
        if shared:
            yield {**options, **split, "scheduler": "grid", "stages": max(stages // 2, 2)}


def _persistent(row: Row, options: Mapping[str, Any], tokens: int) -> Iterator[dict[str, Any]]:
    """Swapped, where tiles are many: the stores of a tile under the loads of the next, by one CTA an SM or by two."""
    for m_tile in (64, 128):
        own = {"c_major": "m", "m_tile": m_tile, "n_tile": tokens, "chunk": min(tokens, 64), "scheduler": "static"}
        stages = _stages(m_tile + tokens)
        yield {**options, **own, "stages": stages}
        if m_tile == 64:
            yield {**options, **own, "stages": max(stages // 2, 2), "slots": 2 * _SMS}
        yield {**options, **own, "stages": stages, "consumers": "pingpong"}


def _many_rows(row: Row) -> Iterator[dict[str, Any]]:
    """Ping-pong and cooperative consumers, with and without clusters; stream-K where waves are few."""
    walk = {"panel": 0, "order": "hilbert"}
    for n_tile, cluster in product((96, 128, 160, 192), ((1, 1), (2, 1), (1, 2))):
        own = {
            "m_tile": 128,
            "n_tile": n_tile,
            "chunk": gcd(n_tile, 64),
            "cluster_m": cluster[0],
            "cluster_n": cluster[1],
        }
        yield {**walk, **own, "consumers": "pingpong", "stages": _stages(128 + n_tile)}
    for m_tile, n_tile, more in (
        (128, 256, {}), (128, 224, {}), (128, 192, {}), (128, 160, {}), (128, 128, {}), (128, 96, {}), (128, 64, {}),
        (64, 256, {}), (64, 192, {}), (64, 128, {}), (256, 128, {"warpgroups": 2}), (256, 160, {"warpgroups": 2}),
        (192, 176, {}), (192, 128, {}),
    ):  # fmt: skip
        own = {"m_tile": m_tile, "n_tile": n_tile, "chunk": gcd(n_tile, 64), "cluster_m": 1, **more}
        yield {**walk, **own, "stages": _stages(m_tile + n_tile)}
        if row.flops < 4e11:
            yield {**walk, **own, "stages": _stages(m_tile + n_tile), "scheduler": "stream"}
        if row.flops < 4e10:
            yield {**own, "panel": 0, "stages": _stages(m_tile + n_tile), "scheduler": "grid"}
    yield {**walk, "n_tile": 256, "cluster_m": 2, "stages": 4}
    yield {**walk, "n_tile": 256, "cluster_m": 2, "stages": 4, "scheduler": "stream"}
    yield from _between(row)
    if row.dtype in _FP8:
        for n_tile, cluster in product((96, 112, 128), ((1, 1), (2, 1), (1, 2))):
            own = {**walk, "n_tile": n_tile, "chunk": gcd(n_tile, 64), "cluster_m": cluster[0], "cluster_n": cluster[1]}
            yield from _promoted_tiles(own, n_tile)


def _between(row: Row) -> Iterator[dict[str, Any]]:
    """N tiles between steps of 16, where one fills whole waves better than every step of 16: at most 6 kernels.

    Long rows have more of them, as others are tried with and without dependent launches.
    """
    made: list[dict[str, Any]] = []
    for m_tile, widest in ((128, 256), (256, 200)):
        filled = {n_tile: _filled(row, m_tile, n_tile) for n_tile in range(96, widest + 1, 8)}
        n_tile = max((each for each in filled if each % 16), key=lambda each: filled[each])
        if filled[n_tile] <= max(filled[each] for each in filled if each % 16 == 0):
            continue
        chunk, buffers = (64, 2) if chunk_columns(n_tile, 64) > 8 else (n_tile + 8, 1)
        bytes = 256 * min(chunk, n_tile) * buffers  # 128 rows of 16 bits
        own = {
            "m_tile": m_tile,
            "n_tile": n_tile,
            "chunk": chunk,
            "chunk_buffers": buffers,
            "stages": min((232448 - 2048 - bytes) // ((m_tile + n_tile) * 128), 12),
            "panel": 0,
            "order": "hilbert",
        }
        ways: list[dict[str, Any]] = [{"warpgroups": 2}]
        if m_tile == 128:
            ways = [{"consumers": "pingpong"}, {}] if n_tile <= 200 else [{}]
        clusters = [{"cluster_m": 1}, {"cluster_m": 1, "cluster_n": 2}, {"cluster_m": 2}]
        panels = [{"cluster_m": 1, "panel": 8, "order": "panels"}, {"cluster_m": 1, "scheduler": "grid"}]
        made += [{**own, **ways[0], **clusters[0]}]
        made += [{**own, **way, **clusters[0]} for way in ways[1:]]
        made += [{**own, **ways[0], **more} for more in (*clusters[1:], panels[0])]
        made += [{**own, **ways[-1], "order": "panels", **panels[1]}]
    yield from made[: 3 if row.flops < _LONG else 6]


def _filled(row: Row, m_tile: int, n_tile: int) -> float:
    """The part of whole waves that lies in C."""
    slots = int(MACHINES["h200"].sms.value)
    waves = -(-(-(-row.m // m_tile) * -(-row.n // n_tile)) // slots)
    return row.m * row.n / (waves * slots * m_tile * n_tile)


def _stages(rows: int, sums: int = 0, *, most: int = 12) -> int:
    """As many stages as fit beside an epilogue of 32 kB and the sums of other CTAs, at most so many."""
    return max(min((232448 - 34000 - sums) // (rows * 128), most), 2)


def _vectors(row: Row) -> list[Candidate]:
    """Every configuration of the GEMV. The planner has no model of it but the bytes of B."""
    entry, predicted = find(GEMV), round(row.bytes / MACHINES["h200"].hbm_bandwidth.value * 1e6, 3)
    plans = [
        entry.plan(dtype=row.dtype, vectors=row.m, warp_rows=rows, k_warps=split, dependent=dependent)
        for rows in (1, 2, 4)
        for split in (1, 2, 4, 8)
        for dependent in (False, True)
    ]
    return [Candidate(_spec(each), predicted) for each in plans]


def again(row: Row, record: Record | None, count: int) -> list[Candidate]:
    """The fastest `count` of an earlier record, as many dependent, the planner's first, and others for many rows."""
    made = []
    if record is not None:
        ranked = sorted(record.candidates, key=lambda each: each[1])
        for dependent in (False, True):
            names = [name for name, _ in ranked if ("dependent=true" in name) == dependent][:count]
            names += [each.name for kind, each in record.figures.items() if kind.startswith("ptxgen")]
            made += [Candidate(Spec.named(name), 0.0) for name in names]
    made += candidates(row, 1, alone=True)
    if row.m >= 256:
        for options, fixed in product(_contenders(row), _products(row)):
            with suppress(PlanError):
                made.append(Candidate(_spec(find(RUNG).plan(**fixed, **options)), 0.0))
    return list({each.spec: each for each in made}.values())


def _contenders(row: Row) -> Iterator[dict[str, Any]]:
    """What was best on large problems."""
    walk = {"panel": 0, "order": "hilbert"}
    for n_tile, dependent in product((128, 160, 192), (False, True) if row.flops < _LONG else (False,)):
        own = {"m_tile": 128, "n_tile": n_tile, "chunk": gcd(n_tile, 64), "stages": _stages(128 + n_tile)}
        yield {**walk, **own, "consumers": "pingpong", "cluster_m": 1, "dependent": dependent}
    yield {**walk, "m_tile": 128, "n_tile": 128, "stages": 6, "consumers": "pingpong", "cluster_m": 2}
    yield {**walk, "n_tile": 256, "cluster_m": 1, "stages": 4}
    yield {**walk, "n_tile": 256, "cluster_m": 2, "stages": 4}
    yield {**walk, "n_tile": 256, "cluster_m": 2, "stages": 4, "scheduler": "stream"}
    for options, dependent in product(_between(row), (False, True) if row.flops < _LONG else (False,)):
        yield {**options, "dependent": dependent}


def scaled(row: Row, count: int) -> list[Candidate]:
    """fp8 with scales: what `best` says, and unless `count` is 0 tiles of all shapes, each plain and dependent."""
    fixed = {"dtype": row.dtype, "c_dtype": "bf16", "scales": "1d2d"}
    made: list[GemmPlan] = []
    for dependent in (False, True):
        with suppress(PlanError):
            made.append(best(row.m, row.n, row.k, device="h200", **fixed, dependent=dependent).plan)
    for options, dependent in product(_scaled_tiles(row), (False, True)) if count else ():
        with suppress(PlanError):
            made.append(find(RUNG).plan(**{**fixed, **options}, dependent=dependent))
    return list({spec: Candidate(spec, 0.0) for spec in map(_spec, made)}.values())


def _scaled_tiles(row: Row) -> Iterator[dict[str, Any]]:
    """Few rows: narrow tiles of 64; many: both ways to share a multiprocessor, with and without clusters."""
    alone, walk = {"cluster_m": 1, "panel": 0, "chunk_buffers": 1}, {"panel": 0, "order": "hilbert"}
    if row.m <= 128:
        yield from islice(_scaled_swapped(row, alone), 12)
        for m_tile, n_tile in product((64, 128) if row.m > 64 else (64,), (16, 32, 48, 64, 96, 112, 128)):
            own = {**alone, "m_tile": m_tile, "n_tile": n_tile, "chunk": gcd(n_tile, 64)}
            for scheduler, most in product(("grid", "stream"), (12, 24)):
                yield {**own, "scheduler": scheduler, "stages": _stages(m_tile + n_tile + 4, most=most)}
            for parts in (2, 4, 8):
                tiles = -(-row.m // m_tile) * -(-row.n // n_tile) * parts
                if tiles <= _SMS * (1 + (m_tile == 64)) and row.k >= 512 * parts:
                    sums = m_tile * n_tile * 4 * (parts - 1) // parts
                    stages = _stages(m_tile + n_tile + 4, sums) // (1 if tiles <= _SMS else 2)
                    yield {**own, "scheduler": "grid", "split_k": parts, "stages": max(stages, 2)}
    for n_tile, cluster in product((96, 112, 128, 160, 192), ((1, 1), (2, 1), (1, 2))):
        if row.m < 64:
            continue
        own = {**walk, "n_tile": n_tile, "chunk": gcd(n_tile, 64), "cluster_m": cluster[0], "cluster_n": cluster[1]}
        yield {**own, "m_tile": 128, "stages": _stages(132 + n_tile)}
        yield {**own, "m_tile": 64, "consumers": "pingpong", "stages": _stages(68 + n_tile)}
        if row.flops < 4e11:
            yield {**own, "m_tile": 128, "scheduler": "stream", "stages": _stages(132 + n_tile)}
        if row.m > 128 and n_tile <= 128:
            yield from _promoted_tiles(own, n_tile)


def _promoted_tiles(options: Mapping[str, Any], n_tile: int) -> Iterator[dict[str, Any]]:
    """Promoted sums of 128 rows a warpgroup: as many stages as leave room for one chunk of C, or one less."""
    yield {**options, "m_tile": 128, "consumers": "pingpong", "stages": 5}
    own = {**options, "m_tile": 256, "warpgroups": 2}
    yield {**own, "stages": 3}
    own |= {"stages": 4, "chunk": gcd(n_tile, 32), "chunk_buffers": 1}
    yield own
    yield {**own, "panel": 8, "order": "panels"}


def _scaled_swapped(row: Row, options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Few rows, A and B swapped: a tile a CTA, static where they are many, K split over a cluster where they are few.

    Two CTAs share an SM as in `_few_tiles`; 128 columns take the registers of an SM.
    """
    tokens = next(each for each in (16, 32, 64, 128) if row.m <= each)
    keep = {"a_hint": "evict_first", "b_hint": "evict_last"}
    for m_tile in (64, 128):
        own = {**options, **keep, "scales": "2d1d", "c_major": "m", "m_tile": m_tile, "n_tile": tokens}
        own["chunk"] = min(tokens, 64)
        tiles, shared = -(-row.n // m_tile), m_tile == 64 and tokens <= 64
        stages = _stages(m_tile + tokens + 4)
        yield {**own, "scheduler": "grid", "stages": stages}
        if shared:
            yield {**own, "scheduler": "grid", "stages": max(stages // 2, 2)}
        if tiles > _SMS:
            yield {**own, "scheduler": "static", "stages": stages}
            yield {**own, "scheduler": "static", "stages": stages, "consumers": "pingpong"}
            if shared:
                yield {**own, "scheduler": "static", "stages": max(stages // 2, 2), "slots": 2 * _SMS}
        for parts in (2, 4, 8):
            if tiles >= _SMS or tiles * parts > _SMS * (1 + shared) or row.k < 512 * parts:
                continue
            stages = _stages(m_tile + tokens + 4, m_tile * tokens * 4 * (parts - 1) // parts)
            if tiles * parts <= _SMS:
                yield {**own, "scheduler": "grid", "split_k": parts, "stages": stages}
            if shared:
                yield {**own, "scheduler": "grid", "split_k": parts, "stages": max(stages // 2, 2)}


def chosen(row: Row, _: int) -> list[Candidate]:
    """What `ptxgen.gemm.best` says, and what it says for dependent launches."""
    made = []
    for fixed, dependent in product(_products(row), (False, True)):
        try:
            found = best(row.m, row.n, row.k, device="h200", **fixed, dependent=dependent)
        except PlanError:  # the kernel has no such form
            continue
        made.append(Candidate(_spec(found.plan), found.tuned.us if found.tuned else 0.0))
    return list({each.spec: each for each in made}.values())


def _spec(plan: GemmPlan) -> Spec:
    return Spec(plan.name, tuple(find(plan.name).settings(plan.config)))
