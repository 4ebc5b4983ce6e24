"""Atomic operations. References from PTX ISA 9.7.13.5 and 9.7.13.6.

Each thread works on a word of its own, which makes old values predictable; then all of them on one word.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft, Tolerance
from microtests.harness.inputs import words
from microtests.harness.numbers import FORMATS, add, decode, encode
from ptxgen.builder import Register
from ptxgen.instr import atomic, barrier, cache, memory, move

_THREADS = 64
_SPACES: tuple[Any, ...] = (None, "global", "shared", "shared::cta", "shared::cluster")
_TYPES = {
    "and": "b32 b64",
    "or": "b32 b64",
    "xor": "b32 b64",
    "exch": "b32 b64",
    "add": "u32 s32 u64 f32 f64",
    "inc": "u32",
    "dec": "u32",
    "min": "u32 s32 u64 s64",
    "max": "u32 s32 u64 s64",
}
_KINDS: dict[str, Any] = {
    "u32": np.uint32,
    "s32": np.int32,
    "b32": np.uint32,
    "u64": np.uint64,
    "s64": np.int64,
    "b64": np.uint64,
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
}


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
            "and": np.bitwise_and,
            "or": np.bitwise_or,
            "xor": np.bitwise_xor,
            "add": np.add,
            "min": np.minimum,
            "max": np.maximum,
        }[op](old, new)


class Words:
    """Words of memory in a state space that the threads work on, each on its own; then they are compared."""

    def __init__(
        self, draft: Draft, space: Any, initial: np.ndarray, expected: np.ndarray, tolerance: Tolerance | None = None
    ) -> None:
        self.draft, self.space, self.size = draft, space, initial.nbytes
        draft.launch(block=_THREADS)
        self.tid = draft.thread
        self.out = draft.output(expected, initial=initial, tolerance=tolerance)
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
    held = Words(draft, space, initial, _after(op, initial, operand))
    found = draft.reg(f"b{initial.itemsize * 8}")
    draft(
        atomic.atom(
            found, f"[{held.mine(initial.itemsize)}]", _operand(draft, operand, held.tid), space=space, op=op, type=kind
        )
    )
    _old(draft, initial, held.tid, found)
    held.finish()


@microtest(
    *(
        (op, kind, space)
        for op, kinds in _TYPES.items()
        if op != "exch"
        for kind in kinds.split()
        for space in ("global", "shared")
    )
)
def red(draft: Draft, op: Any, kind: Any, space: Any) -> None:
    """Without the old value."""
    initial, operand = _values(kind, _THREADS, 93), _values(kind, _THREADS, 94)
    held = Words(draft, space, initial, _after(op, initial, operand))
    draft(
        atomic.red(
            f"[{held.mine(initial.itemsize)}]", _operand(draft, operand, held.tid), space=space, op=op, type=kind
        )
    )
    held.finish()


@microtest(
    *(
        (sem, scope)
        for sem in ("relaxed", "acquire", "release", "acq_rel")
        for scope in ("cta", "cluster", "gpu", "sys")
    )
)
def orders(draft: Draft, sem: Any, scope: Any) -> None:
    """Orders and scopes."""
    initial, operand = _values("u32", _THREADS, 95), _values("u32", _THREADS, 96)
    held = Words(draft, "global", initial, initial + operand)
    found = draft.reg("b32")
    draft(
        atomic.atom(
            found,
            f"[{held.mine(4)}]",
            _operand(draft, operand, held.tid),
            sem=sem,
            scope=scope,
            space="global",
            op="add",
            type="u32",
        )
    )
    _old(draft, initial, held.tid, found)
    held.finish()


@microtest(*((kind, space) for kind in ("b16", "b32", "b64") for space in _SPACES))
def cas(draft: Draft, kind: Any, space: Any) -> None:
    """Where the value is the one that is compared with, and where it is not."""
    dtype: Any = {"b16": np.uint16, "b32": np.uint32, "b64": np.uint64}[kind]
    rng = np.random.default_rng(97)
    initial = rng.integers(0, 2**16, _THREADS).astype(dtype)
    compared = np.where(np.arange(_THREADS) % 3 == 0, initial + 1, initial).astype(dtype)
    new = rng.integers(0, 2**16, _THREADS).astype(dtype)
    held = Words(draft, space, initial, np.where(initial == compared, new, initial))
    found = draft.reg(kind)
    draft(
        atomic.atom_cas(
            found,
            f"[{held.mine(initial.itemsize)}]",
            _operand(draft, compared, held.tid),
            _operand(draft, new, held.tid),
            space=space,
            type=kind,
        )
    )
    _old(draft, initial, held.tid, found)
    held.finish()


_HALVES = ("f16", "f16x2", "bf16", "bf16x2")


@microtest(*((kind, space) for kind in _HALVES for space in ("global", "shared", None)))
def atom_half(draft: Draft, kind: Any, space: Any) -> None:
    """Sums of half precision, which keep subnormals."""
    base, count = kind.removesuffix("x2"), 2 if kind.endswith("x2") else 1
    initial, operand = _values(base, _THREADS * count, 98), _values(base, _THREADS * count, 99)
    word: Any = np.uint32 if count == 2 else np.uint16
    after = (initial.astype(np.float64) + operand.astype(np.float64)).astype(_KINDS[base])
    held = Words(draft, space, initial.view(word), after.view(word))
    found = draft.reg(f"b{16 * count}")
    draft(
        atomic.atom_add_noftz(
            found, f"[{held.mine(2 * count)}]", _operand(draft, operand.view(word), held.tid), space=space, type=kind
        )
    )
    _old(draft, initial.view(word), held.tid, found)
    held.finish()


@microtest(*_HALVES)
def red_half(draft: Draft, kind: Any) -> None:
    """As atom_half, without the old value."""
    base, count = kind.removesuffix("x2"), 2 if kind.endswith("x2") else 1
    initial, operand = _values(base, _THREADS * count, 98), _values(base, _THREADS * count, 99)
    word: Any = np.uint32 if count == 2 else np.uint16
    after = (initial.astype(np.float64) + operand.astype(np.float64)).astype(_KINDS[base])
    held = Words(draft, "global", initial.view(word), after.view(word))
    draft(
        atomic.red_add_noftz(
            f"[{held.mine(2 * count)}]", _operand(draft, operand.view(word), held.tid), space="global", type=kind
        )
    )
    held.finish()


_VECTORS = (
    *(("add", vec, "f32") for vec in ("v2", "v4")),
    *((op, vec, kind) for op in ("add", "min", "max") for kind in ("f16", "bf16") for vec in ("v2", "v4", "v8")),
    *((op, vec, kind) for op in ("add", "min", "max") for kind in ("f16x2", "bf16x2") for vec in ("v2", "v4")),
)


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
    held = Words(draft, "global", before, after)
    source = draft.offset(draft.input(given), held.tid, length * size)
    type_: Any = f"b{8 * size}"
    sources, found = draft.regs(type_, length), draft.regs(type_, length)
    for number, register in enumerate(sources):
        draft(memory.ld(register, f"[{source}+{number * size}]", space="global", type=type_))
    place = f"[{held.mine(length * size)}]"
    family = "atom" if returns else "red"
    form: Any = getattr(
        atomic, family + {"f32": "_vector"}.get(kind, "_vector_packed" if packed == 2 else "_vector_half")
    )
    options = {} if kind == "f32" else {"op": op}
    operands = (found, place, sources) if returns else (place, sources)
    draft(form(*operands, space="global", vec=vec, type=kind, **options))
    if returns:
        out = draft.offset(draft.output(before), held.tid, length * size)
        for number, register in enumerate(found):
            draft(memory.st(f"[{out}+{number * size}]", register, space="global", type=type_))
    held.finish()


_CONTENDED = tuple(
    (op, kind, space)
    for op, kinds in _TYPES.items()
    if op != "exch"
    for kind in kinds.split()
    if kind in ("u32", "b32", "f32", "s64")
    for space in ("global", "shared")
)


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
    held = Words(draft, space, initial, expected)
    draft(atomic.red(f"[{held.base}]", _operand(draft, operand, held.tid), space=space, op=op, type=kind))
    draft(barrier.bar_sync(0))
    held.finish()


# Every form with each order and scope, a policy, and a generic address.

#: By form: modifiers, and the operation.
_FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "atom": ({"op": "max", "type": "s32"}, "max"),
    "atom_cas": ({"type": "b32"}, "exch"),
    "atom_add_noftz": ({"type": "f16x2"}, "add"),
    "atom_vector": ({"vec": "v2", "type": "f32"}, "add"),
    "atom_vector_half": ({"op": "min", "vec": "v2", "type": "bf16"}, "min"),
    "atom_vector_packed": ({"op": "max", "vec": "v4", "type": "f16x2"}, "max"),
    "red": ({"op": "xor", "type": "b64"}, "xor"),
    "red_add_noftz": ({"type": "bf16"}, "add"),
    "red_vector": ({"vec": "v4", "type": "f32"}, "add"),
    "red_vector_half": ({"op": "max", "vec": "v8", "type": "f16"}, "max"),
    "red_vector_packed": ({"op": "add", "vec": "v2", "type": "bf16x2"}, "add"),
}
_ORDERS = (
    ("relaxed", "cta"),
    ("release", "gpu"),
    ("acquire", "cluster"),
    ("acq_rel", "sys"),
    ("relaxed", "cluster"),
    ("release", "sys"),
)


def _combined(
    draft: Draft,
    name: str,
    modifiers: dict[str, Any],
    op: str,
    space: Any,
    initial: np.ndarray,
    operand: np.ndarray,
    after: np.ndarray,
    *,
    tolerance: Tolerance | None = None,
    **options: Any,
) -> None:
    """A form on elements [threads, n]: each thread combines its own; what was there before comes back from atom."""
    kind = modifiers["type"]
    size = 4 if kind.endswith("x2") else initial.itemsize
    word: Any = {2: np.uint16, 4: np.uint32, 8: np.uint64}[size]
    before, given, expected = (np.ascontiguousarray(each).view(word) for each in (initial, operand, after))
    held = Words(draft, space, before, expected, tolerance)
    length = before.shape[1]
    register: Any = f"b{8 * size}"
    source = draft.offset(draft.input(given), held.tid, length * size)
    sources, found = draft.regs(register, length), draft.regs(register, length)
    for number, each in enumerate(sources):
        draft(memory.ld(each, f"[{source}+{number * size}]", space="global", type=register))
    vector = "vec" in modifiers
    returns = name.startswith("atom")
    operands: list[Any] = [found if vector else found[0]] if returns else []
    operands += [f"[{held.mine(length * size)}]", sources if vector else sources[0]]
    if name == "atom_cas":
        operands[-1:] = [draft.scalar("u32", int(before[3, 0])), sources[0]]
    if options.get("hint"):
        policy = draft.reg("b64", "policy")
        draft(cache.createpolicy_fractional(policy, 1.0, first="evict_first"))
        operands.append(policy)
    draft(getattr(atomic, name)(*operands, space=space, **modifiers, **options))
    if returns:
        out = draft.offset(draft.output(before), held.tid, length * size)
        for number, each in enumerate(found):
            draft(memory.st(f"[{out}+{number * size}]", each, space="global", type=register))
    held.finish()


def _of_form(draft: Draft, name: str, space: Any, **options: Any) -> None:
    modifiers, op = _FORMS[name]
    kind = modifiers["type"]
    base = kind.removesuffix("x2")
    shape = (_THREADS, (2 if kind.endswith("x2") else 1) * int(modifiers.get("vec", "v1")[1:]))
    initial, operand = (_values(base, shape[0] * shape[1], seed).reshape(shape) for seed in (104, 105))
    if base in ("f16", "bf16"):
        wide = _after(op, initial.astype(np.float64), operand.astype(np.float64)).astype(_KINDS[base])
    else:
        wide = _after(op, initial, operand)
    if name == "atom_cas":
        wide = np.where(initial == initial[3], operand, initial)
    _combined(draft, name, modifiers, op, space, initial, operand, wide, **options)


@microtest(
    *((name, sem, scope) for name in _FORMS for sem, scope in _ORDERS if name.startswith("atom") or "acq" not in sem)
)
def form_orders(draft: Draft, name: str, sem: Any, scope: Any) -> None:
    """Orders and scopes."""
    _of_form(draft, name, "global", sem=sem, scope=scope)


@microtest(*((name, hint) for name in _FORMS for hint in (False, True) if not hint or name != "atom_cas"))
def form_generic(draft: Draft, name: str, hint: bool) -> None:
    """A generic address, with and without a policy for the cache."""
    _of_form(draft, name, None, **({"hint": True} if hint else {}))


@microtest(
    *(
        (name, space)
        for name in ("atom_add_noftz", "red", "red_add_noftz")
        for space in ("shared", "shared::cta", "shared::cluster")
    )
)
def form_shared(draft: Draft, name: str, space: Any) -> None:
    """Shared memory."""
    _of_form(draft, name, space)


@microtest(*((which, space) for which in ("exch", "cas") for space in _SPACES))
def b128(draft: Draft, which: str, space: Any) -> None:
    """128 bits at once."""
    rng = np.random.default_rng(106)
    initial, new = (rng.integers(0, 2**64, (_THREADS, 2), dtype=np.uint64) for _ in range(2))
    compared = initial.copy()
    if which == "cas":
        compared[::3, 1] ^= np.uint64(1) << np.uint64(63)
        compared[1::5, 0] ^= np.uint64(1)
    same = (compared == initial).all(1)[:, None]
    held = Words(draft, space, initial, np.where(same, new, initial))
    given = []
    for values in (compared, new) if which == "cas" else (new,):
        at, halves, whole = draft.offset(draft.input(values), held.tid, 16), draft.regs("b64", 2), draft.reg("b128")
        draft(memory.ld(halves, f"[{at}]", space="global", vec="v2", type="b64"))
        draft(move.mov_pack(whole, halves, type="b128"))
        given.append(whole)
    found, halves = draft.reg("b128"), draft.regs("b64", 2)
    place = f"[{held.mine(16)}]"
    if which == "cas":
        draft(atomic.atom_cas(found, place, *given, space=space, type="b128"))
    else:
        draft(atomic.atom(found, place, *given, space=space, op="exch", type="b128"))
    draft(move.mov_unpack(halves, found, type="b128"))
    out = draft.offset(draft.output(initial), held.tid, 16)
    draft(memory.st(f"[{out}]", halves, space="global", vec="v2", type="b64"))
    held.finish()


@microtest(
    *(
        (name, kind, vec, space)
        for name in ("atom", "red")
        for space in ("global", "shared")
        for kind in ("f32", "f64", "f16", "bf16", "f32.noftz")
        for vec in (None, "v4")
        if vec is None or (space == "global" and kind != "f64")
    )
)
def rounding(draft: Draft, name: str, kind: str, vec: Any, space: Any) -> None:
    """Sums of any floats: rounded to nearest; of .f32 in global memory subnormal numbers are zeros, unless .noftz."""
    base, _, noftz = kind.partition(".")
    format, bits = FORMATS[base], FORMATS[base].bits
    shape = (_THREADS, int(vec[1:]) if vec else 1)
    rng = np.random.default_rng(107)
    initial, operand = (words(base, bits, shape[0] * shape[1], rng).reshape(shape) for _ in range(2))
    infinity, quiet = format.infinity, 1 << (format.fraction - 1)
    pairs = [
        (infinity, infinity | format.sign),
        (infinity + 1, infinity + quiet + 2),
        (infinity + quiet + 3, 0),
        (1, infinity | format.sign | 4),
        (infinity + quiet + 5, infinity + 6),
    ]
    initial[: len(pairs), 0], operand[: len(pairs), 0] = zip(*pairs, strict=True)
    ftz = base == "f32" and space == "global" and not noftz
    after = np.array(
        [
            encode(add(decode(int(x), format, ftz), decode(int(y), format, ftz), "rn"), format, ftz=ftz)
            for x, y in zip(initial.reshape(-1), operand.reshape(-1), strict=True)
        ],
        initial.dtype,
    ).reshape(shape)
    plain = base in ("f32", "f64")
    form = (
        f"{name}_vector" + ("" if plain else "_half") if vec else name if plain and not noftz else f"{name}_add_noftz"
    )
    modifiers: dict[str, Any] = {"type": base}
    if vec:
        modifiers["vec"] = vec
    if vec and plain:
        modifiers["noftz"] = bool(noftz)
    if form in ("atom", "red", "atom_vector_half", "red_vector_half"):
        modifiers["op"] = "add"
    nan = Tolerance("PTX leaves the payload of .f64 NaNs open", np.float64) if base == "f64" else None
    _combined(draft, form, modifiers, "add", space, initial, operand, after, tolerance=nan)


_UNAWAITED = (("red_async_release", "gpu"), ("red_async_release", "sys"), ("red_async_mmio", "sys"))


@microtest(*((name, scope, space, op, kind) for name, scope in _UNAWAITED
             for op, kinds in (("and", "b32"), ("or", "b32"), ("xor", "b32"), ("add", "u32 s32 u64 s64"),
                               ("inc", "u32"), ("dec", "u32"), ("min", "u32 s32"), ("max", "u32 s32"))
             for kind in kinds.split() for space in (("global", None) if op == "add" else ("global",))))  # fmt: skip
def red_async(draft: Draft, name: str, scope: Any, space: Any, op: Any, kind: Any) -> None:
    """Reductions that nobody waits for; the end of the kernel does."""
    initial, operand = (_values(kind, _THREADS, seed)[:, None] for seed in (108, 109))
    _combined(
        draft, name, {"op": op, "type": kind}, op, space, initial, operand, _after(op, initial, operand), scope=scope
    )
