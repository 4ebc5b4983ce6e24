"""The lessons of docs/course and the page for coding agents happen as they are written."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Cli
from tests.support.guide import follow, steps
from tests.support.paths import ROOT

LESSONS = sorted((ROOT / "docs/course").glob("[0-9]*.md"))
AGENTS = ROOT / "docs/agents.md"


@pytest.fixture
def shell(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Path], str]:
    """Runs one command of a page: ptxgen in this process, anything else by bash."""
    monkeypatch.setenv("COLUMNS", "100")

    def run(command: str, folder: Path) -> str:
        with contextlib.chdir(folder):
            first, bar, rest = command.partition(" | ")
            if first.startswith("ptxgen "):
                outcome = cli(*shlex.split(first)[1:])
                return bash(rest, folder, outcome.out) if bar else outcome.out + outcome.err
            return bash(command, folder)

    return run


def bash(command: str, folder: Path, given: str = "") -> str:
    """What a command of bash prints; `python` is the Python of the tests."""
    text = re.sub(r"^python ", f"{shlex.quote(sys.executable)} ", command)
    done = subprocess.run(
        ["bash", "-c", text], cwd=folder, input=given, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=False, env={**os.environ, "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    return done.stdout


def test_there_are_ten_lessons_and_the_index_names_them() -> None:
    index = (ROOT / "docs/course/index.md").read_text()
    assert len(LESSONS) == 10
    for each in LESSONS:
        assert f"]({each.name})" in index


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda each: each.stem)
def test_a_lesson_happens_as_it_is_written(lesson: Path, shell: Callable[[str, Path], str], tmp_path: Path) -> None:
    if lesson.stem == "10-sass" and not has_ptxas():
        pytest.skip("there is no ptxas")
    for other in LESSONS[:1]:  # a later lesson takes the kernel of the first one
        for step in steps(other.read_text()):
            if step.path:
                (tmp_path / other.stem).mkdir(exist_ok=True)
                (tmp_path / other.stem / step.path).write_text(step.text)
    folder = tmp_path / lesson.stem
    folder.mkdir(exist_ok=True)
    assert follow(lesson.read_text(), folder, shell) >= 3


def has_ptxas() -> bool:
    from ptxgen.toolchain import ToolNotFoundError, find_ptxas

    try:
        find_ptxas()
    except ToolNotFoundError:
        return False
    return True


def test_every_lesson_has_a_mistake_and_what_to_remember() -> None:
    for each in LESSONS[:8]:
        text = each.read_text()
        assert "**Remember" in text, each
        assert re.search(r"^✗ |\*\*The mistake\.\*\*", text, re.MULTILINE), each


def test_the_page_for_agents(cli: Cli, shell: Callable[[str, Path], str], tmp_path: Path) -> None:
    """Its transcript, and each command of its table, which ends well."""
    page = AGENTS.read_text()
    assert follow(page, tmp_path, shell) == 4
    commands = re.findall(r"\| `(ptxgen [^`]+)` \|$", page, re.MULTILINE)
    assert len(commands) >= 20
    with contextlib.chdir(tmp_path):
        for command in commands:
            words = shlex.split(command)[1:]
            if words[0] in ("assemble", "sass") and not has_ptxas():
                continue
            if words[0] == "exec" and not shutil.which("cc"):
                continue
            outcome = cli(*words)
            assert outcome.code in (0, 1 if "--diff" in words else 0), (command, outcome)
            assert outcome.out or outcome.err


def test_the_head_of_the_page_for_agents_is_that_of_a_skill() -> None:
    yaml = pytest.importorskip("yaml")
    head = yaml.safe_load(AGENTS.read_text().split("---")[1])
    assert head.keys() == {"name", "description"}
    assert len(head["description"]) < 500
