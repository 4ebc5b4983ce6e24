"""`--help`: commands in groups, examples, and lines as wide as the terminal.

Plain text: typer's own pages take a second of imports more than all the rest of a command.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_name
from typer.models import CommandInfo

from ptxgen.cli.common.examples import EXAMPLES

_F = TypeVar("_F", bound=Callable[..., Any])

HELP_BY_WORD: dict[str, Callable[[str], list[tuple[str, str]]]] = {}
"""By command: the options that its first word has, which its own help page does not list."""


class Application(typer.Typer):
    """The command, whose subcommands have help pages of this kind."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[_F], _F]:
        return super().command(name, cls=_Command, **settings)

    def for_words(self, words: Sequence[str]) -> Application:
        """This application, with the one command that the first word names alone: building all takes longer."""
        named = [each for each in self.registered_commands if words and _name(each) == words[0]]
        if not named:
            return self
        alone = copy(self)
        alone.registered_commands = named
        return alone


def _name(command: CommandInfo) -> str:
    return command.name or get_command_name(command.callback.__name__ if command.callback else "")


def _narrow(formatter: Any) -> None:
    """Names take at most a third of the line; the text of a longer one begins on the next."""
    formatter.write_dl = partial(formatter.write_dl, col_max=max(10, min(30, formatter.width // 3)))


def _write_examples(name: str | None, formatter: Any) -> None:
    examples = EXAMPLES.get(name or "", ())
    if examples:
        with formatter.section("Examples"):
            for command, what in examples:
                formatter.write_text(f"# {what}")
                formatter.write(f"  {command}\n")  # whole, to be copied


#: Options whose value may be left out: what it then is, and what a value looks like.
_OPTIONAL_VALUES = {
    "--explore": ("60", r"-?[\d.]+(e-?\d+)?"),
    "--loop": ("main", r"main|0x[\da-fA-F]+|(?:.*:)?\d+"),
}


def _completed(arguments: list[str]) -> list[str]:
    """The words of a command line, with the values of options that may lack them."""
    made: list[str] = []
    for number, word in enumerate(arguments, 1):
        made.append(word)
        following = arguments[number] if number < len(arguments) else ""
        value, form = _OPTIONAL_VALUES.get(word, ("", ""))
        if value and not re.fullmatch(form, following):
            made.append(value)
    return made


class _Command(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta["ptxgen.words"] = list(args)
        return super().parse_args(ctx, _completed(args))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _narrow(formatter)
        super().format_help(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """What the first word takes, the arguments, then the options by their panels, those without one first."""
        words = ctx.meta.get("ptxgen.words", [])
        of_word = HELP_BY_WORD[self.name](words[0]) if self.name in HELP_BY_WORD and words else []
        if of_word:
            with formatter.section(f"Options of {words[0]}"):
                formatter.write_dl(of_word)
        arguments: list[tuple[str, str]] = []
        panels: dict[str, list[tuple[str, str]]] = {"Options": []}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if record is None:
                continue
            panel = getattr(each, "rich_help_panel", None)
            is_argument = each.param_type_name == "argument"
            (arguments if is_argument else panels.setdefault(panel or "Options", [])).append(record)
        for title, rows in (("Arguments", arguments), *panels.items()):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _write_examples(self.name, formatter)
        super().format_epilog(ctx, formatter)


class Commands(TyperGroup):
    """The commands by their panels."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _narrow(formatter)
        super().format_help(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                summary = inspect.cleandoc(command.help or "").split("\n\n")[0].replace("\n", " ")
                panel = getattr(command, "rich_help_panel", None)
                panels.setdefault(panel if isinstance(panel, str) else "Commands", []).append((name, summary))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        _write_examples(self.name or "ptxgen", formatter)
        super().format_epilog(ctx, formatter)
