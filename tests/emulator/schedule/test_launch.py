"""Launches: special registers, virtual time, and the errors of a launch."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.device import KernelArgumentError
from ptxgen.emulator import Emulator, semantics
from ptxgen.emulator.checks import cas_loops
from ptxgen.emulator.checks.global_memory.accesses import GlobalAccesses
from ptxgen.emulator.checks.order.happens_before import HappensBefore
from ptxgen.emulator.checks.tensor.accesses import TensorAccesses
from ptxgen.emulator.engines.timeline import Timeline
from ptxgen.emulator.native import runs
from ptxgen.emulator.observer import MachineView, Observer
from ptxgen.emulator.schedule import code
from tests.support.harness import codes, launch, module, poisoned

GRID, BLOCK = (3, 2, 2), (5, 3, 6)
THREADS = 90


def place(i: int) -> dict[str, int]:
    """What the special registers of thread i of the grid hold, by their definitions (PTX ISA 10)."""
    cta, t = divmod(i, THREADS)
    lane = t % 32
    values = {
        "tid.x": t % 5, "tid.y": t // 5 % 3, "tid.z": t // 15, "ctaid.x": cta % 3, "ctaid.y": cta // 3 % 2,
        "ctaid.z": cta // 6, "laneid": lane, "lanemask_eq": 1 << lane, "lanemask_lt": (1 << lane) - 1,
        "lanemask_le": (2 << lane) - 1, "lanemask_gt": 2**32 - (2 << lane), "lanemask_ge": 2**32 - (1 << lane),
        "warpid": t // 32, "cluster_ctarank": 0, "cluster_nctarank": 1, "cluster_ctaid.x": 0, "cluster_nctaid.y": 1,
        "dynamic_smem_size": 256, "total_smem_size": 384,
    }  # fmt: skip
    for axis, name in enumerate("xyz"):
        values[f"ntid.{name}"], values[f"nctaid.{name}"] = BLOCK[axis], GRID[axis]
        values[f"clusterid.{name}"], values[f"nclusterid.{name}"] = values[f"ctaid.{name}"], GRID[axis]
    return values


@pytest.mark.parametrize("name", sorted(place(0)))
def test_special_registers(name: str) -> None:
    body = f"""
        .shared .b8 fixed[100];
        .reg .u32 %a, %b, %c, %d, %i, %v; .reg .b64 %at;
        mov.u32 %a, %tid.z;
        mov.u32 %b, %tid.y;
        mad.lo.u32 %i, %a, 3, %b;
        mov.u32 %b, %tid.x;
        mad.lo.u32 %i, %i, 5, %b;
        mov.u32 %a, %ctaid.z;
        mov.u32 %b, %ctaid.y;
        mad.lo.u32 %d, %a, 2, %b;
        mov.u32 %b, %ctaid.x;
        mad.lo.u32 %d, %d, 3, %b; mad.lo.u32 %i, %d, {THREADS}, %i; mad.wide.u32 %at, %i, 4, %out0;
        mov.u32 %v, %{name};
        st.global.u32 [%at], %v;
        ret;
        """
    count = THREADS * 12
    report, (found,) = launch(
        body,
        [poisoned(count)],
        grid=GRID,
        block=BLOCK,
        multiprocessors=5,
        shared_bytes=256,
        items=".extern .shared .align 16 .b8 dynamic[];",
    )
    assert report.status == "ok", report.summary()
    assert found.tolist() == [place(i)[name] for i in range(count)]


def test_short_reads_of_special_registers() -> None:
    body = ".reg .u16 %h; mov.u16 %h, %tid.x; .reg .b64 %at; .reg .u32 %t; mov.u32 %t, %tid.x; mad.wide.u32 %at, %t, 2, %out0; st.global.u16 [%at], %h; ret;"  # noqa: E501
    report, (found,) = launch(body, [poisoned(70, np.uint16)], block=70)
    assert report.ok
    assert found.tolist() == list(range(70))


def test_time_goes_on() -> None:
    body = """.reg .u64 %a, %b;
mov.u64 %a, %clock64;
bar.sync 0;
mov.u64 %b, %clock64;
sub.u64 %b, %b, %a;
              st.global.u64 [%out0], %b;
              ret;
              """
    report, (found,) = launch(body, [poisoned(1, np.uint64)], block=64)
    assert report.ok
    assert 0 < int(found[0]) < 1000


# Virtual time.


def test_eager_work_is_done_at_once() -> None:
    done: list[int] = []
    timeline = Timeline("eager", 0)
    timeline.submit(lambda: done.append(1))
    assert done == [1]
    assert not timeline.jump()


def test_late_work_is_done_when_nothing_else_goes_on() -> None:
    done: list[int] = []
    timeline = Timeline("late", 0)
    for number in range(3):
        timeline.submit(lambda number=number: done.append(number))
    timeline.advance(10**6)
    assert done == []
    assert len(timeline) == 3
    assert timeline.jump()
    assert done == [0]
    assert timeline.jump()
    assert timeline.jump()
    assert done == [0, 1, 2]
    assert not timeline.jump()


def random_run(seed: int, pipes: bool) -> tuple[list[int], list[int]]:
    done: list[int] = []
    times: list[int] = []
    timeline = Timeline("random", seed)
    for number in range(60):

        def action(number: int = number) -> None:
            done.append(number)
            times.append(timeline.now)

        timeline.submit(action, pipe=number % 3 if pipes else None)
        timeline.advance(number % 5)
    while timeline.jump():
        pass
    return done, times


def test_random_work_is_reproducible_and_keeps_its_pipes() -> None:
    assert random_run(7, True) == random_run(7, True)
    assert random_run(7, True) != random_run(8, True)
    for seed in range(20):
        done, times = random_run(seed, True)
        assert sorted(done) == list(range(60))
        assert times == sorted(times)
        for pipe in range(3):
            mine = [number for number in done if number % 3 == pipe]
            assert mine == sorted(mine)
    done, _ = random_run(1, False)
    assert done != sorted(done)


# Launches that no device takes, and what the emulator does not have.


@pytest.mark.parametrize(("option", "value"), [("schedule", "soon"), ("target", "sm_1")])
def test_bad_options(option: str, value: str) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(ValueError, match=re.escape(value)):
        Emulator(**options)


def test_progress() -> None:
    seen: list[tuple[int, int]] = []
    emulator = Emulator(progress=lambda done, ctas: seen.append((done, ctas)), multiprocessors=2)
    assert emulator.launch(Kernel.from_ptx(module("bar.sync 0; ret;")), 5, 64, []).ok
    assert seen == [(number, 5) for number in range(1, 6)]


def test_instructions_are_counted_by_warp() -> None:
    report, _ = launch(".reg .u32 %x; mov.u32 %x, 1; add.u32 %x, %x, 1; ret;", block=80, grid=4)
    assert report.instructions == 3 * 3 * 4


def test_what_is_not_reached_does_not_matter() -> None:
    body = ".reg .pred %p; setp.eq.u32 %p, 1, 2; @%p vadd.u32.u32.u32.sat %x, %x, %x; {} ret;"
    assert launch(".reg .u32 %x; mov.u32 %x, 1;" + body.format(""))[0].ok
    report, _ = launch(".reg .u32 %x; mov.u32 %x, 1;" + body.format("vadd.u32.u32.u32.sat %x, %x, %x;"))
    assert (report.status, codes(report)) == ("incomplete", ["not-modelled"])


@pytest.mark.parametrize(
    ("instruction", "why"),
    [
        ("txq.force_unnormalized_coords.b32 %x, [%d];", "no .texref and .samplerref variables"),
        ("sured.b.add.1d.u32.trap [%d, {%x}], %x;", "no compiled kernel to hold it against"),
        ("tex.2dms.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%d, {%x, %x, %x, %x}];", "the geometry .2dms"),
        ("vmad.u32.u32.u32.shr7 %x, %x, %x, %x;", "differs from the manual"),
    ],
)
def test_the_reason_why_an_instruction_is_not_modelled(instruction: str, why: str) -> None:
    head = ".reg .u32 %x; .reg .f32 %f<4>; .reg .b64 %d; mov.u32 %x, 0; mov.u64 %d, 0;"
    report, _ = launch(head + instruction + " ret;")
    assert (report.status, codes(report)) == ("incomplete", ["not-modelled"]), report.summary()
    assert why in report.findings[0].message


WRONG_REGISTERS = [
    "add.u64 %x, %x, %x;", "mov.u32 %p, 5;", "setp.eq.u32 %x, %x, 1;", "@%x mov.u32 %x, 1;", "add.u32 %q, %x, %x;",
    "ld.global.v4.u32 {%x, %x}, [%out0];", "st.global.u32 [%p], %x;", "mov.u32 %x, %undeclared;",
]  # fmt: skip


@pytest.mark.parametrize("instruction", WRONG_REGISTERS)
def test_registers_that_do_not_fit(instruction: str) -> None:
    """Not legal PTX: ptxas would refuse it, so it does not run."""
    body = f".reg .u32 %x; .reg .u16 %h; .reg .pred %p, %r; .reg .b8 %q; mov.u32 %x, 1; {instruction} ret;"
    report, (out,) = launch(body, [poisoned(4)])
    assert (report.status, set(codes(report))) == ("fault", {"illegal-ptx"}), report.summary()
    assert all(instruction in finding.instruction for finding in report.findings)
    assert (out == poisoned(4)).all()


@pytest.mark.parametrize(
    ("directive", "block", "words"),
    [
        (".reqntid 64", 64, None),
        (".reqntid 64", 32, "the kernel takes blocks of exactly (64, 1, 1) threads, not (32, 1, 1)"),
        (".reqntid 8, 8, 1", (8, 8), None),
        (".reqntid 8, 8, 1", 64, "the kernel takes blocks of exactly (8, 8, 1) threads, not (64, 1, 1)"),
        (".maxntid 64", 64, None),
        (".maxntid 64", 96, "the kernel takes blocks of at most (64, 1, 1) threads, not (96, 1, 1)"),
        (".explicitcluster", 32, "the kernel must be launched with a cluster; give the launch its extents"),
    ],
)
def test_blocks_that_a_kernel_does_not_take(directive: str, block: Any, words: str | None) -> None:
    text = f".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{directive}\n{{ ret; }}\n"
    report = Emulator().launch(Kernel.from_ptx(text), 1, block, [])
    if words is None:
        assert report.ok
    else:
        assert report.status == "fault"
        assert [(each.code, each.summary, each.line) for each in report.findings] == [("launch-shape", words, 5)]


def test_every_declared_form_with_a_meaning_is_tested_or_named() -> None:
    """The forms without a meaning are listed, and none of them has one in secret."""
    missing = semantics.missing()
    assert all("." in key for key in missing)
    assert "integer.add" not in missing
    assert "fabric.submit" in missing


def test_another_target() -> None:
    """It is emulated all the same, as what it was written for."""
    kernel = Kernel.from_ptx(module("ret;", target="sm_90a"))
    assert Emulator("sm_90a").launch(kernel, 1, 32, []).findings == []
    assert Emulator().launch(kernel, 1, 32, []).findings == []
    (finding,) = Emulator("sm_100a").launch(kernel, 1, 32, []).findings
    assert (finding.code, finding.severity, finding.line) == ("other-target", "error", 2)
    assert 'use Emulator("sm_90a")' in finding.message


def test_an_array_of_another_device() -> None:
    kernel = Kernel.from_ptx(module("ret;", ".param .u64 first, .param .u64 second"))
    here, there = Emulator(), Emulator()
    given = [here.array([1]), there.array([2])]
    with pytest.raises(KernelArgumentError, match="argument 1 of k is an array of another device; make it with"):
        here.launch(kernel, 1, 32, given)
    assert here.launch(kernel, 1, 32, [given[0], given[0]]).ok


@pytest.mark.parametrize(
    ("body", "thread"),
    [
        ("mul.wide.u32 %a, %t, 4; add.u64 %a, %a, %out0; st.global.u32 [%a], %t;", "lane 6 of warp 1 of CTA (0, 0, 0)"),
        ("shl.b32 %s, %t, 2; add.u32 %s, %s, 1024; st.shared.u32 [%s], %t;", "lane 4 of warp 1 of CTA (0, 0, 0)"),
        (
            "setp.eq.u32 %p, %c, 1; add.u64 %a, %out0, 1; @%p st.global.u32 [%a], %t;",
            "lane 0 of warp 0 of CTA (1, 0, 0)",
        ),
        ("and.b32 %s, %t, 32; shr.u32 %s, %s, 4; add.u32 %s, %s, 1024; st.shared.u32 [%s], %t;", "lane 0 of warp 1"),
    ],
)
def test_a_fault_names_the_thread(body: str, thread: str) -> None:
    head = ".shared .b32 data[36]; .reg .u32 %t, %s, %c; .reg .b64 %a; .reg .pred %p; mov.u32 %t, %tid.x;"
    report, _ = launch(f"{head} mov.u32 %c, %ctaid.x; {body} ret;", [poisoned(38)], block=64, grid=2)
    assert report.status == "fault"
    assert f", by {thread}" in report.findings[0].message, report.summary()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"schedule": "latest"}, "schedule must be eager, late or random, not 'latest'"),
        ({"seed": 1.5}, "seed must be a whole number, not 1.5"),
        ({"checks": "no"}, "checks must be True or False, not 'no'"),
        ({"advice": 0}, "advice must be a number above 0, or None, not 0"),
        ({"multiprocessors": -1}, "multiprocessors must be a whole number above 0, not -1"),
        ({"max_steps": 2.0}, "max_steps must be a whole number above 0, not 2.0"),
        ({"target": "sm_91a"}, r"\.target sm_91a does not exist"),
        ({"target": 90}, "90 is not a target"),
    ],
)
def test_options_that_there_are_not(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Emulator(**options)
    numbers: Any = np.int64(3)
    Emulator(seed=numbers, advice=1.5, multiprocessors=numbers, max_steps=1, target="sm_120f")


class Machines(Observer):
    """Keeps the machine of each launch."""

    def __init__(self) -> None:
        self.machines: list[Any] = []

    def launch_begins(self, machine: MachineView, program: object) -> None:
        self.machines.append(machine)


def test_launches_do_not_allocate_what_the_kernel_does_not_use() -> None:
    text = module(
        ".reg .u32 %a; .reg .b64 %at; ld.param.u64 %at, [x]; mov.u32 %a, %clock; st.global.u32 [%at], 0; ret;",
        ".param .u64 x",
    )
    seen = Machines()
    emulator = Emulator("sm_100a", observers=[seen])
    assert emulator.launch(Kernel.from_ptx(text), 148, 32, [emulator.empty((32,), np.uint32)]).instructions
    (machine,) = seen.machines
    assert "cells" not in vars(machine.tensor)
    accesses, order = machine.events.find(TensorAccesses), machine.events.find(HappensBefore)
    assert {"writer", "core_reader", "reader_clock"}.isdisjoint(vars(accesses))
    assert "random" not in vars(machine.timeline)
    assert len(order.observed) < machine.warps


def test_later_launches_analyze_and_translate_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel.from_ptx(
        module(
            """.reg .u32 %a, %b; .reg .pred %p; .reg .b64 %at;
            ld.param.u64 %at, [x];
            mov.u32 %a, %tid.x;
        again:
            ld.global.u32 %b, [%at];
            atom.global.cas.b32 %b, [%at], %b, %a;
            add.u32 %a, %a, 33;
            setp.lt.u32 %p, %a, 300;
            @%p bra again;
            ret;""",
            ".param .u64 x",
        )
    )
    emulator = Emulator("sm_90a")
    array = emulator.array(np.zeros(32, np.uint32))
    reports = [emulator.launch(kernel, 1, 32, [array]) for _ in range(4)]

    def never(*_: object) -> object:
        raise AssertionError("made again")

    monkeypatch.setattr(runs, "encode", never)
    monkeypatch.setattr(code, "with_runs", never)
    monkeypatch.setattr(cas_loops, "RecheckedLoads", never)
    array.write(np.zeros(32, np.uint32))
    again = emulator.launch(kernel, 1, 32, [array])
    assert (codes(again), again.instructions) == (codes(reports[0]), reports[0].instructions)


def test_later_launches_make_few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python calls of a launch with shared memory and a barrier, and of each further CTA: its time follows them."""
    monkeypatch.setenv("PTXGEN_NATIVE", "0")
    kernel = Kernel.from_ptx(
        module(
            """.reg .b32 %t, %c, %here, %there; .reg .b64 %out; .shared .align 4 .b32 tile[256];
            mov.u32 %t, %tid.x;
            mov.u32 %c, %ctaid.x;
            shl.b32 %here, %t, 2;
            mov.u32 %there, tile;
            add.u32 %here, %here, %there;
            st.shared.u32 [%here], %t;
            bar.sync 0;
            xor.b32 %there, %here, 4;
            ld.shared.u32 %there, [%there];
            mad.lo.u32 %c, %c, 256, %t;
            ld.param.u64 %out, [out];
            mad.wide.u32 %out, %c, 4, %out;
            st.global.u32 [%out], %there;
            ret;""",
            ".param .u64 out",
        )
    )
    counts: list[int] = []
    for ctas in (1, 41):
        device = Emulator("sm_100a")
        out = [device.empty((ctas, 256), np.uint32)]
        device.launch(kernel, ctas, 256, out)
        events: list[str] = []
        sys.setprofile(lambda frame, event, arg, events=events: events.append(event))
        try:
            report = device.launch(kernel, ctas, 256, out)
        finally:
            sys.setprofile(None)
        assert report.status == "ok", report.summary()
        counts.append(events.count("call"))
    assert counts[0] < 1200
    assert (counts[1] - counts[0]) / 40 < 12


def test_checks_keep_tables_of_arrays_only() -> None:
    """Of the heap that is there, most belongs to no array yet; memory that a kernel allocates is followed too."""
    text = module(
        """.reg .b64 %at, %v; .reg .b32 %z;
        ld.param.u64 %at, [x];
        { .param .b64 size; .param .b64 result;
          st.param.b64 [size], 1000000;
          call.uni (result), malloc, (size);
          ld.param.b64 %v, [result]; }
        st.global.u64 [%at], %v;
        st.global.u64 [%v+999992], %at;
        ld.global.b32 %z, [%v+999992];
        st.global.u32 [%at+8], %z;
        ret;""",
        ".param .u64 x",
        items=".extern .func (.param .b64 result) malloc (.param .b64 size);",
    )
    seen = Machines()
    emulator = Emulator(observers=[seen])
    array = emulator.array(np.zeros(5, np.uint32))
    report = emulator.launch(Kernel.from_ptx(text), 1, 1, [array])
    assert codes(report) == []
    assert array.numpy()[2] == array.address & 0xFFFFFFFF

    plain = Emulator(observers=[seen])
    plain.memory.data, plain.memory.kind = (np.zeros(1 << 24, np.uint8) for _ in range(2))
    small = Kernel.from_ptx(
        module(".reg .b64 %at; ld.param.u64 %at, [x]; st.global.u32 [%at], 0; ret;", ".param .u64 x")
    )
    assert codes(plain.launch(small, 1, 32, [plain.array(np.zeros(5, np.uint32))])) == []
    accesses = seen.machines[-1].events.find(GlobalAccesses)
    assert len(accesses._events.writer._halves) == plain.memory.extent // 2 == 6144
