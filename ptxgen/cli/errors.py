"""Bad input: one sentence on stderr and an exit code, never a traceback."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TypeVar

_Word = TypeVar("_Word", bound=str)

#: Exit codes: all is well; the kernel or PTX is wrong; the command or its input cannot be used; Ctrl-C.
OK, WRONG, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


class InputError(Exception):
    """What a person gave cannot be used; `str()` is the sentence, `excerpt` source lines to show below it."""

    code = BAD_INPUT

    def __init__(self, message: str, excerpt: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.excerpt = list(excerpt)


class IllegalPtxError(InputError):
    """The PTX that a person gave is illegal."""

    code = WRONG


def report(error: BaseException, command: str = "ptxgen") -> int | None:
    """Print the message of a user error and return its exit code; None for an internal error.

    `command` is whose help a usage error names if it does not say itself.
    """
    if isinstance(error, InputError):
        return _say(str(error), error.excerpt, error.code)
    if hasattr(error, "format_message"):  # typer's own
        from ptxgen.cli.common import usage

        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else command
        return _say(f"{usage.sentence(error)} (see '{command} --help')")
    if isinstance(error, MemoryError):
        return _say("this problem does not fit into the memory of this machine; take smaller sizes")
    if type(error).__module__.startswith("ptxgen."):
        code = WRONG if type(error).__name__ in ("AssemblerError", "GpuError") else BAD_INPUT
        first, *more = str(error).splitlines() or [type(error).__name__]
        return _say(first, more, code)
    return None


def nearest(word: str, known: Iterable[str]) -> str:
    """The known words most like `word`, as the end of a sentence: "; did you mean X?", or nothing."""
    names = list(known)
    by_last = [name for name in names if name.rsplit("/")[-1] == word.rsplit("/")[-1]]
    found = by_last or difflib.get_close_matches(word.lower(), names, n=2, cutoff=0.5)
    return f"; did you mean {' or '.join(found)}?" if found else ""


def choose(option: str, value: str, allowed: Sequence[_Word]) -> _Word:
    """The value if it is allowed. Raises InputError that lists what is."""
    for word in allowed:
        if word == value:
            return word
    words = f"{', '.join(allowed[:-1])} or {allowed[-1]}"
    near = nearest(value, allowed)
    if all(word in near for word in allowed):  # it would only say them again
        near = ""
    raise InputError(f"{option} must be {words}, not {value!r}{near}")


def _say(message: str, more: Sequence[str] = (), code: int = BAD_INPUT) -> int:
    colored = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    bold, plain = ("\x1b[1;31m", "\x1b[0m") if colored else ("", "")
    print(f"{bold}error:{plain} {message}", *more, sep="\n", file=sys.stderr)
    return code
