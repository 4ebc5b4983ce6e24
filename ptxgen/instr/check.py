"""`ptxgen.check`: whether PTX text is legal, statement by statement, and what is wrong where it is not.

Whether an instruction is legal follows from its opcode and from what its operands stand for: the types of registers,
the values of constants. Most instructions of a file repeat such a signature, so legal ones are remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ptxgen import syntax
from ptxgen.instr.form import Instruction
from ptxgen.instr.nearest import nearest_opcode
from ptxgen.instr.operands import Problem, Severity
from ptxgen.instr.recognise import Unrecognised, once, recognise
from ptxgen.instr.scope import Scope, declare, declare_parameters
from ptxgen.instr.symbols import TextureMode, unavailable
from ptxgen.instr.targets import Target, TargetError, options_problem, parse_target, parse_version, target_problem

#: What an operand stands for, without its names; None where that says too little.
Signature = tuple[object, ...] | None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding of `check`: where (1-based line and column), a stable code, and the rule with what was found."""

    line: int
    column: int
    code: str
    severity: Severity
    rule: str
    #: The opcode that was refused with its modifiers; empty where the fault lies elsewhere.
    opcode: str = field(default="", repr=False, compare=False)

    @property
    def nearest(self) -> str:
        """The legal opcode with modifiers that is nearest to one that was refused; empty if there is none to name."""
        return (nearest_opcode(self.opcode) or "") if self.opcode else ""

    @property
    def message(self) -> str:
        """A sentence that says the rule, what was found, and the nearest legal form."""
        return f"{self.rule}; the nearest legal form is {self.nearest}" if self.nearest else self.rule

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.severity}: {self.message} [{self.code}]"


def check(text_or_module: str | syntax.Module, target: str | None = None) -> list[Diagnostic]:
    """Diagnostics of PTX text or of a parsed module; no errors among them means that the text is legal.

    `target` (`sm_100a`) replaces the module's own `.target`. A `warning` with code `not-declared` marks an instruction
    that ptxgen does not know yet. Raises PtxSyntaxError on text that does not parse.
    """
    module = syntax.parse(text_or_module) if isinstance(text_or_module, str) else text_or_module
    return list(_Checker(module, target).run())


class _Checker:
    def __init__(self, module: syntax.Module, target: str | None) -> None:
        self.module = module
        self.wanted_target = target
        self.target: Target | None = None
        self.version = (99, 0)
        independent = "texmode_independent" in module.targets
        self.texture_mode: TextureMode = "independent" if independent else "unified"
        self._legal: set[tuple[object, ...]] = set()

    def run(self) -> Iterator[Diagnostic]:
        yield from self._header()
        scope = Scope(texture_mode=self.texture_mode)
        for item in self.module.items:
            declare(scope, item)
        for function in self.module.functions:
            if function.body is not None:
                inner = Scope(scope)
                declare_parameters(inner, function)
                yield from self._block(function.body, inner)

    def _header(self) -> Iterator[Diagnostic]:
        """Reads .version and .target, and says what is wrong with them."""
        module = self.module
        places = {item.name: item for item in reversed(module.items) if isinstance(item, syntax.Directive)}

        def problem(directive: str, code: str, message: str) -> Diagnostic:
            place = places.get(directive)
            return Diagnostic(place.line if place else 1, place.column if place else 1, code, "error", message)

        try:
            if module.version:
                self.version = parse_version(module.version)
        except TargetError as error:
            yield problem("version", "ptx-version", str(error))
        written = self.wanted_target or module.target
        try:
            self.target = parse_target(written) if written else None
        except TargetError as error:
            yield problem("target", "target", str(error))
        if self.target is not None and (message := target_problem(self.target, self.version)):
            yield problem("target", "target", message)
        if message := options_problem(module.targets[1:]):
            yield problem("target", "target", message)

    def _block(self, block: syntax.Block, outer: Scope) -> Iterator[Diagnostic]:
        scope = Scope(outer)
        declare(scope, *block.statements)
        signatures: dict[str, Signature] = {}
        legal = self._legal
        for statement in block.statements:
            if isinstance(statement, syntax.Instruction):
                key: list[object] | None = [statement.opcode, statement.guard is None]
                for operand in statement.operands:
                    text = str(operand)
                    if text not in signatures:
                        signatures[text] = _signature(operand, scope)
                    signature = signatures[text]
                    if signature is None:
                        key = None
                        break
                    key.append(signature)
                known = None if key is None else tuple(key)
                guard = statement.guard
                if known in legal and (guard is None or not any(_guard_problems(guard, scope))):
                    continue
                found = recognise(statement)
                problems = [*_guard_problems(guard, scope)] if guard is not None else []
                problems += self.instruction(statement.opcode, found, scope)
                problems += self._special_registers(statement.operands, scope)
                if (
                    known is not None
                    and not problems
                    and isinstance(found, Instruction)
                    and not any(rule.reads_operands for rule in found.form.rules)
                ):
                    legal.add(known)
                opcode = statement.opcode if isinstance(found, Unrecognised) and not found.bound else ""
                for problem in problems:
                    yield Diagnostic(
                        statement.line, statement.column, problem.code, problem.severity, problem.message, opcode
                    )
            elif isinstance(statement, syntax.Block):
                yield from self._block(statement, scope)

    def instruction(self, opcode: str, found: Instruction | Unrecognised, scope: Scope) -> list[Problem]:
        """What is wrong with a recognised instruction, its guard apart."""
        if isinstance(found, Unrecognised):
            return list(found.problems)
        problems = found.operand_problems(scope)
        if len(once(tokens := opcode.split("."))) < len(tokens):
            problems.append(Problem("repeated-modifier", f"a modifier of {opcode} is given twice", "warning"))
        if self.target is not None:
            problems += found.availability_problems(self.target, self.version)
        return problems

    def _special_registers(self, operands: Iterable[syntax.Operand], scope: Scope) -> Iterator[Problem]:
        """Special registers that this target or PTX version does not have."""
        for name in _names(operands):
            symbol = scope(name)
            if symbol is not None and symbol.availability is not None:
                yield from unavailable(name, symbol.availability, self.target, self.version)


def _names(operands: Iterable[syntax.Operand]) -> Iterator[str]:
    """The names that stand for registers in operands; addresses have no special registers."""
    for operand in operands:
        match operand:
            case syntax.Name():
                yield operand.text
            case syntax.Vector():
                yield from _names(operand.elements)
            case syntax.Negation():
                yield from _names([operand.operand])


def _guard_problems(guard: syntax.Guard, scope: Scope) -> Iterator[Problem]:
    symbol = scope(guard.register)
    if symbol is None:
        yield Problem("undeclared-name", f"the guard {guard.register} is not declared; it must be a .pred register")
    elif symbol.kind != "register" or symbol.type is None or symbol.type.kind != "predicate":
        found = symbol.type or f"a {symbol.kind}"
        yield Problem("operand-type", f"the guard must be a .pred register, but {guard.register} is {found}")


def _signature(operand: syntax.Operand, scope: Scope) -> Signature:
    """What the rules of operands can tell of an operand."""
    match operand:
        case syntax.Name():
            symbol = scope(operand.text)
            if symbol is None:
                return ("_",) if operand.text == "_" else None
            return (
                symbol.kind,
                symbol.type,
                symbol.space,
                symbol.vector,
                symbol.widths,
                symbol.availability,
                symbol.unified,
                operand.component,
            )
        case syntax.Immediate():
            return (operand.text,)
        case syntax.Address():
            shape = "[].unified" if operand.unified else "[+" if operand.has_offset else "["
            return _combined(shape, [operand.base, *operand.more], scope)
        case syntax.Vector():
            return _combined("{", operand.elements, scope)
        case syntax.Negation():
            return _combined(operand.operator, [operand.operand], scope)
        case syntax.Pair():
            return _combined("|", [operand.first, operand.second], scope)
    return None


def _combined(shape: str, parts: Iterable[syntax.Operand], scope: Scope) -> Signature:
    signatures = [_signature(part, scope) for part in parts]
    return None if None in signatures else (shape, *signatures)
