"""Clusters: their shape, addresses of peers, barrier.cluster, and the happens-before relation between their CTAs."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.order.barriers import ClusterBarrierClocks
from ptxgen.emulator.checks.shared.cta_exit import CtaExit
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.state.clusters import Clusters
from tests.support.harness import codes, launch, module, poisoned
from tests.support.shared_accesses import issue, shared_accesses

SCHEDULES: list[Any] = ["eager", "late", "random"]
#: The thread's number in the cluster's x-fastest order of CTAs, and its place in the output.
HEAD = """
    .shared .align 16 .b8 data[512];
    .shared .align 8 .b64 bar;
    .reg .pred %p, %q; .reg .u32 %t, %rank, %size, %peer, %x, %y, %here, %there, %cta; .reg .b64 %at, %wide, %there64;
    mov.u32 %t, %tid.x;
    mov.u32 %rank, %cluster_ctarank;
    mov.u32 %size, %cluster_nctarank;
    mov.u32 %here, data;
    mad.lo.u32 %here, %t, 4, %here;
    mov.u32 %cta, %ctaid.x;
    mov.u32 %x, %ntid.x;
    mad.lo.u32 %x, %cta, %x, %t;
    mad.wide.u32 %at, %x, 4, %out0;
    add.u32 %peer, %rank, 1;
    rem.u32 %peer, %peer, %size;
"""
SYNC = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
REGISTERS = [
    *(f"%{name}.{axis}" for name in ("cluster_ctaid", "cluster_nctaid", "clusterid", "nclusterid") for axis in "xyz"),
    "%cluster_ctarank",
    "%cluster_nctarank",
]


@pytest.mark.parametrize(
    ("grid", "cluster"), [((4, 4, 2), (2, 2, 1)), ((6, 2, 4), (3, 1, 4)), ((16, 1, 1), (16, 1, 1)), ((3, 2, 1), None)]
)
def test_special_registers(grid: Any, cluster: Any) -> None:
    lines = [".reg .u32 %v, %n, %x; .reg .pred %p; .reg .b64 %at; mov.u32 %n, %ctaid.z;"]
    for axis in "yx":
        lines.append(f"mov.u32 %v, %nctaid.{axis}; mov.u32 %x, %ctaid.{axis}; mad.lo.u32 %n, %n, %v, %x;")
    lines.append(f"mul.lo.u32 %n, %n, {4 * (len(REGISTERS) + 1)}; cvt.u64.u32 %at, %n; add.u64 %at, %at, %out0;")
    for index, name in enumerate(REGISTERS):
        lines.append(f"mov.u32 %v, {name}; st.global.u32 [%at+{4 * index}], %v;")
    lines.append(
        f"mov.pred %p, %is_explicit_cluster; selp.u32 %v, 1, 0, %p; st.global.u32 [%at+{4 * len(REGISTERS)}], %v; ret;"
    )
    count = grid[0] * grid[1] * grid[2]
    report, (found,) = launch(
        "\n".join(lines),
        [poisoned(count * (len(REGISTERS) + 1))],
        grid=grid,
        block=1,
        cluster=cluster,
        multiprocessors=20,
    )
    assert report.status == "ok", report.summary()
    dims = cluster or (1, 1, 1)
    expected = []
    for z, y, x in product(*(range(extent) for extent in reversed(grid))):
        cta = (x, y, z)
        inside = [c % d for c, d in zip(cta, dims, strict=True)]
        outside = [c // d for c, d in zip(cta, dims, strict=True)]
        rank = inside[0] + dims[0] * (inside[1] + dims[1] * inside[2])
        row = [*inside, *dims, *outside, *(g // d for g, d in zip(grid, dims, strict=True))]
        expected.append([*row, rank, dims[0] * dims[1] * dims[2], int(cluster is not None)])
    assert found.reshape(count, -1).tolist() == expected


def ring(load: str, sync: str = SYNC, last: str = SYNC) -> str:
    """Each thread stores a number, and loads that of the same thread in the CTA of the next rank."""
    return (
        HEAD + "mad.lo.u32 %x, %cta, 1000, %t; st.shared.u32 [%here], %x;\n" + sync + load
        + "\nst.global.u32 [%at], %y;\n" + last + "ret;"
    )  # fmt: skip


LOADS = {
    "shared window": "mapa.shared::cluster.u32 %there, %here, %peer; ld.shared::cluster.u32 %y, [%there];",
    "wide": (
        "cvt.u64.u32 %wide, %here; mapa.shared::cluster.u64 %there64, %wide, %peer; "
        "ld.shared::cluster.u32 %y, [%there64];"
    ),
    "generic": (
        "cvt.u64.u32 %wide, %here; cvta.shared.u64 %wide, %wide; mapa.u64 %there64, %wide, %peer;ld.u32 %y, [%there64];"
    ),
    "by hand": (
        "and.b32 %there, %here, 0xffffff; shl.b32 %x, %peer, 24; or.b32 %there, %there, %x; "
        "ld.shared::cluster.u32 %y, [%there];"
    ),
}


def neighbors(grid: int, size: int, block: int) -> list[int]:
    return [1000 * (c - c % size + (c + 1) % size) + t for c in range(grid) for t in range(block)]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_loads_from_peers(load: str, schedule: Any) -> None:
    """With fewer multiprocessors than CTAs: clusters come one after the other."""
    report, (found,) = launch(
        ring(load), [poisoned(12 * 80)], grid=12, block=80, cluster=3, multiprocessors=7, schedule=schedule
    )
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    assert found.tolist() == neighbors(12, 3, 80)


def test_the_largest_cluster() -> None:
    report, (found,) = launch(ring(LOADS["generic"]), [poisoned(16 * 64)], grid=16, block=64, cluster=16)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    assert found.tolist() == neighbors(16, 16, 64)


def test_stores_to_peers() -> None:
    body = (
        HEAD + "mapa.shared::cluster.u32 %there, %here, %peer; mad.lo.u32 %x, %cta, 1000, %t;"
        "st.shared::cluster.u32 [%there], %x;" + SYNC + "ld.shared.u32 %y, [%here]; st.global.u32 [%at], %y; ret;"
    )
    report, (found,) = launch(body, [poisoned(4 * 64)], grid=4, block=64, cluster=4)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    assert found.tolist() == [1000 * ((c - 1) % 4) + t for c in range(4) for t in range(64)]


def test_ranks_of_addresses() -> None:
    body = (
        HEAD + "getctarank.shared::cluster.u32 %x, %here; mapa.shared::cluster.u32 %there, %here, %peer;"
        "getctarank.shared::cluster.u32 %y, %there; mad.lo.u32 %x, %x, 16, %y;"
        "cvt.u64.u32 %wide, %there; cvta.shared.u64 %wide, %wide; getctarank.u64 %y, %wide; mad.lo.u32 %x, %x, 16, %y;"
        "st.global.u32 [%at], %x; ret;"
    )
    report, (found,) = launch(body, [poisoned(4)], grid=4, block=1, cluster=4)
    assert report.status == "ok", report.summary()
    assert found.tolist() == [256 * r + 17 * ((r + 1) % 4) for r in range(4)]


# Orders between CTAs.


RELAXED = SYNC.replace(".arrive", ".arrive.relaxed")


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("sync", ["", "bar.sync 0;\n", RELAXED, "fence.acq_rel.cluster;\n" + RELAXED])
def test_unordered_loads_from_peers(sync: str, schedule: Any) -> None:
    """bar.sync is within a CTA; a relaxed arrival orders nothing but what a fence before it releases."""
    report, _ = launch(ring(LOADS["generic"], sync), [poisoned(128)], grid=2, block=64, cluster=2, schedule=schedule)
    if "fence" in sync:
        assert (report.status, codes(report)) == ("ok", []), report.summary()
        return
    found = set(codes(report))
    assert found <= {"shared-race", "uninitialized-shared"}
    assert "shared-race" in found
    race = next(each for each in report.findings if each.code == "shared-race")
    assert "CTA 1) writes" in race.message


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("sync", "expected"),
    [(SYNC, []), (RELAXED, ["missing-fence"]), ("fence.acq_rel.cta;\n" + RELAXED, []), ("", ["shared-race"])],
)
def test_own_memory_behind_a_relaxed_arrival(sync: str, expected: list[str], schedule: Any) -> None:
    """Warps of one CTA use its memory: kernels rely on the barrier where arrivals release nothing, so it is advice."""
    body = (
        HEAD
        + f"""
        st.shared.u32 [%here], %t;
        {sync} mov.u32 %y, data;
        xor.b32 %x, %t, 32;
        mad.lo.u32 %y, %x, 4, %y;
        ld.shared.u32 %x, [%y];
        st.global.u32 [%at], %x;
        ret;
    """
    )
    report, (found,) = launch(body, [poisoned(128)], grid=2, block=64, cluster=2, schedule=schedule)
    assert set(codes(report)) - {"uninitialized-shared"} == set(expected), report.summary()
    assert all(each.severity == "advice" for each in report.findings if each.code == "missing-fence")
    if sync:
        assert found.tolist() == [x ^ 32 for x in range(64)] * 2


def test_split_arrival() -> None:
    """What lies between arrive and wait is not ordered by the barrier, what comes before the arrival is."""
    arrive, wait = "barrier.cluster.arrive.release.aligned;", "barrier.cluster.wait.acquire.aligned;"
    body = ring(LOADS["generic"], arrive + wait).replace("st.shared.u32 [%here], %x;", "{}", 1)
    good = body.format("st.shared.u32 [%here], %x;")
    late = body.format("").replace(arrive, arrive + "st.shared.u32 [%here], %x;")
    assert codes(launch(good, [poisoned(64)], grid=2, block=32, cluster=2)[0]) == []
    assert "shared-race" in codes(launch(late, [poisoned(64)], grid=2, block=32, cluster=2)[0])


REMOTE = (
    HEAD
    + """
    setp.eq.u32 %p, %t, 0;
    setp.eq.and.u32 %q, %rank, 0, %p;
    mov.u32 %here, bar;
    @%q mbarrier.init.shared.b64 [bar], %size;
    INIT
    mapa.shared::cluster.u32 %there, %here, 0;
    mapa.shared::cluster.u32 %y, %here, 0;
    add.u32 %y, %y, -512;
    mad.lo.u32 %y, %rank, 4, %y;
    add.u32 %x, %rank, 7;
    @%p st.shared::cluster.u32 [%y], %x;
    @%p mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%there];
    setp.ne.u32 %q, %rank, 0;
    @%q bra end;
    w:
    mbarrier.try_wait.parity.ACQUIRE.cluster.shared::cta.b64 %p, [bar], 0;
    @!%p bra w;
    LATER
    setp.ge.u32 %q, %t, %size;
    @%q bra end;
    mov.u32 %here, data;
    mad.lo.u32 %here, %t, 4, %here;
    ld.shared.u32 %y, [%here];
    st.global.u32 [%at], %y;
    end:
"""
)
INIT = "@%q fence.mbarrier_init.release.cluster; " + RELAXED


def remote(init: str = INIT, acquire: str = "acquire", later: str = "", **options: Any) -> Any:
    body = REMOTE.replace("INIT", init).replace("ACQUIRE", acquire).replace("LATER", later) + SYNC + "ret;"
    return launch(body, [poisoned(4 * 32)], grid=4, block=32, cluster=4, **options)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_remote_arrivals(schedule: Any) -> None:
    """Every CTA arrives on the mbarrier of rank 0, which then sees what each stored."""
    report, (found,) = remote(schedule=schedule)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    assert found[:4].tolist() == [7, 8, 9, 10]
    fenced, _ = remote(acquire="relaxed", later="fence.acquire.cluster;", schedule=schedule)
    assert (fenced.status, codes(fenced)) == ("ok", []), fenced.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_remote_arrivals_without_order(schedule: Any) -> None:
    assert "shared-race" in codes(remote(acquire="relaxed", schedule=schedule)[0])
    unfenced = remote(init=RELAXED, schedule=schedule)[0]
    assert ("mbarrier-init-race", "advice") in [(each.code, each.severity) for each in unfenced.findings]
    unmet = remote(init="", schedule=schedule)[0]
    assert unmet.status == "fault" or ("mbarrier-init-race", "error") in [
        (each.code, each.severity) for each in unmet.findings
    ]
    assert "of a peer" in unfenced.findings[0].message


# Misuse.


def test_addresses_of_nobody() -> None:
    high = "add.u32 %here, %here, 0x4000000; {}.shared::cluster.u32 %y, [%here]; ret;"
    report, _ = launch(HEAD + high.format("ld"), [poisoned(4)], grid=4, block=1, cluster=4)
    assert (report.status, codes(report)) == ("fault", ["cluster-rank"]), report.summary()
    mapped = "mapa.shared::cluster.u32 %y, %here, {}; {} ret;"
    for rank in ("%size", "1000"):  # the address is nobody's, which matters to who uses it
        report, _ = launch(HEAD + mapped.format(rank, ""), [poisoned(4)], grid=4, block=1, cluster=4)
        assert report.status == "ok", report.summary()
        used = mapped.format(rank, "st.shared::cluster.u32 [%y], 1;")
        report, _ = launch(HEAD + used, [poisoned(4)], grid=4, block=1, cluster=4)
        assert (report.status, codes(report)) == ("fault", ["cluster-rank"]), report.summary()
    report, _ = launch(HEAD + "mapa.u64 %at, %out0, 0; ret;", [poisoned(4)], grid=2, block=1, cluster=2)
    assert (report.status, codes(report)) == ("fault", ["not-shared"]), report.summary()


def test_another_cta_is_not_in_shared_cta() -> None:
    body = HEAD + "mapa.shared::cluster.u32 %there, %here, %peer; ld.shared.u32 %y, [%there]; ret;"
    report, _ = launch(body, [poisoned(4)], grid=2, block=1, cluster=2)
    assert (report.status, codes(report)) == ("fault", ["not-own-shared"]), report.summary()


ORDER = """
    .reg .pred %p; .reg .u32 %x;
    mov.u32 %x, %cluster_ctarank;
    setp.eq.u32 %p, %x, 1;
    @%p bra other;
    FIRST barrier.cluster.arrive; SECOND
    st.volatile.global.u32 [%out0], 1;
    barrier.cluster.wait;
    ret;
    other:
    ld.volatile.global.u32 %x, [%out0];
    setp.ne.u32 %p, %x, 1;
    @%p bra other;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;
"""


def test_order_of_arrivals_and_waits() -> None:
    """Twice in one phase, and a wait without an arrival. The other CTA comes later."""
    places = {"FIRST": "barrier.cluster.wait;", "SECOND": "barrier.cluster.arrive;"}
    for wrong in (None, *places):
        body = ORDER
        for place, extra in places.items():
            body = body.replace(place, extra if place == wrong else "")
        report, _ = launch(body, [poisoned(1)], grid=2, block=32, cluster=2)
        assert codes(report) == (["cluster-barrier-order"] if wrong else []), report.summary()
        if wrong:
            assert report.findings[0].instruction == places[wrong]


def test_a_cta_that_does_not_come() -> None:
    """Threads that have left count as arrived; who stays away does not."""
    leave = HEAD + "setp.eq.u32 %p, %rank, 1; @%p exit;" + SYNC + "ret;"
    assert launch(leave, [poisoned(4)], grid=4, block=1, cluster=4)[0].ok
    spin = HEAD + "setp.eq.u32 %p, %rank, 1; @%p bra away;" + SYNC + "ret; away: bar.sync 1, 64; ret;"
    report, _ = launch(spin, [poisoned(128)], grid=4, block=32, cluster=4)
    assert report.status == "deadlock"
    expected = "barrier.cluster never completes: 96 of 128 threads have arrived"
    assert any(expected in each.message for each in report.all_findings)


@pytest.mark.parametrize(
    ("directives", "cluster", "words"),
    [
        (".reqnctapercluster 2", None, None),
        (".explicitcluster .reqnctapercluster 2", 2, None),
        (".reqnctapercluster 2", 4, "the kernel takes clusters of exactly (2, 1, 1) CTAs, not (4, 1, 1)"),
        (".maxclusterrank 4", 4, None),
        (".maxclusterrank 2", 4, "the kernel takes clusters of at most 2 CTAs, not (4, 1, 1)"),
    ],
)
def test_directives(directives: str, cluster: Any, words: str | None) -> None:
    body = ".reg .u32 %x; mov.u32 %x, %cluster_nctarank; st.global.u32 [%out0], %x; ret;"
    report, (found,) = launch(body, [poisoned(1)], grid=4, block=1, cluster=cluster, directives=directives)
    if words is None:
        assert report.status == "ok", report.summary()
        assert found[0] == (4 if "max" in directives else 2)
    else:
        assert (report.status, [f.summary for f in report.findings]) == ("fault", [words])


def test_a_grid_of_clusters() -> None:
    """.blocksareclusters: the launch's grid counts clusters."""
    body = (
        ".reg .u32 %x; .reg .b64 %at; mov.u32 %x, %ctaid.x; mad.wide.u32 %at, %x, 4, %out0; st.global.u32 [%at], %x;"
        "ret;"
    )
    report, (found,) = launch(
        body,
        [poisoned(6)],
        grid=3,
        block=1,
        directives=".reqntid 1 .reqnctapercluster 2 .blocksareclusters",
        version="9.0",
    )
    assert report.status == "ok", report.summary()
    assert found.tolist() == np.arange(6).tolist()


# What multicasts and pairs of CTAs build on.


def test_slots_of_a_cluster() -> None:
    clusters = Clusters((8, 2, 1), (4, 1, 1), 12, 2)
    assert (clusters.count, clusters.resident, clusters.warps) == (4, 3, 8)
    assert list(clusters.slots(1)) == [4, 5, 6, 7]
    assert clusters.multicast(6, 0b1011) == [4, 5, 7]
    assert [clusters.pair(slot) for slot in range(4, 8)] == [(4, 5), (4, 5), (6, 7), (6, 7)]
    assert clusters.ctas([3]).tolist() == [[4, 1, 0], [5, 1, 0], [6, 1, 0], [7, 1, 0]]
    assert clusters.locate(2 * 6, clusters.own(2 * 6, 0x500), "shared") == (6, 0x500)
    for mask in (0, 0b10000):
        with pytest.raises(MemoryFault) as fault:
            clusters.multicast(4, mask)
        assert fault.value.check.code == "multicast-mask"
    odd = Clusters((6, 1, 1), (3, 1, 1), 6, 1)
    assert odd.pair(1) == (0, 1)
    with pytest.raises(MemoryFault) as fault:
        odd.pair(2)
    assert fault.value.check.code == "cta-pair"


# The end of a CTA.

ENDS = {
    "loads": ("mapa.shared::cluster.u32 %there, %here, %peer; ld.shared::cluster.u32 %y, [%there];", "SYNC"),
    "stores": ("mapa.shared::cluster.u32 %there, %here, %peer; st.shared::cluster.u32 [%there], %x;", "SYNC"),
    "arrivals": (
        "mov.u32 %here, bar; mapa.shared::cluster.u32 %there, %here, %peer;"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%there];",
        "w: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [bar], 0; @!%p bra w;",
    ),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("use", "order"), ENDS.values(), ids=ENDS)
def test_a_cta_that_ends_too_early(use: str, order: str, schedule: Any) -> None:
    """Its peers must be done with its memory before; a relaxed barrier is enough for that."""
    begin = (
        "mov.u32 %x, 3; st.shared.u32 [%here], %x; setp.eq.u32 %q, %t, 0; @%q mbarrier.init.shared.b64 [bar], 32;"
        "@%q fence.mbarrier_init.release.cluster;" + SYNC
    )
    early, _ = launch(HEAD + begin + use + "ret;", [poisoned(64)], grid=2, block=32, cluster=2, schedule=schedule)
    assert "cta-exit" in codes(early), early.summary()
    ends = [RELAXED, SYNC] if order == "SYNC" else [order]
    for end in ends:
        body = HEAD + begin + use + end + "ret;"
        report, _ = launch(body, [poisoned(64)], grid=2, block=32, cluster=2, schedule=schedule)
        assert (report.status, codes(report)) == ("ok", []), report.summary()


def test_memory_of_a_cta_that_has_ended() -> None:
    body = (
        HEAD
        + """
        setp.eq.u32 %p, %rank, 1;
        @%p bra go;
        st.shared.u32 [%here], %t;
        ret;
        go:
        mov.u32 %x, 0;
        l:
        add.u32 %x, %x, 1;
        setp.lt.u32 %p, %x, 300;
        @%p bra l;
        mapa.shared::cluster.u32 %there, %here, 0;
        ld.shared::cluster.u32 %y, [%there];
        ret;
    """
    )
    report, _ = launch(body, [poisoned(64)], grid=2, block=32, cluster=2)
    assert (report.status, codes(report)) == ("fault", ["cta-exit"]), report.summary()


@pytest.mark.parametrize(
    ("what", "reads", "code", "severity"),
    [
        ("tensor store", True, "bulk-group-unwaited", "advice"),
        ("tcgen05.mma", True, "cta-exit", "error"),
        ("tensor copy", False, "cta-exit", "error"),
    ],
)
def test_operations_at_the_end_of_a_cta(what: str, reads: bool, code: str, severity: str) -> None:
    """They must be known to one of the CTA's warps to be over."""
    statement = Kernel.from_ptx(module("ret;")).entry.body.statements[0]  # type: ignore[union-attr]
    for awaited in (False, True):
        findings = Findings()
        happens_before, shared = shared_accesses(findings)
        granules = np.array([100, 101])
        if reads:
            shared.async_write(issue(happens_before, "tensor copy", statement), 0, granules)
            for row in (0, 1):
                happens_before.observed[row].operations.update(happens_before.operations)
        operation = issue(happens_before, what, statement)
        (shared.async_read if reads else shared.async_write)(operation, 0, granules)
        if awaited:
            happens_before.observed[1].operations.add(operation.number)
        CtaExit(happens_before, ClusterBarrierClocks(happens_before, findings), shared, findings).ctas_end([0])
        found = [(each.code, each.severity) for each in findings.list()]
        assert found == ([] if awaited else [(code, severity)])


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("cluster", [None, 2])
@pytest.mark.parametrize("seed", range(4))
def test_what_threads_did_that_have_exited_comes_before_the_barrier(schedule: Any, cluster: Any, seed: int) -> None:
    """barrier.cluster waits for all that have not exited (9.7.13.4), so it ends after those that do not arrive."""
    body = HEAD + """
        st.shared.u32 [%here], %x;
        setp.ge.u32 %p, %t, 32;
        @%p bra slow;
    """ + SYNC + """
        ld.shared.u32 %y, [%here+128];
        st.global.u32 [%at], %y;
        ret;
        slow: mov.u32 %y, 0;
        more:
        add.u32 %y, %y, 1;
        nanosleep.u32 20;
        setp.lt.u32 %p, %y, 30;
        @%p bra more;
        ret;
    """  # fmt: skip
    report, (found,) = launch(body, [poisoned(128)], grid=2, block=64, cluster=cluster, schedule=schedule, seed=seed)
    assert report.status == "ok", report.summary()
    assert found.reshape(2, 64)[:, :32].tolist() == [list(range(32, 64)), list(range(96, 128))]


@pytest.mark.parametrize("cluster", [None, 2])
def test_wide_registers_are_truncated_to_shared_addresses(cluster: Any) -> None:
    """PTX ISA 6.4.1: a generic address of shared memory, in 64 bits, serves where 32 are wanted (ThunderKittens)."""
    body = HEAD + """
        cvt.u64.u32 %wide, %here;
        cvta.shared.u64 %wide, %wide;
        st.shared::cta.u32 [%wide], %x;
        mov.b64 %there64, bar;
        cvta.shared.u64 %there64, %there64;
        setp.eq.u32 %q, %t, 0;
        @%q mbarrier.init.shared::cta.b64 [%there64], 32;
        bar.sync 0;
        mbarrier.arrive.shared::cta.b64 _, [%there64];
        again:
        mbarrier.test_wait.parity.shared::cta.b64 %p, [%there64], 0;
        @!%p bra again;
        ld.shared::cta.u32 %y, [%wide];
        st.global.u32 [%at], %y;
    """ + SYNC + "ret;"  # fmt: skip
    report, (found,) = launch(body, [poisoned(64)], grid=2, block=32, cluster=cluster)
    assert report.status == "ok", report.summary()
    assert found.tolist() == list(range(64))
