"""Loads and stores: types, vectors, state spaces, orders and hints. References from PTX ISA 9.7.9.8 to 9.7.9.11.

Narrow values fill the register that is wider: with the sign for .s types, with zeros otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.inputs import WORDS
from ptxgen.builder import Register
from ptxgen.instr import cache, conversion, memory, move
from ptxgen.instr.model.types import TYPES

_THREADS = 64
KINDS = ("b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f32", "f64", "b128")
_SPACES: tuple[Any, ...] = (None, "global", "shared", "shared::cta", "shared::cluster")


def _bits(kind: str) -> int:
    return TYPES[kind].bits


def _values(kind: str, count: int) -> np.ndarray:
    rng = np.random.default_rng(81)
    if kind == "b128":
        return _values("b64", 2 * count)
    return rng.integers(0, 2 ** _bits(kind), (_THREADS, count), dtype=np.uint64).astype(WORDS[_bits(kind)])


def _widened(kind: str, values: np.ndarray) -> np.ndarray:
    """As registers of 32 or 64 bits hold them."""
    if _bits(kind) >= 64:
        return values
    if kind[0] == "s":
        return values.view(np.dtype(f"i{_bits(kind) // 8}")).astype(np.int32).view(np.uint32)
    return values.astype(np.uint32)


def _register(kind: str) -> str:
    return {"f32": "f32", "f64": "f64", "b128": "b128"}.get(kind, "b64" if _bits(kind) == 64 else "b32")


def _halves(draft: Draft, registers: list[Register]) -> list[Register]:
    """Registers of 128 bits as two each."""
    found: list[Register] = []
    for register in registers:
        if register.type == "b128":
            halves = draft.regs("b64", 2, "half")
            draft(move.mov_unpack(halves, register, type="b128"))
            found += halves
        else:
            found.append(register)
    return found


def _joined(draft: Draft, halves: list[Register]) -> list[Register]:
    """Registers of 128 bits made of two each."""
    found = draft.regs("b128", len(halves) // 2, "whole")
    for number, register in enumerate(found):
        draft(move.mov_pack(register, halves[2 * number : 2 * number + 2], type="b128"))
    return found


def _policy(draft: Draft, options: dict[str, Any]) -> list[Register]:
    """The operand of a cache hint, if any."""
    if not options.get("hint"):
        return []
    made = draft.reg("b64", "policy")
    draft(cache.createpolicy_fractional(made, 0.5, first="evict_first"))
    return [made]


def _place(draft: Draft, space: Any, values: np.ndarray) -> Register:
    """The address of this thread's values, in a state space."""
    size = values[0].nbytes
    if space in (None, "global"):
        return draft.offset(draft.input(values), draft.thread, size)
    box = draft.shared(values.nbytes, 128)
    draft.copy_in(box, values)
    return draft.offset(box, draft.thread, size)


def load(draft: Draft, form: Any, kind: str, space: Any, vec: Any = None, **options: Any) -> None:
    """Load this thread's values, and store what the registers hold."""
    count = int(vec[1:]) if vec else 1
    values = _values(kind, count)
    draft.launch(block=_THREADS)
    tid = draft.thread
    place = _place(draft, space, values)
    registers = draft.regs(_register(kind), count)
    given = registers if vec else registers[0]
    options = {"vec": vec, **options}
    options = {name: value for name, value in options.items() if value is not None}
    draft(form(given, f"[{place}]", *_policy(draft, options), space=space, type=kind, **options))
    expected = _widened(kind, values)
    out = draft.offset(draft.output(expected), tid, expected[0].nbytes)
    for number, register in enumerate(_halves(draft, registers)):
        draft.store(out, register, number * expected.dtype.itemsize)


_VECTORS = [
    (vec, kind)
    for vec in ("v2", "v4", "v8")
    for kind in KINDS
    if kind != "b128"
    if (int(vec[1:]) * _bits(kind) <= 128 and vec != "v8") or (int(vec[1:]) * _bits(kind) == 256)
]


@microtest(*((space, kind) for space in _SPACES for kind in KINDS))
def ld(draft: Draft, space: Any, kind: Any) -> None:
    """Every type from every state space."""
    load(draft, memory.ld, kind, space)


@microtest(
    *((space, vec, kind) for space in ("global", "shared") for vec, kind in _VECTORS),
    only_if=lambda space, vec, kind: space == "global" or int(vec[1:]) * _bits(kind) <= 128,
)
def ld_vector(draft: Draft, space: Any, vec: Any, kind: Any) -> None:
    """Vectors, up to 256 bits in global memory."""
    load(draft, memory.ld, kind, space, vec)


def store(
    draft: Draft, form: Any, kind: str, space: Any, vec: Any = None, *, exact: bool = False, **options: Any
) -> None:
    """Store registers wider than the type, or with `exact` as wide; what lies around stays as it is."""
    count = int(vec[1:]) if vec else 1
    values = _values(kind, count)
    draft.launch(block=_THREADS)
    tid, size = draft.thread, values[0].nbytes
    before = np.full((_THREADS, 2, size), 0xCD, np.uint8).view(values.dtype)
    after = before.copy()
    after[:, 1] = values
    wide = _widened(kind, values)
    if _bits(kind) < 32:
        wide = wide | np.uint32(0xDEAD0000 if _bits(kind) == 16 else 0xDEADBE00)
    source = draft.offset(draft.input(wide), tid, wide[0].nbytes)
    parts = draft.regs("b64" if kind == "b128" else _register(kind), wide.shape[1])
    for number, register in enumerate(parts):
        draft.load_into(register, source, number * wide.dtype.itemsize)
    registers = _joined(draft, parts) if kind == "b128" else parts
    if exact and _bits(kind) < 32:
        narrow: Any = f"u{_bits(kind)}"
        wider, registers = registers, draft.regs(f"b{_bits(kind)}", count)
        for register, source_ in zip(registers, wider, strict=True):
            draft(conversion.cvt(register, source_, dtype=narrow, atype="u32"))
    out = draft.output(after, initial=before)
    is_shared = space not in (None, "global")
    base = out
    if is_shared:
        base = draft.shared(after.nbytes, 128)
        draft.copy_in(base, before)
    place = draft.offset(base, tid, 2 * size)
    given = registers if vec else registers[0]
    options = {name: value for name, value in {"vec": vec, **options}.items() if value is not None}
    draft(form(f"[{place}+{size}]", given, *_policy(draft, options), space=space, type=kind, **options))
    if is_shared:
        draft.copy_out(base, out, after.nbytes)


@microtest(*((space, kind) for space in _SPACES for kind in KINDS))
def st(draft: Draft, space: Any, kind: Any) -> None:
    """Every type to every state space."""
    store(draft, memory.st, kind, space)


@microtest(
    *((space, vec, kind) for space in ("global", "shared") for vec, kind in _VECTORS),
    only_if=lambda space, vec, kind: space == "global" or int(vec[1:]) * _bits(kind) <= 128,
)
def st_vector(draft: Draft, space: Any, vec: Any, kind: Any) -> None:
    """Vectors, up to 256 bits in global memory."""
    store(draft, memory.st, kind, space, vec)


_ELSEWHERE: tuple[Any, ...] = ("const", "local", "param", "param::entry")


@microtest(*((space, kind) for space in _ELSEWHERE for kind in KINDS))
def ld_elsewhere(draft: Draft, space: Any, kind: Any) -> None:
    """Every type from constants, from parameters, and from the thread's own memory."""
    values = _values(kind, 1)
    draft.launch(block=_THREADS)
    tid, size, base = draft.thread, values[0].nbytes, draft.reg("b64", "base")
    if space == "const":
        data = ", ".join(str(byte) for byte in values.tobytes())
        name = draft.variable("const", f".align 16 .b8 NAME[{values.nbytes}] = {{{data}}}", "table")
        draft(move.mov(base, name, type="u64"))
    elif space == "local":
        draft(move.mov(base, draft.variable("local", f".align 16 .b8 NAME[{values.nbytes}]", "own"), type="u64"))
        source = draft.offset(draft.input(values), tid, size)
        for number in range(size):
            byte = draft.reg("b32", "byte")
            draft(memory.ld(byte, f"[{source}+{number}]", space="global", type="u8"))
            draft(memory.st(f"[{draft.offset(base, tid, size)}+{number}]", byte, space="local", type="u8"))
    else:
        draft(move.mov(base, draft.byte_parameter(values), type="u64"))
    register = draft.reg(_register(kind))
    draft(memory.ld(register, f"[{draft.offset(base, tid, size)}]", space=space, type=kind))
    expected = _widened(kind, values)
    out = draft.offset(draft.output(expected), tid, expected[0].nbytes)
    for number, part in enumerate(_halves(draft, [register])):
        draft.store(out, part, number * expected.dtype.itemsize)


@microtest(*KINDS)
def st_local(draft: Draft, kind: Any) -> None:
    """Every type to the thread's own memory; what lies around stays as it is."""
    values = _values(kind, 1)
    draft.launch(block=_THREADS)
    tid, size, base = draft.thread, values[0].nbytes, draft.reg("b64", "base")
    draft(move.mov(base, draft.variable("local", ".align 16 .b8 NAME[64]", "own"), type="u64"))
    for number in range(8):
        draft(memory.st(f"[{base}+{8 * number}]", 0x0123456789ABCDEF, space="local", type="b64"))
    source = draft.offset(draft.input(values), tid, size)
    parts = draft.regs("b64" if kind == "b128" else _register(kind), values.shape[1])
    for number, part in enumerate(parts):
        plain: Any = "b64" if kind == "b128" else kind
        draft(memory.ld(part, f"[{source}+{8 * number}]", space="global", type=plain))
    register = _joined(draft, parts)[0] if kind == "b128" else parts[0]
    draft(memory.st(f"[{base}+{16}]", register, space="local", type=kind))
    after = np.tile(np.full(8, 0x0123456789ABCDEF, np.uint64).view(np.uint8), (_THREADS, 1))
    after[:, 16 : 16 + size] = values.view(np.uint8).reshape(_THREADS, size)
    out = draft.offset(draft.output(after), tid, 64)
    for number in range(8):
        word = draft.reg("b64")
        draft(memory.ld(word, f"[{base}+{8 * number}]", space="local", type="b64"))
        draft.store(out, word, 8 * number)


@microtest("param", "param::func")
def of_functions(draft: Draft, space: Any) -> None:
    """What a function is given, and gives back, in .param memory."""
    draft.launch(block=_THREADS)
    tid, found = draft.thread, draft.reg("b32")
    draft.item(f""".func (.param .b32 r) ENTRY_f(.param .b32 a, .param .b16 b)
{{ .reg .b32 %a; .reg .b16 %b; ld.{space}.b32 %a, [a]; ld.{space}.u16 %b, [b]; mad.wide.u16 %a, %b, 3, %a;
  st.{space}.b32 [r], %a; ret; }}""")
    draft.text("{ .param .b32 x; .param .b16 y; .param .b32 z; .reg .b16 %small;")
    draft.text(f"cvt.u16.u32 %small, {tid};")
    draft.raw(f"st.{space}.b32 [x], {tid};", memory.st)
    draft.raw(f"st.{space}.b16 [y], %small;", memory.st)
    draft.text(f"call (z), {draft.entry}_f, (x, y);")
    draft.raw(f"ld.{space}.b32 {found}, [z];", memory.ld)
    draft.text("}")
    draft.store(draft.offset(draft.output(np.arange(_THREADS, dtype=np.uint32) * 4), tid, 4), found)


@microtest(
    *(
        (generic, size, which)
        for generic in (False, True)
        for size in (8, 64, 1024)
        for which in ("", "weak", "32", "32 weak")
    )
)
def st_bulk(draft: Draft, generic: bool, size: int, which: str) -> None:
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
    space: Any = None if generic else "shared::cta"
    weak = which.endswith("weak")
    if which.startswith("32"):
        draft(memory.st_bulk_32(f"[{place}+16]", draft.scalar("u32", size), 0, space=space, weak=weak))
    else:
        draft(memory.st_bulk(f"[{place}+16]", draft.scalar("u64", size), 0, space=space, weak=weak))
    draft.place(end)
    draft.copy_out(box, draft.output(after), 2048)
