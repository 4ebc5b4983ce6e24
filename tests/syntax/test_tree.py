"""The nodes that each construct gives."""

from __future__ import annotations

import math

import pytest

from ptxgen.syntax import (
    Address,
    Arguments,
    CallPrototype,
    Directive,
    Expression,
    FileDirective,
    Guard,
    Immediate,
    Instruction,
    Location,
    Module,
    Name,
    Negation,
    Operand,
    Pair,
    RegisterDeclaration,
    Section,
    SectionData,
    Statement,
    Subscript,
    Variable,
    Vector,
    parse,
    parse_operand,
)
from tests.support.syntax_tables import in_body, in_module


def first(module: Module, kind: type[Statement], skip: int = 0) -> Statement:
    return [statement for statement in module.statements() if type(statement) is kind][skip]


def instruction(text: str) -> Instruction:
    return next(item for item in parse(in_body(text)).statements() if isinstance(item, Instruction))


OPERANDS: list[tuple[str, Operand]] = [
    ("%r1", Name("%r1")),
    ("%tid.x", Name("%tid.x")),
    ("_", Name("_")),
    ("-0x10U", Immediate("-0x10U")),
    ("!p", Negation(Name("p"))),
    ("- r1.h0", Negation(Name("r1.h0"), "-")),
    ("d | p", Pair(Name("d"), Name("p"))),
    ("{a, b}|p", Pair(Vector((Name("a"), Name("b"))), Name("p"))),
    ("{ a,1 , _ }", Vector((Name("a"), Immediate("1"), Name("_")))),
    ("[a]", Address(Name("a"))),
    ("[a + 0]", Address(Name("a"), 0, (), True)),
    ("[a+4]", Address(Name("a"), 4)),
    ("[a + -8]", Address(Name("a"), -8)),
    ("[a-8]", Address(Name("a"), -8)),
    ("[a+(1<<4)+0x1]", Address(Name("a"), 17)),
    ("[12]", Address(Immediate("12"))),
    ("[a].unified", Address(Name("a"), unified=True)),
    ("[a+4] .unified", Address(Name("a"), 4, unified=True)),
    ("[s[4]]", Address(Subscript(Name("s"), Immediate("4")))),
    ("[map, {c0, c1}]", Address(Name("map"), 0, (Vector((Name("c0"), Name("c1"))),))),
    ("[tex, samp, {x}]", Address(Name("tex"), 0, (Name("samp"), Vector((Name("x"),))))),
    (
        "[map, base, {n}, u, {c}]",
        Address(Name("map"), 0, (Name("base"), Vector((Name("n"),)), Name("u"), Vector((Name("c"),)))),
    ),
    ("s[r1+4]", Subscript(Name("s"), Expression("+", (Name("r1"), Immediate("4"))))),
    ("sym+4", Expression("+", (Name("sym"), Immediate("4")))),
    ("1+2*3", Expression("+", (Immediate("1"), Expression("*", (Immediate("2"), Immediate("3")))))),
    ("~1", Expression("~", (Immediate("1"),))),
    ("(.u64)1", Expression(".u64", (Immediate("1"),))),
]


@pytest.mark.parametrize(("text", "operand"), OPERANDS, ids=[text for text, _ in OPERANDS])
def test_operand(text: str, operand: Operand) -> None:
    parsed = parse_operand(text)
    assert parsed == operand
    assert hash(parsed) == hash(operand)
    assert str(parsed) == text
    assert parse_operand(str(operand)) == operand
    assert eval(repr(parsed)) == parsed


def test_operands_that_differ_are_unequal() -> None:
    parsed = [operand for _, operand in OPERANDS if str(operand) != "[a+-8]"]
    assert len(set(parsed)) == len(parsed)


@pytest.mark.parametrize(
    ("text", "value", "is_float", "bits", "width"),
    [
        ("5", 5, False, None, None),
        ("-1", -1, False, None, None),
        ("0xffU", 255, False, None, None),
        ("0B101", 5, False, None, None),
        ("017", 15, False, None, None),
        ("0", 0, False, None, None),
        ("18446744073709551615U", 2**64 - 1, False, None, None),
        ("1.5e-3", 0.0015, True, None, None),
        ("-.5", -0.5, True, None, None),
        ("1e3", 1000.0, True, None, None),
        ("0f3F800000", 1.0, True, 0x3F800000, 32),
        ("0FC0000000", -2.0, True, 0xC0000000, 32),
        ("0d3ff0000000000000", 1.0, True, 0x3FF0000000000000, 64),
        ("0f7f800000", math.inf, True, 0x7F800000, 32),
        ("WARP_SZ", 32, False, None, None),
    ],
)
def test_immediate(text: str, value: float, is_float: bool, bits: int | None, width: int | None) -> None:
    operand = parse_operand(text)
    assert isinstance(operand, Immediate)
    assert (operand.value, operand.is_float, operand.bits, operand.width) == (value, is_float, bits, width)
    assert type(operand.value) is (float if is_float else int)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(1<<3)|2", 10),
        ("1 + 2 * 3 - 4 / 2", 5),
        ("10 - 2 - 3", 5),
        ("-7 / 2", -3),
        ("7 % 4", 3),
        ("1 ? 2 : 3 ? 4 : 5", 2),
        ("0 ? 2 : 0 ? 4 : 5", 5),
        ("1 < 2 == 1", 1),
        ("1 | 6 ^ 2 & 3", 5),
        ("1 && 0 || 1", 1),
        ("!5 + !0", 1),
        ("~0", 2**64 - 1),
        ("(.s64)~0", -1),
        ("(.u64)(-1)", 2**64 - 1),
        ("- 1U + 0", 2**64 - 1),
        ("-16 >> 2", -4),
        ("-16U >> 2", (2**64 - 16) >> 2),
        ("1 << 64", 1),  # ptxas takes the count modulo 64
        ("1 << 65", 2),
        ("1 << -1", -(2**63)),
        ("1U << 0xffffffffffffffff", 2**63),
        ("-16 >> 64", -16),
        ("-16 >> 4294967297", -8),
        ("18446744073709551621 + 0", 5),  # 2**64 + 5
        ("0x7fffffffffffffff + 1", -(2**63)),
        ("-1 < 1U", 0),
        ("1.5 * 2.0 + 1.0", 4.0),
        ("1.5 > 1.0", 1),
        ("0xF0 & 0xCC | (0xAA)", 0xEA),
        ("WARP_SZ * 2", 64),
    ],
)
def test_evaluate(text: str, value: float) -> None:
    operand = parse_operand(text)
    assert isinstance(operand, Expression)
    assert operand.evaluate() == value
    assert str(operand) == text


def test_evaluate_takes_symbols_and_names_what_it_cannot() -> None:
    operand = parse_operand("sym+4")
    assert isinstance(operand, Expression)
    assert operand.evaluate({"sym": 100}) == 104
    with pytest.raises(ValueError, match="symbol 'sym' has no value"):
        operand.evaluate()
    for text, message in [
        ("1/0", "division by zero"),
        ("1.5&1", "takes integers"),
        ("~1.5", "takes integers"),
        ("1.5 + 1", "two"),
    ]:
        broken = parse_operand(text)
        assert isinstance(broken, Expression)
        with pytest.raises(ValueError, match=message):
            broken.evaluate()


def test_instruction() -> None:
    node = instruction("@!%p1 tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, {%r2, 1}, %p2;")
    assert node.opcode == "tcgen05.mma.cta_group::1.kind::f16"
    assert node.guard == Guard("%p1", negated=True)
    assert node.operands == (
        Address(Name("%r1")),
        Name("%rd1"),
        Name("%rd2"),
        Vector((Name("%r2"), Immediate("1"))),
        Name("%p2"),
    )
    assert (node.line, node.column, node.trivia) == (7, 1, "\n")
    assert instruction("ret;").operands == ()
    assert instruction("ret;").guard is None


def test_opcode_has_no_white_space() -> None:
    assert instruction("add /* a */ .u32 .cc r1, r2, r3;").opcode == "add.u32.cc"


def test_call() -> None:
    node = instruction("call.uni (r1), foo, (r2, 3), proto;")
    arguments = Arguments((Name("r2"), Immediate("3")))
    assert node.operands == (Arguments((Name("r1"),)), Name("foo"), arguments, Name("proto"))


def test_registers() -> None:
    node = first(parse(in_body(".reg .v2 .b32 x, %y<10>;")), RegisterDeclaration, 6)
    assert isinstance(node, RegisterDeclaration)
    assert (node.type, node.vector, node.declarators) == ("b32", 2, (("x", None), ("%y", 10)))


def test_variable() -> None:
    text = ".visible .global .attribute(.managed) .align 16 .v2 .f32 x[][3] = {{1.0, y}}, y = 2;"
    node = first(parse(in_module(text)), Variable)
    assert isinstance(node, Variable)
    assert (node.linkage, node.space, node.align, node.vector, node.type) == ("visible", "global", 16, 2, "f32")
    assert node.attributes == (".managed",)
    x, y = node.declarators
    assert (x.name, x.dims, str(x.initializer)) == ("x", (None, 3), "{{1.0, y}}")
    assert (y.name, y.dims, y.initializer) == ("y", (), Immediate("2"))


def test_addresses_in_initializers() -> None:
    node = first(parse(in_module(".global .u64 x[] = {generic(y)+8, 0xFF00(z+1)};")), Variable)
    assert isinstance(node, Variable)
    braces = node.declarators[0].initializer
    assert braces is not None
    generic, mask = braces.elements  # type: ignore[attr-defined]
    assert generic.evaluate({"y": 0x1000}) == 0x1008
    assert mask.evaluate({"z": 0x1233}) == 0x12


def test_an_entry_that_is_declared_first() -> None:
    """As GCC writes it."""
    module = parse(in_module(".entry k(.param .u64 x);\n.entry k(.param .u64 x)\n{ ret; }"))
    assert module.entries == [module.functions[1]]


def test_function() -> None:
    text = (
        ".visible .entry k(.param .u64 .ptr .global .align 16 x, .param .align 64 .b8 y[128])\n"
        ".maxntid 128, 1 .noreturn { { ret; } }\n"
        ".func (.reg .b32 r) f (.param .b32 a[]) ;"
    )
    module = parse(in_module(text))
    kernel, function = module.functions
    assert module.entries == [kernel]
    assert (kernel.kind, kernel.name, kernel.linkage, kernel.returns) == ("entry", "k", "visible", ())
    x, y = kernel.parameters
    assert (x.name, x.type, x.ptr, x.ptr_space, x.ptr_align, x.array) == ("x", "u64", True, "global", 16, None)
    assert (y.name, y.type, y.align, y.size, y.array, y.ptr) == ("y", "b8", 64, 128, (128,), False)
    assert [(item.name, item.arguments) for item in kernel.directives] == [
        ("maxntid", ("128", "1")),
        ("noreturn", ()),
    ]
    assert kernel.body is not None
    assert len(kernel.body.statements) == 1
    assert (function.kind, function.name, function.body) == ("func", "f", None)
    assert (function.returns[0].space, function.parameters[0].array) == ("reg", (None,))


def test_module_header() -> None:
    module = parse(".version 8.7\n.target sm_100a, texmode_independent\n.address_size 64\n")
    assert (module.version, module.target, module.address_size) == ("8.7", "sm_100a", 64)
    assert module.targets == ("sm_100a", "texmode_independent")
    empty = parse("")
    assert (empty.version, empty.target, empty.targets, empty.address_size) == (None, None, (), None)


def test_directives() -> None:
    module = parse(in_module('.file 1 "a.cu", 5, 6\n.section .debug_str { L: .b8 1, 2\n .b32 L+4 }'))
    file, section = module.items[-2:]
    assert isinstance(file, FileDirective)
    assert (file.index, file.path, file.name) == (1, "a.cu", "file")
    assert isinstance(section, Section)
    data = [item for item in section.statements if isinstance(item, SectionData)]
    assert [(item.type, item.values) for item in data] == [("b8", ("1", "2")), ("b32", ("L+4",))]
    body = in_body(".loc 1 2 3, function_name $L, inlined_at 4 5 6\nx: .callprototype (.param .b32 _) _ ();")
    location = first(parse(body), Location)
    assert isinstance(location, Location)
    assert (location.source, location.function_name, location.inlined_at) == ((1, 2, 3), "$L", (4, 5, 6))
    prototype = first(parse(body), CallPrototype)
    assert isinstance(prototype, CallPrototype)
    assert (len(prototype.returns), prototype.parameters) == (1, ())
    targets = first(parse(in_body("x: .branchtargets a, b;")), Directive, 3)
    assert isinstance(targets, Directive)
    assert (targets.name, targets.arguments) == ("branchtargets", ("a", "b"))


def test_statements_come_in_the_order_of_the_text() -> None:
    module = parse(in_body("{ L: { add.u32 r1, r2, r3; } ret; } bra L;"))
    places = [(statement.line, statement.column) for statement in module.statements()]
    assert places == sorted(places)
    opcodes = [item.opcode for item in module.statements() if isinstance(item, Instruction)]
    assert opcodes == ["add.u32", "ret", "bra", "ret"]


def test_white_space_belongs_to_the_statement_after_it() -> None:
    module = parse("// a\n.version 9.0 /* b */\n\t.target sm_100a // c\n# d\n")
    assert [item.trivia for item in module.items] == ["// a\n", " /* b */\n\t"]
    assert [(item.line, item.column) for item in module.items] == [(2, 1), (3, 2)]
    assert module.trailing_trivia == " // c\n# d\n"
