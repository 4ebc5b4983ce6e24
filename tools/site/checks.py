"""Pages of the emulator's checks: one for each code, and the list in place of docs/checks.md."""

from __future__ import annotations

from itertools import groupby

from ptxgen import concepts
from ptxgen.cli.reference.checks import PAGE, entry, kind
from ptxgen.emulator.checks.registry import CHECKS, Check
from ptxgen.instr.model.code_examples import shown
from ptxgen.instr.model.code_rules import RULES
from ptxgen.instr.model.symbols import title_of
from tests.bugs import BUGS
from tools.site.anchors import slug


def pages() -> dict[str, str]:
    """The pages by path."""
    made = {"checks.md": _list()}
    for check in CHECKS.values():
        made[f"checks/{check.code}.md"] = page(check)
    for code in RULES.keys() - CHECKS.keys():
        made[f"checks/{code}.md"] = _diagnostic(code)
    return made


def _diagnostic(code: str) -> str:
    """A code of `ptxgen check`, which looks at the text alone."""
    return (
        f"---\norphan: true\n---\n\n# `{code}`\n\n*`ptxgen check`: {title_of(code)}.* {RULES[code]}\n\n"
        f"```text\n{shown(code)}```\n\n"
        "The message has the values, and the nearest legal form if there is one; `ptxgen explain INSTRUCTION` shows\n"
        f"what is legal. `// ptxgen: accept {code}: reason` accepts it in a line ([how](../ci.md)).\n\n"
        "[All checks](../checks.md)\n"
    )


def _list() -> str:
    """All checks by group; their text is on pages of their own."""
    parts = [PAGE.replace("`ptxgen explain CODE` prints one of them", "each has a page")]
    for group, each in groupby(CHECKS.values(), key=lambda check: check.group):
        parts.append(f"\n## {group}\n\n| code | kind | what is wrong |\n|---|---|---|\n")
        parts += [f"| [`{check.code}`](checks/{check.code}.md) | {kind(check)} | {check.title} |\n" for check in each]
    parts.append("\n## PTX text (`ptxgen check`)\n\n| code | what is wrong | rule |\n|---|---|---|\n")
    parts += [f"| [`{code}`](checks/{code}.md) | {title_of(code)} | {rule} |\n" for code, rule in sorted(RULES.items())]
    return "".join(parts)


def page(check: Check) -> str:
    """One check: rule, reason, fix, example, and the bugs of real projects that it reports."""
    lines = ["---\norphan: true\n---\n", f"# `{check.code}`\n"]
    lines += ["\n".join(entry(check).splitlines()[3:]).partition(" Leads to: ")[0], ""]  # links are below
    if check.explains:
        links = [f"[`{code}`]({code}.md)" for code in check.explains if code != check.code]
        lines += [f"Findings of the same cause that are folded under it: {', '.join(links)}.\n"] if links else []
    if found := concepts.about("checks", check.code):
        lines += [f"Concepts: {', '.join(f'[{each.name}](../concepts.md#{slug(each.name)})' for each in found)}.\n"]
    bugs = [bug for bug in BUGS if bug.code == check.code]
    if bugs:
        lines.append("## Bugs that it reports\n")
        lines += [f"- [{bug.what}](../bugs/{bug.name}.md) ({bug.source})" for bug in bugs]
    lines.append("\n[All checks](../checks.md)")
    return "\n".join(lines) + "\n"
