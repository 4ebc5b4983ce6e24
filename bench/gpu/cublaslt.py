"""cublasLt through ctypes: every algorithm that its heuristics offer for a product, to be ranked by measurement.

Numbers of the enumerations are those of cublasLt.h (CUDA 13). A row-major C = A·Bᵀ is to cublasLt, which counts in
columns, Cᵀ = B·Aᵀ with B transposed.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_float, c_int, c_int8, c_int32, c_size_t, c_uint64, c_void_p
from pathlib import Path

_TYPES = {"f32": 0, "f16": 2, "bf16": 14, "e4m3": 28, "e5m2": 29}
_COMPUTE_32F = 68
_TRANSPOSED = 1
_TRANSA, _FAST_ACCUM = 3, 25
_MAX_WORKSPACE_BYTES = 1
#: Numbers of an algorithm's configuration, by name.
_CONFIGURATION = {"id": 0, "tile": 1, "split_k": 2, "swizzling": 4, "custom": 5, "stages": 6, "cluster": 8}
_FP8 = ("e4m3", "e5m2")


class CublasLtError(RuntimeError):
    """cublasLt refused a call, or is not installed."""


class _Algorithm(ctypes.Structure):
    _fields_ = [("data", c_uint64 * 8)]


class _Heuristic(ctypes.Structure):
    _fields_ = [
        ("algorithm", _Algorithm),
        ("workspace", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    ]


class CublasLt:
    """The library and a handle. `workspace` is the address of device memory that every product may use."""

    def __init__(self, workspace: int, workspace_bytes: int) -> None:
        self.library = ctypes.CDLL(str(_find()))
        self.workspace, self.workspace_bytes = workspace, workspace_bytes
        self.handle = c_void_p()
        self.call("cublasLtCreate", byref(self.handle))

    @property
    def version(self) -> int:
        function = self.library.cublasLtGetVersion
        function.restype = c_size_t
        return int(function())

    def call(self, name: str, *arguments: object) -> None:
        status = getattr(self.library, name)(*arguments)
        if status:
            raise CublasLtError(f"{name}: status {status}")


class Product:
    """C = A·Bᵀ of M×N×K, and the algorithms that the heuristics offer for it, their first choice first."""

    def __init__(
        self, library: CublasLt, m: int, n: int, k: int, dtype: str, c_dtype: str, *, count: int, fast: bool = False
    ) -> None:
        self._library = library
        call = library.call
        self._alpha, self._beta = c_float(1), c_float(0)
        self._operation = c_void_p()
        call("cublasLtMatmulDescCreate", byref(self._operation), _COMPUTE_32F, _TYPES["f32"])
        self._set(_TRANSA, c_int32(_TRANSPOSED))
        if dtype in _FP8 and fast:
            self._set(_FAST_ACCUM, c_int8(1))
        self._layouts = [c_void_p() for _ in range(3)]  # of B, A and C, as columns
        shapes = ((dtype, k, n, k), (dtype, k, m, k), (c_dtype, n, m, n))
        for layout, (kind, rows, columns, leading) in zip(self._layouts, shapes, strict=True):
            call(
                "cublasLtMatrixLayoutCreate",
                byref(layout),
                _TYPES[kind],
                c_uint64(rows),
                c_uint64(columns),
                ctypes.c_int64(leading),
            )
        preference = c_void_p()
        call("cublasLtMatmulPreferenceCreate", byref(preference))
        limit = c_size_t(library.workspace_bytes)
        call("cublasLtMatmulPreferenceSetAttribute", preference, _MAX_WORKSPACE_BYTES, byref(limit), c_size_t(8))
        self._found, returned = (_Heuristic * count)(), c_int()
        b, a, c = self._layouts
        call(
            "cublasLtMatmulAlgoGetHeuristic", library.handle, self._operation, b, a, c, c, preference, count,
            self._found, byref(returned),
        )  # fmt: skip
        call("cublasLtMatmulPreferenceDestroy", preference)
        self.usable = [index for index in range(returned.value) if self._found[index].state == 0]

    def _set(self, attribute: int, value: c_int32 | c_int8) -> None:
        size = c_size_t(ctypes.sizeof(value))
        self._library.call("cublasLtMatmulDescSetAttribute", self._operation, attribute, byref(value), size)

    def describe(self, index: int) -> dict[str, int]:
        """The numbers of an algorithm, for the record."""
        made: dict[str, int] = {"rank": index}
        for name, number in _CONFIGURATION.items():
            value, written = c_int32(), c_size_t()
            status = self._library.library.cublasLtMatmulAlgoConfigGetAttribute(
                byref(self._found[index].algorithm), number, byref(value), c_size_t(4), byref(written)
            )
            if status == 0:
                made[name] = value.value & (0xFFFF if name == "cluster" else 0xFFFFFFFF)
        return made

    def launch(self, index: int, a: int, b: int, c: int, stream: int) -> None:
        """Multiply on a stream. Raises CublasLtError."""
        library = self._library
        layout_b, layout_a, layout_c = self._layouts
        library.call(
            "cublasLtMatmul", library.handle, self._operation, byref(self._alpha), c_void_p(b), layout_b, c_void_p(a),
            layout_a, byref(self._beta), c_void_p(c), layout_c, c_void_p(c), layout_c,
            byref(self._found[index].algorithm), c_void_p(library.workspace), c_size_t(library.workspace_bytes),
            c_void_p(stream),
        )  # fmt: skip

    def close(self) -> None:
        for layout in self._layouts:
            self._library.call("cublasLtMatrixLayoutDestroy", layout)
        self._library.call("cublasLtMatmulDescDestroy", self._operation)


def _find() -> Path:
    """The libcublasLt that torch has loaded, so that both arms are of one version."""
    loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libcublasLt.so" in line}
    if not loaded:
        raise CublasLtError("torch has loaded no libcublasLt; multiply two matrices on the GPU first")
    return Path(sorted(loaded)[0])
