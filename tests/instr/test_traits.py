"""Traits of declarations: against a table made by hand, and against the emulator's terminators."""

import pytest

from ptxgen.emulator.semantics import find
from ptxgen.instr import load_all
from ptxgen.instr.model.form import REGISTRY
from ptxgen.instr.model.traits import Traits, traits_of, traits_of_opcode

TABLE = [
    ("add.u32", Traits(lanewise=True)),
    ("add.cc.u32", Traits()),
    ("setp.lt.and.s32", Traits(lanewise=True)),
    ("cvt.rni.u32.f32", Traits(lanewise=True)),
    ("mov.b32", Traits(lanewise=True, move=True)),
    ("ld.global.u32", Traits()),
    ("st.shared.v4.f32", Traits(stores=True)),
    ("st.async.release.gpu.global.u32", Traits(stores=True, asynchronous=True)),
    ("atom.global.add.u32", Traits(stores=True)),
    ("red.global.add.u32", Traits(stores=True)),
    ("shfl.sync.bfly.b32", Traits()),
    ("stacksave.u64", Traits()),
    ("bar.sync", Traits(aligned=True)),
    ("bar.arrive", Traits()),
    ("barrier.sync", Traits()),
    ("barrier.sync.aligned", Traits(aligned=True)),
    ("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", Traits(mma=True, asynchronous=True, aligned=True)),
    ("tcgen05.ld.sync.aligned.32x32b.x4.b32", Traits(asynchronous=True, aligned=True)),
    ("cp.async.bulk.commit_group", Traits()),
    ("bra.uni", Traits(terminator=True)),
    ("ret", Traits(terminator=True)),
    ("exit", Traits(terminator=True)),
    ("call.uni", Traits(call=True)),
    ("frobnicate.u32", Traits()),
]


@pytest.mark.parametrize(("opcode", "traits"), TABLE)
def test_traits(opcode: str, traits: Traits) -> None:
    assert traits_of_opcode(opcode) == traits


def test_traits_agree_with_the_emulator_and_between_syntax_lines() -> None:
    load_all()
    by_opcode: dict[str, Traits] = {}
    for form in (form for forms in REGISTRY.values() for form in forms):
        made = next(each for each in form.combinations() if not each.modifier_problems())
        traits, meaning = traits_of(made), find(form)
        assert by_opcode.setdefault(made.opcode_text, traits) == traits
        assert meaning is None or meaning.leaves == traits.terminator, form.form.key
        assert not (traits.lanewise and (traits.stores or traits.asynchronous or traits.control_flow)), form.form.key
