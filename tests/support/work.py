"""What executors are tested with: functions of a module, which workers can import."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path


class DemandingError(Exception):
    """An error that does not survive pickling: it takes two arguments, and has one."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


def square(number: int) -> int:
    return number * number


def late_square(number: int) -> int:
    """The smaller, the later."""
    time.sleep(0.4 if number == 0 else 0.02)
    return number * number


def whoami(_: int) -> int:
    return os.getpid()


def go_wrong(how: str) -> str:
    """Does what the item says."""
    match how:
        case "exception":
            raise ValueError("no such tile")
        case "demanding":
            raise DemandingError("two", "words")
        case "exit":
            sys.exit(3)
        case "memory":
            raise MemoryError
        case "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "status":
            os._exit(7)
        case "unpicklable":
            return lambda: None  # type: ignore[return-value]
    return f"{how} done"


def wait_in(folder: Path) -> None:
    """Say that it has begun, and wait with a child process, as for ptxas; clean up where that is interrupted."""
    begun = folder / f"begun-{os.getpid()}"
    try:
        begun.touch()
        subprocess.run(["sleep", "60"], check=False)
    finally:
        begun.rename(folder / f"ended-{os.getpid()}")


def wait_for_ever(folder: Path) -> None:
    """Say that it has begun, with a child process, and do not listen."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with subprocess.Popen(["sleep", "60"]):
        (folder / f"begun-{os.getpid()}").touch()
        time.sleep(60)
