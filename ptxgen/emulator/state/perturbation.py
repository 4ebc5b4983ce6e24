"""Perturbed memory of a rerun: other bytes where the launch read undefined memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.memory.granules import GRANULE
from ptxgen.emulator.memory.located import MemoryAccess
from ptxgen.emulator.memory.shared_memory import SharedMemory
from ptxgen.emulator.state.raced_loads import RacedLoads
from ptxgen.syntax import Statement

#: Granules of shared memory that each asynchronous operation, by number, accesses at a wrong time: (CTA slot, units of
#: 16 bytes).
AccessedGranules = dict[int, list[tuple[int, NDArray[np.int64]]]]


def shuffled_by(statement: Statement) -> str:
    """The source that stands for undefined values of a shuffle."""
    return f"shuffle of line {statement.line}"


@dataclass(frozen=True)
class Perturbation:
    """What a rerun puts where nothing has been written yet: `byte` into shared memory if `shared`, and into `sources`;
    `odd` into the lowest byte of registers of odd lanes; `values` into registers, by number. In place of what
    operations read while it is being written (`reads`), or write while others write it, there is `byte` too.
    """

    byte: int
    shared: bool = False
    sources: frozenset[int | str] = frozenset()
    odd: int | None = None
    values: Mapping[int | str, int] = field(default_factory=dict)
    reads: AccessedGranules = field(default_factory=dict)
    writes: AccessedGranules = field(default_factory=dict)
    #: Replacements of values that weak loads get from bytes that another thread may be storing.
    raced: RacedLoads | None = None
    #: Lines of weak loads that return stale values like relaxed ones (`StaleLoads`), wherever these may.
    stale: frozenset[int] = frozenset()
    #: Warps run one after the other, as far as each can, in ascending or descending order; "": all together.
    one_by_one: Literal["ascending", "descending", ""] = ""

    def fill(self, register: NDArray[Any], source: int | str) -> None:
        """Put its bytes into a register, (warps, 32) or more, of some warps."""
        if register.dtype == np.bool_:
            register[...] = True
            return
        if source in self.values and register.ndim == 2:
            value = self.values[source].to_bytes(16, "little")[: register.itemsize]
            register[...] = np.frombuffer(value, register.dtype)
            return
        lanes = register.view(np.uint8).reshape(len(register), 32, -1)
        lanes[...] = self.byte
        if self.odd is not None:
            lanes[:, 1::2, 0] = self.odd

    @contextmanager
    def during(self, memory: SharedMemory, numbers: Sequence[int]) -> Iterator[None]:
        """While these operations read: the bytes are back afterwards."""
        kept: list[tuple[NDArray[np.complex128], NDArray[np.int64], NDArray[np.complex128]]] = []
        for number in numbers:
            for slot, granules in self.reads.get(number, ()):
                words = memory.data[slot].view(np.complex128)
                kept.append((words, granules, words[granules]))
                words[granules] = self._unit()
        yield
        for words, granules, before in reversed(kept):
            words[granules] = before

    def after(self, memory: SharedMemory, number: int) -> None:
        """Once this operation has written."""
        for slot, granules in self.writes.get(number, ()):
            memory.data[slot].view(np.complex128)[granules] = self._unit()

    def loaded(self, access: MemoryAccess, values: Sequence[NDArray[Any]]) -> None:
        """Once a weak load has got its values."""
        if self.raced is not None:
            self.raced.replace(access, values, self.byte)

    def metadata(self, nibbles: NDArray[np.uint8], wrong: NDArray[np.bool_], legal: Sequence[int]) -> NDArray[np.uint8]:
        """Metadata of a sparse matrix with each illegal nibble replaced by a legal one."""
        return np.where(wrong, np.uint8(legal[(self.byte >> 1) % len(legal)]), nibbles)

    def _unit(self) -> NDArray[np.complex128]:
        return np.full(GRANULE, self.byte, np.uint8).view(np.complex128)
