"""Weak accesses to shared memory are compared and kept in one call of machine code as without it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from ptxgen import Emulator, Kernel, LaunchReport
from ptxgen.emulator.checks.shared.accesses import SharedAccesses
from ptxgen.emulator.checks.shared.at_once import AtOnce
from tests.emulator.native.test_memory import _restored, found  # noqa: F401

pytestmark = pytest.mark.usefixtures("found")

THREADS, BYTES = 96, 2048
BY_LANE = ("_writer", "_reader", "interval", "_stored", "_loaded", "_loading", "_storers", "_loaders")


def text(random: np.random.Generator) -> str:
    """A kernel whose threads load from and store to shared memory anywhere, with barriers here and there."""
    lines = list[str]()
    for _ in range(24):
        size = int(random.choice([1, 2, 4, 4, 8, 16]))
        kind = {1: "b8", 2: "b16", 4: "b32", 8: "b64", 16: "v2.b64"}[size]
        value = {1: "%r5", 2: "%h", 4: "%r5", 8: "%d", 16: "{%d, %e}"}[size]
        guard = random.choice(["", "", "@%p ", "@!%p "])
        place = int(random.integers(0, 5))
        if place < 3:  # one after the other, in the reverse order, or several lanes at one place
            by = ("mov.b32 %r4, %t;", "sub.u32 %r4, 95, %t;", "shr.u32 %r4, %t, 2;")[place]
        elif place == 3:
            by = f"mul.lo.u32 %r4, %t, {2 * random.integers(1, 30) + 1};"
        else:
            by = f"mov.b32 %r4, {random.integers(0, 40)};"
        lines += [by, f"and.b32 %r4, %r4, {BYTES // size - 1};", f"mad.lo.u32 %r4, %r4, {size}, %s;"]
        if random.integers(0, 2):
            lines += [f"{guard}ld.shared.{kind} {value}, [%r4];"]
        else:
            lines += [f"{guard}st.shared.{kind} [%r4], {value};"]
        if random.integers(0, 3) == 0:
            lines += [
                str(random.choice(["bar.sync 0;", "bar.warp.sync -1;", "shfl.sync.bfly.b32 %r5, %r5, 1, 31, -1;"]))
            ]
        if random.integers(0, 8) == 0:
            lines += ["add.u32 %r6, %s, 64;", "atom.shared.add.u32 %r5, [%r6], 1;"]
    first = ["mov.u32 %t, %tid.x;", "mov.u32 %s, tile;", "and.b32 %r5, %t, 5;", "setp.lt.u32 %p, %r5, 4;"]
    first += ["cvt.u16.u32 %h, %r5;", "cvt.u64.u32 %d, %t;", "mov.b64 %e, 7;", "mov.b32 %r6, 0;"]
    if random.integers(0, 2):  # no uninitialized reads
        first += ["mov.b32 %r4, %t;", "ZERO: mad.lo.u32 %r7, %r4, 4, %s;", "st.shared.b32 [%r7], 0;"]
        first += ["add.u32 %r4, %r4, 96;", f"setp.lt.u32 %q, %r4, {BYTES // 4};", "@%q bra ZERO;", "bar.sync 0;"]
    declared = ".reg .pred %p, %q;\n.reg .b16 %h;\n.reg .b32 %r<9>, %t, %s;\n.reg .b64 %d, %e;\n"
    declared += f".shared .align 16 .b8 tile[{BYTES}];"
    head = ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{"
    return "\n".join([head, declared, *first, *lines, "ret;\n}\n"])


class Kept(Emulator):
    """Notes what the checks of shared memory keep at the end of a launch."""

    kept: dict[str, bytes]

    def _report(self, launch: Any, scheduler: Any, status: Any, seconds: float) -> LaunchReport:
        shared = scheduler.machine.events.find(SharedAccesses)
        self.kept = {name: getattr(shared._lanes, name).tobytes() for name in BY_LANE}
        self.kept["written"] = shared.written.tobytes()
        for what, table in (("stores", shared.stores), ("loads", shared.loads)):
            self.kept |= {what + name: getattr(table, name).tobytes() for name in ("clock", "mask", "line", "latest")}
        return super()._report(launch, scheduler, status, seconds)


def outcome(kernel: Kernel, monkeypatch: pytest.MonkeyPatch, native: str) -> tuple[object, ...]:
    monkeypatch.setenv("PTXGEN_NATIVE", native)
    device = Kept("sm_90a")
    report = device.launch(kernel, 2, THREADS, [])
    return report.status, list(map(str, report.findings)), report.instructions, device.kept


def test_random_accesses(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = Counter[bool]()
    keep = AtOnce.keep

    def counted(self: AtOnce, *given: Any) -> bool:
        result = keep(self, *given)
        taken[result] += 1
        return result

    monkeypatch.setattr(AtOnce, "keep", counted)
    statuses = set[object]()
    for seed in range(20):
        kernel = Kernel.from_ptx(text(np.random.default_rng(seed)))
        wanted = outcome(kernel, monkeypatch, "0")
        taken.clear() if seed == 0 else None
        got = outcome(kernel, monkeypatch, "wait")
        assert got[:3] == wanted[:3], seed
        for name, table in wanted[3].items():  # type: ignore[attr-defined]
            assert got[3][name] == table, (seed, name)  # type: ignore[index]
        statuses.add(wanted[0])
    assert taken[True] > 50
    assert taken[False] > 50
    assert statuses >= {"findings"}
