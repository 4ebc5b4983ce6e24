"""Loads, stores, reductions and queries of surfaces. PTX ISA 9.7.11.

A surface is the address of a record (`ptxgen.emulator.textures`); its accesses are weak ones of global memory. Outside
its bounds `.trap` ends the launch, `.clamp` accesses the nearest location, `.zero` loads 0 and stores nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.device.report import Access
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks.registry.memory import MISALIGNED, OUT_OF_BOUNDS
from ptxgen.emulator.load.operands import Binder, Unmodelled, numpy_type
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.access import load_words, store_words
from ptxgen.emulator.memory.faults import first
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.semantics.texture import by_object, handle_of, layers_of, query_of
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.textures import Texture
from ptxgen.instr import surface
from ptxgen.instr.model.types import TYPES


class _Places:
    """Where an access of `size` bytes lies for each lane."""

    def __init__(
        self, op: surface.suld | surface.sust, size: int, binder: Binder, statement: syntax.Instruction
    ) -> None:
        self._size, self._clamp, self._statement = size, op.clamp, statement
        self._handle = handle_of(op.surface, binder)
        if op.geom == "1d_buffer":
            raise Unmodelled("the geometry .1d_buffer")
        elements = binder.vector(op.coords)
        self._layer, start, count = layers_of(op.geom, elements, binder)
        self._coordinates = [binder.source(each, "s32") for each in elements[start : start + count]]

    def by_object(self, g: Group) -> Iterator[tuple[Group, NDArray[np.int64], Group | None]]:
        """Lanes by surface: they, their addresses, and those that access memory."""
        handles = g.full(self._handle(g))
        for each, part, chosen in by_object(g, handles, self._statement.opcode):
            coordinates = [g.full(read(g))[chosen].astype(np.int64) for read in self._coordinates]
            layer = np.zeros(coordinates[0].shape, np.int64)
            sizes = [each.width * each.texel_bytes - self._size + 1, *each.sizes[1:]]
            if self._layer is not None:
                layer = g.full(self._layer(g))[chosen].astype(np.int64)
                coordinates.append(layer)
                sizes[len(coordinates) - 1 :] = [max(each.layers, 1)]
            limits = sizes[: len(coordinates)]
            outside = np.zeros(coordinates[0].shape, np.bool_)
            for coordinate, limit in zip(coordinates, limits, strict=True):
                outside |= (coordinate < 0) | (coordinate >= limit)
            outside &= part.active
            self._require(each, part, coordinates, outside)
            if self._clamp == "clamp":
                # The nearest location that holds a whole access.
                limits[0] = (limits[0] - 1) // self._size * self._size + 1
                coordinates = [np.clip(at, 0, limit - 1) for at, limit in zip(coordinates, limits, strict=True)]
                inside: Group | None = part
            else:
                inside = part.narrowed(~outside)
            if self._layer is not None:
                layer = coordinates.pop()
            x, y, z = [*coordinates, *[np.zeros(layer.shape, np.int64)] * (3 - len(coordinates))]
            yield part, each.addresses((np.zeros_like(x), y, z), layer) + x, inside  # x counts bytes

    def _require(
        self, each: Texture, part: Group, coordinates: list[NDArray[np.int64]], outside: NDArray[np.bool_]
    ) -> None:
        """Raises MemoryFault for a byte offset that is no multiple of the access, and outside where that traps."""
        odd = (coordinates[0] % self._size != 0) & part.active & ~outside
        if any_set(odd):
            place = first(odd)
            raise MemoryFault(
                MISALIGNED,
                f"{self._accessor(part, place)} accesses a surface at the first coordinate {coordinates[0][place]}",
                rule=f"It counts bytes, and must be a multiple of the access's {self._size}",
                fix="multiply the number of the element by its size in bytes",
            )
        if self._clamp == "trap" and any_set(outside):
            place = first(outside)
            at = ", ".join(str(coordinate[place]) for coordinate in coordinates)
            extent = "×".join(str(size) for size in (each.width, each.height, each.depth, each.layers) if size)
            raise MemoryFault(
                OUT_OF_BOUNDS,
                f"{self._accessor(part, place)} accesses ({at}) of a surface of {extent} elements of "
                f"{each.texel_bytes} bytes",
                rule="The first coordinate counts bytes; outside the surface .trap ends the kernel",
            )

    def _accessor(self, part: Group, place: tuple[int, int]) -> Access:
        position, lane = place
        return part.machine.findings.access("accessor", self._statement, int(part.indices[position]), lanes=1 << lane)


@semantics(surface.suld)
def load(op: surface.suld, binder: Binder, statement: syntax.Instruction) -> Plain:
    type = TYPES[op.type]
    dtype, elements = numpy_type(type), binder.vector(op.d)
    destinations = [binder.destination(element, type) for element in elements]
    places = _Places(op, type.bytes * len(elements), binder, statement)

    def run(g: Group) -> None:
        for part, addresses, inside in places.by_object(g):
            values: list[NDArray[Any]] = [np.zeros(addresses.shape, dtype) for _ in destinations]
            if inside is not None:
                rows = np.isin(part.indices, inside.indices)
                at = np.ascontiguousarray(addresses[rows])
                for to, read in zip(
                    values, load_words(inside, "global", at, dtype, len(values), statement), strict=True
                ):
                    to[rows] = np.where(inside.active, read, 0)
            for destination, value in zip(destinations, values, strict=True):
                destination(part, value)

    return run


@semantics(surface.sust)
def store(op: surface.sust, binder: Binder, statement: syntax.Instruction) -> Plain:
    type = TYPES[op.type]
    dtype, elements = numpy_type(type), binder.vector(op.c)
    sources = [binder.source(element, type) for element in elements]
    places = _Places(op, type.bytes * len(elements), binder, statement)

    def run(g: Group) -> None:
        for part, addresses, inside in places.by_object(g):
            if inside is not None:
                at = np.ascontiguousarray(addresses[np.isin(part.indices, inside.indices)])
                values = [np.asarray(source(inside)) for source in sources]
                store_words(inside, "global", at, dtype, values, statement)

    return run


@semantics(surface.suq)
def query(op: surface.suq, binder: Binder, statement: syntax.Instruction) -> Plain:
    return query_of(op.query, op.surface, op.d, binder, statement)
