"""`import ptxgen`: quick, lazy, and the same names for people, editors and `__all__`."""

from __future__ import annotations

import ast
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

import ptxgen


def test_importing_is_quick_and_loads_nothing() -> None:
    code = (
        "import sys, time; s = time.perf_counter(); import ptxgen; t = time.perf_counter() - s;"
        "print(t, [n for n in sys.modules if n.startswith(('ptxgen.', 'numpy', 'jinja2', 'typer', 'rich'))])"
    )
    best = 9.0
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        seconds, loaded = done.stdout.split(maxsplit=1)
        best = min(best, float(seconds))
        assert loaded == "[]\n"
    assert best < 0.25


@pytest.mark.parametrize("name", [each for each in ptxgen.__all__ if each != "__version__"])
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(ptxgen, name).__name__ == name
    assert name in dir(ptxgen)


def test_names_for_type_checkers_are_those_at_run_time() -> None:
    tree = ast.parse(Path(ptxgen.__file__).read_text())
    imported = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module not in ("__future__", "typing")
        for alias in node.names
    }
    assert imported == ptxgen._HOMES
    assert set(ptxgen.__all__) == {*imported, "__version__"}


def test_version_and_packages() -> None:
    assert ptxgen.__version__ == importlib.metadata.version("ptxgen")
    code = "import ptxgen; print(ptxgen.descriptors.TensorMap.__name__, ptxgen.gemm.kernels().__class__.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "TensorMap dict\n"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'ptxgen' has no attribute 'nothing'"):
        getattr(ptxgen, "nothing")  # noqa: B009
    assert not hasattr(ptxgen, "Emulater")


@pytest.mark.parametrize("package", sorted(ptxgen._PACKAGES | {"cli.main", "gemm.job"}))
def test_every_package_imports_alone(package: str) -> None:
    """No import cycle: each part can be the first."""
    subprocess.run([sys.executable, "-c", f"import ptxgen.{package}"], check=True, capture_output=True)
