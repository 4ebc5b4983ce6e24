"""Which instructions launches execute: of a mutant of another one they say nothing."""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Set
from typing import Any
from unittest import mock

from ptxgen import syntax
from ptxgen.device import kernel as kernels
from ptxgen.emulator.load.program import Program
from ptxgen.syntax import Instruction, walk

#: The line and column of an instruction.
Place = tuple[int, int]


def instructions(text: str) -> list[Instruction]:
    """The instructions of a kernel's text."""
    bodies = [function.body.statements for function in syntax.parse(text).functions if function.body is not None]
    return [each for body in bodies for each in walk(body) if isinstance(each, Instruction)]


def missed(text: str, places: Set[Place]) -> list[Instruction]:
    """The instructions of a kernel's text that are not among those executed."""
    return [each for each in instructions(text) if (each.line, each.column) not in places]


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

    # Kernels of other launches have programs that note nothing, and those of this context must not stay. Machine code
    # would execute runs of instructions without these operations.
    with (
        mock.patch.object(Program, "_bind", noted),
        mock.patch.object(kernels, "_RECENT", OrderedDict()),
        mock.patch.dict(os.environ, {"PTXGEN_NATIVE": "0"}),
    ):
        yield places
