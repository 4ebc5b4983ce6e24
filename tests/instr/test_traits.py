"""Traits of declarations: consistent with their forms and with the emulator, and right for instructions by hand."""

from __future__ import annotations

import pytest

from ptxgen.emulator.semantics import find
from ptxgen.instr import load_all
from ptxgen.instr.model.form import REGISTRY, Instruction
from ptxgen.instr.model.operands import (
    AddressSpec,
    CalleeSpec,
    ChoiceSpec,
    ImmediateSpec,
    LabelSpec,
    PartSpec,
    PredicateSpec,
    RegisterSpec,
    SinkSpec,
    SourceSpec,
    VectorSpec,
)
from ptxgen.instr.model.recognize import recognize, traits_of
from ptxgen.instr.model.traits import Traits
from ptxgen.syntax import Instruction as Statement
from ptxgen.syntax import parse, walk

load_all()
FORMS = [form for forms in REGISTRY.values() for form in forms]
KEYS = [form.form.key for form in FORMS]


@pytest.mark.parametrize("form", FORMS, ids=KEYS)
def test_traits_are_consistent_with_the_form(form: type[Instruction]) -> None:
    traits, operands = next(form.combinations()).traits, form.form.operands
    assert traits.reads | traits.writes == operands.keys()
    for name in traits.writes:
        spec = operands[name]
        if name != "returns":
            assert isinstance(spec, RegisterSpec | PredicateSpec | VectorSpec | SinkSpec | PartSpec), name
    for name, spec in operands.items():
        if isinstance(spec, AddressSpec | ChoiceSpec | ImmediateSpec | LabelSpec | CalleeSpec):
            assert name not in traits.writes
        if isinstance(spec, SourceSpec) and not isinstance(spec, PartSpec):
            assert name not in traits.writes
        if isinstance(spec, SinkSpec) or (isinstance(spec, RegisterSpec) and spec.sink):
            assert name in traits.writes, "only a result can be dropped"
    assert bool(traits.targets) == (traits.control == "branch")
    fixed = {token for slot in form.form.slots if slot.field is None for token in slot.tokens}
    if "aligned" in fixed:
        assert traits.aligned
    if traits.lanewise:
        words = _summary(traits).split()
        assert set(words[1:]) <= {"move", "lanewise"}
    if traits.move:
        assert traits.lanewise
    if traits.asynchronous:
        assert form.form.completed_by != "at once"
    if form.form.completed_by.startswith("complete_tx"):
        assert any(effect.writes and effect.operand in ("mbar", "bar") for effect in traits.effects)


@pytest.mark.parametrize("form", FORMS, ids=KEYS)
def test_control_flow_is_that_of_the_emulator(form: type[Instruction]) -> None:
    semantics = find(form)
    if semantics is None:
        pytest.skip("the emulator does not have it")
    control = form.form.traits.traits.control
    assert semantics.leaves == (control in ("branch", "return", "exit"))
    if control not in (None, "trap"):
        assert semantics.kind == "terminator"


def test_a_modifier_decides_where_it_is_optional() -> None:
    for form in FORMS:
        flags = [slot for slot in form.form.slots if slot.field and "aligned" in slot.tokens]
        if flags:
            found = {each.modifiers.count("aligned"): each.traits.aligned for each in form.combinations(0, 500)}
            assert found == {0: False, 1: True}, form.form.key


def test_an_address_must_say_how_its_memory_is_accessed() -> None:
    from ptxgen.instr.model.operands import address

    with pytest.raises(TypeError, match="say memory= of the addresses"):

        class silent(Instruction, section="0", ptx="1.0", targets="sm_50+"):
            syntax = "silent [a]"
            a: object = address("global")


def _traits(text: str) -> Traits:
    module = parse(f".version 8.8\n.target sm_100a\n.address_size 64\n.entry k() {{\n{text}\nL: ret;\n}}")
    found = recognize(next(each for each in walk(module.items) if isinstance(each, Statement)))
    assert isinstance(found, Instruction), found
    return found.traits


def _summary(traits: Traits) -> str:
    """The traits in short: written operands, `space:how` of memory, then words."""
    words = [f"w={','.join(sorted(traits.writes))}"] if traits.writes else []
    words += [f"{each.operand}={each.space}:{'r' * each.reads}{'w' * each.writes}" for each in traits.effects]
    flags = ("aligned", "asynchronous", "move", "lanewise", "multiplies", "synchronizes", "terminator")
    return " ".join([*words, *(flag for flag in flags if getattr(traits, flag))])


#: By hand, from the manual's sections.
HAND = [
    ("add.u32 %a, %b, 1;", "w=d lanewise"),
    ("add.cc.u32 %a, %b, 1;", "w=d"),
    ("setp.lt.u32 %p|%q, %a, 1;", "w=p,q lanewise"),
    ("mov.b32 %a, %b;", "w=d move lanewise"),
    ("cvt.rn.f16x2.f32 %a, %b, %c;", "w=d lanewise"),
    ("shfl.sync.bfly.b32 %a|%p, %b, 1, 31, -1;", "w=d,p"),
    ("vote.sync.ballot.b32 %a, %p, -1;", "w=d"),
    ("elect.sync %a|%p, -1;", "w=d,p"),
    ("ld.global.v4.b32 {%a, %b, %c, %d}, [%r];", "w=d a=global:r"),
    ("ld.b32 %a, [%r];", "w=d a=generic:r"),
    ("ld.acquire.gpu.global.b32 %a, [%r];", "w=d a=global:r synchronizes"),
    ("ld.relaxed.gpu.global.b32 %a, [%r];", "w=d a=global:r"),
    ("st.shared::cluster.b32 [%r], %a;", "a=shared:w"),
    ("st.release.sys.b32 [%r], %a;", "a=generic:w synchronizes"),
    ("st.local.b32 [%r], %a;", "a=local:w"),
    ("atom.acq_rel.gpu.global.add.u32 %a, [%r], 1;", "w=d a=global:rw synchronizes"),
    ("red.shared.add.u32 [%r], 1;", "a=shared:rw"),
    ("cp.async.ca.shared.global [%a], [%r], 4;", "dst=shared:w src=global:r asynchronous"),
    ("cp.async.wait_group 0;", "synchronizes"),
    (
        "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%a], [%r, {%b, %c}], [%d];",
        "dst_mem=shared:w tensor_map=tensormap:r coords=global:r mbar=shared:rw asynchronous",
    ),
    (
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%r, {%b, %c}], [%a];",
        "tensor_map=tensormap:r coords=global:w src_mem=shared:r asynchronous",
    ),
    ("cp.async.bulk.wait_group.read 0;", "synchronizes"),
    ("mbarrier.init.shared.b64 [%a], 1;", "addr=shared:w"),
    ("mbarrier.arrive.b64 %s, [%a];", "w=state addr=shared:rw synchronizes"),
    ("mbarrier.try_wait.parity.shared.b64 %p, [%a], 0;", "w=p,report,value addr=shared:r synchronizes"),
    ("fence.proxy.async;", "synchronizes"),
    ("bar.sync 0;", "aligned synchronizes"),
    ("barrier.sync 0;", "synchronizes"),
    ("barrier.sync.aligned 0;", "aligned synchronizes"),
    ("barrier.cluster.arrive.aligned;", "aligned synchronizes"),
    ("setmaxnreg.inc.sync.aligned.u32 240;", "aligned"),
    ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%a}, [%b];", "w=r addr=shared:r aligned"),
    (
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%a,%b,%c,%d}, {%a,%b,%c,%d}, {%a,%b}, {%a,%b,%c,%d};",
        "w=d aligned multiplies",
    ),
    (
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%a,%b,%c,%d}, %r, %s, 1, 1, 1, 0, 0;",
        "w=d a=shared:r b=shared:r aligned asynchronous multiplies",
    ),
    ("wgmma.wait_group.sync.aligned 0;", "aligned synchronizes"),
    (
        "tcgen05.mma.cta_group::1.kind::f16 [%a], %r, %s, %b, %p;",
        "d=tmem:rw a=shared:r b=shared:r asynchronous multiplies",
    ),
    ("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%a}, [%b];", "w=r taddr=tmem:r aligned asynchronous"),
    ("tcgen05.wait::ld.sync.aligned;", "aligned synchronizes"),
    ("tcgen05.cp.cta_group::1.128x256b [%a], %s;", "taddr=tmem:w sdesc=shared:r asynchronous"),
    ("@%p bra L;", "terminator"),
    ("ret;", "terminator"),
    ("exit;", "terminator"),
    ("trap;", "terminator"),
    ("call f;", "w=returns"),
]


@pytest.mark.parametrize(("text", "expected"), HAND, ids=[text.split(" [")[0] for text, _ in HAND])
def test_traits_by_hand(text: str, expected: str) -> None:
    assert _summary(_traits(text)) == expected


def test_an_accumulator_is_read_and_written() -> None:
    traits = traits_of("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")
    assert traits is not None
    assert "d" in traits.reads & traits.writes


def test_an_opcode_that_is_not_legal_has_no_traits() -> None:
    assert traits_of("add.u33") is None
