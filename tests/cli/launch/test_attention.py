"""`ptxgen run`, `build`, `sass`, `time`, `audit` and `kernels` with attention kernels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ptxgen.attention import find
from tests.cli.conftest import Cli

NAME = "hopper/attention"
SMALL = ["--queries", "40", "--keys", "70", "--heads", "2", "--kv-heads", "1", "--head-size", "64"]


def test_run_reports_plan_and_verdict(cli: Cli) -> None:
    outcome = cli("run", "attention-5", *SMALL, "--causal", "--set", "lse=true", "--schedules", "3")
    assert outcome.code == 0, outcome.err
    words = " ".join(outcome.out.split())
    assert "queries 40, keys 70, heads 2, kv_heads 1, batches 1, head size 64; bf16 in, bf16 out" in words
    assert "k: 2 stages; full: 1 arrival and 16384 bytes; empty: 12 arrivals" in words
    assert "schedules: eager, late, random 0 correct" in words
    assert words.endswith("✓ correct")


def test_run_as_json_writes_outputs(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "o.npy"
    outcome = cli("run", NAME, *SMALL, "--layout", "bshd", "--batches", "2", "--out", f"o={path}", "--json")
    assert outcome.code == 0, outcome.err
    made = json.loads(outcome.out)
    assert made["problem"] == {
        "queries": 40, "keys": 70, "heads": 2, "kv_heads": 1, "batches": 2, "layout": "bshd", "seed": 0,
    }  # fmt: skip
    assert made["config"]["value_size"] == 64
    assert made["ok"]
    assert made["findings"] == []
    assert made["ptxas"]["spill_stores"] == 0
    assert np.load(path).shape == (2, 40, 2, 64)


def test_an_edited_kernel_runs_as_its_own(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    assert cli("build", NAME, "--set", "head_size=64", "-o", path).code == 0
    text = path.read_text()
    assert text == find(NAME).plan(head_size=64).text
    assert cli("run", path, "--queries", "10", "--keys", "20").code == 0
    path.write_text(text.replace("add.f32 %f_sum0, %f_sum0, %f_other_sum0;", "", 1))
    outcome = cli("run", path, "--queries", "10", "--keys", "20")
    assert outcome.code == 1
    assert "elements of o are wrong; the first: o[0, 0, 0, 0]" in outcome.out


def test_a_variant_in_a_folder(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    assert cli("kernels", NAME, "--copy", folder).code == 0
    assert cli("run", f"{folder}#mine", "--queries", "1", "--keys", "1", "--head-size", "64").code == 0


def test_other_commands(cli: Cli) -> None:
    assert "head_size" in json.loads(cli("kernels", NAME, "--json").out)["options"]
    assert "HGMMA" in cli("sass", f"{NAME}[head_size=64]").out
    assert cli("sass", "diff", f"{NAME}[head_size=64]", f"{NAME}[head_size=64,lse=true]").code == 1
    made = json.loads(cli("time", NAME, "--queries", "256", "--heads", "4", "--head-size", "64", "--json").out)
    assert made["cycles"] > 0
    assert made["tflops"] > 0
    # With tensormaps alone, and no array, among the arguments.
    assert cli("time", "blackwell/attention", "--queries", "256", "--head-size", "64").code == 0
    assert cli("audit", NAME, *SMALL, "--time", "1", "--jobs", "0").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--queries", "0"], "queries must be 1 to 1073741824, not 0"),
        (["--heads", "6", "--kv-heads", "4"], "kv_heads must divide the 6 heads of Q, not 4"),
        (["--kv-heads", "0"], "--kv-heads must be 1 or more, not 0"),
        (["--head-size", "100"], "head_size must be 64, 128, 192 or 256, not 100"),
        (["--set", "query_tile=192", "--set", "key_tile=128"], "a consumer needs 160 registers for its accumulator (64 "
         "output + 64 scores + 32 exponentials) and 26 more, 186; of 512 threads each has 160"),
        (["--set", "stages=6"], "the kernel needs 319720 bytes of shared memory (q 49152 + k 6 x 20480 + v 6 x 20480 + "
         "c 24576 + q_full 8 + q_empty 8 + k_full 6 x 8 + k_empty 6 x 8 + v_full 6 x 8 + v_empty 6 x 8 + "
         "turn_full 3 x 8); a CTA on sm_90a has 232448"),
        (["--set", "stages=1"], "overlap takes two stages or more: the next block of keys is read before this one's "
         "values are"),
        (["--set", "value_size=64", "--set", "chunk=128"], "chunk must divide the 64 columns of O, not 128"),
        (["--set", "o_dtype=f32"], "the TMA epilogue of wgmma stores 16-bit types by stmatrix, not f32; take direct"),
        (["--set", "query_tile=64", "--set", "consumers=pingpong"], "pingpong takes two or three warpgroups: "
         "query_tile must be 128 or 192"),
        (["--m", "64"], "--m is for GEMM kernels; hopper/attention is an "
         "attention kernel (--queries, --keys, --heads, --set)"),
        (["--groups", "2"], "--groups is for GEMM kernels; hopper/attention is an "
         "attention kernel (--queries, --keys, --heads, --set)"),
        (["--alpha", "2"], "--alpha is for GEMM kernels; hopper/attention is an "
         "attention kernel (--queries, --keys, --heads, --set)"),
        (["--grid", "3"], "--grid is for files of your own; hopper/attention is an "
         "attention kernel (--queries, --keys, --heads, --set)"),
        (["--layout", "x"], "layout must be bhsd or bshd, not 'x'"),
    ],
)  # fmt: skip
def test_bad_input_in_one_sentence(cli: Cli, arguments: list[str], message: str) -> None:
    outcome = cli("run", NAME, *arguments)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"error: {message}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "hopper/ring", "--causal"], "--causal is for attention kernels; hopper/ring is a GEMM kernel (--m, "
         "--n, --k, --set)"),
        (["time", "hopper/ring", "--keys", "9"], "--keys is for attention kernels; hopper/ring is a GEMM kernel (--m, "
         "--n, --k, --set)"),
        (["sweep", NAME], "hopper/attention computes attention; this command takes GEMM kernels"),
        (["run", "hopper/attentino"], "there is no kernel 'hopper/attentino'; did you mean hopper/attention or "
         "hopper/attention-serial? ('ptxgen kernels' lists all)"),
    ],
)  # fmt: skip
def test_the_other_kind_of_kernel(cli: Cli, arguments: list[str], message: str) -> None:
    outcome = cli(*arguments)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"error: {message}\n")
