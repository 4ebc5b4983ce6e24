"""A kernel around wgmma instructions: shared memory from an image, registers from arrays, accumulators read back.

Where the elements of operands and accumulators lie is written here from the manual's figures and what an H200 showed of
them (wgmma reads chunk ^= address >> 7), not taken from ptxgen.layouts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ptxgen import Kernel
from ptxgen.device import LaunchReport
from ptxgen.emulator import Emulator
from tests.support.harness import module

#: Bytes of the operand buffer; it begins at shared address 1024.
IMAGE = 49152
BASE = 1024
NUMPY: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8, "f32": np.float32, "s32": np.int32,
}  # fmt: skip
#: (bytes of a row, how many address bits from bit 4 up are XORed, code in bits 62-63): PTX ISA 9.7.15.5.1.2.
SWIZZLES = {"none": (16, 0, 0), "128B": (128, 3, 1), "64B": (64, 2, 2), "32B": (32, 1, 3)}

TEXT = """
    .shared .align 1024 .b8 image[49152];
    .reg .pred %p, %q; .reg .b32 %t, %warp, %x, %y, %place, %meta, %w, %z, %d<256>, %a<4>;
    .reg .b64 %from, %source, %c, %areg, %out, %m, %da, %db;
    mov.u32 %t, %tid.x;
    shr.u32 %warp, %t, 5;
    ld.param.u64 %source, [source];
    ld.param.u64 %c, [c];
    ld.param.u64 %areg, [areg];
    ld.param.u64 %m, [m];
    ld.param.u64 %out, [out];
    mov.u32 %x, 0;
    fill:
    mad.lo.u32 %y, %t, 16, %x;
    cvt.u64.u32 %from, %y;
    add.u64 %from, %from, %source;
    mov.u32 %place, image;
    add.u32 %place, %place, %y;
    ld.global.v4.u32 {%a0, %a1, %a2, %a3}, [%from];
    st.shared.v4.u32 [%place], {%a0, %a1, %a2, %a3};
    mov.u32 %z, %ntid.x;
    mad.lo.u32 %x, %z, 16, %x;
    setp.lt.u32 %p, %x, 49152;
    @%p bra fill;
    mov.u32 %z, %ctaid.x;
    mov.u32 %w, %ntid.x;
    mad.lo.u32 %z, %z, %w, %t;
    mul.wide.u32 %from, %z, $BYTES;
    add.u64 %c, %c, %from;
    add.u64 %out, %out, %from;
    mul.wide.u32 %from, %z, 16;
    add.u64 %areg, %areg, %from;
    mul.wide.u32 %from, %z, 4;
    add.u64 %m, %m, %from;
    ld.global.b32 %meta, [%m];
    ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%areg];
$LOAD
    fence.proxy.async;
    bar.sync 0;
$BODY
$STORE
    end: ret;
"""

WAIT = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"


def registers(count: int, first: int = 0) -> str:
    return "{" + ", ".join(f"%d{first + i}" for i in range(count)) + "}"


def source(body: str, count: int) -> str:
    """The module; every thread has `count` accumulator registers, %d0 and up."""
    load = "\n".join(f"ld.global.b32 %d{i}, [%c+{4 * i}];" for i in range(count))
    store = "\n".join(f"st.global.b32 [%out+{4 * i}], %d{i};" for i in range(count))
    text = TEXT
    for name, value in (("$BYTES", str(4 * count)), ("$LOAD", load), ("$STORE", store), ("$BODY", body)):
        text = text.replace(name, value)
    parameters = ", ".join(f".param .u64 {name}" for name in ("source", "c", "areg", "m", "out"))
    return module(text, parameters, target="sm_90a")


class Run(NamedTuple):
    report: LaunchReport
    #: Words of the accumulators: [threads, registers].
    words: NDArray[np.uint32]
    text: str


def run(
    body: str,
    count: int,
    image: NDArray[np.uint8] | None = None,
    *,
    c: NDArray[np.uint32] | None = None,
    a: NDArray[np.uint32] | None = None,
    metadata: NDArray[np.uint32] | None = None,
    threads: int = 128,
    ctas: int = 1,
    **options: Any,
) -> Run:
    """Run a body. `c` are the accumulators before it [threads, count], `a` the registers of A, `metadata` one word."""
    emulator = Emulator("sm_90a", **options)
    padded = np.zeros(IMAGE, np.uint8)
    if image is not None:
        padded[: len(image)] = image
    whole = threads * ctas
    out = emulator.array(np.full((whole, count), 0xCDCDCDCD, np.uint32))
    inputs = [
        padded,
        c if c is not None else np.zeros((whole, count), np.uint32),
        a if a is not None else np.zeros((whole, 4), np.uint32),
        metadata if metadata is not None else np.zeros(whole, np.uint32),
    ]
    text = source(body, count)
    arguments = [*(emulator.array(np.ascontiguousarray(each)) for each in inputs), out]
    report = emulator.launch(Kernel.from_ptx(text), ctas, threads, arguments)
    return Run(report, out.numpy(), text)


class Operand:
    """A matrix [rows, depth] in shared memory: where its elements lie, and its descriptor; offsets from the image."""

    def __init__(
        self, major: str, swizzle: str, start: int, lbo: int, sbo: int, bits: int, base_offset: int = 0
    ) -> None:
        self.major, self.swizzle, self.start, self.bits = major, swizzle, start, bits
        self.lbo, self.sbo, self.base_offset = lbo, sbo, base_offset

    @property
    def descriptor(self) -> int:
        return (
            (BASE + self.start) >> 4
            | (self.lbo >> 4) << 16
            | (self.sbo >> 4) << 32
            | self.base_offset << 49
            | SWIZZLES[self.swizzle][2] << 62
        )

    def address(self, row: int, k: int) -> int:
        """The first byte of element (row, k); of single bits, the byte that it is in."""
        width, bits, _ = SWIZZLES[self.swizzle]
        if self.major == "k":
            along = k * self.bits // 8
            if self.swizzle == "none":
                at = row // 8 * self.sbo + along // 16 * self.lbo + row % 8 * 16 + along % 16
            else:
                at = row // 8 * self.sbo + row % 8 * width + along
        else:
            along = row * self.bits // 8
            if self.swizzle == "none":
                at = along // 16 * self.sbo + k // 8 * self.lbo + k % 8 * 16 + along % 16
            else:
                at = along // width * self.lbo + k // 8 * self.sbo + k % 8 * width + along % width
        absolute = BASE + self.start + at
        return (absolute ^ ((((absolute >> 7) - self.base_offset) & ((1 << bits) - 1)) << 4)) - BASE

    def put(self, image: NDArray[np.uint8], values: NDArray[Any]) -> None:
        """Lay a matrix out; single bits are given as 0 and 1."""
        if self.bits == 1:
            for row, k in np.argwhere(values):
                image[self.address(row, k)] |= 1 << k % 8
            return
        size = self.bits // 8
        octets = np.ascontiguousarray(values).view(np.uint8).reshape(*values.shape, size)
        for row, k in np.ndindex(values.shape):
            at = self.address(row, k)
            image[at : at + size] = octets[row, k]


def accumulator_place(thread: int, i: int) -> tuple[int, int]:
    """Row and column of accumulator element i of a thread (PTX ISA, figure 149; measured on an H200)."""
    warp, t = divmod(thread, 32)
    return 16 * warp + t // 4 + 8 * ((i // 2) & 1), 8 * (i // 4) + 2 * (t % 4) + (i & 1)


def matrix_of(words: NDArray[np.uint32], n: int, type: str) -> NDArray[Any]:
    """Accumulator registers [128, count] as a matrix [64, n]."""
    elements = words.view(NUMPY[type]).reshape(128, -1)
    found = np.empty((64, n), elements.dtype)
    for thread, i in np.ndindex(elements.shape):
        found[accumulator_place(thread, i)] = elements[thread, i]
    return found


def words_of(matrix: NDArray[Any]) -> NDArray[np.uint32]:
    """A matrix [64, n] as accumulator registers [128, count]."""
    count = matrix.shape[1] // 2
    elements = np.empty((128, count), matrix.dtype)
    for thread, i in np.ndindex(elements.shape):
        elements[thread, i] = matrix[accumulator_place(thread, i)]
    return elements.view(np.uint32)


#: k of element e of register r of thread t of a warp, by bits (figures 148 to 154; measured, but for single bits).
A_DEPTH: dict[int, Callable[[int, int, int], int]] = {
    16: lambda t, r, e: 2 * (t % 4) + 8 * (r >> 1) + e,
    32: lambda t, r, e: t % 4 + 4 * (r >> 1),
    8: lambda t, r, e: 4 * (t % 4) + 16 * (r >> 1) + e,
    1: lambda t, r, e: 32 * (t % 4) + 128 * (r >> 1) + e,
}


def a_words(matrix: NDArray[Any], bits: int) -> NDArray[np.uint32]:
    """A matrix A [64, 256 / bits] as registers [128, 4]; single bits are given as 0 and 1."""
    per = 32 // bits
    words = np.zeros((128, 4), np.uint32)
    values = matrix if bits == 1 else np.ascontiguousarray(matrix).view(f"u{bits // 8}")
    for thread, r, e in np.ndindex(128, 4, per):
        warp, t = divmod(thread, 32)
        row = 16 * warp + t // 4 + 8 * (r & 1)
        words[thread, r] |= np.uint32(int(values[row, A_DEPTH[bits](t, r, e)]) << bits * e)
    return words
