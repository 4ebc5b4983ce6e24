"""What stays on disk of a text: the same as is found anew, and nothing where it cannot be trusted."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ptxgen import syntax
from ptxgen.device import Kernel
from ptxgen.driver import kept
from ptxgen.driver.kept import Kept
from ptxgen.emulator.load.program import Program
from ptxgen.instr.model import check as checking
from ptxgen.instr.model.analyze import Analysis
from ptxgen.instr.model.targets import parse_target
from ptxgen.toolchain import cache
from tools.recorded import case as cases

TEXT = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry first(.param .u64 x)
{
    .reg .b32 %a;
    .reg .b64 %x;
    ld.param.u64 %x, [x];
    mov.u32 %a, %tid.x;
    st.global.u32 [%x], %a;
    ret;
}
.visible .entry second(.param .u64 y)
{
    .reg .f32 %a;
    add.rn.f32 %a, 0f3F800000, 0f3F800000;
    ret;
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PTXGEN_CACHE", str(tmp_path))
    return tmp_path / "analysis"


def loaded(text: str) -> tuple[dict[str, Kernel], Kept]:
    """The kernels of a text as a process loads them."""
    kernels = Kernel.of_module(text, syntax.parse(text))
    return kernels, Kept(text, next(iter(kernels.values())).analyzed)


def translated(kernel: Kernel) -> list[str]:
    """The instructions of a kernel's program, each with its declaration, modifiers and operands."""
    program = Program.of(kernel, parse_target(kernel.module.target or "sm_90a"))
    found = [each.instruction for each in program.operations]
    return ["" if each is None else f"{type(each).__module__}.{type(each).__qualname__} {vars(each)}" for each in found]


def never(*_: object, **__: object) -> object:
    raise AssertionError("found anew")


@pytest.mark.parametrize("name", cases.names()[::40])
def test_later_processes_find_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, entry = cases.load(name).text, cases.load(name).launch["entry"]
    kernels, left = loaded(text)
    found, diagnostics = translated(kernels[entry]), kernels[entry].diagnostics
    left.save()
    monkeypatch.setattr(checking, "check", never)
    monkeypatch.setattr(checking, "_Checker", never)
    monkeypatch.setattr("ptxgen.instr.model.analyze.recognized", never)
    monkeypatch.setattr("ptxgen.instr.model.analyze._RECOGNIZED", {})
    again, _ = loaded(text)
    assert again[entry].diagnostics == diagnostics
    assert translated(again[entry]) == found


def test_errors_stay_errors() -> None:
    text = TEXT.replace("mov.u32", "mov.u33")
    kernels, left = loaded(text)
    translated(kernels["second"])
    left.save()
    expected = kernels["first"].diagnostics
    assert [each.code for each in expected if each.severity == "error"]
    assert loaded(text)[0]["second"].diagnostics == expected


def test_kernels_of_a_module_share_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels, _ = loaded(TEXT)
    assert kernels["first"].diagnostics == []
    monkeypatch.setattr(checking, "check", never)
    assert kernels["second"].diagnostics == []


def test_later_kernels_are_added(folder: Path) -> None:
    kernels, left = loaded(TEXT)
    translated(kernels["first"])
    left.save()
    (file,) = folder.iterdir()
    before = file.read_bytes()
    left.save()
    assert file.read_bytes() == before
    translated(kernels["second"])
    left.save()
    again, _ = loaded(TEXT)
    assert len(again["first"].analysis.declarations) == len(kernels["first"].analysis.declarations) == 6


def kept_by(text: str) -> Analysis:
    kernels, left = loaded(text)
    translated(kernels["first"])
    left.save()
    return kernels["first"].analysis


def known(text: str) -> int:
    """Declarations that a process has before it has looked for any."""
    return len(loaded(text)[0]["first"].analysis.declarations)


@pytest.mark.parametrize("data", [b"", b"x", None])
def test_a_broken_file_is_none(folder: Path, data: bytes | None) -> None:
    kept_by(TEXT)
    (file,) = folder.iterdir()
    file.write_bytes(file.read_bytes()[:-1] if data is None else data)
    assert known(TEXT) == 0


def test_what_cannot_be_read_back_is_none() -> None:
    cache.write("analysis", kept._key(TEXT), b"cptxgen.gone\nNothing\n.")
    assert known(TEXT) == 0


def test_other_sources_find_it_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    kept_by(TEXT)
    assert known(TEXT) == 4
    monkeypatch.setattr(kept, "_sources", lambda: "others")
    assert known(TEXT) == 0


@pytest.mark.parametrize("place", ["", "/dev/null/folder"])
def test_without_a_folder_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setenv("PTXGEN_CACHE", place)
    kept_by(TEXT)
    assert known(TEXT) == 0


def test_the_folder_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_by(TEXT)
    (first,) = folder.iterdir()
    os.utime(first, (1, 1))
    monkeypatch.setattr(kept, "_MOST", 8 * first.stat().st_size)
    for number in range(20):
        kept_by(f"{TEXT}// {number}\n")
        assert sum(each.stat().st_size for each in folder.iterdir()) <= kept._MOST
    assert not first.exists()
    assert known(f"{TEXT}// 19\n") == 4


def test_many_write_at_once(folder: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: kept_by(TEXT), range(16)))
    assert len(list(folder.iterdir())) == 1
    assert known(TEXT) == 4
