"""A seeded sample of what `tools.certify` compares: the model and ptxas, both ways. The whole runs by hand."""

import random
import re
from pathlib import Path

import pytest

from ptxgen.executor import Executor
from ptxgen.instr.logic import shl, shr
from ptxgen.instr.model.certified import Certificate, certificates, digest
from tools.certify import Case, __main__, cases, judges, sweep
from tools.certify.__main__ import EXCEPTIONS, with_new_reasons
from tools.certify.broken import BROKEN
from tools.certify.irreconcilable import STRICTER, Irreconcilable
from tools.certify.sweep import Settings

#: How many lines the sample has at least.
LINES = 1_500


def test_sample_agrees(tmp_path: Path) -> None:
    share = LINES // len(cases.declared())
    settings = Settings(neighbors=share, each=0, seed=20261120, forms=share, everywhere=False, gates=False)
    with Executor(2) as executor:
        results = sweep.sweep([], settings, executor, tmp_path, "13.5", quiet=True)
    differing = [text for result in results for text in result.disagreements]
    assert not differing, "\n".join(differing)
    assert {result.key for result in results} == {form.form.key for form in cases.declared()}
    assert sum(result.forms + result.neighbors for result in results) > LINES


def test_a_sample_of_a_seed_is_always_the_same() -> None:
    def drawn() -> list[Case]:
        neighbors = cases.Neighbors(shl)
        return [case for made in shl.variants() for case in neighbors.draw(made, 50, random.Random(7))]

    assert drawn() == drawn()
    assert {case.kind for case in drawn()} == {
        "modifier added", "modifier doubled", "modifier dropped", "modifier replaced", "modifiers in another order",
        "operand added", "operand dropped", "operand replaced", "target", "version",
    }  # fmt: skip


#: Lines in one module, of which some are wrong: by a message with a line, by a syntax error, by a crash of ptxas.
MIXED = [
    ("add.u32 %x_b32_0, %x_b32_1, 1;", True),
    ("add.u32 %x_b32_0, %x_b64_1, 1;", False),
    ("add.u32 %x_b32_0, , 1;", False),
    ("st.param.b32 [%x_b64_0], %x_b32_1;", False),
    ("bar.sync 16;", False),
    ("bar.sync 15;", True),
]


@pytest.mark.parametrize("judge", [judges.ours, judges.ptxas])
def test_each_line_of_a_module_has_its_own_verdict(judge: type) -> None:
    lines = [line for line, _ in MIXED]
    assert [not verdict for verdict in judge(lines, "sm_90a", "8.6")] == [legal for _, legal in MIXED]


def test_errors_in_functions_of_ptxas_are_of_one_line() -> None:
    c = "{%x_b32_0, %x_b32_1, %x_b32_2, %x_b32_3, %x_b32_4, %x_b32_5, %x_b32_6, %x_b32_7}"
    lines = [
        f"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32 {c}, {{%x_b32_8, %x_b32_9}}, {b}, {c};"
        for b in ("{%x_b32_10, %x_b32_11}", "{1, %x_b32_11}", "{%x_b32_12, %x_b32_13}")
    ]
    assert [not verdict for verdict in judges.ptxas(lines, "sm_90a", "8.6")] == [True, False, True]


@pytest.mark.parametrize("judge", [judges.ours, judges.ptxas])
def test_a_target_that_is_too_new_for_the_version_refuses_all_lines(judge: type) -> None:
    assert all(judge([line for line, _ in MIXED], "sm_90a", "7.0"))


def test_disagreement_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judges, "ours", lambda lines, target, version: ["refused"] * len(lines))
    case = Case("logic.shl", "form", "shl.b32 %x_b32_0, %x_b32_1, 1;", "sm_90a")
    (found,) = judges.compare([case])
    assert str(found).split("\n")[1:] == ["    ptxgen: refused", "    ptxas:  legal"]


def test_a_disagreement_with_a_stated_reason_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Irreconcilable("a whim", form="logic", line=r"^shl", objection="nonsense")
    monkeypatch.setattr(judges, "STRICTER", (entry,))
    monkeypatch.setattr(judges, "ours", lambda lines, target, version: ["nonsense"] * len(lines))
    lines = ("shl.b32 %x_b32_0, %x_b32_1, 1;", "shl.b32 %x_b32_0, %x_b64_1, 1;", "shr.b32 %x_b32_0, %x_b32_1, 1;")
    found = list(judges.compare([Case("logic.shl", "operand replaced", line, "sm_90a") for line in lines]))
    assert [(each.reason, each.agreed) for each in found] == [("a whim", False), ("a whim", True), ("", False)]
    result = sweep.Result("logic.shl")
    for each in found[:2]:
        sweep.excuse(result, each)
    assert result.excused == 1
    assert result.reasons == {
        "a whim": {"excused": 1, "agreed": 1, "example": lines[0], "objection": "nonsense"},
    }


def test_what_was_done_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(neighbors=10, each=1, seed=0, gates=False)
    here = Executor(0)
    first = sweep.sweep(["logic.shl"], settings, here, tmp_path, "13.5", quiet=True)
    monkeypatch.setattr(sweep, "do", None)
    assert sweep.sweep(["logic.shl"], settings, here, tmp_path, "13.5", quiet=True) == first
    with pytest.raises(TypeError):
        sweep.sweep(["logic.shl"], Settings(neighbors=10, each=1, seed=1), here, tmp_path, "13.5", quiet=True)


def test_the_table_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    __main__.print_table(
        [sweep.Result("a.b", 1, 2, 3, 4, {}, ["x"]), sweep.Result("a.c", 10, 20, 30), sweep.Result("d.e")]
    )
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [
        ["a", "11", "22", "33", "4", "1"],
        ["d", "0", "0", "0", "0", "0"],
        ["all", "11", "22", "33", "4", "1"],
    ]


def test_reasons_add_up() -> None:
    def result(excused: int, example: str) -> sweep.Result:
        reason = sweep.Reason(excused=excused, agreed=2, example=example, objection="a | b")
        return sweep.Result("a.b", excused=excused, reasons={"a whim": reason})

    rows = __main__.exceptions([result(0, ""), result(3, "shl %x_b32_7;")]).splitlines()[-1:]
    assert rows == ["| a whim | 3 | 4 | `shl %x_b32_7;` | a \\| b |"]


def test_the_page_of_exceptions_says_when_it_was_counted() -> None:
    counted = r"^Counted on \d{4}-\d\d-\d\d at commit [0-9a-f]{8,} with ptxas 13\.5\."
    assert re.search(counted, EXCEPTIONS.read_text(), re.MULTILINE)
    assert re.search(counted, __main__.heading("13.5.37"), re.MULTILINE)


def test_a_digest_tells_declarations_apart() -> None:
    assert digest(shl) == digest(shl) != digest(shr)


def test_certificates_are_of_declarations() -> None:
    assert set(certificates()) <= {form.form.key for form in cases.declared()}
    assert all(isinstance(each, Certificate) and each.disagreements == 0 for each in certificates().values())


def test_the_page_of_exceptions_has_every_reason() -> None:
    """`python -m tools.certify --new-reasons` adds what is missing."""
    page = EXCEPTIONS.read_text()
    assert [each.reason for each in (*STRICTER, *BROKEN) if f"| {each.reason} |" not in page] == []
    assert with_new_reasons(page) == page
    reason = "A number, mask or policy in the place of the mbarrier"
    row = next(line for line in page.splitlines() if line.startswith(f"| {reason} |"))
    assert f"| {reason} | ptx" in with_new_reasons(page.replace(row + "\n", ""))
    gone = row.replace(reason, "A reason of old")
    assert with_new_reasons(page.replace(row, f"{row}\n{gone}")) == page
