"""A program knows no machine: launches, schedules and reruns share one analysis and one program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen import Emulator, Kernel
from ptxgen.emulator.load.program import Program
from ptxgen.emulator.state import machine
from ptxgen.emulator.state.special_registers import SPECIAL_REGISTERS, SpecialRegisters
from ptxgen.instr.model.recognize import Recognized

#: Each CTA of a cluster stores `total` plus its rank, by way of its shared memory, whose addresses have the rank.
TEXT = """
.version 8.7
.target sm_90a
.address_size 64
.global .u32 total = 5;
.visible .entry k(.param .u64 out)
{
    .reg .b64 %out, %place, %offset;
    .reg .b32 %value, %rank, %address;
    .shared .align 4 .b8 word[4];
    ld.param.u64 %out, [out];
    mov.u64 %place, total;
    mov.u32 %rank, %cluster_ctarank;
    mov.u32 %address, word;
    st.shared::cluster.u32 [%address], %rank;
    ld.shared.u32 %rank, [word];
    ld.global.u32 %value, [%place];
    add.u32 %value, %value, %rank;
    mul.wide.u32 %offset, %rank, 4;
    add.u64 %out, %out, %offset;
    st.global.u32 [%out], %value;
    ret;
}
"""


def test_schedules_share_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """No statement is recognized twice, by `check` or by launches; one program serves all schedules and seeds."""
    recognized: list[int] = []
    made: list[Program] = []
    of, init = Recognized.of, Program.__init__

    def counted(self: Recognized, statement: Any) -> Any:
        recognized.append(id(statement))
        return of(self, statement)

    def built(self: Program, *arguments: Any, **options: Any) -> None:
        made.append(self)
        init(self, *arguments, **options)

    monkeypatch.setattr(Recognized, "of", counted)
    monkeypatch.setattr(Program, "__init__", built)
    kernel = Kernel.from_ptx(TEXT)
    assert kernel.diagnostics == []
    for schedule, seed in (("eager", 0), ("late", 0), ("random", 1), ("random", 2)):
        device = Emulator("sm_90a", schedule, seed)  # type: ignore[arg-type]
        assert device.launch(kernel, 1, 1, [device.array(np.zeros(1, np.uint32))]).ok
    assert len(made) == 1
    assert len(recognized) == len(set(recognized)) == 12


def test_launches_of_other_shapes() -> None:
    """What depends on the launch is found at run time: cluster ranks, shared memory, where variables were loaded."""
    kernel = Kernel.from_ptx(TEXT)
    first, second = Emulator("sm_90a"), Emulator("sm_90a")
    second.array(np.zeros(1000, np.uint8))  # so that `total` lies elsewhere
    for device in (first, second, first):
        for cluster, shared in ((1, 0), (4, 256), (2, 0), (1, 0)):
            out = device.empty(4, np.uint32)
            report = device.launch(kernel, cluster, 1, [out], cluster=cluster, shared_bytes=shared)
            assert report.ok, report.summary()
            assert out.numpy()[:cluster].tolist() == [5 + rank for rank in range(cluster)]


class AllWarps:
    warps = slice(None)


def test_every_special_register_has_a_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names that a program is bound with are those that each machine can read."""
    tables: list[SpecialRegisters] = []

    def seen(*launch: Any) -> SpecialRegisters:
        tables.append(SpecialRegisters(*launch))
        return tables[-1]

    monkeypatch.setattr(machine, "SpecialRegisters", seen)
    device = Emulator("sm_90a")
    assert device.launch(Kernel.from_ptx(TEXT), 1, 1, [device.array(np.zeros(1, np.uint32))]).ok
    for name in SPECIAL_REGISTERS:
        assert np.broadcast_shapes(tables[0][name](AllWarps()).shape, (1, 32)) == (1, 32), name
