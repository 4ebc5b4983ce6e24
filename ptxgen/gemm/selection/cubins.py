"""The cubin of a plan, from the user's cache on disk where it has been assembled before."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ptxgen.builder import KERNELS_FOLDER
from ptxgen.toolchain import assemble
from ptxgen.toolchain.cache import identity, stored

if TYPE_CHECKING:
    from ptxgen.attention import AttentionPlan
    from ptxgen.gemm.plan import GemmPlan

_PACKAGE = Path(__file__).parents[2]
#: Files that the text of a kernel depends on beside its config.
_SOURCES = (KERNELS_FOLDER, *(_PACKAGE / name for name in ("attention", "gemm", "builder", "descriptors", "instr")))


def cubin_of(plan: GemmPlan | AttentionPlan, ptxas: str | os.PathLike[str] | None = None) -> bytes:
    """The ELF bytes of a plan's kernel. Raises AssemblerError.

    Where the cache has them, the text is not rendered.
    """
    folder = plan.template.folder
    source = plan.text if folder is not None else f"{plan.template.name} {plan.config!r} {_fingerprint()}"
    key = "\n".join([plan.target, plan.name, *plan.settings, source, identity(ptxas)])
    return stored("cubins", key, lambda: assemble(plan.text, plan.target, ptxas).data)


@cache
def _fingerprint() -> str:
    """Names, sizes and dates of the sources, in one number."""
    digest = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".j2", ".toml"):
                status = path.stat()
                digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
