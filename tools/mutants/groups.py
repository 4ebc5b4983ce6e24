"""Judge many mutants at once, of those that the first schedule does not catch: most of them are equivalent.

A group is one text with several mutants of a kernel, each of another instruction:

- Weakenings of order: without a wait, fence or barrier, or with a weaker one. Each takes order away and adds none, so
  a group has no order that one of its members lacks: where everything is ordered in the group, it is in each member.
  What counts arrivals (mbarrier.init, arrivals, commits to mbarriers) is no such thing: two of these can cancel out.
- One field of descriptors. Where all instructions with another value of it give the same bits, none of them reads it.
  A's field and B's are not changed together: the same change of both may only reorder the sum over K.

A group in which anything shows is halved, down to single mutants, each of which is then judged alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from tools.mutants.equivalent import UNUSED, reason
from tools.mutants.executed import Place, instructions
from tools.mutants.judge import (
    SCHEDULES,
    Baseline,
    Left,
    Verdict,
    digest,
    finish,
    only_orders,
    parsed_once,
    reached,
    run_once,
    survivor,
)
from tools.mutants.mutations import Mutant
from tools.mutants.pairs import STRONG, all_pairs
from tools.mutants.subjects import load

#: What waits or orders and counts nothing that another instruction waits for: without it there is less order.
_WAITS = re.compile(
    r"(@\S+\s+)?(bar\.warp|(bar|barrier)(\.cta)?\.sync|fence|tcgen05\.(wait|fence|relinquish_alloc_permit)"
    r"|wgmma\.(fence|commit_group|wait_group)|cp\.async\.(bulk\.)?(commit_group|wait_group|wait_all)|griddepcontrol)\b"
)
_WEAKENED = re.compile(r"wait dropped|relaxed|of a narrower scope|one group less|of the sources alone")
#: What orders something else instead: with less order than that only together with the mutant that drops it.
_SWAPPED = re.compile(r"on the other side|for tcgen05\..*|of (another state space|the generic proxy alone)")
_DROPPED = ("dropped", "wait dropped")
_FIELD = re.compile(r"(A|B|the source)'s (swizzle|stride|leading offset|base offset|fixed bits)")
_BARRIER = re.compile(r"(bar|barrier)(\.cta)?\.(sync|arrive|red)\b")


@dataclass(frozen=True)
class Group:
    """Mutants that are judged together, or a single one."""

    members: tuple[Left, ...]

    def __str__(self) -> str:
        mutants = [str(each.mutant) for each in self.members]
        return mutants[0] if len(mutants) == 1 else f"{len(mutants)} mutants from {mutants[0]}"

    def applied(self, source: str) -> str:
        """The kernel with all changes; of several changes of one instruction the one that drops it."""
        chosen: dict[Place, Mutant] = {}
        for each in self.members:
            place = _place(each.mutant)
            if place not in chosen or each.mutant.kind in _DROPPED:
                chosen[place] = each.mutant
        for mutant in sorted(chosen.values(), key=lambda each: each.start, reverse=True):
            source = mutant.applied(source)
        return source

    def without(self, verdicts: Sequence[Verdict]) -> list[Group]:
        """What to judge next where these are all that the group has shown: the others, or else its halves."""
        known = {each.mutant for each in verdicts}
        if known:
            others = tuple(each for each in self.members if each.mutant not in known)
            return [Group(others)] if others else []
        places = list(dict.fromkeys(_place(each.mutant) for each in self.members))
        if len(places) == 1:
            return [Group((each,)) for each in self.members]
        first = places[: len(places) // 2]
        halves = [
            tuple(each for each in self.members if (_place(each.mutant) in first) == chosen) for chosen in (True, False)
        ]
        return [Group(half) for half in halves]


def _place(mutant: Mutant) -> Place:
    return mutant.line, mutant.column


def foreseen(name: str, mutant: Mutant, whole: Baseline) -> bool:
    """Whether a mutant is of a field that is known to be unused, so that it begins in a group."""
    return reached(mutant, whole) and bool(_FIELD.fullmatch(mutant.kind) and reason(name, mutant, UNUSED))


def groups(name: str, left: Sequence[Left]) -> list[Group]:
    """How to judge mutants of a subject: groups, then those that are judged alone."""
    orders: dict[Place, list[Left]] = {}
    fields: dict[str, list[Left]] = {}
    alone: list[Left] = []
    unused = _unused_barriers(load(name).text)
    for each in left:
        mutant = each.mutant
        if (
            _weakens(name, mutant)
            or _moves(mutant, unused)
            or (only_orders(mutant) and _SWAPPED.fullmatch(mutant.kind))
        ):
            orders.setdefault(_place(mutant), []).append(each)
        elif _FIELD.fullmatch(mutant.kind) and each.same is not False:
            fields.setdefault(mutant.kind, []).append(each)
        else:
            alone.append(each)
    layers: list[list[Left]] = []
    for members in orders.values():
        if any(each.mutant.kind in _DROPPED for each in members):
            layered = [members]
        else:
            alone += [each for each in members if _SWAPPED.fullmatch(each.mutant.kind)]
            layered = [[each] for each in members if not _SWAPPED.fullmatch(each.mutant.kind)]
        layers += [[] for _ in range(len(layered) - len(layers))]
        for layer, chosen in zip(layers, layered, strict=False):
            layer += chosen
    found = [*layers, *fields.values(), *([each] for each in alone)]
    return [Group(tuple(each)) for each in found]


def _weakens(name: str, mutant: Mutant) -> bool:
    """Whether it takes order away and adds none, and would be equivalent if nothing shows."""
    weaker = bool(_WEAKENED.fullmatch(mutant.kind)) or (
        mutant.kind == "dropped" and bool(_WAITS.match(mutant.instruction))
    )
    return weaker and (only_orders(mutant) or bool(reason(name, mutant)))


def _moves(mutant: Mutant, unused: set[str]) -> bool:
    """Whether a barrier gets a number that no other has: then it orders the same threads, or leaves some waiting."""
    to = re.search(r"\bsync\S*\s+(\d+)", mutant.text)
    return mutant.kind == "another barrier" and to is not None and to[1] in unused


def _unused_barriers(text: str) -> set[str]:
    """The numbers of barriers that a kernel's text does not use; none where it computes one."""
    used = [each for each in instructions(text) if _BARRIER.match(each.opcode)]
    numbers = [str(each.operands[".red" in each.opcode]).strip() for each in used]
    return {str(number) for number in range(16)} - set(numbers) if all(map(str.isdigit, numbers)) else set()


def settle(name: str, group: Group, whole: Baseline) -> list[Verdict]:
    """The verdict on a single mutant; of more those that the group proves to be equivalent."""
    if len(group.members) == 1:
        return [finish(name, group.members[0], whole)]
    subject, mutants = load(name), [each.mutant for each in group.members]
    text, unordered = group.applied(subject.text), list[str]()
    field = _FIELD.fullmatch(mutants[0].kind)
    with parsed_once():
        for number, (schedule, seed) in enumerate(SCHEDULES):
            with nullcontext() if field else all_pairs(unordered):
                verdict, result = run_once(subject, mutants[0], text, whole, schedule, seed)
            racing = any(not each.startswith(STRONG) for each in unordered)
            if verdict.fate != "survived" or racing or (field and digest(result) != whole.results[number]):
                return []
    verdicts = [Verdict(name, each, survivor(each, unordered, same=True)) for each in mutants]
    return [each for each in verdicts if each.fate != "survived" or reason(name, each.mutant)]
