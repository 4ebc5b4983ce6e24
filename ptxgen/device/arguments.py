"""The parameter block of a launch, packed from Python values."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Sequence

import numpy as np

from ptxgen.device.arrays import DeviceArray
from ptxgen.device.kernel import Kernel, ParameterInfo, shortened_name


class KernelArgumentError(ValueError):
    """An argument does not fit its parameter: wrong count, kind, size or range."""


def pack_arguments(kernel: Kernel, args: Sequence[object]) -> bytes:
    """The parameter block of a launch: every argument at its parameter's offset, gaps zero.

    A DeviceArray gives its address; bytes, structures of ctypes and objects with `.encode()` (TensorMap) give their
    bytes, NumPy scalars their own; an int is stored in the parameter's size, a float in its floating-point type.
    Raises KernelArgumentError.
    """
    parameters = kernel.parameters
    if len(args) != len(parameters):
        name = shortened_name(kernel.name)
        expected = ", ".join(f"{index}: {info.declaration}" for index, info in enumerate(parameters)) or "none"
        raise KernelArgumentError(f"{name} takes {len(parameters)} arguments ({expected}), but {len(args)} were given")
    block = bytearray(kernel.parameter_bytes)
    for index, (info, value) in enumerate(zip(parameters, args, strict=True)):
        try:
            data = _argument_bytes(info, value)
        except _DoesNotFitError as reason:
            name = shortened_name(kernel.name)
            raise KernelArgumentError(
                f"argument {index} of {name} is for {info.declaration} ({info.size} bytes), but {reason}"
            ) from None
        block[info.offset : info.offset + info.size] = data
    return bytes(block)


class _DoesNotFitError(Exception):
    """Why a value cannot be the argument of a parameter, as the end of a sentence."""


def _argument_bytes(info: ParameterInfo, value: object) -> bytes:
    if isinstance(value, DeviceArray):
        if info.size != 8:
            raise _DoesNotFitError("a device array was given, whose address has 8 bytes")
        return value.address.to_bytes(8, "little")
    if isinstance(value, np.ndarray):
        raise _DoesNotFitError(
            f"a NumPy array of shape {value.shape} was given; copy it to the device with .array(), or pass "
            "one element, or .tobytes()"
        )
    if isinstance(value, np.generic) or type(value).__module__.startswith("ml_dtypes"):
        scalar = np.asarray(value)
        return _exactly(info, scalar.tobytes(), "a NumPy {}", scalar.dtype)
    if isinstance(value, ctypes.Structure | ctypes.Union | ctypes.Array):
        return _exactly(info, bytes(value), f"a {type(value).__name__}")
    if isinstance(value, bytes | bytearray | memoryview):
        return _exactly(info, bytes(value), f"{type(value).__name__}")
    if isinstance(value, int):
        return _integer_bytes(info, value)
    if isinstance(value, float):
        return _float_bytes(info, value)
    encode = getattr(value, "encode", None)
    if callable(encode) and not isinstance(value, str):
        data = encode()
        if isinstance(data, bytes | bytearray):
            return _exactly(info, bytes(data), f"a {type(value).__name__}")
    raise _DoesNotFitError(
        f"a {type(value).__name__} was given; pass a device array, a tensormap, a NumPy scalar, an int, "
        "a float or bytes"
    )


def _exactly(info: ParameterInfo, data: bytes, what: str, *named: object) -> bytes:
    """The bytes, if there are as many as the parameter has; `what` is formatted with what is `named` only if not."""
    if len(data) != info.size:
        raise _DoesNotFitError(f"{what.format(*named)} of {len(data)} bytes was given")
    return data


def _integer_bytes(info: ParameterInfo, value: int) -> bytes:
    if info.is_array:
        raise _DoesNotFitError(f"the int {value} was given; an array parameter takes bytes")
    if _is_float(info):
        try:
            return _float_bytes(info, float(value))
        except OverflowError:
            raise _DoesNotFitError(f"the int {value} is out of range of .{info.type}") from None
    bits = info.size * 8
    # .u32 and .b32 hold C's int too, but of a type that says it has no sign a negative number is a mistake.
    low = 0 if info.type.startswith("u") else -(2 ** (bits - 1))
    high = 2 ** (bits - 1) if info.type.startswith("s") else 2**bits
    if not low <= value < high:
        sign = f"; numpy.int{bits}({value}) passes its bits" if value < 0 and not low else ""
        raise _DoesNotFitError(f"the int {value} is outside {low}..{high - 1}{sign}")
    return (value % 2**bits).to_bytes(info.size, "little")


def _float_bytes(info: ParameterInfo, value: float) -> bytes:
    if info.is_array or not _is_float(info):
        raise _DoesNotFitError(
            f"the float {value!r} was given, which needs an .f32 or .f64 parameter; pass a NumPy scalar, "
            f"such as numpy.float32({value!r}), to say which bits are meant"
        )
    try:
        return struct.pack({2: "<e", 4: "<f", 8: "<d"}[info.size], value)
    except OverflowError:
        raise _DoesNotFitError(f"the float {value!r} is out of range of .{info.type}") from None


def _is_float(info: ParameterInfo) -> bool:
    return re.fullmatch(r"f(16|32|64)", info.type) is not None
