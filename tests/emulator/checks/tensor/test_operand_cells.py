"""`operand-cells`: legal uses of tensor memory as A, as accumulator and as both in turn stay silent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import tensor_kernel
from tests.support.harness import codes
from tests.support.tensor_kernel import A, B, instruction_descriptor, run

F32, F16 = (instruction_descriptor(128, 32, "f16", "f16", d) for d in ("f32", "f16"))
HALF_ROWS = instruction_descriptor(64, 32, "f16", "f16")
WEIGHTS = instruction_descriptor(64, 64, "f16", "f16")
#: kind::tf32 and kind::i8 of 128 x 32.
TF32 = 1 << 4 | 2 << 7 | 2 << 10 | 32 >> 3 << 17 | 128 >> 4 << 24
I8 = 2 << 4 | 1 << 7 | 1 << 10 | 32 >> 3 << 17 | 128 >> 4 << 24
SYNC = """
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
"""


def commit(number: int = 0) -> str:
    """Commit, all threads wait, and go on together."""
    return tensor_kernel.commit(number) + SYNC


def store(column: int, count: int, shape: str = "32x32b", lane: int = 0, more: str = "", split: str = "") -> str:
    """All warps store zeros: `count` registers each."""
    registers = ", ".join(["%z"] * count)
    per = {"32x32b": 1, "16x64b": 1, "16x32bx2": 1, "16x256b": 4}[shape]
    return (
        f"mov.b32 %z, 0; add.u32 %x, %taddr, {column + (lane << 16)};\n"
        f"tcgen05.st.sync.aligned.{shape}.x{count // per}{more}.b32 [%x]{split}, {{{registers}}};\n" + SYNC
    )


def mma(
    d: int,
    accumulate: int,
    a: int | None = None,
    *,
    idesc: int = F32,
    kind: str = "f16",
    more: str = "",
    lane: int = 0,
    off: str = "",
) -> str:
    """D of 32 columns; A is in tensor memory if it has a column."""
    left = f"{A.descriptor:#x}" if a is None else "[%y]"
    ws, more = (".ws", "") if more == ".ws" else ("", more)
    return (
        f"add.u32 %x, %d, {d + (lane << 16)}; add.u32 %y, %d, {(a or 0) + (lane << 16)};\n"
        f"@%leader tcgen05.mma{ws}.cta_group::1.kind::{kind}{more} "
        f"[%x], {left}, {B.descriptor:#x}, {idesc:#x}{off}, {accumulate};\n"
    )


def steps(d: int, a: int, *, count: int = 4, first: int = 0, width: int = 8) -> str:
    """The MMAs of a product with A in tensor memory; the first overwrites D unless `first` is 1."""
    return "".join(mma(d, int(bool(step or first)), a + width * step) for step in range(count))


def scores(accumulate: int = 0) -> str:
    """S of 128 x 64 to columns 0 to 63."""
    return mma(0, accumulate) + mma(32, accumulate) + mma(0, 1) + mma(32, 1)


def copied(column: int) -> str:
    """tcgen05.cp of 8 columns of zeros, in all lanes."""
    return f"add.u32 %x, %d, {column};\n@%leader tcgen05.cp.cta_group::1.128x256b [%x], {B.descriptor:#x};\n"


CASES = {
    # FlashAttention-4: P takes the place of half the scores, the next scores that of P.
    "p-in-the-upper-half": "".join(
        scores() + commit(2 * turn) + store(32, 32) + steps(128, 32, first=turn) + commit(2 * turn + 1)
        for turn in range(2)
    ),
    "p-in-the-lower-half": "".join(
        scores() + commit(2 * turn) + store(0, 32) + steps(128, 0, first=turn) + commit(2 * turn + 1)
        for turn in range(2)
    ),
    "p-by-halves": scores() + commit() + store(0, 16) + steps(128, 0, count=2) + store(16, 16)
    + steps(128, 16, count=2, first=1) + commit(1),
    "output-rescaled": store(0, 32) + steps(128, 0) + commit() + store(128, 32) + store(0, 32) + steps(128, 0, first=1)
    + commit(1),
    "f16-accumulator-unpacked": mma(0, 0, idesc=F16) + commit() + store(0, 16, more=".unpack::16b")
    + mma(0, 1, idesc=F16) + commit(1),
    "a-zeroed-by-st": store(0, 32) + steps(128, 0) + commit() + store(0, 32) + mma(0, 1) + commit(1),
    "a-zeroed-by-cp": store(0, 32) + steps(128, 0) + commit() + "".join(copied(8 * step) for step in range(4))
    + mma(0, 1) + commit(1),
    "sum-zeroed-by-st": store(0, 32) + store(128, 32) + steps(128, 0, first=1) + commit() + store(128, 32)
    + steps(128, 4, count=3, first=1) + commit(1),
    "sum-zeroed-by-cp": store(0, 32) + steps(128, 0) + commit() + "".join(copied(128 + 8 * step) for step in range(4))
    + steps(128, 4, count=3, first=1) + commit(1),
    "a-stationary": store(0, 32) + steps(128, 0) + steps(160, 0) + steps(128, 0) + commit(),
    "both-parts-of-b": store(0, 32) + steps(128, 0) + steps(128, 0, first=1) + commit(),
    "allocated-again": scores() + commit() + """
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    setp.ne.u32 %p, %warp, 0;
    @%p bra again;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %d, %columns;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], %columns;
    again:
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    """ + store(0, 32) + steps(128, 0) + commit(1),
    "f32-as-tf32": mma(0, 0) + mma(128, 0, 0, idesc=TF32, kind="tf32") + mma(128, 1, 8, idesc=TF32, kind="tf32")
    + mma(0, 1) + commit(),
    "ashift": store(0, 8) + mma(128, 0, 0, more=".ashift") + mma(160, 0, 0) + mma(128, 1, 0) + commit(),
    "shift": store(0, 8) + mma(128, 0, 0) + "add.u32 %x, %d, 0;\n@%leader tcgen05.shift.cta_group::1.down [%x];\n"
    + mma(128, 1, 0) + commit(),
    "i8": store(0, 32) + steps(128, 0).replace("kind::f16", "kind::i8").replace(f"{F32:#x}", f"{I8:#x}") + commit(),
    # A of 64 rows on lanes 16 to 31 of each quarter, under an accumulator on lanes 0 to 15.
    "halves-of-lanes": store(0, 32, "16x64b", 16)
    + mma(0, 0, idesc=HALF_ROWS) + mma(128, 0, 0, idesc=HALF_ROWS, lane=16) + mma(0, 1, idesc=HALF_ROWS) + commit(),
    "weight-stationary": store(0, 32) + mma(128, 0, 0, idesc=WEIGHTS, more=".ws")
    + mma(128, 1, 8, idesc=WEIGHTS, more=".ws") + commit(),
    # D over A, in lanes that disable-output-lane leaves out.
    "lanes-left-out": store(0, 32) + mma(128, 0, 0, idesc=HALF_ROWS) + "mov.b32 %w, 0xffff;\n"
    + mma(0, 1, off=", {%w, %w, %w, %w}") + commit(),
    # Halves of 16 lanes, 64 columns apart, that are stored unpacked: the columns between them keep A.
    "split-store": store(32, 32) + store(0, 16, "16x32bx2", more=".unpack::16b", split=", 64") + steps(128, 32)
    + commit(),
}  # fmt: skip


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("name", CASES)
def test_legal_uses_of_tensor_memory(name: str, schedule: Any) -> None:
    report, _ = run(CASES[name], np.zeros(0, np.uint8), 1, schedule=schedule)
    assert "operand-cells" not in codes(report), report.summary()
    assert report.status == "ok", report.summary()


def test_store_in_two_parts_leaves_what_is_between() -> None:
    """The accumulator between the two parts of a store, which is then read as A."""
    body = mma(32, 0) + commit() + store(0, 16, "16x32bx2", split=", 64") + steps(128, 32) + commit(1)
    report, _ = run(body, np.zeros(0, np.uint8), 1)
    assert "operand-cells" in codes(report), report.summary()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_load_in_two_parts_reads_nothing_between(schedule: Any) -> None:
    """Between the two parts of a load nothing has been written, and an MMA is under way."""
    registers = ", ".join(f"%r{number}" for number in range(16))
    body = (
        store(0, 16)
        + store(64, 16)
        + mma(24, 0)
        + f"tcgen05.ld.sync.aligned.16x32bx2.x16.b32 {{{registers}}}, [%taddr], 64;\n"
        + "tcgen05.wait::ld.sync.aligned;\n"
        + commit()
    )
    report, _ = run(body, np.zeros(0, np.uint8), 1, schedule=schedule)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
