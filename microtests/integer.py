"""Integer arithmetic. References from PTX ISA 9.7.1."""

from __future__ import annotations

from typing import Any

from microtests.harness.lanes import lanewise
from microtests.harness.numbers import signed
from ptxgen.instr import integer
from ptxgen.instr.model.types import TYPES


def elements(form: Any, word: int) -> list[int]:
    """The elements of a packed word as values, or the word alone."""
    base, _, count = form.type.partition("x")
    if not count:
        return [word]
    bits = int(base[1:])
    parts = [word >> (bits * i) & ((1 << bits) - 1) for i in range(int(count))]
    return [signed(part, bits) for part in parts] if base[0] == "s" else parts


def packed(form: Any, parts: list[int]) -> int:
    """Elements put together."""
    base, _, count = form.type.partition("x")
    if not count:
        return parts[0]
    bits = int(base[1:])
    return sum((part & ((1 << bits) - 1)) << (bits * i) for i, part in enumerate(parts))


def limits(form: Any) -> tuple[int, int]:
    """The range of the type or of its elements."""
    base = form.type.partition("x")[0]
    bits = int(base[1:])
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if base[0] == "s" else (0, (1 << bits) - 1)


def clamped(form: Any, value: int) -> int:
    low, high = limits(form)
    return min(max(value, low), high)


def bits_of(form: Any) -> int:
    return TYPES[form.type].bits


@lanewise(integer.add)
def add(form: Any, a: int, b: int) -> int:
    return packed(form, [x + y for x, y in zip(elements(form, a), elements(form, b), strict=True)])


@lanewise(integer.add_sat)
def add_sat(form: Any, a: int, b: int) -> int:
    return packed(form, [clamped(form, x + y) for x, y in zip(elements(form, a), elements(form, b), strict=True)])


@lanewise(integer.sub)
def sub(form: Any, a: int, b: int) -> int:
    return packed(form, [x - y for x, y in zip(elements(form, a), elements(form, b), strict=True)])


@lanewise(integer.sub_sat)
def sub_sat(form: Any, a: int, b: int) -> int:
    return packed(form, [clamped(form, x - y) for x, y in zip(elements(form, a), elements(form, b), strict=True)])


def _half(form: Any, product: int) -> int:
    return product >> bits_of(form) if form.half == "hi" else product


@lanewise(integer.mul)
def mul(form: Any, a: int, b: int) -> int:
    return _half(form, a * b)


@lanewise(integer.mul_wide)
def mul_wide(form: Any, a: int, b: int) -> int:
    return a * b


@lanewise(integer.mad)
def mad(form: Any, a: int, b: int, c: int) -> int:
    return _half(form, a * b) + c


@lanewise(integer.mad_wide)
def mad_wide(form: Any, a: int, b: int, c: int) -> int:
    return a * b + c


@lanewise(integer.mad_sat)
def mad_sat(form: Any, a: int, b: int, c: int) -> int:
    return min(max((a * b >> 32) + c, -(2**31)), 2**31 - 1)


def _low24(form: Any, value: int) -> int:
    value &= 0xFFFFFF
    return signed(value, 24) if form.type == "s32" else value


def _mul24(form: Any, a: int, b: int) -> int:
    product = _low24(form, a) * _low24(form, b)
    return product >> 16 if form.half == "hi" else product


@lanewise(integer.mul24)
def mul24(form: Any, a: int, b: int) -> int:
    return _mul24(form, a, b)


@lanewise(integer.mad24)
def mad24(form: Any, a: int, b: int, c: int) -> int:
    return _mul24(form, a, b) + c


@lanewise(integer.mad24_sat)
def mad24_sat(form: Any, a: int, b: int, c: int) -> int:
    product = signed(a & 0xFFFFFF, 24) * signed(b & 0xFFFFFF, 24)
    return min(max((product >> 16) + c, -(2**31)), 2**31 - 1)


def _quotient(a: int, b: int) -> int:
    """Towards zero."""
    size = abs(a) // abs(b)
    return -size if (a < 0) != (b < 0) else size


@lanewise(integer.div, values={"b": lambda form, rng, count: nonzero(form, rng, count)})
def div(form: Any, a: int, b: int) -> int:
    return _quotient(a, b)


@lanewise(integer.rem, values={"b": lambda form, rng, count: nonzero(form, rng, count)})
def rem(form: Any, a: int, b: int) -> int:
    """The sign is that of the dividend."""
    return a - b * _quotient(a, b)


def nonzero(form: Any, rng: Any, count: int) -> Any:
    """Divisors; the quotient by zero is open."""
    from microtests.harness.inputs import words

    found = words(form.type, bits_of(form), count, rng)
    found[found == 0] = 3
    return found


@lanewise(integer.abs)
def abs_(form: Any, a: int) -> int:
    return abs(a)


@lanewise(integer.neg)
def neg(form: Any, a: int) -> int:
    return packed(form, [-x for x in elements(form, a)])


def _relu(form: Any, value: int) -> int:
    return max(value, 0) if form.relu else value


@lanewise(integer.min)
def min_(form: Any, a: int, b: int) -> int:
    return packed(form, [_relu(form, min(x, y)) for x, y in zip(elements(form, a), elements(form, b), strict=True)])


@lanewise(integer.max)
def max_(form: Any, a: int, b: int) -> int:
    return packed(form, [_relu(form, max(x, y)) for x, y in zip(elements(form, a), elements(form, b), strict=True)])


@lanewise(integer.sad)
def sad(form: Any, a: int, b: int, c: int) -> int:
    return c + abs(a - b)


@lanewise(integer.popc)
def popc(form: Any, a: int) -> int:
    return a.bit_count()


@lanewise(integer.clz)
def clz(form: Any, a: int) -> int:
    return bits_of(form) - a.bit_length()


@lanewise(integer.bfind)
def bfind(form: Any, a: int) -> int:
    """The most significant bit that is not a copy of the sign; all ones if there is none."""
    found = (~a if a < 0 else a).bit_length() - 1
    if found < 0:
        return 0xFFFFFFFF
    return bits_of(form) - 1 - found if form.shiftamt else found


def _base(form: Any, rng: Any, count: int) -> Any:
    """fns requires a position in 0 .. 31."""
    import numpy as np

    return rng.integers(0, 32, count).astype(np.uint32)


def _few(form: Any, rng: Any, count: int) -> Any:
    import numpy as np

    return rng.integers(-20, 21, count).astype(np.int32)


@lanewise(integer.fns, values={"base": _base, "offset": _few})
def fns(form: Any, mask: int, base: int, offset: int) -> int:
    """The offset-th set bit from `base`, upwards or downwards; 0 tests the bit of base itself."""
    offset = signed(offset, 32)
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    positions = range(base, 32) if offset > 0 else range(base, -1, -1)
    found = [at for at in positions if mask >> at & 1]
    return found[abs(offset) - 1] if len(found) >= abs(offset) else 0xFFFFFFFF


@lanewise(integer.brev)
def brev(form: Any, a: int) -> int:
    return int(f"{a:0{bits_of(form)}b}"[::-1], 2)


@lanewise(integer.bfe)
def bfe(form: Any, a: int, b: int, c: int) -> int:
    """The field; beyond the top, and above the field, copies of its sign."""
    bits = bits_of(form)
    position, length = (b & 0xFF, c & 0xFF) if bits == 32 else (b & 0xFFFFFFFF, c & 0xFFFFFFFF)
    value = a & ((1 << bits) - 1)
    if length == 0:
        return 0
    sign = value >> min(position + length - 1, bits - 1) & 1 if form.type[0] == "s" else 0
    found = 0
    for i in range(bits):
        inside = i < length and position + i < bits
        found |= (value >> (position + i) & 1 if inside else sign) << i
    return found


@lanewise(integer.bfi, outputs={"f"})
def bfi(form: Any, a: int, b: int, c: int, d: int) -> int:
    """The low bits of a in place of those of b at c."""
    bits, mask = bits_of(form), 0xFF if bits_of(form) == 32 else 0xFFFFFFFF  # 64 bits: measured, H100
    position, length = c & mask, d & mask
    found = b
    for i in range(min(length, bits)):
        if position + i < bits:
            found = found & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
    return found


def _amount(form: Any, value: int) -> int:
    return value & 31 if form.mode == "wrap" else value


@lanewise(integer.szext)
def szext(form: Any, a: int, b: int) -> int:
    """The low b bits, extended by zeros or by their sign."""
    width = _amount(form, b & 0xFFFFFFFF)
    value = a & 0xFFFFFFFF
    if width >= 32:
        return value
    low = value & ((1 << width) - 1)
    return signed(low, width) if form.type == "s32" and width else low


@lanewise(integer.bmsk)
def bmsk(form: Any, a: int, b: int) -> int:
    """b ones from bit a on."""
    start, width = _amount(form, a), _amount(form, b)
    if start >= 32:
        return 0
    return ((1 << min(width, 32)) - 1) << start


def _bytes(word: int, type: str, bits: int) -> list[int]:
    parts = [word >> (bits * i) & ((1 << bits) - 1) for i in range(32 // bits)]
    return [signed(part, bits) for part in parts] if type[0] == "s" else parts


@lanewise(integer.dp4a)
def dp4a(form: Any, a: int, b: int, c: int) -> int:
    return c + sum(x * y for x, y in zip(_bytes(a, form.atype, 8), _bytes(b, form.btype, 8), strict=True))


@lanewise(integer.dp2a)
def dp2a(form: Any, a: int, b: int, c: int) -> int:
    chosen = _bytes(b, form.btype, 8)[2:] if form.half == "hi" else _bytes(b, form.btype, 8)[:2]
    return c + sum(x * y for x, y in zip(_bytes(a, form.atype, 16), chosen, strict=True))


@lanewise(integer.clmad, signs=False)
def clmad(form: Any, a: int, b: int, c: int) -> int:
    """The product without carries, and c."""
    product = 0
    for i in range(64):
        if b >> i & 1:
            product ^= a << i
    return (product >> 64 if form.half == "hi" else product) ^ c
