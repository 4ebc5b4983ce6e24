"""Names of kernels and variables as their authors know them."""

from __future__ import annotations

import ctypes
import re
from functools import lru_cache

from ptxgen.names import shortened

_MANGLED = re.compile(r"\b_Z[\w$.]+")
#: Prefix of static kernels in nvcc's relocatable device code: the file, and hashes.
_STATIC = re.compile(r"^__nv_static_\d+__\w*?_(?=_Z)")
#: Tags that Numba adds to names.
_TAG = re.compile(r"\[abi:\w+\]")
_INNERMOST = re.compile(r"\([^()]*\)")


@lru_cache(maxsize=4096)
def demangled(name: str) -> str:
    """The C++ name of a symbol, as far as the system's library can say."""
    name = _STATIC.sub("", name)
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

    Template arguments are left out where they are long: those of CUTLASS have thousands of characters.
    """
    text = demangled(name)
    if text == name:
        return name
    text = _TAG.sub("", text.replace("(anonymous namespace)::", ""))
    while (shorter := _INNERMOST.sub("", text)) != text:
        text = shorter
    return shortened(text.removeprefix("void ").removesuffix(" const").strip())


def readable(text: str) -> str:
    """A message with its mangled names replaced."""
    return _MANGLED.sub(lambda found: short_name(found[0]), text)
