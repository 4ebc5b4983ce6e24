# pyright: reportUnnecessaryTypeIgnoreComment=true
"""What editors complete and type checkers report in typed calls, from the declarations themselves: no stubs needed.

`make check` fails on a comment below that pyright does not need: each is an error that it must find.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from ptxgen.instr import integer, tcgen05, tma
from ptxgen.instr.model.form import Instruction, InstructionError

WRONG: tuple[Callable[[], Instruction], ...] = (
    lambda: tma.load("%d", "%m", ["%x"], "%b", dim=1, dst="shared::foo"),  # pyright: ignore[reportArgumentType]
    lambda: tcgen05.ld(["%r"], "%t", shape="32x32b", num=3),  # pyright: ignore[reportArgumentType]
    lambda: tcgen05.ld(["%r"], "%t", shape="32x32b"),  # pyright: ignore[reportCallIssue]
    lambda: integer.add("%d", "%a", 1, type="u32", typo="x"),  # pyright: ignore[reportCallIssue]
)


@pytest.mark.parametrize("call", WRONG)
def test_what_pyright_reports_is_wrong(call: Callable[[], Instruction]) -> None:
    with pytest.raises(InstructionError):
        call()


def test_what_pyright_takes_is_right() -> None:
    made = tma.load("%d", "%m", ["%x"], "%b", dim=1, dst="shared::cta")
    assert made.dim == 1
    assert inspect.signature(tma.load).bind("%d", "%m", ["%x"], "%b", dim=1, dst="shared::cta")
