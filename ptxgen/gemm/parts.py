"""The parts of a tensor-core plan, each from the config: `GemmPlan.of` puts them together."""

from __future__ import annotations

from ptxgen.gemm.block_scales import BLOCK, BlockScales
from ptxgen.gemm.concepts.accumulator import MMA_COLUMNS, Accumulator, RegisterAccumulator
from ptxgen.gemm.concepts.combination import LinearCombination
from ptxgen.gemm.concepts.epilogue import Epilogue
from ptxgen.gemm.concepts.operand import Load, Operand
from ptxgen.gemm.concepts.pipeline import Pipeline
from ptxgen.gemm.concepts.roles import Roles
from ptxgen.gemm.concepts.scale_operand import ScaleOperand
from ptxgen.gemm.concepts.shared_map import Wanted
from ptxgen.gemm.concepts.tile_scheduler import TileScheduler
from ptxgen.gemm.config import GemmConfig
from ptxgen.gemm.errors import PlanError
from ptxgen.gemm.scales import ScaledType
from ptxgen.gemm.types import QUANTIZED_OUTPUTS, TYPES
from ptxgen.options import as_text

#: A 16-byte response of cluster launch control.
RESPONSE_BYTES = 16
#: Where tcgen05.alloc writes the address.
TMEM_ADDRESS = Wanted("tmem", 4, 4, "address of the accumulators")


# What a config may not combine.


def require_cluster(config: GemmConfig) -> None:
    """Raises PlanError for a cluster that the design or the hardware does not have."""
    m, n, group = config.cluster_m, config.cluster_n, config.cta_group
    if m % group:
        raise PlanError(f"cta_group::{group} takes pairs of CTAs along M: cluster_m must be even, not {m}")
    if m * n > 8:
        raise PlanError(f"a cluster has at most 8 CTAs, but {m}×{n} has {m * n}")


def require_splits(config: GemmConfig, hopper_roles: bool) -> None:
    """Raises PlanError where tiles are split along K (stream-K, split K) and the rest of the config does not allow it.

    `hopper_roles`: the kernel is Hopper's, with warpgroups for roles.
    """
    if config.scheduler == "stream" and (not hopper_roles or config.batched):
        raise PlanError("stream takes a Hopper kernel with roles and without batches")
    m, n, parts, clusters = config.cluster_m, config.cluster_n, config.split_k, config.k_clusters
    if config.scheduler == "stream" and min(m, n) > 1:
        raise PlanError(f"stream takes clusters along M or along N, but {m}×{n} goes along both")
    if parts == 1 and config.sums != "own":
        raise PlanError(f"sums={config.sums} takes split_k of 2 or more")
    if parts == clusters == 1:
        return
    words = " ".join(f"{name}={count}" for name, count in (("split_k", parts), ("k_clusters", clusters)) if count > 1)
    if not hopper_roles:
        raise PlanError(f"{words} takes a Hopper kernel with roles")
    needed: dict[str, object] = {"scheduler": "grid", "consumers": "cooperative", "lag": 0}
    if clusters > 1:
        needed |= {"scales": "none", "batched": False}
    elif config.scales != "none":
        needed |= {"cluster_m": 1, "cluster_n": 1}
    others = [f"{name}={as_text(getattr(config, name))}" for name in needed if getattr(config, name) != needed[name]]
    if others:
        takes = ", ".join(f"{name}={as_text(value)}" for name, value in needed.items())
        raise PlanError(f"{words} takes {takes}; this kernel has {', '.join(others)}")
    if m * n * parts > 8:
        raise PlanError(f"a cluster has at most 8 CTAs, but {m}×{n} of split_k={parts} has {m * n * parts}")


def require_groups(config: GemmConfig, roles: bool) -> None:
    """Raises PlanError where B has a matrix for each group of rows and the rest of the config does not allow it.

    `roles`: the kernel has warps or warpgroups for roles.
    """
    if config.grouped == "none":
        return
    masked = config.grouped == "masked"
    if not roles:
        raise PlanError(f"grouped={config.grouped} takes a kernel with roles")
    needed: dict[str, object] = {"batched": masked, "split_k": 1, "k_clusters": 1}
    if masked:
        needed |= {"consumers": "cooperative", "lag": 0}
    if config.scales != "none":
        needed["scales"] = "1d2d"
    others = [f"{name}={as_text(getattr(config, name))}" for name in needed if getattr(config, name) != needed[name]]
    others += ["scheduler=stream"] * (config.scheduler == "stream")
    if others:
        takes = ", ".join(f"{name}={as_text(value)}" for name, value in needed.items())
        raise PlanError(f"grouped={config.grouped} takes {takes} and whole tiles; this kernel has {', '.join(others)}")


# Operands.


def scaled_types(config: GemmConfig) -> tuple[ScaledType, ScaledType] | None:
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


def operands(
    config: GemmConfig, scaled: tuple[ScaledType, ScaledType] | None, wgmma: bool, *, by_tma: bool
) -> tuple[Operand, Operand]:
    """A and B of a CTA: with cta_group::2 it has half of both, and CTAs of the cluster share its loads.

    A is shared along N (cluster_n), B along M (cluster_m), by one CTA of each pair.
    """
    group = config.cta_group
    load: Load = "tma" if by_tma else "copies"
    packed = scaled is not None and scaled[0].kind != "mxf8f6f4"

    def operand(name: str, dtype: str, major: str, rows: int, peers: int, hint: str) -> Operand:
        batched = config.batched or (name == "b" and config.grouped == "contiguous")
        return Operand(
            name, dtype, major, rows // group, config.swizzle, wgmma, peers, load, batched,
            config.k_tile_bytes, packed=packed, hint=hint,
        )  # fmt: skip

    return (
        operand("a", config.dtype, config.a_major, config.m_tile, config.cluster_n, config.a_hint),
        operand("b", config.b_type, config.b_major, config.n_tile, config.cluster_m // group, config.b_hint),
    )


def scale_operands(
    config: GemmConfig, scaled: tuple[ScaledType, ScaledType] | None, a: Operand
) -> tuple[ScaleOperand, ...]:
    """The scales of A and B of a block-scaled kernel; none of others."""
    if scaled is None:
        return ()
    multicast = config.sfb_multicast and config.cta_group == 2
    return (
        ScaleOperand("sfa", scaled[0], config.m_tile // config.cta_group, a.k_tile, a.mma_k),
        ScaleOperand("sfb", scaled[1], config.n_tile, a.k_tile, a.mma_k, multicast),
    )


# Accumulators, and the warps that they take.


def tensor_memory(
    config: GemmConfig, a: Operand, b: Operand, scales: tuple[ScaleOperand, ...], specialized: bool
) -> tuple[Accumulator, Roles]:
    """Blackwell: accumulators in tensor memory, and the roles of the warps."""
    accumulator = Accumulator.of(
        a, b, m=config.m_tile, n=config.n_tile, cta_group=config.cta_group, stages=config.accumulators,
        overlap=config.overlap, scales=scales,
    )  # fmt: skip
    if config.overlap and config.scheduler == "grid":
        raise PlanError("overlapping accumulators are for persistent kernels: scheduler=static or clc")
    return accumulator, Roles.of(
        specialized=specialized, scheduler=config.scheduler == "clc", converged=config.converged
    )


def registers(
    config: GemmConfig, a: Operand, b: Operand, specialized: bool
) -> tuple[RegisterAccumulator, Roles, BlockScales | None]:
    """Hopper: an accumulator in registers, the warpgroups, and the scales of its sums where it takes any."""
    pingpong = config.consumers == "pingpong"
    warpgroups = config.warpgroups or (1 if pingpong else config.m_tile // 64)
    consumers = (2 if pingpong else warpgroups) if specialized else 0
    accumulator = RegisterAccumulator.of(
        a, b, m=config.m_tile, n=config.n_tile, warpgroups=warpgroups, promote=config.promote,
        widest=min(Roles.mma_columns(consumers), MMA_COLUMNS),
    )  # fmt: skip
    consumers = _consumers(config, accumulator.warpgroups)
    scales = _block_scales(config, accumulator, a.k_tile)
    early = scales is not None or (accumulator.promoted and accumulator.blocks > 1)
    if specialized and config.stages < 2 and not early:
        raise PlanError(
            "stages must be at least 2: the consumers release a stage once the wgmmas of the next are issued"
        )
    extra = 0 if scales is None else scales.registers
    roles = Roles.warpgroups(
        consumers,
        accumulator.registers + extra,
        accumulator.mma_registers,
        specialized=specialized,
        producer=config.load_registers,
        parts=accumulator.parts + (f" + {extra} for scales" if extra else ""),
    )
    return accumulator, roles, scales


def _consumers(config: GemmConfig, warpgroups: int) -> int:
    """Consumer warpgroups of a Hopper kernel, whose tile `warpgroups` share. Raises PlanError."""
    consumers = warpgroups
    if config.consumers == "pingpong":
        if warpgroups > 1:
            raise PlanError(f"pingpong gives each warpgroup a tile of its own, not {warpgroups} warpgroups")
        if config.lag:
            raise PlanError("pingpong takes no lag: its warpgroups take turns")
        if config.scheduler != "static":
            raise PlanError("pingpong takes a persistent kernel: scheduler=static")
        consumers = 2
    if config.lag and (consumers != 2 or config.scheduler == "stream" or config.stages <= config.lag):
        raise PlanError(f"lag={config.lag} takes two warpgroups, at least {config.lag + 1} stages and whole tiles")
    return consumers


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
    if config.c_major != c_major:
        raise PlanError(f"scales={config.scales} take c_major={c_major}")
    return BlockScales(config.m_tile, config.n_tile, accumulator.blocks, swapped, config.batched)


# From the accumulator to C, tile by tile.


def epilogue(config: GemmConfig, accumulator: Accumulator | RegisterAccumulator, roles: Roles) -> Epilogue:
    """How the accumulator becomes C. Raises PlanError."""
    if config.batched and config.c_type in QUANTIZED_OUTPUTS:
        raise PlanError(f"C of {config.c_type}, which has scales, takes batched=false")
    return Epilogue.of(
        accumulator, config.c_type, c_major=config.c_major,
        tma=config.epilogue == "tma", tmem_load=config.tmem_load, chunk=config.chunk,
        buffers=config.chunk_buffers, batched=config.batched, warps=roles.storing,
        overlap=config.overlap, store_bytes=config.store_bytes, cache=config.store_cache,
        combination=combination(config, accumulator.d_type),
    )  # fmt: skip


def combination(config: GemmConfig, d_type: str) -> LinearCombination:
    """What C is beside the product: alpha, beta, bias, activation."""
    return LinearCombination.of(
        d_type,
        config.c_type,
        alpha=config.alpha,
        source=config.source,
        bias=config.bias,
        activation=config.activation,
    )


def scheduler(config: GemmConfig, rows: int) -> TileScheduler:
    """Which tile of `rows` rows a CTA computes, and which next."""
    return TileScheduler(
        config.scheduler, rows, config.n_tile, (config.cluster_m, config.cluster_n), config.panel, config.slots,
        config.batched, config.order, config.split_k, config.grouped, k_clusters=config.k_clusters,
    )  # fmt: skip


# Rings and shared memory.


def pipelines(
    config: GemmConfig,
    a: Operand,
    b: Operand,
    scheduler: TileScheduler,
    accumulator: Accumulator | RegisterAccumulator,
    block_scales: BlockScales | None,
) -> list[Pipeline]:
    """The rings between the roles, with the arrivals and bytes of their phases, not yet placed."""
    group, ctas, clustered = config.cta_group, scheduler.cluster_ctas, scheduler.cluster_ctas > 1
    what = "a K block of A and B"
    if isinstance(accumulator, RegisterAccumulator):
        # Every consumer warp of the CTAs that this one loads for: its row and its column of the cluster.
        # No scope: copies and wgmma follow an mbarrier of another CTA all the same, and ptxas makes .cluster a MEMBAR
        # of the GPU in every K block.
        loaded = a.bytes + b.bytes + (0 if block_scales is None else block_scales.bytes)
        sharing = config.cluster_m + config.cluster_n - 1
        ab = Pipeline("ab", config.stages, 1, loaded, 4 * accumulator.warpgroups * sharing, what)
        # Warpgroups that take turns: the warps of one arrive where the other waits.
        turns = [Pipeline("turn", 2, 4, 0, 0, "the turn of a warpgroup to multiply")]
        lags = [Pipeline("lag", 1, 4, 0, 0, "the start of the second warpgroup")]
        return [ab, *turns * (config.consumers == "pingpong"), *lags * (config.lag > 0)]
    # A commit of every pair that this CTA loads for: its row and its column of the cluster.
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


def stages_in_shared_memory(
    config: GemmConfig,
    operands: tuple[Operand, Operand],
    scales: tuple[ScaleOperand, ...],
    block_scales: BlockScales | None,
) -> list[Wanted]:
    """The regions that a K block fills: A, B and their scales, `config.stages` of each."""
    stages = config.stages
    wanted = [each.wanted(stages) for each in operands]
    wanted += [
        Wanted(each.name, stages * each.bytes, 128, f"scales, {each.rows} rows", stages) for each in scales
    ]  # fmt: skip
    if block_scales is not None:
        wanted.append(Wanted(block_scales.by_tma, stages * block_scales.stage_bytes, 128, block_scales.wanted, stages))
    return wanted


def responses(config: GemmConfig) -> list[Wanted]:
    """Where cluster launch control answers; nothing without it."""
    if config.scheduler != "clc":
        return []
    size = config.clc_stages * RESPONSE_BYTES
    return [Wanted("response", size, 16, "responses of cluster launch control", config.clc_stages)]
