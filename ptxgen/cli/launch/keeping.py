"""The emulator of `ptxgen run`: what it finds out about a PTX text stays on disk for the next run."""

from __future__ import annotations

from collections.abc import Sequence

from ptxgen.device import Launch, LaunchReport
from ptxgen.driver.kept import Kept
from ptxgen.emulator import Emulator


class KeepingEmulator(Emulator):
    """Begins with the verdict and the declarations that earlier processes have left for the text of a kernel."""

    def launch_overlapping(self, launches: Sequence[Launch]) -> list[LaunchReport]:
        new = [each.kernel for each in launches if not each.kernel.analyzed.is_checked]
        kept = [Kept(each.text, each.analyzed) for each in new]
        reports = super().launch_overlapping(launches)
        for each in kept:
            each.save()
        return reports
