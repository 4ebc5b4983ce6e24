"""What holds for all tests."""

from __future__ import annotations

import signal

# Background shells start their children with SIGINT ignored; those of the tests of Ctrl-C must not inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
