"""Names of registers and labels: unique, typed, declared so that ptxas takes them."""

import pytest

from ptxgen import assemble, check, parse
from ptxgen.builder import REGISTER_TYPES, Register, RegisterError, Registers
from ptxgen.instr import integer, memory, move, predicate
from ptxgen.instr.model.form import InstructionError
from ptxgen.instr.model.operands import Symbol
from ptxgen.instr.model.types import TYPES
from ptxgen.syntax import RegisterDeclaration


def test_a_taken_name_gets_a_number() -> None:
    registers = Registers()
    assert [str(registers.one("b32", "x")) for _ in range(3)] == ["%x", "%x_1", "%x_2"]
    assert registers.one("f32", "x_1") == Register("%x_1_1", "f32")
    assert [registers.label("loop") for _ in range(2)] == ["$loop", "$loop_1"]


@pytest.mark.parametrize("name", ["tid", "laneid", "clock64", "pm3", "envreg7"])
def test_names_of_special_registers_are_avoided(name: str) -> None:
    registers = Registers()
    assert str(registers.one("u32", name)) == f"%{name}_1"
    symbol = registers(f"%{name}")
    assert symbol is not None
    assert symbol.kind == "special"


def test_defined_names_are_avoided_and_resolve() -> None:
    registers = Registers()
    registers.define(Symbol("%n", "parameter", TYPES["u32"], "param"))
    assert str(registers.one("u32", "n")) == "%n_1"
    symbol = registers("%n")
    assert symbol is not None
    assert symbol.space == "param"


def test_many() -> None:
    registers = Registers()
    assert [str(each) for each in registers.many("f32", "acc", 3)] == ["%acc0", "%acc1", "%acc2"]
    assert [each.type for each in registers.many("b64", "acc", 1)] == ["b64"]
    assert registers.many("b64", "none", 0) == []


def test_resolves_to_the_declared_type() -> None:
    registers = Registers()
    registers.one("f32", "x")
    label = registers.label("end")
    symbols = [registers("%x"), registers(label)]
    assert [(each.kind, each.type) for each in symbols if each] == [("register", TYPES["f32"]), ("label", None)]
    assert registers("%y") is None


@pytest.mark.parametrize(
    ("type", "name", "message"),
    [
        ("int", "%x", "PTX has no registers of type 'int'; did you mean s32?"),
        (".f32", "x", "PTX has no registers of type '.f32'; did you mean f32?"),
        ("b33", "x", "PTX has no registers of type 'b33'; did you mean "),
        ("bf16", "x", "PTX has no registers of type 'bf16'; bf16 values are held in registers of type b16"),
        ("texref", "x", "PTX has no registers of type 'texref'; there are pred, u8, s8,"),
        ("u32", "x y", "a register's name has letters, digits, _ and $, which 'x y' has not alone"),
    ],
)
def test_types_and_names_that_ptx_does_not_have(type: str, name: str, message: str) -> None:
    with pytest.raises(RegisterError) as caught:
        Registers().one(type, name)
    assert str(caught.value).startswith(message)


def test_a_percent_sign_may_be_written() -> None:
    assert str(Registers().one("u32", "%x")) == "%x"


@pytest.mark.parametrize("type", REGISTER_TYPES)
def test_every_type_is_one_for_ptxas(type: str) -> None:
    registers = Registers()
    registers.one(type, "x")
    text = f".version 9.0\n.target sm_90\n.address_size 64\n.entry k() {{\n{registers.declarations()}\nret;\n}}\n"
    assert check(text) == []
    assert assemble(text).data


def test_typed_calls_check_the_declarations() -> None:
    registers = Registers()
    f, u, p = registers.one("f32", "f"), registers.one("u32", "u"), registers.one("pred", "p")
    assert str(integer.add(u, u, "%y", type="u32")) == "add.u32 %u, %u, %y;"
    assert str(move.mov(u, "%tid.x", type="u32")) == "mov.u32 %u, %tid.x;"
    for made in (
        lambda: integer.add(f, u, 1, type="u32"),
        lambda: integer.add("%y", f, 1, type="u32"),
        lambda: predicate.selp(u, u, u, f, type="u32"),
    ):
        with pytest.raises(InstructionError, match=r"%f is declared \.f32"):
            made()
    with pytest.raises(InstructionError, match=r"floats or integers, not \.u32 and \.f32"):
        memory.ld([u, f], "%rd", vec="v2", type="u32")
    with pytest.raises(InstructionError, match=r"%p is declared \.pred"):
        memory.ld(u, p, type="u32")
    with pytest.raises(InstructionError, match=r"the guard must be a predicate, but %u is declared \.u32"):
        integer.add(u, u, 1, type="u32").when(u)
    assert str(integer.add(u, u, 1, type="u32").unless(p)) == "@!%p add.u32 %u, %u, 1;"


def test_names_that_are_text_are_checked_where_the_declarations_are() -> None:
    registers = Registers()
    registers.one("u32", "u")
    registers.one("pred", "p")
    made = integer.add("%u", "%u", 1, type="u32").when("%p")
    assert registers.check(made) is made
    for wrong, message in (
        (integer.add("%u", "%v", 1, type="u32"), r"%v is not declared; declare it, for example \.reg \.u32 %v;"),
        (integer.add("%u", "%u", 1, type="u64"), r"must be of type \.u64, but %u is declared \.u32"),
        (made.when("%u"), r"the guard must be a predicate, but %u is declared \.u32"),
        (made.when("%q"), r"the guard must be a predicate, but %q is not declared"),
    ):
        with pytest.raises(InstructionError, match=message):
            registers.check(wrong)


def test_declarations_are_what_was_made_and_legal_for_ptxas() -> None:
    registers = Registers()
    made = [*registers.many("b32", "a_rather_long_name_", 40), registers.one("pred", "p"), registers.one("f64", "d")]
    text = registers.declarations(width=100)
    assert max(map(len, text.split("\n"))) <= 100
    module = f".version 8.0\n.target sm_90\n.address_size 64\n.entry k() {{\n{text}\nret;\n}}\n"
    body = parse(module).entries[0].body
    assert body is not None
    declared = [
        (name, statement.type)
        for statement in body.statements
        if isinstance(statement, RegisterDeclaration)
        for name, _ in statement.declarators
    ]
    assert declared == [(each.name, each.type) for each in made]
    assert assemble(module).data


def test_no_registers_no_declarations() -> None:
    assert Registers().declarations() == ""
