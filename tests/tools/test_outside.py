"""The measurement by other people's lists: extraction from each syntax, and differences that must be reported."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tools.outside import asm, clones, files, forms, grammar, judge, measure, mutate, rust_values, statements, text
from tools.outside.sources import Source


def lines(found: object) -> list[str]:
    return [str(each) for each in found]  # type: ignore[attr-defined]


CUDA = r"""
__device__ void copy(uint32_t a, void const* b, uint64_t* c, float x) {
  asm volatile ("cp.async.ca.shared.global.L2::128B [%0], [%1], %2;\n"  // a comment "with a string"
      :: "r"(a), "l"(f(b, 1)), "n"(16));
  asm volatile("{\n\t.reg .pred p;\n\t"
               "setp.ne.b32 p, %[which], 0;\n"
               "LOOP: @p fma.rn.f32 %0, %0, 0f3F800000, %1;\n\t}" : "+f"(x) : "f"(x), [which] "r"(a) : "memory");
  asm("mov.u32 %0, %%tid.x; tcgen05.ld.sync.aligned.32x32b.x2.b32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(a));
  asm volatile("add.u32 %0, " NAME ", 1;" : "=r"(a));
  asm volatile(R"(bra DONE; ld.global.b32 %0, [symbol]; st.b64 [%1+8], %1;)" : "=r"(a) : "l"(c));
}
"""


def test_inline_assembly_gives_statements_with_the_types_of_its_constraints() -> None:
    left_out: Counter[str] = Counter()
    assert lines(asm.extract(CUDA, left_out)) == [
        "cp.async.ca.shared.global.L2::128B [%x_b32_0], [%x_b64_0], #;",
        "setp.ne.b32 %x_pred_0, %x_b32_0, 0;",
        "fma.rn.f32 %x_f32_0, %x_f32_0, 0f3F800000, %x_f32_1;",
        "mov.u32 %x_b32_0, %tid.x;",
        "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%x_b32_0, %x_b32_1}, [%x_b32_2];",
        "st.b64 [%x_b64_0+8], %x_b64_0;",
    ]
    assert left_out == {"macro in the template": 1, "name symbol": 1}


def test_ptx_text_gives_statements_with_declared_and_conventional_types() -> None:
    source = """
.visible .entry k(.param .u64 p) {
    .reg .f16 %h<3>; .reg .u32 r1, %count;
    .loc 1 2 3
    @!%p1 add.f16 %h0, %h1, %h2;  // a half
L: { cvt.u64.u32 %rd1, r1; } bra L; /* none */ prmt.b32 %count, r1, %r9, 0x5410;
}
"""
    assert lines(text.extract_ptx(source, Counter())) == [
        "add.f16 %x_f16_0, %x_f16_1, %x_f16_2;",
        "cvt.u64.u32 %x_b64_0, %x_u32_0;",
        "prmt.b32 %x_u32_0, %x_u32_1, %x_b32_0, 0x5410;",
    ]


def test_filecheck_lines_give_statements() -> None:
    source = r"""
; CHECK-LABEL: f(
; CHECK-NEXT: add.rn.f32x2 %rd3, %rd1, %rd2;
; SM90: ld.global.b32 [[R:%r[0-9]+]], [{{%rd[0-9]+}}+4];
; SM90-NEXT: not.b32 {{%r[0-9]+}}, [[R]];
; CHECK: st.param.b32 [func_retval0], %r1;
  %x = fadd float %a, %b
"""
    found = lines(text.extract_checks(source, Counter()))
    assert found == [
        "add.rn.f32x2 %x_b64_0, %x_b64_1, %x_b64_2;",
        "ld.global.b32 %x_b32_0, [%x_b64_0+4];",
        "not.b32 %x_b32_0, %x_b32_1;",
    ]


def test_quoted_opcodes_and_patterns_give_forms() -> None:
    source = r"""
    ptx"tcgen05.mma.cta_group::1.kind::i8"(d, a, b, idesc, false)
    @test occursin(r"tcgen05\.shift\.cta_group::1\.down \[%r\d+\];", ptx)
"""
    assert lines(text.extract_quoted(source, Counter())) == [
        "tcgen05.mma.cta_group::1.kind::i8",
        "tcgen05.shift.cta_group::1.down [%x_b32_0];",
    ]


def test_strings_of_an_instruction_printer_give_opcodes() -> None:
    library = (
        b"\x7fELF\0\tcp.async.bulk.commit_group;\0mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64\t\0fadd.s\t\0"
        b".L2::cache_hint [\0add.\0not an add.s32 x\0\0add.s32 \t\0tcgen05.ld.sync\0"
    )
    assert lines(text.extract_printer(library, {"add", "cp", "mma", "tcgen05"})) == [
        "cp.async.bulk.commit_group",
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
        "add.s32",
    ]


MANUAL = """
add{.sat}.type  d, a, {b | c};   // comment
ld{.weak}.ss.type d, [a]{, policy};
.type = { .s32, .f64 };
.ss = { .shared{::cta}, .global };
-----
red.op::hint [a], b;
.op = { .and::level };
::level = { ::x, ::y };
::hint = { ::h };
"""


def test_the_notation_of_the_manual_gives_every_form() -> None:
    found = {f"{each.opcode} {', '.join(each.operands)}" for each in grammar.extract(MANUAL.replace("{b | c}", "b"))}
    assert {"add.s32 d, a, b", "add.sat.f64 d, a, b"} <= found
    assert {each for each in found if each.startswith("ld.weak")} == {
        f"ld.weak{space}{type_} d, [a]{policy}"
        for space in (".shared", ".shared::cta", ".global")
        for type_ in (".s32", ".f64")
        for policy in ("", ", policy")
    }


def test_an_opcode_without_operands_takes_those_of_its_nearest_relatives(tmp_path: Path) -> None:
    folder = tmp_path / "owner+name"
    folder.mkdir()
    (folder / "a.jl").write_text('ptx"add.rn.ftz.f32"(a, b)')
    (folder / "b.jl").write_text('ptx"tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned"()')
    found, (tally,) = forms.gather(tmp_path, [Source("owner/name", "", "", "quoted", ("*.jl",))])
    assert (tally.commit, tally.files, tally.forms) == ("unknown", 2, 2)
    said = judge.Ptxas()
    chosen = measure.measure(found, said, each=0)
    assert (chosen.forms, chosen.legal, chosen.counts()) == (2, 2, Counter())


def test_a_form_that_check_refuses_though_legal_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "add.u32 %x_b32_0, %x_b32_1, %x_b32_2;"
    monkeypatch.setattr(judge.judges, "ours", lambda lines, *_: ["no [invented]"] * len(lines))
    (found,) = judge.compare([line], "sm_90a", judge.Ptxas())
    assert (found.direction, found.line, found.reason) == ("refused though legal", line, "")


def test_a_form_that_check_accepts_though_refused_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "add.f32.u32 %x_b32_0, %x_b32_1, %x_b32_2;"
    assert judge.compare([line], "sm_90a", judge.Ptxas()) == []
    monkeypatch.setattr(judge.judges, "ours", lambda lines, *_: [""] * len(lines))
    (found,) = judge.compare([line], "sm_90a", judge.Ptxas())
    assert found.direction == "accepted though refused"


def test_a_crash_of_check_is_reported_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = "ret;", "not.b32 %x_b32_0, %x_b32_1;"

    def ours(lines: list[str], *_: str) -> list[str]:
        if bad in lines:
            raise KeyError("of the test")
        return [""] * len(lines)

    monkeypatch.setattr(judge.judges, "ours", ours)
    (found,) = judge.compare([good, bad], "sm_90a", judge.Ptxas())
    assert (found.direction, found.line) == ("crash", bad)


def test_verdicts_of_ptxas_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "verdicts"
    asked = ["not.b32 %x_b32_0, %x_b32_1;", "not.f32 %x_b32_0, %x_b32_1;"]
    first = judge.Ptxas(kept)(asked, "sm_90a")
    assert [bool(first[line]) for line in asked] == [False, True]
    monkeypatch.setattr(judge.judges, "ptxas", lambda *_: pytest.fail("asked again"))
    assert judge.Ptxas(kept)(asked, "sm_90a") == first


def test_mutations_change_one_thing_and_are_the_same_each_time() -> None:
    line = "ld.global.v2.f32 {%x_f32_0, %x_f32_1}, [%x_b64_0+8];"
    assert mutate.parts(line) == ("ld", ["global", "v2", "f32"], ["{%x_f32_0, %x_f32_1}", "[%x_b64_0+8]"])
    found = mutate.mutations(line, ["weak", "nc"], 12)
    assert found == mutate.mutations(line, ["weak", "nc"], 12)
    assert len(set(found)) == 12
    assert line not in found
    assert all(each.startswith("ld") for each in found)


def test_registers_and_unknown_names() -> None:
    with pytest.raises(statements.Unknown):
        statements.canonical("%r1, nothing", lambda name: "b32" if name == "%r1" else None)
    assert statements.canonical("%a|%p, {%b.x, _}, -1.5", {"%a": "b64", "%p": "pred", "%b": "v2.b32"}.get) == (
        "%x_b64_0|%x_pred_0, {%x_v2_0.x, _}, -1.5"
    )


def test_a_clone_without_a_work_tree_is_read(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    (made / "k.ptx").write_text("one")
    (made / "other").write_text("two")

    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=made, check=True, capture_output=True
        )

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "m")
    (tmp_path / "owner+name").mkdir()
    subprocess.run(
        ["git", "clone", "-q", "--bare", str(made), str(tmp_path / "owner+name" / "repo")],
        check=True,
        capture_output=True,
    )
    clone = clones.find(tmp_path, "owner/name")
    assert clone is not None
    assert len(clone.commit()) == 40
    assert list(clone.files(["*.ptx"])) == [("k.ptx", b"one")]
    assert clones.find(tmp_path, "owner/another") is None


LEGAL = (
    ".version 7.8\n.target sm_30\n.address_size 64\n.visible .entry k() { .reg .b32 %r; mov.u32 %r, %tid.x; ret; }\n"
)


@pytest.mark.parametrize(
    ("source", "is_raised", "legal"),
    [
        (LEGAL, True, True),
        (LEGAL.replace("sm_30", "sm_90"), False, True),
        (LEGAL.replace("mov.u32 %r,", "mov.u32 %r"), True, False),
    ],
    ids=["old target", "target of today", "syntax error"],
)
def test_files_are_judged_as_ptxas_judges_them(source: str, is_raised: bool, legal: bool) -> None:
    verdict = files.judge("k.ptx", source)
    assert (verdict.raised, not verdict.ours, not verdict.ptxas) == (is_raised, legal, legal)
    assert verdict.agrees
    assert verdict.target == ("sm_75" if is_raised else "sm_90")


def test_the_file_runner_reports_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "owner+name"
    folder.mkdir()
    for number, source in enumerate((LEGAL, LEGAL.replace("ret;", "rett;"), LEGAL.replace("sm_30", "sm_90"))):
        (folder / f"{number}.ptx").write_text(source)
    assert files.main([str(tmp_path), "--only", "owner/name"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("owner/name"))
    assert row.split()[2:] == ["3", "2", "2", "1", "0"]
    monkeypatch.setattr(files, "asked", lambda *_: ["refused"])
    assert files.main([str(tmp_path), "--only", "owner/name"]) == 1
    assert "0.ptx" in capsys.readouterr().out


def test_values_of_rust_tests() -> None:
    source = """
test_ptx!(add, [1u64, 0xFFu64], [u64::max_value()]);
// test_ptx!(commented, [1u8], [2u8]);
test_ptx!(
    half,
    [half::f16::from_f64(1.5), half::f16::NAN], // a comment
    [-0b101i32, 2_000]
);
test_ptx!(without);
test_ptx!(odd, [f(1)], [1u8]);
test_ptx_warp!(tid, [0u8, 1u8]);
"""
    add, half, tid = rust_values.parse(source)
    assert add.input is not None
    assert half.input is not None
    assert (add.name, add.input.tolist(), add.output.tolist()) == ("add", [1, 255], [2**64 - 1])
    assert (half.input.dtype, half.output.tolist()) == ("float16", [-5, 2000])
    assert (tid.input, tid.output.dtype, tid.threads) == (None, "uint8", 64)
