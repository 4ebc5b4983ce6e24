"""tcgen05.ld and tcgen05.st in flight, until tcgen05.wait. PTX ISA 9.7.16.8."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ptxgen.emulator.engines.work import AsyncWork
from ptxgen.syntax import Statement


@dataclass(slots=True, eq=False)
class TensorLoad:
    """A tcgen05.ld: the registers that it writes, by number, and the cells that it reads; `complete` ends it now."""

    registers: frozenset[int]
    statement: Statement
    bands: list[int]
    #: Columns, in parts where .16x32bx2 has two.
    spans: Sequence[range]
    complete: Callable[[], None]
    done: bool = False


@dataclass(slots=True, eq=False)
class TensorStore:
    """A tcgen05.st; `complete` ends it now."""

    work: AsyncWork
    complete: Callable[[], None]
    done: bool = False


class TensorTransfers:
    """The loads and stores of each warp for which it has not waited, in the order of their issue."""

    def __init__(self) -> None:
        self.loads: dict[int, list[TensorLoad]] = {}
        self.stores: dict[int, list[TensorStore]] = {}

    def remove(self, warp: int, load: TensorLoad) -> None:
        """A warp has read a register of a load, and so waited for it."""
        self.loads[warp].remove(load)
        if not self.loads[warp]:
            del self.loads[warp]
