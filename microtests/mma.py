"""mma.sync: every type and shape, dense and sparse. References from PTX ISA 9.7.14.5 and 9.7.14.6.

Elements are small whole numbers (all values for integers), whose sums are exact in any order.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from microtests.harness import matrices, numbers
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft, Tolerance
from microtests.harness.script import like
from microtests.mbarrier import Word, each
from ptxgen.builder import Register
from ptxgen.instr import mma


def shape_of(made: Any) -> tuple[int, int, int]:
    text = getattr(made, "shape", None) or re.findall(r"m\d+n\d+k\d+", made.opcode_text)[0]
    m, n, k = (int(part) for part in re.findall(r"\d+", text))
    return m, n, k


def kinds_of(made: Any) -> tuple[str, str, str]:
    """The types of A, B and of the accumulators."""
    name = type(made).__name__.removeprefix("sp_")
    plain = {"f8": None, "i8": None, "i4": None, "f8f6f4": None}.get(name, name)
    dtype = getattr(made, "dtype", None) or {"i8": "s32", "i4": "s32", "b1": "s32"}.get(name, "f32")
    return plain or made.atype, plain or made.btype, dtype


def load_registers(draft: Draft, values: np.ndarray, tid: Register) -> list[Register]:
    """Registers [n, lane] of an input."""
    bits = values.dtype.itemsize * 8
    at = draft.offset(draft.input(values), tid, bits // 8)
    found = []
    for number in range(len(values)):
        register = draft.reg(f"b{bits}", "m")
        draft.load_into(register, at, number * values.shape[1] * bits // 8)
        found.append(register)
    return found


def store_registers(
    draft: Draft, expected: np.ndarray, registers: list[Register], tid: Register, tolerance: Any = None
) -> None:
    size = expected.dtype.itemsize
    at = draft.offset(draft.output(expected, tolerance=tolerance), tid, size)
    for number, register in enumerate(registers):
        draft.store(at, register, number * expected.shape[1] * size)


def accumulator(kind: str, shape: tuple[int, int], rng: np.random.Generator, saturating: bool) -> np.ndarray:
    if kind == "s32":
        near = rng.choice([-(2**31), 2**31 - 1, 0], shape) if saturating else rng.integers(-(2**31), 2**31, shape)
        return near.astype(np.int64)
    whole = rng.integers(-8, 9, shape).astype(np.float64)
    # Halves of .f64: no sum is an exact zero, whose sign depends on the rounding.
    return whole + 0.5 if kind == "f64" else whole


def summed(kind: str, product: np.ndarray, c: np.ndarray, saturating: bool) -> np.ndarray:
    total = product + c
    if kind != "s32":
        return total
    if saturating:
        return np.clip(total, -(2**31), 2**31 - 1)
    return (total + 2**31) % 2**32 - 2**31


def product(kind: str, made: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if kind == "b1":
        both = (a[:, :, None] != b[None]) if made.op == "xor" else (a[:, :, None] & b[None]).astype(bool)
        return both.sum(1).astype(np.int64)
    return a @ b


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray, mode: Any) -> np.ndarray:
    """A chain of fused multiply-adds in the order of K; a sum that cancels is -0 when rounding down (seen, H200)."""
    found = np.empty(c.shape)
    for row, column in np.ndindex(*c.shape):
        total = numbers.of_float(float(c[row, column]))
        for x, y in zip(a[row], b[:, column], strict=True):
            total = numbers.add(numbers.multiply(numbers.of_float(float(x)), numbers.of_float(float(y))), total, mode)
            total = numbers.decode(numbers.encode(total, numbers.F64, mode), numbers.F64)
        found[row, column] = total.as_float()
    return found


_DENSE = (mma.f16, mma.bf16, mma.tf32, mma.f64, mma.f8, mma.i8, mma.i4, mma.b1)


@microtest(*each(*_DENSE))
def dense(draft: Draft, word: Word) -> None:
    """D = A * B + C."""
    made: Any = word.made
    m, n, k = shape_of(made)
    atype, btype, dtype = kinds_of(made)
    rng = np.random.default_rng(31)
    a = matrices.random_elements(atype, (m, k), rng)
    b = matrices.random_elements(btype, (k, n), rng)
    saturating = getattr(made, "satfinite", False)
    c = accumulator(dtype, (m, n), rng, saturating)
    d = summed(dtype, product(atype, made, a, b), c, saturating)
    if atype == "f64":
        d = fused(a, b, c, made.rounding or "rn")
    draft.launch(block=32)
    tid = draft.thread
    given = [
        load_registers(draft, matrices.a_registers(atype, a), tid),
        load_registers(draft, matrices.b_registers(btype, b), tid),
        load_registers(draft, matrices.d_registers(dtype, c), tid),
    ]
    found = [draft.reg(register.type, "d") for register in given[2]]
    draft(like(made, found, *given))
    store_registers(draft, matrices.d_registers(dtype, d), found, tid)


_SPARSE = (mma.sp_f16, mma.sp_bf16, mma.sp_tf32, mma.sp_f8, mma.sp_i8, mma.sp_i4)


def _selectors(made: Any) -> int:
    """How many values the selector has."""
    m, _, k = shape_of(made)
    bits = matrices.BITS[kinds_of(made)[0]]
    words = m * (k // matrices.CHUNK[bits]) * 4 // 32
    return 32 // words


def _kept(made: Any) -> bool:
    """Ordered metadata are a subset: of integers and 8-bit floats one type is enough with plain .sp."""
    return "ordered" in made.opcode_text or made.atype in ("f16", "bf16", "tf32", "e4m3", "s8", "s4")


@microtest(*((word, f) for word in each(*_SPARSE) for f in range(_selectors(word.made)) if _kept(word.made)))
def sparse(draft: Draft, word: Word, f: int) -> None:
    """D = A * B + C, of a sparse A, with each selector."""
    made: Any = word.made
    m, n, k = shape_of(made)
    atype, btype, dtype = kinds_of(made)
    rng = np.random.default_rng(32)
    a, stored, meta = matrices.sparse_a(atype, m, k, rng)
    b = matrices.random_elements(btype, (k, n), rng)
    saturating = getattr(made, "satfinite", False)
    c = accumulator(dtype, (m, n), rng, saturating)
    d = summed(dtype, a @ b, c, saturating)
    draft.launch(block=32)
    tid = draft.thread
    given = [
        load_registers(draft, matrices.a_registers(atype, stored), tid),
        load_registers(draft, matrices.b_registers(btype, b), tid),
        load_registers(draft, matrices.d_registers(dtype, c), tid),
    ]
    (metadata,) = load_registers(draft, matrices.metadata_registers(atype, meta, f, rng)[None], tid)
    found = [draft.reg(register.type, "d") for register in given[2]]
    draft(like(made, found, *given, metadata, f))
    store_registers(draft, matrices.d_registers(dtype, d), found, tid)


def _special(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    return rng.choice(
        np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan]), shape, p=[0.3, 0.1, 0.3, 0.2, 0.04, 0.04, 0.02]
    )


@microtest("f16", "bf16", "tf32", "f64")
def specials(draft: Draft, name: str) -> None:
    """Infinities and NaNs go where they do in IEEE arithmetic."""
    form = getattr(mma, name)
    made: Any = [each_ for each_ in form.variants() if getattr(each_, "dtype", "f32") in ("f32", "f64")][-1]
    m, n, k = shape_of(made)
    atype, btype, dtype = kinds_of(made)
    rng = np.random.default_rng(34)
    a, b = _special(atype, (m, k), rng), _special(btype, (k, n), rng)
    c = np.ones((m, n))
    with np.errstate(invalid="ignore"):
        d = (a[:, :, None] * b[None]).sum(1) + c
    draft.launch(block=32)
    tid = draft.thread
    given = [
        load_registers(draft, matrices.a_registers(atype, a), tid),
        load_registers(draft, matrices.b_registers(btype, b), tid),
        load_registers(draft, matrices.d_registers(dtype, c), tid),
    ]
    found = [draft.reg(register.type, "d") for register in given[2]]
    draft(like(made, found, *given))
    kind = np.float64 if dtype == "f64" else np.float32
    store_registers(draft, matrices.d_registers(dtype, d), found, tid, Tolerance("which NaN comes is open", kind))
