"""`ptxgen.check`: whether PTX text is legal, statement by statement, and what is wrong where it is not.

Whether an instruction is legal follows from its opcode and from what its operands stand for: the types of registers,
the values of constants. Most instructions repeat such a signature, in a file and from file to file, so legal ones are
remembered for all modules of a target and version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ptxgen import syntax
from ptxgen.collection import paused_collection
from ptxgen.files import ptx_of_dump
from ptxgen.instr.model.analyze import Analysis
from ptxgen.instr.model.difference import opcode_problems
from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.nearest import names_fix, nearest_opcode
from ptxgen.instr.model.overlooked import overlooked
from ptxgen.instr.model.places import blamed
from ptxgen.instr.model.recognize import Unrecognized, discarding, implied, once
from ptxgen.instr.model.scope import Scope
from ptxgen.instr.model.signatures import Key
from ptxgen.instr.model.special import DIRECTIVES
from ptxgen.instr.model.symbols import Problem, Severity, Symbol, title_of
from ptxgen.instr.module.abi import abi_problems
from ptxgen.instr.module.advisories import instruction_advice, module_advice
from ptxgen.instr.module.context import Context
from ptxgen.instr.module.cta_groups import group_of, group_problems
from ptxgen.instr.module.debugging import Debugging
from ptxgen.instr.module.dwarf import dwarf_problem
from ptxgen.instr.module.functions import directive_problems, pragma_problems
from ptxgen.instr.module.header import context_of, retargeted
from ptxgen.instr.module.limits import Limits, local_problems, promise_problems
from ptxgen.instr.module.linking import Linker
from ptxgen.instr.module.lists import LISTS, list_problems
from ptxgen.instr.module.parameters import parameter_problems
from ptxgen.instr.module.text import text_problems
from ptxgen.instr.module.variables import register_problems, variable_problems
from ptxgen.names import readable

#: Keys of legal instructions, by target and version.
_LEGAL: dict[Context, set[Key]] = {}
#: How many keys are remembered before all are dropped.
_MOST_REMEMBERED = 100_000

#: Opcodes with forms that ptxas advises against.
_ADVISED = ("cp.async.bulk", "mma.sp.", "shfl.", "vote.", "ld.", "st.")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding of `check`: where, a stable code, and the rule with what was found.

    `line` and `column` (both from 1) are those of the operand or modifier at fault, or of the whole statement;
    `end_column` is after its last character, on the same line.
    """

    line: int
    column: int
    code: str
    severity: Severity
    rule: str
    #: The opcode that was refused with its modifiers; empty where the fault lies elsewhere.
    opcode: str = field(default="", repr=False, compare=False)
    end_column: int = field(default=0, repr=False, compare=False)
    #: The number of operands of that opcode; None elsewhere.
    operands: int | None = field(default=None, repr=False, compare=False)

    @property
    def nearest(self) -> str:
        """The legal opcode nearest to one that was refused; empty if there is none, or the rule already says it."""
        found = nearest_opcode(self.opcode, self.operands) if self.opcode else None
        return "" if found is None or names_fix(self.rule, self.opcode, found) else found

    @property
    def message(self) -> str:
        """The class of the error, the rule with what was found, and the nearest legal form; names are demangled."""
        rule = f"{title_of(self.code)}: {readable(self.rule)}"
        return f"{rule}; the nearest legal form is {self.nearest}" if self.nearest else rule

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.severity}: {self.message} [{self.code}]"


def check(
    text_or_module: str | syntax.Module,
    target: str | None = None,
    *,
    analysis: Analysis | None = None,
    differences: bool = True,
) -> list[Diagnostic]:
    """Diagnostics of PTX text or of a parsed module; no errors among them means that the text is legal.

        >>> import ptxgen
        >>> text = ".version 8.6\\n.target sm_90a\\n.visible .entry k() { bar.synk 0; ret; }\\n"
        >>> for each in ptxgen.check(text):
        ...     print(each.line, each.code, each.nearest)
        3 unknown-modifier bar.sync

    `target` (`sm_100a`) replaces the module's own `.target`. A `warning` is about what ptxas accepts, but hardly anyone
    means. `analysis` is one of the module that others use too. Of an illegal opcode `differences` says in what it
    differs from the nearest legal one (some 20 ms each); without it, why the form with the nearest modifiers does not
    fit. A dump of `cuobjdump --dump-ptx` is taken for its module. Raises PtxSyntaxError on text that does not parse,
    ValueError for a dump without PTX, or with several modules.
    """
    if isinstance(text_or_module, syntax.Module):
        module = text_or_module
    else:
        is_text = isinstance(text_or_module, str)  # parse says what is wrong with anything else
        module = syntax.parse(ptx_of_dump(text_or_module, target) if is_text else text_or_module)
    with paused_collection():
        return list(_Checker(module, target, analysis or Analysis(module), differences).run())


class _Checker:
    """Finds what is wrong with a module, statement by statement."""

    def __init__(self, module: syntax.Module, target: str | None, analysis: Analysis, differences: bool) -> None:
        self.module, self.analysis, self.differences = module, analysis, differences
        self.context, self._header = context_of(module, target)
        self._wanted = target
        self.linker = Linker(self.context)
        self.debugging = Debugging(self.context)
        self.limits = Limits(self.context)
        self._legal = _remembered(self.context)
        #: Variables of this function in which calls so far in the text returned something.
        self._returned: set[Symbol] = set()
        self._function: syntax.Function | None = None
        #: The .cta_group of tcgen05 instructions.
        self._groups: set[str | None] = set()

    def run(self) -> Iterator[Diagnostic]:
        for place, problem in self._header:
            yield _diagnostic(place, problem)
        items = set(map(id, self.module.items))
        for statement, scope, clashes in self.analysis.steps():
            if type(statement) is syntax.Instruction:
                if found := self._instruction(statement, scope):
                    yield from found
            elif id(statement) in items:
                yield from self._item(statement, scope, clashes)
            elif type(statement) is syntax.Location:
                yield from _at(statement, self.debugging.location(statement))
            else:
                yield from _at(statement, map(_redeclared, clashes))
                if type(statement) is not syntax.Label:
                    yield from self._declaration(statement, scope)
        yield from _located(self.linker.undefined())
        yield from _located(self.debugging.unresolved(self.module))
        if "debug" in self.module.targets and (found := dwarf_problem(self.module)) is not None:
            yield from _located([found])
        if len(self._groups - {None}) > 1:
            yield from _located(group_problems(self.module))
        yield from _located(self.limits.problems(self.analysis))
        yield from _located(abi_problems(self.module, self.analysis))
        yield from _located(module_advice(self.module, self.analysis))
        yield from self._text()

    def _text(self) -> Iterator[Diagnostic]:
        """What is wrong with characters between the statements."""
        text = str(self.module)
        for offset, problem in text_problems(text):
            line = text.count("\n", 0, offset) + 1
            column = offset - text.rfind("\n", 0, offset)
            yield Diagnostic(line, column, problem.code, problem.severity, problem.message)

    def _item(self, item: syntax.Statement, scope: Scope, clashes: Iterable[str]) -> Iterator[Diagnostic]:
        """What is wrong with one item of the module, the body of a function apart."""
        match item:
            case syntax.Function():
                self._function = item
                self._returned.clear()
                yield from _at(item, self.linker.function(item))
                yield from _located(parameter_problems(item, self.context))
                yield from _located(directive_problems(item, self.context))
                self.limits.function(item)
                if item.kind == "entry":
                    yield from _located(promise_problems(item, self.context))
                yield from _at(item, map(_redeclared, clashes))
            case syntax.Variable():
                self.limits.variable(item)
                yield from _at(item, self.linker.variable(item))
                yield from _at(item, variable_problems(item, self.context, scope, in_body=False))
            case syntax.RegisterDeclaration():
                yield from _at(item, register_problems(item, self.context, in_body=False))
            case syntax.Section():
                yield from _located(self.debugging.section(item))
            case syntax.FileDirective():
                yield from _at(item, self.debugging.file(item))
            case syntax.Directive(name="alias"):
                yield from _at(item, self.linker.alias(item))
            case syntax.Directive(name="pragma"):
                yield from _at(item, pragma_problems(item, self.context, "module"))

    def _declaration(self, statement: syntax.Statement, scope: Scope) -> Iterator[Diagnostic]:
        """What is wrong with a declaration or a directive inside a function."""
        match statement:
            case syntax.RegisterDeclaration():
                yield from _at(statement, register_problems(statement, self.context, in_body=True))
            case syntax.Variable():
                self.limits.variable(statement)
                yield from _at(statement, variable_problems(statement, self.context, scope, in_body=True))
                yield from _at(statement, local_problems(statement))
            case syntax.CallPrototype():
                yield from _at(statement, self.context.lacks(".callprototype", LISTS["callprototype"]))
                yield from _located(parameter_problems(statement, self.context))
                yield from _located(directive_problems(statement, self.context))
            case syntax.Directive(name="pragma"):
                yield from _at(statement, pragma_problems(statement, self.context, "statement", self._function))
            case syntax.Directive(name="target"):
                yield from _at(statement, self._retarget(statement))
            case syntax.Directive():
                yield from _at(statement, list_problems(statement, self.context, scope))

    def _retarget(self, statement: syntax.Directive) -> list[Problem]:
        """Judge what follows by the architecture of a `.target` within a function; returns what is wrong with it."""
        context, problems = retargeted(statement, self.module, self.context)
        if self._wanted is not None:  # the caller's target stands for all of the module's
            return [problem for problem in problems if problem.code != "target"]
        self.context = self.linker.context = self.debugging.context = self.limits.context = context
        self._legal = _remembered(context)
        return problems

    def _instruction(self, statement: syntax.Instruction, scope: Scope) -> Sequence[Diagnostic]:
        """What is wrong with an instruction; the fast way out is one whose like was legal before."""
        is_call = statement.is_call
        if statement.opcode.startswith("tcgen05."):
            self._groups.add(group_of(statement.opcode))
        elif statement.opcode.startswith("setmaxnreg."):
            self.limits.setmaxnreg()
        if statement.opcode.startswith("ld.param") and (early := self._not_returned(statement, scope)):
            return [_diagnostic(statement, early)]
        if is_call:
            self._returned.update(_results(statement, scope))
        known = self.analysis.signatures.key(statement, scope)
        guard = statement.guard
        if known in self._legal and (guard is None or not any(_guard_problems(guard, scope))):
            return ()
        found = self.analysis.instruction(statement, scope)
        problems = [*_guard_problems(guard, scope)] if guard is not None else []
        problems += self.instruction(statement, found, scope)
        problems += self._special_registers(statement.operands, scope)
        if (
            known is not None
            and not problems
            and isinstance(found, Instruction)
            and not any(rule.reads_names for rule in found.form.rules)
        ):
            self._legal.add(known)
        opcode = statement.opcode if isinstance(found, Unrecognized) and not found.bound else ""
        return [_diagnostic(statement, problem, opcode, found) for problem in problems]

    def _not_returned(self, statement: syntax.Instruction, scope: Scope) -> Problem | None:
        """A load from a variable of a call that no call before it in the text returns."""
        address = statement.operands[-1] if statement.operands else None
        base = address.base if isinstance(address, syntax.Address) else None
        symbol = scope(base.text) if isinstance(base, syntax.Name) else None
        if symbol is None or (symbol.kind, symbol.space) != ("variable", "param") or symbol in self._returned:
            return None
        return Problem("call-sequence", f"{statement.opcode} of {base} requires a call before it that returns {base}")

    def instruction(
        self, statement: syntax.Instruction, found: Instruction | Unrecognized, scope: Scope
    ) -> list[Problem]:
        """What is wrong with a recognized instruction, its guard apart."""
        opcode = statement.opcode
        if isinstance(found, Unrecognized):
            return opcode_problems(statement, found) if self.differences else list(found.problems)
        problems = found.operand_problems(scope)
        if len(once(tokens := opcode.split("."))) < len(tokens):
            token = next(token for token in tokens if tokens.count(token) > 1)
            message = f"{opcode} repeats a modifier"
            problems.append(Problem("repeated-modifier", message, "warning", part=f".{token}"))
        for token in overlooked(opcode, type(found)):
            message = f"{opcode} has no modifier .{token}; ptxas ignores it"
            problems.append(Problem("overlooked-modifier", message, "warning", part=f".{token}"))
        if discarding(statement.operands) is not None and found.form.patterns[0].shape != "pair":
            message = f"{found.form.opcode} has no second result; ptxas ignores |_"
            problems.append(Problem("overlooked-result", message, "warning", part=str(statement.operands[0])))
        for token in implied(opcode):
            message = f"{found.form.opcode} requires .{token}; ptxas takes it without"
            problems.append(Problem("implied-modifier", message, "warning"))
        if self.context.target is not None:
            problems += found.availability_problems(self.context.target, self.context.version)
            if not problems:
                problems += found.expansion_problems(self.context.target, scope)
        if not problems:
            problems = found.assembler_problems(self.context.version)
            if opcode.startswith(_ADVISED):
                problems += instruction_advice(opcode, found, scope, self.context)
        return problems

    def _special_registers(self, operands: Iterable[syntax.Operand], scope: Scope) -> Iterator[Problem]:
        """Special registers that this target, PTX version or entry does not have."""
        for name in _names(operands):
            symbol = scope.kind_of(name)
            if symbol is not None and symbol.availability is not None:
                for problem in (*self.context.lacks(name, symbol.availability), *self._directive_for(name)):
                    yield replace(problem, part=name)

    def _directive_for(self, name: str) -> Iterator[Problem]:
        """The requirements of a special register on the entry that reads it."""
        wanted, function = DIRECTIVES.get(name), self._function
        if wanted is None or function is None or function.kind != "entry":
            return
        if not any(each.name == wanted and each.arguments != ("0",) for each in function.directives):
            yield Problem("directive-missing", f"an entry that reads {name} requires .{wanted} with a size")


def _remembered(context: Context) -> set[Key]:
    """The keys of legal instructions of a target and version."""
    if sum(map(len, _LEGAL.values())) > _MOST_REMEMBERED:
        _LEGAL.clear()
    return _LEGAL.setdefault(context, set())


def _results(statement: syntax.Instruction, scope: Scope) -> Iterator[Symbol]:
    """The variables that receive what a call returns."""
    operands = statement.operands
    if len(operands) > 1 and isinstance(operands[0], syntax.Arguments):
        for element in operands[0].elements:
            symbol = scope(element.text) if isinstance(element, syntax.Name) else None
            if symbol is not None:
                yield symbol


def _diagnostic(
    place: syntax.Statement | None,
    problem: Problem,
    opcode: str = "",
    found: Instruction | Unrecognized | None = None,
) -> Diagnostic:
    line, column, begin, end = 1, 1, 0, 0
    if place is not None:
        line, column = place.line, place.column
        begin, end = blamed(place, problem, found)
    code, severity, message = problem.code, problem.severity, problem.message
    count = len(place.operands) if opcode and isinstance(place, syntax.Instruction) else None
    return Diagnostic(line, column + begin, code, severity, message, opcode, column + end, count)


def _at(place: syntax.Statement, problems: Iterable[Problem]) -> Iterator[Diagnostic]:
    for problem in problems:
        yield _diagnostic(place, problem)


def _located(problems: Iterable[tuple[syntax.Statement, Problem]]) -> Iterator[Diagnostic]:
    for place, problem in problems:
        yield _diagnostic(place, problem)


def _redeclared(name: str) -> Problem:
    return Problem("redeclared", f"{name} is declared already in this block")


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
    symbol = scope.kind_of(guard.register)
    if symbol is None:
        message = f"the guard {guard.register} is not declared; it must be a .pred register"
        yield Problem("undeclared-name", message, operand="guard")
    elif symbol.kind != "register" or symbol.type is None or symbol.type.kind != "predicate":
        found = symbol.type or f"a {symbol.kind}"
        message = f"the guard must be a .pred register, but {guard.register} is {found}"
        yield Problem("operand-type", message, operand="guard")
