"""Paths of reports: from the working directory, where CI systems look for the files of a repository."""

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
    if path in ("-", ""):
        return "stdin.ptx"
    path = readable_path(path)
    here = readable_path(os.getcwd())
    full = os.path.normpath(os.path.join(here, path))
    if full == here or full.startswith(here.rstrip(os.sep) + os.sep):
        return Path(full[len(here.rstrip(os.sep)) + 1 :] or ".").as_posix()
    return Path(full).as_posix()


def uri(path: str) -> str:
    """The path as a URI reference (RFC 3986): relative below the working directory, else `file:///...`."""
    shown = relative(path)
    return f"file://{quote(shown)}" if shown.startswith("/") else quote(shown)


def place_of(source: str, files: Mapping[str, str]) -> Place | None:
    """The place that a finding's `source` names, in a file that is there; None if there is none.

    `k.cu:12:5, inlined at main.cu:40:9`: the innermost place below the working directory, since what the library that
    it was inlined from does is hardly at fault, else the innermost one. `files` are the paths of the PTX by name.
    """
    found: list[Place] = []
    for name, line, column in source_places(source):
        path = source_file(files.get(name, name))
        if path is not None:
            found.append(Place(str(path), line, column))
    inside = [each for each in found if not os.path.isabs(relative(each.path))]
    return next(iter([*inside, *found]), None)
