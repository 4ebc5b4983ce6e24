"""Declarations and typed calls: what they make, and what they say when they are wrong."""

# The calls are wrong on purpose, and the declarations have what a type checker cannot follow.
# pyright: reportCallIssue=false, reportArgumentType=false, reportGeneralTypeIssues=false

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

from ptxgen import parse, syntax
from ptxgen.instr import (
    barrier,
    control,
    fence,
    floating,
    integer,
    load_all,
    logic,
    mbarrier,
    memory,
    move,
    predicate,
    tcgen05,
    tma,
    warp,
)
from ptxgen.instr.model.form import REGISTRY, Instruction, InstructionError, rule
from ptxgen.instr.model.operands import address, label, part, register, sink, source, vector
from ptxgen.instr.model.operands import predicate as predicate_operand
from ptxgen.instr.model.recognize import Unrecognized, recognize
from ptxgen.instr.model.symbols import Symbol
from ptxgen.instr.model.syntax_line import flag, modifier
from ptxgen.instr.model.targets import ALL, Availability, parse_target
from ptxgen.instr.model.types import TYPES
from ptxgen.syntax import Immediate, Name, parse_operand

INTEGERS = "'u16', 'u32', 'u64', 's16', 's32', 's64', 'u16x2', 's16x2', 'u8x4', 's8x4'"

#: call, the text it makes
CALLS: list[tuple[Callable[[], Instruction], str]] = [
    (lambda: integer.add("%r1", "%r2", 5, type="u32"), "add.u32 %r1, %r2, 5;"),
    (lambda: integer.add(d="%r1", a=Name("%r2"), b=Immediate("0x10"), type="u32"), "add.u32 %r1, %r2, 0x10;"),
    (lambda: integer.add("%r1", "%r2", "(1 << 4) | 2", type="s32"), "add.s32 %r1, %r2, (1 << 4) | 2;"),
    (lambda: floating.add("%f1", "%f2", 1.0, type="f32"), "add.f32 %f1, %f2, 1.0;"),
    (lambda: floating.add("%d1", "%d2", 1.0, type="f64"), "add.f64 %d1, %d2, 1.0;"),
    (lambda: floating.add("%f1", "%f2", 0.1, type="f32"), "add.f32 %f1, %f2, 0.1;"),
    (lambda: floating.add("%f1", "%f2", -1e-30, type="f32"), "add.f32 %f1, %f2, -1e-30;"),
    (lambda: floating.add("%f1", "%f2", float("inf"), type="f32"), "add.f32 %f1, %f2, 0f7F800000;"),
    (lambda: floating.add("%d1", "%d2", 5e-324, type="f64"), "add.f64 %d1, %d2, 0d0000000000000001;"),
    (lambda: floating.add("%d1", "%d2", np.float32(0.1), type="f64"), "add.f64 %d1, %d2, 0.10000000149011612;"),
    (lambda: integer.add("%r1", "%r2", "0x10", type="u32"), "add.u32 %r1, %r2, 0x10;"),
    (lambda: integer.add("%r1", "%r2", np.int64(7), type="u32"), "add.u32 %r1, %r2, 7;"),
    (lambda: floating.add("%f1", "%f2", "%f3", sat=True, rounding="rz", type="f32"), "add.rz.sat.f32 %f1, %f2, %f3;"),
    (lambda: memory.ld("%r1", "%rd1", type="u32"), "ld.u32 %r1, [%rd1];"),
    (lambda: memory.ld("%r1", "[%rd1+16]", space="global", type="u32"), "ld.global.u32 %r1, [%rd1+16];"),
    (lambda: memory.ld(["%r1", "%r2"], "%rd1", vec="v2", type="u32"), "ld.v2.u32 {%r1, %r2}, [%rd1];"),
    (lambda: memory.st("smem", [1, "%r2"], space="shared", vec="v2", type="b32"), "st.shared.v2.b32 [smem], {1, %r2};"),
    (lambda: move.mov_pred("%p1", True), "mov.pred %p1, 1;"),
    (lambda: move.mov_unpack(("%r1", "_"), "%rd1", type="b64"), "mov.b64 {%r1, _}, %rd1;"),
    (lambda: predicate.setp("%p", "%r1", 0, compare="eq", type="u32"), "setp.eq.u32 %p, %r1, 0;"),
    (lambda: predicate.setp("%p", "%r1", 0, q="%q", compare="eq", type="u32"), "setp.eq.u32 %p|%q, %r1, 0;"),
    (lambda: warp.elect("_", "%p", -1), "elect.sync _|%p, -1;"),
    (lambda: barrier.bar_sync(0), "bar.sync 0;"),
    (lambda: barrier.bar_sync(1, 64, cta=True), "bar.cta.sync 1, 64;"),
    (lambda: control.ret(), "ret;"),
    (lambda: fence.fence_mbarrier_init(), "fence.mbarrier_init.release.cluster;"),
    (
        lambda: mbarrier.arrive_remote("_", "%r1", space="shared::cluster"),
        "mbarrier.arrive.shared::cluster.b64 _, [%r1];",
    ),
    (
        lambda: tcgen05.commit("%r1", "%h1", cta_group=2, multicast=True),
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.multicast::cluster.b64 [%r1], %h1;",
    ),
    (lambda: tcgen05.wait(what="ld"), "tcgen05.wait::ld.sync.aligned;"),
    (
        lambda: tcgen05.ld(["%r1", "%r2"], "%r3", shape="32x32b", num=2, pack=True),
        "tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {%r1, %r2}, [%r3];",
    ),
    (
        lambda: tma.load("%r1", "%rd1", ["%r2", 0], "%r3", policy="%rd2", dim=2, dst="shared::cta", hint=True),
        "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint"
        " [%r1], [%rd1, {%r2, 0}], [%r3], %rd2;",
    ),
    (
        lambda: tcgen05.mma("%t", "%a", "%b", "%i", "!%p", scale_input_d=3, cta_group=1, kind="f16"),
        "tcgen05.mma.cta_group::1.kind::f16 [%t], %a, %b, %i, !%p, 3;",
    ),
    (
        lambda: tcgen05.mma_sp_ts("%t", "%a", "%b", "%m", "%i", True, cta_group=2, kind="i8", ashift=True),
        "tcgen05.mma.sp.cta_group::2.kind::i8.ashift [%t], [%a], %b, [%m], %i, 1;",
    ),
    (
        lambda: tcgen05.mma_scaled(
            "%t", "%a", "%b", "%i", "%v", "%w", "%p", cta_group=1, kind="mxf4nvf4", scale_vectorsize="block16"
        ),
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%t], %a, %b, %i, [%v], [%w], %p;",
    ),
    (
        lambda: tcgen05.mma_ws("%t", "%a", "%b", "%i", "%p", "%z", kind="tf32", collector="b3::lastuse"),
        "tcgen05.mma.ws.cta_group::1.kind::tf32.collector::b3::lastuse [%t], %a, %b, %i, %p, %z;",
    ),
]

#: call, code, message
WRONG: list[tuple[Callable[[], Instruction], str, str]] = [
    (lambda: integer.add("%r1", "%r2", 5), "missing-modifier", "type is required: " + INTEGERS),
    (lambda: integer.add("%r1", "%r2", 5, type="u33"), "unknown-modifier", f"type must be {INTEGERS}, not 'u33'"),
    (
        lambda: integer.add("%r1", "%r2", 5, kind="u32"),
        "unknown-modifier",
        "no modifier or operand 'kind'; it has d, a, b, type",
    ),
    (
        lambda: floating.add("%f1", "%f2", "%f3", sat="yes", type="f32"),
        "unknown-modifier",
        "sat must be True or False, not 'yes'",
    ),
    (lambda: tcgen05.wait(what=True), "unknown-modifier", "what must be 'ld', 'st', not True"),
    (lambda: integer.add("%r1", "%r2", type="u32"), "operand-count", "the operand b is missing"),
    (
        lambda: tcgen05.commit("%r1", "%h1", cta_group=1),
        "operand-count",
        "the operand mask requires the modifier .multicast",
    ),
    (lambda: tcgen05.commit("%r1", cta_group=1, multicast=True), "operand-count", "the operand mask is missing"),
    (
        lambda: integer.add("%r1", ["%r2"], 5, type="u32"),
        "operand-kind",
        "a must be a register or a constant, not {%r2}",
    ),
    (
        lambda: integer.add("%r1", "%r2", 1.5, type="u32"),
        "operand-type",
        "b must be an integer constant for .u32, not 0f3FC00000",
    ),
    (
        lambda: floating.add("%f1", "%f2", 1, type="f32"),
        "operand-type",
        "b must be a floating-point constant for .f32, not 1",
    ),
    (lambda: barrier.bar_sync(16), "immediate-range", "name must be 0 to 15, not 16"),
    (lambda: memory.ld(["%r1"], "%rd1", vec="v2", type="u32"), "vector-length", "d must have 2 elements, not 1"),
    (
        lambda: mbarrier.arrive_remote("%rd1", "%r1", space="shared::cluster"),
        "operand-kind",
        "state must be the sink _, not %rd1",
    ),
    (
        lambda: floating.add("%d1", "%d2", "%d3", ftz=True, type="f64"),
        "add.f32-only",
        "add.f64 allows no .ftz; .ftz requires .f32",
    ),
    (
        lambda: tcgen05.ld([f"%r{i}" for i in range(256)], "%t", shape="16x256b", num=64),
        "ld.num",
        "tcgen05.ld.16x256b requires .x1 to .x32, not .x64",
    ),
    (
        lambda: tcgen05.alloc("%r1", 48, cta_group=1),
        "alloc.columns",
        "tcgen05.alloc takes 32, 64, 128, 256 or 512 columns, not 48",
    ),
    (
        lambda: tcgen05.mma("%t", "%a", "%b", "%i", "%p", scale_input_d=3, cta_group=1, kind="f8f6f4"),
        "mma.scale-input-d",
        "scale-input-d requires .kind::f16 or .kind::tf32, not .kind::f8f6f4",
    ),
    (
        lambda: tcgen05.mma("%t", "%a", "%b", "%i", "%p", scale_input_d=16, cta_group=1, kind="f16"),
        "immediate-range",
        "scale_input_d must be 0 to 15, not 16",
    ),
    (
        lambda: tcgen05.mma_ts("%t", "%a", "%b", "%i", "%p", cta_group=1, kind="f16", ashift=True, collector="fill"),
        "mma_ts.ashift",
        ".ashift requires .collector::a::lastuse or ::discard, not ::fill",
    ),
    (
        lambda: tma.load("%r1", "%rd1", ["%r2"] * 5, "%r3", dim=3, dst="shared::cta", load_mode="tile::gather4"),
        "load.dimensions",
        ".tile::gather4 requires .2d, not .3d",
    ),
    (
        lambda: tma.store("%rd1", ["%r2"] * 5, "%r1", dim=3, load_mode="tile::scatter4"),
        "store.dimensions",
        ".tile::scatter4 requires .2d, not .3d",
    ),
    (
        lambda: tma.load("%r1", "%rd1", ["%r2"], "%r3", "%h1", dim=1, dst="shared::cta", multicast="cluster"),
        "load.own-cta",
        ".multicast::cluster requires .shared::cluster, not .shared::cta",
    ),
]


@pytest.mark.parametrize(("call", "text"), CALLS, ids=[text for _, text in CALLS])
def test_call_makes_the_text(call: Callable[[], Instruction], text: str) -> None:
    made = call()
    assert str(made) == text
    assert repr(made) == f"<{made.form.key}: {text}>"


@pytest.mark.parametrize(
    ("call", "code", "message"), WRONG, ids=[f"{code}-{i}" for i, (_, code, _) in enumerate(WRONG)]
)
def test_wrong_call_says_the_rule(call: Callable[[], Instruction], code: str, message: str) -> None:
    with pytest.raises(InstructionError) as caught:
        call()
    assert [(problem.code, problem.message) for problem in caught.value.problems] == [(code, message)]
    assert str(caught.value) == f"{caught.value.form}: {message}"


def test_all_wrong_modifiers_are_named_at_once() -> None:
    with pytest.raises(InstructionError) as caught:
        tcgen05.mma("%t", "%a", "%b", "%i", "%p", cta_group=3, kind="f4")
    assert [problem.code for problem in caught.value.problems] == ["unknown-modifier", "unknown-modifier"]


def test_too_many_operands() -> None:
    with pytest.raises(TypeError, match=r"integer\.add takes 3 operands, not 4"):
        integer.add("%r1", "%r2", "%r3", "%r4", type="u32")


def test_float_too_large() -> None:
    with pytest.raises(ValueError, match=r"1e\+40 does not fit .f32"):
        floating.add("%f1", "%f2", 1e40, type="f32")


def test_immutable() -> None:
    made = integer.add("%r1", "%r2", 5, type="u32")
    with pytest.raises(AttributeError, match=r"integer\.add is immutable"):
        made.type = "s32"  # pyright: ignore[reportAttributeAccessIssue]
    assert str(made) == "add.u32 %r1, %r2, 5;"


def test_guards() -> None:
    made = control.bra("$loop", uni=True)
    assert str(made.when("%p")) == "@%p bra.uni $loop;"
    assert str(made.unless(Name("%p"))) == "@!%p bra.uni $loop;"
    assert str(made.when("%p", negated=True)) == str(made.unless("%p"))
    assert str(made) == "bra.uni $loop;", "the original keeps no guard"


def test_opcode_text_is_in_the_order_of_the_manual() -> None:
    made = logic.shr("%r1", "%r2", 3, type="s32")
    assert (made.opcode_text, made.modifiers) == ("shr.s32", ["s32"])
    mma = tcgen05.mma("%t", "%a", "%b", "%i", "%p", collector="use", kind="tf32", cta_group=2)
    assert mma.opcode_text == "tcgen05.mma.cta_group::2.kind::tf32.collector::a::use"


def test_availability() -> None:
    made = tcgen05.mma("%t", "%a", "%b", "%i", "%p", scale_input_d=1, cta_group=1, kind="f16")
    assert made.availability_problems(parse_target("sm_100a"), (8, 6)) == []
    assert [p.message for p in made.availability_problems(parse_target("sm_110a"), (9, 0))] == [
        "tcgen05.mma: scale_input_d is not on sm_110a; it requires the family of sm_100f"
    ]
    assert [p.message for p in made.availability_problems(parse_target("sm_90a"), (8, 5))][:2] == [
        "tcgen05.mma requires PTX ISA 8.6 or later, .version is 8.5",
        "tcgen05.mma is not on sm_90a; it requires the family of sm_100f or the family of sm_110f",
    ]


# Declarations.


@pytest.fixture(autouse=True)
def _registry() -> Iterator[None]:
    """Declarations of these tests leave no trace."""
    load_all()
    before = {opcode: list(forms) for opcode, forms in REGISTRY.items()}
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


_ABOUT: dict[str, Any] = {"section": "0", "ptx": "1.0", "targets": ALL}


def test_notation() -> None:
    class call(Instruction, opcode="test.call", leading=1, **_ABOUT):
        syntax = "test.call.now{.scale}{.twice}.kind {p,} [d, c], a|q{, b}"
        p: Any = predicate_operand(default=None)
        d: Any = address(memory="read")
        c: Any = vector("b32", 2, immediate=True)
        a: Any = register("kind")
        q: Any = predicate_operand()
        b: Any = source("b32", default=None)
        _: KW_ONLY
        kind: Literal["u32", "f32"]
        scale: Literal[1, 2] | None = modifier("x", "y", default=None)
        twice: bool = flag("two::times", default=False)

    form = call.form
    assert (form.key, form.opcode, form.leading) == ("test_form.call", "test.call", 1)
    assert [(slot.field, list(slot.tokens), slot.optional) for slot in form.slots] == [
        (None, ["now"], False),
        ("scale", ["x1y", "x2y"], True),
        ("twice", ["two::times"], True),
        ("kind", ["u32", "f32"], False),
    ]
    assert [(p.shape, [spec.name for spec in p.fields], p.optional) for p in form.patterns] == [
        ("single", ["p"], True),
        ("bracket", ["d", "c"], False),
        ("pair", ["a", "q"], False),
        ("single", ["b"], True),
    ]
    operands = {"d": "%rd1", "c": [1, "%r2"], "a": "%r3", "q": "%q"}
    made = call(**operands, kind="u32", scale=2, twice=True)
    assert str(made) == "test.call.now.x2y.two::times.u32 [%rd1, {1, %r2}], %r3|%q;"
    every = list(call.combinations())
    assert len(every) == 3 * 2 * 2
    assert [call.combination(number).opcode_text for number in range(12)] == [made.opcode_text for made in every]
    assert len(list(call.variants())) == 3 * 2 * 2 * 4


def _recognized(line: str) -> Instruction | Unrecognized:
    function = parse(f".version 8.0\n.target sm_80\n.func f() {{ {line} }}").functions[0]
    assert function.body is not None
    (statement,) = function.body.statements
    assert isinstance(statement, syntax.Instruction)
    return recognize(statement)


def test_modifiers_decide_which_operands_stand_in_brackets() -> None:
    class fetch(Instruction, opcode="fetch", **_ABOUT):
        syntax = "fetch{.moved}{.sized} [a{, base}{, sizes, stride}, c]"
        a: Any = address(memory="read")
        c: Any = vector("b32", 1)
        base: Any = source("u64", immediate=False, when="moved", default=None)
        sizes: Any = vector("b16", 2, when="sized", default=None)
        stride: Any = source("u32", when="sized=both", default=None)
        _: KW_ONLY
        moved: bool = False
        sized: Literal["one", "both"] | None = None

    assert [str(each) for each in fetch.variants()] == [
        "fetch [%x_b64_0, {%x_b32_140}];",
        "fetch.one [%x_b64_0, {%x_b16_10, %x_b16_11}, {%x_b32_140}];",
        "fetch.both [%x_b64_0, {%x_b16_10, %x_b16_11}, %x_b32_4, {%x_b32_140}];",
        "fetch.moved [%x_b64_0, %x_b64_2, {%x_b32_140}];",
        "fetch.moved.one [%x_b64_0, %x_b64_2, {%x_b16_10, %x_b16_11}, {%x_b32_140}];",
        "fetch.moved.both [%x_b64_0, %x_b64_2, {%x_b16_10, %x_b16_11}, %x_b32_4, {%x_b32_140}];",
    ]
    for made in fetch.variants():
        if made.moved or not made.sized:  # PTX has no vector before the last in any other brackets
            assert str(_recognized(str(made))) == str(made)
    for wrong in (
        "fetch.moved [%rd1, {1}];",
        "fetch [%rd1, %rd2, {%r1}];",
        "fetch.one [%a, %b, {%c}];",
    ):
        assert isinstance(_recognized(wrong), Unrecognized), wrong
    with pytest.raises(InstructionError, match=r"the operand stride requires the modifier .sized=both"):
        fetch("%rd1", ["%r1"], sizes=["%h1", "%h2"], stride=2, sized="one")
    with pytest.raises(InstructionError, match="the operand stride is missing"):
        fetch("%rd1", ["%r1"], sizes=["%h1", "%h2"], sized="both")


def test_rules_and_needs() -> None:
    class both(Instruction, opcode="both", **_ABOUT):
        """Has a rule, and needs for tokens, values, operands and combinations."""

        syntax = "both{.fast}.a.b d{, e}"
        d: Any = register("b32", sink=True)
        e: Any = source("b32", default=None)
        _: KW_ONLY
        fast: bool = False
        a: Literal["u8", "u16"]
        b: Literal["u8", "u16"]
        needs: ClassVar = {
            "fast": Availability("2.0", ALL),
            "b=u16": Availability("3.0", ALL),
            "fast a=u16": Availability("4.0", ALL),
            "e": Availability("5.0", ALL),
            "e=13": Availability("6.0", ALL),
            "d=_": Availability("7.0", ALL),
            "fast sm_80": Availability("6.0", ALL),
        }

        @rule("wide")
        def _wide(self) -> str | None:
            return "not both" if self.a == self.b == "u16" else None

        @rule("same", reads_operands=True)
        def _same(self) -> str | None:
            return "the same" if self.e is not None and self.d == self.e else None

    def needed(*operands: str, target: str = "sm_90", **modifiers: Any) -> list[str]:
        made = both(*operands, **modifiers)
        return [each.message for each in made.availability_problems(parse_target(target), (1, 0))]

    assert needed("%a", a="u8", b="u8") == []
    assert needed("%a", a="u16", b="u8") == []
    assert needed("%a", a="u8", b="u16") == ["both: b=u16 requires PTX ISA 3.0 or later, .version is 1.0"]
    assert len(needed("%a", a="u8", b="u8", fast=True)) == 1
    assert len(needed("%a", a="u16", b="u8", fast=True)) == 2
    assert len(needed("%a", "%b", a="u8", b="u8")) == 1
    assert len(needed("%a", "(1 << 3) | 5", a="u8", b="u8")) == 2
    assert needed("_", a="u8", b="u8") == ["both: d=_ requires PTX ISA 7.0 or later, .version is 1.0"]
    assert len(needed("%a", a="u8", b="u8", fast=True, target="sm_80")) == 2
    with pytest.raises(InstructionError, match=r"test_form.both: not both"):
        both("%a", a="u16", b="u16")
    with pytest.raises(InstructionError, match=r"the same"):
        both("%a", "%a", a="u8", b="u8")
    assert {variant.opcode_text for variant in both.variants()} == {
        f"both{fast}.{a}.{b}" for fast in ("", ".fast") for a, b in (("u8", "u8"), ("u8", "u16"), ("u16", "u8"))
    }


def test_inheritance() -> None:
    class _Base(Instruction, opcode="child", completed_by="child.wait", **_ABOUT):
        """Fields, a rule and needs of both children; no declaration itself."""

        a: Any = register("b32")
        b: Any = source("b32", default=None)
        _: KW_ONLY
        fast: bool = False
        needs: ClassVar = {"fast": Availability("2.0", ALL)}

        @rule("fast-b", reads_operands=True)
        def _fast(self) -> str | None:
            return "no b" if self.fast and self.b is not None else None

    class child(_Base):
        syntax = "child{.fast} a{, b}"

    class child_at(child, section="1"):
        syntax = "child{.fast}{.num} [a]{, b}"
        a: Any = address(memory="read")
        num: Literal[1, 2] | None = modifier("x", default=None)

    assert [form.form.key for form in REGISTRY["child"]] == ["test_form.child", "test_form.child_at"]
    assert (child.form.section, child_at.form.section, child_at.form.completed_by) == ("0", "1", "child.wait")
    assert child_at.form.positional == ("a", "b", "fast", "num")
    assert str(child_at("%r1", "%r2", num=2)) == "child.x2 [%r1], %r2;"
    assert child.form.operands["a"] is not child_at.form.operands["a"]
    assert child.form.operands["b"] is child_at.form.operands["b"]
    assert [rule.code for rule in child_at.form.rules] == ["child_at.fast-b"]
    made = child_at("%r1", fast=True)
    assert [each.code for each in made.availability_problems(parse_target("sm_90"), (1, 0))] == ["ptx-version"]


def test_class_arguments_must_be_there() -> None:
    with pytest.raises(TypeError, match=r"bad: the class arguments \['ptx', 'section'\] are missing"):
        type("bad", (Instruction,), {"syntax": "bad"}, targets=ALL)


def _declare(syntax: str, **fields: Any) -> None:
    annotations = {name: fields.pop(name + "_type", Any) for name in list(fields) if not name.endswith("_type")}
    type("bad", (Instruction,), {"syntax": syntax, "__annotations__": annotations, **fields}, opcode="bad", **_ABOUT)


@pytest.mark.parametrize(
    ("syntax", "fields", "message"),
    [
        ("good d", {"d": register("b32")}, "bad: the syntax line must begin with bad"),
        ("bad{.fast} d", {"d": register("b32")}, r"bad: the optional modifier \{.fast\} needs a field"),
        ("bad d", {"d": register("b32"), "e": register("b32")}, r"bad: operands \['e'\] are not in the syntax line"),
        ("bad d, e", {"d": register("b32")}, "bad: the operand 'e' of the syntax line has no field"),
        ("bad d", {"d": register("b32"), "kind": 1, "kind_type": Literal["a"]}, r"bad: fields \['kind'\] are not in"),
        ("bad d", {"d": source("b32", when="fast")}, "bad: d depends on fast, which is no modifier"),
    ],
)
def test_declaration_errors(syntax: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        _declare(syntax, **fields)
    assert "bad" not in REGISTRY


def test_examples_of_every_kind_of_operand() -> None:
    class every(Instruction, opcode="every", **_ABOUT):
        syntax = "every d, s, v, p, l, n"
        d: Any = register("f32")
        s: Any = source("bf16")
        v: Any = vector("f64", 2)
        p: Any = predicate_operand()
        l: Any = label()  # noqa: E741
        n: Any = sink()

    (made,) = every.variants()
    assert str(made) == "every %x_f32_0, %x_b16_1, {%x_f64_270, %x_f64_271}, %x_pred_3, EXAMPLE_LABEL, _;"


class _Resolver:
    """Registers by their names: `%r1` is .b32, `%f1` .f32."""

    def __call__(self, name: str) -> Symbol | None:
        types = {"%r1": "b32", "%f1": "f32"}
        return Symbol(name, "register", TYPES[types[name]]) if name in types else None


@pytest.mark.parametrize(
    ("d", "a", "codes"),
    [
        ("%r1", "%r1", []),
        ("%r1.b3", "-%r1.h0", []),
        ("%r1", "-%r1", []),
        ("%r1", 5, []),
        ("%r1.h0", "%r1", ["operand-kind"]),
        ("%r1", "%r1.h2", ["operand-kind"]),
        ("%r1", "%r1.b01", ["operand-kind"]),
        ("-%r1", "%r1", ["operand-kind"]),
        ("%r1", "!%r1", ["operand-kind"]),
        (5, "%r1", ["operand-kind"]),
        ("_", "%r1", ["operand-kind"]),
        ("%r1", "%f1.b0", ["operand-type"]),
        ("%r1", "%r2.b0", ["undeclared-name"]),
    ],
)
def test_parts_of_registers(d: Any, a: Any, codes: list[str]) -> None:
    class parts(Instruction, opcode="parts", **_ABOUT):
        syntax = "parts d, a"
        d: Any = part("u32", "b[0-3]")
        a: Any = part("u32", "b[0-3]|h[01]", immediate=True, negatable=True)

    operands = {"d": parse_operand(str(d)), "a": parse_operand(str(a))}
    assert [each.code for each in parts.bound({}, operands).operand_problems(_Resolver())] == codes


def test_a_modifier_that_stands_twice_has_one_value() -> None:
    class twice(Instruction, opcode="twice", **_ABOUT):
        syntax = "twice.type.f32.type d"
        d: Any = register("b32")
        _: KW_ONLY
        type: Literal["s8", "u8"]

    assert twice.combination_count() == 2
    assert [str(made) for made in twice.variants()] == ["twice.s8.f32.s8 %x_b32_0;", "twice.u8.f32.u8 %x_b32_0;"]
    assert str(twice("%r1", type="u8")) == "twice.u8.f32.u8 %r1;"
    with pytest.raises(InstructionError, match=r"twice: type must be 's8', 'u8', not 'u4'$"):
        twice("%r1", type="u4")

    def read(line: str) -> Instruction | Unrecognized:
        module = parse(f".version 9.0\n.target sm_90\n.func f() {{ {line} }}")
        return recognize(next(each for each in module.statements() if isinstance(each, syntax.Instruction)))

    found = read("twice.u8.f32.u8 %r1;")
    assert isinstance(found, twice)
    assert found.type == "u8"
    wrong = read("twice.u8.f32.s8 %r1;")
    assert isinstance(wrong, Unrecognized)
    assert [(each.code, each.message) for each in wrong.problems] == [
        ("unknown-modifier", "twice: the two .type must be the same, not .u8 and .s8")
    ]
