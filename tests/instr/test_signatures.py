"""Instructions with the same key are recognized alike: what is remembered is what a fresh recognition gives."""

from __future__ import annotations

import random

from ptxgen import syntax
from ptxgen.instr.model.analyze import Analysis
from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.recognize import recognize
from tools.recorded.files import DATA, FOLDERS


def _same(found: object, fresh: object) -> bool:
    if not isinstance(found, Instruction) or not isinstance(fresh, Instruction):
        return found == fresh
    return type(found) is type(fresh) and found.__dict__ == fresh.__dict__ and str(found) == str(fresh)


def test_remembered_declarations_are_those_of_a_fresh_recognition() -> None:
    files = sorted(path for folder in FOLDERS for path in (DATA / folder).glob("*.ptx"))
    chosen = random.Random(5).sample(files, 12)
    seen = 0
    for path in chosen:
        analysis = Analysis(syntax.parse(path.read_text()))
        for step in analysis.steps():
            if isinstance(step.statement, syntax.Instruction):
                found = analysis.instruction(step.statement, step.scope)
                assert _same(found, recognize(step.statement, step.scope)), step.statement.text
                seen += 1
    assert seen > 1000


_MODULE = """.version 9.0
.target sm_90a
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .reg .pred %p<2>;
    add.u32 %r1, %r1, %r2;
    add.u32 %r1, %r3, %r2;
    shfl.sync.idx.b32 %r1|%p1, %r2, %r3, 31, -1;
    shfl.sync.idx.b32 %r1, %r2, %r3, 31, -1;
    ld.global.b32 %r1, [%rd1 + 4];
    ld.global.b32 %r1, [%rd2+8];
    @!%p1 st.global.b32 [%rd3], %r1;
    @%p1 st.global.b32 [%rd1], %r2;
    {
        .reg .f32 %r<4>;
        mov.b32 %r1, %r2;
    }
    mov.b32 %r1, %r2;
    ret;
}
"""


def test_operands_are_those_of_their_own_statement() -> None:
    """The names of operands, their parts, guards and scopes are not those of the statement that was seen first."""
    for _ in range(2):
        analysis = Analysis(syntax.parse(_MODULE))
        for step in analysis.steps():
            if isinstance(step.statement, syntax.Instruction):
                found = analysis.instruction(step.statement, step.scope)
                assert _same(found, recognize(step.statement, step.scope))
                assert "".join(str(found).split()) == "".join(step.statement.text.split())


def test_a_declaration_changes_what_a_text_stands_for() -> None:
    """The same operand text is another operand once its name is declared anew."""
    analysis = Analysis(syntax.parse(_MODULE))
    keys = [
        analysis.signatures.key(step.statement, step.scope)
        for step in analysis.steps()
        if isinstance(step.statement, syntax.Instruction) and step.statement.opcode == "mov.b32"
    ]
    assert len(keys) == 2
    assert keys[0] != keys[1]
