"""Draw fresh kernels, run them under several schedules, and count what is reported: `python -m tools.fresh --help`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .cub_programs import source

HERE = Path(__file__).parent
STACKS = ("triton", "cute", "jax", "tilelang", "numba", "cub")
SCHEDULES = (("eager", 0), ("late", 0), ("random", 1), ("random", 2))


@dataclass
class Counts:
    """What the kernels of a compiler came to."""

    right: set[str] = field(default_factory=set)
    wrong: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    launches: int = 0
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)
    advice: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Launches that ended as neither `ok` nor `findings`, by kernel and status.
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)


def command(stack: str, target: str, seed: str, given: argparse.Namespace) -> list[str]:
    """The program of a compiler, compiled where that is needed."""
    if stack != "cub":
        script = [given.python, str(HERE / f"{stack}_programs.py")]
        return [*script, *([given.cutlass] if stack == "cute" else []), seed, *given.only]
    text, program = given.folder / f"cub_{seed}.cu", given.folder / f"cub_{seed}_{target}"
    text.write_text(source(seed))
    if not program.exists():
        options = ["-std=c++17", "-lineinfo", "--extended-lambda", f"-arch={target}", "-o", str(program)]
        subprocess.run([given.nvcc, *options, *given.nvcc_options, str(text)], check=True)
    return [str(program), *given.only]


def run(
    stack: str, target: str, schedule: tuple[str, int], seed: str, given: argparse.Namespace
) -> Iterator[tuple[str, object]]:
    """The lines that a program prints of its kernels, and its launches."""
    name = f"{stack}_{seed}_{target}_{schedule[0]}{schedule[1]}"
    report, log = given.folder / f"{name}.json", given.folder / f"{name}.log"
    if not report.exists() or given.only:
        report.unlink(missing_ok=True)
        words = [
            sys.executable,
            "-m",
            "ptxgen",
            "exec",
            "--target",
            target,
            "--schedule",
            schedule[0],
            "--seed",
            str(schedule[1]),
        ]
        words += ["--json", str(report), "--timeout", str(given.timeout), "--", *command(stack, target, seed, given)]
        with log.open("w") as file:
            subprocess.run(words, stdout=file, stderr=subprocess.STDOUT, check=False)
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith(("right: ", "WRONG: ")):
            yield line[:5], line[7:]
    if report.exists():
        yield "launches", json.loads(report.read_text())["launches"]
    else:
        yield "WRONG", f"{name} left no report"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.fresh", description=__doc__)
    parser.add_argument("stack", nargs="*", choices=[*STACKS, []], help="compilers; all if none is named")
    parser.add_argument("--seed", default="0", help="draws the kernels; several are joined by commas")
    parser.add_argument("--python", default=sys.executable, help="of an environment that has the compilers")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--nvcc-options", default="", type=str.split, help="such as -I for CCCL")
    parser.add_argument("--cutlass", default="", help="checkout of NVIDIA/cutlass, whose examples `cute` runs")
    parser.add_argument(
        "--folder", type=Path, default=Path("fresh"), help="of logs and reports, which are not made again"
    )
    parser.add_argument("--target", default="sm_90a,sm_100a", type=lambda text: text.split(","))
    parser.add_argument("--schedules", default=4, type=int, help="how many of eager, late, random 1, random 2")
    parser.add_argument("--only", default="", type=str.split, help="names of kernels")
    parser.add_argument("--timeout", default=3000, type=int, help="seconds of one program")
    given = parser.parse_args(arguments)
    given.folder = given.folder.resolve()
    given.folder.mkdir(parents=True, exist_ok=True)
    bad = 0
    for stack in given.stack or STACKS:
        counts = Counts()
        for seed in given.seed.split(","):
            for target in given.target:
                for schedule in SCHEDULES[: given.schedules]:
                    for kind, what in run(stack, target, schedule, seed, given):
                        if isinstance(what, str):
                            key = f"{seed} {target} {what}"
                            counts.right.add(key) if kind == "right" else counts.wrong[key].append(
                                f"{schedule[0]} {schedule[1]}"
                            )
                        elif isinstance(what, list):
                            count(counts, what, f"{target} {schedule[0]} {schedule[1]}")
        bad += len(counts.wrong) + sum(counts.errors.values())
        print(
            f"{stack}: {len(counts.right)} kernels right, {len(counts.wrong)} wrong, {counts.launches} launches, ",
            end="",
        )
        print(f"{sum(counts.errors.values())} errors, {sum(counts.advice.values())} advice")
        for key, schedules in counts.wrong.items():
            print(f"    wrong: {key} ({', '.join(schedules)})")
        for title, found in (("error", counts.errors), ("advice", counts.advice), ("end", counts.ends)):
            for (what, where), number in found.most_common():
                print(f"    {title}: {what} of {where}, {number} times")
    return 1 if bad else 0


def count(counts: Counts, launches: list[dict[str, object]], where: str) -> None:
    """Add the launches of a program."""
    for launch in launches:
        counts.launches += 1
        kernel = f"{launch['kernel']} ({where})"
        if launch["status"] not in ("ok", "findings"):
            counts.ends[str(launch["status"]), kernel] += 1
        findings = launch["findings"]
        for finding in findings if isinstance(findings, list) else []:
            goal = counts.errors if finding["severity"] == "error" else counts.advice
            goal[str(finding["code"]), kernel] += 1


if __name__ == "__main__":
    sys.exit(main())
