"""Words that silicon gave to others: the files of tests/data/silicon."""

from __future__ import annotations

import gzip
import json
from typing import Any

from tests.support.paths import DATA


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a file, without its heading, which must name where they are from."""
    data = (DATA / "silicon" / name).read_bytes()
    heading, *found = map(json.loads, (gzip.decompress(data) if name.endswith(".gz") else data).decode().splitlines())
    assert {"what", "device", "source", "commit", "license"} <= heading.keys(), name
    return found
