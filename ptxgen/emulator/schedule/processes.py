"""A launch whose independent clusters are divided among processes.

A process that is forked runs its clusters on a copy of memory, with all checks, and notes which bytes of global memory
they read and write. If every process ends without a finding, and no byte that one writes is read or written by another,
the clusters had nothing to do with each other: what they wrote is put together. Else nothing has happened, and the
launch runs in one process, which finds what there is to find in its usual order.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import mmap
import os
import pickle
import re
import select
import signal
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import Accept, LaunchReport
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.load.program import Program
from ptxgen.emulator.memory.global_memory import GlobalMemory
from ptxgen.emulator.observers.footprint import Footprint
from ptxgen.emulator.schedule.watchdog import Progress

#: Instructions, those of the text once for each wave, from which on processes are worth what it takes to begin them.
LEAST = 1_000
#: Counters of a process's progress: exited CTAs, and steps.
_COUNTS = 2
#: Seconds between two looks at the progress of the processes.
_LOOK = 1.0
#: Seconds without progress after which processes count as stuck: a thread that was not forked may have held a lock.
_SILENT = 120.0
#: Accesses to global memory, or to what other clusters share, whose order or outcome depends on other clusters. Of
#: those to shared memory, which say so, none does.
_TOGETHER = re.compile(
    r"(atom|red|ld|st)\b(?=.*\.(volatile|relaxed|acquire|release|acq_rel|mmio))(?!.*\.shared)"
    r"|(atom|red)\b(?!.*\.shared)|cp\.reduce|(multimem|discard|griddepcontrol|clusterlaunchcontrol|tensormap|fabric)\b"
    r"|(tex|tld4|suld|sust|sured)\b|st\.async\b(?!.*\.shared)"
)
#: Reads of where or when a CTA runs, and system calls that print or allocate in the order of calls.
_PLACE_OR_TIME = re.compile(r"%(clock|globaltimer|smid|nsmid|warpid|gridid|envreg|pm\d)|\.extern\s+\.func")
_OUTCOME = "outcome of a division"
_PR_SET_PDEATHSIG = 1


def divisible(program: Program) -> bool:
    """Whether the clusters of a program may have nothing to do with each other; False once they had."""
    found = program.found.get(_OUTCOME)
    if found is None:
        found = not (
            program.reads_time
            or program.has_strong_loads
            or _PLACE_OR_TIME.search(program.kernel.text)
            or any(_TOGETHER.match(each.statement.opcode) for each in program.operations)
        )
        program.found[_OUTCOME] = found
    return found is True


def pays(program: Program, waves: int) -> bool:
    """Whether a launch of so many waves of CTAs may be faster in several processes.

    The CTAs of a wave run together, instruction by instruction: to divide a wave saves little.
    """
    return hasattr(os, "fork") and waves > 1 and waves * len(program.operations) >= LEAST


def keep_whole(program: Program) -> None:
    """Launches of a program stay in one process: parts of one have found something, or had to do with each other."""
    program.found[_OUTCOME] = False


@dataclass(frozen=True)
class Part:
    """What the clusters of one process have done: bits of bytes that they have accessed and written, and the latter."""

    instructions: int
    steps: int
    used_accepts: list[Accept]
    unused_accepts: list[Accept]
    gaps: list[str]
    touched: NDArray[np.uint8]
    written: NDArray[np.uint8]
    values: NDArray[np.uint8]

    @classmethod
    def of(cls, report: LaunchReport, steps: int, footprint: Footprint, memory: GlobalMemory) -> Part:
        """What a report, the footprint and the memory after it say."""
        written = footprint.written
        return cls(
            report.instructions,
            steps,
            report.used_accepts,
            report.unused_accepts,
            report.gaps,
            np.packbits(footprint.accessed),
            np.packbits(written),
            memory.data[: len(written)][written],
        )


def independent(parts: Sequence[Part]) -> bool:
    """Whether no part accesses a byte that another one writes, and all were checked alike."""
    if any(part.gaps != parts[0].gaps for part in parts):
        return False
    touched, written = np.zeros_like(parts[0].touched), np.zeros_like(parts[0].written)
    for part in parts:
        if any_set(part.written & touched) or any_set(part.touched & written):
            return False
        touched |= part.touched
        written |= part.written
    return True


def put_together(parts: Sequence[Part], memory: GlobalMemory) -> None:
    """Write what independent parts have written."""
    for part in parts:
        written = np.unpackbits(part.written).view(np.bool_)
        memory.data[: len(written)][written] = part.values


class NoAnswer(Exception):
    """Raised in a process whose clusters did not come to an end."""


class Reporter:
    """Where a process leaves how far it is, for the one that waits: it may be read at any time."""

    def __init__(self, counts: NDArray[np.int64]) -> None:
        self._counts = counts

    def finished(self, done: int, ctas: int) -> None:
        """As `Emulator.progress`."""
        self._counts[0] = done

    def beat(self, progress: Progress) -> None:
        """As `Emulator.heartbeat`."""
        self._counts[1] = progress.steps


def run_parts(
    run: Callable[[range, Reporter], Part | None],
    clusters: int,
    jobs: int,
    looks: Callable[[int, int], None],
) -> list[Part | None]:
    """Run `run` for every so many-th cluster in a process each, up to the first None that one gives.

    Nothing, if a process ends without an answer: `run` has raised, or it was killed; or if none gets any further.
    `looks` gets the CTAs that have ended and the steps so far, now and then.
    """
    board = mmap.mmap(-1, jobs * _COUNTS * 8)
    counts = np.frombuffer(board, np.int64).reshape(jobs, _COUNTS)
    children: dict[int, int] = {}
    received: dict[int, list[bytes]] = {}
    parts: list[Part | None] = []
    try:
        for number in range(jobs):
            reading, writing = os.pipe()
            with warnings.catch_warnings():  # of threads: the process runs nothing but the emulator
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if not child:
                os.close(reading)
                _work(run, range(number, clusters, jobs), Reporter(counts[number]), writing)
            os.close(writing)
            children[reading], received[reading] = child, []
        look, last, moved = time.monotonic() + _LOOK, [0, 0], time.monotonic()
        while children:
            ready, _, _ = select.select(list(children), [], [], max(look - time.monotonic(), 0.0))
            for each in ready:
                data = os.read(each, 1 << 20)
                received[each].append(data)
                if not data:
                    os.close(each)
                    os.waitpid(children.pop(each), 0)
                    answer = b"".join(received.pop(each))
                    if not answer:
                        return []
                    parts.append(pickle.loads(answer))
                    if parts[-1] is None:
                        return parts
            if time.monotonic() >= look or not children:
                now = counts.sum(axis=0).tolist()
                if now != last:
                    last, moved = now, time.monotonic()
                elif time.monotonic() - moved > _SILENT:
                    return []
                looks(*now)
                look = time.monotonic() + _LOOK
    finally:
        for each, child in children.items():
            os.close(each)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        del counts
        with contextlib.suppress(BufferError):  # a traceback may have a view of it
            board.close()
    return parts


def _work(run: Callable[[range, Reporter], Part | None], chosen: range, reporter: Reporter, writing: int) -> None:
    """What a forked process does; it ends with it."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        with contextlib.suppress(OSError, AttributeError):  # Linux: it ends with the process that waits
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        gc.freeze()
        part = run(chosen, reporter)
        with os.fdopen(writing, "wb") as file:
            pickle.dump(part, file, protocol=pickle.HIGHEST_PROTOCOL)
    finally:
        os._exit(0)
