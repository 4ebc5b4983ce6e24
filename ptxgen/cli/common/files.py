"""PTX files in and out, with errors that name the file."""

from __future__ import annotations

import codecs
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ptxgen.cli.common.source import excerpt
from ptxgen.cli.errors import InputError, nearest
from ptxgen.files import ptx_of_dump, read_file, read_stdin, similar_file
from ptxgen.instr.model.targets import TARGETS

if TYPE_CHECKING:
    from ptxgen.syntax import Module


class UnparsedError(InputError):
    """Text that is no PTX: the file, the place in it, and what was expected there."""

    def __init__(self, path: str, line: int, column: int, said: str, excerpt: Sequence[str]) -> None:
        super().__init__(f"{path}:{line}:{column}: {said}", excerpt)
        self.path, self.line, self.column, self.said = path, line, column, said


def read_ptx(path: str, target: str | None = None) -> str:
    """The text of a PTX file, the PTX of a Python file's job, of CUDA C++, or in a cubin, fatbin, object file or dump.

    "-" is standard input. CUDA C++ is compiled for `target`, of several modules that for `target` is taken. Raises
    InputError, JobError, CompilerError.
    """
    if not path:
        raise InputError("the name of a file is empty")
    if path.endswith(".py"):
        return python_ptx(path)
    if path.endswith(".cu"):
        return cuda_ptx(path, target)
    try:
        data = read_stdin() if path == "-" else read_file(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {reason(error)}{similar_file(path)}") from None
    if (binary := machine_code(data)) is not None:
        from ptxgen.sass.embedded import EmbeddedError, SeveralModulesError, embedded_ptx

        try:
            return embedded_ptx(data, target)
        except SeveralModulesError as error:
            raise InputError(f"{path} has {error}") from None
        except EmbeddedError as error:
            raise InputError(
                f"{path} is {binary}, not PTX text; cuobjdump --dump-ptx {path} prints its PTX, if it has any ({error})"
            ) from None
    try:
        # PowerShell writes what a command prints in UTF-16.
        wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        text = data.decode("utf-16") if wide else data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text: byte {data[error.start]:#04x} at offset {error.start}") from None
    if "\0" in text.rstrip("\0"):  # what is cut from a binary ends in zeros
        raise InputError(f"{path} is not text: byte 0x00 at offset {data.index(0)}")
    try:
        return ptx_of_dump(text, target)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def python_ptx(path: str) -> str:
    """The PTX of the job or kernel of a Python file. Raises JobError."""
    from ptxgen.job import Job, load_python

    found = load_python(Path(path), 0)
    return found.ptx if isinstance(found, Job) else found.text


def cuda_ptx(path: str, target: str | None = None) -> str:
    """The PTX that nvcc makes of CUDA C++, for sm_100a where no target is named. Raises InputError, CompilerError."""
    from ptxgen.toolchain import compile_cuda

    if not Path(path).is_file():
        raise InputError(f"cannot read {path}: no such file or directory{similar_file(path)}")
    return compile_cuda(path, target or "sm_100a")


def is_file(word: str) -> bool:
    """Whether a word names a PTX, Python or CUDA file, standard input, or any file that is there."""
    return word == "-" or word.endswith((".py", ".ptx", ".cu")) or Path(word).is_file()


def machine_code(data: bytes) -> str | None:
    """What a file is that holds machine code: a cubin or other ELF file, or a fatbin; None for others."""
    if data.startswith(b"\x7fELF"):
        return "an ELF file (a cubin?)"
    return "a fatbin" if data.startswith((b"\x50\xed\x55\xba", b"\xba\x55\xed\x50")) else None


def parse_ptx(text: str, path: str) -> Module:
    """The tree of PTX text from `path`. Raises InputError with line, column and a caret where it does not parse."""
    from ptxgen.syntax import PtxSyntaxError, parse

    try:
        return parse(text)
    except PtxSyntaxError as error:
        shown = excerpt(text, [error.line], caret=error.column)
        said = f"expected {error.expected}, found {error.found}"
        raise UnparsedError(path, error.line, error.column, said, shown) from None


def write_output(path: str, data: bytes | str) -> None:
    """Write a file, text as UTF-8, or raise InputError that says why not."""
    if not path:
        raise InputError("the name of a file to write is empty")
    try:
        Path(path).write_bytes(data.encode() if isinstance(data, str) else data)
    except OSError as error:
        folder = Path(path).parent
        why = reason(error) if folder.is_dir() else f"there is no folder {folder}"
        raise InputError(f"cannot write {path}: {why}") from None


def require_writable(path: str) -> None:
    """Raises InputError for a file that cannot be written later: better before the work than after it."""
    if not path:
        raise InputError("the name of a file to write is empty")
    file = Path(path)
    if not file.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {file.parent}")
    if file.is_dir():
        raise InputError(f"cannot write {path}: it is a folder")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise InputError(f"cannot write {path}: permission denied")


def known_target(target: str | None) -> str | None:
    """The target if there is such an architecture. Raises InputError."""
    if target is not None and target not in TARGETS:
        raise InputError(
            f"--target must be an architecture such as sm_90a or sm_100a, not {target!r}{nearest(target, TARGETS)}"
        )
    return target


def reason(error: OSError) -> str:
    """Why a file could not be used, in the system's words without the path."""
    return (error.strerror or str(error)).lower()
