"""A syntax line of the manual, read: its modifiers as slots with their tokens, its operands as patterns.

`cvt{.rnd}.dtype.atype d, a;` has three slots and two patterns. `ptxgen.instr.model.form` makes declarations of them.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ptxgen.instr.model.operands import Specification


@dataclass(frozen=True, slots=True)
class Modifier:
    """How the values of a modifier field are spelled: `prefix + value + suffix`, or `token` for a flag."""

    prefix: str = ""
    suffix: str = ""
    token: str | None = None


def modifier(prefix: str = "", suffix: str = "", *, default: Any = ...) -> Any:
    """A modifier field whose tokens carry a prefix or suffix: `num: Literal[1, 2] = modifier("x")` is `.x1`, `.x2`."""
    return Modifier(prefix, suffix)


def flag(token: str, *, default: Any) -> Any:
    """A modifier field that is there or not, spelled `token`."""
    return Modifier(token=token)


@dataclass(frozen=True, slots=True)
class Slot:
    """One modifier position of a syntax line: its tokens, and the field that they fill (None: fixed)."""

    field: str | None
    tokens: Mapping[str, Any]
    optional: bool

    @property
    def is_flag(self) -> bool:
        """Whether the field is there or not, rather than one of several values."""
        return any(value is True for value in self.tokens.values())

    @property
    def absent(self) -> Any:
        """The field's value where the modifier is left out."""
        return False if self.is_flag else None

    @property
    def spelled(self) -> Mapping[Any, str]:
        return {value: token for token, value in self.tokens.items()}


@dataclass(frozen=True, slots=True)
class Pattern:
    """One operand position: a single operand, `[a, b]` ("bracket") or `a|b` ("pair"; `optional` is then its b).

    In a bracket, the fields that are optional may be missing.
    """

    shape: Literal["single", "bracket", "pair"]
    fields: tuple[Specification, ...]
    optional: bool = False

    def present(self, modifiers: Mapping[str, Any]) -> list[Specification]:
        """The fields without those that need a modifier which is not there."""
        return [spec for spec in self.fields if not spec.when or spec.wanted(modifiers)]


_HEAD = re.compile(r"\{\.([\w:]+)\}|\.([\w:]+)")


def slots_of(text: str, hints: Mapping[str, Any], members: Mapping[str, Any], form: str) -> tuple[Slot, ...]:
    """The slots of the modifiers in a text such as `{.rnd}.dtype`, from the fields of a class: hints and members."""
    return tuple(
        _slot_of(optional or fixed, bool(optional), hints, members, form) for optional, fixed in _HEAD.findall(text)
    )


def _slot_of(name: str, optional: bool, hints: Mapping[str, Any], members: Mapping[str, Any], form: str) -> Slot:
    if name not in hints:
        if optional:
            raise TypeError(f"{form}: the optional modifier {{.{name}}} needs a field")
        return Slot(None, {name: True}, False)
    how = members.get(name)
    how = how if isinstance(how, Modifier) else Modifier()
    hint = hints[name]
    if hint is bool:
        return Slot(name, {how.token or name: True}, True)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(part for part in typing.get_args(hint) if part is not type(None))
    values = typing.get_args(hint)
    return Slot(name, {f"{how.prefix}{value}{how.suffix}": value for value in values}, optional)


def tokens_by_field(slots: Iterable[Slot]) -> Mapping[str | None, Mapping[str, Any]]:
    """The tokens of each modifier field, and under None those that are fixed."""
    found: dict[str | None, dict[str, Any]] = {None: {}}
    for slot in slots:
        found.setdefault(slot.field, {}).update(slot.tokens)
    return found


def patterns_of(text: str, declared: Mapping[str, Specification], name: str) -> tuple[Pattern, ...]:
    """The operand positions of a text such as `d, [a, b]{, c}`. Raises TypeError where one has no specification."""
    try:
        return tuple(_read_patterns(text, declared))
    except KeyError as error:
        raise TypeError(f"{name}: the operand {error} of the syntax line has no field") from None


def _read_patterns(text: str, declared: Mapping[str, Specification]) -> Iterator[Pattern]:
    depth, part, parts = 0, "", []
    for character in re.sub(r"\{(\(?\w+\)?),\}", r"?\1,", text).replace("{,", ",?"):
        if character in "[":
            depth += 1
        elif character == "]":
            depth -= 1
        if character == "," and depth == 0:
            parts.append(part)
            part = ""
        elif not (character == "}" and "|" not in part):
            part += character
    parts.append(part)
    for written in parts:
        optional = written.startswith("?")
        body = written.strip("? \t")
        if not body:
            continue
        if body.startswith("[") and "," in body:
            names = [name.strip("? ") for name in body.strip("[]").split(",")]
            yield Pattern("bracket", tuple(declared[name] for name in names), optional)
        elif "|" in body:
            first, second = re.sub(r"[{}]", "", body).split("|")
            fields = (declared[first.strip()], declared[second.strip()])
            yield Pattern("pair", fields, "{|" in body)
        else:
            yield Pattern("single", (declared[body.strip("[]()")],), optional)
