"""Printing: whole files come back, and a changed node prints its change and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxgen.syntax import (
    Address,
    Block,
    Directive,
    Function,
    Guard,
    Immediate,
    Instruction,
    Label,
    Module,
    Name,
    Parameter,
    RegisterDeclaration,
    Statement,
    Variable,
    parse,
)
from tests.support.syntax_tables import in_body, in_module
from tools.recorded.files import compiled

FILES = compiled()


def test_there_are_files() -> None:
    assert len(FILES) >= 6


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_comes_back(path: Path) -> None:
    text = path.read_text()
    module = parse(text)
    assert str(module) == text
    assert len(module.entries) >= 1
    lines = text.split("\n")
    for statement in module.statements():
        first_line = statement.text.split("\n")[0]
        assert lines[statement.line - 1][statement.column - 1 :].startswith(first_line)


def rebuilt(statement: Statement) -> Statement:
    """The same statement, made by its constructor from the fields of the tree."""
    fields = {name: getattr(statement, name) for name in statement._fields}
    for name, value in fields.items():
        if isinstance(value, Statement):
            fields[name] = rebuilt(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], Statement):
            fields[name] = tuple([rebuilt(item) for item in value])
    return type(statement)(**fields)


def shape(statement: Statement) -> object:
    return [type(statement).__name__, *[_value(getattr(statement, name)) for name in statement._fields]]


def _value(value: object) -> object:
    if isinstance(value, Statement):
        return shape(value)
    if isinstance(value, tuple) and value and isinstance(value[0], Statement):
        return [shape(item) for item in value]
    return value


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_tree_without_its_spelling_prints_the_same_program(path: Path) -> None:
    module = parse(path.read_text())
    plain = Module([rebuilt(item) for item in module.items])
    again = parse(str(plain))
    assert [_without_trivia(shape(item)) for item in again.items] == [
        _without_trivia(shape(item)) for item in module.items
    ]


def _without_trivia(value: object) -> object:
    if isinstance(value, list):
        return [_without_trivia(item) for item in value]
    return value.strip() if isinstance(value, str) else value


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_instruction_can_be_changed_alone(path: Path) -> None:
    text = path.read_text()
    module = parse(text)

    def renamed(statement: Statement) -> Statement:
        match statement:
            case Instruction():
                return statement.replace(opcode=f"{statement.opcode}.x", operands=statement.operands)
            case Block():
                return statement.replace(statements=tuple([renamed(item) for item in statement.statements]))
            case Function(body=Block() as body):
                return statement.replace(body=renamed(body))
        return statement

    changed = module.replace(items=[renamed(item) for item in module.items])
    before = [item for item in module.statements() if isinstance(item, Instruction)]
    expected = text
    for node in reversed(before):
        at = sum(len(line) + 1 for line in text.split("\n")[: node.line - 1]) + node.column - 1
        at = expected.index(node.opcode, at) + len(node.opcode)
        expected = f"{expected[:at]}.x{expected[at:]}"
    assert str(changed) == expected
    assert str(module) == text
    assert [item.line for item in changed.statements()] == [item.line for item in module.statements()]


def only(module: Module, kind: type[Statement], skip: int = 0) -> Statement:
    return [item for item in module.statements() if isinstance(item, kind)][skip]


INSTRUCTION = " /* a */ @p  add /* b */ .u32\tr1 , // c\n r2 /* d */ , r3 /* e */;"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, INSTRUCTION),
        ({"trivia": "\n"}, "\n@p  add /* b */ .u32\tr1 , // c\n r2 /* d */ , r3 /* e */;"),
        ({"opcode": "sub.u32"}, " /* a */ @p  sub.u32\tr1 , // c\n r2 /* d */ , r3 /* e */;"),
        ({"guard": Guard("q", True)}, " /* a */ @!q add /* b */ .u32\tr1 , // c\n r2 /* d */ , r3 /* e */;"),
        ({"guard": None}, " /* a */ add /* b */ .u32\tr1 , // c\n r2 /* d */ , r3 /* e */;"),
        ({"guard": Guard("p")}, INSTRUCTION),
        (
            {"operands": (Name("x"), Immediate("1"), Address(Name("y"), 4), Name("z"))},
            " /* a */ @p  add /* b */ .u32\tx , // c\n 1 /* d */ , [y+4], z /* e */;",
        ),
        ({"operands": (Name("x"),)}, " /* a */ @p  add /* b */ .u32\tx /* e */;"),
        ({"operands": ()}, " /* a */ @p  add /* b */ .u32 /* e */;"),
    ],
)
def test_changed_instruction(changes: dict[str, object], text: str) -> None:
    start, end = in_body("").split("\n\nret;")
    module = parse(f"{start}{INSTRUCTION}\nret;{end}")
    node = only(module, Instruction)
    changed = node.replace(**changes)
    assert str(changed) == text
    assert changed.text == text[len(changed.trivia) :]
    again = only(parse(f"{start}{text}\nret;{end}"), Instruction)
    assert isinstance(again, Instruction)
    assert isinstance(changed, Instruction)
    assert (again.opcode, again.guard, again.operands) == (changed.opcode, changed.guard, changed.operands)
    assert str(node) == INSTRUCTION
    assert (changed.line, changed.column) == (node.line, node.column)


def test_operands_for_an_instruction_that_had_none() -> None:
    node = only(parse(in_body("ret;")), Instruction)
    assert node.replace(operands=(Name("a"), Name("b"))).text == "ret a, b;"


@pytest.mark.parametrize(
    ("kind", "text", "changes", "expected"),
    [
        (Label, "a /* x */ : ret;", {"name": "b"}, "b:"),
        (Label, "a /* x */ : ret;", {"trivia": " "}, "a /* x */ :"),
        (RegisterDeclaration, "", {"declarators": (("x", None), ("y", 3))}, ".reg .pred x, y<3>;"),
        (RegisterDeclaration, "", {"vector": 2, "type": "b32"}, ".reg .v2 .b32 p, q;"),
        (Variable, "", {"space": "local", "align": 8}, ".local .align 8 .u32 s[8];"),
        (Directive, "", {"arguments": ("9.1",)}, ".version 9.1"),
        (Parameter, "", {"name": "b", "ptr": True, "ptr_align": 4}, ".param .u64 .ptr .align 4 b"),
    ],
)
def test_changed_declaration(kind: type[Statement], text: str, changes: dict[str, object], expected: str) -> None:
    node = only(parse(in_body(text)), kind)
    changed = node.replace(**changes)
    assert str(changed) == changes.get("trivia", node.trivia) + expected  # type: ignore[operator]
    assert type(changed) is type(node)


FUNCTION = (
    ".weak .func /* a */ ( .reg .b32 r ) /* b */ f /* c */ ( .param .b32 x , .param .b32 y )\n .noreturn\n{ ret;\n}"
)


@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        ({"name": "g"}, " f ", " g "),
        ({"linkage": "visible"}, ".weak", ".visible"),
        ({"directives": ()}, "\n .noreturn", ""),
        ({"parameters": ()}, " .param .b32 x , .param .b32 y ", " "),
        ({"body": None}, "\n{ ret;\n}", ";"),
    ],
)
def test_changed_function(changes: dict[str, object], old: str, new: str) -> None:
    module = parse(in_module(FUNCTION))
    changed = module.functions[0].replace(**changes)
    assert changed.text == FUNCTION.replace(old, new, 1)
    text = str(module.replace(items=[*module.items[:-1], changed]))
    assert str(parse(text)) == text
    assert module.functions[0].text == FUNCTION


def test_parameters_move_between_functions() -> None:
    module = parse(in_module(".func f (.param .b32 x)\n;\n.func (.reg .b32 r) g;"))
    f, g = module.functions
    moved = g.replace(parameters=f.parameters, returns=())
    assert moved.text == ".func () g(.param .b32 x);"


def test_tree_from_nothing() -> None:
    body = Block([RegisterDeclaration("b32", [("%r", 3)]), Label("L"), Instruction("bra", [Name("L")], Guard("%p1"))])
    kernel = Function("entry", "k", "visible", parameters=[Parameter("a", "u64")], body=body)
    module = Module([Directive("version", ["9.0"]), Directive("target", ["sm_100a", "debug"]), kernel])
    again = parse(str(module))
    assert str(again) == str(module)
    assert again.targets == ("sm_100a", "debug")
    assert [item.line for item in module.statements() if item.line] == []
    assert str(kernel.body) == "\n\t{\n\t.reg .b32 %r<3>;\nL:\n\t@%p1 bra L;\n}"


def test_unknown_field_is_refused() -> None:
    node = only(parse(in_body("ret;")), Instruction)
    with pytest.raises(TypeError, match="Instruction has no field opcodes"):
        node.replace(opcodes="add")
