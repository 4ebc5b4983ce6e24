"""What names stand for, and problems: the values that operand rules read and give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, runtime_checkable

from ptxgen.instr.model.targets import Availability, Target
from ptxgen.instr.model.types import Type

Severity = Literal["error", "warning"]
#: A `parameter` is that of a kernel, `argument` and `result` are those of a function, as its own body sees them. The
#: last three are the labels of `.branchtargets`, `.calltargets` and `.callprototype`.
SymbolKind = Literal[
    "register",
    "special",
    "variable",
    "parameter",
    "argument",
    "result",
    "function",
    "label",
    "branch targets",
    "call targets",
    "prototype",
]


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes and returns; no one may call an `entry`."""

    returns: tuple[Symbol, ...] = ()
    parameters: tuple[Symbol, ...] = ()
    entry: bool = False


@dataclass(frozen=True, slots=True)
class Symbol:
    """What a name stands for in its scope.

    `space` is set for variables and parameters, `unified` for variables with that attribute, `vector` for vector
    registers; `widths` and `availability` for special registers: the widths in bits at which they can be read, and
    since when and where they exist. `align` is that of a variable or parameter, `size` that of an array in bytes, 0 if
    it has none. `signatures` are those of a function, or of the functions in a list or table.
    """

    name: str
    kind: SymbolKind
    type: Type | None = None
    space: str | None = None
    vector: int | None = None
    widths: tuple[int, ...] = ()
    availability: Availability | None = None
    unified: bool = False
    align: int = 0
    size: int | None = None
    signatures: tuple[Signature, ...] = ()


@runtime_checkable
class Declared(Protocol):
    """A name with its declaration, such as a builder's register: typed calls check what it stands for."""

    @property
    def symbol(self) -> Symbol: ...


#: How an instruction accesses the memory that an operand addresses or describes.
Access = Literal["none", "read", "write", "read-write"]

#: Where the sampler of a texture is: in the .texref, or in a .samplerref of its own (PTX ISA 9.7.10.1).
TextureMode = Literal["unified", "independent"]


class Resolver(Protocol):
    """Finds the symbol of a name, None if it is not declared; `texture_mode` is the module's."""

    @property
    def texture_mode(self) -> TextureMode: ...

    def __call__(self, name: str) -> Symbol | None: ...


class Subject(Protocol):
    """An instruction as the rules of its operands see it; its modifiers and operands are attributes."""

    guard: ClassVar[str | None]

    @property
    def opcode_text(self) -> str: ...


#: The class of each error; where it is missing, the code reads as one.
_TITLES = {
    "address-size": "illegal address size",
    "address-width": "truncated address",
    "constant-bits": "bits of a constant taken for its value",
    "alias": "illegal alias",
    "alignment": "illegal alignment",
    "array-size": "illegal array size",
    "attribute": "illegal attribute",
    "call-count": "argument count mismatch",
    "call-sequence": "load before the call",
    "constant-size": "too many constants",
    "cta-group": "conflicting CTA groups",
    "directive-conflict": "conflicting directives",
    "directive-missing": "missing directive",
    "directive-order": "misplaced directive",
    "directive-place": "misplaced directive",
    "directive-repeated": "repeated directive",
    "directive-value": "illegal directive value",
    "file-index": "illegal file index",
    "guard": "illegal guard",
    "immediate-range": "constant out of range",
    "data-range": "constant out of range",
    "debug-data": "malformed debug information",
    "implied-modifier": "missing modifier",
    "injected-wait": "missing wait",
    "initializer": "illegal initial value",
    "linkage": "illegal linkage",
    "location": "unknown location",
    "missing-directive": "missing directive",
    "missing-modifier": "missing modifier",
    "modifier-order": "misplaced modifier",
    "needs-abi": "function without ABI",
    "non-ascii": "illegal character",
    "old-ptxas": "refused by older ptxas",
    "operand-count": "operand mismatch",
    "operand-kind": "operand kind mismatch",
    "operand-type": "operand type mismatch",
    "overlooked-modifier": "ignored modifier",
    "overlooked-result": "ignored operand",
    "parameter-attribute": "illegal parameter",
    "parameter-name": "illegal parameter",
    "parameter-size": "illegal parameter",
    "pragma": "illegal pragma",
    "preprocessor": "preprocessor directive",
    "ptx-version": "unsupported PTX version",
    "redeclared": "redeclared name",
    "removed": "removed from PTX",
    "repeated-modifier": "repeated modifier",
    "return-count": "too many return values",
    "beyond-variable": "access beyond a variable",
    "loc-without-file": "missing .file",
    "unresolved-extern": "unresolved name",
    "without-sync": "deprecated form",
    "register-count": "register count mismatch",
    "setmaxnreg-ignored": "ignored setmaxnreg",
    "shared-size": "too much shared memory",
    "local-size": "too much local memory",
    "texture-count": "too many textures",
    "state-space": "state space mismatch",
    "target": "unsupported target",
    "target-option": "illegal target option",
    "texture-mode": "texture mode mismatch",
    "trailing-nul": "illegal character",
    "undeclared-name": "undeclared name",
    "undefined-function": "undefined function",
    "unknown-instruction": "unknown instruction",
    "unknown-modifier": "illegal modifier",
    "variable-type": "illegal variable type",
    "vector-length": "vector length mismatch",
    "unknown-stack": "unknown stack",
    "slow-sparse": "slow sparse",
    "slow-multicast": "slow multicast",
    "without-abi": "function without ABI",
}
#: All codes of errors and warnings but those of one instruction, which have a dot.
CODES = frozenset(_TITLES)


@dataclass(frozen=True, slots=True)
class Problem:
    """A broken rule: a stable code and one sentence with the rule, what was found and what is legal.

    A `warning` is about what ptxas accepts, but hardly anyone means. `operand` is the name of the operand that
    breaks the rule ("guard" is the guard), `part` the text at fault: a modifier (`.x3`), or a name or constant among
    the operands. Both are empty where it is the whole statement.
    """

    code: str
    message: str
    severity: Severity = "error"
    operand: str = field(default="", compare=False)
    part: str = field(default="", compare=False)
    #: Which of several equal parts it is, from 0; -1 is the last.
    occurrence: int = field(default=-1, compare=False)


def title_of(code: str) -> str:
    """The class of an error, which begins its message: `operand type mismatch`, `illegal alignment`.

    A rule of one instruction, whose code has the declaration before a dot, makes an `illegal instruction`.
    """
    return "illegal instruction" if "." in code else _TITLES.get(code, code.replace("-", " "))


def unavailable(
    what: str, availability: Availability, target: Target | None, version: tuple[int, int]
) -> Iterator[Problem]:
    """Why this PTX version or target does not have it; None is any target."""
    if not availability.has_version(version):
        found = f"{version[0]}.{version[1]}"
        yield Problem("ptx-version", f"{what} requires PTX ISA {availability.ptx} or later, .version is {found}")
    if target is not None and not availability.has_target(target):
        yield Problem("target", f"{what} is not on {target}; it requires {availability.where}")
