"""Write docs/bugs.md, the bugs of real projects that the emulator reports: `python -m tools.bug_page`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.bugs import BUGS, FAMILIES
from tests.bugs.bug import MARK, Bug

PAGE = Path(__file__).parents[1] / "docs" / "bugs.md"
#: Whose report the page shows.
EXAMPLE = "tensormap-changed-while-loading"
_HEAD = """# Bugs that real projects shipped

Each line below is a bug from the issue tracker of a public project: {count} bugs of {projects} projects, seen as
intermittent hangs, as a few wrong elements, or in compute-sanitizer. ptxgen reports each of them without a GPU, in one
launch, under every schedule (`eager`, `late`, `random`): findings follow from the happens-before order of accesses, not
from a wrong result. `error`: wrong by the manual or on hardware. `advice`: required by the manual, but omitted by some
compilers.

Each bug is reproduced as a small kernel in `tests/bugs/`, with a clean twin that differs only in the lines of the fix.
`python -m tools.bug_page NAME` prints the PTX of one as a diff, and its finding.

{example}
"""


def page() -> str:
    """The text of the page."""
    projects = {bug.source.partition("#")[0] for bug in BUGS}
    example = next(bug for bug in BUGS if bug.name == EXAMPLE)
    head = _HEAD.format(count=len(BUGS), projects=len(projects), example=_report(example))
    return head + "".join(line for family, bugs in FAMILIES.items() for line in _family(family, bugs))


def _report(bug: Bug) -> str:
    """What ptxgen says of a bug, as a block of text."""
    report = bug.run("eager", right=False)
    said = "\n".join(str(finding) for finding in report.findings)
    return f"For instance [{bug.source}]({bug.url}), {bug.what}:\n\n" + "".join(
        f"    {line}\n" for line in said.splitlines()
    )


def _family(family: str, bugs: list[Bug]) -> Iterator[str]:
    yield f"\n## {family}\n\n| what went wrong | project | ptxgen reports | at |\n|---|---|---|---|\n"
    for bug in bugs:
        what = f"{bug.what} ({bug.note})" if bug.note else bug.what
        code = f"[`{bug.code}`](checks.md#{bug.code}) ({bug.severity})"
        yield f"| {what} | [{bug.source}]({bug.url}) | {code} | `{_instruction(bug)}` |\n"


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
            print(bug.ptx, _report(bug), sep="\n")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
