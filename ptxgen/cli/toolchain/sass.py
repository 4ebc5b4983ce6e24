"""`ptxgen sass FILE` and `ptxgen sass diff A B`: what ptxas made of a kernel, and how two of them differ."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ptxgen.cli.common import completion
from ptxgen.cli.common.formats import AsJson, Formats, Output
from ptxgen.cli.common.groups import For, Given, Kind, grouped
from ptxgen.cli.common.options import Target
from ptxgen.cli.errors import OK, WRONG, InputError, nearest
from ptxgen.files import read_stdin
from ptxgen.names import shown_name

if TYPE_CHECKING:
    from ptxgen.reports import Place, Report
    from ptxgen.sass import Comparison, Function, Listing
    from ptxgen.sass.diff import Pair
    from ptxgen.sass.show import Broken

#: What the first word asks for.
_LISTING, _DIFF, _GATE = Kind("ptxgen sass FILE"), Kind("ptxgen sass diff"), Kind("ptxgen sass gate")
_NAMED = re.compile(r"([\w./#-]+?)(?:\[(.*)\])?$")


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="SASS and profiles")(sass)


@grouped
def sass(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE | diff A B | gate FILE...",
            help="PTX, a cubin, an ELF file, a fatbin, a dump of cuobjdump, CUDA C++ (.cu), a Python file with a job, "
            "- for standard input, or a shipped kernel with options: NAME[option=value,...].",
            show_default=False,
            autocompletion=completion.kernel_names,
        ),
    ],
    target: Target = None,
    kernel: Annotated[
        str | None,
        typer.Option("--kernel", metavar="NAME", help="One kernel of several.", show_default=False),
        For(_LISTING, _DIFF),
    ] = None,
    loop: Annotated[
        str | None,
        typer.Option(
            "--loop",
            metavar="[ADDRESS|LINE]",
            help="One loop only: that at an address (0x310) or line (60, pipe.cu:60). Default: the main loop. With "
            "diff: its differences and figures.",
            show_default=False,
        ),
        For(_LISTING, _DIFF),
    ] = None,
    summary: Annotated[bool, typer.Option("--summary", help="Figures without the listing."), For(_LISTING)] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show every difference."), For(_DIFF)] = False,
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            metavar="LIST",
            help="diff: fail (exit code 1) only where figures grow, such as registers+2,spills,loop-stalls+5%. "
            "loop-stalls, loop-instructions, loop-waits and loop-CLASS (loop-BAR, loop-MUFU) hold for every loop. "
            "Default of gate: registers,spills,loop-stalls+5%,loop-instructions+5%,loop-MUFU,loop-waits.",
            show_default=False,
        ),
        For(_DIFF, _GATE),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="REV", help="gate: the revision of git; default HEAD.", show_default=False),
        For(_GATE),
    ] = None,
    formats: Formats = [],  # noqa: B006  (typer's way to say many)
    as_json: AsJson = False,
    *,
    given: Given,
) -> int:
    """Show the SASS of a kernel beside its PTX with a summary, or compare two: ptxgen sass diff A B.

    diff exits with 0 if both are the same, 1 if they differ, 2 if one cannot be used. gate compares files with their
    versions in git, and fails where figures grow.
    """
    from ptxgen.cli.toolchain.sass_gate import gate

    written = Output.of(formats, as_json=as_json)
    asked = {"diff": _DIFF, "gate": _GATE}.get(words[0], _LISTING)
    given.require(words[0], asked)
    if words[0] == "gate":
        return gate(words[1:], target, fail_on, base, written)
    return _sass(words, target, kernel, fail_on, written, loop=loop, summary=summary, everything=everything)


def _sass(
    words: list[str],
    target: str | None,
    kernel: str | None,
    fail_on: str | None,
    written: Output,
    *,
    loop: str | None,
    summary: bool,
    everything: bool,
) -> int:
    if words[0] == "diff":
        if len(words) != 3:
            raise InputError(f"ptxgen sass diff takes two files or kernels, not {len(words) - 1}")
        return _diff(words[1], words[2], target, kernel, fail_on, written, loop=loop, everything=everything)
    if len(words) != 1:
        raise InputError(
            f"ptxgen sass takes one file or kernel, not {len(words)}; to compare two: ptxgen sass diff A B"
        )
    if written.wants_report or written.files:
        raise InputError("--format sarif and github go with ptxgen sass diff A B, which reports findings")
    return _show(words[0], target, kernel, loop=loop, summary_only=summary, as_json=written.printed == "json")


def _show(
    word: str, target: str | None, kernel: str | None, *, loop: str | None, summary_only: bool, as_json: bool
) -> int:
    from ptxgen.sass import summarize
    from ptxgen.sass.export import to_json
    from ptxgen.sass.show import listing_lines, summary_lines

    listing = _source(word, target).listing(target)
    functions = listing.functions if kernel is None else (_kernel(listing, kernel),)
    if loop is not None:
        functions = tuple(_with_loop(functions, loop))
    if as_json:
        print(json.dumps([to_json(listing, each, loop, summary_only) for each in functions], indent=1))
        return OK
    widest = 0
    for each in functions:
        print(f"{shown_name(each.name)} ({listing.target})")
        if not summary_only:
            lines = list(listing_lines(listing, each, loop=loop))
            print(*lines, "", sep="\n")
            widest = max(widest, *map(len, lines), 0)
        for line in summary_lines(summarize(each, listing)):
            print(f"  {line}")
    columns = shutil.get_terminal_size().columns
    if sys.stdout.isatty() and widest > columns:
        print(
            f"note: the listing is {widest} columns wide, this terminal {columns}; --summary has none", file=sys.stderr
        )
    return OK


def _with_loop(functions: Sequence[Function], loop: str) -> Iterator[Function]:
    """The functions that have a loop. Raises InputError where none has."""
    from ptxgen.sass.flow import Flow
    from ptxgen.sass.loops import NoLoopError, chosen

    missing: NoLoopError | None = None
    found = 0
    for each in functions:
        try:
            chosen(Flow(each), loop)
        except NoLoopError as error:
            missing = error
            continue
        found += 1
        yield each
    if not found and missing is not None:
        raise InputError(str(missing.args[0]))


def _diff(
    a: str,
    b: str,
    target: str | None,
    kernel: str | None,
    fail_on: str | None,
    written: Output,
    *,
    loop: str | None,
    everything: bool,
) -> int:
    from ptxgen.cli.toolchain.sass_gate import require_thresholds
    from ptxgen.sass.cache import keep, kept, place

    if fail_on is not None:
        require_thresholds(fail_on)
    given = _sources(a, b, target)
    as_json = written.wants("json")
    asked = repr((a, b, target, kernel, fail_on, loop, everything, as_json)).encode()
    path = place("diff", *(each.data for each in given), asked)
    match kept(path):
        case [str(text), dict(data), list(rows), int(code)]:
            pass
        case _:
            text, data, rows, code = _compared(
                given, target, kernel, fail_on, loop=loop, everything=everything, as_json=as_json
            )
            keep(path, [text, data, rows, code])
    written.write(text=lambda: print(text), data=lambda: data, report=lambda: _report(b, rows), indent=1)
    return code


def _report(word: str, rows: Sequence[Sequence[str]]) -> Report:
    """The report of a comparison: a result for each row of (message, PTX line, source), at what was compared."""
    from ptxgen.reports import Report, Result

    return Report(
        tuple(Result("sass-changed", "error", message, place_in(word, line, source)) for message, line, source in rows)
    )


def place_in(word: str, ptx_line: str, source: str) -> Place | None:
    """Where a file is shown: its line of the PTX if it is PTX, else the line of the source that its code names."""
    from ptxgen.reports import Place
    from ptxgen.reports.paths import place_of

    if not Path(word).is_file():
        return None
    if word.endswith((".py", ".cu")):
        return place_of(source, {}) or Place(word)
    return Place(word, int(ptx_line) if ptx_line else None)


def _rows(found: Comparison, broken: Sequence[Broken], *, gated: bool) -> list[list[str]]:
    """How each kernel differs, with the first line that does; with thresholds, only what exceeds them."""
    from ptxgen.sass.show import pair_summary

    if gated:
        return [[f"the SASS exceeds a threshold: {each}", str(each.ptx_line or ""), each.source] for each in broken]
    pairs = [
        [pair_summary(pair), str(next((line for _, line in pair.ptx if line), "")), _first_source(pair)]
        for pair in found.pairs
        if not pair.same
    ]
    alone = [
        [f"{shown_name(each.name)} is only in {side}", "", ""]
        for side, functions in (("A", found.only_a), ("B", found.only_b))
        for each in functions
    ]
    return [*pairs, *alone]


def _first_source(pair: Pair) -> str:
    """The line of B's source whose code differs first; empty if nothing names one."""
    found = (pair.b.instructions[each.b].source for each in pair.differences if each.b is not None)
    return next(filter(None, found), "")


def _compared(
    given: tuple[Source, Source],
    target: str | None,
    kernel: str | None,
    fail_on: str | None,
    *,
    loop: str | None,
    everything: bool,
    as_json: bool,
) -> tuple[str, dict[str, object], list[list[str]], int]:
    """What a comparison prints, its JSON, its findings as rows, and its exit code."""
    from ptxgen.sass import compare
    from ptxgen.sass.diff import within
    from ptxgen.sass.show import broken_thresholds, comparison_lines

    with ThreadPoolExecutor(2) as pool:  # ptxas and nvdisasm run as processes of their own
        one, other = pool.map(lambda each: each.listing(target), given)
    first, second = (each.shipped for each in given)
    try:
        found = compare(one, other, kernel=kernel, options=_options(first, second))
        found = replace(found, causes=_causes(found, one, first, second, target, kernel))
        if loop is not None:
            found = within(found, loop)
        broken = broken_thresholds(found, fail_on) if fail_on is not None else []
    except LookupError as error:
        raise InputError(str(error.args[0])) from None
    if fail_on is not None:
        code = WRONG if broken else OK
    else:
        code = OK if found.same else WRONG
    data = {**found.to_json(), "broken_thresholds": broken} if as_json else {}
    rows = _rows(found, broken, gated=fail_on is not None) if code == WRONG else []
    lines = [f"A {given[0].word} ({one.target})", f"B {given[1].word} ({other.target})"]
    lines += [line.rstrip() for line in comparison_lines(found, everything=everything)]
    return "\n".join([*lines, *(f"fails: {each}" for each in broken)]), data, rows, code


def _options(first: Shipped | None, second: Shipped | None) -> list[tuple[str, str, str]]:
    """The options that differ between two shipped kernels, with both values."""
    if first is None or second is None:
        return []
    kernels = [("kernel", first.name, second.name)] if first.name != second.name else []
    names = sorted(first.options.keys() | second.options.keys())
    values = [(name, first.value(name), second.value(name)) for name in names]
    return kernels + [(name, str(a), str(b)) for name, a, b in values if a != b]


def _causes(
    found: Comparison,
    one: Listing,
    first: Shipped | None,
    second: Shipped | None,
    target: str | None,
    kernel: str | None,
) -> dict[str, frozenset[tuple[str, int]]]:
    """For each of several options what differs where it alone has the value of the other side."""
    from ptxgen.sass import compare

    if first is None or second is None or first.name != second.name or found.same:
        return {}
    if len(found.options) == 1:
        return {found.options[0][0]: found.places}
    made: dict[str, frozenset[tuple[str, int]]] = {}
    for option, _, _ in found.options:
        try:
            alone = replace(first, options={**first.options, option: second.value(option)}).listing(target)
        except ValueError:  # legal with the others only
            continue
        made[option] = compare(one, alone, kernel=kernel).places
    return made


def _kernel(listing: Listing, name: str) -> Function:
    try:
        return listing.kernel(name)
    except LookupError as error:
        raise InputError(str(error.args[0])) from None


@dataclass(frozen=True)
class Shipped:
    """A kernel of the ladders, with options as its config takes them."""

    word: str
    name: str
    options: Mapping[str, object]

    def value(self, option: str) -> object:
        """The value of an option: the default where it is not given."""
        from ptxgen.catalog import find

        described = find(self.name).described()
        return self.options.get(option, described[option]["default"] if option in described else None)

    def text(self) -> str:
        """Its PTX. Raises PlanError for options that it does not take."""
        from ptxgen.catalog import find

        return find(self.name).plan(**self.options).text

    def listing(self, target: str | None) -> Listing:
        """Its SASS. Raises PlanError."""
        from ptxgen.sass import load
        from ptxgen.toolchain import assemble

        return load(assemble(self.text(), target, options=("-lineinfo",)), origin=self.word)


@dataclass(frozen=True)
class Source:
    """What a word names: a file with its bytes, or a shipped kernel with its PTX."""

    word: str
    data: bytes
    shipped: Shipped | None

    def listing(self, target: str | None) -> Listing:
        """Its SASS. Raises ContainerError, and InputError for PTX that does not assemble."""
        if self.shipped:
            return self.shipped.listing(target)
        return listing_of(self.data, self.word, target)


def listing_of(data: bytes, word: str, target: str | None) -> Listing:
    """The SASS of a file's bytes. Raises ContainerError, and InputError for PTX that does not assemble.

    The exit code of a comparison is then 2: 1 is that of a difference.
    """
    from ptxgen.sass import load
    from ptxgen.toolchain import AssemblerError

    try:
        return load(data, target=target, origin=word)
    except AssemblerError as error:
        first, *more = str(error).splitlines()
        raise InputError(f"{word}: {first}", more) from None


def _sources(a: str, b: str, target: str | None) -> tuple[Source, Source]:
    """What two words name; without a target, CUDA C++ is compiled for that of the other side."""
    if target is not None or a.endswith(".cu") == b.endswith(".cu"):
        return _source(a, target), _source(b, target)
    word, first = (a, False) if a.endswith(".cu") else (b, True)
    other = _source(b if word == a else a, None)
    source = _source(word, other.listing(None).target)
    return (other, source) if first else (source, other)


def _source(word: str, target: str | None) -> Source:
    """What a word names; - is standard input, CUDA C++ is compiled for `target`.

    Raises InputError, PlanError, CompilerError.
    """
    if word == "-":
        return Source("standard input", read_stdin(), None)
    path = Path(word)
    if word.endswith((".py", ".cu")):
        from ptxgen.cli.common.files import read_ptx

        return Source(word, read_ptx(word, target).encode(), None)
    if path.is_file():
        try:
            return Source(word, path.read_bytes(), None)
        except OSError as error:
            raise InputError(f"{word} cannot be read: {error.strerror}") from None
    if word and path.is_dir():
        raise InputError(f"{word} is a folder; it must be a file or a shipped kernel")
    from ptxgen.catalog import find, kernels
    from ptxgen.gemm import KernelEntry, parse_options
    from ptxgen.options import parse

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
    entry = find(name)
    parsed = parse_options(options) if isinstance(entry, KernelEntry) else parse(entry.config_type, options)
    shipped = Shipped(word, name, parsed)
    return Source(word, shipped.text().encode(), shipped)
