"""mbarrier.inval while other warps may still wait: the same under every schedule."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness import launch

BODY = """
    .shared .align 8 .b64 ready;
    .shared .align 8 .b64 go;
    .reg .b32 %t, %x;
    .reg .pred %first, %done, %p, %warp0, %last;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    setp.eq.u32 %last, %t, 127;
    setp.lt.u32 %warp0, %t, 32;
    @%first mbarrier.init.shared.b64 [ready], COUNT;
    @%first mbarrier.init.shared.b64 [go], 128;
    bar.sync 0;
"""
WAIT = "WAIT: mbarrier.try_wait.parity.shared.b64 %done, [ready], 0; @!%done bra WAIT; "
SLOW = "mov.u32 %x, 0; COUNT: add.u32 %x, %x, 1; setp.lt.u32 %p, %x, 40; @%p bra COUNT; "
ARRIVE, INVAL = "mbarrier.arrive.shared.b64 _, [ready]; ", "mbarrier.inval.shared.b64 [ready]; "
INIT = "mbarrier.init.shared.b64 [ready], 2; "
#: Count, what the threads do, and the severity of the finding; None: none.
CASES: dict[str, tuple[int, str, str | None]] = {
    "waiters early": (1, f"@!%warp0 bra WAIT; {SLOW} @%first {ARRIVE} @%first {INVAL} bra END; {WAIT} END: ", "error"),
    "waiters late": (1, f"@%first {ARRIVE} @%first {INVAL} @%warp0 bra END; {SLOW} {WAIT} END: ", "error"),
    "all arrive": (128, f"{ARRIVE} @%first {INVAL} @%warp0 bra END; {WAIT} END: ", "error"),
    "its own wait": (1, f"@!%warp0 bra WAIT; {SLOW} @%first {ARRIVE} {WAIT} @%first {INVAL}", "advice"),
    "its own wait, waiters late": (1, f"@%first {ARRIVE} @%warp0 bra WAIT; {SLOW} {WAIT} @%first {INVAL}", "advice"),
    "behind a barrier": (1, f"@%first {ARRIVE} {WAIT} bar.sync 0; @%first {INVAL}", None),
    "behind a barrier without its own wait": (
        1,
        f"@%first {ARRIVE} @%warp0 bra OVER; {WAIT} OVER: bar.sync 0; @%first {INVAL}",
        None,
    ),
    "its own wait, then made anew": (1, f"@%first {ARRIVE} {WAIT} @%first {INVAL} @%first {INIT}", "error"),
    "its own wait, a barrier, then made anew": (
        1,
        f"@%first {ARRIVE} {WAIT} @%first {INVAL} bar.sync 0; @%first {INIT}",
        "advice",
    ),
    "behind a barrier, then made anew": (
        1,
        f"@%first {ARRIVE} {WAIT} bar.sync 0; @%first {INVAL} @%first {INIT}",
        None,
    ),
    "by another thread": (1, f"@%first {ARRIVE} {WAIT} bar.sync 0; @%last {INVAL}", None),
    "behind another mbarrier": (
        1,
        f"@%first {ARRIVE} {WAIT} mbarrier.arrive.shared.b64 _, [go]; @!%warp0 bra END;"
        f" GO: mbarrier.try_wait.parity.shared.b64 %done, [go], 0; @!%done bra GO; @%first {INVAL} END: ",
        None,
    ),
}


@pytest.mark.parametrize(("count", "use", "severity"), CASES.values(), ids=CASES)
def test_the_severity_is_that_of_every_schedule(count: int, use: str, severity: str | None) -> None:
    body = (BODY.replace("COUNT", str(count)) + use + " ret;").replace("; ", ";\n").replace(": ", ":\n")
    schedules: list[Any] = ["eager", "late", *["random"] * 4]
    for seed, schedule in enumerate(schedules):
        report, _ = launch(body, block=128, schedule=schedule, seed=seed)
        found = {(each.code, each.severity) for each in report.findings}
        assert found == ({("mbarrier-inval-race", severity)} if severity else set()), report.summary()
