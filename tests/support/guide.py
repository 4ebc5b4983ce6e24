"""A page of the docs as a series of steps: files to write, and commands with what they print."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_VARIES = re.compile(
    r"\b[0-9.]+(?= ?m?s\b)|(?<=\bline )\d+|(?<=\blines )\d[\d, -]*|(?<=\.j2:)\d+|(?<=\.py:)\d+|(?<=\.ptx:)\d+"
    r"|^>? *\d+(?= │)|^\d+(?=:)|0x[0-9a-f]+|\b\d+ lines, \d+ bytes"
)
_ELISION = "..."


@dataclass(frozen=True)
class Step:
    """A file to write (`path` and its text; `continues`: behind what it has), or a command and the lines it prints."""

    path: str = ""
    continues: bool = False
    text: str = ""
    command: str = ""
    shown: tuple[str, ...] = ()


def steps(page: str) -> list[Step]:
    """The fenced blocks of a page: `console` has `$ commands`, one with a path is that file, `+path` continues it."""
    made: list[Step] = []
    for language, path, text in _BLOCK.findall(page):
        if path:
            made.append(Step(path=path.removeprefix("+"), continues=path.startswith("+"), text=text))
        elif language == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, *shown = part.rstrip("\n").split("\n")
                made.append(Step(command=command, shown=tuple(shown)))
    return made


def follow(page: str, folder: Path, run: Callable[[str, Path], str]) -> int:
    """Do what a page says in a folder; `run` gives what a command prints. Returns the number of commands.

    Raises AssertionError with the command where it prints something else.
    """
    count = 0
    for step in steps(page):
        if step.path:
            (folder / step.path).parent.mkdir(parents=True, exist_ok=True)
            with (folder / step.path).open("a" if step.continues else "w", encoding="utf-8") as file:
                file.write(step.text)
            continue
        count += 1
        printed = run(step.command, folder)
        assert agrees(step.shown, printed.splitlines()), f"$ {step.command}\n{printed}"
    return count


def agrees(shown: tuple[str, ...], printed: list[str]) -> bool:
    """Whether lines are those shown: `...` is any number of lines; times, addresses, lines and sizes may differ."""
    pattern = ""
    for line in shown:
        pattern += r"(?:.*\n)*?" if line == _ELISION else re.escape(_plain(line)) + r"\n"
    return re.fullmatch(pattern, "".join(_plain(line) + "\n" for line in printed)) is not None


def _plain(line: str) -> str:
    return _VARIES.sub("#", line).rstrip()
