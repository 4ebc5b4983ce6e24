"""The command `python -m tools.outside`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from pathlib import Path

import tools.outside
from ptxgen.toolchain import find_ptxas, ptxas_version
from tools.outside.forms import Tally, gather
from tools.outside.judge import TARGETS, Difference, Ptxas
from tools.outside.measure import Result, measure
from tools.outside.sources import SOURCES

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Print a line for each source, counts, and the kinds of differences; exit with 1 if any has no reason."""
    parser = argparse.ArgumentParser(description=tools.outside.__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "clones", type=Path, help="folder of clones: owner/name, owner+name or name; `list` prints them"
    )
    parser.add_argument("--only", nargs="*", help="repositories to take (apache/tvm)")
    parser.add_argument("--syntax", nargs="*", help="ways of writing to take (asm, llvm, grammar, ...)")
    parser.add_argument("--limit", type=int, default=6000, help="forms of one source, drawn by hash (default 6000)")
    parser.add_argument("--mutations", type=int, default=2, help="mutations of each legal form (default 2)")
    parser.add_argument("--show-held-out", action="store_true", help="list the differences of the held-out fifth too")
    parser.add_argument("--lines", action="store_true", help="list all differing lines, not one of each kind")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "build" / "outside", help="where ptxas's verdicts are kept"
    )
    arguments = parser.parse_args()
    if str(arguments.clones) == "list":
        print_sources()
        return 0
    chosen = [
        source
        for source in SOURCES
        if (not arguments.only or source.repository in arguments.only)
        and (not arguments.syntax or source.syntax in arguments.syntax)
    ]
    version = ptxas_version(find_ptxas())
    ptxas = Ptxas(arguments.folder / f"ptxas-{version}.sqlite")
    forms, tallies = gather(arguments.clones, chosen, arguments.limit)
    print_tallies(tallies)
    print(f"ptxas {version}; targets {' '.join(TARGETS)}")
    different = 0
    for title, part in (("seen", False), ("held out", True)):
        result = measure(
            [form for form in forms if form.held_out == part], ptxas, arguments.mutations, quiet=False
        )  # fmt: skip
        print_result(title, result)
        different += sum(not each.reason for each in [*result.differences, *result.of_mutations])
        if not part or arguments.show_held_out:
            print_kinds(result, arguments.lines)
    return 1 if different else 0


def print_sources() -> None:
    """The table of repositories, for who makes the clones."""
    for source in SOURCES:
        print(f"{source.repository:<32}{source.commit[:12]:<14}{source.syntax:<9}{' '.join(source.paths[:3])}")


def print_tallies(tallies: list[Tally]) -> None:
    print(f"{'repository':<32}{'commit':<14}{'syntax':<9}{'files':>7}{'forms':>8}{'left out':>10}")
    for tally in tallies:
        source = tally.source
        if not tally.commit:
            print(f"{source.repository:<32}{'missing':<14}{source.syntax:<9}")
            continue
        moved = "" if tally.commit == source.commit else "  not the recorded commit"
        print(
            f"{source.repository:<32}{tally.commit[:12]:<14}{source.syntax:<9}{tally.files:>7}{tally.forms:>8}"
            f"{tally.left_out.total():>10}{moved}"
        )


def print_result(title: str, result: Result) -> None:
    print(
        f"\n{title}: {result.forms:,} forms, {result.legal:,} of them legal on a target, {result.judged:,} lines "
        f"judged, {result.mutations:,} mutations"
    )
    for what, counts in (("forms", result.counts()), ("mutations", result.counts(mutations=True))):
        told = ", ".join(f"{count} {direction}" for direction, count in sorted(counts.items()))
        print(f"    {what}: {told or 'no difference'}")


def print_kinds(result: Result, all_lines: bool) -> None:
    """The differing lines by direction and kind, one of each kind with its count."""
    kinds: dict[tuple[str, str], list[Difference]] = defaultdict(list)
    for each in [*result.differences, *result.of_mutations]:
        if not each.reason:
            kinds[each.direction, each.kind].append(each)
    for (direction, kind), found in sorted(kinds.items(), key=lambda item: (item[0][0], -len(item[1]))):
        print(f"\n{direction}: {len({each.line for each in found})} lines, {kind}")
        shown: Counter[str] = Counter()
        for each in found:
            shown[each.line] += 1
            if shown[each.line] == 1 and (all_lines or len(shown) <= 2):
                where = " ".join(sorted({other.target for other in found if other.line == each.line}))
                lists = ", ".join(sorted(result.sources.get(each.line, {"a mutation"})))
                print(f"    {each.line[:600]}\n        on {where}; of {lists}")


if __name__ == "__main__":
    sys.exit(main())
