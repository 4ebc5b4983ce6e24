"""How far long work is, on standard error: a bar with the time that is left on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

#: Seconds between two lines where standard error is no terminal.
EVERY = 10.0


class Progress:
    """A context that counts items of some work, such as "mutants"; without words for them it shows nothing.

    `effort` is that of all items, in any unit: the time that is left follows from what is done of it.
    """

    def __init__(self, what: str, items: int, effort: float | None = None) -> None:
        self._what, self._items = what, items
        self._effort = float(items if effort is None else effort)
        self._done, self._done_effort = 0, 0.0
        self._began = self._told = time.monotonic()
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Progress:
        if self._what and sys.stderr.isatty():
            self._bar = _bar()
            self._task = self._bar.add_task(self._what, total=self._items, left="")
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, effort: float = 1.0) -> None:
        """One more item is done."""
        self._done += 1
        self._done_effort += effort
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done, left=self._left())
        elif self._what and (now := time.monotonic()) - self._told >= EVERY:
            self._told = now
            words = f"{self._done} of {self._items} {self._what}, {now - self._began:.0f} s"
            print(words + (f", {self._left()}" if self._left() else ""), file=sys.stderr, flush=True)

    def _left(self) -> str:
        if not 0 < self._done_effort < self._effort:
            return ""
        spent = time.monotonic() - self._began
        return f"about {duration(spent / self._done_effort * (self._effort - self._done_effort))} left"


def duration(seconds: float) -> str:
    """Seconds in words: "40 s", "12 min", "3 h 5 min"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    return Bar(
        TextColumn("[cyan]{task.description}"),
        BarColumn(bar_width=32),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[left]}"),
        console=Console(file=sys.stderr),
        transient=True,
        redirect_stdout=sys.stdout.isatty(),  # else what goes to a file would go to the terminal
    )
