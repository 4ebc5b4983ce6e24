"""`ptxgen layout`: pictures of swizzles, operands, tensor memory and fragments, in the terminal, as SVG or as JSON."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ptxgen.cli.common import completion
from ptxgen.cli.common.help import HELP_BY_WORD
from ptxgen.cli.errors import OK, InputError

if TYPE_CHECKING:
    from ptxgen.pictures import Picture


def register(app: typer.Typer) -> None:
    # What a kind takes is not known here, so its options go through as words.
    app.command(rich_help_panel="Values", context_settings={"ignore_unknown_options": True})(layout)
    HELP_BY_WORD["layout"] = _options_of


def _options_of(kind: str) -> list[tuple[str, str]]:
    """The options of a kind, for `layout KIND --help`; none for a word that is no kind."""
    from ptxgen.pictures import KINDS
    from ptxgen.pictures.points import MAPS

    if kind not in KINDS:
        return []
    rows: list[tuple[str, str]] = []
    for each in KINDS[kind].parameters:
        words = "|".join(choice for choice in each.choices if choice)
        default = "no" if each.default is False else each.default
        rows.append((f"{each.name}={default}", each.help + (f": {words}" if words else "")))
    located = MAPS[kind]
    known = {each.name for each in KINDS[kind].parameters}
    rows += [
        (f"{each.name}={each.default}", f"with at=: {each.help}")
        for each in located.parameters
        if each.name not in known
    ]
    rows.append(("at=", f"Where one element lies; or what lies at {', '.join(f'{name}=' for name in located.names)}"))
    return rows


def layout(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]",
            help="swizzle, operand, descriptor, tma, tensormap, accumulator, ld, a, metadata, cp, scales, fragment, "
            "row-addresses, im2col, pitch or cute; without it, all kinds with their options.",
            show_default=False,
            autocompletion=completion.pictures,
        ),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME=VALUE]...",
            help="Options of the layout, such as major=mn swizzle=64B; --major mn and a bare 64B work too. "
            "at=ROW,COLUMN asks where one element lies, thread=7 register=2 or address=0x440 what lies there.",
            show_default=False,
        ),
    ] = None,
    diff: Annotated[
        str | None,
        typer.Option("--diff", metavar="'KIND ...'", help="Draw another layout beside it.", show_default=False),
    ] = None,
    svg_file: Annotated[
        str | None,
        typer.Option("--svg", metavar="FILE", help="Write SVG; - is standard output.", show_default=False),
    ] = None,
    columns: Annotated[
        int | None, typer.Option("--columns", help="Characters per line; default: the terminal's width.", min=40)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the map itself.")] = False,
) -> int:
    """Draw a layout, or ask for one element: where each byte, element or register lies, and bank conflicts.

    Examples: layout operand mn 64B access=matrix; layout tma box=64x8 --svg tile.svg; layout ld 16x256b num=2;
    layout swizzle 128B --diff 'swizzle 64B'; layout ld 16x256b at=9,4; layout fragment of=mma-d thread=7 register=2.
    """
    from ptxgen.cli.reference.points import query, query_of
    from ptxgen.pictures import svg, terminal

    if svg_file is not None and as_json:
        raise InputError("choose one of --svg and --json")
    if columns is not None and (svg_file is not None or as_json):
        raise InputError("--columns is for the terminal: leave out --svg and --json")
    if kind is None:
        for option, value in (("--svg", svg_file), ("--diff", diff)):
            if value is not None:
                raise InputError(f"{option} is for a KIND of layout ('ptxgen layout' lists them)")
        _list()
        return OK
    if (asked := query_of(kind, words or [])) is not None:
        if diff is not None or svg_file is not None:
            raise InputError("at= and columns ask for one element: without --svg and --diff")
        return query(asked, as_json)
    picture = _picture(kind, words or [], diff)
    if svg_file is not None:
        _write(svg_file, picture, svg(picture))
    elif as_json:
        print(json.dumps(picture.as_dict()))
    else:
        terminal.show(picture, sys.stdout, columns)
        _show_concepts(kind)
    return OK


def _show_concepts(kind: str) -> None:
    """On a terminal, the concepts behind a picture; a pipe gets the picture alone."""
    from ptxgen import concepts
    from ptxgen.cli.reference.concepts import link

    if sys.stdout.isatty() and (words := link(concepts.about("layouts", kind))):
        print(f"concepts: {words}")


def _picture(kind: str, words: Sequence[str], diff: str | None) -> Picture:
    from ptxgen.pictures import beside

    picture = _draw(kind, words)
    if diff is None:
        return picture
    try:
        other, *more = shlex.split(diff)
    except ValueError:
        raise InputError(f"--diff takes a KIND and its words in quotes, not {diff!r}") from None
    return beside(picture, _draw(other, more))


def _draw(kind: str, words: Sequence[str]) -> Picture:
    from ptxgen.cli.reference.points import joined
    from ptxgen.pictures import KINDS, draw
    from ptxgen.pictures.points import MAPS

    if kind not in KINDS:
        return draw(kind, words)
    given = joined(KINDS[kind], words)
    drawn = {each.name for each in KINDS[kind].parameters}
    asked = {each.name for each in MAPS[kind].parameters} - drawn
    if name := next((name for word in given if (name := word.partition("=")[0]) in asked), ""):
        raise InputError(
            f"{name} is for queries, which need at= or one of {', '.join(f'{each}=' for each in MAPS[kind].names)}"
        )
    return draw(kind, given)


def _write(path: str, picture: Picture, text: str) -> None:
    from ptxgen.cli.common.files import write_output

    if path == "-":
        print(text, end="")
        return
    data = text.encode()
    write_output(path, data)
    print(f"{path}: {picture.title}, {len(data)} bytes")


def _list() -> None:
    """All kinds, with their parameters, defaults and values."""
    from rich.padding import Padding
    from rich.text import Text

    from ptxgen import concepts
    from ptxgen.cli.common.terminal import grid, output
    from ptxgen.cli.reference.concepts import link
    from ptxgen.pictures import KINDS
    from ptxgen.pictures.points import MAPS

    with output() as out:
        for kind in KINDS.values():
            out.print(Text(kind.name, style="bold").append(f"  {kind.summary}", style=""))
            table = grid("cyan", "dim", "")
            for each in kind.parameters:
                words = "|".join(choice for choice in each.choices if choice)
                default = "no" if each.default is False else each.default
                table.add_row(
                    each.name, f"{default}" if default != "" else "-", each.help + (f": {words}" if words else "")
                )
            if kind.name in MAPS:
                table.add_row("at=", "", f"asks for one element; columns: {', '.join(MAPS[kind.name].names)}")
            if words := link(concepts.about("layouts", kind.name)):
                table.add_row("concepts", "", words)
            out.print(Padding(table, (0, 0, 1, 2)))
