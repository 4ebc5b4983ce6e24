"""What README and docs/ten-minutes.md show is what happens: Python runs, and edits of the kernel end as they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxgen
from ptxgen.gemm import find
from ptxgen.gemm.job import run_gemm

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
MINUTES = (ROOT / "docs/ten-minutes.md").read_text()


def test_the_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.ptx").write_text(find("blackwell/swizzled").plan().text)
    blocks = re.findall(r"```python\n(.*?)```", MINUTES, re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block.replace('open("k.ptx").read()', '__import__("pathlib").Path("k.ptx").read_text()'), names)
    assert names["report"].status == "ok"
    exact = names["a"].numpy().astype(np.float64) @ names["b"].numpy().astype(np.float64).T
    # fp32 accumulation of 128 exact products: well below 1e-3 for values of this size
    np.testing.assert_allclose(names["c"].numpy(), exact, rtol=0, atol=1e-3)
    assert "is not on sm_90a" in capsys.readouterr().out


def test_the_broken_kernel_is_reported_as_shown() -> None:
    edits = [re.search(r"sed 's/(.*?)/(.*?)/' k\.ptx", page).groups() for page in (README, MINUTES)]  # type: ignore[union-attr]
    assert edits[0] == edits[1]
    old, new = edits[0]
    plan = find("blackwell/swizzled").plan()
    text = plan.text.replace(re.sub(r"\\", "", old), new)
    assert text != plan.text
    result = run_gemm(ptxgen.Emulator("sm_100a"), plan, 256, 256, 256, text=text)
    assert result.status == "deadlock"
    shown = " ".join(README.split())
    for finding in result.launch.findings[:2]:
        said = " ".join(finding.message.split())
        assert f"broken.ptx:{finding.line}: error: [{finding.code}] {said}" in shown
        assert f"fix: {finding.fix}" in shown


def test_the_commands_exist() -> None:
    help_text = (ROOT / "Makefile").read_text()
    for target in re.findall(r"\bmake (\w+)", README + MINUTES):
        assert re.search(rf"^{target}:.*## ", help_text, re.MULTILINE)


def test_the_readme_fits_two_screens_and_links_pages_that_exist() -> None:
    assert len(README.splitlines()) <= 90
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", README):
        assert (ROOT / target).is_file(), target


def test_lines_of_generated_kernels_are_those_of_today() -> None:
    """Opcodes that the pages show with a line of blackwell/tilus-roles stand in that line."""
    lines = find("blackwell/tilus-roles").plan().text.splitlines()
    shown = [
        (number, opcode)
        for page, start in ((MINUTES, "line "), ((ROOT / "docs/emulator.md").read_text(), "c[3, 5] ("))
        for block in re.findall(r"```text\n(.*?)```", page, re.DOTALL)
        if block.startswith(start)
        for number, opcode in [
            *((each[1], each[0]) for each in re.findall(r"([\w.:]+) \(line (\d+) \(blocks", block)),
            *re.findall(r"^line (\d+) \(blocks[^)]*\), hit \d+: (\S+)", block, re.MULTILINE),
        ]
    ]
    assert len(shown) >= 7
    assert not [(number, opcode) for number, opcode in shown if opcode not in lines[int(number) - 1]]


def test_breakpoints_of_the_pages_are_at_instructions() -> None:
    for page in ROOT.glob("docs/*.md"):
        for name, place in re.findall(r"ptxgen run ([a-z]+/[\w-]+)[^\n]*--at (?:line:)?(\d+)", page.read_text()):
            line = find(name).plan().text.splitlines()[int(place) - 1]
            assert line.strip().endswith(";"), (page.name, line)
