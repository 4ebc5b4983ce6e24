"""The emulator that the ops run CPU tensors in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ptxgen.emulator import Emulator

_options: dict[str, Any] = {"target": "sm_100a"}


@contextmanager
def emulated(**options: Any) -> Iterator[None]:
    """Run CPU tensors inside in an emulator with these options: `target="sm_90a"`, `schedule="late"`, ..."""
    global _options
    before, _options = _options, {**_options, **options}
    try:
        yield
    finally:
        _options = before


def emulator() -> Emulator:
    """A fresh one, with the options of `emulated`."""
    return Emulator(**_options)
