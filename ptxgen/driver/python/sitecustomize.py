"""Loaded by each Python that runs under `ptxgen exec`: packages are patched as they are imported.

This runs in the program's Python, whatever its version: it needs the standard library alone, 3.8 or newer.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys


class _Hooks(importlib.abc.MetaPathFinder):
    """Calls `patch` of a module of ptxgen_exec once a package has been imported."""

    def __init__(self, hooks):
        self.hooks = hooks
        self.busy = set()

    def find_spec(self, name, path, target=None):
        hook = self.hooks.get(name)
        if hook is None or name in self.busy:
            return None
        self.busy.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.busy.discard(name)
        if spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            importlib.import_module("ptxgen_exec." + hook).patch(module)

        try:
            spec.loader.exec_module = exec_module
        except AttributeError:  # a loader in C: nothing to patch
            return None
        return spec


def _run_other_sitecustomize():
    """The program's environment may have one, too, which this one hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [each for each in sys.path if os.path.abspath(each or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get("PTXGEN_EXEC_SOCKET"):
    _pairs = [each.split("=") for each in os.environ.get("PTXGEN_EXEC_HOOKS", "").split(";") if each]
    sys.meta_path.insert(0, _Hooks(dict(_pairs)))
_run_other_sitecustomize()
