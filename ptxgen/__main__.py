"""The `ptxgen` command, also as `python -m ptxgen`."""

from __future__ import annotations

import os
import sys

#: The exit code after Ctrl-C, as shells have it; `ptxgen.cli.errors` is not imported yet.
_INTERRUPTED = 130


def main() -> None:
    """Run this process's command line. Ctrl-C while modules are being imported ends it without a traceback, too."""
    if "_PTXGEN_COMPLETE" in os.environ:  # typer would break the help of a word into lines, which fish takes for words
        os.environ["TERMINAL_WIDTH"] = "1000"
    try:
        from ptxgen.cli.main import main
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    if os.environ.get("_PTXGEN_COMPLETE") == "complete_bash":
        from ptxgen.cli.common import bash

        bash.complete(main)
    main()


if __name__ == "__main__":
    main()
