"""Freed memory that the C library keeps: each launch needs as much as the one before."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from functools import cache

#: Parameters of mallopt (malloc.h), and their values in bytes: how much freed memory stays with the process, and from
#: which size on an array has pages of its own, which go back to the system. Checks keep large tables that are zero but
#: for a few pages; elsewhere all of them would have to be cleared. The lanes of all resident warps take 2.4 MB.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT, _OWN_PAGES = 256 << 20, 4 << 20
#: Environment variables by which users set the allocator themselves.
_SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


@cache
def keep_freed_memory() -> None:
    """Have glibc keep up to 256 MiB of it, for the rest of the process: new pages take longer than a small launch."""
    if sys.platform != "linux" or any(name in os.environ for name in _SETTINGS):
        return
    with suppress(OSError, AttributeError):  # another C library has no mallopt
        library = ctypes.CDLL(None)
        library.mallopt(_TRIM_THRESHOLD, _KEPT)
        library.mallopt(_MMAP_THRESHOLD, _OWN_PAGES)
