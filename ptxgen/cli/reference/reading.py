"""The bits of a descriptor in a terminal, as wide as it is."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from ptxgen.cli.common.terminal import NARROW

_STYLES = (
    ("error:", "bold red"), ("warning:", "yellow"), ("- error:", "bold red"), ("+ error:", "bold red"),
    ("note:", "cyan"), ("fact ", "dim"), ("not from the manual", "dim"), ("- ", "magenta"), ("+ ", "green"),
)  # fmt: skip


def print_reading(out: Console, text: Callable[..., str]) -> None:
    """The lines of a reading, or of two; on a terminal problems and warnings stand out. A narrow one has no table."""
    narrow = out.width < NARROW
    for index, line in enumerate(text(narrow=narrow).split("\n")):
        style = next((style for start, style in _STYLES if line.startswith(start)), "" if index else "bold")
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        if narrow:
            line = textwrap.fill(line, out.width, subsequent_indent=indent, break_on_hyphens=False)
        out.print(Text(line, style=style), soft_wrap=True)
