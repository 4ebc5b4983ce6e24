"""`.branchtargets`, `.calltargets` and `.callprototype`. PTX ISA 11.3."""

from __future__ import annotations

from collections.abc import Iterator

from ptxgen import syntax
from ptxgen.instr.model.scope import Scope, names_in
from ptxgen.instr.model.symbols import Problem
from ptxgen.instr.model.targets import Availability
from ptxgen.instr.module.context import Context

LISTS = {
    "branchtargets": Availability("6.0", "sm_30+"),
    "calltargets": Availability("2.1", "sm_20+"),
    "callprototype": Availability("2.1", "sm_20+"),
}


def list_problems(statement: syntax.Directive, context: Context, scope: Scope) -> Iterator[Problem]:
    """What is wrong with a list of labels or of functions."""
    name = statement.name
    yield from context.lacks(f".{name}", LISTS[name])
    wanted, what = ("label", "label") if name == "branchtargets" else ("function", "function")
    for target in names_in(statement):
        symbol = scope(target)
        if symbol is None:
            where = "in this block or one around it" if wanted == "label" else "declared before this"
            yield Problem("undeclared-name", f"the {what} {target} of .{name} is not {where}")
            return  # L<4294967295> names more than can be
        elif symbol.kind != wanted:
            yield Problem("operand-kind", f"{target} of .{name} must be a {what}, not a {symbol.kind}")
