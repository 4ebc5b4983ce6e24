"""Times of many kernels for one problem at once: a rough model, corrected by trees fitted to measured launches.

The model counts what the busiest SM does (tiles, K blocks, rings, stores) and what memory and the L2 move, with the
lines that unaligned rows touch. Trees (`ptxgen.gemm.selection.forest`) predict the logarithm of measured over modeled
time from the same counts.
What was measured, and how the trees are fitted: bench/gpu/fit.py, docs/hopper-tuning.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from ptxgen.gemm.concepts.accumulator import RegisterAccumulator
from ptxgen.gemm.concepts.operand import STAGE_ROW_BYTES
from ptxgen.gemm.plan import GemmPlan
from ptxgen.gemm.selection.forest import Floats

#: Registers of an SM; shared memory of an SM, and what it keeps for itself of each CTA.
_REGISTERS, _SHARED, _SHARED_RESERVED = 65536, 233472, 1024
#: Bytes of a line of the L2.
_LINE = 128
_SMS = 132
#: Clusters of so many CTAs that run at once, one CTA an SM (cuOccupancyMaxActiveClusters on an H200, driver 580).
_CLUSTER_SLOTS = {1: 132, 2: 66, 3: 39, 4: 30, 5: 22, 6: 17, 7: 15, 8: 15}
#: Constants of the rough model: µs, cycles, bytes per cycle, bytes and FLOP per µs, p-norms.
_LAUNCH, _MHZ = 1.0, 1850.0
_BUSY, _ROWS, _OUTSIDE = 0.9, 1.08, 0.25
_RING, _EPILOGUE, _STORE, _SUMS = 1500.0, 58.0, 40.0, 38.0
_PERSISTENT, _CLUSTER, _SPLIT, _ORDER = 700.0, 900.0, 500.0, 500.0
_PROMOTE_WAIT, _PROMOTE_CONSUMERS = 100.0, 50.0
#: Sums through global memory: bytes per cycle of an SM, and cycles until the last cluster has those of the others.
_GATHER, _GATHERED = 40.0, 3000.0
_L2, _L2_LINES, _ENERGY_L2, _ENERGY_FLOP = 14e6, 20e6, 60e6, 800e6
_RING_NORM, _NORM = 6.0, 2.5


@dataclass(frozen=True)
class Card:
    """Constants of a GPU: memory in bytes per µs, bytes of the L2 that keep operands from wave to wave."""

    name: str
    memory: float
    l2: float


CARDS = {"h200": Card("h200", 4.5e6, 30e6), "h100": Card("h100", 3.1e6, 25e6)}


@dataclass(frozen=True)
class Form:
    """A kernel as the model sees it. `resident`: CTAs that fit on an SM; `shared`: bytes of each."""

    m_tile: int
    n_tile: int
    cluster_m: int
    cluster_n: int
    split_k: int
    stages: int
    slots: int
    warpgroups: int
    panel: int
    shared: int
    resident: int
    grid: bool
    pingpong: bool
    swapped: bool
    hinted: bool
    promoted: bool
    k_clusters: int = 1

    @classmethod
    def of(cls, plan: GemmPlan) -> Form:
        """Of a Hopper plan with accumulators in registers."""
        config, accumulator = plan.config, plan.accumulator
        assert isinstance(accumulator, RegisterAccumulator)
        registers = _REGISTERS // (plan.roles.launch_registers(accumulator.registers) * plan.roles.threads)
        fits = _SHARED // (plan.shared.bytes + _SHARED_RESERVED)
        return cls(
            m_tile=plan.m_tile, n_tile=plan.n_tile, cluster_m=config.cluster_m, cluster_n=config.cluster_n,
            split_k=config.split_k, stages=config.stages, slots=config.slots, warpgroups=accumulator.warpgroups,
            panel=plan.scheduler.panel, shared=plan.shared.bytes, resident=max(1, min(registers, fits)),
            grid=config.scheduler == "grid", pingpong=config.consumers == "pingpong", swapped=config.c_major == "m",
            hinted=bool(config.a_hint or config.b_hint), promoted=accumulator.promoted,
            k_clusters=config.k_clusters,
        )  # fmt: skip


def columns(forms: Sequence[Form]) -> dict[str, Floats]:
    """Kernels as columns by name."""
    return {each.name: np.array([getattr(form, each.name) for form in forms], float) for each in fields(Form)}


@dataclass(frozen=True)
class Task:
    """C = A·Bᵀ, A of M×K and B of N×K: elements of A and B in bytes, and bytes from line to line of A, B and C."""

    m: int
    n: int
    k: int
    element: int
    pitch_a: int
    pitch_b: int
    pitch_c: int
    c_element: int = 2

    @classmethod
    def dense(cls, m: int, n: int, k: int, element: int) -> Task:
        """K-major operands without gaps, C of 16 bits."""
        return cls(m, n, k, element, k * element, k * element, 2 * n)


def lines(pitch: int, width: int = STAGE_ROW_BYTES) -> float:
    """Lines of the L2 that `width` bytes at the same place of every row touch, in the mean, over the fewest."""
    starts = np.arange(0, _LINE, np.gcd(pitch, _LINE))
    return float(np.mean((starts + width - 1) // _LINE + 1)) * _LINE / width


def _norm(p: float, *parts: Floats) -> Floats:
    largest = np.maximum.reduce(parts)
    return largest * sum((part / largest) ** p for part in parts) ** (1 / p)


@dataclass(frozen=True)
class Counted:
    """The rough time of each kernel in microseconds, and what the trees read, a row for each kernel."""

    us: Floats
    features: Floats


def count(f: dict[str, Floats], task: Task, card: Card) -> Counted:
    """What kernels of these columns do for a task on a card."""
    swapped, grid = f["swapped"] > 0, f["grid"] > 0
    x_extent, y_extent = np.where(swapped, task.n, task.m), np.where(swapped, task.m, task.n)
    line_a, line_b, line_c = lines(task.pitch_a), lines(task.pitch_b), lines(task.pitch_c)
    x_lines, y_lines = np.where(swapped, line_b, line_a), np.where(swapped, line_a, line_b)
    row_bytes = float(task.k * task.element)
    x_step, y_step = f["m_tile"] * f["cluster_m"], f["n_tile"] * f["cluster_n"]
    x, y = np.ceil(x_extent / x_step), np.ceil(y_extent / y_step)
    # Clusters that share a tile have a part of it each, which is a tile of its own to those that run.
    tiles, own = x * y, f["cluster_m"] * f["cluster_n"]
    size, parted = own * f["split_k"], tiles * f["k_clusters"]
    slots = np.array([_CLUSTER_SLOTS.get(int(each), _SMS // int(each)) for each in size], float)
    slots = np.where(grid, slots, np.minimum(slots * np.maximum(1, f["slots"] / _SMS), np.floor(f["slots"] / own)))
    sharing = np.where(
        grid, np.minimum(f["resident"], np.maximum(1, np.ceil(parted / slots))), np.maximum(1, f["slots"] / _SMS)
    )
    busiest = np.where(grid, np.ceil(parted / slots), np.ceil(parted / slots) * sharing)
    rounds = np.where(grid, np.ceil(busiest / sharing), np.ceil(parted / slots))
    k_blocks = np.ceil(np.ceil(row_bytes / STAGE_ROW_BYTES) / (f["split_k"] * f["k_clusters"]))

    mma = 4 * f["m_tile"] / 64 * np.maximum(f["n_tile"] / 2, (64 + f["n_tile"]) / 4)
    outside = np.maximum(f["m_tile"] - x_extent, 0) + np.maximum(f["n_tile"] - y_extent, 0)
    rows = f["m_tile"] + f["n_tile"]
    requested = f["m_tile"] * x_lines / f["cluster_n"] + f["n_tile"] * y_lines / f["cluster_m"]
    arrival = np.maximum((rows - outside) / _ROWS, requested) + outside * _OUTSIDE
    block = _k_block(f, mma, arrival, np.ones_like(mma))
    shared_block = _k_block(f, mma, arrival, sharing)
    c_tile = f["m_tile"] * f["n_tile"] * task.c_element
    epilogue = c_tile * line_c**0.5 / _EPILOGUE
    parts = np.where(f["split_k"] > 1, 2 * c_tile * (f["split_k"] - 1) / f["split_k"] / _SUMS + _SPLIT, 0)
    gathered = (f["k_clusters"] / f["split_k"] + 1) * 4 * f["m_tile"] * f["n_tile"] / _GATHER + _GATHERED
    parts += np.where(f["k_clusters"] > 1, gathered, 0)
    fill = _RING + epilogue + parts
    alone = rounds * (k_blocks * block + fill)
    together = busiest * (k_blocks * shared_block + np.where(sharing > 1, 0.3 * epilogue, 0)) + fill
    stores = np.where(f["pingpong"] > 0, 0, (rounds - 1) * c_tile / _STORE)
    walked = rounds * k_blocks * block + fill + _PERSISTENT + stores
    cycles = np.where(grid, np.maximum(alone, np.where(sharing > 1, together, alone)), walked)
    cycles += np.where(own > 1, _CLUSTER, 0) + np.where(f["panel"] > 0, _ORDER, 0)

    operands, c_bytes = (task.m + task.n) * row_bytes, float(task.m * task.n * task.c_element)
    running = np.minimum(np.where(grid, slots * sharing, slots), parted) / f["k_clusters"]
    least = np.minimum(np.ceil(running / x), y)
    wide = np.where(f["panel"] > 0, np.clip(np.minimum(f["panel"], y), least, y), least)
    tall = np.minimum(np.ceil(running / wide), x)
    wave = (np.minimum(tall * x_step, x_extent) + np.minimum(wide * y_step, y_extent)) * row_bytes
    waves = np.maximum(tiles / running, 1)
    loaded = np.maximum(waves * wave - (waves - 1) * np.minimum(wave, card.l2), operands)
    loaded = np.where(operands <= card.l2, operands, loaded)
    read = y * x_extent * row_bytes * x_lines + x * y_extent * row_bytes * y_lines
    flop = 2 * tiles * own * f["m_tile"] * f["n_tile"] * np.ceil(row_bytes / STAGE_ROW_BYTES) * 128 / task.element
    us = _LAUNCH + _norm(
        _NORM,
        cycles / _MHZ,
        flop * task.element / 2 / _ENERGY_FLOP + read / _ENERGY_L2,
        (loaded + c_bytes) / card.memory,
        read / _L2_LINES + read / _L2,
    )
    real = 2.0 * task.m * task.n * task.k
    one = np.ones_like(us)
    features = np.stack(
        [
            np.log(us), np.log(flop / real), np.log(parted * size / _SMS), busiest, rounds,
            tiles / running - np.floor(tiles / running - 1e-9), np.log(k_blocks), f["m_tile"], f["n_tile"],
            f["stages"], sharing, f["cluster_m"], f["cluster_n"], f["split_k"], f["pingpong"], f["hinted"],
            f["swapped"], f["grid"], f["warpgroups"], x_lines, y_lines, one * line_c, np.log(x_extent),
            np.log(y_extent), one * np.log(operands / card.l2), np.log(loaded / operands), np.log(read / operands),
            np.log(requested / mma), np.log(mma * k_blocks * rounds), one * np.log(c_bytes / operands),
            one * np.log(real / (operands + c_bytes)), f["stages"] * sharing * rows, f["shared"] * sharing,
            np.minimum(k_blocks / f["stages"], 4), x, y, f["panel"], one * card.memory / 1e6,
            (loaded + c_bytes) / card.memory / us, cycles / _MHZ / us, f["k_clusters"],
        ],
        axis=1,
    )  # fmt: skip
    return Counted(us, features)


def _k_block(f: dict[str, Floats], mma: Floats, arrival: Floats, sharing: Floats) -> Floats:
    """Cycles of a K block of one of `sharing` CTAs on an SM."""
    busy = mma / _BUSY
    made = _norm(_RING_NORM, _norm(8, busy, arrival), (_RING + arrival + busy) / (f["stages"] * sharing))
    consumers = np.where(f["pingpong"] > 0, 1, f["warpgroups"])
    blocks = np.maximum(f["m_tile"] / 64 / np.maximum(f["warpgroups"], 1), 1)
    adding = busy / consumers + blocks * (_PROMOTE_WAIT + f["n_tile"] / 2)
    promoted = _norm(_RING_NORM, made + (consumers - 1) * _PROMOTE_CONSUMERS / sharing, adding / sharing)
    return np.where(f["promoted"] > 0, promoted, made)
