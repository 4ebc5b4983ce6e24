"""Conversion between types. PTX ISA 9.7.9 (cvt)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_args

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.dtypes import scalar_type
from ptxgen.emulator.arithmetic.exact import two_sum
from ptxgen.emulator.arithmetic.formats import FORMATS, Format, decode, encode
from ptxgen.emulator.arithmetic.single import canonical, flush, flush_rounded, round_f32
from ptxgen.emulator.arrays import count_nonzero
from ptxgen.emulator.load.operands import Binder, Unmodelled, numpy_type
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.state.group import Group
from ptxgen.instr import conversion
from ptxgen.instr.model.types import TYPES

_FLOATS: dict[str, Any] = {name: scalar_type(name) for name in ("f16", "bf16", "f32", "f64")}
_TO_INTEGER = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def narrow(value: NDArray[Any], dtype: str, rounding: str) -> NDArray[Any]:
    """A .f32 or .f64 array in a shorter float type, rounded as the modifier says. NaN stays NaN."""
    target = _FLOATS[dtype]
    if rounding == "rn" and value.dtype == np.float32:
        return value.astype(target)
    wide = value.astype(np.float64)
    if dtype == "f32":
        return round_f32(wide, np.zeros_like(wide), rounding)
    if value.dtype == np.float64:
        # To 16 bits by way of .f32 would round twice; rounding to odd there makes the second one right.
        first = round_f32(wide, np.zeros_like(wide), "rz")
        lost = first.astype(np.float64) != wide
        even = (first.view(np.uint32) & np.uint32(1)) == 0
        value = np.where(
            lost & even & np.isfinite(wide), (first.view(np.uint32) | np.uint32(1)).view(np.float32), first
        )
    nearest = value.astype(np.float32).astype(target)
    if rounding == "rn":
        return nearest
    back = nearest.astype(np.float64)
    bits = nearest.view(np.uint16)
    larger = np.abs(back) > np.abs(wide)
    above = (back > wide) & np.isfinite(wide) if rounding in ("rm", "rz") else np.zeros(wide.shape, np.bool_)
    below = (back < wide) & np.isfinite(wide) if rounding in ("rp", "rz") else np.zeros(wide.shape, np.bool_)
    if rounding == "rz":
        above, below = larger & np.isfinite(wide), np.zeros(wide.shape, np.bool_)
    # One step in magnitude is one step of the bit pattern; crossing zero goes to the smallest value of the other sign.
    negative = np.signbit(back)
    step = np.where(above | below, np.where((above & ~negative) | (below & negative) | (rounding == "rz"), -1, 1), 0)
    moved = (bits.astype(np.int32) + step).astype(np.uint16)
    zero = back == 0
    moved = np.where(zero & above, np.uint16(0x8001), np.where(zero & below, np.uint16(0x0001), moved))
    return moved.view(target)


def _saturated(value: NDArray[Any], dtype: str) -> NDArray[Any]:
    clipped = np.clip(value, 0, 1).astype(_FLOATS[dtype])
    return np.where(np.isnan(value) | (clipped == 0), _FLOATS[dtype](0), clipped)  # -0 becomes +0


@semantics(conversion.cvt)
def convert(op: conversion.cvt, binder: Binder, statement: syntax.Instruction) -> Plain:
    source_float, target_float = op.atype in _FLOATS, op.dtype in _FLOATS
    read = binder.source(op.a, op.atype)
    write = binder.destination(op.d, op.dtype)
    stored = numpy_type(TYPES[op.dtype])

    def value_of(g: Group) -> NDArray[Any]:
        value = np.asarray(read(g))
        if op.atype == "bf16":
            value = value.view(ml_dtypes.bfloat16)
        if source_float and op.atype in ("f16", "bf16"):
            value = value.astype(np.float32)
        # .ftz does not reach .f32 inputs that become .f16 (measured, H200, 2026-11-20).
        return canonical(flush(value)) if op.ftz and op.atype == "f32" and op.dtype != "f16" else value

    if not target_float:
        limits = np.iinfo(stored)
        if source_float:
            assert op.rounding is not None  # a rule of cvt
            rounded = _TO_INTEGER[op.rounding]

            def to_integer(g: Group) -> None:
                # Out of range gives the nearest limit; NaN gives 0, from .f64 or to 64 bits the top bit alone (cvt).
                exact = rounded(value_of(g).astype(np.float64))
                inside = np.clip(exact, float(limits.min), float(limits.max))
                nan = np.isnan(exact)
                result = np.where(nan, 0.0, inside)
                if limits.bits == 64:
                    low, high = exact <= float(limits.min), exact >= float(limits.max)
                    safe = np.where(low | high | nan, 0.0, exact).astype(stored)
                    whole = np.where(low, limits.min, np.where(high, limits.max, safe)).astype(stored)
                else:
                    whole = result.astype(stored)
                if op.atype == "f64" or limits.bits == 64:
                    whole = np.where(nan, np.array(1 << (limits.bits - 1), f"u{stored.itemsize}").view(stored), whole)
                write(g, whole)

            return to_integer

        def between_integers(g: Group) -> None:
            value = value_of(g)
            if op.sat:
                low = max(int(limits.min), int(np.iinfo(value.dtype).min))
                high = min(int(limits.max), int(np.iinfo(value.dtype).max))
                value = np.clip(value, value.dtype.type(low), value.dtype.type(high))
            write(g, value.astype(stored))

        return between_integers

    def to_float(g: Group) -> None:
        value = value_of(g)
        if not source_float:
            assert op.rounding is not None  # a rule of cvt
            if op.dtype == "f64":
                result = value.astype(np.float64) if op.rounding == "rn" else _integer_to_f64(value, op.rounding)
            else:
                result = _integer_to_float(value, op.dtype, op.rounding)
        elif op.rounding in _TO_INTEGER:
            result = _TO_INTEGER[op.rounding](value).astype(_FLOATS[op.dtype])
        elif TYPES[op.dtype].bits > TYPES[op.atype].bits or op.rounding is None:  # exact, whatever the rounding
            result = value.astype(_FLOATS[op.dtype])
        else:
            result = narrow(value, op.dtype, op.rounding)
        result = _nan_of(result, value, op)
        if op.ftz and op.dtype == "f32" and op.atype == "f64":
            wide = value.astype(np.float64)
            flushed = flush_rounded(result, wide, np.zeros_like(wide), op.rounding or "rn")
            result = np.where(np.isnan(wide), result, flushed)
        elif op.ftz and op.dtype == "f32":
            result = flush(result)
        if op.sat:
            result = _saturated(result, op.dtype)
        if op.pzo:
            result = np.where(result == 0, result.dtype.type(0), result)
        write(g, result.view(stored) if result.dtype.itemsize == stored.itemsize else result)

    return to_float


def _nan_of(result: NDArray[Any], value: NDArray[Any], op: conversion.cvt) -> NDArray[Any]:
    """The NaNs of a conversion to float (measured, H200, 2026-11-20).

    From .f64 they keep sign and leading payload bits, quiet. Otherwise 16-bit results, and .f32 results that round to
    an integer, come from .f16 or have .ftz, are the canonical NaN; other .f32 and .f64 results keep their payload.
    """
    if op.atype == "f64":
        if result.dtype.itemsize != 2:
            return result
        bits = np.asarray(value).astype(np.float64).view(np.uint64)
        fraction = 10 if op.dtype == "f16" else 7
        top = (bits >> np.uint64(52 - fraction)).astype(np.uint16) & np.uint16((1 << fraction) - 1)
        sign = (bits >> np.uint64(48)).astype(np.uint16) & np.uint16(0x8000)
        quiet = np.uint16(0x7E00 if op.dtype == "f16" else 0x7FC0)
        return np.where(np.isnan(value), (sign | quiet | top).view(result.dtype), result)
    if result.dtype.itemsize == 2:
        return np.where(np.isnan(result), np.uint16(0x7FFF).view(result.dtype), result)
    if op.dtype == "f32" and (op.ftz or op.atype == "f16" or op.rounding in _TO_INTEGER):
        return canonical(result)
    return result


def _integer_to_f64(value: NDArray[Any], rounding: str) -> NDArray[np.float64]:
    if value.dtype.itemsize < 8:
        return value.astype(np.float64)
    total, error = _nearest_and_rest(value)
    down = (error < 0) & ((rounding == "rm") | ((rounding == "rz") & (total > 0)))
    up = (error > 0) & ((rounding == "rp") | ((rounding == "rz") & (total < 0)))
    return np.where(down, np.nextafter(total, -np.inf), np.where(up, np.nextafter(total, np.inf), total))


def _nearest_and_rest(value: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A 64-bit integer as the nearest .f64 and what is left, exactly."""
    high = (value >> value.dtype.type(32)).astype(np.float64) * 2.0**32
    return two_sum(high, (value & value.dtype.type(0xFFFFFFFF)).astype(np.float64))


def _integer_to_float(value: NDArray[Any], dtype: str, rounding: str) -> NDArray[Any]:
    """An integer as .f32 or a 16-bit float; 64-bit integers are split so that no bit is rounded twice."""
    if value.dtype.itemsize < 8:
        return narrow(value.astype(np.float64), dtype, rounding)
    total, error = _nearest_and_rest(value)
    if dtype == "f32":
        return round_f32(total, error, rounding)
    odd = round_f32(total, error, "rz")
    inexact = odd.astype(np.float64) != total
    odd = np.where(inexact | (error != 0), (odd.view(np.uint32) | np.uint32(1)).view(np.float32), odd)
    return narrow(odd, dtype, rounding)


@semantics(conversion.cvt_half, conversion.cvt_half2)
def convert_half(
    op: conversion.cvt_half | conversion.cvt_half2, binder: Binder, statement: syntax.Instruction
) -> Plain:
    """.f32 to one or two 16-bit floats; the first source goes to the high half."""
    kind = op.dtype.removesuffix("x2")
    finite = ml_dtypes.finfo(_FLOATS[kind]).max

    def halves(value: Any) -> NDArray[np.uint16]:
        value = np.asarray(value)
        if op.relu:
            value = np.where(value > 0, value, np.where(np.isnan(value), value, np.float32(0)))
        result = narrow(value, kind, op.rounding)
        if op.satfinite:
            bound = np.asarray(finite).astype(np.float32)
            clipped = np.clip(result.astype(np.float32), -bound, bound).astype(_FLOATS[kind])
            result = np.where(np.isnan(value), result, clipped).astype(_FLOATS[kind])
        bits = result.view(np.uint16)
        if op.pzo:
            bits = _positive_zero(bits, FORMATS[kind])
        # The canonical NaN of both formats is 0x7fff (cvt).
        nan = value != value
        return np.where(nan, np.uint16(0x7FFF), bits) if count_nonzero(nan) else bits

    if isinstance(op, conversion.cvt_half):
        a, d = binder.source(op.a, "f32"), binder.destination(op.d, "b16")
        return lambda g: d(g, halves(a(g)))
    a, b, d = binder.source(op.a, "f32"), binder.source(op.b, "f32"), binder.destination(op.d, "b32")
    return lambda g: d(g, halves(a(g)).astype(np.uint32) << np.uint32(16) | halves(b(g)).astype(np.uint32))


def _positive_zero(words: NDArray[Any], format: Format) -> NDArray[Any]:
    """.pzo: -0 becomes +0."""
    return np.where(words == format.sign, words.dtype.type(0), words)


def _relu(value: NDArray[Any]) -> NDArray[Any]:
    """.relu: what is negative, -0 too, becomes 0; NaN stays."""
    return np.where(np.isnan(value) | (value > 0), value, value.dtype.type(0))


def _packed(words: Sequence[NDArray[Any]], width: int) -> NDArray[np.uint32]:
    """Words side by side, each `width` bits wide, the first at the top."""
    total = np.zeros((), np.uint32)
    for word in words:
        total = total << np.uint32(width) | word
    return total


def _width(type: str) -> int:
    """The room that each value of a packed type takes: 8 bits for .e2m3x2, 4 for .e2m1x4."""
    return TYPES[type].bits // int(type[-1])


def _sources(
    op: _ToNarrow | _Stochastic | _ToScale | _ToFixed, binder: Binder
) -> list[Callable[[Group], NDArray[Any]]]:
    """The values to convert, as .f32, the first for the top: a and b, four registers, or the halves of a pair."""
    pair = isinstance(op, conversion.cvt_ue8m0x2_pair | conversion.cvt_s2f6x2_pair | conversion.cvt_narrow2_pair)
    if not pair:
        operands = binder.vector(op.abef) if isinstance(op, conversion.cvt_narrow4_rs) else (op.a, op.b)
        reads = [binder.source(operand, "f32") for operand in operands]
        return [lambda g, read=read: np.asarray(read(g)) for read in reads]
    read = binder.source(op.a, "b32")
    name = "f16" if isinstance(op, conversion.cvt_narrow2_pair) and op.atype == "f16x2" else "bf16"

    def half(shift: int) -> Callable[[Group], NDArray[Any]]:
        return lambda g: decode(np.asarray(read(g)) >> np.uint32(shift) & np.uint32(0xFFFF), name)

    return [half(16), half(0)]


def _scales(op: _FromNarrow | _ToFixed, binder: Binder) -> Callable[[Group], list[Any]]:
    """The two factors of .scaled::n2::ue8m0, the first for the top value; 1 without them."""
    if isinstance(op, conversion.cvt_f16x2 | conversion.cvt_bf16x2_ue8m0x2) or not op.scaled:
        return lambda g: [np.float32(1), np.float32(1)]
    scale = binder.source(op.scale, "b16")

    def read(g: Group) -> list[Any]:
        word = np.asarray(scale(g))
        return [decode(word >> np.uint16(shift) & np.uint16(255), "ue8m0") for shift in (8, 0)]

    return read


_ToNarrow = conversion.cvt_narrow2 | conversion.cvt_narrow2_pair


@semantics(*get_args(_ToNarrow))
def convert_narrow(op: _ToNarrow, binder: Binder, statement: syntax.Instruction) -> Plain:
    """With .scaled::n1::ue8m0 only what was measured on sm_107 (fact cvt-scaled) is modelled."""
    if op.scaled:
        plain = isinstance(op, conversion.cvt_narrow2) and op.rounding == "rn" and not (op.relu or op.pzo)
        if not plain or op.dtype not in ("e4m3x2", "e5m2x2"):
            raise Unmodelled(f"{op.opcode_text}, which nobody has measured,")
        return _scaled(op, binder)
    sources, d = _sources(op, binder), binder.destination(op.d, op.dtype)
    format, width = FORMATS[op.dtype[:-2]], _width(op.dtype)

    def one(value: NDArray[Any]) -> NDArray[np.uint32]:
        words = encode(_relu(value) if op.relu else value, format, op.rounding, finite=True)
        return _positive_zero(words, format) if op.pzo else words

    return lambda g: d(g, _packed([one(source(g)) for source in sources], width))


def _scaled(op: conversion.cvt_narrow2 | conversion.cvt_narrow2_pair, binder: Binder) -> Plain:
    """Both values, subnormal ones as zero, divided by 2^(scale - 127); a scale of 255 makes NaN of both."""
    sources, d, scale = _sources(op, binder), binder.destination(op.d, op.dtype), binder.source(op.scale, "b8")
    format, width = FORMATS[op.dtype[:-2]], _width(op.dtype)

    def run(g: Group) -> None:
        power = np.asarray(scale(g)).astype(np.int64) & 255
        words = []
        for source in sources:
            value = np.asarray(source(g), np.float64)
            value = np.where(np.abs(value) < 2.0**-126, np.copysign(0.0, value), value)
            words.append(
                encode(np.where(power == 255, np.nan, np.ldexp(value, 127 - power)), format, "rn", finite=True)
            )
        d(g, _packed(words, width))

    return run


#: Random bits for one value of a type (9.7.9.21).
_NOISE_BITS = {"f16": 13}


def _noise(word: NDArray[np.uint32], name: str, count: int) -> list[NDArray[Any]]:
    """The random fraction for each of `count` values, the first for the top, in a word of .rs (fact cvt-rs-bits)."""
    if count == 2:
        bits = _NOISE_BITS.get(name, 16)
        mask = np.uint32((1 << bits) - 1)
        return [(word >> np.uint32(shift) & mask) * 2.0**-bits for shift in (16, 0)]
    halves = [word >> np.uint32(16), word & np.uint32(0xFFFF)]
    if name == "e2m1":  # the upper bytes of both halves are for a and b, the lower ones for e and f
        high, low = halves
        halves = [high & np.uint32(0xFF00) | low >> np.uint32(8), (high & np.uint32(0xFF)) << np.uint32(8) | low & 0xFF]
    return [bits * 2.0**-16 for half in halves for bits in (_reversed(half), half)]


def _reversed(half: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Sixteen bits, the first last."""
    for distance, mask in ((8, 0x00FF), (4, 0x0F0F), (2, 0x3333), (1, 0x5555)):
        half = (half & np.uint32(mask)) << np.uint32(distance) | half >> np.uint32(distance) & np.uint32(mask)
    return half


_Stochastic = conversion.cvt_half2_rs | conversion.cvt_narrow4_rs


@semantics(*get_args(_Stochastic))
def convert_randomly(op: _Stochastic, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Random bits are added to the highest bits that are cut off."""
    name, count = op.dtype[:-2], int(op.dtype[-1])
    sources, random = _sources(op, binder), binder.source(op.rbits, "b32")
    d = binder.destination(op.d, op.dtype)
    format, width = FORMATS[name], _width(op.dtype)
    finite = isinstance(op, conversion.cvt_narrow4_rs) or op.satfinite

    def run(g: Group) -> None:
        words = []
        for source, noise in zip(sources, _noise(np.asarray(random(g)), name, count), strict=True):
            value = _relu(source(g)) if op.relu else source(g)
            words.append(encode(value, format, "rs", finite=finite, noise=noise))
        d(g, _packed(words, width))

    return run


@semantics(conversion.cvt_tf32)
def convert_tf32(op: conversion.cvt_tf32, binder: Binder, statement: syntax.Instruction) -> Plain:
    """The 19 bits of .tf32 are the upper ones of the register; the others are 0, those of a NaN too (measured, H100).

    .rna is no instruction of the hardware: ptxas adds half a unit to numbers and cuts all words off, and of what is
    not finite then .satfinite takes a unit, NaN or not (SASS of ptxas 13.5, sm_90a and sm_100a; measured, H100).
    """
    a, d = binder.source(op.a, "f32"), binder.destination(op.d, "b32")

    def cut(value: NDArray[Any]) -> NDArray[np.uint32]:
        word = value.view(np.uint32)
        word = np.where(np.isfinite(value), word + np.uint32(0x1000), word) & np.uint32(0xFFFFE000)
        infinite = (word & np.uint32(0x7F800000)) == 0x7F800000
        return np.where(infinite, word - np.uint32(0x2000), word) if op.satfinite else word

    def rounded(value: NDArray[Any]) -> NDArray[np.uint32]:
        word = encode(_relu(value) if op.relu else value, FORMATS["tf32"], op.rounding, finite=op.satfinite)
        return (_positive_zero(word, FORMATS["tf32"]) if op.pzo else word) << np.uint32(13)

    convert = cut if op.rounding == "rna" else rounded
    return lambda g: d(g, convert(np.asarray(a(g))))


_FromNarrow = conversion.cvt_f16x2 | conversion.cvt_bf16x2 | conversion.cvt_bf16x2_ue8m0x2


@semantics(*get_args(_FromNarrow))
def convert_from_narrow(op: _FromNarrow, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Every value of these formats is one of .f16 and .bf16; scaling may round. NaN is 0x7fff."""
    atype = "ue8m0x2" if isinstance(op, conversion.cvt_bf16x2_ue8m0x2) else op.atype
    if atype == "ue5m3x2":
        raise Unmodelled("the format ue5m3")
    target = FORMATS["f16" if isinstance(op, conversion.cvt_f16x2) else "bf16"]
    name, width = atype[:-2], _width(atype)
    mask = (1 << FORMATS[name].bits) - 1 if name in FORMATS else 255
    a, d, scales = binder.source(op.a, atype), binder.destination(op.d, "b32"), _scales(op, binder)
    relu = not isinstance(op, conversion.cvt_bf16x2_ue8m0x2) and op.relu
    finite = isinstance(op, conversion.cvt_bf16x2) and op.satfinite

    def value_of(word: NDArray[Any]) -> NDArray[Any]:
        if name == "s2f6":  # fixed-point, two's complement
            return word.astype(np.uint8).view(np.int8) * np.float64(2.0**-6)
        return decode(word, name).astype(np.float64)

    def encoded(value: Any) -> NDArray[np.uint32]:
        return encode(_relu(value) if relu else value, target, "rn", finite=finite)

    if not (isinstance(op, conversion.cvt_bf16x2) and op.scaled):
        table = encoded(value_of(np.arange(mask + 1, dtype=np.uint32)) * np.float64(1))

        def look_up(g: Group) -> None:
            packed = np.asarray(a(g))
            upper = table[packed >> packed.dtype.type(width) & packed.dtype.type(mask)]
            d(g, upper << np.uint32(16) | table[packed & packed.dtype.type(mask)])

        return look_up

    def run(g: Group) -> None:
        packed = np.asarray(a(g)).astype(np.uint32)
        words = []
        for shift, scale in zip((width, 0), scales(g), strict=True):
            words.append(encoded(value_of(packed >> np.uint32(shift) & np.uint32(mask)) * scale))
        d(g, _packed(words, 16))

    return run


_ToScale = conversion.cvt_ue8m0x2 | conversion.cvt_ue8m0x2_pair


@semantics(*get_args(_ToScale))
def convert_to_scale(op: _ToScale, binder: Binder, statement: syntax.Instruction) -> Plain:
    """The power of two next to a magnitude, 2**-127 at least; too large ones give NaN, or 2**127 with .satfinite.

    The sign does not count (CUDA 13.0, cuda_fp8.hpp, __nv_cvt_bfloat16raw_to_e8m0).
    """
    sources, d = _sources(op, binder), binder.destination(op.d, "b16")

    def one(value: NDArray[Any]) -> NDArray[np.uint32]:
        mantissa, exponent = np.frexp(np.abs(value.astype(np.float64)))
        power = exponent - 1 + ((mantissa > 0.5) if op.rounding == "rp" else 0)
        word = np.clip(np.where(mantissa == 0, -127, power) + 127, 0, 255)
        word = np.where(np.isinf(value), 255, word)
        word = np.minimum(word, 254) if op.satfinite else word
        return np.where(np.isnan(value), 255, word).astype(np.uint32)

    return lambda g: d(g, _packed([one(source(g)) for source in sources], 8))


_ToFixed = conversion.cvt_s2f6x2 | conversion.cvt_s2f6x2_pair


@semantics(*get_args(_ToFixed))
def convert_to_fixed(op: _ToFixed, binder: Binder, statement: syntax.Instruction) -> Plain:
    """Units of 2**-6 in 8 bits, clamped; NaN gives the largest value."""
    sources, scales, d = _sources(op, binder), _scales(op, binder), binder.destination(op.d, "b16")
    rounded = {"rn": np.rint, "rz": np.trunc}[op.rounding]

    def one(value: NDArray[Any], scale: Any) -> NDArray[np.uint32]:
        units = rounded(value.astype(np.float64) / scale * 64)
        units = np.where(np.isnan(units), 127, np.clip(units, 0 if op.relu else -128, 127))
        return units.astype(np.int64).astype(np.uint8).astype(np.uint32)

    return lambda g: d(g, _packed([one(source(g), s) for source, s in zip(sources, scales(g), strict=True)], 8))


_Pack = conversion.cvt_pack16 | conversion.cvt_pack


@semantics(*get_args(_Pack))
def pack_integers(op: _Pack, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, b, d = binder.source(op.a, "s32"), binder.source(op.b, "s32"), binder.destination(op.d, "u32")
    c = binder.source(op.c, "b32") if isinstance(op, conversion.cvt_pack) else None
    bits = int(op.type[1:])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if op.type[0] == "s" else (0, (1 << bits) - 1)

    def clamped(value: Any) -> NDArray[np.uint32]:
        return np.clip(np.asarray(value).astype(np.int64), low, high).astype(np.uint32) & np.uint32((1 << bits) - 1)

    def run(g: Group) -> None:
        word = clamped(a(g)) << np.uint32(bits) | clamped(b(g))
        d(g, word if c is None else word | np.asarray(c(g)) << np.uint32(2 * bits))

    return run
