"""Kernels loaded once and launched on many rows: what differs is put into one set of arguments."""

from __future__ import annotations

from typing import Any

from bench.gpu.arms import Buffers, Built
from bench.gpu.cuda import Driver, Function, Parameters
from bench.gpu.suite import Row
from ptxgen.gemm.selection.arguments import Packed
from ptxgen.gemm.selection.dispatch import Choice


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
        for matrices in zip(buffers.a, buffers.b, buffers.c, strict=True):
            values = list(packed.values)
            for matrix, places in zip(matrices, packed.places, strict=False):
                for at in places:
                    values[at] = matrix.data_ptr().to_bytes(8, "little") + values[at][8:]
            self._parameters.append(Parameters(values))

    def launch(self, number: int, stream: int) -> None:
        self._loaded.function.launch(self._grid, self._block, self._parameters[number], stream)

    def close(self) -> None:
        pass
