"""The element types and inputs of recorded cases. NumPy only, because environments of other compilers import it.

Buffers are plain arrays. Types that NumPy lacks are carried as their bits: bf16 in uint16, 8-bit floats in uint8,
two e2m1 in a uint8 (the low half first).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
Arrays = Mapping[str, Array]
#: What a reference expects, by buffer.
Outputs = Mapping[str, ArrayLike]

#: dtype of a buffer -> the NumPy type that carries it.
CARRIERS: dict[str, type[np.generic]] = {
    "fp16": np.float16,
    "fp32": np.float32,
    "tf32": np.float32,
    "fp64": np.float64,
    "bf16": np.uint16,
    "e4m3": np.uint8,
    "e5m2": np.uint8,
    "e8m0": np.uint8,
    "e2m1x2": np.uint8,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "u16": np.uint16,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
}


def _float8(exponent_bits: int, mantissa_bits: int, *, infinities: bool) -> NDArray[np.float32]:
    """The values of all 256 codes; without infinities the highest code of each sign is NaN."""
    sign, rest = np.divmod(np.arange(256), 128)
    exponent, mantissa = np.divmod(rest, 1 << mantissa_bits)
    bias, top = (1 << exponent_bits - 1) - 1, (1 << exponent_bits) - 1
    normal = exponent > 0
    significand = normal + mantissa / (1 << mantissa_bits)
    values = np.where(sign, -1.0, 1.0) * significand * 2.0 ** (np.where(normal, exponent, 1) - bias)
    if infinities:
        values[exponent == top] = np.where(sign, -np.inf, np.inf)[exponent == top]
        values[(exponent == top) & (mantissa > 0)] = np.nan
    else:
        values[rest == 127] = np.nan
    return values.astype(np.float32)


E4M3 = _float8(4, 3, infinities=False)
E5M2 = _float8(5, 2, infinities=True)
E8M0 = np.append(2.0 ** (np.arange(255) - 127.0), np.nan).astype(np.float32)
_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
E2M1 = np.concatenate([_E2M1, -_E2M1])


def bf16_dec(bits: ArrayLike) -> NDArray[np.float32]:
    """bf16 bits as float32."""
    return (np.asarray(bits, np.uint16).astype(np.uint32) << 16).view(np.float32)


def bf16_enc(values: ArrayLike) -> NDArray[np.uint16]:
    """Round to bf16, to nearest even; NaN is 0x7fff. Gives the bits."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), 0x7FFF, rounded).astype(np.uint16)


def _float8_enc(values: ArrayLike, table: NDArray[np.float32], largest: int) -> NDArray[np.uint8]:
    """Round to nearest even and saturate at the code `largest`. Gives the bits."""
    positive = table[: largest + 1].astype(np.float64)
    exact = np.asarray(values, np.float64)
    size = np.minimum(np.abs(exact), positive[-1])
    above = np.clip(np.searchsorted(positive, size), 1, largest)
    to_below, to_above = size - positive[above - 1], positive[above] - size
    down = (to_below < to_above) | ((to_below == to_above) & ((above - 1) % 2 == 0))
    return (np.where(down, above - 1, above) + np.where(np.signbit(exact), 128, 0)).astype(np.uint8)


def e4m3_enc(values: ArrayLike) -> NDArray[np.uint8]:
    """Round to e4m3, to nearest even, saturated at 448. Gives the bits."""
    return _float8_enc(values, E4M3, 0x7E)


def e5m2_enc(values: ArrayLike) -> NDArray[np.uint8]:
    """Round to e5m2, to nearest even, saturated at 57344. Gives the bits."""
    return _float8_enc(values, E5M2, 0x7B)


def tf32(values: ArrayLike) -> NDArray[np.float32]:
    """Truncate float32 to tf32, as the tensor cores do."""
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def dec(dtype: str, bits: Array) -> Array:
    """The values of a buffer; e2m1x2 doubles the last dimension."""
    if dtype == "bf16":
        return bf16_dec(bits)
    if dtype == "e2m1x2":
        return np.stack([E2M1[bits & 15], E2M1[bits >> 4]], -1).reshape(*bits.shape[:-1], -1)
    table = {"e4m3": E4M3, "e5m2": E5M2, "e8m0": E8M0}.get(dtype)
    return np.asarray(bits) if table is None else table[bits]


def enc(dtype: str, values: Array) -> Array:
    """What a buffer of the dtype holds for these values."""
    coder = {"bf16": bf16_enc, "e4m3": e4m3_enc, "e5m2": e5m2_enc}.get(dtype)
    return np.asarray(values).astype(CARRIERS[dtype]) if coder is None else coder(values)


def make_inputs(buffers: Mapping[str, Mapping[str, Any]]) -> dict[str, Array]:
    """Every buffer with its initial contents, outputs too; the contents depend on the buffer's name alone."""
    return {
        name: _contents(buffer, np.random.default_rng([0, zlib.crc32(name.encode())]))
        for name, buffer in buffers.items()
    }


def _contents(buffer: Mapping[str, Any], random: np.random.Generator) -> Array:
    dtype, shape = buffer["dtype"], tuple(buffer["shape"])
    carrier, count = CARRIERS[dtype], int(np.prod(shape))
    match buffer["init"]:
        case "zeros":
            return np.zeros(shape, carrier)
        case "ones":
            return enc(dtype, np.ones(shape, np.float32))
        case "poison":
            return np.full(count * np.dtype(carrier).itemsize, 0xCD, np.uint8).view(carrier).reshape(shape)
        case "randn":
            return enc(dtype, random.standard_normal(shape).astype(np.float32) * buffer.get("scale", 1.0))
        case "randint":
            return enc(dtype, random.integers(buffer["lo"], buffer["hi"], shape))
        case "bits":
            return random.integers(0, 256, shape).astype(np.uint8).astype(carrier)
        case "perm":
            return random.permutation(buffer["n"])[:count].reshape(shape).astype(carrier)
        case "hex":
            return np.frombuffer(bytes.fromhex(buffer["hex"]), np.uint8).view(carrier).reshape(shape).copy()
        case "arange":
            return np.arange(count).reshape(shape).astype(carrier)
        case "e4m3pos":
            return e4m3_enc(np.exp2(random.uniform(-2, 2, shape)))
        case other:
            raise ValueError(f"unknown init {other!r}")
