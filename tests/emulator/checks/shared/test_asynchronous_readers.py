"""Whoever overwrites shared memory must know that all that read it asynchronously are over."""

from __future__ import annotations

import numpy as np
import pytest

from ptxgen import Kernel
from ptxgen.emulator.checks.findings import Findings
from tests.support.harness import module
from tests.support.shared_accesses import issue, shared_accesses

#: What reads, and the opcode that messages name.
READERS = {"tcgen05.mma": "tcgen05.mma", "tensor store": "cp.async.bulk.tensor"}


@pytest.mark.parametrize("write", ["store", "copy"])
@pytest.mark.parametrize("first", READERS)
@pytest.mark.parametrize("awaited", [(), ("tcgen05.mma",), ("tensor store",), tuple(READERS)])
def test_a_product_and_a_copy_read_the_same(awaited: tuple[str, ...], first: str, write: str) -> None:
    """Each is waited for in its own way: the one that came last does not hide the other."""
    text = "\n".join(f"{opcode};" for opcode in (*READERS.values(), "ret"))
    *reading, statement = Kernel.from_ptx(module(text)).entry.body.statements  # type: ignore[union-attr]
    statements = dict(zip(READERS, reading, strict=True))
    findings = Findings()
    happens_before, shared = shared_accesses(findings)
    granules = np.array([100, 101])
    shared.written[0, granules] = 0xFFFF
    for what in sorted(READERS, key=lambda what: what != first):
        operation = issue(happens_before, what, statements[what])
        shared.async_read(operation, 0, granules)
        if what in awaited:
            happens_before.acquire_operations(1, [operation.number])
    if write == "copy":
        shared.async_write(issue(happens_before, "tensor copy", statement), 1, granules)
    else:
        shared.write(1, granules, np.full(2, 0xFFFF, np.uint16), statement)
    told = [each.message for each in findings.list()]
    missing = [what for what in READERS if what not in awaited]
    assert len(told) == len(missing)
    assert all(any(f"while {READERS[what]} of line" in message for message in told) for what in missing)
