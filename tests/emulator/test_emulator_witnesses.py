"""More kernels that compilers wrote, recorded by `tools/witnesses`: legal, right and without a finding.

Each runs under one schedule here; `make witnesses` runs all under all.
"""

from __future__ import annotations

import zlib

import pytest

import ptxgen
from ptxgen.emulator import Emulator
from tools.cases import SCHEDULES, load, names

#: Witnesses that are not right yet, with the reason; each turns red when it begins to work.
KNOWN: dict[str, str] = {}


@pytest.mark.parametrize("name", names("witnesses"))
def test_witness(name: str, request: pytest.FixtureRequest) -> None:
    """The outputs match, and the report has nothing worse than advice."""
    if name in KNOWN:
        request.applymarker(pytest.mark.xfail(strict=True, reason=KNOWN[name]))
    case = load(name)
    assert not ptxgen.check(case.text)
    schedule = SCHEDULES[zlib.crc32(name.encode()) % len(SCHEDULES)]
    outcome = case.run(Emulator(case.target, schedule))
    assert outcome.report.status == "ok", f"{schedule}: {outcome.report.summary()}"
    assert not outcome.wrong, f"{schedule}: {'; '.join(outcome.wrong.values())}"
