"""The Python call that builds an instruction: as text, its signature, and the docstring of a declaration."""

from __future__ import annotations

import inspect
import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from ptxgen.instr.model.form import Form, Instruction
from ptxgen.instr.model.glossary import meaning
from ptxgen.instr.model.operands import Specification, VectorSpec
from ptxgen.instr.model.syntax_line import Slot
from ptxgen.syntax import Address, Arguments, Immediate, Operand, Vector, parse_operand

#: Combinations of modifiers that are looked at for the lengths of vectors.
_SAMPLED = 2000
_WIDTH = 100


def python_call(made: Instruction, operands: Mapping[str, str] | None = None) -> str:
    """The call that builds an instruction: `integer.add("%d", "%a", 1, type="u32")`, after `from ptxgen.instr import`.

    Operands that are missing are left out; with `operands`, these texts stand for them instead.
    """
    form = made.form
    given = operands or {
        name: python_operand(operand) for name in form.operands if (operand := getattr(made, name)) is not None
    }
    written: list[str] = []
    in_order = True
    for name in form.operands:
        if name not in given:
            in_order = False
        else:
            written.append(given[name] if in_order else f"{name}={given[name]}")
    for name, slot in _fields(form).items():
        value = getattr(made, name)
        if value != slot.absent:
            written.append(f"{name}={value!r}".replace("'", '"'))
    guard = ""
    if made.guard:
        negated = made.guard.startswith("!")
        guard = f'.{"unless" if negated else "when"}("{made.guard.lstrip("!")}")'
    return f"{form.key}({', '.join(written)}){guard}"


def python_operand(operand: Operand) -> str:
    """An operand as a typed call takes it: names and addresses as text, vectors as lists, decimal integers bare."""
    if isinstance(operand, Vector | Arguments):
        return f"[{', '.join(map(python_operand, operand.elements))}]"
    text = str(operand).strip()
    if isinstance(operand, Address) and text.endswith("]"):
        text = text[1:-1].strip()
    if isinstance(operand, Immediate) and re.fullmatch(r"0|[1-9][0-9]*", text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def generic_call(made: Instruction) -> str:
    """The call with the names of the operands that these modifiers require: `integer.add(d, a, b, type="u32")`."""
    wanted = {
        name: name
        for name, spec in made.form.operands.items()
        if (spec.wanted(made.__dict__) if spec.when else not spec.optional)
    }
    return python_call(made, wanted or None)


def signature(cls: type[Instruction]) -> inspect.Signature:
    """The parameters of a declaration: operands in order, then modifiers by keyword with the values that they take."""
    form = cls.form
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=None if spec.optional or spec.when or _is_second(form, spec) else inspect.Parameter.empty,
        )
        for name, spec in form.operands.items()
    ]
    seen_default = False
    for index, each in enumerate(parameters):
        seen_default = seen_default or each.default is None
        if seen_default:  # what follows an optional operand can only be optional, or given by keyword
            parameters[index] = each.replace(default=None)
    for name, slot in _fields(form).items():
        annotation: Any = bool if slot.is_flag else Literal[tuple(dict.fromkeys(slot.tokens.values()))]
        if slot.optional and not slot.is_flag:
            annotation = annotation | None
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=slot.absent if slot.optional else inspect.Parameter.empty,
                annotation=annotation,
            )
        )
    return inspect.Signature(parameters)


def signature_text(cls: type[Instruction]) -> str:
    """`tma.load(dst_mem, ..., *, dim: 1|2|3|4|5, dst: "shared::cluster"|"shared::cta", load_mode: ... = None)`."""
    parts, keywords = [], False
    for each in signature(cls).parameters.values():
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not keywords:
            keywords = True
            parts.append("*")
        text = each.name
        if keywords:
            text += f": {_values(_fields(cls.form)[each.name])}"
        if each.default is not inspect.Parameter.empty:
            text += f" = {each.default}" if keywords else f"={each.default}"
        parts.append(text)
    return f"{cls.form.key}({', '.join(parts)})"


def docstring(cls: type[Instruction]) -> str:
    """What `help()` shows: the summary, the syntax, operands with their shapes, modifiers, and an example."""
    form = cls.form
    where = f"PTX ISA {form.section}, since {form.availability.ptx}, on {form.availability.targets}"
    example = example_of(cls)
    lines = [form.summary, "", *_wrapped(f"PTX: {form.syntax}"), *_wrapped(where)]
    lines += _wrapped(f"Issued by: one {form.issued_by}. Completed by: {form.completed_by}.")
    if form.operands:
        lines += ["", "Operands (PTX text, numbers, lists for vectors, registers of a builder):"]
        for name, spec in form.operands.items():
            lines += _wrapped(f"{name}: {_shape(spec, example)}", "    ")
    if fields := _fields(form):
        lines += ["", "Modifiers:"]
        for name, slot in fields.items():
            lines += _wrapped(f"{name}: {_values(slot)}{_meaning(form, name, slot)}", "    ")
    if example is not None:
        family = form.key.partition(".")[0]
        lines += ["", "Example:", f"    >>> from ptxgen.instr import {family}"]
        lines += [f"    >>> print({python_call(example)})", f"    {example}"]
    lines += ["", "Raises InstructionError, which names every broken rule."]
    return "\n".join(lines)


def example_of(cls: type[Instruction]) -> Instruction | None:
    """A legal instruction of a declaration, whose registers are called like its operands."""
    found = next(cls.variants(), None)
    if found is None:
        return None
    named = {name: _named(name, getattr(found, name)) for name in cls.form.operands}
    made = cls.bound(found.__dict__, named)
    return found if made.operand_problems(None) else made


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text.replace("|", " | ") if len(text) > _WIDTH else text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


_EXAMPLE_REGISTER = re.compile(r"%x_\w+")


def _named(name: str, operand: Operand | None) -> Operand | None:
    if operand is None or isinstance(operand, Arguments):
        return operand
    registers = list(dict.fromkeys(_EXAMPLE_REGISTER.findall(str(operand))))
    one = len(registers) == 1 and not isinstance(operand, Vector)
    names = {each: f"%{name}" if one else f"%{name}{index}" for index, each in enumerate(registers)}
    return parse_operand(_EXAMPLE_REGISTER.sub(lambda found: names[found[0]], str(operand)))


def _fields(form: Form) -> dict[str, Slot]:
    return {slot.field: slot for slot in form.slots if slot.field is not None}


def _is_second(form: Form, spec: Specification) -> bool:
    return any(each.shape == "pair" and each.optional and each.fields[1] is spec for each in form.patterns)


def _values(slot: Slot) -> str:
    if slot.is_flag:
        return "True|False"
    return "|".join(_quoted(value) for value in dict.fromkeys(slot.tokens.values()))


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _meaning(form: Form, name: str, slot: Slot) -> str:
    if slot.is_flag:
        [token] = slot.tokens
        words = meaning(form.key, name, token)
        return f", .{token}" + (f": {words}" if words else "")
    return ", optional" if slot.optional else ""


def _shape(spec: Specification, example: Instruction | None) -> str:
    text = spec.describe() if example is None else spec.explain(example)
    if isinstance(spec, VectorSpec) and callable(spec.count) and example is not None:
        lengths = sorted({spec.length(made) for made in _near(example)} - {0})
        if len(lengths) > 1:
            some = ", ".join(map(str, lengths[:-1])) if len(lengths) < 9 else f"{lengths[0]} to {lengths[-2]}"
            text = re.sub(r"^\d+", f"{some} or {lengths[-1]}", text)
    text = re.sub(r"^1 registers", "1 register", text)
    if spec.when:
        return f"{text}; only with {spec.when}"
    return f"{text}, optional" if spec.optional else text


def _near(example: Instruction) -> Iterator[Instruction]:
    """The legal combinations of modifiers that differ from an example in at most two fields."""
    fields = _fields(example.form)
    for one, two in itertools.combinations_with_replacement(fields, 2):
        for first, second in itertools.product(fields[one].tokens.values(), fields[two].tokens.values()):
            made = example.bound({**example.__dict__, one: first, two: second}, {})
            if not made.modifier_problems():
                yield made


def plainest(cls: type[Instruction], given: Mapping[str, Any]) -> list[Instruction]:
    """Legal combinations of modifiers with those already `given` and no optional ones, the most usual first."""
    fields = _fields(cls.form)
    choices: list[list[Any]] = []
    for name, slot in fields.items():
        values = list(dict.fromkeys(slot.tokens.values()))
        if name in given:
            choices.append([given[name]])
        elif slot.optional:
            choices.append([slot.absent])
        else:
            choices.append(sorted(values, key=_unusual))
    for options in (choices, [[given[name]] if name in given else values for name, values in cls._choices()]):
        made = (
            cls.bound(dict(zip(fields, values, strict=True)), {})
            for values in itertools.islice(itertools.product(*options), _SAMPLED)
        )
        found = [each for each in made if not each.modifier_problems()]
        if found:
            return sorted(found, key=lambda each: sum(_unusual(getattr(each, name)) for name in fields))
    return []


def spellings(cls: type[Instruction], given: Mapping[str, Any], count: int = 2) -> list[str]:
    """Legal opcodes of a declaration with modifiers already `given`: the plainest, and others that are common."""
    found = plainest(cls, given)
    if not found:
        return []
    plain, texts = found[0], [found[0].opcode_text]
    for name, slot in _fields(cls.form).items():
        for value in slot.tokens.values():
            if slot.optional and name not in given and value in _USUAL_OPTIONS:
                made = cls.bound({**plain.__dict__, name: value}, {})
                texts += [] if made.modifier_problems() else [made.opcode_text]
    texts += [made.opcode_text for made in found[1:]]
    return list(dict.fromkeys(texts))[:count]


#: Values that stand first in examples.
_USUAL = (
    *("f32", "b32", "u32", "bf16", "f16", "rn", "row", "col", "32x32b", "128x256b", 1, 2, 4, 128),
    *("global", "shared::cta", "shared::cluster", "shared", "cta", "gpu", "acquire"),
)
_USUAL_OPTIONS = ("global", "shared::cta", "tile")


def _unusual(value: Any) -> int:
    return 0 if value is None or value is False or value in _USUAL else 1
