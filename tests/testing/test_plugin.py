"""The pytest plugin, in runs of pytest of its own: the page's examples, its options, and what failures show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "testing.md").read_text()
FILES = dict(re.findall(r"```\w+ (\S+)\n(.*?)```", PAGE, re.DOTALL))


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # The plugin by name: an installed one would come by its entry point, too.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "ptxgen.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "-ra",
        *arguments,
    ]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_examples_of_the_page_pass(page: Path) -> None:
    assert len([name for name in FILES if name.startswith("test_")]) == 5
    first = run(page, "--update-descriptors", "--emulator-seeds", "2", "-v")
    assert first.returncode == 0, first.stdout
    for name in ("eager", "late", "random-0", "random-1"):
        assert f"test_scale.py::test_scale[{name}] PASSED" in first.stdout
        assert f"test_race.py::test_the_barrier_is_needed[{name}] PASSED" in first.stdout
    assert "test_descriptors.py::test_operand_a PASSED" in first.stdout
    assert "test_sass.py::test_a_fused_add_is_the_same PASSED" in first.stdout
    if "SKIPPED" in first.stdout:
        assert re.search(r"SKIPPED \[1\] \S*: \S.*", first.stdout)
    snapshots = page / "__snapshots__" / "test_descriptors.json"
    assert "0x4000404000010000" in snapshots.read_text()
    assert run(page, "test_descriptors.py").returncode == 0
    snapshots.write_text(snapshots.read_text().replace("0x4000404000010000", "0x4000404000020000"))
    changed = run(page, "test_descriptors.py")
    assert changed.returncode == 1
    assert "leading_byte_offset  0x2  32 bytes  0x1  16 bytes" in changed.stdout
    assert "E       SmemDescriptor 0x4000404000010000" in changed.stdout.replace("E         ", "E       ")


def test_schedules_come_from_the_ini_file_too(page: Path) -> None:
    (page / "pytest.ini").write_text("[pytest]\nemulator_schedules = late,random\nemulator_seeds = 3\n")
    outcome = run(page, "test_scale.py", "--collect-only", "-q")
    assert re.findall(r"test_scale\[(.*?)\]", outcome.stdout) == ["late", "random-0", "random-1", "random-2"]
    outcome = run(page, "test_scale.py", "--collect-only", "-q", "--emulator-schedules", "eager")
    assert re.findall(r"test_scale\[(.*?)\]", outcome.stdout) == ["eager"]
    outcome = run(page, "--emulator-schedules", "eagre")
    assert outcome.returncode == 4
    assert "no schedule 'eagre'; schedules are eager, late, random and all" in outcome.stderr


def test_a_failure_shows_what_the_launch_found(page: Path) -> None:
    text = (page / "scale.ptx").read_text()
    (page / "scale.ptx").write_text(text.replace("    bar.sync 0;\n", ""))
    outcome = run(page, "test_scale.py", "--emulator-schedules", "eager")
    assert outcome.returncode == 1
    assert "AssertionError: scale on emulated sm_100a: findings" in outcome.stdout
    assert "[shared-race]" in outcome.stdout
    assert "launch (eager, seed 0)" in outcome.stdout
    (page / "test_plain.py").write_text(
        "from ptxgen import Kernel\n\ndef test_plain(emulator):\n"
        "    args = [emulator.empty(128, 'f32'), emulator.empty(128, 'f32')]\n"
        "    report = emulator.launch(Kernel.from_file('scale.ptx'), 1, 128, args)\n    assert report.ok\n"
    )
    outcome = run(page, "test_plain.py", "--emulator-schedules", "eager")
    assert "launch (eager, seed 0)" in outcome.stdout
    assert "[shared-race]" in outcome.stdout
    assert "LaunchReport(status" not in outcome.stdout


def test_other_fixtures_of_the_same_names_are_left_alone(page: Path) -> None:
    (page / "conftest.py").write_text(
        "import pytest\n\n@pytest.fixture\ndef emulator():\n    return 'mine'\n\n"
        "@pytest.fixture\ndef gpu():\n    return 'mine'\n"
    )
    (page / "test_mine.py").write_text("def test_mine(emulator, gpu):\n    assert emulator == gpu == 'mine'\n")
    outcome = run(page, "test_mine.py", "-v")
    assert "test_mine.py::test_mine PASSED" in outcome.stdout


def test_the_marker_gives_options(page: Path) -> None:
    (page / "test_marked.py").write_text(
        "import pytest\n\n@pytest.mark.emulator(target='sm_90a', max_steps=7)\ndef test_marked(emulator):\n"
        "    assert (emulator.target, emulator.max_steps) == ('sm_90a', 7)\n"
    )
    assert run(page, "test_marked.py", "--strict-markers").returncode == 0


def test_the_plugin_imports_nothing_of_the_library_before_it_is_used() -> None:
    code = "import sys, ptxgen.pytest_plugin; print(*sorted(each for each in sys.modules if each.startswith('ptxgen')))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["ptxgen", "ptxgen.pytest_plugin"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-o", "emulator_seeds=abc"], "ERROR: emulator_seeds must be a number of 1 or more, not abc\n"),
        (["-o", "emulator_seeds=0"], "ERROR: emulator_seeds must be a number of 1 or more, not 0\n"),
        (["--emulator-seeds", "-3"], "ERROR: --emulator-seeds must be a number of 1 or more, not -3\n"),
        (["--ptxgen-exec=sm_9"], "ERROR: --ptxgen-exec: 'sm_9' is not a target; write it like sm_90a"),
        (["--ptxgen-exec=sm_91"], "ERROR: --ptxgen-exec: "),
        (["--ptxgen-exec=b200"], "ERROR: --ptxgen-exec: 'b200' is not a target"),
    ],
)
def test_unusable_options_are_usage_errors(tmp_path: Path, words: list[str], sentence: str) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(emulator):\n    pass\n")
    outcome = run(tmp_path, *words)
    assert outcome.returncode == 4
    assert outcome.stderr.startswith(sentence)
    assert "Traceback" not in outcome.stdout + outcome.stderr


@pytest.mark.parametrize(
    ("text", "sentence"), [(None, "cannot read"), ("[[accept]]\ncode = 'a'\n", "entry 1 needs an instruction")]
)
def test_an_unusable_accept_file_is_one_sentence(tmp_path: Path, text: str | None, sentence: str) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(emulator):\n    pass\n")
    (tmp_path / "pyproject.toml").write_text("[tool.ptxgen]\naccept = 'no.toml'\n")
    if text is not None:
        (tmp_path / "no.toml").write_text(text)
    outcome = run(tmp_path, "--emulator-schedules", "eager")
    assert outcome.returncode == 1
    assert sentence in outcome.stdout
    assert "File " not in outcome.stdout
    assert len(outcome.stdout.splitlines()) < 20


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"a": 1}', b"\xff", b""])
def test_a_broken_snapshot_is_one_sentence(tmp_path: Path, data: bytes) -> None:
    from ptxgen.testing.snapshots import read_snapshots

    path = tmp_path / "t.json"
    path.write_bytes(data)
    with pytest.raises(AssertionError, match=r"t\.json (is not JSON|must hold snapshots).*delete it and write it anew"):
        read_snapshots(path)
