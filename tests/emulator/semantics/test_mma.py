"""mma.sync where microtests do not reach: four products at once, 4- and 6-bit floats, scale factors, checks.

What sm_90a has is tested there, form by form. Fragments are written here from the manual's formulas (PTX ISA 9.7.14.5).
"""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from ptxgen import Kernel
from ptxgen.device import LaunchReport
from ptxgen.emulator import Emulator
from tests.support.harness import codes, module

NUMPY: dict[str, Any] = {
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn, "e2m1": ml_dtypes.float4_e2m1fn, "f16": np.float16, "f32": np.float32,
}  # fmt: skip
NARROW = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")


def run(
    form: str, d: int, operands: list[NDArray[np.uint32]], *, target: str = "sm_120a", tail: str = "", guard: str = ""
) -> tuple[LaunchReport, NDArray[np.uint32]]:
    """One warp executes an instruction with `d` registers of results and operands [32, registers]; words [32, d].

    An operand of one register is no vector where `tail` names it ($0, $1 ...).
    """
    lines = [
        ".reg .b32 %t, %d<16>; .reg .b64 %p, %q; .reg .pred %low; mov.u32 %t, %tid.x; setp.lt.u32 %low, %t, 31;",
        *(f"mov.b32 %d{i}, 0xCDCDCDCD;" for i in range(d)),
    ]
    names: list[list[str]] = []
    parameters, arguments = [".param .u64 out"], []
    device = Emulator(target)
    for index, words in enumerate(operands):
        count = words.shape[1]
        names.append([f"%r{index}_{i}" for i in range(count)])
        lines.append(f".reg .b32 {', '.join(names[-1])}; ld.param.u64 %p, [in{index}];")
        lines.append(f"mul.wide.u32 %q, %t, {4 * count}; add.u64 %p, %p, %q;")
        lines += [f"ld.global.b32 {name}, [%p+{4 * i}];" for i, name in enumerate(names[-1])]
        parameters.append(f".param .u64 in{index}")
        arguments.append(device.array(np.ascontiguousarray(words)))
    vectors = ["{" + ", ".join(each) + "}" for each in names[:3]]
    for index, each in enumerate(names[3:]):
        tail = tail.replace(f"${index}", each[0])
    results = "{" + ", ".join(f"%d{i}" for i in range(d)) + "}"
    lines.append(f"{guard} {form} {', '.join([results, *vectors])}{tail};")
    lines.append(f"ld.param.u64 %p, [out]; mul.wide.u32 %q, %t, {4 * d}; add.u64 %p, %p, %q;")
    lines += [f"st.global.b32 [%p+{4 * i}], %d{i};" for i in range(d)]
    out = device.array(np.full((32, d), 0xCDCDCDCD, np.uint32))
    text = module("\n".join([*lines, "ret;"]), ", ".join(parameters), target=target, version="9.1")
    return device.launch(Kernel.from_ptx(text), 1, 32, [out, *arguments]), out.numpy()


# m8n8k4 of .f16: 9.7.14.5.1.


def quad_place(matrix: str, layout: str, lane: int, i: int) -> tuple[int, int]:
    high = 4 * (lane >= 16)
    if matrix == "a":
        return (lane % 4 + high, i) if layout == "row" else (i % 4 + high, lane % 4)
    if matrix == "b":
        return (lane % 4, i + high) if layout == "row" else (i, lane % 4 + high)
    if layout == "f16":
        return lane % 4 + high, i
    return (lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)


def quad_words(matrix: str, layout: str, values: NDArray[Any]) -> NDArray[np.uint32]:
    """Four matrices [4, rows, columns] as registers."""
    count = 8 if matrix == "c" else 4
    elements = np.empty((32, count), values.dtype)
    for lane, i in np.ndindex(elements.shape):
        elements[lane, i] = values[(lane % 16 // 4, *quad_place(matrix, layout, lane, i))]
    return elements.view(np.uint32)


@pytest.mark.parametrize(
    ("a_layout", "b_layout", "d_type", "c_type"),
    [
        (a, b, d, c)
        for (a, b), (d, c) in itertools.product(
            itertools.product(("row", "col"), repeat=2), (("f16", "f16"), ("f32", "f16"), ("f32", "f32"))
        )
    ],
)
def test_four_products(a_layout: str, b_layout: str, d_type: str, c_type: str) -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-8, 9, shape).astype(np.float16) for shape in ((4, 8, 4), (4, 4, 8)))
    c = rng.integers(-8, 9, (4, 8, 8)).astype(NUMPY[c_type])
    operands = [quad_words("a", a_layout, a), quad_words("b", b_layout, b), quad_words("c", c_type, c)]
    form = f"mma.sync.aligned.m8n8k4.{a_layout}.{b_layout}.{d_type}.f16.f16.{c_type}"
    report, words = run(form, 4 if d_type == "f16" else 8, operands, target="sm_90a")
    assert report.status == "ok", report.summary()
    wanted = (a.astype(np.float64) @ b.astype(np.float64) + c).astype(NUMPY[d_type])
    assert (words == quad_words("c", d_type, wanted)).all()


# Fragments of m16n8: rows and columns of element i, by group and thread in it.


def a_words(codes: NDArray[np.uint8], bits: int) -> NDArray[np.uint32]:
    """Codes [16, k] of elements of so many bits as registers (figures 88 and 93): pieces of 4 threads' registers."""
    per, k = 32 // bits, codes.shape[1]
    words = np.zeros((32, 16 * k * bits // 1024), np.uint32)
    for lane, r, e in np.ndindex(32, words.shape[1], per):
        row, column = lane // 4 + 8 * (r % 2), per * (lane % 4) + e + 4 * per * (r // 2)
        words[lane, r] |= np.uint32(int(codes[row, column]) << bits * e)
    return words


def b_words(codes: NDArray[np.uint8], bits: int) -> NDArray[np.uint32]:
    """Codes [8, k] of the columns of B as registers."""
    per, k = 32 // bits, codes.shape[1]
    words = np.zeros((32, 8 * k * bits // 1024), np.uint32)
    for lane, r, e in np.ndindex(32, words.shape[1], per):
        words[lane, r] |= np.uint32(int(codes[lane // 4, per * (lane % 4) + e + 4 * per * r]) << bits * e)
    return words


def c_words(values: NDArray[Any]) -> NDArray[np.uint32]:
    elements = np.empty((32, 4), values.dtype)
    for lane, i in np.ndindex(32, 4):
        elements[lane, i] = values[lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2]
    return elements.view(np.uint32)


def random_codes(rng: np.random.Generator, type: str, shape: tuple[int, int]) -> NDArray[np.uint8]:
    """Codes of finite values; of 8 bits not the largest ones, so that sums are exact."""
    bits = {"e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4}[type]
    codes = rng.integers(0, 1 << bits, shape, dtype=np.uint8)
    if bits == 8:  # magnitudes from 2**-3 to 2**3
        low, high = ((4 << 3), (10 << 3)) if type == "e4m3" else ((12 << 2), (18 << 2))
        codes = rng.integers(low, high, shape).astype(np.uint8) | (rng.integers(0, 2, shape) << 7).astype(np.uint8)
    return codes


def values_of(codes: NDArray[np.uint8], type: str) -> NDArray[np.float64]:
    return codes.view(NUMPY[type]).astype(np.float64)


def in_bytes(codes: NDArray[np.uint8], type: str, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Each code in a byte: e2m1 in the middle, 6 bits at the bottom; noise in the padding."""
    noise = rng.integers(0, 256, codes.shape, dtype=np.uint8)
    if type == "e2m1":
        return (codes << 2 | noise & 0b11000011).astype(np.uint8)
    return (codes | noise & 0b11000000).astype(np.uint8) if type in ("e2m3", "e3m2") else codes


@pytest.mark.parametrize(("a_type", "b_type"), list(itertools.product(NARROW, repeat=2)))
def test_narrow_floats(a_type: str, b_type: str) -> None:
    rng = np.random.default_rng([*a_type.encode(), *b_type.encode()])
    a, b = random_codes(rng, a_type, (16, 32)), random_codes(rng, b_type, (8, 32))
    d_type = "f16" if a_type == b_type == "e2m1" else "f32"
    c = rng.integers(-8, 9, (16, 8)).astype(NUMPY[d_type])
    operands = [a_words(in_bytes(a, a_type, rng), 8), b_words(in_bytes(b, b_type, rng), 8), c_words(c)]
    form = f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.{d_type}.{a_type}.{b_type}.{d_type}"
    report, words = run(form, 2 if d_type == "f16" else 4, operands)
    assert report.status == "ok", report.summary()
    wanted = (values_of(a, a_type) @ values_of(b, b_type).T + c).astype(NUMPY[d_type])
    assert (words == c_words(wanted)).all()


# Scale factors: 9.7.14.3.


def factor(octet: int, type: str) -> float:
    if type == "ue8m0":
        return 2.0 ** (octet - 127)
    return float(np.array([octet], np.uint8).view(NUMPY["e4m3"])[0])


def scale_words(
    rng: np.random.Generator, operand: str, factors: NDArray[np.uint8], byte: int, thread: int
) -> NDArray[np.uint32]:
    """Factors [rows, count] in the bytes and threads that a selector names; noise elsewhere."""
    words = rng.integers(0, 256, (32, 4), dtype=np.uint8)
    for row, index in np.ndindex(factors.shape):
        # A: a pair of threads of quad `row % 8`, the lower 8 rows from the first; B: one thread of quad `row`.
        lane = 4 * (row % 8) + (2 * thread + row // 8 if operand == "a" else thread)
        words[lane, byte + index] = factors[row, index]
    return words.view(np.uint32)


def sparse_nibbles(rng: np.random.Generator, chunks: int) -> NDArray[np.int64]:
    """4 bits for each chunk of 16 rows: two different indexes, the lower first."""
    return rng.choice([0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110], (16, chunks))


def metadata_words(nibbles: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Elements of 8 and 4 bits: threads 0 and 1 of a quad have rows g and g + 8 of 8 chunks, 2 and 3 of the rest."""
    words = np.zeros((32, 1), np.uint32)
    for row, chunk in np.ndindex(nibbles.shape):
        words[4 * (row % 8) + 2 * (chunk // 8) + row // 8, 0] |= np.uint32(int(nibbles[row, chunk]) << 4 * (chunk % 8))
    return words


def spread(stored: NDArray[np.float64], nibbles: NDArray[np.int64], pairs: bool) -> NDArray[np.float64]:
    """A with its zeros; with `pairs` an index names two neighbors of 8."""
    width = 2 if pairs else 1
    whole = np.zeros((16, 2 * stored.shape[1]))
    for row, chunk in np.ndindex(nibbles.shape):
        for place, index in enumerate((nibbles[row, chunk] & 3, nibbles[row, chunk] >> 2)):
            source, target = 2 * width * chunk + width * place, 4 * width * chunk + width * int(index)
            whole[row, target : target + width] = stored[row, source : source + width]
    return whole


SCALED = [
    *(("mxf8f6f4", "1X", "ue8m0", a, b, byte, pair, one) for a, b, byte, pair, one in (
        ("e4m3", "e5m2", 0, 0, 0), ("e5m2", "e2m1", 1, 1, 3), ("e2m3", "e3m2", 2, 0, 1), ("e2m1", "e2m3", 3, 1, 2),
    )),
    ("mxf4", "2X", "ue8m0", "e2m1", "e2m1", 0, 0, 0), ("mxf4", "2X", "ue8m0", "e2m1", "e2m1", 2, 1, 2),
    ("mxf4nvf4", "2X", "ue8m0", "e2m1", "e2m1", 2, 0, 3), ("mxf4nvf4", "4X", "ue8m0", "e2m1", "e2m1", 0, 1, 1),
    ("mxf4nvf4", "4X", "ue4m3", "e2m1", "e2m1", 0, 0, 2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sparse", "kind", "size", "stype", "a_type", "b_type", "byte", "pair", "one"),
    [(sparse, *case) for sparse in (False, True) for case in SCALED],
)
def test_scale_factors(
    sparse: bool, kind: str, size: str, stype: str, a_type: str, b_type: str, byte: int, pair: int, one: int
) -> None:
    """Products of blocks times their factors, to the last bits of .f32."""
    rng = np.random.default_rng([*kind.encode(), byte, pair, one, sparse])
    bits = 8 if kind == "mxf8f6f4" else 4
    k = (32 if bits == 8 else 64) * (2 if sparse else 1)
    stored, b = random_codes(rng, a_type, (16, k // 2 if sparse else k)), random_codes(rng, b_type, (8, k))
    count = int(size[0])
    low, high = (120, 134) if stype == "ue8m0" else (0x30, 0x48)
    factors = [rng.integers(low, high, (rows, count)).astype(np.uint8) for rows in (16, 8)]
    c = rng.integers(-8, 9, (16, 8)).astype(np.float32)
    words_a = a_words(in_bytes(stored, a_type, rng) if bits == 8 else stored, bits)
    operands = [words_a, b_words(in_bytes(b, b_type, rng) if bits == 8 else b, bits), c_words(c)]
    a, tail = values_of(stored, a_type), ""
    if sparse:
        nibbles = sparse_nibbles(rng, k // (4 if bits == 8 else 8))
        a = spread(a, nibbles, bits == 4)
        operands.append(metadata_words(nibbles))
        tail = ", $0, 0"
    operands.append(scale_words(rng, "a", factors[0], byte, pair))
    operands.append(scale_words(rng, "b", factors[1], byte, one))
    first = int(sparse)
    tail += f", ${first}, {{{byte}, {pair}}}, ${first + 1}, {{{byte}, {one}}}"
    head = "mma.sp::ordered_metadata.sync" if sparse else "mma.sync"
    form = (
        f"{head}.aligned.m16n8k{k}.row.col.kind::{kind}.block_scale.scale_vec::{size}.f32.{a_type}.{b_type}.f32.{stype}"
    )
    report, words = run(form, 4, operands, tail=tail)
    assert report.status == "ok", report.summary()
    scales = [np.array([[factor(int(f), stype) for f in row] for row in each]) for each in factors]
    span = k // count
    wide = np.repeat(scales[0], span, axis=1) * a, np.repeat(scales[1], span, axis=1) * values_of(b, b_type)
    exact = wide[0] @ wide[1].T + c
    error = np.abs(words.view(np.float32) - c_words(exact.astype(np.float32)).view(np.float32))
    magnitude = np.abs(wide[0]) @ np.abs(wide[1]).T + np.abs(c)
    # Cut at 25 bits below the largest addend, then to 24.
    assert (error <= 2.0**-22 * c_words(magnitude.astype(np.float32)).view(np.float32)).all()


def test_nan_factor() -> None:
    """0xFF of ue8m0 is NaN: the rows and columns that it scales are NaN, 0x7FFFFFFF."""
    rng = np.random.default_rng(3)
    a, b = random_codes(rng, "e2m1", (16, 64)), random_codes(rng, "e2m1", (8, 64))
    factors = np.full((16, 2), 127, np.uint8), np.full((8, 2), 127, np.uint8)
    factors[0][5, 1] = 255
    operands = [a_words(a, 4), b_words(b, 4), c_words(np.zeros((16, 8), np.float32))]
    operands += [scale_words(rng, "a", factors[0], 0, 0), scale_words(rng, "b", factors[1], 0, 0)]
    form = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    _, words = run(form, 4, operands, tail=", $0, {0, 0}, $1, {0, 0}")
    wanted = (values_of(a, "e2m1") @ values_of(b, "e2m1").T).astype(np.float32)
    wanted[5] = np.array([0x7FFFFFFF], np.uint32).view(np.float32)
    assert (words == c_words(wanted)).all()


# Sums and checks.


@pytest.mark.parametrize(("type", "dtype"), [("f16", "f32"), ("f16", "f16"), ("bf16", "f32")])
def test_sums(type: str, dtype: str) -> None:
    """Each of 17 additions rounds a partial sum to 24 bits, a result of .f16 once more to 11: so much is asked."""
    rng = np.random.default_rng(7)
    number = np.float16 if type == "f16" else ml_dtypes.bfloat16

    def values(rows: int) -> NDArray[Any]:
        return (rng.standard_normal((rows, 16)) * 2.0 ** rng.integers(-4, 5, (rows, 16))).astype(number)

    a, b, c = values(16), values(8), rng.standard_normal((16, 8)).astype(NUMPY[dtype])
    codes_a, codes_b = a.view(np.uint16), b.view(np.uint16)
    words = np.zeros((32, 4), np.uint32), np.zeros((32, 2), np.uint32)
    for lane, r, e in np.ndindex(32, 4, 2):
        at = lane // 4 + 8 * (r % 2), 2 * (lane % 4) + e + 8 * (r // 2)
        words[0][lane, r] |= np.uint32(int(codes_a[at]) << 16 * e)
    for lane, r, e in np.ndindex(32, 2, 2):
        words[1][lane, r] |= np.uint32(int(codes_b[lane // 4, 2 * (lane % 4) + e + 8 * r]) << 16 * e)
    form = f"mma.sync.aligned.m16n8k16.row.col.{dtype}.{type}.{type}.{dtype}"
    report, found = run(form, 2 if dtype == "f16" else 4, [*words, c_words(c)], target="sm_90a")
    assert report.status == "ok", report.summary()
    elements = found.view(NUMPY[dtype]).reshape(32, 4)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    exact = wide_a @ wide_b.T + c
    bound = 18 * 2.0**-24 * (np.abs(wide_a) @ np.abs(wide_b).T + np.abs(c))
    if dtype == "f16":
        bound += 2.0**-11 * (np.abs(exact) + bound) + 2.0**-25
    for lane, i in np.ndindex(32, 4):
        at = lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2
        assert abs(float(elements[lane, i]) - exact[at]) <= bound[at]


def test_metadata_that_mean_nothing() -> None:
    """Equal indexes mean nothing; falling ones only where they must rise."""
    zeros = [np.zeros((32, count), np.uint32) for count in (2, 2, 4)]
    for variant, nibble, legal in (
        ("sp", 0b0100, True), ("sp", 0b0001, True), ("sp", 0b0101, False),
        ("sp::ordered_metadata", 0b0100, True), ("sp::ordered_metadata", 0b0001, False),
    ):  # fmt: skip
        form = f"mma.{variant}.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
        metadata = np.full((32, 1), 0x11111111 * nibble, np.uint32)
        report, _ = run(form, 4, [*zeros, metadata], tail=", $0, 2", target="sm_90a")
        assert codes(report) == ([] if legal else ["illegal-metadata"])


def test_divergent_warp() -> None:
    zeros = [np.zeros((32, count), np.uint32) for count in (4, 2, 4)]
    form = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    for guard, wanted in (("", []), ("@%low", ["divergent-warp"])):
        report, _ = run(form, 4, zeros, target="sm_90a", guard=guard)
        assert codes(report) == wanted
