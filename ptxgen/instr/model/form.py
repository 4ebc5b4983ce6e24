"""How an instruction is declared: one class per syntax line of the PTX ISA.

A subclass of `Instruction` is the declaration. Its `syntax` is the manual's line, its annotated fields say which values
each modifier takes and what each operand is, its `@rule` methods hold what the notation cannot express. From it come
the typed call (`tcgen05.ld(regs, taddr, shape="32x32b", num=8)`), the check, recognition in parsed text
(`recognize`), enumeration (`variants`), and the key under which the emulator finds the meaning (the class itself).

Notation of `syntax`, as in the manual: `.name` is the modifier field `name` where the class has one and a fixed
modifier otherwise; `{.name}`, `{, operand}` and `{operand,}` are optional; `[a]`, `[a, b]`, `p|q`, `(a)` as in PTX.
Inside brackets the modifiers decide which operands are there (`when`). A field that stands twice has one value:
`.type.type` is `.s8.s8` or `.u8.u8`.

The opcode proper is `opcode`, by default the first word, with the first `leading` modifiers. ptxas takes the modifiers
after it in any order, if types, state spaces and a few others keep theirs (measured, ptxas 13.5), and so does
recognition; text is made in the manual's order.

A class without a `syntax` of its own is no declaration: it holds what several have in common. They inherit its fields,
rules, needs and class arguments, as one declaration may from another. A field that is declared anew keeps its place.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import itertools
import math
import random
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeVar, dataclass_transform

from ptxgen.instr.model import operands as specs
from ptxgen.instr.model.described import Documentation, SignatureOf, suggest_names
from ptxgen.instr.model.given import Declarations, OperandLike, coerced, node
from ptxgen.instr.model.operands import Problem, Resolver, Specification
from ptxgen.instr.model.symbols import Declared, unavailable
from ptxgen.instr.model.syntax_line import Pattern, Slot, flag, modifier, patterns_of, slots_of, tokens_by_field
from ptxgen.instr.model.targets import Availability, Target
from ptxgen.instr.model.traits import STATED, FormTraits, Stated, Traits, form_traits
from ptxgen.syntax import Arguments, Expression, Immediate, NoValueError, Operand, Pair, parse_operand

IssuedBy = Literal["thread", "warp", "warpgroup", "CTA", "CTA pair"]


class About(Stated, total=False):
    """The class arguments of a declaration; `section`, `ptx` and `targets` must be there, or inherited.

    Those of `Stated` state traits.
    """

    section: str
    ptx: str
    targets: str
    opcode: str
    issued_by: IssuedBy
    completed_by: str
    fences: str
    leading: int
    removed: Availability | None


class InstructionError(ValueError):
    """A typed call that is not legal PTX; `problems` holds every broken rule."""

    def __init__(self, form: str, problems: Sequence[Problem]) -> None:
        self.form = form
        self.problems = list(problems)
        super().__init__(f"{form}: " + "; ".join(problem.message for problem in problems))


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a form: `check` returns a message, or None when the rule holds.

    `reads_operands`: it depends on operands; `reads_names`: also on their register names.
    """

    code: str
    check: Callable[[Any], str | None]
    reads_operands: bool
    reads_names: bool = False

    def reads(self, names: Iterable[str]) -> list[str]:
        """Which of these fields the function of the rule reads itself."""
        code = getattr(self.check, "__code__", None)
        return [name for name in names if code is not None and name in code.co_names]


@dataclass(frozen=True)
class Form:
    """What a declaration says about its syntax line, compiled once when the class is made.

    `issued_by` is who executes it together, `completed_by` the completion mechanism, `fences` which fence or
    wait its effects need before others see them (empty: none). `removed` is since when and where it exists no more.
    `summary` is the docstring of the declaration.
    """

    key: str
    summary: str
    opcode: str
    syntax: str
    section: str
    availability: Availability
    issued_by: IssuedBy
    completed_by: str
    fences: str
    slots: tuple[Slot, ...]
    patterns: tuple[Pattern, ...]
    rules: tuple[Rule, ...]
    needs: Mapping[str, Availability]
    positional: tuple[str, ...]
    traits: FormTraits
    operands: Mapping[str, Specification] = field(default_factory=dict)
    #: How many of the slots must stand first, in their order.
    leading: int = 0
    removed: Availability | None = None


_F = TypeVar("_F", bound=Callable[[Any], str | None])


def rule(code: str, *, reads_operands: bool = False, reads_names: bool = False) -> Callable[[_F], _F]:
    """Mark a method as a rule; its docstring is the rule in words, its result the message when broken."""

    def mark(function: _F) -> _F:
        function.__rule__ = (code, reads_operands or reads_names, reads_names)  # type: ignore[attr-defined]
        return function

    return mark


#: Every declaration, by the first word of its opcode.
REGISTRY: dict[str, list[type[Instruction]]] = {}


def _family(module: str) -> str:
    """The family of a module: `tcgen05` of `ptxgen.instr.tcgen05` and of `ptxgen.instr.tcgen05.mma`."""
    inside = module.removeprefix("ptxgen.instr.")
    return inside.split(".")[0] if inside != module else module.rpartition(".")[2]


@dataclass_transform(
    kw_only_default=False,
    frozen_default=True,
    field_specifiers=(
        modifier,
        flag,
        specs.register,
        specs.source,
        specs.immediate,
        specs.address,
        specs.vector,
        specs.accumulator,
        specs.part,
        specs.predicate,
        specs.label,
        specs.sink,
        specs.opaque,
        specs.sampler,
        specs.coordinates,
        specs.callee,
        specs.pointer,
        specs.values,
        specs.targets,
    ),
)
class Instruction:
    """Base of all declarations, and of the instructions made from them (immutable)."""

    form: ClassVar[Form]
    syntax: ClassVar[str]
    __signature__: ClassVar[SignatureOf]
    #: What a modifier token (`"relu"`), a field's value (`"dtype=bf16"`), an optional operand (`"mask"`), `_` or a
    #: constant as an operand (`"state=_"`, `"value=13"`), or several together (`"cp multicast::cluster"`) need beyond
    #: the form itself; a target (`"sm_89"`) may be among them.
    needs: ClassVar[Mapping[str, Availability]] = {}
    _about: ClassVar[Mapping[str, Any]] = {
        "issued_by": "thread",
        "completed_by": "at once",
        "fences": "",
        "leading": 0,
        "removed": None,
        **STATED,
    }
    __slots__ = ("__dict__",)

    def __init_subclass__(cls, **about: typing.Unpack[About]) -> None:
        cls._about = {**cls._about, **about}
        if "syntax" not in cls.__dict__:
            return
        bases = [base for base in reversed(cls.__mro__) if issubclass(base, Instruction) and base is not Instruction]
        members = {name: value for base in bases for name, value in vars(base).items()}
        hints = {
            name: hint
            for base in bases
            for name, hint in inspect.get_annotations(base, eval_str=True).items()
            if hint is not KW_ONLY and hint is not ClassVar and typing.get_origin(hint) is not ClassVar
        }
        declared = {name: members[name] for name in hints if isinstance(members.get(name), Specification)}
        for name, spec in declared.items():
            spec.name = name
        head, _, rest = cls.syntax.strip().partition(" ")
        name = cls._about.get("opcode") or re.split(r"[.{]", head)[0]
        if not head.startswith(name):
            raise TypeError(f"{cls.__name__}: the syntax line must begin with {name}")
        modifiers = {each: hint for each, hint in hints.items() if each not in declared}
        slots = slots_of(head[len(name) :], modifiers, members, cls.__name__)
        unused = set(modifiers) - {slot.field for slot in slots}
        if unused:
            raise TypeError(f"{cls.__name__}: fields {sorted(unused)} are not in the syntax line")
        patterns = patterns_of(rest.strip(), declared, cls.__name__)
        placed = {spec.name for pattern in patterns for spec in pattern.fields}
        if set(declared) - placed:
            raise TypeError(f"{cls.__name__}: operands {sorted(set(declared) - placed)} are not in the syntax line")
        for spec in declared.values():
            if spec.when is not None and spec.when.partition("=")[0] not in modifiers:
                raise TypeError(f"{cls.__name__}: {spec.name} depends on {spec.when}, which is no modifier")
        rules = tuple(
            Rule(f"{cls.__name__}.{value.__rule__[0]}", value, *value.__rule__[1:])
            for value in members.values()
            if hasattr(value, "__rule__")
        )
        if missing := {"section", "ptx", "targets"} - cls._about.keys():
            raise TypeError(f"{cls.__name__}: the class arguments {sorted(missing)} are missing")
        cls.form = Form(
            key=f"{_family(cls.__module__)}.{cls.__name__}",
            summary=inspect.cleandoc(cls.__doc__ or ""),
            opcode=name,
            syntax=cls.syntax.strip(),
            section=cls._about["section"],
            availability=Availability(cls._about["ptx"], cls._about["targets"]),
            issued_by=cls._about["issued_by"],
            completed_by=cls._about["completed_by"],
            fences=cls._about["fences"],
            slots=slots,
            patterns=patterns,
            rules=rules,
            needs=cls.needs,
            positional=(*declared, *modifiers),
            traits=form_traits(
                cls.__name__,
                typing.cast("Stated", {name: cls._about[name] for name in STATED}),
                declared,
                patterns[0].fields if patterns and patterns[0].shape != "bracket" else (),
                tokens_by_field(slots),
                issued_by=cls._about["issued_by"],
                completed_by=cls._about["completed_by"],
            ),
            operands=declared,
            leading=cls._about["leading"],
            removed=cls._about["removed"],
        )
        cls.__doc__ = Documentation()  # type: ignore[assignment]
        cls.__signature__ = SignatureOf()
        suggest_names(_family(cls.__module__))
        REGISTRY.setdefault(name.split(".")[0], []).append(cls)

    # Making an instruction.

    def __init__(self, *args: OperandLike, **kwargs: Any) -> None:
        form = self.form
        if len(args) > len(form.operands):
            raise TypeError(f"{form.key} takes {len(form.operands)} operands, not {len(args)}")
        values = dict(zip(form.operands, args, strict=False))
        for name, value in kwargs.items():
            if name not in form.positional or name in values:
                known = ", ".join(form.positional)
                close = difflib.get_close_matches(name, form.positional, n=1) if name not in values else ()
                near = f"; did you mean {close[0]}?" if close else ""
                message = f"no modifier or operand {name!r}; it has {known}{near}"
                raise InstructionError(form.key, [Problem("unknown-modifier", message)])
            values[name] = value
        state = self.__dict__
        state["guard"] = None
        problems: list[Problem] = []
        for slot in {slot.field: slot for slot in form.slots}.values():
            if slot.field is not None:
                value = values.get(slot.field)
                state[slot.field] = slot.absent if value is None or value is False else value
                problems += self._slot_problems(slot, value)
        if not problems:
            for name, spec in form.operands.items():
                state[name] = coerced(values.get(name), spec, self)
            problems = [*self.modifier_problems(), *self.operand_problems(None)]
            if not errors(problems):
                problems = self._type_problems(Declarations(values.values()))
        if problems := errors(problems):
            raise InstructionError(form.key, problems)

    @staticmethod
    def _slot_problems(slot: Slot, value: Any) -> Iterator[Problem]:
        if value is None or value is False:
            if not slot.optional:
                yield Problem("missing-modifier", f"{slot.field} is required: {_choices(slot)}")
        elif value not in slot.tokens.values() or isinstance(value, bool) != slot.is_flag:
            yield Problem("unknown-modifier", f"{slot.field} must be {_choices(slot)}, not {value!r}")

    @classmethod
    def bound(cls, modifiers: Mapping[str, Any], operands: Mapping[str, Operand | None]) -> typing.Self:
        """An instruction of known parts, unchecked: recognition and enumeration make instructions so."""
        made = cls.__new__(cls)
        state = made.__dict__
        state["guard"] = None
        state.update(modifiers)
        state.update(operands)
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{self.form.key} is immutable; make another one")

    def when(self, predicate: OperandLike, *, negated: bool = False) -> typing.Self:
        """This instruction under the guard `@predicate`. Raises InstructionError for a register of another type."""
        symbol = predicate.symbol if isinstance(predicate, Declared) else None
        if symbol is not None and symbol.type is not None and symbol.type.kind != "predicate":
            message = f"the guard must be a predicate, but {predicate} is declared {symbol.type}"
            raise InstructionError(self.form.key, [Problem("guard", message)])
        made = self.bound(self.__dict__, {})
        made.__dict__["guard"] = ("!" if negated else "") + str(node(predicate))
        return made

    def unless(self, predicate: OperandLike) -> typing.Self:
        """This instruction under the guard `@!predicate`."""
        return self.when(predicate, negated=True)

    # Reading it.

    @property
    def opcode_text(self) -> str:
        """The opcode with its modifiers, in the manual's order."""
        parts = [self.form.opcode]
        for slot in self.form.slots:
            if slot.field is None:
                parts.extend(slot.tokens)
            else:
                value = getattr(self, slot.field)
                if value is not None and value is not False:
                    parts.append(slot.spelled[value])
        return ".".join(parts)

    @property
    def traits(self) -> Traits:
        """What it does: the operands and memory that it reads and writes, control flow, who takes part."""
        return self.form.traits.of(self)

    @property
    def modifiers(self) -> list[str]:
        """The modifier tokens, without dots."""
        return self.opcode_text[len(self.form.opcode) :].split(".")[1:]

    def __str__(self) -> str:
        written = []
        for pattern in self.form.patterns:
            values = [getattr(self, spec.name) for spec in pattern.fields]
            if values[0] is None:
                continue
            if pattern.shape == "bracket":
                parts = [str(value) for value in values if value is not None]
                written.append(f"[{', '.join([parts[0].strip('[]'), *parts[1:]])}]")
            elif pattern.shape == "pair" and values[1] is not None:
                written.append(str(Pair(values[0], values[1])))
            else:
                written.append(str(values[0]))
        guard = f"@{self.guard} " if self.guard else ""
        operands = " " + ", ".join(written) if written else ""
        return f"{guard}{self.opcode_text}{operands};"

    def __repr__(self) -> str:
        return f"<{self.form.key}: {self}>"

    guard: ClassVar[str | None]

    # Checking it.

    def modifier_problems(self) -> list[Problem]:
        """Rules on modifiers alone."""
        return [
            Problem(rule.code, message, part=self._blamed_modifier(rule))
            for rule in self.form.rules
            if not rule.reads_operands and (message := rule.check(self))
        ]

    def _blamed_modifier(self, rule: Rule) -> str:
        """The modifier that a rule is about: that of its name, or the only one that it reads."""
        spelled = {slot.field: slot.spelled for slot in self.form.slots if slot.field is not None}
        fields = [rule.code.partition(".")[2]] if rule.code.partition(".")[2] in spelled else rule.reads(spelled)
        value = getattr(self, fields[0]) if len(fields) == 1 else None
        return f".{spelled[fields[0]][value]}" if value is not None and value is not False else ""

    def _blamed_operand(self, rule: Rule) -> str:
        """The operand that a rule is about: that of its name, or the only one that it reads."""
        name = rule.code.partition(".")[2]
        operands = [name] if name in self.form.operands else rule.reads(self.form.operands)
        return operands[0] if len(operands) == 1 else ""

    def operand_problems(self, resolve: Resolver | None) -> list[Problem]:
        """Rules on operands; with a resolver, their declared types too."""
        problems: list[Problem] = []
        for name, spec in self.form.operands.items():
            operand = getattr(self, name)
            if operand is None:
                if spec.wanted(self.__dict__) if spec.when else not (spec.optional or self._half(spec)):
                    problems.append(Problem("operand-count", f"the operand {name} is missing"))
            elif spec.when and not spec.wanted(self.__dict__):
                problems.append(Problem("operand-count", f"the operand {name} requires the modifier .{spec.when}"))
            elif not spec.fits(operand):
                message = f"{name} must be {spec.describe()}, not {operand}"
                problems.append(Problem("operand-kind", message, operand=name))
            else:
                found = spec.problems(operand, self, resolve)
                problems.extend(replace(problem, operand=name, part=problem.part or str(operand)) for problem in found)
        if not problems:
            problems = [
                Problem(rule.code, message, operand=self._blamed_operand(rule))
                for rule in self.form.rules
                if rule.reads_operands and (message := self._broken(rule))
            ]
        return problems

    def _broken(self, rule: Rule) -> str | None:
        """What a rule on operands says; nothing where it is about constants and these are sums of registers."""
        try:
            return rule.check(self)
        except NoValueError:
            return None

    def _type_problems(self, declared: Declarations) -> list[Problem]:
        """Rules on the types of operands whose names are all declared."""
        problems: list[Problem] = []
        for name, spec in self.form.operands.items() if declared else ():
            operand = getattr(self, name)
            if operand is not None and declared.cover(operand):
                found = spec.problems(operand, self, declared)
                problems.extend(replace(problem, operand=name, part=problem.part or str(operand)) for problem in found)
        return problems

    def _half(self, spec: Specification) -> bool:
        return any(p.shape == "pair" and p.optional and p.fields[1] is spec for p in self.form.patterns)

    def demands(self, target: Target | None = None) -> tuple[str, ...]:
        """The conditions of `needs` that this instruction satisfies, with those of the target."""
        form = self.form
        if not form.needs:
            return ()
        present = {*self.modifiers, *(name for name in form.operands if getattr(self, name) is not None)}
        present.update(f"{slot.field}={getattr(self, slot.field)}" for slot in form.slots if slot.field)
        present.update(f"{name}={_plain(getattr(self, name))}" for name in form.operands)
        present.add(str(target))
        return tuple(condition for condition in form.needs if present.issuperset(condition.split()))

    def availability_problems(self, target: Target, version: tuple[int, int]) -> list[Problem]:
        """Why this target or PTX version does not have it."""
        form, problems = self.form, []
        if form.removed and form.removed.has_version(version) and form.removed.has_target(target):
            where = f"since PTX ISA {form.removed.ptx} on {form.removed.where}"
            found = f"{target} with PTX ISA {version[0]}.{version[1]}"
            problems.append(Problem("removed", f"`{form.syntax}` does not exist {where}, so not on {found}"))
        problems.extend(unavailable(form.opcode, form.availability, target, version))
        for condition in self.demands(target):
            for problem in unavailable(f"{form.opcode}: {condition}", form.needs[condition], target, version):
                problems.append(self._blaming(problem, condition))
        return problems

    def expansion_problems(self, target: Target, resolve: Resolver) -> Iterator[Problem]:
        """What ptxas takes no more on a target for which it makes functions of the instruction."""
        del target, resolve
        return iter(())

    def assembler_problems(self, version: tuple[int, int]) -> list[Problem]:
        """Why a ptxas that takes this PTX version may refuse it, though it is legal: warnings."""
        found: list[Problem] = []
        for name, spec in self.form.operands.items():
            operand = getattr(self, name)
            problem = spec.assembler_problem(operand, version) if operand is not None else None
            if problem is not None:
                found.append(replace(problem, operand=name, part=str(operand)))
        return found

    def _blaming(self, problem: Problem, condition: str) -> Problem:
        """A problem of availability, with the modifier or operand of the condition that leads to it."""
        spelled = {slot.field: slot.spelled for slot in self.form.slots if slot.field is not None}
        for word in reversed(condition.split()):
            name, _, value = word.partition("=")
            if name in self.form.operands:
                return replace(problem, operand=name)
            if word in self.modifiers:
                return replace(problem, part=f".{word}")
            if value and name in spelled:
                return replace(
                    problem, part="".join(f".{spelled[name][each]}" for each in spelled[name] if str(each) == value)
                )
        return problem

    def example_operands(self, chosen: Sequence[str] = ()) -> dict[str, Operand | None]:
        """Legal operands for these modifiers; optional ones only if required or `chosen`."""
        operands: dict[str, Operand | None] = {}
        for position, (name, spec) in enumerate(self.form.operands.items()):
            wanted = spec.wanted(self.__dict__) if spec.when else not spec.optional or name in chosen
            operands[name] = _example(spec.example(self, position)) if wanted else None
        return operands

    @classmethod
    def _choices(cls) -> list[tuple[str, list[Any]]]:
        """The modifier fields, each with all that may stand there."""
        slots = {slot.field: slot for slot in cls.form.slots if slot.field is not None}
        return [
            (name, [*([slot.absent] if slot.optional else []), *slot.tokens.values()]) for name, slot in slots.items()
        ]

    @classmethod
    def combinations(cls, start: int = 0, stop: int | None = None) -> Iterator[typing.Self]:
        """The combinations of modifiers that the syntax line allows, legal or not, without operands; or a range."""
        choices = cls._choices()
        names = [name for name, _ in choices]
        for values in itertools.islice(itertools.product(*(values for _, values in choices)), start, stop):
            yield cls.bound(dict(zip(names, values, strict=True)), {})

    @classmethod
    def combination(cls, number: int) -> typing.Self:
        """One of the `combinations`, by its place among them."""
        chosen: dict[str, Any] = {}
        for name, values in reversed(cls._choices()):
            number, at = divmod(number, len(values))
            chosen[name] = values[at]
        return cls.bound(dict(reversed(chosen.items())), {})

    @classmethod
    def combination_count(cls) -> int:
        """How many `combinations` there are."""
        return math.prod(len(values) for _, values in cls._choices())

    @classmethod
    def variants(cls, start: int = 0, stop: int | None = None) -> Iterator[typing.Self]:
        """Every legal combination of modifiers with every choice of optional operands, all with example operands.

        With a range, those of the combinations `start` to `stop`.
        """
        for made in cls.combinations(start, stop):
            yield from made.with_operands()

    def with_operands(self) -> Iterator[typing.Self]:
        """The `variants` with these modifiers; none if they are illegal."""
        if not self.modifier_problems():
            yield from self._with_operands(self._optional_choices())

    @classmethod
    def _optional_choices(cls) -> list[tuple[str, ...]]:
        optional = [name for name, spec in cls.form.operands.items() if spec.optional and not spec.when]
        return [chosen for n in range(len(optional) + 1) for chosen in itertools.combinations(optional, n)]

    def _with_operands(self, choices: Iterable[tuple[str, ...]]) -> Iterator[typing.Self]:
        for chosen in choices:
            variant = self.bound(self.__dict__, self.example_operands(chosen))
            if not errors(variant.operand_problems(None)):
                yield variant

    @classmethod
    def sample(cls, limit: int, rng: random.Random) -> list[typing.Self]:
        """Up to `limit` of the `variants`, drawn at random."""
        choices = cls._optional_choices()
        legal = cls._drawn(limit, rng, lambda made: not made.modifier_problems())
        found = [each for made in legal for each in made._with_operands(choices)]
        return found if len(found) <= limit else rng.sample(found, limit)

    @classmethod
    def sample_forbidden(cls, limit: int, rng: random.Random) -> list[typing.Self]:
        """Up to `limit` of the combinations of modifiers that a rule forbids, without operands."""
        return cls._drawn(limit, rng, lambda made: bool(made.modifier_problems()))

    @classmethod
    def _drawn(cls, limit: int, rng: random.Random, wanted: Callable[[typing.Self], bool]) -> list[typing.Self]:
        """Combinations of modifiers that are `wanted`: found by trying at random where there are very many."""
        choices = cls._choices()
        if cls.combination_count() <= 20_000:
            every = [made for made in cls.combinations() if wanted(made)]
            return every if len(every) <= limit else rng.sample(every, limit)
        found: dict[str, typing.Self] = {}
        for _ in range(200 * limit):
            made = cls.bound({name: rng.choice(values) for name, values in choices}, {})
            if wanted(made):
                found.setdefault(made.opcode_text, made)
                if len(found) == limit:
                    break
        return list(found.values())


#: Examples repeat, and operands are values.
@functools.lru_cache(maxsize=4096)
def _example(text: str) -> Operand:
    return Arguments() if text == "()" else parse_operand(text)


def errors(problems: Iterable[Problem]) -> list[Problem]:
    """The problems that make an instruction illegal: all but the warnings."""
    return [problem for problem in problems if problem.severity == "error"]


def _choices(slot: Slot) -> str:
    if slot.is_flag:
        return "True or False"
    return ", ".join(repr(value) for value in slot.tokens.values())


def _plain(operand: Operand | None) -> object:
    """The value of a constant, the operand itself otherwise."""
    if isinstance(operand, Immediate | Expression):
        with contextlib.suppress(ValueError):
            return operand.evaluate()
    return operand
