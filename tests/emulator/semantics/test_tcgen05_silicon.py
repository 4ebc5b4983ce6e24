"""tcgen05 against what a B200 answered to others (tests/data/silicon): moves, and descriptors that it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.emulator.semantics.test_tcgen05_kinds import idesc, scale_words
from tests.emulator.semantics.test_tcgen05_movement import source_descriptor
from tests.support.block_scales import scaled_idesc
from tests.support.harness import codes
from tests.support.silicon import rows
from tests.support.tensor_layouts import Bench, codes_of, errors


def recorded(name: str) -> dict[str, Any]:
    return next(row for row in rows("tcgen05_moves_b200.jsonl") if row["name"] == name)


@pytest.mark.parametrize("row", rows("tcgen05_mma_words_b200.jsonl"), ids=lambda row: row["name"])
def test_words(row: dict[str, Any]) -> None:
    """A recorded dot product in the last row and column of a product, which are zeros elsewhere."""
    kind, types, count = row["kind"], (row["a_type"], row["b_type"]), row.get("scale_vec", 0)
    bench, n, packed = Bench(9), 8, kind in ("mxf4", "mxf4nvf4")
    a, b = np.zeros((128, len(row["a"])), np.uint32), np.zeros((n, len(row["b"])), np.uint32)
    shift = 16 if "bf16" in types else 0
    a[-1], b[-1] = np.array(row["a"], np.uint32) >> shift, np.array(row["b"], np.uint32) >> shift
    given: dict[str, Any] = {"d": bench.fill(np.full((128, n), row["c"], np.uint32))}
    text = f"tcgen05.mma.cta_group::1.kind::{kind} [{{d}}], {{a}}, {{b}}, {{idesc}}, 1;"
    if count:
        size = f".scale_vec::{count}X" if kind == "mxf4nvf4" else ""
        text = f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale{size} [{{d}}], {{a}}, {{b}}, {{idesc}}, "
        text += "[{sfa}], [{sfb}], 1;"
        for name, rows_of, columns in (("sfa", 128, 4), ("sfb", n, 1)):
            factors = np.tile(np.array(row[f"scale_{name[2]}"][:count], np.uint32), (rows_of, 1))
            given[name] = bench.fill(scale_words(factors, 0, columns))
        descriptor = scaled_idesc(n, *types, row["scale"], packed=packed)
    else:
        descriptor = idesc(128, n, *types, row["d_type"], saturate=row.get("saturate", False))
    bench.sync()
    for name, codes_of_it, type in (("a", a, types[0]), ("b", b, types[1])):
        given[name] = bench.matrix(codes_of_it, type, "k", "32B", packed).descriptor
    bench.issue(text, **given, idesc=descriptor)
    report, words = bench.run()
    assert not errors(report), report.summary()
    assert words[-1, given["d"] + n - 1] == row["d"]


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
    expected = np.array(row["first_words"])[:, None] + np.arange(row["words"])
    assert (words == (expected | 0xC0000000)).all()


@pytest.mark.parametrize("place", range(5))
def test_shifts_in_a_row(place: int) -> None:
    """1, 2, 4, 8 and 16 shifts, one after the other without a wait."""
    row = recorded("shifts-in-a-row")
    bench = Bench(6)
    column = bench.fill(np.tile(row["before"], 4)[:, None] + np.zeros(8, np.uint32))
    bench.sync()
    for _ in range(row["shifts"][place]):
        bench.issue("tcgen05.shift.cta_group::1.down [{at}];", at=column)
    report, words = bench.run()
    assert report.status == "ok", report.summary()
    assert words[:32, column].tolist() == row["after"][place]


@pytest.mark.parametrize("shape", ["16x64b", "16x128b", "16x256b", "16x32bx2"])
def test_cells(shape: str) -> None:
    """Tags that one shape stores, read by 32x32b, and the other way round."""
    row = recorded(f"cells-{shape}")
    cells, half = np.array(row["cells"]), ", 8" if shape == "16x32bx2" else ""
    registers = cells.shape[1]
    if half:  # the upper threads' cells begin 8 columns further
        cells[16:, :, 1] += 8
    names = ", ".join(f"%r{i}" for i in range(registers))
    form = f"sync.aligned.{shape}.x{row['num']}.b32"
    bench = Bench(7)
    stored, loaded = bench.fill(np.zeros((128, 16), np.uint32)), bench.fill(np.arange(2048).reshape(128, 16))
    copied = bench.fill(np.zeros((128, 8), np.uint32))
    some = f"add.u32 %x, %taddr, {loaded}; tcgen05.ld.{form} {{{names}}}, [%x]{half}; tcgen05.wait::ld.sync.aligned;\n"
    some += f"add.u32 %x, %taddr, {copied};\n"
    some += f"tcgen05.st.sync.aligned.32x32b.x{registers}.b32 [%x], {{{names}}};\n"
    some += "".join(f"mad.lo.u32 %r{i}, %t, {registers}, {i + 1};\n" for i in range(registers))
    some += f"add.u32 %x, %taddr, {stored}; tcgen05.st.{form} [%x]{half}, {{{names}}};\n"
    bench.body += some + "tcgen05.wait::st.sync.aligned;\n"
    report, words = bench.run()
    assert report.status == "ok", report.summary()
    for warp in range(4):
        lanes = words[32 * warp : 32 * warp + 32]
        assert (lanes[:, copied : copied + registers] == (32 * warp + cells[..., 0]) * 16 + cells[..., 1]).all()
        expected = np.zeros((32, 16), np.uint32)
        tags = (32 * warp + np.arange(32))[:, None] * registers + np.arange(registers) + 1
        expected[cells[..., 0], cells[..., 1]] = tags
        assert (lanes[:, stored : stored + 16] == expected).all()


@pytest.mark.parametrize("place", range(8))
def test_disabled_lanes(place: int) -> None:
    """A set bit of the mask keeps what D held in its lane."""
    row = recorded("disable-output-lane")
    n = row["n"]
    bench = Bench(8)
    ones = np.full((128, row["k"]), 0x3F80, np.uint32)
    left, right = bench.matrix(ones, "bf16", "k", "32B"), bench.matrix(ones[:n], "bf16", "k", "32B")
    column = bench.fill(np.full((128, n), row["before"], np.uint32))
    bench.sync()
    masks = ", ".join(f"%m{i}" for i in range(4))
    bench.body += ".reg .b32 %m<4>;\n" + "".join(
        f"mov.b32 %m{i}, {mask};\n" for i, mask in enumerate(row["masks"][place])
    )
    bench.issue(
        "tcgen05.mma.cta_group::1.kind::f16 [{d}], {a}, {b}, {idesc}, {{" + masks + "}}, 0;",
        d=column,
        a=left.descriptor,
        b=right.descriptor,
        idesc=idesc(row["m"], n, "bf16", "bf16"),
    )
    report, words = bench.run()
    assert report.status == "ok", report.summary()
    expected = np.full((128, n), row["before"], np.uint32)
    expected[row["lanes"][place]] = row["written"]
    assert (words[:, column : column + n] == expected).all()


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
