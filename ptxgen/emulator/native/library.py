"""The compiled library: that of the wheel, or one that is compiled at first use, in a checkout for that alone.

Nobody waits for the compiler: a launch that finds no library starts one (`python -m ptxgen.emulator.native.library`),
and runs without. `PTXGEN_NATIVE=0` in the environment does without the library, `PTXGEN_NATIVE=wait` waits for it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ptxgen.emulator.native.build import PREBUILT, SOURCES, compile_into, compiler, name
from ptxgen.toolchain.cache import cache_folder

#: Seconds after which another process that compiles counts as gone.
_STALE = 300


#: Functions that give the address of a buffer.
_address, _byte = ctypes.addressof, ctypes.c_char.from_buffer


class Library:
    """The functions of the library, whose pointers are integers (`pointer_to`), and `numbers` of operations by name."""

    def __init__(self, path: Path) -> None:
        loaded = ctypes.CDLL(str(path))
        if not loaded.ptxgen_supported():
            raise OSError("this processor lacks what the library is compiled for")
        loaded.ptxgen_operation.restype = ctypes.c_char_p
        loaded.ptxgen_operation.argtypes = [ctypes.c_int32]
        names: list[bytes] = []
        while (found := loaded.ptxgen_operation(len(names))) is not None:
            names.append(found)
        self.numbers: Mapping[str, int] = {each.decode(): number for number, each in enumerate(names)}
        self.run = loaded.ptxgen_run
        self.run.restype = None
        pointer, count = ctypes.c_void_p, ctypes.c_int64
        self.run.argtypes = [pointer, count, pointer, pointer, count, pointer]
        self.table = loaded.ptxgen_table
        self.table.restype = None
        self.table.argtypes = [count, *[pointer] * 5, count]
        self.refresh = loaded.ptxgen_refresh
        self.refresh.restype = None
        self.refresh.argtypes = [pointer, pointer, pointer, count, count, pointer, pointer, pointer]
        self.lowest = loaded.ptxgen_lowest
        self.lowest.restype = count
        self.lowest.argtypes = [pointer, pointer, pointer, count, pointer]
        self.steps = loaded.ptxgen_steps
        self.steps.restype = count
        self.steps.argtypes = [pointer, count, count, pointer, pointer]
        self.sums = loaded.ptxgen_sums
        self.sums.argtypes = [*[pointer] * 7, *[count] * 3]
        self.offsets = loaded.ptxgen_offsets
        self.offsets.argtypes = [pointer, pointer, count, ctypes.c_uint64, count, count, pointer, pointer]
        self.shared_offsets = loaded.ptxgen_shared_offsets
        self.shared_offsets.argtypes = [pointer, pointer, *[count] * 5, *[pointer] * 3]
        self.ascending = loaded.ptxgen_ascending
        self.ascending.argtypes = [pointer, pointer, count]
        self.changing = loaded.ptxgen_changing
        self.changing.argtypes = [*[pointer] * 3, *[count] * 3, *[pointer] * 2]
        self.gather = loaded.ptxgen_gather
        self.gather.restype = None
        self.gather.argtypes = [pointer, pointer, count, count, count, pointer]
        self.shadow_at = loaded.ptxgen_shadow_at
        self.shadow_at.argtypes = [pointer, pointer, count, count, pointer]
        self.shadow_put = loaded.ptxgen_shadow_put
        self.shadow_put.restype = None
        self.shadow_put.argtypes = [pointer, pointer, pointer, count, count]
        self.shadow_keep = loaded.ptxgen_shadow_keep
        self.shadow_keep.argtypes = [pointer, pointer, pointer, pointer, count, count]
        self.shadow_lost = loaded.ptxgen_shadow_lost
        self.shadow_lost.restype = count
        self.shadow_lost.argtypes = [*[pointer] * 5, *[count] * 3]
        self.granules = loaded.ptxgen_granules
        self.granules.restype = count
        self.granules.argtypes = [pointer, pointer, pointer, count, count, *[pointer] * 4]
        self.lane_loads = loaded.ptxgen_lane_loads
        self.lane_loads.argtypes = [pointer, pointer, pointer, count, pointer]
        self.lane_stores = loaded.ptxgen_lane_stores
        self.lane_stores.argtypes = [*[pointer] * 4, count, count, pointer]
        self.shared_ordered = loaded.ptxgen_shared_ordered
        self.shared_ordered.argtypes = [*[pointer] * 5, ctypes.c_int32]
        self.weak = loaded.ptxgen_weak
        self.weak.argtypes = [
            pointer,
            pointer,
            count,
            pointer,
            pointer,
            pointer,
            count,
            ctypes.c_int32,
            count,
            count,
            pointer,
        ]
        self.shared_keep = loaded.ptxgen_shared_keep
        self.shared_keep.restype = None
        self.shared_keep.argtypes = [pointer, pointer, pointer, ctypes.c_int32]


class _Chosen:
    """What `library` has found last."""

    library: Library | None = None
    #: The library of this process; None before it could be loaded.
    loaded: Library | None = None


def chosen() -> Library | None:
    """The library that the present launch has found; None if it does without."""
    return _Chosen.library


def pointer_to(array: NDArray[Any]) -> int:
    """Where an array begins."""
    try:
        return _address(_byte(array.data))
    except (TypeError, ValueError):  # read-only, empty or with gaps
        return array.__array_interface__["data"][0]


def library() -> Library | None:
    """The library; None without one, or as long as it is being compiled."""
    _Chosen.library = _found()
    return _Chosen.library


def _found() -> Library | None:
    wanted = os.environ.get("PTXGEN_NATIVE", "")
    if wanted == "0":
        return None
    if _Chosen.loaded is None:
        place = _place()
        if place is None:
            return None
        if not place.is_file():
            _compile_aside(wanted == "wait")
        if place.is_file():
            _Chosen.loaded = _loaded(place)
    return _Chosen.loaded


@cache
def _place() -> Path | None:
    """Where the library is, or will be; None where nothing can be kept."""
    checkout = (SOURCES.parents[3] / "hatch_build.py").is_file() and os.access(SOURCES.parent, os.W_OK)
    if checkout or (PREBUILT / name()).is_file():
        return PREBUILT / name()
    folder = cache_folder()
    return folder / "native" / name() if folder is not None else None


@cache
def _loaded(path: Path) -> Library | None:
    try:
        return Library(path)
    except (OSError, AttributeError):  # another platform's, or an older processor
        return None


@cache
def _compile_aside(wait: bool) -> None:
    """Have another process compile the library, once, unless that has failed before."""
    place = _place()
    if place is None or compiler() is None or _failed(place).exists():
        return
    quiet = subprocess.DEVNULL
    with contextlib.suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(place.parent, os.W_OK):
            return
        command = [sys.executable, "-m", __name__]
        made = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        if wait:
            made.wait()
        else:  # somebody must: a process that nobody has waited for is a ResourceWarning when it is forgotten
            threading.Thread(target=made.wait, daemon=True).start()


def _failed(place: Path) -> Path:
    """The file that marks sources that the compiler has refused."""
    return place.with_suffix(".failed")


def main() -> None:
    """Compile the library where it belongs, or wait until another process has done so."""
    place = _place()
    if place is None or place.is_file():
        return
    with contextlib.suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = place.with_suffix(".lock")
        while lock.exists() and lock.stat().st_mtime + _STALE > time.time():
            time.sleep(0.1)
        if place.is_file() or _failed(place).exists():
            return
        lock.unlink(missing_ok=True)
        with lock.open("x"):
            try:
                with tempfile.TemporaryDirectory(dir=place.parent) as temporary:
                    if compile_into(Path(temporary)):
                        Path(temporary, place.name).replace(place)
                    else:
                        _failed(place).touch()
            finally:
                lock.unlink()


if __name__ == "__main__":
    main()
