"""Paths of reports: from the root of the repository, where CI systems look for its files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from ptxgen.device.sources import source_places
from ptxgen.files import source_file
from ptxgen.reports.model import Place


def readable_path(text: str) -> str:
    """A text whose bytes the locale could not decode, as UTF-8: paths and messages of reports are UTF-8 everywhere."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def relative(path: str) -> str:
    """A path as seen from the working directory if it is below it, with slashes; others are absolute."""
    return _below(path, readable_path(os.getcwd()))


def in_repository(path: str) -> str:
    """A path as seen from the root of the repository if it is below it, with slashes; others are absolute."""
    return _below(path, _root(readable_path(os.getcwd())))


def _below(path: str, folder: str) -> str:
    if path in ("-", ""):
        return "stdin.ptx"
    full = os.path.normpath(os.path.join(readable_path(os.getcwd()), readable_path(path)))
    if full == folder or full.startswith(folder.rstrip(os.sep) + os.sep):
        return Path(full[len(folder.rstrip(os.sep)) + 1 :] or ".").as_posix()
    return Path(full).as_posix()


def _root(here: str) -> str:
    """The folder of a repository that a folder is in, the nearest one with .git; the folder itself outside of one."""
    for folder in (Path(here), *Path(here).parents):
        if (folder / ".git").exists():
            return str(folder)
    return here


def uri(path: str) -> str:
    """The path as a URI reference (RFC 3986): relative below the root of the repository, else `file:///...`."""
    shown = in_repository(path)
    return f"file://{quote(shown)}" if shown.startswith("/") else quote(shown)


def inside(place: Place) -> bool:
    """Whether the file of a place is in the repository, where CI systems show results."""
    return not os.path.isabs(in_repository(place.path))


def place_of(source: str, files: Mapping[str, str]) -> Place | None:
    """The place that a finding's `source` names, in a file that is there; None if there is none.

    `k.cu:12:5, inlined at main.cu:40:9`: the innermost place in the repository, since what the library that
    it was inlined from does is hardly at fault, else the innermost one. `files` are the paths of the PTX by name.
    """
    found: list[Place] = []
    for name, line, column in source_places(source):
        path = source_file(files.get(name, name))
        if path is not None:
            found.append(Place(str(path), line, column))
    return next(iter([*filter(inside, found), *found]), None)


def shown_place(source: Place | None, ptx: Place | None) -> Place | None:
    """Where a result is shown: at its source, but at the PTX if only that is in the repository."""
    if source is not None and ptx is not None and inside(ptx) and not inside(source):
        return ptx
    return source or ptx
