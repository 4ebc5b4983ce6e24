"""Mutants that are judged many at a time get the verdicts that each has alone (`tools/mutants/groups.py`)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxgen.device import Kernel, LaunchReport
from ptxgen.emulator import Emulator
from ptxgen.executor import Executor
from tools.mutants import __main__ as command
from tools.mutants import groups as grouping
from tools.mutants import judge as judging
from tools.mutants.groups import Group, foreseen, groups, settle
from tools.mutants.judge import Left, Verdict, baseline, judge, only_orders, parsed_once
from tools.mutants.mutations import Mutant, mutants
from tools.mutants.subjects import Subject, load

_THREADS = 64
#: Each thread stores a word, and loads that of a thread of the other warp.
_KERNEL = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry reversed(.param .u64 out) {{
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    .shared .align 4 .b8 words[256];
    ld.param.u64 %rd0, [out];
    mov.u32 %r0, %tid.x;
    shl.b32 %r1, %r0, 2;
    mov.u32 %r2, words;
    add.u32 %r3, %r2, %r1;
    st.shared.u32 [%r3], %r0;
{between}
    xor.b32 %r1, %r1, 252;
    add.u32 %r4, %r2, %r1;
    ld.shared.u32 %r5, [%r4];
    mul.wide.u32 %rd1, %r0, 4;
    add.u64 %rd2, %rd0, %rd1;
    st.global.u32 [%rd2], %r5;
    ret;
}}
"""


def _run(text: str, device: Emulator) -> tuple[LaunchReport, bool, bytes]:
    out = device.array(np.zeros(_THREADS, np.uint32))
    report = device.launch(Kernel.from_ptx(text), 1, _THREADS, [out])
    found = out.numpy()
    return report, bool((found == np.arange(_THREADS)[::-1]).all()), found.tobytes()


def _subject(monkeypatch: pytest.MonkeyPatch, between: list[str]) -> Subject:
    """The kernel with instructions between the store and the load, as the subject that each name loads."""
    text = _KERNEL.format(between="\n".join(f"    {each}" for each in between))
    made = Subject("reversed", "sm_90a", text, _run)
    for module in (command, grouping, judging):
        monkeypatch.setattr(module, "load", lambda _: made)
    command._code.cache_clear()
    return made


def _judged(chosen: list[Mutant], monkeypatch: pytest.MonkeyPatch) -> tuple[dict[Mutant, Verdict], list[Group]]:
    """The verdicts by way of groups, and what was judged one after the other."""
    tried: list[Group] = []

    def noted(name: str, group: Group, whole: judging.Baseline) -> list[Verdict]:
        tried.append(group)
        return settle(name, group, whole)

    monkeypatch.setattr(command, "settle", noted)
    whole = baseline(command.load("reversed"))
    assert not whole.broken
    verdicts = list(command.judge_all("reversed", chosen, whole, Executor(0)))
    assert Counter(each.mutant for each in verdicts) == Counter(chosen)  # each is judged, and once
    return {each.mutant: each for each in verdicts}, tried


def _dropped(text: str) -> list[Mutant]:
    return [each for each in mutants(text) if each.kind == "dropped"]


def test_redundant_ones_are_judged_together(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = _subject(monkeypatch, ["bar.warp.sync 0xffffffff;", "bar.sync 0;", "bar.warp.sync 0xffffffff;"])
    chosen = [each for each in _dropped(subject.text) if "warp" in each.instruction]
    verdicts, tried = _judged(chosen, monkeypatch)
    assert [verdicts[each].fate for each in chosen] == ["redundant"] * 2
    assert [len(each.members) for each in tried] == [2]


def test_a_bad_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the verdict that the second schedule gives, since the first is said to catch nothing."""
    fence = "bar.warp.sync 0xffffffff;"
    subject = _subject(monkeypatch, [fence, fence, fence, "bar.sync 0;", fence])
    monkeypatch.setattr(command, "begin", lambda _, mutant, whole: Left(mutant, same=True))
    chosen = _dropped(subject.text)
    verdicts, tried = _judged(chosen, monkeypatch)
    bad = chosen[3]
    for each in chosen:
        assert verdicts[each].fate == ("finding" if each == bad else "redundant")
        alone = judge("reversed", each, baseline(subject))
        assert (alone.fate, alone.reported) == (verdicts[each].fate, verdicts[each].reported)
    assert verdicts[bad].schedule == "eager"
    assert [len(each.members) for each in tried] == [5, 2, 3, 1, 2, 1, 1]


def test_those_that_stand_in_for_each_other_are_judged_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of two barriers in a row each is redundant, but not both."""
    subject = _subject(monkeypatch, ["bar.sync 0;", "bar.sync 0;"])
    found = list(mutants(subject.text))
    assert Counter(each.kind for each in found) == {"dropped": 2, "another barrier": 2}
    verdicts, tried = _judged(found, monkeypatch)
    assert [verdicts[each].fate for each in found] == ["redundant"] * 4
    assert [len(each.members) for each in tried] == [4, 2, 2]
    kept = command.Kept(tmp_path / "mutants.jsonl", resume=False)
    assert len(command.run(["reversed"], None, 0, Executor(0), kept)[0]) == 4
    resumed = command.Kept(tmp_path / "mutants.jsonl", resume=True)
    assert [resumed.verdict("reversed", each) for each in found] == [verdicts[each] for each in found]
    command._code.cache_clear()


def test_a_group_that_fails_is_halved_by_instructions() -> None:
    """Mutants of one instruction stay together, since only the one that drops it is in the text."""
    made = [Left(Mutant(kind, line, 5, "bar.sync 0;", 0, "")) for line in (1, 2, 3) for kind in ("dropped", "relaxed")]
    assert [len(each.members) for each in Group(tuple(made)).without([])] == [2, 4]
    assert [each.members for each in Group(tuple(made[:2])).without([])] == [(made[0],), (made[1],)]
    proved = [Verdict("", each.mutant, "redundant") for each in made[:5]]
    assert Group(tuple(made)).without(proved) == [Group((made[5],))]
    assert not Group(tuple(made[:5])).without(proved)


@pytest.mark.parametrize("name", ["hopper-5, 64 rows, one chunk, two buffers", "modular-k4", "hopper/gemv"])
def test_groups_have_each_mutant_once_and_no_counts(name: str) -> None:
    text = load(name).text
    found = [Left(each, same=True) for each in mutants(text)]
    made = groups(name, found)
    assert Counter(member.mutant for group in made for member in group.members) == Counter(
        each.mutant for each in found
    )
    for group in made:
        members = [each.mutant for each in group.members]
        if len(members) == 1:
            continue
        kinds = {each.kind for each in members}
        assert len(kinds) == 1 or not any("'s " in each for each in kinds)
        assert not [each for each in members if "mbarrier.init" in each.instruction or "parity" in each.kind]
        assert not [each for each in members if each.kind == "dropped" and "arrive" in each.instruction]
        by_place = Counter((each.line, each.column) for each in members)
        for each in members:
            others = [other.kind for other in members if (other.line, other.column) == (each.line, each.column)]
            assert by_place[each.line, each.column] == 1 or {"dropped", "wait dropped"} & set(others)
        assert group.applied(text).count("bar.warp.sync") == text.count("bar.warp.sync") - sum(
            "bar.warp.sync" in each.instruction for each in members
        )


def test_fields_that_nobody_reads_are_judged_together() -> None:
    name = "hopper-5, 64 rows, one chunk, two buffers"
    found, whole = list(mutants(load(name).text)), baseline(load(name))
    unused = [each for each in found if each.kind == "A's leading offset"]
    assert len(unused) > 1
    assert all(foreseen(name, each, whole) for each in unused)
    verdicts = settle(name, Group(tuple(map(Left, unused))), whole)
    assert verdicts == [Verdict(name, each, "unused") for each in unused]
    read = [each for each in found if each.kind == "A's stride"]
    assert not any(foreseen(name, each, whole) for each in read)
    assert settle(name, Group(tuple(map(Left, read))), whole) == []
    assert not any(map(only_orders, unused + read))


def test_a_text_is_parsed_once_in_a_context() -> None:
    text = _KERNEL.format(between="bar.sync 0;")
    with parsed_once():
        kernel = Kernel.from_ptx(text)
        assert Kernel.from_ptx(text) is kernel
        assert Kernel.from_ptx(text + "\n") is not kernel
    assert Kernel.from_ptx(text) is not kernel
    with parsed_once():
        assert Kernel.from_ptx(text) is not kernel


@pytest.mark.parametrize("schedule", judging.SCHEDULES)
def test_a_finding_under_any_schedule_proves_nothing(schedule: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that no pair of accesses shows."""
    subject = _subject(monkeypatch, ["bar.sync 0;", "bar.warp.sync 0xffffffff;", "bar.warp.sync 0xffffffff;"])
    chosen = [each for each in _dropped(subject.text) if "warp" in each.instruction]
    group, whole = Group(tuple(Left(each, same=True) for each in chosen)), baseline(subject)
    assert len(settle("reversed", group, whole)) == 2
    run_once = judging.run_once

    def caught(*arguments: Any) -> tuple[Verdict, bytes]:
        verdict, result = run_once(*arguments)
        return (replace(verdict, fate="advice") if arguments[-2:] == schedule else verdict), result

    monkeypatch.setattr(grouping, "run_once", caught)
    assert settle("reversed", group, whole) == []


def test_one_that_ends_its_worker_is_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    """So is not what was judged together with it."""
    subject = _subject(monkeypatch, ["bar.sync 0;", *["bar.warp.sync 0xffffffff;"] * 3])
    chosen = [each for each in _dropped(subject.text) if "warp" in each.instruction]

    def settle_or_die(name: str, group: Group, whole: judging.Baseline) -> list[Verdict]:
        if chosen[1] in [each.mutant for each in group.members]:
            raise MemoryError
        return settle(name, group, whole)

    monkeypatch.setattr(command, "settle", settle_or_die)
    found = {each.mutant: each for each in command.judge_all("reversed", chosen, baseline(subject), Executor(0))}
    assert [found[each].fate for each in chosen] == ["redundant", "crash", "redundant"]
    assert found[chosen[1]].reported == f"{chosen[1]}: MemoryError"
