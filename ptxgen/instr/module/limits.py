"""Limits over sums: shared memory, textures and registers of an entry, constants of a module, threads of a CTA.

Shared memory: 48 KiB of static variables for each entry, all that its SM has on an architecture-specific target.
Counted are the module's variables that the entry or a function that it reaches names, and all in their bodies.
Constants: 64 KiB for the module. Textures 256, samplers and surfaces 32 for each entry. `setmaxnreg.dec` cannot ask for
more registers than there are. All as measured with ptxas 13.5; the CTA's and cluster's limits are those of compute
capability 7.5 and later in the CUDA programming guide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxgen import syntax
from ptxgen.instr.model.symbols import Problem, Symbol
from ptxgen.instr.model.targets import Target
from ptxgen.instr.model.types import TYPES
from ptxgen.instr.module.context import Context
from ptxgen.instr.module.reach import Reach, instructions, live, operand_names
from ptxgen.syntax.lexer import word_value

if TYPE_CHECKING:
    from ptxgen.instr.model.analyze import Analysis

Found = tuple[syntax.Statement, Problem]

_STATIC_SHARED = 49152
_LINKED = ("visible", "weak")
#: Bytes that a CTA may have on targets whose SM alone counts.
_SHARED = {90: 232448, 100: 232448, 103: 232448, 107: 232448, 110: 232448, 120: 101376, 121: 101376}
_CONSTANT_BYTES = 65536
_LOCAL_BYTES = 512 << 10
#: Objects that one entry may use, by type: how many, and what they are.
_OBJECTS = {"texref": (256, "textures"), "samplerref": (32, "samplers"), "surfref": (32, "surfaces")}
_REGISTERS = 65536
_MOST_REGISTERS, _LEAST_REGISTERS = 255, 24
_CTA_THREADS, _CTA_DEPTH, _CLUSTER = 1024, 64, 16
#: CTAs and threads that an SM holds, by the number of its target.
_SM = {
    75: (16, 1024), 80: (32, 2048), 86: (16, 1536), 87: (16, 1536), 88: (16, 1536), 89: (24, 1536), 90: (32, 2048),
    100: (32, 2048), 103: (32, 2048), 107: (16, 1024), 110: (24, 1536), 120: (24, 1536), 121: (24, 1536),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Object:
    """A variable with its size and alignment in bytes; `open` is an .extern array without a size."""

    name: str
    size: int
    align: int
    open: bool = False


class Limits:
    """What a module has declared so far, and whether it is too much."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._shared: list[_Object] = []
        self._constants: list[tuple[syntax.Variable, _Object]] = []
        self._opaque = 0
        self._setmaxnreg = False

    def variable(self, statement: syntax.Variable) -> None:
        """Take a variable into the sums, wherever it stands."""
        if statement.space == "shared":
            self._shared += objects(statement)
        elif statement.space == "const":
            self._constants += [(statement, each) for each in objects(statement)]
        elif statement.type in _OBJECTS:
            self._opaque += sum(each.count or 1 for each in statement.declarators)

    def function(self, function: syntax.Function) -> None:
        """Take the parameters of a function into the sums."""
        self._opaque += sum(each.type in _OBJECTS for each in function.parameters)

    def setmaxnreg(self) -> None:
        """Note that there is a setmaxnreg."""
        self._setmaxnreg = True

    def problems(self, analysis: Analysis) -> Iterator[Found]:
        """What is too much, with its places."""
        yield from self._constant_problems()
        target = self.context.target
        allowed = shared_limit(target)
        most = sum(each.size + each.align - 1 for each in self._shared) + max(
            (each.align for each in self._shared if each.open), default=0
        )
        wanted = [most > min(allowed, _STATIC_SHARED), self._opaque > 32, self._setmaxnreg]
        if not any(wanted):
            return
        reach = Reach(analysis)
        for entry in analysis.module.entries:
            if entry.body is None:
                continue
            functions = reach.functions(entry)
            if wanted[0]:
                yield from self._shared_problems(entry, functions, reach, analysis, allowed)
            if wanted[1]:
                yield from _object_problems(entry, functions, reach)
            if wanted[2]:
                yield from _setmaxnreg_problems(entry, functions, self.context.target)

    def _constant_problems(self) -> Iterator[Found]:
        total = 0
        for statement, each in self._constants:
            total = _behind(total, each)
            if total > _CONSTANT_BYTES:
                message = f"the .const variables of a module have {_CONSTANT_BYTES} bytes at most; with {each.name}"
                yield statement, Problem("constant-size", f"{message} they have {total}")
                return

    def _shared_problems(
        self,
        entry: syntax.Function,
        functions: list[syntax.Function],
        reach: Reach,
        analysis: Analysis,
        allowed: int,
    ) -> Iterator[Found]:
        named = {name for function in functions for name, _ in reach.symbols(function)}
        # Of a body ptxas places the variables that are used before the others (measured, 13.5).
        bodies = [_used_first(function) for function in functions]
        declared = [each for each in analysis.module.items if isinstance(each, syntax.Variable)]
        shared = [each for each in declared if each.space == "shared"]
        linked = [each for item in shared if item.linkage in _LINKED for each in objects(item, named)]
        outside = [each for item in shared if item.linkage not in _LINKED for each in objects(item, named)]
        # ptxas places those with linkage first, then those of the entry, of the module and of functions (13.5).
        used = [*linked, *bodies[0], *outside, *(each for body in bodies[1:] for each in body)]
        total = _total(used)
        if total <= min(allowed, _STATIC_SHARED):
            return
        largest = sorted((each for each in used if each.size), key=lambda each: -each.size)[:3]
        sizes = ", ".join(f"{each.name} {each.size}" for each in largest)
        found = f"{entry.name} uses {total} bytes of static shared memory ({sizes})"
        remedy = "declare the array as .extern .shared without a size, and give its bytes at the launch"
        if total > allowed:
            message = f"{found}, but {self.context.target or 'a CTA'} allows {allowed}; {remedy}"
            yield entry, Problem("shared-size", message)
        else:
            message = f"{found}; ptxas before 13.0 allows {_STATIC_SHARED} on {self.context.target} too; {remedy}"
            yield entry, Problem("old-ptxas", message, "warning")


def shared_limit(target: Target | None) -> int:
    """The bytes of static shared memory that an entry may use on a target."""
    return _SHARED.get(target.number, _STATIC_SHARED) if target is not None and target.suffix == "a" else _STATIC_SHARED


def objects(statement: syntax.Variable, named: set[str] | None = None) -> Iterator[_Object]:
    """The variables of a declaration, or those whose names are `named`."""
    kind = TYPES.get(statement.type)
    element = (kind.bytes if kind else 1) * (statement.vector or 1)
    align = max(statement.align or 1, element)
    for each in statement.declarators:
        size = element
        for dimension in each.dims:
            value = each.initializer
            size *= dimension or (len(value.elements) if isinstance(value, syntax.Initializer) else 0)
        size %= 2**64  # as ptxas 13.5 counts
        if each.count is None:
            if named is None or each.name in named:
                yield _Object(each.name, size, align, open=size == 0)
        elif named is None:
            yield _Object(f"{each.name}<{each.count}>", size * each.count, align)
        else:
            numbers = sorted(number for name in named if (number := _number(name, each.name)) is not None)
            yield from (_Object(f"{each.name}{number}", size, align) for number in numbers if number < each.count)


def _number(name: str, prefix: str) -> int | None:
    rest = name.removeprefix(prefix)
    return int(rest) if name.startswith(prefix) and rest.isdigit() else None


def _behind(total: int, each: _Object) -> int:
    """The bytes up to the end of a variable that follows `total` bytes."""
    align = max(1, each.align)
    return -(-total // align) * align + each.size


def _total(used: Iterable[_Object]) -> int:
    """The bytes of variables one after the other; those without a size come last, at their alignment."""
    total, last = 0, 1
    for each in used:
        if each.open:
            last = max(last, each.align)
        else:
            total = _behind(total, each)
    return -(-total // last) * last


def _used_first(function: syntax.Function) -> list[_Object]:
    """The shared variables of a body, those that its instructions name before the others."""
    named = {name for each in instructions(function) for operand in each.operands for name in operand_names(operand)}
    return sorted(_variables(function, "shared"), key=lambda each: each.name not in named)


def _variables(function: syntax.Function, space: str) -> Iterator[_Object]:
    """The variables in the body of a function."""
    for statement in syntax.walk([function]):
        if isinstance(statement, syntax.Variable) and statement.space == space:
            yield from objects(statement)


def _object_problems(entry: syntax.Function, functions: list[syntax.Function], reach: Reach) -> Iterator[Found]:
    used: dict[str, dict[str, Symbol]] = {}
    for function in functions:
        for name, symbol in reach.symbols(function):
            if symbol.type is not None and symbol.type.name in _OBJECTS:
                used.setdefault(symbol.type.name, {})[name] = symbol
    for type, names in used.items():
        most, what = _OBJECTS[type]
        if len(names) > most:
            message = f"{entry.name} uses {len(names)} {what}, but {most} is the limit; pass handles in registers"
            yield entry, Problem("texture-count", message)


# Registers.


def _numbers(entry: syntax.Function) -> Mapping[str, tuple[int, ...]]:
    """The numbers of an entry's directives; of one that stands twice the last."""
    return {
        each.name: tuple(word_value(text) for text in each.arguments if not text.startswith('"'))
        for each in entry.directives
        if each.name != "pragma"
    }


def _threads(numbers: Mapping[str, tuple[int, ...]]) -> int | None:
    extents = numbers.get("reqntid") or numbers.get("maxntid")
    return _product(extents) if extents else None


def _product(extents: Iterable[int]) -> int:
    total = 1
    for each in extents:
        total *= each
    return total


def _resident(numbers: Mapping[str, tuple[int, ...]], target: Target | None) -> int | None:
    """The CTAs of .minnctapersm; None where it is missing, or asks for more than ptxas takes."""
    ctas, threads = numbers.get("minnctapersm"), _threads(numbers)
    if not ctas or not threads:
        return None
    most, held = _SM.get(target.number, (ctas[0], threads * ctas[0])) if target else (ctas[0], threads * ctas[0])
    return ctas[0] if ctas[0] <= most and -(-threads // 32) * 32 * ctas[0] <= held else None


def _registers_at_entry(entry: syntax.Function, target: Target | None) -> tuple[int, str] | None:
    """The registers with which a thread begins, and what says so; None if nothing does (measured, ptxas 13.5)."""
    numbers = _numbers(entry)
    found: list[tuple[int, str]] = []
    if "maxnreg" in numbers:
        (most,) = numbers["maxnreg"]
        if most > _MOST_REGISTERS:
            return None
        found.append((max(most, _LEAST_REGISTERS), f".maxnreg {most}"))
    threads = _threads(numbers)
    if threads:
        ctas = _resident(numbers, target) or 1
        each = _REGISTERS // (-(-threads // 32) * 32 * ctas) // 8 * 8
        held = f"{ctas} CTAs of {threads} threads" if ctas > 1 else f"{threads} threads"
        found.append((each, f"{_REGISTERS} registers for {held}"))
    return min(found, default=None)


def _setmaxnreg_problems(
    entry: syntax.Function, functions: list[syntax.Function], target: Target | None
) -> Iterator[Found]:
    at_entry = _registers_at_entry(entry, target)
    statements = [each for function in functions for each in instructions(function) if _changes_registers(each)]
    if not statements:
        return
    numbers = _numbers(entry)
    if "maxnreg" not in numbers and _resident(numbers, target) is None:
        message = (
            "ptxas ignores setmaxnreg: the entry does not say with how many registers it begins; add .maxnreg, or "
            ".maxntid or .reqntid with .minnctapersm"
        )
        yield statements[0], Problem("setmaxnreg-ignored", message, "warning")
    if at_entry is None:
        return
    most, why = at_entry
    for each in statements:
        if ".inc" in each.opcode and (count := _count(each)) is not None and count > most:
            most, why = count, f"setmaxnreg.inc of line {each.line}"
    body = [each for function in functions if function.body for each in live(function.body.statements)]
    for each in body:
        count = _count(each) if _changes_registers(each) and ".dec" in each.opcode else None
        # 255 registers are all there are, so that 256 is no more.
        if count is not None and count > most and most < _MOST_REGISTERS // 8 * 8:
            message = f"setmaxnreg.dec to {count} registers is no decrease: a warp has at most {most} ({why})"
            yield each, Problem("register-count", message, operand="count", part=str(count))


def _changes_registers(statement: syntax.Instruction) -> bool:
    return statement.opcode.startswith("setmaxnreg.")


def _count(statement: syntax.Instruction) -> int | None:
    operand = statement.operands[0] if statement.operands else None
    if not isinstance(operand, syntax.Immediate | syntax.Expression):
        return None
    try:
        return int(operand.evaluate())
    except ValueError:
        return None


# What the directives of an entry promise. ptxas takes all of it, and ignores some.


def promise_problems(entry: syntax.Function, context: Context) -> Iterator[Found]:
    """Warnings: numbers of directives that no launch can meet, or that ptxas ignores."""
    for each in entry.directives:
        if each.name in ("pragma", "language"):
            continue
        extents = tuple(word_value(text) for text in each.arguments)
        for message in _beyond(each.name, extents, entry, context.target):
            yield each, Problem("directive-value", message, "warning")


def _beyond(name: str, extents: tuple[int, ...], entry: syntax.Function, target: Target | None) -> Iterator[str]:
    total = _product(extents)
    if name in ("maxntid", "reqntid") and total > _CTA_THREADS:
        yield f".{name} asks for {total} threads, but a CTA has at most {_CTA_THREADS}"
    elif name in ("maxntid", "reqntid") and len(extents) == 3 and extents[2] > _CTA_DEPTH:
        yield f".{name} asks for {extents[2]} threads in z, but a CTA has at most {_CTA_DEPTH}"
    elif name == "reqnctapercluster" and total > _CLUSTER:
        yield f".{name} asks for {total} CTAs, but a cluster has at most 8, or {_CLUSTER} if the launch allows it"
    elif name in ("maxnreg", "local_maxnreg") and total > _MOST_REGISTERS:
        yield f".{name} {total} is ignored: a thread has at most {_MOST_REGISTERS} registers"
    elif name in ("maxnreg", "local_maxnreg") and 0 < total < _LEAST_REGISTERS:
        yield f".{name} {total} is raised to {_LEAST_REGISTERS}, the least that ptxas gives a thread"
    elif name == "minnctapersm" and target is not None and target.number in _SM:
        ctas, most = _SM[target.number]
        threads = _threads(_numbers(entry))
        if threads and total > ctas:
            yield f".{name} {total} is ignored: an SM of {target} holds at most {ctas} CTAs"
        elif threads and -(-threads // 32) * 32 * total > most:
            yield (
                f".{name} {total} is ignored: an SM of {target} holds at most {most} threads, but {total} CTAs of "
                f"{threads} have {threads * total}"
            )


def local_problems(statement: syntax.Variable) -> Iterator[Problem]:
    """A warning: more local memory than a thread can have."""
    total = sum(each.size for each in objects(statement)) if statement.space == "local" else 0
    if total > _LOCAL_BYTES:
        message = f"{total} bytes of .local are more than a thread can have, {_LOCAL_BYTES} (512 KiB)"
        yield Problem("local-size", message, "warning")
