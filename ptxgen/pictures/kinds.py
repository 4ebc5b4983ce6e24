"""What can be drawn: a function a kind, whose parameters are declared once, in its signature.

A parameter is `name: Annotated[Literal[...] | Number | bool | str, "words"] = default`. From that come the reading of
`name=value` words, the errors, and the help. `When` after the words says with which values of another parameter it
changes the picture; elsewhere it is refused, since it could only change the caption.
"""

from __future__ import annotations

import difflib
import inspect
import re
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin

from ptxgen.descriptors.errors import DescriptorError, choices
from ptxgen.pictures.model import Picture

T = TypeVar("T")

Number = int
"""A number in any base that Python reads."""
_NUMBER = re.compile(r"-?(?:\d[\d_]*|0[xX][\da-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+)[uUlL]*")


@dataclass(frozen=True, slots=True)
class When:
    """That a parameter has a meaning only where another one has one of these values."""

    other: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kind: `type` is int, str or bool; `choices` the words it may be."""

    name: str
    type: type
    choices: tuple[str, ...]
    default: Any
    help: str
    when: When | None = None

    def read(self, word: str) -> Any:
        """The value of a word, or DescriptorError."""
        if self.type is bool:
            if word.lower() in ("1", "true", "yes", "on", "0", "false", "no", "off"):
                return word.lower() in ("1", "true", "yes", "on")
            raise DescriptorError(f"{self.name} must be yes or no, not {word[:40]!r}")
        if self.type is int:
            try:
                return int(word.rstrip("uUlL") if word[:1].isdigit() else word, 0)
            except ValueError:
                raise DescriptorError(f"{self.name} must be a number, not {word[:40]!r}") from None
        if not self.choices:
            return word
        for choice in self.choices:
            if choice.lower() == word.lower():
                return choice
        raise DescriptorError(
            f"{self.name} must be {choices(each for each in self.choices if each)}, not {word[:40]!r}"
        )


@dataclass(frozen=True)
class Declared:
    """What is made from `name=value` words: the name of its kind, and its parameters."""

    name: str
    summary: str
    parameters: tuple[Parameter, ...]

    def values(self, words: Sequence[str]) -> dict[str, Any]:
        """The values of words by parameter; a bare word is the value of the first parameter that can be it."""
        values: dict[str, Any] = {}
        for word in words:
            name, equals, value = word.partition("=")
            if equals:
                found = self._named(name.lstrip("-").replace("-", "_"))
            elif any(each.type is bool and each.name == word for each in self.parameters):
                found, value = self._named(word), "yes"  # a switch is turned on by its name
            else:
                found, value = self._bare(word, values), word
            if found.name in values:
                raise DescriptorError(f"{found.name} is given twice")
            values[found.name] = found.read(value)
        for each in self.parameters:
            if each.name in values and each.when is not None:
                self._require(each, each.when, values)
        return values

    def _require(self, given: Parameter, when: When, values: dict[str, Any]) -> None:
        """DescriptorError if a parameter was given that has no meaning with the others."""
        other = next(each for each in self.parameters if each.name == when.other)
        found = values.get(other.name, other.default)
        if found not in when.values:
            legal = " or ".join(f"{other.name}={each}" for each in when.values)
            raise DescriptorError(f"{given.name} requires {legal}" + (f", not {other.name}={found}" if found else ""))

    def _named(self, name: str) -> Parameter:
        for each in self.parameters:
            if each.name == name:
                return each
        close = difflib.get_close_matches(name, [each.name for each in self.parameters], n=1)
        others = [kind.name for kind in KINDS.values() if any(each.name == name for each in kind.parameters)]
        others = [name] if name in others else others  # the layout that is about it
        elsewhere = f"; the layout {others[0]} has it" if len(others) == 1 else ""
        advice = f"; did you mean {close[0]}?" if close else f"; it has {self._names()}{elsewhere}"
        raise DescriptorError(f"{self.name} has no {name!r}{advice}")

    def _bare(self, word: str, given: dict[str, Any]) -> Parameter:
        """The first parameter that the word can be the value of, not counting those that have one."""
        free = [each for each in self.parameters if each.name not in given]
        for each in free:
            if word.lower() in {choice.lower() for choice in each.choices if choice}:
                return each
        for each in free:
            number = _NUMBER.fullmatch(word) is not None
            if not each.choices and (number if each.type is int else each.type is str and word[:1].isdigit()):
                return each
            if not each.choices and each.type is str and word[:1] in ("(", "S") and re.search("[(<]", word):
                return each  # CuTe's notation
        every = {choice: each.name for each in free for choice in each.choices if choice}
        if close := difflib.get_close_matches(word, every, n=1, cutoff=0.6):
            legal = choices(choice for choice, name in every.items() if name == every[close[0]])
            raise DescriptorError(f"{every[close[0]]} must be {legal}, not {word[:40]!r}")
        raise DescriptorError(f"{self.name} takes no {word[:40]!r}; it has {self._names()}")

    def _names(self) -> str:
        return ", ".join(each.name for each in self.parameters)


@dataclass(frozen=True)
class Kind(Declared):
    """One kind of picture."""

    make: Callable[..., Picture]

    def draw(self, words: Sequence[str]) -> Picture:
        """The picture of `name=value` words."""
        return made(self.make, self.values(words))


def made(make: Callable[..., T], values: dict[str, Any]) -> T:
    """What a function makes; ValueErrors of layout functions about shapes that do not exist become DescriptorErrors."""
    try:
        return make(**values)
    except DescriptorError:
        raise
    except ValueError as error:
        raise DescriptorError(str(error)) from None


def declared(make: Callable[..., object]) -> tuple[str, tuple[Parameter, ...]]:
    """The summary and the parameters of a function."""
    hints = typing.get_type_hints(make, include_extras=True)
    parameters = []
    for each, known in inspect.signature(make).parameters.items():
        inner, words, *when = get_args(hints[each])
        words_of = tuple(get_args(inner)) if get_origin(inner) is Literal else ()
        parameters.append(Parameter(each, str if words_of else inner, words_of, known.default, words, *when))
    summary = inspect.getdoc(make) or ""
    return summary.split("\n\n")[0].replace("\n", " "), tuple(parameters)


KINDS: dict[str, Kind] = {}


def kind(name: str) -> Callable[[Callable[..., Picture]], Callable[..., Picture]]:
    """Register a function that makes a picture."""

    def register(make: Callable[..., Picture]) -> Callable[..., Picture]:
        KINDS[name] = Kind(name, *declared(make), make)
        return make

    return register


def limit(name: str, value: int, low: int, high: int) -> None:
    """DescriptorError unless `value` is from `low` to `high`."""
    if not low <= value <= high:
        shown = value if abs(value) < 1 << 64 else f"a number of {value.bit_length()} bits"
        raise DescriptorError(f"{name} must be {low} to {high}, not {shown}")
