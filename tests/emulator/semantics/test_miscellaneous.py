"""setmaxnreg and its budget, traps, what does nothing, and cancelling CTAs that have not begun."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.emulator import semantics
from ptxgen.emulator.state.register_pool import initial_count
from tests.support.harness import codes, launch, poisoned

SCHEDULES: list[Any] = ["eager", "late", "random"]

BUDGET = """
    .reg .pred %p; .reg .u32 %t, %x; .reg .b64 %at;
    mov.u32 %t, %tid.x;
    mov.u32 %x, %ctaid.x;
    mad.lo.u32 %x, %x, 256, %t;
    mad.wide.u32 %at, %x, 4, %out0;
    mov.u32 %x, 1;
    setp.ge.u32 %p, %t, 128;
    @%p bra.uni consume;
    setmaxnreg.dec.sync.aligned.u32 GIVEN;
    st.global.u32 [%at], %x;
    bra end;
    consume:
    setmaxnreg.inc.sync.aligned.u32 TAKEN;
    st.global.u32 [%at], %x;
    end: ret;
"""


def budget(given: int, taken: int | str, directives: str = ".maxnreg 128", **options: Any) -> Any:
    body = BUDGET.replace("GIVEN", str(given)).replace("TAKEN", str(taken))
    return launch(body, [poisoned(512)], block=256, grid=2, directives=directives, **options)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_registers_move_between_warps(schedule: Any) -> None:
    """Four warps give 88 each, four take 88."""
    report, (found,) = budget(40, 216, schedule=schedule)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    assert (found == 1).all()
    # 256 threads of a multiprocessor's 65536 registers could have 256 each; ptxas gives them what is asked for.
    assert codes(budget(40, 256, ".maxntid 256 .minnctapersm 1")[0]) == []
    assert codes(budget(40, 232, ".reqntid 256 .minnctapersm 1")[0]) == []


def test_more_registers_than_there_are() -> None:
    """Four warps give back 88 each, and four ask for 96."""
    report, _ = budget(40, 224)
    assert report.status == "deadlock"
    assert codes(report) == ["setmaxnreg-budget", "deadlock"]
    reason, waits = report.all_findings
    assert waits.instruction == reason.instruction == "setmaxnreg.inc.sync.aligned.u32 224;"
    assert (
        "224 registers for each thread of the warp, 96 more than the 128 that it has; the CTA's pool has 64 more for "
        "the threads of one warp, and warps 0, 1, 2, 3 hold 40, warps 4, 5, 6 hold 224, warp 7 holds 128"
    ) in waits.message
    assert "1024 for a thread of each; what they hold and request is 1056, 32 too many" in reason.message


def test_registers_that_nobody_gives_back() -> None:
    """The sum fits, but those who would give back wait for those who ask."""
    body = BUDGET.replace("setmaxnreg.dec", "bar.sync 1, 256; setmaxnreg.dec").replace(
        "TAKEN;", "TAKEN; bar.sync 1, 256;"
    )
    report, _ = launch(
        body.replace("GIVEN", "40").replace("TAKEN", "216"), [poisoned(256)], block=256, directives=".maxnreg 128"
    )
    assert set(codes(report)) == {"deadlock"}
    assert any("the CTA's pool has 0 more" in each.message for each in report.findings), report.summary()


def test_directions() -> None:
    assert "setmaxnreg-direction" in codes(budget(136, 216)[0])
    assert codes(budget(40, "216; setmaxnreg.inc.sync.aligned.u32 120")[0]) == ["setmaxnreg-direction"]
    for directives in ("", ".maxntid 256"):
        report, _ = budget(40, 216, directives)
        assert (report.status, codes(report)) == ("ok", ["setmaxnreg-ignored"])


@pytest.mark.parametrize(
    ("columns", "a", "directives", "expected"),
    [
        (256, "%a", ".maxntid 192", None), (256, "%a", ".maxntid 224", 240), (256, "%a", ".reqntid 384, 1, 1", 168),
        (64, "%a", ".maxntid 512", None), (64, "%a", ".maxntid 640", 96), (128, "%a", ".maxntid 320", None),
        (144, "%a", ".maxntid 288", 168),
        (136, "%a", ".maxntid 320", None), (136, "{%r, %r, %r, %r}", ".maxntid 320", 168),
        (8, "%a", ".maxntid 288 .minnctapersm 1", 168), (8, "%a", ".maxntid 96 .minnctapersm 4", 168),
        (8, "%a", ".maxntid 100 .minnctapersm 4", 128),
    ],
)  # fmt: skip
def test_registers_that_ptxas_chooses(columns: int, a: str, directives: str, expected: int | None) -> None:
    """By ptxas 13.5, which counts the registers of wgmma where nothing says how many CTAs share a multiprocessor."""
    accumulator = ", ".join(["%f"] * (columns // 2))
    transposed = "0, 0" if a == "%a" else "0"
    text = f""".version 8.0\n.target sm_90a\n.address_size 64\n.entry k() {directives} {{
        .reg .b64 %a; .reg .b32 %r; .reg .f32 %f;
        setmaxnreg.inc.sync.aligned.u32 240;
        wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.bf16.bf16 {{{accumulator}}}, {a}, %a, 0, 1, 1, {transposed};
    }}"""
    assert initial_count(Kernel.from_ptx(text).entry) == expected


@pytest.mark.parametrize("opcode", ["trap", "brkpt"])
def test_traps(opcode: str) -> None:
    body = ".reg .u32 %t; .reg .pred %p; mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 40; @%p {}; ret;"
    report, _ = launch(body.format(opcode), block=64)
    assert (report.status, codes(report)) == ("fault", ["trap"])
    assert "warp 1 of CTA (0, 0, 0)" in report.findings[0].message


def test_what_does_nothing() -> None:
    body = "nanosleep.u32 20; pmevent 3; pmevent.mask 5; griddepcontrol.wait; griddepcontrol.launch_dependents; ret;"
    report, _ = launch(body, block=64, grid=3)
    assert (report.status, codes(report), report.instructions) == ("ok", [], 36)


#: Each CTA counts itself in the output of its work, then of the work that it takes over.
PERSISTENT = """
    .shared .align 16 .b8 response[16];
    .shared .align 8 .b64 bar;
    .reg .pred %p, %leader; .reg .u32 %x, %rank, %size, %phase, %y, %z, %w; .reg .b64 %at, %low, %high; .reg .b128 %got;
    mov.u32 %x, %ctaid.x;
    mov.u32 %rank, %cluster_ctarank;
    mov.u32 %phase, 0;
    setp.eq.u32 %leader, %rank, 0;
    mbarrier.init.shared.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive; barrier.cluster.wait;
    loop:
    mad.wide.u32 %at, %x, 4, %out0;
    ld.global.u32 %y, [%at];
    add.u32 %y, %y, 1;
    st.global.u32 [%at], %y;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
    barrier.cluster.arrive; barrier.cluster.wait;
    @%leader clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{multicast}.b128
        [response], [bar];
    w:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [bar], %phase;
    @!%p bra w;
    ld.shared.v2.b64 {%low, %high}, [response];
    mov.b128 %got, {%low, %high};
    xor.b32 %phase, %phase, 1;
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p, %got; CHECK
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%x, %y, %z, %w}, %got;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %y, %got;
    add.u32 %x, %y, %rank;
    again:
    FENCE bra loop;
    end:
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;
""".replace("{multicast}", "MULTICAST")


def persistent(
    cluster: int, check: str = "@!%p bra end;", fence: str = "fence.proxy.async.shared::cta;", **options: Any
) -> Any:
    multicast = ".multicast::cluster::all" if cluster > 1 else ""
    body = PERSISTENT.replace("MULTICAST", multicast).replace("CHECK", check).replace("FENCE", fence)
    return launch(body, [np.zeros(24, np.uint32)], block=1, grid=24, cluster=cluster, multiprocessors=5, **options)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("cluster", [1, 2, 4])
def test_taking_over_what_has_not_begun(cluster: int, schedule: Any) -> None:
    report, (found,) = persistent(cluster, schedule=schedule, seed=3)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    assert (found == 1).all()


#: What may stand between the load of a response and the next request, beside the barrier of the cluster.
FENCES = {
    "fence.proxy.async.shared::cta;": [],
    "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;": [],
    "": ["missing-proxy-fence"],
    "fence.acq_rel.cluster;": ["missing-proxy-fence"],
    "fence.proxy.async.global;": ["missing-proxy-fence"],
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("cluster", [1, 2])
@pytest.mark.parametrize("fence", FENCES)
def test_a_response_is_read_before_the_next_request(fence: str, cluster: int, schedule: Any) -> None:
    report, (found,) = persistent(cluster, fence=fence, schedule=schedule, seed=3)
    assert sorted({each.code for each in report.findings}) == FENCES[fence], report.summary()
    assert report.status == "ok"  # advice
    assert (found == 1).all()


def test_a_refusal_that_nobody_looks_at() -> None:
    report, _ = persistent(1, check="", max_steps=2000, device=None)
    assert "cancel-refused" in codes(report), report.summary()
    assert report.status == "fault"  # what it reads is poison


def test_a_request_after_a_refusal() -> None:
    report, _ = persistent(1, check="@!%p bra again;", max_steps=2000, device=None)
    assert "cancel-after-refusal" in codes(report), report.summary()


def test_semantics_are_in_the_module_of_their_family() -> None:
    """`find` imports that module alone."""
    semantics.load_all()
    for form, found in semantics._SEMANTICS.items():
        family = form.__module__.removeprefix("ptxgen.instr.").partition(".")[0]
        module = found.bind.__module__.removeprefix("ptxgen.emulator.semantics.").partition(".")[0]
        assert module == semantics._ELSEWHERE.get(form.form.key, family), form.form.key
