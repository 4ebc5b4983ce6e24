"""Loads and stores of warps by the sectors that they touch, hits in L1, cp.async, and an L2 full of others' lines.

python -m bench.gpu.microbench.more --only 'lanes|L1|cp.async|L2 after' --out FILE.json
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import numpy as np

from bench.gpu.microbench import ptx
from bench.gpu.microbench.__main__ import Measurement, Runner
from ptxgen.device import DeviceArray, Kernel

_SMS = 132
#: Bytes of the array that each launch between two of `after` writes or reads: more than the L2 has.
_OTHERS = 512 << 20


def accesses(opcode: str, width: int, step: int, *, threads: int, span: int) -> str:
    """8n times: each lane accesses `width` words, `step` bytes from the next one's; a CTA walks over `span` bytes."""
    words = ["%r40", "%r41", "%r42", "%r43"][:width]
    vector = f".v{width}" if width > 1 else ""
    operand = f"{{{', '.join(words)}}}" if width > 1 else words[0]
    address, bits = "[%d12]", f"{vector}.b32"
    one = f"    {opcode}{bits} {operand}, {address};\n" if opcode.startswith("ld") else ""
    if opcode.startswith("st"):
        one = f"    {opcode}{bits} {address}, {operand};\n"
    if opcode.startswith("cp"):
        one = f"    {opcode} [%r30+{{slot}}], {address}, {4 * width};\n"
    use = "".join(f"    xor.b32 %r44, %r44, {each};\n" for each in words) if opcode.startswith("ld") else ""
    before = f"""
    mul.lo.u32 %r11, %r4, {step};
    mul.lo.u32 %r12, %r5, {span};
    cvt.u64.u32 %d10, %r11;
    mul.wide.u32 %d13, %r5, {span};
    add.u64 %d13, %d13, %d1;
    shl.b32 %r30, %r4, 4;
    add.u32 %r30, %r30, %r6;
    mov.u32 %r31, 0;
    mov.u32 %r32, %r30;
    mov.u32 %r44, 0;
    mov.u32 %r40, %r4;
    mov.u32 %r41, %r4;
    mov.u32 %r42, %r4;
    mov.u32 %r43, %r4;
    bar.sync 0;
"""
    body = ""
    for each in range(8):
        body += f"    and.b64 %d11, %d10, {span - 1};\n    add.u64 %d12, %d11, %d13;\n"
        body += one.replace("{slot}", str(16 * threads * each))
        body += f"    add.u64 %d10, %d10, {step * threads};\n{use}"
    if opcode.startswith("cp"):
        # Two halves of shared memory in turns.
        body += "    cp.async.commit_group;\n    cp.async.wait_group 1;\n"
        body += f"    xor.b32 %r31, %r31, {128 * threads};\n    add.u32 %r30, %r32, %r31;\n"
    last = "    cp.async.wait_all;\n" if opcode.startswith("cp") else ""
    after = "    setp.eq.u32 %p, %r44, 0x12345;\n    @%p st.global.u32 [%d1], %r44;\n"
    return ptx.kernel(before, ptx.loop(body) + last + "    bar.sync 0;\n", after, threads=threads)


def measurements() -> Iterator[Measurement]:
    for width, step in ((1, 4), (2, 8), (4, 16), (1, 32), (1, 128)):
        for opcode in ("ld.global.cg", "st.global"):
            for grid in (1, _SMS):
                text = accesses(opcode, width, step, threads=512, span=1 << 17)
                name = f"{opcode} of {4 * width} bytes, lanes {step} apart, 16 warps, grid {grid}"
                yield Measurement(name, text, (8, 40), 512, grid, each=128)
        text = accesses("ld.global.ca", width, step, threads=512, span=1 << 14)
        yield Measurement(f"L1, ld of {4 * width} bytes, lanes {step} apart", text, (16, 48), 512, each=128)
    for grid in (1, _SMS):
        text = accesses("cp.async.cg.shared.global", 4, 16, threads=256, span=1 << 17)
        yield Measurement(f"cp.async of 16 bytes, 8 warps, grid {grid}", text, (8, 40), 256, grid, each=64)


def after(runner: Runner) -> Iterator[tuple[str, float]]:
    """Cycles of 132 CTAs that load or store from or to memory, after others have read or written all of the L2."""
    device = runner.device
    others = device.empty((_OTHERS // 8,), np.uint64)
    read = Kernel.from_ptx(ptx.ld_global())
    write = Kernel.from_ptx(ptx.st_global())

    def others_access(kernel: Kernel, threads: int, each: int) -> None:
        turns = _OTHERS // (_SMS * threads * each)
        report = device.launch(kernel, _SMS, threads, [runner.out, others, turns, 512, 0, 0, bytes(128)])
        if not report.ok:
            raise RuntimeError(report.summary())

    def timed(text: str, threads: int, n: int, data: DeviceArray) -> float:
        report = device.launch(Kernel.from_ptx(text), _SMS, threads, [runner.out, data, n, 512, 0, 0, bytes(128)])
        if not report.ok:
            raise RuntimeError(report.summary())
        return float(runner.out.numpy()[:_SMS].mean())

    for what, text, threads, each in (("loads", ptx.ld_global(), 512, 64), ("stores", ptx.st_global(), 256, 16)):
        for kilobytes in (32, 64, 128, 256, 512):
            n = (kilobytes << 10) // (threads * each)
            for before, kernel, width, bytes_each in (("read", read, 512, 64), ("written", write, 256, 16)):
                found = []
                for _ in range(4):
                    others_access(kernel, width, bytes_each)
                    found.append(timed(text, threads, n, runner.data))
                yield f"{what} of {kilobytes} KB a CTA, L2 after others have {before}", statistics.median(found[1:])
            found = [timed(text, threads, n, runner.data) for _ in range(4)]
            yield f"{what} of {kilobytes} KB a CTA, L2 after the same", statistics.median(found[1:])
