"""The error of an access that hardware would refuse."""

from __future__ import annotations


class MemoryFault(Exception):
    """An access outside memory, misaligned, or to memory of the wrong kind. The scheduler adds the line."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)
