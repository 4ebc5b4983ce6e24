"""A plan applied to a problem: launch shape, tensormaps and arguments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ptxgen.descriptors.tensormap import TiledMap
from ptxgen.device import DeviceArray
from ptxgen.dtypes import DTYPES, scalar_type
from ptxgen.gemm.concepts.epilogue import SCALE_COLUMNS
from ptxgen.gemm.concepts.operand import Batches
from ptxgen.gemm.concepts.scale_operand import ScaleOperand
from ptxgen.gemm.concepts.workspace import SplitWorkspace
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.plan import GemmPlan
from ptxgen.gemm.scales import ScaledType, require_packed
from ptxgen.gemm.types import TYPES
from ptxgen.layouts.scale_factors import BLOCK_ROWS

Matrix = Literal["a", "b", "c", "source"]
_LARGEST_SCALAR = float(np.finfo(np.float32).max)
#: Alignment that TMA requires of strides, in bytes.
_STRIDE = 16


@dataclass(frozen=True)
class GemmProblem:
    """A plan and a problem. Sizes in elements; a leading dimension of 0 means that there is no gap between lines.

    A is M×K, B N×K, C and the source M×N; a line is a row, or a column where an operand is MN-major. The matrices of a
    batch, or of B for the groups of rows of A, follow those of the one before without a gap. `alpha` and `beta` count
    where the kernel takes them. Raises PlanError.
    """

    plan: GemmPlan
    m: int
    n: int
    k: int
    lda: int = 0
    ldb: int = 0
    ldc: int = 0
    ldsource: int = 0
    batches: int = 1
    groups: int = 1
    alpha: float = 1
    beta: float = 1

    def __post_init__(self) -> None:
        counts = (("the number of batches", self.batches), ("the number of groups", self.groups))
        for name, value in (("M", self.m), ("N", self.n), ("K", self.k), *counts):
            if not isinstance(value, Integral):
                raise PlanError(f"{name} must be a whole number, not {value!r}")
            if not 1 <= value < 2**31:
                raise PlanError(f"{name} must be 1 to {2**31 - 1}, not {value}")
        if self.batches > 1 and not self.plan.config.batched:
            raise PlanError(f"{self.batches} batches take a kernel with batched=true; this one multiplies once")
        if self.groups > 1 and not self.grouped:
            raise PlanError(f"{self.groups} groups take a kernel with grouped=contiguous; this one has one matrix B")
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if not abs(value) <= _LARGEST_SCALAR:  # NaN neither
                raise PlanError(f"{name} must be a finite number of fp32, not {value:g}")
            whole = value == int(value) and -(2**31) <= value < 2**31
            if self.plan.epilogue.combination.compute == "s32" and not whole:
                raise PlanError(f"{name} must be a whole number of 32 bits, as the accumulator is s32; not {value}")
        self._require_blocks()
        for name in self.matrices:
            self._require_stride(name)
        _ = self.grid

    @property
    def grouped(self) -> bool:
        """Whether B has a matrix for each group of rows of A."""
        return self.plan.config.grouped == "contiguous"

    @property
    def group_table(self) -> int:
        """Elements of the table of groups that the kernel takes: one for each row of A, or for each batch; 0: none."""
        return {"none": 0, "contiguous": self.m, "masked": self.batches}[self.plan.config.grouped]

    def matrices_of(self, name: Matrix) -> int:
        """How many matrices an operand is: batches, or B's groups."""
        return self.groups if name == "b" and self.grouped else self.batches

    @property
    def sizes(self) -> dict[str, float]:
        """M, N and K, and batches, alpha and beta where the kernel takes them, by their names."""
        made: dict[str, float] = {"M": self.m, "N": self.n, "K": self.k}
        combination = self.plan.epilogue.combination
        if self.plan.config.batched:
            made["batches"] = self.batches
        if self.grouped:
            made["groups"] = self.groups
        if combination.alpha:
            made["alpha"] = self.alpha
        return {**made, "beta": self.beta} if combination.source else made

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """The matrices that the kernel takes, in the order of its parameters."""
        return ("a", "b", "c", "source") if self.plan.epilogue.combination.source else ("a", "b", "c")

    def _require_blocks(self) -> None:
        """That K is what scales and padded types take, and N what the scales of C do."""
        if self.plan.epilogue.quantizes and self.n % SCALE_COLUMNS:
            raise PlanError(f"N must be a multiple of {SCALE_COLUMNS}, the columns of a scale of C, not {self.n}")
        for scale in self.plan.scales:
            scale.type.scales_of(self.k)
        for operand in (self.plan.a, self.plan.b):
            if self.k % operand.k_step:
                raise PlanError(
                    f"K must be a multiple of {operand.k_step} for {operand.name.upper()} of {operand.dtype}, as its "
                    f"tensormap has it (CUDA driver API, 16U4_ALIGN16B and 16U6_ALIGN16B), not {self.k}; pad with zeros"
                )

    def _require_stride(self, name: Matrix) -> None:
        leading, contiguous = self.leading(name), self.extents(name)[1]
        if leading < contiguous:
            raise PlanError(
                f"ld{name} must be at least {contiguous}, the length of a line of {title(name)}, not {leading}"
            )
        epilogue = self.plan.epilogue
        aligned = {
            "a": self.plan.a.load != "direct",
            "b": self.plan.b.load != "direct",
            "c": epilogue.tma or epilogue.quantizes,
        }
        if not aligned.get(name):
            return
        stride = epilogue.store_bytes if epilogue.quantizes else _STRIDE
        step = stride // TYPES[self.dtype(name)].bytes if name == "c" else getattr(self.plan, name).line_step
        if leading % step:
            what = (
                f"ld{name}"
                if getattr(self, f"ld{name}")
                else {"a": "MK", "b": "NK", "c": "MN"}[name][self._along(name)]
            )
            apart = step * TYPES[self.dtype(name)].bits // 8
            raise PlanError(
                f"{what} must be a multiple of {step} (lines of {title(name)} must start on {apart} bytes), not "
                f"{leading}; pad the lines to ld{name} = {-(-leading // step) * step}"
            )

    def _along(self, name: Matrix) -> int:
        """1 where a line runs along the second dimension: K of A and B, N of C."""
        if name == "c":
            return 0 if self.plan.config.c_major == "m" else 1
        return 1 if name == "source" or getattr(self.plan, name).major == "k" else 0

    def dtype(self, name: Matrix) -> str:
        if name == "source":
            return self.plan.epilogue.combination.source
        return self.plan.c_dtype if name == "c" else getattr(self.plan, name).dtype

    def extents(self, name: Matrix) -> tuple[int, int]:
        """Lines of a matrix, and elements of a line."""
        shape = {"a": (self.m, self.k), "b": (self.n, self.k)}.get(name, (self.m, self.n))
        return shape if self._along(name) else (shape[1], shape[0])

    def leading(self, name: Matrix) -> int:
        """Elements from one line of a matrix to the next."""
        return getattr(self, f"ld{name}") or self.extents(name)[1]

    def stride(self, name: Matrix) -> int:
        """Elements from a matrix to that of the next batch."""
        return self.extents(name)[0] * self.leading(name)

    @property
    def tensormaps(self) -> tuple[Matrix, ...]:
        """The matrices that the kernel takes by tensormap."""
        used: dict[Matrix, bool] = {"a": self.plan.a.tma, "b": self.plan.b.tma, "c": self.plan.epilogue.tma}
        return tuple(name for name, tma in used.items() if tma)

    @property
    def grid(self) -> tuple[int, int, int]:
        return self.plan.scheduler.grid(self.m, self.n, self.batches)

    @property
    def block(self) -> tuple[int, int, int]:
        return self.plan.roles.threads, 1, 1

    def tensormap(self, which: Matrix, address: Any) -> TiledMap:
        """The tensormap of a matrix at an address (or device array)."""
        several = self.plan.config.batched or (which == "b" and self.grouped)
        batches = Batches(self.matrices_of(which), self.stride(which)) if several else None
        if which == "c":
            return self.plan.epilogue.tensormap(address, self.m, self.n, self.leading("c"), batches)
        rows = self.m if which == "a" else self.n
        return getattr(self.plan, which).tensormap(address, rows, self.k, self.leading(which), batches)

    @property
    def encoded(self) -> dict[str, TiledMap]:
        """The tensormaps of all matrices and scales that the kernel takes so, by name, at address 0."""
        made = {name: self.tensormap(name, 0) for name in self.tensormaps}
        scales = {each.name: each.tensormap(0, self.scale_rows(each), self.k) for each in self.plan.scales}
        if (block_scales := self.plan.block_scales) is not None:
            scales[block_scales.by_tma] = block_scales.tensormap(0, self.m, self.n, self.k, self.batches)
        return {**made, **scales}

    @cached_property
    def tile_order(self) -> npt.NDArray[np.uint32] | None:
        """The table of tiles that the kernel takes; None where it takes none."""
        return self.plan.scheduler.table(self.m, self.n)

    @property
    def workspace_words(self) -> int:
        """32-bit words, all 0, of the workspace that the kernel takes; 0 where it takes none."""
        workspace = self.plan.workspace
        if isinstance(workspace, SplitWorkspace):
            x, y, _ = self.grid
            return workspace.bytes_of(x * y) // 4
        return 0 if workspace is None else workspace.bytes // 4

    def arguments(
        self,
        a: Any,
        b: Any,
        c: Any,
        source: Any = None,
        bias: Any = None,
        order: Any = None,
        scales: tuple[Any, ...] = (),
        c_scales: Any = None,
        workspace: Any = None,
        groups: Any = None,
    ) -> list[Any]:
        """The launch arguments in the order of the entry's parameters; each array a device array or an address.

        `scales` of A and B in blocks (`ptxgen.gemm.scales.pack`), or of fp32 (`ptxgen.gemm.block_scales`), where the
        kernel takes them; `c_scales` is room for those of C. `groups`: s32, the number of the matrix of B for each row
        of A, the same for all of `plan.scheduler.group_rows` rows; where it is negative, the product is 0. With masked
        groups: how many rows of each batch count. Raises PlanError for arrays of another size or type.
        """
        block_scales = self.plan.block_scales
        if len(scales) != (len(self.plan.scales) if block_scales is None else 2):
            words = "no scales" if not self.plan.scales and block_scales is None else "the scales of A and B"
            raise PlanError(f"the kernel takes {words}, but {len(scales) or 'none'} are given")
        combination, batched = self.plan.epilogue.combination, self.plan.config.batched
        given: dict[Matrix, Any] = {"a": a, "b": b, "c": c, "source": source}
        for name, array, there in (
            ("source", source, combination.source),
            ("bias", bias, combination.bias),
            ("table of tiles", order, self.plan.scheduler.hilbert),
            ("place for the scales of C", c_scales, self.plan.epilogue.quantizes),
            ("workspace", workspace, self.plan.workspace is not None),
            ("table of groups", groups, self.group_table),
        ):
            if (array is None) == bool(there):
                words = f"a {name}, but none is given" if there else f"no {name}, but one is given"
                raise PlanError(f"the kernel takes {words}")
        made: list[Any] = []
        for name in self.matrices:
            (lines, line), leading, count = self.extents(name), self.leading(name), self.matrices_of(name)
            several = batched or (name == "b" and self.grouped)
            shown = f"{title(name)} is {f'{count}×' if several else ''}{lines}×{line}"
            least = (count * lines - 1) * leading + line
            self._require_array(given[name], shown, self.dtype(name), (least, count * lines * leading))
            if name in self.tensormaps:
                made.append(self.tensormap(name, given[name]))
            if name not in self.tensormaps or name == "c":
                made += [given[name], leading, *[self.stride(name)] * batched]
            if name == "b":
                if block_scales is None:
                    made += [self._scales(*each) for each in zip(self.plan.scales, scales, strict=True)]
                else:
                    both = scales[0], scales[1]
                    made += block_scales.arguments(both, self.m, self.scaled_columns, self.k, self.batches)
            if name == "c" and self.plan.epilogue.quantizes:
                _require_scales("sfc", c_scales, self.m, self.n, self.plan.epilogue.scaled_type)
                made.append(c_scales)
        if combination.bias:
            self._require_array(bias, f"the bias is {self.n}", combination.bias, (self.n,))
            made.append(bias)
        scalar = np.float32 if combination.compute == "f32" else np.int32
        made += [scalar(self.alpha)] * combination.alpha + [scalar(self.beta)] * bool(combination.source)
        if self.tile_order is not None:
            self._require_array(order, f"the table of tiles is {self.tile_order.size}", "u32", (self.tile_order.size,))
            made.append(order)
        if self.group_table:
            self._require_array(groups, f"the table of groups is {self.group_table}", "s32", (self.group_table,))
            made.append(groups)
        if self.workspace_words:
            self._require_array(workspace, f"the workspace is {self.workspace_words}", "u32", (self.workspace_words,))
            made.append(workspace)
        return [*made, self.m, self.n, self.k, *[self.batches] * batched]

    def _scales(self, operand: ScaleOperand, array: Any) -> TiledMap:
        """The tensormap of packed scales. Raises PlanError, with the expected layout, for another size or layout."""
        rows = self.scale_rows(operand)
        _require_scales(operand.name, array, rows, self.k, operand.type)
        return operand.tensormap(array, rows, self.k)

    def scale_rows(self, operand: ScaleOperand) -> int:
        """Rows of the matrix that scales belong to; those of batches and groups follow each other in whole blocks."""
        if operand.name == "sfb" and self.grouped:
            return self.scaled_columns
        rows = self.m if operand.name == "sfa" else self.n
        return self.batches * self.padded(rows) if self.plan.config.batched else rows

    @property
    def scaled_columns(self) -> int:
        """Rows of B that have scales: N, or those of all groups."""
        return self.groups * self.padded(self.n) if self.grouped else self.n

    def padded(self, rows: int) -> int:
        """Rows in whole blocks of scales: from the scales of a batch or group to those of the next."""
        return -(-rows // BLOCK_ROWS) * BLOCK_ROWS

    def _require_array(self, array: Any, shown: str, dtype: str, sizes: tuple[int, ...]) -> None:
        """That a device array has a size and type; `sizes` in elements, the first without a gap at the end."""
        made = DTYPES[dtype]
        shown = f"{shown} {made.name}"
        if array is None or isinstance(array, np.ndarray):
            what = "none is given" if array is None else "a NumPy array is given; copy it with device.array"
            raise PlanError(f"{shown}, on the device, but {what}")
        if not isinstance(array, DeviceArray):
            return
        if array.nbytes not in [size * made.bits // 8 for size in sizes]:
            raise PlanError(
                f"{shown}, {sizes[0] * made.bits // 8} bytes, but the array of shape {array.shape} and type "
                f"{array.dtype} has {array.nbytes}"
            )
        if array.dtype.itemsize not in (1, made.bytes):
            raise PlanError(f"{shown}, but the elements of the array have {array.dtype.itemsize} bytes ({array.dtype})")
        if array.dtype.kind != "u" and array.dtype != np.dtype(scalar_type(dtype)):  # unsigned integers are raw bits
            raise PlanError(f"{shown}, but the array has the type {array.dtype}")


def _require_scales(name: str, array: Any, rows: int, columns: int, type: ScaledType) -> None:
    """That a device array has the size and layout of packed scales. Raises PlanError."""
    if not isinstance(array, DeviceArray):
        return
    if array.dtype.itemsize != 1:
        raise PlanError(f"{name} are bytes of {type.scale}, not {array.dtype}")
    require_packed(name, np.broadcast_to(np.uint8(0), array.shape), rows, columns, type)


def title(name: Matrix) -> str:
    """A matrix in words."""
    return "the source" if name == "source" else name.upper()
