"""The options of an emulator, checked."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def option_problems(
    schedule: object,
    seed: object,
    checks: object,
    advice: object,
    timeout: object,
    multiprocessors: object,
    max_steps: object,
    memory_bytes: object,
    jobs: object,
) -> Iterator[str]:
    """What is wrong with the options of an emulator."""
    if schedule not in ("eager", "late", "random"):
        yield f"schedule must be eager, late or random, not {schedule!r}"
    if not isinstance(seed, int | np.integer):
        yield f"seed must be a whole number, not {seed!r}"
    if not isinstance(checks, bool):
        yield f"checks must be True or False, not {checks!r}"
    if advice is not None and not (isinstance(advice, int | float) and advice > 0):
        yield f"advice must be a number above 0, or None, not {advice!r}"
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        yield f"timeout must be a number of seconds above 0, or None, not {timeout!r}"
    numbers = {"multiprocessors": multiprocessors, "max_steps": max_steps, "memory_bytes": memory_bytes, "jobs": jobs}
    for name, value in numbers.items():
        if not (value is None and name == "multiprocessors") and not (
            isinstance(value, int | np.integer) and value > 0
        ):
            yield f"{name} must be a whole number above 0, not {value!r}"
