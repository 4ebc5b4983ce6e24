"""Prepared launches, with a stand-in for the driver's call: what it would read at each launch."""

from __future__ import annotations

import ctypes
import random

from ptxgen.gemm import find
from ptxgen.gemm.selection.dispatch import Choice
from ptxgen.gpu.prepared import PreparedLaunch, _Config

Seen = tuple[tuple[int, ...], tuple[int, ...], int, int | None, list[bytes]]


def launcher(sizes: list[int], seen: list[Seen], status: int = 0):
    def enqueue(config: int, function: int, parameters: int, extra: None) -> int:
        read = _Config.from_address(config)
        pointers = (ctypes.c_void_p * len(sizes)).from_address(parameters)
        values = [ctypes.string_at(pointer or 0, size) for pointer, size in zip(pointers, sizes, strict=True)]
        assert extra is None
        assert function == 77
        assert all((pointer or 0) % 64 == 0 for pointer in pointers)
        assert (read.attributes, read.count) == (None, 0)
        seen.append((tuple(read.grid), tuple(read.block), read.shared_bytes, read.stream, values))
        return status

    return enqueue


def packed(declaration: str, value: object) -> bytes:
    if hasattr(value, "encode"):
        return value.encode()  # pyright: ignore[reportAttributeAccessIssue]
    size = 8 if ".u64" in declaration else 4
    return int(value).to_bytes(size, "little")  # pyright: ignore[reportArgumentType]


def test_a_launch_has_the_addresses_of_its_call() -> None:
    """A swapped kernel: three tensormaps, and C's address again."""
    plan = find("hopper/overlapped").plan(c_major="m", m_tile=64, n_tile=32, cluster_m=1, scheduler="grid", panel=0)
    choice = Choice(plan, 20, 200, 328)
    problem = choice.problem()
    marks = (1 << 44, 2 << 44, 3 << 44)
    declared = [declaration for declaration, _ in plan.parameters]

    def values(a: int, b: int, c: int) -> list[bytes]:
        given = problem.arguments(*choice.operands(a, b), c)
        return [packed(*each) for each in zip(declared, given, strict=True)]

    blank = values(*marks)
    first = [int.from_bytes(each[:8], "little") if len(each) >= 8 else 0 for each in blank]
    places = [[at for at, word in enumerate(first) if word == mark] for mark in marks]
    assert [len(each) for each in places] == [1, 1, 2]
    seen: list[Seen] = []
    enqueue = launcher([len(each) for each in blank], seen)
    launch = PreparedLaunch(77, problem.grid, problem.block, 4096, blank, places, enqueue)
    source = random.Random(1)
    for stream in (0, 1 << 40, 3):
        addresses = [source.randrange(1, 1 << 40) * 16 for _ in range(3)]
        assert launch(stream, addresses) == 0
        grid, block, shared_bytes, read, found = seen[-1]
        assert (grid, block, shared_bytes, read or 0) == (problem.grid, problem.block, 4096, stream)
        assert found == values(*addresses)


def test_the_status_of_the_driver_comes_back() -> None:
    seen: list[Seen] = []
    assert PreparedLaunch(77, (1, 1, 1), (32, 1, 1), 0, [], [], launcher([], seen, 1))(0, ()) == 1
    assert len(seen) == 1
