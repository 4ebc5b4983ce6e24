"""The configuration of a machine: a kernel's program on its target, and the shape of a launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxgen.device import LaunchShape, SharedRegion
from ptxgen.emulator.load.registers import Register
from ptxgen.emulator.load.variables import Variables
from ptxgen.emulator.memory.bank import Bank
from ptxgen.instr.model.targets import Target


@dataclass(frozen=True)
class MachineConfig:
    """`slots` CTAs run at a time. `addresses` are those of the module's global variables, by the number of the symbol.

    `views` are registers, by number, that instructions take as other types. `register_count` is how many a thread
    begins with (None: setmaxnreg has no effect). `uses_reserved_shared` says whether the program asks where the part of
    shared memory lies that the system keeps for cooperative groups, `workspace` is the address at which barriers of a
    cooperative launch's grid count (0: it is not cooperative).
    """

    shape: LaunchShape
    slots: int
    target: Target
    entry: str
    parameters: bytes
    constants: Bank
    addresses: Sequence[int]
    variables: Variables
    regions: Sequence[SharedRegion]
    registers: Sequence[Register]
    views: Sequence[tuple[int, np.dtype[Any]]]
    accumulators: Mapping[int, int]
    accumulator_copies: frozenset[int]
    register_count: int | None
    reads_time: bool
    has_strong_loads: bool
    has_read_only_loads: bool
    uses_reserved_shared: bool
    workspace: int
    #: Value of %nsmid; resident CTAs share multiprocessors where there are fewer.
    multiprocessors: int
