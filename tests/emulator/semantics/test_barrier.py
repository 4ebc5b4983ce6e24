"""Barriers of the CTA: sync, arrive and reduce, with and without counts, and what they order. PTX ISA 9.7.13.1."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from tests.support.harness import codes, launch, poisoned

SCHEDULES: list[Any] = ["eager", "late", "random"]
HEAD = """
    .shared .align 4 .b8 data[1024]; .reg .pred %p, %q, %c; .reg .u32 %t, %w, %x, %y, %here; .reg .b64 %at;
    mov.u32 %t, %tid.x;
    shr.u32 %w, %t, 5;
    mad.wide.u32 %at, %t, 4, %out0;
    mov.u32 %here, data;
    mad.lo.u32 %here, %t, 4, %here;
"""


def run(body: str, block: int, **options: Any) -> tuple[Any, list[int]]:
    report, (found,) = launch(HEAD + body + "\nret;", [poisoned(block)], block=block, **options)
    return report, found.tolist()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("spelling", ["bar.red", "barrier.red", "barrier.cta.red"])
def test_reductions(spelling: str, schedule: Any) -> None:
    """Counts, all and any of a predicate over two and a half warps; twice, with the predicate negated."""
    aligned = ".aligned" if spelling.startswith("barrier") else ""
    rng = random.Random(5)
    for bits in ([0] * 80, [1] * 80, [int(rng.random() < 0.3) for _ in range(80)]):
        word = [sum(bit << i for i, bit in enumerate(bits[at : at + 16])) for at in range(0, 80, 16)]
        picks = "".join(
            f"setp.ge.u32 %p, %t, {16 * i}; @%p mov.u32 %x, {word[i]}; @%p sub.u32 %y, %t, {16 * i};" for i in range(5)
        )
        body = (
            picks + "shr.u32 %x, %x, %y; and.b32 %x, %x, 1; setp.eq.u32 %c, %x, 1;"
            f"{spelling}.popc{aligned}.u32 %x, 0, %c; {spelling}.popc{aligned}.u32 %y, 3, 96, !%c;"
            f"mad.lo.u32 %x, %y, 128, %x;"
            f"{spelling}.and{aligned}.pred %p, 1, %c; selp.u32 %y, 16384, 0, %p; add.u32 %x, %x, %y;"
            f"{spelling}.or{aligned}.pred %q, 1, 96, %c; selp.u32 %y, 32768, 0, %q; add.u32 %x, %x, %y;"
            "st.global.u32 [%at], %x;"
        )
        report, found = run(body, 80, schedule=schedule)
        assert report.status == "ok", report.summary()
        total = sum(bits)
        assert found == [total + 128 * (80 - total) + 16384 * (total == 80) + 32768 * (total > 0)] * 80


PRODUCE = """
    setp.ge.u32 %p, %w, 2;
    @%p bra consume;
    bar.sync 1, 128;
    mad.lo.u32 %x, %t, 3, 1;
    st.shared.u32 [%here], %x;
    FILLED bra end;
    consume:
    bar.arrive 1, 128;
    bar.sync 2, 128;
    ld.shared.u32 %x, [%here+-256];
    st.global.u32 [%at], %x;
    end:
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_producers_and_consumers(schedule: Any) -> None:
    """The manual's example: who arrives goes on, who waits sees what was stored before the arrivals."""
    report, found = run(PRODUCE.replace("FILLED", "bar.arrive 2, 128;"), 128, schedule=schedule)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    assert found[64:] == [3 * t + 1 for t in range(64)]
    report, _ = run(
        PRODUCE.replace("st.shared.u32 [%here], %x;", "").replace(
            "FILLED", "bar.arrive 2, 128; st.shared.u32 [%here], %x;"
        ),
        128,
        schedule=schedule,
    )
    assert set(codes(report)) & {"shared-race", "uninitialized-shared"}, report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_threads_of_a_warp_arrive_one_by_one(schedule: Any) -> None:
    """barrier.sync without .aligned, in both ways of a branch."""
    body = """
        and.b32 %x, %t, 1;
        setp.eq.u32 %p, %x, 0;
        st.shared.u32 [%here], %t;
        @%p bra even;
        barrier.sync 0;
        ld.shared.u32 %y, [%here+-4];
        bra end;
        even:
        barrier.sync 0;
        ld.shared.u32 %y, [%here+4];
        end:
        st.global.u32 [%at], %y;
    """
    report, found = run(body, 64, schedule=schedule)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    assert found == [t ^ 1 for t in range(64)]


def test_counts_that_do_not_match() -> None:
    body = "setp.ge.u32 %p, %w, 1; @%p bra other; bar.sync 1, {}; bra end; other: bar.sync 1, 128; end:"
    assert codes(run(body.format(128), 128)[0]) == []
    report, _ = run(body.format(96), 96)
    assert "barrier-mismatch" in codes(report)
    mismatch = next(finding for finding in report.findings if finding.code == "barrier-mismatch")
    assert "arrive at barrier 1" in mismatch.summary
    assert re.match(r"The thread count is \d+ here and \d+ in line \d+", mismatch.rule)
    assert [each.role for each in mismatch.accesses] == ["arriver", "arriver"]


def test_a_mismatch_names_the_line_of_the_other_count() -> None:
    report, _ = run("bar.sync 0, 96;\nbar.sync 0;", 128)
    found = next(finding for finding in report.findings if finding.code == "barrier-mismatch")
    assert found.line is not None
    assert f"is all here and 96 in line {found.line - 1}" in found.message, report.summary()


def test_reductions_do_not_mix_with_waits() -> None:
    body = "setp.ge.u32 %p, %w, 1; setp.eq.u32 %c, %w, 0; @%p bra other; {} bra end; other: bar.sync 1, 64; end:"
    assert codes(run(body.format("bar.sync 1, 64;"), 64)[0]) == []
    assert codes(run(body.format("bar.red.popc.u32 %x, 1, 64, %c;"), 64)[0]) == ["barrier-mismatch"]


def test_a_barrier_that_misses_arrivals() -> None:
    body = "setp.ge.u32 %p, %w, 1; @%p bra end; bar.sync 4, 96; end:"
    report, _ = run(body, 64)
    assert report.status == "deadlock"
    assert "barrier 4 never completes: 32 of 96 threads have arrived" in report.findings[0].message


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_warp_may_exit_after_it_arrived(schedule: Any) -> None:
    """What it has counted as when it arrived it counts as still, whoever else is yet to come."""
    body = "setp.eq.u32 %p, %w, 0; @%p bra take; {} bar.arrive 1, 128; bra end; take: bar.sync 1, 128; end:"
    for seed in range(3):
        report, _ = run(body.format(""), 128, schedule=schedule, seed=seed)
        assert (report.status, codes(report)) == ("ok", []), report.summary()
        report, _ = run(body.format("setp.eq.u32 %p, %w, 3;\n@%p bra end;\n"), 128, schedule=schedule, seed=seed)
        assert (report.status, codes(report)) == ("deadlock", ["deadlock"]), report.summary()
        assert "96 of 128 threads" in report.findings[0].message
        assert "bar.sync" in str(report.findings[0].instruction)
