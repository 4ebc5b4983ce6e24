"""One analysis of a module's text: scopes, recognized instructions, diagnostics. `check` and the emulator share it."""

from __future__ import annotations

from ptxgen import syntax
from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.recognize import Unrecognized, recognize
from ptxgen.instr.model.scope import Scope


class Analysis:
    """What a module's statements are. Each is recognized once, when somebody asks first."""

    def __init__(self, module: syntax.Module) -> None:
        self.module = module
        self._instructions: dict[int, Instruction | Unrecognized] = {}

    def instruction(self, statement: syntax.Instruction, scope: Scope) -> Instruction | Unrecognized:
        """The instruction that a statement is in its scope, or why it is none."""
        found = self._instructions.get(id(statement))
        if found is None:
            found = self._instructions[id(statement)] = recognize(statement, scope)
        return found
