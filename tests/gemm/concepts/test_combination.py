"""alpha, beta, bias, activations and batches: every rung that takes them, against float64 and the stated tolerance."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxgen
from ptxgen import assemble, check
from ptxgen.gemm import PlanError, find, kernels
from ptxgen.gemm.job import GemmJob, run_gemm
from ptxgen.gemm.reference.plain import _STEEPEST, _activated

FULL: dict[str, Any] = {"alpha": True, "source": "bf16", "bias": "f32", "activation": "gelu"}
TAKES = [name for name, entry in kernels().items() if "source" in entry.options]
SCHEDULES = [("eager", 0), ("late", 0), ("random", 1), ("random", 2)]


def run(name: str, shape: tuple[int, int, int], schedule: Any, seed: int, more: dict[str, Any], **choices: Any) -> None:
    plan = find(name).plan(**choices)
    device = ptxgen.Emulator(plan.target, schedule, seed=seed, multiprocessors=8)
    result = run_gemm(device, plan, *shape, seed=seed, **more)
    assert result.ok, result.summary()
    assert result.launch.findings == [], result.summary()


#: What each reaches of the block: rows and fragments, 16 and 32 bits, wide loads and tails, integers, NaN in a source.
CASES: list[tuple[str, tuple[int, int, int], dict[str, Any], dict[str, Any]]] = [
    ("blackwell/swizzled", (40, 49, 72), {**FULL, "n_tile": 64}, {}),  # one column in the last chunk
    ("blackwell/core-matrices", (20, 64, 64), {**FULL, "source": "f32", "bias": "bf16", "activation": "silu"}, {}),
    ("blackwell/tma-store", (40, 45, 72), {**FULL, "source": "f16", "activation": "relu", "n_tile": 48}, {}),
    ("blackwell/tma-store", (40, 45, 64),
     {**FULL, "tmem_load": "32x32b", "c_dtype": "f32", "m_tile": 64, "n_tile": 48}, {}),
    ("blackwell/swizzled", (40, 45, 64),
     {"dtype": "s8", "alpha": True, "source": "s32", "bias": "s32", "activation": "relu", "n_tile": 48}, {}),
    ("blackwell/swizzled", (40, 45, 64), {"dtype": "s8", "c_dtype": "bf16", **FULL, "n_tile": 48}, {"alpha": 0.001}),
    ("blackwell/core-matrices", (40, 45, 64), {"dtype": "u8", "c_dtype": "f32"}, {}),
    ("blackwell/tma-store", (40, 45, 64), {"dtype": "s8", "c_dtype": "bf16", "alpha": True, "n_tile": 48}, {}),
    ("hopper/overlapped", (70, 45, 64),
     {"dtype": "s8", "c_dtype": "bf16", "alpha": True, "bias": "bf16", "n_tile": 32}, {"alpha": 0.001}),
    ("blackwell/naive", (40, 45, 72), FULL, {}),
    ("blackwell/naive", (40, 45, 72),
     {**FULL, "source": "f32", "bias": "f16", "activation": "relu", "batched": True, "a_major": "mn"}, {"batches": 2}),
    ("blackwell/clc", (140, 40, 64),
     {**FULL, "n_tile": 32, "batched": True, "stages": 2}, {"batches": 2, "ldsource": 43}),
    ("hopper/wgmma", (70, 45, 64), {"source": "f32", "bias": "f16", "n_tile": 48}, {"beta": 1.5}),
    ("hopper/overlapped", (130, 40, 72), {**FULL, "n_tile": 32, "slots": 2, "batched": True}, {"batches": 2}),
]  # fmt: skip


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("schedule", "seed"), SCHEDULES)
@pytest.mark.parametrize(("name", "shape", "choices", "more"), CASES, ids=str)
def test_an_epilogue_with_options_is_right(
    name: str, shape: tuple[int, int, int], choices: dict[str, Any], more: dict[str, Any], schedule: str, seed: int
) -> None:
    run(name, shape, schedule, seed, more, **choices)


@pytest.mark.parametrize("name", ["blackwell/naive", "blackwell/tilus-copies"])
def test_batches(name: str) -> None:
    run(name, (40, 45, 72), "late", 0, {"batches": 3}, batched=True)


@pytest.mark.parametrize("name", TAKES)
def test_with_all_options_the_ptx_is_small_and_clean(name: str) -> None:
    text = find(name).plan(**FULL, batched=True).text
    assert len(text.encode()) < 60_000
    assert check(text) == []
    cubin = assemble(text)
    assert (cubin.spill_stores, cubin.spill_loads, cubin.warnings) == (0, 0, [])


def test_a_source_is_not_read_where_beta_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    from ptxgen.gemm.reference.plain import Reference

    lines = Reference.lines

    def poisoned(self: Reference, which: Any) -> np.ndarray:
        made = lines(self, which)
        return np.full_like(made, np.nan) if which == "source" else made

    monkeypatch.setattr(Reference, "lines", poisoned)
    run("blackwell/swizzled", (40, 45, 64), "eager", 0, {"beta": 0}, source="bf16", n_tile=48)
    with pytest.raises(AssertionError, match="elements of C are wrong"):
        run("blackwell/swizzled", (40, 45, 64), "eager", 0, {"beta": 1}, source="bf16", n_tile=48)


#: A line of the PTX that an option adds, and what a kernel without it does instead.
DROPPED = [
    ("mul.f32 %r_value3, %r_value3, %r_alpha;", ""),
    ("fma.rn.f32 %r_value3, %r_beta, %r_source3, %r_value3;", ""),
    ("add.f32 %r_value3, %r_value3, %r_bias3;", ""),
    ("tanh.approx.f32 %f_tanh3, %f_tanh3;", ""),
    ("0f3d122279", "0f3d022279"),
    ("setp.lt.u32 %p_bias, %r_bias_at, %r_n;", "setp.ge.u32 %p_bias, %r_bias_at, %r_n;"),
]


@pytest.mark.parametrize(("line", "other"), DROPPED, ids=str)
def test_a_dropped_part_of_the_epilogue_is_found(line: str, other: str) -> None:
    plan = find("blackwell/swizzled").plan(**{**FULL, "source": "f32"}, n_tile=48, c_dtype="f32")
    assert line in plan.text
    result = run_gemm(ptxgen.Emulator("sm_100a"), plan, 40, 45, 64, text=plan.text.replace(line, other))
    assert not result.ok


def test_the_reference_is_that_of_the_definitions() -> None:
    from math import erf

    x = np.linspace(-6, 6, 10001)
    zero = np.zeros_like(x)
    silu, gelu = (_activated(name, x, zero)[0] for name in ("silu", "gelu"))
    assert np.allclose(silu, x / (1 + np.exp(-x)), rtol=1e-12, atol=1e-15)
    exact = np.array([value / 2 * (1 + erf(value / np.sqrt(2))) for value in x])
    assert np.abs(gelu - exact).max() < 5e-4  # the tanh form is an approximation of its own
    for name, made in (("silu", silu), ("gelu", gelu)):
        steepest = np.abs(np.diff(made) / np.diff(x)).max()
        assert 0.97 * _STEEPEST[name] < steepest <= _STEEPEST[name]


def test_one_element_past_its_tolerance_is_found() -> None:
    job = GemmJob(find("blackwell/swizzled").plan(**FULL, c_dtype="f32", batched=True), 40, 45, 64, more={"batches": 2})
    exact, allowed = job.reference.expect(slice(None), slice(None), 1)
    c = np.concatenate([job.reference.expect(slice(None), slice(None), 0)[0], exact])
    assert job.compare(c).wrong == 0
    c[43, 7] += 1.01 * allowed[3, 7]
    result = job.compare(c)
    assert result.wrong == 1
    assert result.elements == 2 * 40 * 45
    assert result.pattern.startswith("in batch 1, the first of 1 of 2 that are wrong: ")


def test_inputs_of_the_job() -> None:
    job = GemmJob(find("blackwell/swizzled").plan(**FULL), 40, 45, 64)
    source, bias = job.reference.source, job.reference.bias
    assert source is not None
    assert bias is not None
    assert (source.shape, source.dtype) == ((1, 40, 45), ml_dtypes.bfloat16)
    assert (bias.shape, bias.dtype) == ((45,), np.float32)
    assert (job.problem.alpha, job.problem.beta) == (3, -2)


@pytest.mark.parametrize(
    ("choices", "more", "words"),
    [
        ({"source": "s32"}, {}, "the sums are f32; source cannot be s32"),
        ({"dtype": "s8", "bias": "f32"}, {}, "C is s32, and so are alpha, beta and all sums; bias cannot be f32"),
        ({"dtype": "s8", "activation": "gelu"}, {}, "C is s32.*; activation must be none or relu, not gelu"),
        ({"activation": "tanh"}, {}, "activation must be none, relu, gelu or silu, not tanh"),
        ({"alpha": 2}, {}, "alpha must be false or true, not 2"),
        ({}, {"batches": 2}, "2 batches take a kernel with batched=true"),
        ({"batched": True}, {"batches": 0}, "the number of batches must be 1 to 2147483647, not 0"),
        ({"batched": True}, {"batches": 65536}, "a grid has at most 65535 in z"),
        ({"source": "f32"}, {"ldsource": 8}, "ldsource must be at least 45, the length of a line of the source, not 8"),
        ({"dtype": "s8", "alpha": True}, {"alpha": 0.5}, "alpha must be a whole number of 32 bits"),
    ],
)  # fmt: skip
def test_what_has_no_plan(choices: dict[str, Any], more: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        GemmJob(find("blackwell/swizzled").plan(**choices), 40, 45, 64, more=more)


def test_arrays_of_another_size_are_refused() -> None:
    device = ptxgen.Emulator()
    problem = find("blackwell/swizzled").plan(**FULL).problem(32, 16, 64)
    a, b, c, source = (device.empty(shape, np.uint16) for shape in ((32, 64), (16, 64), (32, 16), (32, 16)))
    bias = device.empty(16, np.float32)
    assert len(problem.arguments(a, b, c, source, bias)) == len(problem.plan.parameters)
    for wrong, words in (
        ((c, bias, None), "the kernel takes a bias, but none is given"),
        ((a, bias), "the source is 32×16 bf16, 1024 bytes, but .* has 4096"),
        ((source, source), "the bias is 16 f32, 64 bytes, but .* has 1024"),
    ):
        with pytest.raises(PlanError, match=words):
            problem.arguments(a, b, c, wrong[0], wrong[1] if len(wrong) == 2 else None)
