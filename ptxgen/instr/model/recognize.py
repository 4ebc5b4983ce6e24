"""Recognition: which declaration a parsed instruction is, and with which modifiers and operands.

The opcode text decides the candidate forms (cached: a file has few different opcodes), the shapes of the operands
choose among them. What fits no form is explained by the form that comes nearest.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

from ptxgen import syntax
from ptxgen.instr.model.form import REGISTRY, Instruction, errors
from ptxgen.instr.model.overlooked import overlooked
from ptxgen.instr.model.symbols import Problem, Resolver
from ptxgen.instr.model.syntax_line import Pattern, Slot
from ptxgen.instr.model.traits import Traits
from ptxgen.instr.model.types import TYPES

#: Modifiers that keep their order: the result's type comes first in `cvt.rn.bf16.f32`, as do the destination in
#: `.shared::cta.global`, the layout of A in `.row.col` and the operation in `.and.popc`. Of the types some are only of
#: what is packed in registers or memory.
ORDERED = (
    frozenset((*TYPES, "b2", "b4", "b8x16", "b6x16_p32", "b4x16_p64")),
    frozenset({"const", "global", "local", "param", "shared", "shared::cta", "shared::cluster"}),
    frozenset({"row", "col"}),
    frozenset({"and", "xor", "popc"}),
)


#: Modifiers that ptxas takes twice, unlike all others (measured, ptxas 13.5).
_REPEATABLE = frozenset({"NaN", "approx", "cc", "relu", "sat", "satfinite", "shiftamt", "sync", "uni"})


def once(tokens: Sequence[str]) -> list[str]:
    """The tokens of an opcode, those that may be repeated only once."""
    kept: list[str] = []
    for token in tokens:
        if token not in _REPEATABLE or token not in kept:
            kept.append(token)
    return kept


#: Modifiers that a message lists.
_NAMED = 24


@dataclass(frozen=True, slots=True)
class Unrecognized:
    """Why no declaration fits.

    `bound` is True when the opcode with its modifiers is legal, and only the operands fit no syntax line.
    """

    problems: tuple[Problem, ...]
    bound: bool = False


#: Where an operand of a declaration stands: its name, the number of the operand in the text (-1: it is absent), and
#: which part of that it is (-1: all of it).
Place = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class _Bound:
    form: type[Instruction]
    modifiers: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Failed:
    form: type[Instruction]
    distance: int
    problem: Problem


class Recognized(NamedTuple):
    """A declaration with modifiers, and where its operands stand: what like instructions have in common."""

    form: type[Instruction]
    modifiers: Mapping[str, Any]
    places: Sequence[Place]
    #: Whether the names of operands decided which of several declarations it is.
    by_names: bool = False

    def of(self, statement: syntax.Instruction) -> Instruction:
        """The instruction that a statement is."""
        operands = statement.operands
        made = self.form.__new__(self.form)
        state = made.__dict__
        guard = statement.guard
        state["guard"] = None if guard is None else ("!" if guard.negated else "") + guard.register
        state.update(self.modifiers)
        for name, position, part in self.places:
            if position < 0:
                state[name] = None
            elif part < 0:
                state[name] = operands[position]
            else:
                whole = operands[position]
                parts = (whole.first, whole.second) if type(whole) is syntax.Pair else _parts_of(whole)
                state[name] = parts[part]
        return made


def recognize(statement: syntax.Instruction, resolve: Resolver | None = None) -> Instruction | Unrecognized:
    """The declared instruction that a statement is. Operand rules and types are not checked here.

    Where operands have the shapes of several lines, their types decide, or without a resolver the first of the lines.
    """
    found = recognized(statement, resolve)
    return found if isinstance(found, Unrecognized) else found.of(statement)


def recognized(statement: syntax.Instruction, resolve: Resolver | None = None) -> Recognized | Unrecognized:
    """As `recognize`, for statements of one opcode whose operands stand for the same (but see `by_names`)."""
    bound, failed = _bind_opcode(statement.opcode)
    fitting: list[Recognized] = []
    mismatches: list[str] = []
    for candidate in bound:
        places = _placed(candidate, statement.operands)
        if places is not None:
            fitting.append(Recognized(candidate.form, candidate.modifiers, places))
            if resolve is None:
                return fitting[0]
        mismatches.append(candidate.form.form.syntax)
    if fitting:
        if len(fitting) == 1:
            return fitting[0]
        legal = (each for each in fitting if not errors(each.of(statement).operand_problems(resolve)))
        by_names = any(rule.reads_names for each in fitting for rule in each.form.form.rules)
        return next(legal, fitting[0])._replace(by_names=by_names)
    if mismatches:
        return Unrecognized((_operand_mismatch(statement, bound, mismatches),), bound=True)
    if failed:
        nearest = min(failed, key=lambda failure: failure.distance)
        return Unrecognized((nearest.problem,))
    head = statement.opcode.partition(".")[0]
    if head in REGISTRY:
        lines = ", ".join(dict.fromkeys(form.form.opcode for form in REGISTRY[head]))
        return Unrecognized(
            (Problem("unknown-instruction", f"{statement.opcode} is not an instruction; {head} has {lines}"),)
        )
    return Unrecognized((Problem("unknown-instruction", f"PTX has no instruction {head}"),))


def _placed(candidate: _Bound, operands: Sequence[syntax.Operand]) -> Sequence[Place] | None:
    """Where the operands of each field stand; ptxas reads over `|_` behind a first register (measured, 13.5)."""
    patterns = candidate.form.form.patterns
    places = _assign(patterns, candidate.modifiers, operands)
    first = discarding(operands)
    if places is not None or first is None:
        return places
    places = _assign(patterns, candidate.modifiers, [first, *operands[1:]])
    return places and [(name, place, 0 if place == 0 else part) for name, place, part in places]


def discarding(operands: Sequence[syntax.Operand]) -> syntax.Name | None:
    """The register of a first operand `register|_`, None for any other."""
    pair = operands[0] if operands else None
    if not isinstance(pair, syntax.Pair) or not isinstance(pair.first, syntax.Name) or pair.first.text == "_":
        return None
    second = pair.second
    is_sink = isinstance(second, syntax.Name) and second.text == "_" and pair.first.component is None
    return pair.first if is_sink else None


def _operand_mismatch(statement: syntax.Instruction, bound: Sequence[_Bound], syntax_lines: Sequence[str]) -> Problem:
    """Why operands fit no syntax line: the one operand at fault if another would do, else their number."""
    operands = statement.operands
    wrong: list[tuple[syntax.Operand, list[str]]] = []
    for each in bound:
        patterns = _present(each, len(operands))
        if patterns is None:
            continue
        unfit = [
            (operand, pattern)
            for operand, pattern in zip(operands, patterns, strict=True)
            if _match(pattern, each.modifiers, operand) is None
        ]
        if len(unfit) == 1:
            operand, pattern = unfit[0]
            wanted = " and ".join(f"{spec.name} must be {spec.describe()}" for spec in pattern.fields[:1])
            if pattern.shape == "pair" and not pattern.optional:
                first, second = pattern.fields
                wanted = f"{first.name}|{second.name} must be {first.describe()} and, behind |, {second.describe()}"
            if pattern.shape == "bracket":
                parts = [spec.name for spec in pattern.present(each.modifiers)]
                wanted = (
                    f"{parts[0]} must be an address in brackets"
                    if len(parts) == 1
                    else (f"[{', '.join(parts)}] must be in brackets, with {len(parts)} parts")
                )
            known = next((said for place, said in wrong if place is operand), None)
            if known is None:
                wrong.append((operand, [wanted]))
            elif wanted not in known:
                known.append(wanted)
    lines = " or ".join(f"`{line}`" for line in dict.fromkeys(syntax_lines))
    if len(wrong) == 1:
        operand, said = wrong[0]
        text = str(operand).strip()
        return Problem("operand-count", f"{statement.opcode}: {' or '.join(said)}, not {text}: {lines}", part=text)
    found = ", ".join(str(operand).strip() for operand in operands) or "none"
    return Problem("operand-count", f"{statement.opcode}: the operands must be as in {lines}, not {found}")


def _present(bound: _Bound, count: int) -> list[Pattern] | None:
    """The operands of a form in order, if `count` can be there: the first optional ones as needed."""
    heads = [(pattern, pattern.fields[0]) for pattern in bound.form.form.patterns]
    heads = [(pattern, head) for pattern, head in heads if not head.when or head.wanted(bound.modifiers)]
    required = [
        not (head.optional or (pattern.optional and pattern.shape != "pair")) or bool(head.when)
        for pattern, head in heads
    ]
    spare = count - sum(required)
    if not 0 <= spare <= len(heads) - sum(required):
        return None
    chosen: list[Pattern] = []
    for (pattern, _), needed in zip(heads, required, strict=True):
        if needed or spare > 0:
            chosen.append(pattern)
            spare -= not needed
    return chosen


def candidates(opcode: str) -> list[Instruction]:
    """What an opcode with its modifiers can be, without operands."""
    return [each.form.bound(each.modifiers, dict.fromkeys(each.form.form.operands)) for each in _bind_opcode(opcode)[0]]


@lru_cache(maxsize=4096)
def traits_of(opcode: str) -> Traits | None:
    """The traits of an opcode with its modifiers, for those who have no operands; None if it is not legal."""
    return next((each.traits for each in candidates(opcode)), None)


def implied(opcode: str) -> tuple[str, ...]:
    """The modifiers that the manual requires of an opcode and ptxas supplies: .aligned of wgmma (measured, 13.5)."""
    tokens = opcode.split(".")
    return ("aligned",) if tokens[0] == "wgmma" and "sync" in tokens and "aligned" not in tokens else ()


def _begins(tokens: Sequence[str], words: Sequence[str]) -> bool:
    return list(tokens[: len(words)]) == list(words)


@lru_cache(maxsize=16384)
def _bind_opcode(text: str) -> tuple[tuple[_Bound, ...], tuple[_Failed, ...]]:
    """The forms whose opcode and modifiers fit, and why the others of the same opcode do not."""
    from ptxgen.instr import load_all

    load_all()
    tokens = once(text.split("."))
    forms = [form for form in REGISTRY.get(tokens[0], ()) if _begins(tokens, form.form.opcode.split("."))]
    bound, failed = _fit(tokens, forms)
    if not bound:
        bound = tuple(each for form in forms for each in _lenient(text, tokens, form))
    return bound, failed


def _lenient(text: str, tokens: Sequence[str], form: type[Instruction]) -> tuple[_Bound, ...]:
    """The form without modifiers that ptxas overlooks, and with those that it supplies, if that fits."""
    spare, added = overlooked(text, form), implied(text)
    if not spare and not added:
        return ()
    return _fit([*(each for each in tokens if each not in spare), *added], [form])[0]


def _fit(
    tokens: Sequence[str], candidates: Sequence[type[Instruction]]
) -> tuple[tuple[_Bound, ...], tuple[_Failed, ...]]:
    """Why forms do not fit is said where none does: to find the nearest modifiers takes long."""
    bound: list[_Bound] = []
    failed: list[_Failed | tuple[type[Instruction], Sequence[str]]] = []
    forms = [(form.form.opcode.split("."), form) for form in candidates]
    for opcode, form in forms:
        rest = tokens[len(opcode) :]
        slots = form.form.slots
        chosen = _fill(rest, slots, form.form.leading)
        if chosen is None:
            failed.append((form, rest))
            continue
        modifiers = {
            slot.field: slot.tokens[rest[chosen[index]]] if index in chosen else slot.absent
            for index, slot in enumerate(slots)
            if slot.field is not None
        }
        broken = form.bound(modifiers, {}).modifier_problems()
        if broken:
            failed.append(_Failed(form, 0, broken[0]))
        else:
            bound.append(_Bound(form, modifiers))
    if bound:
        return tuple(bound), ()
    # Who writes fence.proxy.x means no other fence.
    longest = max((len(opcode) for opcode, _ in forms), default=0)
    told = [each if isinstance(each, _Failed) else _Failed(each[0], *_explain(*each)) for each in failed]
    return (), tuple(each for each in told if len(each.form.form.opcode.split(".")) == longest)


def _fill(tokens: Sequence[str], slots: Sequence[Slot], leading: int) -> dict[int, int] | None:
    """Which token fills which slot: every token used, every required slot filled; same-token slots in order."""
    chosen: dict[int, int] = {}

    def agrees(slot: Slot, token: str) -> bool:
        return slot.field is None or all(
            tokens[at] == token for index, at in chosen.items() if slots[index].field == slot.field
        )

    def in_order(index: int) -> bool:
        here = slots[index].tokens.keys()
        return all(here.isdisjoint(slots[later].tokens) for later in chosen if later > index)

    def place(position: int) -> bool:
        if position == len(tokens):
            first = [chosen[index] for index in range(leading) if index in chosen]
            return first == list(range(len(first))) and all(
                slot.optional or index in chosen for index, slot in enumerate(slots)
            )
        first = 0
        for ordered in ORDERED:
            if tokens[position] in ordered:
                first = max((index + 1 for index, at in chosen.items() if tokens[at] in ordered), default=0)
        for index, slot in enumerate(slots[first:], first):
            if index in chosen or tokens[position] not in slot.tokens:
                continue
            if agrees(slot, tokens[position]) and in_order(index):
                chosen[index] = position
                if place(position + 1):
                    return True
                del chosen[index]
        return False

    return chosen if place(0) else None


def _explain(form: type[Instruction], tokens: Sequence[str]) -> tuple[int, Problem]:
    """How far the modifiers are from this form, and the first thing to say about it."""
    slots, opcode = form.form.slots, form.form.opcode
    free = list(range(len(slots)))
    unknown: list[str] = []
    for token in tokens:
        hit = next((index for index in free if token in slots[index].tokens), None)
        if hit is None:
            unknown.append(token)
        else:
            free.remove(hit)
    missing = [slots[index] for index in free if not slots[index].optional]
    distance = 2 * (len(unknown) + len(missing))
    if unknown:
        token = unknown[0]
        every = list(dict.fromkeys(known for slot in slots for known in slot.tokens))
        if tokens.count(token) > 1 and token in every:
            message = f"{opcode}: .{token} is repeated; write it once"
            return distance, Problem("repeated-modifier", message, part=f".{token}")
        if token in every:
            message = f"{opcode}: .{token} is one too many for `{form.form.syntax}`"
            return distance, Problem("unknown-modifier", message, part=f".{token}")
        if not difflib.get_close_matches(token, every, n=1, cutoff=0.5):
            distance += 1  # of two forms, the one with a similar modifier explains better
        more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
        known = " ".join("." + name for name in every[:_NAMED]) + more
        # Other forms of the instruction may have it.
        which = f"this form of {opcode}" if token in _modifiers_of(opcode) else opcode
        message = f"{which} has no modifier .{token}; it has {known or 'none'}"
        return distance, Problem("unknown-modifier", message, part=f".{token}")
    if not missing:
        twice = [slot for slot in slots if slot.field and sum(other.field == slot.field for other in slots) > 1]
        for slot in twice:
            found = [token for token in tokens if token in slot.tokens]
            if len(set(found)) > 1:
                message = f"{opcode}: the two .{slot.field} must be the same, not .{' and .'.join(found)}"
                return distance, Problem("unknown-modifier", message, part=f".{found[-1]}")
        message = f"the modifiers of {opcode} must be in the order of `{form.form.syntax}`"
        return distance + 1, Problem("modifier-order", message)
    lacking = " ".join("." + next(iter(slot.tokens)) if len(slot.tokens) == 1 else f".{slot.field}" for slot in missing)
    legal = "; ".join(
        f".{slot.field} is one of " + " ".join("." + token for token in slot.tokens)
        for slot in missing
        if slot.field is not None and len(slot.tokens) > 1
    )
    message = f"{opcode} requires {lacking}" + (f" ({legal})" if legal else "") + f": `{form.form.syntax}`"
    return distance, Problem("missing-modifier", message)


@cache
def _modifiers_of(opcode: str) -> frozenset[str]:
    """The modifiers of all forms of an instruction."""
    forms = [each.form for each in REGISTRY[opcode.split(".")[0]] if each.form.opcode == opcode]
    return frozenset(token for form in forms for slot in form.slots for token in slot.tokens)


def _assign(
    patterns: Sequence[Pattern], modifiers: Mapping[str, Any], operands: Sequence[syntax.Operand]
) -> list[Place] | None:
    """Where the operand of each field stands, None if their number or shapes do not fit the syntax line."""
    places: list[Place] = []

    def place(index: int, position: int) -> bool:
        if index == len(patterns):
            return position == len(operands)
        pattern = patterns[index]
        head = pattern.fields[0]
        # The optional part of `p{|q}` is q alone.
        required = not (head.optional or (pattern.optional and pattern.shape != "pair")) or bool(head.when)
        known = len(places)
        if head.when:
            required = head.wanted(modifiers)
            if not required:
                places.extend((spec.name, -1, -1) for spec in pattern.fields)
                return place(index + 1, position)
        if position < len(operands):
            found = _match(pattern, modifiers, operands[position])
            if found is not None:
                places.extend((name, position if part is not None else -1, part or 0) for name, part in found)
                if place(index + 1, position + 1):
                    return True
                del places[known:]
        if required:
            return False
        places.extend((spec.name, -1, -1) for spec in pattern.fields)
        return place(index + 1, position)

    return places if place(0, 0) else None


def _match(
    pattern: Pattern, modifiers: Mapping[str, Any], operand: syntax.Operand
) -> list[tuple[str, int | None]] | None:
    """Which part of an operand each field of a pattern is, -1 for all of it, None if it is absent."""
    if pattern.shape == "single":
        spec = pattern.fields[0]
        return [(spec.name, -1)] if spec.fits(operand) else None
    if pattern.shape == "bracket":
        present = pattern.present(modifiers)
        parts = _parts_of(operand)
        if len(parts) < len(present):
            present = [spec for spec in present if spec.when or not spec.optional]
        if len(parts) != len(present) or not all(spec.fits(part) for spec, part in zip(present, parts, strict=True)):
            return None
        found = {spec.name: number for number, spec in enumerate(present)}
        return [(spec.name, found.get(spec.name)) for spec in pattern.fields]
    one, two = pattern.fields
    if not isinstance(operand, syntax.Pair):
        return [(one.name, -1), (two.name, None)] if pattern.optional and one.fits(operand) else None
    return [(one.name, 0), (two.name, 1)] if one.fits(operand.first) and two.fits(operand.second) else None


def _parts_of(operand: syntax.Operand) -> tuple[syntax.Operand, ...]:
    """The parts of `[a, b]` as separate operands, none of another shape."""
    if not isinstance(operand, syntax.Address) or operand.unified:
        return ()
    head = syntax.Address(operand.base, operand.offset) if operand.offset else syntax.Address(operand.base)
    return (head, *operand.more)
