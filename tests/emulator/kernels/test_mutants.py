"""A sample of the mutants of `tools/mutants`: each is caught, or `tools/mutants/equivalent.py` says why not."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from ptxgen import Kernel
from ptxgen.emulator import Emulator
from ptxgen.executor import Executor
from tools.mutants import __main__ as command
from tools.mutants.equivalent import reason
from tools.mutants.executed import executed, missed
from tools.mutants.judge import Baseline, Verdict, baseline, judge
from tools.mutants.mutations import Mutant, mutants
from tools.mutants.pairs import STRONG, all_pairs
from tools.mutants.rungs import RUNGS
from tools.mutants.subjects import load

#: (kernel, every so-manieth of its mutants).
SAMPLE = (("blackwell/swizzled", 5), ("t36_100_tma_reduce_add", 6), ("t36_100_tma_gather4_scatter4", 6))


@cache
def whole(subject: str) -> Baseline:
    found = baseline(load(subject))
    assert not found.broken, f"{subject} is not right itself: {found.broken}"
    return found


def _chosen() -> list[tuple[str, Mutant]]:
    return [(subject, each) for subject, step in SAMPLE for each in list(mutants(load(subject).text))[::step]]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("subject", "mutant"), _chosen(), ids=lambda each: str(each)[:60])
def test_mutant(subject: str, mutant: Mutant) -> None:
    """Something tells that it is broken; else it is equivalent for a stated reason."""
    verdict = judge(subject, mutant, whole(subject))
    known = verdict.fate in ("unreached", "redundant", "unused") or reason(subject, mutant)
    assert verdict.caught or known, f"{verdict.fate}: {mutant}"


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", list(RUNGS))
def test_the_problems_of_a_rung_execute_all_of_it(name: str) -> None:
    """But the way back to a try_wait: in the emulator that returns when the phase completes, an early one, too."""
    subject = load(name)
    with executed() as places:
        report, right, _ = subject.run(subject.text, subject.emulator("eager"))
    assert report.status == "ok", report.summary()
    assert right
    left = {" ".join(each.text.split()) for each in missed(subject.text, places)}
    early = re.search(r"%p_ab_full, (\[.+?\], %r_ab_phase;)", subject.text)
    again = {f"mbarrier.try_wait.parity.shared::cta.b64 %p_done, {early[1]}"} if early else set()
    assert left <= {"@!%p_done bra $wait;"} | again


def test_all_pairs() -> None:
    """A barrier that orders something leaves a pair without order, a doubled one none."""
    subject = load("blackwell/swizzled")
    barrier = next(
        each for each in mutants(subject.text) if each.kind == "dropped" and each.instruction.startswith("bar.sync")
    )
    for text, racing in (
        (subject.text, False),
        (barrier.applied(subject.text), True),
        (replace(barrier, text="bar.sync 0; bar.sync 0;").applied(subject.text), False),
    ):
        with all_pairs() as unordered:
            subject.run(text, Emulator(subject.target, "late"))
        assert bool(unordered) == racing


def test_each_kind_changes_the_text() -> None:
    """Every mutant is another text than the kernel's, and parses."""
    for subject, _ in SAMPLE:
        text = load(subject).text
        for mutant in mutants(text):
            assert mutant.applied(text) != text


@pytest.mark.parametrize(("line", "orders"), [(81, True), (87, False)])
def test_strong_accesses_of_lanes_are_compared(line: int, orders: bool) -> None:
    """Of legacy's sum, the barriers behind stores order them before loads; those before store what is there again."""
    subject = load("legacy")
    mutant = next(each for each in mutants(subject.text) if each.line == line and each.kind == "dropped")
    for text, told in ((subject.text, False), (mutant.applied(subject.text), orders)):
        with all_pairs() as unordered:
            subject.run(text, Emulator(subject.target, "late"))
        assert any(each.startswith(STRONG) for each in unordered) == told


def test_a_mutant_that_ends_its_worker_is_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are judged; what is kept has it too."""
    subject = "t36_90_softmax"
    chosen = command.drawn(subject, 3, 0)

    def begin_or_die(name: str, mutant: Mutant, whole: Baseline) -> Verdict:
        if mutant == chosen[1]:
            raise MemoryError
        return Verdict(name, mutant, "finding")

    monkeypatch.setattr(command, "begin", begin_or_die)
    kept = command.Kept(tmp_path / "mutants.jsonl", resume=False)
    verdicts, left_out = command.run([subject], 3, 0, Executor(0), kept)
    assert [each.fate for each in verdicts] == ["finding", "crash", "finding"]
    assert verdicts[1].reported == f"{chosen[1]}: MemoryError"
    assert not left_out
    assert "crash: t36_90_softmax" in capsys.readouterr().out


def test_verdicts_are_kept_where_only_source_locations_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is that of another process; a change of the code makes them stale."""
    subject, path = "modular-k3", tmp_path / "mutants.jsonl"
    text = load(subject).text
    mutant = command.drawn(subject, None, 0)[40]
    command.Kept(path, resume=False).add(Verdict(subject, mutant, "finding", "shared-race", "late"))
    for changed, known in (
        (re.sub(r"( *\.loc .*\n)", r"\1\1", text, count=1), True),
        (text.replace(".file 1", '.file 99 "blocks/other.j2"\n.file 1', 1), True),
        (text.replace("mov.u32 %r_thread", "mov.b32 %r_thread", 1), False),
    ):
        assert changed != text
        replaced = replace(load(subject), text=changed)
        monkeypatch.setattr(command, "load", lambda _, replaced=replaced: replaced)
        command._code.cache_clear()
        moved = next(each for each in mutants(changed) if (each.kind, each.text) == (mutant.kind, mutant.text))
        verdict = command.Kept(path, resume=True).verdict(subject, moved)
        assert (verdict is not None) == known
        assert verdict is None or (verdict.mutant, verdict.reported) == (moved, "shared-race")
    command._code.cache_clear()


def test_what_is_executed_does_not_depend_on_other_launches() -> None:
    """A kernel that was launched before, and is kept, is bound again."""
    text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { .reg .b32 %r; mov.u32 %r, 1; ret; }\n"
    found: list[int] = []
    for _ in range(2):
        assert Emulator("sm_90").launch(Kernel.from_ptx(text), 1, 32, []).status == "ok"
        with executed() as places:
            Emulator("sm_90").launch(Kernel.from_ptx(text), 1, 32, [])
        found.append(len(places))
    assert found == [2, 2]
