"""Words to which several warps contribute by atomic operations that commute: counters of arrivals, masks of bits.

Which of the warps came last is chance: each whose operation no other contributor has observed could have. So a warp
that waits for fewer contributions than there are may lack any of these, not only the one that the schedule made the
last. A poll whose loop ends without a warp's contribution as well as with all of them acquires nothing that comes with
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxgen.emulator.checks.order.strong_history import Word, slot_of
from ptxgen.syntax import Instruction

if TYPE_CHECKING:
    from collections.abc import Container

    from ptxgen.emulator.checks.order.happens_before import HappensBefore
    from ptxgen.emulator.checks.order.poll_loops import PollLoops
    from ptxgen.emulator.checks.order.strong_accesses import Publication, Published

#: Operations whose contributions can be taken out again, and their integer types.
_KINDS, _TYPES = frozenset(["add", "or", "and", "xor"]), frozenset(["u32", "s32", "b32", "u64", "s64", "b64"])
#: Contributions to a word that are kept.
_MOST = 16


class _Part(NamedTuple):
    """One warp's atomic operation: in which of its intervals and line, the word before and after, and what the warp had
    published with the word before.
    """

    clock: int
    line: int
    old: int
    new: int
    before: Publication | None


class _Word(NamedTuple):
    """The contributions of one kind to a word, by warp (`HappensBefore.actors`), and the word after the last."""

    kind: str
    size: int
    parts: dict[int, list[_Part]]
    value: int


class Lacking(NamedTuple):
    """What a poll finds and acquires if contributions are missing: of these warps, the last one made in a line."""

    value: NDArray[np.uint8]
    published: Published
    writers: frozenset[int]
    line: int


class _Held(NamedTuple):
    """An atomic operation under way: its warp, its turn, its line, and what its warp has published with the word."""

    actor: int
    clock: int
    turn: int
    line: int
    before: Publication | None


class Contributions:
    """The contributions to each word since it last changed otherwise."""

    def __init__(self, happens_before: HappensBefore, loops: PollLoops) -> None:
        self._happens_before, self._loops = happens_before, loops
        self._words: dict[Word, _Word] = {}
        #: Operations under way by word, and their kind.
        self._held: dict[Word, list[_Held]] = {}
        self._kind = ""

    def clear(self, slots: Container[int]) -> None:
        """Make slots ready for the next CTAs."""
        for word in [word for word in self._words if slot_of(word) in slots]:
            del self._words[word]

    def begin(self, warp: int, word: Word, turn: int | None, statement: Instruction, published: Published) -> None:
        """A warp is about to change a word, by an atomic operation of one lane if it has a `turn`."""
        kind = self._contributes(statement) if turn is not None else ""
        found = self._words.get(word)
        if found is not None and found.kind != kind:
            del self._words[word]
            found = None
        if not kind or turn is None:
            return
        self._kind = kind
        actor, clock = self._happens_before.actor(warp), self._happens_before.clock(warp)
        held = self._held.setdefault(word, [])
        held.append(_Held(actor, clock, turn, statement.line, published.get(actor)))
        # What this warp has observed comes before its own.
        for other, parts in list(found.parts.items()) if found is not None else ():
            if other != actor:
                kept = [part for part in parts if not self._has_observed(warp, other, part.clock)]
                if kept:
                    parts[:] = kept
                elif found is not None:
                    del found.parts[other]

    def end(self, word: Word, now: NDArray[np.uint8], found: NDArray[Any] | None) -> None:
        """The operations on a word have run, and left `now`; each has `found` a value, by turn."""
        held = self._held.pop(word, None)
        if held is None:
            return
        if found is None or len({each.actor for each in held}) < len(held):
            self._words.pop(word, None)
            return
        before = self._words.get(word)
        values = [int.from_bytes(np.atleast_1d(found[each.turn]).tobytes(), "little") for each in held]
        values.append(int.from_bytes(now.tobytes(), "little"))
        parts = before.parts if before is not None and before.value == values[0] else {}
        for each, old, new in zip(held, values, values[1:], strict=False):
            parts.setdefault(each.actor, []).append(_Part(each.clock, each.line, old, new, each.before))
        while sum(map(len, parts.values())) > _MOST:
            del parts[next(iter(parts))]
        self._words[word] = _Word(self._kind, len(now), parts, values[-1])

    def lacking(
        self,
        warp: int,
        word: Word,
        data: NDArray[np.uint8],
        poll: Instruction,
        published: Published,
        ends: Callable[[NDArray[np.uint8]], bool],
        precedes: Callable[[int, int], bool],
    ) -> Lacking | None:
        """What a poll of a word, whose bytes are `data`, may find without contributions that do not precede it, if its
        loop ends all the same.
        """
        found = self._words.get(word)
        if found is None or int.from_bytes(data.tobytes(), "little") != found.value:
            return None
        own, local = self._happens_before.actor(warp), self._loops.is_local(poll)
        if found.kind != "add" and not local:
            return None  # which contributions it has follows from the value
        chosen: dict[int, tuple[_Part, NDArray[np.uint8]]] = {}
        finishes: bool | None = None  # whether the loop ends with all contributions, once that matters
        for actor, parts in found.parts.items():
            if actor == own or actor not in published:
                continue
            for number, part in enumerate(parts):
                if precedes(actor, part.clock) or self._is_published_by_others(actor, part.clock, published):
                    continue
                if finishes is None:
                    finishes = ends(data)
                if not finishes:
                    return None
                value = _without(found, parts[number:])
                if ends(value):
                    chosen[actor] = part, value
                    break
        if not chosen:
            return None
        last, value = next(reversed(chosen.values()))
        if not local:
            chosen = {actor: each for actor, each in chosen.items() if np.array_equal(each[1], value)}
        left = {actor: each for actor, each in published.items() if actor not in chosen}
        left |= {actor: part.before for actor, (part, _) in chosen.items() if part.before is not None}
        return Lacking(value, left, frozenset(chosen), last.line)

    def _contributes(self, statement: Instruction) -> str:
        """The kind of an atomic operation that commutes and whose result nobody uses; empty of others."""
        name, *parts = statement.opcode.split(".")
        kind = next((each for each in parts if each in _KINDS), "")
        plain = kind and _TYPES.intersection(parts) and (name == "red" or not self._loops.uses_result(statement))
        return kind if plain else ""

    def _has_observed(self, warp: int, actor: int, clock: int) -> bool:
        return self._happens_before.has_observed_actor(warp, actor, clock)

    def _is_published_by_others(self, actor: int, clock: int, published: Published) -> bool:
        """Whether other warps have published a warp's interval with the word too, having observed it."""
        order = self._happens_before
        epoch, member = order.epoch_of(actor), actor % order.members
        return any(
            vclock.has_observed(epoch, member, clock)
            for other, publication in published.items()
            if other != actor
            for _, vclock in publication.parts.values()
        )


def _without(word: _Word, parts: list[_Part]) -> NDArray[np.uint8]:
    """The word without some contributions."""
    value, every = word.value, (1 << 8 * word.size) - 1
    for part in parts:
        if word.kind == "add":
            value -= part.new - part.old
        elif word.kind == "or":
            value &= ~(part.new & ~part.old)
        elif word.kind == "and":
            value |= part.old & ~part.new
        else:
            value ^= part.old ^ part.new
    return np.frombuffer((value & every).to_bytes(word.size, "little"), np.uint8)
