"""The command `python -m tools.outside.run_known`: public kernels with known outputs, in the emulator."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ptxgen import Emulator, Kernel
from ptxgen.device.report import LaunchReport
from ptxgen.emulator.engines.timeline import Schedule
from tools.outside import clones, rust_values
from tools.outside.files import raised, target_of
from tools.outside.known import KNOWN, Known

SCHEDULES: tuple[Schedule, ...] = ("eager", "late", "random")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One launch: empty `wrong` where the outputs are right and no error was reported."""

    name: str
    wrong: str = ""


def run(known: Known, text: str, schedule: Schedule, seed: int) -> Outcome:
    """Run one kernel on random inputs and compare all its arrays."""
    name = f"{known.repository} {known.path} {known.entry} [{schedule}]"
    arguments, expected = known.make(np.random.default_rng(seed))
    try:
        source, _ = raised(text)
        kernel = Kernel.from_ptx(source, entry=known.entry)
        device = Emulator(target_of(source), schedule=schedule, seed=seed)
        arrays = {at: device.array(each) for at, each in enumerate(arguments) if isinstance(each, np.ndarray)}
        given = [arrays.get(at, each) for at, each in enumerate(arguments)]
        report = device.launch(kernel, known.grid, known.block, given, shared_bytes=known.shared_bytes)
    except Exception:
        return Outcome(name, traceback.format_exc(limit=-2))
    wrong = problems(report, known.deserved)
    for position, array in enumerate(arguments):
        if isinstance(array, np.ndarray) and position not in known.undetermined:
            # Arrays that the kernel only reads must be as they were.
            found, wanted = arrays[position].numpy(), expected.get(position, array)
            tolerance = known.tolerance if position in expected else 0
            if not np.allclose(found, wanted, rtol=tolerance, atol=tolerance, equal_nan=True):
                wrong += f"argument {position} differs, at most by {np.abs(found - wanted).max()}; "
    return Outcome(name, wrong)


def problems(report: LaunchReport, deserved: frozenset[str] = frozenset()) -> str:
    """What speaks against a launch besides its outputs."""
    errors = [each for each in report.findings if each.severity == "error" and each.code not in deserved]
    told = "; ".join(f"{each.code} line {each.line}: {each.message[:200]}" for each in errors[:2])
    if report.status in ("ok", "findings"):
        return told
    return f"{report.status}: {report.summary()[:300]} "


def outcomes(folder: Path, schedules: Sequence[Schedule], seed: int) -> Iterator[Outcome]:
    """All launches of the clones in a folder."""
    for known in KNOWN:
        clone = clones.find(folder, known.repository)
        texts = [content for _, content in clone.files([known.path])] if clone else []
        for text in texts:
            yield from (run(known, text.decode(), schedule, seed) for schedule in schedules)
    clone = clones.find(folder, rust_values.REPOSITORY)
    if clone is not None:
        for test, text in rust_values.tests(clone):
            yield from (run_recorded(test, text, schedule, seed) for schedule in schedules)


def run_recorded(test: rust_values.Test, text: str, schedule: Schedule, seed: int) -> Outcome:
    """Run a kernel on the input that its repository's test gives, and compare with the output that it expects."""
    name = f"{rust_values.REPOSITORY} {test.name} [{schedule}]"
    try:
        source, _ = raised(text)
        kernel = Kernel.from_ptx(source)
        device = Emulator(target_of(source), schedule=schedule, seed=seed)
        result = device.array(np.zeros_like(test.output))
        given = [result] if test.input is None else [device.array(test.input), result]
        # A test without an input gives its output in the place of both.
        given = [*given, result][: len(kernel.parameters)]
        report = device.launch(kernel, (1,), (test.threads,), given, shared_bytes=1024)
    except Exception:
        return Outcome(name, traceback.format_exc(limit=-2))
    wrong = problems(report, rust_values.DESERVED.get(test.name, frozenset()))
    found = result.numpy()
    if not rust_values.same(found, test.output):
        wrong += f"{found} instead of {test.output}"
    return Outcome(name, wrong)


def main(words: Sequence[str] | None = None) -> int:
    """Print what is wrong and a count; exit with 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("clones", type=Path, help="folder of clones: owner/name, owner+name or name")
    parser.add_argument("--schedules", nargs="*", choices=SCHEDULES, default=SCHEDULES)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(words)
    found = list(outcomes(arguments.clones, arguments.schedules, arguments.seed))
    wrong = [each for each in found if each.wrong]
    for each in wrong:
        print(f"{each.name}\n    {each.wrong}")
    print(f"{len(found)} launches, {len(wrong)} of them wrong")
    return 1 if wrong or not found else 0


if __name__ == "__main__":
    sys.exit(main())
