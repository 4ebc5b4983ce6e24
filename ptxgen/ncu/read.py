"""`read`: any report."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

from ptxgen.files import read_file
from ptxgen.ncu.binary import read_binary
from ptxgen.ncu.container import MAGIC
from ptxgen.ncu.pages import is_page, read_page
from ptxgen.ncu.schema import Report, ReportError


def read(path: str | os.PathLike[str]) -> Report:
    """A .ncu-rep file or a CSV page of ncu (also one packed by gzip), distinguished by content.

    Raises ReportError: one sentence on what the file is instead; NcuReportMissingError (a ReportError) for a .ncu-rep
    file where the package ncu-report is not installed.
    """
    name = str(path)
    try:
        data = read_file(path)
    except OSError as error:
        raise ReportError(f"cannot read {name}: {(error.strerror or str(error)).lower()}") from None
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ReportError(f"{name} is a gzip file that cannot be unpacked ({error})") from None
        if data.startswith(MAGIC):
            raise ReportError(f"{name} is a compressed .ncu-rep file; unpack it first: gunzip {name}")
    if not data.strip():
        raise ReportError(f"{name} is empty: a .ncu-rep file or a CSV page of ncu (details, raw, source) is expected")
    if Path(path).suffix == ".ncu-repz":
        raise ReportError(f"{name} is a compressed report; export it: ncu --import {name} --csv --page raw")
    if data.startswith(MAGIC) or Path(path).suffix == ".ncu-rep":
        return read_binary(name, data)
    if not is_page(data):
        start = data[:8].hex(" ")
        raise ReportError(
            f"{name} is neither a .ncu-rep file nor a CSV page of ncu: it begins with {start} ({len(data)} bytes)"
        )
    return read_page(name, data)
