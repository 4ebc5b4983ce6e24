"""Machine code takes the steps that the scheduler takes without it: the same ones, in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxgen import Emulator, Kernel, LaunchReport
from ptxgen.emulator.schedule.watchdog import Progress
from tests.emulator.native.test_memory import _restored, found  # noqa: F401

pytestmark = pytest.mark.usefixtures("found")

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"
DECLARED = ".reg .pred %p<9>, %u;\n.reg .b32 %r<9>, %t;\n.reg .b64 %a, %to;\n.shared .align 4 .b32 word[64];"
ENDLESS = f"{HEAD}.visible .entry k()\n{{\n.reg .b32 %r;\n.reg .pred %p;\nmov.u32 %r, %tid.x;\nagain: BODY\n}}\n"


def text(random: np.random.Generator) -> str:
    """A kernel of nested loops and branches, whose lanes diverge, converge and synchronize, and that ends."""
    labels = iter(range(1000))

    def body(depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(int(random.integers(1, 4))):
            kind = int(random.integers(0, 9 if depth < 3 else 4))
            d, a, b = (f"%r{random.integers(0, 4)}" for _ in range(3))
            if kind < 3:
                lines.append(f"mad.lo.u32 {d}, {a}, {random.integers(2, 99)}, {b};")
            elif kind == 3:
                lines += [f"and.b32 %r8, {a}, 3;", "setp.eq.u32 %p8, %r8, 1;", f"@%p8 xor.b32 {d}, {b}, %t;"]
            elif kind < 6:  # a branch of some lanes
                other, end = next(labels), next(labels)
                lines += [f"and.b32 %r8, {a}, {random.choice([1, 3, 32, 64])};", "setp.ne.u32 %p8, %r8, 0;"]
                lines += [f"@{random.choice(['', '!'])}%p8 bra L{other};", *body(depth + 1), f"bra L{end};"]
                lines += [f"L{other}:", *body(depth + 1), f"L{end}:"]
            elif kind < 8:  # a loop of as many turns as each lane, or each warp, says
                again, counter = next(labels), f"%r{depth + 4}"
                shift, limit = random.choice([0, 5]), [31, 3, 1][depth]
                lines += [f"shr.u32 {counter}, %t, {shift};", f"and.b32 {counter}, {counter}, {limit};", f"L{again}:"]
                lines += [*body(depth + 1), f"sub.s32 {counter}, {counter}, 1;"]
                lines += [f"setp.gt.s32 %p{depth}, {counter}, 0;", f"@%p{depth} bra L{again};"]
            elif depth:
                lines += ["st.global.u32 [%a], %r1;"]
            else:
                lines += ["bar.sync 0;"]
        return lines

    first = [f"mad.lo.u32 %r{each}, %t, {random.integers(1, 999)}, {each};" for each in range(4)]
    last = ["add.u32 %r0, %r0, %r1;", "xor.b32 %r0, %r0, %r2;", "st.global.u32 [%a], %r0;", "ret;"]
    start = ["ld.param.u64 %to, [to];", "mov.u32 %t, %tid.x;", "mad.wide.u32 %a, %t, 4, %to;"]
    return "\n".join([HEAD, ".visible .entry k(.param .u64 to)\n{", DECLARED, *start, *first, *body(0), *last, "}\n"])


class Counting(Emulator):
    """Keeps how many steps the last launch took, and when each warp ran last."""

    steps: int
    last: list[int]

    def _report(self, launch: Any, scheduler: Any, status: Any, seconds: float) -> LaunchReport:
        self.steps, self.last = scheduler.warps.steps, scheduler.warps.last_run.tolist()
        return super()._report(launch, scheduler, status, seconds)


def outcome(kernel: Kernel, monkeypatch: pytest.MonkeyPatch, native: str, **options: Any) -> tuple[object, ...]:
    monkeypatch.setenv("PTXGEN_NATIVE", native)
    device = Counting("sm_90a", **options)
    to = [device.array(np.zeros(256, np.uint32))] if kernel.parameters else []
    report = device.launch(kernel, 1, 200, to)
    memory = [each.numpy().tobytes() for each in to]
    return report.status, list(map(str, report.findings)), report.instructions, device.steps, device.last, memory


@pytest.mark.parametrize("seed", range(24))
def test_random_flow(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    kernel = Kernel.from_ptx(text(np.random.default_rng(seed)))
    schedule = ("eager", "late")[seed % 2]
    wanted = outcome(kernel, monkeypatch, "0", schedule=schedule)
    for _ in range(2):  # blocks become machine code in the first
        assert outcome(kernel, monkeypatch, "wait", schedule=schedule) == wanted
    assert wanted[0] == "ok"


@pytest.mark.parametrize(
    "body",
    [
        "bra again;",
        "add.u32 %r, %r, 1;\nbra again;",
        "xor.b32 %r, %r, 1;\nbra again;",
        "setp.lt.u32 %p, %r, 40;\n@%p bra again;\nadd.u32 %r, %r, 1;\nbra again;",
        "setp.lt.u32 %p, %r, 4000;\nadd.u32 %r, %r, 1;\n@%p bra again;\nbar.sync 0;\nand.b32 %r, %r, 31;\nbra again;",
    ],
)
@pytest.mark.parametrize("steps", [100, 2_000])
def test_limits(monkeypatch: pytest.MonkeyPatch, body: str, steps: int) -> None:
    """Loops without end are found, and limits reached, at the same step."""
    kernel = Kernel.from_ptx(ENDLESS.replace("BODY", body))
    wanted = outcome(kernel, monkeypatch, "0", max_steps=steps)
    for _ in range(2):
        assert outcome(kernel, monkeypatch, "wait", max_steps=steps) == wanted
    assert wanted[0] in ("deadlock", "incomplete")


def test_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch that only computes still tells how far it is."""
    kernel = Kernel.from_ptx(ENDLESS.replace("BODY", "add.u32 %r, %r, 1;\nbra again;"))
    seen: list[int] = []
    monkeypatch.setattr("ptxgen.emulator.schedule.watchdog._SECONDS", 0.0)

    def beat(progress: Progress) -> None:
        seen.append(progress.steps)

    for native in ("0", "wait"):
        outcome(kernel, monkeypatch, native, max_steps=3000, heartbeat=beat)
    assert seen == 2 * list(range(16, 3001, 16))


def test_guards_stay_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard that is uninitialized in a later launch alone is found, though its block is machine code by then."""
    kernel = Kernel.from_ptx(
        f"""{HEAD}.visible .entry k(.param .u32 n)
        {{
            .reg .pred %p, %q;
            .reg .b32 %n, %x;
            ld.param.u32 %n, [n];
            mov.u32 %x, 1;
            setp.ne.u32 %q, %n, 0;
            @%q setp.eq.u32 %p, %n, 1;
            @%p bra end;
            add.u32 %x, %x, 1;
        end:
            ret;
        }}"""
    )
    monkeypatch.setenv("PTXGEN_NATIVE", "wait")
    for _ in range(6):
        assert Emulator("sm_90a").launch(kernel, 1, 32, [1]).status == "ok"
    report = Emulator("sm_90a").launch(kernel, 1, 32, [0])
    assert [each.code for each in report.findings] == ["uninitialized-register"]
