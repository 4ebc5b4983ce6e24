"""Random legal programs end in a report, never in a traceback; `python -m tools.programs` runs many more."""

from __future__ import annotations

from tools.programs.examine import examine

#: Programs that run here.
COUNT = 200


def test_programs_end_in_a_report() -> None:
    crashes = [crash for _, crash in map(examine, range(COUNT)) if crash is not None]
    shown = "\n".join(f"program {crash.seed}: {crash.trace}" for crash in crashes[:3])
    assert not crashes, f"{len(crashes)} of {COUNT} crash: {shown}"
