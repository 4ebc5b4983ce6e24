"""The API reference: a page for each public module, from its signatures, docstrings and comments of attributes."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
import importlib
import inspect
import re
import sys
import textwrap
import typing
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import ptxgen
from tools.site.stage import toctree

#: Modules with a page beside the packages that `import ptxgen` makes reachable; each is documented in docs/.
DOCUMENTED = (
    "ptxgen.job",
    "ptxgen.descriptors.tensormap",
    "ptxgen.emulator.observers",
    "ptxgen.layouts.banks",
    "ptxgen.layouts.cute",
    "ptxgen.layouts.fragments",
    "ptxgen.layouts.operands",
    "ptxgen.layouts.scale_factors",
    "ptxgen.layouts.swizzle",
    "ptxgen.layouts.tma",
    "ptxgen.layouts.tmem",
    "ptxgen.pictures.points",
    "ptxgen.timing",
)
#: Instructions have pages of their own, by family; ptxgen.layouts has its names in modules.
_WITHOUT_NAMES = {"instr"}


@functools.cache
def modules() -> list[str]:
    """The names of all modules that have a page."""
    packages = {f"ptxgen.{each}" for each in ptxgen._PACKAGES - _WITHOUT_NAMES}
    return ["ptxgen", *sorted(packages | set(DOCUMENTED))]


@functools.cache
def public(module: ModuleType) -> dict[str, object]:
    """The public names of a module: its `__all__`, else the functions and classes that it defines."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__ and callable(value)
        ]
    return {name: getattr(module, name) for name in names}


def pages() -> dict[str, str]:
    """The pages by path."""
    made = {f"api/{name}.md": page(name) for name in modules()}
    lines = [
        "# Python API\n",
        "Everything public, by module: from signatures and docstrings. CONTRIBUTING.md says what stays compatible. "
        "Instructions are on [pages by family](../instructions/index.md), their typed calls included.\n",
        "| module | what |",
        "|---|---|",
    ]
    for name in modules():
        said = (inspect.getdoc(importlib.import_module(name)) or "").split("\n\n")[0]
        lines.append(f"| [`{name}`]({name}.md) | {' '.join(prose(said).split())} |")
    made["api/index.md"] = "\n".join(lines) + "\n" + toctree(modules())
    return made


def page(name: str) -> str:
    """The page of one module."""
    module = importlib.import_module(name)
    lines = [f"# `{name}`\n", f"```{{py:module}} {name}\n```\n", prose(inspect.getdoc(module) or ""), ""]
    names = public(module)
    elsewhere = {}
    for each, value in names.items():
        home = _home(name, each, value)
        if home is not None:
            elsewhere[each] = home
    if elsewhere:
        lines += ["| name | where it is described |", "|---|---|"]
        lines += [f"| {{py:obj}}`{home}.{each}` | [`{home}`]({home}.md) |" for each, home in elsewhere.items()]
        lines.append("")
    for each, value in names.items():
        if each not in elsewhere:
            lines += _entry(name, each, value)
    return "\n".join(lines) + "\n"


def _home(module: str, name: str, value: object) -> str | None:
    """The module whose page describes a name that another one has too: the package that it is defined in."""
    defined = getattr(value, "__module__", None)
    if not callable(value) or not isinstance(defined, str):
        return None
    candidates = [
        each
        for each in modules()
        if each not in ("ptxgen", module) and defined.startswith(each) and name in public(importlib.import_module(each))
    ]
    best = max(candidates, key=len, default=None)
    if best is None or (defined.startswith(module) and module != "ptxgen" and len(best) < len(module)):
        return None
    return best


def _entry(module: str, name: str, value: object) -> Iterator[str]:
    if inspect.isclass(value):
        yield from _class(module, name, value)
    elif callable(value) and not typing.get_origin(value) and hasattr(value, "__code__"):
        yield from _directive("py:function", f"{name}{signature(value)}", module, inspect.getdoc(value), 3)
    else:
        yield from _directive("py:data", name, module, _value(module, name, value), 3)


def _value(module: str, name: str, value: object) -> str:
    said = _comments(inspect.getsource(importlib.import_module(module))).get(name, "")
    shown = re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    return f"{said}\n\n    {textwrap.shorten(shown, 300)}".strip("\n") if not name.startswith("__") else said


def _class(module: str, name: str, cls: type[Any]) -> Iterator[str]:
    kind = "py:exception" if issubclass(cls, BaseException) else "py:class"
    shown = signature(cls) if kind == "py:class" and cls.__init__ is not object.__init__ else ""
    yield f"::::{{{kind}}} {name}{shown}"
    yield f":module: {module}\n"
    yield _doc(cls)
    yield ""
    comments = {}
    for each in reversed(cls.__mro__):
        if each.__module__.startswith("ptxgen"):
            comments |= _comments(inspect.getsource(each))
    if dataclasses.is_dataclass(cls):
        for field in dataclasses.fields(cls):
            if not field.name.startswith("_") and field.name in comments:
                yield from _directive("py:attribute", field.name, module, comments[field.name], 3)
    for member, value in members(cls):
        if isinstance(value, property) or not callable(value):
            getter = getattr(value, "fget", value)
            yield from _directive("py:property", member, module, inspect.getdoc(getter), 3)
        else:
            kind = "py:classmethod" if inspect.ismethod(value) else "py:method"
            shown = signature(value, method=not inspect.ismethod(value))
            yield from _directive(kind, f"{member}{shown}", module, inspect.getdoc(value), 3)
    yield "::::\n"


def members(cls: type[Any]) -> Iterator[tuple[str, object]]:
    """Public methods and properties, those inherited from classes of this package too, in the order of definition."""
    seen: set[str] = set()
    for each in cls.__mro__:
        if not each.__module__.startswith("ptxgen"):
            continue
        for name, raw in vars(each).items():
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            value = getattr(cls, name)
            if isinstance(raw, property) or type(raw).__name__ == "cached_property":
                yield name, raw if isinstance(raw, property) else property(raw.func)
            elif inspect.isfunction(value) or inspect.ismethod(value):
                yield name, value


def signature(value: Any, *, method: bool = False) -> str:
    """The signature with annotations, as Sphinx reads it; values that have no short text are dots."""
    try:
        found = inspect.signature(value)
    except (ValueError, TypeError):
        return "(...)"
    parameters = list(found.parameters.values())[1 if method else 0 :]
    made = []
    for each in parameters:
        default = each.default
        if default is not inspect.Parameter.empty and not re.fullmatch(r"[\w.'\"() ,:/-]*", repr(default)):
            each = each.replace(default=_DOTS)
        annotation = each.annotation
        if isinstance(annotation, type):
            annotation = annotation.__name__
        if isinstance(annotation, str):
            annotation = _Plain(_qualified(annotation, _module_of(value)))
        made.append(each.replace(annotation=annotation))
    returned = found.return_annotation
    if returned in ("None", None):
        returned = inspect.Signature.empty
    elif isinstance(returned, str):
        returned = _Plain(_qualified(returned, _module_of(value)))
    return str(found.replace(parameters=made, return_annotation=returned))


def _module_of(value: Any) -> str:
    """The module in which the annotations of a function or class are written."""
    if inspect.isclass(value):
        return next((each.__module__ for each in value.__mro__ if "__init__" in vars(each)), value.__module__)
    return value.__module__


def _qualified(annotation: str, module: str) -> str:
    """An annotation with whole names of documented classes, by which Sphinx links them; it shows the last part.

    Builtin types are qualified, too: `bytes` would else be taken for the attribute of some class.
    """

    def whole(found: re.Match[str]) -> str:
        name = found[0]
        if isinstance(getattr(builtins, name, None), type):
            return f"builtins.{name}"
        value = vars(sys.modules[module]).get(name)
        if value is None and name in _imported(module):
            value = getattr(importlib.import_module(_imported(module)[name]), name, None)
        return _documented().get(id(value), name if value is None or name == "None" else f"{module}.{name}")

    parts = re.split(r"(\"[^\"]*\"|'[^']*')", annotation)
    return "".join(
        each if each[:1] in "\"'" and each else re.sub(r"(?<![\w.])[A-Za-z_]\w*(?![\w.])", whole, each)
        for each in parts
    )


@functools.cache
def _documented() -> dict[int, str]:
    """By id of a class the whole name under which it is described."""
    return {
        id(value): f"{module}.{name}"
        for module in modules()
        for name, value in public(importlib.import_module(module)).items()
        if inspect.isclass(value) and _home(module, name, value) is None
    }


@functools.cache
def _imported(module: str) -> dict[str, str]:
    """What a module imports for annotations alone: the module of each name."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {
        each.asname or each.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("ptxgen")
        for each in node.names
    }


class _Plain(str):
    """An annotation that `str(Signature)` shows without quotes."""

    def __repr__(self) -> str:
        return str(self)


class _Dots:
    def __repr__(self) -> str:
        return "..."


_DOTS = _Dots()


def _directive(kind: str, shown: str, module: str, doc: str | None, colons: int) -> Iterator[str]:
    fence = ":" * colons
    yield f"{fence}{{{kind}}} {shown}"
    yield f":module: {module}\n" if "." not in kind.partition(":")[2] else ""
    yield prose(doc or "")
    yield f"{fence}\n"


def _doc(cls: type[Any]) -> str:
    """The docstring of a class; not the signature that dataclasses write in its place."""
    doc = cls.__doc__ or ""
    return "" if doc.startswith(f"{cls.__name__}(") else prose(inspect.getdoc(cls) or "")


def _comments(source: str) -> dict[str, str]:
    """Comments `#: ...` before an attribute, and strings behind one, by the attribute's name."""
    found = {}
    for match in re.finditer(r"((?:^ *#: .*\n)+) *(\w+)\b(?=[ :=])", source, re.MULTILINE):
        found[match[2]] = " ".join(re.sub(r"^ *#: ", "", line) for line in match[1].splitlines())
    for match in re.finditer(r'^ *(\w+)(?:: [^\n]+| = [^\n]+)\n *"""(.*?)"""', source, re.MULTILINE | re.DOTALL):
        found.setdefault(match[1], " ".join(match[2].split()))
    return found


def prose(doc: str) -> str:
    """A docstring as Markdown: examples in fences, no headings, angle brackets as text."""
    lines: list[str] = []
    inside = False
    for line in doc.splitlines():
        bare = line.strip()
        if not inside and bare.startswith(">>> "):
            lines += ["", "```python"]
            inside = True
        elif inside and not bare:
            lines.append("```")
            inside = False
        if re.fullmatch(r"-{3,}|={3,}", bare) and lines and lines[-1].strip():
            lines[-1] = f"**{lines[-1].strip()}**"
            continue
        lines.append(bare if inside else _escaped(line))
    return "\n".join([*lines, *(["```"] if inside else [])])


def _escaped(line: str) -> str:
    if line.startswith("    "):
        return line
    parts = re.split(r"(`[^`]*`)", line)
    return "".join(
        each if each.startswith("`") else each.replace("<", "&lt;").replace("*", "\\*").replace("$", "\\$")
        for each in parts
    )
