"""Modules of the package import each other in one direction: no cycle of more than three, annotations included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import ptxgen

PACKAGE = Path(ptxgen.__file__).parent
MOST = 3


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports(name: str) -> Iterator[str]:
    """The modules of the package that one names in any import statement, those inside functions included."""
    is_package = MODULES[name].name == "__init__.py"
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            base = name.split(".")[: -node.level + is_package or None] if node.level else []
            source = ".".join([*base, node.module] if node.module else base)
            for each in node.names:
                found = f"{source}.{each.name}"
                if found in MODULES:
                    yield found
                elif source in MODULES:
                    yield source


GRAPH = {name: set(imports(name)) - {name} for name in MODULES}


def cycles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Strongly connected components of more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in graph[name]:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            component = set(stack[at:])
            del stack[at:]
            if len(component) > 1:
                found.append(component)

    for name in graph:
        if name not in index:
            visit(name)
    return found


def test_cycles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set[str]()}
    assert cycles(graph) == [{"a", "b", "c"}]


def test_the_package_imports_in_one_direction() -> None:
    assert [sorted(each) for each in cycles(GRAPH) if len(each) > MOST] == []


#: What the emulator's state may use of its checks: to report what it refuses itself.
REPORTS = ("findings", "registry", "causes")


def test_the_state_of_the_emulator_knows_no_check() -> None:
    checks = "ptxgen.emulator.checks"
    wings = [
        f"ptxgen.emulator.{wing}"
        for wing in ("load", "state", "memory", "engines", "schedule", "arithmetic", "semantics")
    ]
    found = [
        (name, other)
        for name, others in GRAPH.items()
        if name.startswith("ptxgen.emulator.") and name.split(".")[2] in wings
        for other in others
        if other.startswith(checks + ".") and other.split(".")[3] not in REPORTS
    ]
    assert found == []
