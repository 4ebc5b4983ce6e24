"""`ptxgen time`: the report, JSON, the trace, the page, a comparison, and one sentence for bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ptxgen.gemm import find
from tests.support.command_line import Cli

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
#: One CTA of a small kernel.
SMALL = ("hopper/overlapped", "--m", 128, "--n", 64, "--k", 192, "--set", "n_tile=64", "--set", "cluster_m=1")
SMALL += ("--set", "scheduler=grid", "--set", "panel=0", "--set", "stages=3")


def test_the_json_the_trace_and_the_page(cli: Cli, tmp_path: Path) -> None:
    trace, page = tmp_path / "t.json", tmp_path / "t.html"
    outcome = cli("time", *SMALL, "--clock", 1700, "--json", "--trace", trace, "--html", page)
    assert outcome.code == 0
    found = json.loads(outcome.out)
    assert found["machine"] == "h200"
    assert found["time_us"] == pytest.approx(found["cycles"] / 1700, rel=1e-3)
    assert set(found["utilization"]) == {"tensor", "tma", "l2", "hbm", "issue"}
    assert all(0 <= value <= 1 for value in found["utilization"].values())
    assert any(role["name"].startswith("load") and "ab_empty[0]" not in role["waits"] for role in found["roles"])
    assert sum(found["evidence"].values()) > 50
    events = json.loads(trace.read_text())["traceEvents"]
    begun, ended = ([each["id"] for each in events if each["ph"] == phase] for phase in "be")
    assert sorted(begun) == sorted(ended)
    # 3 K blocks: 4 MMAs for each of two warpgroups, and a copy of A and of B.
    assert sum(each["name"].startswith("tensor ") for each in events if each["ph"] == "b") == 24
    text = page.read_text()
    assert not re.search(r"(src|href)=|https?://", text)
    assert "wgmma.mma_async" in text
    assert 'name="viewport"' in text
    assert "prefers-color-scheme:dark" in text


@pytest.mark.parametrize(
    ("target", "machine"), [("sm_90", "h200"), ("sm_90a", "h200"), ("sm_100", "b200"), ("sm_100f", "b200")]
)
def test_the_machine_follows_from_the_architecture(cli: Cli, tmp_path: Path, target: str, machine: str) -> None:
    text = f""".version 8.8
.target {target}
.address_size 64
.visible .entry k(.param .u64 p) {{
.reg .b64 %a;
ld.param.u64 %a, [p];
st.global.u32 [%a], 7;
ret;
}}
"""
    path = tmp_path / "k.ptx"
    path.write_text(text)
    outcome = cli("time", path, "--arg", "p=zeros:u32:32", "--block", 32, "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["machine"] == machine


def test_two_kernels_and_a_built_file(cli: Cli, tmp_path: Path) -> None:
    built = tmp_path / "k.ptx"
    options = {"n_tile": 64, "cluster_m": 1, "scheduler": "grid", "panel": 0, "stages": 3}
    built.write_text(find("hopper/overlapped").plan(**options).text)
    outcome = cli("time", built, "hopper/overlapped[stages=2]", *SMALL[1:-2], "--machine", "h100")
    assert outcome.code == 0
    said = " ".join(outcome.out.split())
    assert said.count("NVIDIA H100 80GB HBM3") == 2
    assert "cycles than the first" in said


def test_what_if_predicts_the_changed_kernel(cli: Cli) -> None:
    outcome = cli("time", *SMALL, "--what-if", "stages=+1", "--what-if", "n_tile=32", "--json")
    found = json.loads(outcome.out)
    by_option = {each["option"]: each for each in found["what_if"]}
    assert (by_option["stages"]["value"], by_option["n_tile"]["value"]) == (4, 32)
    # The same as asking for the changed kernel itself.
    for option, change in by_option.items():
        alone = json.loads(cli("time", *SMALL, "--set", f"{option}={change['value']}", "--json").out)
        assert alone["cycles"] == change["cycles"]
        assert change["gain"] == pytest.approx(1 - change["cycles"] / found["cycles"], abs=2e-4)


def test_what_if_best_says_how_many_changes_were_tried(cli: Cli) -> None:
    said = " ".join(cli("time", *SMALL, "--what-if", "best", "--seconds", 0.5).out.split())
    tried = re.search(r"(\d+) changes predicted, (\d+) fit no kernel, (\d+) not tried", said)
    assert tried is not None
    assert int(tried[1]) >= 1
    assert int(tried[3]) >= 1


@pytest.mark.parametrize("name", ["gemm_pair", "attention"])
def test_a_job_whose_arrays_are_arguments_by_address_alone(cli: Cli, name: str) -> None:
    outcome = cli("time", EXAMPLES / f"{name}.py", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert json.loads(outcome.out)["parts"]["simulated"] > 1000


def test_kernels_of_two_machines_are_compared_by_time(cli: Cli) -> None:
    outcome = cli("time", "hopper/wgmma", "blackwell/tma-store", "--m", 128, "--n", 128, "--k", 64)
    assert "time, at another clock, than the first" in outcome.out


def test_bad_input_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    for words, sentence in (
        (("hopper/overlapped", "--machine", "a100"), "--machine"),
        (("hopper/overlaped",), "no kernel"),
        (("hopper/overlapped", "--machine", "b200", "--m", 128, "--n", 256, "--k", 64), "does not run"),
        (("hopper/overlapped", "--l2", "hot"), "--l2"),
        (("hopper/overlapped", "--clock", 5), "--clock"),
        (("a", "b", "c"), "compares two"),
        ((*SMALL, "--what-if", "stages"), "OPTION=VALUE"),
        ((*SMALL, "--what-if", "stage=2"), "OPTION=VALUE"),
        ((*SMALL, "--what-if", "n_tile=7"), "n_tile"),
        ((*SMALL, "--what-if", "best", "--what-if", "stages=2"), "not both"),
        ((tmp_path / "none.ptx",), "none.ptx"),
    ):
        outcome = cli("time", *words)
        assert outcome.code == 2, words
        assert sentence in outcome.err
        assert "Traceback" not in outcome.err
        assert len(outcome.err.strip().splitlines()) == 1
