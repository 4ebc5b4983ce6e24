"""Flags in shared memory order what their release and acquire say; strong accesses race with weak ones alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness import codes, launch

SCHEDULES: list[Any] = ["eager", "late", "random"]
HEAD = """
    .shared .align 16 .b32 flag[4]; .shared .align 16 .b32 data[64];
    .reg .pred %p, %q; .reg .u32 %t, %c, %x, %y, %far, %near;
    mov.u32 %t, %tid.x; mov.u32 %c, %cluster_ctarank;
    setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [flag], 0; START
"""
#: Thread 0 gives: data, then a flag. Thread 32 takes: the flag, then the data.
PASSING = """
    setp.eq.u32 %p, %t, 32; @%p bra take; setp.ne.u32 %p, %t, 0; @%p bra end;
    st.shared.u32 [data], 7; GIVE bra end;
    take: TAKE setp.ne.u32 %p, %x, 1; @%p bra take; AFTER ld.shared.u32 %y, [data]; end: ret;
"""
RIGHT = {
    "release and acquire": (
        "st.release.cta.shared.u32 [flag], 1;", "ld.acquire.cta.shared.u32 %x, [flag];", "",
    ),
    "membar and volatile": (
        "membar.cta; st.volatile.shared.u32 [flag], 1;", "ld.volatile.shared.u32 %x, [flag];", "membar.cta;",
    ),
    "fences and atomics": (
        "fence.acq_rel.cta; atom.shared.exch.b32 %x, [flag], 1;", "atom.shared.cas.b32 %x, [flag], 1, 1;",
        "fence.acq_rel.cta;",
    ),
    "reduction": ("red.release.cta.shared.add.u32 [flag], 1;", "ld.acquire.cta.shared.u32 %x, [flag];", ""),
    "swap": (
        "atom.release.cta.shared.exch.b32 %x, [flag], 1;", "atom.acquire.cta.shared.cas.b32 %x, [flag], 1, 1;", "",
    ),
}  # fmt: skip
#: What lacks a fence, and whether that is an error.
WRONG = {
    "relaxed store": ("st.relaxed.cta.shared.u32 [flag], 1;", *RIGHT["release and acquire"][1:], "error"),
    "volatile store": ("st.volatile.shared.u32 [flag], 1;", *RIGHT["membar and volatile"][1:], "error"),
    "relaxed atomic": ("atom.shared.exch.b32 %x, [flag], 1;", *RIGHT["fences and atomics"][1:], "error"),
    "relaxed load": (RIGHT["release and acquire"][0], "ld.relaxed.cta.shared.u32 %x, [flag];", "", "advice"),
    "volatile load": (*RIGHT["membar and volatile"][:2], "", "advice"),
    "relaxed swap": (*RIGHT["fences and atomics"][:2], "", "advice"),
}


def run(body: str, start: str = "bar.sync 0;", **options: Any) -> Any:
    return launch(HEAD.replace("START", start) + body, **{"block": 64, **options})[0]


def passing(give: str, take: str, after: str) -> str:
    return PASSING.replace("GIVE", give).replace("TAKE", take).replace("AFTER", after)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("parts", RIGHT.values(), ids=RIGHT)
def test_flags(parts: tuple[str, str, str], schedule: Any) -> None:
    report = run(passing(*parts), schedule=schedule)
    assert (report.status, codes(report)) == ("ok", []), report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("parts", WRONG.values(), ids=WRONG)
def test_flags_without_fences(parts: tuple[str, str, str, str], schedule: Any) -> None:
    report = run(passing(*parts[:3]), schedule=schedule)
    assert codes(report) == ["missing-fence"], report.summary()
    assert report.findings[0].severity == parts[3]
    found, other = report.findings[0].accesses
    assert (found.role, found.warp, other.role, other.warp) == ("reader", 1, "writer", 0)
    assert other.instruction.startswith("st.")
    assert found.name == other.name == "data[0]"


#: CTA 1 gives to CTA 0, in whose memory data and flag are; `barrier.cluster` before the end, so that both live.
PEERS = """
    setp.ne.u32 %p, %t, 0; @%p bra end; mov.u32 %near, flag; mapa.shared::cluster.u32 %far, %near, 0;
    setp.eq.u32 %q, %c, 0; @%q bra take;
    st.shared::cluster.u32 [%far+16], 7; GIVE bra end;
    take: TAKE setp.ne.u32 %p, %x, 1; @%p bra take; ld.shared.u32 %y, [data];
    end: barrier.cluster.arrive; barrier.cluster.wait; ret;
"""
START = "barrier.cluster.arrive; barrier.cluster.wait;"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("give", "take", "code"),
    [
        ("st.release.cluster.shared::cluster.u32 [%far], 1;", "ld.acquire.cluster.shared.u32 %x, [flag];", None),
        ("red.release.cluster.shared::cluster.add.u32 [%far], 1;", "ld.acquire.cluster.shared.u32 %x, [flag];", None),
        ("st.volatile.shared::cluster.u32 [%far], 1;", "ld.acquire.cluster.shared.u32 %x, [flag];", "missing-fence"),
        ("st.release.cta.shared::cluster.u32 [%far], 1;", "ld.acquire.cluster.shared.u32 %x, [flag];", "narrow-scope"),
        ("st.release.cluster.shared::cluster.u32 [%far], 1;", "ld.acquire.cta.shared.u32 %x, [flag];", "narrow-scope"),
    ],
)
def test_flags_between_peers(give: str, take: str, code: str | None, schedule: Any) -> None:
    body = PEERS.replace("GIVE", give).replace("TAKE", take)
    report = run(body, START, block=32, grid=2, cluster=2, schedule=schedule)
    assert (code in codes(report)) if code else (report.status, codes(report)) == ("ok", []), report.summary()


#: A strong access of one warp, a weak one of the other, with {} between; the first and second by program order.
MIXED = {
    "strong store, weak load": ("st.volatile.shared.u32 [flag], 1;", "ld.shared.u32 %y, [flag];"),
    "weak load, strong store": ("ld.shared.u32 %y, [flag];", "st.volatile.shared.u32 [flag], 1;"),
    "atomic, weak load": ("atom.shared.add.u32 %x, [flag], 1;", "ld.shared.u32 %y, [flag];"),
    "reduction, weak store": ("red.shared.add.u32 [flag], 1;", "st.shared.u32 [flag], 9;"),
    "weak store, strong load": ("st.shared.u32 [flag], 9;", "ld.relaxed.cta.shared.u32 %x, [flag];"),
    "weak store, atomic": ("st.shared.u32 [flag], 9;", "atom.shared.max.u32 %x, [flag], 10;"),
    "vectors": ("st.volatile.shared.v2.u32 [flag+8], {1, 2};", "ld.shared.u32 %y, [flag+12];"),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("first", "second"), MIXED.values(), ids=MIXED)
def test_strong_against_weak(first: str, second: str, schedule: Any) -> None:
    """8.7: two conflicting accesses race unless ordered, or both strong."""
    start = "@%p st.shared.v4.u32 [flag], {0, 0, 0, 0}; bar.sync 0;"
    body = f"setp.eq.u32 %p, %t, 0; setp.eq.u32 %q, %t, 32; @%p {first} BETWEEN @%q {second} ret;"
    report = run(body.replace("BETWEEN", "").replace("; ", ";\n"), start, schedule=schedule)
    assert codes(report) == ["shared-race"], report.summary()
    clean = run(body.replace("BETWEEN", "bar.sync 0;"), start, schedule=schedule)
    assert (clean.status, codes(clean)) == ("ok", []), clean.summary()


CLEAN = {
    "both strong": "@%p st.volatile.shared.u32 [flag], 1; @%q ld.volatile.shared.u32 %y, [flag];",
    "atomics of all": "atom.shared.add.u32 %x, [flag], 1; ld.relaxed.cta.shared.u32 %y, [flag];",
    "the same value": "@%p st.volatile.shared.u32 [flag], 0; @%q ld.shared.u32 %y, [flag];",
    "a neighbor": "@%p st.volatile.shared.u32 [flag+4], 1; @%q ld.shared.u32 %y, [flag];",
    "one warp": "@%p st.volatile.shared.u32 [flag], 1; bar.warp.sync -1; @%p ld.shared.u32 %y, [flag];",
    # What an atomic operation has seen comes before what its thread does next (8.9.4).
    "the last arrival resets": """
        setp.ne.u32 %q, %t, 32; and.pred %q, %q, !%p; @%q bra end; atom.shared.add.u32 %x, [flag], 1;
        setp.eq.u32 %p, %x, 1; @%p st.shared.u32 [flag], 0; end:
    """,
    "a flag is polled, then reset": """
        setp.eq.u32 %p, %t, 32; @%p bra take; setp.ne.u32 %p, %t, 0; @%p bra end;
        st.release.cta.shared.u32 [flag], 1; bra end;
        take: ld.relaxed.cta.shared.u32 %x, [flag]; setp.ne.u32 %p, %x, 1; @%p bra take; st.shared.u32 [flag], 0; end:
    """,
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("body", CLEAN.values(), ids=CLEAN)
def test_strong_accesses_that_race_with_nothing(body: str, schedule: Any) -> None:
    report = run(f"setp.eq.u32 %p, %t, 0; setp.eq.u32 %q, %t, 32; {body} ret;", schedule=schedule)
    assert (report.status, codes(report)) == ("ok", []), report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_peer_whose_flag_was_seen_may_end(schedule: Any) -> None:
    """Of what a peer does last in a CTA's memory, that CTA has seen the end; of the second store it has not."""
    body = PEERS.replace("GIVE", "st.release.cluster.shared::cluster.u32 [%far], 1; MORE").replace(
        "TAKE", "ld.relaxed.cluster.shared.u32 %x, [flag];"
    )
    body = body.replace("ld.shared.u32 %y, [data];", "").replace("st.shared::cluster.u32 [%far+16], 7;", "")
    body = body.replace("barrier.cluster.arrive; barrier.cluster.wait; ret;", "ret;")
    report = run(body.replace("MORE", ""), START, block=32, grid=2, cluster=2, schedule=schedule)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    more = body.replace("MORE", "st.relaxed.cluster.shared::cluster.u32 [%far+4], 1;")
    assert codes(run(more, START, block=32, grid=2, cluster=2, schedule=schedule)) == ["cta-exit"]
