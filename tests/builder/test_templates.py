"""Templates of plain PTX: registers declared by their names, `.loc` of the template, and errors at its lines."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ptxgen import assemble, check
from ptxgen.builder import KERNELS_FOLDER, Template, TemplateError
from ptxgen.builder.templates import environment

HEAD = """\
.version {{ version }}
.target {{ target }}
.address_size 64

.visible .entry k(.param .u64 out, .param .u32 n)
{
{{ registers }}

"""
#: The line of the template on which the body starts.
FIRST = HEAD.count("\n") + 1


def build(
    folder: Path, body: str, *, target: str = "sm_100a", version: str = "8.6", locations: bool = False, **values: Any
) -> str:
    (folder / "k.ptx.j2").write_text(HEAD + body + "\n    ret;\n}\n")
    made = Template("k.ptx.j2", folder)
    return made.render(target=target, version=version, locations=locations, **values)


COUNT = """\
    // Count {{ step }} at a time.
    mov.u32 %r_thread, %tid.x;
    mov.b32 %r_i, 0;


$count:
{% if step > 1 %}
add.u32 %r_i, %r_i, {{ step }};
{% endif %}
    setp.lt.u32 %p_more, %r_i, %r_thread;
    @%p_more bra $count;"""


def test_a_kernel(tmp_path: Path) -> None:
    text = build(tmp_path, COUNT, step=3)
    assert (
        text
        == """\
.version 8.6
.target sm_100a
.address_size 64

.visible .entry k(.param .u64 out, .param .u32 n)
{
    .reg .pred  %p_more;
    .reg .b32   %r_thread, %r_i;

    // Count 3 at a time.
    mov.u32 %r_thread, %tid.x;
    mov.b32 %r_i, 0;

$count:
    add.u32 %r_i, %r_i, 3;
    setp.lt.u32 %p_more, %r_i, %r_thread;
    @%p_more bra $count;
    ret;
}
"""
    )
    assert check(text) == []
    assert assemble(text).data


def test_registers_are_what_their_names_say(tmp_path: Path) -> None:
    names = {"p": "pred", "rs": "b16", "r": "b32", "rd": "b64", "rq": "b128", "f": "f32", "fd": "f64"}
    body = "".join(f"    // %r_comment\n    mov.{kind} %{name}_x, %{name}_y;\n" for name, kind in names.items())
    text = build(tmp_path, body)
    for name, kind in names.items():
        assert f".reg .{kind:<5} %{name}_x, %{name}_y;" in text
    assert "%r_comment;" not in text
    assert "%r_comment," not in text


def test_locations_name_the_lines_of_the_templates(tmp_path: Path) -> None:
    (tmp_path / "blocks").mkdir()
    (tmp_path / "blocks" / "sync.j2").write_text(
        "## A comment.\n{% macro all(names) %}\n{% for name in names %}\n    bar.sync {{ name }};\n"
        "{% endfor %}\n{% endmacro %}\n"
    )
    body = '{% import "blocks/sync.j2" as sync %}\n    bar.sync 0;\n{{ sync.all([1, 2]) }}\n    bar.sync 3;'
    text = build(tmp_path, body, locations=True)
    assert f'.file 1 "{tmp_path}/k.ptx.j2"\n.file 2 "{tmp_path}/blocks/sync.j2"\n' in text
    lines = [line.strip() for line in text.splitlines()]
    begin = lines.index("bar.sync 0;") - 1
    assert lines[begin : begin + 7] == [
        f".loc 1 {FIRST + 1} 0", "bar.sync 0;", ".loc 2 4 0", "bar.sync 1;", "bar.sync 2;", f".loc 1 {FIRST + 3} 0",
        "bar.sync 3;",
    ]  # fmt: skip
    assert check(text) == []
    assert assemble(text).data


def test_a_vector_is_no_statement_of_jinja(tmp_path: Path) -> None:
    body = "    ld.param.u64 %rd_out, [out];\n    ld.global.v2.b32 {%r_a, %r_b}, [%rd_out];"
    assert "ld.global.v2.b32 {%r_a, %r_b}, [%rd_out];" in build(tmp_path, body)


def test_labels_of_braces_are_their_own(tmp_path: Path) -> None:
    spin = "    {\n$again:\n    setp.eq.u32 %p_x, %r_x, 0;\n    @%p_x bra $again;\n    }\n"
    body = "{% for i in range(2) %}\n" + spin + "{% endfor %}"
    text = build(tmp_path, "    mov.b32 %r_x, 1;\n" + body)
    assert text.count("$again:") == 2
    assert check(text) == []
    assert assemble(text).data


#: body, values, the template's line counted from the body's first, the message
ERRORS: list[tuple[str, dict[str, Any], int, str]] = [
    ("    bar.sync 16;", {}, 0, "must be 0 to 15, not 16"),
    ("\n\n    bar.sync 16;", {}, 2, "must be 0 to 15, not 16"),
    ("    add.u33 %r_x, %r_x, 1;", {}, 0, "add.u33"),
    ("    add.u32 %x, %x, 1;", {}, 0, "%x is not declared"),
    ("    add.u32 %rd_x, %rd_x, 1;", {}, 0, "%rd_x is declared .b64"),
    ("    bra $nowhere;", {}, 0, "$nowhere"),
    ("    add.u32 %r_x %r_x, 1;", {}, 0, "expected"),
    ("    {{ stages }}", {}, 0, "'stages' is undefined"),
    ("\n    bar.sync {{ 1 / stages }};", {"stages": "x"}, 1, "unsupported operand"),
    ("{% if %}", {}, 0, "Expected an expression"),
]


@pytest.mark.parametrize(("body", "values", "line", "message"), ERRORS, ids=[row[3] + row[0] for row in ERRORS])
@pytest.mark.parametrize("locations", [False, True])
def test_errors_name_the_line_and_the_rule(
    tmp_path: Path, body: str, values: dict[str, Any], line: int, message: str, locations: bool
) -> None:
    with pytest.raises(TemplateError) as caught:
        build(tmp_path, body, locations=locations, **values)
    assert (caught.value.template, caught.value.line) == ("k.ptx.j2", FIRST + line)
    assert str(caught.value).startswith(f"k.ptx.j2:{FIRST + line}: ")
    assert message in str(caught.value)


def test_an_error_inside_a_macro_names_the_file_of_the_macro(tmp_path: Path) -> None:
    (tmp_path / "blocks").mkdir()
    (tmp_path / "blocks" / "sync.j2").write_text("{% macro all(name) %}\n    bar.sync {{ name }};\n{% endmacro %}\n")
    with pytest.raises(TemplateError, match=r"^blocks/sync.j2:2: .*must be 0 to 15, not 99"):
        build(tmp_path, '{% import "blocks/sync.j2" as sync %}\n{{ sync.all(99) }}')


BLOCKS = """\
{% macro all(name) %}
{{ one(name) }}
{% endmacro %}
{% macro one(name) %}
    bar.sync {{ name }};
{% endmacro %}
{% macro inverse(name) %}
    bar.sync {{ 1 // name }};
{% endmacro %}
{% macro twice() %}
{{ caller() }}
    bar.sync 1;
{{ caller() }}
{% endmacro %}
"""


@pytest.mark.parametrize(
    ("body", "where", "callers"),
    [
        ("{{ sync.all(99) }}", ("blocks/sync.j2", 5), [("blocks/sync.j2", 2), ("k.ptx.j2", FIRST + 2)]),
        ("{{ sync.all(\n    99\n) }}", ("blocks/sync.j2", 5), [("blocks/sync.j2", 2), ("k.ptx.j2", FIRST + 2)]),
        ("{{ sync.all(1) }}\n{{ sync.one(99) }}", ("blocks/sync.j2", 5), [("k.ptx.j2", FIRST + 3)]),
        ("{{ sync.all(1) }}\n    bar.sync 99;", ("k.ptx.j2", FIRST + 3), []),
        ("{{ sync.inverse(0) }}", ("blocks/sync.j2", 8), [("k.ptx.j2", FIRST + 2)]),
        (
            "{% call sync.twice() %}\n    bar.sync 99;\n{% endcall %}",
            ("k.ptx.j2", FIRST + 3),
            [("blocks/sync.j2", 11), ("k.ptx.j2", FIRST + 2)],
        ),
        (
            "{% call sync.twice() %}\n    bar.sync 2;\n{% endcall %}\n    bar.sync 99;",
            ("k.ptx.j2", FIRST + 5),
            [],
        ),
    ],
)
def test_errors_name_the_lines_that_called_the_block(
    tmp_path: Path, body: str, where: tuple[str, int], callers: list[tuple[str, int]]
) -> None:
    (tmp_path / "blocks").mkdir()
    (tmp_path / "blocks" / "sync.j2").write_text(BLOCKS)
    with pytest.raises(TemplateError) as caught:
        build(tmp_path, '{% import "blocks/sync.j2" as sync %}\n    bar.sync 0;\n' + body)
    assert (caught.value.template, caught.value.line) == where
    assert list(caught.value.callers) == callers
    assert str(caught.value).endswith("".join(f"\n  called from {name}:{line}" for name, line in callers))


def test_unknown_macros_and_attributes_say_what_may_be_meant(tmp_path: Path) -> None:
    (tmp_path / "blocks").mkdir()
    (tmp_path / "blocks" / "sync.j2").write_text(BLOCKS)
    head = '{% import "blocks/sync.j2" as sync %}\n'
    with pytest.raises(TemplateError, match=r"blocks/sync\.j2 has no macro 'twcie'; did you mean twice\?$"):
        build(tmp_path, head + "{{ sync.twcie() }}")
    with pytest.raises(TemplateError, match=r"has no attribute 'stagse'; did you mean stages\?$"):
        build(tmp_path, "    bar.sync {{ plan.stagse }};", plan=SimpleNamespace(stages=3))
    with pytest.raises(TemplateError, match=r"blocks/sync\.j2 has no macro 'qqqqqq'$"):
        build(tmp_path, head + "{{ sync.qqqqqq() }}")


def test_a_call_of_a_block_leaves_no_trace(tmp_path: Path) -> None:
    (tmp_path / "blocks").mkdir()
    (tmp_path / "blocks" / "sync.j2").write_text(BLOCKS)
    calls = "{% call sync.twice() %}\n    bar.sync 2;\n{% endcall %}\n{{ sync.all(\n3) }}"
    body = '{% import "blocks/sync.j2" as sync %}\n' + calls
    text = build(tmp_path, body)
    assert text.endswith("{\n\n    bar.sync 2;\n    bar.sync 1;\n    bar.sync 2;\n    bar.sync 3;\n    ret;\n}\n")


GATES = [
    ("sm_100a", "8.6", None),
    ("sm_90a", "8.6", "tcgen05 is not on sm_90a; it requires the family of sm_100f or the family of sm_110f"),
    ("sm_100a", "8.5", "sm_100a requires PTX ISA 8.6 or later, .version is 8.5"),
]


@pytest.mark.parametrize(("target", "version", "message"), GATES)
def test_target_and_version_are_checked(tmp_path: Path, target: str, version: str, message: str | None) -> None:
    body = "    tcgen05.wait::ld.sync.aligned;"
    if message is None:
        assert body in build(tmp_path, body, target=target, version=version)
        return
    with pytest.raises(TemplateError, match=message) as caught:
        build(tmp_path, body, target=target, version=version)
    assert caught.value.line in (FIRST, 2)


def test_a_missing_template_says_what_may_be_meant(tmp_path: Path) -> None:
    (tmp_path / "kernel.ptx.j2").write_text("")
    missing = rf"there is no template 'kernl\.ptx\.j2' in {tmp_path} or among the packaged ones; "
    with pytest.raises(TemplateError, match=rf"^kernl\.ptx\.j2: {missing}did you mean kernel\.ptx\.j2\?$"):
        Template("kernl.ptx.j2", tmp_path).render(target="sm_90", version="8.0")
    with pytest.raises(TemplateError, match=rf"^k\.ptx\.j2:{FIRST}: {missing}did you mean kernel\.ptx\.j2\?$"):
        build(tmp_path, '{% import "kernl.ptx.j2" as kernel %}')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"^k\.ptx\.j2: the template has no PTX$"),
        ("## only a comment\n", r"^k\.ptx\.j2: the template has no PTX$"),
        (
            ".version 8.6\n.target sm_90\n.address_size 64\n.entry k()\n{\n    ret;\n",
            r"^k\.ptx\.j2:6: expected .*the end of the text",
        ),
        ("{{ values.place('x') }}\n", r"^k\.ptx\.j2:1: no y$"),
    ],
)
def test_a_text_without_an_end_is_an_error_of_the_template(tmp_path: Path, text: str, words: str) -> None:
    class Values:
        def place(self, name: str) -> None:
            raise KeyError("no y")

    (tmp_path / "k.ptx.j2").write_text(text)
    with pytest.raises(TemplateError, match=words):
        Template("k.ptx.j2", tmp_path).render(target="sm_90", version="8.6", values=Values())


@pytest.mark.parametrize("body", ["    bar.sync {{ stagse }};", "{% for i in range(stagse) %}\n{% endfor %}"])
def test_an_undefined_name_says_what_may_be_meant_without_the_traceback_of_jinja(tmp_path: Path, body: str) -> None:
    with pytest.raises(TemplateError, match=r"k\.ptx\.j2:\d+: 'stagse' is undefined; did you mean stages\?$") as caught:
        build(tmp_path, body, stages=3)
    assert (caught.value.__cause__, caught.value.__suppress_context__) == (None, True)


def test_the_packaged_blocks_are_importable_from_a_folder_outside(tmp_path: Path) -> None:
    body = '{% import "blocks/module.j2" as module %}\n{{ module.everyone(none) }}'
    assert "bar.sync 0;" in build(tmp_path, body)


def test_every_packaged_template_compiles() -> None:
    names = environment().list_templates(extensions=["j2"])
    assert len(names) >= 8
    for name in names:
        environment().get_template(name)
    assert all((KERNELS_FOLDER / name).is_file() for name in names)
