"""`ptxgen sass`: listings, comparisons with exit codes, thresholds, the option behind a difference, bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.command_line import Cli
from tests.support.cubins import CONSUMER, PRODUCER, cubin, pipeline_text
from tests.support.paths import ROOT

WGMMA = "hopper/wgmma"


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    path = tmp_path / "groups.cubin"
    path.write_bytes(cubin("groups").data)
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PTXGEN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_listing_and_its_main_loop(cli: Cli, groups: Path) -> None:
    whole = cli("sass", groups)
    assert whole.code == 0
    assert "B0 -> " in whole.out
    assert "issue slots, stall sum" in whole.out
    loop = cli("sass", groups, "--loop")
    assert 0 < len(loop.out) < len(whole.out)


def test_json_has_every_instruction(cli: Cli, groups: Path) -> None:
    (found,) = json.loads(cli("sass", groups, "--json").out)
    instructions = [each for block in found["blocks"] for each in block["instructions"]]
    assert [each["address"] for each in instructions] == [16 * place for place in range(len(instructions))]
    assert {"stall", "no_yield", "write", "read", "wait", "waits", "reuse"} <= instructions[0]["control"].keys()
    (summary,) = json.loads(cli("sass", groups, "--json", "--summary").out)
    assert "blocks" not in summary


def test_exit_codes_and_the_cache(cli: Cli, groups: Path, cache: Path) -> None:
    assert cli("sass", "diff", groups, groups).code == 0
    different = cli("sass", "diff", groups, WGMMA)
    assert different.code == 1
    assert len(list((cache / "sass").glob("diff-*.json"))) == 2
    assert cli("sass", "diff", groups, WGMMA) == different  # from the cache
    grown = cli("sass", "diff", groups, WGMMA, "--fail-on", "registers+2")
    assert grown.code == 1
    assert "fails: registers: " in grown.out
    assert cli("sass", "diff", groups, WGMMA, "--fail-on", "registers+250").code == 0


def test_the_readme_shows_what_is_printed(cli: Cli, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    printed = cli("sass", "diff", "blackwell/clc", "blackwell/clc[stages=4]")
    assert printed.code == 1
    blocks = re.findall(r"```text\n(.*?)```", (ROOT / "docs/ten-minutes.md").read_text(), re.DOTALL)
    (shown,) = (block for block in blocks if block.startswith("A blackwell/clc"))
    assert shown in printed.out


def test_the_option_that_caused_a_difference(cli: Cli, cache: Path) -> None:
    one = cli("sass", "diff", WGMMA, f"{WGMMA}[n_tile=64]")
    assert one.code == 1
    assert "options      n_tile 128 -> 64" in one.out
    found = json.loads(cli("sass", "diff", WGMMA, f"{WGMMA}[n_tile=64]", "--json").out)
    assert found["options"] == [["n_tile", "128", "64"]]
    assert {each["cause"] for pair in found["functions"] for each in pair["differences"] if each["a"] is not None} == {
        "n_tile"
    }


def test_ptx_that_does_not_assemble_is_no_difference(cli: Cli, groups: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.ptx"
    bad.write_text(".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k() { no.such; ret; }\n")
    for words in ((bad,), ("diff", groups, bad), ("diff", bad, groups, "--fail-on", "spills")):
        outcome = cli("sass", *words)
        assert (outcome.code, outcome.out) == (2, ""), words
        assert "no.such" in outcome.err


def test_the_command_takes_a_loop(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "pipe.ptx"
    path.write_text(pipeline_text(12))
    main = cli("sass", path, "--loop")
    assert main.code == 0
    assert main.out == cli("sass", path, "--loop", f"pipe.cu:{CONSUMER}").out == cli("sass", "--loop", path).out
    assert cli("sass", path, "--loop", str(PRODUCER)).out != main.out
    unknown = cli("sass", path, "--loop", "77")
    assert unknown.code == 2
    assert "there is no loop at 77; there are: " in unknown.err
    summary = cli("sass", path, "--summary").out
    assert re.search(rf"main loop +at 0x\w+ \(pipe.cu:{CONSUMER}\)", summary)
    assert "election" in summary


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing.cubin",), "there is no file and no kernel 'nothing.cubin'"),
        (("hopper/wgmm",), "there is no file and no kernel 'hopper/wgmm'; did you mean hopper/wgmma"),
        (("hopper/wgmma[n_tile]",), "options are written option=value, not 'n_tile'"),
        (("hopper/wgmma[speed=1]",), "has no option speed; it takes"),
        (("diff", "a"), "takes two files or kernels, not 1"),
        (("diff", "hopper/wgmma", "missing.ptx"), "there is no file and no kernel 'missing.ptx'"),
        (("hopper/wgmma", "--fail-on", "registers"), "--fail-on is for ptxgen sass diff and ptxgen sass gate, not for"),
        (("/",), "/ is a folder; it must be a file or a shipped kernel"),
        (("hopper/wgmma", "--kernel", "nothing"), "has no function named 'nothing'; it has: gemm"),
    ],
)
def test_bad_input_is_one_sentence(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    outcome = cli("sass", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1
    assert words in outcome.err


LOOPED = """\
from ptxgen.builder import KernelBuilder
from ptxgen.instr import control, floating, memory

k = KernelBuilder("sums", "sm_90a", threads=32)
p, n = k.pointer("p"), k.scalar("u32", "n")
total, address = k.reg("f32"), p + 0
k(memory.ld(total, address, space="global", type="f32"))
for i in k.range(n):
    value = k.reg("f32")
    k(memory.ld(value, address, space="global", type="f32"))
    for _ in range(TIMES):
        k(floating.ex2(value, value))
    total += value
    address += 4
k(memory.st(p, total, space="global", type="f32"), control.ret())
kernel = k.kernel()
"""


@pytest.mark.parametrize(
    ("words", "line"),
    [(("--fail-on", "loop-stalls+5%"), 8), (("--fail-on", "loop-instructions"), 8), (("--fail-on", "code"), 0)],
)
def test_annotations_name_the_line_of_the_loop(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, str], line: int
) -> None:
    """That of the source: a line of the PTX would stand at another one of the Python file."""
    monkeypatch.chdir(tmp_path)
    for name, times in (("a.py", "1"), ("b.py", "8")):
        Path(name).write_text(LOOPED.replace("TIMES", times))
    outcome = cli("sass", "diff", "a.py", "b.py", *words, "--format", "github")
    assert (outcome.code, outcome.err) == (1, "")
    found = outcome.out
    at = f",line={line}" if line else ""
    assert found.startswith(f"::error file=b.py{at},title=SASS changed [sass-changed]::the SASS exceeds a threshold: ")
    plain = cli("sass", "diff", "a.py", "b.py", "--format", "github").out
    assert re.match(r"::error file=b\.py,line=([5-9]|1[0-5]),title=", plain), plain
    for name in ("a", "b"):
        Path(f"{name}.ptx").write_text(cli("build", f"{name}.py").out)
    found = cli("sass", "diff", "a.ptx", "b.ptx", *words, "--format", "github").out
    assert bool(re.match(r"::error file=b\.ptx,line=\d+,", found)) == bool(line)
