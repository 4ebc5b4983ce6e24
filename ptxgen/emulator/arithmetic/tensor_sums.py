"""How tensor cores add, to the bit: products are exact, and sums of products are not those of .f32.

An instruction adds C and all its products at once: each addend is cut, towards zero, at a number of bits below the
largest exponent among them, the rest is a sum of whole numbers, and the total is cut to the type of D (rounded to
nearest for .f16). The exponent of a product is the sum of its factors' exponents, whatever carry there is; that of a
subnormal number is the least normal one of its type; zeros have none. The largest exponent has a floor (`FLOORS`).
A total of zero is +0, NaN is 0x7FFFFFFF.

PTX ISA leaves it open (9.7.14.5.14, 9.7.15.5.2). For Hopper all bits but the floor are measured (docs/hardware.md,
microtests tensor_sums); Blackwell's numbers are those of MMA-Sim (Xie et al., arXiv 2511.10909;
github.com/microsoft/MMA-Sim, mmasim/simulator/nv_ptx.py), who compared them with hardware. Words that a B200 gave to
others are in tests/data/silicon. `sum_rules` has the rules of mma.sync and wmma by generation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arithmetic.formats import FORMATS
from ptxgen.emulator.arrays import all_set, any_set
from ptxgen.emulator.native.library import chosen, pointer_to

Values = NDArray[np.float32]
Doubles = NDArray[np.float64]


#: The least exponent that counts as the largest of a sum, by types of A and D; others have none. Blackwell: recorded
#: for bf16 and tf32 (sf-tensor/tcgen05), for f16 a model (Khattak and Mikaitis, B200TC). Hopper: measured (H200,
#: microtests tensor_sums_floor, 2026-11-23). sm_120: by analogy.
FLOORS: Mapping[tuple[str, str], int] = MappingProxyType(
    {("bf16", "f32"): -133, ("tf32", "f32"): -133, ("f16", "f16"): -21}
)
#: The same for `fused_groups` (sf-tensor/tcgen05: groups below 2**-174 are cut off).
GROUP_FLOOR = -139


@dataclass(frozen=True, slots=True)
class Rule:
    """Bits of fraction at which addends are cut, those that a result of .f32 keeps, and the floors."""

    fraction: int = 25
    kept: int = 23
    floors: Mapping[tuple[str, str], int] = field(default_factory=lambda: FLOORS)

    def floor(self, types: tuple[str, str, str]) -> int | None:
        """The least exponent that counts as the largest, by the types of A, B and D."""
        return self.floors.get((types[0], types[2]))


#: Everything but what follows, on Blackwell (MMA-Sim) and Hopper (measured).
USUAL = HOPPER = Rule()
#: wgmma of 8-bit floats (measured).
HOPPER_F8 = Rule(13, 13)
#: Products of 4-bit floats with scale factors: each addend is the exact sum of 16 products, scaled (MMA-Sim).
SCALED_F4, F4_GROUP = Rule(35), 16

#: NaN, as sums give it.
NAN = {"f32": np.uint32(0x7FFFFFFF), "f16": np.uint16(0x7FFF)}
#: Stand-ins for the exponent of zero, of 8 and of 16 bits; added to any other they stay below `_NEVER`.
_NONE8, _NONE16 = -60, -2000
_NEVER8, _NEVER16 = -40, -1000
#: Sums are made in .f32 where exponents of addends are within these: then nothing over- or underflows.
_LEAST, _MOST = -101, 125
#: The exponent of the largest number of .f32: scaled elements may be beyond it.
_LARGEST = 127
#: In .f64 this is below all exponents.
_LEAST_WIDE = -600
#: Elements of D that are summed at a time: what is in hand then stays in the cache.
_BLOCK = 1 << 14


def words_of(sums: NDArray[Any], d_type: str) -> NDArray[Any]:
    """The words of sums; all NaNs are the same."""
    words = sums.view(NAN[d_type].dtype)
    nan = np.isnan(sums)
    return np.where(nan, NAN[d_type], words) if any_set(nan) else words


def fused(
    a: Values,
    b: Values,
    c: Values | None,
    types: tuple[str, str, str],
    rule: Rule = USUAL,
    *,
    columns: NDArray[np.int64] | None = None,
    scales: tuple[Doubles, Doubles] | None = None,
) -> NDArray[Any]:
    """C plus A times B transposed, in one sum: [..., m, k] and [..., n, k] to [..., m, n], .f32 or .f16.

    `types` are those of A, B and D; C has D's, and None is zero. `columns` [..., m, k / 2] are those that a sparse A
    stores: others do not count, NaN or not. `scales`, powers of two, are for blocks of K: [m, blocks], [n, blocks].
    """
    if c is None:
        c = np.zeros((*a.shape[:-1], b.shape[-2]), np.float32)
    if scales is None and (made := _by_machine_code(a, b, c, types, rule)) is not None:
        return made
    left, right = (a, b) if scales is None else (_scaled(a, scales[0]), _scaled(b, scales[1]))
    special = None
    if not all(all_set(np.isfinite(each)) for each in (left, right, c)):
        special = _special(left, right, c, columns)
        left, right, c = (np.where(np.isfinite(each), each, np.float32(0)) for each in (left, right, c))
        if scales is None and (made := _by_machine_code(left, right, c, types, rule)) is not None:
            return _with_special(made, special)
    narrow = scales is None and all(FORMATS[type].smallest >= -14 for type in types[:2])
    x = _exponents(left, types[0], scales and scales[0], narrow)
    y = _exponents(right, types[1], scales and scales[1], narrow)
    wide = not (_within(c) and (narrow or _moderate(x, y)))
    dtype = np.float64 if wide else np.float32
    found = np.empty(c.shape, np.float16 if types[2] == "f16" else np.float32)
    floor = rule.floor(types) if scales is None else None
    for part in _parts(left.astype(dtype, copy=False), x, right.astype(dtype, copy=False), y, c, found):
        part.out[...] = rounded(_total(part, types[2], rule, floor), types[2], rule.kept, subnormal=wide)
    return found if special is None else _with_special(found, special)


def _with_special(found: NDArray[Any], special: NDArray[Any]) -> NDArray[Any]:
    """Sums with those that are not finite (`_special`)."""
    np.copyto(found, special, where=~np.isfinite(special), casting="unsafe")
    return found


def _by_machine_code(a: Values, b: Values, c: Values, types: tuple[str, str, str], rule: Rule) -> NDArray[Any] | None:
    """The same by sums.c; None without it, or where something is not finite."""
    library = chosen()
    if library is None:
        return None
    a, b, c = (np.ascontiguousarray(each, np.float32) for each in (a, b, c))
    m, n = c.shape[-2:]
    sizes = np.array([c.size // (m * n), m, n, a.shape[-1]], np.int64)
    least = np.array([FORMATS[type].smallest for type in types], np.int64)
    floor = rule.floor(types)
    rules = rule.fraction, rule.kept, _LEAST_WIDE if floor is None else floor
    given, sized = tuple(map(pointer_to, (a, b, c))), (pointer_to(sizes), pointer_to(least))
    if types[2] == "f16":
        totals = np.empty(c.shape, np.float64)
        failed = library.sums(*given, pointer_to(totals), None, *sized, *rules)
        return None if failed else rounded(totals, "f16")
    found = np.empty(c.shape, np.float32)
    return None if library.sums(*given, None, pointer_to(found), *sized, *rules) else found


def rounded(exact: Doubles, d_type: str, kept: int = USUAL.kept, *, subnormal: bool = True) -> NDArray[Any]:
    """Totals as D holds them: .f16 the nearest, .f32 cut to `kept` bits; beyond the largest infinity. Changes `exact`.

    `subnormal`: totals below the normal numbers of .f32 may be there.
    """
    with np.errstate(over="ignore"):
        if d_type == "f16":
            return exact.astype(np.float16) + np.float16(0)  # a zero loses its sign
        if subnormal:
            step = 2.0 ** (-126 - kept)
            exact = np.where(np.abs(exact) < 2.0**-126, np.trunc(exact / step) * step, exact) + 0.0
        bits = exact.view(np.uint64)
        bits &= ~np.uint64((1 << (52 - kept)) - 1)
        return exact.astype(np.float32)


# Operands.


def _scaled(values: Values, scales: Doubles) -> Doubles:
    """Elements [..., lines, k] times the scales [lines, blocks] of their blocks of K."""
    blocks = values.reshape(*values.shape[:-1], scales.shape[-1], -1).astype(np.float64)
    return (blocks * scales[..., None]).reshape(values.shape)


def _exponents(values: NDArray[Any], type: str, scales: Doubles | None, narrow: bool) -> NDArray[Any]:
    """Exponents of the factors [..., lines, k], those of subnormal numbers the least normal one of their type."""
    none = _NONE8 if narrow else _NONE16
    least: Any = FORMATS[type].smallest
    if scales is None:
        found = (values.view(np.int32) >> 23 & 255) - 127
    else:
        found = np.frexp(values)[1] - 1
        blocks = np.frexp(np.where(np.isfinite(scales), scales, 1.0))[1] - 1 + least
        least = np.repeat(blocks, values.shape[-1] // scales.shape[-1], axis=-1)
    return np.where(values == 0, none, np.maximum(found, least)).astype(np.int8 if narrow else np.int16)


def _within(c: Values) -> bool:
    """Whether C has no number that is too small for sums in .f32."""
    size = np.abs(c)
    return not any_set((size < 2.0**_LEAST) & (size > 0))


def _moderate(x: NDArray[Any], y: NDArray[Any]) -> bool:
    """Whether factors with these exponents are numbers of .f32, and their products can be summed in it."""
    least = sum(int(each.min(where=each > _NEVER16, initial=1000)) for each in (x, y))
    most = [int(each.max()) for each in (x, y)]
    return least >= _LEAST and sum(most) <= _MOST and max(most) <= _LARGEST


def _special(a: NDArray[Any], b: NDArray[Any], c: Values, columns: NDArray[np.int64] | None) -> NDArray[Any]:
    """What sums with infinities and NaNs are; finite where all is."""
    a, b, c = (np.where(np.isfinite(each), np.sign(each), each).astype(np.float32) for each in (a, b, c))
    with np.errstate(invalid="ignore"):
        if columns is None or all_set(np.isfinite(b)):
            return a @ np.swapaxes(b, -1, -2) + c
        columns = np.broadcast_to(columns, (*a.shape[:-1], columns.shape[-1]))
        stored = np.take_along_axis(a, columns, -1)
        # [..., n, 1, k] by [..., 1, m, k / 2]: each row of A has its own elements of each column of B.
        shape = (*b.shape[:-1], *columns.shape[-2:])
        whole = np.broadcast_to(b[..., None, :], (*shape[:-1], b.shape[-1]))
        picked = np.take_along_axis(whole, np.broadcast_to(columns[..., None, :, :], shape), -1)
        return np.swapaxes((picked * stored[..., None, :, :]).sum(axis=-1, dtype=np.float32), -1, -2) + c


# Sums.


class _Part(NamedTuple):
    """Some elements of D, and the factors of their products with exponents, K first; all shapes but K's broadcast."""

    a: NDArray[Any]
    x: NDArray[Any]
    b: NDArray[Any]
    y: NDArray[Any]
    c: Values
    out: NDArray[Any]


def _parts(
    a: NDArray[Any], x: NDArray[Any], b: NDArray[Any], y: NDArray[Any], c: Values, out: NDArray[Any]
) -> Iterator[_Part]:
    """Parts of products [..., m, k] by [..., n, k]: rows of large ones, and as many small ones as fit, side by side."""
    m, n = c.shape[-2:]
    products = c.size // (m * n)
    a, x, b, y, c, out = (each.reshape(products, *each.shape[-2:]) for each in (a, x, b, y, c, out))
    if products > 1 and m * n < _BLOCK // 8:
        step = max(_BLOCK // (m * n), 1)
        for first in range(0, products, step):
            some = slice(first, first + step)
            left, left_e, right, right_e = (
                np.ascontiguousarray(each[some].transpose(2, 1, 0)) for each in (a, x, b, y)
            )
            yield _Part(
                left[:, :, None],
                left_e[:, :, None],
                right[:, None],
                right_e[:, None],
                np.ascontiguousarray(c[some].transpose(1, 2, 0)),
                out[some].transpose(1, 2, 0),
            )
        return
    step = max(_BLOCK // n, 1)
    for index in range(products):
        left, left_e, right, right_e = (np.ascontiguousarray(each[index].T) for each in (a, x, b, y))
        for first in range(0, m, step):
            some = slice(first, first + step)
            yield _Part(
                left[:, some, None],
                left_e[:, some, None],
                right[:, None],
                right_e[:, None],
                c[index, some],
                out[index, some],
            )


def _total(part: _Part, d_type: str, rule: Rule, floor: int | None) -> Doubles:
    """C and all products, cut and added."""
    wide = part.a.dtype == np.float64
    largest = np.maximum(_of_products(part, wide), _of_addends(part.c, d_type, wide))
    if floor is not None:
        largest = np.maximum(largest, np.int16(floor))
    scale = _power(rule.fraction - largest, part.a.dtype)
    total = np.trunc(part.c * scale).astype(np.float64)
    multiply: Any = np.dot if total.ndim == 2 else np.multiply  # of a column by a row, dot is the faster
    product = np.empty(total.shape, part.a.dtype)
    if wide:
        for a, b in zip(part.a, part.b, strict=True):
            multiply(a, b, out=product)
            product *= scale
            total += np.trunc(product, out=product)
    else:
        whole, term = np.empty(total.shape, np.int32), np.empty(total.shape, np.int32)
        count = 1 << (28 - rule.fraction)  # terms are below 2 ** (fraction + 2)
        for index, (a, b) in enumerate(zip(part.a, part.b, strict=True)):
            multiply(a, b, out=product)
            product *= scale
            fresh = index % count == 0
            np.copyto(whole if fresh else term, product, casting="unsafe")  # towards zero
            if not fresh:
                whole += term
            if index % count == count - 1 or index == len(part.a) - 1:
                total += whole
    total *= _power(largest - rule.fraction, np.float64)
    return total


def _of_products(part: _Part, wide: bool) -> NDArray[np.int16]:
    """The largest exponent among products, or the least that counts where all are zero."""
    found = np.full(part.c.shape, np.iinfo(part.x.dtype).min, part.x.dtype)
    spare = np.empty_like(found)
    for x, y in zip(part.x, part.y, strict=True):
        np.maximum(found, np.add(x, y, out=spare), out=found)
    never = _NEVER8 if found.dtype == np.int8 else _NEVER16
    return np.where(found < never, np.int16(_LEAST_WIDE if wide else _LEAST), found)


def _of_addends(c: Values, d_type: str, wide: bool) -> NDArray[np.int16]:
    """The exponents of C."""
    least = FORMATS[d_type].smallest
    found = np.maximum((c.view(np.int32) >> 23 & 255) - 127, least)
    return np.where(c == 0, _LEAST_WIDE if wide else _LEAST, found).astype(np.int16)


def _power(exponents: NDArray[np.int16], dtype: Any) -> NDArray[Any]:
    """2 to these powers."""
    if dtype == np.float32:
        return ((exponents + np.int32(127)) << 23).astype(np.int32).view(np.float32)
    return ((exponents + np.int64(1023)) << 52).astype(np.int64).view(np.float64)


# Groups of 4-bit floats.


def fused_groups(
    a: Values,
    b: Values,
    c: Values | None,
    scales: tuple[Doubles, Doubles],
    *,
    sparse: bool = False,
    scale_type: str = "ue8m0",
) -> Values:
    """C plus A times B transposed, of 4-bit floats with scale factors for blocks of K.

    An addend is the exact sum of 16 products times its factors (fact scaled-f4-groups); its exponent is that of the
    factors, though the products cancel, and it has none if all of them are zero. Shapes as for `fused`; of a sparse A
    32 columns have 16 products (inferred).
    """
    if c is None:
        c = np.zeros((*a.shape[:-1], b.shape[-2]), np.float32)
    blocks, k = scales[0].shape[-1], a.shape[-1]
    step = min(F4_GROUP * (2 if sparse else 1), k // blocks)
    (factor_a, x), (factor_b, y) = (_factors(each, scale_type) for each in scales)
    finite = np.where(np.isfinite(c), c, np.float32(0))
    starts = range(0, k, step)
    with np.errstate(invalid="ignore"):
        parts = [a[..., i : i + step] @ np.swapaxes(b[..., i : i + step], -1, -2) for i in starts]
    used_a, used_b = (np.asarray(each != 0, np.float32) for each in (a, b))
    exponents = []
    for i, part in zip(starts, parts, strict=True):
        empty = part == 0
        if any_set(empty):
            empty = used_a[..., i : i + step] @ np.swapaxes(used_b[..., i : i + step], -1, -2) == 0
        sizes = x[..., :, None, i * blocks // k] + y[..., None, :, i * blocks // k]
        exponents.append(np.where(empty, _LEAST_WIDE, sizes))
    largest = np.maximum(np.max(exponents, axis=0), _of_addends(finite, "f32", wide=True))
    largest = np.maximum(largest, GROUP_FLOOR).astype(np.int16)
    scale = _power(SCALED_F4.fraction - largest, np.float64)
    total = np.trunc(finite * scale)
    with np.errstate(invalid="ignore"):
        for i, part in zip(starts, parts, strict=True):
            factor = factor_a[..., :, None, i * blocks // k] * factor_b[..., None, :, i * blocks // k]
            total += np.trunc(part * factor * scale)
        total *= _power(largest - SCALED_F4.fraction, np.float64)
        nan = np.isnan(total)
        found = rounded(np.where(nan, 0.0, total), "f32", SCALED_F4.kept)
        return np.where(np.isfinite(c) & ~nan, found, np.where(nan, np.float32(np.nan), c))


def _factors(scales: Doubles, type: str) -> tuple[Doubles, NDArray[np.int32]]:
    """Scale factors and their exponents: NaN and zero have the least, subnormal ones the least normal one."""
    usual = np.isfinite(scales) & (scales != 0)
    exponents = np.frexp(np.where(usual, scales, 1.0))[1] - 1
    if type in FORMATS:
        exponents = np.maximum(exponents, FORMATS[type].smallest)
    return scales, np.where(usual, exponents, _LEAST_WIDE // 2)
