"""How often each instruction of a kernel runs, and which never do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.arrays import count_nonzero
from ptxgen.emulator.load.source_lines import SourceLines
from ptxgen.emulator.observer import Lanes, MachineView, Observer, ProgramView
from ptxgen.syntax import Instruction, Module


@dataclass(slots=True)
class Count:
    """How often warps have reached an instruction, for how many threads its guard let it execute, and how many not."""

    warps: int = 0
    threads: int = 0
    predicated_off: int = 0


class LineCounts(Observer):
    """Counts over all launches that it observes, by instruction.

    A try_wait that suspends its warp counts once.
    """

    def __init__(self) -> None:
        self._counts: dict[int, tuple[Instruction, Count]] = {}
        self._module: Module | None = None

    def launch_begins(self, machine: MachineView, program: ProgramView) -> None:
        self._module = program.kernel.module

    def instruction_issued(
        self, warps: NDArray[np.int64], lanes: Lanes, executes: Lanes, statement: Instruction
    ) -> None:
        _, count = self._counts.setdefault(id(statement), (statement, Count()))
        threads = int(count_nonzero(executes))
        count.warps += len(warps)
        count.threads += threads
        count.predicated_off += int(count_nonzero(lanes)) - threads

    def count(self, statement: Instruction) -> Count:
        """The counts of an instruction of a module that was launched."""
        return self._counts[id(statement)][1] if id(statement) in self._counts else Count()

    def by_line(self, module: Module | None = None) -> Mapping[int, Count]:
        """The counts of every line of a module that has instructions, in order; of several on a line the most.

        Without a module, of the one that was launched last.
        """
        found: dict[int, Count] = {}
        for statement in _instructions(self._of(module)):
            count = self.count(statement)
            before = found.get(statement.line)
            if before is None or count.warps > before.warps:
                found[statement.line] = count
        return dict(sorted(found.items()))

    def coverage(self, module: Module | None = None) -> tuple[int, int]:
        """How many instructions have been executed by some thread, and how many there are."""
        every = list(_instructions(self._of(module)))
        return sum(self.count(each).threads > 0 for each in every), len(every)

    def _of(self, module: Module | None) -> Module:
        found = module or self._module
        if found is None:
            raise ValueError("no launch has been counted yet")
        return found

    def listing(self, module: Module | None = None) -> str:
        """The text with the counts of its lines: warp-instructions, and the part of the threads that executed them.

        A line that no thread executed begins with `-`. Behind a `.loc` stands the file and line that it names.
        """
        module = self._of(module)
        sources = SourceLines(module)
        counts = self.by_line(module)
        width = max((len(f"{count.warps:,}") for count in counts.values()), default=1)
        lines: list[str] = []
        for number, text in enumerate(str(module).splitlines(), 1):
            count = counts.get(number)
            if count is None:
                shown = ""
                if text.lstrip().startswith(".loc ") and (source := sources.of(number)):
                    text = f"{text}  // {source}"
            elif not count.threads:
                shown = f"- {count.warps:>{width},}"
            else:
                part = count.threads / (count.threads + count.predicated_off)  # never rounded up to all
                shown = f"  {count.warps:>{width},} {'' if part == 1 else f'{min(part, 0.99):4.0%}'}"
            lines.append(f"{shown:<{width + 7}} {number:>5}  {text}".rstrip())
        return "\n".join(lines)


def _instructions(module: Module) -> Iterator[Instruction]:
    return (statement for statement in module.statements() if isinstance(statement, Instruction))
