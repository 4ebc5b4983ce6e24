"""Moves and packing. PTX ISA 9.7.9."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.group import Group
from ptxgen.emulator.registers import Binder, Unmodelled
from ptxgen.emulator.semantics import meaning
from ptxgen.instr import move

_Run = Callable[[Group], None]


@meaning(move.mov)
def copy(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    a, d = binder.source(op.a, op.type), binder.destination(op.d, op.type)
    return lambda g: d(g, a(g))


@meaning(move.mov_pred)
def copy_predicate(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    a, d = binder.predicate(op.a), binder.destination(op.d, "pred")
    return lambda g: d(g, a(g))


def _part_type(type: str, count: int) -> str:
    if type == "b128":
        raise Unmodelled("128-bit packing")
    return f"b{int(type[1:]) // count}"


@meaning(move.mov_pack, move.mov_pack4)
def pack(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    parts = binder.vector(op.a)
    part = _part_type(op.type, len(parts))
    sources = [binder.source(element, part) for element in parts]
    d, width = binder.destination(op.d, op.type), int(part[1:])

    def run(g: Group) -> None:
        word = np.zeros((), np.uint64)
        for index, source in enumerate(sources):
            word = word | (np.asarray(source(g)).astype(np.uint64) << np.uint64(index * width))
        d(g, word)

    return run


@meaning(move.mov_unpack, move.mov_unpack4)
def unpack(op: Any, binder: Binder, statement: syntax.Instruction, block: object) -> _Run:
    parts = binder.vector(op.d)
    part = _part_type(op.type, len(parts))
    destinations = [binder.destination(element, part) for element in parts]
    a, width = binder.source(op.a, op.type), int(part[1:])

    def run(g: Group) -> None:
        word = np.asarray(a(g)).astype(np.uint64)
        for index, destination in enumerate(destinations):
            destination(g, word >> np.uint64(index * width))

    return run
