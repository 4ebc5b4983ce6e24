"""TVM's instruction table: its own printer, which imports nothing of TVM, writes each entry as inline assembly."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

#: The table, the printer of one entry, and the program that prints all.
_PARTS = ("table.py", "render.py", "gen_helpers.py")
#: The printer multiplies every choice of C types; one line in so many is read, chosen by its checksum.
ONE_IN = 24
#: Seconds for the printer, which writes 130 MB.
TIMEOUT = 1800


def texts(files: Iterator[tuple[str, bytes]]) -> Iterator[str]:
    """The printed inline assembly, one line at a time."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "outside_table"
        package.mkdir()
        (package / "__init__.py").touch()
        for name, content in files:
            if PurePosixPath(name).name in _PARTS:
                (package / PurePosixPath(name).name).write_bytes(content)
        if not all((package / part).is_file() for part in _PARTS):
            return
        printed = Path(folder) / "helpers.cu"
        command = [sys.executable, "-m", "outside_table.gen_helpers", "-o", str(printed)]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=TIMEOUT)
        with printed.open() as lines:
            yield from (line for line in lines if "asm" in line and zlib.crc32(line.encode()) % ONE_IN == 0)
