"""What `help()` and editors read of a declaration, made from it when they ask.

`form` gives these to each class; what makes the texts knows `form`, so it is imported by name when it is needed.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any


class Documentation:
    """The `__doc__` of a declaration."""

    def __get__(self, made: object, owner: type[Any]) -> str:
        return importlib.import_module("ptxgen.instr.model.call").docstring(owner)


class SignatureOf:
    """The `__signature__` of a declaration."""

    def __get__(self, made: object, owner: type[Any]) -> inspect.Signature:
        return importlib.import_module("ptxgen.instr.model.call").signature(owner)


def suggest_names(family: str) -> None:
    """Let a misspelt function of a family's module say what was meant."""
    module = sys.modules.get(f"ptxgen.instr.{family}")
    if module is not None:
        vars(module).setdefault("__getattr__", _unknown(family))


def _unknown(family: str) -> Callable[[str], object]:
    def missing(name: str) -> object:
        near = ""
        if not name.startswith("__"):  # Python and its tools ask for those that may be missing
            near = importlib.import_module("ptxgen.instr.model.find").suggestion(name, family)
        raise AttributeError(f"module 'ptxgen.instr.{family}' has no attribute {name!r}{near}")

    return missing
