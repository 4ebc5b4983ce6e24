"""`ptxgen.exec`: run a program on the emulator from Python, as tests do."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ptxgen.driver.options import MEMORY, MULTIPROCESSORS, Options
from ptxgen.driver.run import run

if TYPE_CHECKING:
    from ptxgen.driver.results import Results


def exec(
    command: Sequence[str | os.PathLike[str]],
    *,
    target: str = "sm_100a",
    schedule: Literal["eager", "late", "random"] = "eager",
    seed: int = 0,
    sms: int = MULTIPROCESSORS,
    jobs: int | None = None,
    memory: int = MEMORY,
    timeout: float | None = None,
    accept: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Results:
    """Run a program and its arguments, such as ["python", "kernels.py"], with every check on.

    `.exit_code` of the result is the program's if that is not 0, else 1 for an error; `.launches` are all launches,
    each with `.kernel`, `.status`, `.findings`. `environment` adds variables. Raises ProgramError, BuildError.
    """
    from ptxgen.emulator.load.accepts import reviewed

    options = Options(
        target=target,
        schedule=schedule,
        seed=seed,
        multiprocessors=sms,
        jobs=jobs,
        memory=memory,
        timeout=timeout,
        accept=reviewed(accept) if accept is not None else (),
        environment=dict(environment or {}),
    )
    return run([os.fspath(word) for word in command], options)
