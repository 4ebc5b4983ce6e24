"""Consoles, tables and the progress bar: what the commands share of rich."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:
    from ptxgen.emulator.schedule.watchdog import Progress as Running

_WIDEST = 110
#: Columns below which tables are arranged otherwise.
NARROW = 50


@contextmanager
def output() -> Iterator[Console]:
    """Standard output: colors on a terminal only, lines not too long to read, no trailing spaces in a file."""
    console = Console(file=sys.stdout, highlight=False)
    console.width = min(console.width, _WIDEST)
    if console.is_terminal:
        yield console
        return
    with console.capture() as captured:
        yield console
    sys.stdout.write("".join(line.rstrip() + "\n" for line in captured.get().splitlines()))


def text_of(show: Callable[[Console], None], width: int = 100) -> str:
    """What is shown on a console of so many columns, as plain text."""
    console = Console(file=io.StringIO(), highlight=False, width=width, color_system=None)
    with console.capture() as captured:
        show(console)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def grid(*styles: str, gap: int = 2) -> Table:
    """A table without lines, one style a column; only the last column wraps."""
    table = Table.grid(padding=(0, gap, 0, 0))
    for index, style in enumerate(styles):
        table.add_column(style=style, no_wrap=index < len(styles) - 1, overflow="fold")
    return table


def pairs(console: Console, *styles: str) -> Table:
    """A table of names and texts; where the terminal is narrow, names too are broken into lines."""
    table = grid(*(styles or ("dim", "")))
    if console.width < NARROW:
        table.columns[0].no_wrap, table.columns[0].max_width = False, max(6, console.width // 3)
    return table


class Steps:
    """What is being done now, and how far it is."""

    def __init__(self, bar: Progress | None = None) -> None:
        self._bar = bar
        self._task = None if bar is None else bar.add_task("", total=None, rate="")

    def begin(self, what: str) -> None:
        """Start a step of unknown length."""
        if self._bar is not None and self._task is not None:
            self._bar.reset(self._task, description=what, total=None)

    def advance(self, done: int, total: int) -> None:
        """So many of so many are done."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total)

    def rate(self, now: Running) -> None:
        """How far a launch is, and how fast."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, rate=f"{now.steps:,} steps, {now.steps_per_second:,.0f}/s")


@contextmanager
def steps() -> Iterator[Steps]:
    """A progress bar on standard error while there is work; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield Steps()
        return
    bar = Progress(
        TextColumn("[cyan]{task.description}"),
        BarColumn(bar_width=32),
        MofNCompleteColumn(),
        TextColumn("[dim]{task.fields[rate]}"),
        TimeElapsedColumn(),
        console=Console(file=sys.stderr),
        transient=True,
    )
    with bar:
        yield Steps(bar)
