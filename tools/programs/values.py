"""Values that random programs give the operands of an instruction: mostly such that it does something.

The emulated memory is what `PROLOGUE` makes of it: shared memory with mbarriers in its first bytes, 128 columns of
tensor memory on sm_100a, a tensormap in the kernel's parameters, and 4096 bytes of global memory.
"""

from __future__ import annotations

import random
import re

from ptxgen.descriptors import (
    BlockScaledInstructionDescriptor,
    DescriptorError,
    InstructionDescriptor,
    SmemDescriptor,
    TensorMap,
    WgmmaDescriptor,
)

#: Bytes of the program's shared array, and the mbarriers at its start.
SHARED, BARRIERS = 32768, 8
#: Where the shared array begins: behind what the system keeps.
_START = 1024
_OPERAND = re.compile(r"(\[?)%x_(b\d+|pred|f\d+)_(\d+)")
_TYPES = ("f16", "bf16", "tf32", "s8", "u8", "e4m3", "e5m2", "e2m3", "e3m2", "e2m1")

PROLOGUE = f"""
    .reg .b32 %y, %z; .reg .pred %first, %lead; .reg .b64 %map, %generic; .shared .align 4 .b32 slot;
    mov.u32 %y, %tid.x; setp.eq.u32 %first, %y, 0; setp.lt.u32 %lead, %y, 32; mov.b64 %map, map;
    cvta.param.u64 %map, %map; mov.u32 %z, 0; cvta.shared.u64 %generic, shared;
    {"".join(f"@%first mbarrier.init.shared.b64 [shared+{8 * i}], {i + 1}; " for i in range(BARRIERS))}
    fence.mbarrier_init.release.cluster; bar.sync 0;
"""
TENSOR_MEMORY = """
    @%lead tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 128;
    bar.sync 0; tcgen05.fence::after_thread_sync; ld.shared.b32 %z, [slot];
"""


def tensormap(rng: random.Random, address: int) -> bytes:
    """A map of some of 4096 bytes."""
    rank = rng.randint(1, 4)
    dims = (64, 4, 4, 2)[:rank]
    strides = (128, 512, 2048)[: rank - 1]
    swizzle = rng.choice(("none", "32B", "64B", "128B"))
    if rank > 2 and rng.random() < 0.3:
        corners = [0] * (rank - 2)
        return TensorMap.im2col("u16", address, dims, strides, corners, corners, 16, 8, swizzle=swizzle).encode()
    return TensorMap.tiled("u16", address, dims, strides or (16,), (16, *[1] * (rank - 1)), swizzle=swizzle).encode()


def values_for(line: str, rng: random.Random) -> str:
    """PTX that fills the registers of an instruction; what it leaves alone keeps what it had."""
    opcode = line.split(None, 1)[0]
    found = []
    for match in _OPERAND.finditer(line):
        bracket, kind, _ = match.groups()
        name = match[0].lstrip("[")
        follows = line[match.end() : match.end() + 3]
        text = _value(opcode, bracket == "[", kind, name, follows, rng) if rng.random() < 0.9 else ""
        if text:
            found.append(text)
    return "".join(dict.fromkeys(found))


def _value(opcode: str, addresses: bool, kind: str, name: str, follows: str, rng: random.Random) -> str:
    near = 16 * rng.randrange(128)
    if addresses and kind == "b32":
        if opcode.startswith("tcgen05.") and not opcode.startswith(("tcgen05.alloc", "tcgen05.commit")):
            return f"add.u32 {name}, %z, {8 * rng.randrange(6)};\n"
        barrier = 8 * rng.randrange(BARRIERS)
        return f"add.u32 {name}, %at, {barrier if 'mbarrier' in opcode or rng.random() < 0.4 else near};\n"
    if addresses and kind == "b64":
        return _wide_address(opcode, name, follows, near, rng)
    if kind == "b64" and opcode.startswith(("tcgen05.mma", "tcgen05.cp", "wgmma")):
        return f"mov.b64 {name}, {_descriptor(opcode, rng)};\n"
    if kind == "b32" and opcode.startswith("tcgen05.mma"):
        return f"mov.b32 {name}, {_instruction(opcode, rng)};\n"
    if kind == "b32" and opcode.startswith("cp.async.bulk"):
        return f"mov.b32 {name}, {rng.choice((0, 1, 2, 16, 32, 128))};\n"
    return ""


def _wide_address(opcode: str, name: str, follows: str, near: int, rng: random.Random) -> str:
    if opcode.startswith(("cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor")) and follows.startswith(", {"):
        return f"mov.b64 {name}, %map;\n"
    shared = near + 2048 if "bulk" in opcode else near
    if "mbarrier" in opcode and not name.endswith("_0"):
        shared = 8 * rng.randrange(BARRIERS)
    whole = re.search(r"\.(shared|local|const|param)\b", opcode) and ".global" not in opcode
    if whole and "bulk" not in opcode:
        return f"cvt.u64.u32 {name}, %at; add.u64 {name}, {name}, {shared};\n"
    if "bulk" in opcode or rng.random() < 0.3:
        return f"add.u64 {name}, %generic, {shared};\n"
    return f"add.u64 {name}, %data, {near};\n"


def _descriptor(opcode: str, rng: random.Random) -> int:
    start = _START + 1024 * rng.randrange(8)
    stride, swizzle = rng.choice((128, 256, 512, 1024)), rng.choice(("none", "32B", "64B", "128B"))
    kind = WgmmaDescriptor if opcode.startswith("wgmma") else SmemDescriptor
    return kind(start_address=start, leading_byte_offset=128, stride_byte_offset=stride, swizzle=swizzle).encode()


def _instruction(opcode: str, rng: random.Random) -> int:
    """An instruction descriptor of the kind, as a number; 0 if chance finds none."""
    found = re.search(r"kind::(\w+)", opcode)
    kind = found[1] if found else "f16"
    sparse, ws = ".sp." in opcode, ".ws." in opcode
    group = 2 if "cta_group::2" in opcode else 1
    for _ in range(40):
        m, n = rng.choice((32, 64, 128, 256)), rng.choice((16, 32, 64, 128))
        common = {"m": m, "n": n, "kind": kind, "cta_group": group, "sparse": sparse}
        try:
            if "block_scale" in opcode:
                type = "e2m1" if kind != "mxf8f6f4" else rng.choice(_TYPES[5:])
                k = 64 if kind != "mxf8f6f4" else 32
                scale = rng.choice(("ue8m0", "ue4m3"))
                made = BlockScaledInstructionDescriptor(a_type=type, b_type=type, scale_type=scale, dense_k=k, **common)
                return made.encode()
            type, d = rng.choice(_TYPES), rng.choice(("f16", "f32", "s32"))
            return InstructionDescriptor(a_type=type, b_type=type, d_type=d, ws=ws, **common).encode()
        except DescriptorError:
            continue
    return 0
