"""Functions of the device runtime that modules call without defining them."""

from __future__ import annotations

import numpy as np
import pytest

from ptxgen import Emulator, Kernel, check
from ptxgen.driver.device_runtime import with_device_runtime
from ptxgen.emulator.engines.timeline import Schedule

#: As Numba calls a barrier of the grid: each thread stores, and reads what a thread of the next CTA stored.
GRID = """
.version 8.0
.target sm_90a
.address_size 64
.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle (.param .b32 a);
.extern .func (.param .b32 r) cudaCGSynchronize (.param .b64 a, .param .b32 b);
.visible .entry k(.param .u64 data)
{
    .reg .b64 %handle, %data, %at;
    .reg .b32 %t, %cta, %ctas, %i, %n, %error;
    .param .b32 scope, flags, result;
    .param .b64 handle, found;
    ld.param.u64 %data, [data];
    mov.u32 %t, %tid.x;
    mov.u32 %cta, %ctaid.x;
    mov.u32 %ctas, %nctaid.x;
    st.param.b32 [scope], 1;
    call (found), cudaCGGetIntrinsicHandle, (scope);
    ld.param.b64 %handle, [found];
    mad.lo.u32 %i, %cta, 64, %t;
    mad.wide.u32 %at, %i, 4, %data;
    st.global.u32 [%at], %i;
    st.param.b64 [handle], %handle;
    st.param.b32 [flags], 0;
    SYNC
    mul.lo.u32 %n, %ctas, 64;
    add.u32 %i, %i, 64;
    rem.u32 %i, %i, %n;
    mad.wide.u32 %at, %i, 4, %data;
    ld.global.u32 %i, [%at];
    mad.lo.u32 %t, %cta, 64, %t;
    add.u32 %t, %t, %n;
    mad.wide.u32 %at, %t, 4, %data;
    st.global.u32 [%at], %i;
    ret;
}
"""
SYNC = "call (result), cudaCGSynchronize, (handle, flags); ld.param.b32 %error, [result];"


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_barriers_of_a_grid(schedule: Schedule) -> None:
    text = with_device_runtime(GRID.replace("SYNC", SYNC))
    assert [each for each in check(text) if str(each.severity) == "error"] == []
    emulator = Emulator("sm_90a", schedule=schedule)
    data = emulator.array(np.full(512, -1, np.int32))
    report = emulator.launch(Kernel.from_ptx(text), 4, 64, [data], cooperative=True)
    assert (report.status, report.findings) == ("ok", []), report.summary()
    assert (data.numpy()[256:] == np.roll(np.arange(256), -64)).all()


def test_without_the_barrier_there_is_a_race() -> None:
    text = with_device_runtime(GRID.replace("SYNC", ""))
    emulator = Emulator("sm_90a")
    data = emulator.array(np.full(512, -1, np.int32))
    report = emulator.launch(Kernel.from_ptx(text), 4, 64, [data], cooperative=True)
    assert "global-race" in {each.code for each in report.findings}, report.summary()


def test_a_launch_that_is_not_cooperative_gets_no_barrier() -> None:
    """The handle is null then, and the call returns an error."""
    store = "mul.wide.u32 %at, %t, 4; add.s64 %at, %at, %data; st.global.u32 [%at], %error; ret;"
    text = with_device_runtime(GRID.replace("SYNC", SYNC + store))
    emulator = Emulator("sm_90a")
    data = emulator.array(np.full(512, -1, np.int32))
    report = emulator.launch(Kernel.from_ptx(text), 1, 64, [data])
    assert report.status == "ok", report.summary()
    assert data.numpy()[:64].tolist() == [1] * 64


def test_other_modules_stay_as_they_are() -> None:
    text = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { ret; }\n"
    assert with_device_runtime(text) is text
