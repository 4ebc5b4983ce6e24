"""The driver's calls that the benchmark makes: modules, launches, graphs."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Sequence
from typing import Any

_RELAXED = "CU_STREAM_CAPTURE_MODE_RELAXED"


class CudaError(RuntimeError):
    """The driver refused a call."""


class Driver:
    """The driver of cuda-bindings, in the context of this thread, which torch has made."""

    def __init__(self) -> None:
        self.cuda: Any = importlib.import_module("cuda.bindings.driver")
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: object) -> Any:
        status, *answers = getattr(self.cuda, name)(*arguments)
        if int(status) != 0:
            _, words = self.cuda.cuGetErrorString(status)
            raise CudaError(f"{name}: {status.name}: {words.decode() if isinstance(words, bytes) else words}")
        return answers[0] if answers else None


class Function:
    """An entry of a cubin, with the most dynamic shared memory that its launches take."""

    def __init__(self, driver: Driver, cubin: bytes, entry: str, shared_bytes: int = 0) -> None:
        self._driver = driver
        self._module = driver.call("cuModuleLoadData", cubin)
        self._function = driver.call("cuModuleGetFunction", self._module, entry.encode())
        self.shared_bytes = shared_bytes
        if shared_bytes:
            name = driver.cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            driver.call("cuFuncSetAttribute", self._function, name, shared_bytes)

    def launch(
        self, grid: Sequence[int], block: Sequence[int], parameters: Parameters, stream: int, *, dependent: bool = False
    ) -> None:
        """A cluster's extents are in the entry itself (.reqnctapercluster).

        `dependent`: may begin before what is before it in the stream has ended (programmatic dependent launch).
        """
        if not dependent:
            self._driver.call(
                "cuLaunchKernel", self._function, *grid, *block, self.shared_bytes, stream, parameters.address, 0
            )
            return
        cuda = self._driver.cuda
        attribute = cuda.CUlaunchAttribute()
        attribute.id = cuda.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
        config = cuda.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid
        config.blockDimX, config.blockDimY, config.blockDimZ = block
        config.sharedMemBytes, config.hStream = self.shared_bytes, cuda.CUstream(stream)
        config.numAttrs, config.attrs = 1, [attribute]
        self._driver.call("cuLaunchKernelEx", config, self._function, parameters.address, 0)

    def close(self) -> None:
        self._driver.call("cuModuleUnload", self._module)


class Parameters:
    """The parameters of a launch as the driver takes them; each is bytes of its own."""

    def __init__(self, values: Sequence[bytes]) -> None:
        self._values = [ctypes.create_string_buffer(value, len(value)) for value in values]
        self._pointers = (ctypes.c_void_p * max(len(values), 1))(*(ctypes.addressof(each) for each in self._values))

    @property
    def address(self) -> int:
        return ctypes.addressof(self._pointers)


class Graph:
    """What `body` does on a stream, captured."""

    def __init__(self, driver: Driver, stream: int, body: Callable[[], None]) -> None:
        self._driver = driver
        mode = getattr(driver.cuda.CUstreamCaptureMode, _RELAXED)
        driver.call("cuStreamBeginCapture", stream, mode)
        try:
            body()
        finally:
            graph = driver.call("cuStreamEndCapture", stream)
        self._graph = driver.call("cuGraphInstantiate", graph, 0)
        driver.call("cuGraphDestroy", graph)

    def launch(self, stream: int) -> None:
        self._driver.call("cuGraphLaunch", self._graph, stream)

    def close(self) -> None:
        self._driver.call("cuGraphExecDestroy", self._graph)
