"""The user's cache on disk: what is slow to make again, by a key of everything that it depends on."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from ptxgen.toolchain.find import find_ptxas

#: Variables that name the folder, the first of them that is set.
_VARIABLES = ("PTXGEN_CACHE_DIR", "PTXGEN_CACHE")
_DIGEST = hashlib.sha256().digest_size


def cache_folder() -> Path | None:
    """The folder of PTXGEN_CACHE_DIR or PTXGEN_CACHE, else the user's own; None where that is empty: no cache."""
    named = next((value for name in _VARIABLES if (value := os.environ.get(name)) is not None), None)
    if named is not None:
        return Path(named) if named else None
    base = os.environ.get("XDG_CACHE_HOME")
    with contextlib.suppress(RuntimeError):  # a user without a home
        return (Path(base) if base else Path.home() / ".cache") / "ptxgen"
    return None


def stored(kind: str, key: str, make: Callable[[], bytes]) -> bytes:
    """What `make` returns, from the cache if it has it under this key.

    A file that is not whole is made again; a cache that cannot be written is none.
    """
    found = read(kind, key)
    if found is None:
        found = make()
        write(kind, key, found)
    return found


def read(kind: str, key: str) -> bytes | None:
    """What the cache has under a key; None if that is nothing, or a file that is not whole."""
    path = _path(kind, key)
    with contextlib.suppress(OSError):
        data = path.read_bytes() if path is not None else b""
        if hashlib.sha256(data[_DIGEST:]).digest() == data[:_DIGEST]:
            return data[_DIGEST:]
    return None


def write(kind: str, key: str, data: bytes, *, most: int | None = None) -> None:
    """Put data into the cache under a key; a cache that cannot be written is none.

    `most` (None: no bound): the bytes that all of this kind may take; the oldest files go first.
    """
    path = _path(kind, key)
    if path is not None:
        with contextlib.suppress(OSError):
            write_whole(path, hashlib.sha256(data).digest() + data)
            if most is not None:
                _trim(path.parent, most)


def _path(kind: str, key: str) -> Path | None:
    folder = cache_folder()
    return folder / kind / hashlib.sha256(key.encode()).hexdigest() if folder is not None else None


def _trim(folder: Path, most: int) -> None:
    """Remove the oldest files of a folder that takes more than `most` bytes, until it takes three quarters of that."""
    files = []
    with os.scandir(folder) as entries:
        for each in entries:
            with contextlib.suppress(OSError):  # another process has just removed it
                status = each.stat()
                files.append((status.st_mtime_ns, status.st_size, each.path))
    left = sum(size for _, size, _ in files)
    if left <= most:
        return
    for _, size, path in sorted(files):
        if left <= most * 3 // 4:
            break
        Path(path).unlink(missing_ok=True)
        left -= size


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that readers see all of it or what was there before. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def identity(ptxas: str | os.PathLike[str] | None = None) -> str:
    """The assembler that is found, as part of a key: another version has another size or date."""
    path = find_ptxas(ptxas)
    status = path.stat()
    return f"{path} {status.st_size} {status.st_mtime_ns}"
