"""`ptxgen explain CODE` and `explain checks`: the declarations of the emulator's checks, in words, JSON, Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING

from ptxgen.cli.errors import OK, InputError, nearest
from ptxgen.cli.reference.concepts import add_links

if TYPE_CHECKING:
    from ptxgen.emulator.checks.registry import Check

#: The head of docs/checks.md.
PAGE = """# The emulator's checks

Generated from `ptxgen/emulator/checks/registry/` by `make docs`; `ptxgen explain CODE` prints one of them.

Each finding has one of these codes. An *error* makes the status of the launch `findings`; a *fault* ends it, where
hardware would end the kernel too; *advice* leaves it `ok`. Sections are those of the PTX ISA 9.2. Each code has a
test with a kernel that fires it, and one with a clean twin.

Findings follow from the happens-before relation, not from the schedule that ran: a race is reported even where this
run gave the right result. `Emulator(checks=False)` disables all checks, advice included; faults, deadlocks and limits
are still reported.

A finding names the accesses (variable and line), the broken rule, and the fix. One cause is one finding: the same at
other lines ends with "(so do lines 94, 97)", by other warps with "(the same of 7 other warps)", and what
follows from it is folded under it: "+ 7 consequences" (`ptxgen run -v` shows them, `finding.consequences` has them).
At most 20 different findings are kept per code. `str(finding)` shortens long instructions; `finding.instruction` is
the whole text, `finding.to_json()` the whole finding.

Reviewed findings are left out by `ptxgen run --accept FILE.toml` or `Emulator(accept=FILE)`. An entry matches by code
and instruction, not by line, and states a reason; entries that no longer match anything are reported:

    [[accept]]
    code = "missing-tcgen05-fence"
    instruction = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%value}, [%taddr];"
    kernel = "gemm"                  # optional
    reason = "the bar.sync before it orders the MMA"
"""


def explain_checks(word: str, as_json: bool, as_markdown: bool) -> int:
    """All checks, or those whose code or title has a word in it. Raises InputError if there are none."""
    from ptxgen.emulator.checks.registry import CHECKS
    from ptxgen.instr.model.symbols import CODES

    if as_markdown:
        print(markdown(CHECKS.values()), end="")
        return OK
    if word in CODES and word not in CHECKS:
        return _diagnostic(word, as_json)
    found = [CHECKS[word]] if word in CHECKS else [each for each in CHECKS.values() if word in each.code + each.title]
    if not found:
        raise InputError(
            f"no check is called {word!r}{nearest(word, [*CHECKS, *sorted(CODES)])}; 'ptxgen explain checks' lists all"
        )
    if as_json:
        print(json.dumps([asdict(each) for each in found], indent=2))
    elif len(found) == 1:
        _show(found[0])
    else:
        _list(found)
    return OK


def _diagnostic(code: str, as_json: bool) -> int:
    """A code of `ptxgen check`, whose messages have the rest."""
    from ptxgen.instr.model.code_examples import examples, shown
    from ptxgen.instr.model.code_rules import RULES
    from ptxgen.instr.model.symbols import title_of

    if as_json:
        made = {"code": code, "title": title_of(code), "rule": RULES[code], "example": examples()[code]}
        print(json.dumps([made], indent=2))
    else:
        print(f"{code}: {title_of(code)} (ptxgen check)\n  {RULES[code]}")
        print("".join(f"    {line}\n" for line in shown(code).splitlines()), end="")
        print("  The message has the values; ptxgen explain INSTRUCTION shows what is legal.")
    return OK


def kind(check: Check) -> str:
    """`error`, `advice` or `fault`."""
    return "fault" if check.fault else check.severity


def _list(checks: Iterable[Check]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from ptxgen.cli.common.terminal import NARROW, grid, output

    with output() as out:
        for group, each in groupby(checks, key=lambda check: check.group):
            out.print(Text(group, style="bold"))
            table = grid("cyan", "", "dim")
            for check in each:
                if out.width < NARROW:
                    out.print(Text(f"  {check.code}", style="cyan").append(f" {kind(check)}", style="dim"))
                    out.print(Padding(check.title, (0, 0, 0, 4)))
                else:
                    table.add_row(f"  {check.code}", check.title, kind(check))
            if table.row_count:
                out.print(table)


def _show(check: Check) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from ptxgen.cli.common.terminal import grid, output

    with output() as out:
        section = f", PTX ISA {check.section}" if check.section else ""
        out.print(Text(check.code, style="bold").append(f"  {check.title} ({kind(check)}{section})", style="dim"))
        table = grid("cyan", "")
        table.add_row("rule", Text(check.rule))
        table.add_row("why", Text(check.why))
        if check.fix:
            table.add_row("fix", Text(check.fix))
        table.add_row("example", Text(check.example))
        if check.explains:
            table.add_row("leads to", Text(", ".join(check.explains)))
        add_links(table, "checks", check.code)
        out.print(Padding(table, (0, 0, 0, 2)))


def markdown(checks: Iterable[Check]) -> str:
    """The page docs/checks.md."""
    parts = [PAGE]
    for group, each in groupby(checks, key=lambda check: check.group):
        parts.append(f"\n## {group}\n")
        parts += [entry(check) for check in each]
    return "".join(parts)


def entry(check: Check) -> str:
    """The section of docs/checks.md on one check."""
    section = f" PTX ISA {check.section}." if check.section else ""
    lines = [
        f"\n### `{check.code}`",
        "",
        f"*{kind(check).capitalize()}: {check.title}.*{section} {_escaped(check.rule)}",
        "",
        f"**Why.** {_escaped(check.why)}",
        "",
    ]
    if check.fix:
        lines += [f"**Fix.** {_escaped(check.fix[0].upper() + check.fix[1:])}.", ""]
    lines += ["```", check.example, "```", ""]
    tests = f"Fires: `tests/{check.fires.partition('::')[0]}`."
    if others := [f"`{each}`" for each in check.explains if each != check.code]:
        tests += f" Leads to: {', '.join(others)}."
    return "\n".join([*lines, tests, ""])


def table(checks: Iterable[Check]) -> str:
    """The table of docs/emulator.md."""
    rows = [f"| `{each.code}` | {kind(each)} | {each.title} | {each.group} |" for each in checks]
    return "\n".join(["| code | kind | what | group |", "|---|---|---|---|", *rows, ""])


def _escaped(text: str) -> str:
    return text.replace("*", "\\*").replace("<", "&lt;")
