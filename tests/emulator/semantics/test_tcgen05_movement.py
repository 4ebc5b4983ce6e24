"""tcgen05.cp, shift, packed loads and stores, ld.red; and what the checks say of operands in tensor memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxgen import Kernel
from ptxgen.emulator import Emulator
from tests.support.harness import codes, launch, module
from tests.support.tensor_kernel import BASE, SWIZZLE_CODES, SWIZZLES, TEXT, THREADS, commit
from tests.support.tensor_layouts import BITS, Bench, codes_of, errors, values_of

# Copies.


def source_descriptor(start: int, lbo: int, sbo: int, swizzle: str) -> int:
    return (BASE + start) >> 4 | lbo >> 4 << 16 | sbo >> 4 << 32 | 1 << 46 | SWIZZLE_CODES[swizzle] << 61


def source_byte(row: int, byte: int, start: int, lbo: int, sbo: int, swizzle: str) -> int:
    """Where a byte of a row lies in the image: K-major rows."""
    width, low, count = SWIZZLES[swizzle]
    if swizzle == "none":
        at = row // 8 * sbo + byte // 16 * lbo + row % 8 * 16 + byte % 16
    else:
        at = row // 8 * sbo + row % 8 * width + byte
    absolute = BASE + start + at
    return (absolute ^ (((absolute >> 7) & ((1 << count) - 1)) << low)) - BASE


#: (shape and multicast, rows, bytes of a row, lanes of a row)
COPIES: list[tuple[str, int, int, Any]] = [
    ("128x256b", 128, 32, lambda r: [r]),
    ("128x128b", 128, 16, lambda r: [r]),
    ("4x256b", 4, 32, lambda r: [32 * r]),
    ("64x128b.warpx2::02_13", 64, 16, lambda r: [r, r + 64]),
    ("64x128b.warpx2::01_23", 64, 16, lambda r: [r, r + 32] if r < 32 else [r + 32, r + 64]),
    ("32x128b.warpx4", 32, 16, lambda r: [r, r + 32, r + 64, r + 96]),
]


@pytest.mark.parametrize(
    ("swizzle", "version"), [("none", 1), ("32B", 1), ("64B", 1), ("128B", 1), ("128B", 0)], ids=str
)
def test_copies(swizzle: str, version: int) -> None:
    """Every shape one after the other into the columns of one allocation; cells around them stay."""
    bench = Bench(len(swizzle))
    before = bench.rng.integers(0, 2**32, (128, 48), dtype=np.uint64).astype(np.uint32)
    bench.fill(before[:, :24])
    bench.fill(before[:, 24:])
    bench.sync()
    expected = before.copy()
    column = 1
    for shape, rows, size, lanes in COPIES:
        lbo, sbo = (2048, 256) if swizzle == "none" else (16, 8 * SWIZZLES[swizzle][0])
        start = bench.room(4096 if swizzle == "none" else -(-rows // 8) * sbo)
        bench.issue(
            f"tcgen05.cp.cta_group::1.{shape} [{{at}}], {{sdesc}};",
            at=column,
            sdesc=source_descriptor(start, lbo, sbo, swizzle) & ~((1 - version) << 46),
        )
        raw = expected.view(np.uint8).reshape(128, -1)
        for row in range(rows):
            for byte in range(size):
                for lane in lanes(row):
                    given = bench.image[source_byte(row, byte, start, lbo, sbo, swizzle)]
                    raw[lane, 4 * column + byte] = given
        column += size // 4 + 1
    report, words = bench.run(columns=48, schedule="late")
    assert not errors(report), report.summary()
    assert ("descriptor-version" in codes(report)) == (not version)
    assert (words == expected).all(), np.argwhere(words != expected)[:5]


@pytest.mark.parametrize(("format", "type"), [("b4x16_p64", "e2m1"), ("b6x16_p32", "e3m2")])
def test_expanding_copies(format: str, type: str) -> None:
    """16 elements and padding in 16 bytes become 16 bytes: 4 bits in the middle, 6 bits at the bottom."""
    bench = Bench(BITS[type])
    elements = codes_of(bench.rng, (128, 32), type)
    matrix = bench.matrix(elements, type, "k", "none")
    bench.issue(f"tcgen05.cp.cta_group::1.128x256b.b8x16.{format} [{{at}}], {{sdesc}};", at=0, sdesc=matrix.descriptor)
    report, words = bench.run(columns=8)
    assert report.status == "ok", report.summary()
    assert (words.view(np.uint8) == (elements << 2 if BITS[type] == 4 else elements)).all()


def test_copied_narrow_a_is_what_a_product_reads() -> None:
    """A expanded by tcgen05.cp gives what A in shared memory gives."""
    bench = Bench(12)
    for type, format in (("e2m1", "b4x16_p64"), ("e2m3", "b6x16_p32")):
        code = {"e2m1": 5, "e2m3": 3}[type]
        a, b = codes_of(bench.rng, (128, 32), type), codes_of(bench.rng, (16, 32), "e4m3")
        left, right = bench.matrix(a, type, "k", "none"), bench.matrix(b, "e4m3")
        place, one, two = bench.take(8), bench.take(16), bench.take(16)
        idesc = 1 << 4 | code << 7 | 2 << 17 | 8 << 24
        bench.issue(
            f"tcgen05.cp.cta_group::1.128x256b.b8x16.{format} [{{at}}], {{sdesc}};", at=place, sdesc=left.descriptor
        )
        text = "tcgen05.mma.cta_group::1.kind::f8f6f4 [{d}], $A, {b}, {idesc}, 0;"
        bench.issue(text.replace("$A", "{a}"), d=one, a=left.descriptor, b=right.descriptor, idesc=idesc)
        bench.issue(text.replace("$A", "[{a}]"), d=two, a=place, b=right.descriptor, idesc=idesc)
    report, words = bench.run(schedule="random")
    assert not errors(report), report.summary()
    for first in (8, 48):
        assert (words[:, first : first + 16] == words[:, first + 16 : first + 32]).all()
        assert words[:, first : first + 16].any()


@pytest.mark.parametrize("lane", [0, 64])
@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_shift(schedule: Any, lane: int) -> None:
    """8 columns of all four quarters: row r gets row r + 1, the last of each quarter stays."""
    bench = Bench(3)
    before = bench.rng.integers(0, 2**32, (128, 16), dtype=np.uint64).astype(np.uint32)
    column = bench.fill(before)
    bench.sync()
    bench.issue("tcgen05.shift.cta_group::1.down [{at}];", at=lane << 16 | column + 4)
    report, words = bench.run(schedule=schedule)
    assert report.status == "ok", report.summary()
    expected = before.copy()
    for first in range(0, 128, 32):
        expected[first : first + 31, 4:12] = before[first + 1 : first + 32, 4:12]
    assert (words == expected).all()


def test_shift_wants_a_lane_of_32() -> None:
    bench = Bench(3)
    bench.fill(np.zeros((128, 8)))
    bench.issue("tcgen05.shift.cta_group::1.down [{at}];", at=16 << 16)
    report, _ = bench.run()
    assert (report.status, codes(report)) == ("fault", ["misaligned"])


# Packed loads and stores.

WIDTHS = {"32x32b": (1, 1), "16x64b": (1, 2), "16x128b": (2, 4), "16x256b": (4, 8), "16x32bx2": (1, 1)}
"""Registers and columns of one repetition."""


def element(shape: str, thread: int, register: int) -> tuple[int, int]:
    """(lane, column) of a register as if its 32 bits were one column: the figures of 9.7.16.2.3."""
    t, r = thread, register
    return {
        "32x32b": (t, r),
        "16x64b": (t // 4 + 8 * (t % 2), t // 2 % 2 + 2 * r),
        "16x128b": (t // 4 + 8 * (r % 2), t % 4 + 4 * (r // 2)),
        "16x256b": (t // 4 + 8 * (r // 2 % 2), 2 * (t % 4) + r % 2 + 8 * (r // 4)),
        "16x32bx2": (t % 16, r),
    }[shape]


@pytest.mark.parametrize("shape", sorted(WIDTHS))
def test_packed_loads(shape: str) -> None:
    """Each register has the low halves of two neighboring columns, the lower column in its low half."""
    bench = Bench(len(shape))
    before = bench.rng.integers(0, 2**32, (128, 48), dtype=np.uint64).astype(np.uint32)
    bench.fill(before[:, :24])
    bench.fill(before[:, 24:])
    registers, num, split = 2 * WIDTHS[shape][0], 2, 20 if shape == "16x32bx2" else 0
    lane = 16 if shape != "32x32b" else 0
    names = ", ".join(f"%r{i}" for i in range(registers))
    half = f", {split}" if split else ""
    bench.body += f"""add.u32 %x, %taddr, {lane << 16 | 3};
        tcgen05.ld.sync.aligned.{shape}.x{num}.pack::16b.b32 {{{names}}}, [%x]{half};
        tcgen05.wait::ld.sync.aligned;
        mul.wide.u32 %to, %t, {4 * registers};
        add.u64 %to, %to, %out;
        \n"""
    bench.body += "".join(f"st.global.b32 [%to+{4 * i}], %r{i};\n" for i in range(registers))
    emulator = Emulator(schedule="late")
    out = emulator.array(np.zeros(128 * registers, np.uint32))
    text = module(TEXT.replace("$BODY", bench.body), ".param .u64 source, .param .u64 out")
    report = emulator.launch(Kernel.from_ptx(text), 1, THREADS, [emulator.array(bench.image), out])
    assert report.status == "ok", report.summary()
    found = out.numpy().reshape(128, registers)
    for thread in range(128):
        for register in range(registers):
            row, column = element(shape, thread % 32, register)
            first = 3 + 2 * column + (split if split and thread % 32 >= 16 else 0)
            low, high = before[32 * (thread // 32) + lane + row, first : first + 2] & 0xFFFF
            assert found[thread, register] == int(high) << 16 | int(low)


@pytest.mark.parametrize("shape", sorted(WIDTHS))
def test_unpacked_stores(shape: str) -> None:
    """The halves of a register go to two neighboring columns; the upper halves of the cells are cleared."""
    bench = Bench(len(shape))
    before = bench.rng.integers(0, 2**32, (128, 48), dtype=np.uint64).astype(np.uint32)
    bench.fill(before[:, :24])
    bench.fill(before[:, 24:])
    registers, num, split = 2 * WIDTHS[shape][0], 2, 20 if shape == "16x32bx2" else 0
    names = ", ".join(f"%r{i}" for i in range(registers))
    half = f", {split}" if split else ""
    bench.body += "".join(f"mad.lo.u32 %r{i}, %t, 0x9E3779B1, {i * 0x01000193};" for i in range(registers))
    bench.body += f"add.u32 %x, %taddr, 5;\ntcgen05.st.sync.aligned.{shape}.x{num}.unpack::16b.b32 [%x]{half}, "
    bench.body += f"{{{names}}};\ntcgen05.wait::st.sync.aligned;\n"
    report, words = bench.run(columns=48, schedule="late")
    assert report.status == "ok", report.summary()
    expected = before.copy()
    for thread in range(128):
        for register in range(registers):
            row, column = element(shape, thread % 32, register)
            word = (thread * 0x9E3779B1 + register * 0x01000193) % 2**32
            first = 5 + 2 * column + (split if split and thread % 32 >= 16 else 0)
            expected[32 * (thread // 32) + row, first : first + 2] = word & 0xFFFF, word >> 16
    assert (words == expected).all()


# Loads with a reduction (sm_103a).


def reduced(words: NDArray[np.uint32], op: str, type: str, abs: bool, nan: bool) -> int:
    """The bits of the least or greatest word; any NaN's for NaN."""
    if type != "f32":
        values = [int(w) - 2**32 if type == "s32" and w >> 31 else int(w) for w in words]
        return (min(values) if op == "min" else max(values)) % 2**32
    bits = [int(w) & 0x7FFFFFFF if abs else int(w) for w in words]
    numbers = [b for b in bits if b & 0x7FFFFFFF <= 0x7F800000]
    if not numbers or (nan and len(numbers) < len(bits)):
        return 0x7FFFFFFF
    ordered = sorted(numbers, key=lambda b: (float(np.uint32(b).view(np.float32)), not b >> 31))
    return ordered[0] if op == "min" else ordered[-1]


@pytest.mark.parametrize("op", ["min.f32", "max.abs.f32", "min.abs.NaN.f32", "max.NaN.f32", "max.s32", "min.u32"])
def test_loads_with_reduction(op: str) -> None:
    bench = Bench(len(op))
    rng = bench.rng
    special = np.array([0x7FC00000, 0xFFC00001, 0, 0x80000000, 0x7F800000, 0xFF800000, 1], np.uint32)
    data = rng.integers(0, 2**32, (128, 8), dtype=np.uint64).astype(np.uint32)
    data = np.where(rng.random((128, 8)) < 0.4, rng.choice(special, (128, 8)), data)
    data[0] = 0x7FC00000
    bench.fill(data)
    names = ", ".join(f"%r{i}" for i in range(8))
    bench.body += f"""tcgen05.ld.red.sync.aligned.32x32b.x8.{op} {{{names}}}, %r8, [%taddr];
        tcgen05.wait::ld.sync.aligned;
        mul.wide.u32 %to, %t, 8;
        add.u64 %to, %to, %out;
        st.global.b32 [%to], %r8;
        st.global.b32 [%to+4], %r5;
        \n"""
    emulator = Emulator("sm_103a")
    out = emulator.array(np.zeros(256, np.uint32))
    text = module(TEXT.replace("$BODY", bench.body), ".param .u64 source, .param .u64 out", target="sm_103a")
    report = emulator.launch(Kernel.from_ptx(text), 1, THREADS, [emulator.array(bench.image), out])
    assert report.status == "ok", report.summary()
    found = out.numpy().reshape(128, 2)
    parts = op.split(".")
    for thread in range(128):
        assert found[thread, 0] == reduced(data[thread], parts[0], parts[-1], "abs" in parts, "NaN" in parts), thread
        assert found[thread, 1] == data[thread, 5]


# Checks. Each body that breaks a rule has a twin that does not.

STORED = "tcgen05.wait::st.sync.aligned;\n"


def product(bench: Bench, column: int, place: int, n: int = 16) -> None:
    """D = A·B of bf16 with A in tensor memory."""
    right = bench.matrix(codes_of(bench.rng, (n, 16), "bf16"), "bf16")
    bench.issue(
        "tcgen05.mma.cta_group::1.kind::f16 [{d}], [{a}], {b}, {idesc}, 0;",
        d=column,
        a=place,
        b=right.descriptor,
        idesc=1 << 4 | 1 << 7 | 1 << 10 | n // 8 << 17 | 8 << 24,
    )


def store(bench: Bench, column: int) -> None:
    names = ", ".join(f"%r{i}" for i in range(8))
    bench.body += f"add.u32 %y, %taddr, {column}; tcgen05.st.sync.aligned.32x32b.x8.b32 [%y], {{{names}}};\n"


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("good", [True, False])
def test_a_stored_without_a_wait(good: bool, schedule: Any) -> None:
    bench = Bench(1)
    place, column = bench.fill(np.ones((128, 8), np.uint32) * 0x3F803F80), bench.take(16)
    if not good:
        assert bench.body.endswith(STORED)
        bench.body = bench.body[: -len(STORED)]
    bench.sync()
    product(bench, column, place)
    report, _ = bench.run(schedule=schedule)
    race = [each for each in report.findings if each.code == "tensor-race"]
    if good:
        assert not errors(report), report.summary()
    else:
        assert "reads A in TMEM columns 0-7" in race[0].message
        assert "tcgen05.wait::st" in race[0].message


@pytest.mark.parametrize("missing", ["", "before", "after"])
def test_a_stored_by_other_warps_wants_fences(missing: str) -> None:
    """Advice, as for loads: tcgen05.fence before and after the synchronization."""
    bench = Bench(1)
    place, column = bench.fill(np.ones((128, 8), np.uint32) * 0x3F803F80), bench.take(16)
    bench.sync()
    if missing:
        bench.body = bench.body.replace(f"tcgen05.fence::{missing}_thread_sync;", "")
    product(bench, column, place)
    report, _ = bench.run()
    assert not errors(report), report.summary()
    found = [each for each in report.findings if each.code == "missing-tcgen05-fence"]
    assert (found == []) == (missing == "")
    assert all(f"no tcgen05.fence::{missing}_thread_sync" in each.message for each in found)
    assert all("This tcgen05.mma" in each.message for each in found)


@pytest.mark.parametrize("good", [True, False])
def test_columns_loaded_by_other_warps_want_a_fence(good: bool) -> None:
    """Before a product takes the columns anew."""
    bench = Bench(1)
    place, column = bench.fill(np.ones((128, 8), np.uint32) * 0x3F803F80), bench.fill(np.zeros((128, 16)))
    bench.body += f"add.u32 %y, %taddr, {column}; tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r0}}, [%y];\n"
    bench.body += "tcgen05.wait::ld.sync.aligned;\n"
    bench.sync()
    if not good:
        bench.body = bench.body.replace("tcgen05.fence::before_thread_sync;", "")
    product(bench, column, place)
    report, _ = bench.run()
    assert not errors(report), report.summary()
    found = [each.message for each in report.findings if "no tcgen05.fence::before_thread_sync" in each.message]
    assert any("between tcgen05.ld (line" in each for each in found) == (not good)


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("good", [True, False])
def test_a_stored_anew_while_a_product_reads_it(good: bool, schedule: Any) -> None:
    bench = Bench(2)
    place, column = bench.fill(np.ones((128, 8), np.uint32) * 0x3F803F80), bench.take(16)
    bench.sync()
    product(bench, column, place)
    if good:
        bench.body += commit(1).replace("[done], 1", "[other], 0").replace("[done]", "[other]")
        head = ".shared .align 8 .b64 other;\n@%leader mbarrier.init.shared::cta.b64 [other], 1;\n"
        bench.body = head + "fence.mbarrier_init.release.cluster;\n" + bench.body
    store(bench, place)
    bench.body += STORED
    report, _ = bench.run(schedule=schedule)
    race = [each for each in report.findings if each.code == "tensor-race"]
    if good:
        assert not errors(report), report.summary()
    else:
        assert race[0].instruction.startswith("tcgen05.st")
        assert "may still be reading" in race[0].message


@pytest.mark.parametrize("good", [True, False])
def test_a_copy_read_before_its_commit(good: bool) -> None:
    bench = Bench(3)
    start = bench.room(4096)
    bench.issue(
        "tcgen05.cp.cta_group::1.128x128b [{at}], {sdesc};", at=0, sdesc=source_descriptor(start, 16, 128, "none")
    )
    bench.columns = 8
    load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%taddr];\ntcgen05.wait::ld.sync.aligned;\n"
    bench.body += load if not good else ""
    report, _ = bench.run()
    assert ("tensor-race" in codes(report)) == (not good)
    assert "missing-proxy-fence" not in codes(report)


@pytest.mark.parametrize("good", [True, False])
def test_scale_factors_that_nothing_has_written(good: bool) -> None:
    bench = Bench(4)
    place, column = bench.fill(np.full((128, 4), 0x7F7F7F7F)), bench.take(16)
    bench.sync()
    left = bench.matrix(codes_of(bench.rng, (128, 32), "e4m3"), "e4m3")
    right = bench.matrix(codes_of(bench.rng, (16, 32), "e4m3"), "e4m3")
    bench.issue(
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [{d}], {a}, {b}, {idesc}, [{sfa}], [{sfb}], 0;",
        d=column,
        a=left.descriptor,
        b=right.descriptor,
        sfa=place,
        sfb=place if good else 100,
        idesc=2 << 17 | 1 << 23 | 1 << 27,
    )
    report, _ = bench.run()
    found = [each.message for each in report.findings if each.code == "uninitialized-tensor"]
    assert ([each for each in found if "scale factors of B" in each] == []) == good


DESCRIPTORS = [
    (
        "a dense descriptor for a sparse product",
        ".sp.cta_group::1.kind::f16",
        ", [{meta}]",
        1 << 4 | 2 << 17 | 8 << 24,
        "sparse is False",
    ),
    (
        "a sparse descriptor for a dense product",
        ".cta_group::1.kind::f16",
        "",
        1 << 2 | 1 << 4 | 2 << 17 | 8 << 24,
        "sparse is True",
    ),
    (
        "MN-major B with N 24",
        ".cta_group::1.kind::f8f6f4",
        "",
        1 << 4 | 1 << 16 | 3 << 17 | 8 << 24,
        "n must be a multiple of 16",
    ),
    (
        "M 64 of .ws with N 32",
        ".ws.cta_group::1.kind::f16",
        "",
        1 << 4 | 4 << 17 | 4 << 24,
        "n must be one of 64, 128, 256",
    ),
    ("a type that the kind has not", ".cta_group::1.kind::i8", "", 2 << 4 | 3 << 7 | 2 << 17 | 8 << 24, "a_type"),
]


@pytest.mark.parametrize(("name", "how", "more", "idesc", "rule"), DESCRIPTORS, ids=[each[0] for each in DESCRIPTORS])
def test_illegal_descriptors(name: str, how: str, more: str, idesc: int, rule: str) -> None:
    bench = Bench(5)
    bench.issue(
        f"tcgen05.mma{how} [{{d}}], {{a}}, {{b}}{more}, {{idesc}}, 0;",
        d=0,
        meta=64,
        idesc=idesc,
        a=source_descriptor(0, 16, 1024, "128B"),
        b=source_descriptor(32768, 16, 1024, "128B"),
    )
    report, _ = bench.run(columns=8)
    assert (report.status, codes(report)) == ("fault", ["illegal-descriptor"]), report.summary()
    assert rule in report.findings[0].message


def test_a_and_d_start_on_the_same_lane() -> None:
    """Layout F: A, D and metadata share their alignment (9.7.16.10.5)."""
    bench = Bench(6)
    place, column = bench.fill(np.ones((128, 8), np.uint32)), bench.take(16)
    bench.sync()
    right = bench.matrix(codes_of(bench.rng, (16, 16), "bf16"), "bf16")
    bench.issue(
        "tcgen05.mma.cta_group::1.kind::f16 [{d}], [{a}], {b}, {idesc}, 0;",
        d=16 << 16 | column,
        a=place,
        b=right.descriptor,
        idesc=1 << 4 | 1 << 7 | 1 << 10 | 2 << 17 | 4 << 24,
    )
    report, _ = bench.run()
    assert (report.status, codes(report)) == ("fault", ["tmem-out-of-bounds"])
    assert "A begins on lane 0. With M 64 it must begin on lane 16, as D does" in report.findings[0].message


def test_the_references_know_1_5() -> None:
    for type, code in (("e4m3", 0x3C), ("e5m2", 0x3E), ("e2m3", 0x0C), ("e3m2", 0x0E), ("e2m1", 0x3), ("bf16", 0x3FC0)):
        assert values_of(np.array([[code]], np.uint32), type)[0, 0] == 1.5


ADDRESSES = """
    .shared .align 4 .b32 slot;
    .reg .b32 %t, %lane, %d, %taddr, %free, %count, %r0;
    .reg .pred %first;
    mov.u32 %t, %tid.x;
    mov.u32 %count, 32;
    setp.lt.u32 %first, %t, 32;
    @%first tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
    bar.sync 0;
    ld.shared.u32 %d, [slot];
    and.b32 %lane, %t, 0x60;
    shl.b32 %lane, %lane, 16;
    add.u32 %taddr, %d, %lane;
    {store}
    mov.b32 %r0, %t;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%taddr], {{%r0}};
    tcgen05.wait::st.sync.aligned;
    {load}
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r0}}, [%taddr];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    mov.u32 %free, %d;
    {free}
    @%first tcgen05.dealloc.cta_group::1.sync.aligned.b32 %free, %count;
    ret;
"""
#: `thread & 0x7f` where `& 0x60` is right: another lane of tensor memory from each thread.
THREAD = "and.b32 %lane, %t, 0x7f; shl.b32 %lane, %lane, 16; add.u32 %taddr, %d, %lane;"
RIGHT = "and.b32 %lane, %t, 0x60; shl.b32 %lane, %lane, 16; add.u32 %taddr, %d, %lane;"


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(
    ("wrong", "opcode"),
    [
        ({"store": THREAD, "load": RIGHT}, "tcgen05.st"),
        ({"load": THREAD}, "tcgen05.ld"),
        ({"free": "and.b32 %lane, %t, 1; shl.b32 %lane, %lane, 16; add.u32 %free, %d, %lane;"}, "tcgen05.dealloc"),
        ({"free": "and.b32 %lane, %t, 1; shl.b32 %count, %count, %lane;"}, "tcgen05.dealloc"),
    ],
    ids=["store", "load", "dealloc", "columns"],
)
def test_addresses_that_differ_in_the_warp(wrong: dict[str, str], opcode: str, schedule: Any) -> None:
    text = {"store": "", "load": "", "free": ""}
    report, _ = launch(ADDRESSES.format(**text), block=128, schedule=schedule)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    report, _ = launch(ADDRESSES.format(**(text | wrong)), block=128, schedule=schedule)
    assert codes(report) == ["divergent-tensor-address"], report.summary()
    assert opcode in report.findings[0].instruction
    assert report.findings[0].severity == "error"
