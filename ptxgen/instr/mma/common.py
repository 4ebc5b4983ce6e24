"""What the mma instructions have in common: operands, and how many registers each matrix takes.

A class says how many bits an element of A and B takes in its register (`bits`), and what these registers may be
declared as (`packed`). The accumulators follow from their types.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.fragments import WARP, dimensions, registers
from ptxgen.instr.model.operands import accumulator, immediate, vector
from ptxgen.instr.model.symbols import Problem, Resolver
from ptxgen.instr.model.targets import Target
from ptxgen.syntax import Expression, Immediate, Name, Vector

#: The register type of an accumulator.
_ACCUMULATORS = {"f16": "f16x2", "f32": "f32", "s32": "s32", "f64": "f64"}


def _packed(form: Any) -> str:
    """Fragments of small elements may be in registers of any 32-bit type; at .m8n8k16 not in .f32 (measured)."""
    return "u32" if form.shape == "m8n8k16" and form.bits == 8 else form.packed


def _ctype(form: Any) -> str:
    """The type of C: that of D where the syntax line has one for both."""
    return getattr(form, "ctype", form.dtype)


def d_type(form: Any) -> str:
    return _ACCUMULATORS[form.dtype]


def _c_type(form: Any) -> str:
    return _ACCUMULATORS[_ctype(form)]


def _accumulator(form: Any, type: str) -> int:
    m, n, _ = dimensions(form.shape)
    return registers(form.matrices * m * n, {"f16": 16, "f64": 64}.get(type, 32))


def d_count(form: Any) -> int:
    return _accumulator(form, form.dtype)


def _c_count(form: Any) -> int:
    return _accumulator(form, _ctype(form))


def _a_count(form: Any) -> int:
    m, _, k = dimensions(form.shape)
    return registers(form.matrices * m * k // form.sparsity, form.bits)


def _b_count(form: Any) -> int:
    _, n, k = dimensions(form.shape)
    return registers(form.matrices * k * n, form.bits)


def _constants(form: Any) -> Literal["bits", "value"]:
    """8-bit floats without scale factors are multiplied as others on targets that lack them."""
    return "value" if form.bits == 8 and form.dtype != "s32" and not isinstance(form, ScaledMma) else "bits"


class Mma(Instruction, section="9.7.14.5.14", issued_by="warp", multiplies=True):
    """D = A*B + C on matrices in the registers of a warp."""

    d: OperandLike = vector(d_type, d_count, sink=True)
    a: OperandLike = vector(_packed, _a_count, mixed=True)
    b: OperandLike = vector(_packed, _b_count, mixed=True)
    c: OperandLike = accumulator(_c_type, _c_count, mode=_constants)
    bits: ClassVar[int]
    packed: ClassVar[str]
    #: How many products a warp computes at once.
    matrices: ClassVar[int] = 1
    #: One of so many elements of A is stored.
    sparsity: ClassVar[int] = 1


def _selectors(form: Any) -> int:
    """How many ways a quad has to hold the metadata, which fill one, two or all of its four registers.

    Two bits give the position of each stored element, for .tf32 four; elements of 4 bits come in pairs.
    """
    m, _, k = dimensions(form.shape)
    bits = m * k // form.sparsity * {4: 1, 32: 4}.get(form.bits, 2)
    return WARP * 32 // bits


def _sparsity_selector(form: Any) -> str | None:
    """The selector names one of the threads, or pairs of threads, of a quad."""
    last = _selectors(form) - 1
    if form.f.evaluate() <= last:
        return None
    return f"the sparsity selector f of .{form.shape} with {form.bits}-bit elements is 0 to {last}, not {form.f}"


class SparseMma(Mma, section="9.7.14.6.3", ptx="7.1", targets="sm_80+"):
    """D = A*B + C where half of A is zeros and not stored: 2 of 4 elements, 1 of 2 (.tf32), or 2 pairs of 4 (4 bits).

    `e` holds the metadata, which say where the stored elements are, `f` says which threads of a quad hold them. With
    sp::ordered_metadata the indices must rise, which is faster on later targets.
    """

    e: OperandLike = vector("b32", 1, scalar=True, sums=True)
    f: OperandLike = immediate(0, 3)
    sparsity: ClassVar[int] = 2
    #: Targets for whose numbers ptxas makes functions of `mma.sp`, to which no element or sum can be passed.
    functions: ClassVar[range] = range(0)
    #: Targets for whose numbers it converts the operands first, and takes no float as metadata.
    converted: ClassVar[range] = range(0)

    def is_function(self, target: Target) -> bool:
        return target.number in self.functions

    def expansion_problems(self, target: Target, resolve: Resolver) -> Iterator[Problem]:
        """What the metadata cannot be where ptxas takes the instruction apart (measured, ptxas 13.5)."""
        whole, e = self.is_function(target), self.e
        name = e.elements[0] if isinstance(e, Vector) else e
        symbol = resolve(name.text) if isinstance(name, Name) else None
        is_float = symbol is not None and symbol.type is not None and symbol.type.kind == "float"
        is_part = isinstance(e, Expression) or (isinstance(name, Name) and name.component is not None)
        if not whole and target.number not in self.converted:
            return
        if isinstance(e, Vector) or (is_part if whole else is_float):
            kind = "whole register" if whole else "register of integers or untyped"
            message = f"e must be a {kind} without braces on {target}, not {e}: ptxas expands {self.form.opcode} there"
            yield Problem("operand-kind", message, part=str(e), operand="e")

    _selector = rule("selector", reads_operands=True)(_sparsity_selector)


#: The bytes of a scale operand at which the factors may begin, by how many there are for each row of A.
_BYTES = {"1X": (0, 1, 2, 3), "2X": (0, 2), "4X": (0,)}


def _scale_selectors(form: Any) -> str | None:
    """The byte of a selector fits the number of factors; the thread is 0 or 1 of A, 0 to 3 of B."""
    size = form.scale_vec or form.default_size
    for name, threads in (("selector_a", range(2)), ("selector_b", range(4))):
        elements = getattr(form, name).elements
        for what, item, legal in zip(("byte", "thread"), elements, (_BYTES[size], threads), strict=True):
            if isinstance(item, Immediate | Expression) and item.evaluate() not in legal:
                choices = ", ".join(map(str, legal))
                return f"the {what} of {name} with .scale_vec::{size} must be one of {choices}, not {item}"
    return None


class ScaledMma(Mma, ptx="8.7", targets="sm_120f"):
    """D = A*B + C where blocks of A's rows and of B's columns have scale factors.

    `scale_a` and `scale_b` hold a byte for each factor. A selector is {byte, thread}: the byte where the factors begin,
    and the threads of each quad that hold them, a pair of them for A (0 or 1), one for B (0 to 3).
    """

    scale_a: OperandLike = vector("b32", 1, scalar=True, sums=True)
    selector_a: OperandLike = vector("u16", 2, immediate=True)
    scale_b: OperandLike = vector("b32", 1, scalar=True, sums=True)
    selector_b: OperandLike = vector("u16", 2, immediate=True)
    #: The number of factors where the modifier is left out.
    default_size: ClassVar[str | None] = None
    _scale = rule("scale-selector", reads_operands=True)(_scale_selectors)
