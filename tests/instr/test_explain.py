"""What `explain` says of an instruction."""

import json

import pytest

from ptxgen.instr import load_all
from ptxgen.instr.model.explain import explain
from ptxgen.instr.model.form import REGISTRY, Instruction
from ptxgen.instr.model.glossary import meaning
from ptxgen.syntax import PtxSyntaxError
from tools.explained import declarations, sampled


def test_parts_of_an_instruction() -> None:
    (found,) = explain("@%p tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3];")
    assert (found.key, found.issued_by, found.completed_by, found.ptx) == (
        "tcgen05.ld",
        "warp",
        "tcgen05.wait::ld",
        "8.6",
    )
    assert "sm_100a" in found.targets
    assert not {"sm_90a", "sm_100", "sm_120a"} & set(found.targets)
    assert [(part.text, part.name) for part in found.modifiers] == [
        (".sync", ""), (".aligned", ""), (".32x32b", "shape"), (".x2", "num"), (".b32", ""),
    ]  # fmt: skip
    assert [(part.text, part.name, part.meaning) for part in found.operands] == [
        ("{%r1, %r2}", "r", "2 registers of .b32 in braces"),
        ("[%r3]", "taddr", "an address in brackets, in tensor memory"),
    ]
    assert (found.problems, found.nearest) == ((), "")


def test_version_is_that_of_the_modifiers_too() -> None:
    assert [explain(f"mbarrier.arrive{each}.b64 _, [%a]")[0].ptx for each in ("", ".release.cta", ".relaxed.cta")] == [
        "7.1",
        "8.0",
        "8.6",
    ]


def test_an_opcode_alone_lists_its_syntax_lines_with_their_operands() -> None:
    found = explain("mov.b64")
    assert {"move.mov", "move.mov_pack", "move.mov_unpack"} <= {each.key for each in found}
    whole = next(each for each in found if each.key == "move.mov")
    assert [(part.text, part.name) for part in whole.operands] == [("", "d"), ("", "a")]


def test_what_is_not_legal() -> None:
    (found,) = explain("tcgen05.ld.sync.aligned.16x256b.x128.b32")
    assert [problem.code for problem in found.problems] == ["ld.num"]
    assert found.nearest == "tcgen05.ld.sync.aligned.16x256b.x32.b32"
    (found,) = explain("add.u32 %r1, %r2")
    assert [problem.code for problem in found.problems] == ["operand-count"]
    assert found.nearest == ""
    (found,) = explain("bar.sync 16")
    assert [problem.code for problem in found.problems] == ["immediate-range"]


def test_formats_without_constants() -> None:
    (found,) = explain("cvt.rn.satfinite.scaled::n1::ue8m0.e4m3x2.f32 %h1, %f1, %f2, %b1")
    assert [part.meaning for part in found.modifiers[2:4]] == [
        "divided by one power of two first",
        "2 floats with 4 bits of exponent and 3 of fraction",
    ]
    assert [part.meaning for part in found.operands[2:]] == [
        "a .f32 register or a constant",
        "a .b8 register for .ue8m0",
    ]
    assert (found.ptx, found.problems) == ("9.4", ())


def test_plain_values_for_json() -> None:
    (found,) = explain("add.u32 %r1, %r2, 1")
    assert json.loads(json.dumps(found.as_dict()))["operands"][2] == {
        "text": "1",
        "name": "b",
        "meaning": "a .u32 register or a constant",
    }


@pytest.mark.parametrize("text", ["", "add.u32 %r1,", "here:", "add.u32 %r1, %r2, 1; ret", "}"])
def test_no_instruction(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|one instruction"):
        explain(text)


def test_place_of_a_syntax_error() -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        explain("add.f32 %f1 %f2")
    assert (caught.value.line, caught.value.column) == (1, 13)


def test_every_modifier_has_a_meaning() -> None:
    load_all()
    silent = {
        (form.form.key, token)
        for forms in REGISTRY.values()
        for form in forms
        for slot in form.form.slots
        for token in slot.tokens
        if not meaning(form.form.key, slot.field or "", token)
    }
    assert not silent
    assert meaning("logic.shl", "", "nothing of the kind") == ""


@pytest.mark.parametrize("form", declarations(), ids=lambda form: form.form.key)
def test_legal_spellings_are_explained(form: type[Instruction]) -> None:
    """A sample; `make explained` takes all."""
    assert not sampled(form, 3)


def test_operands_that_one_value_of_a_modifier_asks_for() -> None:
    opcode = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
    overrides = ("", ".override::global_address", ".override::global_address.override::global_dim_stride")
    names = [[part.name for part in explain(opcode + each)[0].operands] for each in overrides]
    plain = ["dst_mem", "tensor_map", "coords", "mbar"]
    assert names == [plain, [*plain, "base"], [*plain, "base", "sizes", "lower_strides", "upper_strides"]]
