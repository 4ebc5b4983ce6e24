"""Whether the benchmarks of a program run whole: their times are those of an emulator."""

import ctypes
import os

#: True with `ptxgen exec --benchmarks`.
WANTED = os.environ.get("PTXGEN_EXEC_BENCHMARKS") == "1"
_library = ctypes.CDLL(None)


def say(what):
    """Say once what is left out."""
    _library.ptxgen_say(f"{what}; --benchmarks runs all".encode())
