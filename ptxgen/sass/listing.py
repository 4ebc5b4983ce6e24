"""A SASS listing as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ptxgen.names import demangled, shown_name
from ptxgen.sass.control import Control

#: Register files as nvdisasm names them: general, predicates, uniform, uniform predicates.
FILES = ("GPR", "PRED", "UGPR", "UPRED")


@dataclass(frozen=True, slots=True)
class Registers:
    """What an instruction does to registers, as (file, number): nvdisasm's life ranges."""

    reads: frozenset[tuple[str, int]] = frozenset()
    writes: frozenset[tuple[str, int]] = frozenset()
    #: Live registers by file, in the order of `FILES`.
    live: tuple[int, int, int, int] = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `address` is in bytes from the start of its section, `word` its 128-bit encoding.

    `predicate` is `@P0`, `@!UP1` or empty. `opcode` is the first part of the mnemonic, `modifiers` the others.
    `operands` are as printed, without `.reuse`; labels stand in them as `(.L_x_3)`. `ptx_line` is the line of the PTX
    and `source` a line of what the PTX came from, where the cubin has line tables.
    """

    index: int
    address: int
    predicate: str
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    word: int
    registers: Registers = Registers()
    ptx_line: int | None = None
    source: str = ""
    #: Labels that the instruction may branch to.
    targets: tuple[str, ...] = ()

    @property
    def mnemonic(self) -> str:
        """Opcode and modifiers: `HGMMA.64x64x16.F32`."""
        return ".".join((self.opcode, *self.modifiers))

    @property
    def control(self) -> Control:
        return Control.decode(self.word)

    @property
    def text(self) -> str:
        """The instruction as nvdisasm prints it, without its reuse marks."""
        guard = f"{self.predicate} " if self.predicate else ""
        return f"{guard}{self.mnemonic} {', '.join(self.operands)}".rstrip()


@dataclass(frozen=True)
class Function:
    """A kernel, or a function of its own section, with the subroutines in it.

    `labels` give the index of the instruction after each label (the number of instructions for one at the end).
    `registers`, `stack_bytes` and `shared_bytes` are what the ELF file says; None where it says nothing.
    """

    name: str
    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int] = field(default_factory=dict)
    #: Subroutines in the section: where each begins.
    subroutines: Mapping[str, int] = field(default_factory=dict)
    is_entry: bool = True
    registers: int | None = None
    stack_bytes: int | None = None
    shared_bytes: int | None = None
    #: Bytes of code, padding included.
    code_bytes: int = 0
    #: Words after the last instruction that control reaches, which nvdisasm does not list: padding, mostly NOP.
    padding: tuple[int, ...] = ()


@dataclass(frozen=True)
class Listing:
    """All functions of one cubin. `target` is its architecture (`sm_90a`), `origin` names where it came from.

    `ptx` is the PTX text that it was assembled from, where that is known, and `log` what ptxas said about it.
    """

    origin: str
    target: str
    functions: tuple[Function, ...]
    ptx: str = ""
    log: str = ""
    #: Whether it says which registers instructions read and write; not of cubins of CUDA 12 and older.
    has_life_ranges: bool = True

    @property
    def kernels(self) -> tuple[Function, ...]:
        """The entries."""
        return tuple(each for each in self.functions if each.is_entry)

    def kernel(self, name: str | None = None) -> Function:
        """A function by its name, or by a part that only its name has; the only kernel without one.

        Raises LookupError that lists the names.
        """
        names = ", ".join(shown_name(each.name) for each in self.functions) or "none"
        if name is None:
            if len(self.kernels) == 1:
                return self.kernels[0]
            raise LookupError(f"{self.origin} has {len(self.kernels)} kernels: {names}; name one")
        found = [each for each in self.functions if each.name == name] or [
            each for each in self.functions if name in each.name or name in demangled(each.name)
        ]
        if len(found) != 1:
            raise LookupError(f"{self.origin} has {len(found) or 'no'} function named {name!r}; it has: {names}")
        return found[0]
