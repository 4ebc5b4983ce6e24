"""Files of snapshots: JSON next to the tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def read_snapshots(path: Path) -> dict[str, dict[str, Any]]:
    """The snapshots of a file by name; none if it is missing. Raises AssertionError for other contents."""
    __tracebackhide__ = True
    try:
        kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError as error:
        raise AssertionError(f"{path} is not JSON: {error}; restore it, or delete it and write it anew") from None
    if not isinstance(kept, dict) or not all(isinstance(each, dict) for each in kept.values()):
        raise AssertionError(f"{path} must hold snapshots by name; restore it, or delete it and write it anew")
    return kept


def write_snapshots(path: Path, kept: Mapping[str, Mapping[str, object]]) -> None:
    """Write the snapshots of a file, sorted by name."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")
