"""What one witness consists of: a kernel, its launch, and a reference.

A kernel's module lists `WITNESSES`. Arguments are given by the names of the kernel's parameters:

- `Buffer`: a pointer. `Descriptor`: a tensor descriptor that the host makes over a buffer of the same list.
- an `int` or `float`: a scalar (int32, or int64 where it does not fit, and float32), `Long` an int64.
- `Constant`: a value at compile time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Buffer:
    """An array in global memory.

    `dtype` and `init` are those of `tools.recorded.codecs`; an output starts as 0xCD bytes, with `init`
    "poison". `lo` and `hi` bound "randint", `scale` is the standard deviation of "randn". `tolerance` is (relative,
    absolute), of this output alone.
    """

    dtype: str
    shape: tuple[int, ...]
    init: str = "randn"
    lo: int | None = None
    hi: int | None = None
    scale: float | None = None
    n: int | None = None
    role: str = "in"
    tolerance: tuple[float, float] | None = None
    #: The type of the kernel's pointer, where it is not the dtype's own.
    pointer: str | None = None


def output(dtype: str, *shape: int, tolerance: tuple[float, float] | None = None, **more: Any) -> Buffer:
    """A buffer that the kernel writes and the reference defines."""
    return Buffer(dtype, shape, init="poison", role="out", tolerance=tolerance, **more)


@dataclass(frozen=True)
class Descriptor:
    """A tensor descriptor over the buffer of that name, whose box is `block` elements.

    `shape` and `strides` (elements) stand in for the buffer's own. `layout` is Gluon's shared layout.
    """

    buffer: str
    block: tuple[int, ...]
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    padding: str = "zero"
    layout: Any = None
    round_to_tf32: bool = False
    #: The buffer is an argument of the kernel too; else it exists for the descriptor alone.
    element: str | None = None
    #: (lower corner, upper corner, element strides) of im2col.
    im2col: tuple[Sequence[int], Sequence[int], Sequence[int]] | None = None


@dataclass(frozen=True)
class Long:
    """A 64-bit integer."""

    value: int


@dataclass(frozen=True)
class Constant:
    """A value at compile time."""

    value: Any


@dataclass(frozen=True)
class Witness:
    """A kernel with its launch. `made` holds compilers and targets: t36_100 is Triton 3.6 for sm_100a, g39_90 the Gluon
    of Triton 3.9 for sm_90a. What is recorded is named by them and by `name`.
    """

    name: str
    kernel: Any
    grid: tuple[int, ...]
    made: tuple[str, ...]
    arguments: Mapping[str, Any]
    #: One of `tools.recorded.references`; functools.partial binds its parameters.
    reference: Callable[..., Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    tolerance: tuple[float, float] = (1e-2, 1e-2)
    #: Buffers that only descriptors name.
    buffers: Mapping[str, Buffer] = field(default_factory=dict)
    notes: str = ""


def reference_entry(reference: Callable[..., Any]) -> dict[str, Any]:
    """What the JSON records of a reference: its name and its parameters."""
    if isinstance(reference, functools.partial):
        assert not reference.args
        return {"name": reference.func.__name__, **reference.keywords}
    return {"name": reference.__name__}
