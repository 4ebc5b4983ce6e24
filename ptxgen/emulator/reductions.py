"""Reductions that bulk copies do in memory: two arrays of words to one. PTX ISA 9.7.9.25.4.2 and 9.7.9.25.5.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

#: Unsigned words of the element's width.
Words = NDArray[Any]
Combine = Callable[[Words, Words], Words]

_FLOATS: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f32_ftz": np.float32, "tf32": np.float32,
    "f64": np.float64,
}  # fmt: skip
#: The NaN that sums give, by the bytes of an element.
_NAN = {2: 0x7FFF, 4: 0x7FFFFFFF, 8: 0xFFF8_0000_0000_0000}

_INTEGERS = ("u32", "s32", "u64", "s64")
_HALVES = ("f16", "bf16")
#: The manual's .b32 and .b64; .s64 ends the kernel (an H200 would not do its xor).
_BITS = ("u32", "s32", "u64")
#: Those of f64 and tf32 are not in the manual's table; hardware takes them (measured).
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


def combiner(op: str, dtype: str) -> Combine:
    """The function that combines words in memory with words of a copy: `dtype` is u32, s64, b32, f16 and so on."""
    if op in ("and", "or", "xor"):
        return {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op]
    if op == "inc":
        return lambda old, new: np.where(old >= new, old.dtype.type(0), old + old.dtype.type(1))
    if op == "dec":
        return lambda old, new: np.where((old == 0) | (old > new), new, old - old.dtype.type(1))
    if dtype in _FLOATS:
        return _add_floats(dtype) if op == "add" else _choose_floats(op, dtype)
    if op == "add":
        return np.add
    choose, number = {"min": np.minimum, "max": np.maximum}[op], {"u": "u", "s": "i"}[dtype[0]]

    def extreme(old: Words, new: Words) -> Words:
        kind = f"{number}{old.itemsize}"
        return choose(old.view(kind), new.view(kind)).view(old.dtype)

    return extreme


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


def _choose_floats(op: str, dtype: str) -> Combine:
    """The smaller or larger number: a NaN loses against a number, and -0 is below +0 (as min and max, 9.7.4)."""
    kind = _FLOATS[dtype]

    def choose(old: Words, new: Words) -> Words:
        a, b = old.view(kind), new.view(kind)
        first, second = np.isnan(a), np.isnan(b)
        left, right = a.astype(np.float32), b.astype(np.float32)
        equal = (left == right) & (np.signbit(left) != np.signbit(right))
        take_old = np.where(equal, np.signbit(left), left < right)
        if op == "max":
            take_old = np.where(equal, ~np.signbit(left), left > right)
        chosen = np.where(second | (take_old & ~first), old, new)
        return np.where(first & second, old.dtype.type(_NAN[old.itemsize]), chosen)

    return choose
