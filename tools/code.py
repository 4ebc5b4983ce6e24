"""A kernel's code: its text without comments and source locations; outcomes are kept where only those change."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from functools import cached_property

_NO_CODE = (".loc", ".file", "//")


@dataclass(frozen=True)
class Code:
    """A text, and what of it is code: all lines but those of `.loc`, `.file` and comments alone."""

    text: str

    @cached_property
    def digest(self) -> str:
        """Equal for texts of equal code, as 16 hexadecimal digits."""
        code = "\n".join(line for line, kept in self._lines if kept)
        return hashlib.blake2b(code.encode(), digest_size=8).hexdigest()

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """For each line of the text, its number among those of code."""
        return tuple(itertools.accumulate(kept for _, kept in self._lines))

    @cached_property
    def _lines(self) -> list[tuple[str, bool]]:
        return [(line, not line.lstrip().startswith(_NO_CODE)) for line in self.text.split("\n")]
