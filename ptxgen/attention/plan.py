"""The plan of an attention kernel: what follows from a config, computed and checked before any text exists.

A problem (queries, keys, heads, batches) is not part of it: the same PTX takes any.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ptxgen.attention.config import AttentionConfig
from ptxgen.attention.roles import AttentionRoles
from ptxgen.attention.softmax import Softmax
from ptxgen.attention.tensor_memory import TensorMemory
from ptxgen.gemm.concepts.accumulator import Accumulator, RegisterAccumulator
from ptxgen.gemm.concepts.epilogue import Epilogue
from ptxgen.gemm.concepts.operand import Fragments, Operand
from ptxgen.gemm.concepts.pipeline import Pipeline
from ptxgen.gemm.concepts.roles import Roles
from ptxgen.gemm.concepts.shared_map import SharedMap, Wanted
from ptxgen.gemm.concepts.tile_scheduler import TileScheduler
from ptxgen.layouts.tmem import LANES
from ptxgen.options import PlanError

if TYPE_CHECKING:
    from ptxgen.attention.problem import AttentionProblem
    from ptxgen.builder import Template

#: Rows of a warpgroup's wgmma.
ROWS = 64
#: Keys of a block on Hopper up to so many columns of K and V together.
_KEYS = {256: 128, 320: 128, 384: 96, 512: 64}


@dataclass(frozen=True)
class AttentionPlan:
    """The concepts of a kernel, and where they lie in shared memory. `template` renders them."""

    config: AttentionConfig
    template: Template
    target: str
    q: Operand
    k: Operand
    v: Operand
    #: Q·Kᵀ of a block of keys.
    scores: RegisterAccumulator | Accumulator
    softmax: Softmax
    #: The exponentials of the scores, the A of the second MMA.
    exponentials: Fragments
    #: The sum over blocks of exponentials times V.
    output: RegisterAccumulator | Accumulator
    epilogue: Epilogue
    scheduler: TileScheduler
    roles: Roles | AttentionRoles
    pipelines: tuple[Pipeline, ...]
    shared: SharedMap
    #: None on Hopper.
    memory: TensorMemory | None = None
    name: str = ""
    #: The options that `ptxgen run FILE.ptx` needs to make this plan again from the kernel of that name.
    settings: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: AttentionConfig, template: Template, *, design: str, target: str) -> AttentionPlan:
        """Plan a config. Raises PlanError, with the numbers, where the hardware has no room or no such form."""
        config.require(target)
        if config.epilogue == "tma" and config.values % config.chunk:
            raise PlanError(f"chunk must divide the {config.values} columns of O, not {config.chunk}")
        config = replace(config, **_tile(config, design, target))
        rows = config.query_tile
        parts = (_hopper if target == "sm_90a" else _blackwell)(config, rows, design)
        wanted = [parts.q.wanted(parts.query_tiles), parts.k.wanted(config.stages), parts.v.wanted(config.stages)]
        wanted += [*parts.epilogue.wanted, *parts.wanted]
        wanted += [region for each in parts.pipelines for region in each.wanted]
        shared = SharedMap.place(wanted, target=target)
        placed = tuple(each.placed(shared) for each in parts.pipelines)
        scheduler = TileScheduler(
            config.scheduler, rows, 1, panel=config.panel, slots=config.slots, batched=True,
            extents=("queries", "heads"), backward=config.causal,
        )  # fmt: skip
        return cls(
            config, template, target, parts.q, parts.k, parts.v, parts.scores, parts.softmax, parts.exponentials,
            parts.output, parts.epilogue, scheduler, parts.roles, placed, shared, parts.memory,
        )  # fmt: skip

    def pipeline(self, name: str) -> Pipeline:
        """A pipeline by name; KeyError that lists the names if there is none."""
        for each in self.pipelines:
            if each.name == name:
                return each
        raise KeyError(f"no pipeline {name!r}; there are {', '.join(each.name for each in self.pipelines)}")

    @property
    def places(self) -> str:
        """Where scores, exponentials and output are, in words."""
        if isinstance(self.scores, RegisterAccumulator) and isinstance(self.output, RegisterAccumulator):
            return (
                f"{self.output.registers} registers a thread for the output, {self.scores.registers} for scores, "
                f"{self.exponentials.registers} for exponentials"
            )
        assert self.memory is not None
        return self.memory.explain()

    def offset(self, name: str) -> int:
        """Where a region of shared memory starts, in bytes."""
        return self.shared.offset(name)

    @property
    def entry(self) -> str:
        config = self.config
        sizes = f"{config.head_size}" if config.values == config.head_size else f"{config.head_size}_{config.values}"
        return f"attention_{config.dtype}_{sizes}{'_causal' * config.causal}"

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The entry's parameters, in order: declaration and name."""
        tensormap, word, long = ".param .align 64 .b8", ".param .u32", ".param .u64"
        made = [(tensormap, f"tensormap_{name}[128]") for name in "qkv"]
        if self.epilogue.tma:
            made.append((tensormap, "tensormap_o[128]"))
        else:
            made += [(long, "o"), (word, "ldo"), (long, "head_stride_o"), (long, "batch_stride_o")]
        made += [(long, "lse")] * self.config.lse
        made += [(word, name) for name in ("queries", "keys", "heads", "group_heads")]
        made += [(word, "batches")] * self.scheduler.persistent
        made += [(word, "offset")] * self.config.causal
        return [*made, (".param .f32", "scale")]

    @cached_property
    def text(self) -> str:
        """The kernel's PTX; its last line names the kernel and its options. Raises TemplateError."""
        text = self.template.render(target=self.target, version=self.config.ptx, plan=self)
        return f"{text}// ptxgen: {' '.join([self.name, *self.settings])}\n" if self.name else text

    def problem(self, queries: int, keys: int, **more: Any) -> AttentionProblem:
        """This plan applied to a problem; `more` are other fields of AttentionProblem, such as `heads`."""
        from ptxgen.attention.problem import AttentionProblem

        return AttentionProblem(self, queries, keys, **more)


@dataclass(frozen=True)
class _Parts:
    """What differs between the targets. `query_tiles`: tiles of Q in shared memory, one for each MMA."""

    q: Operand
    k: Operand
    v: Operand
    scores: RegisterAccumulator | Accumulator
    softmax: Softmax
    exponentials: Fragments
    output: RegisterAccumulator | Accumulator
    epilogue: Epilogue
    roles: Roles | AttentionRoles
    pipelines: list[Pipeline]
    memory: TensorMemory | None = None
    wanted: tuple[Wanted, ...] = ()
    query_tiles: int = 1


def _tile(config: AttentionConfig, design: str, target: str) -> dict[str, Any]:
    """Queries of a CTA, keys of a block and turns of warpgroups where the config leaves them open.

    On Hopper what was the fastest for 4096 queries on an H200 (docs/attention.md), on Blackwell what fits.
    """
    widest, specialized = max(config.head_size, config.values), design == "specialized"
    rows, keys, wanted = config.query_tile, config.key_tile, 0
    if target != "sm_90a":
        # Of 256 columns two tiles of outputs take all of tensor memory, and two of Q too much of shared memory.
        rows = rows or LANES * (2 if specialized and widest < 256 else 1)
        return {"query_tile": rows, "key_tile": keys or (LANES if widest <= 128 else LANES // 2)}
    columns = 512 if widest == 256 else config.head_size + config.values
    if specialized and rows in (0, 3 * ROWS):
        # Three warpgroups have registers for fewer keys; causal tiles of two have less to mask.
        small = columns <= 256 and config.values <= 128
        wanted = 128 if widest <= 64 else 80 if small and not config.causal else 0
    three = wanted >= (keys or 1)
    rows = rows or ROWS * (3 if three else 2 if specialized else 1)
    keys = keys or (wanted if three else next(keys for most, keys in _KEYS.items() if columns <= most))
    consumers = config.consumers or ("pingpong" if rows == 3 * ROWS else "cooperative")
    return {"query_tile": rows, "key_tile": keys, "consumers": consumers}


def _hopper(config: AttentionConfig, rows: int, design: str) -> _Parts:
    """Scores, exponentials and output in the registers of warpgroups with 64 queries each."""
    specialized, warpgroups = design == "specialized", rows // ROWS
    if not specialized and warpgroups > 1:
        raise PlanError(f"one warpgroup has {ROWS} queries: query_tile must be {ROWS} here, not {rows}")
    if config.consumers == "pingpong" and warpgroups == 1:
        raise PlanError(f"pingpong takes two or three warpgroups: query_tile must be {2 * ROWS} or {3 * ROWS}")
    if config.overlap and config.stages < 2:
        raise PlanError("overlap takes two stages or more: the next block of keys is read before this one's values are")
    q, k, v = _operands(config, rows, wgmma=True)
    exponentials = Fragments("e", config.dtype, config.key_tile)
    scores = RegisterAccumulator.of(q, k, m=rows, n=config.key_tile)
    output = RegisterAccumulator.of(exponentials, v, m=rows, n=config.values)
    roles = Roles.warpgroups(
        warpgroups,
        scores.registers + output.registers + exponentials.registers,
        max(config.key_tile, config.values) // 2,
        specialized=specialized,
        producer=config.load_registers,
        parts=f"{output.registers} output + {scores.registers} scores + {exponentials.registers} exponentials",
    )
    epilogue = _epilogue(config, output, roles.storing)
    warps, persistent = 4 * warpgroups, config.scheduler != "grid"
    pipelines = [
        Pipeline("q", 1, 1, q.bytes, warps if persistent else 0, "the queries of a tile"),
        Pipeline("k", config.stages, 1, k.bytes, warps, "a block of keys"),
        Pipeline("v", config.stages, 1, v.bytes, warps, "a block of values"),
    ]
    if config.consumers == "pingpong":
        # Warpgroups that take turns: the warps of one arrive where the next waits.
        pipelines.append(Pipeline("turn", warpgroups, 4, 0, 0, "the turn of a warpgroup to multiply"))
    softmax = Softmax(config.key_tile, config.causal, config.lse)
    return _Parts(q, k, v, scores, softmax, exponentials, output, epilogue, roles, pipelines)


def _blackwell(config: AttentionConfig, rows: int, design: str) -> _Parts:
    """Scores, exponentials and output in tensor memory, a softmax warpgroup for each tile of 128 queries."""
    specialized, tiles = design == "specialized", rows // LANES
    if not specialized and tiles > 1:
        raise PlanError(f"one warpgroup has {LANES} queries: query_tile must be {LANES} here, not {rows}")
    if config.key_tile % 32 or config.key_tile > LANES:
        raise PlanError(
            f"a thread holds the scores of a row, 32 by 32: key_tile must be a multiple of 32 up to {LANES}, not "
            f"{config.key_tile}"
        )
    q, k, v = _operands(config, LANES, wgmma=False)
    memory = TensorMemory(tiles, config.key_tile, config.values)
    exponentials = Fragments("e", config.dtype, config.key_tile)
    scores = Accumulator.of(q, k, m=LANES, n=config.key_tile, cta_group=1, stages=1)
    output = Accumulator.of(exponentials, v, m=LANES, n=config.values, cta_group=1, stages=1)
    roles = AttentionRoles(tiles) if specialized else Roles()
    persistent = config.scheduler != "grid"
    pipelines = [
        Pipeline("q", 1, 1, tiles * q.bytes, 1 if persistent else 0, "the queries of a tile"),
        Pipeline("k", config.stages, 1, k.bytes, 1, "a block of keys"),
        Pipeline("v", config.stages, 1, v.bytes, 1, "a block of values"),
        Pipeline("s", tiles, 1, 0, 0, "the scores of a tile"),
        Pipeline("o", tiles, 1, 0, 0, "the output of a tile"),
    ]
    wanted = [Wanted("tmem", 4, 4, "address of the scores")]
    if specialized:
        words = 4 * LANES
        pipelines += [
            # Warps of the softmax and of the correction.
            Pipeline("e", tiles, 8, 0, 0, "exponentials, and the output that they are added to,"),
            Pipeline("stats", tiles, 4, 0, 0, "what a row's output is multiplied by"),
        ]
        wanted += [
            Wanted("shrink", tiles * words, 16, "factors of rows", tiles),
            # A persistent kernel has those of two tiles.
            Wanted("sums", (1 + persistent) * tiles * words, 16, "sums of rows", (1 + persistent) * tiles),
        ]
    softmax = Softmax(config.key_tile, config.causal, config.lse, whole_rows=True)
    return _Parts(
        q, k, v, scores, softmax, exponentials, output, _epilogue(config, output, 4), roles, pipelines, memory,
        tuple(wanted), tiles,
    )  # fmt: skip


def _operands(config: AttentionConfig, rows: int, *, wgmma: bool) -> tuple[Operand, Operand, Operand]:
    """Tiles in shared memory; V is the B of a product over keys, contiguous along its columns."""

    def operand(name: str, rows: int, k: int, major: str = "k") -> Operand:
        return Operand(name, config.dtype, major, rows, "128B", wgmma=wgmma, stage_bytes=2 * k, heads=True)

    return (
        operand("q", rows, config.head_size),
        operand("k", config.key_tile, config.head_size),
        operand("v", config.values, config.key_tile, major="mn"),
    )


def _epilogue(config: AttentionConfig, output: RegisterAccumulator | Accumulator, warps: int) -> Epilogue:
    return Epilogue.of(
        output, config.o_type, tma=config.epilogue == "tma", chunk=config.chunk, buffers=config.chunk_buffers,
        warps=warps, whole=True, heads=True, row_scale=isinstance(output, Accumulator),
    )  # fmt: skip
