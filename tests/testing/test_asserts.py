"""The asserts of `ptxgen.testing`, and what their failures say."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ptxgen import Emulator
from ptxgen.descriptors import InstructionDescriptor, SmemDescriptor, TensorMap
from ptxgen.device import Finding, LaunchFailedError, LaunchReport
from ptxgen.testing import assert_allclose, assert_ok, assert_same_descriptor, assert_same_sass

ADVICE = Finding("bank-conflict", "advice", "slow", line=3)
RACE = Finding("shared-race", "error", "a race", line=4)


def test_a_launch_that_is_not_ok() -> None:
    assert_ok(LaunchReport("ok", [ADVICE]))
    for report, advice in ((LaunchReport("findings", [RACE]), False), (LaunchReport("ok", [ADVICE]), True)):
        with pytest.raises(AssertionError) as caught:
            assert_ok(report, advice=advice)
        assert str(caught.value) == report.summary()


def test_fail_on_of_a_project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.ptxgen]\nfail-on = "never"\n')
    assert_ok(LaunchReport("findings", [RACE]))
    with pytest.raises(AssertionError):
        assert_ok(LaunchReport("findings", [RACE]), advice=False)
    with pytest.raises(AssertionError):
        assert_ok(LaunchReport("deadlock"))


def test_raise_for_status() -> None:
    good = LaunchReport("ok", [ADVICE])
    assert good.raise_for_status() is good
    with pytest.raises(LaunchFailedError, match=r"advice \[bank-conflict\] slow"):
        good.raise_for_status(advice=True)
    with pytest.raises(LaunchFailedError) as caught:
        LaunchReport("deadlock", kernel="k").raise_for_status()
    assert caught.value.report.status == "deadlock"
    assert str(caught.value) == "k: deadlock (0.000 ms)"


def test_a_report_prints_its_summary() -> None:
    report = LaunchReport("findings", [RACE], kernel="k")
    assert repr(report) == f"<LaunchReport {report.summary()}>"


def test_equal_arrays() -> None:
    exact = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    assert_allclose(exact, exact)
    assert_allclose(exact.astype(ml_dtypes.bfloat16), exact)
    assert_allclose(np.array([np.nan, np.inf]), [np.nan, np.inf])
    device = Emulator()
    assert_allclose(device.array(exact), exact + np.float32(1e-6))
    with pytest.raises(AssertionError):
        assert_allclose(exact, exact + np.float32(1e-3))
    assert_allclose(exact, exact + np.float32(1e-3), atol=1e-2)
    with pytest.raises(AssertionError):  # with one tolerance given, the other is 0
        assert_allclose(np.float32(1e6), np.float32(1e6 + 1), atol=1e-2)


def test_wrong_elements_are_named_by_tile_and_pattern() -> None:
    exact = np.ones((256, 256), np.float32)
    found = exact.copy()
    found[128:, 8::16] += 1
    with pytest.raises(AssertionError) as caught:
        assert_allclose(found, exact, tile=(128, 128))
    assert str(caught.value).splitlines() == [
        "2048 of 65536 elements of C are wrong",
        "the first: C[128, 8] is 2.0, expected 1.0 with a tolerance of 1.13e-05",
        "the largest error: 1 at C[128, 8]",
        "all wrong elements are in columns 8, 24, ..., 120 (every 16th) of the tiles in tile row 1 of 2",
    ]


def test_elements_that_nothing_wrote_are_told() -> None:
    device = Emulator()
    with pytest.raises(AssertionError, match=r"128 of them hold 0xcd in every byte") as caught:
        assert_allclose(device.empty(128, "f32"), np.zeros(128), name="y")
    assert "the first: y[0] is " in str(caught.value)
    assert "every element is wrong" in str(caught.value)


def test_shapes_and_integers() -> None:
    with pytest.raises(AssertionError, match=r"C has shape \(2,\), expected \(3,\)"):
        assert_allclose(np.zeros(2), np.zeros(3))
    big = np.array([2**62, 2**62 + 1], np.int64)
    assert_allclose(big, big)
    with pytest.raises(AssertionError, match="1 of 2 elements"):
        assert_allclose(big, np.array([2**62, 2**62]))


def test_descriptors() -> None:
    made = SmemDescriptor(start_address=0, leading_byte_offset=16, stride_byte_offset=1024, swizzle="128B")
    assert_same_descriptor(made, made.encode())
    assert_same_descriptor(made, made)
    with pytest.raises(AssertionError) as caught:
        assert_same_descriptor(made, made.encode() ^ 1 << 32)
    assert "bits 32-45  stride_byte_offset" in str(caught.value)
    assert str(caught.value).endswith(made.explain())
    one = InstructionDescriptor(kind="f16", m=128, n=64, a_type="bf16", b_type="bf16", d_type="f32")
    assert_same_descriptor(one, one.encode())
    image = TensorMap.tiled("f32", 4096, (64, 64), (256,), (32, 8))
    with pytest.raises(AssertionError, match="box"):
        assert_same_descriptor(image, TensorMap.tiled("f32", 4096, (64, 64), (256,), (32, 16)))


KERNEL = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 o, .param .u32 n)
{
    .reg .b32 %r;
    .reg .b64 %rd;
    ld.param.u32 %r, [n];
    add.u32 %r, %r, 3;
    ld.param.u64 %rd, [o];
    st.global.u32 [%rd], %r;
    ret;
}
"""


def test_sass() -> None:
    assert_same_sass(KERNEL, KERNEL.replace("%rd", "%other"))
    with pytest.raises(AssertionError, match="the SASS differs") as caught:
        assert_same_sass(KERNEL, KERNEL.replace("%r, 3", "%r, 4"))
    assert "0x4" in str(caught.value)
