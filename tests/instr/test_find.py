"""Finding instructions, and what a declaration says of itself in Python: its call, signature and docstring."""

from __future__ import annotations

import importlib
import inspect

import pytest

from ptxgen import instr
from ptxgen.instr import barrier, integer, load_all, tcgen05, tma
from ptxgen.instr.model.call import example_of, generic_call, python_call, signature_text
from ptxgen.instr.model.find import find
from ptxgen.instr.model.form import REGISTRY, Instruction
from ptxgen.instr.model.recognize import candidates, recognize
from ptxgen.syntax import Instruction as Statement
from ptxgen.syntax import parse

load_all()
EVERY = {form.form.key: form for forms in REGISTRY.values() for form in forms if form.__module__.startswith("ptxgen.")}


@pytest.mark.parametrize(
    ("text", "meant", "keys"),
    [
        ("tcgen05.ld", "", ["tcgen05.ld", "tcgen05.ld_halves", "tcgen05.ld_red"]),
        ("cp.async.bulk.tensor", "", ["tma.load", "tma.load_im2col", "tma.store"]),
        ("wgmma", "", ["wgmma.fence", "wgmma.mma_async_f16", "wgmma.wait_group"]),
        ("ld", "", ["memory.ld", "matrix.ldmatrix", "memory.ldu"]),
        ("ld.global", "", ["memory.ld"]),
        ("mbarrier.try", "", ["mbarrier.try_wait", "mbarrier.try_wait_parity"]),
        ("bulk.tensor", "", ["tma.load", "tma.reduce"]),
        ("tma.load", "", ["tma.load", "tma.load_im2col"]),
        ("TMA", "", ["tma.load"]),
        ("tcgn05.ld", "tcgen05.ld", ["tcgen05.ld"]),
        ("tcgen05.lod", "tcgen05.ld", ["tcgen05.ld"]),
        ("wgma", "wgmma", ["wgmma.fence"]),
        ("cp async bulk", "cp.async.bulk", ["bulk.load"]),
    ],
)
def test_what_is_found(text: str, meant: str, keys: list[str]) -> None:
    found = instr.find(text)
    assert found.meant == meant
    assert set(keys) <= {each.key for each in found}


def test_the_opcode_itself_comes_first_and_others_do_not_come() -> None:
    assert next(iter(find("ld").groups()))[0] == "ld"
    assert all(each.opcode.startswith("tcgen05.ld") for each in find("tcgen05.ld"))
    assert {each.opcode for each in find("ld.global")} == {"ld"}
    assert find("xyzzy") == []
    assert find(" ") == []


def test_what_lacks_and_two_legal_spellings() -> None:
    first = find("tcgen05.ld.sync")[0]
    assert first.lacks == (
        ".aligned",
        ".shape (.16x64b .16x128b .16x256b .32x32b)",
        ".num (.x1 .x2 .x4 .x8 .x16 .x32 .x64 .x128)",
        ".b32",
    )
    assert len(first.spellings) == 2
    assert find("ld")[0].spellings == ("ld.b32", "ld.global.b32")
    assert find("wgmma.fence")[0].spellings == ("wgmma.fence.sync.aligned",)


def test_every_spelling_is_legal() -> None:
    for key, form in EVERY.items():
        found = next(each for each in find(form.form.opcode) if each.key == key)
        assert found.spellings, key
        for each in found.spellings:
            assert any(type(made) is form and not made.modifier_problems() for made in candidates(each)), each


@pytest.mark.parametrize("key", EVERY)
def test_the_example_call_gives_the_example(key: str) -> None:
    form, family = EVERY[key], key.partition(".")[0]
    example = example_of(form)
    assert example is not None
    module = importlib.import_module(f"ptxgen.instr.{family}")
    assert str(eval(python_call(example), {family: module})) == str(example)
    assert f"    >>> print({python_call(example)})\n    {example}\n" in str(form.__doc__)
    signature = inspect.signature(form)
    assert set(signature.parameters) == set(form.form.positional)
    assert signature_text(form).startswith(f"{key}(")


def test_calls_of_what_people_write() -> None:
    def call(line: str) -> str:
        module = parse(f".version 9.0\n.target sm_90\n.func f() {{ {line} }}")
        made = recognize(next(each for each in module.statements() if isinstance(each, Statement)))
        assert isinstance(made, Instruction)
        return python_call(made)

    assert call("@!%p add.u32 %a, %b, 3;") == 'integer.add("%a", "%b", 3, type="u32").unless("%p")'
    assert call("add.u32 %a, %b, 0x10;") == 'integer.add("%a", "%b", "0x10", type="u32")'
    assert call("ld.global.v2.f32 {%a, %b}, [%rd+16];") == (
        'memory.ld(["%a", "%b"], "%rd+16", space="global", vec="v2", type="f32")'
    )
    opcode = "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes"
    load = next(each for each in candidates(opcode) if isinstance(each, tma.load))
    assert generic_call(load) == 'tma.load(dst_mem, tensor_map, coords, mbar, dim=2, dst="shared::cta")'


def test_help_shows_parameters_shapes_and_an_example() -> None:
    parameters = inspect.signature(tma.load).parameters
    assert list(parameters)[:4] == ["dst_mem", "tensor_map", "coords", "mbar"]
    assert parameters["mask"].default is None
    assert str(parameters["dst"]) == "dst: Literal['shared::cluster', 'shared::cta']"
    words = inspect.getdoc(tcgen05.ld)
    assert words is not None
    assert "    r: 1, 2, 4, 8, 16, 32, 64 or 128 registers of .b32 in braces\n" in words
    assert '>>> print(tcgen05.ld(["%r0"], "%taddr", shape="16x64b", num=1))' in words
    assert "    coords: 1, 2, 3, 4 or 5 registers of .s32 in braces\n" in str(tma.load.__doc__)


@pytest.mark.parametrize(
    ("module", "name", "message"),
    [
        (tma, "lod", "module 'ptxgen.instr.tma' has no attribute 'lod'; did you mean tma.load?"),
        (
            barrier,
            "cluster_wait",
            "module 'ptxgen.instr.barrier' has no attribute 'cluster_wait'; did you mean cluster.wait?",
        ),
        (integer, "xor", "module 'ptxgen.instr.integer' has no attribute 'xor'; did you mean logic.xor?"),
        (instr, "tcgen", "module 'ptxgen.instr' has no attribute 'tcgen'; did you mean tcgen05 or integer?"),
        (instr, "ld", "module 'ptxgen.instr' has no attribute 'ld'; did you mean memory.ld or tcgen05.ld?"),
        (instr, "qqqq", "module 'ptxgen.instr' has no attribute 'qqqq'"),
    ],
)
def test_unknown_names_say_what_was_meant(module: object, name: str, message: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    assert str(caught.value) == message
