"""Write docs/bugs.md, the bugs of real projects that the emulator reports: `python -m tools.bug_page`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bugs import BUGS, FAMILIES
from tests.bugs.bug import MARK, REBUILT, SCHEDULES, WRONG, Bug
from tests.bugs.sanitizer import SHOWN, recorded

PAGE = Path(__file__).parents[1] / "docs" / "bugs.md"
#: Whose report the page shows.
EXAMPLE = "tensormap-changed-while-loading"
#: Trackers with fewer bugs are counted together.
_LEAST = 2
_HEAD = """# Bugs that real projects shipped

{count} bugs from the issue trackers of {projects} projects, which showed as intermittent hangs, as a few wrong
elements, or in compute-sanitizer. **ptxgen reports each of them from the PTX alone, without a GPU, at the line that is
wrong.** {every} are reported by a single launch under any schedule (`eager`, `late`, `random`): findings follow from
the happens-before order of accesses, not from luck. {shown} need some seeds of `random`, which starves pollers, tears
vector accesses and leaves lanes apart. {errors} are errors: wrong by the manual or on hardware. {advice} are advice:
required by the manual, but omitted by some compilers. The fixed kernel next to each is clean under all schedules.
{rebuilt} more ("rebuilt") are other forms of the same bugs, in kernels of other shapes.

By tracker: {trackers}.

## What a report looks like

{example}
The bug above, on your machine:

    python -m tools.bug_page {name}

prints its kernel as a diff from the fixed one (`-`: the bug, `+`: the fix), and the report. All are in `tests/bugs/`,
rebuilt as small kernels of our own. Your own kernel: [`ptxgen run`](tutorial.md). Each code in the tables links to the
rule, its section of the PTX ISA, and the fix.

## What a GPU shows of them

{gpu}
"""
_GPU = """The last two columns are of the same kernels on a GPU ({gpu}; {date}; assembled by ptxas {ptxas}): whether
{repeats} launches alone show the bug, and which tools of compute-sanitizer {sanitizer} report it ({tools} ran). Of
{judged} kernels for sm_90a, rebuilt ones included, {shown} hang, fault or leave other memory than the right twin, and
the tools report {found}, {alone} of them without reporting the right twin as well. {twins} right twins are reported.
{note}
Anyone can repeat it:

    python -m tools.sanitizer export jobs        # here; carry the folder to the GPU
    python3 jobs/sweep.py jobs results.json      # there; the standard library is enough
    python -m tools.sanitizer record results.json
"""


def page() -> str:
    """The text of the page."""
    example = next(bug for bug in BUGS if bug.name == EXAMPLE)
    shipped = [bug for bug in BUGS if bug.source != REBUILT]
    every = sum(list(bug.schedules) == list(SCHEDULES) for bug in shipped)
    errors = sum(bug.severity == "error" for bug in shipped)
    head = _HEAD.format(
        count=len(shipped),
        projects=len({_project(bug) for bug in shipped}),
        every=every,
        shown=len(shipped) - every,
        errors=errors,
        advice=len(shipped) - errors,
        rebuilt=len(BUGS) - len(shipped),
        trackers=", ".join(_trackers(shipped)),
        example=report(example),
        name=EXAMPLE,
        gpu=_gpu(),
    )
    return head + "".join(line for family, bugs in FAMILIES.items() for line in _family(family, bugs))


def _project(bug: Bug) -> str:
    return bug.source.partition("#")[0]


def _trackers(bugs: Sequence[Bug]) -> Iterator[str]:
    """The bugs of each tracker, most first."""
    counts = Counter(map(_project, bugs))
    for project, count in counts.most_common():
        if count >= _LEAST:
            yield f"{project} {count}"
    yield f"and {sum(count < _LEAST for count in counts.values())} more with one each"


def report(bug: Bug) -> str:
    """What ptxgen says of a bug, as a block of text."""
    schedule = bug.schedules[0]
    outcomes = [bug.outcome(schedule, right=False, seed=seed) for seed in bug.seeds]
    if bug.code == WRONG:
        fixed = bug.outcome("eager", right=True, seed=0)[1]
        wrong = sum(bool((data != fixed).any()) for _, data in outcomes)
        said = f"{wrong} of {len(outcomes)} seeds of {schedule} leave other memory than the fixed kernel"
    else:
        report = next((each for each, _ in outcomes if each.findings), outcomes[0][0])
        said = "\n".join(str(finding) for finding in report.findings)
    return f"{source(bug)}: {bug.what}.\n\n" + "".join(f"    {line}\n" for line in said.splitlines())


def _gpu() -> str:
    """What the record of the GPU says of all bugs together."""
    made, verdicts = recorded()["made"], recorded()["verdicts"].values()
    return _GPU.format(
        gpu=made["gpu"],
        date=made["date"],
        ptxas=made["ptxas"],
        sanitizer=made["compute-sanitizer"],
        repeats=made["repeats"],
        tools=made["tools"],
        note=made.get("note", ""),
        judged=len(verdicts),
        shown=sum(each["gpu"] in SHOWN for each in verdicts),
        found=sum(bool(each["bug"]) for each in verdicts),
        alone=sum(bool(each["bug"]) and not each["twin"] for each in verdicts),
        twins=sum(bool(each["twin"]) for each in verdicts),
    )


def _on_gpu(bug: Bug) -> str:
    """The last two cells of a bug."""
    verdict = recorded()["verdicts"].get(bug.name)
    if verdict is None:
        return "| |"
    said = ", ".join(verdict["bug"])
    if verdict["twin"]:
        said += "; of the right twin: " + ", ".join(verdict["twin"])
    return f"{verdict['gpu']} | {said} |"


def _family(family: str, bugs: list[Bug]) -> Iterator[str]:
    yield f"\n## {family}\n\n| what went wrong | project | ptxgen reports | at | GPU alone | compute-sanitizer |\n"
    yield "|---|---|---|---|---|---|\n"
    for bug in bugs:
        what = f"{bug.what} ({bug.note})" if bug.note else bug.what
        yield f"| {what} | {source(bug)} | {_code(bug)} | `{_instruction(bug)}` | {_on_gpu(bug)}\n"


def source(bug: Bug) -> str:
    """The issue or pull request of a bug, as a link."""
    return f"[{bug.source}]({bug.url})" if bug.url else bug.source


def _code(bug: Bug) -> str:
    """What is reported, and where not under every schedule."""
    code = "a wrong result" if bug.code == WRONG else f"[`{bug.code}`](checks.md#{bug.code}) ({bug.severity})"
    return code if list(bug.schedules) == list(SCHEDULES) else f"{code}, under `{'`, `'.join(bug.schedules)}`"


def _instruction(bug: Bug) -> str:
    """The opcode at which the finding is expected."""
    lines = bug.text(right=False).splitlines()
    words = lines[max(bug.lines) - 1].replace(MARK, "").split()
    return next(word for word in words if not word.startswith("@")).rstrip(";")


def main(arguments: list[str]) -> None:
    """Write the page, or print the bugs of these names."""
    if not arguments:
        PAGE.write_text(page())
    for bug in BUGS:
        if bug.name in arguments:
            if bug.before:
                print("The grid before:", bug.before, "This one:", sep="\n")
            print(bug.ptx, report(bug), sep="\n")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
