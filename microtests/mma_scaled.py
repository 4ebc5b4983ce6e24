"""mma.sync that no Hopper has: elements of 8, 6 and 4 bits, with scale factors and without; and m8n8k4 of .f16.

References from PTX ISA 9.7.14.3, 9.7.14.5 and 9.7.14.6. Elements are small, factors powers of two or small numbers:
sums are exact in any order.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from microtests.harness import matrices
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.script import like
from microtests.mbarrier import Word, each
from microtests.mma import load_registers, shape_of, store_registers
from ptxgen.builder import Register
from ptxgen.instr import mma

_LANES = np.arange(32)
_TYPES = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")


def _kinds(made: Any) -> tuple[str, str]:
    """The types of A and B, as their registers hold them."""
    if "mxf4" in type(made).__name__:
        return "e2m1x8", "e2m1x8"
    return made.atype, made.btype


def _kept(made: Any) -> bool:
    """Of the pairs of types every second one."""
    a, b = (_TYPES.index(kind.removesuffix("x8")) for kind in _kinds(made))
    return (a + b) % 2 == 0


def _words(*forms: Any) -> list[Word]:
    return [Word(made) for form in forms for made in form.variants() if _kept(made)]


class Operands:
    """A, B and C, in registers of a warp, and the sum without factors."""

    def __init__(self, draft: Draft, made: Any) -> None:
        self.draft, self.made = draft, made
        m, n, self.k = shape_of(made)
        self.atype, self.btype = _kinds(made)
        self.rng = np.random.default_rng(36)
        sparse = type(made).__name__.startswith("sp_")
        stored, meta = None, None
        if sparse:
            self.a, stored, meta = matrices.sparse_a(self.atype, m, self.k, self.rng)
        else:
            self.a = matrices.random_elements(self.atype, (m, self.k), self.rng)
        self.b = matrices.random_elements(self.btype, (self.k, n), self.rng)
        self.c = self.rng.integers(-8, 9, (m, n)).astype(np.float64)
        draft.launch(block=32)
        self.tid, dtype = draft.thread, made.dtype
        kept = self.a if stored is None else stored
        self.given: list[Any] = [
            load_registers(draft, matrices.a_registers(self.atype, kept), self.tid),
            load_registers(draft, matrices.b_registers(self.btype, self.b), self.tid),
            load_registers(draft, matrices.d_registers(dtype, self.c), self.tid),
        ]
        self.found = [draft.reg(register.type, "d") for register in self.given[2]]
        if meta is not None:
            words = matrices.metadata_registers(self.atype, meta, 0, self.rng)
            self.given += [*load_registers(draft, words[None], self.tid), 0]

    def finish(self, product: np.ndarray) -> None:
        store_registers(self.draft, matrices.d_registers(self.made.dtype, product + self.c), self.found, self.tid)


@microtest(*_words(mma.f8f6f4, mma.sp_f8f6f4), *(Word(made) for made in mma.sp_f8.variants() if made.dtype == "f16"))
def narrow(draft: Draft, word: Word) -> None:
    """Pairs of narrow types, dense and sparse."""
    operands = Operands(draft, word.made)
    draft(like(word.made, operands.found, *operands.given))
    operands.finish(operands.a @ operands.b)


def _factors(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(values, bytes)."""
    if kind == "ue4m3":
        values = rng.choice(np.array([0.5, 1, 1.5, 2, 3]), shape)
        return values, values.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    powers = rng.integers(-2, 3, shape)
    return 2.0**powers, (powers + 127).astype(np.uint8)


def placed(codes: np.ndarray, which: str, byte: int, thread: int, rng: np.random.Generator) -> np.ndarray:
    """The factors [rows, n] in registers of the lanes that the selector names; the others hold anything."""
    found = rng.integers(0, 256, (32, 4)).astype(np.uint8)
    for row, factors in enumerate(codes):
        lane = 4 * (row % 8) + (2 * thread + row // 8 if which == "a" else thread)
        found[lane, byte : byte + len(factors)] = factors
    return found.view(np.uint32).reshape(1, 32)


_SCALED = (mma.mxf8f6f4, mma.mxf4, mma.mxf4nvf4, mma.sp_mxf8f6f4, mma.sp_mxf4, mma.sp_mxf4nvf4)


@microtest(*((word, selector) for word in _words(*_SCALED) for selector in (0, 1)))
def scaled(draft: Draft, word: Word, selector: int) -> None:
    """Each block of a row of A and of a column of B has a factor; both selectors at their ends."""
    made: Any = word.made
    operands = Operands(draft, made)
    count = int((made.scale_vec or made.default_size)[0])
    (m, n), rng = operands.c.shape, operands.rng
    byte, thread_a, thread_b = ({1: 3, 2: 2, 4: 0}[count], 1, 3) if selector else (0, 0, 0)
    kind = getattr(made, "stype", "ue8m0")
    (fa, codes_a), (fb, codes_b) = _factors(kind, (m, count), rng), _factors(kind, (n, count), rng)
    block = operands.k // count
    a = operands.a * np.repeat(fa, block, 1)
    b = operands.b * np.repeat(fb, block, 1).T
    scale: list[Register] = []
    for codes, which, thread in ((codes_a, "a", thread_a), (codes_b, "b", thread_b)):
        scale += load_registers(draft, placed(codes, which, byte, thread, rng), operands.tid)
    draft(like(made, operands.found, *operands.given, scale[0], [byte, thread_a], scale[1], [byte, thread_b]))
    operands.finish(a @ b)


# Four products of 8 rows at once, on the quads of a warp.


def _pairs(values: np.ndarray) -> np.ndarray:
    """[elements, lane] of .f16 as registers of two."""
    made = values.astype(np.float16)
    words = np.where(np.isnan(made), 0x7FFF, made.view(np.uint16)).astype(np.uint32)
    return words[0::2] | words[1::2] << 16


def _quads(matrices_: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Elements [i, lane] of the four matrices: lanes 0 to 3 and 16 to 19 have the first, and so on."""
    return matrices_[(_LANES % 16) // 4, rows, columns]


def _accumulator(kind: str, values: np.ndarray) -> np.ndarray:
    i, high = np.arange(8)[:, None], np.where(_LANES < 16, 0, 4)[None]
    if kind == "f16":
        return _pairs(_quads(values, np.broadcast_to(_LANES % 4 + high, (8, 32)), np.broadcast_to(i, (8, 32))))
    row, column = (_LANES & 1) + (i & 2) + high, (i & 4) + (_LANES & 2) + (i & 1)
    found = _quads(values, row, column).astype(np.float32)
    return np.where(np.isnan(found), np.uint32(0x7FFFFFFF), found.view(np.uint32))


def quad_product(draft: Draft, made: Any, a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> None:
    """D of four products, [4, 8, 8], of A [4, 8, 4] and B [4, 4, 8]."""
    i, four = np.arange(4)[:, None], np.broadcast_to(_LANES % 4, (4, 32))
    high = np.where(_LANES < 16, 0, 4)[None]
    of_a = (four + high, np.broadcast_to(i, (4, 32))) if made.alayout == "row" else (i + high, four)
    of_b = (four, i + high) if made.blayout == "row" else (np.broadcast_to(i, (4, 32)), four + high)
    tid = draft.thread
    given = [
        load_registers(draft, words, tid)
        for words in (_pairs(_quads(a, *of_a)), _pairs(_quads(b, *of_b)), _accumulator(made.ctype, c))
    ]
    found = draft.regs("b32", 4 if made.dtype == "f16" else 8, "d")
    draft(like(made, found, *given))
    store_registers(draft, _accumulator(made.dtype, d), found, tid)


@microtest(*each(mma.f16_m8n8k4))
def m8n8k4(draft: Draft, word: Word) -> None:
    """Every layout of A and B, and types of C and D."""
    rng = np.random.default_rng(37)
    a, b = matrices.random_elements("f16", (4, 8, 4), rng), matrices.random_elements("f16", (4, 4, 8), rng)
    c = rng.integers(-8, 9, (4, 8, 8)).astype(np.float64)
    draft.launch(block=32)
    quad_product(draft, word.made, a, b, c, a @ b + c)
