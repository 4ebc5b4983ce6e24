"""Advice on speed, which is given only on request (`advice=TIMES`), of kernels without errors."""

from __future__ import annotations

from functools import partial

from ptxgen.emulator.checks.registry.check import Check

_check = partial(Check, group="Advice on speed", severity="advice")
_WHEN = (
    " It comes only with Emulator(advice=TIMES) or ptxgen run --advice TIMES (2 is a good number), of an instruction "
    "that "
    "takes TIMES what it needs or more, and wastes 5 % of what all loads and stores take, and 16 at least."
)

BANK_CONFLICTS = _check(
    code="bank-conflicts",
    title="bank conflicts",
    rule="Lanes of a warp that access different words of the same bank of shared memory take more wavefronts (cycles) "
    "than their bytes need.",
    why="Shared memory gives 128 bytes a cycle at best, from 32 banks of 4 bytes; lanes that read the same word share "
    "it. "
    "Accesses of 8 and 16 bytes a lane go by halves and quarters of the warp. Counted are loads, stores, ldmatrix, "
    "stmatrix and cp.async, but no accesses to a peer's memory, of asynchronous operations, atomics or wmma.load."
    + _WHEN,
    fix="let neighboring lanes access neighboring words; pad rows, or swizzle them: ptxgen layout draws the banks",
    example="mad.lo.u32 %address, %lane, 128, data;      // fixed: 132, a padded row\nld.shared.u32 %value, "
    "[%address];",
    fires="emulator/checks/test_efficiency.py::test_advice_and_its_twin[loads of words]",
    twin="emulator/checks/test_efficiency.py::test_advice_and_its_twin[halves]",
)

UNCOALESCED_ACCESS = _check(
    code="uncoalesced-access",
    title="uncoalesced access",
    rule="Lanes of a warp touch more sectors of 32 bytes of global memory than their bytes would fill.",
    why="Memory moves whole sectors. Where other instructions use the rest of a sector caches may help; that is not "
    "counted. Two loads that a compiler interleaves take twice what they need: request 2.5 to leave them out." + _WHEN,
    fix="let neighboring lanes access neighboring addresses: change the layout, or go through shared memory",
    example="mad.wide.u32 %address, %lane, 1024, %in;      // fixed: 4 instead of 1024\nld.global.u32 %value, "
    "[%address];",
    fires="emulator/checks/test_efficiency.py::test_advice_and_its_twin[halves]",
    twin="emulator/checks/test_efficiency.py::test_advice_and_its_twin[loads of words]",
)
