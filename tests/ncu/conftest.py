"""Report files: the recorded pages of an H200, and the .ncu-rep file that `recorded.synthetic` writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ncu import recorded

Save = Callable[[str, str | bytes], Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Writes a file under a name and gives its path."""

    def write(name: str, data: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return write


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All pages of tests/data/ncu as files, by name without .csv.gz."""
    folder = tmp_path_factory.mktemp("pages")
    found: dict[str, Path] = {}
    for path in recorded.DATA.glob("*.csv.gz"):
        name = path.name.removesuffix(".csv.gz")
        found[name] = folder / f"{name}.csv"
        found[name].write_text(recorded.page(name))
    return found


@pytest.fixture(scope="session")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reports") / "synthetic.ncu-rep"
    path.write_bytes(recorded.synthetic())
    return path


@pytest.fixture(scope="session")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The reports and pages of hopper/overlapped by name: base.ncu-rep, base.raw.csv, ..."""
    folder = tmp_path_factory.mktemp("profiles")
    found: dict[str, Path] = {}
    for path in recorded.DATA.glob("overlapped_*.xz"):
        name = path.name.removeprefix("overlapped_").removesuffix(".xz")
        found[name] = folder / name
        found[name].write_bytes(recorded.profile(name))
    return found
