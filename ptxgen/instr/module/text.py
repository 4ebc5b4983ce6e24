"""What is wrong with the characters of a module, whatever its statements are: what ptxas cannot read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxgen.instr.model.symbols import Problem
from ptxgen.instr.module.context import non_ascii
from ptxgen.syntax.lexer import COMMENT, LINE_MARKER, STRING

_DIRECTIVE = re.compile(rf"{COMMENT}|{STRING}|(?P<marker>{LINE_MARKER})|(?P<other>#[^\n]*)", re.ASCII)


def text_problems(text: str) -> Iterator[tuple[int, Problem]]:
    """Each problem with its place in `text`, from 0 (measured, ptxas 13.5.37)."""
    if "#" in text:
        for found in _DIRECTIVE.finditer(text):
            if found["other"]:
                message = f"ptxas has no preprocessor: {found['other'].strip()} must be gone before it reads the text"
                yield found.start(), Problem("preprocessor", message)
            elif found["marker"]:
                for problem in non_ascii(found["marker"].strip()):
                    yield found.start(), problem
    if text.endswith("\0"):
        end = len(text.rstrip("\0"))
        message = f"{len(text) - end} NUL characters end the text, which ptxas does not take for its end; strip them"
        yield end, Problem("trailing-nul", message)
