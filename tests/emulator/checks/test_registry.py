"""The declarations of checks: complete, reported under their codes, fired by a test and clean in its twin."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from ptxgen.emulator.checks.registry import CHECKS, Check
from tests.support.paths import ROOT

Launches = dict[str, list[tuple[str, list[str]]]]


@pytest.mark.parametrize("code", CHECKS)
def test_a_declaration_says_everything(code: str) -> None:
    check = CHECKS[code]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code)
    assert check.title
    assert not check.title.endswith(".")
    for text in (check.rule, check.why):
        assert text.endswith(".")
    assert not check.fix.endswith(".")
    # An instruction to the reader: `elect.sync, or ...` would be capitalized to `Elect.sync` in the docs.
    assert re.match(r"([a-z]+,? |$)", check.fix), check.fix
    assert not check.fix.startswith("ptxgen ")
    assert re.fullmatch(r"(\d+(\.\d+)*)?", check.section)
    assert check.example
    assert set(check.explains) <= CHECKS.keys()


def _ids(check: Check) -> tuple[str, str]:
    return f"tests/{check.fires}", f"tests/{check.twin}"


@pytest.fixture(scope="module")
def launches(tmp_path_factory: pytest.TempPathFactory) -> Launches:
    """How the launches ended of all tests that declarations name; all of these must exist."""
    record = tmp_path_factory.mktemp("registry") / "launches.json"
    ids = list(dict.fromkeys(each for check in CHECKS.values() for each in _ids(check)))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "tests.support.recorder",
        "-p",
        "no:cacheprovider",
        *ids,
    ]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**environment, "PTXGEN_RECORD": str(record)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout[-4000:]
    return json.loads(record.read_text())


def _of(launches: Launches, wanted: str) -> list[tuple[str, list[str]]]:
    return [
        each for node, ended in launches.items() if node == wanted or node.startswith(f"{wanted}[") for each in ended
    ]


def test_each_check_fires_and_its_twin_is_clean(launches: Launches) -> None:
    """In one run, since each test that a declaration names has to run."""
    wrong: list[str] = []
    for code, check in CHECKS.items():
        fires, twin = _ids(check)
        if not any(code in codes for _, codes in _of(launches, fires)):
            wrong.append(f"{fires} does not fire {code}")
        if not any(status == "ok" and code not in codes for status, codes in _of(launches, twin)):
            wrong.append(f"{twin} has no clean launch for {code}")
    assert wrong == []
