"""Kernels on a Hopper GPU: parameters, TMA, clusters, dynamic shared memory, faults."""

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxgen.device import DeviceArray, Kernel
from ptxgen.gpu import Gpu

pytestmark = pytest.mark.gpu
Load = Callable[[str], Kernel]


def encode_with_driver(array: DeviceArray, box: tuple[int, int]) -> bytes:
    """The tensormap of a row-major f32 matrix, as the driver encodes it."""
    cuda: Any = importlib.import_module("cuda.bindings.driver")
    rows, columns = array.shape
    status, tensormap = cuda.cuTensorMapEncodeTiled(
        cuda.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        2,
        array.address,
        [cuda.cuuint64_t(columns), cuda.cuuint64_t(rows)],
        [cuda.cuuint64_t(columns * 4)],
        [cuda.cuuint32_t(extent) for extent in box],
        [cuda.cuuint32_t(1)] * 2,
        cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        cuda.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE,
        cuda.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
        cuda.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    assert int(status) == 0
    return b"".join(int(word).to_bytes(8, "little") for word in tensormap.opaque)


def encode_with_ptxgen(array: DeviceArray, box: tuple[int, int]) -> bytes:
    descriptors: Any = pytest.importorskip("ptxgen.descriptors")
    rows, columns = array.shape
    return descriptors.TensorMap.tiled("f32", array, (columns, rows), (columns * 4,), box).encode()


def test_vector_addition(gpu: Gpu, load: Load) -> None:
    generator = np.random.default_rng(1)
    a, b = generator.standard_normal((2, 1000)).astype(np.float32)
    out = gpu.empty(1024, np.float32)
    out.write(np.full(1024, -1, np.float32))
    report = gpu.launch(load("vecadd"), 8, 128, [gpu.array(a), gpu.array(b), out, 1000, 2.0])
    assert report.status == "ok", report.summary()
    assert 0 < report.seconds < 1
    np.testing.assert_allclose(out.numpy()[:1000], a + 2 * b, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(out.numpy()[1000:], -1)


def test_every_parameter_arrives(gpu: Gpu, load: Load) -> None:
    out = gpu.empty(8, np.uint64)
    raw = bytes(range(1, 129))
    report = gpu.launch(load("parameters"), 1, 1, [0xA5, out, 0xBEEF, raw, 0x5A, 1.0, -2.0])
    assert report.status == "ok", report.summary()
    assert out.numpy().tolist() == [
        0xA5,
        0xBEEF,
        int.from_bytes(raw[:8], "little"),
        int.from_bytes(raw[-8:], "little"),
        0x5A,
        0x3F800000,
        0xC000000000000000,
        0,
    ]


@pytest.mark.parametrize("encode", [encode_with_driver, encode_with_ptxgen])
@pytest.mark.parametrize(("x", "y"), [(0, 0), (8, 16), (16, 32)])
def test_tensor_load(
    gpu: Gpu, load: Load, encode: Callable[[DeviceArray, tuple[int, int]], bytes], x: int, y: int
) -> None:
    matrix = np.arange(40 * 24, dtype=np.float32).reshape(40, 24) + 1
    source = gpu.array(matrix)
    out = gpu.empty((16, 16), np.float32)
    report = gpu.launch(load("tma_load"), 1, 256, [out, encode(source, (16, 16)), x, y])
    assert report.status == "ok", report.summary()
    padded = np.pad(matrix, ((0, 16), (0, 16)))  # out of bounds reads as zero
    np.testing.assert_array_equal(out.numpy(), padded[y : y + 16, x : x + 16])


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_clusters(gpu: Gpu, load: Load, size: int) -> None:
    out = gpu.empty((32, 2), np.uint32)
    report = gpu.launch(load("cluster_ids"), 32, 32, [out], cluster=size)
    assert report.status == "ok", report.summary()
    rank = np.arange(32) % size
    np.testing.assert_array_equal(out.numpy(), np.stack([rank, 100 + (rank + 1) % size], axis=1))


def test_large_dynamic_shared_memory(gpu: Gpu, load: Load) -> None:
    out = gpu.array(np.zeros(1, np.uint32))
    count = 227 * 1024
    report = gpu.launch(load("dynamic_shared"), 1, 32, [out, count - 4], shared_bytes=count)
    assert report.status == "ok", report.summary()
    assert out.numpy().tolist() == [7]


def test_a_launch_that_the_driver_refuses_is_a_fault(gpu: Gpu, load: Load) -> None:
    out = gpu.array(np.zeros(1, np.uint32))
    refused = gpu.launch(load("dynamic_shared"), 1, 32, [out, 0], shared_bytes=300_000)
    assert refused.status == "fault"
    assert "CUDA_ERROR" in refused.summary()
    assert gpu.launch(load("dynamic_shared"), 1, 32, [out, 0], shared_bytes=1024).status == "ok"
    assert out.numpy().tolist() == [7]


def test_an_illegal_address_is_a_fault(gpu: Gpu) -> None:
    # A process of its own: the fault ends CUDA for the one that makes it.
    code = """
import sys
from pathlib import Path
import numpy as np
from ptxgen.device import Kernel
from ptxgen.gpu import Gpu, GpuError
gpu = Gpu()
kernel = Kernel.from_ptx(Path(sys.argv[1]).read_text())
out = gpu.array(np.zeros(1, np.uint32))
report = gpu.launch(kernel, 1, 1, [16, 0], shared_bytes=64)
print(report.status, report.summary())
print(gpu.launch(kernel, 1, 1, [out, 0], shared_bytes=64).summary())
try:
    out.numpy()
except GpuError as error:
    print("refused:", error)
"""
    path = Path(__file__).parent / "ptx" / "dynamic_shared.ptx"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("fault "), done.stdout
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout
    assert "start a new process" in done.stdout
    assert "refused:" in done.stdout
