"""Instructions are paired by what they compute: reordered, renamed and spilled code, and each real change alone."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from ptxgen.sass import Function, Instruction, compare, load
from ptxgen.sass.diff import Pair
from ptxgen.sass.flow import ENTRY, Flow
from ptxgen.sass.show import comparison_lines
from ptxgen.toolchain import assemble
from tests.support.cubins import listing
from tests.support.paths import DATA

#: Kinds of differences in what code does, other than its schedule.
WORK = ("removed", "added", "opcode", "modifier", "predicate", "operand", "target", "register", "encoding")
HEAD = """.version 8.7
.target TARGET
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n) DIRECTIVE
{
    .reg .b32 %n, %i, %t, %r<8>;
    .reg .b64 %x, %y, %a, %b;
    .reg .f32 %f<64>;
    .reg .pred %p, %q;
    .shared .align 16 .b8 sm[4096];
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.u32 %n, [n];
    mov.u32 %t, %tid.x;
    mov.u32 %i, 0;
"""


def kernel(body: str, target: str = "sm_90a", directive: str = "") -> str:
    return HEAD.replace("TARGET", target).replace("DIRECTIVE", directive) + body + "    ret;\n}\n"


def loop(body: str) -> str:
    return f"$l:\n{body}    add.u32 %i, %i, 1;\n    setp.lt.u32 %p, %i, %n;\n    @%p bra $l;\n"


def pair(a: str, b: str) -> Pair:
    one, other = (load(assemble(text, options=("-lineinfo",))) for text in (a, b))
    return compare(one, other).pairs[0]


def work(found: Pair) -> dict[str, int]:
    """Differences of what the code does, by kind."""
    return {kind: count for kind, count in found.kinds.items() if kind in WORK}


def opcodes(function: Function) -> Counter[str]:
    return Counter(each.opcode for each in function.instructions)


#: Four values loaded, two sums, one power of two, four values stored.
VECTOR = """    mad.wide.u32 %a, %i, 16, %x;
    mad.wide.u32 %b, %i, 16, %y;
    ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%a];
    fma.rn.f32 %f4, %f0, %f1, %f2;
    fma.rn.f32 %f5, %f1, %f2, %f3;
    ex2.approx.f32 %f6, %f4;
    st.global.v4.f32 [%b], {%f6, %f5, %f4, %f3};
"""
MORE = VECTOR.replace("    ex2", "    fma.rn.f32 %f5, %f5, %f0, %f4;\n    ex2")


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])  # for later ones ptxas makes other addresses as well
def test_one_fma_more_in_an_unrolled_loop(target: str) -> None:
    """ptxas unrolls it and schedules each pass otherwise: only the new FFMAs are new, and no source differs."""
    found = pair(kernel(loop(VECTOR), target), kernel(loop(MORE), target))
    more = opcodes(found.b)["FFMA"] - opcodes(found.a)["FFMA"]
    assert more > 1
    new = [found.b.instructions[each.b or 0].opcode for each in found.differences if each.kind == "added"]
    assert new == ["FFMA"] * more
    assert {kind for kind in work(found) if kind != "added"} <= {"opcode"}
    moves = ("MOV", "IMAD", "HFMA2", "IADD3", "VIADD", "SHF", "IADD")
    for each in found.differences:
        if each.kind == "opcode":  # of the same move or sum, which ptxas gives to another pipe
            assert found.a.instructions[each.a or 0].opcode in moves
            assert found.b.instructions[each.b or 0].opcode in moves


def eight(loads: tuple[int, ...], sums: tuple[int, ...], stores: tuple[int, ...]) -> str:
    """Loads, sums and stores of eight values in some order."""
    lines = [f"    ld.global.f32 %f{each}, [%x+{4 * each}];\n" for each in loads]
    lines += [f"    fma.rn.f32 %f{each + 10}, %f{each}, %f{(each + 1) % 8}, %f{(each + 3) % 8};\n" for each in sums]
    return "".join(lines + [f"    st.global.f32 [%y+{4 * each}], %f{each + 10};\n" for each in stores])


SORTED = eight(*(tuple(range(8)) for _ in range(3)))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_statements_in_another_order(target: str) -> None:
    other = eight((3, 1, 7, 2, 0, 5, 6, 4), (5, 2, 1, 0, 7, 6, 4, 3), (1, 0, 3, 2, 5, 4, 7, 6))
    found = pair(kernel(SORTED, target), kernel(other, target))
    assert found.kinds["moved"]
    assert set(work(found)) <= {"register"}
    for each in found.differences:
        if each.kind == "register":  # ptxas exchanged the factors
            assert each.detail.startswith("exchanged sources, ")
    for each in found.differences:
        if each.a is None or each.b is None:
            continue
        one, two = found.a.instructions[each.a], found.b.instructions[each.b]
        if one.opcode in ("LDG", "STG"):  # told apart by their offsets
            assert re.findall(r"\.64(\+0x\w+)?\]", one.text) == re.findall(r"\.64(\+0x\w+)?\]", two.text)


PREDICATED = """    ld.global.u32 %r0, [%x];
    setp.gt.s32 %q, %r0, 5;
    ld.global.f32 %f0, [%x+4];
    ld.global.f32 %f1, [%x+8];
    @%q add.f32 %f0, %f0, %f1;
    @!%q mul.f32 %f0, %f0, %f1;
    mul.f32 %f2, %f0, %f1;
    add.f32 %f3, %f2, %f0;
    st.global.f32 [%y], %f0;
    st.global.f32 [%y+4], %f2;
    st.global.f32 [%y+8], %f3;
"""
UNIFORM = """    mov.u32 %r0, %ctaid.x;
    mul.lo.u32 %r0, %r0, %n;
    mul.wide.u32 %a, %r0, 4;
    add.u64 %a, %a, %x;
    ld.global.u32 %r1, [%a];
    ld.global.u32 %r2, [%a+4];
    xor.b32 %r3, %r1, %r2;
    mad.lo.u32 %r3, %r3, %r1, %r0;
    st.global.u32 [%y], %r3;
"""
STAGED = "    mov.u32 %r1, sm;\n    shl.b32 %r2, %t, 2;\n    add.u32 %r3, %r1, %r2;\n" + loop(
    """    .pragma "nounroll";
    mad.wide.u32 %a, %i, 512, %x;
    mul.wide.u32 %b, %t, 4;
    add.u64 %a, %a, %b;
    ld.global.f32 %f0, [%a];
    st.shared.f32 [%r3], %f0;
    bar.sync 0;
    xor.b32 %r4, %r2, 4;
    add.u32 %r4, %r4, %r1;
    ld.shared.f32 %f1, [%r4];
    bar.sync 0;
    fma.rn.f32 %f2, %f1, %f0, %f2;
"""
)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        pytest.param(SORTED, SORTED.replace("[%x+12]", "[%x+44]"), {"operand": 1}, id="another offset"),
        pytest.param(
            SORTED, SORTED.replace("%f12, %f2, %f3, %f5", "%f12, %f2, %f3, %f6"), {"register": 1}, id="another source"
        ),
        pytest.param(SORTED, SORTED.replace("fma.rn.f32 %f12", "fma.rz.f32 %f12"), {"modifier": 1}, id="rounding"),
        pytest.param(PREDICATED, PREDICATED.replace("@%q add", "@!%q add"), {"predicate": 1}, id="predicate turned"),
        pytest.param(PREDICATED, PREDICATED.replace("@%q add", "add"), {"predicate": 1}, id="predicate dropped"),
        pytest.param(UNIFORM, UNIFORM.replace("mul.lo.u32 %r0, %r0, %n;", "mad.lo.u32 %r0, %r0, %n, %n;"), {
            "operand": 1
        }, id="uniform sum"),
        pytest.param(STAGED, STAGED.replace("bar.sync 0;\n    fma", "fma"), {"removed": 1}, id="barrier dropped"),
        pytest.param(STAGED, STAGED.replace("%f1, %f0, %f2", "%f0, %f1, %f2"), {}, id="factors exchanged"),
    ],
)  # fmt: skip
def test_one_change_is_one_difference(a: str, b: str, expected: dict[str, int]) -> None:
    found = pair(kernel(a), kernel(b))
    assert work(found) == expected, found.differences


def test_fewer_registers_spill_and_the_rest_is_the_same() -> None:
    """Spilled values are followed through local memory, and all arithmetic finds its partner."""
    lines = [f"    ld.global.f32 %f{each}, [%x+{4 * each}];\n" for each in range(32)]
    lines += [
        f"    fma.rn.f32 %f{each}, %f{(each * 7 + 1) % 32}, %f{(each * 5 + 2) % 32}, %f{each};\n" for each in range(32)
    ] * 2
    lines += [f"    st.global.f32 [%y+{4 * each}], %f{each};\n" for each in range(32)]
    body = "".join(lines)
    found = pair(kernel(body, directive=".maxnreg 64"), kernel(body, directive=".maxnreg 24"))
    new = Counter(found.b.instructions[each.b or 0].opcode for each in found.differences if each.kind == "added")
    assert new["STL"] > 10 < new["LDL"]
    assert set(new) <= {"STL", "LDL", "IADD3", "LDC"}  # the stack, and addresses loaded again
    assert set(work(found)) == {"added"}


def independent(one: Instruction, other: Instruction) -> bool:
    """Whether two instructions that follow each other may change places; memory and control stay."""
    alone = re.compile(r"F\w+|I(?:MAD|ADD3)|MOV|VIADD|LEA|SHF|LOP3|SEL")
    if not (alone.fullmatch(one.opcode) and alone.fullmatch(other.opcode)):
        return False
    a, b = one.registers, other.registers
    return not (a.writes & (b.reads | b.writes) or b.writes & a.reads or one.predicate or other.predicate)


def shuffled(function: Function, seed: int) -> tuple[Function, list[int]]:
    """A function with independent neighbors in other places, and where each instruction went."""
    rng = random.Random(seed)
    order = list(range(len(function.instructions)))
    flow = Flow(function)
    bounds = {block.start for block in flow.blocks} | set(function.labels.values())
    for _ in range(12):
        for at in range(len(order) - 1):
            one, other = (function.instructions[order[place]] for place in (at, at + 1))
            if at + 1 not in bounds and independent(one, other) and rng.random() < 0.5:
                order[at], order[at + 1] = order[at + 1], order[at]
    places = {old: new for new, old in enumerate(order)}
    made = tuple(replace(function.instructions[old], index=new, address=16 * new) for new, old in enumerate(order))
    return replace(function, instructions=made), [places[old] for old in range(len(order))]


@pytest.mark.parametrize("name", ["hopper_gemm", "blackwell_clc", "groups", "flash2"])
@pytest.mark.parametrize("seed", [1, 2])
def test_shuffled_code_is_found_again(name: str, seed: int) -> None:
    """The order is known here: each instruction is found where it went, or in the place of an equal one."""
    whole = listing(name)
    function = whole.functions[0]
    other, places = shuffled(function, seed)
    went = sum(one != place for one, place in enumerate(places))
    assert went > 10
    found = compare(whole, replace(whole, functions=(other,))).pairs[0]
    assert set(found.kinds) <= {"moved", "register"}
    assert found.kinds["register"] == 0, found.differences
    for each in found.differences:
        assert each.a is not None
        assert each.b is not None
        assert function.instructions[each.a].text == other.instructions[each.b].text
    kept = [place for one, place in enumerate(places) if one not in {each.a for each in found.differences}]
    assert all(x < y for x, y in pairwise(kept))


def test_moved_instructions_are_shown_after_what_the_code_does() -> None:
    one, other = (load(assemble(kernel(loop(body)), options=("-lineinfo",))) for body in (VECTOR, MORE))
    lines = list(comparison_lines(compare(one, other)))
    added = sum(line.lstrip().startswith("+") for line in lines)
    assert added == compare(one, other).pairs[0].kinds["added"]
    assert re.search(r"\(\d+ control.*; --all shows them\)", "\n".join(lines))
    everything = list(comparison_lines(compare(one, other), everything=True))
    moved = [line for line in everything if line.lstrip().startswith("moved: ")]
    assert moved
    assert all(re.match(r" +moved: \d+ instructions? (up|down)", line) for line in moved)


def test_what_a_predicate_reads() -> None:
    """Under @P0 an instruction reads what the one before it made under @P0, and nothing older."""
    text = kernel("""    ld.global.u32 %r0, [%x];
    ld.global.f32 %f0, [%x+4];
    setp.gt.s32 %q, %r0, 5;
    @%q ld.global.f32 %f0, [%x+64];
    @%q fma.rn.f32 %f0, %f0, %f0, %f0;
    st.global.f32 [%y], %f0;
""")
    flow = Flow(load(assemble(text)).functions[0])
    instructions = flow.function.instructions
    (fma,) = (each for each in instructions if each.opcode == "FFMA")
    (load_under,) = (each for each in instructions if each.opcode == "LDG" and each.predicate)
    (store,) = (each for each in instructions if each.opcode == "STG")
    (register,) = fma.registers.writes
    assert fma.predicate == load_under.predicate != ""
    assert flow.definitions[fma.index][register] == {load_under.index}
    assert fma.index in flow.definitions[store.index][register]
    assert len(flow.definitions[store.index][register]) > 1
    assert ENTRY not in flow.definitions[store.index][register]


def test_repeated_divisions_stay_in_step() -> None:
    """Of 32 equal blocks that call a slow path, scheduled otherwise, each finds its partner: one FFMA is gone."""
    text = (DATA / "handwritten" / "flash2.ptx").read_text()
    line = "fma.rn.f32 \t%f498, %f496, %f664, %f324;"
    assert text.count(line) == 1
    one, other = (load(assemble(each, options=("-lineinfo",))) for each in (text, text.replace(line, "")))
    found = compare(one, other).pairs[0]
    assert found.kinds["moved"] > 100
    gone = [found.a.instructions[each.a or 0].opcode for each in found.differences if each.kind == "removed"]
    assert gone.count("FFMA") == 1
    assert len(gone) + found.kinds["added"] <= 12
    assert found.kinds["register"] <= 4
    assert found.kinds["target"] == 0


def test_what_a_subroutine_leaves() -> None:
    """After a call its results are those of the subroutine, and other registers keep their definitions."""
    text = kernel("""    ld.global.f32 %f0, [%x];
    ld.global.f32 %f1, [%x+4];
    ld.global.f32 %f2, [%x+8];
    div.rn.f32 %f3, %f0, %f1;
    div.rn.f32 %f4, %f0, %f2;
    add.f32 %f5, %f3, %f4;
    st.global.f32 [%y], %f5;
    st.global.f32 [%y+4], %f2;
""")
    function = load(assemble(text)).functions[0]
    flow = Flow(function)
    (start,) = function.subroutines.values()
    calls = [each for each in function.instructions if each.opcode == "CALL" and each.index < start]
    assert len(calls) == 2
    loads = {each.operands[1][-9:]: each.index for each in function.instructions if each.opcode == "LDG"}
    stores = [each for each in function.instructions if each.opcode == "STG"]
    (plain,) = (each for each in stores if "+0x4" in each.operands[0])
    (number,) = (name for name in plain.registers.reads if name[0] == "GPR" and f"R{name[1]}" == plain.operands[1])
    (source,) = flow.definitions[plain.index][number]
    assert source == next(index for operand, index in loads.items() if "+0x8" in operand)
    moves = [function.instructions[call.index + 1] for call in calls]
    for move in moves:  # the result, from the end of the subroutine
        (name,) = move.registers.reads
        assert flow.definitions[move.index][name]
        assert all(source >= start for source in flow.definitions[move.index][name])


def test_another_result_register_is_reported_where_it_is() -> None:
    """A result that goes to a register that nothing reads: the instruction differs, and so does its reader."""
    whole = listing("groups")
    function = whole.functions[0]
    flow = Flow(function)
    read = {source for each in flow.definitions for sources in each.values() for source in sources}
    each = next(one for one in function.instructions if one.opcode == "IMAD" and one.index in read)
    (name,) = each.registers.writes
    free = 1 + max(number for one in function.instructions for file, number in one.registers.writes if file == "GPR")
    made = replace(
        each,
        operands=(f"R{free}", *each.operands[1:]),
        registers=replace(each.registers, writes=frozenset({("GPR", free)})),
    )
    assert each.operands[0] == f"R{name[1]}"
    other = (*function.instructions[: each.index], made, *function.instructions[each.index + 1 :])
    found = compare(whole, replace(whole, functions=(replace(function, instructions=other),))).pairs[0]
    assert ("register", each.index) in [(one.kind, one.a) for one in found.differences]
