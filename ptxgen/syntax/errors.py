"""The one error that reading PTX text can raise. What is legal but makes no sense is left to the checker."""

from __future__ import annotations

_LONGEST = 40


class PtxSyntaxError(ValueError):
    """PTX text that the grammar does not have.

    `line` and `column` count from 1, a tab as one column. `expected` names what the grammar wanted there,
    `found` what stands there instead, `source_line` is the whole line without its newline.
    """

    def __init__(self, line: int, column: int, expected: str, found: str, source_line: str) -> None:
        self.line = line
        self.column = column
        self.expected = expected
        self.found = found
        self.source_line = source_line
        super().__init__(f"line {line}, column {column}: expected {expected}, found {found}")

    def __reduce__(self) -> tuple[type[PtxSyntaxError], tuple[int, int, str, str, str]]:
        return type(self), (self.line, self.column, self.expected, self.found, self.source_line)

    @classmethod
    def at(cls, text: str, offset: int, expected: str, found: str) -> PtxSyntaxError:
        """The error at character `offset` of `text`."""
        start = text.rfind("\n", 0, offset) + 1
        end = text.find("\n", offset)
        source_line = text[start : end if end >= 0 else len(text)].rstrip("\r")
        return cls(text.count("\n", 0, offset) + 1, offset - start + 1, expected, found, source_line)

    def render(self) -> str:
        """The message, the source line, and a caret under the column."""
        before = self.source_line[: self.column - 1]
        indent = "".join("\t" if character == "\t" else " " for character in before)
        return f"{self}\n{self.source_line}\n{indent}^"


def quoted(text: str) -> str:
    """A piece of source as a message shows it: quoted, on one line, shortened."""
    shown = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    return "'" + "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in shown) + "'"
