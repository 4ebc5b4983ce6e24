"""Loads, stores, reductions and queries of surfaces. PTX ISA 9.7.11.

A surface is a .surfref variable or its address in a 64-bit register; CUDA's surface objects are such addresses.
`coords` are the integer coordinates as .geom requires, after the layer of an array; there may be more elements, up
to 4, which are ignored. The first coordinate counts bytes in the unformatted accesses (`.b`) and samples in the
formatted ones (`.p`). `clamp` says what happens outside: a trap, the nearest location, or zero (a store is dropped).
Geometry .1d_buffer, linear memory, is not in the manual (measured, ptxas 13.5).
"""

from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import coordinates, opaque, register, source, vector
from ptxgen.instr.model.targets import ALL, Availability

_Geometry = Literal["1d", "2d", "3d", "a1d", "a2d", "1d_buffer"]
_CACHED = "none within a kernel: surface accesses of other threads see each other's writes in later kernels"
#: Elements of the coordinates: array layer first; 4 where there are 3.
_COORDINATES = {"1d": 1, "1d_buffer": 1, "2d": 2, "3d": 4, "a1d": 2, "a2d": 4}
#: Reductions of 64 bits by minimum and maximum.
_WIDE = Availability("8.1", ALL)


def _coordinates(form: Any) -> int:
    return _COORDINATES[form.geom]


def _elements(form: Any) -> int:
    return int(form.vec[1:]) if form.vec else 1


def _width(form: Any) -> str | None:
    """At most 128 bits."""
    if form.vec == "v4" and form.type == "b64":
        return ".v4.b64 is 256 bits; the limit is 128"
    return None


class suld(Instruction, opcode="suld.b", section="9.7.11.1", ptx="1.5", targets=ALL, fences=_CACHED):
    """d = the value at a byte offset of a surface; `vec` loads 2 or 4 at once."""

    syntax = "suld.b.geom{.cop}{.vec}.type.clamp d, [surface, coords]"
    d: OperandLike = vector("type", _elements, scalar=True, sink=True, wide=True)
    surface: OperandLike = opaque("surfref", memory="read")
    coords: OperandLike = coordinates("s32", _coordinates)
    _: KW_ONLY
    geom: _Geometry
    cop: Literal["ca", "cg", "cs", "cv"] | None = None
    vec: Literal["v2", "v4"] | None = None
    type: Literal["b8", "b16", "b32", "b64"]
    clamp: Literal["trap", "clamp", "zero"]
    _w = rule("width")(_width)


class _Write(Instruction, section="9.7.11.2", ptx="2.0", targets=ALL, fences=_CACHED):
    """What stores and reductions have in common."""

    surface: OperandLike = opaque("surfref", memory="write")
    coords: OperandLike = coordinates("s32", _coordinates)
    _: KW_ONLY
    clamp: Literal["trap", "clamp", "zero"]


class sust(_Write, opcode="sust.b", ptx="1.5"):
    """The value at a byte offset of a surface = c."""

    syntax = "sust.b.geom{.cop}{.vec}.type.clamp [surface, coords], c"
    c: OperandLike = vector("type", _elements, scalar=True, immediate=True, wide=True)
    _: KW_ONLY
    geom: _Geometry
    cop: Literal["wb", "cg", "cs", "wt"] | None = None
    vec: Literal["v2", "v4"] | None = None
    type: Literal["b8", "b16", "b32", "b64"]
    _w = rule("width")(_width)


class sust_formatted(_Write, opcode="sust.p"):
    """A sample of a surface = c, up to four 32-bit components, which become values of the surface's format."""

    syntax = "sust.p.geom{.cop}{.vec}.b32.clamp [surface, coords], c"
    c: OperandLike = vector("b32", _elements, scalar=True, immediate=True, wide=True)
    _: KW_ONLY
    geom: _Geometry
    # Cache operators and arrays are not in the manual (measured, ptxas 13.5).
    cop: Literal["wb", "cg", "cs", "wt"] | None = None
    vec: Literal["v2", "v4"] | None = None


class _Reduction(_Write, section="9.7.11.3"):
    """What reductions have in common."""

    surface: OperandLike = opaque("surfref", memory="read-write")
    c: OperandLike = source("type", wide=True)
    _: KW_ONLY
    op: Literal["add", "min", "max", "and", "or"]
    geom: Literal["1d", "2d", "3d", "1d_buffer"]


class sured(_Reduction, opcode="sured.b"):
    """The value at a byte offset of a surface = itself `op` c."""

    syntax = "sured.b.op.geom.type.clamp [surface, coords], c"
    _: KW_ONLY
    type: Literal["u32", "u64", "s32", "b32", "s64"]
    needs = {f"{op} {type}": _WIDE for op in ("min", "max") for type in ("u64", "s64")}

    @rule("operation")
    def _operation(self) -> str | None:
        """Each operation has its types."""
        legal = {"add": ("u32", "u64", "s32"), "and": ("b32",), "or": ("b32",)}.get(
            self.op, ("u32", "u64", "s32", "s64")
        )
        if self.type in legal:
            return None
        return f"sured.b.{self.op} requires {' '.join(f'.{each}' for each in legal)}, not .{self.type}"


class sured_formatted(_Reduction, opcode="sured.p"):
    """A sample of a surface = itself `op` c, as signed or unsigned integers by the surface's format."""

    syntax = "sured.p.op.geom.type.clamp [surface, coords], c"
    _: KW_ONLY
    type: Literal["b32", "b64"]
    needs = {"b64": _WIDE}

    @rule("operation")
    def _operation(self) -> str | None:
        """64 bits for the minimum and maximum alone."""
        if self.type == "b64" and self.op not in ("min", "max"):
            return f"sured.p.{self.op} requires .b32, not .b64"
        return None


class suq(Instruction, section="9.7.11.4", ptx="1.5", targets=ALL):
    """d = an attribute of a surface."""

    syntax = "suq.query.b32 d, [surface]"
    d: OperandLike = register("b32")
    surface: OperandLike = opaque("surfref")
    _: KW_ONLY
    query: Literal[
        "width",
        "height",
        "depth",
        "channel_data_type",
        "channel_order",
        "array_size",
        "memory_layout",
    ]
