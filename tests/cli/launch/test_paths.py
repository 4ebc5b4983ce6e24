"""Files in folders and with names outside ASCII: `.file` has them in octal, as nvcc writes them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest

from ptxgen.files import escaped_path, unescaped_path
from tests.support.command_line import Cli
from tests.support.paths import DOCS

NAMES = ["ü", "pär", "ядро", "核", "\U0001f600 x", "a b", "d303", "é\\b"]


@pytest.mark.parametrize("name", NAMES)
def test_names_round_trip(name: str) -> None:
    assert escaped_path(name).isascii()
    assert unescaped_path(escaped_path(name)) == name


def test_the_bytes_are_those_of_nvcc() -> None:
    assert escaped_path("/home/f ü/k.cu") == r"/home/f \303\274/k.cu"  # nvcc 13.5 for this path
    assert unescaped_path(r"C:\077\0303\k.cu") == r"C:\077\0303\k.cu"


@pytest.mark.parametrize(("folder", "file"), [("f ü", "rowsum.py"), ("plain", "ядро ü.py"), ("核 ж", "é.py")])
def test_a_kernel_is_found_at_its_lines(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, file: str
) -> None:
    place = tmp_path / folder
    place.mkdir()
    monkeypatch.chdir(place)
    text = (DOCS / "examples" / "gemm_blackwell.py").read_text(encoding="utf-8")
    old = "pipeline.wait_full(ab)\n"
    assert old in text
    Path(file).write_text(text.replace(old, "pass\n", 1), encoding="utf-8")
    line = text[: text.index(old)].count("\n") + 1
    outcome = cli("run", file, "--format", "sarif=out.sarif")
    assert outcome.code == 1
    assert f"({file}:" in outcome.out
    places = [
        (unquote(each["physicalLocation"]["artifactLocation"]["uri"]), each["physicalLocation"]["region"]["startLine"])
        for result in json.loads(Path("out.sarif").read_text())["runs"][0]["results"]
        for each in result["locations"]
    ]
    assert places
    assert all(path == file and abs(number - line) < 20 for path, number in places), (places, line)


@pytest.mark.skipif(not shutil.which("c++"), reason="nvcc needs a C++ compiler")
@pytest.mark.parametrize("name", ["ü/k.cu", "k ü.cu", "核/ж.cu"])
def test_sass_names_the_source(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """ptxas splits the path in its line table at a backslash, too."""
    monkeypatch.chdir(tmp_path)
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text("__global__ void k(int *p) {\n    p[threadIdx.x] += 1;\n}\n")
    outcome = cli("sass", name, "--target", "sm_90a")
    assert outcome.code == 0
    assert f"({tmp_path / name}:2)" in outcome.out
