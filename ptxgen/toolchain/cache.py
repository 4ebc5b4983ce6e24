"""The user's cache on disk: what is slow to make again, by a key of everything that it depends on."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from ptxgen.toolchain.find import find_ptxas

_VARIABLE = "PTXGEN_CACHE"
_DIGEST = hashlib.sha256().digest_size


def cache_folder() -> Path | None:
    """The folder of PTXGEN_CACHE, else the user's own; None where the variable is empty: no cache."""
    named = os.environ.get(_VARIABLE)
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
    folder = cache_folder()
    if folder is None:
        return make()
    path = folder / kind / hashlib.sha256(key.encode()).hexdigest()
    with contextlib.suppress(OSError):
        data = path.read_bytes()
        if hashlib.sha256(data[_DIGEST:]).digest() == data[:_DIGEST]:
            return data[_DIGEST:]
    made = make()
    with contextlib.suppress(OSError):
        write_whole(path, hashlib.sha256(made).digest() + made)
    return made


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
