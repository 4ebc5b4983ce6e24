"""A launch whose arguments are packed once: each call changes addresses and the stream, and enqueues it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache

#: The driver's cuLaunchKernelEx: addresses of the description, the function, the parameters, and nothing; its status.
Enqueue = Callable[[int, int, int, None], int]
_WORD = 8
#: Alignment of a parameter: that of a tensormap.
_ALIGNMENT = 64


class _Config(ctypes.Structure):
    """The driver's CUlaunchConfig."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    ]


@cache
def driver_enqueue() -> Enqueue:
    """The driver's own call, without cuda-python between."""
    function = ctypes.CDLL("libcuda.so.1").cuLaunchKernelEx
    function.argtypes = [ctypes.c_void_p] * 4
    function.restype = ctypes.c_int
    return function


class PreparedLaunch:
    """A launch of one kernel on one grid; of one thread, as its parameters are changed in place.

    `parameters`: the bytes of each; `places`: for each address of a call the parameters that begin with it, as
    addresses and tensormaps do. A cluster's extents are in the kernel itself.
    """

    def __init__(
        self,
        function: int,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_bytes: int,
        parameters: Sequence[bytes],
        places: Sequence[Sequence[int]],
        enqueue: Enqueue,
    ) -> None:
        offsets, size = [], 0
        for value in parameters:
            offsets.append(size)
            size += -(-max(len(value), 1) // _ALIGNMENT) * _ALIGNMENT
        self._buffer = ctypes.create_string_buffer(size + _ALIGNMENT)
        skipped = -ctypes.addressof(self._buffer) % _ALIGNMENT
        base = ctypes.addressof(self._buffer) + skipped
        for offset, value in zip(offsets, parameters, strict=True):
            ctypes.memmove(base + offset, value, len(value))
        self._words = (ctypes.c_uint64 * (size // _WORD)).from_buffer(self._buffer, skipped)
        self._at = tuple(
            (number, offsets[parameter] // _WORD) for number, found in enumerate(places) for parameter in found
        )
        pointers = (ctypes.c_void_p * max(len(parameters), 1))(*(base + offset for offset in offsets))
        self._config = _Config(grid, block, shared_bytes, None, None, 0)
        self._kept = pointers
        self._arguments = (ctypes.addressof(self._config), function, ctypes.addressof(pointers), None)
        self._enqueue = enqueue

    def __call__(self, stream: int, addresses: Sequence[int]) -> int:
        """Enqueue it with these addresses; the driver's status, 0 for success."""
        words = self._words
        for number, word in self._at:
            words[word] = addresses[number]
        self._config.stream = stream
        return self._enqueue(*self._arguments)
