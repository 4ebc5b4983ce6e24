"""`KernelBuilder`: whole kernels that run, and mistakes that it refuses at once."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from ptxgen import Emulator, check
from ptxgen.builder import KernelBuilder, Register, RegisterError
from ptxgen.instr import barrier, control, integer, memory, move, predicate, tcgen05
from ptxgen.instr.model.form import InstructionError
from ptxgen.instr.model.targets import TargetError


def sums() -> KernelBuilder:
    """Warp i stores the sum of 0 to i, made by a loop; then all threads of warp 0 add what is in shared memory."""
    k = KernelBuilder("sums", "sm_90a", threads=128)
    out, scale = k.pointer("out"), k.scalar("u32", "scale")
    words = k.shared("words", 16, align=16)
    thread = k.special("tid.x")
    warp, count, total, at = k.regs("b32", 4, "n")
    done, first, leads = k.regs("pred", 3, "p")
    k(integer.div(warp, thread, 32, type="u32"), move.mov(count, 0, type="u32"), move.mov(total, 0, type="u32"))
    with k.loop("add") as end:
        k(predicate.setp(done, count, warp, compare="gt", type="u32"), control.bra(end).when(done))
        k(integer.add(total, total, count, type="u32"), integer.add(count, count, 1, type="u32"))
    lane = k.reg("b32", "lane")
    k(integer.rem(lane, thread, 32, type="u32"), predicate.setp(leads, lane, 0, compare="eq", type="u32"))
    with k.when(leads):
        k(integer.mad(at, warp, 4, words, type="u32", half="lo"))
        k(memory.st(at, total, space="shared", type="u32"))
    k(barrier.bar_sync(0))
    k(predicate.setp(first, thread, 0, compare="ne", type="u32"))
    with k.when(first, negated=True):
        values = k.regs("b32", 4, "value")
        k(memory.ld(values, words, space="shared", vec="v4", type="b32"))
        for value in values:
            k(integer.mul(value, value, scale, type="u32", half="lo"))
        k(memory.st(out, values, space="global", vec="v4", type="b32"))
    k(control.ret())
    return k


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_a_kernel_that_runs(schedule: str) -> None:
    emulator = Emulator("sm_90a", schedule=schedule)  # type: ignore[arg-type]
    out = emulator.empty(4, "u32")
    report = emulator.launch(sums().kernel(), 1, 128, [out, 7])
    assert report.ok
    assert not report.findings
    assert np.array_equal(out.numpy(), [0, 7, 21, 42])


def test_the_text_is_readable() -> None:
    lines = sums().ptx().splitlines()
    assert lines[:4] == [".version 8.6", ".target sm_90a", ".address_size 64", f'.file 1 "{__file__}"']
    assert lines[5:10] == [
        ".visible .entry sums(",
        "    .param .u64 out,",
        "    .param .u32 scale",
        ")",
        ".reqntid 128, 1, 1",
    ]
    assert "    .shared .align 16 .b8 words[16];" in lines
    assert "    @%p0 bra $add_end;" in lines
    assert "    @!%p2 bra $after;" in lines


def test_instructions_carry_the_authors_lines() -> None:
    """Also those of helpers and of the ends of `with` blocks; findings and SASS name them."""
    k = KernelBuilder("k", "sm_90a", threads=32)
    out, thread = k.pointer("out"), k.special("tid.x")
    shared = k.shared("word", 4)
    value = k.reg("b32", "value")
    first = inspect.currentframe().f_lineno  # type: ignore[union-attr]
    with k.loop() as end:
        k(memory.st(shared, thread, space="shared", type="u32"), memory.ld(value, shared, space="shared", type="u32"))
        k.text(f"    bra {end};")
    k.text("    // no instruction\n    .reg .b32 %unused;")
    store(k, out, value)
    k(control.ret())
    lines = [first + each for each in (2, 3, 1)]
    assert [int(each.split()[2]) for each in k.ptx().splitlines() if ".loc" in each][1:] == [
        first - 2, *lines, store.__code__.co_firstlineno + 1, first + 6
    ]  # fmt: skip
    emulator = Emulator("sm_90a")
    report = emulator.launch(k.kernel(), 1, 32, [emulator.empty(1, "u32")])
    assert {each.source for each in report.findings} == {f"test_kernel.py:{first + 2}"}
    plain = KernelBuilder("k", "sm_90a", locations=False)
    plain(control.ret())
    assert ".loc" not in plain.ptx()
    assert ".file" not in plain.ptx()


def store(k: KernelBuilder, to: Register, value: Register) -> None:
    k(memory.st(to, value, space="global", type="u32"))


def test_tensormaps_mbarriers_and_text() -> None:
    k = KernelBuilder("k", "sm_100a")
    k.tensormap("map_a")
    k.mbarriers("full", 3)
    k.text("    // a comment\n    ret;")
    text = k.ptx()
    assert "    .param .align 64 .b8 map_a[128]\n" in text
    assert "    .shared .align 8 .b64 full[3];" in text
    assert text.endswith("    // a comment\n    ret;\n}\n")
    assert not [each for each in k.kernel().diagnostics if each.severity == "error"]
    assert KernelBuilder("empty").ptx().splitlines()[4:] == [".visible .entry empty()", "{", "}"]


def test_what_is_refused() -> None:
    k = KernelBuilder("k", "sm_90a")
    number = k.reg("f32", "x")
    with pytest.raises(InstructionError, match="%x"):
        k(integer.add(number, number, 1, type="u32"))
    with pytest.raises(InstructionError, match="%nowhere"):
        k(move.mov("%nowhere", 1, type="u32"))
    with pytest.raises(InstructionError, match="tcgen05 is not on sm_90a"):
        k(tcgen05.fence(where="before_thread_sync"))
    with pytest.raises(RegisterError, match="PTX has no registers of type 'int'; did you mean s32"):
        k.reg("int")
    k.shared("tile", 16)
    with pytest.raises(RegisterError, match="tile is declared twice"):
        k.shared("tile", 16)
    with pytest.raises(RegisterError, match="aligned to 3"):
        k.shared("other", 16, align=3)
    with pytest.raises(RegisterError, match="full needs one mbarrier or more, not 0"):
        k.mbarriers("full", 0)
    for declare in (k.parameter, k.scalar):
        with pytest.raises(RegisterError, match=r"PTX has no parameters of type 'float'; did you mean f32\?"):
            declare("float", "alpha")
    for name, message in (
        ("tidx", r"PTX has no special register 'tidx'; did you mean tid\.x or "),
        ("tid", r"tid is a vector; take tid\.x, tid\.y or tid\.z"),
    ):
        with pytest.raises(RegisterError, match=message):
            k.special(name)
    for name in ("my tile", "1st", ""):
        with pytest.raises(RegisterError, match="a name has letters, digits, _ and "):
            k.shared(name, 16)
    with pytest.raises(RegisterError, match="tile is declared twice"):
        k.mbarriers("tile", 2)
    with pytest.raises(TypeError, match=r"instructions made by ptxgen\.instr, not 'add.u32.*; text\(\.\.\.\) takes"):
        k("add.u32 %a, %a, 1;")  # type: ignore[arg-type]
    k.pointer("out")
    with pytest.raises(RegisterError, match="out is declared twice"):
        k.pointer("out")
    with pytest.raises(TargetError):
        KernelBuilder("k", "sm_99")


def test_special_registers_have_their_own_types() -> None:
    k = KernelBuilder("k", "sm_90a")
    for name in ("tid.x", "clock64", "is_explicit_cluster"):
        k.special(name)
    k(control.ret())
    assert "mov.u64 %clock64_1, %clock64;" in k.ptx()
    assert check(k.ptx()) == []
