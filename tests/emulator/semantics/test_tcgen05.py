"""Tensor memory and tensor cores: fragment maps, products, and descriptors. PTX ISA 9.7.16."""

from __future__ import annotations

import random
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
    LD,
    NUMPY,
    THREADS,
    A,
    B,
    Operand,
    commit,
    dump,
    instruction_descriptor,
    mma,
    numbered,
    run,
    source,
)

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


@pytest.mark.one_in(3)
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
        assert set(codes(report)) == {"uninitialized-tensor"}
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


@pytest.mark.parametrize("packed", ["", ".pack::16b"])
@pytest.mark.parametrize(
    ("text", "split"),
    [("4294967304", 8), ("-8", -8), ("(.u64)-8", -8), ("18446744073709551608", -8), ("4294967288", -8), ("~7", -8)],
)
def test_halves_apart_by_the_low_32_bits(text: str, split: int, packed: str) -> None:
    """ptxas 13.5 encodes the low 32 bits of the constant, signed; it rejects none."""
    body, image = numbered()
    load = f"tcgen05.ld.sync.aligned.16x32bx2.x1{packed}.b32 {{%r0}}, [%x], {text};"
    lines = ["add.u32 %x, %taddr, 16;", load, "tcgen05.wait::ld.sync.aligned; mul.wide.u32 %to, %t, 4;"]
    lines.append("add.u64 %to, %to, %out; st.global.b32 [%to], %r0;")
    report, words = run(body + "\n".join(lines), image, 128)
    assert report.status == "ok", report.summary()
    cells = [(32 * (t // 32) + t % 16, 16 + (split if t % 32 >= 16 else 0)) for t in range(128)]
    values = np.array([[512.0 * row + column + i for i in range(2)] for row, column in cells], np.float32)
    bits = values.view(np.uint32)
    expected = bits[:, 0] & 0xFFFF | bits[:, 1] << 16 if packed else bits[:, 0]
    assert (words == expected).all()


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


REACH = [
    ("another warp's lanes", "32x32b", "add.u32 %x, %d, 0x200000;", "tmem-lane-rights"),
    ("lanes into the next quarter", "32x32b", "add.u32 %x, %taddr, 0x100000;", "tmem-lane-rights"),
    ("lanes of no half", "16x64b", "add.u32 %x, %taddr, 0x080000;", "tmem-lane-rights"),
    ("past the last column", "16x64b", "add.u32 %x, %taddr, 511;", "tmem-out-of-bounds"),
    ("lanes that do not exist", "32x32b", "add.u32 %x, %taddr, 0x1000000;", "tmem-lane-rights"),
]


@pytest.mark.parametrize(("name", "shape", "address", "code"), REACH, ids=[each[0] for each in REACH])
def test_what_a_load_may_reach(name: str, shape: str, address: str, code: str) -> None:
    body, image = numbered()
    load = LD.format(shape, "{%r0}")
    report, _ = run(f"{body}{address}\n{load}", image, 1)
    assert (report.status, codes(report)) == ("fault", [code]), report.summary()
    assert report.findings[0].line == line_of(source(f"{body}{address}\n{load}"), "tcgen05.ld")
    for clean in ("mov.u32 %x, %taddr;", "add.u32 %x, %taddr, 0x100000;" if shape != "32x32b" else "mov.u32 %x, %d;"):
        assert run(f"{body}{clean}\n{load}", image, 1)[0].status == "ok"


def test_lanes_of_the_second_cta_of_a_pair() -> None:
    """Lanes from 128 on are those from 0 on, as kernels for pairs have it; the manual has no such lanes."""
    body, image = numbered()
    load = LD.format("32x32b", "{%r0}")
    _, there = run(f"{body}mov.u32 %x, %taddr;\n{load}", image, 1)
    report, words = run(f"{body}add.u32 %x, %taddr, 0x800000;\n{load}", image, 1)
    assert report.status == "ok"
    assert [(each.code, each.severity) for each in report.findings] == [("tmem-lane-rights", "advice")]
    assert (words == there).all()


# Descriptors.

WAIT = commit()
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


PAIRS = [
    "tcgen05.mma.cta_group::2.kind::f16 [%d], {a}, {b}, 0x10200490, 0;",
    "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [done];",
    "tcgen05.cp.cta_group::2.128x256b [%d], {a};",
    "tcgen05.shift.cta_group::2.down [%d];",
]


@pytest.mark.parametrize("instruction", PAIRS)
def test_pairs_need_a_cluster(instruction: str) -> None:
    text = source(instruction.format(a=hex(A.descriptor), b=hex(B.descriptor))).replace("cta_group::1", "cta_group::2")
    emulator = Emulator()
    arguments = [emulator.empty(IMAGE, np.uint8), emulator.empty(1, np.uint32)]
    report = emulator.launch(Kernel.from_ptx(text), 1, THREADS, arguments)
    assert (report.status, codes(report)) == ("fault", ["cta-pair"]), report.summary()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(("guard", "lanes"), [("@%leader", 1), ("@%q", 2), ("", 32)])
@pytest.mark.parametrize("opcode", ["tcgen05.mma", "tcgen05.commit"])
def test_what_several_lanes_issue(opcode: str, guard: str, lanes: int, schedule: Any) -> None:
    """Each lane issues one of its own: so many products are added to D, so many arrivals come."""
    body = mma(A.descriptor, B.descriptor, GOOD, 0) + commit()
    assert f"@%leader {opcode}" in body
    changed = "setp.lt.u32 %q, %t, 2;\n" + body.replace(f"@%leader {opcode}", f"{guard} {opcode}")
    report, _ = run(changed, np.zeros(IMAGE, np.uint8), 1, schedule=schedule)
    found = [each for each in report.findings if each.code == "many-issuers"]
    if lanes == 1:
        assert found == [], report.summary()
    else:
        assert (found[0].severity, len(found)) == ("advice", 1)
        assert opcode in found[0].instruction
        assert found[0].summary == f"{lanes} lanes of a warp issue this operation on the same address"
