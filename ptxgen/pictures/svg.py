"""Pictures as SVG: black on white, at most as wide as a page of A4 shows well, the same bytes every time."""

from __future__ import annotations

import textwrap
from html import escape

from ptxgen.pictures.model import Cell, Legend, Panel, Picture
from ptxgen.pictures.palette import NO_GROUP, fill

_PAGE = 1120  # pixels of A4 landscape at 96 dpi
_MARGIN = 16
_GAP = 36
_CHARACTER = 6.1  # of the 10 px monospace text of cells
_ROW = 18
_HEAD = 58  # title, column axis and labels of a panel
_FOOT = 22

_STYLE = (
    "text{font:10px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#000}"
    ".t{font:bold 16px sans-serif}.s{font:12px sans-serif;fill:#333}.h{font:bold 12px sans-serif}"
    ".a{font:italic 11px sans-serif;fill:#333}.l{fill:#333}.c{text-anchor:middle}.r{text-anchor:end}"
    "rect{stroke:#fff;stroke-width:1}.m{stroke:#000;stroke-width:2.5}.b{font-weight:bold}.n{font:12px sans-serif}"
    ".e{fill:#f4f4f4}.w{fill:#B00020;font-weight:bold}"
)


def svg(picture: Picture) -> str:
    """The picture as one SVG document."""
    placed, width, height = _place(picture)
    subtitles = picture.subtitle.split("\n") if picture.subtitle else []
    top = _MARGIN + 32 + 18 * len(subtitles)
    body: list[str] = [f'<text class="t" x="{_MARGIN}" y="{_MARGIN + 14}">{escape(picture.title)}</text>']
    for index, line in enumerate(subtitles):
        body.append(f'<text class="s" x="{_MARGIN}" y="{_MARGIN + 34 + 18 * index}">{escape(line)}</text>')
    for panel, x, y in placed:
        body += _panel(panel, _MARGIN + x, top + y)
    y = top + height + 8
    for legend in picture.legends:
        drawn, legend_height = _legend(legend, width, y)
        body += drawn
        y += legend_height
    for note in picture.notes:
        for line in _wrapped(note, int(width / 6.3)):
            y += 17
            mark = " w" if note.startswith("conflict") else ""
            body.append(f'<text class="n{mark}" x="{_MARGIN}" y="{y}">{escape(line)}</text>')
    used = {cell.group for panel in picture.panels for row in panel.cells for cell in row if cell}
    used |= {group for legend in picture.legends for group, _ in legend.groups}
    colors = "".join(f".{_class(group)}{{fill:{fill(group)}}}" for group in sorted(used))
    full_width, full_height = width + 2 * _MARGIN, y + _MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{full_width}" height="{full_height}" '
            f'viewBox="0 0 {full_width} {full_height}">',
            f"<style>{_STYLE}{colors}</style>",
            f'<rect width="{full_width}" height="{full_height}" fill="#fff"/>',
            *body,
            "</svg>\n",
        ]
    )


def _place(picture: Picture) -> tuple[list[tuple[Panel, int, int]], int, int]:
    """Where each panel goes: beside its neighbor while the page is wide enough, else below. Then width and height."""
    placed: list[tuple[Panel, int, int]] = []
    x = y = row_height = width = 0
    for panel in picture.panels:
        wide, high = _size(panel)
        if x and x + wide > _PAGE - 2 * _MARGIN:
            x, y, row_height = 0, y + row_height + 20, 0
        placed.append((panel, x, y))
        width, row_height = max(width, x + wide), max(row_height, high)
        x += wide + _GAP
    needed = max(len(picture.title) * 9.5, *(len(line) * 6.3 for line in picture.subtitle.split("\n")), 560)
    return placed, int(max(width, min(needed, _PAGE - 2 * _MARGIN))), y + row_height


def _label_width(panel: Panel) -> int:
    return int(max(map(len, [*panel.rows.labels, panel.footer_name, f"{panel.rows.name} ↓"])) * _CHARACTER) + 10


def _cell_width(panel: Panel) -> int:
    texts = [cell.text for row in panel.cells for cell in row if cell] + [*panel.columns.labels, *panel.footer]
    return max(int(max((len(line) for text in texts for line in text.split("\n")), default=1) * _CHARACTER) + 8, 18)


def _row_height(panel: Panel) -> int:
    lines = max((cell.text.count("\n") + 1 for row in panel.cells for cell in row if cell), default=1)
    return _ROW + 12 * (lines - 1)


def _size(panel: Panel) -> tuple[int, int]:
    wide = _label_width(panel) + _cell_width(panel) * len(panel.columns.labels)
    wide = max(wide, int(len(panel.title) * 7.2))
    return wide, _HEAD + _row_height(panel) * len(panel.cells) + (_FOOT if panel.footer else 0)


def _panel(panel: Panel, x: int, y: int) -> list[str]:
    label, wide, high = _label_width(panel), _cell_width(panel), _row_height(panel)
    left, top = x + label, y + _HEAD
    out = [
        f'<text class="h" x="{x}" y="{y + 12}">{escape(panel.title)}</text>',
        f'<text class="a" x="{left + 5}" y="{y + 34}">{escape(panel.columns.name)} →</text>',
        f'<text class="a r" x="{left - 5}" y="{y + 34}">{escape(panel.rows.name)} ↓</text>',
    ]
    for i, text in enumerate(panel.columns.labels):
        out.append(f'<text class="l c" x="{left + i * wide + wide // 2}" y="{top - 6}">{escape(text)}</text>')
    for j, row in enumerate(panel.cells):
        at = top + j * high
        out.append(f'<text class="l r" x="{left - 5}" y="{at + high // 2 + 4}">{escape(panel.rows.labels[j])}</text>')
        marked: list[str] = []
        for i, cell in enumerate(row):
            drawn = _cell(cell, left + i * wide, at, wide, high)
            (marked if cell and cell.marked else out).append(drawn)
        out += marked  # above their neighbors, so that the frame is whole
    if panel.footer:
        at = top + len(panel.cells) * high + 15
        out.append(f'<text class="a r" x="{left - 5}" y="{at}">{escape(panel.footer_name)}</text>')
        for i, text in enumerate(panel.footer):
            out.append(f'<text class="c b" x="{left + i * wide + wide // 2}" y="{at}">{escape(text)}</text>')
    return out


def _cell(cell: Cell | None, x: int, y: int, wide: int, high: int) -> str:
    if cell is None:
        return f'<rect class="e" x="{x}" y="{y}" width="{wide}" height="{high}"/>'
    kind = _class(cell.group) + (" m" if cell.marked else "")
    lines = cell.text.split("\n")
    middle = x + wide // 2
    first = y + high // 2 + 4 - 6 * (len(lines) - 1)
    bold = " b" if cell.marked else ""
    drawn = f'<rect class="{kind}" x="{x}" y="{y}" width="{wide}" height="{high}"/>'
    for index, line in enumerate(lines):
        if line:
            drawn += f'<text class="c{bold}" x="{middle}" y="{first + 12 * index}">{escape(line)}</text>'
    return f"<g><title>{escape(cell.detail)}</title>{drawn}</g>" if cell.detail else drawn


def _legend(legend: Legend, width: int, y: int) -> tuple[list[str], int]:
    """The colors and their words, in as many lines as needed, and the height."""
    out = [f'<text class="h" x="{_MARGIN}" y="{y + 14}">{escape(legend.name)}</text>']
    x = _MARGIN + int(len(legend.name) * 7.4) + 14
    line = 0
    for group, words in legend.groups:
        needed = int(len(words) * 6.6) + 30
        if x + needed > width + _MARGIN and x > _MARGIN:
            x, line = _MARGIN, line + 1
        at = y + 20 * line
        out.append(f'<rect class="{_class(group)}" x="{x}" y="{at + 3}" width="16" height="14"/>')
        out.append(f'<text class="n" x="{x + 20}" y="{at + 14}">{escape(words)}</text>')
        x += needed
    return out, 20 * (line + 1) + 4


def _class(group: int) -> str:
    return "g" if group == NO_GROUP else f"g{group}"


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 40)) or [""]
