"""What is kept between runs: listings by their cubins, and printed comparisons by what was compared.

PTXGEN_CACHE names the folder (~/.cache/ptxgen by default; empty: nothing is kept). A key also has the state of the
tools and of this package's code, so that neither a new ptxas nor an edit here finds old results.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ptxgen.toolchain import find_nvdisasm, find_ptxas
from ptxgen.toolchain.cache import cache_folder, write_whole


def place(kind: str, *parts: bytes) -> Path | None:
    """The file for a result of a kind, from all that it depends on; None where nothing is kept."""
    home = cache_folder()
    if home is None:
        return None
    key = hashlib.sha256(_state())
    for part in parts:
        key.update(len(part).to_bytes(8, "little") + part)
    return home / "sass" / f"{kind}-{key.hexdigest()[:32]}.json"


def _state() -> bytes:
    here = Path(__file__).parent
    files = (find_nvdisasm(), find_ptxas(), *sorted(here.glob("*.py")), here.parent / "cli" / "toolchain" / "sass.py")
    states = ((path, path.stat()) for path in files)
    return repr([(str(path), state.st_size, state.st_mtime_ns) for path, state in states]).encode()


def kept(path: Path | None) -> object:
    """The JSON value in a file of the cache; None where there is none, or it was cut short."""
    try:
        return json.loads(path.read_bytes()) if path is not None else None
    except (OSError, ValueError):
        return None


def keep(path: Path | None, value: object) -> None:
    """Write a JSON value at once, or not at all: a folder that cannot be written is no error."""
    if path is None:
        return
    try:
        write_whole(path, json.dumps(value).encode())
    except OSError:
        return
