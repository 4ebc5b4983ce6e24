"""Parts of the comparison with an H200's hashes, for processes to share."""

from __future__ import annotations

from dataclasses import dataclass

from tools.interpolator.recorded import Inputset, digest, load


@dataclass(frozen=True)
class Part:
    """Some chunks of one function."""

    function: str
    chunks: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.function} from chunk {self.chunks[0]:#05x} on"


def wrong(part: Part) -> list[str]:
    """Chunks whose hashes differ."""
    known = load()[f"{part.function} chunks"]
    return [f"chunk {each:#05x}" for each in part.chunks if digest(part.function, Inputset(each)) != known[each]]
