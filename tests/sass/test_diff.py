"""Comparisons: every change is reported where it is, and what is equal is called equal."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from ptxgen.sass import Comparison, Function, Instruction, Listing, compare, load
from ptxgen.sass.flow import Flow
from ptxgen.sass.show import ThresholdError, broken_thresholds, comparison_lines
from ptxgen.toolchain import assemble
from tests.support.cubins import cubin, listing, starved, with_word
from tests.support.paths import DATA

KERNELS = ("hopper_gemm", "blackwell_clc", "groups", "flash2")


def changed(whole: Listing, index: int, **values: object) -> Listing:
    """The listing with other values in one instruction of its first function."""
    function = whole.functions[0]
    made = list(function.instructions)
    made[index] = replace(made[index], **values)  # type: ignore[arg-type]
    return replace(whole, functions=(replace(function, instructions=tuple(made)), *whole.functions[1:]))


def edits(each: Instruction, function: Function, rng: random.Random) -> list[tuple[str, dict[str, object]]]:
    """Changes of one instruction, with the kind that must be reported."""
    found: list[tuple[str, dict[str, object]]] = [("opcode", {"opcode": f"{each.opcode}X", "word": each.word ^ 1})]
    modifiers = (*each.modifiers[:-1], "NEW") if each.modifiers else ("NEW",)
    found.append(("modifier", {"modifiers": modifiers, "word": each.word ^ 1 << 72}))
    guard = "" if each.predicate else "@P3"
    found.append(("predicate", {"predicate": guard, "word": each.word ^ 1 << 12}))
    found.append(
        ("control", {"word": each.control.encode(each.word) ^ 1 << rng.choice([105, 109, 110, 113, 116, 122])})
    )
    for position, operand in enumerate(each.operands):
        for pattern in (r"(?<![\w.])0x[0-9a-f]+", r"c\[0x0\]\[0x[0-9a-f]+\]"):
            if (match := re.search(pattern, operand)) and each.opcode not in ("BRX", "MOV"):
                other = match[0].replace("0x", "0x1", 1) if match[0].startswith("0x") else "c[0x0][0xff4]"
                operands = list(each.operands)
                operands[position] = operand.replace(match[0], other, 1)
                found.append(("operand", {"operands": tuple(operands), "word": each.word ^ 1 << 40}))
    if each.opcode == "BRA":
        old = each.targets[0]
        label = rng.choice([name for name, index in function.labels.items() if index != function.labels[old]])
        operands = tuple(operand.replace(old, label) for operand in each.operands)
        found.append(("target", {"targets": (label,), "operands": operands, "word": each.word ^ 1 << 20}))
    return found


@pytest.mark.parametrize("name", KERNELS)
def test_every_edit_is_reported_where_it_is(name: str) -> None:
    """A sample; the recorded score has thousands (`make sass-score`)."""
    whole, rng = listing(name), random.Random(name)
    function = whole.functions[0]
    made = 0
    for index in rng.sample(range(len(function.instructions)), 5):
        for kind, values in edits(function.instructions[index], function, rng):
            found = compare(whole, changed(whole, index, **values))
            assert not found.same, (index, kind)
            places = [(each.kind, each.a) for each in found.pairs[0].differences]
            assert any(place == index for _, place in places), (index, kind, places)
            if kind not in ("opcode", "target"):
                assert (kind, index) in places
            made += 1
    assert made >= 18


@pytest.mark.parametrize("name", KERNELS)
def test_dropped_and_inserted_instructions(name: str) -> None:
    whole = listing(name)
    function = whole.functions[0]
    rng = random.Random(name)
    for index in rng.sample(range(10, len(function.instructions) - 10), 5):
        rest = [each for each in function.instructions if each.index != index]
        labels = {label: at - (at > index) for label, at in function.labels.items()}
        shorter = replace(
            function, instructions=tuple(replace(each, index=i) for i, each in enumerate(rest)), labels=labels
        )
        less = replace(whole, functions=(shorter,))
        for pair, kind in ((compare(whole, less), "removed"), (compare(less, whole), "added")):
            assert not pair.same
            assert kind in pair.pairs[0].kinds


def test_words_of_the_cubin() -> None:
    """Changes in the bytes: what nvdisasm then prints differs, or the control code, or the word alone."""
    whole, rng = listing("groups"), random.Random(1)
    function = whole.functions[0]
    tried = 0
    for index in rng.sample(range(len(function.instructions)), 12):
        word = function.instructions[index].word ^ 1 << rng.choice(
            [*range(16, 28), 32, 33, 40, 64, 65, *range(105, 122)]
        )
        try:
            other = load(with_word(cubin("groups").data, function, index, word), cache=False)
        except ValueError:
            continue  # nvdisasm refuses it
        found = compare(whole, other)
        tried += 1
        pair = found.pairs[0]
        assert not found.same or any(i == index for i, _ in pair.renamed), (
            index,
            whole.functions[0].instructions[index],
        )
    assert tried > 6


def test_registers_that_the_compiler_chose() -> None:
    """Two live ranges that swap their registers are the same code; one use that reads another range is not."""
    text = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .b64 %a; .reg .b32 %x, %y, %z;
    ld.param.u64 %a, [p];
    ld.global.u32 %x, [%a];
    ld.global.u32 %y, [%a+4];
    mad.lo.u32 %z, %x, %y, %x;
    st.global.u32 [%a+8], %z;
    ret;
}
"""
    whole = load(assemble(text))
    function = whole.functions[0]
    loads = [each for each in function.instructions if each.opcode == "LDG"]
    one, other = ((each.operands[0], next(iter(each.registers.writes))) for each in loads)

    def swapped(each: Instruction) -> Instruction:
        names = {one[0]: other[0], other[0]: one[0]}
        numbers = {one[1]: other[1], other[1]: one[1]}
        operands = tuple(names.get(operand, operand) for operand in each.operands)
        registers = replace(
            each.registers,
            reads=frozenset(numbers.get(each, each) for each in each.registers.reads),
            writes=frozenset(numbers.get(each, each) for each in each.registers.writes),
        )
        return replace(each, operands=operands, registers=registers)

    both = replace(whole, functions=(replace(function, instructions=tuple(map(swapped, function.instructions))),))
    found = compare(whole, both)
    assert found.same
    assert len(found.pairs[0].renamed) >= 3
    assert "other register numbers" in "\n".join(comparison_lines(found))
    index = next(each.index for each in function.instructions if each.opcode == "IMAD" and one[0] in each.operands)
    only = list(function.instructions)
    only[index] = swapped(only[index])
    wrong = compare(whole, replace(whole, functions=(replace(function, instructions=tuple(only)),)))
    assert not wrong.same
    store = next(each.index for each in function.instructions if each.opcode == "STG")  # of what it no longer writes
    assert [(each.kind, each.a) for each in wrong.pairs[0].differences] == [("register", index), ("register", store)]
    # One real difference elsewhere, and the renamed registers are still not listed.
    edited = list(both.functions[0].instructions)
    edited[store] = replace(edited[store], modifiers=("NEW",), word=edited[store].word ^ 1 << 72)
    more = compare(whole, replace(whole, functions=(replace(function, instructions=tuple(edited)),))).pairs[0]
    assert [(each.kind, each.a) for each in more.differences] == [("modifier", store)]
    assert len(more.renamed) >= 3


def test_equal_pairs() -> None:
    """Other names of registers and labels, other paths and lines: the same code."""
    for name in ("groups", "flash2"):
        text = (DATA / "handwritten" / f"{name}.ptx").read_text()
        renamed = re.sub(r"%(r|rd|p|f)(\d+)\b", r"%zz\1_\2", re.sub(r"%(r|rd|p|f)<(\d+)>", r"%zz\1_<\2>", text))
        renamed = re.sub(r"\$L__BB(\d+)_(\d+)", r"$Label_\2_\1", renamed)
        assert renamed != text
        found = compare(load(assemble(text)), load(assemble("// another file\n\n" + renamed, options=("-lineinfo",))))
        assert found.same, "\n".join(comparison_lines(found))


def test_functions_by_name() -> None:
    """Neither order nor a kernel's own name counts; a dropped or duplicated kernel is reported."""
    one, other = listing("groups"), listing("flash2")
    both = Listing("both", "sm_90a", (*one.functions, *other.functions))
    turned = replace(both, functions=both.functions[::-1])
    assert compare(both, turned).same
    dropped = compare(both, one)
    assert not dropped.same
    assert [each.name for each in dropped.only_a] == ["flash2"]
    assert "only in A    kernel flash2" in "\n".join(comparison_lines(dropped))
    twice = compare(both, replace(both, functions=(*both.functions, one.functions[0])))
    assert not twice.same
    assert [each.name for each in twice.only_b] == ["groups"]
    renamed = replace(both, functions=(replace(one.functions[0], name="groups2"), other.functions[0]))
    found = compare(both, renamed)
    assert found.same
    assert "groups -> groups2 (renamed): same" in "\n".join(comparison_lines(found))
    assert compare(both, turned, kernel="groups").same
    with pytest.raises(LookupError, match=r"both has no function named 'nothing'; it has: groups, flash2"):
        compare(both, turned, kernel="nothing")


def test_elements_of_a_vector_are_told_apart() -> None:
    """Two registers that one load writes have the same definition, and are not the same value."""
    text = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .b64 %a; .reg .f32 %x, %y, %z, %w;
    ld.param.u64 %a, [p];
    ld.global.v2.f32 {%x, %y}, [%a];
    sub.f32 %z, %x, %y;
    st.global.f32 [%a+8], %z;
    ret;
}
"""
    found = compare(load(assemble(text)), load(assemble(text.replace("%z, %x, %y", "%z, %y, %x"))))
    assert not found.same
    assert "FADD" in {found.pairs[0].a.instructions[each.a or 0].opcode for each in found.pairs[0].differences}


def test_a_result_that_nothing_reads_keeps_its_register() -> None:
    whole = listing("groups")
    function = whole.functions[0]
    read = {each for at in Flow(function).definitions for sources in at.values() for each in sources}
    index = next(
        each.index
        for each in function.instructions
        if each.index not in read and any(file == "GPR" for file, _ in each.registers.writes)
    )
    each = function.instructions[index]
    (number,) = (number for file, number in each.registers.writes if file == "GPR")
    moved = replace(
        each,
        operands=tuple(f"R{number + 1}" if operand == f"R{number}" else operand for operand in each.operands),
        registers=replace(each.registers, writes=frozenset({("GPR", number + 1)})),
    )
    other = replace(function, instructions=(*function.instructions[:index], moved, *function.instructions[index + 1 :]))
    found = compare(whole, replace(whole, functions=(other,)))
    assert [(each.kind, each.a) for each in found.pairs[0].differences] == [("register", index)]


def test_numbers_of_internal_subroutines_do_not_count() -> None:
    """ptxas counts its subroutines (here for divisions) through the module, so kernels before this one move them."""
    head, kernels = ".version 8.7\n.target sm_90a\n.address_size 64\n", []
    for name, kind in (("one", "f32"), ("two", "f64"), ("three", "f32")):
        kernels.append(
            f".visible .entry {name}(.param .u64 p) {{ .reg .b64 %a; .reg .{kind} %x, %y;\nld.param.u64 %a, [p];\n"
            f"ld.global.{kind} %x, [%a];\nld.global.{kind} %y, [%a+8];\ndiv.rn.{kind} %x, %x, %y;\n"
            f"st.global.{kind} [%a], %x;\nret; }}\n"
        )
    one, other = (load(assemble(head + "".join(order))) for order in (kernels, kernels[::-1]))
    numbers = [
        re.findall(r"__internal_(\d+)", " ".join(each.text for each in side.kernel("one").instructions))
        for side in (one, other)
    ]
    assert numbers[0]
    assert numbers[0] != numbers[1]
    assert compare(one, other).same


def spilling() -> Comparison:
    return compare(listing("flash2"), load(assemble(starved("flash2"), options=("-maxrregcount", "40"))))


def test_thresholds() -> None:
    found = spilling()
    assert broken_thresholds(found, "registers+2") == []  # there are fewer
    (broken,) = broken_thresholds(found, "registers,spills")
    assert re.fullmatch(r"spills: 0 -> \d+ in flash2, more than spills allows", broken)
    assert broken_thresholds(found, "spills+100000") == []
    assert broken_thresholds(found, "instructions+1%")
    assert broken_thresholds(found, "code") == ["code: flash2 differs"]
    assert broken_thresholds(compare(listing("flash2"), listing("flash2")), "code,registers,spills") == []
    both = Listing("both", "sm_90a", (*listing("groups").functions, *listing("flash2").functions))
    assert broken_thresholds(compare(both, listing("groups")), "registers+2") == [
        "flash2 is in A only, so it cannot be compared"
    ]
    stored = sum(count for name, count in found.pairs[0].b_summary.classes.items() if name.startswith("STL"))
    assert stored  # in several widths
    assert broken_thresholds(found, "STL") == [f"STL: 0 -> {stored} in flash2, more than STL allows"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("speed", "'speed': known are registers, spills"),
        ("register", "did you mean registers?"),
        ("REGISTERS", "did you mean registers?"),
        ("registers+x", "the limit must be a number or a percentage, not 'x'"),
        ("registers+", "the limit must be a number or a percentage, not '+'"),
        ("registers+nan", "the limit must be a number or a percentage, not 'nan'"),
        ("registers+inf%", "the limit must be a number or a percentage, not 'inf%'"),
        ("registers+-1%", "the limit must be a number or a percentage, not '-1%'"),
        ("registers+5%%", "the limit must be a number or a percentage, not '5%%'"),
        ("spills, FFMA+3", "'FFMA+3': known are"),
        ("FFMA", "; FFMA counts as FP32"),
        ("LDS.", "'LDS.': known are"),
        ("BAR.128", "'BAR.128': known are"),
        ("loop-", "'loop-': loops have stalls"),
        ("loop-registers", "'loop-registers': loops have stalls, instructions, waits, and classes"),
        ("loop-FFMA", "; FFMA counts as FP32"),
        ("", "names no threshold"),
        (" , ", "names no threshold"),
    ],
)
def test_thresholds_that_nothing_can_break_are_refused(text: str, words: str) -> None:
    same = compare(listing("flash2"), listing("flash2"))
    for found in (same, Comparison(same.a, same.b, ())):
        with pytest.raises(ThresholdError, match=re.escape(words)):
            broken_thresholds(found, text)


def test_every_counted_class_may_have_a_threshold() -> None:
    same = compare(listing("flash2"), listing("flash2"))
    names = [*same.pairs[0].a_summary.classes, "LDS", "LDG.128", "MMA", "UTCMMA", "HMMA", "UTCOMMA", "fence", "other"]
    assert broken_thresholds(same, ",".join([*names, *(f"loop-{each}" for each in names)])) == []


def test_what_matters_comes_first() -> None:
    lines = list(comparison_lines(spilling()))
    assert lines[0].startswith("flash2: different (")
    assert lines[1].split()[0] == "registers"
    assert any(line.split()[:1] == ["spills"] for line in lines[:4])
