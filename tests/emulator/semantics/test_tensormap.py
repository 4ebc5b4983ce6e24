"""Tensormaps made on the device, against the bytes that an H200's driver gave for the same values; and their fences."""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.descriptors import TensorMap
from ptxgen.device import Launch, LaunchReport
from ptxgen.emulator import Emulator
from tests.support.harness import codes, line_of, module
from tests.support.paths import DATA

RECORDING = DATA / "tensormap" / "h200_driver580.jsonl.gz"
#: The driver's numbers of element types, as tensormap.replace counts them (PTX ISA table 33).
ELEMTYPES = (0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12)
#: Bits of word 2 that no instruction sets: the L2 promotion. Words 16 and 18 are notes of the driver.
L2_PROMOTION = 3 << 17


def fields(record: dict[str, Any]) -> list[str]:
    """The replacements that make a recorded map from zeros: `field operands`, without address."""
    lines = [
        f"global_address.SPACE.b1024.b64 [AT], {record['address']}",
        f"rank.SPACE.b1024.b32 [AT], {record['rank'] - 1}",
        f"elemtype.SPACE.b1024.b32 [AT], {ELEMTYPES[record['data_type']]}",
        f"interleave_layout.SPACE.b1024.b32 [AT], {record['interleave']}",
        f"swizzle_mode.SPACE.b1024.b32 [AT], {record['swizzle']}",
        f"fill_mode.SPACE.b1024.b32 [AT], {record['oob_fill']}",
    ]
    for name, values in (("box_dim", "box"), ("global_dim", "dims"), ("element_stride", "element_strides")):
        lines += [f"{name}.SPACE.b1024.b32 [AT], {i}, {v & 0xFFFFFFFF}" for i, v in enumerate(record[values])]
    return lines + [f"global_stride.SPACE.b1024.b64 [AT], {i}, {v}" for i, v in enumerate(record["strides"])]


MAKE = """
    .shared .align 128 .b8 made[128];
    .reg .b32 %t, %at; .reg .b64 %out, %to; .reg .pred %p;
    mov.u32 %t, %tid.x;
    ld.param.u64 %out, [out];
    mov.u32 %at, made;
    shl.b32 %t, %t, 2;
    add.u32 %at, %at, %t;
    st.shared.b32 [%at], START;
    bar.warp.sync -1;
    setp.ne.u32 %p, %t, 0;
    @%p bra publish;
    REPLACE
    publish: bar.warp.sync -1;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%out], [made], 128;
    ret;
"""


def make(lines: list[str], *, generic: bool = False, start: int = 0) -> np.ndarray:
    """The words of a map that begins as words `start` and gets these fields, in shared memory."""
    place = "made" if not generic else "%to"
    body = "".join(f"tensormap.replace.tile.{line};\n" for line in lines).replace("AT", place)
    body = body.replace(".SPACE", "" if generic else ".shared::cta")
    if generic:
        body = "mov.b64 %to, made; cvta.shared.u64 %to, %to;\n" + body
    emulator = Emulator()
    out = emulator.empty(32, np.uint32)
    text = module(MAKE.replace("REPLACE", body).replace("START", str(start)), ".param .u64 out")
    report = emulator.launch(Kernel.from_ptx(text), 1, 32, [out])
    assert report.status == "ok", report.summary()
    return out.numpy()


def test_maps_made_field_by_field_have_the_drivers_bytes() -> None:
    with gzip.open(RECORDING, "rt") as recording:
        records = [each for each in map(json.loads, recording) if (each["kind"], each["result"]) == ("tiled", 0)][::14]
    for number, record in enumerate(records):
        found = make(fields(record), generic=number % 2 == 1)
        expected = np.frombuffer(bytes.fromhex(record["bytes"]), np.uint32).copy()
        expected[2] &= ~np.uint32(L2_PROMOTION)
        expected[16:] = 0
        assert (found == expected).all(), record


def test_fields_leave_the_others_alone() -> None:
    """From ones to zeros; of the element type, the bit that marks tf32 stays (ptxas 13.5, sm_90a and sm_100a)."""
    ones = 0xFFFFFFFF
    cases = {
        "global_address.SPACE.b1024.b64 [AT], 0": {0: 0, 1: 0},
        "rank.SPACE.b1024.b32 [AT], 0": {2: ones ^ 7 << 4},
        "elemtype.SPACE.b1024.b32 [AT], 0": {2: ones ^ 15 << 7},
        "interleave_layout.SPACE.b1024.b32 [AT], 0": {2: ones ^ 3 << 11},
        "swizzle_mode.SPACE.b1024.b32 [AT], 0": {2: ones ^ 3 << 13 ^ 1 << 22},
        "swizzle_atomicity.SPACE.b1024.b32 [AT], 0": {2: ones ^ 3 << 19},
        "fill_mode.SPACE.b1024.b32 [AT], 0": {2: ones ^ 1 << 15},
        "box_dim.SPACE.b1024.b32 [AT], 0, 1": {13: ones ^ 255 << 24},
        "box_dim.SPACE.b1024.b32 [AT], 3, 1": {14: ones ^ 255 << 16},
        "global_dim.SPACE.b1024.b32 [AT], 4, 1": {12: 0},
        "element_stride.SPACE.b1024.b32 [AT], 2, 1": {13: ones ^ 7 << 6},
        "global_stride.SPACE.b1024.b64 [AT], 2, 15": {5: 0, 7: ones ^ 15 << 8},
        "global_stride.SPACE.b1024.b64 [AT], 4, 0": {7: 0},
    }
    for line, changed in cases.items():
        expected = np.full(32, ones, np.uint32)
        for word, value in changed.items():
            expected[word] = value
        assert (make([line], start=ones) == expected).all(), line


#: A map with the wrong address is in global memory; thread 0 mends it there or in shared memory, and copies with it.
USE = """
    .shared .align 1024 .b8 buffer[1024];
    .shared .align 128 .b8 copy[128];
    .shared .align 8 .b64 bar;
    .reg .b32 %t, %x; .reg .b64 %map, %data, %out, %at, %w; .reg .pred %p, %q;
    mov.u32 %t, %tid.x;
    ld.param.u64 %map, [map];
    ld.param.u64 %data, [data];
    ld.param.u64 %out, [out];
    setp.ne.u32 %p, %t, 0;
    mov.u32 %x, copy;
    mad.lo.u32 %x, %t, 4, %x;
    mul.wide.u32 %at, %t, 4;
    add.u64 %at, %at, %map;
    ld.global.b32 %t, [%at];
    st.shared.b32 [%x], %t;
    bar.warp.sync -1;
    mov.u32 %t, %tid.x;
    CHANGE
    ACQUIRE
    @%p bra waiting;
    mbarrier.init.shared::cta.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [buffer], [%map, {0, 0}], [bar];
    waiting: bar.warp.sync -1;
    w:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0;
    @!%q bra w;
    mov.u32 %x, buffer;
    mad.lo.u32 %x, %t, 4, %x;
    ld.shared.b32 %x, [%x];
    mul.wide.u32 %at, %t, 4;
    add.u64 %at, %at, %out;
    st.global.b32 [%at], %x;
    ret;
"""
IN_PLACE = "@!%p tensormap.replace.tile.global_address.global.b1024.b64 [%map], %data; bar.warp.sync -1;"
RELEASE = "fence.proxy.tensormap::generic.release.gpu;"
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [%map], 128;"
BY_COPY = """
    @!%p tensormap.replace.tile.global_address.shared::cta.b1024.b64 [copy], %data;
    bar.warp.sync -1;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%map], [copy], 128;
"""


def use(change: str, acquire: str, schedule: Any) -> tuple[LaunchReport, np.ndarray, np.ndarray, str]:
    emulator = Emulator(schedule=schedule)
    values = np.random.default_rng(3).integers(0, 2**32, (64, 32), dtype=np.uint32)
    data, out = emulator.array(values), emulator.empty(32, np.uint32)
    wrong = TensorMap.tiled("u32", data.address + 512, (32, 64), (128,), (16, 8))
    maps = emulator.array(np.frombuffer(wrong.encode(), np.uint8))
    text = module(
        USE.replace("CHANGE", change).replace("ACQUIRE", acquire), ".param .u64 map, .param .u64 data, .param .u64 out"
    )
    report = emulator.launch(Kernel.from_ptx(text), 1, 32, [maps, data, out])
    return report, out.numpy(), values[:8, :16].ravel()[:32], text


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("change", [IN_PLACE + RELEASE, BY_COPY])
def test_a_changed_map_is_used(change: str, schedule: Any) -> None:
    report, found, expected, _ = use(change, ACQUIRE, schedule)
    assert report.status == "ok", report.summary()
    assert (found == expected).all()


@pytest.mark.parametrize(("ordinals", "status"), [((1, 2, 3), "ok"), ((0,), "fault")])
def test_strides_beyond_the_rank_are_not_read(ordinals: tuple[int, ...], status: str) -> None:
    """CUTLASS's grouped GEMMs give maps of rank 2 four strides, the last three of them whatever a register holds."""
    strides = "".join(
        f"@!%p tensormap.replace.tile.global_stride.global.b1024.b64 [%map], {each}, 0xFFFFFFFFF0;" for each in ordinals
    )
    report, found, expected, _ = use(strides + IN_PLACE + RELEASE, ACQUIRE, "eager")
    assert report.status == status, report.summary()
    assert (found == expected).all() == (status == "ok")


#: Name, change, acquire, what the message says.
UNFENCED = [
    ("copied, not acquired", BY_COPY, "", "acquire"),
    ("in place, not acquired", IN_PLACE + RELEASE, "", "acquire"),
    ("in place, not released", IN_PLACE, ACQUIRE, "release"),
    ("in place, no fence", IN_PLACE, "", "release"),
    ("acquired before the change", ACQUIRE + BY_COPY, "", "acquire"),
    ("another address", BY_COPY, ACQUIRE.replace("[%map]", "[%data]"), "acquire"),
]


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize(("name", "change", "acquire", "word"), UNFENCED, ids=[each[0] for each in UNFENCED])
def test_missing_fences(name: str, change: str, acquire: str, word: str, schedule: Any) -> None:
    report, _, _, text = use(change, acquire, schedule)
    assert (report.status, codes(report)) == ("findings", ["missing-tensormap-fence"]), report.summary()
    assert report.findings[0].line == line_of(text, "cp.async.bulk.tensor")
    assert f"fence.proxy.tensormap::generic.{word}" in report.findings[0].message


def test_bytes_that_change_between_uses() -> None:
    """Plain stores to a map are seen by the second copy that uses it."""
    again = "bar.warp.sync -1; @!%p st.global.b64 [%map], %data; bar.warp.sync -1; FENCE @%p bra waiting2;"
    second = """
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
        cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [buffer], [%map, {0, 0}], [bar];
        waiting2: bar.warp.sync -1;
        w2:
        mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 1;
        @!%q bra w2;
    """
    for fence, expected in (("", ["missing-tensormap-fence"]), (RELEASE + ACQUIRE, [])):
        emulator = Emulator()
        data, out = emulator.array(np.zeros(4096, np.uint32)), emulator.empty(32, np.uint32)
        first = TensorMap.tiled("u32", data.address + 512, (32, 64), (128,), (16, 8))
        maps = emulator.array(np.frombuffer(first.encode(), np.uint8))
        body = USE.replace("CHANGE", "").replace("ACQUIRE", "")
        body = body.replace("bra w;", "bra w;" + again.replace("FENCE", fence) + second)
        text = module(body, ".param .u64 map, .param .u64 data, .param .u64 out")
        report = emulator.launch(Kernel.from_ptx(text), 1, 32, [maps, data, out])
        assert codes(report) == expected, report.summary()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("tensormap.replace.tile.rank.shared::cta.b1024.b32 [made+32], 1;", "misaligned"),
        ("tensormap.replace.tile.rank.shared::cta.b1024.b32 [made+128], 1;", "out-of-bounds"),
        ("tensormap.replace.tile.rank.global.b1024.b32 [%out+8], 1;", "misaligned"),
        ("tensormap.replace.tile.rank.global.b1024.b32 [%out+64], 1;", "out-of-bounds"),
        ("tensormap.replace.tile.rank.b1024.b32 [%to], 1;", "out-of-bounds"),
    ],
)
def test_faults(line: str, code: str) -> None:
    emulator = Emulator()
    body = MAKE.replace("REPLACE", "mov.b64 %to, 0;" + line).replace("START", "0")
    text = module(body, ".param .u64 out")
    report = emulator.launch(Kernel.from_ptx(text), 1, 32, [emulator.empty(128, np.uint8)])
    assert (report.status, codes(report)) == ("fault", [code]), report.summary()
    assert report.findings[0].line == line_of(text, "tensormap.replace")


@pytest.mark.parametrize(("stride", "expected"), [(48, []), (40, ["illegal-tensormap"])])
def test_strides_that_lose_bits(stride: int, expected: list[str]) -> None:
    """A stride is kept in units of 16 bytes; the map may never be used, so what is lost gets advice."""
    body = f"tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [made], 1, {stride};"
    text = module(MAKE.replace("REPLACE", body).replace("START", "0"), ".param .u64 out")
    emulator = Emulator()
    report = emulator.launch(Kernel.from_ptx(text), 1, 32, [emulator.empty(128, np.uint8)])
    assert (report.status, codes(report)) == ("ok", expected), report.summary()


#: Thread 32 changes a map in global memory, and thread 0 copies with it.
SHARED_USE = """
    .shared .align 1024 .b8 buffer[1024];
    .shared .align 8 .b64 bar;
    .reg .b32 %t; .reg .b64 %map, %data, %out; .reg .pred %first, %other, %q;
    mov.u32 %t, %tid.x;
    ld.param.u64 %map, [map];
    ld.param.u64 %data, [data];
    setp.eq.u32 %first, %t, 0;
    setp.eq.u32 %other, %t, 32;
    CHANGE ORDER @!%first bra end;
    USE end: ret;
"""
CHANGE = "@%other tensormap.replace.tile.global_address.global.b1024.b64 [%map], %data;" + RELEASE
COPY = """
    mbarrier.init.shared::cta.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [buffer], [%map, {0, 0}], [bar];
    w:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0;
    @!%q bra w;
"""


def shared_use(*bodies: str, schedule: Any) -> set[str]:
    """What is told of grids that may overlap."""
    emulator = Emulator(schedule=schedule)
    data = emulator.array(np.zeros(4096, np.uint32))
    first = TensorMap.tiled("u32", data.address + 512, (32, 64), (128,), (16, 8))
    maps = emulator.array(np.frombuffer(first.encode(), np.uint8))
    kernels = [Kernel.from_ptx(module(body, ".param .u64 map, .param .u64 data")) for body in bodies]
    reports = emulator.launch_overlapping([Launch(each, 1, 64, [maps, data]) for each in kernels])
    return {code for each in reports for code in codes(each)}


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
@pytest.mark.parametrize("change", [CHANGE, "@%other st.global.b64 [%map], %data;" + RELEASE])
def test_who_uses_a_map_knows_of_its_change(change: str, schedule: Any) -> None:
    """Fences alone do not order a copy with the warp that has changed the map."""
    whole = SHARED_USE.replace("CHANGE", change).replace("USE", ACQUIRE + COPY)
    assert shared_use(whole.replace("ORDER", ""), schedule=schedule) == {"global-race"}
    assert shared_use(whole.replace("ORDER", "bar.sync 0;"), schedule=schedule) == set()


@pytest.mark.parametrize("schedule", ["eager", "late", "random"])
def test_a_map_that_the_grid_before_changes(schedule: Any) -> None:
    before = "griddepcontrol.launch_dependents;" + SHARED_USE.replace("CHANGE ORDER", CHANGE).replace("USE", "")
    after = SHARED_USE.replace("CHANGE ORDER", "WAIT").replace("USE", ACQUIRE + COPY)
    assert shared_use(before, after.replace("WAIT", ""), schedule=schedule) == {"grid-race"}
    assert shared_use(before, after.replace("WAIT", "griddepcontrol.wait;"), schedule=schedule) == set()
    # The other way round: the grid before still uses what this one changes.
    before = SHARED_USE.replace("CHANGE ORDER", "griddepcontrol.launch_dependents;").replace("USE", COPY)
    assert shared_use(before, SHARED_USE.replace("CHANGE ORDER", CHANGE).replace("USE", ""), schedule=schedule) == {
        "grid-race"
    }
