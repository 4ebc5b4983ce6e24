"""One module of several, as the device linker makes of relocatable device code and of cuLinkAddData.

Symbols of .visible, .weak and .common linkage are shared, an .extern declaration is bound to the definition, and what
has no linkage belongs to its module (PTX ISA 11.6). The result is PTX again: .loc keeps the lines of each source.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ptxgen.driver.protocol import RefusedError, Status
from ptxgen.syntax.declarations import Directive, FileDirective, Function, Module, Section, Variable
from ptxgen.syntax.parser import parse
from ptxgen.syntax.tree import Label, Statement

_Spelling = Callable[[str], str]
_SHARED = ("visible", "weak", "common")
_WORD = re.compile(r"[A-Za-z_$%][\w$]*")
_FILE_OF = re.compile(r"(\.loc\s+|\binlined_at\s+)(\d+)")
_TARGET = re.compile(r"sm_(\d+)([af]?)")


@dataclass
class _Linked:
    """What is collected of all modules, in the order in which it is written."""

    files: list[str] = field(default_factory=list)
    #: Declarations without a definition, by name, and definitions of variables.
    externals: dict[str, str] = field(default_factory=dict)
    variables: list[str] = field(default_factory=list)
    prototypes: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)
    #: Names that some module defines as .visible, which go before .weak and .common ones.
    strong: set[str] = field(default_factory=set)
    #: Linkage of the definitions of shared symbols that were kept.
    defined: dict[str, str] = field(default_factory=dict)


def linked(texts: Sequence[str]) -> str:
    """One module of all. Raises RefusedError where two define the same symbol."""
    if len(texts) == 1:
        return texts[0]
    modules = [parse(text) for text in texts]
    made = _Linked(strong={name for module in modules for item in module.items for name in _strong_names(item)})
    uses = Counter(name for module in modules for name in _own_names(module))
    for number, module in enumerate(modules, 1):
        renamed = {name: f"{name}$m{number}" for name in _own_names(module) if uses[name] > 1}
        _add(made, module, renamed)
    externals = [text for name, text in made.externals.items() if name not in made.defined]
    parts = [made.files, made.variables, externals, made.prototypes, made.functions, made.sections]
    return "\n".join([*_head(modules), *(text for part in parts for text in part), ""])


def _head(modules: Sequence[Module]) -> Iterator[str]:
    versions = [tuple(map(int, module.version.split("."))) for module in modules if module.version]
    yield f".version {'.'.join(map(str, max(versions)))}"
    targets = [(module.target or "", ", ".join(module.targets)) for module in modules]
    yield f".target {max(targets, key=lambda each: _newness(each[0]))[1]}"
    yield ".address_size 64"


def _newness(target: str) -> tuple[int, str]:
    found = _TARGET.fullmatch(target)
    return (int(found[1]), found[2]) if found else (0, "")


def _names(item: Statement) -> list[str]:
    if isinstance(item, Variable):
        return [each.name for each in item.declarators]
    return [item.name] if isinstance(item, Function) else []


def _own_names(module: Module) -> set[str]:
    """Names that other modules cannot mean: symbols without linkage, and labels of sections."""
    found: set[str] = set()
    for item in module.items:
        if isinstance(item, Section):
            found.update(each.name for each in item.children() if isinstance(each, Label))
        elif isinstance(item, (Variable, Function)) and item.linkage is None and not _is_entry(item):
            found.update(_names(item))
    return found


def _strong_names(item: Statement) -> list[str]:
    """Names that an item defines for all modules."""
    if isinstance(item, Function) and item.body is None:
        return []
    is_strong = isinstance(item, (Variable, Function)) and item.linkage == "visible"
    return _names(item) if is_strong else []


def _is_entry(item: Statement) -> bool:
    return isinstance(item, Function) and item.kind == "entry"


def _add(made: _Linked, module: Module, renamed: dict[str, str]) -> None:
    first_file = 1 + max((_index(text) for text in made.files), default=0)
    offset = first_file - 1

    def spelled(text: str) -> str:
        text = _FILE_OF.sub(lambda found: f"{found[1]}{int(found[2]) + offset}", text)
        return _WORD.sub(lambda found: renamed.get(found[0], found[0]), text) if renamed else text

    for item in module.items:
        if isinstance(item, FileDirective):
            made.files.append(item.replace(arguments=(str(item.index + offset), *item.arguments[1:])).text)
        elif isinstance(item, Section):
            if item.name == ".debug_str":
                made.sections.append(spelled(item.text))
        elif isinstance(item, Function):
            _add_function(made, item, spelled)
        elif isinstance(item, Variable):
            if item.linkage == "extern":
                made.externals.setdefault(_names(item)[0], spelled(item.text))
            elif _is_first(made, item):
                made.variables.append(spelled(item.text))
        elif not (isinstance(item, Directive) and item.name in ("version", "target", "address_size")):
            made.variables.append(spelled(item.text))


def _index(file: str) -> int:
    return int(file.split()[1])


def _add_function(made: _Linked, item: Function, spelled: _Spelling) -> None:
    if item.body is None:
        if item.linkage == "extern":
            made.externals.setdefault(item.name, spelled(item.text))
        return
    if not _is_first(made, item):
        return
    if item.kind == "func":
        made.prototypes.append(spelled(item.replace(body=None).text))
    made.functions.append(spelled(item.text))


def _is_first(made: _Linked, item: Variable | Function) -> bool:
    """Whether a definition is to be kept: of .weak and .common ones the first, if none is .visible."""
    linkage = item.linkage or ("visible" if _is_entry(item) else "")
    if linkage not in _SHARED:
        return True
    for name in _names(item):
        if linkage != "visible" and (name in made.strong or name in made.defined):
            return False
        if name in made.defined:
            raise RefusedError(Status.INVALID_IMAGE, f"linking: {name} is defined in two modules")
        made.defined[name] = linkage
    return True
