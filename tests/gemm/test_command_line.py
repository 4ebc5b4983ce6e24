"""Kernels on the command line: what is shown, and each bad input ends as one sentence with nothing launched."""

from __future__ import annotations

import json

import pytest

import ptxgen
from ptxgen.cli.errors import BAD_INPUT, OK
from ptxgen.cli.main import execute

RUN_CLC = ("run", "blackwell/clc")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "blackwell/clk"), "there is no kernel 'blackwell/clk'; did you mean blackwell/clc or"),
        (("run", "modular-k10"), "there is no kernel 'modular-k10'; did you mean modular-k1"),
        ((*RUN_CLC, "--whole-range"), "only block-scaled kernels take elements and scales over their whole range"),
        (("run", "rowsum.py", "--whole-range"), "--whole-range is for GEMM kernels; rowsum.py is a file of your own"),
        ((*RUN_CLC, "--set", "stage=3"), "blackwell/clc has no option 'stage'; did you mean stages"),
        (("run", "blackwell/pair", "--set", "m_tile=64"), "the M tile must be 256 (tcgen05.mma with cta_group::2)"),
        ((*RUN_CLC, "--set", "tile=256x100"), "n_tile must be 16 to 256 in steps of 16, not 100"),
        ((*RUN_CLC, "--set", "stages=12"), "needs 409892 bytes of shared memory (a 12 x 16384 + b 12 x 16384 +"),
        ((*RUN_CLC, "--set", "accumulators=3"), "need 1024 TMEM columns (3 x 256, allocated as a power of two)"),
        (("run", "hopper/specialized", "--set", "tile=256x256", "--set", "stages=2"),
         "128 registers for its accumulator and 26 more, 154; of 640 threads each has 112"),
        (("run", "blackwell/pair", "--set", "cluster_m=1"), "cluster_m must be even, not 1"),
        (("run", "hopper/persistent", "--set", "slots=1"), "slots must be at least 2, the CTAs of a cluster, not 1"),
        ((*RUN_CLC, "--k", "100", "--lda", "100"), "lda must be a multiple of 8 (lines of A must start on 16 bytes)"),
        ((*RUN_CLC, "--ldc", "8"), "ldc must be at least 512, the length of a line of C, not 8"),
        ((*RUN_CLC, "--m", "0"), "M must be 1 to 2147483647, not 0"),
        ((*RUN_CLC, "--batches", "2"), "2 batches take a kernel with batched=true"),
        ((*RUN_CLC, "--set", "alpha=yes"), "alpha must be true or false, not 'yes'"),
        ((*RUN_CLC, "--set", "source=e4m3"), "source must be empty, bf16, f16, f32 or s32, not e4m3"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_input_is_one_sentence(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ptxgen.Emulator, "launch", lambda *_, **__: pytest.fail("launched"))
    assert execute(arguments) == BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert words in err
    assert err.count("\n") == 1


JOB = """
import numpy as np
from ptxgen import Job
from ptxgen.gemm import find
problem = find("blackwell/swizzled").plan().problem(128, 128, 64)

def arguments(arrays):
    return problem.arguments(arrays["a"], arrays["b"], arrays["c"])

job = Job(
    ptx=problem.plan.text, inputs={"a": np.zeros((128, 64), np.TYPE), "b": np.zeros((128, SIZE), np.uint16)},
    outputs={"c": ((128, 128), np.uint16)}, arguments=arguments, grid=GRID, block=128, cluster=(2, 1, 1),
    shared_bytes=problem.plan.shared.bytes, reference=lambda inputs: {"c": np.zeros((128, 128))},
)
"""


@pytest.mark.parametrize(
    ("dtype", "size", "grid", "words"),
    [
        ("float32", 64, 2,
         "A is 128×64 bf16, 16384 bytes, but the array of shape (128, 64) and type float32 has 32768"),
        ("uint16", 32, 2, "B is 128×64 bf16, 16384 bytes, but the array of shape (128, 32) and type uint16 has 8192"),
        ("uint16", 64, 3,
         "every grid dimension must be a multiple of the cluster's: grid (3, 1, 1), cluster (2, 1, 1)"),
    ],
)  # fmt: skip
def test_a_job_whose_arrays_or_grid_do_not_fit(
    dtype: str, size: int, grid: int, words: str, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"{tmp_path}/job.py"
    with open(path, "w") as file:
        file.write(JOB.replace("TYPE", dtype).replace("SIZE", str(size)).replace("GRID", str(grid)))
    assert execute(["run", path]) == BAD_INPUT
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"error: {words}\n")


def test_a_run_over_the_whole_range_compares_nan(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "mxfp8-quantizing", "--m", "70", "--n", "96", "--k", "64", "--whole-range", "--json"]
    assert execute(arguments) == OK
    assert json.loads(capsys.readouterr().out)["status"] == "ok"


def test_a_run_with_options_says_what_it_computes(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["alpha=true", "source=bf16", "bias=f32", "activation=gelu", "batched=true", "n_tile=32"]
    sizes = ["--m", "40", "--n", "45", "--k", "64", "--batches", "2", "--alpha", "0.5", "--beta", "1.5"]
    arguments = ["run", "blackwell/swizzled", *sizes]
    for setting in settings:
        arguments += ["--set", setting]
    assert execute(arguments) == OK
    out = " ".join(capsys.readouterr().out.split())
    assert (
        "C = gelu(alpha·A·Bᵀ + beta·source + bias) with M 40, N 45, K 64, batches 2, alpha 0.5, beta 1.5; bf16 in"
        in out
    )
    assert "grid 1×2×2 = 4 CTAs of 128 threads" in out
    assert execute([*arguments, "--json"]) == OK
    problem = json.loads(capsys.readouterr().out)["problem"]
    assert problem == {"m": 40, "n": 45, "k": 64, "batches": 2, "alpha": 0.5, "beta": 1.5, "seed": 0}


def test_a_kernel_shows_its_options_and_what_it_adds(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["kernels", "modular-k8"]) == OK
    out = " ".join(capsys.readouterr().out.split())
    for words in (
        "adds scheduler=clc, accumulators=2, clc_stages=2",
        "stages 6 1..24 K blocks",
        "alpha false false|true scale A·Bᵀ by alpha",
        "activation none none|relu|gelu|silu",
    ):
        assert words in out
