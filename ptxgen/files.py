"""Paths: those that are given where text is wanted, and those of files that are not there."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

#: One line that ends like a file, or begins like a folder; PTX has several lines, or spaces and semicolons.
_PATH = re.compile(r"\s*[^\n;{}]*\.(ptx|cubin|txt|cu|fatbin|s)\s*|\s*[.~]{0,2}/(?![/*])[^\n;{}]*")


def looks_like_path(text: str) -> bool:
    """Whether a text is hardly PTX, but the name of a file."""
    return _PATH.fullmatch(text) is not None


def similar_file(path: str | os.PathLike[str]) -> str:
    """The files beside a missing one that are called like it, as the end of a sentence; or nothing."""
    missing = Path(path)
    try:
        names = [] if missing.exists() else [each.name for each in missing.parent.iterdir() if each.is_file()]
    except OSError:
        return ""
    close = difflib.get_close_matches(missing.name, names, n=2)
    return f"; did you mean {' or '.join(str(missing.parent / name) for name in close)}?" if close else ""
