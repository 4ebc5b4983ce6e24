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
from ptxgen.instr.module.abi import abi_problems
from ptxgen.instr.module.context import Context
from ptxgen.instr.module.limits import objects
from ptxgen.instr.module.reach import Reach, instructions, operand_names
from ptxgen.instr.module.waits import wait_problems

#: Chips whose a and f targets (sm_90: the a target) have the fast multicast.
_MULTICAST = (90, 100, 101, 103, 107, 110)
_SYNC_SINCE = (6, 0)
#: Functions that ptxas itself resolves, and how others of these begin (measured, 13.5).
_BUILT_IN = frozenset({"vprintf", "malloc", "free", "__assertfail"})
_SYSTEM = "__cuda_syscall"


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
    several = next((each for each in module.functions if len(each.returns) > 1), None)
    if several is not None and not any(abi_problems(module, analysis)):  # which says so itself
        message = (
            f'{several.name} returns {len(several.returns)} values: "disabling ABI", after which nothing of the module '
            "can recurse or be called indirectly; return a .param array"
        )
        yield several, Problem("without-abi", message, "warning")
    for function in module.functions:
        yield from wait_problems(function)
    yield from _reached(module, analysis)


def _reached(module: syntax.Module, analysis: Analysis) -> Iterator[tuple[syntax.Statement, Problem]]:
    """What the functions that an entry reaches have: recursion and alloca, for which "stack size cannot be statically
    determined", and calls of functions without a body, which are unresolved.
    """
    bodies = [each for each in module.functions if each.kind != "entry" and each.body is not None]
    named = {each.name for each in module.functions if each.body is not None} | {
        item.arguments[0] for item in module.items if isinstance(item, syntax.Directive) and item.name == "alias"
    }
    unresolved = {each.name for each in module.functions if each.linkage == "extern"} - named - _BUILT_IN
    allocating = {each.name: next(filter(_allocates, instructions(each)), None) for each in module.functions}
    if not (bodies or unresolved or any(allocating.values())):
        return
    reach = Reach(analysis)
    recursive = {each.name for each in bodies if reach.calls_itself(each)}
    for entry in module.entries:
        functions = reach.functions(entry)
        name = next((each.name for each in functions if each.name in recursive), None)
        reason = f"{name} may call itself" if name else None
        if reason is None and any(allocating[each.name] for each in functions):
            reason = f"{next(each.name for each in functions if allocating[each.name])} has an alloca"
        if reason is not None:
            message = (
                f"{reason}, so ptxas cannot tell the stack of {entry.name}; set it at run time (cudaLimitStackSize)"
            )
            yield entry, Problem("unknown-stack", message, "warning")
        for statement in (each for function in functions for each in instructions(function) if each.is_call):
            for name in sorted(
                {name for operand in statement.operands for name in operand_names(operand)} & unresolved
            ):
                unresolved.discard(name)
                message = f"{name} has no body here: without --compile-only ptxas refuses the module"
                if not name.startswith(_SYSTEM):
                    yield statement, Problem("unresolved-extern", message, "warning")


def _allocates(statement: syntax.Instruction) -> bool:
    return statement.opcode.startswith("alloca.")
