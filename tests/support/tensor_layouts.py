"""Where tcgen05's matrices lie, element by element in plain Python from the manual's words and figures; a bench that
collects products into one kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import LaunchReport
from tests.support.tensor_kernel import BASE, IMAGE, SWIZZLE_CODES, SWIZZLES, commit, dump, run

#: (exponent bits, mantissa bits, bias) of narrow floats; the largest exponents that are no infinity or NaN.
FLOATS = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15), "e2m3": (2, 3, 1), "e3m2": (3, 2, 3), "e2m1": (2, 1, 1)}
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4}
CODES = {"f16": 0, "bf16": 1, "tf32": 2, "u8": 0, "s8": 1, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
D_CODES = {"f16": 0, "f32": 1, "s32": 2}


def value(code: int, type: str) -> float:
    """The number that a code stands for."""
    if type in FLOATS:
        exponents, mantissas, bias = FLOATS[type]
        sign = -1.0 if code >> (exponents + mantissas) & 1 else 1.0
        exponent, mantissa = code >> mantissas & ((1 << exponents) - 1), code & ((1 << mantissas) - 1)
        if exponent == 0:
            return sign * mantissa * 2.0 ** (1 - bias - mantissas)
        return sign * (1 + mantissa * 2.0**-mantissas) * 2.0 ** (exponent - bias)
    if type == "s8":
        return float(code - 256 if code >= 128 else code)
    if type == "u8":
        return float(code)
    word = np.array(code << 16 if type == "bf16" else code, np.uint32 if type != "f16" else np.uint16)
    if type == "f16":
        return float(word.view(np.float16)[()])
    if type == "tf32":
        word = word & np.uint32(0xFFFFE000)
    return float(word.view(np.float32)[()])


def codes_of(rng: np.random.Generator, shape: tuple[int, int], type: str) -> NDArray[Any]:
    """Random codes; no infinities or NaN, and exponents near 1 in the wide types."""
    raw = rng.integers(0, 1 << min(BITS[type], 31), shape, dtype=np.uint32)
    if type == "e4m3":
        return np.where(raw & 0x7F == 0x7F, raw & 0x80, raw)
    if type == "e5m2":
        return np.where(raw >> 2 & 31 >= 24, raw & 0x83 | 15 << 2, raw)
    if type in ("f16", "bf16", "tf32"):
        numbers = (rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 4, shape)).astype(np.float32)
        if type == "f16":
            return numbers.astype(np.float16).view(np.uint16).astype(np.uint32)
        bits = numbers.view(np.uint32)
        return bits >> 16 if type == "bf16" else bits  # tf32 keeps bits that do not count
    return raw


def values_of(codes: NDArray[np.uint32], type: str) -> NDArray[np.float64]:
    table = {int(code): value(int(code), type) for code in np.unique(codes)}
    return np.array([[table[int(code)] for code in row] for row in codes])


def set_bits(image: NDArray[np.uint8], byte: int, bit: int, count: int, code: int) -> None:
    """Put `count` bits of a code from bit `bit` of a byte on, low bits first."""
    size = (bit + count + 7) // 8
    word = int.from_bytes(image[byte : byte + size].tobytes(), "little")
    mask = ((1 << count) - 1) << bit
    word = word & ~mask | (code << bit & mask)
    image[byte : byte + size] = np.frombuffer(word.to_bytes(size, "little"), np.uint8)


@dataclass
class Matrix:
    """A matrix operand in shared memory: `size` bits an element, packed (4 bits), or padded to 16 in 16 bytes."""

    type: str
    major: str
    swizzle: str
    start: int
    lbo: int
    sbo: int
    packed: bool = False

    @property
    def descriptor(self) -> int:
        """PTX ISA table 40."""
        return (
            (BASE + self.start) >> 4
            | (self.lbo >> 4) << 16
            | (self.sbo >> 4) << 32
            | 1 << 46
            | SWIZZLE_CODES[self.swizzle] << 61
        )

    def place(self, row: int, k: int) -> tuple[int, int]:
        """(byte of the image, bit) of an element: 9.7.16.3.3 and 9.7.16.10.4."""
        bits = BITS[self.type]
        width, low, count = SWIZZLES[self.swizzle]
        within = 0
        if self.major == "k":
            if bits in (4, 6) and not self.packed:
                along, within = k // 16 * 16 + k % 16 * bits // 8, k % 16 * bits % 8
            else:
                along, within = k * bits // 8, k * bits % 8
            if self.swizzle == "none":
                at = row // 8 * self.sbo + along // 16 * self.lbo + row % 8 * 16 + along % 16
            else:
                at = row // 8 * self.sbo + row % 8 * width + along
        else:
            along = row * bits // 8
            if self.swizzle == "none":
                at = along // 16 * self.sbo + k // 8 * self.lbo + k % 8 * 16 + along % 16
            elif self.swizzle == "128B_atom_32B":
                at = along // width * self.lbo + k // 4 * self.sbo + k % 4 * width + along % width
            else:
                at = along // width * self.lbo + k // 8 * self.sbo + k % 8 * width + along % width
        absolute = BASE + self.start + at
        return (absolute ^ (((absolute >> 7) & ((1 << count) - 1)) << low)) - BASE, within

    def put(self, image: NDArray[np.uint8], codes: NDArray[np.uint32]) -> None:
        for row in range(codes.shape[0]):
            for k in range(codes.shape[1]):
                byte, bit = self.place(row, k)
                if BITS[self.type] >= 8 and bit == 0:
                    for i in range(BITS[self.type] // 8):
                        image[byte + i] = int(codes[row, k]) >> 8 * i & 255
                else:
                    set_bits(image, byte, bit, BITS[self.type], int(codes[row, k]))


def accumulator_place(row: int, col: int, m: int, n: int, ws: bool = False) -> tuple[int, int]:
    """(lane, column) of D of one CTA: figures of 9.7.16.10.5."""
    if m == 128:
        return row, col
    if m == 64 and not ws:
        return 32 * (row // 16) + row % 16, col
    parts = 128 // m
    return row + m * (col // (n // parts)), col % (n // parts)


def a_row(lane: int, m: int, ws: bool = False) -> int | None:
    """Which row of A (and of metadata) a lane holds; None for none."""
    if m == 64 and not ws:
        return 16 * (lane // 32) + lane % 32 if lane % 32 < 16 else None
    return lane % m


class Bench:
    """Products collected into one kernel: `image` fills shared memory, `body` issues them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.image = self.rng.integers(0, 256, IMAGE, dtype=np.uint8)
        self.body = ""
        self.used = 0
        self.columns = 0

    def room(self, size: int, alignment: int = 1024) -> int:
        """Bytes of the image for one operand."""
        start = -(-self.used // alignment) * alignment
        self.used = start + size
        assert self.used <= IMAGE, "the bench is full"
        return start

    def take(self, columns: int, step: int = 8) -> int:
        """Columns of tensor memory."""
        start = -(-self.columns // step) * step
        self.columns = start + columns
        assert self.columns <= 512, "tensor memory is full"
        return start

    def matrix(
        self, codes: NDArray[np.uint32], type: str, major: str = "k", swizzle: str = "128B", packed: bool = False
    ) -> Matrix:
        """An operand [rows, K] in the image, with strides that leave gaps where they may."""
        rows, k = codes.shape
        width = SWIZZLES[swizzle][0]
        bits = 8 if BITS[type] < 8 and not packed else BITS[type]
        if major == "k":
            if swizzle == "none":  # 16-byte chunks of K side by side in each group of 8 rows
                chunks = k * bits // 128
                made = Matrix(type, major, swizzle, self.room(rows // 8 * chunks * 128), 128, chunks * 128, packed)
            else:
                made = Matrix(type, major, swizzle, self.room(rows // 8 * 8 * width), 16, 8 * width, packed)
        elif swizzle == "none":  # chunks of rows after each other, in groups of 8 K
            chunks = rows * bits // 128
            made = Matrix(type, major, swizzle, self.room(k // 8 * chunks * 128), chunks * 128, 128)
        else:
            group = 4 if swizzle == "128B_atom_32B" else 8
            blocks = -(-rows * bits // 8 // width)
            made = Matrix(type, major, swizzle, self.room(k * width * blocks), k * width, group * width)
        made.put(self.image, codes)
        return made

    def fill(self, words: NDArray[Any]) -> int:
        """Columns of tensor memory with these words [128 lanes, columns], by tcgen05.st of every warp."""
        width = words.shape[1]
        column = self.take(width, 4)
        start = self.room(512 * width, 16)
        self.image[start : start + 512 * width] = np.ascontiguousarray(words.astype(np.uint32)).view(np.uint8).ravel()
        lines = [f"mov.u32 %x, image; mad.lo.u32 %x, %t, {4 * width}, %x;"]
        names = [f"%r{i}" for i in range(width)]
        lines += [f"ld.shared.b32 {name}, [%x+{start + 4 * i}];" for i, name in enumerate(names)]
        done = 0
        while done < width:
            num = 1 << (width - done).bit_length() - 1
            some = ", ".join(names[done : done + num])
            lines.append(
                f"add.u32 %y, %taddr, {column + done}; tcgen05.st.sync.aligned.32x32b.x{num}.b32 [%y], {{{some}}};"
            )
            done += num
        self.body += "\n".join(lines) + "\ntcgen05.wait::st.sync.aligned;\n"
        return column

    def sync(self) -> None:
        """What the threads stored is there for the tensor core."""
        self.body += "tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;\n"

    def issue(self, text: str, **values: Any) -> None:
        """An instruction by one thread; `{name}` in the text are registers that hold the values, {d:..} addresses."""
        lines = ["{ .reg .b64 %wide<4>; .reg .b32 %narrow<8>;"]
        wide = narrow = 0
        for name, given in values.items():
            if (name in ("a", "b", "mask") and given > 0xFFFF) or name in ("b", "sdesc", "mask"):
                lines.append(f"mov.b64 %wide{wide}, {given};")
                values[name], wide = f"%wide{wide}", wide + 1
            elif name == "idesc":
                lines.append(f"mov.b32 %narrow{narrow}, {given};")
                values[name], narrow = f"%narrow{narrow}", narrow + 1
            elif name in ("d", "at", "meta", "sfa", "sfb", "a"):
                lines.append(f"add.u32 %narrow{narrow}, %d, {given};")
                values[name], narrow = f"%narrow{narrow}", narrow + 1
        lines.append("@%leader " + text.format(**values) + " }")
        self.body += "\n".join(lines) + "\n"

    def run(self, columns: int | None = None, **options: Any) -> tuple[LaunchReport, NDArray[np.uint32]]:
        """The report, and the words of tensor memory [128, columns]."""
        count = -(-(columns or self.columns) // 8) * 8
        report, words = run(self.body + commit() + dump(count), self.image, 128 * count, **options)
        return report, words.reshape(128, count)


def errors(report: LaunchReport) -> set[str]:
    """Codes of errors; the dump reads cells that nothing has written."""
    return {each.code for each in report.findings if each.severity == "error"} - {"uninitialized-tensor"}


def gather(words: NDArray[np.uint32], m: int, n: int, column: int, ws: bool = False) -> NDArray[np.uint32]:
    """D [m, n] from tensor memory."""
    found = np.zeros((m, n), np.uint32)
    for row in range(m):
        for col in range(n):
            lane, at = accumulator_place(row, col, m, n, ws)
            found[row, col] = words[lane, column + at]
    return found


def close(found: NDArray[np.uint32], exact: NDArray[np.float64], magnitude: NDArray[np.float64], terms: int) -> None:
    """.f32 sums of exact products in any order: an error of at most one rounding of the magnitude for each term."""
    wrong = np.abs(found.view(np.float32).astype(np.float64) - exact) > magnitude * terms * 2.0**-23 + 2.0**-140
    assert not wrong.any(), (np.argwhere(wrong)[:4], found.view(np.float32)[wrong][:4], exact[wrong][:4])
