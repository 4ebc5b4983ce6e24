"""What is compared: legal forms of a declaration, and their neighbors.

A neighbor is a form with one thing changed: a modifier dropped, added, doubled, replaced or out of order; an operand
of another kind, width or length, dropped or added; a combination of modifiers that a rule forbids; another target or
PTX version. Most neighbors are illegal.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ptxgen import syntax
from ptxgen.instr import load_all
from ptxgen.instr.model.form import REGISTRY, Instruction
from ptxgen.instr.model.operands import EXAMPLE_BRANCHES, EXAMPLE_LABEL, EXAMPLE_OPAQUE, EXAMPLE_PROTOTYPE
from ptxgen.instr.model.targets import parse_target, parse_version

NEWEST = "9.5"
#: All that ptxas 13.5 takes.
TARGETS = (
    "sm_75", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100f", "sm_100a", "sm_103",
    "sm_103f", "sm_103a", "sm_107", "sm_107f", "sm_107a", "sm_110", "sm_110f", "sm_110a", "sm_120", "sm_120f",
    "sm_120a", "sm_121", "sm_121f", "sm_121a",
)  # fmt: skip
VERSIONS = (
    "6.3", "6.4", "6.5", "7.0", "7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "7.7", "7.8", "8.0", "8.1", "8.2", "8.3",
    "8.4", "8.5", "8.6", "8.7", "8.8", "9.0", "9.1", "9.2", "9.3", "9.4", "9.5",
)  # fmt: skip
#: Neighbors are tried on the first of these that has their form.
HOMES = ("sm_100a", "sm_90a", "sm_103a", "sm_120a", "sm_110a", "sm_107a", "sm_121a", "sm_90", "sm_80", "sm_75")

#: Operands that replace a legal one.
POOL = (
    *(
        f"%x_{type}_7"
        for type in (
            "pred", "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16",
            "f32", "f64",
        )
    ),
    "0", "1", "-1", "3", "16", "5000000000", "(1 << 4) | 2", "1.5", "0f3F800000", "0d3FF0000000000000", "WARP_SZ",
    "%tid.x", "%tid", "%clock64", "%laneid", "%gridid", "%nothing", "_", "!%x_pred_7", EXAMPLE_LABEL, "x_function",
    EXAMPLE_BRANCHES, EXAMPLE_PROTOTYPE,
    EXAMPLE_OPAQUE["texref"], f"[{EXAMPLE_OPAQUE['texref']}]", f"[{EXAMPLE_OPAQUE['surfref']}]",
    "x_global", "x_shared", "x_const", "x_local", "x_param", "x_global+4", "x_shared+4", "%x_v2_7", "%x_v4_7",
    "%x_v2_7.x", "[%x_b32_7]", "[%x_b64_7]", "[%x_u32_7]", "[%x_s64_7]", "[%x_f32_7]", "[%x_f64_7]", "[%x_b16_7]",
    "[%x_pred_7]", "[%x_b64_7+16]", "[%x_b32_7+-4]", "[x_global]", "[x_shared]", "[x_const]", "[x_local]", "[x_param]",
    "[x_shared+8]", "[16]", "[x_function]", f"[{EXAMPLE_LABEL}]", "[%nothing]", "[%tid.x]", "{%x_b32_7}",
    "{%x_b32_7, %x_b32_8}", "{%x_b16_7, %x_b32_8}", "{%x_f32_7, %x_b32_8}", "{_, %x_b32_8}", "{_, _}", "{%x_b32_7, 1}",
    "{%x_b64_7, %x_b64_8}", "{%x_b16_7, %x_b16_8}", "{%x_b32_7, %tid.x}",
    "{%x_b32_7, %x_b32_8, %x_b32_9}", "{%x_b32_7, %x_b32_8, %x_b32_9, %x_b32_6}", "%x_b32_7.b0", "%x_b32_7.h1",
    "%x_b32_7.h10", "%x_b32_7.b3210", "-%x_b32_7", "-%x_b32_7.h0", "%x_b32_7|%x_pred_7",
)  # fmt: skip
#: Operands that are added behind the last.
ADDED = ("%x_b32_7", "1", "%x_pred_7", "{%x_b32_7, %x_b32_8}", "[%x_b64_7]")
#: Modifiers that are added to any form, besides those of its own family.
FOREIGN = ("bogus", "u32", "f64", "v2", "ftz", "sync", "global", "rn", "wide", "box_dim", "acc::f32", "normal")


def needs_samplers(line: str) -> bool:
    """Whether the line is one for the independent texture mode, in which samplers exist."""
    return EXAMPLE_OPAQUE["samplerref"] in line


@dataclass(frozen=True, slots=True)
class Case:
    """One instruction line to be judged: which form it comes from, what was done to it, and where it is tried."""

    form: str
    kind: str
    line: str
    target: str
    version: str = NEWEST

    @property
    def group(self) -> tuple[str, str, bool, bool, bool]:
        """Cases that may share a module: a function has one cta_group (ptxas), a module one texture mode, and legal
        lines cost less alone.
        """
        return (self.target, self.version, "cta_group::2" in self.line, needs_samplers(self.line), self.kind == "form")


def declared(families: Sequence[str] = ()) -> list[type[Instruction]]:
    """The declarations of some families, or all."""
    load_all()
    return [
        form
        for forms in REGISTRY.values()
        for form in forms
        if not families or form.form.key.split(".")[0] in families or form.form.key in families
    ]


#: Where an instruction exists follows from its declaration and from the conditions of `needs` that it satisfies.
_known: dict[tuple[object, ...], tuple[str, ...]] = {}


def targets_of(made: Instruction) -> tuple[str, ...]:
    """The targets that have an instruction in the newest PTX."""
    named = {word for condition in made.form.needs for word in condition.split() if word.startswith("sm_")}
    key = type(made), made.demands(), *(made.demands(parse_target(each)) for each in sorted(named))
    if key not in _known:
        newest = parse_version(NEWEST)
        _known[key] = tuple(each for each in TARGETS if not made.availability_problems(parse_target(each), newest))
    return _known[key]


def home(made: Instruction) -> str | None:
    """The target on which neighbors of an instruction are tried."""
    has = targets_of(made)
    return next((target for target in HOMES if target in has), has[0] if has else None)


def forms_of(
    form: type[Instruction], limit: int | None = None, rng: random.Random | None = None
) -> Iterator[Instruction]:
    """The legal forms of a declaration that some target has: all, or `limit` of them, drawn at random."""
    drawn = form.variants() if limit is None else form.sample(limit, rng or random.Random(0))
    return (made for made in drawn if home(made) is not None)


def assembled(made: Instruction) -> Iterator[Case]:
    """A legal form on every target that has it."""
    for target in targets_of(made):
        yield Case(made.form.key, "form", str(made), target)


def at_home(made: Instruction) -> Case:
    """A legal form on one target."""
    return Case(made.form.key, "form", str(made), home(made) or HOMES[0])


class Neighbors:
    """Draws neighbors of forms, each line once."""

    def __init__(self, form: type[Instruction]) -> None:
        self.form = form
        family = [
            token
            for each in REGISTRY[form.form.opcode.split(".")[0]]
            for slot in each.form.slots
            for token in slot.tokens
        ]
        self.vocabulary = sorted({*FOREIGN, *family})
        self.kinds: list[Callable[[Instruction, random.Random], tuple[str, str] | None]] = [
            self._dropped,
            self._doubled,
            self._added,
            self._replaced,
            self._reordered,
            self._operand,
            self._operand,
            self._operand,
            self._length,
            self._operand_dropped,
            self._operand_added,
        ]
        self.seen: set[tuple[str, str, str]] = set()

    def draw(self, made: Instruction, count: int, rng: random.Random) -> Iterator[Case]:
        """Up to `count` neighbors of a form, one in six of them on another target or version."""
        target = home(made)
        if target is None:
            return
        left, tries = count, 3 * count
        while left and tries:
            tries -= 1
            case = self._one(made, target, rng)
            if case is None or (case.line, case.target, case.version) in self.seen:
                continue
            self.seen.add((case.line, case.target, case.version))
            left -= 1
            yield case

    def _one(self, made: Instruction, target: str, rng: random.Random) -> Case | None:
        key = made.form.key
        if rng.random() < 1 / 6:
            if rng.random() < 0.5:
                return Case(key, "target", str(made), rng.choice(TARGETS))
            return Case(key, "version", str(made), target, rng.choice(VERSIONS))
        changed = rng.choice(self.kinds)(made, rng)
        return None if changed is None else Case(key, changed[0], changed[1], target)

    @staticmethod
    def _dropped(made: Instruction, rng: random.Random) -> tuple[str, str] | None:
        tokens = made.modifiers
        if not tokens:
            return None
        index = rng.randrange(len(tokens))
        return "modifier dropped", _spelled(made, tokens[:index] + tokens[index + 1 :])

    @staticmethod
    def _doubled(made: Instruction, rng: random.Random) -> tuple[str, str] | None:
        tokens = made.modifiers
        if not tokens:
            return None
        index = rng.randrange(len(tokens))
        return "modifier doubled", _spelled(made, [*tokens[: index + 1], tokens[index], *tokens[index + 1 :]])

    def _added(self, made: Instruction, rng: random.Random) -> tuple[str, str]:
        tokens = made.modifiers
        index = rng.randint(0, len(tokens))
        return "modifier added", _spelled(made, [*tokens[:index], rng.choice(self.vocabulary), *tokens[index:]])

    def _replaced(self, made: Instruction, rng: random.Random) -> tuple[str, str] | None:
        """A modifier replaced by another value of its own, or by a modifier of another line of the opcode."""
        tokens = made.modifiers
        if not tokens:
            return None
        index = rng.randrange(len(tokens))
        own = [list(slot.tokens) for slot in made.form.slots if tokens[index] in slot.tokens and len(slot.tokens) > 1]
        other = rng.choice(own[0]) if own and rng.random() < 0.7 else rng.choice(self.vocabulary)
        return "modifier replaced", _spelled(made, [*tokens[:index], other, *tokens[index + 1 :]])

    @staticmethod
    def _reordered(made: Instruction, rng: random.Random) -> tuple[str, str]:
        tokens = made.modifiers
        rng.shuffle(tokens)
        return "modifiers in another order", _spelled(made, tokens)

    @staticmethod
    def _operand(made: Instruction, rng: random.Random) -> tuple[str, str] | None:
        written = split_operands(made)
        if not written:
            return None
        index = rng.randrange(len(written))
        other = rng.choice(POOL)
        if written[index].startswith("[") and "," in written[index] and rng.random() < 0.5:
            other = _inside_brackets(written[index], other, rng)
        return "operand replaced", _with_operands(made, [*written[:index], other, *written[index + 1 :]])

    @staticmethod
    def _length(made: Instruction, rng: random.Random) -> tuple[str, str] | None:
        written = split_operands(made)
        vectors = [index for index, operand in enumerate(written) if operand.startswith("{")]
        if not vectors:
            return None
        index = rng.choice(vectors)
        inner = written[index][1:-1].split(", ")
        inner = [*inner, inner[-1]] if rng.random() < 0.5 else inner[:-1]
        return "vector length", _with_operands(
            made, [*written[:index], "{" + ", ".join(inner) + "}", *written[index + 1 :]]
        )

    @staticmethod
    def _operand_dropped(made: Instruction, rng: random.Random) -> tuple[str, str] | None:
        written = split_operands(made)
        if not written:
            return None
        index = rng.randrange(len(written))
        return "operand dropped", _with_operands(made, [*written[:index], *written[index + 1 :]])

    @staticmethod
    def _operand_added(made: Instruction, rng: random.Random) -> tuple[str, str]:
        return "operand added", _with_operands(made, [*split_operands(made), rng.choice(ADDED)])


def ruled_out(form: type[Instruction], limit: int, rng: random.Random) -> Iterator[Case]:
    """Combinations of modifiers that a rule of the declaration forbids, `limit` of them at most."""
    for made in form.sample_forbidden(limit, rng):
        # A forbidden combination may have no operands that could be made for it.
        with contextlib.suppress(KeyError, TypeError, ValueError):
            whole = form.bound(made.__dict__, made.example_operands())
            yield Case(form.form.key, "rule broken", str(whole), home(whole) or HOMES[0])


def gates_of(form: type[Instruction]) -> Iterator[Case]:
    """Every target and every version, for one form of each set of demands that a declaration makes."""
    demands: set[tuple[str, ...]] = set()
    for made in itertools.islice(form.variants(), 20_000):
        required = made.demands()
        target = home(made)
        if target is None or required in demands:
            continue
        demands.add(required)
        yield from (Case(form.form.key, "target", str(made), each) for each in TARGETS)
        yield from (Case(form.form.key, "version", str(made), target, each) for each in VERSIONS)


def _spelled(made: Instruction, tokens: Sequence[str]) -> str:
    text = str(made)
    start = text.index(made.form.opcode)
    rest = text[start + len(made.opcode_text) :]
    return text[:start] + ".".join([made.form.opcode, *tokens]) + rest


def _inside_brackets(operand: str, other: str, rng: random.Random) -> str:
    """`[a, {b, c}]` with another operand in place of one of its parts; without the part where that cannot stand."""
    parts = re.findall(r"\{[^}]*\}|[^,\s{}\[\]]+", operand)
    index = rng.randrange(len(parts))
    fits = other[0] not in "[!-" and "|" not in other
    return f"[{', '.join([*parts[:index], *([other] if fits else []), *parts[index + 1 :]])}]"


def _with_operands(made: Instruction, operands: Sequence[str]) -> str:
    return f"{made.opcode_text} {', '.join(operands)};"


def split_operands(made: Instruction) -> list[str]:
    """The operands of an instruction as text."""
    (function,) = syntax.parse(f".version 8.0\n.target sm_80\n.func f() {{ {made} }}").functions
    assert function.body is not None
    (statement,) = (each for each in function.body.statements if isinstance(each, syntax.Instruction))
    return [str(operand) for operand in statement.operands]
