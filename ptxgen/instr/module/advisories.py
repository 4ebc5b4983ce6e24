"""What ptxas itself warns of or advises in text that it takes: slow modifiers, old forms, names that it cannot resolve.

Each was reproduced with ptxas 13.5.37, whose words are in quotes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxgen import syntax
from ptxgen.instr.model.analyze import Analysis
from ptxgen.instr.model.form import Instruction
from ptxgen.instr.model.symbols import Problem, Resolver
from ptxgen.instr.model.targets import Target
from ptxgen.instr.model.types import TYPES
from ptxgen.instr.module.context import Context
from ptxgen.instr.module.limits import objects
from ptxgen.instr.module.reach import Reach

#: Chips whose a and f targets (sm_90: the a target) have the fast multicast.
_MULTICAST = (90, 100, 101, 103, 107, 110)
_SYNC_SINCE = (6, 0)


def instruction_advice(opcode: str, found: Instruction, resolve: Resolver, context: Context) -> Iterator[Problem]:
    """Warnings of a legal instruction."""
    target = context.target
    if opcode.startswith("cp.async.bulk") and ".multicast::cluster" in opcode and not _fast_multicast(target):
        token = next(each for each in opcode.split(".") if each.startswith("multicast::cluster"))
        message = (
            f'.{token} is much slower on {target} than on its a and f targets (ptxas: "substantially reduced '
            'performance"); compile for sm_90a, sm_100f or the like'
        )
        yield Problem("slow-multicast", message, "warning", part=f".{token}")
    elif opcode.startswith("mma.sp."):
        message = (
            "mma.sp may be much slower on later GPUs; use mma.sp::ordered_metadata (PTX ISA 8.5), whose metadata have "
            "the lower index first"
        )
        yield Problem("slow-sparse", message, "warning", part=".sp")
    elif opcode.startswith(("shfl.", "vote.")) and ".sync" not in opcode and context.version >= _SYNC_SINCE:
        if target is not None and target.number >= 70:
            name = opcode.partition(".")[0]
            message = f"{name} without .sync is unpredictable on sm_70 and later, and gone since PTX ISA 6.4"
            yield Problem("without-sync", f"{message}; use {name}.sync", "warning")
    elif opcode.startswith(("ld.", "st.")):
        yield from _beyond_scalar(found, resolve)


def _fast_multicast(target: Target | None) -> bool:
    if target is None or target.number < 90:
        return True
    return target.number in _MULTICAST and target.suffix != ""


def _beyond_scalar(found: Instruction, resolve: Resolver) -> Iterator[Problem]:
    """An access to a scalar variable with a wider type: "potential out of bound access"."""
    type, vector = getattr(found, "type", None), getattr(found, "vec", None)
    if not isinstance(type, str) or type not in TYPES or vector:
        return
    for name in found.form.operands:
        operand = getattr(found, name)
        if isinstance(operand, syntax.Address) and isinstance(operand.base, syntax.Name) and not operand.offset:
            symbol = resolve(operand.base.text)
            if symbol is None or symbol.kind not in ("variable", "parameter") or symbol.type is None:
                continue
            if symbol.size is None and symbol.vector is None and TYPES[type].bits > symbol.type.bits:
                base = operand.base.text
                message = f".{type} is wider than {base}, which is a {symbol.type}: the access passes its end"
                yield Problem("beyond-variable", message, "warning", operand=name, part=base)


def module_advice(module: syntax.Module, analysis: Analysis) -> Iterator[tuple[syntax.Statement, Problem]]:
    """Warnings of a whole module."""
    defined = {
        each.name
        for item in module.items
        if isinstance(item, syntax.Variable) and item.linkage != "extern"
        for each in item.declarators
    }
    for item in module.items:
        if isinstance(item, syntax.Variable) and item.linkage == "extern":
            for each in objects(item):
                if each.name not in defined and not (each.open and item.space == "shared"):
                    what = "refuses the module" if each.open else "makes a variable of its own of it"
                    message = f"{each.name} is .extern: without --compile-only ptxas {what}"
                    yield item, Problem("unresolved-extern", message, "warning")
    if not any(isinstance(item, syntax.FileDirective) for item in module.items):
        place = next((each for each in module.statements() if isinstance(each, syntax.Location)), None)
        if place is not None:
            message = ".loc without a .file: the cubin's line information is incomplete"
            yield place, Problem("loc-without-file", message, "warning")
    yield from _recursive(module, analysis)


def _recursive(module: syntax.Module, analysis: Analysis) -> Iterator[tuple[syntax.Statement, Problem]]:
    """Entries that reach a function that calls itself: "stack size cannot be statically determined"."""
    functions = [each for each in module.functions if each.kind != "entry" and each.body is not None]
    if not functions:
        return
    reach = Reach(analysis)
    recursive = {each.name for each in functions if reach.calls_itself(each)}
    for entry in module.entries if recursive else ():
        names = [each.name for each in reach.functions(entry) if each.name in recursive]
        if names:
            message = (
                f"{names[0]} may call itself, so ptxas cannot tell the stack of {entry.name}; set it at run time "
                "(cudaLimitStackSize)"
            )
            yield entry, Problem("unknown-stack", message, "warning")
