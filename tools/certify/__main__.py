"""The command `python -m tools.certify`."""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import tools.certify
from ptxgen.instr.model.certified import Certificate, digest, write_certificates
from ptxgen.toolchain import find_ptxas, ptxas_version
from tools import executing
from tools.certify import cases
from tools.certify.broken import BROKEN
from tools.certify.irreconcilable import STRICTER
from tools.certify.sweep import Reason, Result, Settings, sweep

ROOT = Path(__file__).parents[2]
EXCEPTIONS = ROOT / "docs" / "exceptions.md"


PAGE = """\
# Where ptxgen and ptxas differ on purpose

Written by `make certify`. Each row is an entry of `tools/certify/irreconcilable.py`: a kind of nonsense that ptxas
lets pass, or something legal on which ptxas crashes or loses its way. "lines" counts the compared lines on which the
two differ for this reason, "agreed" those that its pattern fits too and that both refuse.

Counted on {date} at commit {commit} with ptxas {version}. Declarations that changed later were compared again one at a
time ([coverage.md](coverage.md) has their lines), which leaves the counts of this page as they are; rows whose reason
is gone since are left out.
"""


#: A row with counts: its reason.
_COUNTED = re.compile(r"\| (.*?) \| [\d,]+ \| ")

#: Before the reasons that no comparison of all declarations has counted yet.
NEWER = """
## Newer reasons

Written after the last comparison of all declarations, so not counted yet; added by `python -m tools.certify
--new-reasons`. The patterns are of the lines and of the objection of the stricter judge.

| what | stricter | lines | objection |
|---|---|---|---|
"""


def main() -> int:
    """Print disagreements and a table; exit with 1 if there are any."""
    parser = argparse.ArgumentParser(description=tools.certify.__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("families", nargs="*", help="families or declarations (integer, tcgen05.mma); all by default")
    parser.add_argument("--neighbors", type=int, default=600, help="neighbors of each declaration, at least")
    parser.add_argument("--each", type=float, default=4, help="neighbors of each form (default 4)")
    parser.add_argument("--forms", type=int, default=None, help="legal forms of a chunk (default all)")
    parser.add_argument("--seed", type=int, default=0)
    executing.add_options(parser)
    parser.add_argument("--one-target", action="store_true", help="assemble a legal form on one of its targets only")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "certify", help="where results are kept")
    parser.add_argument("--record", action="store_true", help="write the result into the package, for the coverage")
    parser.add_argument(
        "--new-reasons", action="store_true", help="compare nothing; add the reasons that exceptions.md lacks"
    )
    arguments = parser.parse_args()
    if arguments.new_reasons:
        EXCEPTIONS.write_text(with_new_reasons(EXCEPTIONS.read_text()))
        return 0
    settings = Settings(arguments.neighbors, arguments.each, arguments.seed, arguments.forms, not arguments.one_target)
    version = ptxas_version(find_ptxas())
    with executing.executor(parser, arguments) as executor:
        results = sweep(arguments.families, settings, executor, arguments.folder, version)
    differing = [text for result in results for text in result.disagreements]
    print_table(results)
    if arguments.record:
        if arguments.forms is not None or arguments.one_target:
            parser.error("--record needs all forms on all targets")
        record(results, version)
        if not arguments.families:  # the page is of all
            EXCEPTIONS.write_text(with_new_reasons(heading(version) + exceptions(results)))
    return 1 if differing else 0


def print_table(results: list[Result]) -> None:
    """A line for each family."""
    families: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        families[result.key.split(".")[0]].append(result)
    print(f"{'family':<14}{'forms':>11}{'assemblies':>12}{'neighbors':>12}{'excused':>9}{'differing':>11}")
    for family, found in [*sorted(families.items()), ("all", results)]:
        counts = [
            sum(getattr(each, name) for each in found) for name in ("forms", "assemblies", "neighbors", "excused")
        ]
        wrong = sum(len(each.disagreements) for each in found)
        print(f"{family:<14}{counts[0]:>11,}{counts[1]:>12,}{counts[2]:>12,}{counts[3]:>9,}{wrong:>11,}")


def heading(version: str) -> str:
    """What the page says first, with the day and the commit of its counts."""
    made = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return PAGE.format(date=today, commit=made.stdout.strip(), version=version)


def exceptions(results: list[Result]) -> str:
    """The tables of where the two differ on purpose."""
    together: dict[str, Reason] = {}
    for result in results:
        for why, found in result.reasons.items():
            known = together.setdefault(why, Reason(excused=0, agreed=0, example="", objection=""))
            known["excused"] += found["excused"]
            known["agreed"] += found["agreed"]
            known["example"] = known["example"] or found["example"]
            known["objection"] = known["objection"] or found["objection"]
    ours = {each.reason for each in STRICTER}
    text = ""
    for title, mine in (("ptxgen refuses, ptxas takes", True), ("ptxas refuses, ptxgen takes", False)):
        text += f"\n## {title}\n\n| what | lines | agreed | for example | objection |\n|---|---:|---:|---|---|\n"
        for why, found in sorted(together.items()):
            if found["excused"] and (why in ours) == mine:
                objection = found["objection"].replace("|", "\\|")
                example = found["example"].replace("|", "\\|")
                text += f"| {why} | {found['excused']:,} | {found['agreed']:,} | `{example}` | {objection} |\n"
    return text


def with_new_reasons(page: str) -> str:
    """The page with a row, without counts, for each reason that its tables lack, and without those that are gone."""
    page = page.partition(NEWER[:20])[0].rstrip() + "\n"
    reasons = {each.reason for each in (*STRICTER, *BROKEN)}
    counted = [(line, _COUNTED.match(line)) for line in page.splitlines(keepends=True)]
    page = "".join(line for line, row in counted if row is None or row[1] in reasons)
    rows: dict[str, str] = {}
    for judge, entries in (("ptxgen", STRICTER), ("ptxas", BROKEN)):
        for each in entries:
            if f"| {each.reason} |" not in page:
                line = f"{each.form} {each.line}".strip().replace("|", "\\|")
                objection = each.objection.replace("|", "\\|")
                rows.setdefault(each.reason, f"| {each.reason} | {judge} | `{line}` | `{objection}` |\n")
    return page + NEWER + "".join(rows[reason] for reason in sorted(rows)) if rows else page


def record(results: list[Result], version: str) -> None:
    """Write what was certified beside the declarations."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    together: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        together[result.key].append(result)
    declared = {form.form.key: form for form in cases.declared()}
    made = [
        Certificate(
            key,
            digest(declared[key]),
            forms=sum(each.forms for each in found),
            assemblies=sum(each.assemblies for each in found),
            neighbors=sum(each.neighbors for each in found),
            excused=sum(each.excused for each in found),
            disagreements=sum(len(each.disagreements) for each in found),
            ptxas=version,
            date=today,
        )
        for key, found in together.items()
    ]
    write_certificates(made, declared)


if __name__ == "__main__":
    sys.exit(main())
