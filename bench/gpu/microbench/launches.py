"""Single launches of kernels of the library, drawn at random, for Nsight Compute to count their cycles.

    ncu --clock-control none --cache-control none --profile-from-start off --csv --page raw --log-file cycles.csv
        --metrics sm__cycles_elapsed.max,gpu__time_duration.sum python -m bench.gpu.microbench.launches --out names.json
    python -m bench.gpu.microbench.launches --join names.json cycles.csv --out launches.json

Each kernel is launched three times on the same arrays: the first warms the L2, all are profiled.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import statistics
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from math import exp, log, prod
from pathlib import Path
from typing import Any

import numpy as np

from bench.gpu import menu
from bench.gpu.arms import Spec
from bench.gpu.attention import AttentionRow, AttentionSpec
from bench.gpu.microbench import ptx
from ptxgen.attention.plan import AttentionPlan
from ptxgen.attention.problem import AttentionProblem
from ptxgen.device import Device, Kernel
from ptxgen.gemm import GemmPlan, PlanError, find
from ptxgen.gemm.ladder import kernels
from ptxgen.gemm.problem import GemmProblem
from ptxgen.gemm.types import TYPES
from ptxgen.gpu.device import GpuView

#: Launches of each kernel.
TIMES = 3
CYCLES, NANOSECONDS = "sm__cycles_elapsed.max", "gpu__time_duration.sum"


@dataclass(frozen=True)
class Drawn:
    """A kernel and a problem."""

    spec: str
    m: int
    n: int
    k: int

    @property
    def text(self) -> str:
        return Spec.named(self.spec).plan().text


@dataclass(frozen=True)
class DrawnAttention:
    """A kernel of attention and a problem."""

    attention: str
    row: AttentionRow

    @property
    def plan(self) -> AttentionPlan:
        return AttentionSpec.named(self.attention).plan(self.row)

    @property
    def problem(self) -> AttentionProblem:
        row = self.row
        return self.plan.problem(
            row.queries, row.keys or row.queries, heads=row.heads, kv_heads=row.kv_heads, batches=row.batches
        )

    @property
    def text(self) -> str:
        return self.plan.text


def _size(random: random.Random, low: int, high: int, step: int) -> int:
    return max(step, round(exp(random.uniform(log(low), log(high))) / step) * step)


def draw(count: int, seed: int = 36) -> list[Drawn]:
    """Kernels of the dispatcher's menu and rungs of the ladder, on problems of one CTA to 8192."""
    chance = random.Random(seed)
    families = [list(each()) for each in (menu._many, menu._few, menu._swapped)]
    rungs = [name for name, each in kernels().items() if name.startswith("hopper/") and not each.format]
    found: list[Drawn] = []
    while len(found) < count:
        with suppress(PlanError):
            if chance.random() < 0.25:
                spec = Spec(chance.choice(rungs))
                plan = spec.plan()
            else:
                product = chance.choice(("bf16", "bf16", "fast"))
                plan = menu._planned(menu.PRODUCTS[product], chance.choice(chance.choice(families)))
                spec = Spec(plan.name, tuple(find(plan.name).settings(plan.config)))
            if plan.block_scales is not None or plan.config.batched or plan.epilogue.combination.source:
                continue
            low, high = chance.choice(((0, 0), (64, 1024), (512, 4096), (2048, 8192)))
            m, n = (plan.m_tile, plan.n_tile) if not high else (_size(chance, low, high, 64) for _ in range(2))
            if plan.name == "hopper/gemv":
                m = 1
            if high and plan.config.c_major == "m":
                n = _size(chance, 8, plan.n_tile, 8)
            k = _size(chance, 128, 8192, 64)
            if 2 * m * n * k > 6e11:
                continue
            plan.problem(m, n, k)
            found.append(Drawn(spec.name, m, n, k))
    return found


def draw_attention(count: int, seed: int) -> list[DrawnAttention]:
    """Kernels of attention with their defaults, on problems of a few CTAs to 4e11 operations."""
    chance = random.Random(seed)
    found: list[DrawnAttention] = []
    while len(found) < count:
        size, values = chance.choice(((64, 0), (128, 0), (128, 0), (192, 128), (256, 0)))
        heads = chance.choice((1, 2, 4, 8, 16, 32))
        row = AttentionRow(
            queries=_size(chance, 64, 8192, 64),
            heads=heads,
            batches=chance.choice((1, 1, 2, 4, 8)),
            head_size=size,
            value_size=values,
            kv_heads=chance.choice([each for each in (1, 2, 4, 8, 16, 32) if heads % each == 0]),
            causal=chance.random() < 0.5,
            dtype=chance.choice(("bf16", "f16")),
        )
        drawn = DrawnAttention(
            chance.choice(("hopper/attention", "hopper/attention", "hopper/attention-pingpong")), row
        )
        with suppress(PlanError):
            if drawn.problem.flop <= 4e11:
                found.append(drawn)
    return found


class Launches:
    """Launches on a GPU, between the driver's marks for the profiler; `names` has one entry a launch."""

    def __init__(self, gpu: Any) -> None:
        self.gpu, self.names = gpu, list[dict[str, Any]]()
        block = np.random.default_rng(1).standard_normal(1 << 20, np.float32)
        self._held: dict[tuple[str, str], Any] = {}
        self._blocks = {name: block.astype(TYPES[name].numpy) for name in ("bf16", "f16", "e4m3")}

    def random(self, name: str, dtype: str, shape: tuple[int, ...]) -> Any:
        """An array of random elements, in memory that operands of this name share."""
        size, key = prod(shape), (name, dtype)
        if key not in self._held or self._held[key].size < size:
            self._held[key] = self.gpu.array(np.resize(self._blocks[dtype], 1 << (size - 1).bit_length()))
        held = self._held[key]
        return GpuView(self.gpu, held.address, shape, held.dtype, held)

    def gemm(self, drawn: Drawn) -> None:
        """Launches of a drawn kernel. Raises what the driver and the plan do."""
        plan: GemmPlan = Spec.named(drawn.spec).plan()
        problem: GemmProblem = plan.problem(drawn.m, drawn.n, drawn.k)
        a, b = (self.random(name, problem.dtype(name), problem.extents(name)) for name in ("a", "b"))
        c = self.gpu.empty(problem.extents("c"), TYPES[plan.c_dtype].numpy)
        order = None if problem.tile_order is None else self.gpu.array(problem.tile_order)
        words = problem.workspace_words
        workspace = self.gpu.array(np.zeros(words, np.uint32)) if words else None
        arguments = problem.arguments(a, b, c, order=order, workspace=workspace)
        kernel = Kernel.from_ptx(plan.text)
        self.launch(asdict(drawn), kernel, problem.grid, problem.block, arguments, plan.shared.bytes)

    def attention(self, drawn: DrawnAttention) -> None:
        """Launches of a drawn kernel of attention. Raises what the driver and the plan do."""
        problem = drawn.problem
        config = problem.plan.config
        arrays: dict[str, Any] = {name: self.random(name, config.dtype, problem.shape(name)) for name in "qkv"}
        arrays |= {name: self.gpu.empty(shape, dtype) for name, (shape, dtype) in problem.outputs.items()}
        kernel, label = Kernel.from_ptx(problem.plan.text), {"attention": drawn.attention, **asdict(drawn.row)}
        self.launch(label, kernel, problem.grid, problem.block, problem.arguments(arrays), problem.plan.shared.bytes)

    def launch(
        self, label: dict[str, Any], kernel: Kernel, grid: Any, block: Any, arguments: list[Any], shared: int
    ) -> None:
        for _ in range(TIMES):
            self.gpu.call("cuProfilerStart")
            report = self.gpu.launch(kernel, grid, block, arguments, shared_bytes=shared)
            self.gpu.call("cuProfilerStop")
            self.names.append({**label, "ok": report.ok, "event_us": 1e6 * report.seconds})


def plain(device: Device) -> Iterator[tuple[dict[str, Any], Kernel, int, int, list[Any], int]]:
    """Launches without tensor cores: empty ones, and loads and stores of global memory."""
    data, out = device.array(np.zeros(1 << 26, np.uint64)), device.empty((4096,), np.uint64)
    tensormap = bytes(128)
    for text, counts in ((ptx.kernel("", ""), (0,)), (ptx.ld_global(), (8, 64)), (ptx.st_global(), (8, 64))):
        threads = int(text.split(".reqntid ")[1].split(",")[0])
        name = {32: "empty", 512: "ld_global", 256: "st_global"}[threads]
        for n in counts:
            for grid in (1, 132, 1056):
                for shared in (0, 200 << 10) if name == "empty" else (0,):
                    label = {"spec": name, "grid": grid, "repeats": n, "shared": shared}
                    yield label, Kernel.from_ptx(text), grid, threads, [out, data, n, 256, 0, 0, tensormap], shared


def join(names: Path, profile: Path) -> list[dict[str, Any]]:
    """Cycles and nanoseconds by launch: the median of those after the first."""
    return profiled(json.loads(names.read_text())["launches"], profile)


def profiled(launches: list[dict[str, Any]], profile: Path) -> list[dict[str, Any]]:
    """The launches, each of which was made TIMES in a row, once with the profiler's figures. Raises ValueError."""
    lines = [line for line in profile.read_text().splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(lines))[1:]
    if len(rows) != len(launches):
        raise ValueError(f"{len(rows)} launches profiled, {len(launches)} named")
    made: list[dict[str, Any]] = []
    for at in range(0, len(rows), TIMES):
        label = {key: value for key, value in launches[at].items() if key not in ("ok", "event_us")}
        figures = {
            key: statistics.median(float(row[metric].replace(",", "")) for row in rows[at + 1 : at + TIMES])
            for key, metric in (("cycles", CYCLES), ("ns", NANOSECONDS))
        }
        made.append({**label, **figures})
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--seed", type=int, default=36, help="of the draw")
    parser.add_argument("--attention", type=int, default=0, help="kernels of attention to draw beside the GEMMs")
    parser.add_argument("--no-plain", action="store_true", help="leave out launches without tensor cores")
    parser.add_argument("--again", type=Path, nargs="*", help="records whose GEMMs are launched, not drawn ones")
    parser.add_argument("--join", type=Path, nargs=2)
    options = parser.parse_args()
    if options.join:
        options.out.write_text(json.dumps(join(*options.join), indent=0), encoding="utf-8")
        return
    from bench.gpu.microbench.built import BuiltGpu

    began = time.monotonic()
    drawn: list[Drawn | DrawnAttention] = [*draw(options.count, options.seed)]
    drawn += draw_attention(options.attention, options.seed)
    random.Random(options.seed).shuffle(drawn)  # so that those out of time are of all kinds
    if options.again:
        known = [each for file in options.again for each in json.loads(file.read_text())["launches"] if "m" in each]
        drawn = [Drawn(each["spec"], each["m"], each["n"], each["k"]) for each in known]
    gpu = BuiltGpu(each.text for each in drawn)
    launches = Launches(gpu)
    for label, kernel, grid, block, arguments, shared in () if options.no_plain else plain(gpu):
        launches.launch(label, kernel, grid, block, arguments, shared)
    for each in drawn:
        if time.monotonic() - began > options.seconds:
            break
        try:
            launches.gemm(each) if isinstance(each, Drawn) else launches.attention(each)
        except Exception as error:
            print(each, error, flush=True)
            del launches.names[len(launches.names) // TIMES * TIMES :]
    record = {"device": gpu.name, "cuda": gpu.version, "launches": launches.names}
    options.out.write_text(json.dumps(record, indent=0), encoding="utf-8")


if __name__ == "__main__":
    main()
