"""Options of a command in groups: each group is a dataclass, and a panel of the help page.

    @dataclass(frozen=True)
    class Limits(Group):
        PANEL = "Limits"
        steps: Annotated[int, typer.Option("--steps", help="Steps.")] = 100

    @grouped
    def command(file: File, *, limits: Limits, given: Given) -> int: ...

`given` tells options on the command line from defaults, and refuses those that do not apply to what is run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.models import OptionInfo

from ptxgen.cli.errors import InputError

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Kind:
    """A kind of input, or what a command is asked for: `takers` in the plural, and what one of them is."""

    takers: str
    one: str = ""


GEMM = Kind("GEMM kernels", "a GEMM kernel (--m, --n, --k, --set)")
ATTENTION = Kind("attention kernels", "an attention kernel (--queries, --keys, --heads, --set)")
FILE = Kind("files of your own", "a file of your own (--arg, --grid, --block)")
JOB = Kind("jobs", "a Python file whose job says its inputs and launch")


class For(tuple[Kind, ...]):
    """In an option's annotation: the kinds of input that take the option."""

    def __new__(cls, *kinds: Kind) -> For:
        return super().__new__(cls, kinds)


@dataclass(frozen=True)
class Group:
    """The base of a group of options."""

    #: Its heading on the help page.
    PANEL: ClassVar[str]
    #: The kinds of input that take its options, where an option does not name its own; none: all.
    KINDS: ClassVar[tuple[Kind, ...]] = ()


@dataclass(frozen=True)
class Given:
    """The options that are on the command line, by their spelling: the value, and the kinds that take the option.

    Defaults and values from pyproject.toml are not among them.
    """

    values: Mapping[str, object]
    kinds: Mapping[str, tuple[Kind, ...]]

    def __contains__(self, option: str) -> bool:
        return option in self.values

    def require(self, subject: str, *kinds: Kind) -> None:
        """Raise InputError for an option that no kind of `subject` (a file, a kernel) takes."""
        for option in self.values:
            takers = self.kinds.get(option)
            if takers and not set(takers) & set(kinds):
                words = " and ".join(each.takers for each in takers)
                others = " and ".join(each.one or each.takers for each in kinds)
                tail = f"; {subject} is {others}" if any(each.one for each in kinds) else f", not for {others}"
                raise InputError(f"{option} is for {words}{tail}")

    def require_emulator(self, *options: str) -> None:
        """Raises InputError if one of these options, which the emulator alone has, is given with a GPU."""
        for option in options:
            if option in self:
                raise InputError(f"{option} is for the emulator; leave it out with --device gpu")

    def words(self, *kinds: Kind) -> list[str]:
        """The words of the options that these kinds take and no others."""
        made: list[str] = []
        for option, value in self.values.items():
            takers = self.kinds.get(option)
            if not takers or not set(takers) <= set(kinds):
                continue
            if isinstance(value, bool):
                made.append(option)
                continue
            made += [word for each in (value if isinstance(value, list) else [value]) for word in (option, str(each))]
        return made


def grouped(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """The function with the fields of its groups, and the context, as parameters of their own, as typer takes them."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, type[Any]] = {}
    wanted = ""
    parameters: dict[str, inspect.Parameter] = {}
    kinds: dict[str, tuple[Kind, ...]] = {}

    def add(name: str, hint: object, default: object, group: type[Group] | None) -> None:
        kinds[name] = _kinds(hint) or (group.KINDS if group is not None else ())
        parameters[name] = inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=_in_panel(hint, group)
        )

    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints[name]
        if hint is Given:
            wanted = name
        elif isinstance(hint, type) and issubclass(hint, Group):
            groups[name] = hint
            inner = get_type_hints(hint, include_extras=True)
            for each in fields(hint):
                default = each.default if each.default_factory is MISSING else each.default_factory()
                add(each.name, inner[each.name], default, hint)
        else:
            add(name, hint, parameter.default, None)

    @wraps(function)
    def call(context: typer.Context, **values: object) -> _Result:
        made = {name: group(**{each.name: values.pop(each.name) for each in fields(group)})
                for name, group in groups.items()}  # fmt: skip
        if wanted:
            made[wanted] = _given(context, kinds)
        return function(**values, **made)

    first = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    vars(call)["__signature__"] = inspect.Signature([first, *parameters.values()])
    call.__annotations__ = {name: each.annotation for name, each in parameters.items()} | {"context": typer.Context}
    return call


def _given(context: typer.Context, kinds: Mapping[str, tuple[Kind, ...]]) -> Given:
    values: dict[str, object] = {}
    takers: dict[str, tuple[Kind, ...]] = {}
    for each in context.command.params:
        source = context.get_parameter_source(each.name) if each.name else None
        if each.name and each.param_type_name == "option" and source is not None and source.name == "COMMANDLINE":
            option = max(each.opts, key=len)
            values[option] = context.params[each.name]
            takers[option] = kinds.get(each.name, ())
    return Given(values, takers)


def _kinds(hint: object) -> tuple[Kind, ...]:
    """The kinds that an annotation names; none: all take the option."""
    return next((tuple(each) for each in get_args(hint) if isinstance(each, For)), ())


def _in_panel(hint: object, group: type[Group] | None) -> object:
    """The annotation of an option, in the panel of its group."""
    if get_origin(hint) is not Annotated or group is None:
        return hint
    kind, *more = get_args(hint)
    made: list[object] = []
    for each in more:
        if isinstance(each, OptionInfo):
            each = copy(each)
            each.rich_help_panel = group.PANEL
        made.append(each)
    return Annotated[(kind, *made)]
