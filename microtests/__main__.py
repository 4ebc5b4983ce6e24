"""The command `python -m microtests`."""

from __future__ import annotations

import argparse
import datetime
import importlib
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import microtests
from microtests.harness import assembling, covered, kit, recordings
from microtests.harness.definition import Definition, chosen, families
from microtests.harness.gpu import run_on_gpu
from microtests.harness.run import run
from ptxgen.emulator import Emulator
from ptxgen.gpu import Gpu, GpuNotFoundError

VERDICTS = ("passed", "wrong", "differing", "failed", "incomplete", "absent")


class Progress:
    """A line that is written over, where the output is a terminal; messages above it."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.began = total, 0, time.monotonic()
        self.live = sys.stderr.isatty()

    def step(self, count: int = 1) -> None:
        self.done += count
        if self.live or self.done % 200 < count:
            seconds = time.monotonic() - self.began
            end = "\r" if self.live else "\n"
            print(f"{self.done}/{self.total} in {seconds:.0f} s", end=end, file=sys.stderr, flush=True)

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self.began

    def say(self, text: str) -> None:
        print(text, flush=True)


def on_emulator(found: Sequence[Definition], schedule: Any, seed: int) -> dict[str, Counter[str]]:
    """Run in the emulator; compare with references and recordings."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    progress, reasons = Progress(len(found)), Counter[str]()
    for definition in found:
        try:
            verdict, message, known = emulated(definition, schedule, seed)
        except Exception as error:  # one definition must not end the others
            verdict, message, known = "failed", f"{type(error).__name__}: {error}", False
        table[definition.family]["recorded"] += known
        table[definition.family][verdict] += 1
        if verdict not in ("passed", "incomplete"):
            progress.say(f"{verdict}: {definition.name}: {message}")
        elif verdict == "incomplete":
            reasons[message] += 1
        progress.step()
    for reason, count in sorted(reasons.items()):
        progress.say(f"{count} incomplete: {reason}")
    return table


def emulated(definition: Definition, schedule: Any, seed: int) -> tuple[str, str, bool]:
    """(verdict, message, whether it was compared with a recording) of a run in the emulator."""
    draft = definition.home()
    result = run(definition, Emulator(draft.target, schedule, seed), draft)
    if definition.unmodelled and (result.verdict != "incomplete" or definition.unmodelled not in result.message):
        return "failed", f"it must be incomplete ({definition.unmodelled}), but is {result.verdict}", False
    if result.verdict == "incomplete" and not definition.unmodelled:
        return "failed", f"incomplete: {result.message}", False
    kept = recordings.recorded(definition)
    if kept is None or not (result.outputs or (draft.fault and result.verdict == "passed")):
        return result.verdict, result.message, False
    differs = recordings.difference(draft, result, kept)
    if differs:
        return "differing", f"{result.message}; {differs}".strip("; "), True
    return result.verdict, result.message, True


def on_gpu(found: Sequence[Definition], jobs: int, seconds: float | None, record: bool) -> dict[str, Counter[str]]:
    """Run on this machine's GPU, and record what it answers."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    entries: dict[str, list[dict[str, Any]]] = defaultdict(list)
    progress = Progress(len(found))
    for each in found:
        if each.emulator_only:
            table[each.family]["absent"] += 1
    for answer in run_on_gpu([each for each in found if not each.emulator_only], jobs, total=seconds):
        family, verdict = answer["name"].partition(".")[0], answer["verdict"]
        table[family][verdict] += 1
        if verdict in ("wrong", "failed"):
            progress.say(f"{verdict}: {answer['name']}: {answer['message']}")
        if "entry" in answer:
            entries[family].append(answer["entry"])
        progress.step()
    if record:
        heading = machine()
        for family, made in entries.items():
            recordings.write(family, heading, made, [each.name for each in chosen([family])])
            table[family]["recorded"] = len(made)
    return table


def machine() -> dict[str, str]:
    """What is written down with recordings: device, driver, ptxas, date."""
    from ptxgen.toolchain import find_ptxas, ptxas_version

    cuda = importlib.import_module("cuda.bindings.driver")
    cuda.cuInit(0)
    _, name = cuda.cuDeviceGetName(256, 0)
    _, api = cuda.cuDriverGetVersion()
    driver = f"CUDA {api // 1000}.{api % 1000 // 10}"
    try:
        with open("/proc/driver/nvidia/version") as file:
            words = file.readline().split()
        driver = next(word for word in words if word[0].isdigit() and word.count(".") >= 1) + f", {driver}"
    except (OSError, StopIteration):
        pass
    return {
        "device": bytes(name).split(b"\0")[0].decode(),
        "driver": driver,
        "ptxas": str(ptxas_version(find_ptxas())),
        "date": datetime.date.today().isoformat(),
    }


def make_kit(parser: argparse.ArgumentParser, found: Sequence[Definition], options: argparse.Namespace) -> int:
    """Ask a GPU, or the emulator in its place, all there is, and write its file."""
    targets = kit.KITS[options.kit]
    ordered = kit.order(found)
    if options.device == "gpu":
        try:
            gpu = Gpu()
        except GpuNotFoundError as missing:
            parser.error(str(missing))
        if gpu.target not in targets:
            parser.error(f"this GPU is {gpu.target}; kit {options.kit} is for {', '.join(targets)}")
        heading = {"kit": options.kit, "target": gpu.target, **machine()}
        answers, encode = kit.on_gpu(ordered, options.jobs, options.seconds or kit.SECONDS[options.kit]), gpu.tensormap
    else:
        target = options.target[0] if options.target else targets[0]
        if target not in targets:
            parser.error(f"kit {options.kit} is for {', '.join(targets)}, not {target}")
        heading = {
            "kit": options.kit,
            "target": target,
            "device": f"emulated {target}",
            "date": datetime.date.today().isoformat(),
        }
        answers, encode = kit.emulated(ordered, target, options.jobs, options.seconds), None
    path = options.output or Path(f"{options.kit}-{heading['target']}.kit.gz")
    verdicts, progress = Counter[str](), Progress(len(ordered))

    def counted() -> Iterator[dict[str, Any]]:
        for answer in answers:
            verdicts[answer["verdict"]] += 1
            progress.step()
            yield answer

    size = kit.write(path, heading, counted(), encode)
    words = ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(verdicts.items()))
    print(f"{path}: {size:,} bytes; {words}; {progress.seconds:.0f} s. Read it with: ptxgen verify {path}")
    return 0


def on_ptxas(found: Sequence[Definition], jobs: int, targets: Sequence[str]) -> dict[str, Counter[str]]:
    """Assemble for every target."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    made = assembling.drafts(found, targets)
    for name, _ in made:
        table[name.partition(".")[0]]["passed"] += 1
    progress = Progress(len(made))
    for count, refusals in assembling.refused(made, jobs):
        for refusal in refusals:
            family = refusal.name.partition(".")[0]
            table[family]["passed"] -= 1
            table[family]["failed"] += 1
            progress.say(f"refused: {refusal.name} for {refusal.target}: {refusal.message}")
        progress.step(count)
    return table


def show(table: dict[str, Counter[str]]) -> None:
    """The table at the end."""
    columns = [name for name in (*VERDICTS, "recorded") if any(row[name] for row in table.values())]
    print("\n" + f"{'family':<14}" + "".join(f"{name:>12}" for name in columns))
    total: Counter[str] = Counter()
    for family in sorted(table):
        total.update(table[family])
        print(f"{family:<14}" + "".join(f"{table[family][name]:>12,}" for name in columns))
    print(f"{'all':<14}" + "".join(f"{total[name]:>12,}" for name in columns))


def main() -> int:
    """Exit with 1 where something is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m microtests", description=microtests.__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("filters", nargs="*", help="families, or beginnings of names; all by default")
    parser.add_argument("--device", choices=("emulator", "ptxas", "gpu"), default="emulator")
    parser.add_argument("--record", action="store_true", help="write down what the GPU answers")
    parser.add_argument(
        "--target", action="append", help="a target for ptxas (or several; all by default), or of --kit in the emulator"
    )
    parser.add_argument("--schedule", choices=("eager", "late", "random"), default="eager")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=max(1, min(12, (os.cpu_count() or 2) - 2)))
    parser.add_argument("--seconds", type=float, default=None, help="begin nothing more after this time (gpu, --kit)")
    parser.add_argument("--coverage", action="store_true", help="write down which declarations have microtests")
    parser.add_argument("--kit", choices=tuple(kit.KITS), help="all answers of one generation, in one file to send in")
    parser.add_argument("--output", type=Path, help="the file of --kit")
    parser.add_argument("--list", action="store_true", help="print the names")
    options = parser.parse_args()
    found = chosen(options.filters)
    if not found:
        parser.error(f"no microtest begins with {' or '.join(options.filters)}")
    if options.list:
        print("\n".join(each.name for each in found))
        return 0
    if options.coverage:
        print(f"{covered.write(chosen())} declarations have microtests: {covered.FILE.name}")
        return 0
    began = time.monotonic()
    if options.kit:
        if options.device == "ptxas":
            parser.error("--kit runs on the GPU or in the emulator")
        return make_kit(parser, found, options)
    if options.device == "gpu":
        try:
            Gpu()  # each worker takes one of its own
        except GpuNotFoundError as missing:
            parser.error(str(missing))
        table = on_gpu(found, options.jobs, options.seconds, options.record)
    elif options.device == "ptxas":
        table = on_ptxas(found, options.jobs, options.target or assembling.TARGETS)
    else:
        table = on_emulator(found, options.schedule, options.seed)
    show(table)
    print(f"{len(found)} definitions of {len(families(found))} families in {time.monotonic() - began:.0f} s")
    return 1 if any(row[name] for row in table.values() for name in ("wrong", "failed", "differing")) else 0


if __name__ == "__main__":
    sys.exit(main())
