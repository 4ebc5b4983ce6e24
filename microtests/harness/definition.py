"""Definitions: one for each behavior, gathered from the modules of families."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import microtests
from microtests.harness.draft import Draft, NotThereError

#: Where a definition runs in the emulator: the first of these that has its instructions. The GPU at hand is a Hopper.
HOMES = ("sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_107a")


@dataclass(frozen=True)
class Definition:
    """One behavior: `make` drafts its kernel, inputs and expected results."""

    name: str
    make: Callable[[Draft], None]
    #: What of it the emulator does not model, in the words of its finding; empty where it must run.
    unmodelled: str = ""
    #: What a GPU would need that it is not given here; empty where one runs it.
    emulator_only: str = ""

    @property
    def family(self) -> str:
        return self.name.partition(".")[0]

    def draft(self, target: str, entry: str = "k") -> Draft:
        """The kernel for a target. Raises NotThereError where the target lacks an instruction."""
        made = Draft(target, entry)
        self.make(made)
        return made

    def home(self) -> Draft:
        """The kernel for the first target that has it."""
        reasons = []
        for target in HOMES:
            try:
                return self.draft(target)
            except NotThereError as reason:
                reasons.append(str(reason))
        raise NotThereError(f"{self.name}: {reasons[-1]}")

    @property
    def seed(self) -> int:
        """A seed of its own."""
        return zlib.crc32(self.name.encode())

    @property
    def random(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)


_DEFINITIONS: dict[str, Definition] = {}


def registered() -> tuple[str, ...]:
    """The names registered so far, in order."""
    return tuple(_DEFINITIONS)


def register(definition: Definition) -> None:
    """Add a definition. Raises ValueError where the name is taken."""
    if definition.name in _DEFINITIONS:
        raise ValueError(f"there is a microtest {definition.name} already")
    _DEFINITIONS[definition.name] = definition


def microtest(
    *arguments: Any, unmodelled: str = "", emulator_only: str = "", only_if: Callable[..., bool] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator: the function drafts a microtest, or one for each of the arguments (a tuple is several)."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        family = function.__module__.rpartition(".")[2]
        for each in arguments or ((),):
            values = each if isinstance(each, tuple) else (each,)
            if only_if is not None and not only_if(*values):
                continue
            words = ",".join(_word(value) for value in values)
            name = f"{family}.{function.__name__}" + (f"[{words}]" if words else "")
            register(Definition(name, _Call(function, values), unmodelled, emulator_only))
        return function

    return decorate


@dataclass(frozen=True)
class _Call:
    function: Callable[..., None]
    values: tuple[Any, ...]

    def __call__(self, draft: Draft) -> None:
        self.function(draft, *self.values)


def _word(value: Any) -> str:
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, list | tuple):
        return "x".join(_word(each) for each in value)
    return str(value)


@functools.cache
def definitions() -> dict[str, Definition]:
    """All definitions by name."""
    for module in pkgutil.iter_modules(microtests.__path__):
        if module.name not in ("__main__", "harness") and not module.name.startswith("test_"):
            importlib.import_module(f"microtests.{module.name}")
    return _DEFINITIONS


def chosen(filters: Sequence[str] = ()) -> list[Definition]:
    """The definitions whose family or name begins with one of these words, or all."""

    def wanted(definition: Definition) -> bool:
        return not filters or any(definition.family == word or definition.name.startswith(word) for word in filters)

    return [each for each in definitions().values() if wanted(each)]


def families(found: Iterable[Definition]) -> list[str]:
    """Their families, each once."""
    return list(dict.fromkeys(each.family for each in found))
