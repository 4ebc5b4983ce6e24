"""Directives between the parameters and the body of an entry or function, and pragmas. PTX ISA 11.4, 11.7, 11.8, 12."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from ptxgen import syntax
from ptxgen.instr.model.symbols import Problem
from ptxgen.instr.model.targets import ALL, Availability
from ptxgen.instr.module.context import Context, non_ascii
from ptxgen.syntax.lexer import WARP_SIZE, word_value

_LIMIT = 2**32 - 1


@dataclass(frozen=True, slots=True)
class FunctionDirective:
    """A directive: where it may stand, since when, and what its numbers may be.

    `needs` are directives that must be there too, `excludes` what must not. `repeatable`: given twice, the last holds.
    """

    availability: Availability
    entry: bool = True
    function: bool = False
    prototype: bool = False
    low: int = 0
    high: int = _LIMIT
    needs: tuple[str, ...] = ()
    excludes: str = ""
    repeatable: bool = True


_CLUSTER = Availability("7.8", "sm_90+")
_ABI = Availability("9.0", "sm_80+")
#: Where the manual is silent, as measured with ptxas 13.5; the last three are not in the manual yet.
DIRECTIVES = {
    "maxnreg": FunctionDirective(Availability("1.3", ALL), low=1),
    "maxntid": FunctionDirective(Availability("1.3", ALL), low=1, excludes="reqntid"),
    "reqntid": FunctionDirective(Availability("2.1", ALL), low=1),
    "minnctapersm": FunctionDirective(Availability("2.0", ALL), low=1),
    "maxnctapersm": FunctionDirective(Availability("1.3", ALL), low=1),
    "noreturn": FunctionDirective(
        Availability("6.4", "sm_30+"), entry=False, function=True, prototype=True, repeatable=False
    ),
    "explicitcluster": FunctionDirective(_CLUSTER),
    "reqnctapercluster": FunctionDirective(_CLUSTER, excludes="maxclusterrank"),
    "maxclusterrank": FunctionDirective(_CLUSTER),
    "blocksareclusters": FunctionDirective(Availability("9.0", "sm_90+"), needs=("reqntid", "reqnctapercluster")),
    "abi_preserve": FunctionDirective(_ABI, entry=False, function=True, prototype=True, high=239, repeatable=False),
    "abi_preserve_control": FunctionDirective(
        _ABI, entry=False, function=True, prototype=True, high=11, repeatable=False
    ),
    "local_maxnreg": FunctionDirective(Availability("8.8", ALL), function=True, low=1),
    "language": FunctionDirective(Availability("9.2", ALL), function=True, high=10),
    "minperctamemory": FunctionDirective(Availability("9.4", "sm_80+")),
}
_LANGUAGES = frozenset(
    {"nvsal", "nvvm", "cuda c++", "cuda c++ tile", "tile ir", "python-cutile", "fortran", "optix", "ptx", "unknown"}
)
#: A function that is only declared may have these.
_IN_DECLARATIONS = ("noreturn", "abi_preserve", "abi_preserve_control")
_SINCE_MAXNCTAPERSM_IS_GONE = (2, 1)


def directive_problems(
    function: syntax.Function | syntax.CallPrototype, context: Context
) -> Iterator[tuple[syntax.Statement, Problem]]:
    """What is wrong with the directives of a function, each with its place."""
    names = [each.name for each in function.directives]
    for position, each in enumerate(function.directives):
        if each.name == "pragma":
            for problem in pragma_problems(each, context, "entry"):
                yield each, problem
            continue
        for problem in _problems(function, each, names[:position], names, context):
            yield each, problem


def _problems(
    function: syntax.Function | syntax.CallPrototype,
    each: syntax.Directive,
    before: Sequence[str],
    names: Sequence[str],
    context: Context,
) -> Iterator[Problem]:
    known, name = DIRECTIVES[each.name], f".{each.name}"
    yield from context.lacks(name, known.availability)
    if each.name == "maxnctapersm":
        yield from context.removed(name, _SINCE_MAXNCTAPERSM_IS_GONE, "use .minnctapersm")
    yield from _place_problems(function, each.name, known)
    if each.name == "noreturn" and before:
        yield Problem("directive-order", f".noreturn must come first, before .{before[0]}")
    elif each.name == "noreturn" and function.returns:
        yield Problem("directive-conflict", ".noreturn requires a function without return values")
    for argument in each.arguments:
        if argument.startswith('"'):
            if argument[1:-1] not in _LANGUAGES:
                legal = ", ".join(sorted(_LANGUAGES))
                yield Problem("directive-value", f".language {argument} is unknown; use {legal}")
            continue
        value = word_value(argument)
        if not known.low <= value <= known.high:
            legal = f"{known.low} to {known.high}" if known.high < _LIMIT else f"{known.low} or more, in 32 bits"
            yield Problem("directive-value", f"{name} must be {legal}, not {argument}")
    if each.name in ("maxntid", "reqntid"):
        threads = prod(map(word_value, each.arguments)) & _LIMIT
        if threads > _LIMIT + 1 - WARP_SIZE:
            # ptxas rounds the product up to warps in 32 bits, and divides by it
            yield Problem("directive-value", f"{name} asks for {threads} threads, on which ptxas crashes")
    if known.excludes in names:
        yield Problem("directive-conflict", f"{name} and .{known.excludes} exclude each other")
    if each.name in before and not known.repeatable:
        yield Problem("directive-repeated", f"{name} is repeated; write it once")
    missing = [f".{needed}" for needed in known.needs if needed not in names]
    if missing:
        yield Problem("directive-missing", f"{name} requires {' and '.join(missing)} too")
    if each.name == "minnctapersm" and not {"maxntid", "reqntid"} & set(names):
        message = f"{name} is ignored without .maxntid or .reqntid"
        yield Problem("directive-missing", message, "warning")


def _place_problems(
    function: syntax.Function | syntax.CallPrototype, name: str, known: FunctionDirective
) -> Iterator[Problem]:
    if isinstance(function, syntax.CallPrototype):
        allowed, where = known.prototype, "a call prototype"
    elif function.kind == "entry":
        allowed, where = known.entry and function.body is not None, "an entry"
    else:
        allowed, where = known.function and (function.body is not None or name in _IN_DECLARATIONS), "a function"
    if allowed:
        return
    if isinstance(function, syntax.Function) and function.body is None:
        where += " without a body"
    legal = [
        kind
        for kind, there in (("entries", known.entry), ("functions", known.function), ("prototypes", known.prototype))
        if there
    ]
    yield Problem("directive-place", f".{name} does not belong to {where}; it belongs to {' and '.join(legal)}")


# Pragmas. PTX ISA 12.

#: Where a pragma may stand, since when, and what its argument must look like.
_PRAGMAS = {
    "nounroll": (("module", "entry", "statement"), Availability("2.0", ALL), None),
    "used_bytes_mask": (("statement",), Availability("8.3", "sm_50+"), re.compile(r"0[xX][0-9a-fA-F]+|\d+")),
    "enable_smem_spilling": (("statement",), Availability("8.7", "sm_75+"), None),
    "frequency": (("statement",), Availability("9.0", ALL), re.compile(r"\d+")),
}
_DIRECTIVE = Availability("2.0", ALL)


def pragma_problems(
    pragma: syntax.Directive, context: Context, place: str, function: syntax.Function | None = None
) -> Iterator[Problem]:
    """What is wrong with a `.pragma` at "module", "entry" or "statement" level, there in `function`."""
    missing = [*context.lacks(".pragma", _DIRECTIVE)]
    yield from missing
    for string in pragma.arguments if not missing else ():
        yield from non_ascii(string)
        name, _, argument = string[1:-1].partition(" ")
        if name not in _PRAGMAS:
            known = " ".join(_PRAGMAS)
            message = f"the pragma {string} is not in the manual, which has {known}"
            # At module level ptxas refuses what it only warns of in functions (measured, 13.5).
            yield Problem("pragma", message, "error" if place == "module" else "warning")
            continue
        places, availability, pattern = _PRAGMAS[name]
        if place not in places:
            yield Problem("pragma", f'the pragma "{name}" stands inside a function, not at {place} level')
            continue
        if pattern is None and argument.strip():
            yield Problem("pragma", f'the pragma "{name}" takes nothing; ptxas ignores "{name} {argument}"', "warning")
        if pattern is not None and pattern.fullmatch(argument.strip()) is None:
            yield Problem("pragma", f'the pragma "{name}" takes one number, as in "{name} 15", not {argument!r}')
        if name == "enable_smem_spilling" and function is not None and function.kind != "entry":
            yield Problem("pragma", f'the pragma "{name}" is for entries, not for the function {function.name}')
        yield from context.lacks(f'the pragma "{name}"', availability)
