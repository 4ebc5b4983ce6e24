"""Names of kernels and variables as their authors know them."""

from __future__ import annotations

import ctypes
import re
from functools import lru_cache

_MANGLED = re.compile(r"\b_Z[\w$.]+")
#: Tags that Numba adds to names.
_TAG = re.compile(r"\[abi:\w+\]")
#: Characters of a name above which template arguments are cut, and what is left of each list of them.
_LONG, _ARGUMENTS = 100, 40
_INNERMOST = re.compile(r"\([^()]*\)")


@lru_cache(maxsize=4096)
def demangled(name: str) -> str:
    """The C++ name of a symbol, as far as the system's library can say."""
    if not name.startswith("_Z"):
        return name
    try:
        demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    except (OSError, AttributeError):
        return name
    demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    found = demangle(name.encode(), None, None, ctypes.byref(status))
    if not found:
        return name
    text = ctypes.string_at(found).decode(errors="replace")
    ctypes.CDLL(None).free(ctypes.c_void_p(found))
    return text


@lru_cache(maxsize=4096)
def short_name(name: str) -> str:
    """A name without return type and parameters: `racy::tile` of `_ZZ4racyPfE4tile`.

    Long template arguments are cut: those of CUTLASS have thousands of characters.
    """
    text = demangled(name)
    if text == name:
        return name
    text = _TAG.sub("", text.replace("(anonymous namespace)::", ""))
    while (shorter := _INNERMOST.sub("", text)) != text:
        text = shorter
    return _abridged(text.removeprefix("void ").removesuffix(" const").strip())


def _abridged(text: str) -> str:
    """A name whose outermost template arguments have at most _ARGUMENTS characters each, if it is long."""
    if len(text) <= _LONG:
        return text
    made: list[str] = []
    depth = begin = 0
    for at, character in enumerate(text):
        if character == "<":
            if not depth:
                made.append(text[begin : at + 1])
                begin = at + 1
            depth += 1
        elif character == ">" and depth:
            depth -= 1
            if not depth:
                arguments = text[begin:at]
                made.append(arguments if at - begin <= _ARGUMENTS else f"{arguments[: _ARGUMENTS - 3]}...")
                begin = at
    made.append(text[begin:])
    short = "".join(made)
    return short if len(short) <= 2 * _LONG else f"{short[:_LONG]}..."


def readable(text: str) -> str:
    """A message with its mangled names replaced."""
    return _MANGLED.sub(lambda found: short_name(found[0]), text)
