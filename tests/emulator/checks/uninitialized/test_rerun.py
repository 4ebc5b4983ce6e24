"""What should not have been read, and whether anything depends on it: launches are repeated with other bytes there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxgen import Kernel
from ptxgen.device import LaunchReport
from ptxgen.emulator import Emulator
from ptxgen.emulator.checks.findings import HARMLESS, Findings
from ptxgen.emulator.checks.registry import races, tcgen05
from ptxgen.emulator.checks.uninitialized import rerun
from ptxgen.emulator.checks.uninitialized.suspects import UNJUDGED
from tests.support.harness import launch, module, poisoned
from tests.support.tensor_kernel import TEXT, Operand, commit, dump, instruction_descriptor, mma

SCHEDULES: list[Any] = ["eager", "late", "random"]

# Loads by threads.

#: Lanes up to 15 write to shared memory, all lanes load; USE makes %y of what they load, %x.
LOADS = """
    .shared .align 16 .b32 data[64]; .reg .u32 %t, %x, %y, %at; .reg .pred %p, %q; .reg .b64 %to; .reg .f32 %f;
    .reg .b32 %h, %one;
    mov.u32 %t, %tid.x;
    shl.b32 %at, %t, 2;
    mov.u32 %x, data;
    add.u32 %at, %at, %x;
    setp.lt.u32 %p, %t, 16;
    @%p st.shared.u32 [%at], %t;
    bar.warp.sync -1;
    ld.shared.u32 %x, [%at];
    USE
    mul.wide.u32 %to, %t, 4;
    add.u64 %to, %to, %out0;
    STORE
    ret;
"""
STORE = "st.global.u32 [%to], %y;"
DROPPED = {
    "by a selection": "selp.b32 %y, %x, 7, %p;",
    "by a branch": "mov.u32 %y, 7; @!%p bra over; add.u32 %y, %x, 1; over:",
    "by a mask": "and.b32 %y, %x, 0;",
}
USED = {
    "as it is": "mov.u32 %y, %x;",
    "added": "add.u32 %y, %x, %t;",
    "shuffled": "shfl.sync.bfly.b32 %y, %x, 16, 31, -1;",
    "in a vote": "setp.eq.u32 %q, %x, 0xFFFFFFFF; vote.sync.ballot.b32 %y, %q, -1;",
    "in a branch": "mov.u32 %y, 7; setp.gt.u32 %q, %x, 1000000000; @%q bra over; mov.u32 %y, 8; over:",
    "in a maximum": "mov.b32 %f, %x; max.f32 %f, %f, 0f3F800000; mov.b32 %y, %f;",
    "in a minimum": "mov.b32 %f, %x; min.f32 %f, %f, 0fBF800000; mov.b32 %y, %f;",
    "in a minimum of absolute values": "mov.b32 %f, %x; abs.f32 %f, %f; min.f32 %f, %f, 0f3F800000; mov.b32 %y, %f;",
    "in a maximum of .f16x2": "mov.b32 %h, %x; mov.b32 %one, 0x3C003C00; max.f16x2 %h, %h, %one; mov.b32 %y, %h;",
    "as the sign": "setp.lt.s32 %q, %x, 0; selp.b32 %y, 1, 2, %q;",
}


def loads(use: str, store: str = STORE, **options: Any) -> tuple[LaunchReport, NDArray[np.uint32]]:
    report, (out,) = launch(LOADS.replace("USE", use).replace("STORE", store), [poisoned(64)], **options)
    return report, out


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("use", DROPPED.values(), ids=DROPPED)
def test_values_that_are_dropped(use: str, schedule: Any) -> None:
    report, _ = loads(use, schedule=schedule)
    assert report.status == "ok", report.summary()
    (finding,) = report.findings
    assert (finding.code, finding.severity) == ("uninitialized-shared", "advice")
    assert HARMLESS in finding.message


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("use", USED.values(), ids=USED)
def test_values_that_are_used(use: str, schedule: Any) -> None:
    report, _ = loads(use, schedule=schedule)
    assert report.status == "findings", report.summary()
    (finding,) = report.findings
    assert (finding.code, finding.severity) == ("uninitialized-shared", "error")
    assert HARMLESS not in finding.message


def test_a_launch_that_leaves_nothing_cannot_be_judged() -> None:
    report, out = loads(DROPPED["by a selection"], store="")
    assert (report.status, set(out.view(np.uint8))) == ("findings", {0xCD}), report.summary()


def test_a_launch_on_much_memory_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerun, "_MOST", 64)
    report, _ = loads(DROPPED["by a selection"])
    assert report.status == "findings", report.summary()


#: A loop with an end that a limit on the steps does not let a launch reach.
COUNT = "mov.u32 %x, 0; count: add.u32 %x, %x, 1; setp.lt.u32 %q, %x, 100000; @%q bra count;"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("use", [DROPPED["by a selection"], USED["added"]], ids=["dropped", "used"])
def test_a_launch_that_is_cut_off_is_not_judged(use: str, schedule: Any) -> None:
    """Without a rerun, reads are advice in an incomplete launch, and the report says that they are not judged."""
    report, _ = loads(f"{use} {COUNT}", schedule=schedule, max_steps=200)
    told = {each.code: (each.severity, UNJUDGED in each.message) for each in report.findings}
    assert report.status == "incomplete", report.summary()
    assert told == {"step-limit": ("error", False), "uninitialized-shared": ("advice", True)}
    assert any("an incomplete launch is not rerun" in each for each in report.gaps)


@pytest.mark.parametrize("read", ["add.u32 %x, %never, 1;", "ld.local.u32 %x, [mine]; add.u32 %x, %x, 1;"])
def test_registers_and_stacks_of_a_launch_that_is_cut_off(read: str) -> None:
    body = ".reg .u32 %x, %never; .reg .pred %q; .local .b32 mine; st.global.u32 [%out0], 7;"
    store = f"{read} st.global.u32 [%out0+4], %x; {COUNT} ret;"
    report, _ = launch(body + store, [poisoned(4)], max_steps=200)
    told = [(each.severity, UNJUDGED in each.message) for each in report.findings if each.code != "step-limit"]
    assert (report.status, told) == ("incomplete", [("advice", True)]), report.summary()
    assert any("an incomplete launch is not rerun" in each for each in report.gaps)


def test_a_launch_that_is_cut_off_keeps_other_errors() -> None:
    store = f"selp.b32 %y, %x, 7, %p; bar.sync 0; st.shared.u32 [data], %t; {COUNT}"
    report, _ = loads(store, block=64, max_steps=200)
    severities = {(each.code, each.severity) for each in report.findings}
    assert {("uninitialized-shared", "advice"), ("shared-race", "error")} <= severities, report.summary()


def test_other_errors_stay() -> None:
    report, _ = loads("selp.b32 %y, %x, 7, %p; bar.sync 0; st.shared.u32 [data], %t;", block=64)
    severities = {(each.code, each.severity) for each in report.findings}
    assert report.status == "findings", report.summary()
    assert severities == {("uninitialized-shared", "advice"), ("shared-race", "error")}


def test_memory_is_left_as_by_one_launch() -> None:
    """What the kernel does to memory, it has done once: also after rerun."""
    add = "red.global.add.u32 [%to], 5;"
    report, out = loads(DROPPED["by a selection"], store=add)
    assert report.status == "ok", report.summary()
    assert (out[:32] == np.uint32(0xCDCDCDCD) + np.uint32(5)).all()


def test_one_launch_prints(capsys: pytest.CaptureFixture[str]) -> None:
    text = module(
        """
        .shared .b32 data; .reg .u32 %x, %r; .reg .b64 %f, %o, %d; .param .b32 back; .local .b32 room;
        ld.shared.u32 %x, [data];
        mov.u64 %f, format;
        cvta.global.u64 %f, %f;
        mov.u64 %d, 0;
        ld.param.u64 %o, [out];
        { .param .b64 a;
        .param .b64 b;
        .param .b32 c;
        st.param.b64 [a], %f;
        st.param.b64 [b], %d;
        call.uni (c), vprintf, (a, b);
        ld.param.b32 %r, [c]; }
        st.global.u32 [%o], 1;
        ret;
        """,
        ".param .u64 out",
        items=".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
        ".global .align 1 .b8 format[4] = {104, 105, 10, 0};",
    )
    emulator = Emulator("sm_100a")
    report = emulator.launch(Kernel.from_ptx(text), 1, 1, [emulator.array(np.zeros(1, np.uint32))])
    assert (report.status, capsys.readouterr().out) == ("ok", "hi\n"), report.summary()


# Rows of products.

#: B, then the 128 rows of A, of which threads write those up to 63; `%leader` copies the others, or nobody does.
B, A = Operand("k", "128B", 32, 0, 16, 1024), Operand("k", "128B", 128, 4096, 16, 1024)
WRITTEN = 4096 + 64 * 128
PRODUCT = mma(A.descriptor, B.descriptor, instruction_descriptor(128, 32, "bf16", "bf16"), 0)
COPY = f"""
    @%leader mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], {64 * 128};
    mov.u32 %place, image;
    add.u32 %place, %place, {WRITTEN};
    add.u64 %from, %source, {WRITTEN};
    @%leader cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%place], [%from], {64 * 128}, [full];
"""
COPIED = "arriving: mbarrier.try_wait.parity.shared::cta.b64 %q, [full], 0; @!%q bra arriving;\n"
SOME_ROWS = "setp.lt.u32 %q, %t, 64;\n" + dump(32).replace("st.global", "@%q st.global")


def products(body: str, schedule: Any) -> tuple[LaunchReport, NDArray[np.float32]]:
    generator = np.random.default_rng(5)
    image = np.zeros(98304, np.uint8)
    for operand in (A, B):
        operand.put(image, generator.standard_normal((operand.rows, 16)).astype("bfloat16"))
    text = TEXT.replace("%x, 98304", f"%x, {WRITTEN}").replace(".b64 done;", ".b64 done; .shared .align 8 .b64 full;")
    text = text.replace("[done], 1;", "[done], 1; @%leader mbarrier.init.shared::cta.b64 [full], 1;")
    text = module(text.replace("$BODY", body), ".param .u64 source, .param .u64 out", target="sm_100a")
    emulator = Emulator("sm_100a", schedule)
    out = emulator.array(np.full(128 * 32, 0xCDCDCDCD, np.uint32))
    report = emulator.launch(Kernel.from_ptx(text), 1, 128, [emulator.array(image), out])
    return report, out.numpy().view(np.float32).reshape(128, 32)


BODIES = {
    "not written": PRODUCT + commit() + "DUMP",
    "being written": COPY + PRODUCT + commit() + "DUMP" + COPIED,
    "overwritten": PRODUCT + COPY + commit() + "DUMP" + COPIED,
}
CODES = {"not written": {"uninitialized-shared"}, "overwritten": {"uninitialized-shared", "shared-race"}}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", BODIES)
def test_rows_of_a_product_that_are_dropped(name: str, schedule: Any) -> None:
    report, out = products(BODIES[name].replace("DUMP", SOME_ROWS), schedule)
    told = [each for each in report.findings if each.code in ("shared-race", "uninitialized-shared")]
    assert report.status == "ok", report.summary()
    assert {each.code for each in told} == CODES.get(name, {"shared-race"})
    assert all(each.severity == "advice" and HARMLESS in each.message for each in told)
    whole, right = products(COPY + COPIED + PRODUCT + commit() + dump(32), schedule)
    assert whole.ok, whole.summary()
    np.testing.assert_array_equal(out[:64], right[:64])


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", BODIES)
def test_rows_of_a_product_that_are_used(name: str, schedule: Any) -> None:
    report, _ = products(BODIES[name].replace("DUMP", dump(32)), schedule)
    told = [each for each in report.findings if each.severity == "error"]
    assert {each.code for each in told} == CODES.get(name, {"shared-race"}), report.summary()
    assert not any(HARMLESS in each.message for each in report.findings)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_tensor_memory_that_is_dropped_or_used(schedule: Any) -> None:
    more = "add.u32 %x, %taddr, 64; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r9}, [%x]; tcgen05.wait::ld.sync.aligned;"
    store = "mul.wide.u32 %to, %t, 4; add.u64 %to, %to, %out; st.global.u32 [%to], %y;"
    for use, severity in (("and.b32 %y, %r9, 0;", "advice"), ("mov.b32 %y, %r9;", "error")):
        report, _ = products(more + use + store, schedule)
        told = {(each.code, each.severity) for each in report.findings}
        assert told == {("uninitialized-tensor", severity)}, report.summary()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("shape", ["dropped", "used"])
def test_lanes_that_64_rows_leave_out(shape: str, schedule: Any) -> None:
    """Accumulators of 64 rows are in half of the lanes; a load brings all of them."""
    product = mma(A.descriptor, B.descriptor, instruction_descriptor(64, 32, "bf16", "bf16"), 0)
    rows = "and.b32 %z, %t, 16; setp.eq.u32 %q, %z, 0;\n" + dump(32).replace("st.global", "@%q st.global")
    report, _ = products(product + commit() + (rows if shape == "dropped" else dump(32)), schedule)
    if shape == "dropped":
        assert not report.findings, report.summary()
    else:
        (finding,) = report.findings
        assert (finding.code, finding.severity) == ("uninitialized-tensor", "error")
        assert finding.summary.endswith("reads TMEM columns in which half the lanes are uninitialized")
        assert "; results depend" in finding.message


def test_columns_that_nothing_has_written_are_named() -> None:
    """The product has 32 columns, of 64 that are read."""
    load = "add.u32 %x, %taddr, 0; tcgen05.ld.sync.aligned.32x32b.x64.b32 {{{}}}, [%x]; tcgen05.wait::ld.sync.aligned;"
    whole = load.format(", ".join(f"%r{i}" for i in range(64)))
    report, _ = products(PRODUCT.replace("%x, %d, 0", "%x, %d, 16") + commit() + whole, "eager")
    assert "uninitialized TMEM, 32 columns from 0 on" in report.summary()


# Metadata of sparse matrices.

#: A product whose metadata name nothing in rows 8 to 15, of which each thread has the last two elements.
SPARSE = """
    .reg .b32 %a<2>, %b<2>, %meta; .reg .f32 %d<4>, %zero; .reg .u32 %t; .reg .b64 %to;
    mov.u32 %t, %tid.x;
    mul.lo.u32 %t, %t, 37;
    add.u32 %t, %t, 0x3C003801;
    mov.b32 %a0, %t;
    mov.b32 %b0, %t;
    mul.lo.u32 %t, %t, 3;
    and.b32 %t, %t, 0x3FFF3FFF;
    mov.b32 %a1, %t;
    mov.b32 %b1, %t;
    mov.b32 %meta, 0x00004444;
    mov.f32 %zero, 0f00000000;
    mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1}, {%b0, %b1},
        {%zero, %zero, %zero, %zero}, %meta, 0;
    mov.u32 %t, %tid.x;
    mul.wide.u32 %to, %t, 4;
    add.u64 %to, %to, %out0;
    st.global.f32 [%to], DATA;
    ret;
"""


@pytest.mark.parametrize(("data", "severity"), [("%d0", "advice"), ("%d2", "error")])
def test_metadata_that_mean_nothing(data: str, severity: str) -> None:
    report, _ = launch(SPARSE.replace("DATA", data), [poisoned(32)], block=32, target="sm_90a", kernel_target="sm_90a")
    told = [(each.code, each.severity, HARMLESS in each.message) for each in report.findings]
    assert told == [("illegal-metadata", severity, severity == "advice")], report.summary()


# Copies to one place.

#: Two copies to the same bytes, of which the second does not wait for the first; then both are done.
COPIES = """
    .shared .align 16 .b32 data[4]; .shared .align 8 .b64 done[2]; .reg .b32 %at, %x, %y; .reg .b64 %from;
    .reg .pred %q;
    mov.u32 %at, data;
    add.u64 %from, %out0, 16;
    mbarrier.init.shared::cta.b64 [done], 1;
    mbarrier.init.shared::cta.b64 [done + 8], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [done], 16;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [done + 8], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%at], [%from], 16, [done];
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%at], [%from], 16, [done + 8];
    one:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [done], 0;
    @!%q bra one;
    other:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [done + 8], 0;
    @!%q bra other;
    USE
    st.global.u32 [%out0], %y;
    ret;
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("use", "severity"), [("mov.b32 %y, 7;", "advice"), ("ld.shared.b32 %y, [data + 4];", "error")]
)
def test_copies_to_one_place(use: str, severity: str, schedule: Any) -> None:
    report, _ = launch(COPIES.replace("USE", use), [poisoned(64)], block=1, schedule=schedule)
    told = [(each.code, each.severity, HARMLESS in each.message) for each in report.findings]
    assert told == [("shared-race", severity, severity == "advice")], report.summary()


# Findings.


def test_a_finding_is_harmless_only_if_it_is_so_each_time() -> None:
    findings = Findings()
    findings.report(races.SHARED_RACE, None, summary="it reads", rule="", fix="", reads=True)
    assert findings.may_be_harmless
    findings.report(races.SHARED_RACE, None, summary="it reads", rule="", fix="")
    assert not findings.may_be_harmless
    findings.report(tcgen05.TENSOR_RACE, None, summary="it reads", rule="", fix="", reads=True)
    findings.make_harmless()
    assert [(each.severity, each.message) for each in findings.list()] == [
        ("error", "race: it reads."),
        ("advice", f"race in tensor memory: it reads. {HARMLESS}."),
    ]


def test_errors_that_are_not_kept_count() -> None:
    findings = Findings()
    for number in range(20):
        findings.report(races.SHARED_RACE, None, summary=f"{number} reads", rule="", fix="", reads=True)
    assert findings.may_be_harmless
    findings.report(races.SHARED_RACE, None, summary="one more", rule="", fix="")
    assert not findings.may_be_harmless


#: Each thread copies a frame of which it has written the first word alone, as GCC's OpenACC does before it broadcasts a
#: frame; then one lane of each warp takes a lock.
COPIED_FRAME = """
    .local .align 4 .b8 frame[32]; .shared .align 4 .b8 frames[4096]; .shared .b32 lock, sum;
    .reg .b32 %thread, %lane, %at, %from, %end, %x, %got; .reg .pred %p, %leader; .reg .b64 %to;
    mov.u32 %thread, %tid.x;
    and.b32 %lane, %thread, 31;
    setp.eq.u32 %leader, %lane, 0;
    setp.eq.u32 %p, %thread, 0;
    @%p st.shared.u32 [lock], 0;
    @%p st.shared.u32 [sum], 0;
    bar.sync 0;
    st.local.u32 [frame], %thread;
    shl.b32 %at, %thread, 5;
    mov.u32 %x, frames;
    add.u32 %at, %at, %x;
    mov.u32 %from, frame;
    add.u32 %end, %from, 32;
copy:
    ld.local.u32 %x, [%from];
    st.shared.u32 [%at], %x;
    add.u32 %from, %from, 4;
    add.u32 %at, %at, 4;
    setp.lt.u32 %p, %from, %end;
    @%p bra copy;
    @!%leader bra done;
take:
    atom.acquire.cta.shared.cas.b32 %got, [lock], 0, 1;
    setp.ne.u32 %p, %got, 0;
    @%p bra take;
    ld.shared.u32 %x, [sum];
    add.u32 %x, %x, %thread;
    st.shared.u32 [sum], %x;
    st.release.cta.shared.u32 [lock], 0;
done:
    bar.sync 0;
    ld.shared.u32 %x, [sum];
    mul.wide.u32 %to, %thread, 4;
    add.u64 %to, %to, %out0;
    st.global.u32 [%to], %x;
    ret;
"""


@pytest.mark.parametrize("seed", range(6))
def test_a_rerun_with_other_bytes_keeps_the_schedule(seed: int) -> None:
    report, (out,) = launch(
        COPIED_FRAME, [poisoned(128, np.uint32)], block=128, device=Emulator(schedule="random", seed=seed)
    )
    assert report.status == "ok", report.summary()
    assert not report.findings, report.summary()
    assert (out == 32 + 64 + 96).all()
