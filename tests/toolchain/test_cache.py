"""The cache on disk: what is made once, and what is made again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ptxgen.driver import build
from ptxgen.gemm import find
from ptxgen.gemm.selection.cubins import cubin_of
from ptxgen.toolchain import assemble, cache
from ptxgen.toolchain.cache import cache_folder, stored


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PTXGEN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_is_stored_is_made_once(folder: Path) -> None:
    made: list[int] = []

    def make() -> bytes:
        made.append(1)
        return b"x" * 1000

    assert stored("things", "key", make) == stored("things", "key", make) == b"x" * 1000
    assert len(made) == 1
    stored("things", "other", make)
    assert len(made) == 2
    (path, _) = sorted((folder / "things").iterdir())
    for damaged in (b"", path.read_bytes()[:-1], b"y" + path.read_bytes()[1:]):
        for each in (folder / "things").iterdir():
            each.write_bytes(damaged)
        before = len(made)
        assert stored("things", "key", make) == b"x" * 1000
        assert len(made) == before + 1


def test_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PTXGEN_CACHE", "")
    assert cache_folder() is None
    assert stored("things", "key", lambda: b"1") == b"1"
    monkeypatch.delenv("PTXGEN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "ptxgen"
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("PTXGEN_CACHE", str(blocked))
    assert stored("things", "key", lambda: b"2") == b"2"


def test_a_cubin_from_the_cache_needs_no_text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = find("hopper/wgmma").plan()
    first = cubin_of(plan)
    assert first == assemble(plan.text).data

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("assembled again")

    monkeypatch.setattr("ptxgen.gemm.selection.cubins.assemble", refuse)
    assert cubin_of(find("hopper/wgmma").plan()) == first
    with pytest.raises(AssertionError, match="assembled again"):
        cubin_of(find("hopper/wgmma").plan(n_tile=64))
    monkeypatch.setattr("ptxgen.gemm.selection.cubins.identity", lambda _: "another ptxas")
    with pytest.raises(AssertionError, match="assembled again"):
        cubin_of(find("hopper/wgmma").plan())
    assert cache.identity().split()[0].endswith("ptxas")


def test_one_variable_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXGEN_CACHE", str(tmp_path / "one"))
    monkeypatch.setenv("PTXGEN_CACHE_DIR", str(tmp_path / "other"))
    assert cache_folder() == build.cache_folder() == tmp_path / "other"
    monkeypatch.delenv("PTXGEN_CACHE_DIR")
    assert cache_folder() == build.cache_folder() == tmp_path / "one"


def test_a_kind_is_bounded(folder: Path) -> None:
    for number in range(9):
        cache.write("kind", str(number), bytes(1000), most=5000)
        for each in (folder / "kind").iterdir():  # the clock of files is coarse
            status = each.stat()
            os.utime(each, ns=(0, status.st_mtime_ns - 10**9))
    kept = [number for number in range(9) if cache.read("kind", str(number)) is not None]
    assert kept[-1] == 8
    assert kept == list(range(kept[0], 9))
    assert 3 <= len(kept) <= 4


def test_a_file_that_vanishes_does_not_end_the_trimming(folder: Path) -> None:
    cache.write("kind", "first", bytes(1000))
    gone = folder / "kind" / "gone"
    gone.symlink_to(folder / "nowhere")  # listed, and no longer there when it is looked at
    for number in range(20):
        cache.write("kind", str(number), bytes(1000), most=5000)
    gone.unlink()
    assert sum(each.stat().st_size for each in (folder / "kind").iterdir()) <= 5000
