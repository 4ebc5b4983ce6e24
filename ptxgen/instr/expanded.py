"""What ptxas does not take where it makes several instructions of one, which depends on the target (ptxas 13.5.37)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.symbols import Problem, Resolver
from ptxgen.instr.model.targets import Target
from ptxgen.instr.model.types import TYPES
from ptxgen.syntax import Expression, Name


class ExpandedBeforeHopper(Instruction):
    """A .sync instruction of a warp or an unaligned barrier, whose operands are arguments of a function.

    The function takes whole registers and constants (measured, ptxas 13.5.37, sm_75 to sm_89).
    """

    #: Names of the operands that the function takes or returns.
    whole: ClassVar[tuple[str, ...]]

    def expands(self, target: Target) -> bool:
        return target.number < 90

    def expansion_problems(self, target: Target, resolve: Resolver) -> Iterator[Problem]:
        if self.expands(target):
            yield from self.whole_problems(self.whole, target, resolve)

    def whole_problems(self, names: Sequence[str], target: Target, resolve: Resolver) -> Iterator[Problem]:
        """Sums, elements of vectors and functions among these operands."""
        for name in names:
            operand = getattr(self, name)
            is_sum = isinstance(operand, Expression) and isinstance(operand.operands[0], Name)
            is_element = isinstance(operand, Name) and operand.component is not None
            symbol = resolve(operand.text) if isinstance(operand, Name) else None
            if is_sum or is_element or (symbol is not None and symbol.kind == "function"):
                message = f"{name} must be a whole register or a constant on {target}, not {operand}"
                reason = f"before sm_90 ptxas expands {self.form.opcode} to a function"
                yield Problem("operand-kind", f"{message}: {reason}", part=str(operand), operand=name)


def element_result(form: Any, target: Target, resolve: Resolver) -> Iterator[Problem]:
    """Why an element of a vector cannot be the result d, which ptxas copies to it from sm_90 on, and then fails.

    It takes an element wider than the type of the instruction (measured, sm_75 to sm_121a).
    """
    operand = form.d
    symbol = resolve(operand.text) if isinstance(operand, Name) and operand.component is not None else None
    if target.number < 90 or symbol is None or symbol.type is None:
        return
    if symbol.type.bits == TYPES[form.type].bits:
        message = f"d must be a whole register on {target}, not the element {operand}: ptxas fails on it from sm_90 on"
        yield Problem("operand-kind", message, part=str(operand), operand="d")
