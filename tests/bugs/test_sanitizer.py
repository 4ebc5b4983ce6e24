"""What is made of the outcomes of a GPU, and the texts that a GPU runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from ptxgen import check
from tests.bugs import BUGS, handoffs, reuse
from tests.bugs.bug import DATA, Bug
from tests.bugs.sanitizer import Outcome, recorded, verdicts
from tools.sanitizer.live import live
from tools.sanitizer.sweep import Sweep

CLEAN = Outcome(end="ok", errors=0, warnings=0, hashes=["a"])
REPORT = """========= COMPUTE-SANITIZER
{"job": "one.bug", "end": "ok", "error": "", "hashes": ["a"]}
========= Error: Race reported between Read access at k_one_bug+0xa0 in one.bug.ptx:44
=========     and Write access at k_one_bug+0xc0 in one.bug.ptx:41 [4 hazards]
========= Warning: Race reported between Write access at k_one_bug_2+0x10
=========
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
"""


@pytest.mark.parametrize(
    ("bug", "twin", "word"),
    [
        (Outcome(end="ok", hashes=["a"]), Outcome(end="ok", hashes=["a"]), "nothing"),
        (Outcome(end="ok", hashes=["a", "b"]), Outcome(end="ok", hashes=["a"]), "wrong result"),
        (Outcome(end="ok", hashes=["a"]), Outcome(end="ok", hashes=["a", "b"]), "not comparable"),
        (Outcome(end="hang", hashes=[]), Outcome(end="ok", hashes=["a"]), "hang"),
        (Outcome(end="killed"), Outcome(end="ok", hashes=["a"]), "hang"),
        (Outcome(end="fault", hashes=["a"]), Outcome(end="ok", hashes=["a"]), "fault"),
        (Outcome(end="ok", hashes=["a"]), Outcome(end="hang"), "twin: hang"),
    ],
)
def test_what_a_gpu_shows(bug: Outcome, twin: Outcome, word: str) -> None:
    results: Mapping[str, Mapping[str, Outcome]] = {"x.bug": {"gpu": bug}, "x.twin": {"gpu": twin}}
    assert verdicts(results, "x")["gpu"] == word


def test_tools_that_report_a_bug_and_its_twin() -> None:
    reported = Outcome(end="ok", errors=2, warnings=0)
    warned = Outcome(end="ok", errors=0, warnings=1)
    lost = Outcome(end="killed", errors=None)
    bug = {"gpu": CLEAN, "racecheck": reported, "synccheck": warned, "memcheck": lost, "initcheck": CLEAN}
    verdict = verdicts({"x.bug": bug, "x.twin": {**bug, "synccheck": CLEAN, "memcheck": CLEAN}}, "x")
    assert verdict["bug"] == ["racecheck", "synccheck (warning)"]
    assert verdict["twin"] == ["racecheck"]
    assert verdict["missing"] == ["memcheck"]


def test_reports_belong_to_the_kernel_that_they_name(tmp_path: Path) -> None:
    jobs = {name: {"kernels": {name: f"k_{name}"}} for name in ("one_bug", "one_bug_2", "two")}
    sweep = Sweep(tmp_path, jobs, "compute-sanitizer", 0)
    read = {name: sweep.reports(name, REPORT) for name in jobs}
    assert [(each["errors"], each["warnings"]) for each in read.values()] == [(1, 0), (0, 1), (0, 0)]


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.target == "sm_90a"][::6], ids=lambda bug: bug.name)
def test_kernels_with_live_loads_stay_legal(bug: Bug) -> None:
    text = bug.text(right=True)
    kept = live(text, DATA)
    assert not [each for each in check(kept) if each.severity == "error"]
    body = text.split("%lane0, %lane, 0;")[1]
    # What a load of 128 bits brings is not added up.
    assert kept.count("st.global") > text.count("st.global") or not re.search(r"\bld\.(?!\S*b128)", body)


def test_the_record_is_of_bugs_that_are_here() -> None:
    """Bugs that came after the last run on a GPU have empty columns in docs/bugs.md."""
    wait = {bug.name for bug in (*handoffs.BUGS, *reuse.BUGS)} | {
        "aggregate-by-a-weak-load-beside-its-flag",
        "barrier-in-both-copies-of-a-branch",
        "first-group-read-by-the-constructor-of-the-scheduler",
        "metadata-read-by-warps-that-do-not-wait-for-the-grid",
        "one-rendezvous-for-a-ring-of-three",
    }
    assert set(recorded()["verdicts"]) == {bug.name for bug in BUGS if bug.target == "sm_90a"} - wait
