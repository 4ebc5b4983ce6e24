"""Plans of the GEMM ladder: C = A·Bᵀ with A M×K and B N×K row-major.

The config is what a person chooses; `GemmPlan` is what follows from it. A problem (M, N, K) is not part of the plan:
the same PTX takes any.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Literal

from ptxgen.descriptors import DescriptorError, InstructionDescriptor, SmemDescriptor, TensorMap
from ptxgen.descriptors.tensormap import TiledMap
from ptxgen.device import DeviceArray
from ptxgen.dtypes import DTYPES
from ptxgen.kernels.plan import Barrier, PlanError, SharedMap
from ptxgen.layouts.swizzle import swizzle
from ptxgen.layouts.tmem import COLUMNS

InputType = Literal["bf16", "f16"]
OutputType = Literal["bf16", "f16", "f32"]

#: Other common names of the types.
ALIASES = {"fp16": "f16", "fp32": "f32"}
#: A CTA's four warps reach one quarter of the 128 TMEM lanes each (PTX ISA 9.7.16.2.1).
WARPS = 4
#: tcgen05.mma of 16-bit types takes 16 elements of K at a time (PTX ISA 9.7.16.2.1, table of shapes).
MMA_K = 16


@dataclass(frozen=True, kw_only=True)
class GemmConfig:
    """What a person chooses; tile sizes in elements. `c_dtype` None means the type of A and B."""

    dtype: InputType = "bf16"
    c_dtype: OutputType | None = None
    m_tile: int = 128
    n_tile: int = 128
    swizzle: Literal["128B"] = "128B"
    ptx: str = "8.6"

    def __post_init__(self) -> None:
        for name in ("dtype", "c_dtype"):
            value = getattr(self, name)
            object.__setattr__(self, name, ALIASES.get(value, value))
        if self.dtype not in ("bf16", "f16"):
            raise PlanError(f"dtype must be bf16 or f16, not {self.dtype}")
        if self.c_dtype not in (None, self.dtype, "f32"):
            raise PlanError(f"the output type must be {self.dtype} (as the input) or f32, not {self.c_dtype}")
        for name in ("m_tile", "n_tile"):
            if not isinstance(getattr(self, name), int):
                raise PlanError(f"{name} must be a whole number, not {getattr(self, name)!r}")
        if self.m_tile not in (64, 128):
            raise PlanError(f"the M tile must be 64 or 128 (tcgen05.mma with cta_group::1), not {self.m_tile}")
        if not 32 <= self.n_tile <= 256 or self.n_tile % 16:
            raise PlanError(f"the N tile must be 32 to 256 in steps of 16, not {self.n_tile}")


@dataclass(frozen=True)
class GemmPlan:
    """What follows from a config: shared memory, tensor memory, barriers, descriptors, the epilogue's chunk."""

    config: GemmConfig
    template: str
    target: str
    shared: SharedMap
    a_descriptor: SmemDescriptor
    b_descriptor: SmemDescriptor
    instruction_descriptor: InstructionDescriptor

    @classmethod
    def of(cls, config: GemmConfig, *, template: str, target: str) -> GemmPlan:
        """Plan a config. Raises PlanError, with the numbers, where the hardware has no room or no such form."""
        mode = swizzle(config.swizzle)
        atom = mode.row_bytes
        tile_a, tile_b = config.m_tile * atom, config.n_tile * atom
        shared = SharedMap.place(
            [
                ("a", tile_a, mode.period, f"A tile, {config.m_tile} rows of {atom} bytes, swizzled"),
                ("b", tile_b, mode.period, f"B tile, {config.n_tile} rows of {atom} bytes, swizzled"),
                ("loaded", 8, 8, "mbarrier: the tiles are in"),
                ("multiplied", 8, 8, "mbarrier: the tiles are used"),
                ("tmem", 4, 4, "address of the accumulator"),
            ],
            target=target,
        )
        try:
            # K-major, swizzled: groups of 8 rows follow each other; LBO is ignored and 16 by convention.
            operand = SmemDescriptor(
                start_address=0, leading_byte_offset=16, stride_byte_offset=8 * atom, swizzle=config.swizzle
            )
            instruction = InstructionDescriptor(
                kind="f16", a_type=config.dtype, b_type=config.dtype, d_type="f32", m=config.m_tile, n=config.n_tile
            )
        except DescriptorError as error:
            raise PlanError(f"the tile {config.m_tile}×{config.n_tile} has no descriptor: {error}") from error
        return cls(config, template, target, shared, operand, operand, instruction)

    # What the template reads.

    @property
    def entry(self) -> str:
        config = self.config
        return f"gemm_{config.dtype}_{self.c_dtype}_{config.m_tile}x{config.n_tile}"

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The entry's parameters, in order: two tensormaps, C, and the problem."""
        return [
            (".param .align 64 .b8", "tensormap_a"),
            (".param .align 64 .b8", "tensormap_b"),
            (".param .u64", "c"),
            (".param .u32", "m"),
            (".param .u32", "n"),
            (".param .u32", "k"),
        ]

    @property
    def threads(self) -> int:
        return 32 * WARPS

    @property
    def m_tile(self) -> int:
        return self.config.m_tile

    @property
    def n_tile(self) -> int:
        return self.config.n_tile

    @property
    def k_tile(self) -> int:
        """Elements of K per stage: one swizzle row."""
        return swizzle(self.config.swizzle).row_bytes // DTYPES[self.config.dtype].bytes

    @property
    def k_steps(self) -> int:
        """MMA instructions per stage."""
        return self.k_tile // MMA_K

    @property
    def k_step_advance(self) -> int:
        """What a K step adds to a descriptor's start address field, in its units of 16 bytes."""
        return MMA_K * DTYPES[self.config.dtype].bytes // 16

    @property
    def stage_bytes(self) -> int:
        """Bytes that the loads of a stage bring, elements outside the matrices included."""
        return (self.m_tile + self.n_tile) * self.k_tile * DTYPES[self.config.dtype].bytes

    def barrier(self, name: str) -> Barrier:
        return {
            "loaded": Barrier("loaded", 1, self.stage_bytes),
            "multiplied": Barrier("multiplied", 1, 0),
        }[name]

    @property
    def barriers(self) -> list[Barrier]:
        return [self.barrier("loaded"), self.barrier("multiplied")]

    @property
    def tmem_columns(self) -> int:
        """Allocated columns: a power of two of at least 32 (PTX ISA 9.7.16.7.1)."""
        columns = 32
        while columns < self.n_tile:
            columns *= 2
        if columns > COLUMNS:
            raise PlanError(f"the accumulator needs {columns} TMEM columns; there are {COLUMNS}")
        return columns

    @property
    def rows_per_warp(self) -> int:
        """Rows of the tile in one warp's quarter of the lanes: 32, or 16 where M is 64 (layout F)."""
        return self.m_tile // WARPS

    @property
    def chunk(self) -> int:
        """Columns that a thread holds at once in the epilogue."""
        return 32 if self.n_tile % 32 == 0 else 16

    @property
    def c_dtype(self) -> OutputType:
        return self.config.c_dtype or self.config.dtype

    @property
    def c_bytes(self) -> int:
        return DTYPES[self.c_dtype].bytes

    @cached_property
    def text(self) -> str:
        """The kernel's PTX."""
        from ptxgen.builder import render

        return render(self.template, target=self.target, version=self.config.ptx, plan=self)

    def problem(self, m: int, n: int, k: int) -> GemmProblem:
        """This plan applied to a problem size, in elements."""
        return GemmProblem(self, m, n, k)


@dataclass(frozen=True)
class GemmProblem:
    """A plan and a problem: launch shape, tensormaps and arguments. Sizes in elements."""

    plan: GemmPlan
    m: int
    n: int
    k: int

    def __post_init__(self) -> None:
        for name, value in (("M", self.m), ("N", self.n), ("K", self.k)):
            if not 1 <= value < 2**31:
                raise PlanError(f"{name} must be 1 to {2**31 - 1}, not {value}")
        step = 16 // DTYPES[self.plan.config.dtype].bytes
        if self.k % step:
            raise PlanError(
                f"K must be a multiple of {step} (TMA requires 16-byte-aligned rows), not {self.k}; "
                f"pad A and B with zeros to K = {-(-self.k // step) * step}"
            )
        if self.grid[1] > 65535:
            raise PlanError(
                f"N = {self.n} makes {self.grid[1]} tiles of {self.plan.n_tile}; a grid has at most 65535 in y"
            )

    @property
    def grid(self) -> tuple[int, int, int]:
        return -(-self.m // self.plan.m_tile), -(-self.n // self.plan.n_tile), 1

    @property
    def block(self) -> tuple[int, int, int]:
        return self.plan.threads, 1, 1

    def tensormap(self, which: Literal["a", "b"], address: Any) -> TiledMap:
        """The tensormap of A or B at an address (or device array): boxes of one K tile by the tile's rows."""
        plan = self.plan
        rows, tile = (self.m, plan.m_tile) if which == "a" else (self.n, plan.n_tile)
        return TensorMap.tiled(
            plan.config.dtype,
            address,
            dims=(self.k, rows),
            strides=(self.k * DTYPES[plan.config.dtype].bytes,),
            box=(plan.k_tile, tile),
            swizzle=plan.config.swizzle,
            l2_promotion="128B",
        )

    def arguments(self, a: Any, b: Any, c: Any) -> list[Any]:
        """The launch arguments in the order of the entry's parameters; each matrix a device array or an address.

        Raises PlanError for arrays of another size.
        """
        config = self.plan.config
        for name, array, extents, dtype in (
            ("A", a, (self.m, self.k), config.dtype),
            ("B", b, (self.n, self.k), config.dtype),
            ("C", c, (self.m, self.n), self.plan.c_dtype),
        ):
            size = prod(extents) * DTYPES[dtype].bytes
            if isinstance(array, DeviceArray) and array.nbytes != size:
                raise PlanError(
                    f"{name} is {extents[0]}×{extents[1]} {dtype}, {size} bytes, but the array of shape {array.shape} "
                    f"and type {array.dtype} has {array.nbytes}"
                )
        return [self.tensormap("a", a), self.tensormap("b", b), c, self.m, self.n, self.k]
