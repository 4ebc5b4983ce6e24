"""`lanewise`: microtests of instructions that compute a result from operands, an element a thread.

A reference is a function of plain Python values: `reference(form, a, b, c)`. Integers come as values (signed ones as
signed), everything else as words. What it returns, or each part of a tuple, is cut to the width of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microtests.harness.definition import Definition, register
from microtests.harness.draft import Draft, Tolerance
from microtests.harness.inputs import WORDS, words
from microtests.harness.numbers import signed
from ptxgen.builder import Register
from ptxgen.instr import control, integer, memory, predicate
from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.operands import ImmediateSpec, PredicateSpec, RegisterSpec, SourceSpec, VectorSpec, type_of
from ptxgen.instr.model.types import TYPES, Type

#: Elements of a microtest: two CTAs of 160 threads and one of which half has nothing to do.
COUNT, BLOCK = 400, 160
OUTPUTS = frozenset({"d", "p", "q", "f", "policy"})

Reference = Callable[..., Any]


@dataclass(frozen=True)
class Operand:
    """One operand: the types of its registers, whether it is written, and where its values come from."""

    name: str
    types: tuple[Type, ...]
    written: bool
    predicate: bool
    vector: bool


def lanewise(
    *forms: type[Instruction],
    tolerance: Callable[[Any], Tolerance | None] | Tolerance | None = None,
    only_if: Callable[[Any], bool] | None = None,
    values: Mapping[str, Callable[[Any, np.random.Generator, int], NDArray[Any]]] | None = None,
    constants: Mapping[str, Sequence[int]] | None = None,
    outputs: Iterable[str] = OUTPUTS,
    signs: bool = True,
    every: int = 1,
    unmodelled: Callable[[Any], str] | None = None,
) -> Callable[[Reference], Reference]:
    """Decorator: the function is the reference of all variants of these declarations.

    `only_if` leaves variants out, `values` makes the inputs of some operands, `constants` are the values of operands
    that must be constants. `signs` False: integers come as words. `every` takes one of so many variants. `unmodelled`
    says what of a variant the emulator does not model.
    """

    def decorate(reference: Reference) -> Reference:
        for form in forms:
            chosen = [made for made in form.variants() if only_if is None or only_if(made)]
            for made in chosen[::every]:
                for constant in _constants(made, constants or {}):
                    limits = tolerance(made) if callable(tolerance) else tolerance
                    name = _name(reference, made, constant)
                    maker = Lanes(
                        name, made, reference, limits, dict(values or {}), constant, frozenset(outputs), signs
                    )
                    register(Definition(name, maker, unmodelled(made) if unmodelled else ""))
        return reference

    return decorate


def _name(reference: Reference, made: Instruction, constant: Mapping[str, int]) -> str:
    family = reference.__module__.rpartition(".")[2]
    operands = "".join(
        f",{name}"
        for name in made.form.operands
        if made.form.operands[name].optional and getattr(made, name) is not None
    )
    given = "".join(f",{name}={value}" for name, value in constant.items())
    return f"{family}.{type(made).__name__}[{made.opcode_text}{operands}{given}]"


def _constants(made: Instruction, constants: Mapping[str, Sequence[int]]) -> list[dict[str, int]]:
    found: list[dict[str, int]] = [{}]
    for name, values in constants.items():
        found = [{**each, name: value} for each in found for value in values]
    return found


@dataclass(frozen=True)
class Lanes:
    """Drafts the kernel of one variant."""

    name: str
    made: Instruction
    reference: Reference
    tolerance: Tolerance | None
    values: dict[str, Callable[[Any, np.random.Generator, int], NDArray[Any]]]
    constants: dict[str, int]
    outputs: frozenset[str]
    signs: bool

    def operands(self) -> list[Operand]:
        """The operands that are registers."""
        found = []
        for name, spec in self.made.form.operands.items():
            if getattr(self.made, name) is None or name in self.constants or isinstance(spec, ImmediateSpec):
                continue
            is_vector = False
            if isinstance(spec, PredicateSpec):
                types = (TYPES["pred"],)
            elif isinstance(spec, RegisterSpec | SourceSpec):
                types = (type_of(spec.type, self.made),)
            elif isinstance(spec, VectorSpec):
                types, is_vector = (type_of(spec.type, self.made),) * spec.length(self.made), True
            else:
                raise TypeError(f"{self.name}: {name} is {spec.describe()}")
            found.append(Operand(name, types, name in self.outputs, isinstance(spec, PredicateSpec), is_vector))
        return found

    def data(self, operand: Operand, rng: np.random.Generator) -> list[NDArray[Any]]:
        """The values of an input, an array for each register."""
        if operand.name in self.values:
            made = self.values[operand.name](self.made, rng, COUNT)
            return [np.ascontiguousarray(made).view(WORDS[max(operand.types[0].bits, 8)])]
        if operand.predicate:
            return [rng.integers(0, 2, COUNT).astype(np.uint8)]
        return [words(type.name, type.bits, COUNT, rng) for type in operand.types]

    def __call__(self, draft: Draft) -> None:
        rng = np.random.default_rng(Definition(self.name, self).seed)
        operands = self.operands()
        inputs = {each.name: self.data(each, rng) for each in operands if not each.written}
        draft.launch(grid=-(-COUNT // BLOCK), block=BLOCK)
        index = draft.reg("b32", "index")
        draft(integer.mad(index, draft.special("ctaid.x"), BLOCK, draft.thread, half="lo", type="u32"))
        outside, end = draft.reg("pred", "outside"), draft.label("end")
        draft(predicate.setp(outside, index, COUNT, compare="ge", type="u32"))
        draft.branch(end, outside)
        registers: dict[str, list[Register]] = {}
        stores: list[tuple[Register, Register, Type]] = []
        results = _Results(self, operands, inputs)
        for operand in operands:
            registers[operand.name] = [draft.reg(_register_type(type), operand.name) for type in operand.types]
            for position, (register_, type) in enumerate(zip(registers[operand.name], operand.types, strict=True)):
                bits = max(type.bits, 8) if type.bits > 1 else 8
                if operand.written:
                    base = draft.output(
                        results.of(operand.name, position), shape=(COUNT,), dtype=WORDS[bits], tolerance=self.tolerance
                    )
                    stores.append((base, register_, type))
                else:
                    _load(
                        draft,
                        draft.offset(draft.input(inputs[operand.name][position]), index, bits // 8),
                        register_,
                        type,
                    )
        draft(self.instruction(registers, {each.name for each in operands if each.vector}))
        for base, register_, type in stores:
            _store(draft, draft.offset(base, index, max(type.bits, 8) // 8), register_, type)
        draft.place(end)
        draft(control.exit())

    def instruction(self, registers: Mapping[str, list[Register]], vectors: set[str]) -> Instruction:
        """The variant with these registers."""
        form = type(self.made)
        modifiers = {slot.field: getattr(self.made, slot.field) for slot in form.form.slots if slot.field}
        given: dict[str, Any] = {}
        for name in form.form.operands:
            if name in self.constants:
                given[name] = self.constants[name]
            elif name in registers:
                given[name] = registers[name] if name in vectors else registers[name][0]
            elif getattr(self.made, name) is not None:
                given[name] = getattr(self.made, name)
        return form(**given, **modifiers)


def elements(
    draft: Draft,
    inputs: Mapping[str, tuple[str, NDArray[Any]]],
    outputs: Mapping[str, tuple[str, Callable[[], Any]]],
    body: Callable[[dict[str, Register]], None],
) -> None:
    """A kernel in which each thread computes an element: `body` gets the registers by name.

    Inputs are (type, values), outputs (type, their expected values, computed on demand).
    """
    count = len(next(iter(inputs.values()))[1])
    draft.launch(grid=-(-count // BLOCK), block=BLOCK)
    index = draft.reg("b32", "index")
    draft(integer.mad(index, draft.special("ctaid.x"), BLOCK, draft.thread, half="lo", type="u32"))
    outside, end = draft.reg("pred", "outside"), draft.label("end")
    draft(predicate.setp(outside, index, count, compare="ge", type="u32"))
    draft.branch(end, outside)
    registers: dict[str, Register] = {}
    for name, (kind, values) in inputs.items():
        type = TYPES[kind]
        registers[name] = draft.reg(_register_type(type), name)
        _load(draft, draft.offset(draft.input(values), index, max(type.bits, 8) // 8), registers[name], type)
    for name, (kind, _) in outputs.items():
        registers.setdefault(name, draft.reg(_register_type(TYPES[kind]), name))
    body(registers)
    for name, (kind, expected) in outputs.items():
        type = TYPES[kind]
        bits = max(type.bits, 8)
        base = draft.output(_made(expected, WORDS[bits]), shape=(count,), dtype=WORDS[bits])
        _store(draft, draft.offset(base, index, bits // 8), registers[name], type)
    draft.place(end)
    draft(control.exit())


def _made(expected: Callable[[], Any], dtype: Any) -> Callable[[], NDArray[Any]]:
    mask = (1 << np.dtype(dtype).itemsize * 8) - 1
    return lambda: np.array([int(each) & mask for each in expected()], dtype)


class _Results:
    """The reference's results, computed once."""

    def __init__(self, lanes: Lanes, operands: Sequence[Operand], inputs: Mapping[str, list[NDArray[Any]]]) -> None:
        self.lanes, self.operands, self.inputs = lanes, operands, inputs
        self._made: dict[tuple[str, int], NDArray[Any]] = {}

    def of(self, name: str, position: int) -> Callable[[], NDArray[Any]]:
        def made() -> NDArray[Any]:
            if not self._made:
                self._compute()
            return self._made[name, position]

        return made

    def _compute(self) -> None:
        given = {}
        for operand in self.operands:
            if operand.written:
                continue
            columns = [
                [_value(int(word), type, self.lanes.signs) for word in column]
                for column, type in zip(self.inputs[operand.name], operand.types, strict=True)
            ]
            given[operand.name] = list(zip(*columns, strict=True)) if operand.vector else columns[0]
        names = list(given)
        written = [
            (each.name, position, type)
            for each in self.operands
            if each.written
            for position, type in enumerate(each.types)
        ]
        rows: list[list[int]] = []
        for values in zip(*given.values(), strict=True) if given else [()] * COUNT:
            answer = self.lanes.reference(
                self.lanes.made, **dict(zip(names, values, strict=True)), **self.lanes.constants
            )
            rows.append(list(answer) if isinstance(answer, tuple | list) else [answer])
        for column, (name, position, type) in enumerate(written):
            bits = type.bits if type.bits > 1 else 8
            mask = (1 << type.bits) - 1
            array = np.array([int(row[column]) & mask for row in rows], WORDS[bits])
            self._made[name, position] = array


def _value(word: int, type: Type, signs: bool) -> int:
    return signed(word, type.bits) if signs and type.kind == "signed" else word


def _register_type(type: Type) -> str:
    return "pred" if type.bits == 1 else f"b{type.bits}"


def _load(draft: Draft, place: Register, register: Register, type: Type) -> None:
    kind: Any = f"b{type.bits}"
    if type.bits > 1:
        draft(memory.ld(register, f"[{place}]", space="global", type=kind))
        return
    word = draft.reg("b32", "word")
    draft(memory.ld(word, f"[{place}]", space="global", type="u8"))
    draft(predicate.setp(register, word, 0, compare="ne", type="u32"))


def _store(draft: Draft, place: Register, register: Register, type: Type) -> None:
    kind: Any = f"b{type.bits}"
    if type.bits == 1:
        draft(memory.st(f"[{place}]", draft.as_word(register), space="global", type="u8"))
    else:
        draft(memory.st(f"[{place}]", register, space="global", type=kind))


__all__ = ["COUNT", "Lanes", "elements", "lanewise"]
