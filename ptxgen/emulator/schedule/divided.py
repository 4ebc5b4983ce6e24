"""A launch that several processes share (`processes`), from its division to its report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ptxgen.device import LaunchReport, Status
from ptxgen.emulator.load.program import Program
from ptxgen.emulator.memory import GlobalMemory
from ptxgen.emulator.observers.footprint import Footprint
from ptxgen.emulator.schedule import processes
from ptxgen.emulator.schedule.scheduler import Scheduler
from ptxgen.emulator.schedule.watchdog import Progress


@dataclass(frozen=True)
class DividedLaunch:
    """A launch of so many CTAs in so many clusters, which `jobs` processes share."""

    #: The names of the kernel and the device, for the report.
    kernel: str
    device: str
    program: Program
    memory: GlobalMemory
    ctas: int
    clusters: int
    jobs: int
    #: Begins some clusters in their process, where their progress goes to the reporter.
    begin: Callable[[range, processes.Reporter, Footprint], Scheduler]
    #: The report of clusters that have run.
    report: Callable[[Scheduler, Status], LaunchReport]
    progress: Callable[[int, int], None] | None
    heartbeat: Callable[[Progress], None] | None
    max_steps: int

    def run(self, began: float) -> LaunchReport | None:
        """The report of the whole launch; None, and nothing has happened, where the division may have mattered."""

        def looks(done: int, steps: int) -> None:
            if self.progress is not None:
                self.progress(done, self.ctas)
            if self.heartbeat is not None:
                self.heartbeat(Progress(done, self.ctas, steps, time.perf_counter() - began))

        answers = processes.run_parts(self._run_part, self.clusters, self.jobs, looks)
        parts = [each for each in answers if each is not None]
        if not answers or sum(part.steps for part in parts) > self.max_steps:
            return None
        if len(parts) < len(answers) or not processes.independent(parts):
            processes.keep_whole(self.program)
            return None
        processes.put_together(parts, self.memory)
        used = [each for part in parts for each in part.used_accepts]
        return LaunchReport(
            "ok",
            instructions=sum(part.instructions for part in parts),
            seconds=time.perf_counter() - began,
            kernel=self.kernel,
            device=self.device,
            unused_accepts=[each for each in parts[0].unused_accepts if each not in used],
            used_accepts=list(dict.fromkeys(used)),
            gaps=parts[0].gaps,
        )

    def _run_part(self, chosen: range, reporter: processes.Reporter) -> processes.Part | None:
        """Run clusters in their process; None where something was found, printed, or may matter."""
        self.memory.keep_apart()
        footprint = Footprint(self.memory.extent)
        scheduler = self.begin(chosen, reporter, footprint)
        status = scheduler.run()
        findings = scheduler.machine.findings
        if status == "incomplete":
            raise processes.NoAnswer
        if status != "ok" or findings.may_be_harmless or findings.suspects.sources or scheduler.machine.printed:
            return None
        findings.settle({}, failed=False)
        report = self.report(scheduler, status)
        if report.findings or report.stale_values:
            return None
        return processes.Part.of(report, scheduler.warps.steps, footprint, self.memory)
