"""Tensor memory and tensor cores: the life of allocations, fragment maps, products, and their order. PTX ISA 9.7.16."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from harness import codes, launch, line_of, poisoned
from tensor_kernel import IMAGE, NUMPY, THREADS, Operand, commit, dump, instruction_descriptor, mma, run, source

from ptxgen import Kernel
from ptxgen.emulator import Emulator

REGISTERS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
LIMIT = {"32x32b": 128, "16x64b": 128, "16x128b": 64, "16x256b": 32, "16x32bx2": 128}


def lay_out(major: str, swizzle: str, rows: int, start: int, room: int, rng: random.Random) -> Operand:
    """An operand with strides that leave random gaps, on its pattern's boundary, in so many bytes."""
    while True:
        made = any_layout(major, swizzle, rows, start, rng)
        if max(made.address(row, k) for row in range(rows) for k in (0, 7, 15)) + 2 <= start + room:
            return made


def any_layout(major: str, swizzle: str, rows: int, start: int, rng: random.Random) -> Operand:
    width = {"none": 16, "32B": 32, "64B": 64, "128B": 128}[swizzle]
    group = 8 * width
    gap = group * rng.randrange(2)
    if major == "k":
        if swizzle == "none":  # 128-byte core matrices: chunks of K next to each other, or all rows of one chunk first
            lbo, sbo = rng.choice([(128, 256 + 128 * rng.randrange(2)), (128 * (rows // 8) + 128, 128)])
        else:
            lbo, sbo = 16, group + gap
    elif swizzle == "none":
        lbo, sbo = rng.choice([(128, 256 + 128 * rng.randrange(2)), (128 * (rows // 8), 128)])
    else:
        blocks = -(-2 * rows // width)
        lbo, sbo = rng.choice([(group, group * blocks + gap), (2 * group + gap, group)])
    return Operand(major, swizzle, rows, start, lbo, sbo)


def values(rng: np.random.Generator, shape: tuple[int, int], type: str) -> np.ndarray:
    """Random numbers of many magnitudes, zeros of both signs and powers of two among them."""
    numbers = rng.standard_normal(shape) * 2.0 ** rng.integers(-4, 5, shape)
    numbers = np.where(rng.random(shape) < 0.1, rng.choice([0.0, -0.0, 1.0, -2.0, 0.5], shape), numbers)
    return numbers.astype(NUMPY[type])


def tolerance(exact: np.ndarray, magnitude: np.ndarray, terms: int, d_type: str) -> np.ndarray:
    """Products are exact; each of `terms` additions rounds a partial sum, at most `magnitude`, to 24 bits.

    A .f16 result is rounded once more, to 11 bits.
    """
    bound = (terms + 1) * 2.0**-24 * magnitude
    return bound + (2.0**-11 * (np.abs(exact) + bound) + 2.0**-25 if d_type == "f16" else 0)


MATRIX = [
    (m, n, a_major, a_swizzle, b_major, b_swizzle)
    for index, (a_major, a_swizzle, b_major, b_swizzle) in enumerate(
        (a_major, a_swizzle, b_major, b_swizzle)
        for a_major in ("k", "mn")
        for a_swizzle in ("none", "32B", "64B", "128B")
        for b_major in ("k", "mn")
        for b_swizzle in ("none", "32B", "64B", "128B")
    )
    for m, n in [((64, 128)[index % 2], (8, 16, 32, 64, 96, 128, 240, 256)[index * 5 % 8])]
]


@pytest.mark.parametrize(("m", "n", "a_major", "a_swizzle", "b_major", "b_swizzle"), MATRIX)
def test_products(m: int, n: int, a_major: str, a_swizzle: str, b_major: str, b_swizzle: str) -> None:
    """D = A B, then D += A' B', in one kernel; everything around the operands in shared memory is noise."""
    if m == 128 and n == 8:
        n = 48
    rng = random.Random(f"{m}{n}{a_major}{a_swizzle}{b_major}{b_swizzle}")
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    d_type = rng.choice(["f32", "f32", "f16"])
    type = "f16" if d_type == "f16" else rng.choice(["bf16", "f16"])
    negate = (rng.random() < 0.3, rng.random() < 0.3)
    idesc = instruction_descriptor(m, n, type, type, d_type, majors=(a_major, b_major), negate=negate)
    column = 32 * rng.randrange(8)
    image = numbers.integers(0, 256, IMAGE, dtype=np.uint8)
    body, exact, magnitude = "", np.zeros((m, n)), np.zeros((m, n))
    for number in range(2):
        start = 49152 * number
        first = lay_out(a_major, a_swizzle, m, start, 16384, rng)
        second = lay_out(b_major, b_swizzle, n, start + 16384, 32768, rng)
        a, b = values(numbers, (m, 16), type), values(numbers, (n, 16), type)
        first.put(image, a)
        second.put(image, b)
        sign = -1.0 if negate[0] != negate[1] else 1.0
        exact += sign * a.astype(np.float64) @ b.astype(np.float64).T
        magnitude += np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)).T
        body += mma(first.descriptor, second.descriptor, idesc, number, column)
    schedule = rng.choice(["eager", "late", "random"])
    report, words = run(body + commit() + dump(n, column), image, 128 * n, schedule=schedule)
    lanes = range(m) if m == 128 else [32 * (row // 16) + row % 16 for row in range(m)]
    rows = words.reshape(128, n)[list(lanes)]
    if m == 64:  # the dump reads the lanes between too, which nothing has written
        assert set(codes(report)) <= {"uninitialized-tensor"}
        assert (words.reshape(128, n)[[lane for lane in range(128) if lane % 32 >= 16]] == 0x7FC0DEAD).all()
    else:
        assert report.status == "ok", report.summary()
    found = (rows & 0xFFFF).astype(np.uint16).view(np.float16) if d_type == "f16" else rows.view(np.float32)
    if d_type == "f16":
        # The first result is rounded to .f16 before the second is added.
        assert (rows >> 16 == 0).all()
        allowed = tolerance(exact, magnitude, 32, d_type) + 2.0**-11 * (magnitude + 2.0**-14)
    else:
        allowed = tolerance(exact, magnitude, 32, d_type)
    assert (np.abs(found.astype(np.float64) - exact) <= allowed).all()


def test_special_values() -> None:
    """Infinities and NaN go through; a product of zero and infinity is NaN."""
    a, b = np.zeros((128, 16), np.float16), np.zeros((16, 16), np.float16)
    a[0, 0], a[1, 1], a[2, 2], a[3, 0] = np.inf, np.nan, 65504, -np.inf
    b[:, 0], b[:, 1], b[:, 2] = 1, 2, 65504
    b[5, 0] = 0
    image = np.zeros(IMAGE, np.uint8)
    first, second = Operand("k", "128B", 128, 0, 16, 1024), Operand("k", "128B", 16, 32768, 16, 1024)
    first.put(image, a)
    second.put(image, b)
    body = mma(first.descriptor, second.descriptor, instruction_descriptor(128, 16, "f16", "f16"), 0)
    report, words = run(body + commit() + dump(16), image, 128 * 16)
    assert report.status == "ok", report.summary()
    found = words.view(np.float32).reshape(128, 16)
    with np.errstate(invalid="ignore"):
        expected = np.array([[sum(float(x) * float(y) for x, y in zip(p, q, strict=True)) for q in b] for p in a])
    assert np.isnan(found[0, 5])
    assert np.isnan(found[1]).all()
    assert np.array_equal(found, expected.astype(np.float32), equal_nan=True)


# The cells of tcgen05.ld. D[r, n] = 512 r + n tells each cell apart.


def numbered() -> tuple[str, np.ndarray]:
    """A body that fills all 512 columns so, and its image."""
    image = np.zeros(IMAGE, np.uint8)
    first = Operand("k", "128B", 128, 0, 16, 1024)
    a = np.zeros((128, 16), NUMPY["bf16"])
    a[:, 0], a[:, 1], a[:, 2] = np.arange(128), 1, 1
    first.put(image, a)
    body = ""
    for part in range(2):
        second = Operand("k", "128B", 256, 32768 * (part + 1), 16, 1024)
        b = np.zeros((256, 16), NUMPY["bf16"])
        n = np.arange(256) + 256 * part
        b[:, 0], b[:, 1], b[:, 2] = 512, n // 16 * 16, n % 16
        second.put(image, b)
        idesc = instruction_descriptor(128, 256, "bf16", "bf16")
        body += mma(first.descriptor, second.descriptor, idesc, 0, 256 * part)
    return body + commit(), image


def cell(shape: str, thread: int, register: int, split: int) -> tuple[int, int]:
    """(lane, column) relative to the address: the manual's figures of 9.7.16.2.3."""
    t, r = thread, register
    return {
        "32x32b": (t, r),
        "16x64b": (t // 4 + 8 * (t % 2), t // 2 % 2 + 2 * r),
        "16x128b": (t // 4 + 8 * (r % 2), t % 4 + 4 * (r // 2)),
        "16x256b": (t // 4 + 8 * (r // 2 % 2), 2 * (t % 4) + r % 2 + 8 * (r // 4)),
        "16x32bx2": (t % 16, r + (split if t >= 16 else 0)),
    }[shape]


@pytest.mark.parametrize("shape", sorted(REGISTERS))
def test_fragments(shape: str) -> None:
    """Every number of repetitions, at columns and halves of the lanes chosen at random."""
    rng = random.Random(shape)
    body, image = numbered()
    for num in [1 << i for i in range(8) if 1 << i <= LIMIT[shape]]:
        count = REGISTERS[shape] * num
        width = {"32x32b": 1, "16x64b": 2, "16x128b": 4, "16x256b": 8, "16x32bx2": 1}[shape] * num
        split = rng.choice([0, width, 3 * width]) if shape == "16x32bx2" and 4 * width <= 512 else 0
        column = rng.randrange(512 - width - split + 1)
        lane = rng.choice([0, 16]) if shape != "32x32b" else 0
        names = ", ".join(f"%r{i}" for i in range(count))
        half = f", {split}" if shape == "16x32bx2" else ""
        load = f"tcgen05.ld.sync.aligned.{shape}.x{num}.b32 {{{names}}}, [%x]{half};"
        lines = [f"add.u32 %x, %taddr, {lane << 16 | column};", load, "tcgen05.wait::ld.sync.aligned;"]
        lines.append(f"mul.wide.u32 %to, %t, {4 * count}; add.u64 %to, %to, %out;")
        lines += [f"st.global.b32 [%to+{4 * i}], %r{i};" for i in range(count)]
        schedule = rng.choice(["eager", "late", "random"])
        report, words = run(body + "\n".join(lines), image, 128 * count, schedule=schedule)
        assert report.status == "ok", report.summary()
        found = words.view(np.float32).reshape(128, count)
        for thread in range(128):
            for register in range(count):
                row, place = cell(shape, thread % 32, register, split)
                assert found[thread, register] == 512 * (32 * (thread // 32) + lane + row) + column + place


@pytest.mark.parametrize("shape", sorted(REGISTERS))
def test_stored_fragments(shape: str) -> None:
    """Registers of random bits reach the cells of the manual's figures, and no others."""
    rng = random.Random("store " + shape)
    body, image = numbered()
    for num in [1 << i for i in range(8) if 1 << i <= LIMIT[shape]]:
        count = REGISTERS[shape] * num
        width = {"32x32b": 1, "16x64b": 2, "16x128b": 4, "16x256b": 8, "16x32bx2": 1}[shape] * num
        split = rng.choice([0, width, 3 * width]) if shape == "16x32bx2" and 4 * width <= 512 else 0
        column = rng.randrange(512 - width - split + 1)
        first = min(column, 512 - 128)  # the 128 columns that are read back
        lane = rng.choice([0, 16]) if shape != "32x32b" else 0
        names = ", ".join(f"%r{i}" for i in range(count))
        half = f", {split}" if shape == "16x32bx2" else ""
        lines = [f"mad.lo.u32 %r{i}, %t, 0x9E3779B1, {i * 0x01000193};" for i in range(count)]
        lines += [f"add.u32 %x, %taddr, {lane << 16 | column};"]
        lines += [f"tcgen05.st.sync.aligned.{shape}.x{num}.b32 [%x]{half}, {{{names}}};"]
        lines += [f"mov.b32 %r{i}, 0;" for i in range(count)]  # the registers are free at once
        lines += ["tcgen05.wait::st.sync.aligned;"]
        schedule = rng.choice(["eager", "late", "random"])
        report, words = run(body + "\n".join(lines) + dump(128, first), image, 128 * 128, schedule=schedule)
        assert report.status == "ok", report.summary()
        expected = np.array([[512.0 * row + first + c for c in range(128)] for row in range(128)], np.float32)
        expected = expected.view(np.uint32)
        for thread in range(128):
            for register in range(count):
                row, place = cell(shape, thread % 32, register, split)
                if 0 <= column + place - first < 128:
                    word = (thread * 0x9E3779B1 + register * 0x01000193) % 2**32
                    expected[32 * (thread // 32) + lane + row, column + place - first] = word
        assert (words.reshape(128, 128) == expected).all(), (shape, num, column, split)


LD = "tcgen05.ld.sync.aligned.{}.x1.b32 {}, [%x];\ntcgen05.wait::ld.sync.aligned;"
REACH = [
    ("another warp's lanes", "32x32b", "add.u32 %x, %d, 0x200000;", "tmem-lane-rights"),
    ("lanes into the next quarter", "32x32b", "add.u32 %x, %taddr, 0x100000;", "tmem-lane-rights"),
    ("lanes of no half", "16x64b", "add.u32 %x, %taddr, 0x080000;", "tmem-lane-rights"),
    ("past the last column", "16x64b", "add.u32 %x, %taddr, 511;", "tmem-out-of-bounds"),
    ("lanes that do not exist", "32x32b", "add.u32 %x, %taddr, 0x800000;", "tmem-lane-rights"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "shape", "address", "code"), REACH, ids=[each[0] for each in REACH])
def test_what_a_load_may_reach(name: str, shape: str, address: str, code: str) -> None:
    body, image = numbered()
    load = LD.format(shape, "{%r0}")
    report, _ = run(f"{body}{address}\n{load}", image, 1)
    assert (report.status, codes(report)) == ("fault", [code]), report.summary()
    assert report.findings[0].line == line_of(source(f"{body}{address}\n{load}"), "tcgen05.ld")
    for clean in ("mov.u32 %x, %taddr;", "add.u32 %x, %taddr, 0x100000;" if shape != "32x32b" else "mov.u32 %x, %d;"):
        assert run(f"{body}{clean}\n{load}", image, 1)[0].status == "ok"


# Allocation. These bodies run in warp 1 after warp 0 has given back its columns.

ALLOC = "mov.u32 %z, {1}; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot+{0}], %z;\n"
FREE = "mov.u32 %z, {1}; tcgen05.dealloc.cta_group::1.sync.aligned.b32 {0}, %z;\n"
RELINQUISH = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"


def allocations(body: str, **options: Any) -> Any:
    """One warp runs a body that begins with no columns; %r0.. hold what it reads."""
    head = """.shared .align 4 .b32 slot[8]; .reg .b32 %r<16>; .reg .b32 %z, %x; .reg .pred %p;\n"""
    report, (found,) = launch(head + body + "ret;", [poisoned(8)], **options)
    return report, found.tolist()


def read(*slots: int) -> str:
    return "".join(f"ld.shared.b32 %r{i}, [slot+{4 * i}]; st.global.u32 [%out0+{4 * i}], %r{i};\n" for i in slots)


def test_allocations_are_disjoint_and_used_again() -> None:
    body = (
        ALLOC.format(0, 128) + ALLOC.format(4, 256) + ALLOC.format(8, 32) + read(0, 1, 2) + FREE.format("%r0", 128)
        + ALLOC.format(12, 64) + read(3) + FREE.format("%r3", 64) + FREE.format("%r1", 256) + FREE.format("%r2", 32)
        + ALLOC.format(16, 512) + read(4) + FREE.format("%r4", 512)
    )  # fmt: skip
    report, found = allocations(body, grid=3, multiprocessors=1)
    assert report.status == "ok", report.summary()
    assert set(codes(report)) == {"tmem-allocation-grows"}  # advice: 256 after 128, and 512 after 64
    taken = [set(range(start, start + size)) for start, size in zip(found[:3], (128, 256, 32), strict=True)]
    assert sum(map(len, taken)) == len(set.union(*taken)) == 416
    assert all(start % size == 0 or start % 32 == 0 for start, size in zip(found[:3], (128, 256, 32), strict=True))
    assert found[4] == 0
    assert set(range(found[3], found[3] + 64)).isdisjoint(taken[1] | taken[2])


LIVES = [
    ("no such number of columns", ALLOC.format(0, 48), ALLOC.format(0, 64) + read(0) + FREE.format("%r0", 64), "fault",
     "tmem-allocation"),
    ("never given back", ALLOC.format(0, 64), ALLOC.format(0, 64) + read(0) + FREE.format("%r0", 64), "findings",
     "tmem-not-freed"),
    ("given back twice", ALLOC.format(0, 64) + read(0) + FREE.format("%r0", 64) + FREE.format("%r0", 64),
     ALLOC.format(0, 64) + read(0) + FREE.format("%r0", 64), "fault", "tmem-dealloc"),
    ("given back in part", ALLOC.format(0, 64) + read(0) + FREE.format("%r0", 32),
     ALLOC.format(0, 32) + read(0) + FREE.format("%r0", 32), "fault", "tmem-dealloc"),
    ("growing", ALLOC.format(0, 32) + ALLOC.format(4, 64) + read(0, 1) + FREE.format("%r0", 32)
     + FREE.format("%r1", 64), ALLOC.format(0, 64) + ALLOC.format(4, 64) + read(0, 1) + FREE.format("%r0", 64)
     + FREE.format("%r1", 64), "ok", "tmem-allocation-grows"),
    ("given back elsewhere", ALLOC.format(0, 64) + read(0) + "add.u32 %r0, %r0, 32;" + FREE.format("%r0", 64),
     ALLOC.format(0, 64) + read(0) + FREE.format("%r0", 64), "fault", "tmem-dealloc"),
    ("after relinquishing", RELINQUISH + ALLOC.format(0, 64),
     ALLOC.format(0, 64) + RELINQUISH + read(0) + FREE.format("%r0", 64), "fault", "tmem-relinquished"),
    ("more than there is", ALLOC.format(0, 512) + ALLOC.format(4, 32),
     ALLOC.format(0, 256) + ALLOC.format(4, 32) + read(0, 1) + FREE.format("%r0", 256) + FREE.format("%r1", 32),
     "deadlock", "deadlock"),
    ("the slot is misaligned", ALLOC.format(2, 32), ALLOC.format(4, 32) + read(1) + FREE.format("%r1", 32), "fault",
     "misaligned"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "bad", "good", "status", "code"), LIVES, ids=[each[0] for each in LIVES])
def test_life_of_allocations(name: str, bad: str, good: str, status: str, code: str) -> None:
    report, _ = allocations(bad)
    assert (report.status, codes(report)) == (status, [code]), report.summary()
    clean, _ = allocations(good)
    assert clean.status == "ok", clean.summary()
    assert code not in codes(clean)


@pytest.mark.parametrize("instruction", [LD.format("32x32b", "{%r4}"), LD.format("16x64b", "{%r4}")])
def test_columns_that_are_not_allocated(instruction: str) -> None:
    body = ALLOC.format(0, 64) + read(0) + "add.u32 %x, %r0, $AT;\n" + instruction + FREE.format("%r0", 64)
    report, _ = allocations(body.replace("$AT", "64"))
    assert (report.status, codes(report)) == ("fault", ["tmem-out-of-allocation"])
    clean, _ = allocations(body.replace("$AT", "60"))
    assert codes(clean) == ["uninitialized-tensor"]


def test_alloc_waits_until_another_warp_gives_back() -> None:
    body = f"""mov.u32 %x, %tid.x; setp.ge.u32 %p, %x, 32; @%p bra second;
        {ALLOC.format(0, 512)} bar.sync 0; mov.u32 %z, 0; w: add.u32 %z, %z, 1; setp.lt.u32 %p, %z, 50; @%p bra w;
        {read(0)} {FREE.format("%r0", 512)} bra end;
        second: bar.sync 0; {ALLOC.format(4, 32)} {read(1)} {FREE.format("%r1", 32)} end: """
    for schedule in ("eager", "late", "random"):
        report, found = allocations(body, block=64, schedule=schedule)
        assert report.status == "ok", report.summary()
        assert found[:2] == [0, 0]


# Order and completion.

A, B = Operand("k", "128B", 128, 0, 16, 1024), Operand("k", "128B", 32, 32768, 16, 1024)
GOOD = instruction_descriptor(128, 32, "bf16", "bf16")
FIRST = mma(A.descriptor, B.descriptor, GOOD, 0)
READ = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%taddr];\ntcgen05.wait::ld.sync.aligned;\nmov.b32 %r1, %r0;"
WAIT = commit()
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
    ("reading what is being stored", PUT + READ, "tensor-race", "tcgen05.ld"),
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
    """tcgen05.wait::ld says that the cells have been read, and so do registers that the load has brought.

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
    assert "without a tcgen05.wait::ld" in found[0].message
    for over in (READ, USED):
        clean, _ = run(FIRST + WAIT + over + LATER + later, image, 1)
        assert clean.status == "ok", clean.summary()
    if later:
        unordered, _ = run(FIRST + WAIT + USED + later, image, 1)
        assert code in codes(unordered), unordered.summary()  # by the other warps


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
    assert codes(report) == ["missing-proxy-fence"] * 4, report.summary()
    stored = line_of(text, "st.shared.v4")
    assert {each.line for each in report.findings} == {line_of(text, "tcgen05.mma")}
    for warp, each in enumerate(report.findings):
        assert f"the store of line {stored} by warp {warp} without a fence.proxy.async" in each.message


DESCRIPTORS = [
    ("another version of the descriptor", mma(A.descriptor ^ 3 << 46, B.descriptor, GOOD, 0), "illegal-descriptor"),
    ("no such swizzle", mma(A.descriptor | 1 << 61, B.descriptor, GOOD, 0), "illegal-descriptor"),
    ("N of 264", mma(A.descriptor, B.descriptor, GOOD & ~(63 << 17) | 33 << 17, 0), "illegal-descriptor"),
    ("M of 96", mma(A.descriptor, B.descriptor, GOOD & ~(31 << 24) | 6 << 24, 0), "illegal-descriptor"),
    ("bf16 with an f16 accumulator", mma(A.descriptor, B.descriptor, GOOD & ~(1 << 4), 0), "illegal-descriptor"),
    ("outside shared memory", mma(A.descriptor & ~0x3FFF, B.descriptor, GOOD, 0), "out-of-bounds"),
    ("past the allocation's columns", mma(A.descriptor, B.descriptor, GOOD, 0, 496), "tmem-out-of-bounds"),
    ("a lane that M = 128 cannot start on", mma(A.descriptor, B.descriptor, GOOD, 0, 16 << 16), "tmem-out-of-bounds"),
    ("a lane that M = 64 cannot start on",
     mma(A.descriptor, B.descriptor, instruction_descriptor(64, 32, "bf16", "bf16"), 0, 8 << 16), "tmem-out-of-bounds"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body", "code"), DESCRIPTORS, ids=[each[0] for each in DESCRIPTORS])
def test_bad_descriptors(name: str, body: str, code: str) -> None:
    report, _ = run(body + WAIT, np.ones(IMAGE, np.uint8), 1)
    assert report.status == "fault", report.summary()
    assert codes(report) == [code]
    assert "tcgen05.mma" in report.findings[0].instruction


@pytest.mark.parametrize("missing", ["", "a", "b", "ab"])
def test_a_descriptor_without_its_version(missing: str) -> None:
    """As Triton 3.5 wrote them: advice, and the same product."""
    rng = np.random.default_rng(11)
    image = rng.integers(0, 256, IMAGE, dtype=np.uint8)
    first, second = Operand("k", "128B", 128, 0, 16, 1024), Operand("k", "128B", 32, 32768, 16, 1024)
    a, b = (rng.integers(-8, 9, (rows, 16)).astype(NUMPY["bf16"]) for rows in (128, 32))
    first.put(image, a)
    second.put(image, b)
    left, right = (
        operand.descriptor & ~(7 << 46 if name in missing else 0) for name, operand in (("a", first), ("b", second))
    )
    report, words = run(mma(left, right, GOOD, 0) + commit() + dump(32), image, 128 * 32)
    assert (report.status, codes(report)) == ("ok", ["descriptor-version"] if missing else []), report.summary()
    assert all(each.severity == "advice" and "tcgen05.mma" in each.instruction for each in report.findings)
    assert (words.reshape(128, 32).view(np.float32) == a.astype(np.float32) @ b.astype(np.float32).T).all()


def test_m_64_may_start_on_lane_16() -> None:
    first, image = lay_out("k", "128B", 64, 0, 16384, random.Random(1)), np.zeros(IMAGE, np.uint8)
    a = np.random.default_rng(5).standard_normal((64, 16)).astype(NUMPY["bf16"])
    b = np.eye(16, dtype=NUMPY["bf16"])[:8].copy()
    second = Operand("k", "128B", 8, 32768, 16, 1024)
    first.put(image, a)
    second.put(image, b)
    body = mma(first.descriptor, second.descriptor, instruction_descriptor(64, 8, "bf16", "bf16"), 0, 16 << 16)
    _, words = run(body + commit() + dump(8), image, 128 * 8)
    rows = [32 * (row // 16) + 16 + row % 16 for row in range(64)]
    assert (words.view(np.float32).reshape(128, 8)[rows] == a[:, :8].astype(np.float32)).all()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_disabled_lanes_stay(schedule: Any) -> None:
    """D = A B, then D += A B except in the lanes of the mask."""
    masks = [0x0000FFFF, 0x80000001, 0, 0xFFFFFFFF]
    rng = np.random.default_rng(11)
    a, b = values(rng, (128, 16), "bf16"), values(rng, (32, 16), "bf16")
    image = np.zeros(IMAGE, np.uint8)
    A.put(image, a)
    B.put(image, b)
    second = mma(A.descriptor, B.descriptor, GOOD, 1)
    head = ".reg .b32 %off<4>;\n" + "".join(f"mov.b32 %off{i}, {mask};\n" for i, mask in enumerate(masks))
    words = "{%off0, %off1, %off2, %off3}"
    masked = re.sub(r"(tcgen05\.mma[^;]*), (%?\w+;)", rf"\1, {words}, \2", second)
    assert masked != second
    report, found = run(head + FIRST + masked + commit() + dump(32), image, 128 * 32, schedule=schedule)
    assert report.status == "ok", report.summary()
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    times = np.array([1.0 if masks[lane // 32] >> lane % 32 & 1 else 2.0 for lane in range(128)])
    magnitude = 2 * np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)).T
    allowed = tolerance(exact, magnitude, 32, "f32")
    assert (np.abs(found.view(np.float32).reshape(128, 32) - times[:, None] * exact) <= allowed).all()


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


PAIRS = [
    "tcgen05.mma.cta_group::2.kind::f16 [%d], {a}, {b}, 0x10200490, 0;",
    "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [done];",
    "tcgen05.cp.cta_group::2.128x256b [%d], {a};",
    "tcgen05.shift.cta_group::2.down [%d];",
]  # fmt: skip


@pytest.mark.parametrize("instruction", PAIRS)
def test_pairs_need_a_cluster(instruction: str) -> None:
    text = source(instruction.format(a=hex(A.descriptor), b=hex(B.descriptor))).replace("cta_group::1", "cta_group::2")
    emulator = Emulator()
    arguments = [emulator.empty(IMAGE, np.uint8), emulator.empty(1, np.uint32)]
    report = emulator.launch(Kernel.from_ptx(text), 1, THREADS, arguments)
    assert (report.status, codes(report)) == ("fault", ["cta-pair"]), report.summary()


@pytest.mark.parametrize("columns", [32, 96])
@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_all_columns_for_one(columns: int, schedule: Any) -> None:
    """.exclusive takes all 512, however few it names: each of three CTAs stores to the last ones."""
    exclusive = "tcgen05.alloc.cta_group::1.sync.aligned.exclusive"
    body = (
        ALLOC.format(0, columns).replace("tcgen05.alloc.cta_group::1.sync.aligned", exclusive) + read(0)
        + "add.u32 %x, %r0, 504; tcgen05.st.sync.aligned.32x32b.x8.b32 [%x], {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8};"
        "tcgen05.wait::st.sync.aligned;" + FREE.format("%r0", columns).replace(".aligned.b32", ".aligned.exclusive.b32")
    )  # fmt: skip
    assert ".exclusive.b32 %r0" in body
    zeros = "".join(f"mov.b32 %r{i}, 0;" for i in range(1, 9))
    report, found = allocations(zeros + body, version="9.4", grid=3, multiprocessors=1, schedule=schedule)
    assert (report.status, found[0]) == ("ok", 0), report.summary()
    one = allocations(zeros + body.replace(".exclusive", "").replace("96", "128"), version="9.4")[0]
    assert codes(one) == ["tmem-out-of-allocation"]
    waits = ALLOC.format(4, 32).replace("aligned.shared", "aligned.exclusive.shared")
    report, _ = allocations(ALLOC.format(0, 32) + waits, version="9.4", schedule=schedule)
    assert report.status == "deadlock"
    assert "allocated 32 columns at 0" in report.findings[-1].message


def test_one_cta_group_throughout() -> None:
    good = ALLOC.format(0, 64) + RELINQUISH + read(0) + FREE.format("%r0", 64)
    report, _ = allocations(good.replace(RELINQUISH, RELINQUISH.replace("::1", "::2")))
    assert (report.status, codes(report)) == ("fault", ["illegal-ptx"]), report.summary()
    assert "k uses .cta_group::1 in line" in report.findings[0].message
    assert allocations(good)[0].status == "ok"


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
    assert all("data of the cp.async of line" in each.message for each in found)


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
    """tcgen05.fence orders tcgen05 operations by relaxed synchronisation too (PTX ISA 9.2, 9.7.16.6.4), no others."""
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
