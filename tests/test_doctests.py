"""Examples in docstrings of public names are what happens; each public module has one at least."""

from __future__ import annotations

import doctest
import importlib
import inspect
from collections.abc import Iterator

import pytest

from tools.site import api

#: Modules whose names all need what not every machine has (a GPU, a program, ptxas), or that only hold names of others.
WITHOUT = {f"ptxgen.{each}" for each in ("driver", "emulator.observers", "gpu", "job", "layouts", "sass", "timing")}


def examples(module: str) -> Iterator[doctest.DocTest]:
    """The doctests of a module's public names and of their public methods."""
    finder = doctest.DocTestFinder(exclude_empty=True, recurse=False)
    for name, value in api.public(importlib.import_module(module)).items():
        members = [(name, value)]
        if inspect.isclass(value) and value.__module__.startswith("ptxgen"):
            members += [(f"{name}.{each}", member) for each, member in api.members(value)]
        for whole, each in members:
            if ">>> " in (getattr(each, "__doc__", None) or ""):
                yield from finder.find(each, f"{module}.{whole}", globs={})


@pytest.mark.parametrize("module", api.modules())
def test_the_examples_of_a_module(module: str) -> None:
    found = list(examples(module))
    assert bool(found) or module in WITHOUT
    for each in found:
        said: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        runner.run(each, out=said.append)
        assert runner.failures == 0, "".join(said)


def test_a_wrong_example_is_found() -> None:
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(wrong, out=lambda _: None)
    assert runner.failures == 1
