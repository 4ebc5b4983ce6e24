"""`Gpu` without a GPU: what is said where there is none, and which driver calls a launch makes."""

import ctypes
import gc
import importlib
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ptxgen.device import Device, Kernel, KernelArgumentError, Launch
from ptxgen.gpu import Gpu, GpuError, GpuNotFoundError
from ptxgen.gpu import device as gpu_device

real: Any = importlib.import_module("cuda.bindings.driver")
OK = real.CUresult.CUDA_SUCCESS


class FakeDriver:
    """The driver's types, with calls that are recorded and answered from host memory."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.refuse: dict[str, Any] = {}
        self.memory: dict[int, Any] = {}
        self.parameters: list[bytes] = []
        self.sizes: list[int] = []
        self.lasting = False

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            return getattr(real, name)

        def call(*args: Any) -> tuple[Any, ...]:
            self.calls.append((name, args))
            if name in self.refuse:
                return (self.refuse[name],)
            answer = getattr(self, f"_{name}", lambda *_: None)(*args)
            return (OK,) if answer is None else (OK, answer)

        return call

    def named(self, name: str) -> list[tuple[Any, ...]]:
        return [args for called, args in self.calls if called == name]

    def cuGetErrorString(self, status: Any) -> tuple[Any, bytes]:
        return OK, b"words of the driver"

    def _cuDeviceGetCount(self) -> int:
        return 1

    def _cuDeviceGetName(self, length: int, device: int) -> bytes:
        return b"NVIDIA Fake" + bytes(length - 11)

    def _cuDeviceGetAttribute(self, which: Any, device: int) -> int:
        return 9 if which == real.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR else 0

    def _cuMemAlloc(self, count: int) -> int:
        assert count > 0, "the driver refuses to allocate nothing"
        buffer = ctypes.create_string_buffer(count)
        self.memory[ctypes.addressof(buffer)] = buffer
        return ctypes.addressof(buffer)

    def _cuMemFree(self, address: int) -> None:
        del self.memory[address]

    def _cuMemcpyHtoD(self, address: int, data: bytes, count: int) -> None:
        ctypes.memmove(address, data, count)

    def _cuMemcpyDtoH(self, host: int, address: int, count: int) -> None:
        ctypes.memmove(host, address, count)

    def _cuEventCreate(self, flags: int) -> object:
        return object()

    def _cuEventElapsedTime(self, start: object, end: object) -> float:
        return 2.5

    def _cuModuleLoadData(self, image: bytes) -> SimpleNamespace:
        assert image[:4] == b"\x7fELF"
        return SimpleNamespace(image=image)

    def _cuModuleGetFunction(self, module: Any, name: bytes) -> bytes:
        return name

    def _cuLaunchKernelEx(self, config: Any, function: Any, pointers: int, extra: int) -> None:
        table = (ctypes.c_void_p * len(self.sizes)).from_address(pointers)
        self.parameters = [
            ctypes.string_at(address, size) for address, size in zip(table, self.sizes, strict=True) if address
        ]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    driver = FakeDriver()
    monkeypatch.setattr(gpu_device, "_driver", lambda: driver)
    return driver


def test_importing_needs_no_driver() -> None:
    code = "import ptxgen.gpu, ptxgen.device, sys; sys.exit('cuda.bindings.driver' in sys.modules)"
    assert subprocess.run([sys.executable, "-W", "error", "-c", code], check=False).returncode == 0


def test_there_is_no_such_gpu() -> None:
    with pytest.raises(GpuNotFoundError) as caught:
        Gpu(device=999)
    assert "\n" not in str(caught.value)


def test_cuda_python_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    with pytest.raises(GpuNotFoundError, match=r"pip install 'ptxgen\[gpu\]'"):
        Gpu()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            RuntimeError("libcuda.so.1:\n not found."),
            r"no NVIDIA driver that can be loaded \(libcuda\.so\.1: not found\)",
        ),
        ((real.CUresult.CUDA_ERROR_NO_DEVICE,), r"no usable GPU \(CUDA_ERROR_NO_DEVICE\)"),
    ],
)
def test_no_driver_or_no_device(monkeypatch: pytest.MonkeyPatch, answer: Any, words: str) -> None:
    def initialize(flags: int) -> tuple[Any]:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", SimpleNamespace(cuInit=initialize))
    with pytest.raises(GpuNotFoundError, match=words):
        Gpu()


@pytest.mark.parametrize(
    ("capability", "target"),
    [((8, 6), "sm_86"), ((9, 0), "sm_90a"), ((10, 0), "sm_100a"), ((10, 3), "sm_103a"), ((12, 1), "sm_121a")],
)
def test_targets(capability: tuple[int, int], target: str) -> None:
    assert gpu_device.target_of_capability(*capability) == target


def test_a_gpu_is_a_device(fake: FakeDriver) -> None:
    gpu = Gpu()
    assert isinstance(gpu, Device)
    assert (gpu.name, gpu.target) == ("NVIDIA Fake", "sm_90a")


def test_arrays_are_copied_and_freed(fake: FakeDriver) -> None:
    gpu = Gpu()
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    array = gpu.array(values.T)
    np.testing.assert_array_equal(array.numpy(), values.T)
    array.write(values.T + 1)
    np.testing.assert_array_equal(array.numpy(), values.T + 1)
    assert gpu.empty((0, 4), np.int8).numpy().shape == (0, 4)
    assert array.address in fake.memory
    del array
    gc.collect()
    assert fake.memory == {}


def test_each_parameter_is_passed_on_its_own(fake: FakeDriver, load: Callable[[str], Kernel]) -> None:
    gpu = Gpu()
    kernel = load("parameters")
    fake.sizes = [info.size for info in kernel.parameters]
    out = gpu.empty(8, np.uint64)
    report = gpu.launch(kernel, 1, 1, [1, out, 2, bytes(range(128)), 3, 1.0, 2.0])
    assert (report.status, report.seconds, report.instructions) == ("ok", 0.0025, 0)
    assert fake.parameters == [
        b"\x01",
        out.address.to_bytes(8, "little"),
        b"\x02\x00",
        bytes(range(128)),
        b"\x03",
        np.float32(1.0).tobytes(),
        np.float64(2.0).tobytes(),
    ]


def test_the_launch_shape_reaches_the_driver(fake: FakeDriver, load: Callable[[str], Kernel]) -> None:
    gpu = Gpu()
    kernel = load("cluster_ids")
    out = gpu.empty(64, np.uint32)
    assert gpu.launch(kernel, (16, 2), (32, 2), [out], cluster=(16,), shared_bytes=1000).ok
    ((config, function, _, _),) = fake.named("cuLaunchKernelEx")
    assert function == b"cluster_ids"
    assert (config.gridDimX, config.gridDimY, config.gridDimZ) == (16, 2, 1)
    assert (config.blockDimX, config.blockDimY, config.blockDimZ) == (32, 2, 1)
    assert (config.sharedMemBytes, config.numAttrs) == (1000, 1)
    cluster = config.attrs[0].value.clusterDim
    assert (cluster.x, cluster.y, cluster.z) == (16, 1, 1)
    name = real.CUfunction_attribute
    assert [args[1:] for args in fake.named("cuFuncSetAttribute")] == [
        (name.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1000),
        (name.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
    ]


def test_launches_that_overlap_say_so(fake: FakeDriver, load: Callable[[str], Kernel]) -> None:
    """All but the first, and between them there is nothing in the stream."""
    gpu = Gpu()
    out = gpu.empty(64, np.uint32)
    launches = [Launch(load("cluster_ids"), 2, 32, [out], cluster=each) for each in (None, None, 2)]
    reports = gpu.launch_overlapping(launches)
    assert [(each.status, each.seconds) for each in reports] == [("ok", 0.0025)] * 3
    ids = real.CUlaunchAttributeID
    attributes = [{attribute.id for attribute in config.attrs} for config, *_ in fake.named("cuLaunchKernelEx")]
    overlaps, cluster = (
        ids.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        ids.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
    )
    assert attributes == [set(), {overlaps}, {overlaps, cluster}]
    names = [name for name, _ in fake.calls]
    first = names.index("cuLaunchKernelEx")
    assert [name for name in names[first : first + 8] if name not in ("cuCtxSetCurrent",)][:3] == [
        "cuLaunchKernelEx"
    ] * 3
    fake.refuse["cuLaunchKernelEx"] = real.CUresult.CUDA_ERROR_INVALID_VALUE
    assert [each.status for each in gpu.launch_overlapping(launches)] == ["fault"] * 3


def test_a_kernel_is_assembled_once(fake: FakeDriver, load: Callable[[str], Kernel]) -> None:
    gpu = Gpu()
    out = gpu.empty(2, np.uint32)
    for _ in range(3):
        assert gpu.launch(load("cluster_ids"), 1, 32, [out]).ok
    assert len(fake.named("cuModuleLoadData")) == 1
    assert len(fake.named("cuEventDestroy")) == 6


def test_old_modules_are_unloaded(
    fake: FakeDriver, load: Callable[[str], Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_device, "_LOADED_MODULES", 1)
    gpu = Gpu()
    out = gpu.empty(64, np.uint32)
    gpu.launch(load("cluster_ids"), 1, 32, [out])
    gpu.launch(load("dynamic_shared"), 1, 32, [out, 0])
    assert len(fake.named("cuModuleUnload")) == 1


def test_a_refused_launch_is_a_fault_and_the_gpu_stays(fake: FakeDriver, load: Callable[[str], Kernel]) -> None:
    gpu = Gpu()
    out = gpu.empty(2, np.uint32)
    fake.refuse["cuLaunchKernelEx"] = real.CUresult.CUDA_ERROR_INVALID_VALUE
    report = gpu.launch(load("cluster_ids"), 1, 32, [out])
    assert report.status == "fault"
    assert [(finding.code, finding.severity) for finding in report.findings] == [("gpu-fault", "error")]
    assert "cuLaunchKernelEx: CUDA_ERROR_INVALID_VALUE: words of the driver" in report.summary()
    fake.refuse.clear()
    assert gpu.launch(load("cluster_ids"), 1, 32, [out]).ok


def test_a_kernel_that_faults_ends_the_gpu(fake: FakeDriver, load: Callable[[str], Kernel]) -> None:
    gpu = Gpu()
    out = gpu.empty(2, np.uint32)
    fake.refuse["cuCtxSynchronize"] = real.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    assert gpu.launch(load("cluster_ids"), 1, 32, [out]).status == "fault"
    assert "start a new process" in gpu.launch(load("cluster_ids"), 1, 32, [out]).summary()
    with pytest.raises(GpuError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        out.numpy()


class FakeTensor:
    """A CUDA tensor of torch as far as `Gpu` looks at one."""

    def __init__(self, device: int = 0, *, contiguous: bool = True, cuda: bool = True) -> None:
        self.is_cuda, self.dtype, self.shape = cuda, "torch.bfloat16", (4, 8)
        self.device = SimpleNamespace(index=device)
        self._contiguous = contiguous

    def data_ptr(self) -> int:
        return 0x7F00AA00

    def is_contiguous(self) -> bool:
        return self._contiguous

    def stride(self) -> tuple[int, ...]:
        return (8, 1) if self._contiguous else (1, 4)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch whose current stream is number 77."""
    stream = SimpleNamespace(cuda_stream=77)
    made = SimpleNamespace(Tensor=FakeTensor, cuda=SimpleNamespace(current_stream=lambda device: stream))
    monkeypatch.setitem(sys.modules, "torch", made)


@pytest.mark.usefixtures("torch")
def test_a_tensor_is_an_argument_on_the_current_stream(fake: FakeDriver, load: Callable[[str], Kernel]) -> None:
    gpu = Gpu()
    fake.sizes = [8]
    assert gpu.launch(load("cluster_ids"), 1, 32, [FakeTensor()]).ok
    config, *_ = fake.named("cuLaunchKernelEx")[0]
    assert int(config.hStream) == 77
    assert fake.parameters[0] == (0x7F00AA00).to_bytes(8, "little")
    assert gpu.launch(load("cluster_ids"), 1, 32, [gpu.view(FakeTensor())]).ok
    assert gpu.launch(load("cluster_ids"), 1, 32, [gpu.empty(4, "u32")]).ok
    assert [int(config.hStream) for config, *_ in fake.named("cuLaunchKernelEx")] == [77, 77, 0]
    assert (gpu.view(FakeTensor()).address, gpu.view(FakeTensor()).nbytes) == (0x7F00AA00, 64)


@pytest.mark.usefixtures("torch")
def test_a_captured_launch_is_not_waited_for(
    fake: FakeDriver, load: Callable[[str], Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu, active = Gpu(), real.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE
    monkeypatch.setattr(fake, "_cuStreamIsCapturing", lambda stream: active, raising=False)
    report = gpu.launch(load("cluster_ids"), 1, 32, [FakeTensor()])
    assert (report.status, report.seconds) == ("ok", 0.0)
    assert len(fake.named("cuLaunchKernelEx")) == 1
    assert not fake.named("cuEventRecord")
    assert not fake.named("cuCtxSynchronize")
    gpu.enqueue(load("cluster_ids"), 1, 32, [gpu.empty(4, "u32")], stream=5)
    assert int(fake.named("cuLaunchKernelEx")[1][0].hStream) == 5
    assert not fake.named("cuCtxSynchronize")


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize(
    ("tensor", "sentence"),
    [
        (FakeTensor(1), "this is GPU 0"),
        (FakeTensor(contiguous=False), r"has strides \(1, 4\); make it .contiguous\(\)"),
        (FakeTensor(cuda=False), "takes a torch tensor on this GPU, not a tensor on"),
        (3, "takes a torch tensor on this GPU, not a int"),
    ],
)
def test_tensors_that_are_refused(fake: FakeDriver, tensor: object, sentence: str) -> None:
    with pytest.raises(KernelArgumentError, match=sentence):
        Gpu().view(tensor)
