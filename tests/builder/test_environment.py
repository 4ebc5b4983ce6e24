"""Rendering templates: structured control, and errors that name the template's line and the rule."""

from pathlib import Path
from typing import Any

import pytest

from ptxgen import assemble, check
from ptxgen.builder import TemplateError, render
from ptxgen.builder.environment import TEMPLATES, environment

KERNEL = """\
{% call kernel("k", [(".param .u64", "out"), (".param .u32", "n")], threads=128, shared=("smem", 1024)) %}
BODY
    {{ control.ret() }}
{% endcall %}
"""


def build(folder: Path, body: str, *, target: str = "sm_100a", version: str = "8.6", **values: Any) -> str:
    """The text of a kernel with this body; line 1 of the body is line 2 of the template."""
    (folder / "k.ptx.j2").write_text(KERNEL.replace("BODY", body))
    return render("k.ptx.j2", target=target, version=version, folder=folder, **values)


def test_a_kernel(tmp_path: Path) -> None:
    text = build(
        tmp_path,
        """\
{% set i = reg("u32", "i") %}
{% set p = reg("pred", "p") %}
{% set tid = reg("u32", "tid") %}
    // Count.
    {{ move.mov(tid, "%tid.x", type="u32") }}
    {{ move.mov(i, 0, type="u32") }}

{% call(again) loop("count") %}
{% call when(p, "odd", negated=true) %}
    {{ integer.add(i, i, step, type="u32") }}
{% endcall %}
    {{ predicate.setp(p, i, tid, compare="lt", type="u32") }}
    {{ control.bra(again).when(p) }}
{% endcall %}""",
        step=3,
    )
    assert (
        text
        == """\
.version 8.6
.target sm_100a
.address_size 64

.extern .shared .align 1024 .b8 smem[];

.visible .entry k(
    .param .u64 out,
    .param .u32 n
)
.reqntid 128, 1, 1
{
    .reg .u32   %i, %tid_1;
    .reg .pred  %p;

    // Count.
    mov.u32 %tid_1, %tid.x;
    mov.u32 %i, 0;
$count:
    @%p bra $odd;
    add.u32 %i, %i, 3;
$odd:
    setp.lt.u32 %p, %i, %tid_1;
    @%p bra $count;
    ret;
}
"""
    )
    assert check(text) == []
    assert assemble(text).data


#: body, values, the template's line, the message
ERRORS: list[tuple[str, dict[str, Any], int, str]] = [
    ('{{ integer.add("%x", "%x", 1, type="u33") }}', {}, 2, "integer.add: type must be 'u16', 'u32'"),
    ('\n\n{{ integer.add("%x", "%x", 1, type="u32") }}', {}, 4, "%x is not declared; declare it"),
    (
        '{% set r = reg("f32", "r") %}\n{{ integer.add(r, r, 1, type="u32") }}',
        {},
        3,
        "integer.add: d must be of type .u32, but %r is declared .f32; a must be of type .u32",
    ),
    ("{{ barrier.bar_sync(16) }}", {}, 2, "barrier.bar_sync: name must be 0 to 15, not 16"),
    ("{{ barrier.bar_sync() }}", {}, 2, "barrier.bar_sync: the operand name is missing"),
    ("{{ barrier.bar_sync(1, 2, 3) }}", {}, 2, "barrier.bar_sync takes 2 operands, not 3"),
    (
        "{{ barrier.bar_sink(1) }}",
        {},
        2,
        "ptxgen.instr.barrier declares no instruction bar_sink; did you mean bar_sync?",
    ),
    ('{{ control.bra("$nowhere") }}', {}, 2, "control.bra: the label $nowhere is not in this block or one around it"),
    ('{% set r = reg("b33", "r") %}', {}, 2, "b33"),
    ("{{ stages }}", {}, 2, "'stages' is undefined"),
    ("{{ 1 / stages }}", {"stages": "x"}, 2, "unsupported operand"),
    ("{% if %}", {}, 2, "Expected an expression"),
]


@pytest.mark.parametrize(("body", "values", "line", "message"), ERRORS, ids=[row[3] for row in ERRORS])
def test_errors_name_the_line_and_the_rule(
    tmp_path: Path, body: str, values: dict[str, Any], line: int, message: str
) -> None:
    with pytest.raises(TemplateError) as caught:
        build(tmp_path, body, **values)
    assert (caught.value.template, caught.value.line) == ("k.ptx.j2", line)
    assert str(caught.value).startswith(f"k.ptx.j2:{line}: ")
    assert message in str(caught.value)


def test_an_error_inside_a_macro_names_the_file_of_the_macro(tmp_path: Path) -> None:
    (tmp_path / "blocks").mkdir()
    (tmp_path / "blocks" / "sync.j2").write_text(
        "{% macro all(name) %}\n    {{ barrier.bar_sync(name) }}\n{% endmacro %}\n"
    )
    with pytest.raises(TemplateError, match=r"^blocks/sync.j2:2: barrier.bar_sync: name must be 0 to 15, not 99$"):
        build(tmp_path, '{% import "blocks/sync.j2" as sync with context %}\n{{ sync.all(99) }}')


GATES = [
    ("sm_100a", "8.6", None),
    ("sm_90a", "8.6", "tcgen05 is not on sm_90a; it needs the family of sm_100f or the family of sm_110f"),
    ("sm_100a", "8.5", "tcgen05 needs PTX ISA 8.6 or later, .version is 8.5"),
]


@pytest.mark.parametrize(("target", "version", "message"), GATES)
def test_target_and_version_are_checked(tmp_path: Path, target: str, version: str, message: str | None) -> None:
    body = '{{ tcgen05.wait(what="ld") }}'
    if message is None:
        assert "tcgen05.wait::ld.sync.aligned;" in build(tmp_path, body, target=target, version=version)
        return
    with pytest.raises(TemplateError, match=message) as caught:
        build(tmp_path, body, target=target, version=version)
    assert caught.value.line == 2


def test_a_missing_template_is_no_template_error(tmp_path: Path) -> None:
    from jinja2 import TemplateNotFound

    with pytest.raises(TemplateNotFound, match="nothing"):
        render("nothing.j2", target="sm_90", version="8.0", folder=tmp_path)


def test_every_packaged_template_compiles() -> None:
    names = environment().list_templates()
    assert names
    for name in names:
        environment().get_template(name)
    assert all((TEMPLATES / name).is_file() for name in names)


def test_each_rendering_starts_with_fresh_names(tmp_path: Path) -> None:
    body = '{% set r = reg("u32", "r") %}\n    {{ move.mov(r, 1, type="u32") }}'
    assert build(tmp_path, body) == build(tmp_path, body)
