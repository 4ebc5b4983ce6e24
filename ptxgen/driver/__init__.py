"""`ptxgen exec`: unchanged GPU programs run on the emulator, under a stand-in for the CUDA driver and runtime.

`native/` is the stand-in, a C library that is preloaded into the program; it knows no checks. `server` has the
emulator, in a process of its own, and shares one heap with the program at the same address. What is peculiar to a
compiler or a library stands in one module of `stacks/` each.
"""

from ptxgen.driver.api import exec
from ptxgen.driver.build import BuildError
from ptxgen.driver.options import Options
from ptxgen.driver.run import ProgramError, run

__all__ = ["BuildError", "Options", "ProgramError", "exec", "run"]
