"""Cache hints and policies. The emulator has no caches. PTX ISA 9.7.9.15 to 9.7.9.18.

A policy changes no values; its bits are those that ptxas 13.5 computes for sm_90a (SASS of createpolicy). A discarded
line loses its contents.
"""

from __future__ import annotations

from typing import get_args

import numpy as np

from ptxgen import syntax
from ptxgen.emulator.checks.registry.memory import MISALIGNED, NOT_GLOBAL
from ptxgen.emulator.load.operands import Binder
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.memory.access import parts_of
from ptxgen.emulator.memory.global_memory import HEAP_BASE, POISON_BYTE
from ptxgen.emulator.semantics import semantics
from ptxgen.emulator.semantics.kinds import Plain
from ptxgen.emulator.state.group import Group
from ptxgen.instr import cache

_LINE = 128
#: Codes of priorities: of the primary part, and of the other.
_FIRST = {"evict_unchanged": 0x00, "evict_first": 0x20, "evict_last": 0x40, "evict_normal": 0x60}
_SECOND = {None: 0x00, "evict_unchanged": 0x00, "evict_first": 0x10}
_FRACTIONAL, _RANGE = 0x100, 0x180


_Hint = (
    cache.prefetch
    | cache.prefetch_keep
    | cache.prefetch_valid
    | cache.prefetch_tensormap
    | cache.prefetchu
    | cache.applypriority
)


@semantics(*get_args(_Hint))
def nothing(op: _Hint, binder: Binder, statement: syntax.Instruction) -> Plain:
    return lambda g: None


@semantics(cache.discard)
def discard(op: cache.discard, binder: Binder, statement: syntax.Instruction) -> Plain:
    """The bytes become indeterminate: poison here. Raises MemoryFault outside arrays and off lines of 128 bytes."""
    address = binder.address(op.a)

    def run(g: Group) -> None:
        memory = g.machine.memory
        for part in parts_of(g, op.space, np.ascontiguousarray(g.full(address(g)))):
            if part.space != "global":
                raise MemoryFault(NOT_GLOBAL, f"discard accesses .{part.space} memory")
            for at in np.unique(part.addresses[part.group.active]):
                if at % _LINE:
                    raise MemoryFault(
                        MISALIGNED,
                        f"discard at {int(at):#x}",
                        rule=f"The address of discard must be a multiple of {_LINE}",
                    )
                offset = int(at) - HEAP_BASE
                memory.require_mapped(np.array([offset, offset + _LINE - 1]), "discard")
                memory.data[offset : offset + _LINE] = POISON_BYTE
                g.machine.effects += 1

    return run


@semantics(cache.createpolicy_fractional)
def fractional_policy(op: cache.createpolicy_fractional, binder: Binder, statement: syntax.Instruction) -> Plain:
    """The fraction counts in sixteenths."""
    code = _FRACTIONAL + _FIRST[op.first] + _SECOND[op.second]
    policy = binder.destination(op.policy, "u64")
    fraction = binder.source(op.fraction, "f32") if op.fraction is not None else lambda g: np.float32(1)

    def run(g: Group) -> None:
        parts = (g.full(fraction(g)) * np.float32(15.99)).astype(np.uint64) & np.uint64(0xF)
        policy(g, (np.uint64(code) | parts) << np.uint64(52))

    return run


@semantics(cache.createpolicy_range)
def range_policy(op: cache.createpolicy_range, binder: Binder, statement: syntax.Instruction) -> Plain:
    """The range counts in blocks of a power of two, of 4096 bytes at least, so that 128 of them hold the total."""
    code = _RANGE + _FIRST[op.first] + _SECOND[op.second]
    address, policy = binder.address(op.a), binder.destination(op.policy, "u64")
    primary, total = binder.source(op.primary, "u32"), binder.source(op.total, "u32")

    def run(g: Group) -> None:
        start, first, whole = (g.full(value(g)).astype(np.int64) for value in (address, primary, total))
        shift = np.maximum(np.ceil(np.log2(np.maximum(whole, 1).astype(np.float32))).astype(np.int64) - 7, 12)
        begin, end = start >> shift, (start + first - 1 + (1 << shift)) >> shift
        blocks = np.minimum(end - begin, 0x7F) & 0x7F
        high = ((code | (shift - 12) & 0xF) << 20) | ((begin & 0x7F) << 12) | (blocks << 5)
        policy(g, np.where(whole == 0, _RANGE << 20, high).astype(np.uint64) << np.uint64(32))

    return run


@semantics(cache.createpolicy_cvt)
def converted_policy(op: cache.createpolicy_cvt, binder: Binder, statement: syntax.Instruction) -> Plain:
    a, policy = binder.source(op.a, "u64"), binder.destination(op.policy, "u64")
    return lambda g: policy(g, a(g))
