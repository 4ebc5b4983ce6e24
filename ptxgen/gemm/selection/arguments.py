"""The arguments of a launch as bytes, with the places of the addresses that change from launch to launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ptxgen.gemm.problem import GemmProblem
from ptxgen.gemm.selection.dispatch import Choice

#: Addresses that stand for those of a launch until there is one: of A, B, C, the bias and the workspace, or of Q, K, V,
#: O and lse.
MARKS = tuple(number << 44 for number in range(1, 6))
_SIZES = {".u32": 4, ".u64": 8, ".b32": 4, ".f32": 4}


@dataclass(frozen=True)
class Packed:
    """The bytes of each argument; `places`: of each address of a launch, the arguments that begin with it."""

    values: tuple[bytes, ...]
    places: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, choice: Choice, problem: GemmProblem, order: int | None, *, biased: bool = False) -> Packed:
        """Of a choice for the problem as its kernel sees it; `order`: the address of the table of tiles.

        The last of the places is that of the workspace, where the kernel takes one.
        """
        first, second = choice.operands(MARKS[0], MARKS[1])
        bias, workspace = MARKS[3] if biased else None, MARKS[4] if problem.workspace_words else None
        given = problem.arguments(first, second, MARKS[2], None, bias, order, workspace=workspace)
        return cls.marked([declaration for declaration, _ in choice.plan.parameters], given)

    @classmethod
    def marked(cls, declarations: Sequence[str], given: Sequence[Any]) -> Packed:
        """Of arguments in which MARKS stand for addresses."""
        values = tuple(packed(*each) for each in zip(declarations, given, strict=True))
        words = [int.from_bytes(value[:8], "little") if len(value) in (8, 128) else 0 for value in values]
        places = tuple(tuple(at for at, word in enumerate(words) if word == mark) for mark in MARKS)
        return cls(values, places)

    def sizes(self) -> Sequence[int]:
        """Bytes of each argument."""
        return [len(value) for value in self.values]


def packed(declaration: str, value: Any) -> bytes:
    """The bytes of an argument: a tensormap, an address or a word."""
    if hasattr(value, "encode"):
        return value.encode()
    if hasattr(value, "tobytes"):
        return value.tobytes()
    return int(value).to_bytes(_SIZES[declaration.split()[-1]], "little")
