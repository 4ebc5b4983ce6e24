"""Parameters of kernels and functions, and what calls take and return: who may load and store them, and how."""

import pytest

from ptxgen import check
from ptxgen.toolchain import AssemblerError, assemble_many

CALL = "st.param.b32 [taken], 1; call (given), helper, (taken);"


def module(body: str, helper: str = "") -> str:
    """A kernel with this body; or a function with that one."""
    return f"""\
.version 9.0
.target sm_100a
.address_size 64
.global .attribute(.unified(19, 95)) .b32 shown;
.global .b32 plain;
.func (.param .b32 result) helper(.param .b32 argument) {{
    .reg .b32 %r<4>;
    .reg .pred %p;
    {helper}
    ret;
}}
.visible .entry kernel(.param .b64 parameter) {{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .reg .pred %p;
    .param .b32 taken;
    .param .b32 given;
    {body}
    ret;
}}
"""


#: the body of the kernel, that of the function, the code of the error
ROWS = [
    (f"{CALL} ld.param.b32 %r1, [given];", "", ""),
    (f"{CALL} ld.param::func.b32 %r1, [given];", "", ""),
    (f"{CALL} ld.param::entry.b32 %r1, [given];", "", "state-space"),
    (f"{CALL} @%p ld.param.b32 %r1, [given];", "", "guard"),
    ("st.param::func.b32 [taken], %r1;", "", ""),
    ("@%p st.param.b32 [taken], %r1;", "", "guard"),
    ("st.param::func.b32 [%rd1], %r1;", "", "operand-kind"),
    ("st.param::func.b32 [parameter], %r1;", "", "state-space"),
    ("mov.b64 %rd1, taken;", "", "operand-kind"),
    ("mov.b64 %rd1, parameter;", "", ""),
    ("@%p ld.param::entry.b32 %r1, [parameter];", "", ""),
    ("ld.param::entry.b32 %r1, [%rd1];", "", ""),
    ("ld.param::func.b32 %r1, [parameter];", "", "state-space"),
    ("ld.param::func.b32 %r1, [%rd1];", "", "operand-kind"),
    ("", "@%p ld.param.b32 %r1, [argument];", ""),
    ("", "ld.param::func.b32 %r1, [argument];", ""),
    ("", "st.param.b32 [argument], %r1;", "state-space"),
    ("", "@%p st.param::func.b32 [result], %r1;", ""),
    ("", "ld.param.b32 %r1, [result];", "state-space"),
    ("ld.global.b32 %r1, [shown].unified;", "", ""),
    ("ld.b32 %r1, [shown];", "", ""),
    ("ld.b32 %r1, [%rd1+4].unified;", "", ""),
    ("ld.global.b32 %r1, [plain].unified;", "", "operand-kind"),
    ("ld.shared.b32 %r1, [%rd1].unified;", "", "operand-kind"),
    ("st.global.b32 [shown].unified, %r1;", "", "operand-kind"),
]


@pytest.mark.parametrize(("body", "helper", "code"), ROWS)
def test_check_knows_whose_parameter_it_is(body: str, helper: str, code: str) -> None:
    errors = [each.code for each in check(module(body, helper)) if each.severity == "error"]
    assert errors == ([code] if code else [])


def test_ptxas_agrees() -> None:
    answers = assemble_many([module(body, helper) for body, helper, _ in ROWS], options=["-O0", "-c"])
    wrong = [
        f"{row}: {answer}"
        for row, answer in zip(ROWS, answers, strict=True)
        if isinstance(answer, AssemblerError) != bool(row[2])
    ]
    assert not wrong, "\n".join(wrong)


def test_a_guard_is_seen_after_the_same_line_without_one() -> None:
    lines = "st.param.b32 [taken], %r1; @%p st.param.b32 [taken], %r1;"
    assert [each.code for each in check(module(lines))] == ["guard"]
