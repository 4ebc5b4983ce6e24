"""A kernel around tcgen05 instructions: shared memory from an image, TMEM allocated, accumulators dumped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ptxgen import Kernel
from ptxgen.device import LaunchReport
from ptxgen.emulator import Emulator
from tests.support.harness import module

#: Bytes of the operand buffer; it begins at shared address 1024.
IMAGE = 98304
BASE = 1024
THREADS = 128
NUMPY: dict[str, Any] = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}
#: (bytes of a row, first XORed address bit, how many): PTX ISA 9.7.16.3, from bit 7 up.
SWIZZLES = {"none": (16, 4, 0), "32B": (32, 4, 1), "64B": (64, 4, 2), "128B": (128, 4, 3), "128B_atom_32B": (128, 5, 2)}
SWIZZLE_CODES = {"none": 0, "128B_atom_32B": 1, "128B": 2, "64B": 4, "32B": 6}

TEXT = """
    .shared .align 1024 .b8 image[98304]; .shared .align 8 .b64 done; .shared .align 4 .b32 slot;
    .reg .pred %p, %q, %leader; .reg .b32 %t, %warp, %x, %y, %z, %w, %place, %d, %columns, %taddr, %phase;
    .reg .b64 %from, %to, %source, %out, %desc; .reg .b32 %r<128>;
    mov.u32 %t, %tid.x;
    shr.u32 %warp, %t, 5;
    ld.param.u64 %source, [source];
    ld.param.u64 %out, [out];
    mov.u32 %x, 0;
    mov.u32 %phase, 0;
    fill:
    mad.lo.u32 %y, %t, 16, %x;
    cvt.u64.u32 %from, %y;
    add.u64 %from, %from, %source;
    mov.u32 %place, image;
    add.u32 %place, %place, %y;
    ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%from];
    st.shared.v4.u32 [%place], {%r0, %r1, %r2, %r3};
    add.u32 %x, %x, 2048;
    setp.lt.u32 %p, %x, 98304;
    @%p bra fill;
    setp.eq.u32 %leader, %t, 0;
    @%leader mbarrier.init.shared::cta.b64 [done], 1;
    fence.proxy.async;
    setp.ne.u32 %p, %warp, 0;
    mov.u32 %columns, 512;
    @%p bra allocated;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], %columns;
    allocated:
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %d, [slot];
    shl.b32 %taddr, %warp, 21;
    add.u32 %taddr, %taddr, %d;
$BODY
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    setp.ne.u32 %p, %warp, 0;
    @%p bra end;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %d, %columns;
    end: ret;
"""

COMMIT = """
    @%leader tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
    waiting$N: mbarrier.try_wait.parity.shared::cta.b64 %q, [done], $PARITY;
    @!%q bra waiting$N;
    tcgen05.fence::after_thread_sync;
"""


def commit(number: int = 0) -> str:
    """Commit, and all threads wait; `number` counts the commits of a kernel."""
    return COMMIT.replace("$N", str(number)).replace("$PARITY", str(number & 1))


def dump(columns: int, first: int = 0) -> str:
    """All 128 lanes of some columns to out[lane, column]."""
    lines = [f"add.u32 %x, %taddr, {first}; mul.wide.u32 %to, %t, {4 * columns}; add.u64 %to, %to, %out;"]
    for start in range(0, columns, 8):
        names = ", ".join(f"%r{i}" for i in range(8))
        lines.append(f"add.u32 %y, %x, {start}; tcgen05.ld.sync.aligned.32x32b.x8.b32 {{{names}}}, [%y];")
        lines.append("tcgen05.wait::ld.sync.aligned;")
        for half in range(2):
            words = ", ".join(f"%r{4 * half + i}" for i in range(4))
            lines.append(f"st.global.v4.b32 [%to+{4 * (start + 4 * half)}], {{{words}}};")
    return "\n".join(lines)


def source(body: str, target: str = "sm_100a") -> str:
    version = "9.4" if target.startswith("sm_107") else "8.8"
    text = TEXT.replace("$BODY", body)
    return module(text, ".param .u64 source, .param .u64 out", target=target, version=version)


def run(
    body: str,
    image: NDArray[np.uint8],
    words: int,
    *,
    emulator: Emulator | None = None,
    target: str = "sm_100a",
    **options: Any,
) -> tuple[LaunchReport, NDArray[np.uint32]]:
    """The report, and `words` 32-bit words of output."""
    emulator = emulator or Emulator(target, **options)
    padded = np.zeros(IMAGE, np.uint8)
    padded[: len(image)] = image
    out = emulator.array(np.full(words, 0xCDCDCDCD, np.uint32))
    report = emulator.launch(Kernel.from_ptx(source(body, target)), 1, THREADS, [emulator.array(padded), out])
    return report, out.numpy()


class Operand:
    """Where the elements of one matrix operand lie, and its descriptor; offsets in bytes from the image's start."""

    def __init__(self, major: str, swizzle: str, rows: int, start: int, lbo: int, sbo: int, k: int = 16) -> None:
        self.major, self.swizzle, self.rows, self.start, self.k = major, swizzle, rows, start, k
        self.lbo, self.sbo = lbo, sbo

    @property
    def descriptor(self) -> int:
        """PTX ISA table 40: addresses and offsets in 16 bytes; 0b001 in bits 46-48."""
        return (
            (BASE + self.start) >> 4
            | (self.lbo >> 4) << 16
            | (self.sbo >> 4) << 32
            | 1 << 46
            | SWIZZLE_CODES[self.swizzle] << 61
        )

    def address(self, row: int, k: int) -> int:
        """Of element (row, k) of a 16-bit operand."""
        width, bit, bits = SWIZZLES[self.swizzle]
        if self.major == "k":
            along = 2 * k
            if self.swizzle == "none":
                at = row // 8 * self.sbo + along // 16 * self.lbo + row % 8 * 16 + along % 16
            else:
                at = row // 8 * self.sbo + row % 8 * width + along
        else:
            along = 2 * row
            if self.swizzle == "none":
                at = along // 16 * self.sbo + k // 8 * self.lbo + k % 8 * 16 + along % 16
            else:
                at = along // width * self.lbo + k // 8 * self.sbo + k % 8 * width + along % width
        absolute = BASE + self.start + at
        return (absolute ^ (((absolute >> 7) & ((1 << bits) - 1)) << bit)) - BASE

    def put(self, image: NDArray[np.uint8], values: NDArray[Any]) -> None:
        words = values.view(np.uint16)
        for row in range(self.rows):
            for k in range(self.k):
                at = self.address(row, k)
                image[at], image[at + 1] = words[row, k] & 255, words[row, k] >> 8


def instruction_descriptor(
    m: int,
    n: int,
    a: str,
    b: str,
    d: str = "f32",
    *,
    majors: Sequence[str] = ("k", "k"),
    negate: Sequence[bool] = (False, False),
) -> int:
    """PTX ISA table 42, kind::f16."""
    codes = {"f16": 0, "bf16": 1}
    return (
        (d == "f32") << 4
        | codes[a] << 7
        | codes[b] << 10
        | negate[0] << 13
        | negate[1] << 14
        | (majors[0] == "mn") << 15
        | (majors[1] == "mn") << 16
        | (n >> 3) << 17
        | (m >> 4) << 24
    )


def mma(a: int, b: int, idesc: int, accumulate: str | int, column: int = 0) -> str:
    return (
        f"add.u32 %x, %d, {column}; @%leader tcgen05.mma.cta_group::1.kind::f16 "
        f"[%x], {a:#x}, {b:#x}, {idesc:#x}, {accumulate};\n"
    )


#: A product of 128 by 32 that is right, after which D is at the first column.
A, B = Operand("k", "128B", 128, 0, 16, 1024), Operand("k", "128B", 32, 32768, 16, 1024)
GOOD = instruction_descriptor(128, 32, "bf16", "bf16")
FIRST = mma(A.descriptor, B.descriptor, GOOD, 0)
LD = "tcgen05.ld.sync.aligned.{}.x1.b32 {}, [%x];\ntcgen05.wait::ld.sync.aligned;"


def numbered() -> tuple[str, np.ndarray]:
    """A body that fills all 512 columns with D[r, n] = 512 r + n, and its image."""
    image = np.zeros(IMAGE, np.uint8)
    first = Operand("k", "128B", 128, 0, 16, 1024)
    a = np.zeros((128, 16), NUMPY["bf16"])
    a[:, 0], a[:, 1], a[:, 2] = np.arange(128), 1, 1
    first.put(image, a)
    body = ""
    for part in range(2):
        second = Operand("k", "128B", 256, 32768 * (part + 1), 16, 1024)
        b = np.zeros((256, 16), NUMPY["bf16"])
        n = np.arange(256) + 256 * part
        b[:, 0], b[:, 1], b[:, 2] = 512, n // 16 * 16, n % 16
        second.put(image, b)
        idesc = instruction_descriptor(128, 256, "bf16", "bf16")
        body += mma(first.descriptor, second.descriptor, idesc, 0, 256 * part)
    return body + commit(), image


#: Read one column of tensor memory, and wait for the load.
READ = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%taddr];\ntcgen05.wait::ld.sync.aligned;\nmov.b32 %r1, %r0;"
#: Wait for the MMA.
WAIT = commit()
