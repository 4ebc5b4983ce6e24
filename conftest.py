"""What holds for all tests: --whole, and what collecting leaves behind."""

from __future__ import annotations

import gc
import signal
from collections import Counter

import pytest

# Background shells start their children with SIGINT ignored; those of the tests of Ctrl-C must not inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="run every case of the tests marked one_in(n)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one in n cases of a function that is marked one_in(n).

    Which one changes with each n cases, so that they take turns with a schedule that varies fastest.
    A function that is named on the command line (FILE::NAME) runs whole.
    """
    if config.option.whole or any("::" in each for each in config.args):
        return
    seen, kept, left = Counter[str](), list[pytest.Item](), list[pytest.Item]()
    for item in items:
        marker = item.get_closest_marker("one_in")
        if marker is None:
            kept.append(item)
            continue
        (n,) = marker.args
        function = item.nodeid.partition("[")[0]
        index = seen[function]
        seen[function] += 1
        (left if (index + index // n) % n else kept).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def pytest_collection_finish(session: pytest.Session) -> None:
    """What collecting has made stays to the end: collections of garbage need not look at tens of thousands of tests."""
    gc.collect()
    gc.freeze()
