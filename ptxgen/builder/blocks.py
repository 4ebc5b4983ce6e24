"""Blocks of the packaged templates in a builder: a concept of `ptxgen.gemm` becomes the PTX of the ladders' kernels.

Each file of kernels/blocks has the macros of one concept; `KernelBuilder.block` gives them as methods.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import jinja2

from ptxgen.builder.templates import TemplateError, environment, macro_lines, template_frames
from ptxgen.files import KERNELS_FOLDER

_MACRO = re.compile(r"((?:^##.*\n)*)^{%-? *macro (\w+)\((.*?)\) *-?%}", re.MULTILINE)
_LABEL = re.compile(r"(\$\w+):")


class BlockError(ValueError):
    """A block that there is not, or a macro that does not take its arguments."""


class AppendsLines(Protocol):
    """What takes the lines of a block: `KernelBuilder`."""

    def label(self, name: str = "label") -> str: ...

    def lines_of_block(self, lines: list[str]) -> None: ...


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro of a block: its parameters as they are declared, and the comment above it."""

    name: str
    parameters: str
    comment: str

    def __str__(self) -> str:
        return f"{self.name}({self.parameters})" + (f"\n    {self.comment}" if self.comment else "")


class Block:
    """The macros of kernels/blocks/NAME.j2 as methods, which append their PTX; `print(block)` lists them.

        >>> from ptxgen.builder import KernelBuilder
        >>> pipeline = KernelBuilder("gemm", "sm_100a", threads=128).block("pipeline")
        >>> "wait_full" in pipeline.macros
        True

    Arguments are concepts of `ptxgen.gemm`, numbers and names of registers, as the comment of the macro says. Raises
    BlockError for a macro that there is not and arguments that it does not take, TemplateError for a file that is no
    template.
    """

    def __init__(self, builder: AppendsLines, name: str, folder: Path | None = None) -> None:
        self._builder, self._name = builder, name
        self._file = f"blocks/{name}.j2"
        self._folders = (KERNELS_FOLDER,) if folder is None else (folder, KERNELS_FOLDER)
        made = environment(self._folders)
        try:
            self._template = made.get_template(self._file)
        except jinja2.TemplateNotFound:
            names = [Path(each).stem for each in made.list_templates() if each.startswith("blocks/")]
            raise BlockError(f"there is no block {name!r}{_near(name, names)}") from None
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(str(error.name), error.lineno, str(error.message)) from None
        paths = [folder / self._file for folder in self._folders if (folder / self._file).is_file()]
        source = paths[0].read_text(encoding="utf-8")
        self.macros = {
            each[2]: Macro(each[2], each[3], " ".join(line.strip("# ") for line in each[1].splitlines()))
            for each in _MACRO.finditer(source)
        }

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self.macros]

    def __str__(self) -> str:
        return "\n".join(map(str, self.macros.values()))

    def __getattr__(self, macro: str) -> Callable[..., None]:
        if macro.startswith("_"):
            raise AttributeError(macro)
        if macro not in self.macros:
            raise BlockError(f"the block {self._name} has no macro {macro!r}{_near(macro, self.macros)}")

        def append(*values: Any, **named: Any) -> None:
            self._append(macro, values, named)

        append.__name__, append.__doc__ = macro, str(self.macros[macro])
        return append

    def _append(self, macro: str, values: tuple[Any, ...], named: dict[str, Any]) -> None:
        try:
            text = str(getattr(self._template.module, macro)(*values, **named))
        except (TypeError, jinja2.UndefinedError) as error:
            places = "".join(f" ({template}:{line})" for template, line in template_frames(error, self._folders)[:1])
            raise BlockError(f"{self._name}.{macro}({self.macros[macro].parameters}): {error}{places}") from error
        self._builder.lines_of_block(self._with_own_labels(macro_lines(text)))

    def _with_own_labels(self, lines: list[str]) -> list[str]:
        """The lines with new labels for those outside of { }, as a block may be appended several times."""
        new: dict[str, str] = {}
        depth = 0
        for line in map(str.strip, lines):
            depth -= line.startswith("}")
            if depth == 0 and (found := _LABEL.fullmatch(line)):
                new[found[1]] = self._builder.label(found[1].removeprefix("$"))
            depth += line.startswith("{") and line.endswith("{")
        if not new:
            return lines
        names = re.compile("|".join(re.escape(each) + r"\b" for each in new))
        return [names.sub(lambda found: new[found[0]], line) for line in lines]


def _near(name: str, known: Iterable[str]) -> str:
    """What a name may mean, as the end of a sentence."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"
