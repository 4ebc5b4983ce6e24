"""What every kernel repeats, for `KernelBuilder`: waits, loops, branches, roles of warps, arithmetic on registers.

Each method appends a few typed calls, which stand in the text as if they were written out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ptxgen.builder.registers import Register, RegisterError
from ptxgen.instr import control, floating, integer, logic, mbarrier, move, predicate, tcgen05, warp
from ptxgen.instr.model.form import Instruction

Number = int | float
#: Threads of a warp, as a shift.
_WARP_SHIFT = 5
_FLOATS = {"f32": "f32", "f64": "f64"}
_INTEGERS = {"b32": "u32", "u32": "u32", "s32": "s32", "b64": "u64", "u64": "u64", "s64": "s64"}
_COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


class Structure(ABC):
    """Methods over those of `KernelBuilder` that append instructions and make registers."""

    def __init__(self) -> None:
        #: Labels after the loops that are open, the innermost last, and where the author opened each.
        self._ends: list[str] = []
        self._opened: list[tuple[str, int]] = []
        #: The label after the last `when`, to which `otherwise` belongs.
        self._skipped = ""

    @abstractmethod
    def __call__(self, *made: Instruction) -> None: ...

    @abstractmethod
    def _author(self) -> tuple[str, int]:
        """The file and line of the author's code that is being executed."""

    @abstractmethod
    def reg(self, type: str, name: str = "r") -> Register: ...

    @abstractmethod
    def regs(self, type: str, count: int, name: str = "r") -> list[Register]: ...

    @abstractmethod
    def special(self, name: str) -> Register: ...

    @abstractmethod
    def label(self, name: str = "label") -> str: ...

    @abstractmethod
    def place(self, label: str) -> None: ...

    @abstractmethod
    def _take_back(self, label: str) -> bool:
        """Remove a label that was the last line; False if it is not."""

    # Branches.

    @contextmanager
    def when(self, predicate: Register, *, negated: bool = False) -> Iterator[None]:
        """What is appended inside runs in the lanes where the predicate is true, or `negated` false."""
        after = self.label("after")
        branch = control.bra(after)
        self(branch.when(predicate) if negated else branch.unless(predicate))
        yield
        self.place(after)
        self._skipped = after

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """What is appended inside runs in the lanes that skip the block of `when` directly before it."""
        if not self._skipped or not self._take_back(self._skipped):
            raise RegisterError("otherwise() stands directly after the block of a when()")
        end = self.label("end")
        self(control.bra(end))
        self.place(self._skipped)
        self._skipped = ""
        yield
        self.place(end)

    @contextmanager
    def elect(self, mask: int = 0xFFFFFFFF) -> Iterator[Register]:
        """What is appended inside runs in one thread of the warp, which elect.sync chooses; its predicate."""
        elected = self.reg("pred", "elected")
        self(warp.elect("_", elected, mask))
        with self.when(elected):
            yield elected

    @contextmanager
    def role(self, name: str, warps: int | range, warp: Register | None = None) -> Iterator[None]:
        """What is appended inside runs in some warps of the CTA: 0, or range(4, 8). `warp` has the warp's number.

        Without `warp` it is taken from %tid.x.
        """
        found = range(warps, warps + 1) if isinstance(warps, int) else warps
        if not found or found.step != 1 or found.start < 0:
            raise RegisterError(f"role {name}: the warps must be a number or a range of some, not {warps!r}")
        number = self.warp() if warp is None else warp
        if found.start:
            number = number - found.start
        inside = self.reg("pred", f"is_{name}")
        self(predicate.setp(inside, number, len(found), compare="lt", type="u32"))
        after = self.label(f"not_{name}")
        self(control.bra(after).unless(inside))
        yield
        self.place(after)

    def warp(self) -> Register:
        """A new register with the number of the warp in a CTA of one dimension: %tid.x / 32."""
        found = self.reg("b32", "warp")
        self(logic.shr(found, self.special("tid.x"), _WARP_SHIFT, type="u32"))
        return found

    # Loops.

    @contextmanager
    def loop(self, name: str = "loop") -> Iterator[str]:
        """What is appended inside runs again and again, until it branches to the label that this gives."""
        begin, end = self.label(name), self.label(f"{name}_end")
        self.place(begin)
        self._ends.append(end)
        self._opened.append(self._author())
        yield end
        self._ends.pop()
        self._opened.pop()
        self(control.bra(begin))
        self.place(end)

    def range(
        self,
        start: Register | int,
        stop: Register | int | None = None,
        step: int = 1,
        *,
        counter: Register | None = None,
    ) -> Iterator[Register]:
        """`for i in k.range(n):` appends its body once, as a loop over 0 to n - 1; `i` is a register of 32 bits.

        Arguments as Python's range, numbers or registers; signed where `step` is negative. `counter` is a register to
        use for `i`. `leave` ends it early.
        """
        first, last = (0, start) if stop is None else (start, stop)
        if step == 0:
            raise RegisterError("k.range: the step must not be 0")
        type = "s32" if step < 0 or any(isinstance(each, int) and each < 0 for each in (first, last)) else "u32"
        counter, done = counter or self.reg("b32", "i"), self.reg("pred", "done")
        begin, end = self.label("for"), self.label("for_end")
        self(move.mov(counter, first, type="b32" if isinstance(first, Register) else type))
        self.place(begin)
        self(predicate.setp(done, counter, last, compare="le" if step < 0 else "ge", type=type))
        self(control.bra(end).when(done))
        self._ends.append(end)
        self._opened.append(self._author())
        yield counter
        self._ends.pop()
        self._opened.pop()
        self(integer.add(counter, counter, step, type=type))
        self(control.bra(begin))
        self.place(end)

    def leave(self, when: Register | None = None) -> None:
        """End the innermost `range` or `loop`, in the lanes where a predicate is true."""
        if not self._ends:
            raise RegisterError("leave() stands in the body of a k.range or k.loop")
        branch = control.bra(self._ends[-1])
        self(branch if when is None else branch.when(when))

    def _require_closed(self) -> None:
        """Raises RegisterError for a loop that Python's break left open."""
        if self._ends:
            path, line = self._opened[-1]
            raise RegisterError(
                f"the loop of {Path(path).name}:{line} is open: leave it by k.leave(), not by break or return"
            )

    # Barriers.

    def wait(self, address: Register | str, parity: Register | int) -> None:
        """Wait until the phase with this parity of an mbarrier in shared memory has completed."""
        ready, again = self.reg("pred", "ready"), self.label("wait")
        self.place(again)
        self(mbarrier.try_wait_parity(ready, address, parity, space="shared::cta"))
        self(control.bra(again).unless(ready))

    # Values.

    def constant(self, value: bool) -> Register:
        """A new predicate that is always true, or always false."""
        found = self.reg("pred", "true" if value else "false")
        self(move.mov_pred(found, int(value)))
        return found

    def compare(self, a: Register, how: str, b: Register | Number) -> Register:
        """A new predicate: `k.compare(i, "<", n)`; also <=, >, >=, == and !=. b32 and b64 are compared unsigned."""
        if how not in _COMPARISONS:
            raise RegisterError(f"k.compare takes {', '.join(_COMPARISONS)}, not {how!r}")
        found = self.reg("pred", "p")
        kind = _FLOATS.get(a.type) or _integer(a)
        self(predicate.setp(found, a, b, compare=_COMPARISONS[how], type=kind))  # type: ignore[arg-type]
        return found

    def arithmetic(
        self, operator: str, a: Register | Number, b: Register | Number, into: Register | None = None
    ) -> Register:
        """A register with the result of one instruction: what `a + b` and, `into` a, `a += b` of registers call."""
        kind = next(each.type for each in (a, b) if isinstance(each, Register))
        for each in (a, b):
            if isinstance(each, Register) and each.type != kind and _width(each) != _width_of(kind):
                raise RegisterError(f"{a} {operator} {b}: one is .{_type(a)}, the other .{_type(b)}; convert one")
        found = self.reg(kind, "t") if into is None else into
        if kind in _FLOATS:
            self(_float(operator, found, a, b, kind))
        else:
            self(_whole(operator, found, a, b, _INTEGERS.get(kind, "")))
        return found

    # Tensor memory.

    def tmem_load(
        self, address: Register, columns: int, *, width: int = 32, name: str = "value", type: str = "b32"
    ) -> Iterator[tuple[int, list[Register]]]:
        """Columns of the warp's 32 lanes of tensor memory, `width` at a time: (first column, its registers).

        tcgen05.ld.32x32b.xWIDTH and tcgen05.wait::ld for each; the registers, of a `type` of 32 bits, are used again by
        the next.
        """
        _require_chunks(columns, width)
        values = self.regs(type, width, name)
        for column in range(0, columns, width):
            self(tcgen05.ld(values, f"{address}+{column}" if column else address, shape="32x32b", num=width))  # type: ignore[arg-type]
            self(tcgen05.wait(what="ld"))
            yield column, values

    def tmem_store(
        self, address: Register, columns: int, *, width: int = 32, name: str = "value", type: str = "b32"
    ) -> Iterator[tuple[int, list[Register]]]:
        """Columns to fill, `width` at a time: (first column, registers that the body writes).

        tcgen05.st.32x32b.xWIDTH after each body, and one tcgen05.wait::st after all.
        """
        _require_chunks(columns, width)
        values = self.regs(type, width, name)
        for column in range(0, columns, width):
            yield column, values
            self(tcgen05.st(f"{address}+{column}" if column else address, values, shape="32x32b", num=width))  # type: ignore[arg-type]
        self(tcgen05.wait(what="st"))


def _require_chunks(columns: int, width: int) -> None:
    if width not in (1, 2, 4, 8, 16, 32, 64, 128) or columns < 1 or columns % width:
        raise RegisterError(f"{columns} columns are not a multiple of {width}, which is a power of two up to 128")


def _type(value: Register | Number) -> str:
    return value.type if isinstance(value, Register) else type(value).__name__


def _width_of(kind: str) -> str:
    return kind.lstrip("bsufpred") if kind not in _FLOATS else kind


def _width(register: Register) -> str:
    return _width_of(register.type)


def _integer(register: Register) -> str:
    if register.type not in _INTEGERS:
        raise RegisterError(f"{register} is .{register.type}; arithmetic takes registers of 32 or 64 bits")
    return _INTEGERS[register.type]


def _float(operator: str, found: Register, a: Register | Number, b: Register | Number, kind: str) -> Instruction:
    calls = {"+": floating.add, "-": floating.sub, "*": floating.mul}
    if operator not in calls:
        raise RegisterError(f"{a} {operator} {b}: registers of .{kind} take +, - and *")
    return calls[operator](found, a, b, type=kind)


def _whole(operator: str, found: Register, a: Register | Number, b: Register | Number, kind: str) -> Instruction:
    if not kind:
        raise RegisterError(f"{a} {operator} {b}: arithmetic takes registers of 32 or 64 bits, not .{found.type}")
    bits = f"b{kind[1:]}"
    match operator:
        case "+":
            return integer.add(found, a, b, type=kind)  # type: ignore[arg-type]
        case "-":
            return integer.sub(found, a, b, type=kind)  # type: ignore[arg-type]
        case "*":
            return integer.mul(found, a, b, half="lo", type=kind)  # type: ignore[arg-type]
        case "//":
            return integer.div(found, a, b, type=kind)  # type: ignore[arg-type]
        case "%":
            return integer.rem(found, a, b, type=kind)  # type: ignore[arg-type]
        case "<<":
            return logic.shl(found, a, b, type=bits)  # type: ignore[arg-type]
        case ">>":
            return logic.shr(found, a, b, type=kind)  # type: ignore[arg-type]
        case "&":
            return logic.and_(found, a, b, type=bits)  # type: ignore[arg-type]
        case "|":
            return logic.or_(found, a, b, type=bits)  # type: ignore[arg-type]
        case _:
            return logic.xor(found, a, b, type=bits)  # type: ignore[arg-type]
