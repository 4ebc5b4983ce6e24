"""Files that hold SASS, and files that do not: one clear sentence."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from ptxgen.sass import ContainerError, load
from tests.support.cubins import cubin
from tests.support.paths import DATA


def fatbin(*images: tuple[int, bytes], flags: int = 0) -> bytes:
    """A fatbin with a cubin for each architecture: the header's layout is that of nvcc 13."""
    entries = b"".join(
        struct.pack("<HHIQIIHHIQQQ", 2, 0x101, 64, len(image), 0, 0, 8, 1, architecture, 0, flags, 0)[:64].ljust(
            64, b"\0"
        )
        + image
        for architecture, image in images
    )
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


def test_ptx_cubin_and_fatbin_give_the_same(tmp_path: Path) -> None:
    source = DATA / "handwritten" / "groups.ptx"
    data = cubin("groups").data
    path = tmp_path / "groups.cubin"
    path.write_bytes(data)
    (tmp_path / "groups.fatbin").write_bytes(fatbin((90, data)))
    expected = load(path).functions
    assert load(source).functions == expected
    assert load(tmp_path / "groups.fatbin").functions == expected
    assert load(data).target == "sm_90a"


def test_a_fatbin_of_two_targets() -> None:
    data = fatbin((90, cubin("groups").data), (100, cubin("blackwell_clc").data))
    assert load(data, target="sm_100a").kernel().name == "blackwell_clc"
    with pytest.raises(ContainerError, match=r"2 cubins; its cubins: sm_90, sm_100; name a target"):
        load(data)
    with pytest.raises(ContainerError, match=r"no cubin for sm_80; its cubins: sm_90, sm_100"):
        load(data, target="sm_80")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", r"is empty; it must be PTX, a cubin"),
        (b"hello", r"neither PTX, nor an ELF file, nor a fatbin: it begins with 68 65 6c 6c 6f \(5 bytes\)"),
        (b"\x7fELF\x02\x01", r"truncated: 6 bytes, its header alone has 64"),
        (struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 10_000), r"the fatbin is truncated: it needs 10016 bytes and has 16"),
    ],
)
def test_what_is_no_sass(data: bytes, words: str) -> None:
    with pytest.raises(ContainerError, match=words):
        load(data, origin="x.cubin")


def test_damaged_files() -> None:
    data = cubin("groups").data
    with pytest.raises(ContainerError, match=r"x.cubin: .*"):
        load(data[: len(data) // 2], origin="x.cubin")
    with pytest.raises(ContainerError, match=r"compressed with LZ4; make the fatbin with nvcc --no-compress"):
        load(fatbin((90, data), flags=0x2000), origin="x.fatbin")
    other = bytearray(data)
    other[18:20] = struct.pack("<H", 62)  # x86-64
    with pytest.raises(ContainerError, match=r"is an ELF file for another machine, without a section .nv_fatbin"):
        load(bytes(other), origin="host.o")
    with pytest.raises(ContainerError, match=r"missing.cubin: No such file"):
        load("missing.cubin")
