"""The emulator against a Hopper GPU, bit for bit: every arithmetic form, and tensor copies with every swizzle.

One kernel serves many variants of a form: each loads its operands from a block of memory, runs, and stores its results.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxgen import instr
from ptxgen.descriptors import TensorMap
from ptxgen.device import Device, Kernel
from ptxgen.emulator import Emulator
from ptxgen.emulator.semantics import find
from ptxgen.gpu import Gpu
from ptxgen.instr.model.form import REGISTRY, Instruction
from ptxgen.instr.model.operands import PredicateSpec, RegisterSpec, SourceSpec, VectorSpec, type_of
from ptxgen.instr.model.targets import parse_target
from ptxgen.instr.model.types import TYPES, Type
from ptxgen.syntax import Name, Vector

pytestmark = pytest.mark.gpu

THREADS = 1024
WORD = 8
BATCH = 150
FAMILIES = ("integer", "floating", "logic", "predicate", "conversion", "move")
OUTPUTS = {"d", "p", "q", "f"}


def edge_words(rng: np.random.Generator, type: Type) -> np.ndarray:
    """Random bit patterns of a type as 64-bit words, half of them edges of its range."""
    bits = type.bits
    words = rng.integers(0, 2**64, THREADS, dtype=np.uint64)
    one = 1 << (bits - 1)
    edges = [0, 1, 2, 31, 32, 63, 64, one - 1, one, one + 1, (1 << bits) - 1, (1 << bits) - 2]
    if type.kind == "float" or type.name in ("bf16", "b16", "b32", "b64"):
        exponent, fraction = {8: (4, 3), 16: (5, 10), 32: (8, 23), 64: (11, 52)}[bits]
        if type.name == "bf16":
            exponent, fraction = 8, 7
        bias, top = (1 << (exponent - 1)) - 1, (1 << exponent) - 1
        for e in (0, 1, bias - 1, bias, bias + 1, bias + fraction, bias + 15, bias + 31, bias + 63, top - 1, top):
            for f in (0, 1, (1 << fraction) - 1, 1 << (fraction - 1), (1 << (fraction - 1)) + 1):
                edges += [(e & top) << fraction | f, one | (e & top) << fraction | f]
    chosen = np.array([edge & ((1 << 64) - 1) for edge in edges], np.uint64)
    picks = chosen[rng.integers(0, len(chosen), THREADS)]
    words = np.where(rng.random(THREADS) < 0.6, picks, words)
    return words & np.uint64((1 << min(bits, 64)) - 1)


@dataclass
class Part:
    """One register of an operand: where its values come from or go."""

    register: str
    type: Type
    output: bool


def parts_of(variant: Instruction, number: int) -> tuple[list[Part], Instruction] | None:
    """Registers for a variant's operands, and the variant with these registers. None for what is not arithmetic."""
    parts: list[Part] = []
    operands: dict[str, Any] = {}
    for name, spec in variant.form.operands.items():
        if getattr(variant, name) is None:
            operands[name] = None
            continue
        output = name in OUTPUTS and not (name == "d" and "f" in variant.form.operands)  # bfi writes f
        if isinstance(spec, PredicateSpec):
            types = [TYPES["pred"]]
        elif isinstance(spec, RegisterSpec | SourceSpec):
            types = [type_of(spec.type, variant)]
        elif isinstance(spec, VectorSpec):
            types = [type_of(spec.type, variant)] * spec.length(variant)
        else:
            return None
        if any(type.bits == 128 for type in types):
            return None
        names = [f"%v{number}_{name}{index}" for index in range(len(types))]
        parts += [Part(register, type, output) for register, type in zip(names, types, strict=True)]
        nodes = tuple(Name(register) for register in names)
        operands[name] = Vector(nodes) if isinstance(spec, VectorSpec) else nodes[0]
    return parts, type(variant).bound({k: v for k, v in variant.__dict__.items() if k != "guard"}, operands)


def block_text(parts: list[Part], variant: Instruction, offset: int) -> tuple[str, int]:
    """The PTX of one variant, and the offset after its memory."""
    lines = ["{"]
    for part in parts:
        kind = "pred" if part.type.bits == 1 else f"b{part.type.bits}"
        lines.append(f"  .reg .{kind} {part.register};")
    stores: list[str] = []
    for part in parts:
        place = f"[%at+{offset}]"
        offset += THREADS * WORD
        if part.type.bits == 1 and part.output:
            stores += [f"  selp.b32 %word, 1, 0, {part.register};", f"  st.global.b32 {place}, %word;"]
        elif part.type.bits == 1:
            lines += [f"  ld.global.b32 %word, {place};", "  and.b32 %word, %word, 1;"]
            lines += [f"  setp.ne.b32 {part.register}, %word, 0;"]
        elif part.output:
            stores.append(f"  st.global.b{part.type.bits} {place}, {part.register};")
        else:
            lines.append(f"  ld.global.b{part.type.bits} {part.register}, {place};")
    return "\n".join([*lines, f"  {variant}", *stores, "}"]), offset


def modelled(parts: list[Part], variant: Instruction) -> bool:
    """Whether the emulator has this variant."""
    emulator = Emulator("sm_90a")
    array = emulator.array(np.zeros(len(parts) * THREADS, np.uint64))
    report = emulator.launch(Kernel.from_ptx(kernel_text([block_text(parts, variant, 0)[0]])), 1, 32, [array])
    return report.status != "incomplete"


def kernel_text(blocks: list[str]) -> str:
    """The kernel around some variants: `%at` is this thread's first word."""
    return (
        ".version 8.8\n.target sm_90a\n.address_size 64\n"
        ".visible .entry many(.param .u64 data)\n{\n.reg .b64 %at, %lane;\n.reg .b32 %word, %cta;\n"
        "ld.param.u64 %at, [data];\ncvta.to.global.u64 %at, %at;\nmov.u32 %word, %tid.x;\nmov.u32 %cta, %ctaid.x;\n"
        f"mad.lo.u32 %word, %cta, 128, %word;\nmul.wide.u32 %lane, %word, {WORD};\nadd.u64 %at, %at, %lane;\n"
        + "\n".join(blocks)
        + "\nret;\n}\n"
    )


def batches(form: type[Instruction]) -> Iterator[tuple[str, list[tuple[Instruction, list[Part]]]]]:
    """Kernels that run the variants of a form, and what is in them."""
    target = parse_target("sm_90a")
    variants = [v for v in form.variants() if not v.availability_problems(target, (8, 8))]
    for start in range(0, len(variants), BATCH):
        blocks, chosen, offset = [], [], 0
        for number, variant in enumerate(variants[start : start + BATCH]):
            made = parts_of(variant, number)
            if made is None or not modelled(*made):
                continue
            text, offset = block_text(made[0], made[1], offset)
            blocks.append(text)
            chosen.append((made[1], made[0]))
        if chosen:
            yield kernel_text(blocks), chosen


def arithmetic_forms() -> list[type[Instruction]]:
    instr.load_all()
    return [
        form
        for forms in REGISTRY.values()
        for form in forms
        if form.form.key.split(".")[0] in FAMILIES
        and find(form) is not None
        and "cvta" not in form.form.key
        and form.form.key not in ("integer.div", "integer.rem", "integer.fns")  # by zero and from bit 32 on open in PTX
    ]


@pytest.mark.parametrize("form", arithmetic_forms(), ids=lambda form: form.form.key)
def test_form_matches_silicon(gpu: Gpu, form: type[Instruction]) -> None:
    """Every variant that the emulator gives a meaning has the GPU's bits, on edges and random patterns."""
    rng = np.random.default_rng(zlib.crc32(form.form.key.encode()))
    wrong: list[str] = []
    for text, chosen in batches(form):
        words = [
            np.full(THREADS, 0xCDCDCDCDCDCDCDCD, np.uint64) if part.output else edge_words(rng, part.type)
            for _, parts in chosen
            for part in parts
        ]
        data = np.concatenate(words)
        results: list[np.ndarray] = []
        for device in (gpu, Emulator("sm_90a")):
            array = device.array(data)
            report = device.launch(Kernel.from_ptx(text), THREADS // 128, 128, [array])
            assert report.status == "ok", report.summary()
            results.append(array.numpy().reshape(-1, THREADS))
        position = 0
        for variant, parts in chosen:
            inputs = [results[0][position + i] for i, part in enumerate(parts) if not part.output]
            for index, part in enumerate(parts):
                if part.output:
                    on_gpu, emulated = results[0][position + index], results[1][position + index]
                    for lane in np.flatnonzero(on_gpu != emulated)[:2]:
                        given = ", ".join(f"{int(column[lane]):#x}" for column in inputs)
                        wrong.append(f"{variant} ({given}): {int(on_gpu[lane]):#x}, emulated {int(emulated[lane]):#x}")
            position += len(parts)
    assert not wrong, f"{len(wrong)} differences:\n" + "\n".join(wrong[:150])


TILE = """.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry tile(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 x, .param .u32 y, .param .u32 bytes,
                     .param .u32 count, .param .u32 shift)
{
    .reg .b32 %t, %x, %y, %bytes, %count, %bar, %dst, %at, %v, %shift;
    .reg .b64 %map, %out, %p;
    .reg .pred %first, %done, %more;
    mov.u32 %t, %tid.x;
    mov.b32 %bar, smem;
    ld.param.u32 %shift, [shift];
    add.u32 %dst, %bar, 1024;
    add.u32 %dst, %dst, %shift;
    ld.param.u32 %x, [x];
    ld.param.u32 %y, [y];
    ld.param.u32 %bytes, [bytes];
    ld.param.u32 %count, [count];
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    ld.param.u64 %out, [out];
    cvta.to.global.u64 %out, %out;
    shl.b32 %at, %t, 2;
FILL:
    add.u32 %v, %bar, 1024;
    add.u32 %v, %v, %at;
    st.shared.b32 [%v], 0xA5A5A5A5;
    add.u32 %at, %at, 512;
    setp.lt.u32 %more, %at, %count;
    @%more bra FILL;
    setp.eq.u32 %first, %t, 0;
    @!%first bra READY;
    mbarrier.init.shared::cta.b64 [%bar], 1;
    fence.mbarrier_init.release.cluster;
READY:
    fence.proxy.async;
    bar.sync 0;
    @!%first bra ISSUED;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], %bytes;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%dst], [%map, {%x, %y}], [%bar];
ISSUED:
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0;
    @!%done bra WAIT;
    shl.b32 %at, %t, 2;
COPY:
    add.u32 %v, %bar, 1024;
    add.u32 %v, %v, %at;
    ld.shared.b32 %v, [%v];
    cvt.u64.u32 %p, %at;
    add.u64 %p, %p, %out;
    st.global.b32 [%p], %v;
    add.u32 %at, %at, 512;
    setp.lt.u32 %more, %at, %count;
    @%more bra COPY;
    ret;
}
"""

#: dtype, columns, rows, box, swizzle
TILES = [
    ("bf16", 72, 40, (64, 16), "128B"), ("bf16", 72, 40, (32, 16), "64B"), ("bf16", 72, 40, (16, 24), "32B"),
    ("bf16", 77 * 8, 33, (64, 64), "128B"), ("f32", 100, 20, (32, 8), "128B"), ("f32", 36, 20, (8, 5), "32B"),
    ("u8", 208, 30, (128, 16), "128B"), ("u8", 208, 30, (48, 16), "none"), ("f16", 64, 9, (64, 9), "none"),
    ("f32", 36, 20, (4, 12), "128B"), ("u8", 208, 30, (16, 8), "64B"),
]  # fmt: skip
NUMPY = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "u8": np.uint8}


#: NaN fill is for floats.
FILLED = [(*tile, fill) for fill in ("none", "nan") for tile in TILES if fill == "none" or tile[0] != "u8"]


@pytest.mark.parametrize(("dtype", "columns", "rows", "box", "mode", "fill"), FILLED)
def test_tensor_copy_matches_silicon(
    gpu: Gpu, dtype: str, columns: int, rows: int, box: tuple[int, int], mode: str, fill: str
) -> None:
    """Shared memory after a copy: inside, at every edge and outside, at several places of the swizzle's period."""
    rng = np.random.default_rng(5)
    kind = np.dtype(NUMPY[dtype])
    raw = rng.integers(0, 256, rows * columns * kind.itemsize, dtype=np.uint8)
    step = 16 // kind.itemsize
    right = columns // step * step
    places = [
        (0, 0),
        (right - step, 3),
        (-step, -2),
        (3 * step, rows - 2),
        (right + step, 0),
        (0, rows),
        (-2 * step, 1),
    ]
    for x, y in places:
        for shift in (0, 128, 384, 640):
            images: list[np.ndarray] = []
            devices: tuple[Device, Device] = (gpu, Emulator("sm_90a", checks=False))
            for device in devices:
                source = device.array(raw)
                tensormap = TensorMap.tiled(
                    dtype, source, (columns, rows), (columns * kind.itemsize,), box, swizzle=mode, oob_fill=fill
                )
                out = device.array(np.zeros(32768, np.uint8))
                size = box[0] * box[1] * kind.itemsize
                report = device.launch(
                    Kernel.from_ptx(TILE), 1, 128, [tensormap, out, x & 0xFFFFFFFF, y & 0xFFFFFFFF, size, 32768, shift],
                    shared_bytes=1024 + 32768,
                )  # fmt: skip
                assert report.status == "ok", report.summary()
                images.append(out.numpy())
            np.testing.assert_array_equal(images[0], images[1], err_msg=f"at ({x}, {y}), destination +{shift}")


STORE = """.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry stored(.param .align 64 .b8 map[128], .param .u64 in, .param .u32 x, .param .u32 y, .param .u32 shift)
{
    .reg .b32 %t, %x, %y, %at, %v, %w, %shift;
    .reg .b64 %map, %in, %p;
    .reg .pred %first, %more;
    mov.u32 %t, %tid.x;
    ld.param.u32 %x, [x];
    ld.param.u32 %y, [y];
    ld.param.u32 %shift, [shift];
    ld.param.u64 %in, [in];
    cvta.to.global.u64 %in, %in;
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    shl.b32 %at, %t, 2;
FILL:
    cvt.u64.u32 %p, %at;
    add.u64 %p, %p, %in;
    ld.global.b32 %w, [%p];
    mov.b32 %v, smem;
    add.u32 %v, %v, %at;
    st.shared.b32 [%v], %w;
    add.u32 %at, %at, 512;
    setp.lt.u32 %more, %at, 32768;
    @%more bra FILL;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    setp.eq.u32 %first, %t, 0;
    @!%first bra END;
    mov.b32 %v, smem;
    add.u32 %v, %v, %shift;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {%x, %y}], [%v];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
END:
    ret;
}
"""


@pytest.mark.parametrize(("dtype", "columns", "rows", "box", "mode"), TILES)
def test_tensor_store_matches_silicon(
    gpu: Gpu, dtype: str, columns: int, rows: int, box: tuple[int, int], mode: str
) -> None:
    """The whole array after a store: inside, at the far edges and outside, from places all over the swizzle's period.

    A negative coordinate ends the kernel with an illegal-instruction error (docs/hardware.md).
    """
    rng = np.random.default_rng(6)
    size = np.dtype(NUMPY[dtype]).itemsize
    before = rng.integers(0, 256, rows * columns * size, dtype=np.uint8)
    data = rng.integers(0, 256, 32768, dtype=np.uint8)
    step = 16 // size
    right = columns // step * step
    for x, y in [(0, 0), (right - step, 3), (3 * step, rows - 2), (right + step, 0), (0, rows)]:
        for shift in (0, 128, 384, 640):
            images: list[np.ndarray] = []
            devices: tuple[Device, Device] = (gpu, Emulator("sm_90a"))
            for device in devices:
                array = device.array(before)
                tensormap = TensorMap.tiled(dtype, array, (columns, rows), (columns * size,), box, swizzle=mode)
                report = device.launch(
                    Kernel.from_ptx(STORE), 1, 128,
                    [tensormap, device.array(data), x & 0xFFFFFFFF, y & 0xFFFFFFFF, shift], shared_bytes=32768,
                )  # fmt: skip
                assert report.status == "ok", report.summary()
                images.append(array.numpy())
            np.testing.assert_array_equal(images[0], images[1], err_msg=f"at ({x}, {y}), source +{shift}")


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles_match_silicon(gpu: Gpu, mode: str) -> None:
    """Random values, lane numbers and controls in every lane; all bits of the words, so the unused ones too."""
    text = f""".version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data)
{{
    .reg .b32 %t, %c, %v, %b, %d, %i;
    .reg .b64 %data, %p;
    .reg .pred %q;
    mov.u32 %t, %tid.x;
    mov.u32 %c, %ctaid.x;
    mad.lo.u32 %t, %c, 128, %t;
    ld.param.u64 %data, [data];
    mul.wide.u32 %p, %t, 20;
    add.u64 %p, %p, %data;
    ld.global.b32 %v, [%p];
    ld.global.b32 %b, [%p+4];
    ld.global.b32 %c, [%p+8];
    shfl.sync.{mode}.b32 %d|%q, %v, %b, %c, 0xffffffff;
    selp.u32 %i, 1, 0, %q;
    st.global.b32 [%p+12], %d;
    st.global.b32 [%p+16], %i;
    ret;
}}
"""
    words = np.random.default_rng(7).integers(0, 2**32, (64 * 128, 5), dtype=np.uint32)
    words[:, 2].reshape(-1, 32)[::2] = words[:, 2].reshape(-1, 32)[::2, :1]  # half of the warps agree on the control
    results: list[np.ndarray] = []
    devices: tuple[Device, Device] = (gpu, Emulator("sm_90a"))
    for device in devices:
        array = device.array(words)
        report = device.launch(Kernel.from_ptx(text), 64, 128, [array])
        assert report.status == "ok", report.summary()
        results.append(array.numpy())
    np.testing.assert_array_equal(results[0], results[1])
