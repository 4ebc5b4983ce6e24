"""The operations of atomics and of reducing bulk copies. PTX ISA 9.7.13.5, 9.7.9.25.4.2, 9.7.9.25.5.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.dtypes import scalar_type

#: Unsigned words of the element's width.
Words = NDArray[Any]
Combine = Callable[[Words, Words], Words]

_FLOATS: dict[str, Any] = {name: scalar_type(name) for name in ("f16", "bf16", "f32", "tf32", "f64")}
_FLOATS["f32_ftz"] = scalar_type("f32")
#: The NaN that sums give, by the bytes of an element.
_NAN = {2: 0x7FFF, 4: 0x7FFFFFFF, 8: 0xFFF8_0000_0000_0000}

_INTEGERS = ("u32", "s32", "u64", "s64")
_HALVES = ("f16", "bf16")
#: The manual's .b32 and .b64; .s64 ends the kernel (an H200 would not do its xor).
_BITS = ("u32", "s32", "u64")
#: Sums of f64 and tf32 are not in the manual's table; hardware takes them (measured).
_TENSOR_SUMS = ("u32", "s32", "u64", "f32", "f32_ftz", "tf32", "f64", *_HALVES)
#: Which element types of a tensormap each operation takes (9.7.9.25.5.3).
#: Others end the kernel with an illegal-instruction error (measured for eight of them).
TENSOR_TYPES: dict[str, tuple[str, ...]] = {
    "add": _TENSOR_SUMS,
    "min": (*_INTEGERS, *_HALVES),
    "max": (*_INTEGERS, *_HALVES),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": _BITS,
    "or": _BITS,
    "xor": _BITS,
}


def increment(old: Words, limit: Words) -> Words:
    """One more, or 0 from the limit on."""
    return np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def decrement(old: Words, limit: Words) -> Words:
    """One less, or the limit from 0 and from above the limit."""
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


def lesser(old: NDArray[Any], value: NDArray[Any]) -> NDArray[Any]:
    """The smaller float: a NaN loses against a number, and -0 is below +0 (as min and max, 9.7.4)."""
    return _chosen(old, value, np.less, np.signbit)


def greater(old: NDArray[Any], value: NDArray[Any]) -> NDArray[Any]:
    """The larger float, as `lesser`."""
    return _chosen(old, value, np.greater, lambda each: ~np.signbit(each))


def _chosen(old: NDArray[Any], value: NDArray[Any], better: Any, first: Any) -> NDArray[Any]:
    a, b = (each.astype(np.float32) if each.dtype.itemsize == 2 else each for each in (old, value))
    take_old = better(a, b) | (a == b) & first(a) | np.isnan(b)
    return canonical(np.where(take_old, old, value))


def canonical(value: NDArray[Any]) -> NDArray[Any]:
    """NaN results are the one with all bits set but the sign; those of 64 bits keep their payload."""
    value = np.ascontiguousarray(value)
    if value.dtype.itemsize < 8:
        words = value.view(f"u{value.dtype.itemsize}")
        words[np.isnan(value)] = (1 << (8 * value.dtype.itemsize - 1)) - 1
    return value


def combiner(op: str, dtype: str) -> Combine:
    """The function that combines words in memory with words of a copy: `dtype` is u32, s64, b32, f16 and so on."""
    if op in ("and", "or", "xor"):
        return {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op]
    if op in ("inc", "dec"):
        return increment if op == "inc" else decrement
    if dtype in _FLOATS and op == "add":
        return _add_floats(dtype)
    if op == "add":
        return np.add
    if dtype in _FLOATS:
        choose, kind = (lesser if op == "min" else greater), np.dtype(_FLOATS[dtype])
    else:
        sign = "u" if dtype[0] == "u" else "i"
        choose, kind = {"min": np.minimum, "max": np.maximum}[op], np.dtype(f"{sign}{int(dtype[1:]) // 8}")
    return lambda old, new: choose(old.view(kind), new.view(kind)).view(old.dtype)


def _add_floats(dtype: str) -> Combine:
    """Sums, rounded to nearest even. Measured on an H100 (driver 580, 2026-11-22), in tensor and plain bulk copies:

    .f32 flushes nothing, though 9.7.9.25.4.2 says so, but tensors of .f32.ftz do; a NaN operand of .f64 comes back as
    it is, the new one first; other NaNs are the canonical one.
    """
    kind = _FLOATS[dtype]

    def add(old: Words, new: Words) -> Words:
        if dtype == "f32_ftz":
            old, new = _flush(old), _flush(new)
        total = (old.view(kind) + new.view(kind)).view(old.dtype)
        if dtype == "f32_ftz":
            total = _flush(total)
        total = np.where(np.isnan(total.view(kind)), old.dtype.type(_NAN[old.itemsize]), total)
        if dtype == "f64":
            total = np.where(np.isnan(old.view(kind)), old, total)
            total = np.where(np.isnan(new.view(kind)), new, total)
        return total

    return add


def _flush(words: Words) -> Words:
    return np.where(words & np.uint32(0x7F800000), words, words & np.uint32(0x80000000))
