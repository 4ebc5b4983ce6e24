"""Names of registers and labels: unique, typed, declared so that ptxas takes them."""

import pytest

from ptxgen import assemble, parse
from ptxgen.builder import Register, Registers
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


def test_unknown_type() -> None:
    with pytest.raises(KeyError, match="b33"):
        Registers().one("b33", "x")


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
