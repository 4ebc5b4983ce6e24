"""Atomic operations. References from PTX ISA 9.7.13.5 and 9.7.13.6.

Each thread works on a word of its own, which makes old values predictable; then all of them on one word.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from ptxgen.build import Register
from ptxgen.instr import atomic, barrier, memory

_THREADS = 64
_SPACES: tuple[Any, ...] = (None, "global", "shared", "shared::cta", "shared::cluster")
_TYPES = {
    "and": "b32 b64", "or": "b32 b64", "xor": "b32 b64", "exch": "b32 b64", "add": "u32 s32 u64 f32 f64", "inc": "u32",
    "dec": "u32", "min": "u32 s32 u64 s64", "max": "u32 s32 u64 s64",
}  # fmt: skip
_KINDS: dict[str, Any] = {
    "u32": np.uint32, "s32": np.int32, "b32": np.uint32, "u64": np.uint64, "s64": np.int64, "b64": np.uint64,
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
}  # fmt: skip


def _values(kind: str, count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind[0] in "f" or kind == "bf16":
        return rng.integers(-50, 50, count).astype(_KINDS[kind])
    bits = int(kind[1:])
    small = rng.integers(0, 4, count).astype(np.uint64)
    large = rng.integers(0, 2**bits, count, dtype=np.uint64)
    found = np.where(rng.random(count) < 0.3, small, large)
    return found.astype(np.uint32 if bits == 32 else np.uint64).view(_KINDS[kind])


def _after(op: str, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    if op == "exch":
        return new
    if op == "inc":
        return np.where(old >= new, 0, old + 1).astype(old.dtype)
    if op == "dec":
        return np.where((old == 0) | (old > new), new, old - 1).astype(old.dtype)
    with np.errstate(over="ignore"):
        return {
            "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "add": np.add, "min": np.minimum,
            "max": np.maximum,
        }[op](old, new)  # fmt: skip


class Words:
    """Words of memory in a state space that the threads work on, each on its own; then they are compared."""

    def __init__(self, draft: Draft, space: Any, initial: np.ndarray, expected: np.ndarray) -> None:
        self.draft, self.space, self.size = draft, space, initial.nbytes
        draft.launch(block=_THREADS)
        self.tid = draft.thread
        self.out = draft.output(expected, initial=initial)
        self.base = self.out
        if space not in (None, "global"):
            self.base = draft.shared(self.size, 128)
            draft.copy_in(self.base, initial)

    def mine(self, size: int) -> Register:
        return self.draft.offset(self.base, self.tid, size)

    def finish(self) -> None:
        if self.base is not self.out:
            self.draft.copy_out(self.base, self.out, self.size)


def _operand(draft: Draft, values: np.ndarray, tid: Register) -> Register:
    at = draft.offset(draft.input(values), tid, values.itemsize)
    register = draft.reg(f"b{values.itemsize * 8}")
    kind: Any = f"b{values.itemsize * 8}"
    draft(memory.ld(register, f"[{at}]", space="global", type=kind))
    return register


def _old(draft: Draft, initial: np.ndarray, tid: Register, register: Register) -> None:
    kind: Any = f"b{initial.itemsize * 8}"
    at = draft.offset(draft.output(initial), tid, initial.itemsize)
    draft(memory.st(f"[{at}]", register, space="global", type=kind))


@microtest(*((op, kind, space) for op, kinds in _TYPES.items() for kind in kinds.split() for space in _SPACES))
def atom(draft: Draft, op: Any, kind: Any, space: Any) -> None:
    """Every operation with every type in every state space: the old value, and the new one in memory."""
    initial, operand = _values(kind, _THREADS, 91), _values(kind, _THREADS, 92)
    words = Words(draft, space, initial, _after(op, initial, operand))
    found = draft.reg(f"b{initial.itemsize * 8}")
    draft(atomic.atom(found, f"[{words.mine(initial.itemsize)}]", _operand(draft, operand, words.tid), space=space,
                      op=op, type=kind))  # fmt: skip
    _old(draft, initial, words.tid, found)
    words.finish()


@microtest(*((op, kind, space) for op, kinds in _TYPES.items() if op != "exch" for kind in kinds.split()
             for space in ("global", "shared")))  # fmt: skip
def red(draft: Draft, op: Any, kind: Any, space: Any) -> None:
    """Without the old value."""
    initial, operand = _values(kind, _THREADS, 93), _values(kind, _THREADS, 94)
    words = Words(draft, space, initial, _after(op, initial, operand))
    draft(atomic.red(f"[{words.mine(initial.itemsize)}]", _operand(draft, operand, words.tid), space=space, op=op,
                     type=kind))  # fmt: skip
    words.finish()


@microtest(*((sem, scope) for sem in ("relaxed", "acquire", "release", "acq_rel")
             for scope in ("cta", "cluster", "gpu", "sys")))  # fmt: skip
def orders(draft: Draft, sem: Any, scope: Any) -> None:
    """Orders and scopes."""
    initial, operand = _values("u32", _THREADS, 95), _values("u32", _THREADS, 96)
    words = Words(draft, "global", initial, initial + operand)
    found = draft.reg("b32")
    draft(atomic.atom(found, f"[{words.mine(4)}]", _operand(draft, operand, words.tid), sem=sem, scope=scope,
                      space="global", op="add", type="u32"))  # fmt: skip
    _old(draft, initial, words.tid, found)
    words.finish()


@microtest(*((kind, space) for kind in ("b16", "b32", "b64") for space in _SPACES))
def cas(draft: Draft, kind: Any, space: Any) -> None:
    """Where the value is the one that is compared with, and where it is not."""
    dtype: Any = {"b16": np.uint16, "b32": np.uint32, "b64": np.uint64}[kind]
    rng = np.random.default_rng(97)
    initial = rng.integers(0, 2**16, _THREADS).astype(dtype)
    compared = np.where(np.arange(_THREADS) % 3 == 0, initial + 1, initial).astype(dtype)
    new = rng.integers(0, 2**16, _THREADS).astype(dtype)
    words = Words(draft, space, initial, np.where(initial == compared, new, initial))
    found = draft.reg(kind)
    draft(atomic.atom_cas(found, f"[{words.mine(initial.itemsize)}]", _operand(draft, compared, words.tid),
                          _operand(draft, new, words.tid), space=space, type=kind))  # fmt: skip
    _old(draft, initial, words.tid, found)
    words.finish()


_HALVES = ("f16", "f16x2", "bf16", "bf16x2")


@microtest(*((kind, space) for kind in _HALVES for space in ("global", "shared", None)))
def atom_half(draft: Draft, kind: Any, space: Any) -> None:
    """Sums of half precision, which keep subnormals."""
    base, count = kind.removesuffix("x2"), 2 if kind.endswith("x2") else 1
    initial, operand = _values(base, _THREADS * count, 98), _values(base, _THREADS * count, 99)
    word: Any = np.uint32 if count == 2 else np.uint16
    after = (initial.astype(np.float64) + operand.astype(np.float64)).astype(_KINDS[base])
    words = Words(draft, space, initial.view(word), after.view(word))
    found = draft.reg(f"b{16 * count}")
    draft(atomic.atom_add_noftz(found, f"[{words.mine(2 * count)}]", _operand(draft, operand.view(word), words.tid),
                                space=space, type=kind))  # fmt: skip
    _old(draft, initial.view(word), words.tid, found)
    words.finish()


@microtest(*_HALVES)
def red_half(draft: Draft, kind: Any) -> None:
    """As atom_half, without the old value."""
    base, count = kind.removesuffix("x2"), 2 if kind.endswith("x2") else 1
    initial, operand = _values(base, _THREADS * count, 98), _values(base, _THREADS * count, 99)
    word: Any = np.uint32 if count == 2 else np.uint16
    after = (initial.astype(np.float64) + operand.astype(np.float64)).astype(_KINDS[base])
    words = Words(draft, "global", initial.view(word), after.view(word))
    draft(atomic.red_add_noftz(f"[{words.mine(2 * count)}]", _operand(draft, operand.view(word), words.tid),
                               space="global", type=kind))  # fmt: skip
    words.finish()


_VECTORS = (
    *(("add", vec, "f32") for vec in ("v2", "v4")),
    *((op, vec, kind) for op in ("add", "min", "max") for kind in ("f16", "bf16") for vec in ("v2", "v4", "v8")),
    *((op, vec, kind) for op in ("add", "min", "max") for kind in ("f16x2", "bf16x2") for vec in ("v2", "v4")),
)  # fmt: skip


@microtest(*((returns, *each) for returns in (True, False) for each in _VECTORS))
def vectors(draft: Draft, returns: bool, op: Any, vec: Any, kind: Any) -> None:
    """Several elements at once, each atomic."""
    base, packed = kind.removesuffix("x2"), 2 if kind.endswith("x2") else 1
    length = int(vec[1:])
    count = _THREADS * length * packed
    initial, operand = _values(base, count, 101), _values(base, count, 102)
    wide = _after(op, initial.astype(np.float64), operand.astype(np.float64)).astype(_KINDS[base])
    size = initial.itemsize * packed
    word: Any = {2: np.uint16, 4: np.uint32}[size]
    before, after, given = (
        np.ascontiguousarray(each).view(word).reshape(_THREADS, length) for each in (initial, wide, operand)
    )
    words = Words(draft, "global", before, after)
    source = draft.offset(draft.input(given), words.tid, length * size)
    type_: Any = f"b{8 * size}"
    sources, found = draft.regs(type_, length), draft.regs(type_, length)
    for number, register in enumerate(sources):
        draft(memory.ld(register, f"[{source}+{number * size}]", space="global", type=type_))
    place = f"[{words.mine(length * size)}]"
    family = "atom" if returns else "red"
    form: Any = getattr(atomic, family + {"f32": "_vector"}.get(
        kind, "_vector_packed" if packed == 2 else "_vector_half"))  # fmt: skip
    options = {} if kind == "f32" else {"op": op}
    operands = (found, place, sources) if returns else (place, sources)
    draft(form(*operands, space="global", vec=vec, type=kind, **options))
    if returns:
        out = draft.offset(draft.output(before), words.tid, length * size)
        for number, register in enumerate(found):
            draft(memory.st(f"[{out}+{number * size}]", register, space="global", type=type_))
    words.finish()


_CONTENDED = tuple(
    (op, kind, space)
    for op, kinds in _TYPES.items() if op != "exch"
    for kind in kinds.split() if kind in ("u32", "b32", "f32", "s64")
    for space in ("global", "shared")
)  # fmt: skip


@microtest(*_CONTENDED)
def contention(draft: Draft, op: Any, kind: Any, space: Any) -> None:
    """All threads on one word: the final value is that of any order."""
    initial = np.zeros(4, _KINDS[kind])
    initial[0] = 20
    if op in ("inc", "dec"):
        operand = np.full(_THREADS, 45, np.uint32)
    else:
        operand = _values(kind, _THREADS, 103)
    value = initial[:1]
    for each in operand:
        value = _after(op, value, np.array([each], _KINDS[kind]))
    expected = initial.copy()
    expected[0] = value[0]
    words = Words(draft, space, initial, expected)
    draft(atomic.red(f"[{words.base}]", _operand(draft, operand, words.tid), space=space, op=op, type=kind))
    draft(barrier.bar_sync(0))
    words.finish()
