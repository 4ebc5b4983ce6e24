"""Options that do not apply to what a command is given: refused in one sentence, never ignored."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxgen.gemm import find
from tests.support.command_line import Cli

GEMM, ATTENTION, JOB = "blackwell/swizzled", "hopper/attention", "docs/examples/rowsum.py"
COPY = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry copy(.param .u64 x) .reqntid 32 { ret; }
"""

#: The words of each option, by the kinds that take it.
OF_GEMM = ["--m 64", "--n 64", "--k 64", "--groups 2", "--alpha nan", "--beta 1", "--lda 64", "--ldb 64", "--ldc 64",
           "--whole-range"]  # fmt: skip
OF_ATTENTION = ["--queries 64", "--keys 64", "--heads 2", "--kv-heads 1", "--head-size 64", "--causal", "--layout bhsd"]
OF_PLANS = ["--set x", "--dtype x", "--c-dtype x", "--ptx x.ptx", "--batches 2"]
OF_FILES = ["--grid 2", "--block 32", "--cluster 2", "--shared-bytes 64", "--entry x", "--target sm_90a"]


def _cases() -> Iterator[tuple[str, str, str]]:
    """Command, kind of its input, and an option that this kind does not take."""
    refused = {
        "gemm": [*OF_ATTENTION, *OF_FILES, "--arg x=1", "--out c"],
        "attention": [*OF_GEMM, *OF_FILES, "--arg x=1"],
        "file": [*OF_GEMM, *OF_ATTENTION, *OF_PLANS],
        "job": [*OF_GEMM, *OF_ATTENTION, *OF_PLANS, *OF_FILES],
        "built": [*OF_ATTENTION, "--ptx x.ptx", "--out c"],
    }
    of_run = ("--ptx", "--out", "--groups", "--alpha", "--beta", "--ld", "--whole-range")
    for kind, options in refused.items():
        for each in options:
            yield "run", kind, each
            if not each.startswith((*of_run, "--batches")) and each != "--arg x=1":
                yield "audit", kind, each
                yield "time", kind, each
    yield "time", "gemm", "--batches 2"
    yield "time", "attention", "--what-if stages=+1"
    yield "time", "file", "--what-if best"


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, str]:
    """A word for each kind of input."""
    file, built = tmp_path / "copy.ptx", tmp_path / "built.ptx"
    file.write_text(COPY)
    built.write_text(find(GEMM).plan().text)
    return {"gemm": GEMM, "attention": ATTENTION, "file": str(file), "job": JOB, "built": str(built)}


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("command", "kind", "option"), list(_cases()))
def test_an_option_of_another_kind_is_refused(
    cli: Cli, inputs: dict[str, str], command: str, kind: str, option: str
) -> None:
    word = inputs[kind]
    outcome = cli(command, word, *option.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {option.split()[0]} is for ")
    assert outcome.err.count("\n") == 1
    assert f"{word} is " in outcome.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("time blackwell/swizzled --seconds 3", "--seconds goes with --what-if best"),
        ("time blackwell/swizzled --what-if stages=+1 --seconds 3", "--seconds goes with --what-if best"),
        ("run blackwell/swizzled --device gpu --schedule eager", "--schedule is for the emulator; leave it out with "
         "--device gpu"),
        ("run --device gpu --queries 64", "--queries is for attention kernels; the fastest kernel is a GEMM kernel "
         "(--m, --n, --k, --set)"),
        ("sweep blackwell/swizzled stages=3 --schedule late", "--schedule goes with --run, which runs each kernel in "
         "the emulator"),
        ("sweep blackwell/swizzled stages=3 --device gpu --run", "--run is for the emulator; leave it out with "
         "--device gpu"),
        ("sass a.ptx --all", "--all is for ptxgen sass diff, not for ptxgen sass FILE"),
        ("sass a.ptx --base HEAD", "--base is for ptxgen sass gate, not for ptxgen sass FILE"),
        ("sass a.ptx --fail-on spills", "--fail-on is for ptxgen sass diff and ptxgen sass gate, not for ptxgen sass "
         "FILE"),
        ("sass diff a.ptx b.ptx --summary", "--summary is for ptxgen sass FILE, not for ptxgen sass diff"),
        ("sass gate a.ptx --kernel k", "--kernel is for ptxgen sass FILE and ptxgen sass diff, not for ptxgen sass "
         "gate"),
        ("sass gate a.ptx --loop", "--loop is for ptxgen sass FILE and ptxgen sass diff, not for ptxgen sass gate"),
        ("ncu a.csv --threshold 3", "--threshold is for ptxgen ncu diff, not for ptxgen ncu REPORT"),
        ("ncu a.csv --by-order", "--by-order is for ptxgen ncu diff, not for ptxgen ncu REPORT"),
        ("ncu diff a.csv b.csv --lines 3", "--lines is for ptxgen ncu REPORT, not for ptxgen ncu diff"),
        ("explain wgmma.fence --kind f16", "--kind is for a value of idesc, not for wgmma.fence"),
        ("explain facts --major k", "--major is for a value of smem and wgmma, not for facts"),
        ("explain checks --json --markdown", "choose one of --json and --markdown"),
        ("explain checks race --markdown", "--markdown prints the whole page; leave out 'race'"),
        ("layout swizzle --svg a.svg --json", "choose one of --svg and --json"),
        ("layout swizzle --json --columns 80", "--columns is for the terminal: leave out --svg and --json"),
        ("layout --svg a.svg", "--svg is for a KIND of layout ('ptxgen layout' lists them)"),
        ("kernels blackwell/swizzled --copy mine --json", "--json lists kernels, and --copy starts one: leave out "
         "--json"),
    ],
)  # fmt: skip
def test_options_that_go_with_others(cli: Cli, words: str, sentence: str) -> None:
    outcome = cli(*words.split())
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"error: {sentence}\n")


def test_a_default_of_the_project_is_no_option_of_the_command_line(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.ptxgen]\nschedule = "late"\n')
    monkeypatch.chdir(tmp_path)
    outcome = cli("sweep", GEMM, "stages=3", "--jobs", "0")
    assert (outcome.code, outcome.err) == (0, "")


def test_a_built_file_is_audited_as_its_kernel(cli: Cli, inputs: dict[str, str]) -> None:
    outcome = cli("audit", inputs["built"], "--m", "128", "--n", "128", "--k", "64", "--time", "1e-9", "--jobs", "0")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"{inputs['built']}: " in outcome.out
    assert "not judged" in outcome.out


def _special(tmp_path: Path) -> dict[str, str]:
    for suffix in ("ptx", "py", "npy", "json"):
        os.mkfifo(tmp_path / f"pipe.{suffix}")
    (tmp_path / "empty").mkdir()
    return {"PIPE": str(tmp_path / "pipe"), "EMPTY": str(tmp_path / "empty")}


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("check /dev/full", "cannot read /dev/full: it is a device, not a file"),
        ("check /dev/zero /dev/urandom", "cannot read /dev/zero: it is a device, not a file"),
        ("check PIPE.ptx", "cannot read PIPE.ptx: it is a named pipe, not a file"),
        ("check PIPE.py", "cannot read PIPE.py: it is a named pipe, not a file"),
        ("check EMPTY", "EMPTY has no .ptx files"),
        ("assemble /dev/zero", "cannot read /dev/zero: it is a device, not a file"),
        ("run PIPE.ptx", "cannot read PIPE.ptx: it is a named pipe, not a file"),
        ("run PIPE.py", "cannot read PIPE.py: it is a named pipe, not a file"),
        ("run COPY --arg x=PIPE.npy", "cannot read PIPE.npy: it is a named pipe, not a file"),
        ("run COPY --arg x=struct:PIPE.json", "cannot read PIPE.json: it is a named pipe, not a file"),
        ("run blackwell/swizzled --ptx /dev/zero", "cannot read /dev/zero: it is a device, not a file"),
        ("check COPY --accept /dev/zero", "cannot read /dev/zero: it is a device, not a file"),
        ("ncu /dev/zero", "cannot read /dev/zero: it is a device, not a file"),
        ("tune --shapes /dev/zero", "cannot read /dev/zero: it is a device, not a file"),
        ("explain tensormap /dev/zero", "cannot read /dev/zero: it is a device, not a file"),
    ],
)
def test_files_without_an_end(cli: Cli, inputs: dict[str, str], tmp_path: Path, words: str, sentence: str) -> None:
    places = {**_special(tmp_path), "COPY": inputs["file"]}
    for name, path in places.items():
        words, sentence = words.replace(name, path), sentence.replace(name, path)
    outcome = cli(*words.split())
    assert (outcome.code, outcome.out.count("\n") <= 1) == (2, True)
    assert sentence in outcome.err


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/zero")
def test_streams_that_end_and_one_that_does_not(tmp_path: Path) -> None:
    command = f"{sys.executable} -m ptxgen check"
    for words, code, said in (
        (f"{command} <(echo '{COPY}')", 0, "legal for sm_90"),
        (f"echo '{COPY}' | {command} /dev/stdin", 0, "legal for sm_90"),
        (f"{command} - < /dev/zero", 2, "cannot read -: it is a device, not a file"),
    ):
        done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False)
        assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done
