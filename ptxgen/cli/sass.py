"""`ptxgen sass FILE` and `ptxgen sass diff A B`: what ptxas made of a kernel, and how two of them differ."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptxgen.cli.errors import OK, WRONG, InputError, nearest
from ptxgen.cli.options import Target

if TYPE_CHECKING:
    from ptxgen.sass import Function, Listing

_NAMED = re.compile(r"([\w./#-]+?)(?:\[(.*)\])?$")


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="SASS and profiles", no_args_is_help=True)(sass)


def sass(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE | diff A B",
            help="PTX, a cubin, an ELF file, a fatbin, or a shipped kernel with options: NAME[option=value,...].",
            show_default=False,
        ),
    ],
    target: Target = None,
    kernel: Annotated[
        str | None, typer.Option("--kernel", metavar="NAME", help="One kernel of several.", show_default=False)
    ] = None,
    loop: Annotated[bool, typer.Option("--loop", help="List the main loop only.")] = False,
    summary: Annotated[bool, typer.Option("--summary", help="Figures without the listing.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show every difference.")] = False,
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            metavar="LIST",
            help="diff: fail (exit code 1) only where figures grow, such as registers+2,spills,loop-stalls+5%.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Show the SASS of a kernel beside its PTX with a summary, or compare two: ptxgen sass diff A B.

    diff exits with 0 if both are the same, 1 if they differ, 2 if one cannot be used.
    """
    if words[0] == "diff":
        if len(words) != 3:
            raise InputError(f"ptxgen sass diff takes two files or kernels, not {len(words) - 1}")
        return _diff(words[1], words[2], target, kernel, fail_on, everything=everything, as_json=as_json)
    if len(words) != 1:
        raise InputError(
            f"ptxgen sass takes one file or kernel, not {len(words)}; to compare two: ptxgen sass diff A B"
        )
    if fail_on is not None:
        raise InputError("--fail-on goes with ptxgen sass diff A B")
    return _show(words[0], target, kernel, loop=loop, summary_only=summary, as_json=as_json)


def _show(word: str, target: str | None, kernel: str | None, *, loop: bool, summary_only: bool, as_json: bool) -> int:
    from ptxgen.sass import summarize
    from ptxgen.sass.show import listing_lines, summary_lines

    listing, _ = _load(word, target)
    functions = listing.functions if kernel is None else (_kernel(listing, kernel),)
    if as_json:
        print(json.dumps([summarize(each, listing).to_json() for each in functions], indent=1))
        return OK
    for each in functions:
        print(f"{each.name} ({listing.target})")
        if not summary_only:
            for line in listing_lines(listing, each, loop_only=loop):
                print(line)
            print()
        for line in summary_lines(summarize(each, listing)):
            print(f"  {line}")
    return OK


def _diff(
    a: str, b: str, target: str | None, kernel: str | None, fail_on: str | None, *, everything: bool, as_json: bool
) -> int:
    from ptxgen.sass import compare
    from ptxgen.sass.show import ThresholdError, broken_thresholds, comparison_lines

    (one, one_options), (other, other_options) = _load(a, target), _load(b, target)
    names = sorted(one_options.keys() | other_options.keys())
    options = [
        (name, one_options.get(name, "default"), other_options.get(name, "default"))
        for name in names
        if one_options.get(name) != other_options.get(name)
    ]
    try:
        found = compare(one, other, kernel=kernel, options=options)
        broken = broken_thresholds(found, fail_on) if fail_on is not None else []
    except LookupError as error:
        raise InputError(str(error.args[0])) from None
    except ThresholdError as error:
        raise InputError(str(error)) from None
    if as_json:
        print(json.dumps({**found.to_json(), "broken_thresholds": broken}, indent=1))
    else:
        print(f"A {a} ({one.target})\nB {b} ({other.target})")
        for line in comparison_lines(found, everything=everything):
            print(line.rstrip())
        for each in broken:
            print(f"fails: {each}")
    if fail_on is not None:
        return WRONG if broken else OK
    return OK if found.same else WRONG


def _kernel(listing: Listing, name: str) -> Function:
    try:
        return listing.kernel(name)
    except LookupError as error:
        raise InputError(str(error.args[0])) from None


def _load(word: str, target: str | None) -> tuple[Listing, dict[str, str]]:
    """A file's listing, or that of a shipped kernel and its options. Raises InputError, ContainerError."""
    from ptxgen.gemm import find, kernels, parse_options
    from ptxgen.sass import load
    from ptxgen.toolchain import assemble

    if Path(word).is_file():
        return load(word, target=target), {}
    match = _NAMED.match(word)
    name = match[1] if match else word
    known = kernels()
    if match is None or not any(name == each.name or name in each.rungs for each in known.values()):
        raise InputError(f"there is no file and no kernel {word!r}{nearest(name, known)}")
    options: dict[str, str] = {}
    for item in filter(None, (match[2] or "").split(",")):
        option, equals, value = item.partition("=")
        if not equals:
            raise InputError(f"{word}: options are written option=value, not {item!r}")
        options[option.strip()] = value.strip()
    text = find(name).plan(**parse_options(options)).text
    made = load(assemble(text, target, options=("-lineinfo",)), origin=word)
    return made, options
