"""What was found out about a PTX text, kept on disk for the processes that load the same text again.

That is the verdict of `ptxgen.check`, and which declaration each instruction is: finding both takes longer than all
else that precedes a launch, and imports every declaration there is. The tree is parsed again, which takes no longer
than reading it would, and so are semantics bound, since functions cannot be read from a file.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
from array import array
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ptxgen import syntax
from ptxgen.device.kernel import AnalyzedModule
from ptxgen.instr.model.recognize import Recognized
from ptxgen.toolchain.cache import read, write

_KIND = "analysis"
#: Bytes of all files together, of 10 to 100 KB each.
_MOST = 64 << 20
#: The place of a declaration that is not known.
_UNKNOWN = -1


class Kept:
    """What is known of a text: it begins with what earlier processes have left."""

    def __init__(self, text: str, analyzed: AnalyzedModule) -> None:
        self._text, self._analyzed = text, analyzed
        self._recall()
        #: Instructions whose declarations the file has.
        self._saved = len(analyzed.analysis.declarations)

    def save(self) -> None:
        """Leave to later processes what has become known since."""
        known = self._analyzed.analysis.declarations
        if len(known) == self._saved:
            return
        self._saved = len(known)
        numbers, declarations = dict[int, int](), list[Recognized]()
        places = array("i")
        for each in _instructions(self._analyzed.module):
            found = known.get(id(each))
            if found is not None and id(found) not in numbers:
                numbers[id(found)] = len(declarations)
                declarations.append(found)
            places.append(numbers[id(found)] if found is not None else _UNKNOWN)
        data = pickle.dumps((self._analyzed.diagnostics, declarations, places.tobytes()))
        write(_KIND, _key(self._text), data, most=_MOST)

    def _recall(self) -> None:
        data = read(_KIND, _key(self._text))
        if data is None:
            return
        try:
            diagnostics, declarations, packed = pickle.loads(data)
            places = array("i", packed)
        except (pickle.UnpicklingError, AttributeError, EOFError, ImportError, IndexError, TypeError, ValueError):
            return  # what it names is not there any more
        statements = list(_instructions(self._analyzed.module))
        if len(statements) == len(places):
            found = zip(map(id, statements), places, strict=True)
            self._analyzed.diagnostics = diagnostics
            self._analyzed.analysis.recall(
                {number: declarations[place] for number, place in found if place != _UNKNOWN}
            )


def _instructions(module: syntax.Module) -> Iterator[syntax.Instruction]:
    return (each for each in module.statements() if isinstance(each, syntax.Instruction))


def _key(text: str) -> str:
    return f"{_sources()}\n{text}"


@cache
def _sources() -> str:
    """Names ptxgen's files as they are, and Python: another version, or a changed checkout, finds it all anew."""
    digest = hashlib.sha256(platform.python_version().encode())
    for folder, _, _ in sorted(os.walk(Path(__file__).parents[1])):
        for each in sorted(os.scandir(folder), key=lambda each: each.name):
            if each.name.endswith((".py", ".json")):
                status = each.stat()
                digest.update(f"{each.path} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()
