"""The kit, with the emulator in the place of the GPU: its file, its questions, and what `ptxgen verify` says of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from microtests.harness import kit, recordings
from microtests.harness.definition import chosen
from microtests.harness.draft import NotThereError
from microtests.harness.gpu import Batch
from microtests.harness.questions import OPEN, Question, questions
from microtests.harness.verify import compare
from ptxgen.cli.main import execute

SOME = ["tcgen05_questions.shift", "tcgen05_questions.mixed", "tcgen05_copy.shift", "tensor_sums_floor.warp"]
Edit = Callable[[dict[str, Any]], None]


def made(path: Path, target: str = "sm_100a", edit: Edit | None = None) -> Path:
    """A file of some microtests; `edit` changes answers."""
    answers = list(kit.emulated(kit.order(chosen(SOME)), target))
    for each in answers:
        if edit is not None:
            edit(each)
    kit.write(path, {"kit": "test", "target": target, "device": "none"}, answers, None)
    return path


def test_the_emulator_agrees_with_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made(tmp_path / "k.gz")
    assert path.stat().st_size < kit.MOST_BYTES
    assert execute(["verify", str(path), "--jobs", "1"]) == 0
    text = capsys.readouterr().out
    assert "tcgen05.shift of a pair, and before a copy: 8 of 8" in text
    assert "8 microtests agree, 0 differ" in text
    assert "tensormaps of this driver: 614 equal" in text
    assert execute(["verify", str(path), "--jobs", "1", "--json", "--only", "tcgen05_questions.shift_lane"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["verdict"] for each in found["settled"]] == ["all four quarters"] * 2
    assert found["agrees"]


def test_other_words_support_other_candidates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A GPU that shifts one quarter, runs mixed types, and swaps words of an ordinary microtest."""

    def other(answer: dict[str, Any]) -> None:
        name = answer["name"]
        asked = questions().get(name)
        if name == "tcgen05_questions.shift_lane[32]":
            give(answer, "only that quarter")
        elif name.startswith("tcgen05_questions.mixed_halves"):
            del answer["entry"]["fault"]
            give(answer, "it runs")
        elif name == "tcgen05_questions.shift_columns":
            answer["entry"]["outputs"]["out0"]["sha"] = "0" * 16
        elif asked is None:
            answer["entry"]["outputs"]["out0"]["sha"] = "1" * 16

    def give(answer: dict[str, Any], candidate: str) -> None:
        draft = questions()[answer["name"]].draft(candidate, "sm_100a")
        answer["entry"]["outputs"] = {
            each.name: {"sha": recordings.digest(each.expected_bytes()), "head": ""} for each in draft.outputs
        }

    path = made(tmp_path / "k.gz", edit=other)
    report = compare(kit.read(path))
    verdicts = {each.name: each.verdict for each in report.settled}
    assert verdicts["tcgen05_questions.shift_lane[32]"] == "only that quarter"
    assert verdicts["tcgen05_questions.shift_lane[64]"] == "all four quarters"
    assert verdicts["tcgen05_questions.mixed_halves[f16,bf16]"] == "it runs"
    assert verdicts["tcgen05_questions.shift_columns"] == "none of the candidates"
    assert len(report.differing) == 8
    assert not report.agrees
    assert execute(["verify", str(path), "--jobs", "1"]) == 1
    assert "only that quarter; the emulator has: all four quarters" in capsys.readouterr().out


def test_a_hang_is_no_answer_and_a_fault_is_one(tmp_path: Path) -> None:
    def ended(answer: dict[str, Any]) -> None:
        del answer["entry"]
        hangs = answer["name"].endswith("[32]")
        answer |= {"verdict": "failed", "message": "no end within 20 s" if hangs else "its process ended: CUDA_ERROR_X"}

    verdicts = {each.name: each.verdict for each in compare(kit.read(made(tmp_path / "k.gz", edit=ended))).settled}
    assert verdicts["tcgen05_questions.shift_lane[32]"] == "no answer: no end within 20 s"
    assert verdicts["tcgen05_questions.shift_lane[64]"] == "it faults"


def test_hopper(tmp_path: Path) -> None:
    """The same for sm_90a, which has no tcgen05."""
    report = compare(kit.read(made(tmp_path / "k.gz", "sm_90a")))
    assert {each.name.partition("[")[0] for each in report.settled} == {
        "tensor_sums_floor.warp",
        "tensor_sums_floor.warpgroup",
    }
    assert {each.verdict for each in report.settled} == {"7 below"}


def test_no_kit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.gz"
    assert execute(["verify", str(path), "--jobs", "1"]) == 2
    path.write_bytes(b"no gzip")
    assert execute(["verify", str(path), "--jobs", "1"]) == 2
    path.write_bytes(gzip.compress(b'{"format": 99}\n'))
    assert execute(["verify", str(path), "--jobs", "1"]) == 2
    assert capsys.readouterr().err.count("error:") == 3


def home(asked: Question) -> str:
    """The first target that has what a question asks."""
    for target in ("sm_90a", "sm_100a", "sm_120a"):
        try:
            asked.draft(asked.candidates[0], target)
        except NotThereError:
            continue
        return target
    raise AssertionError(asked.asks)


def test_candidates_are_told_apart() -> None:
    """Each candidate of a question predicts something else."""
    for name, asked in questions().items():
        target = home(asked)
        seen = set()
        for candidate in asked.candidates:
            draft = asked.draft(candidate, target)
            seen.add(draft.fault or tuple(recordings.digest(each.expected_bytes()) for each in draft.outputs))
        assert len(seen) == len(asked.candidates), name


def test_open_items_have_microtests() -> None:
    names = [each.name for each in chosen()]
    assert [each for some in OPEN.values() for each in some if not any(name.startswith(each) for name in names)] == []


def test_risky_questions_have_their_own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch of questions has one; the others share."""
    batches: list[tuple[list[str], bool]] = []

    def recorded(batch: Batch) -> None:
        batches.append((list(batch.left), "--whole" in batch.command))
        for name in batch.left:
            batch.report({"name": name, "verdict": "passed", "message": "", "seconds": 0.0})

    monkeypatch.setattr(Batch, "run", recorded)
    answers = list(kit.on_gpu(kit.order(chosen(SOME)), 2, 100.0))
    asked = [names for names, whole in batches if whole]
    assert len(answers) == len(chosen(SOME))
    assert all(len(names) == 1 and names[0] in questions() for names in asked)
    assert not any(name in questions() for names, whole in batches for name in names if not whole)


def test_the_emulator_runs_everything_in_several_processes() -> None:
    """In order, without a limit of time; with one, what is left has no answer."""
    found = kit.order(chosen(["tcgen05_questions.shift", "wgmma.desc"]))
    answers = list(kit.emulated(found, "sm_100a", jobs=2))
    assert [each["name"] for each in answers] == [each.name for each in found if each.family != "wgmma"]
    assert {each["verdict"] for each in answers} == {"passed"}
    late = list(kit.emulated(found, "sm_100a", seconds=-1.0))
    assert {each["message"] for each in late} == {"no time was left"}
    assert len(late) == len(found)
