"""A picture of a layout as a value: panels of colored cells with labeled axes. `svg` and `terminal` draw it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any


@dataclass(frozen=True, slots=True)
class Cell:
    """One field: its words, the number of its color, whether the access in question touches it, a longer text."""

    text: str
    group: int
    marked: bool = False
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Axis:
    """What the rows or columns are, and the label of each."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """A grid of cells; None leaves the ground empty. `footer` has a word below each column, such as a count."""

    title: str
    rows: Axis
    columns: Axis
    cells: tuple[tuple[Cell | None, ...], ...]
    footer_name: str = ""
    footer: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.cells) != len(self.rows.labels) or any(len(row) != len(self.columns.labels) for row in self.cells):
            raise AssertionError(f"{self.title}: the labels do not fit the cells")


@dataclass(frozen=True, slots=True)
class Legend:
    """What the colors stand for: groups and their words, none where there are too many to list."""

    name: str
    groups: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """One or more panels that share their colors. `data` is the map itself, at full resolution, for JSON."""

    title: str
    subtitle: str
    panels: tuple[Panel, ...]
    legends: tuple[Legend, ...]
    notes: tuple[str, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "title": self.title,
            "subtitle": self.subtitle,
            "notes": list(self.notes),
            "legends": [
                {"name": each.name, "groups": {str(group): words for group, words in each.groups}}
                for each in self.legends
            ],
            "panels": [_panel_dict(each) for each in self.panels],
            "data": self.data,
        }


def _panel_dict(panel: Panel) -> dict[str, Any]:
    return {
        "title": panel.title,
        "rows": {"name": panel.rows.name, "labels": list(panel.rows.labels)},
        "columns": {"name": panel.columns.name, "labels": list(panel.columns.labels)},
        "cells": [
            [None if cell is None else {"text": cell.text, "group": cell.group, "marked": cell.marked} for cell in row]
            for row in panel.cells
        ],
        "footer": {"name": panel.footer_name, "values": list(panel.footer)},
    }


def _compared(first: Panel, second: Panel) -> tuple[Panel, Panel, str]:
    """Two panels of one shape with the cells marked that differ, and how many that are; others as they are."""
    shapes = [(len(each.cells), len(each.columns.labels)) for each in (first, second)]
    if shapes[0] != shapes[1]:
        return first, second, ""
    differ = [
        [_words(a) != _words(b) for a, b in zip(*rows, strict=True)]
        for rows in zip(first.cells, second.cells, strict=True)
    ]
    count, total = sum(map(sum, differ)), shapes[0][0] * shapes[0][1]
    made = [
        replace(
            panel,
            cells=tuple(
                tuple(cell and replace(cell, marked=marked) for cell, marked in zip(row, marks, strict=True))
                for row, marks in zip(panel.cells, differ, strict=True)
            ),
        )
        for panel in (first, second)
    ]
    return made[0], made[1], f"{first.title}: {count} of {total} fields differ (framed)"


def _words(cell: Cell | None) -> str:
    return "" if cell is None else cell.text


def beside(first: Picture, second: Picture) -> Picture:
    """Two pictures as one: panel beside panel, the fields framed that differ (unless accesses are framed)."""

    panels: list[Panel] = []
    notes: list[str] = []
    accesses = any(
        cell and cell.marked for each in (*first.panels, *second.panels) for row in each.cells for cell in row
    )
    for one, other in zip_longest(first.panels, second.panels):
        if one and other and not accesses:
            one, other, words = _compared(one, other)
            notes += [words] if words else []
        panels += [
            replace(each, title=f"{letter}: {each.title}") for letter, each in (("A", one), ("B", other)) if each
        ]
    legends = first.legends
    if first.legends != second.legends:
        named_legends = (("A", first.legends), ("B", second.legends))
        legends = tuple(
            replace(each, name=f"{letter}: {each.name}") for letter, found in named_legends for each in found
        )
    return Picture(
        title=f"A: {first.title} | B: {second.title}",
        subtitle=f"A: {first.subtitle}\nB: {second.subtitle}",
        legends=legends,
        panels=tuple(panels),
        notes=(*notes, *(f"A: {each}" for each in first.notes), *(f"B: {each}" for each in second.notes)),
        data={"a": first.data, "b": second.data},
    )
