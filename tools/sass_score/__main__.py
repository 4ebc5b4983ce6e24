"""The command `python -m tools.sass_score`."""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

import tools.sass_score
from ptxgen.toolchain import find_ptxas, ptxas_version
from tools.measurements import record
from tools.sass_score.judges import Cccl
from tools.sass_score.kernels import SOURCES, modules, source
from tools.sass_score.pairs import Judged, Task, do

ROOT = Path(__file__).parents[2]
#: Reported misses that are printed in full.
_SHOWN = 40


@dataclass(frozen=True)
class Sizes:
    """How much is generated: changes of each source's words, and modules with edits of their PTX and equal pairs."""

    words: int
    modules: int


def main() -> int:
    """Print the score and each miss; exit with 1 if there are any."""
    parser = argparse.ArgumentParser(description=tools.sass_score.__doc__)
    parser.add_argument("--words", type=int, default=100, help="changes of words of each of the kernels (default 100)")
    parser.add_argument("--modules", type=int, default=100, help="modules for PTX edits and equal pairs")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cccl", type=Path, help="ci/sass/compare_sass.py of a checkout of NVIDIA/cccl")
    parser.add_argument("--cuobjdump", type=Path, help="the program, for --cccl (wheel nvidia-cuda-cuobjdump)")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "sass-score", help="where results are kept")
    parser.add_argument("--record", action="store_true", help="write the score into docs/measurements.md")
    arguments = parser.parse_args()
    if (arguments.cccl is None) != (arguments.cuobjdump is None):
        parser.error("--cccl and --cuobjdump go together")
    os.environ["PTXGEN_CACHE"] = ""
    cccl = Cccl(arguments.cccl, arguments.cuobjdump) if arguments.cccl else None
    every = list(tasks(Sizes(arguments.words, arguments.modules), arguments.seed, cccl))
    found = judge(every, arguments.jobs, arguments.folder)
    wrong = [each for each in found if not each.right]
    for each in wrong[:_SHOWN]:
        print(f"{each.fault}: {each.kind}: {each.what}")
    text = "\n".join(report(found, cccl))
    print(text)
    if arguments.record:
        record("sass", text)
    return 1 if wrong else 0


def judge(every: Sequence[Task], jobs: int, folder: Path) -> list[Judged]:
    """All pairs of some tasks; the results of a task that are in the folder already are read."""
    folder.mkdir(parents=True, exist_ok=True)
    code = sources()
    paths = {task: folder / f"{hashlib.sha256((code + repr(task)).encode()).hexdigest()[:24]}.json" for task in every}
    found = [Judged.from_json(row) for path in paths.values() if path.is_file() for row in json.loads(path.read_text())]
    left = [task for task, path in paths.items() if not path.is_file()]
    with ProcessPoolExecutor(jobs) as pool:
        running = {pool.submit(do, task): task for task in left}
        for number, future in enumerate(as_completed(running), 1):
            made = future.result()
            paths[running[future]].write_text(json.dumps([asdict(each) for each in made]))
            found += made
            print(f"{number}/{len(left)} tasks, {len(found)} pairs", file=sys.stderr, flush=True)
    return found


def sources() -> str:
    """A digest of the code that makes and judges the pairs, and the version of ptxas: old results do not count."""
    files = (*(ROOT / "ptxgen" / "sass").glob("*.py"), *Path(__file__).parent.glob("*.py"))
    text = b"".join(path.read_bytes() for path in sorted(files))
    return hashlib.sha256(text).hexdigest() + ptxas_version(find_ptxas())


def tasks(sizes: Sizes, seed: int, cccl: Cccl | None) -> Iterator[Task]:
    """What is done in one process each."""
    for each in modules()[: sizes.modules]:
        yield Task("PTX", each, 2, seed, cccl)
    for name, target in SOURCES:
        if sizes.words:
            yield Task("words", source(name, target), sizes.words, seed, cccl)


def report(found: list[Judged], cccl: Cccl | None) -> Iterator[str]:
    """The score as Markdown."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    version = ptxas_version(find_ptxas())
    refused = sum(each.refused for each in found)
    changes, equal = ([each for each in found if each.equal is value] for value in (False, True))
    unequal = sum(each.refused for each in equal)
    refused -= unequal
    equal = [each for each in equal if not each.refused]
    yield f"By `make sass-score` ({today}, ptxas and nvdisasm {version}): words of {len(SOURCES)} kernels"
    yield "for sm_80 to sm_121a are changed, and the PTX of all recorded kernels."
    if cccl:
        data = cccl.script.read_bytes()
        blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()[:12]
        yield f"cccl stands for NVIDIA/cccl's ci/sass/compare_sass.py (git blob {blob}) on the same pairs."
    yield f"nvdisasm made no listing of {refused} changed cubins: the diff then ends with exit code 2 and its reason."
    yield f"{unequal} equal pairs are left out: ptxas made other code, as it now and then does of the same text."
    edits = [each for each in changes if each.kind == "PTX line"]
    elsewhere = sum(not each.by_line_table for each in edits)
    yield "An edited line of PTX is located where the diff names it, above the SASS that differs. Of the"
    yield f"{len(edits):,} edits {elsewhere} made differences that ptxas's line table puts at lines without a register"
    yield "of the edited one (it moves constants, and folds shifts and comparisons). The other script has no lines."
    yield ""
    yield "| generated change | pairs | reported | located | cccl: reported | located |"
    yield "|---|---:|---:|---:|---:|---:|"
    yield from rows(changes, ("all",))
    yield ""
    yield "| equal pair | pairs | reported as different | cccl: reported |"
    yield "|---|---:|---:|---:|"
    for kind, group in (*groups(equal), ("all", equal)):
        theirs = sum(each.cccl.reported for each in group if each.cccl)
        yield f"| {kind} | {len(group):,} | {sum(each.ours.reported for each in group):,} | {theirs if cccl else ''} |"


def groups(found: list[Judged]) -> list[tuple[str, list[Judged]]]:
    """By kind, in the order of their first."""
    return [(kind, [each for each in found if each.kind == kind]) for kind in Counter(each.kind for each in found)]


def rows(changes: list[Judged], last: tuple[str]) -> Iterator[str]:
    """A row for each kind of change, and one for all."""
    for kind, group in (*groups(changes), (last[0], changes)):
        theirs = [each.cccl for each in group if each.cccl]
        cells = [
            len(group),
            sum(each.ours.reported for each in group),
            sum(each.ours.located for each in group),
            *((sum(each.reported for each in theirs), sum(each.located for each in theirs)) if theirs else ("", "")),
        ]
        yield f"| {kind} | " + " | ".join(f"{cell:,}" if isinstance(cell, int) else "" for cell in cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
