"""Loads and stores: types, vectors, state spaces, orders and hints. References from PTX ISA 9.7.9.8 to 9.7.9.11.

Narrow values fill the register that is wider: with the sign for .s types, with zeros otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.inputs import WORDS
from ptxgen.build import Register
from ptxgen.instr import address, barrier, cache, memory
from ptxgen.instr.types import TYPES

_THREADS = 64
_TYPES = ("b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64")
_SPACES: tuple[Any, ...] = (None, "global", "shared", "shared::cta", "shared::cluster")


def _bits(kind: str) -> int:
    return TYPES[kind].bits


def _values(kind: str, count: int) -> np.ndarray:
    rng = np.random.default_rng(81)
    return rng.integers(0, 2 ** _bits(kind), (_THREADS, count), dtype=np.uint64).astype(WORDS[_bits(kind)])


def _widened(kind: str, values: np.ndarray) -> np.ndarray:
    """As registers of 32 or 64 bits hold them."""
    if _bits(kind) == 64:
        return values
    if kind[0] == "s":
        return values.view(np.dtype(f"i{_bits(kind) // 8}")).astype(np.int32).view(np.uint32)
    return values.astype(np.uint32)


def _register(kind: str) -> str:
    return {"f32": "f32", "f64": "f64"}.get(kind, "b64" if _bits(kind) == 64 else "b32")


def _place(draft: Draft, space: Any, values: np.ndarray) -> Register:
    """The address of this thread's values, in a state space."""
    size = values[0].nbytes
    if space in (None, "global"):
        return draft.offset(draft.input(values), draft.thread, size)
    box = draft.shared(values.nbytes, 128)
    draft.copy_in(box, values)
    return draft.offset(box, draft.thread, size)


def _load(draft: Draft, form: Any, kind: str, space: Any, vec: Any = None, **options: Any) -> None:
    """Load this thread's values, and store what the registers hold."""
    count = int(vec[1:]) if vec else 1
    values = _values(kind, count)
    draft.launch(block=_THREADS)
    tid = draft.thread
    place = _place(draft, space, values)
    registers = draft.regs(_register(kind), count)
    given = registers if vec else registers[0]
    options = {name: value for name, value in options.items() if value is not None}
    draft(form(given, f"[{place}]", space=space, vec=vec, type=kind, **options))
    expected = _widened(kind, values)
    out = draft.offset(draft.output(expected), tid, expected[0].nbytes)
    for number, register in enumerate(registers):
        draft.store(out, register, number * expected.dtype.itemsize)


_VECTORS = [
    (vec, kind) for vec in ("v2", "v4", "v8") for kind in _TYPES
    if (int(vec[1:]) * _bits(kind) <= 128 and vec != "v8") or (int(vec[1:]) * _bits(kind) == 256)
]  # fmt: skip


@microtest(*((space, kind) for space in _SPACES for kind in _TYPES))
def ld(draft: Draft, space: Any, kind: Any) -> None:
    """Every type from every state space."""
    _load(draft, memory.ld, kind, space)


@microtest(*((space, vec, kind) for space in ("global", "shared") for vec, kind in _VECTORS),
           only_if=lambda space, vec, kind: space == "global" or int(vec[1:]) * _bits(kind) <= 128)  # fmt: skip
def ld_vector(draft: Draft, space: Any, vec: Any, kind: Any) -> None:
    """Vectors, up to 256 bits in global memory."""
    _load(draft, memory.ld, kind, space, vec)


@microtest("ca", "cg", "cs", "lu", "cv")
def ld_cached(draft: Draft, cop: Any) -> None:
    """Cache operators change nothing."""
    _load(draft, memory.ld, "u32", "global", cop=cop)


@microtest("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate")
def ld_keep(draft: Draft, l1: Any) -> None:
    """Eviction priorities change nothing."""
    _load(draft, memory.ld_keep, "s16", "global", "v4", l1=l1)


@microtest("64B", "128B", "256B")
def ld_prefetch(draft: Draft, size: Any) -> None:
    """Prefetch sizes change nothing."""
    _load(draft, memory.ld, "f64", "global", "v2", prefetch=f"L2::{size}")


@microtest(*_SPACES)
def ld_volatile(draft: Draft, space: Any) -> None:
    """Volatile loads."""
    _load(draft, memory.ld_volatile, "s8", space)


@microtest(*((sem, scope, space) for sem in ("relaxed", "acquire") for scope in ("cta", "cluster", "gpu", "sys")
             for space in (None, "global", "shared")))  # fmt: skip
def ld_ordered(draft: Draft, sem: Any, scope: Any, space: Any) -> None:
    """Orders and scopes."""
    _load(draft, memory.ld_ordered, "b32", space, "v2", sem=sem, scope=scope)


@microtest(*_TYPES)
def ld_nc(draft: Draft, kind: Any) -> None:
    """Through the read-only cache."""
    _load(draft, memory.ld_nc, kind, "global")


@microtest("v2", "v4")
def ld_nc_keep(draft: Draft, vec: Any) -> None:
    """Through the read-only cache, with a priority."""
    _load(draft, memory.ld_nc_keep, "f32", "global", vec, l1="no_allocate")


@microtest("relaxed", "acquire")
def ld_mmio(draft: Draft, sem: Any) -> None:
    """Loads of device registers, here of memory."""
    draft.launch(block=_THREADS)
    tid, values = draft.thread, _values("u32", 1)
    found = draft.reg("b32")
    draft(memory.ld_mmio(found, f"[{draft.offset(draft.input(values), tid, 4)}]", sem=sem, space="global", type="u32"))
    draft.store(draft.offset(draft.output(values), tid, 4), found)


@microtest(*_TYPES)
def ldu(draft: Draft, kind: Any) -> None:
    """Loads of what is the same in all threads; here it need not be."""
    _load(draft, memory.ldu, kind, "global")


def _store(draft: Draft, form: Any, kind: str, space: Any, vec: Any = None, **options: Any) -> None:
    """Store registers wider than the type; what lies around stays as it is."""
    count = int(vec[1:]) if vec else 1
    values = _values(kind, count)
    draft.launch(block=_THREADS)
    tid, size = draft.thread, values[0].nbytes
    before = np.full((_THREADS, 2, count), 0xCD, np.uint8).repeat(values.itemsize, 2).view(values.dtype)
    after = before.copy()
    after[:, 1] = values
    wide = _widened(kind, values)
    if _bits(kind) < 32:
        wide = wide | np.uint32(0xDEAD0000 if _bits(kind) == 16 else 0xDEADBE00)
    source = draft.offset(draft.input(wide), tid, wide[0].nbytes)
    registers = draft.regs(_register(kind), count)
    for number, register in enumerate(registers):
        draft.load_into(register, source, number * wide.dtype.itemsize)
    out = draft.output(after, initial=before)
    is_shared = space not in (None, "global")
    base = out
    if is_shared:
        base = draft.shared(after.nbytes, 128)
        draft.copy_in(base, before)
    place = draft.offset(base, tid, 2 * size)
    given = registers if vec else registers[0]
    options = {name: value for name, value in options.items() if value is not None}
    draft(form(f"[{place}+{size}]", given, space=space, vec=vec, type=kind, **options))
    if is_shared:
        draft.copy_out(base, out, after.nbytes)


@microtest(*((space, kind) for space in _SPACES for kind in _TYPES))
def st(draft: Draft, space: Any, kind: Any) -> None:
    """Every type to every state space."""
    _store(draft, memory.st, kind, space)


@microtest(*((space, vec, kind) for space in ("global", "shared") for vec, kind in _VECTORS),
           only_if=lambda space, vec, kind: space == "global" or int(vec[1:]) * _bits(kind) <= 128)  # fmt: skip
def st_vector(draft: Draft, space: Any, vec: Any, kind: Any) -> None:
    """Vectors, up to 256 bits in global memory."""
    _store(draft, memory.st, kind, space, vec)


@microtest("wb", "cg", "cs", "wt")
def st_cached(draft: Draft, cop: Any) -> None:
    """Cache operators change nothing."""
    _store(draft, memory.st, "u32", "global", cop=cop)


@microtest("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate")
def st_keep(draft: Draft, l1: Any) -> None:
    """Eviction priorities change nothing."""
    _store(draft, memory.st_keep, "b16", "global", "v4", l1=l1)


@microtest(*_SPACES)
def st_volatile(draft: Draft, space: Any) -> None:
    """Volatile stores."""
    _store(draft, memory.st_volatile, "u8", space)


@microtest(*((sem, scope, space) for sem in ("relaxed", "release") for scope in ("cta", "cluster", "gpu", "sys")
             for space in (None, "global", "shared")))  # fmt: skip
def st_ordered(draft: Draft, sem: Any, scope: Any, space: Any) -> None:
    """Orders and scopes."""
    _store(draft, memory.st_ordered, "b64", space, "v2", sem=sem, scope=scope)


@microtest("evict_first", "evict_last", "evict_normal")
def policy(draft: Draft, first: Any) -> None:
    """A cache policy on a load and a store changes nothing."""
    draft.launch(block=_THREADS)
    tid, values, made = draft.thread, _values("u32", 1), draft.reg("b64", "policy")
    draft(cache.createpolicy_fractional(made, 0.5, first=first))
    found = draft.reg("b32")
    source, out = draft.offset(draft.input(values), tid, 4), draft.offset(draft.output(values), tid, 4)
    draft(memory.ld(found, f"[{source}]", made, space="global", hint=True, type="u32"))
    draft(memory.st(f"[{out}]", found, made, space="global", hint=True, type="u32"))


@microtest(*((first, fraction) for first in ("evict_first", "evict_last", "evict_normal", "evict_unchanged")
             for fraction in (1.0, 0.5)))  # fmt: skip
def createpolicy(draft: Draft, first: Any, fraction: float) -> None:
    """The policy's 64 bits (CUTLASS's constants; 0x12F0.. is evict_first, with fraction / 16 - 1 in a digit)."""
    draft.launch(block=32)
    tid, made = draft.thread, draft.reg("b64", "policy")
    draft(cache.createpolicy_fractional(made, fraction, first=first))
    code = {"evict_first": 0x12, "evict_last": 0x14, "evict_normal": 0x16, "evict_unchanged": 0x10}[first]
    value = code << 56 | (int(fraction * 16) - 1) << 52
    draft.store(draft.offset(draft.output(np.full(32, value, np.uint64)), tid, 8), made)


_WINDOWS = {"global": (1, 0, 0), "shared": (0, 1, 0), "local": (0, 0, 1)}


@microtest(*_WINDOWS)
def isspacep(draft: Draft, space: Any) -> None:
    """Of a generic address in global and one in shared memory."""
    draft.launch(block=32)
    tid = draft.thread
    given = [draft.input(np.zeros(4, np.uint8)), draft.generic(draft.shared(16))]
    out = draft.offset(draft.output(np.repeat(np.array([_WINDOWS[space][:2]], np.uint32), 32, 0)), tid, 8)
    for number, place in enumerate(given):
        found = draft.reg("pred")
        draft(address.isspacep(found, place, space=space))
        draft.store(out, draft.as_word(found), 4 * number)


@microtest()
def cvta_to_shared(draft: Draft) -> None:
    """From a generic address back to the one in shared memory."""
    draft.launch(block=_THREADS)
    tid, values = draft.thread, _values("u32", 1)
    box = draft.shared(values.nbytes)
    draft.copy_in(box, values)
    back, found = draft.reg("b64"), draft.reg("b32")
    draft(address.cvta_to(back, draft.generic(draft.offset(box, tid, 4)), space="shared", size="u64"))
    draft(memory.ld(found, f"[{back}]", space="shared", type="b32"))
    draft.store(draft.offset(draft.output(values), tid, 4), found)
    draft(barrier.bar_sync(0))


@microtest(*((generic, size) for generic in (False, True) for size in (8, 64, 1024)))
def st_bulk(draft: Draft, generic: bool, size: int) -> None:
    """Zeros, and nothing beyond."""
    draft.launch(block=_THREADS)
    assert draft.thread
    before = np.random.default_rng(82).integers(0, 256, 2048).astype(np.uint8)
    after = before.copy()
    after[16 : 16 + size] = 0
    box = draft.shared(2048, 128)
    draft.copy_in(box, before)
    end = draft.label("end")
    draft.branch(end, draft.is_thread(0), negated=True)
    place = draft.generic(box) if generic else box
    draft(memory.st_bulk(f"[{place}+16]", draft.scalar("u64", size), 0, space=None if generic else "shared::cta"))
    draft.place(end)
    draft.copy_out(box, draft.output(after), 2048)
