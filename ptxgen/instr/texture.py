"""Texture fetches and queries. PTX ISA 9.7.10.

A texture is a .texref variable or its address in a 64-bit register; CUDA's texture objects are such addresses. In the
unified texture mode, the default, it holds its sampler; under `.target` option texmode_independent the sampler is an
operand of its own. Reads go through the texture cache: they see what was written before the kernel began.

`coords` are one to three coordinates as .geom requires, after the layer of an array or the sample of a multi-sample
texture; there may be more elements, up to 4, which are ignored. `p` is whether the texels are resident in memory.
`.uni` is not in the manual (measured, ptxas 13.5); it says that all threads of the warp execute the fetch together.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any, Literal

from ptxgen.instr.model.form import Instruction, OperandLike, rule
from ptxgen.instr.model.operands import coordinates, opaque, predicate, register, sampler, source, vector
from ptxgen.instr.model.symbols import Problem, Resolver
from ptxgen.instr.model.targets import ALL, Availability, Target
from ptxgen.syntax import Expression, Name

_Mipmapped = Literal["1d", "2d", "3d", "a1d", "a2d", "cube", "acube"]
_CACHED = "none within a kernel: fetches see the writes of earlier kernels and copies"
#: Elements of the coordinates: array layer or sample first; 4 where there are 3.
_COORDINATES = {"1d": 1, "2d": 2, "3d": 4, "a1d": 2, "a2d": 4, "cube": 4, "acube": 4, "2dms": 4, "a2dms": 4}
#: Elements of offsets and partial derivatives: the same without the layer or sample.
_DIMENSIONS = {"1d": 1, "2d": 2, "3d": 4, "a1d": 1, "a2d": 2, "cube": 4, "acube": 4, "2dms": 2, "a2dms": 2}


def _coordinates(form: Any) -> int:
    return _COORDINATES[form.geom]


def _dimensions(form: Any) -> int:
    return _DIMENSIONS[form.geom]


def _layered(form: Any) -> bool:
    """Whether a layer stands before coordinates that may be floats; a sample is as they are."""
    return form.geom in ("a1d", "a2d", "acube")


def _texels(form: Any) -> int:
    return 2 if form.type == "f16x2" else 4


def _held(form: Any) -> str:
    """Integer registers take floats too, other than packed halves (measured, ptxas 13.5)."""
    return {"f32": "b32", "f16": "b16"}.get(form.type) or form.type


class _Fetch(Instruction, section="9.7.10.3", ptx="1.0", targets=ALL, fences=_CACHED):
    """What fetches have in common."""

    d: OperandLike = vector(_held, _texels, scalar=True, sink=True)
    texture: OperandLike = opaque("texref", sampler="sampler", memory="read")
    coords: OperandLike = coordinates("ctype", _coordinates, layered=_layered)
    _: KW_ONLY
    uni: bool = False
    needs = {"p": Availability("7.1", ALL)}

    @rule("offset", reads_operands=True)
    def _no_offset(self: Any) -> str | None:
        """Cubes have no offsets."""
        if self.offset is not None and self.geom in ("cube", "acube"):
            return f"a fetch from .{self.geom} allows no offset, not {self.offset}"
        return None


class _Filtered(_Fetch):
    """What the forms of tex have in common."""

    _: KW_ONLY
    geom: Literal["1d", "2d", "3d", "a1d", "a2d", "cube", "acube", "2dms", "a2dms"]
    vec: Literal["v2", "v4"]
    type: Literal["u32", "s32", "f16", "f16x2", "f32"]
    ctype: Literal["s32", "f32"]

    @rule("vector")
    def _vector(self) -> str | None:
        """Two f16x2, four of all other types."""
        if self.vec == f"v{_texels(self)}":
            return None
        return f".{self.type} is fetched as .v{_texels(self)}, not .{self.vec}"

    @rule("coordinates")
    def _coordinates(self) -> str | None:
        """Directions into a cube are floats, samples have integer coordinates."""
        wanted = {"cube": "f32", "acube": "f32", "2dms": "s32", "a2dms": "s32"}.get(self.geom) or self.ctype
        return None if self.ctype == wanted else f".{self.geom} requires .{wanted} coordinates, not .{self.ctype}"

    @rule("depth", reads_operands=True)
    def _depth(self: Any) -> str | None:
        """Depth textures are no volumes, and have coordinates of type .f32."""
        if self.depth is not None and (self.geom == "3d" or self.ctype != "f32"):
            return f"a depth compare requires .f32 coordinates in all but .3d, not .{self.ctype} ones in .{self.geom}"
        return None


class tex(_Filtered, leading=1):
    """d = the filtered texels at `coords`; mipmap level 0. `depth` is what a depth texture compares with."""

    syntax = "tex{.base}{.uni}.geom.vec.type.ctype d{|p}, [texture, {sampler,} coords]{, offset}{, depth}"
    sampler: OperandLike = sampler(default=None)
    p: OperandLike = predicate(default=None)
    offset: OperandLike = coordinates("s32", _dimensions, scalar=False, default=None)
    depth: OperandLike = source("f32", float_sums=False, default=None)
    _: KW_ONLY
    base: bool = False


class tex_level(_Filtered, opcode="tex.level", ptx="3.1"):
    """As tex, from mipmap level `lod`, a number of the type of the coordinates."""

    syntax = "tex.level{.uni}.geom.vec.type.ctype d{|p}, [texture, {sampler,} coords], lod{, offset}{, depth}"
    lod: OperandLike = source("ctype", float_sums=False)
    sampler: OperandLike = sampler(default=None)
    p: OperandLike = predicate(default=None)
    offset: OperandLike = coordinates("s32", _dimensions, scalar=False, default=None)
    depth: OperandLike = source("f32", float_sums=False, default=None)
    _: KW_ONLY
    geom: _Mipmapped


class tex_grad(_Filtered, opcode="tex.grad", ptx="3.1"):
    """As tex, from the mipmap level that follows from the partial derivatives `dpdx` and `dpdy` of the coordinates."""

    syntax = "tex.grad{.uni}.geom.vec.type.ctype d{|p}, [texture, {sampler,} coords], dpdx, dpdy{, offset}{, depth}"
    dpdx: OperandLike = vector("f32", _dimensions, immediate=True, special=True)
    dpdy: OperandLike = vector("f32", _dimensions, immediate=True, special=True)
    sampler: OperandLike = sampler(default=None)
    p: OperandLike = predicate(default=None)
    offset: OperandLike = coordinates("s32", _dimensions, scalar=False, default=None)
    depth: OperandLike = source("f32", default=None)
    _: KW_ONLY
    geom: _Mipmapped

    def expansion_problems(self, target: Target, resolve: Resolver) -> Iterator[Problem]:
        """Before sm_90 ptxas crashes on a sum as the depth (measured, ptxas 13.5.37)."""
        if target.number < 90 and isinstance(self.depth, Expression) and isinstance(self.depth.operands[0], Name):
            message = f"depth must be a register on {target}, not the sum {self.depth}: ptxas crashes on it there"
            yield Problem("operand-kind", message, part=str(self.depth), operand="depth")


class tld4(_Fetch, section="9.7.10.4", ptx="2.2"):
    """d = one component of the four texels that a bilinear filter reads, counter-clockwise from the lower left."""

    syntax = "tld4{.uni}.comp.geom.v4.type.f32 d{|p}, [texture, {sampler,} coords]{, offset}{, depth}"
    coords: OperandLike = coordinates("f32", _coordinates, layered=_layered)
    sampler: OperandLike = sampler(default=None)
    p: OperandLike = predicate(default=None)
    offset: OperandLike = coordinates("s32", _dimensions, scalar=False, default=None)
    depth: OperandLike = source("f32", float_sums=False, default=None)
    _: KW_ONLY
    comp: Literal["r", "g", "b", "a"]
    geom: Literal["2d", "a2d", "cube", "acube"]
    type: Literal["u32", "s32", "f32"]


class txq(Instruction, section="9.7.10.5", ptx="1.5", targets=ALL):
    """d = an attribute of a texture."""

    syntax = "txq.query.b32 d, [texture]"
    d: OperandLike = register("b32")
    texture: OperandLike = opaque("texref")
    _: KW_ONLY
    query: Literal[
        "width",
        "height",
        "depth",
        "channel_data_type",
        "channel_order",
        "normalized_coords",
        "array_size",
        "num_mipmap_levels",
        "num_samples",
    ]


class txq_level(Instruction, opcode="txq.level", section="9.7.10.5", ptx="4.3", targets=ALL):
    """d = the size of mipmap level `lod` of a texture."""

    syntax = "txq.level.query.b32 d, [texture], lod"
    d: OperandLike = register("b32")
    texture: OperandLike = opaque("texref")
    lod: OperandLike = source("s32")
    _: KW_ONLY
    query: Literal["width", "height", "depth"]


class txq_sampler(Instruction, opcode="txq", section="9.7.10.5", ptx="1.5", targets=ALL):
    """d = an attribute of a sampler, which in the unified texture mode is in the texture."""

    syntax = "txq.query.b32 d, [sampler]"
    d: OperandLike = register("b32")
    sampler: OperandLike = opaque("samplerref", unified_type="texref")
    _: KW_ONLY
    query: Literal["filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2"]


class txq_unnormalized(Instruction, opcode="txq", section="9.7.10.5", ptx="2.2", targets=ALL):
    """d = whether a sampler forces unnormalized coordinates on its textures."""

    syntax = "txq.force_unnormalized_coords.b32 d, [sampler]"
    d: OperandLike = register("b32")
    sampler: OperandLike = opaque("samplerref")


class istypep(Instruction, section="9.7.10.6", ptx="4.0", targets=ALL):
    """p = whether the address `a` is that of an opaque variable of this type."""

    syntax = "istypep.type p, a"
    p: OperandLike = predicate()
    a: OperandLike = source("u64", sums=False)
    _: KW_ONLY
    type: Literal["texref", "samplerref", "surfref"]
