"""Times many kernels of the menu on drawn shapes, beside torch and cublasLt, for the fit of the dispatcher.

    python -m bench.gpu.survey CHOICES.json --out survey.jsonl --seconds 480 [--cubins FOLDER]

CHOICES has the rows and the names of the kernels to try on each. All arms of a row run in turns, forth and back.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pickle
import statistics
import time
import traceback
import zlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.gpu.arms import Arm, Buffers, Built, LtArm, Spec, TorchArm, build
from bench.gpu.cublaslt import CublasLt, Product
from bench.gpu.measure import Bench
from bench.gpu.prepared import Loaded, PreparedArm
from bench.gpu.suite import Row

_WORKSPACE = 64 << 20
#: The launches of a graph take about so many microseconds; a row's graphs at most so many seconds.
_TARGET_US, _ROW_SECONDS = 250.0, 1.2


def load(names: Sequence[str], folder: Path | None, jobs: int) -> dict[str, Built]:
    """The kernels by name: those that the folder has, and the others built here."""
    made: dict[str, Built] = {}
    for name in names:
        file = stored(folder, name) if folder else None
        if file and file.is_file():
            made[name] = pickle.loads(zlib.decompress(file.read_bytes()))
    missing = [name for name in names if name not in made]
    with ProcessPoolExecutor(jobs) as pool:
        for name, built in zip(missing, pool.map(build, map(Spec.named, missing), chunksize=1), strict=True):
            made[name] = built
    return made


def stored(folder: Path, name: str) -> Path:
    return folder / (hashlib.sha256(name.encode()).hexdigest()[:20] + ".z")


class Survey:
    """The GPU of this process; `running` has the kernel that runs, for a process after one that died."""

    def __init__(self, built: dict[str, Built], algorithms: int, running: Path) -> None:
        import torch  # type: ignore[import-not-found]

        self.torch, self.algorithms, self.running = torch, algorithms, running
        self.bench = Bench(torch)
        workspace = torch.empty(_WORKSPACE, dtype=torch.uint8, device="cuda")
        self._workspace = workspace
        self.lt = CublasLt(workspace.data_ptr(), _WORKSPACE)
        self.built, self.loaded = built, dict[str, Loaded]()
        self.machine = {
            "device": torch.cuda.get_device_name(),
            "driver": self.bench.monitor.driver,
            "torch": str(torch.__version__),
            "cublaslt": self.lt.version,
            # Clusters meet without a release (bench.gpu.fit corrects older times).
            "relaxed": True,
        }

    def row(self, row: Row, product: str, names: Sequence[str], judged: int = 0) -> dict[str, Any]:
        """Times of all arms; of `judged` > 0 many more turns of cublasLt's best two, torch and ours."""
        torch, bench = self.torch, self.bench
        buffers, began = Buffers(torch, row), time.monotonic()
        fast = product != "promoted"
        lt = Product(self.lt, row.m, row.n, row.k, row.dtype, buffers.c_dtype_name, count=self.algorithms, fast=fast)
        arms: list[Arm] = [TorchArm(torch, buffers, fast=fast)]
        arms += [LtArm(lt, index, buffers, f"cublaslt {index}") for index in lt.usable]
        problems: dict[str, str] = {}
        for name in names:
            try:
                arms.append(PreparedArm(torch, self._loaded(name), row, buffers))
            except Exception as error:
                problems[name] = f"{type(error).__name__}: {error}"[:160]
        right: list[Arm] = []
        for arm in arms:
            self.running.write_text(arm.name, encoding="utf-8")
            try:
                errors = bench.check(arm, buffers)
            except Exception as error:
                problems[arm.name] = f"{type(error).__name__}: {error}"[:160]
                try:
                    bench.synchronize()
                except Exception:  # the context is lost: the next process leaves this kernel out
                    print(arm.name, error, flush=True)
                    os._exit(4)
                continue
            if errors is None or (isinstance(arm, LtArm | TorchArm) and errors[0] < 2e-2):
                right.append(arm)
            else:
                problems[arm.name] = f"wrong: {errors[0]:.2e} {errors[1]:.2e}"
        self.running.unlink(missing_ok=True)
        first = bench.turns(right, buffers.count, _TARGET_US, _ROW_SECONDS, turns=2 if judged else 4)
        record: dict[str, Any] = {
            "row": asdict(row), "product": product, "sets": buffers.count, "problems": problems,
            "us": {name: round(statistics.median(us), 3) for name, us in first.items()},
        }  # fmt: skip
        theirs = min((each for each in first if each.startswith("cublaslt")), key=lambda n: record["us"][n], default="")
        if theirs:
            record["algorithm"] = lt.describe(int(theirs.split()[1]))
        if judged:
            ranked = sorted((each for each in first if each.startswith("cublaslt")), key=lambda n: record["us"][n])
            kept = {*ranked[:2], *(arm.name for arm in right if not arm.name.startswith("cublaslt"))}
            finalists = [arm for arm in right if arm.name in kept]
            start = time.monotonic()
            final = bench.turns(finalists, buffers.count, 1000.0, 3.0, turns=judged)
            record["clock"] = bench.monitor.since(start)
            record["judged"] = {
                name: [round(statistics.median(us), 3), round(_spread(us), 4), len(us)] for name, us in final.items()
            }
            for arm in finalists:
                errors = bench.check(arm, buffers)
                if errors is not None and isinstance(arm, PreparedArm):
                    problems[arm.name] = "wrong after the timing"
        lt.close()
        record["seconds"] = round(time.monotonic() - began, 2)
        return record

    def _loaded(self, name: str) -> Loaded:
        if name not in self.loaded:
            built = self.built[name]
            if built.error or built.spills or built.serialized:
                raise ValueError(built.error or f"{built.spills} bytes of spills, or serialized wgmma")
            self.loaded[name] = Loaded(self.bench.driver, built)
        return self.loaded[name]


def _spread(values: Sequence[float]) -> float:
    if len(values) < 4:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4)
    return (high - low) / 2 / statistics.median(values)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("choices", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--cubins", type=Path)
    parser.add_argument("--algorithms", type=int, default=16)
    parser.add_argument("--judged", type=int, default=0)
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    read = json.loads(options.choices.read_text(encoding="utf-8"))
    names = sorted({read["names"][number] for each in read["rows"] for number in each["try"]})
    built = load(names, options.cubins, max((os.cpu_count() or 2) - 1, 1))
    running, banned = options.out.with_suffix(".running"), options.out.with_suffix(".banned")
    if running.exists():
        with banned.open("a", encoding="utf-8") as file:
            file.write(running.read_text(encoding="utf-8") + "\n")
        running.unlink()
    for name in banned.read_text(encoding="utf-8").splitlines() if banned.exists() else ():
        if name in built:
            built[name] = Built(Spec.named(name), error="ended a process before")
    print(f"{len(names)} kernels, {sum(bool(each.error) for each in built.values())} not built", flush=True)
    survey = Survey(built, options.algorithms, running)
    print(survey.machine, f"{end - time.monotonic():.0f} s left", flush=True)
    survey.bench.warm_up(4)
    done = set(options.out.read_text(encoding="utf-8").splitlines()) if options.out.exists() else set()
    done = {(each["product"], Row(**each["row"]).key) for each in map(json.loads, done) if "row" in each}
    with options.out.open("a", encoding="utf-8") as out:
        out.write(json.dumps(survey.machine) + "\n")
        for number, each in enumerate(read["rows"]):
            if (each["product"], Row(**each["row"]).key) in done:
                continue
            if time.monotonic() > end:
                print(f"out of time at {number} of {len(read['rows'])}", flush=True)
                break
            row = Row(**each["row"])
            try:
                record = survey.row(row, each["product"], [read["names"][i] for i in each["try"]], options.judged)
            except Exception:
                print(row.key, traceback.format_exc()[-800:], flush=True)
                survey.bench.synchronize()
                continue
            out.write(json.dumps(record) + "\n")
            out.flush()
            if number % 40 == 0 or options.judged:
                _say(record)


def _say(record: dict[str, Any]) -> None:
    us = {**record["us"], **{name: each[0] for name, each in record.get("judged", {}).items()}}
    theirs = min((value for name, value in us.items() if name.startswith("cublaslt")), default=float("nan"))
    ours = {name: value for name, value in us.items() if name.startswith("hopper")}
    if not ours:
        print(record["row"], record["problems"], flush=True)
        return
    name = min(ours, key=lambda each: ours[each])
    row = record["row"]
    print(
        f"{record['product']:8} {row['m']}x{row['n']}x{row['k']}: cublasLt {theirs:.2f}, ours {ours[name]:.2f} "
        f"({theirs / ours[name]:.3f}) of {len(ours)}, {len(record['problems'])} problems, {name[18:]}",
        flush=True,
    )


if __name__ == "__main__":
    main()
