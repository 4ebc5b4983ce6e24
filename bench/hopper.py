"""The Hopper GEMM benchmark: our kernels beside torch, the best of cublasLt, fast.cu and DeepGEMM, on one GPU.

    python -m bench.hopper measure --out rows.jsonl --seconds 400     # resumes: rows that the file has are left out
    python -m bench.hopper measure --deepgemm libdeepgemm.so --candidates 1 --out scaled.jsonl   # fp8 with scales
    python -m bench.hopper planned --out planned.json                 # the planner's choices, for measure --also
    python -m bench.hopper regret planned.json rows.jsonl             # how good they are
    python -m bench.hopper check                                      # the dispatcher's table in the emulator
    python -m bench.hopper tune rows.jsonl                            # the dispatcher's table
    python -m bench.hopper report rows.jsonl                          # docs/hopper.md, its picture and its data

How: each arm's result is compared with a product in fp32 before it is timed. An arm's launches are a CUDA graph over
rotating buffers of random normal data, at least twice the L2 together. All arms of a row take turns, forth and back, in
one process, after the power is steady. Time and cycles are read on the GPU (globaltimer, clock64).
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import itertools
import json
import os
import re
import sys
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.gpu import records, tuning
from bench.gpu.arms import (
    Arm,
    Buffers,
    Built,
    DeepGemmArm,
    FastCuArm,
    LtArm,
    PtxgenArm,
    Spec,
    TorchArm,
    TorchScaledArm,
    build,
)
from bench.gpu.candidates import Candidate, again, candidates, chosen, scaled
from bench.gpu.cublaslt import CublasLt, Product
from bench.gpu.held_out import rows_of
from bench.gpu.measure import Bench
from bench.gpu.ranking import planned_names, ranking, regret_of_planned
from bench.gpu.report import bandwidth, bounds, fp8, machine, picture, projections, rows_table, squares, summary
from bench.gpu.suite import Row, suite
from bench.gpu.verify import distinct, emulate, failures, stored
from tools.measurements import replace_section

ROOT = Path(__file__).parents[1]
PAGE, PICTURE, DATA = ROOT / "docs" / "hopper.md", ROOT / "docs" / "hopper.svg", ROOT / "bench" / "data" / "hopper.json"
#: The sections of the page.
PARTS = {
    "machine": machine,
    "summary": summary,
    "squares": squares,
    "projections": projections,
    "projections, dependent": lambda recorded: projections(recorded, "fastest"),
    "fp8": fp8,
    "bandwidth": bandwidth,
    "bounds": bounds,
    "ranking": ranking,
    "rows": rows_table,
}
_WORKSPACE = 64 << 20
#: Arms of ours that take part at most.
_ALL = 14
#: From so many operations on a row is bound by power, and warms up longer.
_LARGE = 10**11
_FP8 = ("e4m3", "e5m2")


@dataclass(frozen=True)
class Settings:
    """How a row is measured."""

    algorithms: int
    repeats: int
    finalists: int
    target_us: float
    warm: float


class Runner:
    """Measures rows on the GPU of this process, and writes a line of JSON for each."""

    def __init__(
        self, settings: Settings, built: dict[Spec, Built], out: Path, fast_cu: Path | None, deepgemm: Path | None
    ) -> None:
        import torch  # type: ignore[import-not-found]

        self.settings, self.built, self.out = settings, built, out
        self.torch = torch
        self.bench = Bench(torch)
        self._workspace = torch.empty(_WORKSPACE, dtype=torch.uint8, device="cuda")
        self.lt = CublasLt(self._workspace.data_ptr(), _WORKSPACE)
        self.fast_cu, self.deepgemm = _library(fast_cu), _library(deepgemm)
        self.machine = {
            "device": torch.cuda.get_device_name(),
            "driver": self.bench.monitor.driver,
            "torch": str(torch.__version__),
            "cublaslt": self.lt.version,
            "date": datetime.date.today().isoformat(),
        }
        self._running = out.with_suffix(".running")
        self._banned_file = out.with_suffix(".banned")
        if self._running.exists():  # what ran when the process before this one died
            with self._banned_file.open("a") as file:
                file.write(self._running.read_text() + "\n")
            self._running.unlink()
        lines = self._banned_file.read_text().splitlines() if self._banned_file.exists() else []
        self.banned = set(lines)

    def measure(self, row: Row, tried: Sequence[Candidate]) -> dict[str, Any]:
        """The record of a row."""
        began, bench, settings = time.monotonic(), self.bench, self.settings
        buffers = Buffers(self.torch, row, scaled=self.deepgemm is not None)
        record: dict[str, Any] = {"row": asdict(row), **self.machine, "sets": buffers.count, "problems": {}}
        arms: list[Arm] = []
        kinds: dict[str, dict[str, Any]] = {}
        problems: dict[str, str] = record["problems"]

        def ranked(made: Sequence[Arm], most: int) -> list[tuple[float, Arm]]:
            found: list[tuple[float, Arm]] = []
            for arm in made:
                try:
                    errors = bench.check(arm, buffers)
                    if errors is not None:
                        problems[arm.name] = f"wrong: {errors[0]:.2e}, {errors[1]:.2e}"
                    else:
                        found.append((bench.quick(arm, buffers.count), arm))
                except Exception as error:
                    problems[arm.name] = f"{type(error).__name__}: {error}"[:200]
                    bench.synchronize()
            found.sort(key=lambda each: each[0])
            for _, arm in found[:most]:
                arms.append(arm)
            return found

        fast = (True, False) if row.dtype in _FP8 else (True,)
        library = self.deepgemm
        if library is not None:  # nothing without scales
            fast = ()
            for make in (
                lambda: TorchScaledArm(self.torch, row, buffers),
                lambda: DeepGemmArm(library, row, buffers),
                lambda: DeepGemmArm(library, row, buffers, dependent=True),
            ):
                try:
                    arm = make()
                except RuntimeError as error:
                    problems[f"arm {len(problems)}"] = str(error)
                    continue
                self._running.write_text(arm.name)
                if arm.name not in self.banned and ranked([arm], 1):
                    kinds[arm.name] = {"kind": arm.name}
        products: list[Product] = []
        for each in fast:
            arm = TorchArm(self.torch, buffers, fast=each)
            if ranked([arm], 1):
                kinds[arm.name] = {"kind": arm.name}
            words = "cublaslt" + ((" fast" if each else " promoted") if row.dtype in _FP8 else "")
            c_type = buffers.c_dtype_name
            product = Product(self.lt, row.m, row.n, row.k, row.dtype, c_type, count=settings.algorithms, fast=each)
            products.append(product)
            offered = [LtArm(product, index, buffers, f"{words} {index}") for index in product.usable]
            found = ranked(offered, 2)
            record[f"ranked {words}"] = [[arm.name, round(us, 3)] for us, arm in found]
            kinds.update({arm.name: {"kind": words, **product.describe(_index(arm))} for _, arm in found[:2]})
        if self.fast_cu is not None and FastCuArm.takes(row) and FastCuArm.name not in self.banned:
            self._running.write_text(FastCuArm.name)
            try:
                made = [FastCuArm(self.fast_cu, row, buffers)]
            except RuntimeError as error:
                made, problems[FastCuArm.name] = [], str(error)
            if ranked(made, 1):
                kinds[FastCuArm.name] = {"kind": "fast.cu"}
        ours = self._ours(row, tried, buffers, problems)
        timed: list[tuple[float, Arm]] = []
        for arm in ours:
            self._running.write_text(arm.name)
            timed += ranked([arm], 0)
        self._running.unlink(missing_ok=True)
        timed.sort(key=lambda each: each[0])
        first = {arm.name: us for us, arm in timed}
        record["candidates"] = [[each.spec.name, each.predicted, first.get(each.spec.name)] for each in tried]
        # First figures of rows that power bounds depend on what ran before: there all take part.
        most = settings.finalists if row.flops < records.POWER_BOUND or row.dtype in _FP8 else _ALL
        products_of_ours = sorted({arm.kind for arm in ours})
        for dependent, kind in itertools.product((False, True), products_of_ours):
            fastest = [arm for _, arm in timed if isinstance(arm, PtxgenArm)]
            fastest = [arm for arm in fastest if arm.dependent == dependent and arm.kind == kind]
            for arm in fastest[:most]:
                arms.append(arm)
                kinds[arm.name] = {"kind": arm.kind, "dependent": dependent, "registers": arm.built.registers}
        start = time.monotonic()
        warm = settings.warm * (5 if row.flops >= _LARGE else 1)
        timings = bench.abba(arms, buffers.count, repeats=settings.repeats, target_us=settings.target_us, warm=warm)
        record["clock"] = bench.monitor.since(start)
        record["arms"] = {name: {**kinds[name], **timing.record()} for name, timing in timings.items()}
        for arm in arms:  # right under load, too
            errors = bench.check(arm, buffers)
            if errors is not None:
                problems[arm.name] = f"wrong after the timing: {errors[0]:.2e}, {errors[1]:.2e}"
        for arm in ours:
            arm.close()
        for product in products:
            product.close()
        record["seconds"] = round(time.monotonic() - began, 2)
        return record

    def _ours(
        self, row: Row, tried: Sequence[Candidate], buffers: Buffers, problems: dict[str, str]
    ) -> list[PtxgenArm]:
        made = []
        for each in tried:
            built = self.built[each.spec]
            if each.spec.name in self.banned:
                problems[each.spec.name] = "ended a process before"
            elif built.error or built.spills or built.serialized:
                problems[each.spec.name] = built.error or f"{built.spills} bytes of spills, or serialized wgmma"
            else:
                try:
                    made.append(PtxgenArm(self.torch, self.bench.driver, built, row, buffers))
                except Exception as error:
                    problems[each.spec.name] = f"{type(error).__name__}: {error}"[:200]
        return made


def _library(path: Path | None) -> ctypes.CDLL | None:
    """A library of other kernels, which leaves the driver's calls to be found."""
    if path is None:
        return None
    ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(path))


def _index(arm: Arm) -> int:
    assert isinstance(arm, LtArm)
    return arm.index


def measure(options: argparse.Namespace) -> int:
    """Measure the rows that the output lacks, until the time is over. 0: all rows are there."""
    end = time.monotonic() + options.seconds
    out = Path(options.out)
    done = {_key(line) for line in out.read_text().splitlines()} if out.exists() else set()
    wanted = [row for dtype in options.dtype for row in rows_of(dtype, options.drawn)]
    rows = [row for row in wanted if re.search(options.rows, row.key)]
    rows = [row for row in rows if row.key not in done]
    jobs = max(os.cpu_count() or 2, 3) - 2
    # Before CUDA starts: the workers are forks.
    with ProcessPoolExecutor(jobs) as pool:
        if options.again:
            known = {each.row.key: each for each in records.read_lines(options.again)}
            earlier = [known.get(row.key) for row in rows]
            listed = list(pool.map(again, rows, earlier, [options.finalists] * len(rows)))
        else:
            choose = scaled if options.deepgemm else candidates if options.candidates else chosen
            listed = list(pool.map(choose, rows, [options.candidates] * len(rows)))
        also = json.loads(options.also.read_text()) if options.also else {}
        for row, tried in zip(rows, listed, strict=True):
            known_specs = {each.spec for each in tried}
            more = [Spec.named(name) for name in also.get(row.key, [])]
            tried += [Candidate(spec, 0.0) for spec in more if spec not in known_specs]
        specs = list(dict.fromkeys(each.spec for row in listed for each in row))
        built = dict(zip(specs, pool.map(build, specs, chunksize=2), strict=True))
    print(f"{len(rows)} rows, {len(specs)} kernels, {sum(not each.error for each in built.values())} built", flush=True)
    settings = Settings(options.algorithms, options.repeats, options.finalists, options.target_us, options.warm)
    runner = Runner(settings, built, out, options.fast_cu, options.deepgemm)
    print(runner.machine, flush=True)
    runner.bench.warm_up()
    longest = 1.0
    for row, tried in zip(rows, listed, strict=True):
        if time.monotonic() + 1.5 * longest > end:
            print("out of time; run it again for the rest", flush=True)
            return 2
        try:
            record = runner.measure(row, tried)
        except Exception:
            print(f"{row.key}: {traceback.format_exc()}", flush=True)
            runner.bench.synchronize()
            continue
        longest = max(longest, record["seconds"])
        with out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(_line(row, record), flush=True)
    return 0


def tune(options: argparse.Namespace) -> int:
    """Write the dispatcher's table from what was measured."""
    print(tuning.write(records.read_lines(options.files)))
    return 0


def report(options: argparse.Namespace) -> int:
    """Record what was measured beside what is recorded of other rows, and write the page and its picture."""
    if options.files:
        DATA.parent.mkdir(exist_ok=True)
        known = load() if DATA.exists() else []
        DATA.write_text(records.to_json(records.joined([*known, *records.read_lines(options.files)])))
    recorded = load()
    PAGE.write_text(renewed(PAGE.read_text(), recorded))
    PICTURE.write_text(picture(recorded))
    return 0


def planned(options: argparse.Namespace) -> int:
    """Write the planner's choices for the suite, for `measure --also`."""
    rows = [row for dtype in options.dtype for row in suite(dtype)]
    options.out.write_text(json.dumps(planned_names(rows), indent=1) + "\n")
    return 0


def regret(options: argparse.Namespace) -> int:
    """Print how much slower those choices are than the fastest kernels that were measured."""
    recorded = records.read_lines(options.files) if options.files else load()
    print(regret_of_planned(recorded, json.loads(options.planned.read_text())))
    return 0


def check(options: argparse.Namespace) -> int:
    """Run every kernel of the dispatcher's table in the emulator; 1 where one fails."""
    failed = 0
    for name, wrong in failures("h200"):
        print(f"{'FAILED' if wrong else 'ok'} {name}\n{wrong}".rstrip(), flush=True)
        failed += bool(wrong)
    print(f"{failed} failed")
    return 1 if failed else 0


def bits(options: argparse.Namespace) -> int:
    """Compare every kernel of the dispatcher's table on the GPU with the emulator, bit by bit; 1 where one differs."""
    rows = distinct("h200")
    with ProcessPoolExecutor(max((os.cpu_count() or 2) - 2, 1)) as pool:
        emulated = list(pool.map(emulate, rows))
    from ptxgen.gpu import Gpu

    gpu = Gpu()
    failed = 0
    for row, expected in zip(rows, emulated, strict=True):
        same = stored(gpu, row) == expected
        failed += not same
        if not same:
            print(f"DIFFERS {row.kernel} {' '.join(row.options)}", flush=True)
    print(f"{len(rows) - failed} of {len(rows)} kernels give the emulator's bits", flush=True)
    return 1 if failed else 0


def load() -> list[records.Record]:
    """What is recorded."""
    return records.from_json(DATA.read_text())


def renewed(page: str, recorded: Sequence[records.Record]) -> str:
    """The page with its tables."""
    for name, part in PARTS.items():
        page = replace_section(page, name, part(recorded))
    return page


def _key(line: str) -> str:
    return Row(**json.loads(line)["row"]).key


def _line(row: Row, record: dict[str, Any]) -> str:
    """A row in a line, for who watches."""
    arms = record["arms"]

    def best(kind: str, dependent: bool = False) -> tuple[float, str]:
        chosen = [(name, each) for name, each in arms.items() if each["kind"].startswith(kind)]
        found = [(each["us"], name) for name, each in chosen if each.get("dependent", False) == dependent]
        return min(found, default=(float("nan"), ""))

    torch, lt, ours, dependent = best("torch"), best("cublaslt"), best("ptxgen"), best("ptxgen", True)
    lt = lt if lt[1] else best("DeepGEMM")
    times = (
        f"torch {torch[0]:9.2f} {'lt' if 'lt' in lt[1] else lt[1]} {lt[0]:9.2f} ours {ours[0]:9.2f} {dependent[0]:9.2f}"
    )
    ratios = f"{torch[0] / ours[0]:.3f} {lt[0] / ours[0]:.3f} {lt[0] / dependent[0]:.3f}"
    return f"{row.key:24} {times} | {ratios} | {ours[1]} | {dependent[1]} | {len(record['problems'])} problems"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.hopper", description=__doc__)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("measure", help="measure rows on the GPU")
    command.add_argument("--out", required=True, help="file of JSON lines, one a row; rows that it has are left out")
    command.add_argument("--seconds", type=float, default=500, help="no row starts that would end after that")
    command.add_argument("--rows", default="", help="regular expression on keys such as 'bf16 4096x4096x4096'")
    command.add_argument("--dtype", action="append", help="bf16 (default), f16, e4m3 or e5m2; many")
    command.add_argument("--drawn", nargs=3, metavar=("PART", "COUNT", "SEED"), help="drawn rows for the suite's")
    command.add_argument("--candidates", type=int, default=0, help="the planner's first so many; 0: what best() says")
    command.add_argument("--again", nargs="*", type=Path, help="the fastest of what `measure` wrote before, instead")
    command.add_argument("--also", type=Path, help="JSON: names of more kernels, by the key of a row")
    command.add_argument("--finalists", type=int, default=1, help="of ours that take part, and as many dependent")
    command.add_argument("--algorithms", type=int, default=32, help="of cublasLt that are ranked")
    command.add_argument("--repeats", type=int, default=5)
    command.add_argument("--target-us", type=float, default=1000, help="length of a turn")
    command.add_argument("--warm", type=float, default=0.2, help="seconds before a row is timed; 5 times that if large")
    command.add_argument("--fast-cu", type=Path, help="the library of bench/gpu/fast_cu.cu")
    command.add_argument(
        "--deepgemm", type=Path, help="fp8 with 1x128 and 128x128 scales only, and the library of bench/gpu/deepgemm.cu"
    )
    command.set_defaults(work=measure)
    command = commands.add_parser("planned", help="write the planner's choices, for measure --also")
    command.add_argument("--out", required=True, type=Path, help="JSON: names of kernels, by the key of a row")
    command.add_argument("--dtype", action="append", help="bf16 and e4m3 by default; many")
    command.set_defaults(work=planned)
    command = commands.add_parser("regret", help="print how much slower those are than the fastest measured")
    command.add_argument("planned", type=Path, help="what `planned` wrote")
    command.add_argument("files", nargs="*", type=Path, help="what `measure` wrote; what is recorded by default")
    command.set_defaults(work=regret)
    command = commands.add_parser("check", help="run the dispatcher's table in the emulator, under every schedule")
    command.set_defaults(work=check)
    command = commands.add_parser("bits", help="compare that table's kernels on the GPU with the emulator, bit by bit")
    command.set_defaults(work=bits)
    for work, words in ((tune, "write the dispatcher's table"), (report, "write docs/hopper.md again")):
        command = commands.add_parser(work.__name__, help=words)
        command.add_argument("files", nargs="*", type=Path, help="what `measure` wrote; the last has the last word")
        command.set_defaults(work=work)
    options = parser.parse_args()
    if options.work is measure:
        options.dtype = options.dtype or ["e4m3" if options.deepgemm else "bf16"]
        if options.deepgemm and options.dtype != ["e4m3"]:
            parser.error(f"--deepgemm measures e4m3, not {', '.join(options.dtype)}")
    if options.work is planned:
        options.dtype = options.dtype or ["bf16", "e4m3"]
    return options.work(options)


if __name__ == "__main__":
    sys.exit(main())
