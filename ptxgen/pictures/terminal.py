"""Pictures as text: colored fields on a terminal (black on light colors, so any background will do), or plain.

Without colors the letter of its group follows each field. A panel that is wider than the terminal is drawn in
bands, one below the other.
"""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from itertools import zip_longest
from typing import TextIO

from ptxgen.pictures.model import Cell, Legend, Panel, Picture
from ptxgen.pictures.palette import NO_GROUP, fill, rgb

_RESET = "\x1b[0m"
_GAP = 4


class Ink:
    """How groups are shown: 24-bit colors, the 256 of older terminals, or letters."""

    def __init__(self, colors: int) -> None:
        self.colors = colors

    @classmethod
    def of(cls, stream: TextIO) -> Ink:
        """What suits a stream: no colors unless it is a terminal; NO_COLOR and FORCE_COLOR decide where set."""
        if os.environ.get("NO_COLOR"):
            return cls(0)
        if not stream.isatty() and not os.environ.get("FORCE_COLOR"):
            return cls(0)
        deep = os.environ.get("COLORTERM", "") in ("truecolor", "24bit")
        return cls(1 << 24 if deep else 256)

    def cell(self, cell: Cell | None, line: str, width: int, letters: bool) -> str:
        """One line of a field, `width` characters wide; without colors a star marks it, and a letter is its group."""
        if cell is None:
            return " " * width if self.colors else "·".center(width)
        if not self.colors:
            text = f" {line}{'*' if cell.marked else ''}"
            return f"{text:<{width - 2}} {letter(cell.group)}" if letters else text.ljust(width)
        text = f" {line}".ljust(width)
        if cell.group == NO_GROUP:
            return text
        color = self._color(cell.group)
        if cell.marked:
            return f"\x1b[1;38;{color};48;5;16m{text}{_RESET}"
        return f"\x1b[38;5;16;48;{color}m{text}{_RESET}"

    def swatch(self, group: int) -> str:
        """The sign of a group in the legend."""
        return f"\x1b[48;{self._color(group)}m  {_RESET}" if self.colors else letter(group)

    def bold(self, text: str) -> str:
        """A title."""
        return f"\x1b[1m{text}{_RESET}" if self.colors else text

    def dim(self, text: str) -> str:
        """Axes and labels."""
        return f"\x1b[2m{text}{_RESET}" if self.colors else text

    def _color(self, group: int) -> str:
        red, green, blue = rgb(fill(group))
        if self.colors > 256:
            return f"2;{red};{green};{blue}"
        step = [round(each / 255 * 5) for each in (red, green, blue)]
        return f"5;{16 + 36 * step[0] + 6 * step[1] + step[2]}"


def letter(group: int) -> str:
    """The letter that stands for a color."""
    if group == NO_GROUP:
        return " "
    return "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[group % 52]


def text(picture: Picture, *, width: int = 100, ink: Ink | None = None) -> str:
    """The picture as lines of at most `width` characters (more only where one field is wider than that)."""
    ink = ink or Ink(0)
    lines = [ink.bold(each) for each in textwrap.wrap(picture.title, width)]
    lines += [line for part in picture.subtitle.split("\n") for line in textwrap.wrap(part, width)]
    for block in _side_by_side([_panel(each, width, ink) for each in picture.panels], width):
        lines += ["", *block]
    lines.append("")
    for legend in picture.legends:
        lines += _legend(legend, width, ink)
    for note in picture.notes:
        lines += textwrap.wrap(note, width, subsequent_indent="  ")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def show(picture: Picture, stream: TextIO, width: int | None = None) -> None:
    """Print the picture as wide as the terminal, or as `width` says."""
    width = width or shutil.get_terminal_size((100, 40)).columns
    stream.write(text(picture, width=width, ink=Ink.of(stream)))


def _side_by_side(blocks: list[list[str]], width: int) -> list[list[str]]:
    """The blocks, with neighbors beside each other where both fit into the width."""
    rows: list[list[str]] = []
    for block in blocks:
        if rows:
            left = max(map(_visible, rows[-1]))
            if left + _GAP + max(map(_visible, block)) <= width:
                pairs = zip_longest(rows[-1], block, fillvalue="")
                rows[-1] = [f"{a}{' ' * (left + _GAP - _visible(a))}{b}" for a, b in pairs]
                continue
        rows.append(block)
    return rows


def _visible(line: str) -> int:
    """How many characters of a line show."""
    return len(re.sub("\x1b\\[[0-9;]*m", "", line))


def _panel(panel: Panel, width: int, ink: Ink) -> list[str]:
    head = max(map(len, [*panel.rows.labels, panel.footer_name, panel.rows.name + " ↓"])) + 1
    texts = [line for row in panel.cells for cell in row if cell for line in cell.text.split("\n")]
    wide = max(map(len, [*texts, *panel.columns.labels, *panel.footer]), default=1) + 1
    if ink.colors:
        wide, letters = wide + 1, False
    else:
        wide += any(cell and cell.marked for row in panel.cells for cell in row)
        letters = head + (wide + 2) * len(panel.columns.labels) <= width
        wide += 2 * letters
    count = max((width - head) // wide, 1)
    lines = [ink.bold(panel.title)]
    for first in range(0, len(panel.columns.labels), count):
        lines += _band(panel, slice(first, first + count), head, wide, ink, letters)
    return lines


def _band(panel: Panel, columns: slice, head: int, wide: int, ink: Ink, letters: bool) -> list[str]:
    names = f"{panel.rows.name} ↓".rjust(head - 1) + " " + f" {panel.columns.name} →"
    labels = "".join(f" {each}".ljust(wide) for each in panel.columns.labels[columns])
    lines = [ink.dim(names), ink.dim(" " * head + labels)]
    for label, row in zip(panel.rows.labels, panel.cells, strict=True):
        cells = row[columns]
        high = max((cell.text.count("\n") + 1 for cell in cells if cell), default=1)
        for index in range(high):
            start = (label if index == 0 else "").rjust(head - 1) + " "
            drawn = "".join(ink.cell(cell, _line(cell, index), wide, letters) for cell in cells)
            lines.append(ink.dim(start) + drawn)
    if panel.footer:
        values = "".join(f" {each}".ljust(wide) for each in panel.footer[columns])
        lines.append(ink.bold(panel.footer_name.rjust(head - 1) + " " + values))
    return lines


def _line(cell: Cell | None, index: int) -> str:
    lines = cell.text.split("\n") if cell else []
    return lines[index] if index < len(lines) else ""


def _legend(legend: Legend, width: int, ink: Ink) -> list[str]:
    if not legend.groups:
        return textwrap.wrap(legend.name, width)
    lines, line, used = [], f"{legend.name}:", len(legend.name) + 1
    for group, words in legend.groups:
        size = len(words) + (5 if ink.colors else 4)
        if used + size > width:
            lines.append(line)
            line, used = "", 0
        line += f"  {ink.swatch(group)} {words}"
        used += size
    return [*lines, line]
