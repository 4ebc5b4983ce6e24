"""Registers that are read before anything is written to them.

Most registers are written on every way to where they are read, as the program's text shows. Only the others are
followed while it runs. As an address or a guard such a value is an error. It is advice where a value is stored, and
where the program never writes the register at all. Elsewhere compilers pass on values that do not matter: Triton's
reductions shuffle registers that only some lanes have loaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import Severity
from ptxgen.syntax import Statement

if TYPE_CHECKING:
    from ptxgen.emulator.group import Group
    from ptxgen.emulator.machine import Machine

_WORD = re.compile(r"[%$\w]+")


@dataclass(slots=True)
class Use:
    """What an instruction does to registers, by identity: `vital` are those that it reads as addresses.

    `stores` tells that what it reads goes to memory.
    """

    reads: frozenset[int]
    writes: frozenset[int]
    vital: frozenset[int]
    guarded: bool
    stores: bool


def never_sure(
    blocks: Sequence[Sequence[Use]], successors: Sequence[Sequence[int]], entries: Mapping[int, frozenset[int]]
) -> frozenset[int]:
    """The registers that some instruction reads to which, by the text alone, nothing may have been written before.

    `entries` are the blocks in which functions begin, with the registers that hold their parameters.
    """
    number = {each: bit for bit, each in enumerate({each for uses in blocks for use in uses for each in use.reads})}

    def mask(registers: frozenset[int]) -> int:
        return sum(1 << number[each] for each in registers if each in number)

    # What a block reads first, and what it surely writes.
    early, sure = [0] * len(blocks), [0] * len(blocks)
    for index, uses in enumerate(blocks):
        for use in uses:
            early[index] |= mask(use.reads) & ~sure[index]
            if not use.guarded:
                sure[index] |= mask(use.writes)
    everything = (1 << len(number)) - 1
    before = [everything] * len(blocks)
    waiting = list(entries)
    for entry, parameters in entries.items():
        before[entry] = mask(parameters)
    while waiting:
        index = waiting.pop()
        after = before[index] | sure[index]
        for following in successors[index]:
            if before[following] & ~after:
                before[following] &= after
                waiting.append(following)
    unsure = 0
    for index in range(len(blocks)):
        unsure |= early[index] & ~before[index]
    return frozenset(each for each, bit in number.items() if unsure >> bit & 1)


class Unwritten:
    """Follows which lanes have written some registers, and reports those that read before."""

    def __init__(self, machine: Machine, followed: frozenset[int], ever: frozenset[int]) -> None:
        self._machine = machine
        #: The registers that some instruction writes.
        self._ever = ever
        self._written: dict[int, NDArray[np.bool_]] = {
            each: np.zeros((machine.warps, 32), np.bool_) for each in followed
        }
        # Registers are emptied for each CTA, and so are these.
        machine.registers.extend(self._written.values())

    def watched(
        self, run: Callable[..., Any], use: Use, statement: Statement, names: Callable[[str], Any]
    ) -> Callable[..., Any]:
        """An instruction's `run` that reports what it reads too early, and marks what it writes."""
        reads: list[tuple[int, Severity]] = [
            (each, "error" if each in use.vital else "advice")
            for each in use.reads & self._written.keys()
            if each in use.vital or use.stores or each not in self._ever
        ]
        writes = [self._written[each] for each in use.writes if each in self._written]
        if not reads and not writes:
            return run

        def watched(g: Group, *rest: Any) -> Any:
            for each, severity in reads:
                self._require(g, each, statement, names, severity)
            result = run(g, *rest)
            for array in writes:
                g.store(array, np.asarray(True))
            return result

        return watched

    def watched_guard(
        self, guard: Callable[..., Any], use: frozenset[int], statement: Statement, names: Callable[[str], Any]
    ) -> Callable[..., Any]:
        """The same for a guard, which all lanes read that come to the instruction."""
        reads = [each for each in use if each in self._written]
        if not reads:
            return guard

        def watched(g: Group) -> Any:
            for each in reads:
                self._require(g, each, statement, names, "error")
            return guard(g)

        return watched

    def _require(
        self, g: Group, register: int, statement: Statement, names: Callable[[str], Any], severity: Severity
    ) -> None:
        missing = g.active & ~self._written[register][g.rows]
        if missing.any():
            name = next((word for word in _WORD.findall(statement.text) if id(names(word)) == register), "a register")
            self._machine.findings.add(
                "uninitialized-register",
                f"reads {name}, to which nothing has been written",
                statement,
                severity=severity,
            )
