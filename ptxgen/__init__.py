"""Model, build, check and emulate NVIDIA PTX. Everything here is imported when it is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxgen.device import Finding, Kernel, Launch, LaunchReport
    from ptxgen.driver import exec
    from ptxgen.emulator import Emulator
    from ptxgen.gpu import Gpu
    from ptxgen.instr.model.check import Diagnostic, check
    from ptxgen.job import Job
    from ptxgen.syntax import PtxSyntaxError, parse
    from ptxgen.toolchain import AssemblerError, Cubin, assemble

    __version__: str

__all__ = [
    "AssemblerError",
    "Cubin",
    "Diagnostic",
    "Emulator",
    "Finding",
    "Gpu",
    "Job",
    "Kernel",
    "Launch",
    "LaunchReport",
    "PtxSyntaxError",
    "__version__",
    "assemble",
    "check",
    "exec",
    "parse",
]

#: Where each public name lives. pyright and editors read the imports above; a test holds both to `__all__`.
_HOMES = {
    "AssemblerError": "ptxgen.toolchain",
    "Cubin": "ptxgen.toolchain",
    "Diagnostic": "ptxgen.instr.model.check",
    "Emulator": "ptxgen.emulator",
    "Finding": "ptxgen.device",
    "Gpu": "ptxgen.gpu",
    "Job": "ptxgen.job",
    "Kernel": "ptxgen.device",
    "Launch": "ptxgen.device",
    "LaunchReport": "ptxgen.device",
    "PtxSyntaxError": "ptxgen.syntax",
    "assemble": "ptxgen.toolchain",
    "check": "ptxgen.instr.model.check",
    "exec": "ptxgen.driver",
    "parse": "ptxgen.syntax",
}
#: Packages that `import ptxgen` makes reachable as attributes.
_PACKAGES = frozenset(
    {
        "builder",
        "descriptors",
        "device",
        "driver",
        "emulator",
        "gemm",
        "gpu",
        "instr",
        "layouts",
        "pictures",
        "sass",
        "syntax",
        "testing",
        "toolchain",
    }
)

if not TYPE_CHECKING:  # so that a misspelt name is still an error to a type checker

    def __getattr__(name: str) -> object:
        if name in _HOMES:
            value = getattr(importlib.import_module(_HOMES[name]), name)
        elif name in _PACKAGES:
            value = importlib.import_module(f"ptxgen.{name}")
        elif name == "__version__":
            value = importlib.import_module("importlib.metadata").version("ptxgen")
        else:
            raise AttributeError(f"module 'ptxgen' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
