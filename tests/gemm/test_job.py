"""The GEMM job: inputs, guards, tolerance, and what it says of a wrong result."""

from __future__ import annotations

import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxgen.device import Finding, KernelError, LaunchReport, StaleValue
from ptxgen.emulator import Emulator
from ptxgen.gemm import PlanError, find
from ptxgen.gemm.job import C_ALIGNMENT, GemmJob, run_gemm
from ptxgen.gemm.reference.comparison import describe_pattern, half_ulp, line_list, number_list
from tests.support.fake_device import FakeDevice, deadlock

KERNEL = find("blackwell/swizzled")
SHAPES = [(128, 128, 128), (256, 384, 192), (511, 253, 72), (1, 1, 64)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("dtype", "c_dtype"), [("bf16", "bf16"), ("f16", "f16"), ("bf16", "f32"), ("f16", "f32")])
def test_a_right_result_is_ok(shape: tuple[int, int, int], dtype: str, c_dtype: str) -> None:
    device = FakeDevice()
    result = run_gemm(device, KERNEL.plan(dtype=dtype, c_dtype=c_dtype), *shape, seed=3)
    compared = result.comparison
    assert compared is not None
    assert result.ok
    assert (result.status, result.wrong, result.guards_ok, result.errors) == ("ok", 0, True, [])
    assert compared.elements == shape[0] * shape[1]
    assert compared.pattern == ""
    assert compared.first_wrong is None
    assert 0 < compared.ratio <= 1
    assert 0 <= compared.largest_error <= compared.tolerance
    assert device.c_address % C_ALIGNMENT == 0
    assert min(result.guards.before, result.guards.after) >= 4096
    assert set(result.timings) == {"render", "inputs", "encode", "launch", "compare"}


def test_the_narrow_rounding_comes_near_its_tolerance_but_not_past() -> None:
    """A bound that is far too wide would hide errors: rounding alone must take most of it."""
    for dtype in ("bf16", "f16"):
        result = run_gemm(FakeDevice(), KERNEL.plan(dtype=dtype), 256, 256, 64)
        assert result.comparison is not None
        assert 0.8 < result.comparison.ratio <= 1


def test_half_an_ulp_is_that_of_the_type() -> None:
    # Between 1 and the next number: exactly half the distance, found from the types themselves.
    types: list[tuple[str, Any]] = [("bf16", ml_dtypes.bfloat16), ("f16", np.float16)]
    for name, scalar in types:
        for value in (1.0, 1.99, 2.0, 3.5, 1024.0, 2.0**-10):
            here = scalar(value)
            bits = np.array(here).view(np.uint16)
            down = float(np.array(bits).view(scalar)) if float(here) <= value else float((bits - 1).view(scalar))
            up = float((np.array(down, scalar).view(np.uint16) + np.uint16(1)).view(scalar))
            assert half_ulp(np.array([value]), name)[0] == (up - down) / 2, (name, value)
    assert half_ulp(np.array([0.0, 2.0**-24]), "f16").tolist() == [2.0**-25, 2.0**-25]
    assert half_ulp(np.array([0.0]), "bf16")[0] == 2.0**-134


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_rounding_never_exceeds_half_an_ulp(dtype: str) -> None:
    scalar = ml_dtypes.bfloat16 if dtype == "bf16" else np.float16
    values = (np.random.default_rng(0).standard_normal(100_000) * 50).astype(np.float32).astype(np.float64)
    errors = np.abs(values.astype(scalar).astype(np.float64) - values)
    allowed = half_ulp(np.abs(values), dtype)
    assert (errors <= allowed).all()
    assert (errors / allowed).max() > 0.999


@pytest.mark.parametrize("c_dtype", ["bf16", "f32"])
@pytest.mark.parametrize("factor", [1.5, 1.001])
def test_one_element_past_its_tolerance_is_found(c_dtype: str, factor: float) -> None:
    plan = KERNEL.plan(c_dtype=c_dtype)
    job = GemmJob(plan, 256, 256, 128)
    a, b = (each.astype(np.float64) for each in job.reference.inputs)
    expected = a @ b.T
    allowed = job.reference.tolerances(expected, job.problem.k * 2.0**-23 * (np.abs(a) @ np.abs(b).T))

    exact = np.array(expected, dtype=np.float32).astype(np.float64)
    result = job.compare(exact)
    assert result.wrong == 0
    exact[200, 130] = expected[200, 130] + allowed[200, 130] * factor
    result = job.compare(exact)
    assert result.wrong == 1
    assert result.first_wrong is not None
    assert (result.first_wrong.row, result.first_wrong.column) == (200, 130)
    assert result.ratio == pytest.approx(factor)
    assert result.pattern == "all wrong elements are in row 72 and column 2 of 1 of 4 tiles (row, column): (1, 1)"
    exact[200, 130] = expected[200, 130] + allowed[200, 130] * 0.999
    assert job.compare(exact).wrong == 0


def test_large_problems_are_compared_in_blocks() -> None:
    def change(c: np.ndarray) -> None:
        c[1030, 5] += 100
        c[1029, 1500] += 1000

    result = run_gemm(FakeDevice(change), KERNEL.plan(), 1100, 1600, 8)
    compared = result.comparison
    assert compared is not None
    assert compared.wrong == 2
    assert compared.first_wrong is not None
    assert (compared.first_wrong.row, compared.first_wrong.column) == (1029, 1500)
    assert compared.largest_at == (1029, 1500)


def test_a_wrong_result_names_the_lines_that_make_it() -> None:
    def change(c: np.ndarray) -> None:
        c[:, 0:32] += 7

    result = run_gemm(FakeDevice(change), KERNEL.plan(n_tile=64), 128, 64, 64)
    assert not result.ok
    assert result.status == "wrong"
    assert result.wrong == 128 * 32
    [diagnosis] = result.errors
    text = result.kernel.text.splitlines()
    assert [text[line - 1].split(".")[1] for line in result.mma_lines] == ["mma"] * 4
    assert result.store_lines
    assert all("st.global" in text[line - 1] for line in result.store_lines)
    assert len(result.store_lines) == sum("st.global" in line for line in text)
    assert diagnosis.lines == (*result.mma_lines, *result.store_lines)
    assert "4096 of 8192 elements of C are wrong; the first: C[0, 0] is" in diagnosis.message
    assert "all wrong elements are in columns 0-31 of the only tile;" in diagnosis.message
    assert f"the accumulators are made by {line_list(result.mma_lines)}" in diagnosis.message
    assert diagnosis.message in result.summary()


def test_elements_never_stored_are_told_from_wrong_ones() -> None:
    def keep(shape: tuple[int, int]) -> np.ndarray:
        mask = np.zeros(shape, bool)
        mask[3, 4] = mask[200, 100] = True
        return mask

    result = run_gemm(FakeDevice(keep=keep), KERNEL.plan(dtype="bf16"), 256, 128, 64)
    assert result.comparison is not None
    assert (result.wrong, result.comparison.unwritten) == (2, 2)
    assert "2 of 32768 elements of C are wrong, none of them ever stored (they hold the poison)" in result.summary()


def test_a_right_value_that_looks_like_the_poison_is_right() -> None:
    # 0xCDCD is -23.2 in f16, which a product of 512 terms takes now and then.
    job = GemmJob(KERNEL.plan(dtype="f16"), 256, 256, 512)
    a, b = (each.astype(np.float64) for each in job.reference.inputs)
    c = (a @ b.T).astype(np.float16)
    assert (c.view(np.uint16) == 0xCDCD).any()
    assert job.compare(c).wrong == 0


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_are_wrong(value: float) -> None:
    def change(c: np.ndarray) -> None:
        c[10, 20] = value

    result = run_gemm(FakeDevice(change), KERNEL.plan(), 128, 128, 64)
    assert result.comparison is not None
    assert (result.wrong, result.comparison.ratio, result.comparison.largest_at) == (1, np.inf, (10, 20))


@pytest.mark.parametrize(
    ("offset", "at_end", "words"),
    [
        (-1, False, "1 bytes changed before its start, the nearest 1 bytes off"),
        (0, True, "1 bytes changed past its end, the nearest 1 bytes off"),
        (4095, True, "1 bytes changed past its end, the nearest 4096 bytes off"),
        (-4096, False, "1 bytes changed before its start, the nearest 4096 bytes off"),
    ],
)
def test_a_byte_written_outside_c_is_found(offset: int, at_end: bool, words: str) -> None:
    def change(memory: bytearray, start: int, end: int) -> None:
        memory[(end if at_end else start) + offset] = 0

    result = run_gemm(FakeDevice(change_memory=change), KERNEL.plan(), 128, 128, 64)
    assert not result.ok
    assert result.wrong == 0
    assert not result.guards_ok
    [diagnosis] = result.errors
    assert words in diagnosis.message
    assert diagnosis.lines == result.store_lines


def test_a_whole_row_of_tiles_past_the_end_is_guarded() -> None:
    result = run_gemm(FakeDevice(), KERNEL.plan(), 100, 512, 64)
    assert result.guards.after >= 128 * 512 * 2


def test_a_deadlock_is_not_compared_and_names_its_line() -> None:
    result = run_gemm(deadlock(), KERNEL.plan(), 128, 128, 64)
    assert not result.ok
    assert (result.status, result.wrong, result.comparison) == ("deadlock", None, None)
    [diagnosis] = result.errors
    assert diagnosis.lines == (91,)
    assert result.summary().splitlines()[1] == (
        "line 91: error: [deadlock] 4 warps wait for a phase that nothing completes"
    )


def test_a_status_without_findings_still_gives_a_diagnosis() -> None:
    result = run_gemm(FakeDevice(report=LaunchReport("incomplete")), KERNEL.plan(), 128, 128, 64)
    assert [each.message for each in result.errors] == [
        "the launch ended as incomplete, and the device does not say where"
    ]


def test_advice_leaves_a_right_result_ok_and_is_told_with_a_wrong_one() -> None:
    def change(c: np.ndarray) -> None:
        c[0, 0] += 100

    advice = Finding("slow", "advice", "this is slow", 12, "mov.u32")
    right = run_gemm(FakeDevice(report=LaunchReport("ok", [advice])), KERNEL.plan(), 128, 128, 64)
    wrong = run_gemm(FakeDevice(change, report=LaunchReport("ok", [advice])), KERNEL.plan(), 128, 128, 64)
    assert right.ok
    assert right.errors == []
    assert not wrong.ok
    for result in (right, wrong):
        assert "line 12: advice: [slow] this is slow" in result.summary()


def test_stale_values_are_told_with_a_wrong_result() -> None:
    def change(c: np.ndarray) -> None:
        c[0, 0] += 100

    report = LaunchReport("ok", stale_values=[StaleValue(20, 12, 3)])
    wrong = run_gemm(FakeDevice(change, report=report), KERNEL.plan(), 128, 128, 64)
    (told,) = wrong.advice
    assert told.lines == (20,)
    assert "line 20 found what was there before the store of line 12" in told.message
    assert told.message in wrong.summary()
    assert run_gemm(FakeDevice(report=report), KERNEL.plan(), 128, 128, 64).advice == []


def test_a_diagnosis_names_the_source() -> None:
    finding = Finding("race", "error", "a race", 40, "ld.shared.b32", "tile.cu:7:3")
    result = run_gemm(FakeDevice(report=LaunchReport("findings", [finding])), KERNEL.plan(), 128, 128, 64)
    assert result.errors[0].message == "[race] a race (tile.cu:7:3)"


def test_findings_leave_the_result_wrong_although_c_is_right() -> None:
    finding = Finding("race", "error", "a race", 40, "ld.shared.b32")
    result = run_gemm(FakeDevice(report=LaunchReport("findings", [finding])), KERNEL.plan(), 128, 128, 64)
    assert not result.ok
    assert (result.status, result.wrong) == ("findings", 0)


def test_the_seed_decides_the_inputs() -> None:
    plan = KERNEL.plan()
    first, again, other = (GemmJob(plan, 64, 32, 16, seed).reference.inputs for seed in (1, 1, 2))
    assert all((x == y).all() for x, y in zip(first, again, strict=True))
    assert (first[0] != other[0]).any()
    assert first[0].dtype == ml_dtypes.bfloat16
    assert [each.shape for each in first] == [(64, 16), (32, 16)]


def test_an_edited_text_runs_in_the_kernels_place() -> None:
    plan = KERNEL.plan()
    edited = "// edited\n" + plan.text
    result = run_gemm(FakeDevice(), plan, 128, 128, 64, text=edited)
    assert result.kernel.text == edited
    assert result.mma_lines[0] == GemmJob(plan, 128, 128, 64).run(FakeDevice()).mma_lines[0] + 1
    with pytest.raises(KernelError, match="needs one entry"):
        run_gemm(FakeDevice(), plan, 128, 128, 64, text=".version 8.6\n.target sm_100a\n")


@pytest.mark.parametrize(("shape", "words"), [((128, 2**31 - 1, 64), "at most 65535"), ((0, 1, 8), "M must be 1 to")])
def test_a_problem_that_does_not_fit_is_refused_at_once(shape: tuple[int, int, int], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        GemmJob(KERNEL.plan(), *shape)


def test_patterns() -> None:
    def pattern(*places: tuple[slice | int, slice | int], shape: tuple[int, int] = (256, 256)) -> str:
        wrong = np.zeros(shape, bool)
        for place in places:
            wrong[place] = True
        return describe_pattern(wrong, 128, 64)

    everything = slice(None)
    assert pattern((everything, everything)) == "every element is wrong"
    assert pattern((slice(0, 128), slice(64, 128))) == "they are all elements of 1 of 8 tiles (row, column): (0, 1)"
    columns = [(everything, slice(start, start + 32)) for start in range(0, 256, 64)]
    assert pattern(*columns) == "all wrong elements are in columns 0-31 of each tile"
    assert pattern((slice(32, 64), everything), (slice(160, 192), everything)) == (
        "all wrong elements are in rows 32-63 of each tile"
    )
    assert pattern((everything, slice(0, None, 8))) == (
        "all wrong elements are in columns 0, 8, ..., 56 (every 8th) of each tile"
    )
    assert pattern((5, 200)) == "all wrong elements are in row 5 and column 8 of 1 of 8 tiles (row, column): (0, 3)"
    diagonal = np.eye(128, dtype=bool)
    assert describe_pattern(diagonal, 128, 128) == (
        "the wrong elements are spread over all rows and columns of the only tile (0.78 % of the elements there)"
    )
    assert describe_pattern(~diagonal, 128, 128) == (
        "the wrong elements are spread over all rows and columns of the only tile (all there but 128)"
    )
    # The last tile is narrower than the others: its columns are all of it.
    assert pattern((slice(128, 256), everything), shape=(256, 100)) == (
        "they are all elements of the tiles in tile row 1 of 2"
    )


def test_number_lists() -> None:
    assert number_list([7]) == "7"
    assert number_list([0, 1, 2, 5]) == "0-2, 5"
    assert number_list(list(range(0, 32, 2))) == "0, 2, ..., 30 (every 2nd)"
    assert number_list([0, 2, 5, 9, 11, 15, 16, 30]) == "0, 2, 5, 9, 11, ... 30 (8 in all)"
    assert line_list(()) == "no line"
    assert line_list((9,)) == "line 9"
    assert line_list((9, 3)) == "lines 3, 9"


def test_a_result_travels_between_processes() -> None:
    """With its findings, lines and regions, without what devices made of the kernel."""
    plan = KERNEL.plan()
    text = plan.text.replace("], 32768;", "], 16384;")
    assert text != plan.text
    result = run_gemm(Emulator("sm_100a"), plan, 128, 128, 128, text=text)
    assert not result.ok
    again = pickle.loads(pickle.dumps(result))
    assert again.summary() == result.summary()
    assert again.mma_lines == result.mma_lines
    assert again.kernel == result.kernel
    assert again.launch.findings == result.launch.findings


@pytest.mark.parametrize("dtype", ["u8", "s8"])
def test_sums_that_overflow_c_are_infinite(dtype: str) -> None:
    """u8 by u8 exceeds 65504 everywhere with a K of 300, s8 by s8 in some places."""
    plan = find("blackwell/swizzled").plan(dtype=dtype, c_dtype="f16", n_tile=64)
    result = run_gemm(Emulator("sm_100a"), plan, 130, 70, 300)
    assert result.ok, result.summary()
    job = GemmJob(plan, 130, 70, 300)
    expected, allowed = job.reference.rounded(np.array([65519.0, 65520.0, -7e4]), np.array([0.0, 0.0, 0.0]))
    assert list(expected) == [65519.0, np.inf, -np.inf]
    assert list(allowed) == [16.0, 0.0, 0.0]
    _, allowed = job.reference.rounded(np.array([65519.0]), np.array([2.0]))
    assert allowed[0] == np.inf, "its sum may be on either side of what rounds to infinity"
