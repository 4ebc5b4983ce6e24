"""Lines of PTX, legal and not, one table for each family: `lines/<family>.txt`.

A row is a verdict, a target, a PTX version and a line. The verdict is `legal`, or the code of the one error that
`check` must find, once or more; `!` before it marks what ptxas lets pass, `~` what crashes it in some runs. ptxas must
agree with every other row.
"""

from __future__ import annotations

import pytest

from ptxgen.instr import load_all
from ptxgen.instr.model.form import REGISTRY
from ptxgen.toolchain import AssemblerError
from tests.support.instr_tables import FAMILIES, assembled, diagnose, module, rows


@pytest.mark.parametrize("family", FAMILIES)
def test_check_gives_the_verdicts(family: str) -> None:
    wrong = []
    for row in rows(family):
        found = [each for each in diagnose(row.line, row.target, row.version) if each.severity == "error"]
        expected = [] if row.verdict == "legal" else [row.verdict]
        if list(dict.fromkeys(each.code for each in found)) != expected:
            wrong.append(f"{row.line} ({row.target}, {row.version}): not {row.verdict} but {list(map(str, found))}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("family", FAMILIES)
def test_ptxas_agrees(family: str) -> None:
    table = [row for row in rows(family) if not row.unsteady]
    answers = assembled([(module(row.line, row.target, row.version), row.target) for row in table])
    wrong = [
        f"{row.line} ({row.target}, {row.version}): we say {row.verdict}, ptxas {answer}"
        for row, answer in zip(table, answers, strict=True)
        if isinstance(answer, AssemblerError) != (row.verdict != "legal" and not row.stricter)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_declaration_has_a_legal_row_and_every_rule_one_that_breaks_it(family: str) -> None:
    load_all()
    table = rows(family)
    codes = {row.verdict for row in table}
    opcodes = [row.line.split()[0] if row.line[0] != "@" else row.line.split()[1] for row in table]
    for form in (each for forms in REGISTRY.values() for each in forms if each.form.key.split(".")[0] == family):
        assert any(opcode.startswith(form.form.opcode) for opcode in opcodes), f"no row of {form.form.key}"
        names = {rule.code.rpartition(".")[2] for rule in form.form.rules}
        assert names <= {code.rpartition(".")[2] for code in codes}, f"{form.form.key}: a rule without a row"
