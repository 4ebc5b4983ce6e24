"""The heap that the emulator shares with programs."""

from __future__ import annotations

import mmap
import random

import numpy as np
import pytest

from ptxgen.device import LaunchError
from ptxgen.driver.memory import SharedMemory
from ptxgen.driver.protocol import Kind
from ptxgen.emulator.memory.faults import MemoryFault
from ptxgen.emulator.memory.global_memory import HEAP_BASE

MIB = 1 << 20


@pytest.fixture
def memory() -> SharedMemory:
    return SharedMemory(1 << 30)


def test_another_mapping_has_the_same_bytes(memory: SharedMemory) -> None:
    address = memory.allocate_for_program(4096, Kind.DEVICE)
    assert (memory.view(address, 4096) == 0xCD).all()
    with mmap.mmap(memory.descriptor, memory.limit) as other:
        other[address - HEAP_BASE : address - HEAP_BASE + 4] = b"abcd"
        assert memory.view(address, 4).tobytes() == b"abcd"
        memory.view(address + 4, 1)[:] = 7
        assert other[address - HEAP_BASE + 4] == 7


def test_alignment(memory: SharedMemory) -> None:
    for size, alignment in ((1, 512), (5000, 512), (MIB, 2 * MIB), (3 * MIB, 2 * MIB)):
        assert memory.allocate_for_program(size, Kind.DEVICE) % alignment == 0


def test_freed_memory_is_known_before_it_is_used_again(memory: SharedMemory) -> None:
    first = memory.allocate_for_program(1000, Kind.DEVICE)
    memory.free(first)
    assert "has been freed" in memory.describe(first + 10)
    with pytest.raises(MemoryFault):
        memory.offsets(np.array([[first]], np.uint64), 4, None, "a load")
    with pytest.raises(MemoryFault):
        memory.free(first)
    assert memory.find(first) is None
    assert memory.allocate_for_program(1000, Kind.DEVICE) != first


def test_a_loop_of_allocations_does_not_fill_the_heap(memory: SharedMemory) -> None:
    for _ in range(200):
        memory.free(memory.allocate_for_program(20 * MIB, Kind.DEVICE))
    assert memory.used < 300 * MIB


def test_more_than_there_is(memory: SharedMemory) -> None:
    with pytest.raises(LaunchError):
        memory.allocate_for_program(2 << 30, Kind.DEVICE)


def test_random_allocations_never_overlap(memory: SharedMemory) -> None:
    draw, live = random.Random(5), dict[int, int]()
    for _ in range(600):
        if live and draw.random() < 0.5:
            address = draw.choice(list(live))
            del live[address]
            memory.free(address)
            continue
        size = draw.choice([1, 100, 5000, 70_000, MIB, 9 * MIB])
        address = memory.allocate_for_program(size, Kind.DEVICE)
        assert all(address + size <= at or at + bytes <= address for at, bytes in live.items())
        live[address] = size
        for at, bytes in live.items():
            found = memory.find(at + bytes - 1)
            assert found is not None
            assert (found.address, found.bytes) == (at, bytes)


def test_a_lazy_allocation_takes_no_memory_until_it_is_written(memory: SharedMemory) -> None:
    address = memory.allocate_for_program(256 * MIB, Kind.DEVICE)
    assert not memory.view(address, 16).any()
    assert "byte 5" in memory.describe(address + 5)
