"""What holds for all tests."""

from __future__ import annotations

import gc
import signal

import pytest

# Background shells start their children with SIGINT ignored; those of the tests of Ctrl-C must not inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What collecting has made stays to the end: collections of garbage need not look at tens of thousands of tests."""
    gc.collect()
    gc.freeze()
