"""Garbage collection, off while much is made that stays: the collector would look through it again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# A collection of so few young objects costs less than `gc.get_freeze_count`, which walks all frozen ones.
_MANY = 20_000


@contextmanager
def paused_collection() -> Iterator[None]:
    """Collect nothing inside, unless the caller has switched that off already.

    What was made, if it is much, is of the oldest generation then: the next collection does not look through it.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            if gc.get_count()[0] > _MANY and not gc.get_freeze_count():  # else the caller keeps objects frozen
                gc.freeze()
                gc.unfreeze()
            gc.enable()
