"""Races and missing fences between threads and asynchronous copies in global memory: each with its clean twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxgen
from ptxgen.descriptors import TensorMap
from ptxgen.emulator import Emulator
from ptxgen.emulator.checks.cas_loops import CasLoops
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.global_memory.events import GlobalEvents
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.order.vector_clock import PENDING
from ptxgen.emulator.checks.order.weak_flags import WeakFlags
from ptxgen.emulator.checks.raced_reads import RacedReads
from tests.support.harness import codes, launch, module

SCHEDULES: list[Any] = ["eager", "late", "random"]
#: 256 bytes at `in1`, a word for each of 64 threads; `buffer` is full and shown to the async proxy, `landing` free.
#: Thread 0 asks for copies.
HEAD = """
    .shared .align 128 .b8 buffer[256];
    .shared .align 128 .b8 landing[256];
    .shared .align 8 .b64 bar;
    .reg .pred %first, %other, %w, %q; .reg .u32 %t, %x, %y, %s, %c; .reg .b64 %at, %next, %flag, %map;
    mov.b64 %map, in0;
    cvta.param.u64 %map, %map;
    mov.u32 %t, %tid.x;
    mov.u32 %c, %ctaid.x;
    setp.eq.u32 %first, %t, 0;
    setp.ge.u32 %other, %t, 32;
    mul.wide.u32 %at, %t, 4;
    add.u64 %at, %at, %in1;
    xor.b32 %x, %t, 32;
    mul.wide.u32 %next, %x, 4;
    add.u64 %next, %next, %in1;
    add.u64 %flag, %in1, 512;
    mad.lo.u32 %x, %t, 7, 3;
    mov.u32 %s, buffer;
    mad.lo.u32 %s, %t, 4, %s;
    st.shared.u32 [%s], %x;
    @%first mbarrier.init.shared::cta.b64 [bar], 1;
    @%first fence.mbarrier_init.release.cluster;
    fence.proxy.async.shared::cta;
    bar.sync 0;
"""
MBARRIER = "mbarrier::complete_tx::bytes"
LOAD = (
    "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;"
    f"@%first cp.async.bulk.shared::cta.global.{MBARRIER} [landing], [%in1], 256, [bar];"
)
TENSOR_LOAD = (
    "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;"
    f"@%first cp.async.bulk.tensor.1d.shared::cta.global.tile.{MBARRIER} [landing], [%map, {{0}}], [bar];"
)
LANDED = "w: mbarrier.try_wait.parity.shared::cta.b64 %w, [bar], 0; @!%w bra w;"
COMMIT = "@%first cp.async.bulk.commit_group;"
STORE = "@%first cp.async.bulk.global.shared::cta.bulk_group [%in1], [buffer], 256;" + COMMIT
OTHERS = "@%first cp.async.bulk.global.shared::cta.bulk_group [%in1], [buffer+128], 128;" + COMMIT
TENSOR_STORE = "@%first cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%map, {0}], [buffer];" + COMMIT
ADD = "@%first cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%in1], [buffer], 256;" + COMMIT
TENSOR_ADD = (
    "@%first cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%map, {0}], [buffer];" + COMMIT
)
DONE, READ = "cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group.read 0;"
PUT, GET = "st.global.u32 [%at], %x;", "ld.global.u32 %y, [%next];"
OTHER = "st.global.u32 [%at], %t;"  # not what the buffer has
BAR, FENCE, HERE = "bar.sync 0;", "fence.proxy.async;", "fence.proxy.async.global;"
RACE, UNFENCED = {"global-race"}, {"missing-proxy-fence"}

#: name -> (racing, its codes, clean)
KERNELS: dict[str, tuple[str, set[str], str]] = {
    "a copy reads what threads stored": (PUT + BAR + LOAD + LANDED, UNFENCED, PUT + FENCE + BAR + LOAD + LANDED),
    "a fence of global memory": (
        PUT + "fence.proxy.async.shared::cta;" + BAR + LOAD + LANDED, UNFENCED, PUT + HERE + BAR + LOAD + LANDED
    ),
    "a fence of who copies": (FENCE + PUT + BAR + LOAD + LANDED, UNFENCED, PUT + BAR + FENCE + LOAD + LANDED),
    "a fence without a barrier": (PUT + FENCE + LOAD + LANDED, RACE, PUT + FENCE + BAR + LOAD + LANDED),
    "a tensor copy reads what threads stored": (
        PUT + BAR + TENSOR_LOAD + LANDED, UNFENCED, PUT + HERE + BAR + TENSOR_LOAD + LANDED
    ),
    "threads read what a copy stores": (STORE + READ + BAR + GET, RACE, STORE + DONE + BAR + GET),
    "without a barrier": (STORE + DONE + GET, RACE, STORE + DONE + BAR + GET),
    "by the same thread": (
        STORE + "@%first ld.global.u32 %y, [%in1];" + DONE, RACE, STORE + DONE + "@%first ld.global.u32 %y, [%in1];"
    ),
    "threads read what a tensor copy stores": (TENSOR_STORE + READ + BAR + GET, RACE, TENSOR_STORE + DONE + BAR + GET),
    "threads overwrite what a copy reads": (LOAD + PUT + LANDED, RACE, LOAD + LANDED + PUT),
    "threads overwrite what a tensor copy reads": (TENSOR_LOAD + PUT + LANDED, RACE, TENSOR_LOAD + LANDED + PUT),
    "threads overwrite what a copy stores": (STORE + READ + BAR + OTHER, RACE, STORE + DONE + BAR + OTHER),
    "a copy overwrites what threads stored": (PUT + STORE + DONE, RACE, PUT + BAR + STORE + DONE),
    "a copy overwrites what threads read": (GET + STORE + DONE, RACE, GET + BAR + STORE + DONE),
    "a copy overwrites what a copy reads": (LOAD + STORE + DONE + LANDED, RACE, LOAD + LANDED + STORE + DONE),
    "a copy reads what a copy stores": (STORE + READ + LOAD + LANDED, RACE, STORE + DONE + LOAD + LANDED),
    "a copy overwrites what a copy stores": (STORE + OTHERS + DONE, RACE, STORE + DONE + OTHERS + DONE),
    "tensor copies": (TENSOR_STORE + READ + TENSOR_LOAD + LANDED, RACE, TENSOR_STORE + DONE + TENSOR_LOAD + LANDED),
    "one of several groups": (
        STORE + COMMIT + "cp.async.bulk.wait_group 2;" + BAR + GET, RACE,
        STORE + COMMIT + "cp.async.bulk.wait_group 1;" + BAR + GET,
    ),
    "a reduction on what threads stored": (PUT + BAR + ADD + DONE, UNFENCED, PUT + HERE + BAR + ADD + DONE),
    "a tensor reduction on what threads stored": (
        PUT + BAR + TENSOR_ADD + DONE, UNFENCED, PUT + HERE + BAR + TENSOR_ADD + DONE
    ),
    "a reduction on what a copy stores": (STORE + READ + ADD + DONE, RACE, STORE + DONE + ADD + DONE),
    "threads read what a reduction adds": (ADD + READ + BAR + GET, RACE, ADD + ADD + TENSOR_ADD + DONE + BAR + GET),
    "cp.async reads what threads stored": (
        PUT + "mov.u32 %s, landing; mad.lo.u32 %s, %t, 4, %s; cp.async.ca.shared.global [%s], [%next], 4;"
        "cp.async.wait_all;", RACE,
        PUT + BAR + "mov.u32 %s, landing; mad.lo.u32 %s, %t, 4, %s; cp.async.ca.shared.global [%s], [%next], 4;"
        "cp.async.wait_all;",
    ),
    "threads overwrite what cp.async reads": (
        "mov.u32 %s, landing; mad.lo.u32 %s, %t, 4, %s; cp.async.ca.shared.global [%s], [%next], 4;"
        "cp.async.wait_all;" + PUT, RACE,
        "mov.u32 %s, landing; mad.lo.u32 %s, %t, 4, %s; cp.async.ca.shared.global [%s], [%next], 4;"
        "cp.async.wait_all;" + BAR + PUT,
    ),
}  # fmt: skip


def run(body: str, *, grid: int = 1, schedule: Any = "eager", seed: int = 0, **options: Any) -> Any:
    device = Emulator("sm_100a", schedule, seed, **options)
    array = device.array(np.arange(1000, 1256, dtype=np.uint32))
    tensormap = TensorMap.tiled("u32", array.address, [64], [0], [64]).encode()
    return launch(HEAD + body + "\nret;", [], inputs=[tensormap, array.address], block=64, grid=grid, device=device)[0]


def errors(report: Any) -> set[str]:
    return {each.code for each in report.findings if each.severity == "error"}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("racing", "code", "clean"), KERNELS.values(), ids=KERNELS)
def test_copies_and_their_twins(racing: str, code: set[str], clean: str, schedule: Any) -> None:
    report = run(racing, schedule=schedule)
    assert errors(report) == code, report.summary()
    report = run(clean, schedule=schedule)
    assert (report.status, errors(report)) == ("ok", set()), report.summary()


WHOLE = "setp.lt.u32 %first, %t, 32;"
BY_WARP = {"bulk": STORE, "tensor": TENSOR_STORE}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("store", BY_WARP.values(), ids=BY_WARP)
def test_stores_by_whole_warps(store: str, schedule: Any) -> None:
    """Lanes that ask for the same make one copy, for which each of them can wait; other bytes are a race."""
    for wait in (DONE, "setp.eq.u32 %q, %t, 9; @%q cp.async.bulk.wait_group 0; bar.warp.sync -1;"):
        report = run(WHOLE + store + wait + BAR + GET, schedule=schedule)
        assert (report.status, errors(report)) == ("ok", set()), report.summary()
    assert errors(run(WHOLE + store + READ + BAR + GET, schedule=schedule)) == RACE
    shifted = "and.b32 %s, %t, 1; shl.b32 %s, %s, 7; add.u32 %s, %s, buffer;"
    source = store.replace("[buffer], 256", "[%s], 128").replace("[buffer]", "[%s]")
    report = run(WHOLE + "mov.u32 %y, buffer;" + shifted.replace("buffer", "%y") + source + DONE, schedule=schedule)
    assert errors(report) >= RACE or report.status == "fault", report.summary()


def test_reductions_by_whole_warps() -> None:
    """Each lane's adds."""
    device = Emulator("sm_100a")
    array = device.array(np.arange(1000, 1256, dtype=np.uint32))
    tensormap = TensorMap.tiled("u32", array.address, [64], [0], [64]).encode()
    body = HEAD + WHOLE + ADD + TENSOR_ADD + DONE + "\nret;"
    launch(body, [], inputs=[tensormap, array.address], block=64, device=device)
    expected = 1000 + np.arange(64) + 2 * 32 * (7 * np.arange(64) + 3)
    assert (array.numpy()[:64] == expected).all()


#: CTA 0 writes 256 bytes by a copy and sets a flag; CTA 1 sees the flag and takes them.
FLAG = """
    setp.ne.u32 %q, %c, 0;
    @%q bra take;
    WRITE @%first st.release.gpu.global.u32 [%flag], 7;
    bra end;
    take:
    ld.acquire.gpu.global.u32 %y, [%flag];
    setp.ne.u32 %q, %y, 7;
    @%q bra take;
    TAKE end:
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("write", "take", "clean"),
    [(STORE + DONE, GET, True), (STORE + READ, GET, False), (STORE + DONE, LOAD + LANDED, True),
     (STORE + READ, LOAD + LANDED, False), (TENSOR_STORE + DONE, "st.global.u32 [%at], %t;", True),
     (ADD + DONE, TENSOR_LOAD + LANDED, True), (ADD + READ, ADD + DONE, True), (ADD + READ, STORE + DONE, False)],
)  # fmt: skip
def test_flags_between_ctas(write: str, take: str, clean: bool, schedule: Any) -> None:
    report = run(FLAG.replace("WRITE", write).replace("TAKE", take), grid=2, schedule=schedule)
    assert errors(report) == (set() if clean else RACE), report.summary()
    if not clean:
        (found,) = (each for each in report.findings if each.code == "global-race")
        assert found.rule.startswith("No cp.async.bulk.wait_group without .read has waited for cp.")
        assert found.accesses[0].cta != found.accesses[1].cta


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_flags_that_order_nothing(schedule: Any) -> None:
    """A relaxed flag without fences: the copy is over, but nobody else need see that."""
    for write, take in ((STORE + DONE, GET), (LOAD + LANDED, OTHER), (PUT + HERE + BAR, LOAD + LANDED)):
        body = FLAG.replace("WRITE", write).replace("TAKE", take)
        assert errors(run(body, grid=2, schedule=schedule)) == set()
        relaxed = body.replace("st.release", "st.relaxed")
        assert errors(run(relaxed, grid=2, schedule=schedule)) == {"missing-fence"}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_threads_of_another_cta_stored(schedule: Any) -> None:
    """The fence may stand on either side of the flag."""
    for given, taken, expected in ((HERE, "", set()), ("", FENCE, set()), ("", "", UNFENCED)):
        body = FLAG.replace("WRITE", PUT + given + BAR).replace("TAKE", taken + LOAD + LANDED)
        report = run(body, grid=2, schedule=schedule)
        assert errors(report) == expected, report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_reductions_of_many_ctas(schedule: Any) -> None:
    """They add up in any order; the last CTA to count reads the sum."""
    body = """
        red.relaxed.gpu.global.add.u32 [%at], 1;
        ADD DONE fence.acq_rel.gpu;
        bar.sync 0;
        mov.u32 %y, 0;
        @%first atom.acq_rel.gpu.global.add.u32 %y, [%flag], 1;
        bar.sync 0;
        setp.ne.u32 %q, %y, 1133;
        @%q bra end;
        ld.global.u32 %y, [%in1+128];
        end:
    """.replace("ADD", ADD + TENSOR_ADD)
    assert errors(run(body.replace("DONE", DONE), grid=6, schedule=schedule)) == set()
    assert errors(run(body.replace("DONE", READ), grid=6, schedule=schedule)) == RACE


def test_copies_meet_where_they_are_whole() -> None:
    """Units of which a copy touches a part are left to their neighbors, and boxes end at the tensor's edge."""
    masked = STORE.replace(".bulk_group", ".bulk_group.cp_mask").replace("256;", "256, %h;").replace("%h", "0x00ff")
    masked = ".reg .b16 %h; mov.b16 %h, 255;" + masked.replace("0x00ff", "%h")
    assert errors(run(masked + OTHER + DONE)) == set()
    beyond = "add.u64 %at, %in1, 256; mad.wide.u32 %at, %t, 4, %at; st.global.u32 [%at], %t;"
    assert errors(run(TENSOR_STORE + TENSOR_LOAD.replace("{0}", "{32}") + beyond + LANDED + DONE)) == RACE
    assert errors(run(TENSOR_STORE.replace("{0}", "{32}") + beyond + DONE)) == set()


def test_forgotten_events_stay_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long kernels drop what they remember; a copy that was under way then is nobody's any more when it is over."""
    monkeypatch.setattr("ptxgen.emulator.checks.global_memory.events._MANY", 8)
    turns = (OTHER + BAR + GET + BAR + STORE + DONE + BAR + GET + BAR) * 5
    assert errors(run(turns)) == set()
    assert errors(run(turns + OTHER + GET)) == RACE
    order, findings = HappensBefore(1, 2, 1, Findings()), Findings()
    flags = WeakFlags(order)
    events = GlobalEvents(order, np.zeros(2, np.int64), 4096, CasLoops(), flags, RacedReads(flags), findings)
    statement = next(iter(ptxgen.parse(module("ret;")).statements()))
    old = events.stamp(events.of_copy(0, PENDING, statement, "bulk store"))
    fresh = [events.stamp(events.of_copy(1, PENDING, statement, "bulk store")) for _ in range(12)]
    events.settle(old, 77)
    events.settle(fresh[-1], 78)
    assert (events.clock == 77).sum() == 0
    assert (events.clock == 78).sum() == 1


DUPLICATE = """
    .shared .align 128 .b8 tile[512];
    .reg .b32 %lane, %t, %warp, %from, %at, %x;
    .reg .pred %first;
    mov.u32 %t, %tid.x;
    and.b32 %lane, %t, 31;
    shr.u32 %warp, %t, 5;
    setp.eq.u32 %first, %lane, 0;
    shl.b32 %from, %warp, 8;
    mov.u32 %x, tile;
    add.u32 %from, %from, %x;
    shl.b32 %x, %lane, 3;
    add.u32 %at, %from, %x;
    st.shared.v2.u32 [%at], {VALUE, VALUE};
    fence.proxy.async.shared::cta;
    bar.warp.sync 0xffffffff;
    @%first cp.async.bulk.global.shared::cta.bulk_group [%out0], [%from], 256;
    cp.async.bulk.commit_group;
    WAIT
    ret;
"""


@pytest.mark.parametrize("wait", ["cp.async.bulk.wait_group.read 0;", "cp.async.bulk.wait_group 0;"])
@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_two_warps_store_the_same_bytes(schedule: Any, wait: str) -> None:
    """Advice that says so, where other bytes are an error."""
    for value, wanted in (("7", "advice"), ("%warp", "error")):
        body = DUPLICATE.replace("VALUE", value).replace("WAIT", wait)
        report, _ = launch(body, [np.zeros(64, np.uint32)], block=64, kernel_target="sm_90a", schedule=schedule)
        found = [each for each in report.findings if each.code == "global-race"]
        assert [each.severity for each in found] == [wanted], report.summary()
        assert ("Both store the same bytes" in found[0].message) == (wanted == "advice")


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_strong_stores_of_what_is_there(schedule: Any) -> None:
    """As with weak ones, it is advice beside a weak store of the same bytes by another warp, first or second."""
    body = ".reg .b32 %t; .reg .pred %p; mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 32;"
    body += ".shared .align 4 .b32 word;"
    for value, wanted in (("1", "advice"), ("2", "error")):
        for weak, strong in (("@%p", "@!%p"), ("@!%p", "@%p")):
            for space, place in (("global", "%out0"), ("shared", "word")):
                first = f"{weak} st.{space}.u32 [{place}], 1;"
                second = f"{strong} st.relaxed.gpu.{space}.u32 [{place}], {value};"
                report, _ = launch(
                    body + first + second + "ret;", [np.zeros(4, np.uint32)], block=64, schedule=schedule
                )
                found = {(each.code, each.severity) for each in report.findings}
                assert found == {(f"{space}-race", wanted)}, report.summary()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_two_stores_of_the_same_bytes(schedule: Any) -> None:
    """Advice, whether two instructions store them or one; an error for other bytes."""
    body = ".reg .b32 %t; .reg .pred %p; mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 32;"
    one, two = (f"{{}} st.global.v2.u32 [%out0+8], {{{{{value}, 7}}}};" for value in (3, 4))
    for stores, wanted in (
        (one.format("@%p") + one.format("@!%p"), ["advice"]),
        (one.format("@%p") + two.format("@!%p"), ["error"]),
        (one.format(""), ["advice"]),
    ):
        report, _ = launch(body + stores + "ret;", [np.zeros(4, np.uint32)], block=64, schedule=schedule)
        assert [(each.code, each.severity) for each in report.findings] == [("global-race", each) for each in wanted]
        assert all(
            ("Both store the same bytes" in each.message) == (each.severity == "advice") for each in report.findings
        )


ONE_TENSOR_STORE = """
    .shared .align 128 .b8 tile[1024];
    .reg .b64 %map;
    .reg .b32 %t, %at;
    .reg .pred %first;
    mov.u32 %t, %tid.x;
    shl.b32 %at, %t, 5;
    mov.b64 %map, in0;
    cvta.param.u64 %map, %map;
    mov.u32 %t, tile;
    add.u32 %at, %at, %t;
    st.shared.v4.b32 [%at], {1, 1, 1, 1};
    st.shared.v4.b32 [%at+16], {1, 1, 1, 1};
    fence.proxy.async.shared::cta;
    bar.warp.sync -1;
    mov.u32 %t, %tid.x;
    setp.eq.u32 %first, %t, 0;
    @%first cp.OPERATION.2d.global.shared::cta.HOW.bulk_group [%map, {0, 0}], [tile];
    @%first cp.async.bulk.commit_group;
    @%first cp.async.bulk.wait_group 0;
    ret;
"""
STORES = [("async.bulk.tensor", "tile"), ("reduce.async.bulk.tensor", "add.tile")]


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("columns", [64, 60, 57])
@pytest.mark.parametrize(("operation", "how"), STORES, ids=["store", "reduction"])
def test_tensor_stores_write_whole_units(operation: str, how: str, columns: int, schedule: Any) -> None:
    device = Emulator(schedule=schedule, advice=1000)
    matrix = device.array(np.zeros((8, 64), np.uint16))
    tensor = TensorMap.tiled("bf16", matrix.address, (columns, 8), (128,), (64, 8))
    text = ONE_TENSOR_STORE.replace("OPERATION", operation).replace("HOW", how)
    report, _ = launch(text, inputs=[tensor.encode()], device=device)
    assert (report.status, codes(report)) == ("ok", [] if columns == 64 else ["tensor-store-tail"]), report.summary()
    assert columns == 64 or f"{16 - columns * 2 % 16} bytes after each row" in report.findings[0].message
