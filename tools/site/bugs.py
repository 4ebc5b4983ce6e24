"""Pages of the bugs of tests/bugs: the broken kernel beside its right twin, and what ptxgen reports."""

from __future__ import annotations

from tests.bugs import FAMILIES
from tests.bugs.bug import MARK, START, WRONG, Bug
from tools.bug_page import report, source


def pages(page: str) -> dict[str, str]:
    """A page for each bug, and docs/bugs.md (`page`), whose tables link to them."""
    made = {}
    for family, bugs in FAMILIES.items():
        for bug in bugs:
            made[f"bugs/{bug.name}.md"] = _page(bug, family)
            what = f"{bug.what} ({bug.note})" if bug.note else bug.what
            page = page.replace(f"| {what} | {source(bug)} |", f"| [{what}](bugs/{bug.name}.md) | {source(bug)} |", 1)
    return {**made, "bugs.md": page}


def _page(bug: Bug, family: str) -> str:
    code = "a wrong result" if bug.code == WRONG else f"[`{bug.code}`](../checks/{bug.code}.md) ({bug.severity})"
    seen = "all schedules" if len(bug.schedules) == 3 else ", ".join(f"`{each}`" for each in bug.schedules)
    lines = ["---\norphan: true\n---\n", f"# {_title(bug)}\n"]
    lines += [f"{family}. From {source(bug)}: {bug.what}.", f"Reported as {code} under {seen}.\n"]
    lines += [f"How it is known: {bug.note}.\n"] if bug.note else []
    lines += ["## What ptxgen says\n", report(bug).partition("\n\n")[2]]
    if bug.before:
        lines += ["## The grid before\n", f"```ptx\n{bug.before.strip()}\n```\n"]
    lines += [
        "## The kernel\n",
        f"Target {bug.target}, {bug.grid} × {bug.block} threads"
        + (f", clusters of {bug.cluster}" if bug.cluster else "")
        + ". Lines with `-` are the bug, lines with `+` its right twin; the finding is at the line with `<--`.\n",
        f"```diff\n{bug.ptx.strip(chr(10))}\n```\n",
        "Every kernel of these pages begins with:\n",
        f"```ptx\n{START.replace('DIRECTIVES', bug.directives)}```\n",
        "[All bugs](../bugs.md)",
    ]
    return "\n".join(lines) + "\n"


def _title(bug: Bug) -> str:
    return bug.name.replace("_", " ").replace(MARK, "")
