"""What an entry reaches: the functions that it may run, and the module's variables that these name.

ptxas counts as used what any statement names, in code that never runs too. A function is reached if it is named, if a
variable that is named has its address as initial value, or if a pointer is called anywhere and the module takes its
address (measured, ptxas 13.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxgen import syntax
from ptxgen.instr.model.analyze import Analysis
from ptxgen.instr.model.recognize import traits_of
from ptxgen.instr.model.scope import Scope
from ptxgen.instr.model.symbols import Symbol


def operand_names(operand: syntax.Operand) -> Iterator[str]:
    """Every name in an operand, at any depth."""
    match operand:
        case syntax.Name():
            yield operand.text
        case syntax.Vector() | syntax.Arguments() | syntax.Initializer():
            yield from (name for each in operand.elements for name in operand_names(each))
        case syntax.Expression():
            yield from (name for each in operand.operands for name in operand_names(each))
        case syntax.Address():
            yield from (name for each in (operand.base, *operand.more) for name in operand_names(each))
        case syntax.Pair():
            yield from operand_names(operand.first)
            yield from operand_names(operand.second)
        case syntax.Negation():
            yield from operand_names(operand.operand)
        case syntax.Subscript():
            yield from operand_names(operand.base)


class Reach:
    """The functions of a module with a body, and which of them each entry reaches."""

    def __init__(self, analysis: Analysis) -> None:
        module = analysis.module
        self._analysis = analysis
        self._scope = analysis.scope(module)
        self._bodies = {each.name: each for each in module.functions if each.body is not None}
        for each in module.items:
            if isinstance(each, syntax.Directive) and each.name == "alias" and each.arguments[1] in self._bodies:
                self._bodies[each.arguments[0]] = self._bodies[each.arguments[1]]
        #: Functions in the initial values of the module's variables, by the variable's name.
        self._tables: dict[str, set[str]] = {}
        for item in module.items:
            if isinstance(item, syntax.Variable):
                for each in item.declarators:
                    names = set(operand_names(each.initializer)) if each.initializer is not None else set[str]()
                    self._tables[each.name] = names & self._bodies.keys()
        self._taken = {name for names in self._tables.values() for name in names}
        #: The names in the operands of instructions, by the `id` of those.
        self._names: dict[int, set[str]] = {}
        for function in module.functions:
            for statement in instructions(function):
                if not statement.is_call:
                    self._taken |= self._bodies.keys() & self._names_of(statement)

    def _names_of(self, statement: syntax.Instruction) -> set[str]:
        found = self._names.get(id(statement))
        if found is None:
            names = {name for operand in statement.operands for name in operand_names(operand)}
            found = self._names[id(statement)] = names
        return found

    def functions(self, entry: syntax.Function) -> list[syntax.Function]:
        """The entry, then the functions that it reaches, each once."""
        found, waiting = {entry.name: entry}, [entry]
        while waiting:
            for name in self._named(waiting.pop(0)):
                function = self._bodies[name]
                if function.name not in found and function.kind != "entry":
                    found[function.name] = function
                    waiting.append(function)
        return list(found.values())

    def calls_itself(self, function: syntax.Function) -> bool:
        """Whether direct calls lead from a function back to it."""
        seen: set[str] = set()
        waiting = [function]
        while waiting:
            for statement in instructions(waiting.pop()):
                for name in sorted(self._names_of(statement) & self._bodies.keys()) if statement.is_call else ():
                    called = self._bodies[name]
                    if called.name == function.name:
                        return True
                    if called.name not in seen:
                        seen.add(called.name)
                        waiting.append(called)
        return False

    def _named(self, function: syntax.Function) -> Iterator[str]:
        for statement in instructions(function):
            names = self._names_of(statement)
            yield from sorted(names & self._bodies.keys())
            for table in names & self._tables.keys():
                yield from sorted(self._tables[table])
            if statement.is_call and not names & self._bodies.keys():
                yield from sorted(self._taken)

    def symbols(self, function: syntax.Function) -> Iterator[tuple[str, Symbol]]:
        """The names of the module's variables and of parameters in the body of a function, with their symbols."""
        if function.body is not None:
            yield from self._in_block(function.body, self._analysis.scope(function))

    def _in_block(self, block: syntax.Block, scope: Scope) -> Iterator[tuple[str, Symbol]]:
        for statement in block.statements:
            if isinstance(statement, syntax.Block):
                yield from self._in_block(statement, self._analysis.scope(statement))
            elif isinstance(statement, syntax.Instruction):
                for name in self._names_of(statement):
                    symbol = scope.kind_of(name)
                    if symbol is not None and (symbol.kind == "parameter" or symbol is self._scope.kind_of(name)):
                        yield name, symbol


def instructions(function: syntax.Function) -> Iterator[syntax.Instruction]:
    """The instructions of a function, inner blocks included."""
    return (each for each in syntax.walk([function]) if isinstance(each, syntax.Instruction))


def ends_flow(statement: syntax.Instruction) -> bool:
    """Whether control never passes an instruction."""
    traits = traits_of(statement.opcode)
    return statement.guard is None and traits is not None and traits.control in ("branch", "exit", "return", "trap")


def live(statements: Iterable[syntax.Statement]) -> Iterator[syntax.Instruction]:
    """The instructions of a block and its inner blocks that control can reach, by jumps alone."""
    reached = True
    for statement in statements:
        if isinstance(statement, syntax.Label):
            reached = True
        elif isinstance(statement, syntax.Block):
            yield from live(statement.statements)
            reached = True
        elif isinstance(statement, syntax.Instruction) and reached:
            yield statement
            reached = not ends_flow(statement)
