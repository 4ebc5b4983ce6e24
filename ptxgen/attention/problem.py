"""A plan applied to a problem: launch shape, tensormaps and arguments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np

from ptxgen.attention.plan import AttentionPlan
from ptxgen.gemm.concepts.operand import Batches
from ptxgen.gemm.types import TYPES
from ptxgen.options import PlanError

#: Order of the dimensions of Q, K, V and O: batch, head and row, or batch, row and head; the columns come last.
Layout = Literal["bhsd", "bshd"]
_LARGEST = 2**30
_MOST = 65535
#: Of the start of O, in bytes; the tensormaps of Q, K and V require as much.
_ALIGNMENT = 16


@dataclass(frozen=True)
class AttentionProblem:
    """A plan and a problem: `batches` times `heads` attentions of `queries` queries and `keys` keys.

    `kv_heads`: heads of K and V, each for as many heads of Q; 0: as many as Q has. `scale`: what the scores are
    multiplied by; 0: one over the square root of the head size. `strided`: those of Q, K, V and O that lie otherwise
    than `layout` says, each with the elements from one row to the next, one head and one batch, multiples of 16 bytes.
    Raises PlanError.
    """

    plan: AttentionPlan
    queries: int
    keys: int
    heads: int = 1
    kv_heads: int = 0
    batches: int = 1
    scale: float = 0.0
    layout: Layout = "bhsd"
    strided: tuple[tuple[str, tuple[int, int, int]], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "kv_heads", self.kv_heads or self.heads)
        for name, most in (
            ("queries", _LARGEST), ("keys", _LARGEST), ("heads", _MOST), ("kv_heads", _MOST), ("batches", _MOST),
        ):  # fmt: skip
            value = getattr(self, name)
            if not isinstance(value, Integral):
                raise PlanError(f"{name} must be a whole number, not {value!r}")
            if not 1 <= int(value) <= most:
                raise PlanError(f"{name} must be 1 to {most}, not {value}")
        if self.heads % self.kv_heads:
            raise PlanError(f"kv_heads must divide the {self.heads} heads of Q, not {self.kv_heads}")
        if not 0 <= self.scale < math.inf:  # NaN neither
            raise PlanError(f"scale must be a positive number, or 0 for one over √head_size, not {self.scale:g}")
        if self.layout not in get_args(Layout):
            raise PlanError(f"layout must be {' or '.join(get_args(Layout))}, not {self.layout!r}")

    @property
    def sizes(self) -> dict[str, float]:
        """The problem by the names of its fields."""
        names = ("queries", "keys", "heads", "kv_heads", "batches")
        return {name: getattr(self, name) for name in names}

    @property
    def score_scale(self) -> float:
        """What the scores are multiplied by before the exponential."""
        return self.scale or 1 / math.sqrt(self.plan.config.head_size)

    @property
    def offset(self) -> int:
        """Query i of a causal kernel sees the keys up to i + offset."""
        return self.keys - self.queries

    @property
    def grid(self) -> tuple[int, int, int]:
        return self.plan.scheduler.grid(self.queries, self.heads, self.batches)

    @property
    def block(self) -> int:
        return self.plan.roles.threads

    @property
    def flop(self) -> int:
        """Operations of the MMAs that the result needs: of the scores that are seen, and of their values."""
        pairs = self.queries * self.keys
        if self.plan.config.causal:
            pairs = sum(max(0, min(self.keys, row + self.offset + 1)) for row in range(self.queries))
        config = self.plan.config
        return 2 * pairs * (config.head_size + config.values) * self.heads * self.batches

    def extents(self, name: str) -> tuple[int, int, int]:
        """Heads, rows and columns of Q, K, V or O."""
        columns = self.plan.config.head_size if name in "qk" else self.plan.config.values
        return (self.heads, self.queries, columns) if name in "qo" else (self.kv_heads, self.keys, columns)

    def shape(self, name: str) -> tuple[int, int, int, int]:
        """The shape of Q, K, V or O."""
        heads, rows, columns = self.extents(name)
        return (self.batches, *((heads, rows) if self.layout == "bhsd" else (rows, heads)), columns)

    def strides(self, name: str) -> tuple[int, int, int]:
        """Elements from one row to the next, from one head to the next, and from one batch to the next."""
        for each, strides in self.strided:
            if each == name:
                return strides
        heads, rows, columns = self.extents(name)
        row, head = (columns, rows * columns) if self.layout == "bhsd" else (heads * columns, columns)
        return row, head, heads * rows * columns

    def by_head(self, array: np.ndarray) -> np.ndarray:
        """An array of the problem's layout as batch, head, row, column."""
        return array if self.layout == "bhsd" else array.transpose(0, 2, 1, 3)

    @cached_property
    def score_exponent(self) -> np.float32:
        """The scale of the scores for powers of 2."""
        return np.float32(self.score_scale * math.log2(math.e))

    def arguments(self, arrays: Any) -> list[Any]:
        """The arguments of a launch, of arrays (or addresses) by name: q, k, v, o, and lse if the kernel stores it."""
        plan, made = self.plan, []
        for operand in (plan.q, plan.k, plan.v):
            heads, rows, columns = self.extents(operand.name)
            row, head, batch = self.strides(operand.name)
            size, k = (rows, columns) if operand.major == "k" else (columns, rows)
            outer = (Batches(heads, head), Batches(self.batches, batch))
            made.append(operand.tensormap(arrays[operand.name], size, k, row, outer))
        row, head, batch = self.strides("o")
        address = int(getattr(arrays["o"], "address", arrays["o"]))
        if address % _ALIGNMENT:
            raise PlanError(
                f"O must start on {_ALIGNMENT} bytes, as its rows are stored in vectors, not at {address:#x}"
            )
        if plan.epilogue.tma:
            outer = (Batches(self.heads, head), Batches(self.batches, batch))
            made.append(plan.epilogue.tensormap(arrays["o"], self.queries, plan.config.values, row, outer))
        else:
            made += [arrays["o"], np.uint32(row), np.uint64(head), np.uint64(batch)]
        if plan.config.lse:
            made.append(arrays["lse"])
        made += [np.uint32(each) for each in (self.queries, self.keys, self.heads, self.heads // self.kv_heads)]
        made += [np.uint32(self.batches)] * plan.scheduler.persistent
        made += [np.uint32(self.offset % 2**32)] * plan.config.causal
        return [*made, self.score_exponent]

    @property
    def outputs(self) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        """Shape and type of what the kernel stores."""
        made: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {
            "o": (self.shape("o"), TYPES[self.plan.config.o_type].numpy)
        }
        if self.plan.config.lse:
            made["lse"] = ((self.batches, self.heads, self.queries), np.dtype(np.float32))
        return made
