"""What can follow in PTX text: opcodes and modifiers that stay legal, and names in scope."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from ptxgen.instr import load_all
from ptxgen.instr.model.form import REGISTRY, Instruction
from ptxgen.instr.model.scope import Scope
from ptxgen.instr.model.special import SPECIAL_REGISTERS
from ptxgen.instr.model.symbols import Symbol
from ptxgen.instr.model.syntax_line import Slot
from ptxgen.instr.model.targets import Target, TargetError, parse_target, parse_version

Kind = Literal["opcode", "modifier", "register", "label", "variable", "function"]
Place = Literal["operand", "guard", "branch"]
#: Combinations of modifiers that are tried to see whether one is legal.
_TRIES = 4000
#: Names of a range such as %r<100> that are offered.
_OF_RANGE = 128


class Item(NamedTuple):
    """A completion: `text` takes the place of `typed`, the characters before the cursor."""

    text: str
    typed: str
    kind: Kind
    detail: str


def opcodes(typed: str, target: str = "", version: str = "") -> list[Item]:
    """Opcodes that begin with `typed`, and those that go on from its whole modifiers to the one being typed.

    Only what leads to a legal instruction, on this target and PTX version where they are given.
    """
    whole = typed.rpartition(".")[0]
    found = dict(_beginning(target, version))
    if whole:
        found |= _going_on(whole, target, version)
    return [
        Item(text, typed, "modifier" if text.startswith(f"{whole}.") else "opcode", detail)
        for text, detail in found.items()
        if text.startswith(typed) and text != typed
    ]


@lru_cache(maxsize=8)
def _beginning(target: str, version: str) -> Mapping[str, str]:
    """The opcodes without modifiers, with what they do."""
    load_all()
    every = [form for forms in REGISTRY.values() for form in forms]
    return {form.form.opcode: _summary(form) for form in reversed(every) if _legal(form, {}, target, version)}


@lru_cache(maxsize=512)
def _going_on(whole: str, target: str, version: str) -> Mapping[str, str]:
    """The opcodes with one modifier more than `whole` has, in the order of their syntax lines."""
    load_all()
    found: dict[str, str] = {}
    for form in REGISTRY.get(whole.partition(".")[0], ()):
        opcode = form.form.opcode
        if whole != opcode and not whole.startswith(f"{opcode}."):
            continue
        for slots, given in _read(form.form.slots, whole[len(opcode) + 1 :].split(".") if whole != opcode else []):
            for place, token, chosen in _next(slots, given):
                text = f"{whole}.{token}"
                if text not in found and _legal(form, chosen, target, version):
                    found[text] = slots[place].field or _summary(form)
    return found


def _read(slots: tuple[Slot, ...], tokens: list[str]) -> Iterator[tuple[tuple[Slot, ...], dict[str, Any]]]:
    """The ways to read modifiers in the order of the slots: those that are left, and the values of the others."""
    states: list[tuple[int, dict[str, Any]]] = [(0, {})]
    for token in tokens:
        states = [
            (at + place + 1, chosen)
            for at, given in states
            for place, other, chosen in _next(slots[at:], given)
            if other == token
        ]
    for at, given in states:
        yield slots[at:], given


def _next(slots: tuple[Slot, ...], given: Mapping[str, Any]) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """The modifiers that can stand next: the number of the slot, and the values with optional ones before left out."""
    skipped = dict(given)
    for place, slot in enumerate(slots):
        for token, value in slot.tokens.items():
            yield place, token, skipped if slot.field is None else {**skipped, slot.field: value}
        if not slot.optional:
            return
        if slot.field is not None:
            skipped[slot.field] = slot.absent


def _legal(form: type[Instruction], given: Mapping[str, Any], target: str, version: str) -> bool:
    """Whether modifiers that are not given yet can be chosen so that the instruction is legal on the target."""
    place = _place(target, version)
    since = form.form.availability
    if place is not None and not (since.has_target(place[0]) and since.has_version(place[1])):
        return False
    fields = {slot.field: slot for slot in form.form.slots if slot.field is not None}
    choices = [
        [given[name]] if name in given else [*([slot.absent] if slot.optional else []), *slot.tokens.values()]
        for name, slot in fields.items()
    ]
    for values in itertools.islice(itertools.product(*choices), _TRIES):
        made = form.bound(dict(zip(fields, values, strict=True)), {})
        if not made.modifier_problems() and (place is None or not made.availability_problems(*place)):
            return True
    return False


def _place(target: str, version: str) -> tuple[Target, tuple[int, int]] | None:
    """A target and a PTX version; None where one is not given, or there is none of this name."""
    try:
        return (parse_target(target), parse_version(version)) if target and version else None
    except TargetError:
        return None


def _summary(form: type[Instruction]) -> str:
    return form.form.summary.partition("\n\n")[0].replace("\n", " ")


def names(
    scope: Scope | None, typed: str, place: Place = "operand", target: str = "", version: str = ""
) -> Iterator[Item]:
    """Names in scope that begin with `typed`, the innermost first, then special registers.

    A guard is a .pred register, and a branch goes to a label.
    """
    seen: set[str] = set()
    for name, symbol in [*_declared(scope), *_special(target, version)]:
        if not name.startswith(typed) or name in seen:
            continue
        if place == "branch" and symbol.kind not in ("label", "branch targets"):
            continue
        if place == "guard" and (symbol.kind != "register" or symbol.type is None or symbol.type.kind != "predicate"):
            continue
        seen.add(name)
        yield Item(name, typed, _KINDS.get(symbol.kind, "variable"), _detail(symbol))


_KINDS: dict[str, Kind] = {"register": "register", "special": "register", "label": "label", "function": "function"}


def _declared(scope: Scope | None) -> Iterator[tuple[str, Symbol]]:
    while scope is not None:
        yield from scope.labels.items()
        yield from scope.symbols.items()
        for prefix, (count, symbol) in scope.ranges.items():
            for number in range(min(count, _OF_RANGE)):
                yield f"{prefix}{number}", symbol
        scope = scope.outer


@lru_cache(maxsize=8)
def _special(target: str, version: str) -> list[tuple[str, Symbol]]:
    place = _place(target, version)
    return [
        (name, symbol)
        for name, symbol in SPECIAL_REGISTERS.items()
        if name[-2:] not in (".r", ".g", ".b", ".a")
        and (
            place is None
            or symbol.availability is None
            or (symbol.availability.has_target(place[0]) and symbol.availability.has_version(place[1]))
        )
    ]


def _detail(symbol: Symbol) -> str:
    kind = "special register" if symbol.kind == "special" else symbol.kind
    return f"{kind} {symbol.type}" if symbol.type is not None else kind
