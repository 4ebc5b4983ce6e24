"""What may become of a text: it is refused with a place, or it prints back and is checked."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ptxgen import check
from ptxgen.syntax import Instruction, PtxSyntaxError, parse

#: CPU seconds for one text.
LIMIT = 5.0


class Failure(Exception):
    """A text that was not treated as it must be; the message says how."""


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def expired(signum: int, frame: Any) -> None:
        raise Failure(f"it takes more than {seconds:g} seconds")

    before = signal.signal(signal.SIGVTALRM, expired)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def examine(text: str, limit: float = LIMIT) -> str:
    """ "refused" (no PTX), "illegal" (PTX with errors) or "legal". Raises Failure."""
    with _limited(limit):
        try:
            return _examine(text)
        except Failure:
            raise
        except Exception as error:
            raise Failure(f"{type(error).__name__}: {error}") from error


def _examine(text: str) -> str:
    try:
        module = parse(text)
    except PtxSyntaxError as error:
        source = text.split("\n")
        if not (1 <= error.line <= len(source) and 1 <= error.column <= len(source[error.line - 1]) + 1):
            raise Failure(f"the error stands at {error.line}:{error.column}, which is outside the text") from None
        error.render()
        return "refused"
    if str(module) != text:
        raise Failure("the printed text differs")
    for statement in module.statements():
        if isinstance(statement, Instruction) and not all(str(each) in statement.text for each in statement.operands):
            raise Failure(f"the operands of line {statement.line} are not in its text")
    found = check(module, differences=False)
    for diagnostic in found:
        if not (1 <= diagnostic.line <= text.count("\n") + 1 and diagnostic.column >= 1 and str(diagnostic)):
            raise Failure(f"the diagnostic {diagnostic} stands outside the text")
    return "illegal" if any(each.severity == "error" for each in found) else "legal"
