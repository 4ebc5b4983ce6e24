"""The messages between a program's stand-in driver and the emulator; native/standin.h has the same numbers.

A message is two 32-bit numbers, what it is and the bytes that follow; an answer is a status (a CUresult) and the bytes
that follow. All numbers are little-endian.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum


class Message(IntEnum):
    """What a program asks for."""

    HELLO = 1
    ALLOCATE = 2
    FREE = 3
    LOAD = 4
    UNLOAD = 5
    FUNCTION = 6
    VARIABLE = 7
    ENTRIES = 8
    LAUNCH = 9
    TENSORMAP = 10
    RANGE = 11
    NOTE = 12


class Kind(IntEnum):
    """What an allocation is for."""

    DEVICE = 0
    PINNED = 1
    MANAGED = 2
    REGISTERED = 3
    VARIABLE = 4


class Status(IntEnum):
    """The results of calls that the emulator gives (CUresult)."""

    SUCCESS = 0
    INVALID_VALUE = 1
    OUT_OF_MEMORY = 2
    INVALID_IMAGE = 200
    NO_BINARY_FOR_GPU = 209
    INVALID_PTX = 218
    NOT_FOUND = 500
    #: Also the answer to a launch that waits for the program, or for another stream; its own answer follows.
    NOT_READY = 600
    ILLEGAL_ADDRESS = 700
    OUT_OF_RESOURCES = 701
    TIMEOUT = 702
    ASSERT = 710
    MISALIGNED_ADDRESS = 716
    LAUNCH_FAILED = 719
    COOPERATIVE_TOO_LARGE = 720


HEAD = struct.Struct("<II")
#: base and bytes of the heap, compute capability, multiprocessors, shared memory of one, delay and seed.
MACHINE = struct.Struct("<QQIIII")
#: bytes, kind, padding.
ALLOCATION = struct.Struct("<QII")
NUMBER, ADDRESS = struct.Struct("<I"), struct.Struct("<Q")
#: address, bytes, kind, padding.
RANGE = struct.Struct("<QQII")
#: Number of attributes (CU_FUNC_ATTRIBUTE_*) in a function's record.
FUNCTION_ATTRIBUTES = 18
#: number, parameters, bytes of the parameter block, attributes.
FUNCTION = struct.Struct(f"<III{FUNCTION_ATTRIBUTES}i")
#: address, bytes.
VARIABLE = struct.Struct("<QQ")
#: function, grid, block, cluster, shared bytes, flags, stream.
LAUNCH = struct.Struct("<13I")
COOPERATIVE, PROGRAMMATIC, WANTS_ACCESSES, MAY_WAIT = 1, 2, 4, 8
#: A programmatic dependent launch right after another launch of its stream.
FOLLOWS = 16
#: Head of the answer to a launch: nanoseconds on the device, number of the launch, parts of memory that it has
#: accessed. The parts and the kernel's output follow.
LAUNCHED = struct.Struct("<QII")
#: type, rank; address, dimensions, strides; box, strides of elements; interleave, swizzle, promotion, fill; corners;
#: channels, pixels, mode, padding.
TENSORMAP = struct.Struct("<II11Q10I4I10i4I")


class RefusedError(Exception):
    """A call fails with `status`; `message` is for the user (empty: the status says all), `answer` for the program."""

    def __init__(self, status: Status, message: str = "", answer: bytes = b"") -> None:
        super().__init__(message)
        self.status, self.message, self.answer = status, message, answer


@dataclass(frozen=True)
class LaunchRequest:
    """One launch as a program asks for it; `site` is where in the program that was."""

    function: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] | None
    shared_bytes: int
    flags: int
    stream: int
    parameters: bytes
    site: str

    @classmethod
    def read(cls, data: bytes, parameter_bytes: int) -> LaunchRequest:
        """The request in a message, whose function has so many bytes of parameters."""
        v = LAUNCH.unpack_from(data)
        cluster = (v[7], v[8], v[9]) if all(v[7:10]) else None
        end = LAUNCH.size + parameter_bytes
        site = data[end:].decode(errors="replace")
        return cls(
            v[0], (v[1], v[2], v[3]), (v[4], v[5], v[6]), cluster, v[10], v[11], v[12], data[LAUNCH.size : end], site
        )
