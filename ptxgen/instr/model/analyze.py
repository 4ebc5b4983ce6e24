"""One analysis of a module's text: scopes and recognized instructions. `check` and the emulator share it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ptxgen import syntax
from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.recognize import Recognized, Unrecognized, recognized
from ptxgen.instr.model.scope import Scope, declare, declare_labels, declare_parameters, list_behind, list_symbol
from ptxgen.instr.model.signatures import Key, Signatures
from ptxgen.instr.model.symbols import Symbol
from ptxgen.instr.module.header import texture_mode_of

#: Declarations of instructions by their keys.
_RECOGNIZED: dict[Key, Recognized] = {}
#: How many are remembered before all are dropped.
_MOST_REMEMBERED = 100_000


class Step(NamedTuple):
    """A statement of the pass with the scope of its names, which has what the text declares up to here.

    The scope of a function is that of its parameters and of its body. `clashes` are the names that the statement
    declares again.
    """

    statement: syntax.Statement
    scope: Scope
    clashes: Sequence[str] = ()


class Analysis:
    """What the text of a module says: the scopes of its names, and which instruction each statement is.

    `check` makes the pass, and what others ask later is kept: each statement is recognized once.
    """

    def __init__(self, module: syntax.Module) -> None:
        self.module = module
        self._scopes: dict[int, Scope] = {}
        self._instructions: dict[int, Instruction | Unrecognized] = {}
        #: The declarations of statements by their `id`, as far as anybody has asked for them.
        self._declarations: dict[int, Recognized] = {}
        self.signatures = Signatures()

    @property
    def declarations(self) -> Mapping[int, Recognized]:
        """The declarations of statements by their `id`, as far as anybody has asked for them."""
        return self._declarations

    def recall(self, declarations: Mapping[int, Recognized]) -> None:
        """Take over what an analysis of the same text has found."""
        self._declarations.update(declarations)

    def instruction(self, statement: syntax.Instruction, scope: Scope) -> Instruction | Unrecognized:
        """The instruction that a statement is in its scope, or why it is none."""
        found = self._instructions.get(id(statement))
        if found is None:
            found = self._instructions[id(statement)] = self._recognized(statement, scope)
        return found

    def _recognized(self, statement: syntax.Instruction, scope: Scope) -> Instruction | Unrecognized:
        found = self._declarations.get(id(statement))
        if found is not None:
            return found.of(statement)
        key = self.signatures.key(statement, scope)
        found = _RECOGNIZED.get(key) if key is not None else None
        if found is None:
            made = recognized(statement, scope)
            if isinstance(made, Unrecognized):
                return made
            found = made
            if key is not None and not made.by_names:
                if len(_RECOGNIZED) > _MOST_REMEMBERED:
                    _RECOGNIZED.clear()
                _RECOGNIZED[key] = made
        self._declarations[id(statement)] = found
        return found.of(statement)

    def scope(self, of: syntax.Module | syntax.Function | syntax.Block) -> Scope:
        """The names that a module, a function or an inner block declares, and those around it."""
        if not self._scopes:
            for _ in self.steps():
                pass
        return self._scopes[id(of)]

    def steps(self) -> Iterator[Step]:
        """The pass: all statements in the order of the text, since a name must be declared before it is used."""
        scope = self._scopes[id(self.module)] = Scope(texture_mode=texture_mode_of(self.module))
        for item in self.module.items:
            declare(scope, item)
            if isinstance(item, syntax.Function):
                inner = self._scopes[id(item)] = Scope(scope)
                yield Step(item, inner, declare_parameters(inner, item))
                if item.body is not None:
                    yield from self._block(item.body, inner)
            else:
                yield Step(item, scope)

    def _block(self, block: syntax.Block, scope: Scope) -> Iterator[Step]:
        """The statements inside `{ }`, whose names are those of `scope`."""
        self._scopes[id(block)] = scope
        statements = block.statements
        declare_labels(scope, statements)
        for index, statement in enumerate(statements):
            if type(statement) in (syntax.Instruction, syntax.Location):
                yield Step(statement, scope)
            elif type(statement) is syntax.Label:
                behind = list_behind(statements, index)
                named = Symbol(statement.name, "label")
                clash = scope.add(named if behind is None else list_symbol(scope, statement.name, behind))
                yield Step(statement, scope, () if clash is None else (clash,))
            elif type(statement) is syntax.Block:
                yield from self._block(statement, Scope(scope))
            else:
                clashes = declare(scope, statement)
                self.signatures.forget(scope)
                yield Step(statement, scope, clashes)
