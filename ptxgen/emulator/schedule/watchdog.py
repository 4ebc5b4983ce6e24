"""The limits of a launch, in steps and in seconds, and reports of its progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ptxgen.emulator.checks.registry import launches
from ptxgen.emulator.load.program import Incomplete
from ptxgen.syntax import Instruction

#: The clock is read every so many steps, and progress reported every so many seconds.
_STEPS, _SECONDS = 16, 1.0


@dataclass(frozen=True)
class Progress:
    """How far a launch is: CTAs that have ended, of all, blocks of instructions that have run, and seconds."""

    done: int
    ctas: int
    steps: int
    seconds: float

    @property
    def steps_per_second(self) -> float:
        return self.steps / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        return (
            f"{self.done} of {self.ctas} CTAs, {self.steps} steps in {self.seconds:.0f} s "
            f"({self.steps_per_second:.0f} steps/s)"
        )


class Watchdog:
    """Ends a launch after `max_steps`, or `timeout` seconds (None: never). `notify` gets its progress each second."""

    def __init__(
        self, max_steps: int, timeout: float | None = None, notify: Callable[[Progress], None] | None = None
    ) -> None:
        self.max_steps, self._timeout, self._notify = max_steps, timeout, notify
        self._began = self._notified = time.monotonic()

    def require(self, least: int, ctas: int, resident: int) -> None:
        """Refuse a grid that takes at least so many steps. Raises Incomplete."""
        if least > self.max_steps:
            raise Incomplete(
                None,
                f"step limit: a grid of {ctas} CTAs, {resident} of them resident at a time, takes at least {least} "
                f"steps; max_steps is {self.max_steps}",
                launches.STEP_LIMIT,
            )

    def allows(self, steps: int, limit: int) -> int:
        """Up to which step, at most `limit`, a launch that has taken so many may go on without asking."""
        limit = min(limit, self.max_steps)
        if self._timeout is None and self._notify is None:
            return limit
        return min(limit, steps - steps % _STEPS + _STEPS - 1)

    def step(self, steps: int, done: int, ctas: int, at: Instruction | None) -> None:
        """A launch is about to run a block, which begins with an instruction. Raises Incomplete."""
        if steps > self.max_steps:
            raise Incomplete(at, f"step limit ({self.max_steps}) reached here; raise max_steps", launches.STEP_LIMIT)
        if steps % _STEPS or (self._timeout is None and self._notify is None):
            return
        now = time.monotonic()
        progress = Progress(done, ctas, steps, now - self._began)
        if self._timeout is not None and progress.seconds > self._timeout:
            message = f"time limit ({self._timeout:g} s) reached here, after {progress}; raise timeout"
            raise Incomplete(at, message, launches.TIME_LIMIT)
        if self._notify is not None and now - self._notified >= _SECONDS:
            self._notified = now
            self._notify(progress)
