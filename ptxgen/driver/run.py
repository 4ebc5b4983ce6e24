"""Run a program on the emulator: its environment, its processes, and how they end."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ptxgen.driver import build
from ptxgen.driver.options import Options
from ptxgen.driver.stacks import STACKS

if TYPE_CHECKING:
    from ptxgen.driver.results import Results
    from ptxgen.driver.server import Server

#: Exit codes: a finding; not found or not executable, as shells say it; the time limit, as timeout(1) says it; Ctrl-C.
FOUND, NOT_EXECUTABLE, NOT_FOUND, TIMED_OUT, INTERRUPTED = 1, 126, 127, 124, 130
#: Seconds that processes have to end after SIGTERM, and a program after the time limit.
_GRACE, _LATE = 0.3, 2.0
#: Seconds that a launch has after these to end by the same limit, so that its findings are reported.
_SETTLE = 10.0
#: Prefix of run folders, and the age in seconds from which an unlocked one was left by a killed run.
_TEMPORARY, _ABANDONED = "ptxgen-exec-", 60.0


class Ended(KeyboardInterrupt):
    """A signal that ends the run has come: Ctrl-C, or that of `timeout`, of a runner, of a terminal that is closed."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class _Signals:
    """Signals raise Ended once they are released, so that nothing is left behind; until then they wait."""

    def __init__(self) -> None:
        self._waiting: int | None = None
        self._released = False
        self._watched: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Take the signals to which nobody else listens."""
        if threading.current_thread() is not threading.main_thread():
            return self
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            handler = signal.getsignal(number)
            if handler in (signal.SIG_DFL, signal.default_int_handler):
                self._watched[number] = handler
                signal.signal(number, self._came)
        return self

    def _came(self, number: int, frame: object) -> None:
        if self._released:
            raise Ended(number)
        self._waiting = number

    def release(self) -> None:
        """From now on they raise. Raises Ended if one has come already."""
        self._released = True
        if self._waiting is not None:
            raise Ended(self._waiting)

    def hold(self) -> None:
        """From now on they wait again: the run ends, and leaves nothing."""
        self._released = False

    def __exit__(self, *exception: object) -> None:
        """Give them back."""
        for number, handler in self._watched.items():
            signal.signal(number, handler)


class ProgramError(RuntimeError):
    """The program cannot be run; the message says why."""


def run(command: Sequence[str], options: Options) -> Results:
    """Run a program to its end; the results have the exit code. Raises ProgramError, BuildError."""
    if sys.platform != "linux":
        raise ProgramError("ptxgen exec runs on Linux: programs are started with a preloaded library")
    program = shutil.which(command[0])
    if program is None:
        raise ProgramError(f"there is no program {command[0]!r}{_hint(command[0])}")
    library = build.library_folder()
    cache = build.cache_folder() / "exec" / options.target
    folders = [cache / name for each in STACKS for name in each.ptx_folders]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    base = None if _fits(tempfile.gettempdir()) and _has_room(tempfile.gettempdir()) else "/tmp"
    with (
        _Signals() as signals,
        _temporary_folder(base) as temporary,
        _guarded(temporary),
        socket.socket(socket.AF_UNIX) as listening,
    ):
        path = Path(temporary, "socket")
        if not _fits(str(library)):
            link = Path(temporary, "driver")
            link.symlink_to(library)
            library = link
        listening.bind(str(path))
        listening.listen(64)
        environment = program_environment(library, path, cache, options)
        began = time.monotonic()
        try:
            child = subprocess.Popen([program, *command[1:]], env=environment)
        except OSError as error:
            raise ProgramError(f"cannot run {program}: {(error.strerror or str(error)).lower()}") from None
        try:
            # The program starts while the emulator is imported, which takes as long.
            from ptxgen.driver.results import Results
            from ptxgen.driver.server import Server

            results = Results(options)
            server = Server(options, listening, results, folders)
            results.finish(_wait(child, server, options, began, signals))
            server.write_trace()
        finally:
            _end_processes(child, path)
    return results


@contextlib.contextmanager
def _temporary_folder(base: str | None) -> Iterator[str]:
    """A folder for the run, locked as long as this process lives; those that killed runs have left are removed."""
    for left in Path(base or tempfile.gettempdir()).glob(_TEMPORARY + "*"):
        with contextlib.suppress(OSError):  # it is another user's, or another process was first
            if left.lstat().st_uid == os.getuid() and time.time() - left.lstat().st_mtime > _ABANDONED:
                with _locked(left):
                    shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=_TEMPORARY, dir=base) as temporary, _locked(temporary):
        yield temporary


#: Shell command that waits for a line of this process. If the process is killed, no line comes: the shell ends all
#: processes with the socket in their environment and removes the folder.
_GUARD = """
read -r ended && exit
found=
for turn in 1 2 3; do
    for each in /proc/[0-9]*; do
        grep -qzxF "PTXGEN_EXEC_SOCKET=$1/socket" "$each/environ" 2>/dev/null && kill -9 "${each#/proc/}" && found=1
    done
done
rm -rf "$1"
test -z "$found" || echo "ptxgen exec: the emulator was killed; the program has been ended" >&2
"""


@contextlib.contextmanager
def _guarded(temporary: str) -> Iterator[None]:
    """Where this process is killed, its program ends and the folder is removed all the same."""
    command = ["/bin/sh", "-c", _GUARD, "sh", temporary]
    try:  # in a session of its own, so that Ctrl-C does not end it
        guard = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)
    except OSError:  # a system without a shell
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            guard.communicate(b"ended\n")


@contextlib.contextmanager
def _locked(folder: str | Path) -> Iterator[None]:
    """Hold the lock of a folder. Raises OSError if another process has it."""
    import fcntl  # which Windows does not have

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _fits(path: str) -> bool:
    """Whether LD_PRELOAD can hold a path: it separates paths by spaces and colons, and expands `$`."""
    return re.search(r"[\s:;$]", path) is None


def _has_room(folder: str) -> bool:
    """Whether a socket in a temporary folder in this one has an address: 107 bytes (unix(7)), 28 of them ours."""
    return len(os.fsencode(folder)) <= 107 - len(f"/{_TEMPORARY}12345678/socket")


#: Variables that hold flags, where the last one wins: ours go after the user's.
_FLAGS = frozenset({"NVCC_APPEND_FLAGS", "XLA_FLAGS"})
#: Variables whose other values take machine code, which is silently not run.
_FORCED = frozenset({"CUPY_ACCELERATORS"})


def program_environment(library: Path, path: Path, cache: Path, options: Options) -> dict[str, str]:
    """The variables of the program. Those that the user has set are kept, but for what cannot run otherwise."""
    made = dict(os.environ)
    hooks: list[str] = []
    for stack in STACKS:
        for name, value in stack.environment(cache).items():
            if name in _FLAGS:
                made[name] = " ".join(filter(None, (made.get(name), value)))
            elif name in _FORCED:
                made[name] = value
            else:
                made.setdefault(name, value)
        hooks += [f"{package}={module}" for package, module in stack.hooks]
    python = Path(__file__).with_name("python")
    made["PTXGEN_EXEC_SOCKET"] = str(path)
    made["PTXGEN_EXEC_PTXAS"] = str(library / build.WRAPPER)
    made["PTXGEN_EXEC_HOOKS"] = ";".join(hooks)
    made["PTXGEN_EXEC_BENCHMARKS"] = str(int(options.benchmarks))
    made["LD_PRELOAD"] = _joined(str(library / build.LIBRARY), made.get("LD_PRELOAD"))
    made["LD_LIBRARY_PATH"] = _joined(str(library), made.get("LD_LIBRARY_PATH"))
    made["PYTHONPATH"] = _joined(str(python), made.get("PYTHONPATH"))
    # One GPU, whatever is in the machine.
    made["CUDA_VISIBLE_DEVICES"] = "0"
    made.update(options.environment)
    return made


def _joined(first: str, rest: str | None) -> str:
    return f"{first}:{rest}" if rest else first


def _wait(child: subprocess.Popen[bytes], server: Server, options: Options, began: float, signals: _Signals) -> int:
    """The exit code of the whole: the program's if that is not 0, else 1 for findings."""
    results = server.results
    left = None
    if options.timeout is not None:
        server.deadline = began + options.timeout
        left = max(server.deadline + _LATE - time.monotonic(), 0)
    try:
        signals.release()
        code = child.wait(timeout=left)
    except subprocess.TimeoutExpired:
        during = f" while {server.running} ran" if server.running else ""
        server.settle(_SETTLE)
        results.say(f"the program did not end within {options.timeout:g} s (--timeout){during}; it was ended")
        return TIMED_OUT
    except Ended as ended:
        signals.hold()
        results.unfinished = server.running
        during = f" while {results.unfinished} ran" if results.unfinished else ""
        if ended.number == signal.SIGINT:
            results.say(f"interrupted{during}")
            return INTERRUPTED
        results.say(f"ended by {signal.Signals(ended.number).name}{during}")
        return 128 + ended.number
    if code < 0:
        results.unfinished = server.running
        during = f" while {results.unfinished} ran" if results.unfinished else ""
        results.say(f"the program was ended by {signal.Signals(-code).name}{during}")
        return 128 - code
    return code or (FOUND if results.failed else 0)


def _hint(name: str) -> str:
    path = Path(name)
    if path.is_file():
        how = "python " if path.suffix == ".py" else "chmod +x, or an interpreter before "
        return f"; {name} is a file that cannot be executed: try {how}{name}"
    return ""


# Processes.


def _processes(path: Path) -> list[int]:
    """All processes of the program: those with its socket in their environment."""
    mark = f"PTXGEN_EXEC_SOCKET={path}".encode()
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:  # it has ended, or is another user's
                continue
    return found


def _end_processes(child: subprocess.Popen[bytes], path: Path) -> None:
    """End what the program has left running."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        left = _processes(path)
        for process in left:
            try:
                os.kill(process, number)
            except ProcessLookupError:
                continue
        end = time.monotonic() + _GRACE
        while left and time.monotonic() < end:
            child.poll()
            left = _processes(path)
            if left:
                time.sleep(0.01)
        if not left:
            break
    child.wait()
