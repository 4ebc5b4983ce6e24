"""A bug that a project shipped, as a kernel of ours and its right twin, and how both are launched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxgen import Kernel
from ptxgen.descriptors import TensorMap
from ptxgen.device import Launch, LaunchReport
from ptxgen.device.report import Severity
from ptxgen.emulator import Emulator
from ptxgen.emulator.engines.timeline import Schedule

SCHEDULES: Sequence[Schedule] = ("eager", "late", "random")
#: The code of bugs that only show as a wrong result.
WRONG = "wrong-result"
#: The source of another form of a bug of a project, in a kernel of another shape.
REBUILT = "rebuilt"
#: Ends a line at which the finding is expected.
MARK = "// <--"
#: Bytes of the array `data`, and rows and columns of the bf16 matrix `matrix` with its tensormap `map`.
DATA, ROWS, COLUMNS = 65536, 256, 64
#: What every kernel begins with. Registers by number are free.
START = """\
.visible .entry kernel(
    .param .u64 data,
    .param .u64 matrix,
    .param .align 64 .b8 map[128]
) DIRECTIVES
{
    .reg .pred %p<8>, %thread0, %lane0, %done;
    .reg .b32 %r<40>, %thread, %lane, %warp, %rank, %cta;
    .reg .b16 %rs<4>;
    .reg .b64 %rd<16>, %data, %matrix, %map;
    ld.param.u64 %data, [data];
    ld.param.u64 %matrix, [matrix];
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    mov.u32 %thread, %tid.x;
    and.b32 %lane, %thread, 31;
    shr.u32 %warp, %thread, 5;
    mov.u32 %rank, %cluster_ctarank;
    mov.u32 %cta, %ctaid.x;
    setp.eq.u32 %thread0, %thread, 0;
    setp.eq.u32 %lane0, %lane, 0;
"""


@dataclass(frozen=True, kw_only=True)
class Bug:
    """A bug of a project, and what ptxgen must say of it.

    `source` is `owner/repository#number` of the issue or pull request, or REBUILT; `what` says what was wrong there. Of
    the lines of `ptx`, the body of a kernel, those that begin with `-` are in the bug alone and those with `+` in its
    right twin alone. Lines of the bug end in MARK: at one of them `code` is reported, with `severity`.
    """

    name: str
    source: str
    what: str
    ptx: str
    code: str
    severity: Severity = "error"
    block: int = 128
    grid: int = 1
    cluster: int | None = None
    target: str = "sm_90a"
    directives: str = ""
    #: Element type, box and swizzle of the tensormap `map`.
    map_type: str = "bf16"
    box: tuple[int, int] = (COLUMNS, 8)
    swizzle: str = "none"
    #: Of the emulated GPU, if it matters how many CTAs run at a time (cluster launch control).
    multiprocessors: int | None = None
    #: The body of a kernel whose grid may still run when this one begins (programmatic dependent launch).
    before: str = ""
    #: Codes of the same severity that may come with it.
    also: Sequence[str] = ()
    #: How it is known, where not from the thread itself.
    note: str = ""
    #: The schedules that report it; of `random` at least one of these seeds. WRONG has no finding: memory differs from
    #: what the right twin leaves.
    schedules: Sequence[Schedule] = SCHEDULES
    seeds: Sequence[int] = (0,)

    @property
    def url(self) -> str:
        """Where the bug was reported or fixed; empty if it is REBUILT."""
        if self.source == REBUILT:
            return ""
        return "https://github.com/" + self.source.replace("#", "/issues/")

    def text(self, *, right: bool) -> str:
        """The PTX of the bug, or of its right twin."""
        return self._kernel(self.ptx, right=right)

    def before_text(self, *, right: bool) -> str:
        """The PTX of the kernel `before`, of the bug or of its right twin."""
        return self._kernel(self.before, right=right)

    def _kernel(self, body: str, *, right: bool) -> str:
        skipped, kept = ("-", "+") if right else ("+", "-")
        lines = [
            " " + line[1:] if line.startswith(kept) else line
            for line in body.strip("\n").splitlines()
            if not line.startswith(skipped)
        ]
        head = f".version 9.0\n.target {self.target}\n.address_size 64\n" + START.replace("DIRECTIVES", self.directives)
        return head + "\n".join(lines) + "\n    ret;\n}\n"

    @property
    def lines(self) -> set[int]:
        """The lines of the bug at one of which the finding is expected: the schedule may decide at which."""
        return {number for number, line in enumerate(self.text(right=False).splitlines(), 1) if MARK in line}

    def run(self, schedule: Schedule, *, right: bool, seed: int = 0) -> LaunchReport:
        """Launch the bug, or its right twin, in the emulator."""
        return self.outcome(schedule, right=right, seed=seed)[0]

    def outcome(self, schedule: Schedule, *, right: bool, seed: int) -> tuple[LaunchReport, NDArray[np.uint32]]:
        """The same, with what it leaves in `data`."""
        return self.launch(self.text(right=right), schedule, right=right, seed=seed)

    def launch(
        self, text: str, schedule: Schedule, *, right: bool = False, seed: int = 0
    ) -> tuple[LaunchReport, NDArray[np.uint32]]:
        """Launch a text in place of the bug's, after the kernel `before` of the bug or of its right twin."""
        emulator = Emulator(
            self.target, schedule=schedule, seed=seed, max_steps=200_000, multiprocessors=self.multiprocessors
        )
        matrix = emulator.array(np.arange(ROWS * COLUMNS, dtype=np.uint16).reshape(ROWS, COLUMNS) & 0x3FFF)
        tensormap = TensorMap.tiled(
            self.map_type, matrix, (COLUMNS, ROWS), (2 * COLUMNS,), self.box, swizzle=self.swizzle
        )
        data = emulator.array(np.zeros(DATA // 4, np.uint32))
        texts = [self.before_text(right=right), text] if self.before else [text]
        reports = emulator.launch_overlapping(
            [
                Launch(
                    Kernel.from_ptx(each),
                    self.grid,
                    self.block,
                    [data, matrix, tensormap],
                    cluster=self.cluster,
                )
                for each in texts
            ]
        )
        # Of a race of two grids either may be the one whose access comes second.
        return next((each for each in reports if each.findings), reports[-1]), data.numpy()


def problem(bug: Bug) -> str:
    """What is wrong with an entry itself; empty if nothing is."""
    if bug.source != REBUILT and not re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", bug.source):
        return f"source {bug.source!r} is not owner/repository#number"
    if bug.text(right=True) == bug.text(right=False):
        return "the right twin is the same kernel"
    return "" if bug.lines else f"a line must end in {MARK}"
