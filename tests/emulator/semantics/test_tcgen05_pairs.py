"""cta_group::2: products, copies, allocation and commits of a pair of CTAs. References are NumPy on plain matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxgen import Kernel
from ptxgen.device import LaunchReport
from ptxgen.emulator import Emulator
from tests.support.harness import codes, launch, module, poisoned
from tests.support.tensor_kernel import IMAGE, TEXT, THREADS, dump
from tests.support.tensor_layouts import Bench, close, codes_of, errors, value, values_of

SCHEDULES = ["eager", "late", "random"]
CLUSTER_SYNC = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"

#: One commit by the leader of the pair, which both CTAs wait for.
COMMIT = """
    mov.b16 %both, 3;
    @%leader tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %both;
    waiting: mbarrier.try_wait.parity.shared::cta.b64 %q, [done], 0;
    @!%q bra waiting;
    tcgen05.fence::after_thread_sync;
"""


def pair_text(body: str, words: int) -> str:
    """The kernel of tensor_kernel for a pair: each CTA has its half of the source and of the output."""
    text = TEXT.replace("cta_group::1", "cta_group::2")
    text = text.replace("$BODY", body).replace("bar.sync 0;", f"bar.sync 0; {CLUSTER_SYNC}")
    head = f""".reg .b32 %rank; .reg .b64 %far; .reg .b16 %both; .reg .pred %first;
        mov.u32 %rank, %cluster_ctarank;
        mul.wide.u32 %far, %rank, {IMAGE}; add.u64 %source, %source, %far;
        mul.wide.u32 %far, %rank, {4 * words}; add.u64 %out, %out, %far;\n"""
    text = text.replace("mov.u32 %phase, 0;", head + "mov.u32 %phase, 0;", 1)
    # The even CTA's first thread issues; the first of each makes the CTA's mbarrier.
    old = "setp.eq.u32 %leader, %t, 0;\n    @%leader mbarrier.init"
    assert old in text
    leader = "setp.eq.u32 %first, %t, 0; setp.eq.and.u32 %leader, %rank, 0, %first; @%first mbarrier.init"
    text = text.replace(old, leader).replace(
        "fence.proxy.async;", "fence.proxy.async; fence.mbarrier_init.release.cluster;"
    )
    return module(text, ".param .u64 source, .param .u64 out")


class Pair:
    """The benches of both CTAs: operands at the same places, one body."""

    def __init__(self, seed: int) -> None:
        self.even, self.odd = Bench(seed), Bench(seed + 1000)
        self.body = ""

    def matrix(self, halves: list[NDArray[Any]], type: str, swizzle: str = "128B", packed: bool = False) -> int:
        """The descriptor of operands that lie in both shared memories."""
        made = [
            bench.matrix(half, type, "k", swizzle, packed)
            for bench, half in zip((self.even, self.odd), halves, strict=True)
        ]
        assert made[0].descriptor == made[1].descriptor
        return made[0].descriptor

    def take(self, columns: int) -> int:
        self.odd.take(columns)
        return self.even.take(columns)

    def room(self, data: list[NDArray[np.uint8]]) -> int:
        """Bytes in both shared memories."""
        start = 0
        for bench, given in zip((self.even, self.odd), data, strict=True):
            start = bench.room(len(given))
            bench.image[start : start + len(given)] = given
        return start

    def fill(self, words: list[NDArray[Any]]) -> int:
        """Columns of both tensor memories, written by each CTA's threads."""
        column = self.even.fill(words[0])
        assert self.odd.fill(words[1]) == column
        assert self.even.body == self.odd.body
        return column

    def issue(self, text: str, **values: Any) -> None:
        for bench in (self.even, self.odd):
            bench.issue(text, **values)

    def sync(self) -> None:
        for bench in (self.even, self.odd):
            bench.body += f"tcgen05.fence::before_thread_sync; {CLUSTER_SYNC} tcgen05.fence::after_thread_sync;\n"

    def run(self, schedule: Any = "late") -> tuple[LaunchReport, NDArray[np.uint32]]:
        """The report, and the words of both tensor memories [2, 128, columns]."""
        columns = -(-self.even.columns // 8) * 8
        words = 128 * columns
        emulator = Emulator(schedule=schedule)
        source = emulator.array(np.concatenate([self.even.image, self.odd.image]))
        out = emulator.array(np.full(2 * words, 0xCDCDCDCD, np.uint32))
        text = pair_text(self.even.body + COMMIT + dump(columns), words)
        report = emulator.launch(Kernel.from_ptx(text), 2, THREADS, [source, out], cluster=(2, 1, 1))
        return report, out.numpy().reshape(2, 128, columns)


def descriptor(m: int, n: int, code: int = 1, sparse: bool = False) -> int:
    """kind::f16 of bf16, f32 accumulator; M and N are totals of the pair."""
    return sparse << 2 | 1 << 4 | code << 7 | code << 10 | n // 8 << 17 | m // 16 << 24


def place_of(row: int, col: int, m: int, n: int, sparse: bool = False) -> tuple[int, int, int]:
    """(CTA, lane, column): figures of layouts A, B and C in 9.7.16.10.5."""
    cta, own = divmod(row, m // 2)
    if m == 256:
        return cta, own, col
    if sparse:
        return cta, 32 * (own // 16) + own % 16, col
    return cta, own + 64 * (col // (n // 2)), col % (n // 2)


def gather(words: NDArray[np.uint32], m: int, n: int, column: int, sparse: bool = False) -> NDArray[np.uint32]:
    found = np.zeros((m, n), np.uint32)
    for row in range(m):
        for col in range(n):
            cta, lane, at = place_of(row, col, m, n, sparse)
            found[row, col] = words[cta, lane, column + at]
    return found


def halves(matrix: NDArray[Any]) -> list[NDArray[Any]]:
    return [matrix[: len(matrix) // 2], matrix[len(matrix) // 2 :]]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("m", "n"), [(256, 96), (128, 64)])
def test_products(m: int, n: int, schedule: Any) -> None:
    """Each CTA has half of A's rows and half of B's columns; two products accumulate."""
    pair = Pair(m)
    column = pair.take(n)
    exact, magnitude = np.zeros((m, n)), np.zeros((m, n))
    for step in range(2):
        a, b = codes_of(pair.even.rng, (m, 16), "bf16"), codes_of(pair.even.rng, (n, 16), "bf16")
        left, right = pair.matrix(halves(a), "bf16", "32B"), pair.matrix(halves(b), "bf16", "64B")
        pair.issue(
            f"tcgen05.mma.cta_group::2.kind::f16 [{{d}}], {{a}}, {{b}}, {{idesc}}, {step};",
            d=column,
            a=left,
            b=right,
            idesc=descriptor(m, n),
        )
        x, y = values_of(a, "bf16"), values_of(b, "bf16")
        exact, magnitude = exact + x @ y.T, magnitude + np.abs(x) @ np.abs(y).T
    report, words = pair.run(schedule)
    assert not errors(report), report.summary()
    close(gather(words, m, n, column), exact, magnitude, 34)


@pytest.mark.parametrize("m", [256, 128])
def test_a_in_tensor_memory(m: int) -> None:
    """At M 128 the rows of a CTA are there twice, for both halves of N (layout B)."""
    pair = Pair(m + 1)
    n = 64
    a, b = codes_of(pair.even.rng, (m, 16), "bf16"), codes_of(pair.even.rng, (n, 16), "bf16")
    words = []
    for half in halves(a):
        rows = half.astype(np.uint32)
        packed = rows[:, ::2] | rows[:, 1::2] << 16
        words.append(packed if m == 256 else np.concatenate([packed, packed]))
    place = pair.fill(words)
    pair.sync()
    right, column = pair.matrix(halves(b), "bf16"), pair.take(n)
    pair.issue(
        "tcgen05.mma.cta_group::2.kind::f16 [{d}], [{a}], {b}, {idesc}, 0;",
        d=column,
        a=place,
        b=right,
        idesc=descriptor(m, n),
    )
    report, found = pair.run()
    assert not errors(report), report.summary()
    x, y = values_of(a, "bf16"), values_of(b, "bf16")
    close(gather(found, m, n, column), x @ y.T, np.abs(x) @ np.abs(y).T, 16)


def test_sparse_at_m_128() -> None:
    """Layout C: 16 rows in each quarter of the lanes, metadata too."""
    pair = Pair(9)
    m, n, rng = 128, 32, np.random.default_rng(9)
    stored, b = codes_of(rng, (m, 16), "bf16"), codes_of(rng, (n, 32), "bf16")
    whole, x = np.zeros((m, 32)), values_of(stored, "bf16")
    words = [np.zeros((128, 4), np.uint32) for _ in range(2)]
    for row in range(m):
        cta, own = divmod(row, 64)
        for chunk in range(8):
            first, second = sorted(rng.choice(4, 2, replace=False).tolist())
            whole[row, 4 * chunk + first], whole[row, 4 * chunk + second] = x[row, 2 * chunk], x[row, 2 * chunk + 1]
            lane = 32 * (own // 16) + own % 8 + 8 * (chunk // 4)
            bit = 16 * (own % 16 // 8) + 4 * (chunk % 4)
            words[cta][lane, 1] |= (first | second << 2) << bit
    meta = pair.fill(words)
    pair.sync()
    left, right, column = pair.matrix(halves(stored), "bf16"), pair.matrix(halves(b), "bf16"), pair.take(n)
    pair.issue(
        "tcgen05.mma.sp.cta_group::2.kind::f16 [{d}], {a}, {b}, [{meta}], {idesc}, 0;",
        d=column,
        a=left,
        b=right,
        meta=meta,
        idesc=descriptor(m, n, sparse=True) | 1,
    )
    report, found = pair.run()
    assert not errors(report), report.summary()
    y = values_of(b, "bf16")
    close(gather(found, m, n, column, sparse=True), whole @ y.T, np.abs(whole) @ np.abs(y).T, 32)


def block(scales: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """128 rows by 4 scales as 32 rows of 16 bytes: row r, r + 32, r + 64, r + 96."""
    raw = np.zeros((32, 16), np.uint8)
    for row in range(len(scales)):
        raw[row % 32, row // 32 * 4 : row // 32 * 4 + 4] = scales[row]
    return raw.ravel()


@pytest.mark.parametrize("m", [256, 128])
def test_block_scales(m: int) -> None:
    """Scales by tcgen05.cp.cta_group::2 from each CTA's memory; SFB is whole in both, at M 128 a half in 64 lanes."""
    pair = Pair(m + 3)
    n, k = 256, 64
    a, b = codes_of(pair.even.rng, (m, k), "e2m1"), codes_of(pair.even.rng, (n, k), "e2m1")
    sfa = pair.even.rng.integers(0, 0x70, (m, 4), dtype=np.uint32)
    sfb = pair.even.rng.integers(0, 0x70, (n, 4), dtype=np.uint32)
    left = pair.matrix(halves(a), "e2m1", "32B", packed=True)
    right = pair.matrix(halves(b), "e2m1", "32B", packed=True)
    at_a = pair.room([block(half) for half in halves(sfa)])
    both = np.concatenate([block(half) for half in halves(sfb)])
    at_b = pair.room([both, both])
    base = 1024 >> 4 | 1 << 16 | 8 << 32 | 1 << 46  # LBO 16 without effect, SBO 128
    column = pair.take(n if m == 256 else n // 2)
    place_a, place_b = pair.take(4), pair.take(8)
    copies = [("32x128b.warpx4", place_a, at_a)]
    if m == 256:
        copies += [("32x128b.warpx4", place_b, at_b), ("32x128b.warpx4", place_b + 4, at_b + 512)]
    else:
        copies += [("64x128b.warpx2::01_23", place_b, at_b)]
    for shape, place, at in copies:
        pair.issue(f"tcgen05.cp.cta_group::2.{shape} [{{at}}], {{sdesc}};", at=place, sdesc=base + (at >> 4))
    pair.issue(
        "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.block16 [{d}], {a}, {b}, {idesc}, [{sfa}], [{sfb}], 0;",
        d=column,
        a=left,
        b=right,
        sfa=place_a,
        sfb=place_b,
        idesc=1 << 7 | 1 << 10 | n // 8 << 17 | m // 128 << 27,
    )
    report, words = pair.run()
    assert not errors(report), report.summary()
    scales = np.array([value(code, "e4m3") for code in range(0x80)])
    x = values_of(a, "e2m1") * np.repeat(scales[sfa], 16, axis=1)
    y = values_of(b, "e2m1") * np.repeat(scales[sfb], 16, axis=1)
    close(gather(words, m, n, column), x @ y.T, np.abs(x) @ np.abs(y).T, k)


def test_disabled_lanes_of_both() -> None:
    """Eight words: the even CTA's lanes, then the odd one's."""
    pair = Pair(5)
    m, n = 256, 32
    a, b = codes_of(pair.even.rng, (m, 16), "bf16"), codes_of(pair.even.rng, (n, 16), "bf16")
    left, right, column = pair.matrix(halves(a), "bf16"), pair.matrix(halves(b), "bf16"), pair.take(n)
    masks = [1, 0, 0xFF00FF00, 0, 0, 0x80000000, 7, 0xFFFFFFFF]
    for bench in (pair.even, pair.odd):
        bench.body += "".join(f"mov.b32 %r{i}, {mask};\n" for i, mask in enumerate(masks))
    for step, off in ((0, ""), (1, "{{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}}, ")):
        pair.issue(
            f"tcgen05.mma.cta_group::2.kind::f16 [{{d}}], {{a}}, {{b}}, {{idesc}}, {off}{step};",
            d=column,
            a=left,
            b=right,
            idesc=descriptor(m, n),
        )
    report, words = pair.run("random")
    assert not errors(report), report.summary()
    times = np.array([1.0 if masks[row // 32] >> row % 32 & 1 else 2.0 for row in range(m)])
    x, y = values_of(a, "bf16"), values_of(b, "bf16")
    close(gather(words, m, n, column), times[:, None] * (x @ y.T), 2 * np.abs(x) @ np.abs(y).T, 34)


def test_shift_of_both() -> None:
    pair = Pair(6)
    before = [
        bench.rng.integers(0, 2**32, (128, 8), dtype=np.uint64).astype(np.uint32) for bench in (pair.even, pair.odd)
    ]
    column = pair.fill(before)
    pair.sync()
    pair.issue("tcgen05.shift.cta_group::2.down [{at}];", at=32 << 16 | column)
    report, words = pair.run()
    assert report.status == "ok", report.summary()
    for cta in range(2):
        expected = before[cta].copy()
        for first in range(0, 128, 32):  # all four quarters
            expected[first : first + 31] = before[cta][first + 1 : first + 32]
        assert (words[cta] == expected).all()


# Allocation and order.


def both_ctas(body: str, **options: Any) -> LaunchReport:
    """One warp in each CTA of a pair, with the rank in %rank."""
    head = """.shared .align 4 .b32 slot[4]; .reg .b32 %r<4>, %rank, %z; .reg .pred %even, %odd;
        mov.u32 %rank, %cluster_ctarank; setp.eq.u32 %even, %rank, 0; setp.ne.u32 %odd, %rank, 0;\n"""
    kernel = Kernel.from_ptx(module(head + body + "\nret;"))
    return Emulator(**options).launch(kernel, 2, 32, [], cluster=(2, 1, 1))


ALLOC = (
    "mov.u32 %z, {}; tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], %z; ld.shared.b32 %r0, [slot];\n"
)
FREE = "mov.u32 %z, {}; tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r0, %z;\n"
SYNC = CLUSTER_SYNC + "\n"

ALLOCATIONS = [
    ("both", ALLOC.format(64) + SYNC + FREE.format(64), "ok", None),
    ("one alone", "@%odd bra end;" + ALLOC.format(64) + FREE.format(64) + "end:", "fault", "cta-pair"),
    ("one alone, the other waits", "@%odd bra wait;" + ALLOC.format(64) + "wait: " + SYNC, "deadlock", "deadlock"),
    (
        "different sizes",
        "mov.u32 %r1, 32; @%odd mov.u32 %r1, 64;" + ALLOC.format("%r1") + SYNC + FREE.format("%r1"),
        "fault",
        "tmem-allocation",
    ),
    (
        "one never gives back",
        ALLOC.format(64) + SYNC + "@%odd bra end;" + FREE.format(64) + "end:",
        "findings",
        "tmem-not-freed",
    ),
]


@pytest.mark.parametrize(("name", "body", "status", "code"), ALLOCATIONS, ids=[each[0] for each in ALLOCATIONS])
def test_allocation(name: str, body: str, status: str, code: str | None) -> None:
    report = both_ctas(body)
    assert report.status == status, report.summary()
    if code is not None:
        assert code in codes(report)


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_both_at_once_beside_threads_that_poll(schedule: Any) -> None:
    """Warps of both CTAs that come together are served together: no launch that goes round has to end for it."""
    tell = "st.relaxed.gpu.global.u32 [%to], {0}; bra seen{0};"
    poll = (
        "poll{0}: mov.u64 %now, %clock64; ld.relaxed.gpu.global.u32 %x, [%to]; setp.ne.u32 %q, %x, {0};"
        "@%q bra poll{0}; seen{0}: " + CLUSTER_SYNC
    )
    body = (
        ".shared .align 4 .b32 slot; .reg .b32 %r0, %x, %z, %t, %cta; .reg .b64 %to, %now; .reg .pred %p, %q;"
        "mov.u32 %t, %tid.x; mov.u32 %cta, %ctaid.x; mul.wide.u32 %to, %cta, 4; add.u64 %to, %to, %out0;"
        "setp.ge.u32 %p, %t, 32;"
        + "@%p bra poll1;"
        + ALLOC.format(64)
        + tell.format(1)
        + poll.format(1)
        + "@%p bra poll2;"
        + FREE.format(64)
        + tell.format(2)
        + poll.format(2)
        + "ret;"
    )
    report, (found,) = launch(body, [poisoned(2)], block=64, grid=2, cluster=2, schedule=schedule)
    assert report.status == "ok", report.summary()
    assert found.tolist() == [2, 2]
    assert report.instructions < 10_000


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_giving_back_before_the_last_synchronization(schedule: Any) -> None:
    """PTX ISA table 48: dealloc may wait for the peer's, which then waits for this CTA for ever."""
    bad = ALLOC.format(64) + "@%odd bra other;" + SYNC + FREE.format(64) + "bra end; other: " + FREE.format(64) + SYNC
    report = both_ctas(
        bad.replace(".aligned; barrier", "; barrier").replace("wait.aligned", "wait") + "end:", schedule=schedule
    )
    assert report.status == ("ok" if schedule == "eager" else "deadlock"), report.summary()
    if schedule != "eager":
        assert "peer" in report.findings[0].message


BROKEN: list[tuple[str, Callable[[str], str], str]] = [
    ("the commit reaches one CTA only", lambda text: text.replace("mov.b16 %both, 3", "mov.b16 %both, 1"), "deadlock"),
    (
        "the odd CTA does not wait",
        lambda text: text.replace("waiting:", "setp.ne.u32 %q, %rank, 0; @%q bra go; waiting:").replace(
            "@!%q bra waiting;", "@!%q bra waiting; go:"
        ),
        "tensor-race",
    ),
]


@pytest.mark.parametrize(("name", "change", "code"), BROKEN, ids=[each[0] for each in BROKEN])
def test_order_of_a_pair(name: str, change: Callable[[str], str], code: str) -> None:
    pair = Pair(7)
    a, b = codes_of(pair.even.rng, (256, 16), "bf16"), codes_of(pair.even.rng, (32, 16), "bf16")
    left, right, column = pair.matrix(halves(a), "bf16"), pair.matrix(halves(b), "bf16"), pair.take(32)
    pair.issue(
        "tcgen05.mma.cta_group::2.kind::f16 [{d}], {a}, {b}, {idesc}, 0;",
        d=column,
        a=left,
        b=right,
        idesc=descriptor(256, 32),
    )
    text = pair_text(pair.even.body + COMMIT + dump(32), 128 * 32)
    changed = change(text)
    assert changed != text
    emulator = Emulator(schedule="late")
    source = emulator.array(np.concatenate([pair.even.image, pair.odd.image]))
    out = emulator.array(np.zeros(2 * 128 * 32, np.uint32))
    report = emulator.launch(Kernel.from_ptx(changed), 2, THREADS, [source, out], cluster=(2, 1, 1))
    assert code in codes(report), report.summary()


#: CTA 0 commits on an mbarrier of both CTAs; END follows in both.
FAR_COMMIT = """
    .shared .align 8 .b64 done; .reg .pred %p, %q, %odd; .reg .b16 %both; .reg .u32 %rank, %t;
    mov.u32 %rank, %cluster_ctarank; setp.ne.u32 %odd, %rank, 0; mov.b16 %both, 3; mov.u32 %t, %tid.x;
    setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared::cta.b64 [done], 1; fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive; barrier.cluster.wait;
    setp.eq.and.u32 %p, %t, 0, !%odd;
    @%p tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %both;
    END ret;
"""
WAITING = "waiting: mbarrier.try_wait.parity.shared::cta.b64 %q, [done], 0; @!%q bra waiting;"
ENDS: list[tuple[str, str, bool]] = [
    ("both wait", WAITING, True),
    ("the odd one does not", f"@%odd ret; {WAITING}", False),
    ("the even one waits for both", f"@%odd bra over; {WAITING} over: {CLUSTER_SYNC}".replace(".aligned", ""), True),
    ("nobody waits, but they meet", CLUSTER_SYNC, False),
]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("name", "end", "clean"), ENDS, ids=[each[0] for each in ENDS])
def test_a_commit_on_the_mbarrier_of_a_peer(name: str, end: str, clean: bool, schedule: Any) -> None:
    """A CTA must not end before a peer's commit has arrived on its mbarrier."""
    report, _ = launch(FAR_COMMIT.replace("END", end), block=64, grid=2, cluster=2, schedule=schedule)
    assert codes(report) == ([] if clean else ["cta-exit"]), report.summary()
    if not clean:
        assert "tcgen05.commit" in report.findings[0].message


def test_many_commits_on_the_mbarrier_of_a_peer() -> None:
    """300 rounds, each waited for by both."""
    body = FAR_COMMIT.replace("setp.eq.and.u32 %p", ".reg .u32 %n, %phase; mov.u32 %n, 0; round: setp.eq.and.u32 %p")
    end = """and.b32 %phase, %n, 1; waiting: mbarrier.try_wait.parity.shared::cta.b64 %q, [done], %phase;
        @!%q bra waiting; barrier.cluster.arrive; barrier.cluster.wait; add.u32 %n, %n, 1; setp.lt.u32 %q, %n, 300;
        @%q bra round; LAST"""
    last = "@%p tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [done], %both;"
    for more, found in (("", []), (last, ["cta-exit"])):
        report, _ = launch(body.replace("END", end.replace("LAST", more)), block=32, grid=2, cluster=2)
        assert codes(report) == found, report.summary()
