"""Garbage collection, off while much is made that stays: the collector would look through it again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collection() -> Iterator[None]:
    """Collect nothing inside, unless the caller has switched that off already.

    What was made is of the oldest generation then: the next collection of the youngest does not look through it.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            if not gc.get_freeze_count():  # else the caller keeps objects frozen
                gc.freeze()
                gc.unfreeze()
            gc.enable()
