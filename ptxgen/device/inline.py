"""Comments that accept findings: `// ptxgen: accept shared-race: reason` in PTX, C++ and templates, `#` in Python.

A comment behind code is for its line, one in a line of its own for the next line with code. Several codes are separated
by commas; the reason is required.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ptxgen.device.accept import AcceptError

#: Every comment has it; texts without it are not searched.
MARK = "ptxgen: accept"
_COMMENT = re.compile(r"(//|#|/\*|\{#)[ \t]*ptxgen:[ \t]*accept\b(.*)")
_CLOSING = {"/*": "*/", "{#": "#}"}
_WORDS = re.compile(r"\s+([\w.-]+(?:\s*,\s*[\w.-]+)*)\s*:\s*(\S.*)")
#: Lines between a comment and its code: blank, of comments alone, or places of the source.
_SKIPPED = re.compile(r"\s*(//.*|#.*|/\*.*\*/\s*|\{#.*#\}\s*|\.loc\b.*)?")
#: Bytes of the largest source file that is searched.
_LARGEST = 4 << 20


@dataclass(frozen=True)
class Comment:
    """One comment: the codes, the reason, its own line, and that of the code that it is for (0: none follows)."""

    codes: tuple[str, ...]
    reason: str
    line: int
    target: int


def comments(text: str, name: str) -> tuple[Comment, ...]:
    """The comments of a text, which messages call `name`. Raises AcceptError for one that says too little."""
    if MARK not in text and "ptxgen:" not in text:
        return ()
    lines = text.splitlines()
    return tuple(_comments(lines, name))


def _comments(lines: Sequence[str], name: str) -> Iterator[Comment]:
    for number, line in enumerate(lines, 1):
        found = _COMMENT.search(line)
        if found is None:
            continue
        closing = _CLOSING.get(found[1], "")
        rest = found[2].partition(closing)[0] if closing else found[2]
        words = _WORDS.fullmatch(rest.rstrip())
        if words is None:
            raise AcceptError(
                f"{name}:{number}: an accepting comment is '{found[1]} ptxgen: accept CODE: reason"
                f"{closing and f' {closing}'}', not {line[found.start() :].strip()!r}"
            )
        codes = tuple(each.strip() for each in words[1].split(","))
        target = number
        if _SKIPPED.fullmatch(line[: found.start()]):
            after = (each for each in range(number, len(lines)) if not _SKIPPED.fullmatch(lines[each]))
            target = next(after, -1) + 1
        yield Comment(codes, words[2].strip(), number, target)


def file_comments(path: str) -> tuple[Comment, ...]:
    """The comments of a source file; none of one that cannot be read. Raises AcceptError."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    if status.st_size > _LARGEST or not stat.S_ISREG(status.st_mode):
        return ()
    return _of_file(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=256)
def _of_file(path: str, modified: int, size: int) -> tuple[Comment, ...]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ()
    return comments(text, path)


def require_codes(found: Sequence[Comment], name: str, known: Collection[str]) -> None:
    """Raises AcceptError for a code that no check has, with the nearest one."""
    for each in found:
        for code in each.codes:
            require_code(code, f"{name}:{each.line}", known)


def require_code(code: str, place: str, known: Collection[str]) -> None:
    """Raises AcceptError for a code that no check has, with the nearest one; `place` is where it stands."""
    if code not in known and "." not in code:  # codes of single instructions have a dot
        near = difflib.get_close_matches(code, known, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise AcceptError(f"{place}: no check has the code {code!r}{hint}")
