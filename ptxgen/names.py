"""Names that compilers mangle, as people read them: C++ and Rust names demangled, long ones shortened.

Data keep the names of the PTX text; what is shown goes through `readable` (a text) or `shown_name` (one name).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import cache, lru_cache

#: Characters of a name that are shown.
SHOWN = 120
#: A mangled name in a text (Itanium C++, Rust). The library reads the rest of what looks like one.
_MANGLED = re.compile(r"(?<![\w$.])_(?:Z|R[A-Z])[\w$]{2,}(?:\.[\w$.]*\w)?")
#: Suffixes that nvcc adds to the name of a function: for its parameters, and a number where `-G` keeps several.
_PARAMETER, _NUMBERED = re.compile(r"(.*)(_param_\d+)"), re.compile(r"(.*)(\$\d+)")
#: Namespaces of versions and files (CUB, Thrust, libcu++, internal linkage), which names are shown without.
_VERSIONS = re.compile(r"\b(?:(?:CUB|THRUST)_\d{6}\w*|__\d|_INTERNAL_[0-9a-f]{8}_\w+|_GLOBAL__N__[0-9a-f]{8}_\w+)::")
#: The end of the name of a variable in a function.
_LOCAL = re.compile(r"\)(?: const)?(::\w+)$")
_OPENING, _CLOSING = "<([{", ">)]}"


@cache
def _demangler() -> Callable[[str], str]:
    """`demangle.demangle`, imported with the first mangled name; without the package names stay as they are."""
    try:
        return importlib.import_module("demangle").demangle
    except ImportError:
        return str


@lru_cache(maxsize=4096)
def demangled(name: str) -> str:
    """The full name that a mangled one stands for; any other as it is."""
    if not _MANGLED.fullmatch(name):
        return name
    numbered = _NUMBERED.fullmatch(name)
    return f"{_demangler()(numbered[1])}{numbered[2]}" if numbered is not None else _demangler()(name)


@lru_cache(maxsize=4096)
def shown_name(name: str, most: int = SHOWN) -> str:
    """A name for a message, of about `most` characters: demangled, its arguments left out where it is longer."""
    parameter = _PARAMETER.fullmatch(name)
    if parameter is not None and _MANGLED.fullmatch(parameter[1]):
        return parameter[2].lstrip("_")
    return shortened(_local(demangled(name)), most)


def shortened(full: str, most: int = SHOWN) -> str:
    """A demangled name of about `most` characters, its arguments left out where it is longer."""
    if len(full) <= most:
        return full
    full = _VERSIONS.sub("", full)
    if len(full) <= most:
        return full
    for depth in range(4, -1, -1):
        shorter = _without_arguments(full, depth)
        if len(shorter) <= most:
            return shorter
    return f"{full[: most // 2]} ... {full[-most // 2 :]}"


def _local(name: str) -> str:
    """The name of a variable in a function without what the function takes and returns: `f<1>::tile`."""
    found = _LOCAL.search(name)
    if found is None:
        return name
    depth, opening = 0, None
    for at in range(found.start(), -1, -1):
        depth += (name[at] in ")>") - (name[at] in "(<")
        if depth == 0 and opening is None:
            opening = at
        elif depth == 0 and name[at] == " ":
            return name[at + 1 : opening] + found[1]
    return name[:opening] + found[1]


def readable(text: str, most: int = SHOWN) -> str:
    """A text with its mangled names demangled and shortened."""
    if "_Z" not in text and "_R" not in text:
        return text
    return _MANGLED.sub(lambda match: shown_name(match[0], most), text)


def _without_arguments(name: str, most: int) -> str:
    """A name with `...` for its parameters and for what is in more than so many brackets. Operators are no brackets."""
    made: list[str] = []
    depth = 0
    limits = [most]
    for part in re.findall(r"\(anonymous namespace\)|operator(?:\(\)|\[\]|[-+*/%^&|~!=<>,]+)?|->|.", name):
        opens, closes = part in _OPENING, part in _CLOSING and depth > 0
        if closes:
            depth -= 1
            limits.pop()
        if depth <= limits[-1]:
            made.append(part)
            if opens:
                limits.append(depth if part == "(" else limits[-1])
                if depth + 1 > limits[-1]:
                    made.append("...")
        elif opens:
            limits.append(limits[-1])
        depth += opens
    return re.sub(r"([<([{])\.\.\.([>)\]}])", r"\1...\2", "".join(made))
