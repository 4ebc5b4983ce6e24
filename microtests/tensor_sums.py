"""How tensor cores add: wide random numbers, numbers that cancel, subnormal and infinite ones, for every float type.

The manual leaves order and rounding of sums open (PTX ISA 9.7.14.5.14, 9.7.15.5.2). References are the rules of
docs/hardware.md, in whole numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness import matrices, numbers, sums
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.script import like
from microtests.mbarrier import Word, each
from microtests.mma import fused, kinds_of, load_registers, shape_of, store_registers
from microtests.mma_scaled import quad_product
from microtests.wgmma import Product, instruction, k_of, sparse_instruction
from microtests.wmma import Fragments
from ptxgen.builder import Register
from ptxgen.instr import integer, mma, wmma

#: Products of a definition of mma, each of a warp of its own.
_TILES = 32


def _thread(draft: Draft) -> Register:
    """The number of a thread in the grid of single warps."""
    draft.launch(grid=_TILES, block=32)
    made = draft.reg("b32", "thread")
    draft(integer.mad(made, draft.special("ctaid.x"), 32, draft.thread, type="u32", half="lo"))
    return made


def _given(kind: str, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return sums.unread_bits(values, rng) if kind == "tf32" else values


class _Tiles:
    """Matrices of every tile: A [m, k], B [n, k], C [m, n] and what must come out."""

    def __init__(self, draft: Draft, made: Any, *, sparse: bool = False, seed: int = 51) -> None:
        self.draft, self.made = draft, made
        m, n, k = shape_of(made)
        atype, btype, dtype = kinds_of(made)
        self.dtype, rng = dtype, np.random.default_rng(seed)
        a_words, b_words, c_words, d_words, e_words = [], [], [], [], []
        for _ in range(_TILES):
            a = sums.lines(atype, (m, k // 2 if sparse else k), rng, negated=True)
            b = sums.lines(btype, (n, k), rng, negated=False)
            stored, named = a, None
            if sparse:
                a, stored, meta = matrices.sparse_a(atype, m, k, rng, stored)
                named = matrices.named(atype, meta)
                e_words.append(matrices.metadata_registers(atype, meta, 0, rng)[None])
            with np.errstate(all="ignore"):
                c = sums.addends(dtype, a @ b.T, rng)
            a_words.append(matrices.a_registers(atype, _given(atype, stored, rng)))
            b_words.append(matrices.a_registers(btype, _given(btype, b, rng)))
            c_words.append(matrices.d_registers(dtype, c))
            if atype in ("e4m3", "e5m2") and not draft.target.startswith("sm_12"):
                d = sums.total_of_halves(a, b, c, dtype, 4 if sparse else 2, named)
            else:
                d = sums.total(a, b, c, (atype, btype, dtype), named=named)
            d_words.append(matrices.d_registers(dtype, d))
        self.thread = _thread(draft)
        words = (np.concatenate(each_, 1) for each_ in (a_words, b_words, c_words, *([e_words] if sparse else [])))
        self.given = [load_registers(draft, each_, self.thread) for each_ in words]
        self.expected = np.concatenate(d_words, 1)
        self.found = [draft.reg(register.type, "d") for register in self.given[2]]

    def finish(self) -> None:
        store_registers(self.draft, self.expected, self.found, self.thread)


@microtest(*each(mma.f16, mma.bf16, mma.tf32, mma.f8))
def dense(draft: Draft, word: Word) -> None:
    """D = A * B + C of a warp."""
    tiles = _Tiles(draft, word.made)
    draft(like(word.made, tiles.found, *tiles.given))
    tiles.finish()


@microtest(
    *each(mma.sp_f16, mma.sp_bf16, mma.sp_tf32, mma.sp_f8), only_if=lambda word: "ordered" in word.made.opcode_text
)
def sparse(draft: Draft, word: Word) -> None:
    """D = A * B + C of a warp, A sparse."""
    tiles = _Tiles(draft, word.made, sparse=True)
    *given, metadata = tiles.given
    draft(like(word.made, tiles.found, *given, metadata[0], 0))
    tiles.finish()


_TYPES = (
    ("f16", "f16", "f16"),
    ("f16", "f16", "f32"),
    ("bf16", "bf16", "f32"),
    ("tf32", "tf32", "f32"),
    *((a, b, d) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2") for d in ("f16", "f32")),
)


def _warpgroup_rule(atype: str) -> sums.Rule:
    return sums.Rule(13, 13) if atype in ("e4m3", "e5m2") else sums.Rule()


@microtest(
    *((*types, where) for types in _TYPES for where in ("shared", "registers")),
    only_if=lambda a, b, d, where: where == "shared" or a == b,
)
def warpgroup(draft: Draft, atype: Any, btype: Any, dtype: Any, where: str) -> None:
    """D = A * B + D of a warpgroup."""
    n, k = 128, k_of(atype)
    product = Product(draft, n, dtype)
    rng = product.rng
    a, b = sums.lines(atype, (64, k), rng, negated=True), sums.lines(btype, (n, k), rng, negated=False)
    with np.errstate(all="ignore"):
        c = sums.addends(dtype, a @ b.T, rng)
    ga, gb = _given(atype, a, rng), _given(btype, b, rng)
    rs = where == "registers"
    first: Any = product.registers(matrices.warpgroup_a(atype, ga)) if rs else product.operand(atype, ga, 128)
    db, d = product.operand(btype, gb, 128), product.accumulators(c)
    product.multiply(d, instruction(atype, btype, dtype, n, rs=rs)(d, first, db, 1))
    product.finish(d, sums.total(a, b, c, (atype, btype, dtype), _warpgroup_rule(atype)))


@microtest(*_TYPES)
def warpgroup_sparse(draft: Draft, atype: Any, btype: Any, dtype: Any) -> None:
    """D = A * B + D of a warpgroup, A sparse."""
    n, k = 128, 2 * k_of(atype)
    product = Product(draft, n, dtype)
    rng = product.rng
    stored, b = sums.lines(atype, (64, k // 2), rng, negated=True), sums.lines(btype, (n, k), rng, negated=False)
    a, stored, meta = matrices.sparse_a(atype, 64, k, rng, stored)
    with np.errstate(all="ignore"):
        c = sums.addends(dtype, a @ b.T, rng)
    da = product.operand(atype, _given(atype, stored, rng), 128)
    db, d = product.operand(btype, _given(btype, b, rng), 128), product.accumulators(c)
    named = matrices.named(atype, meta)
    words = [matrices.metadata_registers(atype, meta[16 * w : 16 * w + 16], 0, rng) for w in range(4)]
    (metadata,) = product.registers(np.concatenate(words)[None])
    product.multiply(d, sparse_instruction(atype, btype, dtype, n, False)(d, da, db, metadata, 0))
    product.finish(d, sums.total(a, b, c, (atype, btype, dtype), _warpgroup_rule(atype), named=named))


@microtest("f16", "bf16", "tf32", "e4m3", "e5m2")
def warpgroup_chain(draft: Draft, kind: Any) -> None:
    """Four products into one accumulator without a wait between them; the first takes no D."""
    n, k = 64, k_of(kind)
    product = Product(draft, n, "f32")
    rng = product.rng
    steps = [
        [rng.standard_normal((rows, k)).astype(matrices.DTYPES[kind]).astype(np.float64) for rows in (64, n)]
        for _ in range(4)
    ]
    if kind == "tf32":
        steps = [[_cut(values) for values in step] for step in steps]
    c = np.full((64, n), np.nan)
    d = product.accumulators(c)
    made, expected = [], np.zeros((64, n))
    for index, (a, b) in enumerate(steps):
        da, db = product.operand(kind, a, 128), product.operand(kind, b, 128)
        made.append(instruction(kind, kind, "f32", n)(d, da, db, int(index > 0)))
        expected = sums.total(a, b, expected, (kind, kind, "f32"), _warpgroup_rule(kind))
    product.multiply(d, *made)
    product.finish(d, expected)


def _cut(values: np.ndarray) -> np.ndarray:
    """The upper 19 bits of a .f32."""
    return (values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)


def _fragments_total(a: np.ndarray, b: np.ndarray, c: np.ndarray, kinds: tuple[str, str, str]) -> np.ndarray:
    """Two steps of .tf32; a sum of .f32 that becomes .f16 is rounded twice."""
    kind, ctype, dtype = kinds
    if kind == "tf32":
        for half in (slice(0, 4), slice(4, 8)):
            c = sums.total(a[:, half], b[:, half], c, (kind, kind, dtype))
        return c
    if ctype == "f32":
        d = sums.total(a, b, c, (kind, kind, "f32"))
        with np.errstate(over="ignore"):
            return d.astype(matrices.DTYPES[dtype]).astype(np.float64)
    return sums.total(a, b, c, (kind, kind, dtype))


@microtest(*each(wmma.mma_f16, wmma.mma_bf16, wmma.mma_tf32), only_if=lambda word: "row.col" in word.made.opcode_text)
def fragments(draft: Draft, word: Word) -> None:
    """D = A * B + C of wmma."""
    made: Any = word.made
    m, n, k = shape_of(made)
    kind, dtype = made.type, made.dtype
    ctype = getattr(made, "ctype", dtype)
    rng = np.random.default_rng(52)
    fragments, shape = Fragments(draft), f"m{m}n{n}k{k}"
    counts: dict[str, Any] = {name: len(getattr(made, name).elements) for name in ("a", "b", "c", "d")}
    types = {"f32": "f32", "tf32": "b32"}
    for _ in range(8):
        a, b = sums.lines(kind, (m, k), rng, negated=True), sums.lines(kind, (n, k), rng, negated=False)
        with np.errstate(all="ignore"):
            c = sums.addends(ctype, a @ b.T, rng)
        expected = _fragments_total(a, b, c, (kind, ctype, dtype))
        operands = [
            fragments.load(
                wmma.load, kind, _given(kind, a, rng), counts["a"], "b32", matrix="a", layout="row", shape=shape
            ),
            fragments.load(
                wmma.load, kind, _given(kind, b, rng).T, counts["b"], "b32", matrix="b", layout="col", shape=shape
            ),
            fragments.load(wmma.load_c, ctype, c, counts["c"], types.get(ctype, "b32"), layout="row", shape=shape),
        ]
        found = draft.regs(types.get(dtype, "b32"), counts["d"], "d")
        draft(like(made, found, *operands))
        fragments.store(dtype, expected, found, "row", shape)


def _chained(a: np.ndarray, b: np.ndarray, c: np.ndarray, types: tuple[str, str]) -> np.ndarray:
    """Fused multiply-adds of .f32: all four and then C, or, with both C and D of .f16, C and two pairs.

    ptxas 13.5 calls a routine for these, which uses no tensor core.
    """

    def add(total: numbers.Number, x: Any, y: Any) -> numbers.Number:
        product = numbers.multiply(numbers.of_float(float(x)), numbers.of_float(float(y)))
        return numbers.decode(numbers.encode(numbers.add(product, total), numbers.F32), numbers.F32)

    found, zero = np.empty(c.shape), numbers.of_float(0.0)
    for row, column in np.ndindex(*c.shape):
        terms, last = list(zip(a[row], b[column], strict=True)), c[row, column]
        if types == ("f16", "f16"):
            pairs = [add(add(-zero, *terms[i]), *terms[i + 1]) for i in (0, 2)]
            total = numbers.of_float(float(last))
            for pair in pairs:
                total = add(total, 1.0, pair.as_float())
        else:
            total = zero
            for term in (*terms, (last, 1.0)):
                total = add(total, *term)
        found[row, column] = total.as_float()
    with np.errstate(over="ignore"):
        return found.astype(matrices.DTYPES[types[1]]).astype(np.float64)


@microtest(*each(mma.f16_m8n8k4))
def quads(draft: Draft, word: Word) -> None:
    """D = A * B + C of four products of 8 rows."""
    made: Any = word.made
    rng = np.random.default_rng(53)
    draft.launch(block=32)
    for _ in range(8):
        a, b = (
            np.stack([sums.lines("f16", (8, 4), rng, negated=negated) for _ in range(4)]) for negated in (True, False)
        )
        with np.errstate(all="ignore"):
            c = np.stack([sums.addends(made.ctype, x @ y.T, rng) for x, y in zip(a, b, strict=True)])
        d = np.stack([_chained(x, y, z, (made.ctype, made.dtype)) for x, y, z in zip(a, b, c, strict=True)])
        quad_product(draft, made, a, b.swapaxes(1, 2), c, d)


@microtest(*each(mma.f64))
def f64(draft: Draft, word: Word) -> None:
    """Sums of .f64 are fused multiply-adds in the order of K."""
    made: Any = word.made
    m, n, k = shape_of(made)
    rng = np.random.default_rng(54)
    a, b = (rng.standard_normal(shape) * 2.0 ** rng.integers(-30, 31, shape) for shape in ((m, k), (k, n)))
    c = np.where(rng.random((m, n)) < 0.5, -(a @ b), rng.standard_normal((m, n)) * 2.0 ** rng.integers(-60, 61, (m, n)))
    draft.launch(block=32)
    tid = draft.thread
    words = (matrices.a_registers("f64", a), matrices.b_registers("f64", b), matrices.d_registers("f64", c))
    given = [load_registers(draft, each_, tid) for each_ in words]
    found = [draft.reg("b64", "d") for _ in given[2]]
    draft(like(made, found, *given))
    store_registers(draft, matrices.d_registers("f64", fused(a, b, c, made.rounding or "rn")), found, tid)
