"""docs/stacks.md: what runs again replaces its lines and nothing else; the tables of tools/samples.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import samples, stacks


def outcome(number: int) -> stacks.Outcome:
    return stacks.Outcome(stacks.CASES[number], "PASS", "", 1.4)


def test_lines_of_other_stacks_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "_version", lambda package: f"{len(package)}.0")
    triton = next(number for number, each in enumerate(stacks.CASES) if each.stack == "Triton")
    before = stacks._page([outcome(0), outcome(triton)], [], "")
    assert "nvidia-cuda-nvcc 16.0, triton 6.0." in before
    again = stacks.Outcome(stacks.CASES[0], "", "no launch", 2.0)
    after = stacks._page([again], [], before)
    assert "| nvcc | `kernels.cu matmul right` | sm_90a | **no launch** | 2 |" in after
    assert after.count("| nvcc |") == 1
    assert "| Triton | `triton_kernels.py` | sm_90a | PASS | 1 |" in after
    assert "nvidia-cuda-nvcc 16.0, triton 6.0." in after


@pytest.mark.parametrize("name", ["stacks", "cuda-samples"])
def test_the_page_has_a_section(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    copy = tmp_path / "stacks.md"
    copy.write_text(stacks.PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(stacks, "PAGE", copy)
    stacks.write_section(name, "new text")
    assert f"<!-- {name}: begin -->\nnew text\n<!-- {name}: end -->" in copy.read_text(encoding="utf-8")


def test_samples_that_ran_and_that_did_not(tmp_path: Path) -> None:
    ran = samples.Outcome("matrixMul", 0, True, 3.2, 301, 66816, {"shared-race": 2})
    failed = samples.Outcome("lineOfSight", 1, False, 3.2, problem="the program calls a | b")
    text = samples._section(tmp_path, [ran, failed])
    assert "1 samples ran to exit code 0, 1 of them with a check" in text
    assert "| matrixMul | `-wA=64 -hA=64 -wB=64 -hB=64` | passed | 301 | 66,816 | shared-race ×2 | 3 |" in text
    assert "| lineOfSight | the program calls a / b |" in text


@pytest.mark.parametrize("text", ["Test PASSED", "Result = PASS", "Comparing: OK", "results match"])
def test_words_of_samples_that_have_passed(text: str) -> None:
    assert samples._PASSED.search(text)


@pytest.mark.parametrize("text", ["Test failed!", "Bypassing the cache", "done"])
def test_words_that_say_nothing(text: str) -> None:
    assert not samples._PASSED.search(text)
