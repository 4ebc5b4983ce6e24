"""A whole kernel from typed calls: parameters, registers, shared memory, labels, instructions, and its text."""

from __future__ import annotations

import difflib
import os
import re
import reprlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ptxgen.builder.blocks import Block
from ptxgen.builder.buffers import Ring, Tile, require_stages
from ptxgen.builder.registers import Register, RegisterError, Registers, meant_type
from ptxgen.builder.structure import Structure
from ptxgen.builder.templates import prefix_type, registers_in
from ptxgen.descriptors.smem import SmemDescriptor
from ptxgen.device import Kernel, SharedRegion
from ptxgen.files import escaped_path
from ptxgen.instr import address, memory, move
from ptxgen.instr.model.form import Instruction, InstructionError, errors
from ptxgen.instr.model.operands import Symbol
from ptxgen.instr.model.special import SPECIAL_REGISTERS, special_register
from ptxgen.instr.model.targets import VERSIONS, TargetError, parse_target, parse_version, target_problem
from ptxgen.instr.model.types import TYPES

_TENSORMAP_BYTES = 128
_IDENTIFIER = re.compile(r"[A-Za-z][\w$]*|[_$%][\w$]+", re.ASCII)
#: Modules whose lines are not the author's: this package, and what runs the ends of `with` blocks.
_NOT_THE_AUTHORS = ("ptxgen.builder", "contextlib")
#: Lines of text that are no instruction.
_NO_INSTRUCTION = re.compile(r"\s*(?:[.{}]|//|[\w$]+:\s*$|$)")
#: Indentation of lines in a parameter block and in a body.
_INDENT = "    "


class KernelBuilder(Structure):
    """One entry of a module under construction; calling the builder appends instructions.

        >>> from ptxgen.builder import KernelBuilder
        >>> from ptxgen.instr import control, memory
        >>> k = KernelBuilder("copy", "sm_90a", threads=32)
        >>> x, y, value = k.pointer("x"), k.pointer("y"), k.reg("b32", "value")
        >>> k(memory.ld(value, x, space="global", type="b32"), memory.st(y, value, space="global", type="b32"))
        >>> k(control.ret())
        >>> kernel = k.kernel()

    Each instruction is checked at once: its operands against the declared registers, and whether the target and the
    PTX version have it. `threads` becomes `.reqntid`, `cluster` (CTAs along x, y, z) `.reqnctapercluster`, and
    `ctas_per_sm` `.minnctapersm`: 1 lets ptxas use all registers. Raises TargetError for a target or version that does
    not exist.

    Instructions carry the Python file and line that appends them (`.file`, `.loc`): findings, traces and SASS listings
    name it. `locations=False` leaves that out.
    """

    def __init__(
        self,
        name: str,
        target: str = "sm_100a",
        *,
        version: str = "8.6",
        threads: int | None = None,
        cluster: tuple[int, int, int] | None = None,
        ctas_per_sm: int | None = None,
        locations: bool = True,
    ) -> None:
        super().__init__()
        self.name, self.target, self.version, self.threads = name, target, version, threads
        self.cluster, self.ctas_per_sm = cluster, ctas_per_sm
        self._locations = locations
        #: Numbers of the `.file` directives, by path.
        self._files: dict[str, int] = {}
        #: The file and line of the last `.loc`.
        self._located: tuple[str, int] | None = None
        self._target, self._version = parse_target(target), parse_version(version)
        problem = target_problem(self._target, VERSIONS[-1])
        if problem is not None:
            raise TargetError(f"KernelBuilder: {problem}")
        self.registers = Registers()
        self._parameters: list[str] = []
        self._variables: list[str] = []
        #: Declarations before the entry.
        self._externals: list[str] = []
        #: The named parts of dynamic shared memory.
        self.regions: tuple[SharedRegion, ...] = ()
        self._lines: list[str] = []

    # Parameters.

    def parameter(self, type: str, name: str) -> str:
        """Declare a parameter of a type (`u64`, `f32`, `tensormap`); its name, as an address of `ld.param`."""
        if type == "tensormap":
            return self._declare(f".param .align 64 .b8 {name}[{_TENSORMAP_BYTES}]", name, "b8")
        if type not in TYPES:
            raise RegisterError(f"PTX has no parameters of type {type!r}; {meant_type(type)}")
        return self._declare(f".param .{type} {name}", name, type)

    def _declare(self, declaration: str, name: str, type: str) -> str:
        self._require_free(name)
        self._parameters.append(declaration)
        self.registers.define(Symbol(name, "parameter", TYPES[type], "param"))
        return name

    def _require_free(self, name: str) -> None:
        """Raises RegisterError for a variable or parameter whose name is taken, or is none."""
        if _IDENTIFIER.fullmatch(name) is None:
            raise RegisterError(f"a name has letters, digits, _ and $, and begins with no digit, unlike {name!r}")
        if self.registers(name) is not None:
            raise RegisterError(f"{name} is declared twice")

    def pointer(self, name: str) -> Register:
        """A parameter that is an address in global memory: a register that holds it."""
        found = self.reg("b64", name)
        self(memory.ld(found, self.parameter("u64", name), space="param", type="u64"))
        return found

    def scalar(self, type: Any, name: str) -> Register:
        """A parameter that is a number: a register that holds it."""
        address = self.parameter(type, name)
        found = self.reg(type if TYPES[type].kind == "float" else f"b{TYPES[type].bits}", name)
        self(memory.ld(found, address, space="param", type=type))
        return found

    def tensormap(self, name: str) -> Register:
        """A parameter that is a tensormap: a register with its generic address."""
        self.parameter("tensormap", name)
        plain, found = self.reg("b64", f"{name}_param"), self.reg("b64", name)
        self(move.mov(plain, name, type="b64"), address.cvta(found, plain, space="param", size="u64"))
        return found

    # Registers and shared memory.

    def reg(self, type: str, name: str = "r") -> Register:
        """A new register of a type (`b32`, `f32`, `pred`); a name that is taken gets a number."""
        made = self.registers.one(type, name)
        return Register(made.name, made.type, self)

    def regs(self, type: str, count: int, name: str = "r") -> list[Register]:
        """`count` new registers."""
        return [self.reg(type, f"{name}{index}") for index in range(count)]

    def named(self, name: str, value: Register | int | None = None) -> Register:
        """The register %name that blocks share with their caller, with the type by which it begins.

        p_ predicate, rs_ b16, r_ b32, rd_ b64, rq_ b128, f_ f32, fd_ f64. With a `value` a mov to it is appended.
        """
        type = prefix_type("%" + name.removeprefix("%"))
        if type is None:
            raise RegisterError(f"{name!r} must begin with its type: p_, rs_, r_, rd_, rq_, f_ or fd_")
        made = self.registers.fixed(type, name)
        found = Register(made.name, made.type, self)
        if value is not None:
            self(move.mov_pred(found, value) if type == "pred" else move.mov(found, value, type=type))  # type: ignore[arg-type]
        return found

    def special(self, name: str) -> Register:
        """A new register with the value of a special register: `special("tid.x")`. Raises RegisterError."""
        name = name.removeprefix("%")
        known = special_register(f"%{name}")
        if known is None or known.type is None:
            close = difflib.get_close_matches(f"%{name}", SPECIAL_REGISTERS, n=2)
            advice = f"; did you mean {' or '.join(each[1:] for each in close)}?" if close else ""
            raise RegisterError(f"PTX has no special register {name!r}{advice}")
        if known.vector:
            raise RegisterError(f"{name} is a vector; take {name}.x, {name}.y or {name}.z")
        if known.type.kind == "predicate":
            found = self.reg("pred", name)
            self(move.mov_pred(found, f"%{name}"))
            return found
        found = self.reg(f"b{known.type.bits}", name.replace(".", "_"))
        self(move.mov(found, f"%{name}", type="u64" if known.type.bits == 64 else "u32"))
        return found

    def shared(self, name: str, size: int, align: int = 16) -> Register:
        """`size` bytes of shared memory, which findings call by their name: a register with their address."""
        if size < 1 or align < 1 or align & (align - 1):
            raise RegisterError(f"{name} has {size} bytes, aligned to {align}; it needs 1 or more, and a power of two")
        self._require_free(name)
        self._variables.append(f"{_INDENT}.shared .align {align} .b8 {name}[{size}];")
        self.registers.define(Symbol(name, "variable", TYPES["b8"], "shared"))
        found = self.reg("b32", name)
        self(move.mov(found, name, type="u32"))
        return found

    def dynamic_shared(self, regions: Sequence[SharedRegion] = (), *, align: int = 1024) -> Register:
        """The shared memory whose size the launch gives, as variable `smem`: the register %r_smem with its address.

        `regions` name its parts in findings, such as `SharedMap.named` of a map by ptxgen.gemm. Once for a kernel.
        """
        self._require_free("smem")
        self._externals.append(f".extern .shared .align {align} .b8 smem[];")
        self.registers.define(Symbol("smem", "variable", TYPES["b8"], "shared"))
        self.regions = tuple(regions)
        found = self.named("r_smem")
        self(move.mov(found, "smem", type="u32"))
        return found

    def mbarriers(self, name: str, count: int) -> Register:
        """`count` mbarriers of 8 bytes, not initialized: a register with the address of the first."""
        if count < 1:
            raise RegisterError(f"{name} needs one mbarrier or more, not {count}")
        self._require_free(name)
        self._variables.append(f"{_INDENT}.shared .align 8 .b64 {name}[{count}];")
        self.registers.define(Symbol(name, "variable", TYPES["b64"], "shared"))
        found = self.reg("b32", name)
        self(move.mov(found, name, type="u32"))
        return found

    def tile(self, name: str, size: int, layout: SmemDescriptor, align: int = 1024) -> Tile:
        """`size` bytes of shared memory with the layout of an MMA's operand, whose descriptors it makes at run time.

        `layout` is a descriptor with start address 0.
        """
        if layout.start_address:
            raise RegisterError(f"tile {name}: the layout must have start address 0, not {layout.start_address:#x}")
        return Tile(self, self.shared(name, size, align), layout)

    def ring(self, name: str, stages: int, *, producers: int = 1, consumers: int = 1) -> Ring:
        """The full and empty mbarriers of `stages` buffers, NAME_full and NAME_empty; not initialized."""
        require_stages(name, stages)
        full, empty = self.mbarriers(f"{name}_full", stages), self.mbarriers(f"{name}_empty", stages)
        return Ring(self, name, stages, full, empty, producers, consumers)

    # Instructions.

    def __call__(self, *made: Instruction) -> None:
        """Append instructions.

        Raises InstructionError for names that are not declared or have another type, and where the target or the PTX
        version lacks one, TypeError for what is no instruction.
        """
        for each in made:
            if not isinstance(each, Instruction):
                raise TypeError(
                    f"a builder takes instructions made by ptxgen.instr, not {reprlib.repr(each)}; text(...) takes "
                    "lines of PTX"
                )
            self.registers.check(each)
            missing = errors(each.availability_problems(self._target, self._version))
            if missing:
                raise InstructionError(each.form.key, missing)
            self._locate()
            self._lines.append(f"{_INDENT}{each}")

    def _locate(self) -> None:
        """Append a `.loc` for the author's line, unless the instruction before is of the same."""
        if not self._locations:
            return
        path, line = self._author()
        if self._located == (path, line) or path.startswith("<") or '"' in path:
            return
        self._located = path, line
        number = self._files.setdefault(os.path.abspath(path), len(self._files) + 1)
        self._lines.append(f"{_INDENT}.loc {number} {line} 0")

    def _author(self) -> tuple[str, int]:
        """The file and line of the author's code that is being executed."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_NOT_THE_AUTHORS):
            frame = frame.f_back
        return frame.f_code.co_filename, frame.f_lineno

    def text(self, lines: str) -> None:
        """Append lines as they are: comments, directives, instructions that no call builds."""
        if not all(map(_NO_INSTRUCTION.match, lines.splitlines())):
            self._locate()
        self._lines += lines.splitlines()

    def block(self, name: str, folder: Path | None = None) -> Block:
        """The macros of kernels/blocks/NAME.j2 (or of FOLDER/blocks/NAME.j2) as methods that append their PTX.

        Raises BlockError where there is none of that name.
        """
        return Block(self, name, folder)

    def lines_of_block(self, lines: list[str]) -> None:
        """Append the lines of a block, with declarations of registers by the types by which their names begin."""
        for name in registers_in(lines):
            self.registers.fixed(prefix_type(name) or "", name)
        self.text("\n".join(lines))

    def label(self, name: str = "label") -> str:
        """A new label, to branch to; `place` puts it somewhere."""
        return self.registers.label(name)

    def place(self, label: str) -> None:
        """The label is here."""
        self._lines.append(f"{label}:")

    def _take_back(self, label: str) -> bool:
        if not self._lines or self._lines[-1] != f"{label}:":
            return False
        self._lines.pop()
        return True

    # The module.

    def ptx(self) -> str:
        """The text of the module. Raises RegisterError for a loop that is still open."""
        self._require_closed()
        parameters = ",\n".join(f"{_INDENT}{each}" for each in self._parameters)
        files = [f'.file {number} "{escaped_path(path)}"' for path, number in self._files.items()]
        head = [f".version {self.version}", f".target {self.target}", ".address_size 64", *files, ""]
        head += [*self._externals, ""] if self._externals else []
        opening = f".visible .entry {self.name}(" + (f"\n{parameters}\n)" if parameters else ")")
        bounds = [f".reqntid {self.threads}, 1, 1"] if self.threads is not None else []
        if self.ctas_per_sm is not None:
            bounds.append(f".minnctapersm {self.ctas_per_sm}")
        if self.cluster is not None:
            bounds += [".explicitcluster", f".reqnctapercluster {', '.join(map(str, self.cluster))}"]
        declared = self.registers.declarations()
        body = [*self._variables, *([declared] if declared else []), *self._lines]
        return "\n".join([*head, opening, *bounds, "{", *body, "}", ""])

    def kernel(self) -> Kernel:
        """The kernel, ready to be launched. Raises PtxSyntaxError for lines of `text` that are no PTX."""
        return Kernel.from_ptx(self.ptx(), regions=self.regions)
