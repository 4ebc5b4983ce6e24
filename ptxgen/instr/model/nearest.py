"""The nearest legal form of an opcode that is not legal, for messages."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from ptxgen.instr.model.form import REGISTRY, Instruction, Slot
from ptxgen.instr.model.types import TYPES

#: Combinations of modifiers that are tried for one declaration.
_TRIES = 2000


@lru_cache(maxsize=4096)
def nearest_opcode(text: str) -> str | None:
    """The legal opcode with modifiers that takes the fewest changes from `text`; None if nothing is near.

    `text` is an opcode with its modifiers, without operands: `tcgen05.ld.sync.aligned.16x256b.x128.b32`.
    """
    from ptxgen.instr import load_all

    load_all()
    tokens = text.split(".")
    head = tokens[0]
    if head not in REGISTRY:
        close = difflib.get_close_matches(head, list(REGISTRY), n=1, cutoff=0.6)
        if not close:
            return None
        head = close[0]
    best: tuple[float, str] | None = None
    for form in REGISTRY[head]:
        opcode = form.form.opcode.split(".")
        # What of a longer opcode is missing counts as a change.
        missing = sum(word not in tokens for word in opcode[1:])
        rest = [token for token in tokens[1:] if token not in opcode[1:]]
        for changes, made in _near(form, rest):
            cost = missing + changes + 0.1 * (1 - difflib.SequenceMatcher(None, text, made).ratio())
            if best is None or cost < best[0]:
                best = cost, made
    return best[1] if best is not None and best[0] <= 2 + len(tokens) / 2 else None


def _near(form: type[Instruction], tokens: Sequence[str]) -> Iterator[tuple[float, str]]:
    """The legal opcodes of a declaration with the fewest changes, and how many; later modifiers change sooner."""
    slots = form.form.slots
    values: dict[str, Any] = {}
    unknown: list[str] = []
    free = list(slots)
    for token in tokens:
        slot = next((each for each in free if token in each.tokens), None)
        if slot is None:
            unknown.append(token)
            continue
        free.remove(slot)
        if slot.field is not None:
            values[slot.field] = slot.tokens[token]
    lacking = [slot for slot in free if not slot.optional]
    base = 1.2 * len(unknown) + max(0, len(lacking) - len(unknown))
    values.update({slot.field: slot.absent for slot in free if slot.optional and slot.field is not None})
    open_slots = [slot for slot in lacking if slot.field is not None]
    filled = itertools.product(*(_ordered(slot, unknown)[:12] for slot in open_slots))
    starts = [
        {**values, **{str(slot.field): value for slot, value in zip(open_slots, chosen, strict=True)}}
        for chosen in itertools.islice(filled, 50)
    ]
    for start in starts:
        made = form.bound(start, {})
        if not made.modifier_problems():
            yield base, made.opcode_text
            return
    changeable = [(place, slot) for place, slot in enumerate(slots) if slot.field is not None]
    tries = _TRIES
    for count in (1, 2):
        found = False
        for start, changed in itertools.product(starts[:4], itertools.combinations(changeable, count)):
            for chosen in itertools.product(*(_others(slot, start) for _, slot in changed)):
                tries -= 1
                if tries < 0:
                    return
                trial = {
                    **start,
                    **{str(slot.field): value for (_, slot), (_, value) in zip(changed, chosen, strict=True)},
                }
                made = form.bound(trial, {})
                if not made.modifier_problems():
                    found = True
                    early = sum(len(slots) - place for place, _ in changed) / len(slots)
                    yield base + count + 0.2 * early + 0.2 * sum(far for far, _ in chosen), made.opcode_text
        if found:
            return


def _ordered(slot: Slot, unknown: Sequence[str]) -> list[Any]:
    """The values of a slot, those first that are spelled like one of the unknown modifiers."""
    if not unknown:
        return list(slot.tokens.values())
    likeness = {
        token: max(difflib.SequenceMatcher(None, token, each).ratio() for each in unknown) for token in slot.tokens
    }
    return [slot.tokens[token] for token in sorted(slot.tokens, key=lambda token: -likeness[token])]


def _others(slot: Slot, values: dict[str, Any]) -> list[tuple[float, Any]]:
    """The other values of a slot, each with how far it is from the present one.

    Numbers are near in their order, words by their spelling; what type is meant is believed longest.
    """
    current = values[str(slot.field)]
    every = list(slot.tokens.values())
    others: list[tuple[float, Any]] = []
    if slot.optional and current != slot.absent:
        others.append((0.6, slot.absent))
    for value in every:
        if value == current:
            continue
        if current == slot.absent or slot.is_flag:
            distance = 0.6
        elif str(current) in TYPES:
            distance = 3.0
        elif isinstance(value, int):
            distance = abs(every.index(value) - every.index(current)) / len(every)
        else:
            distance = 1 - difflib.SequenceMatcher(None, str(current), str(value)).ratio()
        others.append((distance, value))
    return others
