"""Texture fetches and queries. PTX ISA 9.7.10.

A texture is the address of a record (`ptxgen.emulator.textures`). Fetches are weak loads of its texels; of what the
same kernel has written they may return either value, as loads through the read-only path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.checks.registry.memory import NOT_AN_OBJECT
from ptxgen.emulator.load.operands import Binder, Reader, Unmodelled, Writer
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.access import load_words
from ptxgen.emulator.memory.global_memory import HEAP_BASE
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine
from ptxgen.emulator.textures import FACES, RECORD_BYTES, Corner, Texture, corners, on_cube
from ptxgen.instr import texture

_Filtered = texture.tex | texture.tex_level | texture.tex_grad
#: Dimensions of a geometry, and whether its texels are in layers.
GEOMETRIES = {"1d": (1, False), "2d": (2, False), "3d": (3, False), "a1d": (1, True), "a2d": (2, True)}
#: Fetches alone go by a direction, too, into six layers that are the faces of a cube.
_CUBES = {"cube": (3, False), "acube": (3, True)}
#: The texels of a bilinear filter in the order of tld4, as (x, y): counter-clockwise from the lower left.
_GATHERED = (2, 3, 1, 0)


def handle_of(operand: syntax.Operand, binder: Binder) -> Reader:
    """Reads the address of an object. Raises Unmodelled for a variable of opaque type, which a launch cannot fill."""
    if binder.location(operand) is not None:
        raise Unmodelled("a variable of type .texref, .samplerref or .surfref in place of an object's address")
    return binder.address(operand)


def object_at(machine: Machine, address: int, what: str) -> Texture:
    """The object whose record is at an address. Raises MemoryFault."""
    try:
        offset = np.array([address - HEAP_BASE, address - HEAP_BASE + RECORD_BYTES - 1])
        machine.memory.require_mapped(offset, what)
        return Texture.decode(machine.memory.view(address, RECORD_BYTES).tobytes())
    except (MemoryFault, ValueError):
        raise MemoryFault(NOT_AN_OBJECT, f"{what}: no texture or surface object is at {address:#x}") from None


def by_object(g: Group, handles: NDArray[Any], what: str) -> Iterator[tuple[Texture, Group, Any]]:
    """The lanes of a group by the object that they access: it, they, and which warps of the group they are of."""
    for address in np.unique(handles[g.active]):
        part = g.narrowed(handles == address)
        if part is not None:
            yield object_at(g.machine, int(address), what), part, np.isin(g.indices, part.indices)


def layers_of(geometry: str, elements: tuple[syntax.Operand, ...], binder: Binder) -> tuple[Reader | None, int, int]:
    """The reader of the layer, and which elements are coordinates: from, and how many. Raises Unmodelled."""
    found = GEOMETRIES.get(geometry) or _CUBES.get(geometry)
    if found is None:
        raise Unmodelled(f"the geometry .{geometry}")
    dimensions, layered = found
    return (binder.source(elements[0], "u32") if layered else None), int(layered), dimensions


class Fetch:
    """What all fetches read: handle, layer, coordinates and offset of each lane."""

    def __init__(self, op: _Filtered | texture.tld4, ctype: str, binder: Binder, statement: syntax.Instruction) -> None:
        if op.sampler is not None or op.depth is not None:
            raise Unmodelled("a separate sampler" if op.sampler is not None else "a depth compare")
        if op.type not in ("u32", "s32", "f32"):
            raise Unmodelled(f"a fetch of .{op.type}")
        binder.program.has_read_only_loads = True
        self.what, self.statement, self.type = statement.opcode, statement, op.type
        self._handle = handle_of(op.texture, binder)
        elements = binder.vector(op.coords)
        self._layer, first, count = layers_of(op.geom, elements, binder)
        self._is_cube = op.geom in _CUBES
        self.dimensions = 2 if self._is_cube else count
        self._coordinates = [binder.source(each, ctype) for each in elements[first : first + count]]
        offsets = binder.vector(op.offset) if op.offset is not None else ()
        self._offsets = [binder.source(each, "s32") for each in offsets[: self.dimensions]]
        self.destinations: list[Writer] = [binder.destination(each, op.type) for each in binder.vector(op.d)]
        self.resident = binder.destination(op.p, "pred") if op.p is not None else None

    def by_object(
        self, g: Group, *, gathers: bool = False
    ) -> Iterator[tuple[Texture, Group, list[Corner], NDArray[np.int64]]]:
        """Of the lanes of each texture: it, they, the texels of their fetch, and their layers.

        `gathers`: the texels of a linear filter, whatever the filter of the texture.
        """
        handles = g.full(self._handle(g))
        for each, part, chosen in by_object(g, handles, self.what):
            if sum(size > 0 for size in (each.width, each.height, each.depth)) < self.dimensions:
                raise MemoryFault(
                    NOT_AN_OBJECT,
                    f"{self.what}: the texture has fewer dimensions than the fetch, {self.dimensions}",
                )
            coordinates = [g.full(read(g))[chosen] for read in self._coordinates]
            offsets = [g.full(read(g))[chosen].astype(np.int64) for read in self._offsets]
            offsets += [np.zeros(coordinates[0].shape, np.int64)] * (self.dimensions - len(offsets))
            layer, faces = np.zeros(coordinates[0].shape, np.int64), FACES if self._is_cube else 1
            if self._layer is not None:
                layer = np.minimum(g.full(self._layer(g))[chosen].astype(np.int64), max(each.layers // faces, 1) - 1)
            if self._is_cube:
                if each.layers < FACES:
                    raise MemoryFault(NOT_AN_OBJECT, f"{self.what}: the texture is no cube map")
                face, coordinates = on_cube(coordinates)
                layer = layer * FACES + face
                each = replace(each, normalized=True, address_modes=("clamp",) * 3)
            yield each, part, corners(each, coordinates, offsets, linear=gathers or each.filter == "linear"), layer

    def texel(self, each: Texture, part: Group, corner: Corner, layer: NDArray[np.int64]) -> list[NDArray[np.generic]]:
        """The four components of one texel of each lane; of lanes outside the border's."""
        shape = corner.inside.shape
        kind = np.float32 if each.is_float else np.int32 if each.format.startswith("s") else np.uint32
        made: list[NDArray[np.generic]] = [np.full(shape, value, kind) for value in each.border]
        inside = part.narrowed(corner.inside)
        if inside is None:
            return made
        rows = np.isin(part.indices, inside.indices)
        addresses = np.ascontiguousarray(each.addresses(corner.texels, layer)[rows])
        # Masked lanes must be somewhere legal.
        addresses = np.where(inside.active, addresses, each.address)
        read = load_words(inside, "global", addresses, each.dtype, each.channels, self.statement)
        for to, values in zip(made, each.values(read), strict=True):
            to[rows] = np.where(inside.active, values, to[rows])
        return made

    def finish(self, part: Group, values: list[NDArray[Any]]) -> None:
        for destination, value in zip(self.destinations, values, strict=True):
            destination(part, _as(value, self.type))
        if self.resident is not None:
            self.resident(part, np.True_)


def _as(value: NDArray[Any], type: str) -> NDArray[Any]:
    """A component in a register of a type: bits stay, as the type of the instruction is to be that of the texture."""
    wanted = {"f32": np.float32, "s32": np.int32, "u32": np.uint32}[type]
    return np.ascontiguousarray(value).view(wanted)


@semantics(texture.tex, texture.tex_level, texture.tex_grad)
def fetch(op: _Filtered, binder: Binder, statement: syntax.Instruction) -> Plain:
    """One texel, or the sum of those of a linear filter by their weights. Objects have one mipmap level, the first."""
    found = Fetch(op, op.ctype, binder, statement)
    if isinstance(op, texture.tex_level):
        binder.source(op.lod, op.ctype)
    elif isinstance(op, texture.tex_grad):
        for each in (*binder.vector(op.dpdx), *binder.vector(op.dpdy)):
            binder.source(each, "f32")

    def run(g: Group) -> None:
        for each, part, read, layer in found.by_object(g):
            texels = [found.texel(each, part, corner, layer) for corner in read]
            if len(read) == 1:
                found.finish(part, texels[0])
                continue
            sums: list[NDArray[Any]] = []
            for component in range(4):
                total = np.zeros(read[0].inside.shape, np.float32)
                for corner, values in zip(read, texels, strict=True):
                    total = total + corner.weight * values[component].astype(np.float32)
                sums.append(total)
            found.finish(part, sums)

    return run


@semantics(texture.tld4)
def gather(op: texture.tld4, binder: Binder, statement: syntax.Instruction) -> Plain:
    """One component of the four texels of a bilinear filter, whatever the filter of the texture."""
    found, component = Fetch(op, "f32", binder, statement), "rgba".index(op.comp)

    def run(g: Group) -> None:
        for each, part, read, layer in found.by_object(g, gathers=True):
            texels = [found.texel(each, part, corner, layer)[component] for corner in read]
            found.finish(part, [texels[index] for index in _GATHERED])

    return run


#: Results of queries; the manual does not state the numbers of formats and channel orders.
_ANSWERS: dict[str, Callable[[Texture], int]] = {
    "width": lambda each: each.width,
    "height": lambda each: each.height,
    "depth": lambda each: each.depth,
    "array_size": lambda each: each.layers,
    "normalized_coords": lambda each: int(each.normalized),
    "num_mipmap_levels": lambda each: 1,
    "num_samples": lambda each: 1,
}


def query_of(
    query: str, object: syntax.Operand, d: syntax.Operand, binder: Binder, statement: syntax.Instruction
) -> Plain:
    """A query of a texture or surface. Raises Unmodelled for those that are not in `_ANSWERS`."""
    if query not in _ANSWERS:
        raise Unmodelled(f"a query of .{query}")
    answer = _ANSWERS[query]
    handle, destination = handle_of(object, binder), binder.destination(d, "u32")

    def run(g: Group) -> None:
        for each, part, _ in by_object(g, g.full(handle(g)), statement.opcode):
            destination(part, np.uint32(answer(each)))

    return run


@semantics(texture.txq, texture.txq_level)
def query(op: texture.txq | texture.txq_level, binder: Binder, statement: syntax.Instruction) -> Plain:
    if isinstance(op, texture.txq_level):
        binder.source(op.lod, "s32")
    return query_of(op.query, op.texture, op.d, binder, statement)
