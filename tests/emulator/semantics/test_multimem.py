"""Operations on multimem addresses (PTX ISA 9.7.9.14): on one device they are loads, stores and reductions of it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.support.harness import codes, launch, poisoned

LANES = np.arange(32)
SCHEDULES = ["eager", "late", "random"]
#: Type, vector, its registers, their width and that of an element.
VECTORS = [
    ("f32", "", 1, 32, 4), ("f64", "", 1, 64, 8), ("f16x2", ".v4", 4, 32, 4), ("f16", ".v8", 8, 16, 2),
    ("bf16", ".v2", 2, 16, 2), ("f32", ".v2", 2, 32, 4), ("e4m3x4", ".v2", 2, 32, 4), ("e5m2", ".v4", 4, 8, 1),
    ("u32", "", 1, 32, 4), ("s64", "", 1, 64, 8), ("b64", "", 1, 64, 8),
]  # fmt: skip


@pytest.mark.parametrize(("type", "vector", "count", "register", "element"), VECTORS)
@pytest.mark.parametrize("order", ["", ".weak", ".relaxed.sys"])
def test_loads_and_stores(type: str, vector: str, count: int, register: int, element: int, order: str) -> None:
    """What a load gives a store takes, byte by byte."""
    size = element * count
    given = np.random.default_rng(size).integers(0, 256, 32 * size, dtype=np.uint8)
    names = [f"%v{i}" for i in range(count)]
    held = f"{{{', '.join(names)}}}" if vector else names[0]
    operation = {"b64": "or", "s64": "max"}.get(type, "add")
    body = (
        f".reg .b{register} {', '.join(names)}; .reg .b32 %t; .reg .b64 %from, %to; mov.u32 %t, %tid.x;"
        f"mad.wide.u32 %from, %t, {size}, %in0; mad.wide.u32 %to, %t, {size}, %out0;"
        f"multimem.ld_reduce{order}.global.{operation}{vector}.{type} {held}, [%from];"
        f"multimem.st{order}.global{vector}.{type} [%to], {held}; ret;"
    )
    report, (found,) = launch(body, [poisoned(32 * size, np.uint8)], inputs=[given])
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    assert (found == given).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("operation", "type", "dtype"),
    [
        ("add", "u32", np.uint32), ("add", "u64", np.uint64), ("min", "s32", np.int32), ("max", "s64", np.int64),
        ("xor", "b32", np.uint32), ("add", "f32", np.float32), ("add", "f64", np.float64), ("add", "f16x2", np.float16),
        ("add", "bf16x2", ml_dtypes.bfloat16),
    ],
)  # fmt: skip
def test_reductions(operation: str, type: str, dtype: Any, schedule: Any) -> None:
    """Every lane of two warps into one word of two; small whole numbers, whose sums are exact."""
    width = np.dtype(dtype).itemsize * (2 if type.endswith("x2") else 1)
    per = width // np.dtype(dtype).itemsize
    rng = np.random.default_rng(5)
    given, start = (rng.integers(0, 4, n).astype(dtype) for n in (64 * per, 2 * per))
    body = (
        f".reg .b{8 * width} %v; .reg .b32 %t; .reg .b64 %from, %to; mov.u32 %t, %tid.x;"
        f"mad.wide.u32 %from, %t, {width}, %in0; ld.global.b{8 * width} %v, [%from]; and.b32 %t, %t, 1;"
        f"mad.wide.u32 %to, %t, {width}, %out0; multimem.red.global.{operation}.{type} [%to], %v; ret;"
    )
    report, (found,) = launch(body, [start.copy()], inputs=[given], block=64, schedule=schedule)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    how = {"add": np.add, "min": np.minimum, "max": np.maximum, "xor": np.bitwise_xor}[operation]
    expected = start.reshape(2, per)
    for lane in range(64):
        expected[lane % 2] = how(expected[lane % 2], given.reshape(64, per)[lane])
    assert (found.reshape(2, per) == expected).all()


def test_sums_flush_subnormal_numbers() -> None:
    """As red.add.f32 does: ptxas makes the same REDG.E.ADD.F32.FTZ of both."""
    tiny, least = np.float32(2.0**-130), np.float32(2.0**-126)
    body = "multimem.red.global.add.f32 [%out0], 0f00080000; multimem.red.global.add.f32 [%out0+4], 0f00080000; ret;"
    report, (found,) = launch(body, [np.array([tiny, least], np.float32)], block=1)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    assert found.tolist() == [0.0, least]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_happens_later(schedule: Any) -> None:
    body = (
        ".reg .b32 %t; .reg .b64 %to; mov.u32 %t, %tid.x; mad.wide.u32 %to, %t, 4, %out0;"
        "multimem.st.async.release.gpu.global.u32 [%to], %t;"
        "multimem.red.async.release.sys.global.add.u32 [%out1], %t; ret;"
    )
    report, (stored, summed) = launch(
        body, [poisoned(32), np.array([7], np.uint32)], version="9.3", schedule=schedule, checks=False
    )
    assert report.status == "ok", report.summary()
    assert (stored == LANES).all()
    assert summed[0] == 7 + LANES.sum()


def test_shared_memory_has_no_multimem_addresses() -> None:
    body = ".shared .b32 word; .reg .b32 %v; .reg .b64 %at; mov.b64 %at, word; cvta.shared.u64 %at, %at;"
    report, _ = launch(body + "multimem.ld_reduce.add.u32 %v, [%at]; ret;")
    assert (report.status, codes(report)) == ("fault", ["not-global"])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_whole_rows(schedule: Any) -> None:
    """A copy of 128 bytes from shared memory, and as many added."""
    body = """
        .shared .align 16 .b32 row[32];
        .reg .b32 %t, %at; .reg .pred %p;
        mov.u32 %t, %tid.x;
        mov.u32 %at, row;
        mad.lo.u32 %at, %t, 4, %at;
        st.shared.u32 [%at], %t;
        fence.proxy.async;
        bar.warp.sync -1;
        setp.ne.u32 %p, %t, 0;
        @%p bra end;
        multimem.cp.async.bulk.global.shared::cta.bulk_group [%out0], [row], 128;
        multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out1], [row], 128;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
        end: ret;"""
    report, (stored, summed) = launch(body, [poisoned(32), np.full(32, 5, np.uint32)], version="9.1", schedule=schedule)
    assert (report.status, codes(report)) == ("ok", []), report.summary()
    assert (stored == LANES).all()
    assert (summed == LANES + 5).all()
