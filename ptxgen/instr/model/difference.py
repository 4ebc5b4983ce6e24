"""What is wrong with an opcode, said as its difference from the nearest legal one.

The nearest legal opcode (`nearest`) decides what is blamed: modifiers that it has not must be others, or go; those that
it has besides are missing. So an illegal layout is called illegal, and not the shape beside it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ptxgen import syntax
from ptxgen.instr.model.form import REGISTRY
from ptxgen.instr.model.nearest import distance, known_words, nearest_opcode, same_pattern
from ptxgen.instr.model.recognize import ORDERED, Unrecognized, candidates
from ptxgen.instr.model.symbols import Problem

#: Alternatives to a modifier that are listed, and that are tried.
_LISTED, _TRIED = 8, 80
_ORDINALS = ("first", "second", "third", "fourth", "fifth")


@dataclass(frozen=True, slots=True)
class _Change:
    """One modifier that differs: what is written (empty: nothing), what is legal (empty: nothing), and its position."""

    written: str
    legal: str
    position: int = -1


def opcode_problems(statement: syntax.Instruction, found: Unrecognized) -> list[Problem]:
    """Why an instruction is none: a rule that its modifiers break, or their difference from the nearest legal ones."""
    (problem, *_) = found.problems
    if found.bound or "." in problem.code or problem.code == "unknown-instruction":
        return list(found.problems)
    differs = difference(statement.opcode, len(statement.operands) or None)
    return [differs] if differs is not None else list(found.problems)


@lru_cache(maxsize=4096)
def difference(opcode: str, operands: int | None = None) -> Problem | None:
    """Why an opcode is not legal, by the nearest legal one; None where there is none, or the words are another's."""
    found = nearest_opcode(opcode, operands)
    if found is None:
        return None
    written, legal = opcode.split("."), found.split(".")
    if written[0] != legal[0]:
        return None
    name = _name(legal)
    if name.split(".") != written[: len(name.split("."))]:
        return None  # the other words are those of another instruction
    changes = list(_changes(written, legal))
    if not changes:
        for group in ORDERED:
            ours, theirs = ([each for each in words if each in group] for words in (written, legal))
            if ours != theirs:
                message = f"{_dotted(ours)} of {name} must be {_dotted(theirs)}"
                return Problem("modifier-order", message, part=f".{ours[-1]}")
        return Problem("modifier-order", f"the modifiers of {name} must be in the order of {found}")
    said = list(_clauses(written, legal, changes, name))
    wrong = [each for each in changes if each.written]
    first = next((each for each in wrong if each.written not in known_words()), wrong[0] if wrong else None)
    if first is None:
        return Problem("missing-modifier", "; ".join(said))
    repeated = not first.legal and first.written in written[: first.position]
    code = "repeated-modifier" if repeated and len(changes) == 1 else "unknown-modifier"
    place = written[: first.position].count(first.written)
    return Problem(code, "; ".join(said), part=f".{first.written}", occurrence=place)


def _dotted(tokens: Iterable[str]) -> str:
    return " ".join(f".{each}" for each in tokens)


def _name(legal: Sequence[str]) -> str:
    """The opcode proper of a legal opcode: its longest declared name."""
    names = [
        form.form.opcode
        for form in REGISTRY[legal[0]]
        if list(legal[: len(form.form.opcode.split("."))]) == form.form.opcode.split(".")
    ]
    return max(names, key=len, default=legal[0])


def _changes(written: Sequence[str], legal: Sequence[str]) -> Iterator[_Change]:
    """The modifiers that differ: those that keep an order by their positions, the others by kind."""
    rest_written = [(index, each) for index, each in enumerate(written) if index]
    rest_legal = list(legal[1:])
    for group in ORDERED:
        ours = [(index, each) for index, each in rest_written if each in group]
        theirs = [each for each in rest_legal if each in group]
        if len(ours) == len(theirs) and sorted(each for _, each in ours) != sorted(theirs):
            for (index, each), other in zip(ours, theirs, strict=True):
                rest_written.remove((index, each))
                rest_legal.remove(other)
                if each != other:
                    yield _Change(each, other, index)
    for index, each in list(rest_written):
        if each in rest_legal:
            rest_legal.remove(each)
            rest_written.remove((index, each))
    for index, each in rest_written:
        near = [other for other in rest_legal if _kin(written[0], each, other)]
        best = min(near, key=lambda other: distance(each, other), default="")
        if best:
            rest_legal.remove(best)
        yield _Change(each, best, index)
    for each in rest_legal:
        yield _Change("", each)


def _kin(head: str, written: str, legal: str) -> bool:
    """Whether one modifier stands where the other does: in one field, or it is a typo of it."""
    if legal in _kindred(head, written):
        return True
    if same_pattern(written, legal) or written.partition("::")[0] == legal.partition("::")[0]:
        return True
    return distance(written, legal) < (0.6 if written in known_words() else 1)


@lru_cache(maxsize=1024)
def _kindred(head: str, token: str) -> tuple[str, ...]:
    """The modifiers of an instruction that stand where this one does: those of its fields first."""
    slots = [slot for form in REGISTRY[head] for slot in form.form.slots]
    beside = [each for slot in slots if token in slot.tokens for each in slot.tokens]
    kind = token.partition("::")[0]
    others = [
        each
        for slot in slots
        for each in slot.tokens
        if any(token in group and each in group for group in ORDERED) or each.startswith(f"{kind}::")
    ]
    return tuple(dict.fromkeys((*beside, *others)))[:_TRIED]


def _clauses(written: Sequence[str], found: Sequence[str], changes: Sequence[_Change], name: str) -> Iterator[str]:
    """The changes in words, those of one modifier to another together."""
    pairs: dict[tuple[str, str], list[int]] = {}
    for each in changes:
        pairs.setdefault((each.written, each.legal), []).append(each.position)
    added = [each.legal for each in changes if not each.written]
    if added:
        legal = _alternatives(found, list(found).index(added[0]), added[0], changes)
        yield f"{name} requires {_listed(legal) if len(added) == 1 else _dotted(added)}"
    for (old, new), positions in pairs.items():
        if not old:
            continue
        which = _which(written, old, positions)
        if new:
            legal = _alternatives(written, positions[0], new, changes)
            unknown = f": PTX has no .{old}" if old not in known_words() else ""
            yield f"{which} of {name} must be {_listed(legal)}{unknown}"
        elif old not in known_words():
            yield f"{name} has no modifier .{old}"
        elif old in written[1 : positions[0]] and len(changes) == 1:
            yield f"{name}: .{old} is repeated; write it once"
        else:
            others = _conflicts(written, positions[0]) if len(changes) == 1 else []
            yield f"{name} allows no .{old}" + (f" with {_dotted(others)}" if others else "")


def _which(written: Sequence[str], token: str, positions: Sequence[int]) -> str:
    """`.row`, or `the second .row` where it stands more than once."""
    everywhere = [index for index, each in enumerate(written) if each == token]
    if len(everywhere) == 1 or len(everywhere) > len(_ORDINALS):
        return f".{token}"
    return f"the {' and '.join(_ORDINALS[everywhere.index(each)] for each in positions)} .{token}"


def _alternatives(written: Sequence[str], position: int, legal: str, changes: Sequence[_Change]) -> list[str]:
    """What may stand there if nothing else differs: the nearest first."""
    if len(changes) > 1:
        return [legal]
    found = [legal]
    for token in _kindred(written[0], legal):
        if token != legal:
            made = ".".join([*written[:position], token, *written[position + 1 :]])
            found += [token] if candidates(made) else []
    return found


def _listed(tokens: Iterable[str]) -> str:
    words = [f".{each}" for each in tokens]
    if len(words) > _LISTED + 1:
        return f"{', '.join(words[:_LISTED])} or one of {len(words) - _LISTED} others"
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _conflicts(written: Sequence[str], position: int) -> list[str]:
    """The modifiers with which this one does not go: without them, or with others in their place, it would be legal."""
    others = [index for index in range(len(written) - 1, 0, -1) if index != position]
    for dropped in [*([each] for each in others), *map(list, itertools.pairwise(others))]:
        if candidates(".".join(each for index, each in enumerate(written) if index not in dropped)):
            return [written[index] for index in sorted(dropped)]
    for index in others:
        for token in _kindred(written[0], written[index]):
            if candidates(".".join([*written[:index], token, *written[index + 1 :]])):
                return [written[index]]
    return []
