"""What the operands of an instruction stand for, without their names: instructions with the same key are alike.

Most instructions of a text, and of many texts, repeat such a key, so that what follows from it is remembered: which
declaration an instruction is, and that it is legal.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from ptxgen import syntax
from ptxgen.instr.model.scope import Scope
from ptxgen.instr.model.special import DIRECTIVES
from ptxgen.instr.model.symbols import Symbol

#: The opcode, whether there is no guard, and the numbers of the operands' signatures.
Key = tuple[object, ...]

#: What an operand stands for, without its names.
_Signature = tuple[object, ...]
#: Numbers of signatures, since comparing those takes long; a number is never used again.
_NUMBERS: dict[_Signature, int] = {}
_NUMBER = itertools.count()
#: How many signatures have numbers before all are dropped.
_MOST_NUMBERED = 100_000


class Signatures:
    """The keys of the instructions of a module."""

    def __init__(self) -> None:
        #: The numbers of the signatures of operands by scope and text, -1 for what has none.
        self._found: dict[Scope, dict[str, int]] = {}
        self._keys: dict[int, Key | None] = {}
        #: The numbers of the signatures of names without a component by the `id` of their symbols, which are kept.
        self._symbols: dict[int, tuple[Symbol, int]] = {}
        if len(_NUMBERS) > _MOST_NUMBERED:
            _NUMBERS.clear()

    def forget(self, scope: Scope) -> None:
        """A scope has more names from here on, or there are other scopes."""
        self._found.pop(scope, None)

    def key(self, statement: syntax.Instruction, scope: Scope) -> Key | None:
        """What the verdict on an instruction depends on, with the target; None if that is not known."""
        known = self._keys.get(id(statement), ())
        if known != ():
            return known
        found = self._keys[id(statement)] = self._key(statement, scope)
        return found

    def _key(self, statement: syntax.Instruction, scope: Scope) -> Key | None:
        if statement.is_call:
            return None  # it follows from the names
        numbers = self._found.get(scope)
        if numbers is None:
            numbers = self._found[scope] = {}
        key: list[object] = [statement.opcode, statement.guard is None]
        for operand in statement.operands:
            text = str(operand)
            number = numbers.get(text)
            if number is None:
                number = numbers[text] = self._number(operand, scope)
            if number < 0:
                return None
            key.append(number)
        return tuple(key)

    def _number(self, operand: syntax.Operand, scope: Scope) -> int:
        """The number of what rules can use of an operand; -1 where that says too little."""
        match operand:
            case syntax.Name():
                return self._name(operand, scope)
            case syntax.Immediate():
                return _number((operand.text,))
            case syntax.Address(offset=offset) if offset >= 0:
                shape = "[].unified" if operand.unified else "[+" if operand.has_offset else "["
                return self._combined(shape, (operand.base, *operand.more), scope)
            case syntax.Vector():
                return self._combined("{", operand.elements, scope)
            case syntax.Negation():
                return self._combined(operand.operator, (operand.operand,), scope)
            case syntax.Pair():
                return self._combined("|", (operand.first, operand.second), scope)
        return -1

    def _combined(self, shape: str, parts: Iterable[syntax.Operand], scope: Scope) -> int:
        numbers = [self._number(part, scope) for part in parts]
        return -1 if -1 in numbers else _number((shape, *numbers))

    def _name(self, operand: syntax.Name, scope: Scope) -> int:
        if operand.text in DIRECTIVES:
            return -1  # the entry decides
        symbol = scope.kind_of(operand.text)
        if symbol is None:
            return _number(("_",)) if operand.text == "_" else -1
        component = operand.component
        known = self._symbols.get(id(symbol)) if component is None else None
        if known is not None and known[0] is symbol:
            return known[1]
        number = _number((
            symbol.kind,
            symbol.type,
            symbol.space,
            symbol.vector,
            symbol.size is None,
            symbol.widths,
            symbol.availability,
            symbol.unified,
            component,
        ))  # fmt: skip
        if component is None:
            self._symbols[id(symbol)] = symbol, number
        return number


def _number(signature: _Signature) -> int:
    number = _NUMBERS.get(signature)
    if number is None:
        number = _NUMBERS[signature] = next(_NUMBER)
    return number
