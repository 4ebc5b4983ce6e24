"""A device that knows only the GEMM: it reads A and B through the encoded tensormaps and writes C as bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ptxgen.descriptors import TensorMap
from ptxgen.device import (
    DeviceArray,
    DTypeLike,
    Extent,
    Finding,
    Kernel,
    LaunchReport,
    array_shape,
    host_array,
    pack_arguments,
)
from ptxgen.dtypes import scalar_type

BASE = 0x7F00_0000_0040  # not a multiple of 256, so that the job has to align C itself

#: Changes C (fp32, M×N) before it is rounded, or the memory after it is stored, at C's offset.
ChangeC = Callable[[np.ndarray], None]
ChangeMemory = Callable[[bytearray, int, int], None]


class FakeArray(DeviceArray):
    def __init__(self, memory: bytearray, shape: Extent, dtype: DTypeLike) -> None:
        super().__init__(BASE + len(memory), shape, dtype)
        self._memory, self._offset = memory, len(memory)
        memory.extend(bytes(-(-self.nbytes // 64) * 64))

    def read_bytes(self) -> bytes:
        return bytes(self._memory[self._offset : self._offset + self.nbytes])

    def write_bytes(self, data: bytes) -> None:
        self._memory[self._offset : self._offset + self.nbytes] = data


class FakeDevice:
    """Computes the right C unless told otherwise. `report` replaces the launch's outcome."""

    name = "a fake"
    target = "sm_100a"

    def __init__(
        self,
        change_c: ChangeC | None = None,
        change_memory: ChangeMemory | None = None,
        report: LaunchReport | None = None,
        keep: Callable[[tuple[int, int]], np.ndarray] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.memory = bytearray()
        self.change_c, self.change_memory, self.report, self.keep = change_c, change_memory, report, keep
        self.progress = progress
        self.c_address = 0

    def array(self, values: object, dtype: DTypeLike | None = None) -> FakeArray:
        given = host_array(values, dtype)
        made = FakeArray(self.memory, given.shape, given.dtype)
        made.write(given)
        return made

    def empty(self, shape: Extent, dtype: DTypeLike) -> FakeArray:
        return FakeArray(self.memory, shape, dtype)

    def launch(
        self,
        kernel: Kernel,
        grid: Extent,
        block: Extent,
        args: Sequence[object],
        *,
        cluster: Extent | None = None,
        shared_bytes: int = 0,
        cooperative: bool = False,
    ) -> LaunchReport:
        packed = pack_arguments(kernel, args)
        maps = [TensorMap.decode(packed[start : start + 128]) for start in (0, 128)]
        self.c_address = int.from_bytes(packed[256:264], "little")
        ldc, m, n, _ = (int.from_bytes(packed[start : start + 4], "little") for start in (264, 268, 272, 276))
        assert ldc == n
        assert array_shape(block) == (128, 1, 1)
        assert shared_bytes > 0
        a, b = (self._matrix(each).astype(np.float32) for each in maps)
        c = a @ b.T
        if self.change_c is not None:
            self.change_c(c)
        dtype = np.dtype(scalar_type(kernel.name.split("_")[2]))
        stored = np.ascontiguousarray(c.astype(dtype))
        start = self.c_address - BASE
        if self.keep is not None:  # elements that are never stored
            old = np.frombuffer(bytes(self.memory[start : start + stored.nbytes]), dtype).reshape(m, n)
            stored = np.where(self.keep((m, n)), old, stored)
        self.memory[start : start + stored.nbytes] = stored.tobytes()
        if self.change_memory is not None:
            self.change_memory(self.memory, start, start + stored.nbytes)
        if self.progress is not None:
            self.progress(1, 1)
        return self.report or LaunchReport("ok", instructions=1234567, kernel=kernel.name, device=self.name)

    def _matrix(self, tensormap: TensorMap) -> np.ndarray:
        columns, rows = tensormap.dims
        dtype = np.dtype(scalar_type(tensormap.dtype))
        start = tensormap.address - BASE
        data = bytes(self.memory[start : start + rows * columns * dtype.itemsize])
        return np.frombuffer(data, dtype).reshape(rows, columns)


def deadlock() -> FakeDevice:
    """A device on which every kernel waits for ever at line 90."""
    finding = Finding("deadlock", "error", "4 warps wait for a phase that nothing completes", 91, "mbarrier.try_wait")
    return FakeDevice(report=LaunchReport("deadlock", [finding], 99, kernel="gemm", device="a fake"))
