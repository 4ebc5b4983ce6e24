"""Warp-wide matrix products with fragments of unspecified layout: load, multiply, store. PTX ISA 9.7.14.4.

Which element of a matrix a register holds depends on the target; only wmma instructions of the same shape, layout and
type may use it.
"""

from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.fragments import dimensions, registers
from ptxgen.instr.model.operands import accumulator, address, source, vector
from ptxgen.instr.model.operands.specification import value_of
from ptxgen.instr.model.targets import Availability
from ptxgen.instr.model.types import TYPES
from ptxgen.syntax import Expression, Immediate, Vector

_Layout = Literal["row", "col"]
_Shape = Literal["m16n16k16", "m8n32k16", "m32n8k16"]
_Space = Literal["global", "shared", "shared::cta"]
_CTA = {"shared::cta": Availability("7.8", "sm_75+")}


def _elements(form: Any, matrix: str) -> int:
    m, n, k = dimensions(form.shape)
    return {"a": m * k, "b": k * n, "c": m * n}[matrix]


def _multiplicand(form: Any, matrix: str, type: str) -> int:
    # Each half of the warp holds all of an f16 matrix.
    return 8 if type == "f16" else registers(_elements(form, matrix), TYPES[type].bits)


def _accumulator(form: Any, type: str) -> int:
    return registers(_elements(form, "c"), TYPES[type].bits)


_HALF: tuple[str, ...] = ("m16n16k16", "m8n32k16", "m32n8k16")
#: The shapes of each type of A and B, and of each type of C and D.
_MULTIPLICANDS = {
    **dict.fromkeys(("f16", "bf16", "s8", "u8"), _HALF),
    "tf32": ("m16n16k8",),
    "f64": ("m8n8k4",),
    "s4": ("m8n8k32",),
    "u4": ("m8n8k32",),
    "b1": ("m8n8k128",),
}
_ACCUMULATORS = {
    "f16": _HALF,
    "f32": (*_HALF, "m16n16k8"),
    "s32": (*_HALF, "m8n8k32", "m8n8k128"),
    "f64": ("m8n8k4",),
}


def _shape(form: Any, legal: dict[str, tuple[str, ...]]) -> str | None:
    shapes = legal[form.type]
    if form.shape in shapes:
        return None
    return f"{form.form.opcode} of .{form.type} requires {' '.join(f'.{each}' for each in shapes)}, not .{form.shape}"


def _multiplicand_shape(form: Any) -> str | None:
    """Each type has its shapes."""
    return _shape(form, _MULTIPLICANDS)


def _accumulator_shape(form: Any) -> str | None:
    """Each type has its shapes."""
    return _shape(form, _ACCUMULATORS)


#: What the registers of a fragment are declared as, where that is not the type of the elements.
_REGISTERS = {"f16": "f16x2", "bf16": "bf16x2", **dict.fromkeys(("s8", "u8", "s4", "u4", "b1"), "s32")}


def _register(type: str) -> str:
    return _REGISTERS.get(type, type)


def _type(form: Any) -> str:
    return _register(form.type)


class load(
    Instruction, opcode="wmma.load", section="9.7.14.4.3", ptx="6.0", targets="sm_70+", issued_by="warp", leading=1
):
    """Load A or B, whose rows (columns, where `layout` is col) begin `stride` elements apart."""

    syntax = "wmma.load.matrix.sync.aligned.layout.shape{.space}.type r, [addr]{, stride}"
    r: OperandLike = vector(_type, lambda form: _multiplicand(form, form.matrix, form.type), sink=True)
    addr: OperandLike = address("space", bits=(32, 64), memory="read")
    stride: OperandLike = source("u32", default=None)
    _: KW_ONLY
    matrix: Literal["a", "b"]
    layout: _Layout
    shape: Literal["m16n16k16", "m8n32k16", "m32n8k16", "m16n16k8", "m8n8k4", "m8n8k32", "m8n8k128"]
    space: _Space | None = None
    type: Literal["f16", "bf16", "tf32", "f64", "s8", "u8", "s4", "u4", "b1"]
    needs = {
        **_CTA,
        **dict.fromkeys(("bf16", "tf32", "f64"), Availability("7.0", "sm_80+")),
        **dict.fromkeys(("s8", "u8"), Availability("6.3", "sm_72+")),
        **dict.fromkeys(("s4", "u4", "b1"), Availability("6.3", "sm_75+")),
        **dict.fromkeys(("m8n32k16", "m32n8k16"), Availability("6.1", "sm_70+")),
    }
    _s = rule("shape")(_multiplicand_shape)

    @rule("narrow-layout")
    def _narrow(self) -> str | None:
        """Types of less than 8 bits take a row-major A and a column-major B."""
        legal = "row" if self.matrix == "a" else "col"
        if self.type in ("s4", "u4", "b1") and self.layout != legal:
            return f"wmma.load.{self.matrix} of .{self.type} requires .{legal}, not .{self.layout}"
        return None


class _Accumulators(Instruction, ptx="6.0", targets="sm_70+", issued_by="warp"):
    needs = {
        **_CTA,
        "s32": Availability("6.3", "sm_72+"),
        **dict.fromkeys(("m8n8k32", "m8n8k128"), Availability("6.3", "sm_75+")),
        **dict.fromkeys(("m8n32k16", "m32n8k16"), Availability("6.1", "sm_70+")),
        **dict.fromkeys(("m16n16k8", "m8n8k4"), Availability("7.0", "sm_80+")),
    }
    _s = rule("shape")(_accumulator_shape)


class load_c(_Accumulators, opcode="wmma.load.c", section="9.7.14.4.3"):
    """Load C, whose rows (columns, where `layout` is col) begin `stride` elements apart."""

    syntax = "wmma.load.c.sync.aligned.layout.shape{.space}.type r, [addr]{, stride}"
    r: OperandLike = vector(_type, lambda form: _accumulator(form, form.type), sink=True)
    addr: OperandLike = address("space", bits=(32, 64), memory="read")
    stride: OperandLike = source("u32", default=None)
    _: KW_ONLY
    layout: _Layout
    shape: Literal["m16n16k16", "m8n32k16", "m32n8k16", "m16n16k8", "m8n8k4", "m8n8k32", "m8n8k128"]
    space: _Space | None = None
    type: Literal["f16", "f32", "s32", "f64"]


class store_d(_Accumulators, opcode="wmma.store.d", section="9.7.14.4.4"):
    """Store D, whose rows (columns, where `layout` is col) begin `stride` elements apart."""

    syntax = "wmma.store.d.sync.aligned.layout.shape{.space}.type [addr], r{, stride}"
    addr: OperandLike = address("space", bits=(32, 64), memory="write")
    r: OperandLike = vector(_type, lambda form: _accumulator(form, form.type), mixed="alone")
    stride: OperandLike = source("u32", default=None)
    _: KW_ONLY
    layout: _Layout
    shape: Literal["m16n16k16", "m8n32k16", "m32n8k16", "m16n16k8", "m8n8k4", "m8n8k32", "m8n8k128"]
    space: _Space | None = None
    type: Literal["f16", "f32", "s32", "f64"]

    @rule("constants", reads_operands=True)
    def _constants(self) -> str | None:
        """Integers alone are for .s32; constants of .f32 have 32 bits, those of .f64 are floats (ptxas 13.5)."""
        constants = _constants_of(self.r)
        integers = [item for item in constants if isinstance(value_of(item), int)]
        if self.type in ("f16", "f32") and isinstance(self.r, Vector) and len(integers) == len(self.r.elements):
            return f"wmma.store.d of .{self.type} requires a register among its elements, not {self.r}"
        for item in constants:
            value = value_of(item)
            if self.type == "f32" and isinstance(value, float) and getattr(item, "width", None) != 32:
                return f"wmma.store.d of .f32 takes constants of 32 bits, as in 0f00000000, not {item}"
            if self.type == "f64" and isinstance(value, int):
                return f"wmma.store.d of .f64 takes floating-point constants, not {item}"
        return None


def _ab_type(form: Any) -> str:
    return _register(form.type)


def _d_type(form: Any) -> str:
    return _register(form.dtype)


def _d_count(form: Any) -> int:
    return _accumulator(form, form.dtype)


def _c_type(form: Any) -> str:
    return _register(getattr(form, "ctype", form.dtype))


def _constants_of(operand: object) -> list[Immediate | Expression]:
    elements = operand.elements if isinstance(operand, Vector) else ()
    return [item for item in elements if isinstance(item, Immediate | Expression)]


class _Mma(Instruction, opcode="wmma.mma", section="9.7.14.4.5", issued_by="warp", multiplies=True):
    """D = A*B + C. `type` is that of A and B, `dtype` that of D, and of C where it is not named apart."""

    d: OperandLike = vector(_d_type, _d_count, sink=True)
    a: OperandLike = vector(_ab_type, lambda form: _multiplicand(form, "a", form.type), mixed=True)
    b: OperandLike = vector(_ab_type, lambda form: _multiplicand(form, "b", form.type), mixed=True)
    c: OperandLike = accumulator(
        _c_type, lambda form: _accumulator(form, getattr(form, "ctype", form.dtype)), mode=lambda form: "single"
    )

    @rule("constants", reads_operands=True)
    def _constants(self) -> str | None:
        """No integers in A and B of .f64, nor, from sm_80 on, in B of s8 or u8 at m16n16k16 (ptxas 13.5)."""
        form: Any = self
        for name in ("a", "b"):
            if form.type == "f64" or (form.type in ("s8", "u8") and name == "b" and form.shape == "m16n16k16"):
                for item in _constants_of(getattr(form, name)):
                    if isinstance(value_of(item), int):
                        return (
                            f"{name} of wmma.mma.{form.shape} with .{form.type} takes no integer constant, not {item}"
                        )
        return None


class mma_f16(_Mma, ptx="6.0", targets="sm_70+"):
    """Half precision."""

    syntax = "wmma.mma.sync.aligned.alayout.blayout.shape.dtype.ctype d, a, b, c"
    _: KW_ONLY
    alayout: _Layout
    blayout: _Layout
    shape: _Shape
    dtype: Literal["f16", "f32"]
    ctype: Literal["f16", "f32"]
    type: ClassVar[str] = "f16"
    needs = dict.fromkeys(("m8n32k16", "m32n8k16"), Availability("6.1", "sm_70+"))


class mma_bf16(_Mma, ptx="7.0", targets="sm_80+"):
    """bfloat16."""

    syntax = "wmma.mma.sync.aligned.alayout.blayout.shape.f32.bf16.bf16.f32 d, a, b, c"
    _: KW_ONLY
    alayout: _Layout
    blayout: _Layout
    shape: _Shape
    type: ClassVar[str] = "bf16"
    dtype: ClassVar[str] = "f32"


class mma_tf32(_Mma, ptx="7.0", targets="sm_80+"):
    """tf32: 19 bits in a register of 32. D takes no `_`, B no constants (measured, ptxas 13.5)."""

    syntax = "wmma.mma.sync.aligned.alayout.blayout.m16n16k8.f32.tf32.tf32.f32 d, a, b, c"
    d: OperandLike = vector(_d_type, _d_count)
    b: OperandLike = vector(_ab_type, lambda form: _multiplicand(form, "b", form.type))
    _: KW_ONLY
    alayout: _Layout
    blayout: _Layout
    shape: ClassVar[str] = "m16n16k8"
    type: ClassVar[str] = "tf32"
    dtype: ClassVar[str] = "f32"


class mma_f64(_Mma, ptx="7.0", targets="sm_80+"):
    """Double precision."""

    syntax = "wmma.mma.sync.aligned.alayout.blayout.m8n8k4{.rounding}.f64.f64.f64.f64 d, a, b, c"
    _: KW_ONLY
    alayout: _Layout
    blayout: _Layout
    rounding: Literal["rn", "rz", "rm", "rp"] | None = None
    shape: ClassVar[str] = "m8n8k4"
    type: ClassVar[str] = "f64"
    dtype: ClassVar[str] = "f64"


class mma_i8(_Mma, ptx="6.3", targets="sm_72+"):
    """8-bit integers; `satfinite` clamps the sums instead of wrapping them."""

    syntax = "wmma.mma.sync.aligned.alayout.blayout.shape.s32.type.type.s32{.satfinite} d, a, b, c"
    _: KW_ONLY
    alayout: _Layout
    blayout: _Layout
    shape: _Shape
    type: Literal["s8", "u8"]
    satfinite: bool = False
    dtype: ClassVar[str] = "s32"


class mma_i4(_Mma, ptx="6.3", targets="sm_75+"):
    """4-bit integers; `satfinite` clamps the sums instead of wrapping them."""

    syntax = "wmma.mma.sync.aligned.row.col.m8n8k32.s32.type.type.s32{.satfinite} d, a, b, c"
    _: KW_ONLY
    type: Literal["s4", "u4"]
    satfinite: bool = False
    shape: ClassVar[str] = "m8n8k32"
    dtype: ClassVar[str] = "s32"


class mma_b1(_Mma, ptx="6.3", targets="sm_75+"):
    """Single bits: `op` of a row of A and a column of B, and the number of ones in it added to C."""

    syntax = "wmma.mma.op.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 d, a, b, c"
    _: KW_ONLY
    op: Literal["xor", "and"]
    shape: ClassVar[str] = "m8n8k128"
    type: ClassVar[str] = "b1"
    dtype: ClassVar[str] = "s32"
    needs = {"and": Availability("7.1", "sm_80+")}
