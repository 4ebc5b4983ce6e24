"""Video instructions: arithmetic on parts of 32-bit registers that selectors pick, as in `%r1.h0`. PTX ISA 9.7.18.

The scalar ones take a byte (`.b0` to `.b3`), a half (`.h0`, `.h1`) or a whole register from a and b, extend it by its
type and compute with 34 bits. What they give is clamped to the destination with `sat`, and then put into c (a
selector on d says where), or combined with c (`op2`), or written as it is: c alone has no effect (measured, H200,
driver 580, 2026-11-20).

Those that end in 2 or 4 compute with two halves or four bytes at a time. The selectors of a and b pick each of them
from both registers: halves 0 to 3, bytes 0 to 7, the highest first. The selector of d says which parts are written, the
others are those of c; with `add`, they are summed up with c instead.
"""

from dataclasses import KW_ONLY
from typing import Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import part
from ptxgen.instr.model.targets import ALL
from ptxgen.syntax import Name, Negation

_Type = Literal["u32", "s32"]
_Compare = Literal["eq", "ne", "lt", "le", "gt", "ge"]
_PART = "b[0-3]|h[01]"
_HALVES, _WRITTEN_HALVES = "h[0-3][0-3]", "h0|h1|h10"
_BYTES, _WRITTEN_BYTES = "b[0-7]{4}", r"b(?=\d)3?2?1?0?"


class _Scalar(Instruction, ptx="2.0", targets=ALL):
    d: OperandLike = part("u32", _PART)
    a: OperandLike = part("u32", _PART, immediate=True, sums=False, plain=True)
    b: OperandLike = part("u32", _PART, immediate=True, sums=False, plain=True)
    c: OperandLike = part("u32", immediate=True, default=None)
    _: KW_ONLY
    atype: _Type
    op2: Literal["add", "min", "max"] | None = None

    @rule("third-source", reads_operands=True)
    def _third(self) -> str | None:
        """What is put into c or combined with it needs c, and is not both."""
        selector = self.d.component if isinstance(self.d, Name) else None
        if self.op2 and selector:
            return f"{self.form.opcode} allows a selector on d or .{self.op2}, not both: d is {self.d}"
        if (self.op2 or selector) and self.c is None:
            return f"{self.form.opcode} with {'.' + self.op2 if self.op2 else self.d} requires c, the third source"
        return None


class _Arithmetic(_Scalar, section="9.7.18.1.1"):
    _: KW_ONLY
    dtype: _Type
    btype: _Type
    sat: bool = False


class vadd(_Arithmetic):
    """d = a + b."""

    syntax = "vadd.dtype.atype.btype{.sat}{.op2} d, a, b{, c}"


class vsub(_Arithmetic):
    """d = a - b."""

    syntax = "vsub.dtype.atype.btype{.sat}{.op2} d, a, b{, c}"


class vabsdiff(_Arithmetic):
    """d = |a - b|."""

    syntax = "vabsdiff.dtype.atype.btype{.sat}{.op2} d, a, b{, c}"


class vmin(_Arithmetic):
    """d = the smaller of a and b."""

    syntax = "vmin.dtype.atype.btype{.sat}{.op2} d, a, b{, c}"


class vmax(_Arithmetic):
    """d = the larger of a and b."""

    syntax = "vmax.dtype.atype.btype{.sat}{.op2} d, a, b{, c}"


class _Shift(_Scalar, section="9.7.18.1.2"):
    _: KW_ONLY
    dtype: _Type
    mode: Literal["clamp", "wrap"]
    sat: bool = False


class vshl(_Shift):
    """d = a << b; amounts above 32 count as 32 (`clamp`) or modulo 32 (`wrap`)."""

    syntax = "vshl.dtype.atype.u32{.sat}.mode{.op2} d, a, b{, c}"


class vshr(_Shift):
    """d = a >> b, filling with the sign for .s32; amounts above 32 count as 32 (`clamp`) or modulo 32 (`wrap`)."""

    syntax = "vshr.dtype.atype.u32{.sat}.mode{.op2} d, a, b{, c}"


class vmad(Instruction, section="9.7.18.1.3", ptx="2.0", targets=ALL):
    """d = a * b + c, shifted right by 7 or 15; `po` adds one more. Either the product or c may be negative."""

    syntax = "vmad.dtype.atype.btype{.po}{.sat}{.scale} d, a, b, c"
    d: OperandLike = part("u32")
    a: OperandLike = part("atype", _PART, immediate=True, negatable=True, sums=False, plain=True)
    b: OperandLike = part("btype", _PART, immediate=True, negatable=True, sums=False, plain=True)
    c: OperandLike = part("u32", immediate=True, negatable=True)
    _: KW_ONLY
    dtype: _Type
    atype: _Type
    btype: _Type
    po: bool = False
    sat: bool = False
    scale: Literal["shr7", "shr15"] | None = None

    @rule("signs", reads_operands=True)
    def _signs(self) -> str | None:
        """One minus at most, and none with .po; -a * -b is the product itself."""
        a, b, c = (isinstance(operand, Negation) for operand in (self.a, self.b, self.c))
        if (a != b) and c:
            return f"vmad allows a minus for the product or for c, not both: {self.a}, {self.b}, {self.c}"
        if self.po and (a != b or c):
            return f"vmad.po allows no minus: {self.a}, {self.b}, {self.c}"
        return None


class vset(_Scalar, section="9.7.18.1.4"):
    """d = 1 where a compares with b, else 0."""

    syntax = "vset.atype.btype.compare{.op2} d, a, b{, c}"
    _: KW_ONLY
    btype: _Type
    compare: _Compare


class _Packed(Instruction, ptx="3.0", targets="sm_30+"):
    d: OperandLike = part("u32", _WRITTEN_HALVES)
    a: OperandLike = part("u32", _HALVES)
    b: OperandLike = part("u32", _HALVES)
    c: OperandLike = part("u32")
    _: KW_ONLY
    atype: _Type
    btype: _Type
    add: bool = False


class _Halves(_Packed, section="9.7.18.2.1"):
    _: KW_ONLY
    dtype: _Type
    sat: bool = False

    @rule("saturated-sum")
    def _sum(self) -> str | None:
        """.sat clamps parts, which .add sums up."""
        return f"{self.form.opcode} allows .sat or .add, not both" if self.sat and self.add else None


class _Bytes(_Halves, section="9.7.18.2.3"):
    d: OperandLike = part("u32", _WRITTEN_BYTES)
    a: OperandLike = part("u32", _BYTES)
    b: OperandLike = part("u32", _BYTES)


class vadd2(_Halves):
    """The halves of d = those of a + those of b."""

    syntax = "vadd2.dtype.atype.btype{.sat}{.add} d, a, b, c"


class vsub2(_Halves):
    """The halves of d = those of a - those of b."""

    syntax = "vsub2.dtype.atype.btype{.sat}{.add} d, a, b, c"


class vavrg2(_Halves):
    """The halves of d = the averages of those of a and b, rounded away from zero."""

    syntax = "vavrg2.dtype.atype.btype{.sat}{.add} d, a, b, c"


class vabsdiff2(_Halves):
    """The halves of d = |those of a - those of b|."""

    syntax = "vabsdiff2.dtype.atype.btype{.sat}{.add} d, a, b, c"


class vmin2(_Halves):
    """The halves of d = the smaller of those of a and b."""

    syntax = "vmin2.dtype.atype.btype{.sat}{.add} d, a, b, c"


class vmax2(_Halves):
    """The halves of d = the larger of those of a and b."""

    syntax = "vmax2.dtype.atype.btype{.sat}{.add} d, a, b, c"


class vset2(_Packed, section="9.7.18.2.2"):
    """The halves of d = 1 where those of a and b compare, else 0."""

    syntax = "vset2.atype.btype.compare{.add} d, a, b, c"
    _: KW_ONLY
    compare: _Compare


class vadd4(_Bytes):
    """The bytes of d = those of a + those of b."""

    syntax = "vadd4.dtype.atype.btype{.sat}{.add} d, a, b, c"


class vsub4(_Bytes):
    """The bytes of d = those of a - those of b."""

    syntax = "vsub4.dtype.atype.btype{.sat}{.add} d, a, b, c"


class vavrg4(_Bytes):
    """The bytes of d = the averages of those of a and b, rounded away from zero."""

    syntax = "vavrg4.dtype.atype.btype{.sat}{.add} d, a, b, c"


class vabsdiff4(_Bytes):
    """The bytes of d = |those of a - those of b|."""

    syntax = "vabsdiff4.dtype.atype.btype{.sat}{.add} d, a, b, c"


class vmin4(_Bytes):
    """The bytes of d = the smaller of those of a and b."""

    syntax = "vmin4.dtype.atype.btype{.sat}{.add} d, a, b, c"


class vmax4(_Bytes):
    """The bytes of d = the larger of those of a and b."""

    syntax = "vmax4.dtype.atype.btype{.sat}{.add} d, a, b, c"


class vset4(vset2, section="9.7.18.2.4"):
    """The bytes of d = 1 where those of a and b compare, else 0."""

    syntax = "vset4.atype.btype.compare{.add} d, a, b, c"
    d: OperandLike = part("u32", _WRITTEN_BYTES)
    a: OperandLike = part("u32", _BYTES)
    b: OperandLike = part("u32", _BYTES)
