"""Launches that need not run again: equal to the one before, on equal memory that it leaves as it is.

Benchmarks and autotuners launch one kernel hundreds of times. Once a launch has left all memory as it found it, an
equal launch on the same memory does, shows and leaves the same.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxgen.device import LaunchReport
from ptxgen.driver.memory import SharedMemory
from ptxgen.driver.protocol import LaunchRequest
from ptxgen.emulator.native.library import pointer_to

#: Memory in use up to which launches are compared, in bytes: a copy of it is kept.
_MOST = 512 << 20
_compare = ctypes.CDLL(None).memcmp
_compare.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
_Key = tuple[object, ...]


@dataclass(frozen=True)
class _Done:
    key: _Key
    report: LaunchReport


class Repeats:
    """Remembers the last launch, and whether it left memory as it was."""

    def __init__(self, memory: SharedMemory) -> None:
        self._memory = memory
        self._last: _Key | None = None
        #: Memory before the last launch that was equal to the one before it, in the first `_used` bytes.
        self._copy: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._used = 0
        #: Equal launches in a row that changed memory. Beyond a few, only launches at powers of two are compared.
        self._changing = 0
        #: True while a launch runs whose memory is in `_copy`.
        self._compares = False
        #: The last launch, if it left memory as it is in `_copy`.
        self._idle: _Done | None = None

    def begin(self, request: LaunchRequest, checks: bool) -> LaunchReport | None:
        """The report of an equal launch that left all as it was; None if this one must run."""
        key = self._key(request, checks)
        if key != self._last:
            self._changing = 0
        elif self._idle is not None and self._idle.key == key and self._is_as_before():
            return self._idle.report
        seldom = self._changing & (self._changing - 1) == 0
        self._compares = key == self._last and seldom and self._memory.used <= _MOST
        if self._compares:
            self._take()
        self._last = key
        return None

    def end(self, report: LaunchReport, printed: str) -> None:
        """The launch that began last has ended."""
        self._idle = None
        ended = report.status in ("ok", "findings") and not printed
        if self._compares and self._last is not None and ended and self._is_as_before():
            self._idle = _Done(self._last, report)
        else:
            self._changing += 1

    def forget(self) -> None:
        """Launches have overlapped: none of them stands for a later one."""
        self._last = self._idle = None
        self._compares = False

    def _key(self, request: LaunchRequest, checks: bool) -> _Key:
        shape = request.grid, request.block, request.cluster, request.shared_bytes, request.flags
        return request.function, shape, request.parameters, checks

    def _take(self) -> None:
        """Copy memory as it is now."""
        now = self._memory.written()
        if len(self._copy) < len(now):
            self._copy = np.empty(len(now), np.uint8)
        self._used = len(now)
        self._copy[: self._used] = now

    def _is_as_before(self) -> bool:
        """Whether memory is as it was copied."""
        now = self._memory.written()
        return len(now) == self._used and not _compare(pointer_to(now), pointer_to(self._copy), self._used)
