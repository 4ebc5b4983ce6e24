"""The error of an access that hardware would refuse."""

from __future__ import annotations

from ptxgen.syntax import Statement


class MemoryFault(Exception):
    """An access outside memory, misaligned, or to memory of the wrong kind."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        #: Where it belongs, when that is not the instruction that runs now.
        self.statement: Statement | None = None
        super().__init__(message)
