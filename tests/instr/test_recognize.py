"""Which declaration a line of PTX is."""

from itertools import islice

import pytest

from ptxgen import parse, syntax
from ptxgen.instr import load_all
from ptxgen.instr.model.form import REGISTRY, Instruction
from ptxgen.instr.model.recognize import Unrecognized, recognize


def statement(line: str) -> syntax.Instruction:
    module = parse(f".version 8.6\n.target sm_100a\n.entry k() {{ {line} }}\n")
    (found,) = [each for each in module.statements() if isinstance(each, syntax.Instruction)]
    return found


def found(line: str) -> Instruction:
    made = recognize(statement(line))
    assert isinstance(made, Instruction), made
    return made


#: line, declaration, the line in the manual's order
LINES = [
    ("add.u32 %a, %b, 1;", "integer.add", None),
    ("add.f32 %a, %b, %c;", "floating.add", None),
    ("add.sat.s32 %a, %b, %c;", "integer.add_sat", None),
    ("add.s32.sat %a, %b, %c;", "integer.add_sat", "add.sat.s32 %a, %b, %c;"),
    ("ld.u32.global %a, [%b];", "memory.ld", "ld.global.u32 %a, [%b];"),
    ("ld.relaxed.gpu.u32 %a, [%b];", "memory.ld_ordered", None),
    ("ld.volatile.u32 %a, [%b];", "memory.ld_volatile", None),
    ("cvt.f32.s32.rn %a, %b;", "conversion.cvt", "cvt.rn.f32.s32 %a, %b;"),
    ("cvt.rn.bf16.f32 %a, %b;", "conversion.cvt", None),
    ("cvt.rn.relu.bf16.f32 %a, %b;", "conversion.cvt_half", None),
    ("cvt.rn.bf16x2.f32 %a, %b, %c;", "conversion.cvt_half2", None),
    # Syntax lines that differ in their operands alone.
    ("mov.b64 %a, %b;", "move.mov", None),
    ("mov.b64 %a, {%b, %c};", "move.mov_pack", None),
    ("mov.b64 %a, {%b, %c, %d, %e};", "move.mov_pack4", None),
    ("mov.b64 {%b, _}, %a;", "move.mov_unpack", None),
    ("mbarrier.arrive.shared::cta.b64 _, [%a];", "mbarrier.arrive", None),
    ("mbarrier.arrive.shared::cluster.b64 _, [%a];", "mbarrier.arrive_remote", None),
    # The longest opcode wins.
    ("mbarrier.try_wait.parity.b64 %p, [%a], 0;", "mbarrier.try_wait_parity", None),
    ("mbarrier.try_wait.b64 %p, [%a], %b;", "mbarrier.try_wait", None),
    ("bar.warp.sync 1;", "barrier.bar_warp_sync", None),
    ("tcgen05.mma.cta_group::1.kind::f16 [%d], %a, %b, %i, %p;", "tcgen05.mma", None),
    ("tcgen05.mma.kind::f16.cta_group::1 [%d], [%a], %b, %i, %p;", "tcgen05.mma_ts",
     "tcgen05.mma.cta_group::1.kind::f16 [%d], [%a], %b, %i, %p;"),
    ("tcgen05.fence::before_thread_sync;", "tcgen05.fence", None),
    ("@!%p setp.eq.and.u32 %a|_, %b, 1, !%c;", "predicate.setp", None),
]  # fmt: skip


@pytest.mark.parametrize(("line", "key", "printed"), LINES)
def test_line(line: str, key: str, printed: str | None) -> None:
    made = found(line)
    assert (made.form.key, str(made)) == (key, printed or line)


def test_parts() -> None:
    made = found("@!%p tcgen05.commit.cta_group::2.mbarrier::arrive::one.multicast::cluster.b64 [%a+8], 0x3;")
    assert (made.guard, made.cta_group, made.multicast, made.space) == ("!%p", 2, True, None)  # pyright: ignore
    assert [str(getattr(made, name)) for name in ("mbar", "mask")] == ["[%a+8]", "0x3"]
    pair = found("elect.sync _|%p, %m;")
    assert [str(getattr(pair, name)) for name in ("d", "p", "mask")] == ["_", "%p", "%m"]
    bracket = found("cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [%d], [%t, {%x}], [%m];")
    assert [str(getattr(bracket, name)) for name in ("dst_mem", "tensor_map", "coords", "mbar", "mask")] == [
        "[%d]", "[%t]", "{%x}", "[%m]", "None",
    ]  # fmt: skip


#: line, code, message
UNKNOWN = [
    ("add.u33 %a, %b, 1;", "unknown-modifier", "add has no modifier .u33; it has "
     ".u16 .u32 .u64 .s16 .s32 .s64 .u16x2 .s16x2 .u8x4 .s8x4"),
    ("and.zzz %a, %b, 1;", "unknown-modifier", "and has no modifier .zzz; it has .b16 .b32 .b64"),
    ("fence.proxy.async::generic.acq_rel.sys;", "unknown-modifier",
     "this form of fence.proxy has no modifier .async::generic; it has .async .global .shared::cta .shared::cluster"),
    ("exit.now;", "unknown-modifier", "exit has no modifier .now; it has none"),
    ("and.b32.b32 %a, %b, 1;", "repeated-modifier", "and: .b32 is repeated; write it once"),
    ("mul.lo.u32.s16 %a, %b, 1;", "unknown-modifier", "mul: .s16 is one too many for `mul.half.type d, a, b`"),
    ("elect.sync %a, -1;", "operand-count",
     "elect.sync: d|p must be a register and, behind |, a predicate, not %a: `elect.sync d|p, mask`"),
    ("elect.sync %m;", "operand-count", "elect.sync: the operands must be as in `elect.sync d|p, mask`, not %m"),
    ("setp.eq.u32 %p, %a;", "operand-count",
     "setp.eq.u32: the operands must be as in `setp.compare{.combine}{.ftz}.type p{|q}, a, b{, c}`, not %p, %a"),
    ("and %a, %b, 1;", "missing-modifier", "and requires .type (.type is one of .b16 .b32 .b64): `and.type d, a, b`"),
    ("mad.u32 %a, %b, %c, %d;", "missing-modifier",
     "mad requires .half (.half is one of .lo .hi): `mad.half.type d, a, b, c`"),
    ("bar.warp 1;", "missing-modifier", "bar.warp requires .sync: `bar.warp.sync{.no_membermask_overlap} mask`"),
    ("mul.u32.lo %a, %b, %c;", "modifier-order",
     "the modifiers of mul must be in the order of `mul.half.type d, a, b`"),
    ("bar.sync.cta 0;", "modifier-order",
     "the modifiers of bar must be in the order of `bar{.cta}.sync name{, threads}`"),
    ("not.b32 %a, %b, %c;", "operand-count", "not.b32: the operands must be as in `not.type d, a`, not %a, %b, %c"),
    ("ret 1;", "operand-count", "ret: the operands must be as in `ret{.uni}`, not 1"),
    ("exit.uni %a;", "unknown-modifier", "exit has no modifier .uni; it has none"),
    ("not.b32;", "operand-count", "not.b32: the operands must be as in `not.type d, a`, not none"),
    ("mbarrier.try_wait.parity.b63 %p, [%a], 0;", "unknown-modifier",
     "mbarrier.try_wait.parity has no modifier .b63; it has "
     ".phase_type::primary .phase_type::conditional .acquire .relaxed .cta .cluster .shared .shared::cta .b64"),
    ("tcgen05.alloc.cta_group::3.sync.aligned.b32 [%a], 32;", "unknown-modifier",
     "tcgen05.alloc has no modifier .cta_group::3; it has "
     ".cta_group::1 .cta_group::2 .sync .aligned .exclusive .shared::cta .b32"),
    ("brx.uni %a, t;", "unknown-instruction", "brx.uni is not an instruction; brx has brx.idx"),
    ("nosuch.u32 %a, %b, %c;", "unknown-instruction", "PTX has no instruction nosuch"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "message"), UNKNOWN, ids=[line for line, _, _ in UNKNOWN])
def test_explanation(line: str, code: str, message: str) -> None:
    answer = recognize(statement(line))
    assert isinstance(answer, Unrecognized)
    assert [(problem.code, problem.message) for problem in answer.problems] == [(code, message)]


def test_every_declaration_is_recognized_from_its_own_text() -> None:
    """As itself, or as another declaration that prints the same."""
    load_all()
    for forms in REGISTRY.values():
        for form in forms:
            for made in islice(form.variants(), 15):
                again = found(str(made))
                assert str(again) == str(made)
                assert again.modifiers == made.modifiers
