"""The last CTA to count itself reads what all have written: __threadfence, atomicInc, as in the CUDA programming guide.

A fence before the relaxed atomic operation of the writer and one after that of the reader synchronize (PTX ISA 8.9.4).
The guide has only the first, and volatile accesses, which are strong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.emulator import Emulator
from tests.support.harness import codes, module

BODY = """
    .shared .align 4 .b32 last;
    .reg .pred %first, %p; .reg .b32 %t, %c, %v, %n; .reg .b64 %a, %at;
    ld.param.u64 %a, [a];
    mov.u32 %t, %tid.x;
    mov.u32 %c, %ctaid.x;
    setp.eq.u32 %first, %t, 0;
    @!%first bra counted;
    mul.wide.u32 %at, %c, 4;
    add.u64 %at, %at, %a;
    st{volatile}.global.u32 [%at+128], %c;
    {before}
    atom{sem}.global.inc.u32 %n, [%a], 7;
    st.shared.u32 [last], %n;
    counted:
    bar.sync 0;
    ld.shared.u32 %n, [last];
    setp.ne.u32 %p, %n, 7;
    @%p bra end;
    {after}
    setp.ge.u32 %p, %t, 8;
    @%p bra end;
    mul.wide.u32 %at, %t, 4;
    add.u64 %at, %at, %a;
    ld{volatile}.global.u32 %v, [%at+128];
    st.global.u32 [%at+256], %v;
    end:
    ret;
"""
FENCES = ["membar.gl;", "fence.acq_rel.gpu;", "fence.sc.gpu;"]


def found(schedule: Any, before: str, after: str, sem: str, volatile: str) -> set[tuple[str, str]]:
    device = Emulator("sm_100a", schedule)
    data = device.array(np.zeros(128, np.uint32))
    text = module(BODY.format(before=before, after=after, sem=sem, volatile=volatile), ".param .u64 a")
    report = device.launch(Kernel.from_ptx(text), 8, 64, [data])
    if not codes(report):
        assert data.numpy()[64:72].tolist() == list(range(8))
    return {(each.code, each.severity) for each in report.findings}


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("sem", ["", ".relaxed.gpu"])
@pytest.mark.parametrize("fence", FENCES)
def test_fences_through_a_relaxed_counter(fence: str, sem: str, schedule: Any) -> None:
    assert found(schedule, fence, fence, sem, "") == set()
    assert found(schedule, fence, "", sem, "") == {("missing-fence", "advice")}
    assert found(schedule, "", fence, sem, "") == {("missing-fence", "error")}
    assert found(schedule, fence, "", ".acq_rel.gpu", "") == set()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("fence", FENCES)
def test_volatile_results_as_in_the_guide(fence: str, schedule: Any) -> None:
    assert found(schedule, fence, "", "", ".volatile") == set()
