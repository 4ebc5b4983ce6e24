"""The colors of cells: Paul Tol's "light" scheme, distinguishable with any color vision under black text."""

from __future__ import annotations

#: Fill colors by group; beyond the last they start again, darker.
FILLS = ("#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#99DDFF", "#44BB99", "#BBCC33", "#AAAA00")
_AGAIN = ("#5C86AE", "#C46F54", "#C2B36C", "#D38A99", "#7CB4D1", "#37977C", "#98A62A", "#8A8A00")


#: Cells of no group are pale.
NO_GROUP = -1
_PALE = "#E8E8E8"


def fill(group: int) -> str:
    """The color of a group, "#rrggbb". Groups from 16 on repeat."""
    if group == NO_GROUP:
        return _PALE
    return (FILLS + _AGAIN)[group % 16]


def rgb(color: str) -> tuple[int, int, int]:
    """The three parts of "#rrggbb"."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)
