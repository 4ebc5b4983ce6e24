"""Tensor copies from shared memory: boxes in every rank and swizzle, reductions, their order."""

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
from tests.support.harness import codes, line_of, module
from tests.support.tma_cases import BUFFER, SIZES, SWIZZLES, random_case, simple

#: Thread 0 of each CTA stores a box from the buffer, which all threads have filled, and waits for it.
STORE = """
    .shared .align 1024 .b8 buffer[20480];
    .reg .pred %p, %q; .reg .u32 %t, %to, %x, %y, %z, %w, %from; .reg .b64 %map, %in, %at;
    mov.u32 %t, %tid.x;
    setp.ne.u32 %p, %t, 0;
    ld.param.u64 %in, [in];
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    mov.u32 %from, 0;
    fill:
    mad.lo.u32 %x, %t, 16, %from;
    cvt.u64.u32 %at, %x;
    add.u64 %at, %at, %in;
    mov.u32 %to, buffer;
    add.u32 %to, %to, %x;
    ld.global.v4.u32 {%x, %y, %z, %w}, [%at];
    st.shared.v4.u32 [%to], {%x, %y, %z, %w};
    add.u32 %from, %from, 2048;
    setp.lt.u32 %q, %from, 20480;
    @%q bra fill;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%p bra end;
    mov.u32 %to, buffer;
    add.u32 %to, %to, $OFFSET;
    cp.async.bulk.tensor.$RANKd.global.shared::cta.bulk_group [%map, {$COORDS}], [%to];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group$READ 0;
    $THEN
    end: ret;
"""


def store(
    tensormap: bytes,
    coords: tuple[int, ...],
    image: np.ndarray,
    emulator: Emulator,
    *,
    offset: int = 0,
    edit: tuple[str, str] = ("", ""),
    read: str = "",
    then: str = "",
) -> tuple[LaunchReport, str]:
    text = STORE.replace("$OFFSET", str(offset)).replace("$RANK", str(len(coords))).replace("$READ", read)
    text = text.replace("$COORDS", ", ".join(map(str, coords))).replace("$THEN", then).replace(*edit)
    text = module(text, ".param .align 64 .b8 map[128], .param .u64 in")
    return emulator.launch(Kernel.from_ptx(text), 1, 128, [tensormap, emulator.array(image)]), text


@pytest.mark.parametrize("swizzle", sorted(SWIZZLES))
@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_stored_boxes(rank: int, swizzle: str) -> None:
    """Every byte of the array afterwards: those of the box, in whole units of 16, and all others as they were."""
    rng = random.Random(f"store {rank} {swizzle}")
    for number, dtype in enumerate(SIZES):
        dims, strides, box, coords = random_case(rng, dtype, rank, swizzle)
        coords = tuple(abs(each) for each in coords)
        size = SIZES[dtype]
        written = -(-dims[0] * size // 16) * 16 // size
        extent = written * size + sum((d - 1) * s for d, s in zip(dims[1:], strides, strict=True))
        generator = np.random.default_rng(number)
        before = generator.integers(0, 256, extent, dtype=np.uint8)
        image = generator.integers(0, 256, BUFFER, dtype=np.uint8)
        emulator = Emulator(schedule=("eager", "late", "random")[number % 3])
        array = emulator.array(before)
        tensormap = TensorMap.tiled(dtype, array, dims, strides, box, swizzle=swizzle)
        offset = 128 * rng.randrange(0, 9)
        report, _ = store(tensormap.encode(), coords, image, emulator, offset=offset)
        context = f"{dtype} dims {dims} strides {strides} box {box} at {coords}, {swizzle}, +{offset}"
        assert report.status == "ok", f"{context}: {report.summary()}"
        row_bytes, bit, width = SWIZZLES[swizzle]
        row_bytes = row_bytes or box[0] * size
        expected = before.copy()
        for element, index in enumerate(itertools.product(*(range(extent) for extent in reversed(box)))):
            at = [c + i for c, i in zip(coords, reversed(index), strict=True)]
            if all(0 <= x < d for x, d in zip(at, (written, *dims[1:]), strict=True)):
                row, column = divmod(element, box[0])
                address = offset + row * row_bytes + column * size
                address ^= ((address >> 7) & ((1 << width) - 1)) << bit
                start = at[0] * size + sum(x * s for x, s in zip(at[1:], strides, strict=True))
                expected[start : start + size] = image[address : address + size]
        assert (array.numpy() == expected).all(), context


@pytest.mark.parametrize(("filled", "expected"), [(60, []), (56, ["uninitialized-shared"])])
@pytest.mark.parametrize("first", [0, 16])
def test_a_store_needs_no_bytes_for_what_is_outside(filled: int, expected: list[str], first: int) -> None:
    """The tensor has 60 bytes of the box's rows of 80, and 2 of its 4 rows: the others are edges, or padding."""
    emulator = Emulator()
    tensormap = TensorMap.tiled("u8", emulator.empty(160, np.uint8), (60 + first, 2), (80,), (80, 4), swizzle="none")
    fill = "".join(f"@!%p st.shared.u32 [buffer+{80 * row + at}], 7;" for row in range(2) for at in range(0, filled, 4))
    edit = (STORE[STORE.index("fill:") : STORE.index("fence.proxy")], fill)
    report, _ = store(tensormap.encode(), (first, 0), np.zeros(1, np.uint8), emulator, edit=edit)
    assert codes(report) == expected, report.summary()


#: The box lies in what warp 3 has filled; warp 0 stores it.
PLACE = 1536
OVERWRITE = "st.shared.u32 [buffer+1536], 7;"
STORE_ORDER = [
    ("no proxy fence", ("fence.proxy.async.shared::cta;", ""), "", "missing-proxy-fence", "cp.async.bulk.tensor"),
    ("no barrier", ("bar.sync 0;", ""), "", "shared-race", "cp.async.bulk.tensor"),
    ("overwriting before the wait", ("cp.async.bulk.wait_group 0;", ""), OVERWRITE, "shared-race", "st.shared.u32"),
    ("a wait for all but one", ("wait_group 0;", "wait_group 1;"), OVERWRITE, "shared-race", "st.shared.u32"),
    ("no commit", ("cp.async.bulk.commit_group;", ""), OVERWRITE, "shared-race", "st.shared.u32"),
]


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(("name", "edit", "then", "code", "line"), STORE_ORDER, ids=[each[0] for each in STORE_ORDER])
def test_the_order_of_stores(name: str, edit: tuple[str, str], then: str, code: str, line: str, schedule: Any) -> None:
    image = np.random.default_rng(2).integers(0, 256, BUFFER, dtype=np.uint8)
    emulator = Emulator(schedule=schedule)
    report, text = store(simple(emulator).encode(), (0, 0), image, emulator, offset=PLACE, edit=edit, then=then)
    errors = [each for each in report.findings if each.severity == "error"]
    assert [each.code for each in errors] == [code], report.summary()
    assert errors[0].line == line_of(text, line)
    for read in ("", ".read"):
        clean, _ = store(simple(emulator).encode(), (0, 0), image, emulator, offset=PLACE, read=read, then=OVERWRITE)
        assert clean.status == "ok", clean.summary()


@pytest.mark.parametrize(("operation", "legal"), [("add", True), ("xor", False)])
def test_reductions_take_some_types(operation: str, legal: bool) -> None:
    """Of bitwise ones none of 16 bits and no floats (an H100 ends the kernel, docs/hardware.md)."""
    emulator = Emulator()
    image = np.zeros(BUFFER, np.uint8)
    edit = (
        "cp.async.bulk.tensor.2d.global.shared::cta",
        f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{operation}",
    )
    floats = TensorMap.tiled("f32", emulator.array(np.zeros((16, 32), np.float32)), (32, 16), (128,), (8, 8))
    report, _ = store(floats.encode(), (0, 0), image, emulator, edit=edit)
    assert codes(report) == ([] if legal else ["tensormap-type"]), report.summary()


@pytest.mark.parametrize("coords", [(-8, 0), (0, -1)])
def test_stores_take_no_negative_coordinates(coords: tuple[int, int]) -> None:
    emulator = Emulator()
    report, text = store(simple(emulator).encode(), coords, np.zeros(BUFFER, np.uint8), emulator)
    assert (report.status, codes(report)) == ("fault", ["out-of-bounds"]), report.summary()
    assert report.findings[0].line == line_of(text, "cp.async.bulk.tensor")
