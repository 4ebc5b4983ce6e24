"""The emulator: PTX text executed on a CPU, with asynchronous copies, mbarriers and tensor cores, and checks."""

from ptxgen.emulator.device import Emulator

__all__ = ["Emulator"]
