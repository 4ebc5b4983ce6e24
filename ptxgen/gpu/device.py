"""`Gpu`: the calls of `ptxgen.device.Device` on an NVIDIA GPU, through the driver binding of cuda-bindings.

Assembling is left to `ptxgen.toolchain`, packing of arguments to `ptxgen.device`.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib
import math
import os
import sys
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from ptxgen.descriptors import TensorMap
from ptxgen.device import (
    DeviceArray,
    DTypeLike,
    Extent,
    Finding,
    Kernel,
    KernelArgumentError,
    Launch,
    LaunchReport,
    LaunchShape,
    host_array,
    pack_arguments,
    torch_tensor,
)
from ptxgen.gpu.prepared import PreparedLaunch, driver_enqueue
from ptxgen.gpu.tensormap import encode_with_driver
from ptxgen.toolchain import assemble

_LOADED_MODULES = 32  # how many modules stay loaded; the least recently launched goes first
_PORTABLE_CLUSTER = 8


class GpuNotFoundError(RuntimeError):
    """This machine has no usable NVIDIA GPU: no driver, no cuda-bindings, or no such device."""


class GpuError(RuntimeError):
    """The driver refused a call; the message holds its own words."""


class GpuArray(DeviceArray):
    """An array in a GPU's memory, freed when the last reference to it goes."""

    def __init__(self, gpu: Gpu, shape: Extent, dtype: DTypeLike) -> None:
        super().__init__(0, shape, dtype)
        self._gpu = gpu
        self.address = gpu._allocate(self.nbytes)
        # Not at exit: the driver has gone by then, and the memory with it.
        weakref.finalize(self, gpu._free, self.address).atexit = False

    def read_bytes(self) -> bytes:
        return self._gpu._read(self.address, self.nbytes)

    def write_bytes(self, data: bytes) -> None:
        self._gpu._write(self.address, self.nbytes, data)


class GpuView(DeviceArray):
    """Memory of a GPU that belongs to another library, as a torch tensor does; no copy, and kept alive by `owner`."""

    def __init__(self, gpu: Gpu, address: int, shape: Extent, dtype: DTypeLike, owner: object) -> None:
        super().__init__(address, shape, dtype)
        self._gpu, self.owner = gpu, owner

    def read_bytes(self) -> bytes:
        return self._gpu._read(self.address, self.nbytes)

    def write_bytes(self, data: bytes) -> None:
        self._gpu._write(self.address, self.nbytes, data)


class Gpu:
    """One NVIDIA GPU. `device` is its number as the driver counts; `ptxas` the assembler, else the one found.

    Torch tensors on the GPU are arguments of launches, and bases of tensormaps (`view`), without a copy. A launch with
    one of them runs on torch's current stream, so that it is ordered with torch's own work and can be captured in a
    CUDA graph; other launches run on the legacy default stream.

    Raises GpuNotFoundError where there is none. A kernel that faults ends CUDA for the whole process: its
    launch and every later one report status "fault", and every later use of an array raises GpuError.
    """

    def __init__(self, device: int = 0, ptxas: str | os.PathLike[str] | None = None) -> None:
        self._cuda = _driver()
        self._fault = ""
        self._ptxas = ptxas
        self._modules: OrderedDict[tuple[str, str], tuple[Any, Any]] = OrderedDict()
        #: Functions of prepared launches, which stay loaded: a CUDA graph may have one.
        self._prepared: dict[tuple[bytes, str], int] = {}
        count = int(_checked(self._cuda, "cuDeviceGetCount"))
        if not 0 <= device < count:
            raise GpuNotFoundError(f"there is no GPU {device}: the driver sees {count}, numbered from 0")
        self.number = device
        self._device = _checked(self._cuda, "cuDeviceGet", device)
        self._context = _checked(self._cuda, "cuDevicePrimaryCtxRetain", self._device)
        raw_name = self._call("cuDeviceGetName", 256, self._device)
        self._name = bytes(raw_name).split(b"\0")[0].decode("utf-8", errors="replace")
        attribute = self._cuda.CUdevice_attribute
        self._capability = (
            self._attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            self._attribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        )

    @property
    def name(self) -> str:
        """The driver's name of the GPU, such as "NVIDIA H200"."""
        return self._name

    @property
    def driver(self) -> Any:
        """The driver binding, for its types."""
        return self._cuda

    @property
    def version(self) -> str:
        """The CUDA version that the driver supports, such as "13.0"."""
        number = int(self._call("cuDriverGetVersion"))
        return f"{number // 1000}.{number % 1000 // 10}"

    def call(self, name: str, *args: object) -> Any:
        """One driver call in this GPU's context; its answer. Raises GpuError."""
        return self._call(name, *args)

    @property
    def target(self) -> str:
        """The target with all that this GPU can do: "sm_90a" for compute capability 9.0, "sm_86" for 8.6."""
        return target_of_capability(*self._capability)

    def array(self, values: object, dtype: DTypeLike | None = None) -> GpuArray:
        """Copy host values, as `dtype` if one is given, into new GPU memory (256-byte aligned, as the driver does).

        `host_array` says what is taken.
        """
        given = host_array(values, dtype)
        array = GpuArray(self, given.shape, given.dtype)
        array.write(given)
        return array

    def empty(self, shape: Extent, dtype: DTypeLike) -> GpuArray:
        """New GPU memory whose contents are undefined."""
        return GpuArray(self, shape, dtype)

    def view(self, tensor: object) -> GpuView:
        """The memory of a torch tensor on this GPU, without a copy. Raises KernelArgumentError for any other."""
        found = torch_tensor(tensor)
        if found is None or not found.is_cuda:
            what = f"a tensor on {found.device}" if found is not None else f"a {type(tensor).__name__}"
            raise KernelArgumentError(f"Gpu.view takes a torch tensor on this GPU, not {what}")
        if found.device.index != self.number:
            raise KernelArgumentError(f"the tensor is on {found.device}, and this is GPU {self.number}")
        if not found.is_contiguous():
            raise KernelArgumentError(
                f"the tensor of shape {tuple(found.shape)} has strides {found.stride()}; make it .contiguous(), or "
                "pass .data_ptr() to a kernel that takes strides"
            )
        return GpuView(self, found.data_ptr(), tuple(found.shape), str(found.dtype), found)

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
        """Assemble a kernel for this GPU (once), run it and wait for its end.

        While torch's current stream is captured, a launch with a tensor is recorded in the graph and not waited for;
        let the same kernel run once before, since assembling and loading it is no part of a graph.

        `grid` and `cluster` are in CTAs, `block` in threads, `shared_bytes` is dynamic shared memory per CTA.
        What the driver or the device refuses gives a report with status "fault". Raises LaunchError,
        KernelArgumentError and AssemblerError for errors found before the launch.
        """
        return self.launch_overlapping([Launch(kernel, grid, block, args, cluster, shared_bytes, cooperative)])[0]

    def launch_overlapping(self, launches: Sequence[Launch]) -> list[LaunchReport]:
        """Run the kernels of one stream and wait for them; each may begin before the one before it has ended.

        They are launched with the attribute programmaticStreamSerialization (CUDA programming guide, programmatic
        dependent launch). `seconds` of each report is the time of all; a fault is the fault of all. Raises what
        `launch` raises.
        """
        stream = self._stream(value for each in launches for value in each.args)
        launches = [
            replace(each, args=[self.view(value) if torch_tensor(value) is not None else value for value in each.args])
            for each in launches
        ]
        shapes = [each.shape for each in launches]
        packed = [pack_arguments(each.kernel, each.args) for each in launches]
        names = [each.kernel.name for each in launches]
        try:
            functions = [self._function(each.kernel) for each in launches]
            kernels = [each.kernel for each in launches]
            seconds = self._run(list(zip(functions, kernels, shapes, packed, strict=True)), stream)
        except GpuError as error:
            finding = Finding("gpu-fault", "error", str(error))
            return [LaunchReport("fault", [finding], kernel=name, device=self.name) for name in names]
        return [LaunchReport("ok", seconds=seconds, kernel=name, device=self.name) for name in names]

    def prepare(
        self,
        cubin: bytes,
        entry: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        parameters: Sequence[bytes],
        places: Sequence[Sequence[int]],
    ) -> PreparedLaunch:
        """A launch whose calls cost little: see PreparedLaunch. The kernel stays loaded. Raises GpuError."""
        key = hashlib.sha256(cubin).digest(), entry
        function = self._prepared.get(key)
        if function is None:
            module = self._call("cuModuleLoadData", cubin)
            loaded = self._call("cuModuleGetFunction", module, entry.encode())
            name = self._cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._call("cuFuncSetAttribute", loaded, name, shared_bytes)
            function = self._prepared[key] = int(loaded)
        return PreparedLaunch(function, grid, block, shared_bytes, parameters, places, driver_enqueue())

    def refused(self, status: int) -> NoReturn:
        """Raises GpuError for a launch that the driver refused with a status."""
        name = self._cuda.CUresult(status).name
        raise GpuError(f"cuLaunchKernelEx: {name}")

    def tensormap(self, made: TensorMap) -> bytes:
        """The 128 bytes that the driver encodes for the arguments of a map. Raises GpuError where it refuses them.

        Kernels take the library's own encoding; this is for comparing the two.
        """
        return encode_with_driver(self._cuda, self._call, made)

    def enqueue(
        self,
        kernel: Kernel,
        grid: Extent,
        block: Extent,
        args: Sequence[object],
        *,
        cluster: Extent | None = None,
        shared_bytes: int = 0,
        stream: int | None = None,
    ) -> None:
        """Launch a kernel and do not wait for it; what goes wrong on the device shows in a later call.

        `stream` is a CUstream as a number; without one it is that of `launch`. The arguments must live until the
        kernel has run. Raises GpuError, LaunchError, KernelArgumentError, AssemblerError.
        """
        used = self._stream(args) if stream is None else self._cuda.CUstream(stream)
        shape = LaunchShape.of(grid, block, cluster, shared_bytes)
        given = [self.view(value) if torch_tensor(value) is not None else value for value in args]
        self._enqueue([(self._function(kernel), kernel, shape, pack_arguments(kernel, given))], used)

    def _stream(self, args: Iterable[object]) -> Any:
        """Torch's current stream where one of the arguments is, or views, a tensor of torch; else the default one."""
        for value in args:
            if torch_tensor(value.owner if isinstance(value, GpuView) else value) is not None:
                return self._cuda.CUstream(sys.modules["torch"].cuda.current_stream(self.number).cuda_stream)
        return self._cuda.CUstream(0)

    def _enqueue(self, launches: Sequence[tuple[Any, Kernel, LaunchShape, bytes]], stream: Any) -> None:
        configs = [
            self._config(function, shape, stream, overlaps=number > 0)
            for number, (function, _, shape, _) in enumerate(launches)
        ]
        for config, (function, kernel, _, packed) in zip(configs, launches, strict=True):
            # One pointer per parameter: the driver has the cubin's layout (see Kernel.parameters).
            host = ctypes.create_string_buffer(packed, max(len(packed), 1))
            base = ctypes.addressof(host)
            pointers = (ctypes.c_void_p * max(len(kernel.parameters), 1))(
                *(base + info.offset for info in kernel.parameters)
            )
            self._call("cuLaunchKernelEx", config, function, ctypes.addressof(pointers), 0)

    def _run(self, launches: Sequence[tuple[Any, Kernel, LaunchShape, bytes]], stream: Any) -> float:
        idle = self._cuda.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
        if int(stream) and self._call("cuStreamIsCapturing", stream) != idle:
            self._enqueue(launches, stream)
            return 0.0
        start, end = self._call("cuEventCreate", 0), self._call("cuEventCreate", 0)
        try:
            self._call("cuEventRecord", start, stream)
            self._enqueue(launches, stream)
            self._call("cuEventRecord", end, stream)
            self._call("cuCtxSynchronize")
            milliseconds = self._call("cuEventElapsedTime", start, end)
        finally:
            self._cuda.cuEventDestroy(start)
            self._cuda.cuEventDestroy(end)
        return float(milliseconds) / 1e3

    def _config(self, function: Any, shape: LaunchShape, stream: Any, *, overlaps: bool) -> Any:
        """The driver's description of a launch, whose function is made fit for it."""
        cuda, ids = self._cuda, self._cuda.CUlaunchAttributeID
        attributes = []
        if shape.shared_bytes:
            name = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._call("cuFuncSetAttribute", function, name, shape.shared_bytes)
        if shape.cluster is not None:
            if math.prod(shape.cluster) > _PORTABLE_CLUSTER:
                name = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
                self._call("cuFuncSetAttribute", function, name, 1)
            attribute = cuda.CUlaunchAttribute()
            attribute.id = ids.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            extents = attribute.value.clusterDim
            extents.x, extents.y, extents.z = shape.cluster
            attributes.append(attribute)
        if shape.cooperative:
            attribute = cuda.CUlaunchAttribute()
            attribute.id = ids.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
            attribute.value.cooperative = 1
            attributes.append(attribute)
        if overlaps:
            attribute = cuda.CUlaunchAttribute()
            attribute.id = ids.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            attribute.value.programmaticStreamSerializationAllowed = 1
            attributes.append(attribute)
        config = cuda.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = shape.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = shape.block
        config.sharedMemBytes = shape.shared_bytes
        config.hStream = stream
        config.numAttrs = len(attributes)
        config.attrs = attributes
        return config

    def _function(self, kernel: Kernel) -> Any:
        key = (kernel.text, kernel.name)
        if key in self._modules:
            self._modules.move_to_end(key)
            return self._modules[key][1]
        # Line tables lead a profiler's samples to PTX lines; they change no instruction.
        cubin = assemble(kernel.text, self.target, self._ptxas, options=("-lineinfo",))
        module = self._call("cuModuleLoadData", cubin.data)
        function = self._call("cuModuleGetFunction", module, kernel.name.encode())
        self._modules[key] = (module, function)
        if len(self._modules) > _LOADED_MODULES:
            _, (oldest, _) = self._modules.popitem(last=False)
            self._call("cuModuleUnload", oldest)
        return function

    def _attribute(self, which: Any) -> int:
        return int(self._call("cuDeviceGetAttribute", which, self._device))

    def _read(self, address: int, count: int) -> bytes:
        data = bytearray(count)
        if data:
            host = (ctypes.c_char * len(data)).from_buffer(data)
            self._call("cuMemcpyDtoH", ctypes.addressof(host), address, len(data))
        return bytes(data)

    def _write(self, address: int, count: int, data: bytes) -> None:
        if len(data) != count:
            raise ValueError(f"the array has {count} bytes, but {len(data)} were given")
        if data:
            self._call("cuMemcpyHtoD", address, data, len(data))

    def _allocate(self, count: int) -> int:
        return int(self._call("cuMemAlloc", max(count, 1)))

    def _free(self, address: int) -> None:
        with contextlib.suppress(GpuError):
            self._call("cuMemFree", address)

    def _call(self, name: str, *args: object) -> Any:
        """One driver call in this GPU's context, from whatever thread."""
        if self._fault:
            raise GpuError(f"an earlier kernel ended CUDA in this process ({self._fault}); start a new process")
        try:
            _checked(self._cuda, "cuCtxSetCurrent", self._context)
            return _checked(self._cuda, name, *args)
        except GpuError as error:
            # An error that lasts is answered to every later call; a refused call leaves the context usable.
            if int(self._cuda.cuCtxSynchronize()[0]) != 0:
                self._fault = str(error)
            raise


def target_of_capability(major: int, minor: int) -> str:
    """The PTX target of a compute capability, with the architecture's own features where it has any."""
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


def _driver() -> Any:
    """The initialized driver binding."""
    advice = "Emulator runs kernels without a GPU"
    try:
        driver: Any = importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise GpuNotFoundError(
            f"cuda-bindings is missing ({error}), install it with: pip install 'ptxgen[gpu]'; {advice}"
        ) from error
    try:
        (status,) = driver.cuInit(0)
    except (RuntimeError, OSError) as error:
        raise GpuNotFoundError(
            f"this machine has no NVIDIA driver that can be loaded ({_one_line(error)}); {advice}"
        ) from error
    if int(status) != 0:
        raise GpuNotFoundError(f"the NVIDIA driver found no usable GPU ({status.name}); {advice}")
    return driver


def _checked(cuda: Any, name: str, *args: object) -> Any:
    """Call the driver; its answer without the status, or GpuError with the driver's own words."""
    status, *answers = getattr(cuda, name)(*args)
    if int(status) != 0:
        _, words = cuda.cuGetErrorString(status)
        text = words.decode(errors="replace") if isinstance(words, bytes) else str(words)
        raise GpuError(f"{name}: {status.name}: {text}")
    if not answers:
        return None
    return answers[0] if len(answers) == 1 else tuple(answers)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
