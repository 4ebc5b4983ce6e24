"""Files that people name: reading those that end, paths where text is wanted, missing ones, dumps of cuobjdump."""

from __future__ import annotations

import difflib
import errno
import os
import re
import stat
import sys
from io import IOBase, UnsupportedOperation
from pathlib import Path
from typing import BinaryIO

_PACKAGE = Path(__file__).parent
#: The templates of the package: `ptxgen/kernels` where it is installed, `kernels` next to it in a checkout.
KERNELS_FOLDER = next(
    (folder for folder in (_PACKAGE / "kernels", _PACKAGE.parent / "kernels") if (folder / "blocks").is_dir()),
    _PACKAGE / "kernels",
)

#: One line that ends like a file, or begins like a folder; PTX has several lines, or spaces and semicolons.
_PATH = re.compile(r"\s*[^\n;{}]*\.(ptx|cubin|txt|cu|fatbin|s)\s*|\s*[.~]{0,2}/(?![/*])[^\n;{}]*")


def looks_like_path(text: str) -> bool:
    """Whether a text is hardly PTX, but the name of a file."""
    return _PATH.fullmatch(text) is not None


#: Bytes of a stream at most: PTX and machine code are smaller, and some streams never end.
_MOST = 512 << 20


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file. Raises OSError, also for a device or named pipe, which may have no end."""
    require_end(path)
    with open(path, "rb") as file:
        return _read(file)


def read_stdin() -> bytes:
    """The bytes of standard input. Raises OSError for a device other than a terminal, and for an endless stream."""
    stream = sys.stdin.buffer
    try:
        status = os.fstat(stream.fileno())
    except UnsupportedOperation:  # bytes in place of a stream of the system
        return stream.read()
    _require_end(status, stream, is_open=True)
    return _read(stream)


def require_end(path: str | os.PathLike[str]) -> None:
    """Raises OSError for a missing file, and for a device or named pipe, whose reading may never end."""
    status = os.stat(path)
    is_open = os.path.realpath(path).startswith("/proc/")  # by this process: <(COMMAND) of a shell, /dev/stdin
    if not stat.S_ISCHR(status.st_mode):
        _require_end(status, None, is_open=is_open)
        return
    with open(path, "rb", buffering=0) as file:
        _require_end(status, file, is_open=is_open)


def _require_end(status: os.stat_result, opened: IOBase | BinaryIO | None, *, is_open: bool) -> None:
    is_null = status.st_rdev == os.stat(os.devnull).st_rdev
    if stat.S_ISCHR(status.st_mode) and not is_null and not (opened is not None and opened.isatty()):
        raise OSError(errno.EINVAL, "it is a device, not a file")
    if stat.S_ISFIFO(status.st_mode) and not is_open:
        raise OSError(errno.EINVAL, "it is a named pipe, not a file")


def _read(file: BinaryIO) -> bytes:
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file.read()
    data = file.read(_MOST + 1)
    if len(data) > _MOST:
        raise OSError(errno.EFBIG, f"it has more than {_MOST >> 20} MiB")
    return data


def similar_file(path: str | os.PathLike[str]) -> str:
    """The files beside a missing one that are called like it, as the end of a sentence; or nothing."""
    missing = Path(path)
    try:
        there = missing.exists() or missing.is_symlink()
        names = [] if there else [each.name for each in missing.parent.iterdir() if each.is_file()]
    except OSError:
        return ""
    close = difflib.get_close_matches(missing.name, names, n=2)
    return f"; did you mean {' or '.join(str(missing.parent / name) for name in close)}?" if close else ""


def escaped_path(path: str) -> str:
    """A path as `.file` has it, in ASCII: bytes of other characters in octal, as nvcc writes them."""
    return re.sub(r"[^\x00-\x7f]", lambda it: "".join(f"\\{byte:03o}" for byte in os.fsencode(it[0])), path)


def unescaped_path(text: str) -> str:
    """The path that a `.file` names, whose other characters than ASCII are bytes in octal."""
    return re.sub(
        r"(?:\\[23][0-7]{2})+", lambda it: os.fsdecode(bytes(int(one, 8) for one in it[0][1:].split("\\"))), text
    )


def source_file(path: str) -> Path | None:
    """The file that a `.file` of PTX names: as it is, or among the packaged templates; None where there is none."""
    for each in (Path(path), KERNELS_FOLDER / path):
        try:
            if each.is_file():
                return each
        except (OSError, ValueError):
            continue
    return None


_DUMPED = re.compile(r"^[ \t]*Fatbin (ptx|elf) code:[ \t]*\r?$", re.MULTILINE)
#: Text of cuobjdump around modules: members of an archive, extracted files; and a shell's prompt.
_AROUND = re.compile(r"^(member \S.*:|Extracting (PTX|ELF) file\b.*|[$>%](?= |$).*)(?=[ \t]*\r?$)", re.MULTILINE)
#: The head of a listing of SASS, and what cuobjdump says where it has nothing to print.
_SASS = re.compile(r"^[ \t]*code for sm_\d+[af]?[ \t]*\r?$", re.MULTILINE)
_REMARK = re.compile(r"\s*cuobjdump (?:info|warning|error|fatal)\s*:\s*(.*)")
#: Its lists of files (--list-ptx, --list-elf), and its listing of an ELF object (--dump-elf, --dump-elf-symbols).
_LISTED = re.compile(r"\s*(?:PTX|ELF) file +\d+: \S")
_ELF = re.compile(r"\s*(?:\d+-bit ELF: type=|symbols:\s)")
_VERSION = re.compile(r"^[ \t]*\.version\b", re.MULTILINE)
_DUMPED_TARGET = re.compile(r"^[ \t]*\.target[ \t]+(\w+)", re.MULTILINE)
_DUMPED_ENTRY = re.compile(r"^[^/\n]*\.entry[ \t]+([\w$]+)", re.MULTILINE)


def ptx_of_dump(text: str, target: str | None = None) -> str:
    """PTX as it is; of a dump of `cuobjdump --dump-ptx` its module, whose lines keep their numbers.

    The headers of the dump become comments. Of several modules the only one for `target` is taken. Raises ValueError
    for a dump without PTX, with several modules, or of SASS.
    """
    starts = [found.start() for found in _DUMPED.finditer(text)]
    if not starts:
        if _LISTED.match(text):
            raise ValueError("this is cuobjdump's list of files; cuobjdump --extract-ptx all writes those of PTX")
        if _ELF.match(text):  # debug information among its strings may hold PTX
            raise ValueError("this is cuobjdump's listing of an ELF object; cuobjdump --dump-ptx prints the PTX")
        if not _VERSION.search(text):
            if remark := _REMARK.match(text):
                raise ValueError(f"this is what cuobjdump says where it finds no PTX: {remark[1].strip()}")
            if _SASS.search(text):
                raise ValueError(
                    "this is a listing of SASS; cuobjdump --dump-ptx prints the PTX, if the file holds any"
                )
            return text
        return _AROUND.sub(r"// \1", text) if _AROUND.match(text.lstrip()) else text
    ends = [*starts[1:], len(text)]
    parts = [(start, end, _VERSION.search(text, start, end)) for start, end in zip(starts, ends, strict=True)]
    modules = [(start, end, found.start()) for start, end, found in parts if found is not None]
    if not modules:
        raise ValueError("this dump of cuobjdump has no PTX; cuobjdump --dump-ptx prints it, if the file holds any")
    targets = [_DUMPED_TARGET.search(text, begin, end) for _, end, begin in modules]
    if len(modules) > 1:
        fitting = [module for module, found in zip(modules, targets, strict=True) if found and found[1] == target]
        modules = fitting if len(fitting) == 1 else modules
    if len(modules) > 1:
        names = ", ".join(found[1] if found else "unknown" for found in targets)
        message = f"this dump of cuobjdump has {len(modules)} PTX modules ({names})"
        if len({found[1] for found in targets if found}) == len(targets):
            raise ValueError(f"{message}; cuobjdump --dump-ptx --gpu-architecture sm_.. prints one")
        entries = [_DUMPED_ENTRY.search(text, begin, end) for _, end, begin in modules]
        of = ", ".join(found[1] if found else "none" for found in entries)
        raise ValueError(f"{message}, whose first entries are {of}; cuobjdump --extract-ptx all writes a file of each")
    ((_, end, begin),) = modules
    begin = text.rfind("\n", 0, begin) + 1
    found = _commented(text[:begin]) + _AROUND.sub(r"// \1", text[begin:end]) + _commented(text[end:])
    return found.rstrip("\0")  # what is cut from a binary ends in zeros


def _commented(text: str) -> str:
    return "".join(f"// {line}" if line.strip() else line for line in text.splitlines(keepends=True))
