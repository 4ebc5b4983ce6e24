"""Equal launches that need not run again."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ptxgen.device import LaunchReport
from ptxgen.driver.memory import SharedMemory
from ptxgen.driver.protocol import LaunchRequest
from ptxgen.driver.repeats import Repeats


class _Request:
    function, grid, block, cluster, shared_bytes, flags = 1, (1, 1, 1), (32, 1, 1), None, 0, 0

    def __init__(self, parameters: bytes) -> None:
        self.parameters = parameters


def _run(repeats: Repeats, memory: SharedMemory, change: int | None, parameters: bytes = b"") -> bool:
    """Whether a launch, which adds to the first byte of memory, had to run."""
    if repeats.begin(cast(LaunchRequest, _Request(parameters)), checks=True) is not None:
        return False
    memory.data[0] += change or 0
    repeats.end(LaunchReport("ok", [], kernel="k", device="d"), "")
    return True


def test_launches_that_change_nothing_run_twice() -> None:
    memory = SharedMemory(1 << 26)
    repeats = Repeats(memory)
    assert [_run(repeats, memory, 0) for _ in range(4)] == [True, True, False, False]
    memory.data[5] = 1  # by the program
    assert [_run(repeats, memory, 0) for _ in range(3)] == [True, False, False]
    assert [_run(repeats, memory, 0, b"x") for _ in range(3)] == [True, True, False]
    memory.allocate(100)
    assert [_run(repeats, memory, 0, b"x") for _ in range(3)] == [True, False, False]
    memory.close()


def test_launches_that_change_memory_all_run() -> None:
    memory = SharedMemory(1 << 26)
    repeats, compared = Repeats(memory), list[int]()
    is_as_before = repeats._is_as_before

    def counted() -> bool:
        compared.append(int(memory.data[0]))
        return is_as_before()

    cast(Any, repeats)._is_as_before = counted
    assert all(_run(repeats, memory, 1) for _ in range(100))
    assert memory.data[0] == 100
    assert compared == [2, 3, 5, 9, 17, 33, 65]  # after the second, and ever more seldom
    assert sum(_run(repeats, memory, 0) for _ in range(100)) == 29  # idle from the next comparison on
    assert np.count_nonzero(memory.data) == 1
    memory.close()
