"""The meaning of instructions. Modules are named as those of `ptxgen.instr`; each function there gives one
declaration its meaning.

A meaning is a function `(instruction, binder, statement, block) -> run`, where `run(group)` executes it for all
warps of a group. Kinds: `plain` does something and goes on; a `gate` may hold lanes back (it returns the lanes that
may pass, and is tried again when they are woken); an `end` decides where the lanes go next.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ptxgen.instr.form import Instruction

Kind = Literal["plain", "gate", "end"]

#: The modules that give meanings.
MODULES = (
    "address", "async_copy", "atomic", "barrier", "bulk", "cache", "cluster", "control", "conversion", "extended",
    "fence", "floating", "half", "integer", "logic", "matrix", "mbarrier", "memory", "miscellaneous", "mixed", "mma",
    "move", "predicate", "stack", "tcgen05", "tensormap", "tma", "warp", "wgmma", "wmma",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Meaning:
    """How a declaration runs; `leaves` marks ends after which nothing follows in the text."""

    kind: Kind
    bind: Callable[..., Callable[..., Any]]
    leaves: bool = False


_MEANINGS: dict[type[Instruction], Meaning] = {}


def meaning(*forms: type[Instruction], kind: Kind = "plain", leaves: bool = False) -> Callable[[Any], Any]:
    """Decorator: the function gives these declarations their meaning."""

    def register(function: Callable[..., Callable[..., Any]]) -> Callable[..., Callable[..., Any]]:
        for form in forms:
            if form in _MEANINGS:
                raise TypeError(f"{form.form.key} has a meaning already")
            _MEANINGS[form] = Meaning(kind, function, leaves)
        return function

    return register


@functools.cache
def load_all() -> None:
    """Import every module of meanings."""
    for module in MODULES:
        importlib.import_module(f"ptxgen.emulator.semantics.{module}")


def find(form: type[Instruction]) -> Meaning | None:
    """The meaning of a declaration, None if it has none yet."""
    load_all()
    return _MEANINGS.get(form)


def missing() -> list[str]:
    """Keys of the declarations without a meaning."""
    from ptxgen import instr
    from ptxgen.instr.form import REGISTRY

    load_all()
    instr.load_all()
    return sorted(form.form.key for forms in REGISTRY.values() for form in forms if form not in _MEANINGS)
