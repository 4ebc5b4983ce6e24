"""A pytest plugin that writes down how each launch of each test ended: `-p tests.support.recorder`.

The file that PTXGEN_RECORD names gets JSON: by node id a list of [status, [codes, those of consequences too]].
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ptxgen.device import Launch, LaunchReport
from ptxgen.driver.results import Results
from ptxgen.emulator import Emulator
from ptxgen.emulator.explore import Exploration
from ptxgen.gpu import Gpu

_launches: dict[str, list[tuple[str, list[str]]]] = {}
_current = [""]


def _watch(device: type[Emulator] | type[Gpu]) -> None:
    launch = device.launch_overlapping

    def recorded(self: Emulator | Gpu, launches: Sequence[Launch]) -> list[LaunchReport]:
        reports: list[LaunchReport] = launch(self, launches)  # type: ignore[arg-type]
        for report in reports:
            _launches.setdefault(_current[0], []).append((report.status, [each.code for each in report.all_findings]))
        return reports

    device.launch_overlapping = recorded  # type: ignore[method-assign]


def _watch_explorations() -> None:
    explore = Emulator.explore

    def recorded(self: Emulator, *launch: Any, **more: Any) -> Exploration:
        made = explore(self, *launch, **more)
        _launches.setdefault(_current[0], []).append((made.status, [each.code for each in made.findings]))
        return made

    Emulator.explore = recorded  # type: ignore[method-assign]


def _watch_programs() -> None:
    """A program under `ptxgen exec` counts as one launch."""
    finish = Results.finish

    def recorded(self: Results, code: int) -> None:
        finish(self, code)
        found = [*self.host_findings, *(each for launch in self.launches for each in launch.findings)]
        status = "findings" if found else "ok"
        _launches.setdefault(_current[0], []).append((status, [each.code for each in found]))

    Results.finish = recorded  # type: ignore[method-assign]


_watch_programs()
_watch(Emulator)
_watch(Gpu)
_watch_explorations()


def pytest_runtest_logstart(nodeid: str) -> None:
    _current[0] = nodeid


def pytest_sessionfinish(session: pytest.Session) -> None:
    del session
    Path(os.environ["PTXGEN_RECORD"]).write_text(json.dumps(_launches))
