"""What `ptxgen exec` knows of a compiler or a library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


def _nothing(folder: Path) -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class Stack:
    """One compiler or library; `folder` is a cache of ptxgen's own for the target."""

    name: str
    #: Variables of the program (`run.program_environment` says which of the user's they replace).
    environment: Callable[[Path], dict[str, str]] = _nothing
    #: Cache folders where the compiler keeps the PTX of the cubins that it loads.
    ptx_folders: tuple[str, ...] = ()
    #: Hooks in the program's Python: package or module -> module of `ptxgen_exec`.
    hooks: tuple[tuple[str, str], ...] = ()
