"""Launches that wait for the program, or for a launch in another stream.

A kernel may spin on memory that the program writes after the launch, or that another stream's copy or kernel writes.
The program is then told that the launch waits (NOT_READY), and goes on; the launch goes on when what it has read
changes. Once the program waits for it, and nothing is left that may change that memory, the program says so, and the
launch ends as a deadlock (native/queues.c is the program's side).
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ptxgen.driver import protocol
from ptxgen.driver.device import ProgramDevice
from ptxgen.driver.memory import SharedMemory
from ptxgen.driver.protocol import Status
from ptxgen.emulator.observers.footprint import Footprint

#: Seconds between two polls of memory, and seconds until the terminal shows what a launch waits for.
_LOOK, _LONG = 0.002, 10.0


class Waiting:
    """Lets the program go on while a launch spins; `lock` is held by whoever emulates or answers."""

    def __init__(
        self, lock: threading.Lock, device: ProgramDevice, memory: SharedMemory, tell: Callable[[str], None]
    ) -> None:
        self._lock, self._device, self._memory, self._tell = lock, device, memory, tell
        #: The kernels of launches that wait now.
        self.kernels: list[str] = []
        #: Connections whose program has the answer that a launch waits; the launch's result closes them.
        self.told: set[socket.socket] = set()

    def for_change(self, connection: socket.socket, footprint: Footprint, kernel: str) -> Callable[[bool], bool]:
        """What a launch calls when all of it spins, or seems to (`Scheduler.outside`)."""
        polls = 0

        def outside(certain: bool) -> bool:
            nonlocal polls
            before, polls = polls, footprint.strong
            if not certain and polls == before:  # it computes
                return False
            offsets = footprint.polled()
            if not len(offsets):
                return False
            values = self._memory.data[offsets].tobytes()
            try:
                if connection in self.told:
                    _drain(connection)
                else:
                    connection.sendall(protocol.HEAD.pack(Status.NOT_READY, 0))
                    self.told.add(connection)
                return self._wait(connection, lambda: self._memory.data[offsets].tobytes() != values, kernel)
            except OSError:  # the process has ended
                return False

        return outside

    def _wait(self, connection: socket.socket, changed: Callable[[], bool], kernel: str) -> bool:
        began, is_long = time.monotonic(), False
        with self._apart(kernel):
            while not changed():
                if select.select([connection], [], [], _LOOK)[0]:
                    connection.recv(1)  # the program gives up, or has ended
                    return changed()
                if not is_long and time.monotonic() - began > _LONG:
                    is_long = True
                    self._tell(
                        f"{kernel} has waited for {_LONG:g} s for memory that the program or another stream changes, "
                        "and still waits; --timeout ends it"
                    )
        return True

    @contextmanager
    def _apart(self, kernel: str) -> Iterator[None]:
        """Other launches may run meanwhile, on the same device."""
        device = self._device
        kept = device.loaded, device.observers, device.checks, device.timeout, device.outside, device.printed[:]
        self.kernels.append(kernel)
        self._lock.release()
        try:
            yield
        finally:
            self._lock.acquire()
            self.kernels.remove(kernel)
            device.loaded, device.observers, device.checks, device.timeout, device.outside = kept[:5]
            device.printed[:] = kept[5]


def _drain(connection: socket.socket) -> None:
    """Forget what the program has said before: the launch has gone on since."""
    while select.select([connection], [], [], 0)[0]:
        if not connection.recv(64):
            raise OSError
