"""tcgen05.cp and shift: every shape, multicast, decompression and swizzle. References from PTX ISA 9.7.16.9.

Row r of the source is where a K-major operand has it (fact copy-rows); its bytes fill the columns of a lane.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microtests.harness import tensor_layouts as layouts
from microtests.harness.definition import microtest
from microtests.harness.draft import Draft
from microtests.harness.tensor import LANES, Tensor
from ptxgen.builder import Register
from ptxgen.instr import tcgen05

#: Shape and multicast: rows of the source, bytes of a row.
SHAPES = {
    ("128x256b", None): (128, 32),
    ("4x256b", None): (4, 32),
    ("128x128b", None): (128, 16),
    ("64x128b", "warpx2::02_13"): (64, 16),
    ("64x128b", "warpx2::01_23"): (64, 16),
    ("32x128b", "warpx4"): (32, 16),
}
FORMATS = {None: 8, "b6x16_p32": 6, "b4x16_p64": 4}
_COLUMNS = 16


def destinations(shape: str, multicast: str | None, row: int) -> list[int]:
    """The lanes that get a row: a warp's are 32."""
    if shape == "4x256b":  # one row for each warp
        return [32 * row]
    if shape == "32x128b":
        return [row + 32 * warp for warp in range(4)]
    if shape != "64x128b":
        return [row]
    half, inner = divmod(row, 32)
    warps = (half, half + 2) if multicast == "warpx2::02_13" else (2 * half, 2 * half + 1)
    return [32 * warp + inner for warp in warps]


def expanded(row: np.ndarray, bits: int) -> np.ndarray:
    """16 elements of 4 or 6 bits in each 16 bytes, and padding, as bytes of their own: 4 bits are in bits 2 to 5."""
    found = np.empty_like(row)
    for unit in range(0, len(row), 16):
        word = int.from_bytes(row[unit : unit + 2 * bits].tobytes(), "little")
        for index in range(16):
            code = word >> bits * index & (1 << bits) - 1
            found[unit + index] = code << 2 if bits == 4 else code
    return found


class Copy:
    """A source in shared memory, and what tensor memory holds after it is copied to a column."""

    def __init__(self, shape: str, multicast: str | None, format: str | None = None, ctas: int = 1) -> None:
        self.shape, self.multicast, self.format, self.ctas = shape, multicast, format, ctas
        self.rng = np.random.default_rng(91)
        rows, size = SHAPES[shape, multicast]
        self.source = self.rng.integers(0, 256, (ctas, rows, size)).astype(np.uint8)
        self.cells = self.rng.integers(0, 2**32, (ctas, LANES, _COLUMNS), dtype=np.uint32)

    def descriptor(self, tensor: Tensor, swizzle: str, gap: int, start: int = 0, lbo: int | None = None) -> Register:
        images = [layouts.image(each, swizzle, np.random.default_rng(92), start=start, gap=gap) for each in self.source]
        bits = images[0].bits
        if lbo is not None:
            bits = bits & ~(0x3FFF << 16) | (lbo >> 4) << 16
        return tensor.descriptor(tensor.share(np.stack([each.memory for each in images])), bits, start)

    def instruction(self, place: Register, descriptor: Register) -> Any:
        return tcgen05.cp(
            f"[{place}]",
            descriptor,
            cta_group=self.ctas,  # type: ignore[arg-type]
            shape=self.shape,  # type: ignore[arg-type]
            multicast=self.multicast,  # type: ignore[arg-type]
            dst_fmt=self.format and "b8x16",  # type: ignore[arg-type]
            src_fmt=self.format,  # type: ignore[arg-type]
        )

    def after(self, column: int, lane: int = 0) -> np.ndarray:
        for cells, rows in zip(self.cells, self.source, strict=True):
            for number, row in enumerate(rows):
                data = row if self.format is None else expanded(row, FORMATS[self.format])
                words = np.ascontiguousarray(data).view(np.uint32)
                for to in destinations(self.shape, self.multicast, number):
                    cells[to + lane, column : column + len(words)] = words
        return self.shaped

    @property
    def shaped(self) -> np.ndarray:
        return self.cells if self.ctas > 1 else self.cells[0]

    def run(
        self, draft: Draft, swizzle: str = "none", gap: int = 0, lane: int = 0, leader: int = 0, **options: Any
    ) -> None:
        tensor = Tensor(draft, _COLUMNS, self.ctas)
        tensor.leader = leader
        tensor.fill(self.shaped)
        column = 4
        tensor.issue(self.instruction(tensor.at(column, lane), self.descriptor(tensor, swizzle, gap, **options)))
        tensor.dump(self.after(column, lane))
        tensor.end()


@microtest(*((*shape, format, ctas) for shape in SHAPES for format in FORMATS for ctas in (1, 2)))
def cp(draft: Draft, shape: str, multicast: str | None, format: str | None, ctas: int) -> None:
    """Every shape and format; each CTA of a pair copies from its own shared memory."""
    Copy(shape, multicast, format, ctas).run(draft)


@microtest(*((*shape, swizzle) for shape in SHAPES for swizzle in ("none", "32B", "64B", "128B")))
def swizzles(draft: Draft, shape: str, multicast: str | None, swizzle: str) -> None:
    """Sources with swizzles, and gaps between groups of 8 rows."""
    Copy(shape, multicast).run(draft, swizzle, 1)


@microtest(*((format, swizzle) for format in ("b6x16_p32", "b4x16_p64") for swizzle in ("32B", "128B")))
def swizzled_formats(draft: Draft, format: str, swizzle: str) -> None:
    """Decompression of a swizzled source."""
    Copy("128x256b", None, format).run(draft, swizzle, 1)


@microtest(("128x128b", 16), ("128x128b", 96), ("32x128b", 64))
def starts(draft: Draft, shape: str, start: int) -> None:
    """Sources that begin inside the rows of a swizzle."""
    Copy(shape, "warpx4" if shape == "32x128b" else None).run(draft, "128B", start=start)


@microtest("32x128b", "128x128b")
def unread_stride(draft: Draft, shape: str) -> None:
    """Rows of 16 bytes do not need the stride between the two of 32."""
    Copy(shape, "warpx4" if shape == "32x128b" else None).run(draft, lbo=0)


@microtest("128x256b", "4x256b")
def issued_by_the_odd_cta(draft: Draft, shape: str) -> None:
    """Either CTA of a pair may issue."""
    Copy(shape, None, ctas=2).run(draft, leader=1)


@microtest(1, 31)
def rows_of_four(draft: Draft, lane: int) -> None:
    """4x256b replaces one lane of each warp's: the lane of the address (fact shift-direction)."""
    Copy("4x256b", None).run(draft, lane=lane)


@microtest()
def then_product_order(draft: Draft) -> None:
    """Copies to the same columns take effect in the order in which they are issued, one after the other's commit."""
    tensor = Tensor(draft, _COLUMNS)
    first, second = Copy("128x256b", None), Copy("64x128b", "warpx2::01_23")
    second.source = second.source[:, ::-1]
    tensor.fill(first.shaped)
    for copy in (first, second):
        tensor.issue(copy.instruction(tensor.at(4), copy.descriptor(tensor, "none", 0)))
    second.cells = first.after(4)[None].copy()
    tensor.dump(second.after(4))
    tensor.end()


def shifted(cells: np.ndarray, column: int = 4) -> np.ndarray:
    """Tensor memory [CTAs, 128, columns] after a shift at a column (fact shift-direction)."""
    after = cells.copy()
    for lane in range(LANES):
        if lane % 32 != 31:
            after[:, lane, column : column + 8] = cells[:, lane + 1, column : column + 8]
    return after


@microtest(*((lane, ctas) for lane in (0, 32, 96) for ctas in (1, 2)))
def shift(draft: Draft, lane: int, ctas: int) -> None:
    """Each lane takes 8 columns of the next one (fact shift-direction); the last of each quarter keeps its own."""
    cells = np.random.default_rng(93).integers(0, 2**32, (ctas, LANES, _COLUMNS), dtype=np.uint32)
    tensor = Tensor(draft, _COLUMNS, ctas)
    tensor.fill(cells if ctas > 1 else cells[0])
    tensor.issue(tcgen05.shift(f"[{tensor.at(4, lane)}]", cta_group=tensor.group))
    after = shifted(cells)
    tensor.dump(after if ctas > 1 else after[0])
    tensor.end()


@microtest(1, 2)
def shift_then_copy(draft: Draft, ctas: int) -> None:
    """A shift, then the new last rows by 4x256b: a pipeline, in the order of issue (9.7.16.6.2)."""
    copy = Copy("4x256b", None, ctas=ctas)
    tensor = Tensor(draft, _COLUMNS, ctas)
    tensor.fill(copy.shaped)
    copy.cells = shifted(copy.cells)
    shift = tcgen05.shift(f"[{tensor.at(4)}]", cta_group=tensor.group)
    tensor.issue(shift, copy.instruction(tensor.at(4, 31), copy.descriptor(tensor, "none", 0)))
    tensor.dump(copy.after(4, 31))
    tensor.end()
