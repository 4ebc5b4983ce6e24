"""The plan of an attention kernel: what follows from a config, computed and checked before any text exists.

A problem (queries, keys, heads, batches) is not part of it: the same PTX takes any.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ptxgen.attention.config import AttentionConfig
from ptxgen.attention.softmax import Softmax
from ptxgen.gemm.accumulator import RegisterAccumulator
from ptxgen.gemm.epilogue import Epilogue
from ptxgen.gemm.operand import Fragments, Operand
from ptxgen.gemm.pipeline import Pipeline
from ptxgen.gemm.roles import Roles
from ptxgen.gemm.shared_map import SharedMap
from ptxgen.gemm.tile_scheduler import TileScheduler
from ptxgen.options import PlanError

if TYPE_CHECKING:
    from ptxgen.attention.problem import AttentionProblem
    from ptxgen.builder import Template

#: Rows of a warpgroup.
ROWS = 64


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
    scores: RegisterAccumulator
    softmax: Softmax
    #: The exponentials of the scores, the A of the second MMA.
    exponentials: Fragments
    #: The sum over blocks of exponentials times V.
    output: RegisterAccumulator
    epilogue: Epilogue
    scheduler: TileScheduler
    roles: Roles
    pipelines: tuple[Pipeline, ...]
    shared: SharedMap
    name: str = ""
    #: The options that `ptxgen run FILE.ptx` needs to make this plan again from the kernel of that name.
    settings: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: AttentionConfig, template: Template, *, design: str, target: str) -> AttentionPlan:
        """Plan a config. Raises PlanError, with the numbers, where the hardware has no room or no such form."""
        specialized = design == "specialized"
        warpgroups = config.query_tile // ROWS
        _require(config, specialized=specialized)
        q = _operand("q", config, config.query_tile, config.head_size)
        k = _operand("k", config, config.key_tile, config.head_size)
        v = _operand("v", config, config.values, config.key_tile, major="mn")
        exponentials = Fragments("e", config.dtype, config.key_tile)
        scores = RegisterAccumulator.of(q, k, m=config.query_tile, n=config.key_tile)
        output = RegisterAccumulator.of(exponentials, v, m=config.query_tile, n=config.values)
        kept = scores.registers + output.registers + exponentials.registers
        roles = Roles.warpgroups(
            warpgroups,
            kept,
            max(config.key_tile, config.values) // 2,
            specialized=specialized,
            producer=config.load_registers,
            parts=f"{output.registers} output + {scores.registers} scores + {exponentials.registers} exponentials",
        )
        scheduler = TileScheduler(
            config.scheduler, config.query_tile, 1, panel=config.panel, slots=config.slots, batched=True,
            extents=("queries", "heads"), backward=config.causal,
        )  # fmt: skip
        epilogue = Epilogue.of(
            output, config.o_type, tma=config.epilogue == "tma", chunk=config.chunk, buffers=config.chunk_buffers,
            warps=roles.storing, whole=True, heads=True,
        )  # fmt: skip
        pipelines = _pipelines(config, q, k, v, warpgroups, scheduler)
        wanted = [q.wanted(1), k.wanted(config.stages), v.wanted(config.stages), *epilogue.wanted]
        wanted += [region for each in pipelines for region in each.wanted]
        shared = SharedMap.place(wanted, target=target)
        placed = tuple(each.placed(shared) for each in pipelines)
        softmax = Softmax(config.key_tile, config.causal, config.lse)
        return cls(
            config, template, target, q, k, v, scores, softmax, exponentials, output, epilogue, scheduler, roles,
            placed, shared,
        )  # fmt: skip

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
    def warpgroups(self) -> int:
        """Those that multiply."""
        return self.scores.warpgroups

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
        """The kernel's PTX; its last line says of which kernel and options. Raises TemplateError."""
        text = self.template.render(target=self.target, version=self.config.ptx, plan=self)
        return f"{text}// ptxgen: {' '.join([self.name, *self.settings])}\n" if self.name else text

    def problem(self, queries: int, keys: int, **more: Any) -> AttentionProblem:
        """This plan applied to a problem; `more` are other fields of AttentionProblem, such as `heads`."""
        from ptxgen.attention.problem import AttentionProblem

        return AttentionProblem(self, queries, keys, **more)


def _require(config: AttentionConfig, *, specialized: bool) -> None:
    """Raises PlanError for options that exclude each other."""
    if not specialized and config.query_tile != ROWS:
        raise PlanError(f"one warpgroup has {ROWS} queries: query_tile must be {ROWS} here, not {config.query_tile}")
    if config.consumers == "pingpong" and config.query_tile == ROWS:
        raise PlanError(f"pingpong takes two or three warpgroups: query_tile must be {2 * ROWS} or {3 * ROWS}")
    if config.overlap and config.stages < 2:
        raise PlanError("overlap takes two stages or more: the next block of keys is read before this one's values are")
    if config.epilogue == "tma" and config.values % config.chunk:
        raise PlanError(f"chunk must divide the {config.values} columns of O, not {config.chunk}")


def _operand(name: str, config: AttentionConfig, rows: int, k: int, major: str = "k") -> Operand:
    """A tile in shared memory; V is the B of a product over keys, contiguous along its columns."""
    return Operand(name, config.dtype, major, rows, "128B", wgmma=True, stage_bytes=2 * k, heads=True)


def _pipelines(
    config: AttentionConfig, q: Operand, k: Operand, v: Operand, warpgroups: int, scheduler: TileScheduler
) -> list[Pipeline]:
    """K and V have rings of their own: a block of keys is free before its values are."""
    warps = 4 * warpgroups
    made = [
        Pipeline("q", 1, 1, q.bytes, warps if scheduler.persistent else 0, "the queries of a tile"),
        Pipeline("k", config.stages, 1, k.bytes, warps, "a block of keys"),
        Pipeline("v", config.stages, 1, v.bytes, warps, "a block of values"),
    ]
    if config.consumers == "pingpong":
        # Warpgroups that take turns: the warps of one arrive where the next waits.
        made.append(Pipeline("turn", warpgroups, 4, 0, 0, "the turn of a warpgroup to multiply"))
    return made
