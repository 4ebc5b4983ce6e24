"""Each code of docs/checks.md has a test with a kernel that fires it and a twin that does not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.paths import DOCS

HERE = Path(__file__).parents[1]
PAGE = DOCS / "checks.md"
#: How a test says that a run is clean.
CLEAN = re.compile(r'"ok"|== \[\]|\(\[\] if|, \[\]\)|else \[\]')
#: Codes whose clean twin is another test of the same kernels.
TWINS = {
    "async-store-cta": "semantics/test_async_store.py::test_stores_to_a_peer",
    "bad-call": "load/test_calls.py::test_function_pointers",
    "cancel-after-refusal": "semantics/test_miscellaneous.py::test_taking_over_what_has_not_begun",
    "cancel-refused": "semantics/test_miscellaneous.py::test_taking_over_what_has_not_begun",
    "cluster-rank": "semantics/test_cluster.py::test_ranks_of_addresses",
    "divergent-warpgroup": "semantics/test_wgmma.py::test_products",
    "grid-race": "schedule/test_grids.py::test_waiting_makes_the_grid_before_visible",
    "illegal-descriptor": "kernels/test_gemm.py::test_right_and_clean",
    "incomplete-warpgroup": "semantics/test_wgmma.py::test_products",
    "missing-tensormap-fence": "semantics/test_tensormap.py::test_a_changed_map_is_used",
    "multicast-mask": "semantics/test_tma.py::test_copies_to_a_cluster",
    "not-own-shared": "semantics/test_tma.py::test_copies_to_a_cluster",
    "not-run": "schedule/test_grids.py::test_a_chain_of_three",
    "setmaxnreg-budget": "semantics/test_miscellaneous.py::test_registers_move_between_warps",
    "swizzle-mismatch": "kernels/test_gemm.py::test_right_and_clean",
    "tensormap-box": "semantics/test_tma.py::test_boxes",
    "tensormap-mode": "semantics/test_tma.py::test_columns_of_pixels",
    "tensormap-pixel": "semantics/test_tma.py::test_columns_of_pixels",
    "tensormap-rank": "semantics/test_tma.py::test_boxes",
}


def described() -> list[str]:
    """The codes of the headings."""
    headings = re.findall(r"^### .*$", PAGE.read_text(), re.M)
    return sorted({code for heading in headings for code in re.findall(r"`([a-z0-9-]+)`", heading)})


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


@cache
def module_tests() -> tuple[tuple[str, str], ...]:
    """(name, source) of each test of this folder, with the tables and helpers of its module that it names."""
    found: list[tuple[str, str]] = []
    for path in sorted(HERE.rglob("test_*.py")):
        if path.name == Path(__file__).name:
            continue
        text = path.read_text()
        parts: dict[str, ast.stmt] = {}
        for statement in ast.parse(text).body:
            for name in _defined(statement):
                parts[name] = statement
        for name, statement in parts.items():
            if name.startswith("test_"):
                used = [parts[other] for other in sorted(_names(statement) & parts.keys()) if other != name]
                sources = [ast.get_source_segment(text, each) or "" for each in (statement, *used)]
                decorators = [ast.get_source_segment(text, each) or "" for each in _decorators(statement)]
                found.append((f"{path.relative_to(HERE).as_posix()}::{name}", "\n".join(sources + decorators)))
    return tuple(found)


def _defined(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef):
        yield statement.name
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id
    elif isinstance(statement, ast.Assign):
        yield from (target.id for target in statement.targets if isinstance(target, ast.Name))


def _decorators(statement: ast.stmt) -> list[ast.expr]:
    return statement.decorator_list if isinstance(statement, ast.FunctionDef) else []


@pytest.mark.parametrize("code", described())
def test_a_kernel_fires_it_and_a_twin_does_not(code: str) -> None:
    """One and the same test, with its tables, names the code and asks for a clean run; or `TWINS` has the other."""
    sources = dict(module_tests())
    pattern = re.compile(rf"(?<![a-z0-9-]){code}(?![a-z0-9-])")
    named = [name for name, source in sources.items() if pattern.search(source)]
    assert named, f"no test fires {code}"
    twin = TWINS.get(code)
    assert twin is None or twin in sources, f"{twin}, the clean twin of {code}, is gone"
    assert twin or any(CLEAN.search(sources[name]) for name in named), f"{code} has no clean twin in {named}"
