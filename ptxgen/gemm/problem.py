"""A plan applied to a problem: launch shape, tensormaps and arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ptxgen.descriptors.tensormap import TiledMap
from ptxgen.device import DeviceArray
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.plan import GemmPlan
from ptxgen.gemm.types import TYPES

Matrix = Literal["a", "b", "c"]
#: What TMA requires strides to be a multiple of, in bytes.
_STRIDE = 16


@dataclass(frozen=True)
class GemmProblem:
    """A plan and a problem. Sizes in elements; a leading dimension of 0 means that there is no gap between lines.

    A is M×K, B N×K and C M×N; a line is a row, or a column where an operand is MN-major. Raises PlanError.
    """

    plan: GemmPlan
    m: int
    n: int
    k: int
    lda: int = 0
    ldb: int = 0
    ldc: int = 0

    def __post_init__(self) -> None:
        for name, value in (("M", self.m), ("N", self.n), ("K", self.k)):
            if not 1 <= value < 2**31:
                raise PlanError(f"{name} must be 1 to {2**31 - 1}, not {value}")
        matrices: tuple[Matrix, ...] = ("a", "b", "c")
        for name in matrices:
            self._require_stride(name)
        _ = self.grid

    def _require_stride(self, name: Matrix) -> None:
        leading, contiguous = self.leading(name), self.extents(name)[1]
        if leading < contiguous:
            raise PlanError(
                f"ld{name} must be at least {contiguous}, the length of a line of {name.upper()}, not {leading}"
            )
        used = {"a": self.plan.a.load != "direct", "b": self.plan.b.load != "direct", "c": self.plan.epilogue.tma}
        if not used[name]:
            return
        step = _STRIDE // TYPES[self.dtype(name)].bytes
        if leading % step:
            what = (
                f"ld{name}"
                if getattr(self, f"ld{name}")
                else {"a": "MK", "b": "NK", "c": "NN"}[name][self._along(name)]
            )
            raise PlanError(
                f"{what} must be a multiple of {step} (lines of {name.upper()} must start on {_STRIDE} bytes), not "
                f"{leading}; pad the lines to ld{name} = {-(-leading // step) * step}"
            )

    def _along(self, name: Matrix) -> int:
        """1 where a line runs along the second dimension: K of A and B, N of C."""
        return 1 if name == "c" or getattr(self.plan, name).major == "k" else 0

    def dtype(self, name: Matrix) -> str:
        return self.plan.c_dtype if name == "c" else getattr(self.plan, name).dtype

    def extents(self, name: Matrix) -> tuple[int, int]:
        """Lines of a matrix, and elements of a line."""
        shape = {"a": (self.m, self.k), "b": (self.n, self.k), "c": (self.m, self.n)}[name]
        return shape if self._along(name) else (shape[1], shape[0])

    def leading(self, name: Matrix) -> int:
        """Elements from one line of a matrix to the next."""
        return getattr(self, f"ld{name}") or self.extents(name)[1]

    @property
    def tensormaps(self) -> tuple[Matrix, ...]:
        """The matrices that the kernel takes by tensormap."""
        used: dict[Matrix, bool] = {"a": self.plan.a.tma, "b": self.plan.b.tma, "c": self.plan.epilogue.tma}
        return tuple(name for name, tma in used.items() if tma)

    @property
    def grid(self) -> tuple[int, int, int]:
        return self.plan.scheduler.grid(self.m, self.n)

    @property
    def block(self) -> tuple[int, int, int]:
        return self.plan.roles.threads, 1, 1

    def tensormap(self, which: Matrix, address: Any) -> TiledMap:
        """The tensormap of a matrix at an address (or device array)."""
        if which == "c":
            return self.plan.epilogue.tensormap(address, self.m, self.n, self.leading("c"))
        rows = self.m if which == "a" else self.n
        return getattr(self.plan, which).tensormap(address, rows, self.k, self.leading(which))

    def arguments(self, a: Any, b: Any, c: Any) -> list[Any]:
        """The launch arguments in the order of the entry's parameters; each matrix a device array or an address.

        Raises PlanError for arrays of another size or type.
        """
        given: dict[Matrix, Any] = {"a": a, "b": b, "c": c}
        for name, array in given.items():
            if not isinstance(array, DeviceArray):
                continue
            (lines, line), leading, dtype = self.extents(name), self.leading(name), TYPES[self.dtype(name)]
            size = ((lines - 1) * leading + line) * dtype.bytes
            shown = f"{name.upper()} is {lines}×{line} {dtype.name}"
            if array.nbytes not in (size, lines * leading * dtype.bytes):
                raise PlanError(
                    f"{shown}, {size} bytes, but the array of shape {array.shape} and type {array.dtype} has "
                    f"{array.nbytes}"
                )
            if array.dtype.itemsize not in (1, dtype.bytes):
                raise PlanError(
                    f"{shown}, but the elements of the array have {array.dtype.itemsize} bytes ({array.dtype})"
                )
        made: list[Any] = []
        for name, array in given.items():
            made += [self.tensormap(name, array)] if name in self.tensormaps else [array, self.leading(name)]
        return [*made, self.m, self.n, self.k]
