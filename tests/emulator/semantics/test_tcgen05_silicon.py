"""tcgen05 against what a B200 answered to others (tests/data/silicon): moves, and descriptors that it refuses."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.emulator.semantics.test_tcgen05_kinds import idesc
from tests.emulator.semantics.test_tcgen05_movement import source_descriptor
from tests.support.harness import codes
from tests.support.paths import DATA
from tests.support.tensor_layouts import Bench, codes_of, errors


def recorded(name: str) -> dict[str, Any]:
    rows = map(json.loads, (DATA / "silicon" / "tcgen05_moves_b200.jsonl").read_text().splitlines())
    return next(row for row in rows if row.get("name") == name)


def test_shift() -> None:
    """One shift at lane 0 moves all four quarters."""
    row = recorded("shift-lane-0")
    bench = Bench(1)
    tags = np.array(row["before"], np.uint32)[:, None] + np.zeros(row["columns"], np.uint32)
    column = bench.fill(tags)
    bench.sync()
    bench.issue("tcgen05.shift.cta_group::1.down [{at}];", at=column)
    report, words = bench.run()
    assert report.status == "ok", report.summary()
    assert words[:, column].tolist() == row["after"]


def test_copy() -> None:
    """128x256b without swizzle: row r is at 16 r, its second 16 bytes LBO further."""
    row = recorded("cp-128x256b-no-swizzle")
    bench = Bench(2)
    start = bench.room(4096)
    tags = np.arange(1024, dtype=np.uint32) | np.uint32(0xC0000000)
    bench.image[start : start + 4096] = tags.view(np.uint8)
    bench.take(8)
    bench.issue(
        "tcgen05.cp.cta_group::1.128x256b [{at}], {sdesc};",
        at=0,
        sdesc=source_descriptor(start, row["lbo"], row["sbo"], "none"),
    )
    report, words = bench.run(columns=8)
    assert report.status == "ok", report.summary()
    assert words[:, 0].tolist() == [0xC0000000 | first for first in row["first_words"]]


@pytest.mark.parametrize(("a", "b"), [("f16", "bf16"), ("bf16", "f16")])
def test_mixed_halves_fault(a: str, b: str) -> None:
    """An illegal instruction on a B200 (sf-tensor/tcgen05, hardware_validation/mma_probe/tcgen05.py)."""
    bench = Bench(3)
    left, right = (bench.matrix(codes_of(bench.rng, (128, 16), type), type, "k", "32B") for type in (a, b))
    bench.issue(
        "tcgen05.mma.cta_group::1.kind::f16 [{d}], {a}, {b}, {idesc}, 0;",
        d=bench.take(128),
        a=left.descriptor,
        b=right.descriptor,
        idesc=idesc(128, 128, a, b),
    )
    report, _ = bench.run()
    assert (report.status, codes(report)) == ("fault", ["illegal-descriptor"])
    assert f"a_type and b_type must be equal with kind::f16, not {a} and {b}" in report.findings[0].message


@pytest.mark.parametrize(("m", "faults"), [(32, True), (64, False)])
def test_max_shift_at_m_32_faults(m: int, faults: bool) -> None:
    """.ws with M 32 and a max-shift traps on a B200 (sf-tensor/tcgen05, tcgen05_shape_probe.cu), with a mask or not."""
    bench = Bench(4)
    left = bench.matrix(codes_of(bench.rng, (m, 16), "f16"), "f16", "k", "32B")
    right = bench.matrix(codes_of(bench.rng, (80, 16), "f16"), "f16", "k", "32B")
    bench.issue(
        "tcgen05.mma.ws.cta_group::1.kind::f16 [{d}], {a}, {b}, {idesc}, 0;",
        d=bench.take(m // 2),
        a=left.descriptor,
        b=right.descriptor,
        idesc=idesc(m, 64, "f16", "f16", shift=16),
    )
    report, _ = bench.run()
    assert report.status == ("fault" if faults else "ok"), report.summary()
    assert codes(report) == (["illegal-descriptor"] if faults else [])


@pytest.mark.parametrize("warp", range(4))
def test_a_shift_races_in_every_quarter(warp: int) -> None:
    """A warp of any quarter that loads what a shift at lane 0 moves, without waiting for it."""
    bench = Bench(5)
    column = bench.fill(np.arange(128 * 8).reshape(128, 8))
    bench.sync()
    bench.issue("tcgen05.shift.cta_group::1.down [{at}];", at=column)
    bench.body += (
        f"{{ .reg .pred %q; .reg .b32 %w; shr.u32 %w, %t, 5; setp.eq.u32 %q, %w, {warp};\n"
        "@%q tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%taddr]; tcgen05.wait::ld.sync.aligned; }\n"
    )
    report, _ = bench.run()
    assert report.status == "findings"
    (finding,) = errors(report)
    assert finding == "tensor-race"
