"""Kernels loaded once and launched on many rows: what differs is put into one set of arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.gpu.arms import Buffers, Built
from bench.gpu.cuda import Driver, Function, Parameters
from bench.gpu.suite import Row
from ptxgen.gemm.selection.arguments import Packed
from ptxgen.gemm.selection.dispatch import Choice


@dataclass
class _Room:
    """The workspace of all kernels, which run one after the other: each leaves its counters at 0."""

    words: Any = None

    def of(self, torch: Any, words: int) -> Any:
        """At least so many words; all were 0 at first."""
        if self.words is None or self.words.numel() < words:
            self.words = torch.zeros(words, dtype=torch.int32, device="cuda")
        return self.words


_ROOM = _Room()


class Loaded:
    """A kernel with its plan, on the device."""

    def __init__(self, driver: Driver, built: Built) -> None:
        self.name, self.plan = built.spec.name, built.spec.plan()
        self.function = Function(driver, built.cubin, self.plan.entry, self.plan.shared.bytes)


class PreparedArm:
    """A loaded kernel on a row. Tensormaps are encoded once; each set of buffers has its own addresses in them."""

    def __init__(self, torch: Any, loaded: Loaded, row: Row, buffers: Buffers) -> None:
        choice = Choice(loaded.plan, row.m, row.n, row.k)
        problem = choice.problem()
        self.name, self._loaded = loaded.name, loaded
        self._grid, self._block = problem.grid, problem.block
        table = problem.tile_order
        self._order = None if table is None else torch.from_numpy(table.view("int32")).cuda()
        packed = Packed.of(choice, problem, None if self._order is None else self._order.data_ptr())
        self._parameters: list[Parameters] = []
        words = problem.workspace_words
        self._workspace = _ROOM.of(torch, words) if words else None
        room = 0 if self._workspace is None else self._workspace.data_ptr()
        for matrices in zip(buffers.a, buffers.b, buffers.c, strict=True):
            values = list(packed.values)
            addresses = (*(each.data_ptr() for each in matrices), 0, room)
            for address, places in zip(addresses, packed.places, strict=True):
                for at in places:
                    values[at] = address.to_bytes(8, "little") + values[at][8:]
            self._parameters.append(Parameters(values))

    def launch(self, number: int, stream: int) -> None:
        self._loaded.function.launch(self._grid, self._block, self._parameters[number], stream)

    def close(self) -> None:
        pass
