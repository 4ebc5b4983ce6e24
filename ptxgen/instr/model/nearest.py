"""The nearest legal form of an opcode that is not legal, for messages.

Near is what means the same: an integer rounding for a float one, a count for the next count, an untyped register for
an unsigned one of its width. Types and shapes stay as written if anything else can change. Only a word that PTX does
not have is taken for a typo, and goes by its spelling.
"""

from __future__ import annotations

import difflib
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

from ptxgen.instr.model.form import REGISTRY, Instruction
from ptxgen.instr.model.syntax_line import Slot
from ptxgen.instr.model.types import TYPES

#: Combinations of modifiers that are tried for one declaration.
_TRIES = 2000
#: What costs more than this is another instruction.
_LIMIT = 3.0
#: What another number of operands costs.
_COUNT = 1.0
#: What an instruction computes: hardly anyone writes one of these for another.
_OPERATIONS = frozenset({"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas", "popc", "mul"})
#: The least that two changes cost.
_TWO = 1.0
#: Words of one meaning in different instructions, and how far they are apart.
_RELATED: dict[frozenset[str], float] = {
    **{frozenset((f"r{way}", f"r{way}i")): 0.0 for way in "nzmp"},
    **{frozenset(pair): 0.0 for pair in (("lo", "lt"), ("ls", "le"), ("hi", "gt"), ("hs", "ge"))},
    **{frozenset(pair): 0.0 for pair in (("gpu", "gl"), ("device", "gpu"), ("block", "cta"), ("xor", "bfly"))},
    frozenset(("acquire", "release")): 0.2,
    frozenset(("volatile", "relaxed")): 0.5,
    frozenset(("shared", "shared::cta")): 0.0,
    frozenset(("sub", "add")): 0.3,
    frozenset(("row", "col")): 0.3,
    frozenset(("bulk_group", "mbarrier::complete_tx::bytes")): 0.3,
    frozenset(("pred", "b32")): 0.8,
}
#: Words of one kind in their order: the next wider one is nearer than the next narrower one.
_SCALES = (("cta", "cluster", "gpu", "gl", "sys"), ("weak", "relaxed", "acquire", "acq_rel", "sc"))
_ROUNDING = frozenset({"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna", "rs"})
_SPACES = frozenset({"const", "global", "local", "param", "shared", "shared::cta", "shared::cluster"})
_NUMBER = re.compile(r"\d+")


@lru_cache(maxsize=4096)
def nearest_opcode(text: str, operands: int | None = None) -> str | None:
    """The legal opcode with modifiers whose meaning is nearest to that of `text`; None if nothing is near.

    `text` is an opcode with its modifiers, without operands: `tcgen05.ld.sync.aligned.16x256b.x128.b32`. With the
    number of `operands`, what takes so many is nearer.
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
    names = {word for form in REGISTRY[head] for word in form.form.opcode.split(".")[1:]}
    for form in REGISTRY[head]:
        base, rest = _named(form.form.opcode.split(".")[1:], tokens[1:], names)
        base += 0.0 if operands is None or _takes(form, operands) else _COUNT
        for changes, made in _near(form, rest):
            cost = base + changes + _reordered(tokens, made.split("."))
            cost += 0.1 * (1 - difflib.SequenceMatcher(None, text, made).ratio())
            if best is None or cost < best[0]:
                best = cost, made
    return best[1] if best is not None and best[0] <= _LIMIT else None


def _takes(form: type[Instruction], operands: int) -> bool:
    """Whether a declaration has so many operands with some of its modifiers."""
    heads = [(pattern, pattern.fields[0]) for pattern in form.form.patterns]
    least = sum(not (head.optional or head.when or pattern.optional) for pattern, head in heads)
    return least <= operands <= len(heads)


def names_fix(rule: str, opcode: str, nearest: str) -> bool:
    """Whether the message of a rule already says all that leads from an opcode to the nearest legal one."""
    before, after = opcode.split("."), nearest.split(".")
    added, dropped = _without(after, before), _without(before, after)
    if added and not dropped:
        return re.search(rf" requires \.{re.escape(' .'.join(added))}(:|;|$)", rule) is not None
    if added:
        return nearest in rule
    return bool(dropped) and (" allows no " in rule or "write it once" in rule or nearest in rule)


def _without(tokens: Sequence[str], others: Sequence[str]) -> list[str]:
    """The tokens that are not among others, each as often as it is missing there."""
    left = list(others)
    rest = []
    for token in tokens:
        if token in left:
            left.remove(token)
        else:
            rest.append(token)
    return rest


def _named(words: Sequence[str], tokens: Sequence[str], names: set[str]) -> tuple[float, list[str]]:
    """The cost of the words of a longer opcode, and the tokens that are none of them."""
    missing, rest = _without(words, tokens), _without(tokens, words)
    cost = 0.0
    for word in missing:
        typos = [token for token in rest if token not in known_words() and _spelled(token, word) < 0.4]
        if typos:
            token = min(typos, key=lambda each: _spelled(each, word))
            rest.remove(token)
            cost += 0.5 + _spelled(token, word)
        else:
            cost += 1.0
    # The name of another instruction is no modifier of this one.
    known = {token for token in rest if token in names and token not in words}
    return cost + 0.8 * len(known), rest


def _reordered(tokens: Sequence[str], made: Sequence[str]) -> float:
    """The cost of types or state spaces in another order: source and destination are exchanged."""
    for kind in (TYPES.keys(), _SPACES):
        before, after = ([token.partition("::")[0] for token in each if token in kind] for each in (tokens, made))
        if before != after and sorted(before) == sorted(after):
            return 2.0
    return 0.0


@cache
def known_words() -> frozenset[str]:
    """Every modifier of PTX."""
    forms = [form.form for every in REGISTRY.values() for form in every]
    return frozenset(token for form in forms for slot in form.slots for token in slot.tokens)


def _near(form: type[Instruction], tokens: Sequence[str]) -> Iterator[tuple[float, str]]:
    """The legal opcodes of a declaration with the fewest changes, and their cost."""
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
    base, dropped = 0.0, 0
    has_type = any(not slot.tokens.keys().isdisjoint(TYPES) for slot in slots)
    seen: set[tuple[str, Any]] = set()
    for token in unknown:
        meant = _meant(token, free)
        if meant is None:
            base += _dropped(token) if has_type else 1.2
            dropped += 1
            continue
        cost, slot, value = meant
        # The same mistake again, such as both accumulators of one wrong type, counts half.
        base += (0.5 + cost) / (2 if (token, value) in seen else 1)
        seen.add((token, value))
        free.remove(slot)
        if slot.field is not None:
            values[slot.field] = value
    if base > _LIMIT:
        return
    lacking = [slot for slot in free if not slot.optional]
    # What is left out and what is filled in would have nothing in common.
    base += sum(1.3 if not slot.tokens.keys().isdisjoint(TYPES) else 0.8 for slot in lacking)
    base += min(dropped, len(lacking))
    values.update({slot.field: slot.absent for slot in free if slot.optional and slot.field is not None})
    open_slots = [slot for slot in lacking if slot.field is not None and slot.field not in values]
    filled = itertools.product(*(_ordered(slot, form, tokens)[:12] for slot in open_slots))
    starts = [
        {**values, **{str(slot.field): value for slot, value in zip(open_slots, chosen, strict=True)}}
        for chosen in itertools.islice(filled, 50)
    ]
    for start in starts:
        made = form.bound(start, {})
        if not made.modifier_problems():
            yield base, made.opcode_text
            return
    changeable = list({slot.field: slot for slot in slots if slot.field is not None}.values())
    tries = _TRIES
    for count in (1, 2):
        best = _LIMIT
        for start, changed in itertools.product(starts[:4], itertools.combinations(changeable, count)):
            for chosen in itertools.product(*(_others(slot, start, form, tokens) for slot in changed)):
                tries -= 1
                if tries < 0:
                    return
                cost = base + sum(0.5 + far for far, _ in chosen)
                if cost > _LIMIT:
                    continue
                trial = {
                    **start,
                    **{str(slot.field): value for slot, (_, value) in zip(changed, chosen, strict=True)},
                }
                made = form.bound(trial, {})
                if not made.modifier_problems():
                    best = min(best, cost)
                    yield cost, made.opcode_text
        if best <= base + _TWO:
            return


def _meant(token: str, free: Sequence[Slot]) -> tuple[float, Slot, Any] | None:
    """The free slot and value for which a modifier may stand that has none here, and how far it is."""
    every = [
        (distance(token, each), slot, value) for slot in free for each, value in slot.tokens.items() if each != token
    ]
    best = min(every, key=lambda each: each[0], default=None)
    return best if best is not None and 0.5 + best[0] < _dropped(token) else None


def _dropped(token: str) -> float:
    """The cost of a modifier that is left out: types and shapes are believed longest."""
    if token in TYPES:
        return 3.0
    return 2.0 if len(_NUMBER.findall(token)) > 1 else 1.2


def distance(written: str, other: str) -> float:
    """How far the meaning of a modifier is from that of another; of a word that PTX does not have, its spelling."""
    related = _RELATED.get(frozenset((written, other)))
    if related is not None:
        return related
    for scale in _SCALES:
        if written in scale and other in scale:
            steps = scale.index(other) - scale.index(written)
            return 0.2 * steps if steps > 0 else -0.5 * steps
    if written in TYPES:
        return _between_types(written, other) if other in TYPES else 3.0
    if other.startswith(f"{written}::"):
        return 0.1
    if written.partition("::")[0] == other.partition("::")[0] == "shared":
        return 0.1 if "::" in other else 0.2
    if same_pattern(written, other):
        return _between_numbers(written, other)
    if written in _ROUNDING and other in _ROUNDING:
        return 0.5
    if written in _OPERATIONS and other in _OPERATIONS:
        return 3.0
    if written in known_words():
        return 1.5
    return _spelled(written, other)


def same_pattern(written: str, other: str) -> bool:
    """Whether two modifiers differ in their numbers alone: shapes, counts."""
    return bool(_NUMBER.findall(written)) and _NUMBER.sub("#", written) == _NUMBER.sub("#", other)


#: Formats of floats that no register is declared as, and those of registers.
_FLOATS = re.compile(r"(b?f16(x2)?|tf32|f32|f64|e\dm\d)$")


def _between_types(written: str, other: str) -> float:
    one, two = TYPES[written], TYPES[other]
    if one.bits != two.bits and _FLOATS.match(written) and _FLOATS.match(other):
        return 1.2 + 0.1 * abs(math.log2(two.bits / one.bits))
    integers = {"bits", "unsigned", "signed"}
    if one.bits == two.bits:
        if two.kind == "bits":
            return 0.3
        if {one.kind, two.kind} <= integers:
            return 0.4
        return 1.2 if one.kind == two.kind else 2.0
    if one.kind == two.kind:
        return 1.0 + 0.1 * abs(math.log2(two.bits / one.bits))
    return 1.7 if {one.kind, two.kind} <= integers else 2.3


def _between_numbers(written: str, other: str) -> float:
    """Counts are near in their order, shapes only if nothing else can change."""
    pairs = list(zip(_NUMBER.findall(written), _NUMBER.findall(other), strict=True))
    apart = sum(abs(math.log2((int(two) or 0.5) / (int(one) or 0.5))) for one, two in pairs)
    return 0.1 + 0.1 * apart + (1.0 if len(pairs) > 1 and written in known_words() else 0.0)


def _spelled(written: str, other: str) -> float:
    """How far a typo is from a word: 0 apart from case, 1 or more with nothing in common."""
    one, two = written.lower(), other.lower()
    if one == two:
        return 0.0
    if len(two) > 2 and (one.startswith(two) or two.startswith(one)):
        return 0.2
    ratio = difflib.SequenceMatcher(None, one, two).ratio()
    return 1 - ratio if ratio >= 0.6 else 2.0


def _ordered(slot: Slot, form: type[Instruction], tokens: Sequence[str]) -> list[Any]:
    """The values of a slot in which nothing is written, the usual ones first: semantics, the scope of the memory."""
    is_shared = form.form.opcode.startswith("mbarrier") or any("shared" in each for each in tokens)
    usual = ("acquire", "release", "cta" if is_shared else "gpu", *(each for each in tokens if each in TYPES))
    return [slot.tokens[token] for token in sorted(slot.tokens, key=lambda token: token not in usual)]


def _others(
    slot: Slot, values: dict[str, Any], form: type[Instruction], tokens: Sequence[str]
) -> list[tuple[float, Any]]:
    """The other values of a slot, each with how far it is from the present one."""
    current = values[str(slot.field)]
    if current == slot.absent:
        return [(0.3 + 0.01 * place, value) for place, value in enumerate(_ordered(slot, form, tokens))]
    written = slot.spelled[current]
    kept = 0.5 if written in TYPES else 0.0
    others = [(kept + distance(written, token), value) for token, value in slot.tokens.items() if value != current]
    return [*([(0.5, slot.absent)] if slot.optional else []), *others]
