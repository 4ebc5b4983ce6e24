"""wmma: from matrices in memory to a matrix in memory; what fragments hold is nobody's business. PTX ISA 9.7.14.4."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.harness import codes, launch

NUMPY: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f64": np.float64, "f32": np.float32,
    "s8": np.int8, "u8": np.uint8, "s32": np.int32,
}  # fmt: skip
SHAPES = {"m16n16k16": (16, 16, 16), "m8n32k16": (8, 32, 16), "m32n8k16": (32, 8, 16)}


def values(rng: np.random.Generator, shape: tuple[int, int], type: str) -> NDArray[Any]:
    """Numbers whose products and sums are exact; of 4 bits and single bits as small integers."""
    limits = {"s8": (-128, 128), "u8": (0, 256), "s4": (-8, 8), "u4": (0, 16), "b1": (0, 2), "s32": (-1000, 1000)}
    low, high = limits.get(type, (-4, 5))
    return rng.integers(low, high, shape).astype(NUMPY.get(type, np.int64))


def in_memory(matrix: NDArray[Any], layout: str, stride: int, type: str, rng: np.random.Generator) -> NDArray[np.uint8]:
    """A matrix with rows (columns) `stride` elements apart, and noise between them."""
    lines = matrix if layout == "row" else matrix.T
    if type in ("s4", "u4", "b1"):
        bits = 4 if type != "b1" else 1
        whole = np.zeros((len(lines), stride * bits // 8), np.uint8)
        for row, column in np.ndindex(lines.shape):
            code = int(lines[row, column]) & ((1 << bits) - 1)
            whole[row, column * bits // 8] |= code << (column * bits % 8)
        return whole
    raw = rng.integers(0, 256, (len(lines), stride * lines.itemsize), dtype=np.uint8)
    raw[:, : lines.shape[1] * lines.itemsize] = np.ascontiguousarray(lines).view(np.uint8)
    return raw


def registers(count: int, name: str) -> str:
    return "{" + ", ".join(f"%{name}{i}" for i in range(count)) + "}"


def multiply(
    shape: str,
    sizes: tuple[int, int, int],
    types: tuple[str, str, str],
    layouts: tuple[str, str, str, str],
    counts: tuple[int, int, int, int],
    instruction: str,
    extra: int = 0,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """A, B and C as they were, and D. `types` are those of A and B, of C and of D; `counts` the registers of each."""
    rng = np.random.default_rng([*shape.encode(), *instruction.encode()])
    (m, n, k), (ab, c_type, d_type) = sizes, types
    a, b, c = values(rng, (m, k), ab), values(rng, (k, n), ab), values(rng, (m, n), c_type)
    strides = [
        (inner if layout == "row" else outer) + extra
        for layout, outer, inner in zip(layouts, (m, k, m, m), (k, n, n, n), strict=True)
    ]
    inputs = [
        in_memory(matrix, layout, stride, type, rng)
        for matrix, layout, stride, type in zip((a, b, c), layouts, strides, (ab, ab, c_type), strict=False)
    ]
    kinds = ["b64" if type == "f64" else "b32" for type in (ab, ab, c_type, d_type)]
    lines = [f".reg .{kind} %{name}<16>;" for kind, name in zip(kinds, "abcd", strict=True)]
    for index, name in enumerate("abc"):
        stride = f", {strides[index]}" if extra else ""
        type = ab if name != "c" else c_type
        address = f"[%in{index}]"
        lines.append(
            f"wmma.load.{name}.sync.aligned.{layouts[index]}.{shape}.global.{type} "
            f"{registers(counts[index], name)}, {address}{stride};"
        )
    operands = ", ".join(registers(count, name) for count, name in zip((counts[3], *counts[:3]), "dabc", strict=True))
    lines.append(f"{instruction} {operands};")
    stride = f", {strides[3]}" if extra else ""
    lines.append(
        f"wmma.store.d.sync.aligned.{layouts[3]}.{shape}.global.{d_type} [%out0], {registers(counts[3], 'd')}{stride};"
    )
    outer = m if layouts[3] == "row" else n
    size = np.dtype(NUMPY[d_type]).itemsize
    out = np.full((outer, strides[3] * size), 0xCD, np.uint8)
    report, (found,) = launch("\n".join([*lines, "ret;"]), [out], inputs=inputs)
    assert report.status == "ok", report.summary()
    inner = n if layouts[3] == "row" else m
    assert (found[:, inner * size :] == 0xCD).all()
    matrix = np.ascontiguousarray(found[:, : inner * size]).view(NUMPY[d_type])
    return a, b, c, matrix if layouts[3] == "row" else matrix.T


#: Of A, B, C and D.
LAYOUTS = [
    ("row", "col", "row", "col"),
    ("col", "row", "row", "row"),
    ("row", "row", "col", "row"),
    ("col", "col", "col", "col"),
]
FLOATS = [
    (type, shape, d, c, layouts, extra)
    for index, (type, shape, d, c) in enumerate(
        [("f16", shape, d, c) for shape in SHAPES for d in ("f16", "f32") for c in ("f16", "f32")]
        + [("bf16", shape, "f32", "f32") for shape in SHAPES]
        + [("tf32", "m16n16k8", "f32", "f32")] * 2
        + [("f64", "m8n8k4", "f64", "f64")] * 2
    )
    for layouts, extra in [(LAYOUTS[index % 4], 16 * (index % 2))]
]


@pytest.mark.parametrize(("type", "shape", "d", "c", "layouts", "extra"), FLOATS)
def test_floats(type: str, shape: str, d: str, c: str, layouts: tuple[str, str, str, str], extra: int) -> None:
    sizes = SHAPES.get(shape) or {"m16n16k8": (16, 16, 8), "m8n8k4": (8, 8, 4)}[shape]
    m, n, k = sizes
    bits = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "f32": 32}

    def count(elements: int, type: str) -> int:
        return elements * bits[type] // (32 * max(32, bits[type]))

    counts = (count(m * k, type), count(k * n, type), count(m * n, c), count(m * n, d))
    if type == "f16":
        counts = (8, 8, *counts[2:])
    middle = {"f16": f"{d}.{c}", "bf16": "f32.bf16.bf16.f32", "tf32": "f32.tf32.tf32.f32", "f64": "f64.f64.f64.f64"}
    instruction = f"wmma.mma.sync.aligned.{layouts[0]}.{layouts[1]}.{shape}.{middle[type]}"
    a, b, before, found = multiply(shape, sizes, (type, c, d), layouts, counts, instruction, extra)
    assert (found == (a.astype(np.float64) @ b.astype(np.float64) + before).astype(NUMPY[d])).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("type", ["s8", "u8"])
def test_bytes(shape: str, type: str) -> None:
    m, n, k = SHAPES[shape]
    counts = (m * k // 128, k * n // 128, m * n // 32, m * n // 32)
    layouts = ("row", "col", "row", "col") if type == "s8" else ("col", "row", "col", "row")
    instruction = f"wmma.mma.sync.aligned.{layouts[0]}.{layouts[1]}.{shape}.s32.{type}.{type}.s32"
    a, b, c, found = multiply(shape, (m, n, k), (type, "s32", "s32"), layouts, counts, instruction, 16)
    assert (found == a.astype(np.int64) @ b.astype(np.int64) + c).all()


@pytest.mark.parametrize(("type", "extra"), [("s4", 0), ("u4", 32)])
def test_four_bits(type: str, extra: int) -> None:
    layouts = ("row", "col", "row", "row")
    instruction = f"wmma.mma.sync.aligned.row.col.m8n8k32.s32.{type}.{type}.s32"
    a, b, c, found = multiply("m8n8k32", (8, 8, 32), (type, "s32", "s32"), layouts, (1, 1, 2, 2), instruction, extra)
    assert (found == a @ b + c).all()


@pytest.mark.parametrize("op", ["xor", "and"])
def test_single_bits(op: str) -> None:
    layouts = ("row", "col", "col", "row")
    instruction = f"wmma.mma.{op}.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32"
    a, b, c, found = multiply("m8n8k128", (8, 8, 128), ("b1", "s32", "s32"), layouts, (1, 1, 2, 2), instruction)
    pairs = a[:, :, None] != b[None] if op == "xor" else (a[:, :, None] & b[None]).astype(bool)
    assert (found == pairs.sum(axis=1) + c).all()


def test_shared_and_generic_memory() -> None:
    """The same through shared memory, by its own and by generic addresses; addresses that are wrong."""
    body = """
        .shared .align 32 .b8 tile[512]; .reg .b32 %t, %x, %a<8>, %b<8>, %c<8>, %d<8>, %r<4>; .reg .b64 %g, %o;
        mov.u32 %t, %tid.x;
        mul.wide.u32 %g, %t, 16;
        add.u64 %g, %g, %in0;
        ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%g];
        mov.u32 %x, tile;
        shl.b32 %t, %t, 4;
        add.u32 %t, %x, %t;
        st.shared.v4.u32 [%t], {%r0, %r1, %r2, %r3};
        bar.sync 0;
        cvta.shared.u64 %o, tile;
        wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, [%x], 16;
        wmma.load.b.sync.aligned.col.m16n16k16.f16 {%b0, %b1, %b2, %b3, %b4, %b5, %b6, %b7}, [%o], 16;
        mov.b32 %c0, 0;
        mov.b32 %c1, 0;
        mov.b32 %c2, 0;
        mov.b32 %c3, 0;
        mov.b32 %c4, 0;
        mov.b32 %c5, 0;
        mov.b32 %c6, 0;
        mov.b32 %c7, 0;
        wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7},
            {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, {%b0, %b1, %b2, %b3, %b4, %b5, %b6, %b7},
            {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7};
        wmma.store.d.sync.aligned.row.m16n16k16.f32 [%out0], {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, 16;
        ret;
    """
    tile = np.random.default_rng(2).integers(-4, 5, (16, 16)).astype(np.float16)
    report, (found,) = launch(body, [np.full((16, 16), np.nan, np.float32)], inputs=[tile])
    assert report.status == "ok", report.summary()
    wide = tile.astype(np.float64)
    assert (found == wide @ wide.T).all()
    for wrong, code in (
        (body.replace("[%out0]", "[%out0+512]"), "out-of-bounds"),
        (body.replace("[%x], 16", "[%x+1], 16"), "misaligned"),
    ):
        report, _ = launch(wrong, [np.full((16, 16), np.nan, np.float32)], inputs=[tile])
        assert (report.status, codes(report)) == ("fault", [code])
