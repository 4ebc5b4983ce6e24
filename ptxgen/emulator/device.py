"""`Emulator`, the device that runs PTX on a CPU. The same calls as `ptxgen.gpu.Gpu`."""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from math import prod
from pathlib import Path

import numpy as np

from ptxgen import limits
from ptxgen.descriptors import TensorMap
from ptxgen.device import (
    Accept,
    DeviceArray,
    DTypeLike,
    Extent,
    Finding,
    Kernel,
    KernelArgumentError,
    Launch,
    LaunchError,
    LaunchReport,
    LaunchShape,
    Repeat,
    Status,
    array_dtype,
    array_shape,
    host_array,
    pack_arguments,
)
from ptxgen.device.compilers import compiler_of
from ptxgen.emulator.checks.findings import Findings
from ptxgen.emulator.checks.global_memory.grid_races import GridRaces
from ptxgen.emulator.checks.observers import checks_of, watchers
from ptxgen.emulator.checks.registry import launches
from ptxgen.emulator.checks.uninitialized.rerun import Rerun, judge, snapshot
from ptxgen.emulator.engines.timeline import Schedule, Timeline
from ptxgen.emulator.explore import Exploration, explore
from ptxgen.emulator.explore.delays import Point
from ptxgen.emulator.explore.one_order import OneOrder
from ptxgen.emulator.explore.orders import OrderOfAccesses
from ptxgen.emulator.load.accepts import inline_accepts, reviewed, source_files
from ptxgen.emulator.load.directives import refusals, with_directives
from ptxgen.emulator.load.image import Image
from ptxgen.emulator.load.program import Program
from ptxgen.emulator.load.source_lines import SourceLines
from ptxgen.emulator.memory import GlobalMemory
from ptxgen.emulator.memory.global_memory import Contents
from ptxgen.emulator.memory.local_memory import LIMIT as LOCAL_LIMIT
from ptxgen.emulator.native.freed_memory import keep_freed_memory
from ptxgen.emulator.observer import Observer
from ptxgen.emulator.observers import Breakpoint
from ptxgen.emulator.observers.footprint import Footprint
from ptxgen.emulator.options import option_problems
from ptxgen.emulator.schedule import processes
from ptxgen.emulator.schedule.divided import DividedLaunch
from ptxgen.emulator.schedule.grids import Grids
from ptxgen.emulator.schedule.scheduler import Scheduler
from ptxgen.emulator.schedule.watchdog import Progress, Watchdog
from ptxgen.emulator.state.config import MachineConfig
from ptxgen.emulator.state.machine import Machine
from ptxgen.emulator.state.perturbation import Perturbation
from ptxgen.emulator.state.register_pool import initial_count
from ptxgen.instr.model.targets import VERSIONS, Target, TargetError, parse_target, runs_on, target_problem
from ptxgen.limits import SHARED_RESERVED, shared_per_sm
from ptxgen.names import shown_name

#: Identity of a finding across launches: kernel, code, severity, line, instruction.
_Reported = tuple[str, str, str, int | None, str]
#: Number of modules that stay loaded, as in `Gpu`.
_LOADED_MODULES = 32
#: Registers of a thread that let as many CTAs be resident as any kernel has: those that it takes are ptxas's to say.
_FEW_REGISTERS = 16
#: Of what the driver gives a cooperative launch: the size, and the word in which cooperative groups count.
_WORKSPACE_BYTES = 16
_NO_RERUN = (
    "whether suspect reads matter: launches that overlap, wait for the host, or use more than 64 MiB of global memory, "
    "are not rerun"
)
_NOT_RUN = "another launch of the stream ended in a fault, a deadlock or incomplete, so this one did not finish"


class EmulatedArray(DeviceArray):
    """An array in the emulator's global memory."""

    def __init__(self, memory: GlobalMemory, shape: Extent, dtype: DTypeLike) -> None:
        element = array_dtype(dtype)
        size = prod(array_shape(shape)) * element.itemsize
        contents = Contents("", str(element), element.itemsize, array_shape(shape) or (1,))
        super().__init__(memory.allocate(size, contents), shape, element)
        self._memory = memory

    def is_in(self, memory: GlobalMemory) -> bool:
        """Whether the array lies in an emulator's memory."""
        return self._memory is memory

    def read_bytes(self) -> bytes:
        return self._memory.view(self.address, self.nbytes).tobytes()

    def write_bytes(self, data: bytes) -> None:
        self._memory.view(self.address, self.nbytes)[:] = np.frombuffer(data, np.uint8)


class Emulator:
    """A GPU, emulated: arrays, launches, and a report of each launch.

        >>> import numpy as np
        >>> from ptxgen import Emulator, Kernel
        >>> emulator = Emulator("sm_90a", schedule="random", seed=3)
        >>> x = emulator.array(np.arange(32, dtype=np.float32))
        >>> text = ".version 8.6\\n.target sm_90a\\n.visible .entry k(.param .u64 x) { ret; }\\n"
        >>> report = emulator.launch(Kernel.from_ptx(text), grid=1, block=32, args=[x])
        >>> report.ok, report.findings
        (True, [])

    Each option: its default in parentheses, what it does, and an example.

    The machine:

    - `target` (sm_100a, which then also runs kernels for other targets): the architecture, `"sm_90a"`.
    - `multiprocessors` (those of the target): CTAs that run at a time, `4`.
    - `memory_bytes` (EMULATED_MEMORY, in bytes): size of global memory; arrays beyond it raise LaunchError, `1 << 30`.

    The schedule (docs/emulator.md):

    - `schedule` ("eager"): asynchronous work completes as early as legal; "late": as late as legal; "random": at random
      times, with warps and lanes in random order and some CTAs started late.
    - `seed` (0): makes "random" reproducible, `3`.

    What is checked:

    - `checks` (True): races, missing waits and fences. Under `late` and `random`, strong loads that lack the required
      fences may return stale values. A launch that reads uninitialized or racing data is rerun with perturbed memory
      to find out whether that matters ("Harmless reads"). False: only faults, deadlocks and limits are reported.
    - `advice` (None: never, a factor): advise about loads and stores that take at least this many times the wavefronts
      or sectors they need (`bank-conflicts`, `uncoalesced-access`), `2.0`.
    - `accept` (none): reviewed findings to leave out of reports, or a TOML file of them, `"accepted.toml"`.

    Limits, past which a launch ends as incomplete:

    - `max_steps` (10,000,000, in blocks of instructions): the finding is `step-limit`, `1_000_000`.
    - `timeout` (None, in seconds, reruns not counted): the finding is `time-limit`, `60.0`.

    Speed:

    - `jobs` (1): processes that share a launch whose CTAs access nothing that another one writes, under `eager` and
      `late`, `os.cpu_count()`. Results and findings are the same.

    Observers and progress:

    - `observers` (none): receive every event, `[LineCounts()]` of `ptxgen.emulator.observers`.
    - `progress` (None): called as `progress(done, ctas)` whenever CTAs end.
    - `heartbeat` (None): called with a `Progress` about once a second.

    Raises ValueError for values that an option does not take, AcceptError (a ValueError) for a bad file, TargetError (a
    ValueError) for a target that does not exist.
    """

    def __init__(
        self,
        target: str | None = None,
        schedule: Schedule = "eager",
        seed: int = 0,
        checks: bool = True,
        *,
        advice: float | None = None,
        progress: Callable[[int, int], None] | None = None,
        multiprocessors: int | None = None,
        max_steps: int = 10_000_000,
        timeout: float | None = None,
        heartbeat: Callable[[Progress], None] | None = None,
        memory_bytes: int = limits.EMULATED_MEMORY,
        accept: str | Path | Sequence[Accept] = (),
        observers: Sequence[Observer] = (),
        jobs: int = 1,
    ) -> None:
        for problem in option_problems(
            schedule, seed, checks, advice, timeout, multiprocessors, max_steps, memory_bytes, jobs
        ):
            raise ValueError(f"Emulator: {problem}")
        #: True: kernels of all targets run.
        self._any_target = target is None
        target = target or "sm_100a"
        problem = target_problem(parse_target(target), VERSIONS[-1])
        if problem is not None:
            raise TargetError(f"Emulator: {problem}")
        self.target = target
        self.name = f"emulated {target}"
        self.schedule: Schedule = schedule
        self.seed, self.checks, self.advice, self.progress = seed, checks, advice, progress
        self.max_steps, self.timeout, self.heartbeat = max_steps, timeout, heartbeat
        self.jobs = int(jobs)
        #: Observers of launches besides the checks (`ptxgen.emulator.observer`); reruns have none.
        self.observers = tuple(observers)
        self.accept = reviewed(accept) if isinstance(accept, str | Path) else tuple(accept)
        self.multiprocessors = multiprocessors or limits.multiprocessors(target)
        #: Upper bound of %nsmid; None: one SM for each CTA that runs.
        self.told_multiprocessors: int | None = None
        self.memory = GlobalMemory(int(memory_bytes))
        #: Memory as it was before the last launch, whose place the next snapshot takes.
        self._snapshot: GlobalMemory | None = None
        #: Workspace of grid barriers, at %envreg1 and %envreg2.
        self._workspace: DeviceArray | None = None
        self._images: OrderedDict[str, Image] = OrderedDict()
        #: Callback of a launch that spins (`Scheduler.outside`).
        self.outside: Callable[[bool], bool] | None = None
        #: `keeps_released`: keep a launch that executed griddepcontrol.launch_dependents for the one after it.
        #: `follows`: the next launch is a programmatic dependent of the last one.
        self.keeps_released = self.follows = False
        self._released: Scheduler | None = None
        #: Launches so far, and what they have reported.
        self._launches = 0
        self._reported: dict[_Reported, Repeat] = {}

    def array(self, values: object, dtype: DTypeLike | None = None) -> DeviceArray:
        """Copy host values, as `dtype` if one is given, into new global memory. `host_array` says what is taken."""
        given = host_array(values, dtype)
        made = EmulatedArray(self.memory, given.shape, given.dtype)
        made.write(given)
        return made

    def empty(self, shape: Extent, dtype: DTypeLike) -> DeviceArray:
        """New global memory; its bytes are 0xCD until the kernel writes them."""
        return EmulatedArray(self.memory, shape, dtype)

    @contextmanager
    def breakpoint(
        self, line: int | None = None, hit: int = 1, *, warp: int | None = None, finding: str | None = None
    ) -> Iterator[Breakpoint]:
        """Take the state of a launch inside when a warp reaches a line of the PTX for the n-th time, or when the n-th
        finding of a code comes up ("": of any code).

        `with emulator.breakpoint(line=87, hit=2) as state: emulator.launch(...)`, then `state.shared["a"].tile(...)`.
        The launch continues to its end.
        """
        made = Breakpoint(line, hit, warp=warp, finding=finding)
        before = self.observers
        self.observers = (*before, made)
        try:
            yield made
        finally:
            self.observers = before

    def launch(
        self,
        kernel: Kernel,
        grid: Extent,
        block: Extent,
        args: Sequence[object],
        *,
        cluster: Extent | None = None,
        shared_bytes: int = 0,
        cooperative: bool = False,
    ) -> LaunchReport:
        """Run a kernel to its end, or to where it cannot go on; `args` in the order of the entry's parameters.

        Faults and findings of the kernel are in the report. Raises LaunchError or KernelArgumentError for a launch that
        no GPU would take.
        """
        return self.launch_overlapping([Launch(kernel, grid, block, args, cluster, shared_bytes, cooperative)])[0]

    def launch_overlapping(self, launches: Sequence[Launch]) -> list[LaunchReport]:
        """Run the kernels of one stream (`grids`); each may begin before the one before it has ended.

        CUDA has launches with the attribute programmaticStreamSerialization for it. Faults and findings are in the
        reports; those after it are then not run, and incomplete. Raises what `launch` raises.
        """
        began = time.perf_counter()
        keep_freed_memory()
        shapes: list[LaunchShape] = []
        for each in launches:
            shape, refused = with_directives(each.kernel, each.shape)
            refused = refusals(each.kernel) + refused
            if refused:
                self._pack(each)
                return [
                    LaunchReport("fault", refused, kernel=each.kernel.name, device=self.name)
                    if other is each
                    else self._not_run(other)
                    for other in launches
                ]
            shapes.append(shape)
        for each in launches:
            self._load(each.kernel)  # before the snapshot, since that allocates its variables
            if each.cooperative and self._workspace is None:
                self._workspace = self.array(np.zeros(_WORKSPACE_BYTES, np.uint8))
        released, self._released = self._released, None
        earlier = released if self.follows and len(launches) == 1 else None
        alone = len(launches) == 1 and earlier is None
        if alone and (divided := self._run_divided(launches[0], shapes[0], began)) is not None:
            self._count(divided)
            return [divided]
        before = None
        if self.checks and len(launches) == 1:
            before, self._snapshot = snapshot(self.memory, self._snapshot), None
        begin = [partial(self._begin, *each) for each in zip(launches, shapes, map(self._pack, launches), strict=True)]
        grids = Grids(begin, self.schedule, self.seed, earlier)
        statuses = grids.run()
        helped = any(scheduler.had_help for scheduler in grids.begun)
        if before is not None and statuses[0] in ("ok", "findings") and not helped:
            statuses[0] = judge(Rerun(grids.begun[0], before, begin[0]))
        elif self.checks:
            for scheduler, status in zip(grids.begun, statuses, strict=False):
                findings, ended = scheduler.machine.findings, status in ("ok", "findings")
                if ended and (findings.may_be_harmless or findings.suspects.sources):
                    findings.leave_out(_NO_RERUN)
                if status == "incomplete":
                    findings.cut_off()
                findings.settle({}, failed=not ended)
        seconds = time.perf_counter() - began
        for scheduler in grids.begun:
            self._print("".join(scheduler.machine.printed))
        reports = [self._report(*each, seconds) for each in zip(launches, grids.begun, statuses, strict=False)]
        for report in reports:
            self._count(report)
        self._snapshot = before
        last = grids.begun[-1]
        if earlier is not None and (races := last.machine.events.find(GridRaces)) is not None:
            races.forget_previous()
        if self.keeps_released and last.machine.releases and statuses[-1] in ("ok", "findings"):
            self._released = last
        if not self.observers:  # which may keep what they have seen
            for scheduler in grids.begun:
                if scheduler is not self._released:
                    scheduler.close()
        return reports + [self._not_run(each) for each in launches[len(reports) :]]

    def _run_divided(self, launch: Launch, shape: LaunchShape, began: float) -> LaunchReport | None:
        """Run a launch in several processes; None, and nothing has happened, where that may matter, or does not pay."""
        if self.jobs < 2 or self.schedule == "random" or shape.cooperative or self.observers:
            return None
        program, ctas = self._program(launch.kernel, explored=False), prod(shape.grid)
        waves = -(-ctas // self._slots(shape, program.variables.shared_end))
        if not processes.pays(program, waves) or not processes.divisible(program):
            return None
        parameters = self._pack(launch)

        def begin(chosen: range, reporter: processes.Reporter, footprint: Footprint) -> Scheduler:
            self.progress, self.heartbeat, self.outside = reporter.finished, reporter.beat, None
            return self._begin(launch, shape, parameters, watching_too=(footprint,), sample=chosen)

        divided = DividedLaunch(
            launch.kernel.name,
            self.name,
            program,
            self.memory,
            ctas,
            ctas // prod(shape.cluster or (1,)),
            jobs=min(self.jobs, waves),
            begin=begin,
            report=lambda scheduler, status: self._report(launch, scheduler, status, 0.0),
            progress=self.progress,
            heartbeat=self.heartbeat,
            max_steps=self.max_steps,
        )
        return divided.run(began)

    def _count(self, report: LaunchReport) -> None:
        """Note what a launch reports, and in its report what an earlier launch has reported already."""
        self._launches += 1
        counted = set[_Reported]()
        for position, finding in enumerate(report.findings):
            key = report.kernel, finding.code, finding.severity, finding.line, finding.instruction
            before = self._reported.get(key)
            if key not in counted:
                counted.add(key)
                self._reported[key] = Repeat(before.first, before.launches + 1) if before else Repeat(self._launches, 1)
            if self._reported[key].first < self._launches:
                report.repeats[position] = self._reported[key]

    def explore(
        self,
        kernel: Kernel,
        grid: Extent,
        block: Extent,
        args: Sequence[object],
        *,
        cluster: Extent | None = None,
        shared_bytes: int = 0,
        cooperative: bool = False,
        seconds: float | None = None,
    ) -> Exploration:
        """Launch a kernel in every order that holding one warp at one point makes, each from the same memory.

        A point is the moment before a release, an arrival, a wait, a strong access, an atomic or the issue of
        asynchronous work; the warp is held until nothing else can proceed. Memory keeps what the first order leaves.
        After `seconds` (None: no limit) the rest is counted, not tried. Raises what `launch` raises.
        """
        launch = Launch(kernel, grid, block, args, cluster, shared_bytes, cooperative)
        shape, refused = with_directives(kernel, launch.shape)
        refused = refusals(kernel) + refused
        parameters = self._pack(launch)
        if refused:
            report = LaunchReport("fault", refused, kernel=kernel.name, device=self.name)
            return Exploration(report, refused, status="fault")
        self._load(kernel)
        if cooperative and self._workspace is None:
            self._workspace = self.array(np.zeros(_WORKSPACE_BYTES, np.uint8))
        before = self.memory.copy()
        used = False

        def run(schedule: Schedule, held: Point | None, seed: int = 0) -> OneOrder:
            nonlocal used
            memory, used = (before.copy() if used else self.memory), True
            device = copy(self)
            device.schedule, device.seed = schedule, seed
            accesses = OrderOfAccesses()
            begin = partial(
                device._begin, launch, shape, parameters, explored=True, held=held, watching_too=(accesses,)
            )
            scheduler = begin(memory)
            status = scheduler.run()
            if memory is self.memory:
                self._print("".join(scheduler.machine.printed))
            if self.checks:
                if status in ("ok", "findings"):
                    status = judge(Rerun(scheduler, before, begin))
                else:
                    if status == "incomplete":
                        scheduler.machine.findings.cut_off()
                    scheduler.machine.findings.settle({}, failed=True)
            return OneOrder(device._report(launch, scheduler, status, 0.0), scheduler, accesses)

        return explore(run, seconds, self.progress)

    def _pack(self, launch: Launch) -> bytes:
        for index, value in enumerate(launch.args):
            if isinstance(value, DeviceArray) and not (isinstance(value, EmulatedArray) and value.is_in(self.memory)):
                raise KernelArgumentError(
                    f"argument {index} of {shown_name(launch.kernel.name)} is an array of another device; make it with "
                    "this one's .array() or .empty()"
                )
        return pack_arguments(launch.kernel, launch.args)

    def _begin(
        self,
        launch: Launch,
        shape: LaunchShape,
        parameters: bytes,
        memory: GlobalMemory | None = None,
        perturbation: Perturbation | None = None,
        checks: bool = True,
        *,
        explored: bool = False,
        held: Point | None = None,
        watching_too: Sequence[Observer] = (),
        sample: Sequence[int] | None = None,
    ) -> Scheduler:
        """A kernel on a new machine, or for a rerun on a copy of global memory.

        `sample`: the numbers of the clusters that run; None for all, or what `_sample` says.
        Raises LaunchError.
        """
        kernel = launch.kernel
        for info, value in zip(kernel.parameters, launch.args, strict=True):
            if isinstance(value, EmulatedArray | TensorMap):
                self.memory.name(value.address, info.name, rename=isinstance(value, EmulatedArray))
        target = parse_target(kernel.module.target or self.target)
        program = self._program(kernel, explored=explored)
        image = self._load(kernel)
        slots = self._slots(shape, program.variables.shared_end)
        config = MachineConfig(
            shape=shape,
            slots=slots,
            target=target,
            entry=kernel.entry.name,
            parameters=parameters,
            constants=image.constants,
            addresses=image.addresses,
            variables=program.variables,
            regions=kernel.regions,
            registers=program.registers,
            views=program.views,
            accumulators=program.accumulators,
            accumulator_copies=program.accumulator_copies,
            register_count=initial_count(kernel.entry),
            reads_time=program.reads_time,
            has_strong_loads=program.has_strong_loads
            or program.polls_atomically
            or (perturbation is not None and bool(perturbation.stale)),
            has_read_only_loads=program.has_read_only_loads,
            uses_reserved_shared=program.uses_reserved_shared,
            multiprocessors=min(self.told_multiprocessors or slots, slots),
            workspace=self._workspace.address if shape.cooperative and self._workspace is not None else 0,
        )
        self._require_memory(config)
        checks = self.checks and checks
        timeline = self._timeline(kernel)
        machine = Machine(config, memory or self.memory, timeline, Findings(checks), perturbation)
        observers = [*(() if perturbation is not None else self.observers), *watching_too]
        made = checks_of(machine, advice=self.advice if perturbation is None else None) if checks else []
        machine.observe(made, observers)
        machine.events.launch_begins(machine, program)
        if checks:
            machine.findings.accept([*self.accept, *inline_accepts(kernel)], kernel.name)
        if not self._any_target and not runs_on(target, parse_target(self.target)):
            machine.findings.report(
                launches.OTHER_TARGET,
                next((item for item in kernel.module.items if getattr(item, "name", "") == "target"), None),
                summary=f"{self.target} does not run a module for {target}; it is emulated as {target}",
                rule="",
                fix=f'use Emulator("{target}")',
            )
        watching = watchers(machine, program) if checks else []
        if perturbation is not None:
            return Scheduler(machine, program, None, Watchdog(self.max_steps), watching, held, explored=explored)
        watchdog = Watchdog(self.max_steps, self.timeout, self.heartbeat)
        progress = None if explored else self.progress
        sample = self._sample(machine.clusters.count) if sample is None else sample
        scheduler = Scheduler(machine, program, progress, watchdog, watching, held, explored=explored, sample=sample)
        scheduler.outside = self.outside
        return scheduler

    def _program(self, kernel: Kernel, *, explored: bool) -> Program:
        """The blocks that a launch executes."""
        return Program.of(kernel, self._hardware(kernel), divided=explored)

    def _timeline(self, kernel: Kernel) -> Timeline:
        """The virtual time of a launch of this kernel."""
        return Timeline(self.schedule, self.seed)

    def _sample(self, clusters: int) -> Sequence[int] | None:
        """The numbers of the clusters that run, of so many; None for all."""
        return None

    def _slots(self, shape: LaunchShape, shared_end: int) -> int:
        """How many CTAs run at a time: one on each multiprocessor, or all of a cooperative grid. Raises LaunchError."""
        size, ctas = prod(shape.cluster or (1,)), prod(shape.grid)
        resident = max(self.multiprocessors // size, 1) * size
        if not shape.cooperative:
            return min(ctas, resident)
        shared = max(shared_end + shape.shared_bytes - SHARED_RESERVED, 0)
        threads = prod(shape.block)
        each = limits.ctas_per_sm(self.target, threads=threads, registers=_FEW_REGISTERS, shared_bytes=shared)
        if ctas > (most := self.multiprocessors * each):
            raise LaunchError(
                f"a cooperative launch needs all {ctas} CTAs resident together; {self.multiprocessors} multiprocessors "
                f"hold at most {most} of this shape"
            )
        return ctas

    def _require_memory(self, config: MachineConfig) -> None:
        """Refuse what does not fit shared memory, or the local memory of a thread. Raises LaunchError."""
        size = config.variables.shared_end + config.shape.shared_bytes
        if size > (limit := shared_per_sm(self.target)):
            raise LaunchError(
                f"the CTA needs {size} bytes of shared memory ({SHARED_RESERVED} of them reserved by the system); "
                f"{self.target} has {limit}"
            )
        frame = config.variables.frames[config.entry]
        if frame > LOCAL_LIMIT:
            raise LaunchError(
                f"a thread of {config.entry} needs {frame} bytes of local memory; a thread has at most {LOCAL_LIMIT}"
            )
        threads = config.slots * -(-prod(config.shape.block) // 32) * 32
        if (total := threads * frame) > self.memory.limit:
            raise LaunchError(
                f"{threads} resident threads with {frame} bytes of local memory each need {total} bytes; the emulated "
                f"GPU has {self.memory.limit} (memory_bytes)"
            )

    def _report(self, launch: Launch, scheduler: Scheduler, status: Status | None, seconds: float) -> LaunchReport:
        machine = scheduler.machine
        if status is not None:
            machine.events.launch_ends(status)
        if status is None:
            machine.findings.report(launches.NOT_RUN, None, summary=_NOT_RUN, rule="", ends=True)
        findings = machine.findings.list()
        if findings:
            findings = SourceLines(launch.kernel.module).all_located(findings)
        return LaunchReport(
            status=status or "incomplete",
            findings=findings,
            instructions=scheduler.instructions,
            seconds=seconds,
            kernel=launch.kernel.name,
            device=self.name,
            stale_values=machine.strong_loads.returned(),
            unused_accepts=machine.findings.unused_accepts if status in ("ok", "findings") else [],
            used_accepts=machine.findings.used_accepts,
            source_files=source_files(launch.kernel.module) if findings else {},
            gaps=list(machine.findings.gaps),
            compiler=compiler_of(launch.kernel.text) if findings else None,
        )

    def _print(self, text: str) -> None:
        """Show what a kernel printed."""
        sys.stdout.write(text)

    def _not_run(self, launch: Launch) -> LaunchReport:
        return LaunchReport(
            "incomplete", [Finding("not-run", "error", _NOT_RUN)], kernel=launch.kernel.name, device=self.name
        )

    def _hardware(self, kernel: Kernel) -> Target:
        """The architecture that executes a kernel: this GPU's where it runs the module, else the module's target."""
        own, target = parse_target(self.target), parse_target(kernel.module.target or self.target)
        return own if not self._any_target and runs_on(target, own) else target

    def _load(self, kernel: Kernel) -> Image:
        """The module of a kernel in memory: its variables keep their values from launch to launch, as on a GPU."""
        image = self._images.pop(kernel.text, None)
        if image is None:
            image = Image(Program.of(kernel, self._hardware(kernel)).layout, self.memory)
        self._images[kernel.text] = image
        if len(self._images) > _LOADED_MODULES:
            self._images.popitem(last=False)
        return image
