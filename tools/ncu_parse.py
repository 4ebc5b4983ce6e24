"""Reads Nsight Compute reports: a thin script over `ptxgen.ncu`, the same as `ptxgen ncu`.

    python tools/ncu_parse.py REPORT... [--json | --csv] [--metrics REGEX] [--all] [--kernel NAME]
    python tools/ncu_parse.py --diff A B [--json] [--metrics REGEX] [--all] [--kernel NAME] [--threshold PERCENT]

Reports are .ncu-rep files or CSV pages of ncu (details, raw, source). --diff exits with 0 if both are the same, 1 if
they differ, 2 if they cannot be compared.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ptxgen.cli.main import execute


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="ncu_parse.py",
        usage="ncu_parse.py REPORT... [options] | --diff A B [options]",
        description="Summarize Nsight Compute reports, or compare two.",
        epilog="Everything else goes to 'ptxgen ncu', whose --help lists the options.",
    )
    parser.add_argument("--diff", nargs=2, metavar=("A", "B"), help="compare two reports")
    known, others = parser.parse_known_args(arguments)
    words = ["diff", *known.diff] if known.diff else []
    return execute(["ncu", *words, *others])


if __name__ == "__main__":
    sys.exit(main())
