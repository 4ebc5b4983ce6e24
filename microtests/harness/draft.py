"""`Draft`: a kernel under construction, together with its inputs and what it must leave in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen.builder import Register, Registers
from ptxgen.descriptors import TensorMap
from ptxgen.device import DeviceArray
from ptxgen.instr import address, barrier, control, conversion, integer, logic, mbarrier, memory, move, predicate
from ptxgen.instr.model.form import Instruction, InstructionError, errors
from ptxgen.instr.model.operands import Symbol
from ptxgen.instr.model.targets import Availability, parse_target, parse_version
from ptxgen.instr.model.types import TYPES

#: Outputs hold these bytes before a launch.
POISON = 0xCD
#: The PTX version of a kernel, and the one where an instruction of it needs that.
VERSION, NEWEST = "9.0", "9.5"
Array = NDArray[Any]


class NotThereError(Exception):
    """The target has no such instruction."""


@dataclass(frozen=True)
class Tolerance:
    """How far a result may be from the reference, and why it may.

    `relative` and `absolute` bound the error of floats of type `dtype`, `ulps` counts steps of their words; `any_nan`
    takes each NaN for another; `open` marks elements that PTX leaves undefined. `recorded`: the same holds between the
    emulator and a GPU's answer; else only the reference has this freedom.
    """

    reason: str
    dtype: Any = np.float32
    relative: float = 0.0
    absolute: float = 0.0
    ulps: int = 0
    any_nan: bool = True
    recorded: bool = False


@dataclass(frozen=True)
class Output:
    """An array that the kernel writes: its size, its reference, and how they are compared."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    expected: Callable[[], Array]
    initial: Array | None
    tolerance: Tolerance | None

    def expected_bytes(self) -> bytes:
        """The words that it must hold in the end."""
        return np.ascontiguousarray(self.expected()).astype(self.dtype, copy=False).tobytes()


@dataclass(frozen=True)
class Launch:
    """The shape of a launch."""

    grid: int | tuple[int, int, int] = 1
    block: int = 32
    cluster: int | None = None


class Draft:
    """A kernel for one target: calls of a draft append instructions, its methods make what they need."""

    def __init__(self, target: str, entry: str = "k") -> None:
        self.target, self.entry = target, entry
        self._target = parse_target(target)
        # sm_107 is newer than the version that the others have.
        self.version = NEWEST if target.startswith("sm_107") else VERSION
        self.registers = Registers()
        self.lines: list[str] = []
        self.used: list[type[Instruction]] = []
        self.shape = Launch()
        #: The code of the emulator's finding, where the kernel must end in a fault.
        self.fault = ""
        self.inputs: list[Array] = []
        self.outputs: list[Output] = []
        self._arguments: list[tuple[str, Any]] = []
        self._parameters: list[str] = []
        self._items: list[str] = []
        self._shared = 0
        self._thread: Register | None = None
        self.registers.define(Symbol("smem", "variable", TYPES["b8"], "shared"))

    # The launch and its arguments.

    def launch(self, *, grid: int | tuple[int, int, int] = 1, block: int = 32, cluster: int | None = None) -> None:
        """CTAs, threads of each, CTAs of a cluster."""
        self.shape = Launch(grid, block, cluster)

    def _parameter(self, declaration: str, kind: str, value: Any) -> str:
        name = f"p{len(self._parameters)}"
        self._parameters.append(declaration.replace("NAME", name))
        type = declaration.split(".")[-1].split()[0]
        self.registers.define(Symbol(name, "parameter", TYPES.get(type), "param"))
        self._arguments.append((kind, value))
        return name

    def _pointer(self, kind: str, value: Any) -> Register:
        register = self.reg("b64", "at")
        self(memory.ld(register, f"[{self._parameter('.param .u64 NAME', kind, value)}]", space="param", type="u64"))
        return register

    def input(self, values: Array) -> Register:
        """The address of a copy of an array in global memory; later changes of the array do not count."""
        self.inputs.append(np.array(values, order="C"))
        return self._pointer("input", len(self.inputs) - 1)

    def scalar(self, type: Any, value: int) -> Register:
        """A register with a parameter of the kernel, which no assembler knows."""
        register = self.reg(f"b{TYPES[type].bits}", "given")
        dtype = np.dtype(f"u{TYPES[type].bits // 8}")
        name = self._parameter(f".param .{type} NAME", "scalar", np.array([value % 2 ** TYPES[type].bits], dtype)[0])
        self.inputs.append(np.array([value % 2 ** TYPES[type].bits], dtype))
        self(memory.ld(register, f"[{name}]", space="param", type=type))
        return register

    def byte_parameter(self, values: Array) -> str:
        """The name of a parameter of so many bytes."""
        data = np.ascontiguousarray(values)
        self.inputs.append(data)
        return self._parameter(f".param .align 16 .b8 NAME[{data.nbytes}]", "scalar", data.tobytes())

    def scalar_at(self, value: int) -> Register:
        """The address, in .param, of a parameter of 32 bits."""
        found = self.reg("b64", "param")
        word = np.array([value], np.uint32)
        self.inputs.append(word)
        self(move.mov(found, self._parameter(".param .u32 NAME", "scalar", word[0]), type="u64"))
        return found

    def output(
        self,
        expected: Array | Callable[[], Array],
        *,
        shape: Sequence[int] | None = None,
        dtype: Any = None,
        initial: Array | None = None,
        tolerance: Tolerance | None = None,
    ) -> Register:
        """The address of an array that must be `expected` in the end; a function needs `shape` and `dtype`.

        It begins as poison, or as `initial`.
        """
        if callable(expected):
            assert shape is not None
            made, sizes, kind = expected, tuple(shape), np.dtype(dtype)
        else:
            array = np.ascontiguousarray(expected)
            made, sizes, kind = (lambda: array), array.shape, array.dtype
        self.outputs.append(Output(f"out{len(self.outputs)}", sizes, kind, made, initial, tolerance))
        return self._pointer("output", len(self.outputs) - 1)

    def tensormap(self, make: Callable[[DeviceArray], TensorMap], values: Array | int) -> Register:
        """The generic address of a tensormap of an array: of a new input, or of the output with this number."""
        if isinstance(values, int):
            array = ("output", values)
        else:
            self.inputs.append(np.ascontiguousarray(values))
            array = ("input", len(self.inputs) - 1)
        name = self._parameter(".param .align 64 .b8 NAME[128]", "tensormap", (make, array))
        plain, generic = self.reg("b64", "map"), self.reg("b64", "map")
        self(move.mov(plain, name, type="b64"), address.cvta(generic, plain, space="param", size="u64"))
        return generic

    def arguments(self, inputs: Sequence[DeviceArray], outputs: Sequence[DeviceArray]) -> list[Any]:
        """The arguments of a launch, with these arrays."""
        arrays = {"input": inputs, "output": outputs}
        made: list[Any] = []
        for kind, value in self._arguments:
            if kind == "tensormap":
                make, (which, number) = value
                made.append(make(arrays[which][number]))
            else:
                made.append(value if kind == "scalar" else arrays[kind][value])
        return made

    # Registers, memory, places.

    def reg(self, type: str, name: str = "r") -> Register:
        """A new register."""
        return self.registers.one(type, name)

    def regs(self, type: str, count: int, name: str = "r") -> list[Register]:
        """New registers."""
        return [self.registers.one(type, name) for _ in range(count)]

    def shared(self, size: int, align: int = 16) -> Register:
        """A register with the address of `size` new bytes of shared memory; `align` is at most 1024."""
        start = -(-self._shared // align) * align
        self._shared = start + size
        base, register = self.reg("b32", "smem"), self.reg("b32", "shared")
        self(move.mov(base, "smem", type="u32"), integer.add(register, base, start, type="u32"))
        return register

    @property
    def shared_bytes(self) -> int:
        return self._shared

    @property
    def thread(self) -> Register:
        """%tid.x; first use must be where all threads execute it."""
        if self._thread is None:
            self._thread = self.special("tid.x")
        return self._thread

    def special(self, name: str) -> Register:
        """A special register's value."""
        register = self.reg("b32", name.replace(".", "_"))
        self(move.mov(register, f"%{name}", type="u32"))
        return register

    def offset(self, base: Register, index: Register, scale: int) -> Register:
        """base + index * scale; the base may have 32 or 64 bits."""
        made = self.reg(base.type, "at")
        if base.type == "b64":
            self(integer.mad_wide(made, index, scale, base, type="u32"))
        else:
            self(integer.mad(made, index, scale, base, type="u32", half="lo"))
        return made

    def generic(self, shared: Register) -> Register:
        """The generic address of a place in shared memory."""
        wide, found = self.reg("b64", "wide"), self.reg("b64", "generic")
        self(conversion.cvt(wide, shared, dtype="u64", atype="u32"))
        self(address.cvta(found, wide, space="shared", size="u64"))
        return found

    def label(self, name: str = "label") -> str:
        """A new label, to be placed by `place`."""
        return self.registers.label(name)

    def place(self, label: str) -> None:
        """The label is here."""
        self.lines.append(f"{label}:")

    def rejoin(self, label: str) -> None:
        """Place the label; diverged lanes of each warp reconverge here."""
        self.place(label)
        self(barrier.bar_warp_sync(0xFFFFFFFF))

    # Instructions.

    def __call__(self, *made: Instruction) -> None:
        """Append instructions. Raises NotThereError where the target lacks one, InstructionError for illegal ones."""
        for each in made:
            problems = errors(each.operand_problems(self.registers))
            if problems:
                raise InstructionError(each.form.key, problems)
            if self._missing(each):
                self.version = NEWEST
                if missing := self._missing(each):
                    raise NotThereError("; ".join(missing))
            self.lines.append(f"    {each}")
            self.used.append(type(each))

    def requires(self, ptx: str, targets: str) -> None:
        """What the kernel needs beside its instructions. Raises NotThereError where the target lacks it."""
        if not Availability(ptx, targets).has_target(self._target):
            raise NotThereError(f"{self.target} is none of {targets}")

    def _missing(self, made: Instruction) -> list[str]:
        found = made.availability_problems(self._target, parse_version(self.version))
        return [problem.message for problem in errors(found)]

    def text(self, line: str) -> None:
        """Append a line as it is: braces and directives."""
        self.lines.append(line)

    def raw(self, line: str, form: type[Instruction]) -> None:
        """Append an instruction as text: one whose operands need names that only the module knows."""
        self.lines.append(f"    {line}")
        self.used.append(form)

    def item(self, text: str) -> None:
        """Put functions or variables before the entry; ENTRY in their names keeps those of several entries apart."""
        self._items.append(text.replace("ENTRY", self.entry))

    def variable(self, space: Any, declaration: str, name: str) -> str:
        """A variable of the module (.global, .const) or of the kernel (.local); NAME stands for what this returns."""
        unique = f"{name}_{self.entry}"
        text = f".{space} {declaration.replace('NAME', unique)};"
        if space == "local":
            self.lines.append(f"    {text}")
        else:
            self._items.append(text)
        self.registers.define(Symbol(unique, "variable", TYPES["b8"], space))
        return unique

    def load(self, pointer: Register, type: str) -> Register:
        """A new register with what is at an address in global memory."""
        bits = TYPES[type].bits
        register, kind = self.reg(f"b{max(bits, 16)}", "loaded"), _untyped(bits)
        self(memory.ld(register, f"[{pointer}]", space="global", type=kind))
        return register

    def store(self, pointer: Register, value: Any, offset: int = 0, *, space: Any = "global", bits: int = 0) -> None:
        """Store a register, by default of its own width."""
        kind = _untyped(bits or TYPES[value.type].bits)
        self(memory.st(f"[{pointer}+{offset}]", value, space=space, type=kind))

    def load_into(self, register: Register, pointer: Register, offset: int = 0) -> None:
        """Load a register of 32 or 64 bits from global memory."""
        self(memory.ld(register, f"[{pointer}+{offset}]", space="global", type=_untyped(TYPES[register.type].bits)))

    def copy_in(self, box: Register, values: Array) -> None:
        """Fill shared memory with an array, by all threads of the CTA, and wait for it."""
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        self.copy_in_at(box, self.input(data), len(data))

    def copy_in_at(self, box: Register, pointer: Register, size: int) -> None:
        """Fill shared memory from an address in global memory, by all threads of the CTA, and wait for it."""
        self._copy(pointer, box, size, "global", "shared")
        self(barrier.bar_sync(0))

    def copy_out(self, box: Register, pointer: Register, size: int) -> None:
        """Copy shared memory to global memory, by all threads of the CTA, after a barrier."""
        self(barrier.bar_sync(0))
        self._copy(box, pointer, size, "shared", "global")

    def _copy(self, source: Register, destination: Register, size: int, of: Any, to: Any) -> None:
        """In pieces of 16 bytes: thread t has the pieces t, t + threads, ..."""
        assert size % 16 == 0, f"{size} bytes are no pieces of 16"
        threads, pieces = self.shape.block, size // 16
        at, more, again, end = self.reg("b32", "piece"), self.reg("pred"), self.label("copy"), self.label("copied")
        self(integer.add(at, self.thread, 0, type="u32"))
        self(predicate.setp(more, at, pieces, compare="lt", type="u32"))
        self.branch(end, more, negated=True)
        self.place(again)
        words = self.regs("b32", 4)
        self(memory.ld(words, f"[{self.offset(source, at, 16)}]", space=of, vec="v4", type="b32"))
        self(memory.st(f"[{self.offset(destination, at, 16)}]", words, space=to, vec="v4", type="b32"))
        self(integer.add(at, at, threads, type="u32"))
        self(predicate.setp(more, at, pieces, compare="lt", type="u32"))
        self.branch(again, more)
        self.place(end)

    def zero(self) -> Register:
        """A register that holds 0, which no assembler knows."""
        return self.scalar("u32", 0)

    def is_thread(self, number: int) -> Register:
        """A predicate: whether this is the thread of this number."""
        found = self.reg("pred", "is_thread")
        self(predicate.setp(found, self.thread, number, compare="eq", type="u32"))
        return found

    def as_word(self, condition: Register) -> Register:
        """1 where the predicate holds, 0 where not."""
        word = self.reg("b32", "word")
        self(predicate.selp(word, 1, 0, condition, type="b32"))
        return word

    def branch(self, label: str, condition: Register | None = None, *, negated: bool = False) -> None:
        """Go to a label, if a condition holds."""
        made = control.bra(label)
        self(made if condition is None else made.when(condition, negated=negated))

    def wait(self, barrier: Register, parity: int = 0) -> None:
        """Spin until the phase of an mbarrier with this parity is over."""
        again, done = self.label("again"), self.reg("pred", "done")
        self.place(again)
        self(mbarrier.try_wait_parity(done, f"[{barrier}]", parity, space="shared::cta"))
        self.branch(again, done, negated=True)

    def masked(self, value: Register, bits: int) -> Register:
        """The low bits of a value."""
        made = self.reg("b32", "masked")
        self(logic.and_(made, value, (1 << bits) - 1, type="b32"))
        return made

    # The text.

    def entry_text(self) -> str:
        """The entry alone; modules of several entries are made of these."""
        shape = self.shape
        directives = f".reqntid {shape.block}, 1, 1\n"
        if shape.cluster is not None:
            directives += f".explicitcluster\n.reqnctapercluster {shape.cluster}, 1, 1\n"
        body = "\n".join(self.lines)
        parameters = ",\n".join(f"    {parameter}" for parameter in self._parameters)
        items = "".join(f"{each}\n" for each in self._items)
        return (
            f"{items}.visible .entry {self.entry}(\n{parameters}\n)\n{directives}{{\n{self.registers.declarations()}\n"
            f"{body}\n    ret;\n}}\n"
        )

    def ptx(self) -> str:
        """The whole module."""
        return header(self.target, self.version) + self.entry_text()


def _untyped(bits: int) -> Any:
    return f"b{bits}"


def header(target: str, version: str) -> str:
    """What stands before the entries of a module."""
    return f".version {version}\n.target {target}\n.address_size 64\n\n.extern .shared .align 1024 .b8 smem[];\n\n"
