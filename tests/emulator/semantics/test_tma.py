"""Bulk tensor loads against a loop over the elements of the box, written from PTX ISA 5.5."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.descriptors import TensorMap
from ptxgen.device import LaunchReport
from ptxgen.emulator import Emulator
from tests.support.harness import POISON, codes, line_of, module
from tests.support.tma_cases import BUFFER, SIZES, SWIZZLES, random_case, simple

#: The fill of float tensors: 0x7ff7 in every 16 bits (measured for 16-bit and 32-bit types on an H200).
NAN = {"f16": b"\xf7\x7f", "bf16": b"\xf7\x7f", "f32": b"\xf7\x7f" * 2, "f64": b"\xf7\x7f" * 4}

#: %map: generic address of the tensormap. Thread 0 loads and waits, then all threads dump the buffer.
KERNEL = """
    .shared .align 1024 .b8 buffer[20480];
    .shared .align 8 .b64 bar;
    .reg .pred %p, %q; .reg .u32 %t, %to, %x, %y, %z, %w, %from; .reg .b64 %map, %out, %at;
    mov.u32 %t, %tid.x;
    setp.ne.u32 %p, %t, 0;
    ld.param.u64 %out, [out];
    {map}
    mov.u32 %to, buffer;
    add.u32 %to, %to, {offset};
    @%p bra waiting;
    mbarrier.init.shared::cta.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {bytes};
    cp.async.bulk.tensor.{rank}d.shared::{where}.global{tile}.mbarrier::complete_tx::bytes
        [%to], [%map, {{{coords}}}], [bar];
    waiting: bar.sync 0;
    w: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0;
    @!%q bra w;
    mov.u32 %from, 0;
    dump:
    mad.lo.u32 %x, %t, 16, %from;
    cvt.u64.u32 %at, %x;
    add.u64 %at, %at, %out;
    mov.u32 %y, buffer;
    add.u32 %to, %y, %x;
    ld.shared.v4.u32 {{%x, %y, %z, %w}}, [%to];
    st.global.v4.u32 [%at], {{%x, %y, %z, %w}};
    add.u32 %from, %from, 2048;
    setp.lt.u32 %q, %from, 20480;
    @%q bra dump;
    ret;
"""


def load(
    tensormap: bytes,
    coords: tuple[int, ...],
    *,
    emulator: Emulator,
    rank: int | None = None,
    offset: int = 0,
    expect: int,
    in_global: bool = False,
    shift: int = 0,
    where: str = "cta",
    tile: str = ".tile",
) -> tuple[LaunchReport, np.ndarray, str]:
    """Run the kernel for one box; the buffer as it is afterwards."""
    out = emulator.empty(BUFFER, np.uint8)
    if in_global:
        how, parameters = f"ld.param.u64 %map, [map]; add.u64 %map, %map, {shift};", ".param .u64 map"
        argument: Any = emulator.array(np.frombuffer(bytes(shift) + tensormap + bytes(64), np.uint8))
    else:
        how = f"mov.b64 %map, map; cvta.param.u64 %map, %map; add.u64 %map, %map, {shift};"
        parameters, argument = ".param .align 64 .b8 map[256]", tensormap + bytes(128)
    text = module(
        KERNEL.format(
            map=how,
            offset=offset,
            bytes=expect,
            rank=rank or len(coords),
            coords=", ".join(map(str, coords)),
            where=where,
            tile=tile,
        ),
        parameters + ", .param .u64 out",
    )
    report = emulator.launch(Kernel.from_ptx(text), 1, 128, [argument, out])
    return report, out.numpy(), text


def reference(
    data: bytes, size: int, dims: Any, strides: Any, box: Any, coords: Any, swizzle: str, offset: int, fill: bytes
) -> np.ndarray:
    """The buffer, element by element."""
    buffer = np.full(BUFFER, POISON, np.uint8)
    row_bytes, bit, width = SWIZZLES[swizzle]
    row_bytes = row_bytes or box[0] * size
    for number, index in enumerate(itertools.product(*(range(extent) for extent in reversed(box)))):
        at = [c + i for c, i in zip(coords, reversed(index), strict=True)]
        element = fill
        if all(0 <= x < d for x, d in zip(at, dims, strict=True)):
            start = at[0] * size + sum(x * s for x, s in zip(at[1:], strides, strict=True))
            element = data[start : start + size]
        row, column = divmod(number, box[0])
        address = offset + row * row_bytes + column * size
        address ^= ((address >> 7) & ((1 << width) - 1)) << bit
        buffer[address : address + size] = np.frombuffer(element, np.uint8)
    return buffer


@pytest.mark.parametrize("swizzle", sorted(SWIZZLES))
@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_boxes(rank: int, swizzle: str) -> None:
    rng = random.Random(f"{rank} {swizzle}")
    for number, dtype in enumerate(SIZES):
        dims, strides, box, coords = random_case(rng, dtype, rank, swizzle)
        size, fill = SIZES[dtype], rng.choice(["none", "nan"]) if dtype in NAN else "none"
        extent = dims[0] * size + sum((d - 1) * s for d, s in zip(dims[1:], strides, strict=True))
        data = np.random.default_rng(number).integers(0, 256, extent, dtype=np.uint8)
        emulator = Emulator(schedule=("eager", "late", "random")[number % 3], checks=False)
        array = emulator.array(data)
        tensormap = TensorMap.tiled(dtype, array, dims, strides, box, swizzle=swizzle, oob_fill=fill)
        offset = 128 * rng.randrange(0, 9) if swizzle != "none" else 128 * rng.randrange(20)
        count = int(np.prod(box)) * size
        report, found, _ = load(
            tensormap.encode(),
            coords,
            emulator=emulator,
            offset=offset,
            expect=count,
            in_global=number % 4 == 1,
            where=rng.choice(["cta", "cluster"]),
            tile=rng.choice(["", ".tile"]),
        )
        context = f"{dtype} dims {dims} strides {strides} box {box} at {coords}, {swizzle}, {fill}, +{offset}"
        assert report.status == "ok", f"{context}: {report.summary()}"
        outside = NAN[dtype] if fill == "nan" else bytes(size)
        expected = reference(data.tobytes(), size, dims, strides, box, coords, swizzle, offset, outside)
        assert (found == expected).all(), context


@pytest.mark.parametrize("swizzle", sorted(SWIZZLES))
def test_every_destination_of_the_period(swizzle: str) -> None:
    """The swizzle reads the address, not the place in the box."""
    data = np.random.default_rng(9).integers(0, 256, 64 * 256, dtype=np.uint8)
    width = SWIZZLES[swizzle][0] or 48
    for offset in range(0, 2048, 128):
        emulator = Emulator(checks=False)
        tensormap = TensorMap.tiled("u8", emulator.array(data), (256, 64), (256,), (width, 20), swizzle=swizzle)
        report, found, _ = load(tensormap.encode(), (16, 5), emulator=emulator, offset=offset, expect=20 * width)
        assert report.status == "ok", report.summary()
        expected = reference(data.tobytes(), 1, (256, 64), (256,), (width, 20), (16, 5), swizzle, offset, b"\0")
        assert (found == expected).all(), offset


FAULTS = [
    ("reserved bits", {"flip": 7 * 32 + 31}, "illegal-tensormap"),
    ("another mode", {"flip": 64}, "illegal-tensormap"),
    ("an inner row of 6 bytes", {"bytes": (13 * 4 + 3, 2)}, "illegal-tensormap"),
    ("all zeros", {"zero": True}, "illegal-tensormap"),
    ("another rank", {"rank": 3, "coords": (0, 0, 0)}, "tensormap-rank"),
    ("a map at an odd place", {"shift": 32}, "misaligned"),
    ("a map that is not all in the parameters", {"shift": 192}, "out-of-bounds"),
    ("a destination on no multiple of 128", {"offset": 64}, "misaligned"),
    ("a destination past the end", {"offset": BUFFER}, "out-of-bounds"),
    ("a first coordinate that is no multiple of 16 bytes", {"coords": (4, 0)}, "misaligned"),
    ("a tensor larger than its array", {"dims": (64, 33), "coords": (0, 26)}, "out-of-bounds"),
    ("a tensor with a longer last row", {"dims": (64, 33), "strides": (124 + 4,), "coords": (32, 30)}, "out-of-bounds"),
]


@pytest.mark.parametrize("in_global", [False, True])
@pytest.mark.parametrize(("name", "change", "code"), FAULTS, ids=[each[0] for each in FAULTS])
def test_faults(name: str, change: dict[str, Any], code: str, in_global: bool) -> None:
    in_global = in_global and "parameters" not in name
    emulator = Emulator()
    shape = {key: change[key] for key in ("dims", "strides", "box") if key in change}
    raw = bytearray(simple(emulator, **shape).encode())
    if "flip" in change:
        raw[change["flip"] // 8] ^= 1 << change["flip"] % 8
    if "bytes" in change:
        raw[change["bytes"][0]] = change["bytes"][1]
    if change.get("zero"):
        raw = bytearray(128)
    report, _, text = load(
        bytes(raw),
        change.get("coords", (0, 0)),
        emulator=emulator,
        rank=change.get("rank"),
        offset=change.get("offset", 0),
        expect=512,
        shift=change.get("shift", 0),
        in_global=in_global,
    )
    assert report.status == "fault", report.summary()
    assert codes(report) == [code], report.summary()
    assert report.findings[0].line == line_of(text, "cp.async.bulk")


def test_what_is_wrong_with_a_map_comes_first() -> None:
    emulator = Emulator()
    raw = bytearray(simple(emulator).encode())
    raw[31] ^= 0x80
    report, _, _ = load(bytes(raw), (0, 0), emulator=emulator, expect=512)
    (fault,) = report.findings
    assert fault.title == "illegal tensormap"
    assert fault.summary == "reserved bits must be 0, not 1 in word 7 bit 31"


def test_maps_as_cute_makes_them() -> None:
    """CuTe DSL writes the first half alone, with a bit more than the driver."""
    emulator = Emulator(checks=False)
    raw = bytearray(simple(emulator).encode())
    raw[64:] = np.random.default_rng(3).integers(0, 256, 64, dtype=np.uint8).tobytes()
    raw[2 * 4] |= 2
    report, found, _ = load(bytes(raw), (0, 0), emulator=emulator, expect=512)
    assert report.status == "ok", report.summary()
    assert (found[:512].view(np.uint16) == 1).all()


@pytest.mark.parametrize("address", ["0", "buffer", "0x7F7F00000000"])
def test_a_map_where_none_can_be(address: str) -> None:
    emulator = Emulator()
    out = emulator.empty(BUFFER, np.uint8)
    text = KERNEL.format(
        map=f"mov.b64 %map, {address};", offset=0, bytes=512, rank=2, coords="0, 0", where="cta", tile=""
    )
    report = emulator.launch(Kernel.from_ptx(module(text, ".param .u64 out")), 1, 128, [out])
    assert (report.status, codes(report)) == ("fault", ["out-of-bounds"]), report.summary()


def test_the_clean_twin() -> None:
    emulator = Emulator()
    report, found, _ = load(simple(emulator).encode(), (0, 0), emulator=emulator, expect=512)
    assert set(codes(report)) == {"uninitialized-shared"}  # the dump reads all of the buffer
    assert (found[:512].view(np.uint16) == 1).all()


def test_an_array_that_ends_inside_a_chunk() -> None:
    """The last 16 bytes of the box are in the tensor, but 8 of them in no array."""
    emulator = Emulator()
    array = emulator.array(np.zeros(1024 - 8, np.uint8))
    tensormap = TensorMap.tiled("u8", array.address, (128, 8), (128,), (128, 8))
    report, _, _ = load(tensormap.encode(), (0, 0), emulator=emulator, expect=1024)
    assert codes(report) == ["out-of-bounds"]


BYTES = [(512, "ok"), (496, "deadlock"), (528, "deadlock")]


@pytest.mark.parametrize(("expect", "status"), BYTES)
@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_the_bytes_of_a_box_complete(expect: int, status: str, schedule: Any) -> None:
    """A box brings all its bytes, those outside the tensor too."""
    emulator = Emulator(schedule=schedule, checks=False)
    report, _, text = load(simple(emulator).encode(), (32, 28), emulator=emulator, expect=expect)
    assert report.status == status, report.summary()
    if status == "deadlock":
        assert report.findings[0].line == line_of(text, "expect_tx")
        assert "16 bytes" in report.all_findings[1].message.replace("-", "")


STEPS = [((1, 2), 4), ((1, 3), 3), ((1, 8), 1), ((2, 1), 8), ((5, 3), 3)]


@pytest.mark.parametrize(("steps", "rows"), STEPS)
def test_strided_boxes_complete_with_the_rows_that_they_take(steps: tuple[int, int], rows: int) -> None:
    """Every so-manieth row, the number rounded up; along a row nothing is skipped (measured, H100)."""
    emulator = Emulator(checks=False)
    values = np.random.default_rng(4).integers(0, 2**16, (32, 64), dtype=np.uint16)
    made = TensorMap.tiled("u16", emulator.array(values), (64, 32), (128,), (32, 8), element_strides=steps)
    report, found, _ = load(made.encode(), (8, 3), emulator=emulator, expect=64 * rows)
    assert report.status == "ok", report.summary()
    expected = np.full(BUFFER, POISON, np.uint8)
    expected[: 64 * rows] = values[3 : 11 : steps[1], 8:40].ravel().view(np.uint8)
    assert (found == expected).all()


def column(emulator: Emulator, values: np.ndarray, **changes: Any) -> bytes:
    options = {"swizzle": "none", "lower": (-1, 0), "upper": (0, -1), **changes}
    return TensorMap.im2col(
        "u16",
        emulator.array(values),
        (16, 6, 5, 4),
        (32, 192, 960),
        options["lower"],
        options["upper"],
        16,
        30,
        swizzle=options["swizzle"],
    ).encode()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_columns_of_pixels(schedule: Any) -> None:
    """From the filter's place through the pixel box, row by row and image by image (PTX ISA 5.5.4)."""
    values = np.random.default_rng(5).integers(0, 2**16, (4, 5, 6, 16), dtype=np.uint16)
    emulator = Emulator(schedule=schedule, checks=False)
    tensormap = column(emulator, values)
    text = KERNEL.replace("[bar];\n    waiting", "[bar], {{1, 2}};\n    waiting").replace("{tile}", ".im2col")
    kernel = text.format(
        map="mov.b64 %map, map; cvta.param.u64 %map, %map;",
        offset=0,
        bytes=960,
        rank=4,
        coords="0, 4, 2, 1",
        where="cluster",
    )
    out = emulator.empty(BUFFER, np.uint8)
    text = module(kernel, ".param .align 64 .b8 map[128], .param .u64 out")
    report = emulator.launch(Kernel.from_ptx(text), 1, 128, [tensormap, out])
    assert report.status == "ok", report.summary()
    expected, (w, h, n) = np.full(BUFFER, POISON, np.uint8), (4, 2, 1)
    for pixel in range(30):
        inside = w + 1 < 6 and h + 2 < 5 and n < 4
        row = values[n, h + 2, w + 1] if inside else np.zeros(16, np.uint16)
        expected[32 * pixel : 32 * pixel + 32] = row.view(np.uint8)
        w += 1
        if w > 5:
            w, h = -1, h + 1
        if h > 3:
            h, n = 0, n + 1
    assert (out.numpy() == expected).all()


def wide(emulator: Emulator, values: np.ndarray) -> bytes:
    return TensorMap.im2col_wide(
        "u16", emulator.array(values), (16, 6, 5, 4), (32, 192, 960), -1, 1, 16, 10, wide_mode="w", swizzle="32B"
    ).encode()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(("halo", "status"), [(2, "ok"), (3, "deadlock")])
def test_a_halo_completes_with_the_column(halo: int, status: str, schedule: Any) -> None:
    """10 pixels along the width and two more after them, 12 on which the mbarrier waits (PTX ISA 5.5.5.3)."""
    values = np.random.default_rng(5).integers(0, 2**16, (4, 5, 6, 16), dtype=np.uint16)
    emulator = Emulator(schedule=schedule, checks=False)
    text = KERNEL.replace("[bar];\n    waiting", f"[bar], {{{{{halo}, 1}}}};\n    waiting").replace(
        "{tile}", ".im2col::w"
    )
    kernel = text.format(
        map="mov.b64 %map, map; cvta.param.u64 %map, %map;",
        offset=0,
        bytes=12 * 32,
        rank=4,
        coords="0, -1, 2, 1",
        where="cta",
    )
    out = emulator.empty(BUFFER, np.uint8)
    text = module(kernel, ".param .align 64 .b8 map[128], .param .u64 out")
    report = emulator.launch(Kernel.from_ptx(text), 1, 128, [wide(emulator, values), out])
    assert report.status == status, report.summary()
    if status == "ok":
        expected = np.full(BUFFER, POISON, np.uint8)
        # The image's rows have 8 places, so that the third pixel of the second image is the last of the column.
        for pixel, (w, n) in enumerate([*((w, 1) for w in range(-1, 7)), *((w, 2) for w in range(-1, 3))]):
            row = values[n, 2, w + 1] if w + 1 < 6 else np.zeros(16, np.uint16)
            for i in range(32):
                at = 32 * pixel + i
                expected[at ^ (at >> 7 & 1) << 4] = row.view(np.uint8)[i]
        assert (out.numpy() == expected).all()


#: Name, the copy, the tensormap, the code of the fault (None: not modelled).
MISFITS = [
    ("a tiled map for pixels", "4d.shared::cta.global.im2col", "0, 0, 0, 0", "tile4", ", {1, 1}", "tensormap-mode"),
    ("pixels for a tile", "4d.shared::cta.global.tile", "0, 0, 0, 0", "column", "", "tensormap-mode"),
    ("another rank", "3d.shared::cta.global.im2col", "0, 0, 0", "column", ", {1}", "tensormap-rank"),
    ("before the pixel box", "4d.shared::cta.global.im2col", "0, -2, 0, 0", "column", ", {1, 1}", "tensormap-pixel"),
    ("beyond the pixel box", "4d.shared::cta.global.im2col", "0, 0, 4, 0", "column", ", {1, 1}", "tensormap-pixel"),
    ("channels at an odd place", "4d.shared::cta.global.im2col", "4, 0, 0, 0", "column", ", {1, 1}", "misaligned"),
    ("wide without swizzle", "4d.shared::cta.global.im2col::w", "0, 0, 0, 0", "column", ", {0, 1}", "tensormap-box"),
    ("a large halo", "4d.shared::cta.global.im2col::w::128", "0, 0, 0, 0", "wide", ", {32, 0}", "tensormap-pixel"),
    ("four rows of more", "2d.shared::cta.global.tile::gather4", "0, 0, 1, 2, 3", "tile2", "", "tensormap-box"),
]


@pytest.mark.parametrize(
    ("name", "copy", "coords", "which", "more", "code"), MISFITS, ids=[each[0] for each in MISFITS]
)
def test_maps_that_the_instruction_does_not_fit(
    name: str, copy: str, coords: str, which: str, more: str, code: str
) -> None:
    emulator = Emulator()
    values = np.zeros((4, 5, 6, 16), np.uint16)
    maps = {
        "column": lambda: column(emulator, values),
        "wide": lambda: wide(emulator, values),
        "tile4": lambda: TensorMap.tiled(
            "u16", emulator.array(values), (16, 6, 5, 4), (32, 192, 960), (16, 2, 2, 2)
        ).encode(),
        "tile2": lambda: simple(emulator).encode(),
    }
    begin = KERNEL.index("cp.async.bulk.tensor")
    end = KERNEL.index(";", begin)
    text = KERNEL[:begin].replace("{map}", "mov.b64 %map, map; cvta.param.u64 %map, %map;").format(offset=0, bytes=512)
    text += f"cp.async.bulk.tensor.{copy}.mbarrier::complete_tx::bytes [%to], [%map, {{{coords}}}], [bar]{more}"
    text = module(text + KERNEL[end:].format(), ".param .align 64 .b8 map[128], .param .u64 out")
    report = emulator.launch(Kernel.from_ptx(text), 1, 128, [maps[which](), emulator.empty(BUFFER, np.uint8)])
    assert report.status == "fault", report.summary()
    assert codes(report) == [code]
    assert report.findings[0].line == line_of(text, "cp.async.bulk.tensor")


#: CTAs of a cluster; those of SENDERS copy the tile at their own row, and all whose BYTES are not 0 wait for so many.
CLUSTER = """
    .shared .align 1024 .b8 buffer[4096];
    .shared .align 8 .b64 bar;
    .reg .pred %p, %q, %s, %w; .reg .u32 %t, %r, %x, %y, %z, %to, %bar, %bytes; .reg .b16 %mask;
    .reg .b64 %map, %out, %at;
    mov.u32 %t, %tid.x;
    mov.u32 %r, %cluster_ctarank;
    ld.param.u64 %out, [out];
    setp.eq.u32 %p, %t, 0;
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    shr.u32 %x, SENDERS, %r;
    and.b32 %x, %x, 1;
    setp.ne.u32 %s, %x, 0;
    and.pred %s, %s, %p;
    shl.b32 %x, %r, 2;
    mov.u64 %at, BYTES;
    shl.b32 %x, %r, 3;
    shr.u64 %at, %at, %x;
    cvt.u32.u64 %bytes, %at;
    and.b32 %bytes, %bytes, 255;
    shl.b32 %bytes, %bytes, 8;
    setp.ne.u32 %w, %bytes, 0;
    @!%p bra start;
    mbarrier.init.shared::cta.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    @%w mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], %bytes;
    start: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mov.u32 %to, buffer;
    mov.u32 %bar, bar;
    mul.lo.u32 %x, %r, 4;
    mul.lo.u32 %y, %r, 1024;
    add.u32 %to, %to, %y;
    BARRIER
    mov.u16 %mask, MASK;
    @%s cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytesHOW
        [%to], [%map, {0, %x}], [%bar]MASKED;
    @!%w bra over;
    wait:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0;
    @!%q bra wait;
    over: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mov.u32 %z, 0;
    dump:
    mad.lo.u32 %x, %t, 4, %z;
    mov.u32 %y, buffer;
    add.u32 %y, %y, %x;
    ld.shared::cta.u32 %to, [%y];
    mad.lo.u32 %x, %r, 4096, %x;
    cvt.u64.u32 %at, %x;
    add.u64 %at, %at, %out;
    st.global.u32 [%at], %to;
    add.u32 %z, %z, 128;
    setp.lt.u32 %q, %z, 4096;
    @%q bra dump;
    ret;
"""


def clustered(
    how: str,
    mask: int,
    senders: int,
    expect: list[int],
    barrier: str,
    schedule: Any,
    *,
    checks: bool = False,
    target: str = "sm_100a",
) -> Any:
    """(report, what each CTA's buffer holds, the tensor): every sender's tile is 256 bytes, at its own KiB."""
    emulator = Emulator(schedule=schedule, checks=checks)
    values = np.random.default_rng(8).integers(0, 2**32, (16, 16), dtype=np.uint32)
    tensormap = TensorMap.tiled("u32", emulator.array(values), (16, 16), (64,), (16, 4))
    packed = sum(count << 8 * rank for rank, count in enumerate(expect))
    text = CLUSTER.replace("SENDERS", str(senders)).replace("BYTES", str(packed)).replace("BARRIER", barrier)
    text = (
        text.replace("HOW", how).replace("MASKED", ", %mask" if "multicast" in how else "").replace("MASK", str(mask))
    )
    out = emulator.empty((4, 4096), np.uint8)
    kernel = Kernel.from_ptx(module(text, ".param .align 64 .b8 map[128], .param .u64 out", target=target))
    report = emulator.launch(kernel, 4, 32, [tensormap.encode(), out], cluster=4)
    return report, out.numpy(), values


EVEN = "and.b32 %bar, %bar, 0xFEFFFFF8;"
#: The copy's modifiers, mask of receivers, senders, tiles that each CTA's barrier gets, what is done to its address.
MULTICASTS = [
    (".multicast::cluster", 0b1111, 0b0001, [1, 1, 1, 1], ""),
    (".multicast::cluster", 0b1010, 0b0110, [0, 2, 0, 2], ""),
    (".multicast::cluster.cta_group::1", 0b0100, 0b1000, [0, 0, 1, 0], ""),
    (".cta_group::2", 0, 0b1111, [2, 0, 2, 0], EVEN),
    (".cta_group::2", 0, 0b1111, [1, 1, 1, 1], ""),
    (".multicast::cluster.cta_group::2", 0b1111, 0b0001, [2, 0, 2, 0], EVEN),
    (".multicast::cluster.cta_group::2", 0b0111, 0b0010, [0, 2, 0, 1], ""),
]


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(("how", "mask", "senders", "expect", "barrier"), MULTICASTS)
def test_copies_to_a_cluster(how: str, mask: int, senders: int, expect: list[int], barrier: str, schedule: Any) -> None:
    """Every receiver gets the tile at the sender's offset; the bytes are told to its barrier, or its pair's."""
    report, found, values = clustered(how, mask, senders, expect, barrier, schedule)
    assert report.status == "ok", report.summary()
    expected = np.full((4, 4096), POISON, np.uint8)
    for sender in range(4):
        for receiver in range(4):
            if senders >> sender & 1 and (mask >> receiver & 1 if "multicast" in how else receiver == sender):
                tile = values[4 * sender : 4 * sender + 4].ravel().view(np.uint8)
                expected[receiver, 1024 * sender : 1024 * sender + 256] = tile
    assert (found == expected).all()
    if any(expect):  # one tile fewer never completes
        fewer = [count + (rank == expect.index(max(expect))) for rank, count in enumerate(expect)]
        assert clustered(how, mask, senders, fewer, barrier, schedule)[0].status == "deadlock"


def test_masks_of_ctas_that_are_not_there() -> None:
    report, *_ = clustered(".multicast::cluster", 0b10001, 1, [1, 0, 0, 0], "", "eager")
    assert codes(report) == ["multicast-mask"], report.summary()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_an_mbarrier_of_another_cta_than_the_data(schedule: Any) -> None:
    """Without .cta_group::2 that is an error; the launch goes on with the mbarrier of the CTA that gets the data."""
    report, found, values = clustered("", 0, 0b0010, [0, 1, 0, 0], EVEN, schedule, checks=True)
    assert report.status == "findings", report.summary()
    (finding,) = [each for each in report.findings if each.code == "copy-mbarrier-cta"]
    assert "CTA of rank 0 as its mbarrier" in finding.message
    assert finding.accesses[0].opcode.startswith("cp.async.bulk.tensor")
    assert (found[1, 1024:1280] == values[4:8].ravel().view(np.uint8)).all()
    assert finding.severity == "error"
    clean, *_ = clustered("", 0, 0b0010, [0, 1, 0, 0], "", schedule, checks=True)
    assert "copy-mbarrier-cta" not in codes(clean), clean.summary()
    hopper, found, _ = clustered("", 0, 0b0010, [0, 1, 0, 0], EVEN, schedule, checks=True, target="sm_90a")
    assert {each.severity for each in hopper.findings if each.code == "copy-mbarrier-cta"} == {"advice"}
    assert (found[1, 1024:1280] == values[4:8].ravel().view(np.uint8)).all()


def test_copies_are_asynchronous() -> None:
    """Without the wait a reader sees the old bytes where the schedule is late, and the race is reported always."""
    schedules: list[Any] = ["eager", "late", "random"]
    for schedule in schedules:
        emulator = Emulator(schedule=schedule)
        out = emulator.empty(BUFFER, np.uint8)
        text = KERNEL.format(
            map="mov.b64 %map, map; cvta.param.u64 %map, %map;",
            offset=0,
            bytes=512,
            rank=2,
            coords="0, 0",
            where="cta",
            tile="",
        ).replace("@!%q bra w;", "")
        text = module(text, ".param .align 64 .b8 map[128], .param .u64 out")
        report = emulator.launch(Kernel.from_ptx(text), 1, 128, [simple(emulator).encode(), out])
        assert report.status == "findings"
        assert "shared-race" in codes(report)
        race = next(each for each in report.findings if each.code == "shared-race")
        assert race.line == line_of(text, "ld.shared.v4")
        assert f"line {line_of(text, 'cp.async.bulk')}" in race.message


#: Sixteen CTAs: each copies its row of 64 bytes to all, and waits for sixteen rows and for an arrival of its neighbor.
SIXTEEN = """
    .shared .align 128 .b8 buffer[2048];
    .shared .align 8 .b64 bar;
    .reg .pred %p, %q; .reg .u32 %t, %r, %x, %to, %peer; .reg .b16 %mask; .reg .b64 %map, %out, %at;
    mov.u32 %t, %tid.x;
    mov.u32 %r, %cluster_ctarank;
    setp.eq.u32 %p, %t, 0;
    ld.param.u64 %out, [out];
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    mov.u16 %mask, 0xffff;
    @!%p bra start;
    mbarrier.init.shared::cta.b64 [bar], 2;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], BYTES;
    start: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    @!%p bra wait;
    mov.u32 %to, buffer;
    mad.lo.u32 %to, %r, 128, %to;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster
        [%to], [%map, {0, %r}], [bar], %mask;
    add.u32 %x, %r, 1;
    and.b32 %x, %x, 15;
    mov.u32 %peer, bar;
    mapa.shared::cluster.u32 %peer, %peer, %x;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%peer];
    wait:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q, [bar], 0;
    @!%q bra wait;
    shr.u32 %x, %t, 4;
    mov.u32 %to, buffer;
    mad.lo.u32 %to, %x, 128, %to;
    and.b32 %x, %t, 15;
    shl.b32 %x, %x, 2;
    add.u32 %to, %to, %x;
    ld.shared.u32 %x, [%to];
    mov.u32 %r, %ctaid.x;
    mad.lo.u32 %r, %r, 256, %t;
    mad.wide.u32 %at, %r, 4, %out;
    st.global.u32 [%at], %x;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    ret;
"""


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(("rows", "status"), [(16, "ok"), (17, "deadlock")])
def test_sixteen_ctas_send_to_all(rows: int, status: str, schedule: Any) -> None:
    emulator = Emulator(schedule=schedule, multiprocessors=16)
    values = np.random.default_rng(2).integers(0, 2**32, (16, 16), dtype=np.uint32)
    tensormap = TensorMap.tiled("u32", emulator.array(values), (16, 16), (64,), (16, 1))
    out = emulator.array(np.full((32, 256), 0xCDCDCDCD, np.uint32))
    text = module(SIXTEEN.replace("BYTES", str(64 * rows)), ".param .align 64 .b8 map[128], .param .u64 out")
    # Two clusters, one after the other in the same places.
    report = emulator.launch(Kernel.from_ptx(text), 32, 256, [tensormap.encode(), out], cluster=16)
    assert report.status == status, report.summary()
    if status == "ok":
        assert codes(report) == []
        assert (out.numpy() == values.ravel()).all()


def test_a_fault_inside_the_array_of_a_map() -> None:
    """The array is named by the parameter that holds its map."""
    emulator = Emulator()
    array = emulator.array(np.zeros((16, 64), np.uint16))
    tensormap = TensorMap.tiled("bf16", array, (64, 16), (128,), (64, 8))
    body = ".reg .b64 %at; mov.u64 %at, ADDRESS; st.global.u32 [%at], 1; ret;".replace(
        "ADDRESS", str(array.address + array.nbytes)
    )
    kernel = Kernel.from_ptx(module(body, ".param .align 64 .b8 weights[128]"))
    report = emulator.launch(kernel, 1, 1, [tensormap])
    assert report.status == "fault"
    assert "`weights`" in report.findings[0].message, report.summary()


#: Loads the box at (8, 1) of the tensor at `from`, and stores it at (0, 2) of the tensor at `to`, by one map.
OVERRIDDEN = """
    .shared .align 128 .b8 buffer[256]; .shared .align 8 .b64 bar;
    .reg .pred %q; .reg .b64 %map, %from, %to;
    mov.b64 %map, map; cvta.param.u64 %map, %map;
    ld.param.u64 %from, [from]; ld.param.u64 %to, [to];
    mbarrier.init.shared::cta.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes.override::global_address
        [buffer], [%map, %from, {8, 1}], [bar];
    w: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0;
    @!%q bra w;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.override::global_address [%map, %to, {0, 2}], [buffer];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    ret;
"""


def test_another_tensor_of_the_shape_of_a_map() -> None:
    """.override::global_address: the map's own address is ignored (PTX ISA 9.4, 9.7.10.28.5.2.1)."""
    parameters = ".param .align 64 .b8 map[128], .param .u64 from, .param .u64 to"
    kernel = Kernel.from_ptx(module(OVERRIDDEN, parameters, target="sm_107a", version="9.4"))
    random = np.random.default_rng(33)
    emulator = Emulator("sm_107a")
    arrays = [emulator.array(random.integers(0, 1 << 32, (4, 16)).astype(np.uint32)) for _ in range(3)]
    before = [each.numpy() for each in arrays]
    tensormap = TensorMap.tiled("u32", arrays[0], (16, 4), (64,), (8, 2))
    report = emulator.launch(kernel, 1, 1, [tensormap, arrays[1], arrays[2]])
    assert report.status == "ok", report.summary()
    before[2][2:4, 0:8] = before[1][1:3, 8:16]
    for found, expected in zip(arrays, before, strict=True):
        assert (found.numpy() == expected).all()
    misaligned = emulator.launch(kernel, 1, 1, [tensormap, np.uint64(arrays[1].address + 8), arrays[2]])
    assert (misaligned.status, codes(misaligned)) == ("fault", ["misaligned"])
