"""More kernels that compilers wrote, recorded by `tools/witnesses`: legal, right and without a finding.

Each runs under one schedule here; `make witnesses` runs all under all.
"""

from __future__ import annotations

import zlib

import pytest

from ptxgen import Kernel
from ptxgen.emulator import Emulator
from tools.recorded.case import SCHEDULES, load, names


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", names("witnesses"))
def test_witness(name: str) -> None:
    """The outputs match, and the report has nothing worse than advice."""
    case = load(name)
    kernel = Kernel.from_ptx(case.text, case.launch["entry"])  # which run takes, too
    # Triton's warp-specialized kernels declare .maxnreg 256, of which ptxas says that it is ignored.
    assert {each.code for each in kernel.diagnostics} <= {"directive-value"}
    schedule = SCHEDULES[zlib.crc32(name.encode()) % len(SCHEDULES)]
    outcome = case.run(Emulator(case.target, schedule))
    assert outcome.report.status == "ok", f"{schedule}: {outcome.report.summary()}"
    assert not outcome.wrong, f"{schedule}: {'; '.join(outcome.wrong.values())}"
