"""Files that hold SASS, and files that do not: one clear sentence."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from ptxgen.sass import ContainerError, compare, load, summarize
from ptxgen.sass.fatbin import entries
from ptxgen.toolchain import find_ptxas
from tests.support.cubins import cubin
from tests.support.paths import DATA


def fatbin(*images: tuple[int, bytes], flags: int = 0) -> bytes:
    """A fatbin with a cubin for each architecture: the header's layout is that of nvcc 13."""
    entries = b"".join(
        struct.pack("<HHIQIIHHIQQQQ", 2, 0x101, 64, len(image), len(image), 0, 8, 1, architecture, 0, flags, 0, 9999)
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


@pytest.mark.parametrize("mode", ["default", "size", "speed", "balance", "none"])
def test_fatbins_of_every_compression(mode: str, tmp_path: Path) -> None:
    """What NVIDIA's fatbinary packs in each mode comes out as it went in, and fatbins may follow each other."""
    images: list[str] = []
    for architecture, name in (("90", "groups"), ("100", "blackwell_clc")):
        (tmp_path / f"{name}.cubin").write_bytes(cubin(name).data)
        images.append(f"--image3=kind=elf,sm={architecture},file={name}.cubin")
    command = [str(find_ptxas().with_name("fatbinary")), "--create", "all.fatbin", "-64", "--compress-all"]
    subprocess.run([*command, f"--compress-mode={mode}", *images], cwd=tmp_path, check=True)
    data = (tmp_path / "all.fatbin").read_bytes()
    packed = {each.architecture: each for each in entries(data)}
    for architecture, name in ((90, "groups"), (100, "blackwell_clc")):
        image, expected = packed[architecture].image(), cubin(name).data
        assert image[: len(expected)] == expected
        assert not image[len(expected) :].strip(b"\0")  # entries that are not compressed are padded
    assert (len(packed[90].payload) < len(cubin("groups").data)) == (mode != "none")
    assert load(data, target="sm_90a").kernel().name == "groups"
    following = data + bytes(8) + data  # fatbins of several files in one section
    assert [each.architecture for each in entries(following)] == [90, 100, 90, 100]


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
    for size in (100, len(data) // 2, len(data) - 1):
        with pytest.raises(ContainerError, match=rf"x.cubin: the ELF file is truncated: it has {size} bytes, "):
            load(data[:size], origin="x.cubin")
    for flags in (0x2000, 0x8000):
        with pytest.raises(ContainerError, match=r"x.fatbin: the entry for sm_90 cannot be decompressed: \w+"):
            load(fatbin((90, data), flags=flags), origin="x.fatbin")
    other = bytearray(data)
    other[18:20] = struct.pack("<H", 62)  # x86-64
    with pytest.raises(ContainerError, match=r"is an ELF file for another machine, without a section .nv_fatbin"):
        load(bytes(other), origin="host.o")
    with pytest.raises(ContainerError, match=r"missing.cubin: No such file"):
        load("missing.cubin")


CUDA_12 = DATA / "cuda" / "store_sm_90a_ptxas12.8.cubin"


def test_a_cubin_of_cuda_12() -> None:
    """ptxas 12.8 (sm_90a) wrote it: `out[tid] = tid`. nvdisasm 13 prints no life ranges of registers for it."""
    found = load(CUDA_12, cache=False)
    assert (found.target, found.has_life_ranges) == ("sm_90a", False)
    (function,) = found.kernels
    assert [each.opcode for each in function.instructions[:7]] == ["LDC", "S2R", "LDC", "ULDC", "IMAD", "STG", "EXIT"]
    assert function.instructions[3].control.stall == 1
    assert function.instructions[-1].opcode == "BRA"
    assert summarize(function, found).live == {}


def test_cubins_of_cuda_12_are_compared_by_the_numbers_of_registers() -> None:
    data = CUDA_12.read_bytes()
    found = load(data, cache=False)
    same = compare(found, found)
    assert same.same
    assert [gap[:30] for gap in same.gaps] == ["A is a cubin of CUDA 12 or old", "B is a cubin of CUDA 12 or old"]
    words = [each.word.to_bytes(16, "little") for each in found.kernels[0].instructions]
    for bit, kind in ((24, "register"), (44, "operand"), (110, "control")):  # of IMAD.WIDE
        word = int.from_bytes(words[4], "little") ^ 1 << bit
        (pair,) = compare(found, load(data.replace(words[4], word.to_bytes(16, "little")), cache=False)).pairs
        assert [(each.kind, each.a) for each in pair.differences] == [(kind, 4)]
