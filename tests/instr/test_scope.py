"""Names: ranges, shadowing, vectors, parameters, labels, functions; and special registers."""

import pytest

from ptxgen import parse
from ptxgen.instr.model.operands import Symbol
from ptxgen.instr.model.scope import Scope, declare
from ptxgen.instr.model.special import SPECIAL_REGISTERS, special_register
from ptxgen.instr.model.types import TYPES
from ptxgen.toolchain import AssemblerError, assemble_many

TEXT = """\
.version 8.6
.target sm_90
.address_size 64
.global .align 8 .f32 values[4];
.func (.reg .b32 result) helper(.param .b64 argument);
.entry k(.param .u64 pointer) {
    .reg .b32 %r<10>, single;
    .reg .v4 .f32 vec;
    .shared .b8 buffer[16];
here:
    ret;
}
"""


@pytest.fixture
def scope() -> Scope:
    module = parse(TEXT)
    outer = Scope()
    declare(outer, *module.items)
    (entry,) = module.entries
    assert entry.body is not None
    middle = Scope(outer)
    declare(middle, *entry.parameters)
    inner = Scope(middle)
    declare(inner, *entry.body.statements)
    return inner


@pytest.mark.parametrize(
    ("name", "kind", "type", "space", "vector"),
    [
        ("%r0", "register", "b32", None, None),
        ("%r9", "register", "b32", None, None),
        ("%r09", "register", "b32", None, None),
        ("single", "register", "b32", None, None),
        ("vec", "register", "f32", None, 4),
        ("vec.w", "register", "f32", None, None),
        ("vec.r", "register", "f32", None, None),
        ("buffer", "variable", "b8", "shared", None),
        ("values", "variable", "f32", "global", None),
        ("pointer", "parameter", "u64", "param", None),
        ("here", "label", None, None, None),
        ("helper", "function", None, None, None),
        ("k", "function", None, None, None),
        ("%tid.y", "special", "u32", None, None),
        ("%tid", "special", "u32", None, 4),
    ],
)
def test_resolves(scope: Scope, name: str, kind: str, type: str | None, space: str | None, vector: int | None) -> None:
    symbol = scope(name)
    assert symbol is not None
    assert (symbol.name, symbol.kind, symbol.space, symbol.vector) == (name, kind, space, vector)
    assert symbol.type == (TYPES[type] if type else None)


@pytest.mark.parametrize("name", ["%r10", "%r", "%r010", "single0", "single.x", "vec.q", "vec.", "_", "%tid.q"])
def test_does_not_resolve(scope: Scope, name: str) -> None:
    assert scope(name) is None


def test_inner_declarations_shadow_outer_ones() -> None:
    outer, inner = Scope(), None
    outer.symbols["a"] = Symbol("a", "register", TYPES["b32"])
    outer.ranges["%r"] = (4, Symbol("%r", "register", TYPES["b32"]))
    inner = Scope(outer)
    inner.symbols["a"] = Symbol("a", "register", TYPES["f32"])
    inner.ranges["%r"] = (2, Symbol("%r", "register", TYPES["f64"]))
    names = ("a", "%r1", "%r3")
    assert [str(symbol.type) for name in names if (symbol := inner(name))] == [".f32", ".f64", ".b32"]
    assert [str(symbol.type) for name in names if (symbol := outer(name))] == [".b32", ".b32", ".b32"]


def test_register_parameters_of_a_function_are_registers() -> None:
    function = parse(TEXT).functions[0]
    scope = Scope()
    declare(scope, *function.returns, *function.parameters)
    kinds = [symbol.kind for name in ("result", "argument") if (symbol := scope(name))]
    assert kinds == ["register", "parameter"]


def test_every_special_register_exists_for_ptxas_at_every_width() -> None:
    lines: dict[str, bool] = {}
    for name, symbol in SPECIAL_REGISTERS.items():
        if symbol.type == TYPES["pred"]:
            lines[f"mov.pred %p, {name};"] = True
        elif symbol.vector is None:
            lines.update({f"mov.u{bits} %u{bits}, {name};": bits in symbol.widths for bits in (16, 32, 64)})
    registers = ".reg .pred %p; .reg .u16 %u16; .reg .u32 %u32; .reg .u64 %u64;"
    head = ".version 9.5\n.target sm_100a\n.address_size 64\n.entry k() .minperctamemory 16"
    legal = "\n".join(line for line, is_legal in lines.items() if is_legal)
    illegal = [line for line, is_legal in lines.items() if not is_legal]
    texts = [f"{head} {{ {registers} {line} ret; }}" for line in (legal, *illegal)]
    together, *each = assemble_many(texts, options=["-O0"])
    assert not isinstance(together, AssemblerError), together
    wrong = [line for line, answer in zip(illegal, each, strict=True) if not isinstance(answer, AssemblerError)]
    assert wrong == []


@pytest.mark.parametrize("name", ["%pm8", "%envreg32", "%envreg01", "%tidx", "tid", "%laneid.x"])
def test_no_special_register(name: str) -> None:
    assert special_register(name) is None
