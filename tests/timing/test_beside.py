"""Arithmetic beside wgmma, rows outside of a tensor, and launches in which no data are computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bench.gpu.microbench import outside, ptx
from ptxgen.attention import find as find_attention
from ptxgen.device import Kernel
from ptxgen.emulator.load.program import Program
from ptxgen.emulator.load.unused import Unused
from ptxgen.gemm import find
from ptxgen.instr.model.targets import parse_target
from ptxgen.timing import MACHINES
from ptxgen.timing.engines import Share
from ptxgen.timing.multiprocessor import MULTIPROCESSORS
from ptxgen.timing.simulate import TimedEmulator

_ALONE = Share(l2=108, loads=90, stores=32, memory=40, outside_row=1.17)
_WORK = {
    "fma.f32": ["fma.rn.f32 %f{i}, %f{i}, %f150, %f151;"],
    "add.f32": ["add.rn.f32 %f{i}, %f{i}, %f151;"],
    "max.f32": ["max.f32 %f{i}, %f{i}, %f151;"],
    "ex2.approx": ["ex2.approx.ftz.f32 %f{i}, %f{i};"],
}
_WORK["softmax"] = [_WORK[name][0] for name in ("max.f32", "fma.f32", "ex2.approx", "add.f32")]
_WORK["softmax"] += ["cvt.rn.bf16x2.f32 %r{r}, %f{i}, %f151;", "mov.b32 %f{i}, %r{r};", _WORK["fma.f32"][0]]


def _kernel(name: str, columns: int, *, beside: bool) -> str:
    """Warps 0 to 3 run 64 instructions n times, between the clocks; warps 4 to 7 wgmma meanwhile, if `beside`."""
    before = ptx.ZERO.format(size=8192 + 128 * columns, step=16 * 256)
    for register, address in (("%d10", "%r6"), ("%d11", "%r12")):
        before += f"    add.u32 %r12, %r6, 8192;\n    shr.u32 %r13, {address}, 4;\n    cvt.u64.u32 {register}, %r13;\n"
        before += f"    or.b64 {register}, {register}, {1 << 62 | 64 << 32 | 1 << 16};\n"
    before += "".join(f"    mov.f32 %f{i}, 0f00000000;\n" for i in range(152))
    before += "    mov.f32 %f150, 0f3F7FFFFF;\n    mov.f32 %f151, 0f3A000000;\n"
    accumulators = ", ".join(f"%f{i}" for i in range(columns // 2))
    mma = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.bf16.bf16 {{{accumulators}}}, %d10, %d11, 1, 1, 1, 0, 0;"
    group = "    wgmma.fence.sync.aligned;\n" + f"    {mma}\n" * 8
    group += "    wgmma.commit_group.sync.aligned;\n    wgmma.wait_group.sync.aligned 1;\n"
    # Enough MMAs for the longest of the works: 64 instructions of 11 cycles, over 8 of at least 20.
    other = f"    mul.lo.u32 %r0, %r0, 6;\n{ptx.loop(group, 'mma')}" if beside else ""
    before += f"    setp.lt.u32 %q, %r4, 128;\n    @%q bra work;\n{other}    wgmma.wait_group.sync.aligned 0;\n"
    before += "    bra leave;\nwork:\n"
    lines = [each.format(i=128 + i % 16, r=40 + i % 16) for i in range(64) for each in _WORK[name]]
    real = [number for number, line in enumerate(lines) if not line.startswith("mov")][:64]
    text = ptx.loop("".join(f"    {line}\n" for line in lines[: real[-1] + 1]))
    after = "".join(f"    add.f32 %f0, %f0, %f{i};\n" for i in range(128, 144))
    after += "    setp.eq.f32 %p, %f0, 0f3F800000;\n    @%p st.global.f32 [%d1], %f0;\n"
    return ptx.kernel(before, text, after, threads=256)


def _cycles(name: str, columns: int, *, beside: bool) -> float:
    """Cycles of one instruction of a warp."""
    emulator = TimedEmulator(MACHINES["h200"], _ALONE)
    data, out = emulator.array(np.zeros(1024, np.uint64)), emulator.empty((264,), np.uint64)
    kernel, times = Kernel.from_ptx(_kernel(name, columns, beside=beside)), list[float]()
    for n in (2, 4):
        arguments = [out, data, n, 0, 0, 0, bytes(128)]
        report = emulator.launch(kernel, 1, 256, arguments, shared_bytes=64 * 1024)
        assert report.ok, report.summary()
        times.append(float(out.numpy()[0]))
    return (times[1] - times[0]) / 2 / 64


@pytest.mark.parametrize(
    ("name", "alone", "beside"),
    # NVIDIA H200, driver 580.159.04, 2026-11-29: m64n128k16 back to back, loops of 64 instructions.
    [
        ("fma.f32", 1.27, 2.48),
        ("add.f32", 1.19, 1.85),
        ("max.f32", 2.23, 4.19),
        ("ex2.approx", 8.09, 10.67),
        ("softmax", 2.19, 3.8),
    ],
)
def test_arithmetic_slows_down_beside_wgmma_as_measured(name: str, alone: float, beside: float) -> None:
    # The branch of the loop takes some cycles more than measured; softmax is a mix of the others.
    assert _cycles(name, 128, beside=False) == pytest.approx(alone, rel=0.1)
    assert _cycles(name, 128, beside=True) == pytest.approx(beside, rel=0.12)


def test_fewer_accumulators_slow_less() -> None:
    # Measured with n64, n32 and n16: 3.74, 2.88 and 2.53; the part is the mean of four instructions.
    slow = [_cycles("max.f32", columns, beside=True) for columns in (128, 64, 32, 16)]
    assert slow == sorted(slow, reverse=True)
    assert slow[3] == pytest.approx(2.53, rel=0.12)
    assert _cycles("max.f32", 128, beside=False) < slow[3]


def test_blackwell_has_its_accumulators_in_tensor_memory() -> None:
    assert not MULTIPROCESSORS["b200"].beside_mma
    assert MULTIPROCESSORS["h100"].beside_mma["FFMA"].evidence.kind == "inferred"


@pytest.mark.parametrize("inside", [8, 96])
def test_rows_outside_of_the_tensor_take_as_long_as_those_inside(inside: int) -> None:
    # NVIDIA H200, 2026-11-29: boxes of 128 rows with 8 to 128 inside take 173.2 to 174.1 cycles each, three in flight.
    took = [outside.cycles(TimedEmulator(MACHINES["h200"], _ALONE), 1, 128, 3, rows) for rows in (inside, 128)]
    assert took[0] == pytest.approx(took[1], rel=0.03)
    assert took[1] == pytest.approx(173.4, rel=0.15)


def test_boxes_entirely_outside_of_the_tensor_are_served_for_all_sms_together() -> None:
    # NVIDIA H200, 2026-11-29: 128 rows take 169 cycles on one SM and 1134 on 132 of them.
    share = replace(_ALONE, outside=MULTIPROCESSORS["h200"].outside_rows.value / 132)
    together, alone = (outside.cycles(TimedEmulator(MACHINES["h200"], each), 1, 128, 3, 0) for each in (share, _ALONE))
    assert together == pytest.approx(1133.9, rel=0.02)
    assert alone == pytest.approx(169.3, rel=0.15)
    partly = outside.cycles(TimedEmulator(MACHINES["h200"], share), 1, 128, 3, 8)
    assert partly == pytest.approx(173.2, rel=0.15)


def _timed(plan: Any, problem: Any, arrays: list[Any], *, computes: bool) -> TimedEmulator:
    emulator = TimedEmulator(MACHINES["h200"], _ALONE, sample=range(2), computes=computes)
    given = [emulator.array(each) if isinstance(each, np.ndarray) else each for each in arrays]
    kernel = Kernel.from_ptx(plan.text, regions=plan.shared.named)
    arguments = problem.arguments(given[0]) if isinstance(given[0], dict) else problem.arguments(*given)
    report = emulator.launch(kernel, problem.grid, problem.block, arguments, shared_bytes=plan.shared.bytes)
    assert report.status == "ok", report.summary()
    return emulator


@pytest.mark.parametrize("options", [{"stages": 3}, {"stages": 2, "split_k": 2}, {"c_major": "m", "n_tile": 48}])
def test_a_gemm_takes_the_same_cycles_whether_data_are_computed(options: dict[str, Any]) -> None:
    plan = find("hopper/overlapped").plan(m_tile=64, cluster_m=1, scheduler="grid", panel=0, **{"n_tile": 64} | options)
    problem = plan.problem(192, 136, 200)
    random = np.random.default_rng(1)
    shapes = [problem.extents(name)[0] * problem.leading(name) for name in ("a", "b", "c")]
    arrays = [random.integers(0, 2**14, each, np.uint16) for each in shapes]
    whole, parts = (_timed(plan, problem, list(arrays), computes=each).timed for each in (True, False))
    assert whole is not None
    assert parts is not None
    assert parts.ctas == whole.ctas
    assert not parts.computes
    assert parts.line_cycles == pytest.approx(whole.line_cycles)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_takes_about_the_same_cycles_whether_data_are_computed(causal: bool) -> None:
    """Not the same, as it rescales its output only where scores grow, and without data they do not."""
    plan = find_attention("hopper/attention").plan(head_size=64, causal=causal)
    problem = plan.problem(300, 300, heads=1, batches=1)
    random, found = np.random.default_rng(2), list[TimedEmulator]()
    for computes in (True, False):
        emulator = TimedEmulator(MACHINES["h200"], _ALONE, sample=range(1), computes=computes)
        arrays = {
            name: emulator.array(random.integers(0, 2**14, problem.shape(name), np.uint16).view(np.uint16))
            for name in "qkv"
        }
        arrays |= {name: emulator.empty(shape, dtype) for name, (shape, dtype) in problem.outputs.items()}
        kernel = Kernel.from_ptx(plan.text, regions=plan.shared.named)
        report = emulator.launch(
            kernel, problem.grid, problem.block, problem.arguments(arrays), shared_bytes=plan.shared.bytes
        )
        assert report.status == "ok", report.summary()
        found.append(emulator)
    whole, parts = (each.timed for each in found)
    assert whole is not None
    assert parts is not None
    (_, _, taken), (_, _, expected) = parts.ctas[0], whole.ctas[0]
    assert taken == pytest.approx(expected, rel=0.03)
    dropped = Unused.of(Program.of(kernel, parse_target("sm_90a"), divided=True, longest=32)).operations
    # The maxima of the scores decide whether the output is rescaled; exponentials and their sums decide nothing.
    opcodes = {each.statement.opcode for each in dropped}
    assert {"cvt.rn.bf16x2.f32", "mul.f32", "ex2.approx.ftz.f32", "fma.rn.f32", "rcp.approx.ftz.f32"} <= opcodes
    assert "max.f32" not in opcodes


_CONTROL = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry control(.param .u64 data)
{
    .reg .b32 %r<16>;
    .reg .b64 %d<4>;
    .reg .pred %p;
    .shared .align 4 .b32 word;
    ld.param.u64 %d0, [data];
    mov.u32 %r0, 3;
    add.u32 %r1, %r0, 4;
    mul.lo.u32 %r2, %r1, %r1;
    STORE
    LOAD
    BRANCH
    shl.b32 %r5, %r0, 2;
    st.global.b32 [%d0], %r5;
after:
    ret;
}
"""


@pytest.mark.parametrize(
    ("store", "load", "branch", "unused"),
    [
        # The product reaches no branch, or one by a register, by shared memory, by a shuffle, or by an address.
        ("", "", "", {"add.u32", "mul.lo.u32", "mov.u32", "shl.b32"}),
        ("", "setp.gt.u32 %p, %r2, 5;", "@%p bra after;", {"shl.b32"}),
        (
            "st.shared.b32 [word], %r2;",
            "ld.shared.b32 %r3, [word];",
            "",
            {"add.u32", "mul.lo.u32", "mov.u32", "shl.b32"},
        ),
        (
            "st.shared.b32 [word], %r2;",
            "ld.shared.b32 %r3, [word]; setp.gt.u32 %p, %r3, 5;",
            "@%p bra after;",
            {"shl.b32"},
        ),
        (
            "shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;",
            "setp.gt.u32 %p, %r3, 5;",
            "@%p bra after;",
            {"shl.b32"},
        ),
        ("", "cvt.u64.u32 %d1, %r2; add.u64 %d0, %d0, %d1;", "", {"shl.b32"}),
        # What is stored in global memory and loaded again for a branch.
        ("st.global.b32 [%d0+8], %r2;", "ld.global.b32 %r3, [%d0+8]; setp.gt.u32 %p, %r3, 5;", "@%p bra after;", set()),
        ("st.global.b32 [%d0+8], %r2;", "ld.b32 %r3, [%d0+8]; setp.gt.u32 %p, %r3, 5;", "@%p bra after;", set()),
        # Carries are no registers here.
        ("", "add.cc.u32 %r3, %r2, 1; addc.u32 %r4, %r2, 0; setp.gt.u32 %p, %r4, 5;", "@%p bra after;", {"shl.b32"}),
        ("atom.global.add.u32 %r3, [%d0+8], %r2;", "", "", {"shl.b32"}),
    ],
)
def test_what_decides_control_flow_or_addresses_is_executed(
    store: str, load: str, branch: str, unused: set[str]
) -> None:
    text = _CONTROL.replace("STORE", store).replace("LOAD", load).replace("BRANCH", branch)
    program = Program.of(Kernel.from_ptx(text), parse_target("sm_90a"))
    assert {each.statement.opcode for each in Unused.of(program).operations} == unused


def test_a_branch_on_the_result_of_an_mma_needs_no_data() -> None:
    # The maximum is executed, as the branch needs it, but on what the accumulators were before.
    branch = (
        "    max.f32 %f9, %f0, %f1;\n    setp.gt.f32 %p, %f9, %f8;\n    @%p bra leave;\n    add.f32 %f7, %f9, %f0;\n"
    )
    text = ptx.wgmma(8, "bf16", "ss", 1).replace(
        "    add.f32 %f0, %f0, %f1;\n", f"{branch}    add.f32 %f0, %f0, %f1;\n"
    )
    assert branch in text
    found = Unused.of(Program.of(Kernel.from_ptx(text), parse_target("sm_90a")))
    assert "max.f32" not in {each.statement.opcode for each in found.operations}
    assert "add.f32" in {each.statement.opcode for each in found.operations}


def test_divided_blocks_join_to_basic_blocks() -> None:
    kernel = Kernel.from_ptx(find("hopper/overlapped").plan(n_tile=64, stages=2).text)
    whole = Program.of(kernel, parse_target("sm_90a"))
    divided = Program.of(kernel, parse_target("sm_90a"), divided=True, longest=32)
    joined: list[list[int]] = []
    for block in divided.blocks:
        assert len(block.operations) <= 32
        lines = [each.statement.line for each in block.operations]
        if block.continues:
            joined[-1] += lines
        else:
            joined.append(lines)
    assert joined == [[each.statement.line for each in block.operations] for block in whole.blocks]
