"""The plan of a GEMM: what follows from a config, computed and checked before any text exists.

A problem (M, N, K) is not part of it: the same PTX takes any.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from ptxgen.gemm.accumulator import Accumulator, RegisterAccumulator
from ptxgen.gemm.block_scales import BLOCK, BlockScales
from ptxgen.gemm.combination import LinearCombination
from ptxgen.gemm.config import GemmConfig
from ptxgen.gemm.epilogue import Epilogue
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.operand import Load, Operand
from ptxgen.gemm.pipeline import Pipeline
from ptxgen.gemm.reduction import ClusterReduction
from ptxgen.gemm.roles import Roles
from ptxgen.gemm.scale_operand import ScaleOperand
from ptxgen.gemm.scales import ScaledType
from ptxgen.gemm.shared_map import SharedMap, Wanted
from ptxgen.gemm.tile_scheduler import TileScheduler
from ptxgen.gemm.types import QUANTIZED_OUTPUTS, TYPES
from ptxgen.gemm.workspace import Workspace

if TYPE_CHECKING:
    from ptxgen.builder import Template
    from ptxgen.gemm.problem import GemmProblem

#: A 16-byte response of cluster launch control.
RESPONSE_BYTES = 16
#: Rows and columns of a CTA of one thread per element.
NAIVE_TILE = 16
#: Warps of a CTA of a GEMV.
GEMV_WARPS = 8

#: How a template is organized: one thread per element, warps with rows of B of their own, all threads that copy,
#: one thread that loads and multiplies, or warps with roles.
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
        scaled = _scaled_types(config)
        if design == "naive":
            return cls._naive(config, template, target)
        if design == "gemv":
            return cls._gemv(config, template, target)
        wgmma, group, cluster = target == "sm_90a", config.cta_group, (config.cluster_m, config.cluster_n)
        ctas = cluster[0] * cluster[1]
        if cluster[0] % group:
            raise PlanError(f"cta_group::{group} takes pairs of CTAs along M: cluster_m must be even, not {cluster[0]}")
        if ctas > 8:
            raise PlanError(f"a cluster has at most 8 CTAs, but {cluster[0]}×{cluster[1]} has {ctas}")
        if wgmma and min(cluster) > 1:
            raise PlanError(f"clusters lie along M or along N here, but {cluster[0]}×{cluster[1]} goes along both")
        peers = cluster[0] // group
        load: Load = "copies" if design == "copies" else "tma"
        batched = config.batched
        a, b = (
            Operand(
                name,
                dtype,
                major,
                rows // group,
                config.swizzle,
                wgmma,
                sharing,
                load,
                batched,
                config.k_tile_bytes,
                packed=scaled is not None and scaled[0].kind != "mxf8f6f4",
                hint=hint,
            )
            for name, dtype, major, rows, sharing, hint in (
                ("a", config.dtype, config.a_major, config.m_tile, cluster[1], config.a_hint),
                ("b", config.b_type, config.b_major, config.n_tile, peers, config.b_hint),
            )
        )
        scales: tuple[ScaleOperand, ...] = ()
        if scaled is not None:
            scales = (
                ScaleOperand("sfa", scaled[0], config.m_tile // group, a.k_tile, a.mma_k),
                ScaleOperand("sfb", scaled[1], config.n_tile, b.k_tile, b.mma_k, config.sfb_multicast and group == 2),
            )
        specialized = design == "specialized"
        if config.scheduler == "stream" and not (wgmma and specialized and not batched):
            raise PlanError("stream takes a Hopper kernel with roles and without batches")
        if config.split_k > 1:
            _require_split_k(config, wgmma and specialized)
        m, n = config.m_tile, config.n_tile
        accumulator: Accumulator | RegisterAccumulator
        block_scales: BlockScales | None = None
        if wgmma:
            pingpong = config.consumers == "pingpong"
            warpgroups = config.warpgroups or (1 if pingpong else 0)
            accumulator = RegisterAccumulator.of(a, b, m=m, n=n, warpgroups=warpgroups, promote=config.promote)
            consumers = accumulator.warpgroups
            if pingpong:
                if consumers > 1:
                    raise PlanError(f"pingpong gives each warpgroup a tile of its own, not {consumers} warpgroups")
                if config.lag:
                    raise PlanError("pingpong takes no lag: its warpgroups take turns")
                if config.scheduler != "static":
                    raise PlanError("pingpong takes a persistent kernel: scheduler=static")
                consumers = 2
            if config.lag and (consumers != 2 or config.scheduler == "stream" or config.stages <= config.lag):
                raise PlanError(
                    f"lag={config.lag} takes two warpgroups, at least {config.lag + 1} stages and whole tiles"
                )
            block_scales = _block_scales(config, accumulator, a.k_tile)
            early = block_scales is not None or (accumulator.promoted and accumulator.blocks > 1)
            if specialized and config.stages < 2 and not early:
                raise PlanError(
                    "stages must be at least 2: the consumers release a stage once the wgmmas of the next are issued"
                )
            extra = 0 if block_scales is None else block_scales.registers
            parts = accumulator.parts + (f" + {extra} for scales" if extra else "")
            registers = accumulator.registers + extra
            roles = Roles.warpgroups(
                consumers,
                registers,
                n // 2,
                specialized=specialized,
                producer=config.load_registers,
                parts=parts,
            )
        else:
            accumulator = Accumulator.of(
                a,
                b,
                m=m,
                n=n,
                cta_group=group,
                stages=config.accumulators,
                overlap=config.overlap,
                scales=scales,
            )
            roles = Roles.of(specialized=specialized, scheduler=config.scheduler == "clc")
        epilogue = Epilogue.of(
            accumulator, config.c_type, c_major=config.c_major,
            tma=config.epilogue == "tma", tmem_load=config.tmem_load, chunk=config.chunk,
            buffers=config.chunk_buffers, batched=batched, warps=roles.storing,
            overlap=config.overlap, store_bytes=config.store_bytes, cache=config.store_cache,
            combination=_combination(config, accumulator.d_type),
        )  # fmt: skip
        scheduler = TileScheduler(
            config.scheduler,
            accumulator.rows,
            config.n_tile,
            cluster,
            config.panel,
            config.slots,
            batched,
            config.order,
            config.split_k,
        )
        if config.overlap and not scheduler.persistent:
            raise PlanError("overlapping accumulators are for persistent kernels: scheduler=static or clc")
        reduction = _reduction(config.split_k, accumulator, roles)
        pipelines = _pipelines(config, a, b, scheduler, accumulator, block_scales)
        pipelines += [reduction.pipeline] if reduction else []
        wanted = [
            Wanted(each.name, config.stages * each.bytes, 1024, f"{each.name.upper()}, {each.rows} rows", config.stages)
            for each in (a, b)
        ]
        wanted += [
            Wanted(each.name, config.stages * each.bytes, 128, f"scales, {each.rows} rows", config.stages)
            for each in scales
        ]
        if block_scales is not None:
            size = config.stages * block_scales.stage_bytes
            wanted.append(Wanted(block_scales.by_tma, size, 128, block_scales.wanted, config.stages))
        wanted += epilogue.wanted
        wanted += [reduction.wanted] if reduction else []
        if scheduler.kind == "clc":
            size = config.clc_stages * RESPONSE_BYTES
            wanted.append(Wanted("response", size, 16, "responses of cluster launch control", config.clc_stages))
        wanted += [region for each in pipelines for region in each.wanted]
        if not wgmma:
            wanted.append(Wanted("tmem", 4, 4, "address of the accumulators"))
        shared = SharedMap.place(wanted, target=target)
        placed = tuple(
            replace(
                each, full=shared.offset(f"{each.name}_full") if each.full_arrivals else 0,
                empty=shared.offset(f"{each.name}_empty") if each.empty_arrivals else 0,
            )
            for each in pipelines
        )  # fmt: skip
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
            combination=_combination(config, accumulator.d_type),
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
        made += [(long, "workspace")] * self.scheduler.splits
        return [*made, (word, "m"), (word, "n"), (word, "k"), *[(word, "batches")] * batched]

    @property
    def cluster(self) -> tuple[int, int, int] | None:
        """CTAs of a cluster; None without clusters."""
        extents = (*self.scheduler.cluster, self.scheduler.split_k)
        return extents if max(extents) > 1 else None

    @property
    def workspace(self) -> Workspace | None:
        """The workspace of a kernel that splits tiles along K; None for others."""
        accumulator = self.accumulator
        if not self.scheduler.splits or not isinstance(accumulator, RegisterAccumulator):
            return None
        registers = accumulator.blocks * accumulator.n // 2
        return Workspace(
            self.scheduler.slots, self.scheduler.cluster, self.roles.storing, registers, accumulator.d_type
        )

    @property
    def reduction(self) -> ClusterReduction | None:
        """How the CTAs of a cluster reduce a tile that they split along K; None where they do not."""
        return _reduction(self.scheduler.split_k, self.accumulator, self.roles)

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
        """The kernel's PTX; its last line says of which kernel and options. Raises TemplateError."""
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


def _combination(config: GemmConfig, d_type: str) -> LinearCombination:
    return LinearCombination.of(
        d_type,
        config.c_type,
        alpha=config.alpha,
        source=config.source,
        bias=config.bias,
        activation=config.activation,
    )


def _reduction(parts: int, accumulator: Accumulator | RegisterAccumulator, roles: Roles) -> ClusterReduction | None:
    if parts == 1 or not isinstance(accumulator, RegisterAccumulator):
        return None
    registers = accumulator.blocks * accumulator.n // 2
    return ClusterReduction(parts, roles.storing, registers, accumulator.d_type)


def _require_split_k(config: GemmConfig, roles: bool) -> None:
    """Raises PlanError for what split K does not go with."""
    if not roles:
        raise PlanError(f"split_k={config.split_k} takes a Hopper kernel with roles")
    needed = {
        "scheduler": "grid",
        "consumers": "cooperative",
        "cluster_m": 1,
        "cluster_n": 1,
        "lag": 0,
    }
    others = [f"{name}={getattr(config, name)}" for name, value in needed.items() if getattr(config, name) != value]
    if others:
        takes = ", ".join(f"{name}={value}" for name, value in needed.items())
        raise PlanError(f"split_k={config.split_k} takes {takes}; this kernel has {', '.join(others)}")


def _pipelines(
    config: GemmConfig,
    a: Operand,
    b: Operand,
    scheduler: TileScheduler,
    accumulator: Accumulator | RegisterAccumulator,
    block_scales: BlockScales | None,
) -> list[Pipeline]:
    group, ctas, clustered = config.cta_group, scheduler.cluster_ctas, scheduler.cluster_ctas > 1
    what = "a K block of A and B"
    if isinstance(accumulator, RegisterAccumulator):
        # Every consumer warp of every CTA of the cluster, all of which share A or B. No scope: copies and wgmma follow
        # an mbarrier of another CTA all the same, and ptxas makes .cluster a MEMBAR of the GPU in every K block.
        loaded = a.bytes + b.bytes + (0 if block_scales is None else block_scales.bytes)
        ab = Pipeline("ab", config.stages, 1, loaded, 4 * accumulator.warpgroups * ctas, what)
        # Warpgroups that take turns: the warps of one arrive where the other waits.
        turns = [Pipeline("turn", 2, 4, 0, 0, "the turn of a warpgroup to multiply")]
        lags = [Pipeline("lag", 1, 4, 0, 0, "the start of the second warpgroup")]
        return [ab, *turns * (config.consumers == "pingpong"), *lags * (config.lag > 0)]
    # A commit of every pair that this CTA loads for: those of its row and those of its column of the cluster.
    commits = config.cluster_n + config.cluster_m // group - 1
    if not a.tma:
        return [Pipeline("acc", 1, 1, 0, 0, "a K block in the accumulator")]
    indexed = config.phases == "local"
    loaded = a.tx_bytes + b.tx_bytes + sum(each.bytes for each in accumulator.scales)
    ab = Pipeline("ab", config.stages, 1, group * loaded, commits, what, clustered, indexed)
    waits = 4 * group if scheduler.persistent else 0
    own = 0 if config.overlap else waits
    made = [ab, Pipeline("acc", config.accumulators, 1, 0, own, "an accumulator", clustered, indexed)]
    if config.overlap:
        # The epilogue reads the shared columns of a tile after all of the tile before.
        made.append(Pipeline("overlap", 1, 0, 0, waits, "what the accumulators share", clustered))
    if scheduler.kind == "clc":
        # Each CTA's load thread and epilogue warps, the MMA thread of each pair, and the scheduler.
        readers = ctas * 5 + ctas // group + 1
        made.append(Pipeline("clc", config.clc_stages, 1, RESPONSE_BYTES, readers, "a response", clustered))
    return made


def _block_scales(config: GemmConfig, accumulator: RegisterAccumulator, k_tile: int) -> BlockScales | None:
    """The fp32 scales of promoted sums, where there are any. Raises PlanError for what such kernels have not."""
    if config.scales == "none":
        return None
    if not accumulator.promoted:
        raise PlanError(
            f"scales={config.scales} multiply promoted sums of e4m3 and e5m2 (promote=true), not those of "
            f"{config.dtype}{' without promote' if accumulator.cut else ''}"
        )
    if k_tile != BLOCK:
        raise PlanError(f"scales={config.scales} are for {BLOCK} of K: the K tile must have as many, not {k_tile}")
    swapped = config.scales == "2d1d"
    c_major = "m" if swapped else "n"
    if config.batched or config.c_major != c_major:
        raise PlanError(f"scales={config.scales} take batched=false and c_major={c_major}")
    return BlockScales(config.m_tile, config.n_tile, accumulator.blocks, swapped)


def _scaled_types(config: GemmConfig) -> tuple[ScaledType, ScaledType] | None:
    """A's and B's types with their scales, where there are any. Raises PlanError for what such kernels have not."""
    scaled = config.scaled
    narrow = [name for name in (config.dtype, config.b_type) if TYPES[name].bits < 8]
    if scaled is None:
        narrow += [config.c_type] * (config.c_type in QUANTIZED_OUTPUTS)
        if narrow:
            what = f"C of {narrow[0]}" if narrow[0] == config.c_type else narrow[0]
            raise PlanError(f"{what} takes a block-scaled kernel such as mxfp8-initial; this one has no scales")
        return None
    if float(config.ptx) < 8.8:
        raise PlanError(f"block-scaled MMAs say .block{scaled[0].block}: ptx must be 8.8 or later, not {config.ptx}")
    if (config.cluster_m, config.cluster_n) != (config.cta_group, 1):
        raise PlanError(
            f"block-scaled kernels have clusters of {config.cta_group}×1 CTAs with cta_group::{config.cta_group}, not "
            f"{config.cluster_m}×{config.cluster_n}"
        )
    return scaled
