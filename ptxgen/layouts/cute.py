"""CuTe's notation: layouts as shape:stride, and Swizzle<B,M,S>; reading it, writing it, and the offsets it gives.

CUTLASS include/cute/layout.hpp and include/cute/swizzle.hpp: the offset of a coordinate is the sum of coordinate times
stride, nested modes count their first part fastest, and a layout without strides is column-major. Swizzle<B,M,S> XORs
the B bits from M + S up into the B bits from M up (S may be negative).
Units are those of the offset: elements or bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from ptxgen.layouts.swizzle import SOURCE_SHIFT, SWIZZLES

Tree: TypeAlias = "int | tuple[Tree, ...]"
"""A number, or nested ones: shapes and strides."""


@dataclass(frozen=True, slots=True)
class CuteSwizzle:
    """Swizzle<B,M,S>: `bits` wide, from bit `base` on, the source `shift` bits above (below where it is negative)."""

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if not (
            0 <= self.bits <= 16 and 0 <= self.base <= 32 and abs(self.shift) >= self.bits and abs(self.shift) <= 32
        ):
            raise ValueError(f"{self} is no swizzle: B and M are 0 or more, and |S| is at least B")

    def __str__(self) -> str:
        return f"Swizzle<{self.bits},{self.base},{self.shift}>"

    @overload
    def apply(self, offset: int) -> int: ...
    @overload
    def apply(self, offset: NDArray[np.int64]) -> NDArray[np.int64]: ...
    def apply(self, offset: int | NDArray[np.int64]) -> int | NDArray[np.int64]:
        """The swizzled offset."""
        mask = (1 << self.bits) - 1
        source = offset >> self.base + max(self.shift, 0) & mask
        return offset ^ source << self.base - min(self.shift, 0)

    def scaled(self, bits: int) -> CuteSwizzle:
        """The same XOR of byte addresses, for offsets that count elements of so many bits. Raises ValueError."""
        base = self.base + 3 - bits.bit_length() + 1
        if bits & bits - 1 or base < 0:
            raise ValueError(f"{self} of bytes moves parts of elements of {bits} bits")
        return CuteSwizzle(self.bits, base, self.shift)


def of_mode(name: str) -> CuteSwizzle:
    """The swizzle of byte addresses that a mode of TMA and descriptors is."""
    mode = SWIZZLES[name]
    return CuteSwizzle(mode.width, mode.target_bit, SOURCE_SHIFT - mode.target_bit)


@dataclass(frozen=True, slots=True)
class CuteLayout:
    """A layout: shape and stride are congruent trees of one or more modes; `swizzle` acts on the offset."""

    shape: tuple[Tree, ...]
    stride: tuple[Tree, ...]
    swizzle: CuteSwizzle | None = None

    def __str__(self) -> str:
        text = f"{_spelled(self.shape)}:{_spelled(self.stride)}"
        return f"{self.swizzle} o {text}" if self.swizzle else text

    @property
    def extents(self) -> tuple[int, ...]:
        """How many coordinates each mode has."""
        return tuple(_size(each) for each in self.shape)

    def offsets(self) -> NDArray[np.int64]:
        """The offset of each coordinate, swizzled: an array with one axis for each mode."""
        plain = np.zeros((1,) * len(self.shape), np.int64)
        for axis, (shape, stride) in enumerate(zip(self.shape, self.stride, strict=True)):
            one = _offsets(shape, stride)
            plain = plain + one.reshape([-1 if place == axis else 1 for place in range(len(self.shape))])
        return self.swizzle.apply(plain) if self.swizzle else plain


def parse(text: str) -> CuteLayout:
    """The layout of a text: `(8,(4,2)):(1,(8,32))`, `Swizzle<3,4,3> o (8,64):(64,1)`, as CuTe prints it, too.

        >>> from ptxgen.layouts.cute import parse
        >>> parse("(8,(4,2)):(4,(1,32))").shape
        (8, (4, 2))

    `Sw<..>` and `S<..>`, `_8` and what stands between the swizzle and the layout (a pointer, an offset of 0) are read.
    In `Sw<3,4,3> o smem_ptr[16b](unset) o ...` the swizzle acts on byte addresses (CUTLASS
    include/cute/pointer_flagged.hpp, as_position_independent_swizzle_layout): it becomes Swizzle<3,3,3> of elements.
    A swizzle alone acts on rows of 2^(M+|S|) elements, as many as it tells apart. Raises ValueError.
    """
    swizzle = None
    rest = re.sub(r"\s|_(?=\d)|Int<(?=\d)|(?<=\d)>(?=[,:)])", "", text)
    if match := re.match(r"S(?:w|wizzle)?<(-?\d+),(-?\d+),(-?\d+)>?[o∘]?", rest):
        bits, base, shift = map(int, match.groups())
        swizzle = CuteSwizzle(bits, base, shift)
        rest = rest[match.end() :]
        if flag := re.match(r"smem_ptr\[(\d+)b\]", rest):
            swizzle = swizzle.scaled(int(flag[1]))
        rest = re.sub(r"^(?:smem_ptr\[\w+\]\([^)]*\)|0)[o∘]", "", rest)
        if not rest:
            columns = 1 << min(base + abs(shift), 32)
            rest = f"({1 << bits},{columns}):({columns},1)"
    first, colon, second = rest.partition(":")
    shape = _tree(first)
    stride = _tree(second) if colon else _compact(shape, 1)[0]
    if isinstance(shape, int):
        shape, stride = (shape,), (stride,)
    if not isinstance(stride, tuple) or not _congruent(shape, stride):
        raise ValueError(f"shape and stride of {text[:60]!r} must have the same form")
    if _size(shape) > 1 << 20 or any(each < 1 for each in _leaves(shape)):
        raise ValueError(f"the shape of {text[:60]!r} must have 1 to {1 << 20} coordinates")
    return CuteLayout(shape, stride, swizzle)


def of_offsets(offsets: NDArray[np.int64]) -> CuteLayout | None:
    """The layout that has these offsets (an axis for each mode, unswizzled), or None if no shape:stride gives them."""
    modes = []
    for axis in range(offsets.ndim):
        found = _factored(np.moveaxis(offsets, axis, 0).reshape(offsets.shape[axis], -1)[:, 0] - offsets.flat[0])
        if found is None:
            return None
        modes.append(found)
    made = CuteLayout(tuple(shape for shape, _ in modes), tuple(stride for _, stride in modes))
    return made if np.array_equal(made.offsets() + offsets.flat[0], offsets) else None


def _factored(line: NDArray[np.int64]) -> tuple[Tree, Tree] | None:
    """Shape and stride of one mode, from the offsets of its coordinates."""
    shapes: list[int] = []
    strides: list[int] = []
    while len(line) > 1:
        step = int(line[1])
        run = int(np.argmax(np.append(line != np.arange(len(line)) * step, True)))
        while len(line) % run:
            run -= 1
        if run < 2:
            return None
        shapes.append(run)
        strides.append(step)
        if not np.array_equal(line.reshape(-1, run), line[::run, None] + line[None, :run]):
            return None
        line = line[::run]
    if not shapes:
        return 1, 0
    return (shapes[0], strides[0]) if len(shapes) == 1 else (tuple(shapes), tuple(strides))


def _offsets(shape: Tree, stride: Tree) -> NDArray[np.int64]:
    """The offsets of one mode, its first part fastest."""
    if isinstance(shape, int):
        assert isinstance(stride, int)
        return np.arange(shape, dtype=np.int64) * stride
    assert isinstance(stride, tuple)
    made = np.zeros(1, np.int64)
    for one, step in zip(shape, stride, strict=True):
        made = (_offsets(one, step)[:, None] + made[None, :]).ravel()
    return made


def _tree(text: str) -> Tree:
    tokens = re.findall(r"-?\d+|[(),]", text)
    if "".join(tokens) != text or not tokens:
        raise ValueError(f"{text[:60]!r} is no shape or stride such as (8,(4,2))")
    made, rest = _read(tokens)
    if rest:
        raise ValueError(f"{text[:60]!r} has {''.join(rest)[:20]!r} past its end")
    return made


def _read(tokens: list[str]) -> tuple[Tree, list[str]]:
    head, *rest = tokens
    if head != "(":
        if not head.lstrip("-").isdigit():
            raise ValueError(f"a number or ( must stand before {''.join(tokens)[:20]!r}")
        return int(head), rest
    parts: list[Tree] = []
    while rest:
        part, rest = _read(rest)
        parts.append(part)
        if rest[:1] == [")"]:
            return tuple(parts), rest[1:]
        if rest[:1] != [","]:
            break
        rest = rest[1:]
    raise ValueError("a ( of the layout is not closed")


def _compact(shape: Tree, step: int) -> tuple[Tree, int]:
    """Column-major strides of a shape, and the step past it."""
    if isinstance(shape, int):
        return step, step * shape
    parts: list[Tree] = []
    for each in shape:
        part, step = _compact(each, step)
        parts.append(part)
    return tuple(parts), step


def _congruent(shape: Tree, stride: Tree) -> bool:
    if isinstance(shape, int) or isinstance(stride, int):
        return isinstance(shape, int) and isinstance(stride, int)
    return len(shape) == len(stride) and all(map(_congruent, shape, stride))


def _leaves(tree: Tree) -> list[int]:
    return [tree] if isinstance(tree, int) else [leaf for each in tree for leaf in _leaves(each)]


def _size(tree: Tree) -> int:
    return prod(_leaves(tree))


def _spelled(tree: Tree) -> str:
    return str(tree) if isinstance(tree, int) else f"({','.join(map(_spelled, tree))})"
