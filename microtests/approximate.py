"""Approximate functions by hashes: 64 chunks of operands that begin with the same 6 bits, 1,024 operands of each.

Lane l of warp c hashes the results of 32 operands that begin with c: a bit that differs on another chip is
located within 32 operands. Expected is what an H200 computes (tests/data/silicon/functions_h200.npz).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.script import like
from ptxgen.builder import Register
from ptxgen.emulator.arithmetic import functions, special
from ptxgen.emulator.arithmetic.formats import FORMATS
from ptxgen.instr import control, conversion, floating, half, integer, logic, move, predicate
from ptxgen.instr.model.form import Instruction

_Words = NDArray[np.uint32]

CHUNKS, LANES, ROUNDS = 64, 32, 32
#: A lane's operand in round r has the low 26 bits of (32 r + lane) * _STEP >> 6.
_STEP, _HASH = 0x9E3779B1, 0x01000193
#: Second operands of divisions, and lower words of .f64: n * _STEP + _OTHER.
_OTHER = 0x7F4A7C15


def _operands() -> _Words:
    """The words of all operands: by chunk and lane, and by round."""
    chunk, round, lane = np.ogrid[:CHUNKS, :ROUNDS, :LANES]
    low = (((32 * round + lane) * _STEP) & 0xFFFFFFFF) >> 6
    return (chunk << 26 | low).transpose(0, 2, 1).reshape(CHUNKS * LANES, ROUNDS).astype(np.uint32)


def _hashed(words: list[_Words]) -> _Words:
    """The hash of each lane, of the words of its rounds in order."""
    total = np.zeros(CHUNKS * LANES, np.uint32)
    for round in range(ROUNDS):
        for each in words:
            total = (total ^ each[:, round]) * np.uint32(_HASH)
    return total


def _doubles(function: Callable[[Any], Any]) -> Callable[[Any, _Words], list[_Words]]:
    def compute(made: Any, n: _Words) -> list[_Words]:
        low = n * np.uint32(_STEP) + np.uint32(_OTHER)
        found = function((n.astype(np.uint64) << np.uint64(32) | low).view(np.float64)).view(np.uint64)
        return [found.astype(np.uint32), (found >> np.uint64(32)).astype(np.uint32)]

    return compute


def _halves(function: Callable[[Any], Any]) -> Callable[[Any, _Words], list[_Words]]:
    def compute(made: Any, n: _Words) -> list[_Words]:
        kind = FORMATS[made.type.removesuffix("x2")]
        low, high = (functions.of_half(function, part, kind).astype(np.uint32) for part in (n & 0xFFFF, n >> 16))
        return [low | high << np.uint32(16) if made.type.endswith("x2") else high]

    return compute


def _singles(function: Callable[..., Any]) -> Callable[[Any, _Words], list[_Words]]:
    def compute(made: Any, n: _Words) -> list[_Words]:
        return [function(n.view(np.float32), getattr(made, "ftz", False)).view(np.uint32)]

    return compute


def _angles(function: Callable[..., Any], of_turns: Callable[..., Any]) -> Callable[[Any, _Words], list[_Words]]:
    return lambda made, n: _singles(of_turns if made.two_pi else function)(made, n)


def _quotients(function: Callable[..., Any]) -> Callable[[Any, _Words], list[_Words]]:
    def compute(made: Any, n: _Words) -> list[_Words]:
        other = n * np.uint32(_STEP) + np.uint32(_OTHER)
        return [function(n.view(np.float32), other.view(np.float32), made.ftz).view(np.uint32)]

    return compute


_RESULTS: dict[type[Instruction], Callable[[Any, _Words], list[_Words]]] = {
    floating.rcp_approx: _singles(functions.reciprocal),
    floating.sqrt_approx: _singles(functions.root),
    floating.rsqrt: _singles(functions.reciprocal_root),
    floating.lg2: _singles(functions.logarithm),
    floating.ex2: _singles(functions.power),
    floating.tanh: _singles(functions.hyperbolic_tangent),
    floating.sin: _angles(functions.sine, functions.sine_of_turns),
    floating.cos: _angles(functions.cosine, functions.cosine_of_turns),
    floating.div_approx: _quotients(functions.divide_fast),
    floating.div_full: _quotients(functions.divide_full),
    floating.rcp_approx_f64: _doubles(lambda a: functions.upper_half(special.upper_reciprocal, a)),
    floating.rsqrt_ftz_f64: _doubles(lambda a: functions.upper_half(special.upper_reciprocal_root, a)),
    floating.rsqrt_f64: _doubles(functions.reciprocal_root_f64),
    half.tanh: _halves(special.hyperbolic_tangent),
    half.ex2: _halves(special.power),
    half.ex2_bf16: _halves(special.power),
}


class _Form:
    """A form, whose name in a definition's is its opcode."""

    def __init__(self, made: Any) -> None:
        self.made = made

    def __str__(self) -> str:
        return self.made.opcode_text


def _words_of(draft: Draft, made: Any, n: Register) -> list[Register]:
    """The instruction on operand n, and the words of its result."""
    kind = getattr(made, "type", "f64" if "f64" in made.opcode_text else "f32")
    if kind in ("f16", "bf16"):
        a, d, wide = draft.reg("b16", "a"), draft.reg("b16", "d"), draft.reg("b32", "wide")
        high = draft.reg("b32", "high")
        draft(logic.shr(high, n, 16, type="b32"), conversion.cvt(a, high, dtype="u16", atype="u32"))
        draft(like(made, d, a), conversion.cvt(wide, d, dtype="u32", atype="u16"))
        return [wide]
    if kind == "f64":
        low, a, d = draft.reg("b32", "low"), draft.reg("f64", "a"), draft.reg("f64", "d")
        words = draft.regs("b32", 2, "word")
        draft(integer.mad(low, n, _STEP, _OTHER, type="u32", half="lo"), move.mov_pack(a, [low, n], type="b64"))
        draft(like(made, d, a), move.mov_unpack(words, d, type="b64"))
        return words
    if kind.endswith("x2"):
        d = draft.reg("b32", "d")
        draft(like(made, d, n))
        return [d]
    a, d, word = draft.reg("f32", "a"), draft.reg("f32", "d"), draft.reg("b32", "word")
    operands = [a]
    draft(move.mov(a, n, type="b32"))
    if "b" in made.form.operands:
        other, b = draft.reg("b32", "other"), draft.reg("f32", "b")
        draft(integer.mad(other, n, _STEP, _OTHER, type="u32", half="lo"), move.mov(b, other, type="b32"))
        operands.append(b)
    draft(like(made, d, *operands), move.mov(word, d, type="b32"))
    return [word]


@microtest(*(_Form(made) for form in _RESULTS for made in form.variants()))
def hashes(draft: Draft, form: _Form) -> None:
    draft.launch(grid=CHUNKS, block=LANES)
    count, hash, chunk = draft.reg("b32", "count"), draft.reg("b32", "hash"), draft.special("ctaid.x")
    top, at = draft.reg("b32", "top"), draft.reg("b32", "at")
    draft(logic.shl(top, chunk, 26, type="b32"), integer.mad(at, chunk, LANES, draft.thread, type="u32", half="lo"))
    draft(integer.add(count, draft.thread, draft.zero(), type="u32"), integer.add(hash, draft.zero(), 0, type="u32"))
    again, more = draft.label("again"), draft.reg("pred", "more")
    draft.place(again)
    n = draft.reg("b32", "n")
    draft(integer.mul(n, count, _STEP, type="u32", half="lo"), logic.shr(n, n, 6, type="b32"))
    draft(logic.or_(n, n, top, type="b32"))
    for word in _words_of(draft, form.made, n):
        draft(logic.xor(hash, hash, word, type="b32"), integer.mul(hash, hash, _HASH, type="u32", half="lo"))
    draft(integer.add(count, count, LANES, type="u32"))
    draft(predicate.setp(more, count, LANES * ROUNDS, compare="lt", type="u32"), control.bra(again).when(more))
    expected = lambda: _expected(form.made)  # noqa: E731
    out = draft.output(expected, shape=(CHUNKS * LANES,), dtype=np.uint32)
    draft.store(draft.offset(out, at, 4), hash)


def _expected(made: Any) -> _Words:
    with np.errstate(all="ignore"):
        return _hashed(_RESULTS[type(made)](made, _operands()))
