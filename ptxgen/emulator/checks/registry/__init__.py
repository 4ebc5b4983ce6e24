"""Every check, declared once: a module per group, a constant per code (`shared-race` is `races.SHARED_RACE`).

How to report
-------------
Take the constant, and describe what happened as data:

    findings.report(
        races.SHARED_RACE,
        statement,                                # the instruction that is reported; None: no single line
        summary="tcgen05.mma (line 98, warp 1, CTA 0) reads smem_a stage 2 (0x8000) while the TMA load of "
        "line 84 may still be writing it",
        rule="The issuing thread has not waited for phase 0 of full[2]",
        fix="mbarrier.try_wait.parity on full[2] before line 98",
        accesses=(reader, writer),
        cause=("mbarrier", 0x8410),
    )

- `summary`: what happened, as one sentence with the accesses by name and line. The title of the check precedes it, so
  do not repeat "race". `str(access)` gives "opcode (line, warp, CTA)", `access.place` the name and then the address.
- `rule`: why that is wrong, with the values. Without it the rule of the check stands there.
- `fix`: only where the values make it better than the fix of the check; "" for none.
- `accesses`: the parties, the reported one first, from `findings.access(role, statement, row, space=..., address=...)`.
  It looks up warp, CTA, rank and name; checks never build an `Access` by hand.
- `severity`: only where it differs from that of the check. `ends`: the launch ends with it. `reads`: harmless if a
  rerun with other bytes in what was read changes nothing. `unless_deadlock`: it is dropped if the launch deadlocks.
- `cause`: a hashable key of what went wrong, such as ("mbarrier", offset) for everything due to one mbarrier. Findings
  of one check, kind of accesses and cause are one, whatever their lines and warps. One whose code is in `explains` of
  another finding of the same cause becomes a consequence of it.
- A fault is `raise MemoryFault(memory.OUT_OF_BOUNDS, "summary", ...)`, with the same keywords.
- A new check: declare it in the module of its group, with a test that fires it and a clean twin; `make docs`.
"""

from __future__ import annotations

from itertools import chain

from ptxgen.emulator.checks.registry import (
    barriers,
    calls,
    clusters,
    descriptors,
    efficiency,
    host,
    launches,
    mbarriers,
    memory,
    races,
    tcgen05,
    uninitialized,
    wgmma,
)
from ptxgen.emulator.checks.registry.check import Check

__all__ = ["CHECKS", "Check"]

_MODULES = (
    races,
    uninitialized,
    mbarriers,
    barriers,
    clusters,
    descriptors,
    memory,
    wgmma,
    tcgen05,
    calls,
    launches,
    host,
    efficiency,
)
#: By code, in the order of their declaration.
CHECKS = {
    check.code: check
    for check in chain.from_iterable(vars(module).values() for module in _MODULES)
    if isinstance(check, Check)
}
