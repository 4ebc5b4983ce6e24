"""The CTAs on which an operation works: the issuing one, or its pair.

PTX ISA 9.7.16.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxgen import syntax
from ptxgen.emulator.arrays import any_set
from ptxgen.emulator.checks.registry import tcgen05
from ptxgen.emulator.memory import MemoryFault
from ptxgen.emulator.state.convergence import bits_of
from ptxgen.emulator.state.group import Group
from ptxgen.emulator.state.machine import Machine


def slots_of(machine: Machine, warp: int, cta_group: int) -> Sequence[int]:
    """The slots of an operation that `warp` issues, the even CTA first.

    Raises MemoryFault where there is no pair, or the peer has ended.
    """
    slot = int(machine.cta_slot[warp])
    if cta_group == 1:
        return (slot,)
    pair = machine.clusters.pair(slot)
    for each in pair:
        if not any_set(machine.present[each * machine.warps_per_cta : (each + 1) * machine.warps_per_cta]):
            raise MemoryFault(
                tcgen05.CTA_PAIR,
                f".cta_group::2 in {machine.cta_name(slot)}",
                rule=f"Its peer {machine.cta_name(each)} has exited",
            )
    return pair


def pipe_of(machine: Machine, warp: int, cta_group: int) -> tuple[str, int]:
    """The queue in which the tensor core's operations of a CTA, or of a pair, run in the order of their issue."""
    slot = int(machine.cta_slot[warp])
    return "tensor core", slot if cta_group == 1 else machine.clusters.pair(slot)[0]


def advise_one_lane(g: Group, addresses: NDArray[np.int64], statement: syntax.Instruction) -> None:
    """A single thread issues an operation (9.7.16.5): with several lanes each issues one of its own."""
    if not g.machine.findings.checks:
        return
    active, values = g.active, g.full(addresses)
    first = np.take_along_axis(values, active.argmax(axis=1)[:, None], axis=1)
    lanes = int(((values == first) & active).sum(axis=1).max(initial=0))
    if lanes > 1:
        g.machine.findings.report(
            tcgen05.MANY_ISSUERS,
            statement,
            summary=f"{lanes} lanes of a warp issue this operation on the same address",
            rule="Each lane issues an operation of its own",
        )


def require_one_value(g: Group, values: NDArray[Any], what: str, statement: syntax.Instruction) -> None:
    """Report operands, (warps, 32), that differ between the threads of a warp: it is one instruction for all of them.

    `what` names the operand.
    """
    if not g.machine.findings.checks:
        return
    active = g.active
    first = np.take_along_axis(values, active.argmax(axis=1)[:, None], axis=1)
    differs = (values != first) & active
    if not any_set(differs):
        return
    position = int(differs.any(axis=1).argmax())
    lane, findings = int(differs[position].argmax()), g.machine.findings
    access = findings.access("accessor", statement, int(g.indices[position]), lanes=int(bits_of(differs[position])))
    findings.report(
        tcgen05.DIVERGENT_TENSOR_ADDRESS,
        statement,
        summary=f"{access} gives {what} {int(values[position, lane]):#x}, lane {int(active[position].argmax())} of the "
        f"same warp {int(first[position, 0]):#x}",
        rule="All threads of the warp must give the same value",
        accesses=(access,),
    )
