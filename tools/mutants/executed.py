"""Which instructions launches execute: a mutant of another one is as right as its kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from ptxgen.emulator.load.program import Program

#: The line and column of an instruction.
Place = tuple[int, int]


@contextlib.contextmanager
def executed() -> Iterator[set[Place]]:
    """Launches in this context note the instructions that some thread executes, its guard being true."""
    places: set[Place] = set()
    bind: Callable[..., Any] = Program._bind

    def noted(program: Program, *arguments: Any) -> Any:
        operation = bind(program, *arguments)
        run, place = operation.run, (operation.statement.line, operation.statement.column)

        def execute(*given: Any) -> Any:
            places.add(place)
            return run(*given)

        operation.run = execute
        return operation

    with mock.patch.object(Program, "_bind", noted):
        yield places
