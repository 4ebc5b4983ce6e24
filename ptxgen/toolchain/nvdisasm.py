"""Disassemble a cubin to SASS text with nvdisasm. Reading that text is left to `ptxgen.sass`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ptxgen.toolchain._process import run_tool
from ptxgen.toolchain.find import find_nvdisasm
from ptxgen.toolchain.ptxas import Cubin


class DisassemblerError(RuntimeError):
    """nvdisasm refused the bytes, crashed, or ran out of time; the text is what it said."""


def disassemble(
    cubin: Cubin | bytes,
    nvdisasm: str | os.PathLike[str] | None = None,
    *,
    options: Sequence[str] = ("-c",),
    timeout: float | None = 600.0,
) -> str:
    """The SASS text of a cubin (or of its ELF bytes).

    `options` go to nvdisasm: "-c" prints the code sections alone, add "-hex" for the encodings; `timeout` is
    in seconds. Raises DisassemblerError, and ToolNotFoundError when there is no nvdisasm.
    """
    program = find_nvdisasm(nvdisasm)
    data = cubin.data if isinstance(cubin, Cubin) else bytes(cubin)
    with tempfile.TemporaryDirectory(prefix="ptxgen-") as folder_name:
        folder = Path(folder_name)
        (folder / "kernel.cubin").write_bytes(data)
        outcome = run_tool([str(program), *options, "kernel.cubin"], folder, timeout)
    if outcome.failure or outcome.status != 0 or not outcome.output.strip():
        said = outcome.failure or (outcome.errors + outcome.output).strip() or "it printed nothing"
        raise DisassemblerError(f"nvdisasm made no listing of {len(data)} bytes (status {outcome.status}): {said}")
    return outcome.output
