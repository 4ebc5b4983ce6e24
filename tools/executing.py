"""The options of tools that work in several processes, and their executor."""

from __future__ import annotations

import argparse
import os

from ptxgen.executor import Executor, ExecutorError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --jobs and --dask."""
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2); 0: none but this one")
    parser.add_argument("--dask", metavar="ADDRESS", help="let the workers of a Dask cluster do it")


def executor(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Executor:
    """The executor selected by the options; exits if it is unavailable."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of processes begun from here on, as in the Makefile
    try:
        return Executor(options.jobs, options.dask)
    except ExecutorError as error:
        parser.error(str(error))
