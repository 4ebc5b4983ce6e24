"""`ptxgen plan`: table, sentences, JSON, and one sentence for bad input."""

from __future__ import annotations

import json

import pytest

from ptxgen.gemm import find, parse_options
from ptxgen.timing import MACHINES
from tests.support.command_line import Cli
from tools import plan_table

ARTICLE = ("plan", 4096, 4096, 4096, "--dtype", "e4m3", "--c-dtype", "f32")


def test_the_open_problem_of_the_mxfp8_article(cli: Cli) -> None:
    outcome = cli(*ARTICLE)
    assert outcome.code == 0
    said = " ".join(outcome.out.split())
    assert "256 tiles on 74 CTA pairs make 3.46 waves, so 4 at 86.5%; the last has 34 of 74." in said
    assert "Predicted for 256×240 instead of 256×256: about 7% faster" in said
    rows = [line.split() for line in outcome.out.splitlines() if "tensor" in line and line[:3].isdigit()]
    assert len(rows) == 8
    assert rows[0][:4] == ["256×240", "2×1", "pair", "clc"]
    assert rows[0][-1] == "tensor"
    assert max(map(len, outcome.out.splitlines())) <= 80


@pytest.mark.parametrize(("dtype", "rung"), [("mxfp8", "mxfp8-o11"), ("mxfp4", "mxfp4"), ("nvfp4", "nvfp4")])
def test_a_block_scaled_format_names_its_kernel(cli: Cli, dtype: str, rung: str) -> None:
    found = json.loads(cli("plan", 4096, 4096, 4096, "--dtype", dtype, "--count", 1, "--json").out)
    assert found == json.loads(cli("plan", 4096, 4096, 4096, "--kernel", rung, "--count", 1, "--json").out)
    assert cli("plan", 64, 64, 64, "--dtype", dtype, "--kernel", rung, "--count", 1).code == 0


@pytest.mark.one_in(3)
@pytest.mark.parametrize("columns", [30, 60, 79, 80, 110])
def test_no_number_is_cut(cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    outcome = cli("plan", 16384, 16384, 16384, "--count", 3)
    first = json.loads(cli("plan", 16384, 16384, 16384, "--count", 3, "--json").out)["configurations"][0]
    assert max(map(len, outcome.out.splitlines())) <= columns
    words = outcome.out.replace(",", "").split()
    for number in (f"{first['l2_bytes'] / 1e6:.0f}", f"{first['hbm_bytes'] / 1e6:.0f}", f"{first['waves']:.2f}"):
        assert number in words


def test_json_has_every_number_with_its_source(cli: Cli) -> None:
    found = json.loads(cli(*ARTICLE, "--json", "--count", 3, "--clock", 1755).out)
    assert found["problem"] == {"m": 4096, "n": 4096, "k": 4096}
    assert (found["kernel"], found["clock_mhz"], found["machine"]["name"]) == ("blackwell/panels", 1755, "b200")
    assert len(found["configurations"]) == 3
    assert found["chosen"] == found["configurations"][0]
    assert found["shipped"]["waves"] == 3.4595
    assert found["shipped"]["wave_efficiency"] == 0.8649
    assert found["gain"] == pytest.approx(found["shipped"]["cycles"] / found["chosen"]["cycles"] - 1, abs=1e-3)
    assert found["explanation"]
    figures = found["machine"]["figures"]
    assert figures.keys() == dict(MACHINES["b200"].figures()).keys()
    assert all(each["source"] and each["status"] in ("documented", "measured", "inferred", "unverified")
               for each in figures.values())  # fmt: skip


def test_the_command_that_it_prints_plans_what_it_chose(cli: Cli) -> None:
    outcome = cli(*ARTICLE)
    words = outcome.out[outcome.out.index("ptxgen run ") :].split()
    given = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
    options = parse_options(dict(each.split("=") for each in given))
    plan = find(words[2]).plan(**options)
    chosen = json.loads(cli(*ARTICLE, "--json").out)["chosen"]
    assert [plan.m_tile, plan.n_tile, plan.k_tile] == chosen["tile"]
    assert plan.shared.bytes == chosen["shared_bytes"]
    assert plan.config.chosen() == chosen["options"]


def test_a_tile_can_be_given(cli: Cli) -> None:
    found = json.loads(cli("plan", 4096, 4096, 4096, "--set", "tile=256x256", "--set", "stages=4", "--json").out)
    assert [(each["tile"][:2], each["stages"]) for each in found["configurations"]] == [([256, 256], 4)]


def test_the_page_is_fresh() -> None:
    page = plan_table.PAGE.read_text()
    assert plan_table.renewed(page) == page, "run `make docs`"
    assert all(part() in page for part in plan_table.PARTS.values())


def test_hopper(cli: Cli) -> None:
    outcome = cli("plan", 4096, 4096, 4096, "--machine", "h200")
    assert outcome.code == 0
    assert "hopper/overlapped" in outcome.out
    assert "256 tiles on 66 CTA pairs make 3.88 waves" in " ".join(outcome.out.split())


def test_sources_are_shown(cli: Cli) -> None:
    said = " ".join(cli(*ARTICLE, "--sources").out.split())
    for name, figure in MACHINES["b200"].figures():
        assert f"{name} {figure}" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("0", "1", "1"), "M must be 1 to 262144, not 0"),
        (("64", "64", "64", "--machine", "h99"), "--machine must be b200, h200 or h100, not 'h99'\n"),
        (("64", "64", "64", "--dtype", "e9"), "dtype must be bf16"),
        (("64", "64", "64", "--set", "foo=1"), "blackwell/panels has no option 'foo'"),
        (("64", "64", "64", "--set", "foo"), "--set takes OPTION=VALUE, not 'foo'"),
        (("64", "64", "64", "--set", "m_tile=192"), "no configuration of blackwell/panels fits"),
        (("64", "64", "64", "--set", "tile=big"), "tile must be M x N"),
        (("64", "64", "64", "--clock", "0"), "the clock must be 100 to 10000 MHz, not 0"),
        (("64", "64", "64", "--clock", "nan"), "the clock must be 100 to 10000 MHz, not nan"),
        (("64", "64", "64", "--count", "0"), "the planner lists 1 configuration or more, not 0"),
        (("64", "64", "x"), "K must be a whole number, not 'x' (see"),
        (("256", "256", "72", "--kernel", "mxfp8-o11"), "K must be a multiple of 32, the block of e4m3 with ue8m0"),
        (("256", "256", "72", "--dtype", "nvfp4"), "K must be a multiple of 16, the block of e2m1 with ue4m3 scales"),
        (("256", "133", "64", "--kernel", "mxfp8-quantizing"), "N must be a multiple of 32, the columns of a scale"),
        (("64", "64", "64", "--dtype", "mxfp8", "--machine", "h200"), "blackwell/mxfp8-overlap64 is for sm_100a"),
        (
            ("64", "64", "64", "--dtype", "mxfp4", "--kernel", "nvfp4"),
            "--dtype mxfp4 takes a kernel such as mxfp4, not nvfp4",
        ),
        (("64", "64"), "missing argument 'K'"),
    ],
)
def test_bad_input_is_one_sentence(cli: Cli, arguments: tuple[str, ...], sentence: str) -> None:
    outcome = cli("plan", *arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith(f"error: {sentence}")
    assert len(outcome.err.splitlines()) == 1
