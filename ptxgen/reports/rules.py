"""What a code stands for, from the declarations: the emulator's checks, `ptxgen check`, and the commands' own."""

from __future__ import annotations

from dataclasses import dataclass

from ptxgen.reports.model import Level, Result


@dataclass(frozen=True)
class Rule:
    """A code with its title, its rule in sentences, how to fix it, the manual's section and the usual level."""

    code: str
    title: str
    text: str
    fix: str = ""
    section: str = ""
    level: Level = "error"

    @property
    def name(self) -> str:
        """`SharedRace`: SARIF wants an identifier."""
        return "".join(word[:1].upper() + word[1:] for word in self.code.replace(".", "-").replace("_", "-").split("-"))


#: Codes that no check has.
_OWN = {
    each.code: each
    for each in (
        Rule(
            "syntax-error",
            "not PTX",
            "The text does not parse as PTX.",
            "Correct the text at the place that is named.",
        ),
        Rule(
            "wrong-result",
            "wrong result",
            "An output differs from the reference by more than its tolerance, or memory around it was overwritten.",
            "ptxgen run KERNEL --why ARRAY[I,J] shows what produced an element.",
        ),
        Rule(
            "sass-changed",
            "SASS changed",
            "The machine code of the two kernels differs, or a figure exceeds its threshold.",
            "Restore the code, or raise the threshold of --fail-on if the growth is intended.",
        ),
        Rule(
            "not-needed",
            "unneeded synchronization",
            "No run of the audit needs this instruction as strong as it is.",
            "Weaken or drop it if the launch of the audit stands for all launches.",
            level="note",
        ),
        Rule(
            "refused-launch",
            "refused launch",
            "The launch did not begin: no GPU would take it.",
            "Correct the launch's shape, memory or arguments.",
        ),
        Rule(
            "unused-accept",
            "unused acceptance",
            "What is accepted here did not come up.",
            "Delete the comment or the entry.",
            level="note",
        ),
    )
}


def rule_of(result: Result) -> Rule:
    """The rule of a result; its level holds for what `ptxgen check` reports, whose codes have none of their own."""
    from ptxgen.emulator.checks.registry import CHECKS
    from ptxgen.instr.model.code_rules import RULES
    from ptxgen.instr.model.symbols import title_of

    code, level = result.code, result.level
    if code in _OWN:
        return _OWN[code]
    if code in CHECKS and not result.static:
        check = CHECKS[code]
        usual: Level = "error" if check.severity == "error" else "note"
        return Rule(code, check.title, f"{check.rule} {check.why}", check.fix, check.section, usual)
    title = title_of(code)
    if "." in code:
        text = f"A rule that the declaration of {code.split('.')[0]} states is broken; the message says which."
    else:
        text = RULES.get(code, f"PTX that ptxas refuses or that hardly anyone means: {title}.")
    return Rule(code, title, text, "ptxgen explain INSTRUCTION shows the legal forms.", level=level)
