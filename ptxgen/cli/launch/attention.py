"""`ptxgen run`, `audit` and `time` of an attention kernel: its problem on the command line, and the job of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ptxgen.cli.common import completion
from ptxgen.cli.common.groups import ATTENTION, GEMM, Given, Group
from ptxgen.cli.common.options import plan_any
from ptxgen.cli.errors import InputError

if TYPE_CHECKING:
    from ptxgen.attention import AttentionProblem
    from ptxgen.attention.problem import Layout
    from ptxgen.device import Device
    from ptxgen.job import Job, JobResult

_DEFAULT_SIZE = 512


@dataclass(frozen=True)
class AttentionOptions(Group):
    """The options of an attention problem, as given; None and false: not given."""

    PANEL = "The problem (attention)"
    KINDS = (ATTENTION,)

    queries: Annotated[
        int | None, typer.Option("--queries", help="Rows of Q and O in a head; default: 512.", show_default=False)
    ] = None
    keys: Annotated[
        int | None, typer.Option("--keys", help="Rows of K and V in a head; default: --queries.", show_default=False)
    ] = None
    heads: Annotated[int | None, typer.Option("--heads", help="Heads of Q; default: 1.", show_default=False)] = None
    kv_heads: Annotated[
        int | None,
        typer.Option(
            "--kv-heads",
            help="Heads of K and V, each shared by as many heads of Q; default: --heads.",
            show_default=False,
        ),
    ] = None
    head_size: Annotated[
        int | None,
        typer.Option("--head-size", help="Short for --set head_size=N: columns of a head.", show_default=False),
    ] = None
    causal: Annotated[bool, typer.Option("--causal", help="Short for --set causal=true.", show_default=False)] = False
    layout: Annotated[
        str | None,
        typer.Option(
            "--layout",
            metavar="bhsd|bshd",
            help="Order of batch, head, row and column in memory; default: bhsd.",
            show_default=False,
            autocompletion=completion.words("bhsd", "bshd"),
        ),
    ] = None

    def problem(
        self,
        kernel: str,
        settings: list[str],
        dtype: str | None,
        c_dtype: str | None,
        given: Given,
        batches: int = 1,
        *,
        path: str | None = None,
    ) -> AttentionProblem | None:
        """The problem of an attention kernel; None for a GEMM kernel. `path` is the file whose PTX is of the kernel.

        Raises InputError for options of another kind of kernel, and PlanError for what does not fit.
        """
        from ptxgen.attention import AttentionEntry, AttentionPlan
        from ptxgen.cli.common.options import find_any

        is_attention = isinstance(find_any(kernel), AttentionEntry)
        given.require(path or kernel, ATTENTION if is_attention else GEMM)
        if not is_attention:
            return None
        own = [f"head_size={self.head_size}"] if self.head_size is not None else []
        own += ["causal=true"] * self.causal
        plan = cast("AttentionPlan", plan_any(kernel, [*settings, *own], dtype, c_dtype))
        queries = _DEFAULT_SIZE if self.queries is None else self.queries
        return plan.problem(
            queries,
            queries if self.keys is None else self.keys,
            heads=1 if self.heads is None else self.heads,
            kv_heads=0 if self.kv_heads is None else _positive("--kv-heads", self.kv_heads),
            batches=batches,
            layout=cast("Layout", self.layout or "bhsd"),
        )


def _positive(option: str, value: int) -> int:
    if value < 1:
        raise InputError(f"{option} must be 1 or more, not {value}")
    return value


@dataclass(frozen=True)
class AttentionRun:
    """A problem with inputs of a seed, as `ptxgen run` runs a job; `text`: an edited PTX, of the file `edited`."""

    kernel: str
    problem: AttentionProblem
    seed: int
    text: str | None = None
    edited: str | None = None

    @property
    def path(self) -> str:
        return self.edited or self.kernel

    @property
    def target(self) -> str:
        return self.problem.plan.target

    @property
    def ptx(self) -> str:
        return self.problem.plan.text if self.text is None else self.text

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.problem.outputs)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        inputs: dict[str, tuple[int, ...]] = {name: self.problem.shape(name) for name in "qkv"}
        return {**inputs, **{name: shape for name, (shape, _) in self.problem.outputs.items()}}

    def parameter(self, given: str) -> str:
        """The name itself: arrays are no parameters."""
        return given

    @cached_property
    def job(self) -> Job:
        from ptxgen.attention.job import job

        return job(self.problem, self.seed, self.text)

    def __getstate__(self) -> dict[str, Any]:
        """Without the job, which another process makes anew."""
        return {name: value for name, value in self.__dict__.items() if name != "job"}

    @property
    def roles(self) -> Mapping[int, str]:
        return self.problem.plan.roles.names

    def run(self, device: Device) -> JobResult:
        return self.job.run(device)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The plan, in words."""
        problem, plan = self.problem, self.problem.plan
        config = plan.config
        sizes = ", ".join(f"{name} {value}" for name, value in problem.sizes.items())
        columns = f"{config.head_size}" if config.values == config.head_size else f"{config.head_size}/{config.values}"
        grid = "×".join(map(str, problem.grid))
        regions = ", ".join(each.sum for each in plan.shared.regions)
        return [
            ("problem", f"O = softmax(scale·Q·Kᵀ)·V with {sizes}, head size {columns}; {config.dtype} in, "
             f"{config.o_type} out"),
            ("tile", f"{plan.scheduler.rows} queries, {plan.softmax.explain()}; grid {grid} of {problem.block} "
             "threads"),
            ("scheduler", plan.scheduler.explain()),
            ("roles", plan.roles.explain()),
            ("shared", f"{plan.shared.bytes} of {plan.shared.limit} bytes: {regions}"),
            *(("pipeline", f"{each.name}: {each.explain()}") for each in plan.pipelines),
            ("accumulators", plan.places),
            ("epilogue", plan.epilogue.explain()),
        ]  # fmt: skip

    def details(self) -> dict[str, Any]:
        """The plan, as JSON takes it."""
        problem, plan = self.problem, self.problem.plan
        return {
            "kernel": self.kernel,
            "problem": {**problem.sizes, "layout": problem.layout, "seed": self.seed},
            "config": {**asdict(plan.config), "o_dtype": plan.config.o_type, "value_size": plan.config.values},
            "grid": problem.grid,
            "block": problem.block,
            "shared": {
                "bytes": plan.shared.bytes,
                "limit": plan.shared.limit,
                "regions": [asdict(region) for region in plan.shared.regions],
            },
            "pipelines": [asdict(each) for each in plan.pipelines],
        }
