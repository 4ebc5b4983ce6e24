"""What `ptxgen exec` finds between streams and the program on the host."""

from __future__ import annotations

from functools import partial

from ptxgen.emulator.checks.registry.check import Check

_check = partial(Check, group="Programs (ptxgen exec)")

HOST_RACE = _check(
    code="host-race",
    title="host race",
    rule="Operations of two streams access the same bytes with no event between them, or the program accesses pinned "
    "or managed memory that it has not waited for, and one of them writes.",
    why="Streams run side by side, and a launch or an asynchronous copy returns before it has run: which access comes "
    "first differs from run to run (CUDA programming guide, Asynchronous Concurrent Execution).",
    fix="let the later stream wait for an event of the earlier one (cudaStreamWaitEvent), or synchronize before the "
    "program's access",
    example="kernel<<<1, 32, 0, a>>>(x); kernel<<<1, 32, 0, b>>>(x);      // fixed: stream a in both",
    fires="driver/test_c_programs.py::test_two_streams",
    twin="driver/test_c_programs.py::test_two_streams",
)
