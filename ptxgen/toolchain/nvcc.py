"""Compile CUDA C++ to PTX with nvcc, with the lines of the source."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ptxgen.toolchain._process import run_tool
from ptxgen.toolchain.find import find_tool

#: A missing header of the CUDA Core Compute Libraries, which are a package of their own.
_LIBRARIES = re.compile(r"fatal error: (?:cuda|cub|thrust|nv)/\S+: No such file")


class CompilerError(RuntimeError):
    """nvcc refused a source, crashed, or ran out of time; the text is what it said."""


def compile_cuda(
    path: str | os.PathLike[str],
    target: str = "sm_100a",
    nvcc: str | os.PathLike[str] | None = None,
    *,
    options: Sequence[str] = (),
    timeout: float | None = 600.0,
) -> str:
    """The PTX of a .cu file for a target, with line information (-lineinfo).

    `options` go to nvcc, such as "-DN=4"; PTXGEN_NVCC names another nvcc, which needs a C++ compiler on PATH. `timeout`
    is in seconds. Raises CompilerError, and ToolNotFoundError when there is no nvcc.
    """
    program = find_tool("nvcc", nvcc)
    source = Path(path).resolve()
    with tempfile.TemporaryDirectory(prefix="ptxgen-") as folder:
        made = Path(folder) / "kernel.ptx"
        command = [str(program), "-ptx", "-lineinfo", "-std=c++17", f"-arch={target}", *options, "-o", str(made)]
        outcome = run_tool([*command, str(source)], source.parent, timeout)
        if outcome.failure or outcome.status != 0 or not made.is_file():
            said = outcome.failure or (outcome.errors + outcome.output).strip() or "it printed nothing"
            hint = "; pip install nvidia-cuda-cccl has libcu++, CUB and Thrust" if _LIBRARIES.search(said) else ""
            raise CompilerError(f"nvcc refused {path} for {target} (status {outcome.status}){hint}\n{said}")
        return made.read_text(encoding="utf-8")
