"""Warpgroup-wide products: values of every type and layout, their order, and the checks. PTX ISA 9.7.15."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.harness import codes, line_of
from tests.support.wgmma_kernel import IMAGE, NUMPY, WAIT, Operand, Run, a_words, matrix_of, registers, run, words_of

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "b1": 1}
#: Where B begins in the image.
B_START = 16384
FENCE = "wgmma.fence.sync.aligned;\n"


def types_of(name: str) -> tuple[str, str, str]:
    """D, A and B of `f32.f16` or `f32.e4m3.e5m2`."""
    d, a, *b = name.split(".")
    return d, a, b[0] if b else a


def lay_out(rng: random.Random, major: str, swizzle: str, rows: int, depth: int, start: int, bits: int) -> Operand:
    """An operand with strides that leave random gaps, on its pattern's boundary."""
    width = {"none": 16, "32B": 32, "64B": 64, "128B": 128}[swizzle]
    group = 8 * width
    gap = group * rng.randrange(2) if rows <= 128 else 0
    if major == "k":
        if swizzle == "none":
            lbo, sbo = rng.choice([(128, 128 * depth * bits // 128 + gap), (128 * (rows // 8) + 128, 128)])
        else:
            lbo, sbo = rng.choice([0, 16, 4096]), group + gap  # LBO is not used
    elif swizzle == "none":
        lbo, sbo = rng.choice([(128, 128 * (depth // 8) + gap), (128 * (rows // 8), 128)])
    else:
        blocks = -(-2 * rows // width)
        lbo, sbo = rng.choice([(group, group * blocks + gap), (group * (depth // 8) + gap, group)])
    return Operand(major, swizzle, start, lbo, sbo, bits)


def exact_values(rng: np.random.Generator, shape: tuple[int, ...], type: str, *, narrow: bool = False) -> NDArray[Any]:
    """Numbers whose products and sums are exact in every type: few, small ones; of integers all.

    `narrow` is for sums in .f16: their magnitude stays below 2048.
    """
    if type == "b1":
        return rng.integers(0, 2, shape, dtype=np.uint8)
    if type in ("s8", "u8"):
        low, high = (-128, 128) if type == "s8" else (0, 256)
        return rng.integers(low, high, shape).astype(NUMPY[type])
    limit = 2 if narrow else 8
    return rng.integers(-limit, limit + 1, shape).astype(NUMPY[type])


def instruction(
    n: int,
    name: str,
    *,
    a: str,
    b: int,
    scale: str = "1",
    signs: tuple[int, int] = (1, 1),
    majors: tuple[str, str] = ("k", "k"),
    sparse: str = "",
    first: int = 0,
    saturate: bool = False,
) -> str:
    d, a_type, b_type = types_of(name)
    k = 256 // BITS[a_type] * (2 if sparse else 1)
    count = n // 4 if d == "f16" else n // 2
    tail = ".and.popc" if a_type == "b1" else ""
    head = f"wgmma.mma_async{'.sp' if sparse else ''}.sync.aligned.m64n{n}k{k}"
    text = (
        f"{head}{'.satfinite' if saturate else ''}.{d}.{a_type}.{b_type}{tail} {registers(count, first)}, {a}, {b:#x}"
    )
    text += f"{sparse}, {scale}"
    if d != "s32":
        text += f", {signs[0]}, {signs[1]}"
    if a_type in ("f16", "bf16"):
        text += f", {int(majors[0] == 'mn')}" if not a.startswith("{") else ""
        text += f", {int(majors[1] == 'mn')}"
    return text + ";\n"


A_REGISTERS = "{%a0, %a1, %a2, %a3}"


def expected(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any] | None, d_type: str, sign: int = 1) -> NDArray[Any]:
    """C + A B^T of numbers that are exact everywhere; integers wrap."""
    wide: Any = np.int64 if d_type == "s32" else np.float64
    exact = sign * (a.astype(wide) @ b.astype(wide).T)
    if c is not None:
        exact = exact + c.astype(wide)
    return exact.astype(NUMPY[d_type])


NAMES = [
    "f32.f16", "f16.f16", "f32.bf16", "f32.tf32", "f32.e4m3.e4m3", "f32.e4m3.e5m2", "f16.e5m2.e4m3", "f32.e5m2.e5m2",
    "s32.s8.s8", "s32.s8.u8", "s32.u8.s8", "s32.u8.u8", "s32.b1",
]  # fmt: skip
MODES = ("none", "32B", "64B", "128B")
SIZES = [8, 16, 24, 32, 48, 64, 96, 128, 176, 240, 256]
#: Every type with A in shared memory and in registers; every pair of majors and every swizzle of 16-bit types.
CASES = [
    (name, source, SIZES[(3 * index + 5 * shift) % len(SIZES)], "k", "k", MODES[(index + shift) % 4])
    for index, name in enumerate(NAMES)
    for shift, source in enumerate(("memory", "registers"))
] + [
    (name, source, SIZES[(7 * index + 2) % len(SIZES)], a_major, b_major, swizzle)
    for index, (name, source, a_major, b_major, swizzle) in enumerate(
        (name, source, a_major, b_major, swizzle)
        for name, source, a_major, b_major in (
            ("f32.f16", "memory", "mn", "k"),
            ("f32.bf16", "memory", "k", "mn"),
            ("f16.f16", "memory", "mn", "mn"),
            ("f32.f16", "registers", "k", "mn"),
        )
        for swizzle in MODES
    )
]


@pytest.mark.parametrize(("name", "source", "n", "a_major", "b_major", "swizzle"), CASES)
def test_products(name: str, source: str, n: int, a_major: str, b_major: str, swizzle: str) -> None:
    """D = A B + D bit for bit, with numbers whose sums are exact; noise around the operands in shared memory."""
    rng = random.Random(f"{name}{source}{n}{a_major}{b_major}{swizzle}")
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    d_type, a_type, b_type = types_of(name)
    bits, depth = BITS[a_type], 256 // BITS[a_type]
    narrow = d_type == "f16"
    a, b = (
        exact_values(numbers, (64, depth), a_type, narrow=narrow),
        exact_values(numbers, (n, depth), b_type, narrow=narrow),
    )
    c = exact_values(numbers, (64, n), "s8", narrow=narrow).astype(NUMPY[d_type])
    signs = (rng.choice([-1, 1]), rng.choice([-1, 1])) if d_type != "s32" else (1, 1)
    image = numbers.integers(0, 256, IMAGE, dtype=np.uint8) if bits > 1 else np.zeros(IMAGE, np.uint8)
    first = lay_out(rng, a_major, swizzle, 64, depth, 0, bits)
    second = lay_out(rng, b_major, swizzle, n, depth, B_START, bits)
    second.put(image, b)
    if source == "memory":
        first.put(image, a)
    operand = f"{first.descriptor:#x}" if source == "memory" else A_REGISTERS
    body = FENCE + instruction(n, name, a=operand, b=second.descriptor, signs=signs, majors=(a_major, b_major)) + WAIT
    words = words_of(c)
    found = run(
        body, words.shape[1], image, c=words, a=a_words(a, bits), schedule=rng.choice(["eager", "late", "random"])
    )
    assert found.report.status == "ok", found.report.summary()
    assert (matrix_of(found.words, n, d_type) == expected(a, b, c, d_type, signs[0] * signs[1])).all()


def simple(
    n: int, name: str = "f32.f16", seed: int = 1
) -> tuple[NDArray[np.uint8], NDArray[Any], NDArray[Any], int, int]:
    """An image with A and B, K-major with 128-byte swizzle: (image, A, B, descriptors)."""
    _, a_type, b_type = types_of(name)
    bits, depth = BITS[a_type], 256 // BITS[a_type]
    numbers = np.random.default_rng(seed)
    a, b = exact_values(numbers, (64, depth), a_type), exact_values(numbers, (n, depth), b_type)
    image = np.zeros(IMAGE, np.uint8)
    first, second = Operand("k", "128B", 0, 0, 1024, bits), Operand("k", "128B", B_START, 0, 1024, bits)
    first.put(image, a)
    second.put(image, b)
    return image, a, b, first.descriptor, second.descriptor


@pytest.mark.parametrize("name", ["f32.f16", "f32.bf16", "f32.tf32", "f32.e4m3.e5m2", "f16.f16", "f16.e4m3.e4m3"])
def test_sums(name: str) -> None:
    """Numbers of many magnitudes: each of K additions rounds a partial sum to 24 bits; .f16 once more, to 11 bits.

    The manual asks for at least that of sums in .f32 (of .f16 in .f16), but for 8-bit types, where hardware has less.
    """
    d_type, a_type, b_type = types_of(name)
    bits, depth, n = BITS[a_type], 256 // BITS[a_type], 64
    numbers = np.random.default_rng(depth)

    def values(rows: int, type: str) -> NDArray[Any]:
        return (numbers.standard_normal((rows, depth)) * 2.0 ** numbers.integers(-3, 3, (rows, depth))).astype(
            NUMPY[type]
        )

    a, b = values(64, a_type), values(n, b_type)
    c = numbers.standard_normal((64, n)).astype(NUMPY[d_type])
    image = np.zeros(IMAGE, np.uint8)
    first, second = Operand("k", "64B", 0, 0, 512, bits), Operand("k", "64B", B_START, 0, 512, bits)
    first.put(image, a)
    second.put(image, b)
    body = FENCE + instruction(n, name, a=f"{first.descriptor:#x}", b=second.descriptor) + WAIT
    words = words_of(c)
    found = run(body, words.shape[1], image, c=words)
    assert found.report.status == "ok", found.report.summary()
    if a_type == "tf32":  # the low 13 bits do not count
        a, b = ((x.view(np.uint32) & 0xFFFFE000).view(np.float32) for x in (a, b))
    wide_a, wide_b, wide_c = (x.astype(np.float64) for x in (a, b, c))
    exact = wide_a @ wide_b.T + wide_c
    cut = 2.0**-13 if bits == 8 else 2.0**-24
    bound = (depth + 2) * cut * (np.abs(wide_a) @ np.abs(wide_b).T + np.abs(wide_c))
    if d_type == "f16":
        bound += 2.0**-11 * (np.abs(exact) + bound) + 2.0**-25
    assert (np.abs(matrix_of(found.words, n, d_type).astype(np.float64) - exact) <= bound).all()


def test_special_values() -> None:
    """Infinities, NaN (0x7FFFFFFF), products below the normal range, and .f16 that overflows."""
    image, _, _, a, b = simple(8)
    first, second = Operand("k", "128B", 0, 0, 1024, 16), Operand("k", "128B", B_START, 0, 1024, 16)
    left, right = np.zeros((64, 16), np.float16), np.zeros((8, 16), np.float16)
    left[:4, 0] = [np.inf, 1, np.nan, 2.0**-24]
    right[:4, 0] = [1, -np.inf, 0, 2.0**-24]
    left[4], right[4] = 65504, 65504
    for operand, matrix in ((first, left), (second, right)):
        operand.put(image, matrix)
    body = FENCE + instruction(8, "f32.f16", a=f"{a:#x}", b=b, scale="0") + WAIT
    words = matrix_of(run(body, 4, image).words, 8, "f32").view(np.uint32)
    value = words.view(np.float32)
    assert [value[0, 0], value[0, 1], value[1, 1], value[1, 0]] == [np.inf, -np.inf, -np.inf, 1]
    assert value[3, 3] == 2.0**-48
    assert abs(value[4, 4] - 16 * 65504.0**2) <= 2.0**-20 * 16 * 65504.0**2
    assert (words[2] == 0x7FFFFFFF).all()
    assert words[0, 2] == 0x7FFFFFFF
    body = FENCE + instruction(8, "f16.f16", a=f"{a:#x}", b=b, scale="0") + WAIT
    half = matrix_of(run(body, 2, image).words, 8, "f16")
    assert half[4, 4] == np.inf
    assert (half[2].view(np.uint16) == 0x7FFF).all()


def test_integer_limits() -> None:
    """Sums wrap, or are clamped with .satfinite."""
    image, a, b, left, right = simple(16, "s32.s8.s8")
    c = np.where(np.arange(16) % 2, 2**31 - 1, -(2**31)) * np.ones((64, 1))
    c = c.astype(np.int64)
    exact = a.astype(np.int64) @ b.astype(np.int64).T + c
    for saturate in (False, True):
        body = FENCE + instruction(16, "s32.s8.s8", a=f"{left:#x}", b=right, saturate=saturate) + WAIT
        found = run(body, 8, image, c=words_of(c.astype(np.int32)))
        wanted = exact.clip(-(2**31), 2**31 - 1) if saturate else exact
        assert (matrix_of(found.words, 16, "s32") == wanted.astype(np.int32)).all()


def test_scale_d() -> None:
    """False: D = A B, whatever D is; a predicate or a constant; negated too."""
    image, a, b, left, right = simple(32)
    product = expected(a, b, None, "f32")
    c = np.full((64, 32), np.nan, np.float32)
    for scale, setup, adds in (
        ("0", "", False),
        ("1", "", True),
        ("%p", "setp.ne.u32 %p, 0, 0;", False),
        ("!%p", "setp.ne.u32 %p, 0, 0;", True),
    ):
        body = setup + FENCE + instruction(32, "f32.f16", a=f"{left:#x}", b=right, scale=scale) + WAIT
        start = product if adds else c
        found = run(body, 16, image, c=words_of(start))
        assert found.report.status == "ok", found.report.summary()
        assert (matrix_of(found.words, 32, "f32") == (2 * product if adds else product)).all()


# Sparse A.


def metadata_words(chosen: NDArray[np.int64], bits: int, selector: int) -> NDArray[np.uint32]:
    """One word for each thread, from the 4 bits of each chunk [64, chunks] (figures 176, 178, 180 and 181).

    16 and 32 bits: rows g and g + 8 share a word, each pair of threads has the chunks in halves. 8 bits: a word is 8
    chunks of one row; threads 0 and 1 of a quad have the first 32 columns of rows g and g + 8, 2 and 3 the last.
    """
    words = np.zeros(128, np.uint32)
    for row, chunk in np.ndindex(chosen.shape):
        warp, g, high = row // 16, row % 8, row // 8 % 2
        if bits == 8:
            thread, bit = 32 * warp + 4 * g + 2 * (chunk // 8) + high, 4 * (chunk % 8)
        else:
            thread, bit = 32 * warp + 4 * g + 2 * selector + chunk // 4, 16 * high + 4 * (chunk % 4)
        words[thread] |= np.uint32(int(chosen[row, chunk]) << bit)
    return words


def sparse_problem(
    rng: np.random.Generator, a_type: str, bits: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """A stored [64, depth], the same with its zeros [64, 2 * depth], and the 4 bits of each chunk."""
    depth = 256 // bits
    stored = exact_values(rng, (64, depth), a_type)
    whole = np.zeros((64, 2 * depth), stored.dtype)
    width = 2 if bits == 32 else 4
    chunks = np.zeros((64, 2 * depth // width), np.int64)
    for row, chunk in np.ndindex(chunks.shape):
        if bits == 32:
            place = int(rng.integers(2))
            whole[row, 2 * chunk + place] = stored[row, chunk]
            chunks[row, chunk] = (0b0100, 0b1110)[place]
        else:
            first, second = sorted(rng.permutation(4)[:2].tolist())
            whole[row, 4 * chunk + first], whole[row, 4 * chunk + second] = stored[row, 2 * chunk : 2 * chunk + 2]
            chunks[row, chunk] = first | second << 2
    return stored, whole, chunks


SPARSE = [
    ("f32.f16", "memory", 64, "128B", 0), ("f16.f16", "registers", 32, "64B", 1),
    ("f32.bf16", "registers", 8, "none", 0),
    ("f32.tf32", "memory", 48, "64B", 1), ("f32.tf32", "registers", 16, "128B", 0),
    ("f32.e4m3.e5m2", "memory", 256, "128B", 0), ("f32.e5m2.e4m3", "registers", 24, "64B", 0),
    ("s32.s8.u8", "memory", 96, "none", 0), ("s32.u8.u8", "registers", 64, "128B", 0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "source", "n", "swizzle", "selector"), SPARSE)
def test_sparse(name: str, source: str, n: int, swizzle: str, selector: int) -> None:
    """2 of 4 (1 of 2) elements, where the metadata say; the metadata of the other pair of threads are noise."""
    rng = random.Random(name + source)
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    d_type, a_type, b_type = types_of(name)
    bits, depth = BITS[a_type], 256 // BITS[a_type]
    stored, whole, chunks = sparse_problem(numbers, a_type, bits)
    b = exact_values(numbers, (n, 2 * depth), b_type, narrow=d_type == "f16")
    image = numbers.integers(0, 256, IMAGE, dtype=np.uint8)
    first = lay_out(rng, "k", swizzle, 64, depth, 0, bits)
    second = lay_out(rng, "k", swizzle, n, 2 * depth, B_START, bits)
    first.put(image, stored)
    second.put(image, b)
    words = metadata_words(chunks, bits, selector)
    if bits != 8:
        others = np.arange(128) % 4 // 2 != selector
        words[others] = numbers.integers(0, 1 << 32, 64, dtype=np.uint32)
    operand = f"{first.descriptor:#x}" if source == "memory" else A_REGISTERS
    body = FENCE + instruction(n, name, a=operand, b=second.descriptor, sparse=f", %meta, {selector}", scale="0") + WAIT
    found = run(body, n // (4 if d_type == "f16" else 2), image, a=a_words(stored, bits), metadata=words)
    assert found.report.status == "ok", found.report.summary()
    assert (matrix_of(found.words, n, d_type) == expected(whole, b, None, d_type)).all()


def test_what_zeros_meet_does_not_count() -> None:
    """NaN in B where A has its zeros."""
    numbers = np.random.default_rng(8)
    stored, whole, chunks = sparse_problem(numbers, "f16", 16)
    chunks[:] = 0b0100  # the first two of four
    for chunk in range(8):
        whole[:, 4 * chunk : 4 * chunk + 2] = stored[:, 2 * chunk : 2 * chunk + 2]
        whole[:, 4 * chunk + 2 : 4 * chunk + 4] = 0
    b = exact_values(numbers, (16, 32), "f16")
    clean = b.copy()
    b[:, 2::4] = np.nan
    b[:, 3::4] = np.inf
    clean[:, 2::4] = clean[:, 3::4] = 0
    image = np.zeros(IMAGE, np.uint8)
    first, second = Operand("k", "128B", 0, 0, 1024, 16), Operand("k", "128B", B_START, 0, 1024, 16)
    first.put(image, stored)
    second.put(image, b)
    body = (
        FENCE + instruction(16, "f32.f16", a=f"{first.descriptor:#x}", b=second.descriptor, sparse=", %meta, 0") + WAIT
    )
    found = run(body, 8, image, metadata=metadata_words(chunks, 16, 0))
    assert (matrix_of(found.words, 16, "f32") == expected(whole, clean, None, "f32")).all()


def test_metadata_that_mean_nothing() -> None:
    image, _, _, left, right = simple(8)
    body = FENCE + instruction(8, "f32.f16", a=f"{left:#x}", b=right, sparse=", %meta, 0") + WAIT
    for word, wanted in ((0x44444444, []), (0x44445444, ["illegal-metadata"])):
        found = run(body, 4, image, metadata=np.full(128, word, np.uint32))
        assert codes(found.report) == wanted


# Time, order and registers.


def two_steps(n: int, between: str = "", last: str = WAIT) -> tuple[NDArray[np.uint8], str, NDArray[np.float32]]:
    """Two products into one accumulator, in a group each: (image, body, expected)."""
    image, a, b, left, right = simple(n)
    one = instruction(n, "f32.f16", a=f"{left:#x}", b=right, scale="0")
    two = instruction(n, "f32.f16", a=f"{left:#x}", b=right)
    return image, FENCE + one + between + two + last, 2 * expected(a, b, None, "f32")


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_groups(schedule: Any) -> None:
    """Two warpgroups in each of three CTAs; two groups, waited for one after the other."""
    image, _, _, left, right = simple(64)
    _, a, b, _, _ = simple(64)
    one = instruction(64, "f32.f16", a=f"{left:#x}", b=right, scale="0")
    other = instruction(64, "f32.f16", a=f"{left:#x}", b=right, scale="0", first=32, signs=(-1, 1))
    copy = "".join(f"add.f32 %d{i}, %d{i}, %d{i};" for i in range(32))
    commit = "wgmma.commit_group.sync.aligned;\n"
    body = FENCE + one + commit + other + commit + "wgmma.wait_group.sync.aligned 1;\n" + copy
    body += "wgmma.wait_group.sync.aligned 0;\n"
    found = run(body, 64, image, threads=256, ctas=3, schedule=schedule, seed=3)
    assert found.report.status == "ok", found.report.summary()
    product = expected(a, b, None, "f32")
    for words in found.words.reshape(6, 128, 64):
        assert (matrix_of(np.ascontiguousarray(words[:, :32]), 64, "f32") == 2 * product).all()
        assert (matrix_of(np.ascontiguousarray(words[:, 32:]), 64, "f32") == -product).all()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_warpgroups_with_their_own_operands(schedule: Any) -> None:
    """Each warpgroup has its own descriptor of A, as tiles of 128 rows have."""
    image, a, b, left, right = simple(16)
    other = exact_values(np.random.default_rng(5), (64, 16), "f16")
    Operand("k", "128B", 8192, 0, 1024, 16).put(image, other)
    setup = f"shr.u32 %x, %warp, 2; mul.lo.u32 %x, %x, 512; cvt.u64.u32 %da, %x; add.u64 %da, %da, {left:#x};"
    body = setup + FENCE + instruction(16, "f32.f16", a="%da", b=right, scale="0") + WAIT
    found = run(body, 8, image, threads=256, ctas=2, schedule=schedule)
    assert found.report.status == "ok", found.report.summary()
    for index, words in enumerate(found.words.reshape(4, 128, 8)):
        wanted = expected(other if index % 2 else a, b, None, "f32")
        assert (matrix_of(words, 16, "f32") == wanted).all()


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_warps_that_wait_at_different_times(schedule: Any, checks: bool) -> None:
    """Each warp may look at its registers after its own wait, whatever the others of the same product do."""
    image, product, wanted = two_steps(16, last="wgmma.commit_group.sync.aligned;\n")
    double = "wgmma.wait_group.sync.aligned 0;" + "".join(f"add.f32 %d{i}, %d{i}, %d{i};" for i in range(8))
    apart = f"mov.u32 %x, %ctaid.x; setp.eq.u32 %p, %x, 1; @%p bra other; {double} bra done; other: {double} done:"
    found = run(product + apart, 8, image, ctas=3, schedule=schedule, checks=checks)
    assert found.report.status == "ok", found.report.summary()
    for words in found.words.reshape(3, 128, 8):
        assert (matrix_of(words, 16, "f32") == 2 * wanted).all()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_accumulators_in_flight(schedule: Any) -> None:
    """Reading or writing the accumulator before the wait is a finding, at any time; after it is none."""
    for touch in ("add.f32 %d2, %d3, %d3;", "mov.b32 %d3, 0;", "st.global.b32 [%out], %d0;"):
        image, body, wanted = two_steps(16)
        after = run(body + touch.replace("%d3, 0", "%d3, %d3"), 8, image, schedule=schedule)
        assert after.report.status == "ok", after.report.summary()
        assert touch.startswith("add") or (matrix_of(after.words, 16, "f32") == wanted).all()
        _, body, _ = two_steps(16, last="wgmma.commit_group.sync.aligned;\n" + touch + WAIT)
        found = run(body, 8, image, schedule=schedule)
        assert set(codes(found.report)) == {"wgmma-register-in-flight"}
        assert found.report.findings[0].line == line_of(found.text, touch)
        first = found.report.findings[0].message
        assert f"line {line_of(found.text, 'wgmma.mma_async')}" in first


MOVED = {
    "split": (".reg .b16 %h0, %h1; mov.b32 {%h0, %h1}, %d3;", "mov.b32 %x, {%h1, %h0};", "st.global.b16 [%out], %h0;"),
    "copied": ("mov.b32 %x, %d3;", "mov.b32 %place, %x;", "st.global.b32 [%out], %x;"),
    "copied twice": ("mov.b32 %x, %d3; mov.b32 %place, %x;", "", "st.global.b32 [%out], %place;"),
    "split and added": (".reg .b16 %h0, %h1; mov.b32 {%h0, %h1}, %d3;", "", "add.u16 %h0, %h0, %h1;"),
}


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("moved", MOVED)
def test_moves_of_accumulators_in_flight(moved: str, schedule: Any) -> None:
    """ptxas (13.5) inserts no wait before them: the mark moves on to the first use, which must come after the wait."""
    move, again, use = MOVED[moved]
    image, body, wanted = two_steps(16, last="wgmma.commit_group.sync.aligned;\n" + move + WAIT + again)
    found = run(body, 8, image, schedule=schedule)
    assert (found.report.status, codes(found.report)) == ("ok", []), found.report.summary()
    assert (matrix_of(found.words, 16, "f32") == wanted).all()
    _, body, _ = two_steps(16, last="wgmma.commit_group.sync.aligned;\n" + move + "\n" + use + WAIT)
    found = run(body, 8, image, schedule=schedule)
    assert set(codes(found.report)) == {"wgmma-register-in-flight"}, found.report.summary()
    assert (found.report.findings[0].severity, found.report.findings[0].line) == ("error", line_of(found.text, use))


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_packing_accumulators_in_flight(schedule: Any) -> None:
    """Before such a move ptxas inserts a wait (C7517)."""
    pack = ".reg .b64 %pair; mov.b64 %pair, {%d2, %d3};"
    image, body, _ = two_steps(16, last="wgmma.commit_group.sync.aligned;\n" + pack + WAIT)
    report = run(body, 8, image, schedule=schedule).report
    assert {(each.code, each.severity) for each in report.findings} == {("wgmma-register-in-flight", "advice")}


def test_waiting_for_too_few() -> None:
    """wait_group 1 leaves the latest group under way; wait_group 0, or an empty group after it, does not."""
    commit = "wgmma.commit_group.sync.aligned;\n"
    for last, wanted in (
        (commit + "wgmma.wait_group.sync.aligned 1;", {"wgmma-register-in-flight"}),
        (commit + "wgmma.wait_group.sync.aligned 0;", set()),
        (commit + commit + "wgmma.wait_group.sync.aligned 1;", set()),
        ("wgmma.wait_group.sync.aligned 0;", {"wgmma-register-in-flight"}),  # not committed
    ):
        image, body, _ = two_steps(16, between=commit, last=last)
        # A CTA that ends with work under way is told as well.
        assert set(codes(run(body, 8, image).report)) - {"cta-exit"} == wanted


def test_a_in_flight() -> None:
    """Registers of A must not be overwritten before the wait; late products read what is there then."""
    image, a, b, _, right = simple(16)
    product = FENCE + instruction(16, "f32.f16", a=A_REGISTERS, b=right, scale="0")
    for schedule in ("eager", "late"):
        found = run(product + "mov.b32 %a1, 0;" + WAIT, 8, image, a=a_words(a, 16), schedule=schedule)
        assert codes(found.report) == ["wgmma-register-in-flight"]
        right_result = (matrix_of(found.words, 16, "f32") == expected(a, b, None, "f32")).all()
        assert right_result == (schedule == "eager")
        found = run(product + "mov.b32 %x, %a1;" + WAIT + "mov.b32 %a1, 0;", 8, image, a=a_words(a, 16))
        assert found.report.status == "ok"
    found = run(
        product + FENCE + instruction(16, "f32.f16", a="{%d0, %d1, %d2, %d3}", b=right, first=8) + WAIT, 16, image
    )
    assert codes(found.report) == ["wgmma-register-in-flight"]


def test_missing_fences() -> None:
    """wgmma.fence: before the first product, after other accesses, between accumulators of different shapes."""
    image, _, _, left, right = simple(32)
    first = instruction(16, "f32.f16", a=f"{left:#x}", b=right, scale="0")
    again = instruction(16, "f32.f16", a=f"{left:#x}", b=right)
    wider = instruction(32, "f32.f16", a=f"{left:#x}", b=right)
    from_registers = instruction(16, "f32.f16", a=A_REGISTERS, b=right)
    touch, change, move = "add.f32 %d1, %d1, %d1;", "add.u32 %a2, %a2, 1;", "mov.b32 %a2, 0;"
    cases = [
        (first + WAIT, True), (FENCE + first + WAIT, False), (FENCE + first + WAIT + again + WAIT, False),
        (FENCE + first + WAIT + touch + again + WAIT, True),
        (FENCE + first + WAIT + touch + FENCE + again + WAIT, False),
        (FENCE + first + WAIT + "mov.b32 %x, %d1;" + again + WAIT, True),
        (FENCE + first + WAIT + "mov.b32 %x, %d9;" + again + WAIT, False),
        (FENCE + first + wider + WAIT, True), (FENCE + first + WAIT + FENCE + wider + WAIT, False),
        (FENCE + first + change + from_registers + WAIT, True),
        (FENCE + first + change + FENCE + from_registers + WAIT, False),
        # As nvcc puts them: zeros behind the fence, but before the first product of the register; A before each.
        (FENCE + "mov.b32 %d1, 0;" + move + first + WAIT, False),
        (FENCE + first + move + from_registers + WAIT, False),
        (FENCE + first + WAIT + "mov.b32 %d1, 0;" + again + WAIT, True),
    ]  # fmt: skip
    for body, missing in cases:
        report = run(body, 16, image).report
        assert codes(report) == (["missing-wgmma-fence"] if missing else []), body


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_one_warps_wait_tells_of_the_whole_product(schedule: Any) -> None:
    """The product begins when its last warp has issued it: one warp's wait is enough to change its operands."""
    image, a, b, left, right = simple(16)
    slow = "setp.ne.u32 %p, %warp, 3; @%p bra go; mov.u32 %x, 0; more: add.u32 %x, %x, 1; setp.lt.u32 %p, %x, 99;"
    product = instruction(16, "f32.f16", a=f"{left:#x}", b=right, scale="0") + WAIT
    store = "mov.u32 %place, image; setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [%place], 7;"
    for seed in range(3):
        body = FENCE + slow + "@%p bra more; go: " + product + store
        found = run(body, 8, image, schedule=schedule, seed=seed)
        assert found.report.status == "ok", found.report.summary()
        assert (matrix_of(found.words, 16, "f32") == expected(a, b, None, "f32")).all()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(("early", "severity"), [(True, "advice"), (False, "error")])
def test_a_product_tells_of_loads_before_it(early: bool, severity: str, schedule: Any) -> None:
    """CUTLASS gives a stage back by one arrival of a warpgroup, all of whose warps have loaded from it."""
    image, _, _, left, right = simple(16)
    product = FENCE + instruction(16, "f32.f16", a=f"{left:#x}", b=right, scale="0") + WAIT
    load = "mov.u32 %place, image; ld.shared.u32 %x, [%place+40000];\n"
    store = "setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [%place+40000], 7;"
    report = run((load + product if early else product + load) + store, 8, image, schedule=schedule).report
    assert {(each.code, each.severity) for each in report.findings} == {("shared-race", severity)}, report.summary()


def test_missing_proxy_fence() -> None:
    """Operands that threads store need fence.proxy.async before the product reads them."""
    image, _, _, left, right = simple(16)
    product = FENCE + instruction(16, "f32.f16", a=f"{left:#x}", b=right, scale="0") + WAIT
    good = "mov.u32 %place, image; setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [%place], 0; fence.proxy.async; bar.sync 0;"
    assert run(good + product, 8, image).report.status == "ok"
    bad = good.replace("fence.proxy.async; ", "")
    report = run(bad + product, 8, image).report
    assert codes(report) == ["missing-proxy-fence"]


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_a_warpgroups_own_stores(schedule: Any) -> None:
    """CUTLASS's attention multiplies what the warps of a warpgroup have stored: with their fences, but no barrier."""
    image, _, _, left, right = simple(16)
    product = FENCE + instruction(16, "f32.f16", a=f"{left:#x}", b=right, scale="0") + WAIT
    store = "mov.u32 %place, image; setp.eq.u32 %p, %warp, WARP; @%p st.shared.u32 [%place], 0; fence.proxy.async;"
    report = run(store.replace("WARP", "2") + product, 8, image, schedule=schedule).report
    assert {(each.code, each.severity) for each in report.findings} == {("shared-race", "advice")}, report.summary()
    report = run(store.replace("WARP", "5") + product, 8, image, schedule=schedule, threads=256).report
    assert ("shared-race", "error") in {(each.code, each.severity) for each in report.findings}, report.summary()


def test_operands_overwritten() -> None:
    """A warp may store to the operands only when all that it knows has read them: after the wait, and a barrier."""
    image, _, _, left, right = simple(16)
    product = FENCE + instruction(16, "f32.f16", a=f"{left:#x}", b=right, scale="0")
    store = "mov.u32 %place, image; setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [%place], 7;"
    assert run(product + WAIT + store, 8, image).report.status == "ok"
    report = run(product + store + WAIT, 8, image).report
    assert codes(report) == ["shared-race"]


def test_all_warps_of_a_warpgroup() -> None:
    """Two warps that stay away leave the others waiting; a warpgroup needs four warps; descriptors are its own."""
    image, _, _, left, right = simple(16)
    product = FENCE + instruction(16, "f32.f16", a=f"{left:#x}", b=right, scale="0") + WAIT
    away = run("setp.ge.u32 %p, %warp, 2; @%p bra end;" + product, 8, image)
    assert (away.report.status, codes(away.report)) == ("deadlock", ["deadlock"])
    assert "the other warps of its warpgroup" in away.report.findings[0].message
    issued = FENCE + f"setp.eq.u32 %p, %warp, 2; @%p bra end; {product.removeprefix(FENCE)}"
    stays = run(issued, 8, image)
    assert (stays.report.status, codes(stays.report)) == ("deadlock", ["deadlock"])
    assert "the other warps of its warpgroup at wgmma.mma_async" in stays.report.findings[0].message
    second = instruction(16, "f32.f16", a=f"{left:#x}", b=right)
    other = run(
        FENCE + f"setp.eq.u32 %p, %warp, 2; @%p bra two; {second} bra done; two: {second} done: {WAIT}", 8, image
    )
    assert (other.report.status, codes(other.report)) == ("fault", ["divergent-warpgroup"])
    few = run(product, 8, image, threads=64)
    assert (few.report.status, codes(few.report)) == ("fault", ["incomplete-warpgroup"])
    divergent = "cvt.u64.u32 %da, %warp; add.u64 %da, %da, %da; add.u64 %da, %da, " + f"{left:#x};"
    body = divergent + FENCE + instruction(16, "f32.f16", a="%da", b=right, scale="0") + WAIT
    assert codes(run(body, 8, image).report) == ["divergent-warpgroup"]


def test_descriptors() -> None:
    """Bits that no descriptor has, and one that leaves the CTA's memory."""
    image, _, _, left, right = simple(16)
    for wrong, code in (
        (left | 1 << 46, "illegal-descriptor"),
        (left & ~0x3FFF, "out-of-bounds"),
        (left | 0x3F00, "out-of-bounds"),
    ):
        body = FENCE + instruction(16, "f32.f16", a=f"{wrong:#x}", b=right) + WAIT
        found = run(body, 8, image)
        assert (found.report.status, codes(found.report)) == ("fault", [code])
        assert found.report.findings[0].line == line_of(found.text, "wgmma.mma_async")


def test_base_offset() -> None:
    """A tile that does not begin on its pattern's boundary: the offset says by how many lines."""
    numbers = np.random.default_rng(11)
    a, b = exact_values(numbers, (64, 16), "f16"), exact_values(numbers, (8, 16), "f16")
    for start, offset in ((128, 0), (256, 2), (896, 7)):
        image = np.zeros(IMAGE, np.uint8)
        first = Operand("k", "128B", start, 0, 1024, 16, base_offset=offset)
        second = Operand("k", "128B", B_START, 0, 1024, 16)
        first.put(image, a)
        second.put(image, b)
        body = FENCE + instruction(8, "f32.f16", a=f"{first.descriptor:#x}", b=second.descriptor, scale="0") + WAIT
        found: Run = run(body, 4, image)
        assert found.report.status == "ok", found.report.summary()
        assert (matrix_of(found.words, 8, "f32") == expected(a, b, None, "f32")).all()
