"""The emulator: PTX text executed on a CPU, with asynchronous copies, mbarriers and tensor cores, and checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxgen.emulator.device import Emulator

__all__ = ["Emulator"]


def __getattr__(name: str) -> object:
    """`Emulator`, imported when it is first used: `check` needs modules of this package, and never runs a kernel."""
    if name != "Emulator":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ptxgen.emulator.device import Emulator

    globals()[name] = Emulator
    return Emulator
