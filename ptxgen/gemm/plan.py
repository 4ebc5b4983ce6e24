"""The plan of a GEMM: what follows from a config, computed and checked before any text exists.

A problem (M, N, K) is not part of it: the same PTX takes any.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from ptxgen.gemm import parts
from ptxgen.gemm.block_scales import BlockScales
from ptxgen.gemm.concepts.accumulator import Accumulator, RegisterAccumulator
from ptxgen.gemm.concepts.epilogue import Epilogue
from ptxgen.gemm.concepts.operand import Operand
from ptxgen.gemm.concepts.pipeline import Pipeline
from ptxgen.gemm.concepts.reduction import ClusterReduction
from ptxgen.gemm.concepts.roles import Roles
from ptxgen.gemm.concepts.scale_operand import ScaleOperand
from ptxgen.gemm.concepts.shared_map import SharedMap, Wanted
from ptxgen.gemm.concepts.tile_scheduler import TileScheduler
from ptxgen.gemm.concepts.workspace import SplitWorkspace, Workspace
from ptxgen.gemm.config import GemmConfig
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.types import TYPES

if TYPE_CHECKING:
    from ptxgen.builder import Template
    from ptxgen.gemm.problem import GemmProblem

#: Rows and columns of a CTA of one thread per element.
NAIVE_TILE = 16
#: Registers of a consumer beside the sums of a tile and those that it loads.
_SPARED = 40
#: Warps of a CTA of a GEMV.
GEMV_WARPS = 8

#: Organization of a template: one thread per element, warps with rows of B of their own, all threads copy, one thread
#: loads and issues MMAs, or warps with roles.
Design = Literal["naive", "gemv", "copies", "serial", "specialized"]


@dataclass(frozen=True)
class GemmPlan:
    """The concepts of a kernel, and where they lie in shared memory. `template` renders them."""

    config: GemmConfig
    template: Template
    target: str
    a: Operand
    b: Operand
    accumulator: Accumulator | RegisterAccumulator
    epilogue: Epilogue
    scheduler: TileScheduler
    roles: Roles
    pipelines: tuple[Pipeline, ...]
    shared: SharedMap
    #: The fp32 scales of promoted sums, where the kernel takes them.
    block_scales: BlockScales | None = None
    name: str = ""
    #: The options that `ptxgen run FILE.ptx` needs to make this plan again from the kernel of that name.
    settings: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: GemmConfig, template: Template, *, design: Design, target: str) -> GemmPlan:
        """Plan a config. Raises PlanError, with the numbers, where the hardware has no room or no such form."""
        config.require(target)
        scaled = parts.scaled_types(config)
        if design == "naive":
            return cls._naive(config, template, target)
        if design == "gemv":
            return cls._gemv(config, template, target)
        wgmma, specialized = target == "sm_90a", design == "specialized"
        parts.require_cluster(config)
        parts.require_splits(config, wgmma and specialized)
        parts.require_groups(config, specialized)
        # The order in which data flows: operands, accumulator, epilogue. Rings and shared memory follow from them.
        a, b = parts.operands(config, scaled, wgmma, by_tma=design != "copies")
        scales = parts.scale_operands(config, scaled, a)
        accumulator: Accumulator | RegisterAccumulator
        block_scales: BlockScales | None = None
        if wgmma:
            accumulator, roles, block_scales = parts.registers(config, a, b, specialized)
        else:
            accumulator, roles = parts.tensor_memory(config, a, b, scales, specialized)
        scheduler = parts.scheduler(config, accumulator.rows)
        epilogue = parts.epilogue(config, accumulator, roles)
        reduction = ClusterReduction.of(config, accumulator, roles)
        pipelines = parts.pipelines(config, a, b, scheduler, accumulator, block_scales)
        pipelines += reduction.pipelines if reduction else []
        wanted = parts.stages_in_shared_memory(config, (a, b), scales, block_scales)
        wanted += epilogue.wanted
        wanted += [reduction.wanted] if reduction else []
        wanted += parts.responses(config)
        wanted += [region for each in pipelines for region in each.wanted]
        wanted += [] if wgmma else [parts.TMEM_ADDRESS]
        shared = SharedMap.place(wanted, target=target)
        placed = tuple(each.placed(shared) for each in pipelines)
        return cls(
            config, template, target, a, b, accumulator, epilogue, scheduler, roles, placed, shared,
            block_scales=block_scales,
        )  # fmt: skip

    @classmethod
    def _naive(cls, config: GemmConfig, template: Template, target: str) -> GemmPlan:
        """One thread per element of C: no tensor cores, no shared memory, no tensormaps."""
        batched = config.batched
        a = Operand("a", config.dtype, config.a_major, NAIVE_TILE, "none", load="direct", batched=batched)
        b = Operand("b", config.b_type, config.b_major, NAIVE_TILE, "none", load="direct", batched=batched)
        if a.type.kind != "f16" or a.dtype != b.dtype:
            raise PlanError(f"the naive kernel multiplies bf16 or f16, not {a.dtype} by {b.dtype}")
        accumulator = RegisterAccumulator(NAIVE_TILE, NAIVE_TILE, "f32")
        tile = NAIVE_TILE
        epilogue = Epilogue(
            config.c_type, False, False, tile, tile, tile, 1, tmem=False, batched=batched,
            combination=parts.combination(config, accumulator.d_type),
        )  # fmt: skip
        scheduler = TileScheduler("grid", NAIVE_TILE, NAIVE_TILE, (1, 1), 0, batched=batched)
        shared = SharedMap.place((), target=target)
        roles = Roles(warps=NAIVE_TILE * NAIVE_TILE // 32)
        return cls(config, template, target, a, b, accumulator, epilogue, scheduler, roles, (), shared)

    @property
    def scales(self) -> tuple[ScaleOperand, ...]:
        """The scales of A and B, where they have any."""
        return self.accumulator.scales if isinstance(self.accumulator, Accumulator) else ()

    @classmethod
    def _gemv(cls, config: GemmConfig, template: Template, target: str) -> GemmPlan:
        """A warp per rows of B, or some that share them: no tensor cores, no tensormaps."""
        vectors, warps = config.vectors, config.k_warps
        columns = GEMV_WARPS // warps * config.warp_rows
        a = Operand("a", config.dtype, config.a_major, vectors, "none", load="vectors")
        b = Operand("b", config.b_type, config.b_major, columns, "none", load="vectors")
        if a.type.kind != "f16" or a.dtype != b.dtype:
            raise PlanError(f"the GEMV multiplies bf16 or f16, not {a.dtype} by {b.dtype}")
        accumulator = RegisterAccumulator(vectors, columns, "f32")
        epilogue = Epilogue(config.c_type, False, False, columns, vectors, columns, 1, tmem=False)
        scheduler = TileScheduler("grid", vectors, columns, (1, 1), 0)
        words = "sums of each warp"
        partials = Wanted("partials", 4 * GEMV_WARPS * vectors * config.warp_rows, 16, words, GEMV_WARPS)
        shared = SharedMap.place([partials] * (warps > 1), target=target)
        roles = Roles(warps=GEMV_WARPS)
        return cls(config, template, target, a, b, accumulator, epilogue, scheduler, roles, (), shared)

    @property
    def kind(self) -> str:
        """The kind of MMA: "f16", "mxf8f6f4"; those of wgmma are named as tcgen05's."""
        return self.scales[0].type.kind if self.scales else self.a.type.kind

    def pipeline(self, name: str) -> Pipeline:
        """A pipeline by name; KeyError that lists the names if there is none."""
        for each in self.pipelines:
            if each.name == name:
                return each
        raise KeyError(f"no pipeline {name!r}; there are {', '.join(each.name for each in self.pipelines)}")

    def offset(self, name: str) -> int:
        """Where a region of shared memory starts, in bytes."""
        return self.shared.offset(name)

    @property
    def entry(self) -> str:
        return f"gemm_{self.config.dtype}_{self.c_dtype}_{self.m_tile}x{self.n_tile}"

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The entry's parameters, in order: declaration and name."""
        tensormap, word, long = ".param .align 64 .b8", ".param .u32", ".param .u64"
        combination, batched = self.epilogue.combination, self.config.batched
        scalar = f".param .{combination.compute}"
        made: list[tuple[str, str]] = []
        matrices = [("a", self.a.tma), ("b", self.b.tma), ("c", self.epilogue.tma)]
        for name, tma in [*matrices, *[("source", False)] * bool(combination.source)]:
            made += [(tensormap, f"tensormap_{name}[128]")] * tma
            # The end of C's rows may need plain stores too (fact tma-store-units).
            if not tma or name == "c":
                made += [(long, name), (word, f"ld{name}"), *[(long, f"stride_{name}")] * batched]
            if name == "b":
                made += [(tensormap, f"tensormap_{each.name}[128]") for each in self.scales]
                made += self.block_scales.parameters if self.block_scales else []
            if name == "c":
                made += [(long, "sfc")] * self.epilogue.quantizes
        made += [(long, "bias")] * bool(combination.bias)
        made += [(scalar, "alpha")] * combination.alpha + [(scalar, "beta")] * bool(combination.source)
        made += [(long, "order")] * self.scheduler.hilbert
        made += [(long, "groups")] * (self.scheduler.grouped != "none")
        made += [(long, "workspace")] * (self.workspace is not None)
        return [*made, (word, "m"), (word, "n"), (word, "k"), *[(word, "batches")] * batched]

    @property
    def cluster(self) -> tuple[int, int, int] | None:
        """CTAs of a cluster; None without clusters."""
        extents = (*self.scheduler.cluster, self.scheduler.split_k)
        return extents if max(extents) > 1 else None

    @property
    def workspace(self) -> Workspace | SplitWorkspace | None:
        """The workspace of a kernel that splits tiles along K and sums in global memory; None for others."""
        accumulator, scheduler = self.accumulator, self.scheduler
        if not isinstance(accumulator, RegisterAccumulator) or not (scheduler.splits or scheduler.k_clusters > 1):
            return None
        registers = accumulator.blocks * accumulator.n // 2
        if scheduler.k_clusters > 1:
            free = self.roles.consumer_registers - registers - _SPARED
            return SplitWorkspace(
                scheduler.k_clusters, self.roles.storing, registers, accumulator.d_type, scheduler.split_k,
                min(max(free // 32 * 32, 32), registers),
            )  # fmt: skip
        return Workspace(
            self.scheduler.slots, self.scheduler.cluster, self.roles.storing, registers, accumulator.d_type
        )

    @property
    def reduction(self) -> ClusterReduction | None:
        """How the CTAs of a cluster reduce a tile that they split along K; None where they do not."""
        return ClusterReduction.of(self.config, self.accumulator, self.roles)

    def share(self, k: int) -> int:
        """The part of K of a CTA, in elements: whole K blocks. The last CTAs of a split tile may have less, or none."""
        parts = self.scheduler.parts
        return k if parts == 1 else -(-k // (self.k_tile * parts)) * self.k_tile

    @property
    def c_dtype(self) -> str:
        return self.epilogue.c_type

    @property
    def m_tile(self) -> int:
        return self.accumulator.m

    @property
    def n_tile(self) -> int:
        return self.accumulator.n

    @property
    def k_tile(self) -> int:
        return self.a.k_tile

    @cached_property
    def text(self) -> str:
        """The kernel's PTX; its last line names the kernel and its options. Raises TemplateError."""
        text = self.template.render(target=self.target, version=self.config.ptx, plan=self)
        return f"{text}// ptxgen: {' '.join([self.name, *self.settings])}\n" if self.name else text

    def problem(self, m: int, n: int, k: int, **more: Any) -> GemmProblem:
        """This plan applied to a problem; `more` are other fields of GemmProblem, such as `lda`, in elements."""
        from ptxgen.gemm.problem import GemmProblem

        return GemmProblem(self, m, n, k, **more)

    def padded_problem(self, m: int, n: int, k: int, **more: Any) -> GemmProblem:
        """The same with lines of matrices on 16 bytes, as TMA requires, where the kernel uses it for them."""
        found: dict[str, Any] = {}
        lines = {
            "a": k if self.a.major == "k" else m,
            "b": k if self.b.major == "k" else n,
            "c": m if self.config.c_major == "m" else n,
        }
        dtypes = {"a": self.a.dtype, "b": self.b.dtype, "c": self.c_dtype}
        aligned = {"a": self.a.load != "direct", "b": self.b.load != "direct", "c": self.epilogue.tma}
        for name, needed in aligned.items():
            if needed:
                step = 16 // TYPES[dtypes[name]].bytes if name == "c" else getattr(self, name).line_step
                found[f"ld{name}"] = -(-lines[name] // step) * step
        return self.problem(m, n, k, **{**found, **more})
