"""Order and completion of what tensor cores do. PTX ISA 9.7.16.6."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.emulator import Emulator
from tests.support.harness import codes, line_of
from tests.support.tensor_kernel import (
    FIRST,
    GOOD,
    IMAGE,
    READ,
    THREADS,
    WAIT,
    A,
    B,
    commit,
    mma,
    numbered,
    run,
    source,
)

NO_FENCE = WAIT.replace("tcgen05.fence::after_thread_sync;", "")
NO_WAIT = "@%leader tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\n"
PUT = "tcgen05.st.sync.aligned.32x32b.x32.b32 [%taddr], {" + ", ".join(f"%r{i}" for i in range(32)) + "};\n"
STORED = "tcgen05.wait::st.sync.aligned;\n"
LATER = "\ntcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;\n"
ORDER = [
    ("reading what is being computed", FIRST + NO_WAIT + READ, "tensor-race", "tcgen05.ld"),
    ("no fence after the wait", FIRST + NO_FENCE + READ, "missing-tcgen05-fence", "tcgen05.ld"),
    ("no wait for the load", FIRST + WAIT + READ.replace("tcgen05.wait::ld.sync.aligned;", ""),
     "missing-tcgen05-wait", "mov.b32 %r1, %r0"),
    ("reading what was never computed", READ, "uninitialized-tensor", "tcgen05.ld"),
    ("adding to nothing", mma(A.descriptor, B.descriptor, GOOD, 1) + WAIT + READ, "uninitialized-tensor",
     "@%leader tcgen05.mma"),
    ("computing over what is being read", FIRST + WAIT + READ + "\n" + FIRST + commit(1), "tensor-race", None),
    ("giving back what is being computed", FIRST + NO_WAIT, "tmem-freed-in-use", "tcgen05.dealloc"),
    ("overwriting an operand", FIRST + "@%leader st.shared.u32 [image], 5;" + WAIT + READ, "shared-race",
     "@%leader st.shared.u32 [image]"),
    ("reading what is being stored", PUT + READ, "missing-tcgen05-wait", "tcgen05.ld"),
    ("adding to what is being stored", PUT + mma(A.descriptor, B.descriptor, GOOD, 1) + WAIT + READ, "tensor-race",
     "@%leader tcgen05.mma"),
    ("storing over what is being computed", FIRST + PUT + STORED + READ, "tensor-race", "tcgen05.st"),
    ("giving back what is being stored", PUT, "tmem-freed-in-use", "tcgen05.dealloc"),
    ("operands that nothing has written", mma(A.descriptor + (0x19000 >> 4), B.descriptor, GOOD, 0) + WAIT + READ,
     "uninitialized-shared", "@%leader tcgen05.mma"),
]  # fmt: skip


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(("name", "body", "code", "victim"), ORDER, ids=[each[0] for each in ORDER])
def test_order(name: str, body: str, code: str, victim: str | None, schedule: Any) -> None:
    image = np.random.default_rng(4).integers(0, 64, IMAGE, dtype=np.uint8)
    text = source(body).replace(".shared .align 4 .b32 slot;", ".shared .align 4 .b32 slot; .shared .b8 empty[49152];")
    emulator = Emulator(schedule=schedule)
    out = emulator.empty(1, np.uint32)
    report = emulator.launch(Kernel.from_ptx(text), 1, THREADS, [emulator.array(image), out])
    assert code in codes(report), report.summary()
    finding = next(each for each in report.findings if each.code == code)
    if victim is not None:
        assert finding.instruction.startswith(victim)


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_who_reads_a_register_waits_for_its_load(schedule: Any) -> None:
    """PTX ISA 9.2, 9.7.16.6.4.5: a true register dependency is respected without tcgen05.wait::ld."""
    body, image = numbered()
    body += "add.u32 %x, %taddr, 5;" + READ.replace("[%taddr]", "[%x]").replace("tcgen05.wait::ld.sync.aligned;\n", "")
    body += "\n@%leader st.global.b32 [%out], %r1; tcgen05.wait::ld.sync.aligned;"
    report, words = run(body, image, 1, schedule=schedule)
    assert report.status == "ok", report.summary()
    assert set(codes(report)) <= {"missing-tcgen05-wait"}
    assert words.view(np.float32)[0] == 5


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(("version", "advised"), [("8.6", True), ("9.1", True), ("9.2", False), ("9.4", False)])
def test_the_version_says_whether_a_load_must_be_waited_for(version: str, advised: bool, schedule: Any) -> None:
    """From PTX ISA 9.2 on the registers alone order the load; CuTe DSL 4.8.1 omits the wait in modules of 8.8 too."""
    body, image = numbered()
    body += READ.replace("tcgen05.wait::ld.sync.aligned;\n", "")
    body += "\n@%leader st.global.b32 [%out], %r1; tcgen05.wait::ld.sync.aligned;"
    text = re.sub(r"\.version \S+", f".version {version}", source(body))
    emulator = Emulator(schedule=schedule)
    out = emulator.array(np.zeros(1, np.uint32))
    report = emulator.launch(Kernel.from_ptx(text), 1, THREADS, [emulator.array(image), out])
    assert (report.status, codes(report)) == ("ok", ["missing-tcgen05-wait"] if advised else []), report.summary()
    assert not advised or f"of version {version}" in report.findings[0].message


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("wait", [STORED, ""])
def test_a_warp_loads_what_it_has_stored(wait: str, schedule: Any) -> None:
    """CUTLASS's stream-K kernels have no tcgen05.wait::st there: the order holds, and is advised."""
    body, image = numbered()
    body += "mov.b32 %r0, 7; tcgen05.st.sync.aligned.32x32b.x1.b32 [%taddr], {%r0}; mov.b32 %r0, 9;" + wait + READ
    body += "\n@%leader st.global.b32 [%out], %r1; tcgen05.wait::st.sync.aligned;"
    report, words = run(body, image, 1, schedule=schedule)
    assert (report.status, codes(report)) == ("ok", [] if wait else ["missing-tcgen05-wait"]), report.summary()
    assert words[0] == 7


USED = READ.replace("tcgen05.wait::ld.sync.aligned;\n", "")
NOT_LOADED = USED.replace("mov.b32 %r1, %r0;", "")
REUSE = [
    ("by a product", FIRST + commit(1), "tensor-race", "@%leader tcgen05.mma"),
    ("by a copy", "@%leader tcgen05.cp.cta_group::1.128x128b [%d], $A;" + commit(1), "tensor-race",
     "@%leader tcgen05.cp"),
    ("by dealloc", "", "tmem-freed-in-use", "tcgen05.dealloc"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "later", "code", "victim"), REUSE, ids=[each[0] for each in REUSE])
def test_columns_used_again_before_a_load_is_waited_for(name: str, later: str, code: str, victim: str) -> None:
    """tcgen05.wait::ld says that the cells have been read; a use of the registers does before dealloc alone.

    A load whose registers nobody reads harms nobody.
    """
    later = later.replace("$A", hex(A.descriptor))
    image = np.random.default_rng(4).integers(0, 64, IMAGE, dtype=np.uint8)
    unused = source(FIRST + WAIT + NOT_LOADED + LATER + later)
    emulator = Emulator()
    arguments = [emulator.array(image), emulator.empty(1, np.uint32)]
    for use, wrong in (("", False), ("mov.b32 %r1, %r0;", True), ("tcgen05.wait::ld.sync.aligned;", True)):
        used = Kernel.from_ptx(unused.replace("end: ret;", f"end: {use} ret;"))
        report = emulator.launch(used, 1, THREADS, arguments)
        assert (report.status == "findings") == wrong, report.summary()
    found = [each for each in report.findings if each.severity == "error"]
    assert {each.code for each in found} <= {code, "tmem-freed-in-use"}
    assert found[0].code == code
    assert found[0].instruction.startswith(victim)
    assert "No tcgen05.wait::ld follows the load" in found[0].message
    assert "fix: tcgen05.wait::ld after line" in found[0].message or found[0].code == "tmem-freed-in-use"
    clean, _ = run(FIRST + WAIT + READ + LATER + later, image, 1)
    assert clean.status == "ok", clean.summary()
    early, _ = run(FIRST + WAIT + USED + LATER + later, image, 1)
    assert {each.code for each in early.findings if each.severity == "error"} == ({code} if later else set())
    waited, _ = run(FIRST + WAIT + USED + "tcgen05.wait::ld.sync.aligned;" + LATER + later, image, 1)
    assert waited.status == "ok", waited.summary()
    if later:
        unordered, _ = run(FIRST + WAIT + USED + later, image, 1)
        assert code in codes(unordered), unordered.summary()  # by the other warps


def test_the_load_that_a_product_meets_is_named() -> None:
    """Not another one, of other columns, whose register was read in the same interval."""
    body, image = numbered()
    first = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%taddr];"
    second = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%x];"
    body += first + LATER + f"add.u32 %x, %taddr, 300; {second} mov.b32 %r1, %r0; mov.b32 %r3, %r2;\n"
    body += FIRST + commit(1)
    report, _ = run(body, image, 1)
    found = [each for each in report.findings if each.code == "tensor-race"]
    assert found, report.summary()
    line = line_of(source(body), first)
    assert all(each.accesses[1].line == line and each.accesses[1].role == "reader" for each in found)
    assert all(f"tcgen05.ld (line {line}, " in each.message for each in found), report.summary()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_the_clean_twin_of_all_of_them(schedule: Any) -> None:
    body = FIRST + WAIT + READ + LATER + FIRST + mma(A.descriptor, B.descriptor, GOOD, 1) + commit(1) + READ
    body += LATER + "@%leader st.shared.u32 [image], 5;"
    image = np.random.default_rng(4).integers(0, 64, IMAGE, dtype=np.uint8)
    report, _ = run(body, image, 1, schedule=schedule)
    assert report.status == "ok", report.summary()


FENCE = "fence.proxy.async;\n"


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(
    ("fence", "later", "missing"),
    [
        ("each storing thread", "", False),
        ("nobody", "", True),
        ("the issuing warp, after the barrier", "fence.proxy.async.shared::cta;\n", False),
        ("nobody for shared memory", "fence.proxy.async.global;\n", True),
    ],
)
def test_stores_reach_the_tensor_core_by_a_proxy_fence(fence: str, later: str, missing: bool, schedule: Any) -> None:
    """The kernel stores its operands with st.shared (PTX ISA 9.7.13, fence.proxy.async)."""
    text = source(later + FIRST + WAIT + READ + LATER)
    assert text.count(FENCE) == 1 or later
    if fence != "each storing thread":
        # The mbarrier's init still needs its own fence.
        text = text.replace(FENCE, "fence.mbarrier_init.release.cluster;\n", 1)
    emulator = Emulator(schedule=schedule)
    image = np.random.default_rng(4).integers(0, 64, IMAGE, dtype=np.uint8)
    out = emulator.empty(1, np.uint32)
    report = emulator.launch(Kernel.from_ptx(text), 1, THREADS, [emulator.array(image), out])
    if not missing:
        assert report.status == "ok", report.summary()
        return
    assert codes(report) == ["missing-proxy-fence"], report.summary()
    stored = line_of(text, "st.shared.v4")
    assert {each.line for each in report.findings} == {line_of(text, "tcgen05.mma")}
    found = report.findings[0]
    assert f"which st.shared (line {stored}, warp 0, CTA 0) writes through the generic proxy" in found.summary
    assert found.rule == "No fence.proxy.async comes between them"
    assert [(each.role, each.line) for each in found.accesses][:2] == [("reader", found.line), ("writer", stored)]
    assert found.also_warps == 3


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_the_clean_twin_of_stores(schedule: Any) -> None:
    fill = "".join(f"mov.b32 %r{i}, 0;\n" for i in range(32))
    body = fill + PUT + STORED + READ + LATER + mma(A.descriptor, B.descriptor, GOOD, 1) + WAIT + PUT + STORED
    image = np.random.default_rng(4).integers(0, 64, IMAGE, dtype=np.uint8)
    report, _ = run(body + READ, image, 1, schedule=schedule)
    assert report.status == "ok", report.summary()
    assert not report.findings


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_a_commit_covers_what_an_earlier_commit_covers(schedule: Any) -> None:
    """Waiting for the second of two commits orders the operations before the first (9.7.16.12.1)."""
    other = NO_WAIT.replace("[done]", "[other]")
    body = "@%leader mbarrier.init.shared::cta.b64 [other], 1; fence.mbarrier_init.release.cluster;\n"
    body += FIRST + other + WAIT + READ
    report, _ = run(".shared .align 8 .b64 other;\n" + body, np.ones(IMAGE, np.uint8), 1, schedule=schedule)
    assert report.status == "ok", report.summary()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("fenced", [True, False])
def test_what_cp_async_wrote_wants_a_fence_too(fenced: bool, schedule: Any) -> None:
    """Advice only: Triton has no fence there."""
    body = "mov.u32 %x, image; @%leader cp.async.ca.shared.global [%x], [%source], 16; cp.async.wait_all;\n"
    body += (FENCE if fenced else "") + LATER + FIRST + WAIT + READ
    image = np.random.default_rng(4).integers(0, 64, IMAGE, dtype=np.uint8)
    report, _ = run(body, image, 1, schedule=schedule)
    assert report.status == "ok", report.summary()
    found = [each for each in report.findings if each.code == "missing-proxy-fence"]
    assert (found == []) == fenced
    assert all("which cp.async" in each.summary for each in found)


RELAXED = WAIT.replace("try_wait.parity.shared", "try_wait.parity.relaxed.cluster.shared")
#: Warps 1 to 3 tell warp 0 by relaxed arrivals that they have loaded; it computes over what they loaded.
TOLD = """
    tcgen05.fence::before_thread_sync;
    @%p mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [told];
    @%p bra told_all;
    telling: mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %q, [told], 0;
    @!%q bra telling;
    tcgen05.fence::after_thread_sync;
    told_all:
"""
BEGIN = "@%leader mbarrier.init.shared::cta.b64 [told], 96; bar.sync 0; setp.ge.u32 %p, %t, 32;\n"
OVER = FIRST + commit(1)
LESS_BEFORE, LESS_AFTER = (TOLD.replace(f"tcgen05.fence::{each}_thread_sync;", "") for each in ("before", "after"))


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (FIRST + RELAXED + READ, None),
        (FIRST + RELAXED.replace("tcgen05.fence::after_thread_sync;", "") + READ, "tensor-race"),
        (BEGIN + FIRST + WAIT + READ + TOLD + OVER, None),
        (BEGIN + FIRST + WAIT + READ + LESS_BEFORE + OVER, "tensor-race"),
        (BEGIN + FIRST + WAIT + READ + LESS_AFTER + OVER, "tensor-race"),
        (BEGIN + "@%leader st.shared.u32 [image], 5;" + TOLD
         + "@!%p st.shared.u32 [image], 6; @%p ld.shared.u32 %x, [image];", "shared-race"),
    ],
    ids=["commit", "commit, no fence", "loads", "no fence before", "no fence after", "shared memory"],
)  # fmt: skip
def test_relaxed_waits_between_the_fences(body: str, code: str | None, schedule: Any) -> None:
    """tcgen05.fence orders tcgen05 operations by relaxed synchronization too (PTX ISA 9.2, 9.7.16.6.4), no others."""
    image = np.random.default_rng(4).integers(0, 64, IMAGE, dtype=np.uint8)
    text = source(body).replace(".shared .align 4 .b32 slot;", ".shared .align 4 .b32 slot; .shared .b64 told;")
    emulator = Emulator(schedule=schedule)
    arrays = [emulator.array(image), emulator.empty(1, np.uint32)]
    report = emulator.launch(Kernel.from_ptx(text), 1, THREADS, arrays)
    if code is None:
        assert report.status == "ok", report.summary()
        assert not report.findings, report.summary()
    else:
        assert code in codes(report), report.summary()
