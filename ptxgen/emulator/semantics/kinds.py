"""What a declaration's semantics return: the function that runs it, by kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.state.group import Group

if TYPE_CHECKING:
    from ptxgen.emulator.load.program import Block, Operation
    from ptxgen.emulator.schedule.scheduler import Scheduler

#: Executes the instruction for all warps of a group.
Plain = Callable[[Group], None]
#: Key of `Warps.wake` that each warp waits for, and the lanes (warps, 32) that pass; None: all pass.
Passing = tuple[Callable[[int], object] | None, NDArray[np.bool_] | None]
#: As Plain, for the lanes that pass; the others are held, and try again when they are woken.
Blocking = Callable[[Group, "Scheduler"], Passing]
#: Moves the lanes of a group to the blocks where they go on.
Terminator = Callable[[Group, "Scheduler", "Block", "Operation"], None]
