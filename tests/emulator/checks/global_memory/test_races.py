"""Data races on global memory: each with a clean twin that orders the same accesses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.order import vector_clock
from tests.support.harness import codes, launch

SCHEDULES: list[Any] = ["eager", "late", "random"]
HEAD = """
    .shared .align 8 .b64 bar; .shared .align 4 .b32 word;
    .reg .pred %p, %q; .reg .u32 %t, %c, %x, %y, %n; .reg .b64 %at, %next, %flag, %wide; .reg .b16 %h;
    mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, %ntid.x;
    mad.wide.u32 %at, %t, 4, %out0; add.u32 %x, %t, 32; rem.u32 %x, %x, %n; mad.wide.u32 %next, %x, 4, %out0;
    add.u64 %flag, %out0, 1020;
"""
#: name -> body with {}, where the clean twin has an order; what makes it clean; launch shape
KERNELS = {
    "read after write": ("st.global.u32 [%at], %t; {} ld.global.u32 %x, [%next];", "bar.sync 0;", {"block": 64}),
    "write after read": ("ld.global.u32 %x, [%next]; {} st.global.u32 [%at], %t;", "bar.sync 0;", {"block": 64}),
    "write after write": ("st.global.u32 [%at], %t; {} st.global.u32 [%next], %n;", "bar.sync 0;", {"block": 96}),
    "vectors": (
        "shl.b32 %x, %t, 4; cvt.u64.u32 %at, %x; xor.b32 %x, %x, 512; cvt.u64.u32 %next, %x;"
        "add.u64 %at, %at, %out0; add.u64 %next, %next, %out0;"
        "st.global.v4.u32 [%at], {{%t, %t, %t, %t}}; {} ld.global.u32 %x, [%next+8];",
        "bar.sync 0;",
        {"block": 64},
    ),
    "halves of words": ("st.global.u32 [%at], %t; {} ld.global.u16 %h, [%next+2];", "barrier.sync 1;", {"block": 64}),
    "generic addresses": ("st.u32 [%at], %t; {} ld.u32 %x, [%next];", "bar.sync 0;", {"block": 64}),
    "a cluster": (
        "setp.eq.u32 %q, %c, 0; @%q st.global.u32 [%at], %t; {} setp.eq.u32 %q, %c, 1; @%q ld.global.u32 %x, [%at];",
        "barrier.cluster.arrive; barrier.cluster.wait;",
        {"block": 32, "grid": 2, "cluster": 2},
    ),
}


def run(body: str, **options: Any) -> Any:
    return launch(HEAD + body + "\nret;", [np.zeros(256, np.uint32)], **options)[0]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("body", "order", "shape"), KERNELS.values(), ids=KERNELS)
def test_races_and_their_twins(body: str, order: str, shape: dict[str, Any], schedule: Any) -> None:
    racing = run(body.format(""), schedule=schedule, **shape)
    assert set(codes(racing)) == {"global-race"}, racing.summary()
    assert racing.findings[0].line is not None
    assert "warp" in racing.findings[0].message
    clean = run(body.format(order), schedule=schedule, **shape)
    assert (clean.status, codes(clean)) == ("ok", []), clean.summary()


#: CTA 0 stores a word and sets a flag; CTA 1 sees the flag and loads the word.
FLAG = """
    setp.ne.u32 %p, %t, 0; @%p bra end; setp.ne.u32 %q, %c, 0; @%q bra take;
    st.global.u32 [%out0], 7; GIVE bra end;
    take: TAKE setp.ne.u32 %p, %x, 1; @%p bra take; ld.global.u32 %y, [%out0]; end:
"""
GIVES = {
    "release": "st.release.gpu.global.u32 [%flag], 1;",
    "fence and relaxed": "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%flag], 1;",
    "membar and volatile": "membar.gl; st.volatile.global.u32 [%flag], 1;",
    "exchange": "atom.release.gpu.global.exch.b32 %x, [%flag], 1;",
    "reduction": "red.release.gpu.global.add.u32 [%flag], 1;",
}
TAKES = {
    "acquire": "ld.acquire.gpu.global.u32 %x, [%flag];",
    "relaxed and fence": "ld.relaxed.gpu.global.u32 %x, [%flag]; fence.acq_rel.gpu;",
    "volatile and membar": "ld.volatile.global.u32 %x, [%flag]; membar.gl;",
    "swap": "atom.acquire.gpu.global.cas.b32 %x, [%flag], 1, 1;",
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("give", "take"),
    [("release", "acquire"), ("fence and relaxed", "relaxed and fence"), ("membar and volatile", "volatile and membar"),
     ("exchange", "swap"), ("reduction", "acquire")],
)  # fmt: skip
def test_flags_between_ctas(give: str, take: str, schedule: Any) -> None:
    body = FLAG.replace("GIVE", GIVES[give]).replace("TAKE", TAKES[take])
    report = run(body, block=32, grid=2, schedule=schedule)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    late = body.replace("st.global.u32 [%out0], 7;", "").replace(
        "bra end;\n    take", "st.global.u32 [%out0], 7; bra end;\n    take"
    )
    racing = [run(late, block=32, grid=2, schedule=schedule, seed=seed) for seed in range(3)]
    assert any("global-race" in codes(each) for each in racing)
    assert "of different CTAs" in next(f.rule for each in racing for f in each.findings if f.code == "global-race")


#: What is wrong with a flag's store or load, and whether that is an error.
UNFENCED = {
    "relaxed store": ("st.relaxed.gpu.global.u32 [%flag], 1;", TAKES["acquire"], "error"),
    "volatile store": ("st.volatile.global.u32 [%flag], 1;", TAKES["volatile and membar"], "error"),
    "fence of the CTA": ("fence.acq_rel.cta; st.relaxed.gpu.global.u32 [%flag], 1;", TAKES["acquire"], "error"),
    "acquire before a store": ("fence.acquire.gpu; st.relaxed.gpu.global.u32 [%flag], 1;", TAKES["acquire"], "error"),
    "relaxed exchange": ("atom.relaxed.gpu.global.exch.b32 %x, [%flag], 1;", TAKES["swap"], "error"),
    "relaxed load": (GIVES["release"], "ld.relaxed.gpu.global.u32 %x, [%flag];", "advice"),
    "relaxed load, fence of the CTA": (
        GIVES["release"],
        "ld.relaxed.gpu.global.u32 %x, [%flag]; fence.acq_rel.cta;",
        "advice",
    ),
    "relaxed swap": (GIVES["exchange"], "atom.relaxed.gpu.global.cas.b32 %x, [%flag], 1, 1;", "advice"),
    "release after a load": (GIVES["release"], "ld.relaxed.gpu.global.u32 %x, [%flag]; fence.release.gpu;", "advice"),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("give", "take", "severity"), UNFENCED.values(), ids=UNFENCED)
def test_missing_fences(give: str, take: str, severity: str, schedule: Any) -> None:
    report = run(FLAG.replace("GIVE", give).replace("TAKE", take), block=32, grid=2, schedule=schedule)
    assert codes(report) == ["missing-fence"], report.summary()
    assert report.findings[0].severity == severity
    assert ("does not release" in report.findings[0].rule) == (severity == "error")
    found, other = report.findings[0].accesses
    assert (found.role, other.role) == ("reader", "writer")
    assert (found.space, found.name, other.name) == ("global", other.name, found.name)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("give", "take"),
    [
        ("st.release.cta.global.u32 [%flag], 1;", TAKES["acquire"]),
        ("atom.release.cta.global.exch.b32 %x, [%flag], 1;", TAKES["swap"]),
        (GIVES["release"], "ld.acquire.cta.global.u32 %x, [%flag];"),
    ],
)
def test_narrow_scopes(give: str, take: str, schedule: Any) -> None:
    """A scope must include the other thread; within a CTA that of the CTA is enough."""
    body = FLAG.replace("GIVE", give).replace("TAKE", take)
    report = run(body, block=32, grid=2, schedule=schedule)
    assert "narrow-scope" in codes(report), report.summary()
    assert "global-race" not in codes(report)
    one = body.replace("setp.ne.u32 %p, %t, 0; @%p bra end; setp.ne.u32 %q, %c, 0;", "setp.ge.u32 %q, %t, 32;")
    inside = run(one, block=64, schedule=schedule)
    assert (inside.status, codes(inside)) == ("ok", []), inside.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("few", [2, 64])
def test_many_flags_without_an_acquire(few: int, schedule: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What relaxed loads of nine flags see is kept apart, or joined once there are three; a fence acquires all."""
    monkeypatch.setattr(vector_clock, "_FEW", few)
    body = """
        setp.ne.u32 %p, %t, 0; @%p bra end; mov.u32 %n, 0; mov.b64 %at, %out0; add.u64 %flag, %out0, 512;
        setp.ne.u32 %q, %c, 0; @%q bra take;
        next: st.global.u32 [%at], 7; st.release.gpu.global.u32 [%flag], 1;
        add.u64 %at, %at, 4; add.u64 %flag, %flag, 4; add.u32 %n, %n, 1; setp.lt.u32 %p, %n, 9; @%p bra next; bra end;
        take: ld.relaxed.gpu.global.u32 %x, [%flag]; setp.ne.u32 %p, %x, 1; @%p bra take;
        add.u64 %flag, %flag, 4; add.u32 %n, %n, 1; setp.lt.u32 %p, %n, 9; @%p bra take;
        FENCE ld.global.u32 %y, [%out0WHICH]; end:
    """
    for which in ("", "+32"):
        report = run(body.replace("FENCE", "").replace("WHICH", which), block=32, grid=2, schedule=schedule)
        found = [(finding.code, finding.severity) for finding in report.findings]
        assert found == [("missing-fence", "advice")], report.summary()
        fenced = body.replace("FENCE", "fence.acq_rel.gpu;").replace("WHICH", which)
        report = run(fenced, block=32, grid=2, schedule=schedule)
        assert (report.status, codes(report)) == ("ok", []), report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_fences_cover_is_published_again_after_a_release(schedule: Any) -> None:
    """A release of CTA 1 at the flag takes the place of what CTA 0 has published there, within the scope of its CTA."""
    body = """
        mov.u32 %n, 0; setp.ne.u32 %q, %c, 0; @%q bra other; setp.ge.u32 %p, %t, 32; @%p bra take;
        setp.ne.u32 %p, %t, 0; @%p bra end;
        st.global.u32 [%out0], 7; fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%flag], 1;
        wait: ld.relaxed.gpu.global.u32 %x, [%flag]; setp.ne.u32 %p, %x, 2; @%p bra wait;
        st.relaxed.gpu.global.u32 [%flag], 3; bra end;
        other: setp.ne.u32 %p, %t, 0; @%p bra end;
        swap: atom.acq_rel.gpu.global.cas.b32 %x, [%flag], 1, 2; setp.ne.u32 %p, %x, 1; @%p bra swap; bra end;
        take: setp.ne.u32 %p, %t, 32; @%p bra end;
        again: ld.acquire.cta.global.u32 %x, [%flag]; setp.ne.u32 %p, %x, 3; @%p bra again;
        ld.global.u32 %y, [%out0]; end:
    """
    report = run(body, block=64, grid=2, schedule=schedule)
    assert not {"global-race", "missing-fence"} & set(codes(report)), report.summary()


#: Warp 1 of CTA 0 stores, warp 0 gives; warp 0 of CTA 1 takes, warp 1 loads.
CUMULATIVE = """
    setp.lt.u32 %p, %t, 32; setp.ne.u32 %q, %c, 0; @%q bra take;
    @%p bra given; st.global.u32 [%out0], 7; given: bar.sync 0; setp.eq.u32 %p, %t, 0; @!%p bra end; GIVE bra end;
    take: @!%p bra taken; again: TAKE setp.ne.u32 %q, %x, 1; @%q bra again;
    taken: bar.sync 0; @%p bra end; ld.global.u32 %y, [%out0]; end:
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_fences_are_cumulative(schedule: Any) -> None:
    """A fence releases what its thread knows of others through bar.sync; a relaxed store alone does not."""
    for give, take, expected in (
        (GIVES["fence and relaxed"], TAKES["relaxed and fence"], []),
        (GIVES["release"], TAKES["acquire"], []),
        ("st.relaxed.gpu.global.u32 [%flag], 1;", TAKES["acquire"], ["missing-fence"]),
        (GIVES["release"], "ld.relaxed.gpu.global.u32 %x, [%flag];", ["missing-fence"]),
    ):
        report = run(CUMULATIVE.replace("GIVE", give).replace("TAKE", take), block=64, grid=2, schedule=schedule)
        assert codes(report) == expected, report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_each_thread_fences_and_one_gives(schedule: Any) -> None:
    """`__threadfence(); __syncthreads(); if (t == 0) atomicExch(flag)`, and the reverse: only some fences will do."""
    relaxed, seen = "st.relaxed.gpu.global.u32 [%flag], 1;", "ld.relaxed.gpu.global.u32 %x, [%flag];"
    fence, late = "given: membar.gl; bar.sync 0;", "taken: bar.sync 0; membar.gl;"
    for given, taken, expected in (
        (fence, late, []),
        ("membar.gl; given: bar.sync 0;", late, []),
        ("given: bar.sync 0;", late, ["missing-fence"]),
        (fence, "taken: bar.sync 0;", ["missing-fence"]),
        (fence, "taken: bar.sync 0; membar.cta;", ["missing-fence"]),
    ):
        body = CUMULATIVE.replace("GIVE", relaxed).replace("TAKE", seen)
        body = body.replace("given: bar.sync 0;", given).replace("taken: bar.sync 0;", taken)
        report = run(body, block=64, grid=2, schedule=schedule)
        assert codes(report) == expected, report.summary()


def test_atomic_operations_pass_a_release_on() -> None:
    """CTA 0 releases 1, CTA 1 adds with a relaxed atomic, CTA 2 acquires what came of both (8.9.2)."""
    body = """
        setp.ne.u32 %p, %t, 0; @%p bra end; setp.eq.u32 %q, %c, 1; @%q bra middle; setp.eq.u32 %q, %c, 2; @%q bra take;
        st.global.u32 [%out0], 7; st.release.gpu.global.u32 [%flag], 1; bra end;
        middle: atom.relaxed.gpu.global.cas.b32 %x, [%flag], 1, 2; setp.ne.u32 %p, %x, 1; @%p bra middle; bra end;
        take: ld.acquire.gpu.global.u32 %x, [%flag]; setp.ne.u32 %p, %x, 2; @%p bra take;
        ld.global.u32 %y, [%out0]; end:
    """
    for schedule in SCHEDULES:
        report = run(body, block=32, grid=3, schedule=schedule)
        assert (report.status, codes(report)) == ("ok", []), report.summary()


def test_atomics_do_not_race() -> None:
    body = "red.relaxed.gpu.global.add.u32 [%out0], 1; atom.global.add.u32 %x, [%flag], 1;"
    report = run(body, block=96, grid=4)
    assert (report.status, codes(report)) == ("ok", []), report.summary()


def test_the_same_value_from_everywhere() -> None:
    """Many warps store the same: whichever comes last, so it is advice. Other values race."""
    for store, code in (("st.global.u32 [%out0], 5;", "global-race"), ("st.shared.u32 [word], 5;", "shared-race")):
        report = run(store, block=96, grid=2)
        assert [(each.code, each.severity) for each in report.findings] == [(code, "advice")], report.summary()
        assert codes(run(store, block=32)) == []
    assert set(codes(run("st.global.u32 [%out0], %t;", block=96))) == {"global-race"}
    assert set(codes(run("st.shared.u32 [word], %t;", block=96))) == {"shared-race"}


@pytest.mark.parametrize(
    ("store", "load"),
    [
        ("st.global.u16 [%at], %h;", "ld.global.u16 %h, [%next];"),
        ("st.global.u16 [%at], %h;", "ld.global.u32 %x, [%next];"),
        ("st.global.u8 [%wide], %h;", "ld.global.u8 %h, [%flag];"),
        ("st.global.u8 [%wide], %h;", "ld.global.u32 %x, [%out0+32];"),
        ("ld.global.u16 %h, [%next];", "mov.b16 %h, 5; st.global.u16 [%at], %h;"),
        ("st.global.u8 [%wide], %h;", "st.global.u8 [%flag], %h;"),
    ],
)
def test_bytes_and_halves(store: str, load: str) -> None:
    """Accesses of two bytes are remembered, and neighboring bytes."""
    body = (
        "cvt.u64.u32 %wide, %t; add.u64 %wide, %wide, %out0; xor.b32 %y, %t, 32; cvt.u64.u32 %flag, %y;"
        "add.u64 %flag, %flag, %out0; mad.lo.u32 %y, %t, 3, 1; cvt.u16.u32 %h, %y;"
    )
    assert set(codes(run(body + store + load, block=64))) == {"global-race"}
    assert codes(run(body + store + "bar.sync 0;" + load, block=64)) == []


def test_neighbors_do_not_race() -> None:
    """Bytes and halves of one word by different warps; each warp its own words again and again."""
    body = """
        and.b32 %x, %t, 31; mul.lo.u32 %y, %x, 8; shr.u32 %x, %t, 5; shl.b32 %x, %x, 1; add.u32 %y, %y, %x;
        cvt.u64.u32 %wide, %y; add.u64 %wide, %wide, %out0; cvt.u16.u32 %h, %t;
        st.global.u16 [%wide], %h; st.global.u16 [%wide], %h; ld.global.u16 %h, [%wide];
    """
    assert codes(run(body, block=128)) == []
    again = "st.global.u32 [%at], %t; ld.global.u32 %x, [%at]; add.u32 %x, %x, 1; st.global.u32 [%at], %x;"
    assert codes(run(again, block=128)) == []


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_who_comes_last_at_a_counter_knows_all_others(schedule: Any) -> None:
    """Warps of one CTA, and of several, count themselves in one atomic instruction; the last reads what all stored."""
    body = """
        mad.lo.u32 %x, %c, %n, %t; mad.wide.u32 %at, %x, 4, %out0; add.u64 %flag, %out0, 2044;
        st.global.u32 [%at], %x; bar.warp.sync -1; and.b32 %y, %t, 31; setp.ne.u32 %p, %y, 0; @%p bra end;
        atom.acq_rel.gpu.global.add.u32 %y, [%flag], 1; setp.ne.u32 %p, %y, TICKET; @%p bra end;
        mov.u32 %x, 0;
        next: mad.wide.u32 %at, %x, 4, %out0; ld.global.u32 %y, [%at]; add.u32 %x, %x, 1;
        setp.lt.u32 %p, %x, 192; @%p bra next; end: ret;
    """
    for seed in range(4):
        for shape in ({"block": 64, "grid": 3}, {"block": 192, "grid": 1}):
            options: Any = {"schedule": schedule, "seed": seed, **shape}
            report, _ = launch(HEAD + body.replace("TICKET", "5"), [np.full(512, 0, np.uint32)], **options)
            assert (report.status, codes(report)) == ("ok", []), report.summary()
            report, _ = launch(HEAD + body.replace("TICKET", "2"), [np.full(512, 0, np.uint32)], **options)
            assert set(codes(report)) == {"global-race"}, report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("fence", ["membar.gl;", "fence.acq_rel.gpu;"])
def test_fences_on_the_other_side_of_a_barrier(fence: str, schedule: Any) -> None:
    """All threads fence, then meet, then one sets the flag; one sees it, all meet, then fence: CUDA's usual way."""
    body = """
        setp.ne.u32 %q, %c, 0; @%q bra take;
        st.global.u32 [%at], %t; GIVE bar.sync 0; setp.ne.u32 %p, %t, 0; @%p bra end;
        st.relaxed.gpu.global.u32 [%flag], 1; bra end;
        take: setp.ne.u32 %p, %t, 0; @%p bra met;
        again: ld.relaxed.gpu.global.u32 %x, [%flag]; setp.ne.u32 %p, %x, 1; @%p bra again;
        met: bar.sync 0; TAKE ld.global.u32 %y, [%next]; end:
    """
    for give, take, expected in ((fence, fence, set()), ("", fence, {"missing-fence"}), (fence, "", {"missing-fence"})):
        report = run(body.replace("GIVE", give).replace("TAKE", take), block=96, grid=2, schedule=schedule)
        assert set(codes(report)) == expected, report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("fence", "expected"), [("membar.gl;", []), ("membar.cta;", ["missing-fence"])])
def test_a_barrier_of_the_grid_takes_a_fence_that_reaches_the_others(
    fence: str, expected: list[str], schedule: Any
) -> None:
    """The own CTA has counted itself at the word too: that it is in the scope does not put the others there."""
    body = f"""
        setp.ne.u32 %p, %t, 0; @%p bra end; mad.wide.u32 %at, %c, 4, %out0; xor.b32 %x, %c, 1;
        mad.wide.u32 %next, %x, 4, %out0; st.global.u32 [%at], %c; membar.gl; atom.global.add.u32 %x, [%flag], 1;
        again: ld.volatile.global.u32 %x, [%flag]; setp.ne.u32 %p, %x, 2; @%p bra again;
        {fence} ld.global.u32 %y, [%next]; end:
    """
    report = run(body, block=32, grid=2, schedule=schedule)
    assert codes(report) == expected, report.summary()


#: All CTAs store to one array and load from it, or add to it in too narrow a scope, or set a flag without a release.
MANY = {
    "weak": "st.global.u32 [%at], %c;\n ld.global.u32 %x, [%at];",
    "narrow": "red.relaxed.cta.global.add.u32 [%at], 1;",
    "unfenced": "st.global.u32 [%at], %c;\n red.relaxed.gpu.global.add.u32 [%out0+65536], 1;\n"
    " ld.relaxed.gpu.global.u32 %x, [%out0+65536];\n ld.global.u32 %x, [%at];",
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", MANY)
def test_many_races_of_two_lines_are_reported_a_few_times(
    name: str, schedule: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Further ones are only counted, so that a launch with very many ends soon."""
    calls: list[str] = []
    report = Findings.report

    def counting(self: Findings, check: Any, *arguments: Any, **named: Any) -> Any:
        calls.append(check.code)
        return report(self, check, *arguments, **named)

    monkeypatch.setattr(Findings, "report", counting)
    body = f"""
    .reg .b32 %t, %c, %n, %x; .reg .b64 %at; .reg .pred %p;
    mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %n, 0;
next: mad.lo.u32 %x, %n, 256, %t; mad.wide.u32 %at, %x, 4, %out0;
    {MANY[name]}
    add.u32 %n, %n, 1; setp.lt.u32 %p, %n, 32; @%p bra next;
    ret;"""
    made, _ = launch(body, [np.zeros(16385, np.uint32)], grid=16, block=256, schedule=schedule)
    found = made.all_findings[0]
    named = {(each.cta, each.warp) for each in found.accesses}
    assert found.also_warps > 100, made.summary()
    assert found.also_warps + len(named) >= 16 * 8 - 1
    # Of each pair of lines, of one CTA or of two.
    assert len(calls) < (600 if name == "unfenced" else 300), len(calls)
