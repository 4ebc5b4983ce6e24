"""mma, mma.sp, wmma and wgmma on every target: each form that it has gives a result, and sums are its generation's."""

from __future__ import annotations

import random
import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from microtests.harness import matrices, sums
from ptxgen import Kernel, check
from ptxgen.emulator import Emulator
from ptxgen.emulator.arithmetic.sum_rules import generation_of
from ptxgen.emulator.load.program import Program
from ptxgen.instr import load_all
from ptxgen.instr.model.form import REGISTRY, Instruction
from ptxgen.instr.model.targets import TARGETS, parse_target, parse_version
from tests.emulator.semantics.test_mma_silicon import warp_mma
from tests.support.harness import module
from tests.support.silicon import rows

VERSION = "9.5"
#: Fraction bits of sums, and the products of one sum of f16 and bf16, tf32, and 8-bit floats; 0: all.
RULES = {
    "sm_75": (24, 8, 0, 0),
    "sm_80": (24, 8, 4, 0),
    "sm_86": (24, 8, 4, 0),
    "sm_89": (24, 8, 4, 16),
    "sm_90": (25, 0, 0, 0),
}


@cache
def variants(family: str) -> list[Instruction]:
    """Forms of a family: all of mma and wmma, and some of each declaration of wgmma, which has thousands."""
    load_all()
    every = [form for each in REGISTRY.values() for form in each if form.form.key.startswith(family)]
    rng = random.Random(1)
    return [made for form in every for made in form.sample(6 if family == "wgmma." else 1000, rng)]


def forms(target: str, *families: str) -> list[Instruction]:
    there = parse_target(target), parse_version(VERSION)
    return [made for family in families for made in variants(family) if not made.availability_problems(*there)]


def kernel(target: str, body: str) -> Kernel:
    names = sorted(set(re.findall(r"%x_(?:pred|b\d+|f\d+)_\d+", body)))
    registers = "".join(f".reg .{name.split('_')[1]} {name};\n" for name in names)
    return Kernel.from_ptx(module(f"{registers}{body}ret;", target=target, version=VERSION))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("target", TARGETS)
def test_every_form(target: str) -> None:
    """All that a target has run one after the other."""
    found = forms(target, "mma.", "wmma.mma")
    assert bool(found) == (parse_target(target).number >= 70)
    body = "".join(f"{made}\n" for made in found)
    # All selectors of scale factors are 0, which every form allows.
    zero = "".join(f"mov.b16 {name}, 0;\n" for name in sorted(set(re.findall(r"%x_b16_\d+", body))))
    report = Emulator(target, checks=False).launch(kernel(target, zero + body), 1, 32, [])
    assert report.status == "ok", report.summary()


def test_no_tensor_cores() -> None:
    """An earlier GPU cannot run the module: the sums are those of what it was compiled for."""
    text = "".join(f"{made}\n" for made in forms("sm_70", "mma.f16_m8n8k4"))
    report = Emulator("sm_60").launch(kernel("sm_70", text), 1, 32, [])
    assert "other-target" in [each.code for each in report.findings]
    assert generation_of(parse_target("sm_60")) is None


def test_scale_selectors() -> None:
    """One that no pair of threads has is a fault; warps may differ in theirs."""
    form = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0"
    body = f""".reg .b32 %a<4>, %b<2>, %x, %y, %z; .reg .f32 %d<4>; .reg .b16 %s; .reg .b64 %w;
    {"".join(f"mov.b32 %a{i}, 0x38383838; " for i in range(4))} mov.b32 %b0, 0x38383838; mov.b32 %b1, 0x38383838;
    mov.u32 %x, %tid.x; shr.u32 %x, %x, 5; cvt.u16.u32 %s, %x; mov.b32 %y, 0x8180807f; mov.b32 %z, 0x7f7f7f7f;
    {"".join(f"mov.f32 %d{i}, 0f00000000; " for i in range(4))}
    {form} {{%d0, %d1, %d2, %d3}}, {{%a0, %a1, %a2, %a3}}, {{%b0, %b1}}, {{%d0, %d1, %d2, %d3}},
        %y, {{%s, 0}}, %z, {{0, 0}};
    mul.wide.u32 %w, %x, 4; ld.param.u64 %wide, [out]; add.u64 %w, %w, %wide; st.global.f32 [%w], %d0; ret;"""
    text = module(".reg .b64 %wide;" + body, ".param .u64 out", target="sm_120a", version="8.8")
    emulator = Emulator("sm_120a", checks=False)
    found = emulator.array(np.zeros(4, np.float32))
    report = emulator.launch(Kernel.from_ptx(text), 1, 128, [found])
    assert report.status == "ok", report.summary()
    assert found.numpy().tolist() == [32, 64, 64, 128]
    report = emulator.launch(Kernel.from_ptx(text), 1, 160, [found])
    assert (report.status, [each.code for each in report.findings]) == ("fault", ["illegal-descriptor"])


def test_every_form_of_wgmma_loads() -> None:
    text = "".join(f"{made}\n" for made in forms("sm_90a", "wgmma."))
    Program.of(kernel("sm_90a", text), parse_target("sm_90a"))


def registers_of(kind: str, d_type: str, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> list[list[NDArray[Any]]]:
    """The registers of some products [count, ...]: A [m, k], B [n, k] and C."""
    made = [
        [list(matrices.a_registers(kind, each.astype(np.float32))) for each in a],
        [list(matrices.b_registers(kind, np.ascontiguousarray(each.T, np.float32))) for each in b],
        [list(matrices.d_registers(d_type, each.astype(np.float32))) for each in c],
    ]
    return [[np.stack(each) for each in zip(*some, strict=True)] for some in made]


def values_of(found: NDArray[np.uint32], d_type: str) -> NDArray[Any]:
    """D [count, 16, 8] as words."""
    rows_of, columns = matrices.d_places(16, 8)
    count = found.shape[1]
    words = found if d_type == "f32" else np.stack([found & 0xFFFF, found >> 16], 1).reshape(4, count, 32)
    made = np.zeros((count, 16, 8), np.uint32)
    made[:, rows_of, columns] = words.transpose(1, 0, 2)
    return made


@pytest.mark.parametrize(("target", "device"), [*((target, "own") for target in RULES), ("sm_80", "sm_90a")])
@pytest.mark.parametrize(
    "types",
    [("f16", "f32", 8), ("f16", "f16", 16), ("f16", "f32", 16), ("bf16", "f32", 16), ("tf32", "f32", 8),
     ("e4m3", "f32", 32), ("e5m2", "f16", 32), ("e5m2", "f32", 16)],
    ids=str,
)  # fmt: skip
def test_steps(types: tuple[str, str, int], target: str, device: str) -> None:
    """Rows of A are summed in steps; a later GPU that runs the module sums as it does."""
    kind, d_type, k = types
    instruction = f"mma.sync.aligned.m16n8k{k}.row.col.{d_type}.{kind}.{kind}.{d_type}"
    made = forms(target, "mma.")
    if not any(str(each).startswith(instruction) for each in made):
        return
    hardware = target if device == "own" else device
    if kind in ("e4m3", "e5m2") and hardware != "sm_89":
        return  # ptxas makes products of .f16 of them: microtests tensor_sums
    fraction, *steps = RULES["sm_90" if hardware == "sm_90a" else hardware]
    step = steps[{"tf32": 1, "e4m3": 2, "e5m2": 2}.get(kind, 0)] or k
    rule = sums.Rule(13, 13) if kind in ("e4m3", "e5m2") else sums.Rule(fraction)
    rng = np.random.default_rng([k, fraction])
    a, b = (np.exp2(rng.integers(-5, 5, (1, lines, k))) for lines in (16, 8))
    a, b = (np.sign(rng.standard_normal(each.shape)) * each * rng.choice([1, 1.25, 1.5], each.shape) for each in (a, b))
    c = rng.standard_normal((1, 16, 8)).astype(np.float16).astype(np.float64)
    wanted = c[0]
    for start in range(0, k, step):
        inside = slice(start, start + step)
        wanted = sums.total(a[0][:, inside], b[0][:, inside], wanted, (kind, kind, d_type), rule).astype(np.float64)
    words = registers_of(kind, d_type, a, b, c)
    found = values_of(warp_mma(instruction, words, target, device=Emulator(hardware)), d_type)[0]
    expected = wanted.astype(np.float32).view(np.uint32) if d_type == "f32" else wanted.astype(np.float16).view("u2")
    assert (found == expected).all()


@pytest.mark.parametrize(
    ("device", "target", "kind", "d_type"),
    [
        *(("V100", "sm_70", "f16", d_type) for d_type in ("f16", "f32")),
        *(("A100", "sm_80", kind, "f32") for kind in ("f16", "bf16", "tf32")),
        ("A100", "sm_80", "f16", "f16"),
        *(("Ada", "sm_89", kind, "f32") for kind in ("f16", "bf16", "tf32", "e4m3", "e5m2")),
        *(("Ada", "sm_89", kind, "f16") for kind in ("f16", "e4m3", "e5m2")),
    ],
)
def test_recorded_sums(device: str, target: str, kind: str, d_type: str) -> None:
    """Dot products of silicon, one on the diagonal of each product of eight."""
    recorded = [row for row in rows("mma_sync_sums_older.jsonl.gz") if row["on"] == device and row["type"] == kind]
    recorded = [row for row in recorded if d_type in row]
    assert len(recorded) == 160
    a, b, c, d = (
        np.stack(
            [np.frombuffer(bytes.fromhex(row[side]), ">u4").astype(np.uint32).view(np.float32) for row in recorded]
        )
        for side in ("a", "b", "c", d_type)
    )
    # V100's mma multiplies quads; its wmma takes 16 columns, of which the last twelve are zero here.
    k = {"tf32": 8, "e4m3": 32, "e5m2": 32}.get(kind, 16)
    left, right = np.zeros((20, 16, k)), np.zeros((20, 8, k))
    left[:, :8, : a.shape[1]], right[:, :, : b.shape[1]] = a.reshape(20, 8, -1), b.reshape(20, 8, -1)
    addends = np.zeros((20, 16, 8))
    addends[:, np.arange(8), np.arange(8)] = c.reshape(20, 8)
    if device == "V100":
        found = by_wmma(left, right, addends, d_type, target)
    else:
        instruction = f"mma.sync.aligned.m16n8k{k}.row.col.{d_type}.{kind}.{kind}.{d_type}"
        found = values_of(warp_mma(instruction, registers_of(kind, d_type, left, right, addends), target), d_type)
    expected = d[:, 0] if d_type == "f32" else d[:, 0].astype(np.float16)
    diagonal = found[:, np.arange(8), np.arange(8)].reshape(-1)
    assert (diagonal == expected.view(np.uint32 if d_type == "f32" else np.uint16)).all()


def by_wmma(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any], d_type: str, target: str) -> NDArray[Any]:
    """D [count, 16, 8] as words, of products by wmma m32n8k16, a CTA each; the last 16 rows of A are zero."""
    count, size = len(a), 4 if d_type == "f32" else 2
    below = np.zeros((count, 16, 16))
    arrays = [np.concatenate([a, below], 1).astype(np.float16), b.astype(np.float16)]
    addends = np.concatenate([c, below[:, :, :8]], 1).astype(np.float32 if d_type == "f32" else np.float16)
    names = [
        [f"%{name}{i}" for i in range(length)] for name, length in (("a", 16), ("b", 8), ("c", 8 if size == 4 else 4))
    ]
    vectors = ["{" + ", ".join(each) + "}" for each in names]
    body = f""".reg .b32 {", ".join(name for each in names for name in each)}, %n; .reg .b64 %in<3>, %to, %w;
    mov.u32 %n, %ctaid.x; ld.param.u64 %in0, [a]; ld.param.u64 %in1, [b]; ld.param.u64 %in2, [c]; ld.param.u64 %to, [d];
    mul.wide.u32 %w, %n, 1024; add.u64 %in0, %in0, %w;
    mul.wide.u32 %w, %n, 256; add.u64 %in1, %in1, %w;
    mul.wide.u32 %w, %n, {256 * size}; add.u64 %in2, %in2, %w; add.u64 %to, %to, %w;
    wmma.load.a.sync.aligned.row.m32n8k16.global.f16 {vectors[0].replace("%a15", "%a7").split(", %a8")[0]}}}, [%in0];
    wmma.load.b.sync.aligned.col.m32n8k16.global.f16 {vectors[1]}, [%in1];
    wmma.load.c.sync.aligned.row.m32n8k16.global.{d_type} {vectors[2]}, [%in2];
    wmma.mma.sync.aligned.row.col.m32n8k16.{d_type}.{d_type} {vectors[2]}, {vectors[0].split(", %a8")[0]}}},
        {vectors[1]}, {vectors[2]};
    wmma.store.d.sync.aligned.row.m32n8k16.global.{d_type} [%to], {vectors[2]};
    ret;"""
    text = module(body, ", ".join(f".param .u64 {name}" for name in "abcd"), target=target, version="7.8")
    assert not check(text)
    emulator = Emulator(target)
    places = [emulator.array(each) for each in (*arrays, addends, np.zeros_like(addends))]
    report = emulator.launch(Kernel.from_ptx(text), count, 32, places)
    assert report.status == "ok", report.summary()
    return places[-1].numpy().view(np.uint32 if size == 4 else np.uint16)[:, :16]
