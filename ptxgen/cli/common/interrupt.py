"""Ctrl-C ends the command within half a second, also inside a call of NumPy, which Python's own handler waits for."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ptxgen.cli.errors import INTERRUPTED

#: Seconds that the command has to end by itself: to stop its workers, and to leave the terminal as it was.
_GRACE = 0.4
#: Held by a command that ends by itself, and what it has started with it; seconds that it may take.
_FINISHING = threading.Lock()
_PATIENCE = 10.0


@contextmanager
def finishes_itself() -> Iterator[None]:
    """Within this Ctrl-C does not end the process before the block ends."""
    with _FINISHING:
        yield


def watch() -> None:
    """From now on Ctrl-C wakes a thread at once, which ends the process where the main thread does not."""
    if sys.platform == "win32":  # where only sockets can be waited for, and no such call takes long
        return
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_listen, args=(ours, theirs), daemon=True).start()


def _listen(ours: socket.socket, theirs: socket.socket) -> None:
    while signal.SIGINT not in ours.recv(64):
        pass
    time.sleep(_GRACE)
    _FINISHING.acquire(timeout=_PATIENCE)
    if sys.stderr.isatty():
        sys.stderr.write("\x1b[?25h\n")  # a progress bar hides the cursor
        sys.stderr.flush()
    theirs.close()
    os._exit(INTERRUPTED)
