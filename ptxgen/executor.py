"""One executor for work that takes long: sweeps, schedule searches, mutants and certification.

`Executor.map` gives an `Outcome` for each item: a value, or what went wrong with this item alone. Local processes do
the work by default, one item at a time in each: where a process dies, its item is known, and the others go on. With
`dask` the workers of a Dask cluster do it. The function must be one of a module, since workers import it.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures import Executor as Pool
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from types import ModuleType, TracebackType
from typing import Any, Generic, Protocol, TypeVar, cast

from ptxgen.progress import Progress

Item = TypeVar("Item")
Value = TypeVar("Value")

#: Seconds that an interrupted worker has to end its item before it is killed; `subprocess.run` takes 0.25 of them.
_GRACE = 0.3
#: Seconds in which a Dask scheduler must answer.
_ANSWER = 10


class ExecutorError(RuntimeError):
    """There are no workers: no such cluster, or Dask is not installed."""


class WorkError(RuntimeError):
    """Work on an item failed, and left no exception that can be raised again: its worker died, for one."""


def require_workers(jobs: int | None, dask: str | None) -> None:
    """Raises ExecutorError for what an executor cannot be made of, whatever cluster answers."""
    if jobs is not None and jobs < 0:
        raise ExecutorError(f"the number of processes must be 0 or more, not {jobs}")
    if dask is not None:
        _distributed()


@dataclass(frozen=True)
class Outcome(Generic[Item, Value]):
    """What became of an item: its value, or `error`. `name` is what messages call the item."""

    item: Item
    name: str
    value: Value | None = None
    error: Exception | None = None

    def result(self) -> Value:
        """The value. Raises the error of the item, if it has one."""
        if self.error is not None:
            raise self.error
        return cast("Value", self.value)

    @property
    def problem(self) -> str:
        """The item and what went wrong with it, as one line; empty where nothing did."""
        if self.error is None:
            return ""
        kind = "" if isinstance(self.error, WorkError) else f"{type(self.error).__name__}: "
        return " ".join(f"{self.name}: {kind}{self.error}".split()).rstrip(": ")


class Executor:
    """Workers for `map`, as a context: `jobs` local processes (None: one a core), or a Dask cluster's.

    With 0 jobs this process does the work, one item after the other: for a debugger, and nothing survives a crash.
    Raises ExecutorError.
    """

    def __init__(self, jobs: int | None = None, dask: str | None = None) -> None:
        require_workers(jobs, dask)
        self._workers: list[_Worker] = []
        self._close: Callable[[], object] = bool
        self._running: dict[Future[_Done], tuple[int, _Worker]] = {}
        if dask is not None:
            self._workers, self._close = _dask_workers(dask)
        elif jobs != 0:
            self._workers = [_Process() for _ in range(jobs or _cores())]

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        _stop(self._running)
        for worker in self._workers:
            worker.end(now=kind is not None)
        self._close()

    @property
    def workers(self) -> int:
        """How many items are worked on at a time."""
        return max(len(self._workers), 1)

    def map(
        self,
        function: Callable[[Item], Value],
        items: Sequence[Item],
        *,
        ordered: bool = True,
        name: Callable[[Item], str] = str,
        what: str = "",
        effort: Callable[[Item], float] = lambda _: 1.0,
    ) -> Iterator[Outcome[Item, Value]]:
        """The outcome of each item, in the order of the items, or as they are completed.

        `what` are the items in words ("mutants"): progress is shown with it, and none without. `effort` weighs them for
        the time that is left. What runs is stopped where the caller does not go on to the end.
        """
        with Progress(what, len(items), sum(map(effort, items))) as progress:
            finished = self._here(function, items, name) if not self._workers else self._run(function, items, name)
            held: dict[int, Outcome[Item, Value]] = {}
            following = 0
            for index, outcome in finished:
                progress.advance(effort(outcome.item))
                if not ordered:
                    yield outcome
                    continue
                held[index] = outcome
                while following in held:
                    yield held.pop(following)
                    following += 1

    def _here(
        self, function: Callable[[Item], Value], items: Sequence[Item], name: Callable[[Item], str]
    ) -> Iterator[tuple[int, Outcome[Item, Value]]]:
        for index, item in enumerate(items):
            try:
                outcome = Outcome(item, name(item), function(item))
            except Exception as error:
                outcome = Outcome[Item, Value](item, name(item), error=error)
            yield index, outcome

    def _run(
        self, function: Callable[[Item], Value], items: Sequence[Item], name: Callable[[Item], str]
    ) -> Iterator[tuple[int, Outcome[Item, Value]]]:
        todo, free = deque(enumerate(items)), list(self._workers)
        running = self._running
        running.clear()

        def begin() -> None:
            while todo and free:
                index, item = todo.popleft()
                worker = free.pop()
                with _undisturbed():  # an item that is not among `running` would not be interrupted
                    running[worker.submit(function, item)] = index, worker

        try:
            begin()
            while running:
                finished: list[tuple[int, Outcome[Item, Value]]] = []
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    index, worker = running.pop(future)
                    item, done = items[index], worker.done(future)
                    finished.append((index, Outcome(item, name(item), cast("Value", done.value), done.error)))
                    free.append(worker)
                begin()  # before the caller looks at these
                yield from finished
        finally:
            _stop(running)


@dataclass(frozen=True)
class _Done:
    """What a worker sends back."""

    value: object = None
    error: Exception | None = None


class _Worker(Protocol):
    """What works on one item at a time."""

    def submit(self, function: Callable[[Any], object], item: object) -> Future[_Done]: ...

    def done(self, future: Future[_Done]) -> _Done:
        """What became of the item of a finished future."""
        ...

    def interrupt(self) -> None:
        """Cancel its item."""
        ...

    def end(self, *, now: bool) -> None:
        """Let it go, whatever it does, or when it is idle."""
        ...


def _stop(running: dict[Future[_Done], tuple[int, _Worker]]) -> None:
    """Interrupt workers, and kill those that do not give up."""
    for future, (_, worker) in running.items():
        future.cancel()
        worker.interrupt()
    for future in wait(running, timeout=_GRACE).not_done:
        running[future][1].end(now=True)
    running.clear()


class _Process:
    """A local process, begun when it is needed, and begun again where it died: a pool of one."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._process: BaseProcess | None = None

    def submit(self, function: Callable[[Any], object], item: object) -> Future[_Done]:
        context = _context((function.func if isinstance(function, partial) else function).__module__)
        with _undisturbed():  # an unregistered process would be waited for at exit
            try:
                pool = self._pool or ProcessPoolExecutor(1, context, _begin)
                future = pool.submit(_interruptible, function, item)
            except BrokenProcessPool:  # it died when it had nothing to do
                pool = ProcessPoolExecutor(1, context, _begin)
                future = pool.submit(_interruptible, function, item)
            self._pool = pool
            [self._process] = pool._processes.values()
        return future

    def done(self, future: Future[_Done]) -> _Done:
        error = future.exception()
        if error is None:
            return future.result()
        if not isinstance(error, BrokenProcessPool):  # an item or a value that cannot be pickled
            return _Done(error=_portable(error))
        self.end(now=False)
        if error.__cause__ is not None:
            return _Done(error=WorkError(f"its value cannot be read back: {_last_line(str(error.__cause__))}"))
        return _Done(error=WorkError(self._death()))

    def interrupt(self) -> None:
        if self._process is not None and self._process.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGINT)

    def end(self, *, now: bool) -> None:
        pool, self._pool = self._pool, None
        if pool is None:
            return
        if now and self._process is not None and self._process.pid is not None:
            _kill(self._process.pid)
        pool.shutdown(wait=True, cancel_futures=True)  # which reads the exit code

    def _death(self) -> str:
        code = None if self._process is None else self._process.exitcode
        if code is None or code >= 0:
            return f"its worker process ended with exit code {code}"
        try:
            words = f"{signal.Signals(-code).name}, {signal.strsignal(-code)}"
        except ValueError:
            words = f"signal {-code}"
        memory = "; the system may have run out of memory" if -code == getattr(signal, "SIGKILL", 9) else ""
        return f"its worker process died: {words}{memory}"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _context(module: str) -> BaseContext:
    """New processes come from a server that has the module loaded: this process may have threads, and cannot fork."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([module])
    resource_tracker.ensure_running()  # first, since it unblocks Ctrl-C
    with _undisturbed():  # the server and its processes have Ctrl-C blocked from their beginning
        forkserver.ensure_running()
    loaded = context.Process(target=bool)
    loaded.start()
    loaded.join()
    return context


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C comes at the end of the block."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """A worker begins. Ctrl-C is for the item that runs, if any; the worker ends when its parent does.

    It leads a process group of its own, so that what an item has started, such as ptxas, is killed with it.
    """
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        _kill(os.getpid())


def _kill(worker: int) -> None:
    """Kill a worker, and the processes that it has started."""
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg") and os.getpgid(worker) == worker:
            os.killpg(worker, signal.SIGKILL)
        else:  # it has only just begun, or this is Windows, where SIGTERM ends it at once
            os.kill(worker, getattr(signal, "SIGKILL", signal.SIGTERM))


def _interruptible(function: Callable[[Any], object], item: object) -> _Done:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return _call(function, item)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _call(function: Callable[[Any], object], item: object) -> _Done:
    try:
        return _Done(function(item))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: it must not end the worker
        error.add_note(f"In the worker:\n{traceback.format_exc()}")
        return _Done(error=_portable(error))


def _portable(error: BaseException) -> Exception:
    """The error if another process can raise it, else its words."""
    try:
        again = pickle.loads(pickle.dumps(error))
        if isinstance(again, Exception) and str(again) == str(error):
            return again
    except Exception:  # whatever its own methods raise
        pass
    made = WorkError(f"{type(error).__name__}: {error}".rstrip(": "))
    for note in getattr(error, "__notes__", ()):
        made.add_note(note)
    return made


def _last_line(text: str) -> str:
    return text.strip().strip("\"'").strip().splitlines()[-1]


class _DaskWorker:
    """A worker of a Dask cluster. Where one dies, Dask tries its item on others before it gives the item up."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def submit(self, function: Callable[[Any], object], item: object) -> Future[_Done]:
        return self._pool.submit(_call_alone, function, item)

    def done(self, future: Future[_Done]) -> _Done:
        if future.cancelled():
            return _Done(error=WorkError("the Dask cluster has canceled it"))
        error = future.exception()
        if error is None:
            return future.result()
        if type(error).__name__ == "KilledWorker":
            return _Done(error=WorkError(f"its worker process died: {error}"))
        return _Done(error=_portable(error))

    def interrupt(self) -> None:
        """Dask drops what has not begun; what runs ends by itself."""

    def end(self, *, now: bool) -> None:
        self._pool.shutdown(wait=not now)


_alone = threading.Lock()


def _call_alone(function: Callable[[Any], object], item: object) -> _Done:
    """One item at a time in a process, however many threads a Dask worker has: mutants patch modules, for one."""
    with _alone:
        return _call(function, item)


def _distributed() -> ModuleType:
    """Dask's module. Raises ExecutorError."""
    try:
        return importlib.import_module("distributed")
    except ImportError as error:
        raise ExecutorError(f"Dask is not installed ({error}); install it with: pip install 'ptxgen[dask]'") from error


def _dask_workers(address: str) -> tuple[list[_Worker], Callable[[], object]]:
    """The workers of a cluster, one for each of its processes, and how to leave it. Raises ExecutorError."""
    distributed = _distributed()
    try:
        distributed.comm.get_address_host_port(address, strict=True)
        client = distributed.Client(address, timeout=_ANSWER, set_as_default=False)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        said = next(iter(str(error).splitlines()), "")
        raise ExecutorError(f"no Dask scheduler answers at {address!r}: {said or type(error).__name__}") from error
    began = time.monotonic()
    while not (count := len(client.nthreads())):
        if time.monotonic() - began > _ANSWER:
            client.close()
            raise ExecutorError(f"the Dask cluster at {address!r} has no workers")
        time.sleep(0.1)
    pool = client.get_executor(pure=False)
    return [_DaskWorker(pool) for _ in range(count)], client.close
