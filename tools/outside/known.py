"""Public kernels whose meaning is known, run in the emulator and compared with NumPy.

References are written here from what each kernel is meant to do (vector addition, scan, transposition, ...), inputs
are random, and all elements of all arrays are compared. ZLUDA's tests also name inputs and outputs of their own
(`rust_values.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
#: Arguments of a launch, and the arrays among them as they must be afterwards, by position.
Made = tuple[list[object], dict[int, Array]]


@dataclass(frozen=True, slots=True)
class Known:
    """One launch: a kernel of a file, its shape, and a function that makes arguments and expected arrays."""

    repository: str
    path: str
    entry: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    make: Callable[[np.random.Generator], Made]
    shared_bytes: int = 0
    #: Relative and absolute tolerance; 0: equal bits.
    tolerance: float = 0
    #: Positions of arrays whose values are not determined, such as times.
    undetermined: frozenset[int] = frozenset()
    #: Findings of severity error that the kernel deserves.
    deserved: frozenset[str] = frozenset()


def floats(rng: np.random.Generator, *shape: int) -> npt.NDArray[np.float32]:
    return rng.standard_normal(shape).astype(np.float32)


def ints(rng: np.random.Generator, count: int, low: int = -1000, high: int = 1000) -> npt.NDArray[np.int32]:
    return rng.integers(low, high, count, dtype=np.int32)


def poisoned(like: Array) -> Array:
    """An array of the same shape filled with a value that no kernel here computes."""
    return np.frombuffer(b"\xa5" * like.nbytes, like.dtype).reshape(like.shape).copy()


def output(*before: object, result: Array, after: tuple[object, ...] = ()) -> Made:
    """Arguments with one array that is only written."""
    return [*before, poisoned(result), *after], {len(before): result}


def _vector_add(rng: np.random.Generator) -> Made:
    a, b = floats(rng, 250), floats(rng, 250)
    return output(a, b, result=a + b, after=(np.int32(250),))


def _integers_added(*tail: object) -> Callable[[np.random.Generator], Made]:
    def make(rng: np.random.Generator) -> Made:
        a, b = ints(rng, 250), ints(rng, 250)
        return output(result=a + b, after=(a, b, *tail))

    return make


def _matrix_product(width: type[np.signedinteger], size: int) -> Callable[[np.random.Generator], Made]:
    def make(rng: np.random.Generator) -> Made:
        a, b = floats(rng, 2 * size, 3 * size), floats(rng, 3 * size, 2 * size)
        return output(result=a @ b, after=(a, b, width(3 * size), width(2 * size)))

    return make


def _increment(rng: np.random.Generator) -> Made:
    data = ints(rng, 128)
    return [data, np.int32(26)], {0: data + 26}


def _black_scholes(rng: np.random.Generator) -> Made:
    count, rate, volatility = 300, 0.02, 0.30
    price, strike, years = (
        rng.uniform(low, high, count).astype(np.float32) for low, high in ((5, 30), (1, 100), (0.25, 10))
    )
    s, x, t = (each.astype(np.float64) for each in (price, strike, years))
    d1 = (np.log(s / x) + (rate + volatility**2 / 2) * t) / (volatility * np.sqrt(t))
    d2 = d1 - volatility * np.sqrt(t)
    discounted = x * np.exp(-rate * t)
    call = s * _normal(d1) - discounted * _normal(d2)
    put = discounted * _normal(-d2) - s * _normal(-d1)
    expected = [each.astype(np.float32) for each in (call, put)]
    arguments: list[object] = [*map(poisoned, expected), price, strike, years]
    return [*arguments, np.float32(rate), np.float32(volatility), np.int32(count)], dict(enumerate(expected))


def _normal(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The normal distribution by Abramowitz and Stegun 26.2.17, good to 7.5e-8."""
    k = 1 / (1 + 0.2316419 * np.abs(x))
    series = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = np.exp(-x * x / 2) / np.sqrt(2 * np.pi) * series
    return np.where(x > 0, 1 - tail, tail)


def _scalar_products(rng: np.random.Generator) -> Made:
    a, b = floats(rng, 5, 1000), floats(rng, 5, 1000)
    return output(result=(a * b).sum(1), after=(a, b, np.int32(5), np.int32(1000)))


def _scan(rng: np.random.Generator) -> Made:
    data = floats(rng, 256)
    result = np.concatenate([[0], np.cumsum(data[:-1], dtype=np.float64)]).astype(np.float32)
    return output(result=result, after=(data, np.int32(256)))


def _scaled_by_threads(type_: type[np.float32] | type[np.int32]) -> Callable[[np.random.Generator], Made]:
    def make(rng: np.random.Generator) -> Made:
        data = ints(rng, 96).astype(type_)
        return output(data, result=data * type_(96))

    return make


def _sort(rng: np.random.Generator) -> Made:
    data = ints(rng, 256)
    return [data], {0: np.sort(data)}


def _walsh(rng: np.random.Generator) -> Made:
    data = floats(rng, 256)
    matrix = np.array([[1.0]])
    while len(matrix) < 256:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return output(result=(matrix @ data).astype(np.float32), after=(data, np.int32(8)))


def _modulated(rng: np.random.Generator) -> Made:
    a, b = floats(rng, 500), floats(rng, 500)
    return [a, b, np.int32(500)], {0: a * b / np.float32(500)}


def _complex_products(rng: np.random.Generator) -> Made:
    a, b = (floats(rng, 200, 2) for _ in range(2))
    product = a.view(np.complex64)[:, 0] * b.view(np.complex64)[:, 0] * np.float32(0.25)
    return [a, b, np.int32(200), np.float32(0.25)], {0: product.astype(np.complex64).view(np.float32).reshape(200, 2)}


def _complex_normalized(rng: np.random.Generator) -> Made:
    a, b = (floats(rng, 200, 2) for _ in range(2))
    product = a.view(np.complex64)[:, 0] * b.view(np.complex64)[:, 0] / np.float32(200)
    return [a, b, np.int32(200)], {0: product.astype(np.complex64).view(np.float32).reshape(200, 2)}


def _transposed(result_of: Callable[[Array], Array]) -> Callable[[np.random.Generator], Made]:
    def make(rng: np.random.Generator) -> Made:
        data = floats(rng, 64, 64)
        made = np.ascontiguousarray(result_of(data))
        return output(result=made, after=(data, np.int32(64), np.int32(64), np.int32(1)))

    return make


def _fine_grained(data: Array) -> Array:
    """Each tile of 32 by 32 transposed in its place."""
    return data.reshape(2, 32, 2, 32).transpose(0, 3, 2, 1).reshape(64, 64)


def _coarse_grained(data: Array) -> Array:
    """Tiles of 32 by 32 at the transposed places, each as it was."""
    return data.reshape(2, 32, 2, 32).transpose(2, 1, 0, 3).reshape(64, 64)


def _pixels_transposed(rng: np.random.Generator) -> Made:
    data = rng.integers(0, 2**32, (48, 32), dtype=np.uint32)
    return output(result=np.ascontiguousarray(data.T), after=(data, np.int32(32), np.int32(48)))


def _strided_sums(rng: np.random.Generator) -> Made:
    data = floats(rng, 1000)
    padded = np.concatenate([data, np.zeros(1024 - 1000, np.float32)]).reshape(8, 128)
    return output(result=padded.sum(0), after=(data, np.int32(1000)))


def _added_often(rng: np.random.Generator) -> Made:
    data = ints(rng, 128)
    return [data, np.array([7], np.int32), np.int32(5)], {0: data + 35}


def _minus_ten(rng: np.random.Generator) -> Made:
    data = rng.integers(40, 120, (16, 4), dtype=np.int8)
    return [data], {0: data - np.int8(10)}


def _differences(rng: np.random.Generator) -> Made:
    data = ints(rng, 32).reshape(16, 2)
    expected = data.copy()
    expected[:, 0] -= data[:, 1]
    return [data], {0: expected}


def _magnitude(rng: np.random.Generator) -> Made:
    real, imaginary = floats(rng, 500), floats(rng, 500)
    return output(real, imaginary, result=real * real + imaginary * imaginary, after=(np.int32(500),))


def _rho_phi(rng: np.random.Generator) -> Made:
    phi_real, phi_imaginary, real, imaginary = (floats(rng, 500) for _ in range(4))
    expected = [
        phi_real * real + phi_imaginary * imaginary,
        phi_real * imaginary - phi_imaginary * real,
    ]
    return [np.int32(500), phi_real, phi_imaginary, real, imaginary, *map(poisoned, expected)], dict(
        zip((5, 6), expected, strict=True)
    )


def _threads_numbered(rng: np.random.Generator) -> Made:
    del rng
    return output(result=np.arange(1, 97, dtype=np.int32), after=(np.int32(96),))


def _voted(combine: Callable[[Array], np.bool_]) -> Callable[[np.random.Generator], Made]:
    def make(rng: np.random.Generator) -> Made:
        data = rng.integers(0, 2, 128, dtype=np.uint32)
        data[32:64], data[64:96] = 0, 1
        result = np.repeat([combine(warp != 0) for warp in data.reshape(4, 32)], 32).astype(np.uint32)
        return output(data, result=result, after=(np.int32(128),))

    return make


def _factored(rng: np.random.Generator) -> Made:
    """LU of a tile of 16 by 16 in place, without pivoting."""
    size = 16
    matrix = (rng.uniform(-1, 1, (size, size)) + 8 * np.eye(size)).astype(np.float32)
    lu = matrix.astype(np.float64)
    for k in range(size):
        lu[k + 1 :, k] /= lu[k, k]
        lu[k + 1 :, k + 1 :] -= np.outer(lu[k + 1 :, k], lu[k, k + 1 :])
    return [matrix, np.int32(size), np.int32(0)], {0: lu.astype(np.float32)}


def _box_filtered(axis: int) -> Callable[[np.random.Generator], Made]:
    def make(rng: np.random.Generator) -> Made:
        height, width, radius = 40, 64, 5
        data = floats(rng, height, width)
        pad = [(radius, radius) if each == axis else (0, 0) for each in (0, 1)]
        padded = np.pad(data, pad, mode="edge").astype(np.float64)
        length = data.shape[axis]
        shifted = [np.take(padded, range(at, at + length), axis) for at in range(2 * radius + 1)]
        result = (np.sum(shifted, 0) / (2 * radius + 1)).astype(np.float32)
        return [data, poisoned(result), np.int32(width), np.int32(height), np.int32(radius)], {1: result}

    return make


def _minimum_of(rng: np.random.Generator) -> Made:
    data = floats(rng, 512)
    return output(data, result=np.array([data.min()]), after=(np.zeros(2, np.int64),))


def _histogram(rng: np.random.Generator) -> Made:
    data = rng.integers(0, 256, 4096, dtype=np.uint8)
    return output(result=np.bincount(data, minlength=256).astype(np.uint32), after=(data, np.int32(1024)))


def _added_scalar(rng: np.random.Generator) -> Made:
    data = rng.standard_normal(100)
    return [data, np.float64(2.5), np.uint32(100)], {0: data + 2.5}


def _matrix_vector(rng: np.random.Generator) -> Made:
    rows, columns = 48, 40
    columnwise, vector = floats(rng, columns, rows), floats(rng, columns)
    return output(columnwise, vector, result=vector @ columnwise, after=(np.int32(rows), np.int32(columns)))


# fmt: off
# ruff: noqa: E501
OCELOT, OPEN, VM, PARSER = (
    "gthparch/gpuocelot",
    "garrick99/openptxas",
    "Han-Zhenzhong/ptx-vm",
    "jialunzhang-psu/ptx-90-parser",
)
_SDK = "tests/ptx/sdk2.2/"
KNOWN: tuple[Known, ...] = (
    Known(OCELOT, "tests/cuda3.2/data/vectorAdd.ptx", "VecAdd", (2,), (128,), _vector_add),
    Known(OCELOT, "tests/cuda3.2/tests/vectorAddDrv/data/vectorAdd.ptx", "VecAdd", (2,), (128,), _vector_add),
    Known(OCELOT, f"{_SDK}simpleZeroCopy.ptx", "vectorAddGPU", (2,), (128,), _vector_add),
    Known(OPEN, "examples/vector_add.ptx", "vector_add", (2,), (128,), _integers_added(np.uint32(250))),
    Known(OPEN, "probe_work/vector_add.ptx", "vector_add", (2,), (128,), _integers_added(np.uint32(250))),
    Known(OPEN, "probe_work/vector_add_nocheck.ptx", "vector_add_nocheck", (2,), (125,), _integers_added()),
    Known("Rust-GPU/Rust-CUDA", "crates/cust/resources/add.ptx", "sum", (2,), (128,), _vector_add),
    Known(VM, "cuda/cuda_runtime/examples/simple_add.ptx", "vectorAdd", (2,), (128,), _vector_add),
    Known(OCELOT, f"{_SDK}matrixMul.ptx", "matrixMul", (2, 2), (16, 16), _matrix_product(np.int32, 16), tolerance=1e-4),
    Known(OCELOT, f"{_SDK}asyncAPI.ptx", "increment_kernel", (2,), (64,), _increment),
    Known(OCELOT, f"{_SDK}BlackScholes.ptx", "BlackScholesGPU", (2,), (64,), _black_scholes, tolerance=2e-4),
    Known(OCELOT, f"{_SDK}scalarProd.ptx", "scalarProdGPU", (2,), (256,), _scalar_products, tolerance=1e-4),
    Known(OCELOT, f"{_SDK}scan_naive_kernel.ptx", "scan_naive", (1,), (256,), _scan, 2 * 256 * 4, tolerance=1e-4),
    Known(OCELOT, f"{_SDK}scan_workefficient_kernel.ptx", "scan_workefficient", (1,), (128,), _scan, 256 * 4, tolerance=1e-4),
    Known(OCELOT, f"{_SDK}scan_best_kernel.ptx", "scan_best", (1,), (128,), _scan, 272 * 4, tolerance=1e-4),
    Known(OCELOT, f"{_SDK}simpleTemplates.ptx", "testKernelIfE", (1,), (96,), _scaled_by_threads(np.float32), 96 * 4),
    Known(OCELOT, f"{_SDK}simpleTemplates.ptx", "testKernelIiE", (1,), (96,), _scaled_by_threads(np.int32), 96 * 4),
    Known(OCELOT, f"{_SDK}template.ptx", "testKernel", (1,), (96,), _scaled_by_threads(np.float32), 96 * 4),
    Known(OCELOT, f"{_SDK}bitonic.ptx", "bitonicSort", (1,), (256,), _sort, 256 * 4),
    Known(OCELOT, f"{_SDK}fastWalshTransform.ptx", "fwtBatch1Kernel", (1,), (64,), _walsh, 256 * 4, tolerance=1e-4),
    Known(OCELOT, f"{_SDK}fastWalshTransform.ptx", "modulateKernel", (2,), (64,), _modulated, tolerance=1e-6),
    Known(OCELOT, f"{_SDK}simpleCUFFT.ptx", "ComplexPointwiseMulAndScale", (2,), (64,), _complex_products, tolerance=1e-5),
    Known(OCELOT, f"{_SDK}convolutionFFT2D.ptx", "modulateAndNormalize", (2,), (64,), _complex_normalized, tolerance=1e-5),
    *(
        Known(OCELOT, f"{_SDK}transposeNew.ptx", name, (2, 2), (32, 8), _transposed(result))
        for name, result in (
            ("_Z4copyPfS_iii", lambda data: data), ("copySharedMem", lambda data: data), ("transposeNaive", np.transpose),
            ("transposeCoalesced", np.transpose), ("transposeNoBankConflicts", np.transpose), ("transposeDiagonal", np.transpose),
            ("transposeFineGrained", _fine_grained), ("transposeCoarseGrained", _coarse_grained),
        )
    ),
    Known(OCELOT, f"{_SDK}recursiveGaussian.ptx", "d_transpose", (2, 3), (16, 16), _pixels_transposed),
    Known(OCELOT, f"{_SDK}simpleMultiGPU_kernel.ptx", "reduceKernel", (2,), (64,), _strided_sums, tolerance=1e-5),
    Known(OCELOT, f"{_SDK}simpleStreams.ptx", "init_array", (2,), (64,), _added_often),
    Known(OCELOT, f"{_SDK}cppIntegration.ptx", "_Z6kernelPi", (1,), (16,), _minus_ten),
    Known(OCELOT, f"{_SDK}cppIntegration.ptx", "kernel2", (1,), (16,), _differences),
    Known(OCELOT, f"{_SDK}clock.ptx", "timedReduction", (1,), (256,), _minimum_of, 512 * 4, undetermined=frozenset({2})),
    Known(OCELOT, f"{_SDK}simpleVote_kernel.ptx", "VoteAnyKernel1", (1,), (128,), _voted(np.any)),
    Known(OCELOT, f"{_SDK}simpleVote_kernel.ptx", "VoteAllKernel2", (1,), (128,), _voted(np.all)),
    Known(OCELOT, f"{_SDK}histogram256_SM12.ptx", "histogram256Kernel", (1,), (6,), _histogram),
    Known(OCELOT, f"{_SDK}boxFilter_kernel.ptx", "d_boxfilter_x_global", (1,), (40,), _box_filtered(1), tolerance=1e-4),
    Known(OCELOT, f"{_SDK}boxFilter_kernel.ptx", "d_boxfilter_y_global", (1,), (64,), _box_filtered(0), tolerance=1e-4),
    Known(OCELOT, "tests/ptx/parboil/computeQ.ptx", "ComputePhiMag_GPU", (1,), (512,), _magnitude, tolerance=1e-6),
    Known(OCELOT, "tests/ptx/parboil/computeFH.ptx", "ComputeRhoPhiGPU", (1,), (512,), _rho_phi, tolerance=1e-5),
    Known(OCELOT, "tests/ptx/rodinia/lud_kernel.ptx", "lud_diagonal", (1,), (16,), _factored, tolerance=1e-4),
    Known(OCELOT, "ocelot/ocelot/executive/test/kernels.ptx", "k_matrixVectorProduct", (6,), (8,), _matrix_vector, tolerance=1e-5),
    Known(OCELOT, "ocelot/ocelot/cuda/test/driver/sequence.ptx", "sequence", (2,), (64,), _threads_numbered),
    Known(PARSER, "tests/sample/vector_add_scalar.ptx", "vector_add_scalar", (2,), (64,), _added_scalar),
    Known(PARSER, "tests/sample/vector_add_scalar.debug.ptx", "vector_add_scalar", (2,), (64,), _added_scalar),
)  # fmt: skip
