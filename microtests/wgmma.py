"""wgmma: every type, major-ness and swizzle; A from shared memory and from registers; sparse A.

References from PTX ISA 9.7.15: descriptors and canonical layouts are made here anew. Elements are small whole numbers
(all values for integers), whose sums are exact in any order. What lies between the elements in shared memory is random.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness import matrices
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft, Tolerance
from ptxgen.builder import Register
from ptxgen.instr import barrier, conversion, fence, integer, logic, predicate, wgmma
from ptxgen.instr.model.form import Instruction

_M, _THREADS = 64, 128
_SWIZZLES = (0, 32, 64, 128)


class Product:
    """The kernel of a warpgroup that fills operands, multiplies once, and stores D."""

    def __init__(self, draft: Draft, n: int, dtype: str) -> None:
        self.draft, self.n, self.dtype = draft, n, dtype
        draft.launch(block=_THREADS)
        self.tid = draft.thread
        self.rng = np.random.default_rng(41)

    def operand(self, kind: str, values: np.ndarray, swizzle: int, k_major: bool = True, start: int = 0) -> Register:
        """The descriptor of an operand [rows, K] that is put into shared memory."""
        draft = self.draft
        memory_, lbo, sbo = matrices.image(kind, values, swizzle, k_major, self.rng, start)
        box = draft.shared(len(memory_), 1024)
        draft.copy_in(box, memory_)
        address, found = draft.reg("b32"), draft.reg("b64", "descriptor")
        draft(integer.add(address, box, start, type="u32"), logic.and_(address, address, 0x3FFFF, type="b32"))
        draft(logic.shr(address, address, 4, type="b32"), conversion.cvt(found, address, dtype="u64", atype="u32"))
        draft(logic.or_(found, found, matrices.descriptor(lbo, sbo, swizzle), type="b64"))
        return found

    def registers(self, words: np.ndarray) -> list[Register]:
        """Registers [n, thread] of an input."""
        draft = self.draft
        at = draft.offset(draft.input(words), self.tid, 4)
        found = []
        for number in range(len(words)):
            register = draft.reg("b32", "m")
            draft.load_into(register, at, number * 4 * _THREADS)
            found.append(register)
        return found

    def accumulators(self, c: np.ndarray) -> list[Register]:
        return self.registers(matrices.warpgroup(self.dtype, c))

    def multiply(self, d: list[Register], *instructions: Instruction) -> None:
        """The fences, the products, and the wait for them."""
        draft = self.draft
        draft(fence.fence_proxy_async(), barrier.bar_sync(0))
        draft(wgmma.fence(), *instructions, wgmma.commit_group(), wgmma.wait_group(0))

    def finish(self, d: list[Register], expected: np.ndarray, tolerance: Tolerance | None = None) -> None:
        words = matrices.warpgroup(self.dtype, expected)
        at = self.draft.offset(self.draft.output(words, tolerance=tolerance), self.tid, 4)
        for number, register in enumerate(d):
            self.draft.store(at, register, number * 4 * _THREADS)


def _c(dtype: str, n: int, rng: np.random.Generator, saturating: bool = False) -> np.ndarray:
    if dtype != "s32":
        return rng.integers(-8, 9, (_M, n)).astype(np.float64)
    if saturating:
        return rng.choice([-(2**31), 2**31 - 1, 5], (_M, n)).astype(np.int64)
    return rng.integers(-(2**31), 2**31, (_M, n)).astype(np.int64)


def _wrapped(dtype: str, d: np.ndarray, saturating: bool = False) -> np.ndarray:
    if dtype != "s32":
        return d
    return np.clip(d, -(2**31), 2**31 - 1) if saturating else (d + 2**31) % 2**32 - 2**31


def k_of(kind: str) -> int:
    return 256 // matrices.BITS[kind]


_NS = (8, 24, 64, 136, 256)


@microtest(*((kind, dtype, n) for kind, dtype in (("f16", "f16"), ("f16", "f32"), ("bf16", "f32")) for n in _NS))
def f16(draft: Draft, kind: Any, dtype: Any, n: Any) -> None:
    """D = A * B + D of half precision, both from shared memory, 128-byte swizzle."""
    product = Product(draft, n, dtype)
    rng = product.rng
    a, b = (matrices.random_elements(kind, shape, rng) for shape in ((_M, 16), (n, 16)))
    c = _c(dtype, n, rng)
    da, db, d = product.operand(kind, a, 128), product.operand(kind, b, 128), product.accumulators(c)
    product.multiply(d, wgmma.mma_async_f16(d, da, db, 1, 1, 1, 0, 0, n=n, dtype=dtype, type=kind))
    product.finish(d, a @ b.T + c)


@microtest(
    *(
        (kind, sa, ma, sb, mb)
        for kind in ("f16", "bf16")
        for sa in _SWIZZLES
        for ma in (0, 1)
        for sb in _SWIZZLES
        for mb in (0, 1)
    ),
    only_if=lambda kind, sa, ma, sb, mb: kind == "f16" or (sa == sb and ma == mb),
)
def layouts(draft: Draft, kind: Any, sa: int, ma: int, sb: int, mb: int) -> None:
    """Every swizzle (bytes) of A and B with every major-ness (1: M or N)."""
    n = 128
    product = Product(draft, n, "f32")
    rng = product.rng
    a, b = (matrices.random_elements(kind, shape, rng) for shape in ((_M, 16), (n, 16)))
    da, db = product.operand(kind, a, sa, not ma), product.operand(kind, b, sb, not mb)
    d = product.accumulators(_c("f32", n, rng))
    product.multiply(d, wgmma.mma_async_f16(d, da, db, 0, 1, 1, ma, mb, n=n, dtype="f32", type=kind))
    product.finish(d, a @ b.T)


@microtest(*((kind, swizzle) for kind in ("tf32", "e4m3", "u8") for swizzle in _SWIZZLES))
def swizzles(draft: Draft, kind: Any, swizzle: int) -> None:
    """Every swizzle of the types that are K-major only."""
    n, k, dtype = 64, k_of(kind), "s32" if kind == "u8" else "f32"
    product = Product(draft, n, dtype)
    a, b = (matrices.random_elements(kind, shape, product.rng) for shape in ((_M, k), (n, k)))
    da, db = product.operand(kind, a, swizzle), product.operand(kind, b, swizzle)
    d = product.accumulators(_c(dtype, n, product.rng))
    product.multiply(d, instruction(kind, kind, dtype, n)(d, da, db, 0))
    product.finish(d, _wrapped(dtype, a @ b.T))


@microtest(*((swizzle, step) for swizzle in (32, 64, 128) for step in range(swizzle // 32)))
def k_steps(draft: Draft, swizzle: int, step: int) -> None:
    """The next K of a row is 32 bytes further on in the start address, also inside the swizzled row."""
    n = 32
    product = Product(draft, n, "f32")
    a, b = (matrices.random_elements("f16", shape, product.rng) for shape in ((_M, 16), (n, 16)))
    da, db = product.operand("f16", a, swizzle, start=32 * step), product.operand("f16", b, swizzle, start=32 * step)
    d = product.accumulators(_c("f32", n, product.rng))
    product.multiply(d, wgmma.mma_async_f16(d, da, db, 0, 1, 1, 0, 0, n=n, dtype="f32", type="f16"))
    product.finish(d, a @ b.T)


@microtest(128, 256, 384, 896)
def start_in_the_period(draft: Draft, start: int) -> None:
    """An operand that begins anywhere in the period of the swizzle: addresses are swizzled, not offsets."""
    n = 16
    product = Product(draft, n, "f32")
    a, b = (matrices.random_elements("f16", shape, product.rng) for shape in ((_M, 16), (n, 16)))
    da, db = product.operand("f16", a, 128, start=start), product.operand("f16", b, 128, start=start)
    d = product.accumulators(_c("f32", n, product.rng))
    product.multiply(d, wgmma.mma_async_f16(d, da, db, 0, 1, 1, 0, 0, n=n, dtype="f32", type="f16"))
    product.finish(d, a @ b.T)


def instruction(atype: Any, btype: Any, dtype: Any, n: Any, *, rs: bool = False, satfinite: bool = False) -> Any:
    """The call of a type, with scale_d last."""
    if atype in ("f16", "bf16"):
        if rs:
            return lambda d, a, b, s: wgmma.mma_async_f16_rs(d, a, b, s, 1, 1, 0, n=n, dtype=dtype, type=atype)
        return lambda d, a, b, s: wgmma.mma_async_f16(d, a, b, s, 1, 1, 0, 0, n=n, dtype=dtype, type=atype)
    if atype == "tf32":
        form: Any = wgmma.mma_async_tf32_rs if rs else wgmma.mma_async_tf32
        return lambda d, a, b, s: form(d, a, b, s, 1, 1, n=n, dtype=dtype)
    if atype in ("e4m3", "e5m2"):
        form = wgmma.mma_async_f8_rs if rs else wgmma.mma_async_f8
        return lambda d, a, b, s: form(d, a, b, s, 1, 1, n=n, dtype=dtype, atype=atype, btype=btype)
    if atype == "b1":
        form = wgmma.mma_async_b1_rs if rs else wgmma.mma_async_b1
        return lambda d, a, b, s: form(d, a, b, s, n=n)
    form = wgmma.mma_async_i8_rs if rs else wgmma.mma_async_i8
    return lambda d, a, b, s: form(d, a, b, s, n=n, satfinite=satfinite, atype=atype, btype=btype)


_TYPES = (
    ("f16", "f16", "f16"),
    ("f16", "f16", "f32"),
    ("bf16", "bf16", "f32"),
    ("tf32", "tf32", "f32"),
    ("b1", "b1", "s32"),
    *((a, b, d) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2") for d in ("f16", "f32")),
    *((a, b, "s32") for a in ("s8", "u8") for b in ("s8", "u8")),
)


@microtest(*((*types, n, where) for types in _TYPES for n in (8, 96, 256) for where in ("shared", "registers")))
def types(draft: Draft, atype: Any, btype: Any, dtype: Any, n: Any, where: str) -> None:
    """Every combination of types, A in shared memory and in registers."""
    k = k_of(atype)
    product = Product(draft, n, dtype)
    rng = product.rng
    a, b = matrices.random_elements(atype, (_M, k), rng), matrices.random_elements(btype, (n, k), rng)
    c = _c(dtype, n, rng)
    rs = where == "registers"
    first: Any = product.registers(matrices.warpgroup_a(atype, a)) if rs else product.operand(atype, a, 32)
    db, d = product.operand(btype, b, 64), product.accumulators(c)
    product.multiply(d, instruction(atype, btype, dtype, n, rs=rs)(d, first, db, 1))
    both = (a[:, None].astype(bool) & b[None].astype(bool)).sum(2) if atype == "b1" else a @ b.T
    product.finish(d, _wrapped(dtype, both + c))


def _ns(kind: str) -> list[int]:
    """Every N; of integers and bits those that are multiples of 16 from 24 on."""
    if kind in ("s8", "u8", "b1"):
        return [8, 16, 24, *range(32, 257, 16)]
    return list(range(8, 257, 8))


@microtest(*((kind, n) for kind in ("f16", "tf32", "e4m3", "s8", "b1") for n in _ns(kind)))
def every_n(draft: Draft, kind: Any, n: Any) -> None:
    """Every N of each kind; A in shared memory, then the same once more in registers."""
    k, dtype = k_of(kind), "s32" if kind in ("s8", "b1") else "f32"
    product = Product(draft, n, dtype)
    rng = product.rng
    a, b = matrices.random_elements(kind, (_M, k), rng), matrices.random_elements(kind, (n, k), rng)
    c = _c(dtype, n, rng)
    da, db, ra = product.operand(kind, a, 32), product.operand(kind, b, 32), matrices.warpgroup_a(kind, a)
    d, both = product.accumulators(c), (a[:, None].astype(bool) & b[None].astype(bool)).sum(2)
    first = instruction(kind, kind, dtype, n)(d, da, db, 1)
    second = instruction(kind, kind, dtype, n, rs=True)(d, product.registers(ra), db, 1)
    product.multiply(d, first, second)
    product.finish(d, _wrapped(dtype, 2 * (both if kind == "b1" else a @ b.T) + c))


@microtest(*((kind, n) for kind in ("f16", "tf32", "e4m3", "s8") for n in _ns(kind)))
def every_n_sparse(draft: Draft, kind: Any, n: Any) -> None:
    """The same of sparse products."""
    k, dtype = 2 * k_of(kind), "s32" if kind == "s8" else "f32"
    product = Product(draft, n, dtype)
    rng = product.rng
    a, stored, meta = matrices.sparse_a(kind, _M, k, rng)
    b = matrices.random_elements(kind, (n, k), rng)
    c = _c(dtype, n, rng)
    da, db = product.operand(kind, stored, 128), product.operand(kind, b, 128)
    ra, d = product.registers(matrices.warpgroup_a(kind, stored)), product.accumulators(c)
    words = [matrices.metadata_registers(kind, meta[16 * w : 16 * w + 16], 0, rng) for w in range(4)]
    (metadata,) = product.registers(np.concatenate(words)[None])
    first = sparse_instruction(kind, kind, dtype, n, False)(d, da, db, metadata, 0)
    second = sparse_instruction(kind, kind, dtype, n, True)(d, ra, db, metadata, 0)
    product.multiply(d, first, second)
    product.finish(d, _wrapped(dtype, 2 * (a @ b.T) + c))


@microtest(*((a, b, where) for a in ("s8", "u8") for b in ("s8", "u8") for where in ("shared", "registers")))
def satfinite(draft: Draft, atype: Any, btype: Any, where: str) -> None:
    """Sums beyond 32 bits are clamped."""
    n = 64
    product = Product(draft, n, "s32")
    rng = product.rng
    a, b = matrices.random_elements(atype, (_M, 32), rng), matrices.random_elements(btype, (n, 32), rng)
    c = _c("s32", n, rng, True)
    rs = where == "registers"
    first: Any = product.registers(matrices.warpgroup_a(atype, a)) if rs else product.operand(atype, a, 128)
    db, d = product.operand(btype, b, 128), product.accumulators(c)
    product.multiply(d, instruction(atype, btype, "s32", n, rs=rs, satfinite=True)(d, first, db, 1))
    product.finish(d, _wrapped("s32", a @ b.T + c, True))


@microtest(*((sa, sb) for sa in (-1, 1) for sb in (-1, 1)))
def scales(draft: Draft, sa: int, sb: int) -> None:
    """Negated operands; scale_d in a predicate, true in it."""
    n = 40
    product = Product(draft, n, "f32")
    rng = product.rng
    a, b = (matrices.random_elements("bf16", shape, rng) for shape in ((_M, 16), (n, 16)))
    c = _c("f32", n, rng)
    da, db, d = product.operand("bf16", a, 128), product.operand("bf16", b, 128), product.accumulators(c)
    yes = draft.reg("pred")
    draft(predicate.setp(yes, draft.scalar("u32", 1), 0, compare="ne", type="u32"))
    product.multiply(d, wgmma.mma_async_f16(d, da, db, yes, sa, sb, 0, 0, n=n, dtype="f32", type="bf16"))
    product.finish(d, sa * sb * (a @ b.T) + c)


@microtest()
def several_groups(draft: Draft) -> None:
    """Two groups on two accumulators; the first may be read while the second is under way."""
    n = 32
    product = Product(draft, n, "f32")
    rng = product.rng
    a, b, e = (matrices.random_elements("f16", shape, rng) for shape in ((_M, 16), (n, 16), (n, 16)))
    da, db, de = (product.operand("f16", each, 128) for each in (a, b, e))
    c = _c("f32", n, rng)
    first, second = product.accumulators(c), product.accumulators(c)
    draft(fence.fence_proxy_async(), barrier.bar_sync(0), wgmma.fence())
    for d, other in ((first, db), (second, de)):
        draft(wgmma.mma_async_f16(d, da, other, 1, 1, 1, 0, 0, n=n, dtype="f32", type="f16"), wgmma.commit_group())
    draft(wgmma.wait_group(1))
    product.finish(first, a @ b.T + c)
    draft(wgmma.wait_group(0))
    product.finish(second, a @ e.T + c)


@microtest()
def chain(draft: Draft) -> None:
    """Four products into one accumulator, K of 64, without a fence between them."""
    n = 64
    product = Product(draft, n, "f32")
    rng = product.rng
    a, b = (matrices.random_elements("f16", shape, rng) for shape in ((_M, 64), (n, 64)))
    da, db, d = product.operand("f16", a, 128), product.operand("f16", b, 128), product.accumulators(_c("f32", n, rng))
    made: list[Instruction] = []
    for step in range(4):
        ka, kb = draft.reg("b64"), draft.reg("b64")
        draft(integer.add(ka, da, 2 * step, type="u64"), integer.add(kb, db, 2 * step, type="u64"))
        made.append(wgmma.mma_async_f16(d, ka, kb, int(step > 0), 1, 1, 0, 0, n=n, dtype="f32", type="f16"))
    product.multiply(d, *made)
    product.finish(d, a @ b.T)


_SPARSE_TYPES = tuple(each for each in _TYPES if each[0] != "b1")


@microtest(
    *((*types, where, selector) for types in _SPARSE_TYPES for where in ("shared", "registers") for selector in (0, 1)),
    only_if=lambda a, b, d, where, selector: selector == 0 or matrices.BITS[a] >= 16,
)
def sparse(draft: Draft, atype: Any, btype: Any, dtype: Any, where: str, selector: Any) -> None:
    """A sparse A, with its metadata in the registers of the threads that the selector names."""
    n, k = 64, 2 * k_of(atype)
    product = Product(draft, n, dtype)
    rng = product.rng
    a, stored, meta = matrices.sparse_a(atype, _M, k, rng)
    b = matrices.random_elements(btype, (n, k), rng)
    c = _c(dtype, n, rng)
    rs = where == "registers"
    first: Any = product.registers(matrices.warpgroup_a(atype, stored)) if rs else product.operand(atype, stored, 128)
    db, d = product.operand(btype, b, 128), product.accumulators(c)
    words = [matrices.metadata_registers(atype, meta[16 * w : 16 * w + 16], selector, rng) for w in range(4)]
    (metadata,) = product.registers(np.concatenate(words)[None])
    product.multiply(d, sparse_instruction(atype, btype, dtype, n, rs)(d, first, db, metadata, selector))
    product.finish(d, _wrapped(dtype, a @ b.T + c))


@microtest(*((kind, swizzle) for kind in ("f16", "tf32", "e4m3", "u8") for swizzle in (32, 64)))
def sparse_swizzles(draft: Draft, kind: Any, swizzle: int) -> None:
    """B of a sparse product with the narrower swizzles: 64 bytes of K in rows of 64 bytes, or in two of 32."""
    n, k, dtype = 64, 2 * k_of(kind), "s32" if kind == "u8" else "f32"
    product = Product(draft, n, dtype)
    rng = product.rng
    a, stored, meta = matrices.sparse_a(kind, _M, k, rng)
    b = matrices.random_elements(kind, (n, k), rng)
    c = _c(dtype, n, rng)
    first, db = product.operand(kind, stored, swizzle), product.operand(kind, b, swizzle)
    d = product.accumulators(c)
    words = [matrices.metadata_registers(kind, meta[16 * w : 16 * w + 16], 0, rng) for w in range(4)]
    (metadata,) = product.registers(np.concatenate(words)[None])
    product.multiply(d, sparse_instruction(kind, kind, dtype, n, False)(d, first, db, metadata, 0))
    product.finish(d, _wrapped(dtype, a @ b.T + c))


@microtest(*((a, b, where) for a in ("s8", "u8") for b in ("s8", "u8") for where in ("shared", "registers")))
def sparse_satfinite(draft: Draft, atype: Any, btype: Any, where: str) -> None:
    """Sums of sparse products beyond 32 bits are clamped."""
    n = 64
    product = Product(draft, n, "s32")
    rng = product.rng
    a, stored, meta = matrices.sparse_a(atype, _M, 64, rng)
    b = matrices.random_elements(btype, (n, 64), rng)
    c = _c("s32", n, rng, True)
    rs = where == "registers"
    first: Any = product.registers(matrices.warpgroup_a(atype, stored)) if rs else product.operand(atype, stored, 128)
    db, d = product.operand(btype, b, 128), product.accumulators(c)
    words = [matrices.metadata_registers(atype, meta[16 * w : 16 * w + 16], 0, rng) for w in range(4)]
    (metadata,) = product.registers(np.concatenate(words)[None])
    form: Any = wgmma.mma_async_sp_i8_rs if rs else wgmma.mma_async_sp_i8
    product.multiply(d, form(d, first, db, metadata, 0, 1, n=n, satfinite=True, atype=atype, btype=btype))
    product.finish(d, _wrapped("s32", a @ b.T + c, True))


def sparse_instruction(atype: Any, btype: Any, dtype: Any, n: Any, rs: bool) -> Any:
    if atype in ("f16", "bf16"):
        if rs:
            return lambda d, a, b, e, f: wgmma.mma_async_sp_f16_rs(
                d, a, b, e, f, 1, 1, 1, 0, n=n, dtype=dtype, type=atype
            )
        return lambda d, a, b, e, f: wgmma.mma_async_sp_f16(d, a, b, e, f, 1, 1, 1, 0, 0, n=n, dtype=dtype, type=atype)
    if atype == "tf32":
        form: Any = wgmma.mma_async_sp_tf32_rs if rs else wgmma.mma_async_sp_tf32
        return lambda d, a, b, e, f: form(d, a, b, e, f, 1, 1, 1, n=n, dtype=dtype)
    if atype in ("e4m3", "e5m2"):
        form = wgmma.mma_async_sp_f8_rs if rs else wgmma.mma_async_sp_f8
        return lambda d, a, b, e, f: form(d, a, b, e, f, 1, 1, 1, n=n, dtype=dtype, atype=atype, btype=btype)
    form = wgmma.mma_async_sp_i8_rs if rs else wgmma.mma_async_sp_i8
    return lambda d, a, b, e, f: form(d, a, b, e, f, 1, n=n, atype=atype, btype=btype)


@microtest("f16", "tf32", "e5m2")
def specials(draft: Draft, kind: Any) -> None:
    """Infinities and NaNs go where they do in IEEE arithmetic."""
    n, k = 32, k_of(kind)
    product = Product(draft, n, "f32")
    rng = product.rng
    values = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan])
    chance = [0.3, 0.1, 0.3, 0.24, 0.03, 0.02, 0.01]
    a, b = (rng.choice(values, shape, p=chance) for shape in ((_M, k), (n, k)))
    da, db, d = product.operand(kind, a, 128), product.operand(kind, b, 128), product.accumulators(np.ones((_M, n)))
    product.multiply(d, instruction(kind, kind, "f32", n)(d, da, db, 1))
    with np.errstate(invalid="ignore"):
        expected = (a[:, None] * b[None]).sum(2) + 1
    product.finish(d, expected, Tolerance("which NaN comes is open", np.float32))
