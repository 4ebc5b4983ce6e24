"""Kernels from files, and paths given for text."""

from __future__ import annotations

from pathlib import Path

import pytest

import ptxgen
from ptxgen import Kernel
from ptxgen.device import KernelError

TEXT = ".version 8.0\n.target sm_80\n.address_size 64\n.entry one() { ret; }\n.entry two() { ret; }\n"


def test_from_file(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(TEXT)
    assert Kernel.from_file(path, "one").name == "one"
    assert Kernel.from_file(str(path), "two").text == TEXT
    with pytest.raises(KernelError, match=r"a kernel needs one entry .* it has 2: one, two"):
        Kernel.from_file(path)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match=r"cannot read .*none\.ptx: no such file or directory"):
        Kernel.from_file(tmp_path / "none.ptx")
    (tmp_path / "k.cubin").write_bytes(b"\x7fELF\xff\xfe")
    with pytest.raises(KernelError, match=r"k\.cubin is an ELF file \(a cubin\?\)"):
        Kernel.from_file(tmp_path / "k.cubin")
    with pytest.raises(KernelError, match=r"looks like PTX text, not like a path; Kernel\.from_ptx takes text"):
        Kernel.from_file(TEXT)


@pytest.mark.parametrize(
    "path", ["k.ptx", "kernels/gemm.ptx", "/tmp/k", "../k", "~/k.ptx", "C:\\k.ptx", "my kernel.cubin"]
)
def test_a_path_is_questioned(path: str) -> None:
    with pytest.raises(KernelError, match=r"looks like a path, not like PTX text; Kernel\.from_file reads a file"):
        Kernel.from_ptx(path)
    for function in (ptxgen.parse, ptxgen.check):
        with pytest.raises(ptxgen.PtxSyntaxError, match=r"expected PTX text, found .* which looks like a path: Path"):
            function(path)
    with pytest.raises(ptxgen.AssemblerError, match="looks like a path, not like PTX text"):
        ptxgen.assemble(path)


def test_a_misspelt_file_says_which_may_be_meant(tmp_path: Path) -> None:
    (tmp_path / "scale.ptx").write_text(TEXT)
    with pytest.raises(KernelError, match=r"no such file or directory; did you mean .*scale\.ptx\?$"):
        Kernel.from_file(tmp_path / "scal.ptx")


def test_text_is_not() -> None:
    line = ".version 8.0 .target sm_80 .address_size 64 .entry one() { ret; }"
    assert Kernel.from_ptx(line).name == "one"
    assert Kernel.from_ptx(f"// from k.ptx\n{line}").name == "one"
    with pytest.raises(KernelError, match="it has none"):
        Kernel.from_ptx("// nothing")


@pytest.mark.parametrize("name", ["empty.ptx", "empty.cubin"])
def test_an_empty_file_is_called_empty(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(KernelError, match="the PTX text is empty"):
        Kernel.from_file(tmp_path / name)
