"""The command in a terminal: help with examples, narrow terminals, no colors, JSON, completion, and how fast it is."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer

from ptxgen.cli.common.examples import EXAMPLES
from ptxgen.cli.main import app
from ptxgen.emulator.checks.registry import CHECKS
from ptxgen.gemm import kernels
from tests.support.command_line import Cli
from tests.support.paths import ROOT
from tests.support.terminal import in_terminal
from tools import terminal_page

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]  # a group
HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"
BROKEN = HEAD + ".entry k()\n{\n    .reg .u32 %r;\n    add.u33 %r, %r, 1;\n    ret;\n}\n"


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_examples_and_ends_within_its_width(
    cli: Cli, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for columns in (30, 80):
        monkeypatch.setenv("COLUMNS", str(columns))
        outcome = cli(name, "--help")
        assert outcome.code == 0
        examples = outcome.out.partition("\nExamples:\n")[2]
        assert examples
        commands = {f"  {command}" for command, _ in EXAMPLES[name]}
        assert commands <= set(examples.splitlines())
        body = outcome.out.partition("\n\n")[2]
        for line in set(body.splitlines()) - commands:
            is_name = line.startswith("  -") or line.endswith(">")  # the name of a parameter stays whole
            assert len(line) <= columns or is_name, line


@pytest.mark.parametrize("line", [command for each in EXAMPLES.values() for command, _ in each])
def test_examples_parse(line: str) -> None:
    for part in line.split(" | "):
        program, *words = shlex.split(part)
        assert program == "ptxgen"
        if words[0].startswith("--"):
            assert words == ["--install-completion"]
        else:
            COMMANDS[words[0]].make_context(words[0], words[1:])
        for word in words:
            assert "/" not in word or word in kernels(), word


#: Examples that need no file and take no time.
QUICK = [
    command for name in ("kernels", "explain", "layout", "coverage", "plan", "build")
    for command, _ in EXAMPLES[name] if " -o " not in command
]  # fmt: skip


@pytest.mark.parametrize("line", QUICK)
def test_examples_work(cli: Cli, line: str) -> None:
    outcome = cli(*shlex.split(line)[1:])
    assert (outcome.code, outcome.err) == (0, "")


def test_the_groups_of_commands_are_shown(cli: Cli) -> None:
    lines = cli("--help").out.splitlines()
    for panel in ("Kernels:", "PTX files:", "Values:", "Examples:"):
        assert panel in lines


@pytest.mark.parametrize(
    "arguments",
    [
        ["kernels"],
        ["kernels", "blackwell/swizzled"],
        ["explain", "ld"],
        ["explain", "shared-race"],
        ["coverage"],
        ["check", "broken.ptx"],
    ],
)
def test_thirty_columns_are_enough(
    cli: Cli, arguments: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.ptx").write_text(BROKEN)
    monkeypatch.setenv("COLUMNS", "30")
    outcome = cli(*arguments)
    assert outcome.err == ""
    long = [line for line in outcome.out.splitlines() if len(line) > 30]
    # Lines that the terminal may break where it likes: sentences and opcodes, not tables.
    assert all("  " not in line.strip() for line in long), long


def test_nothing_is_lost_in_thirty_columns(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, values and sentences stay whole, one below the other, where a table would cut them."""
    monkeypatch.setenv("COLUMNS", "30")
    out = cli("explain", "tcgen05.ld").out
    assert "  tcgen05.ld_red_spcompress\n    As ld_spcompress;" in out
    out = cli("kernels", "blackwell/clc").out
    for name, option in kernels()["blackwell/clc"].described().items():
        assert f"\n  {name} " in out
        assert option["help"].split()[0] in out
    out = cli("explain", "checks").out
    for check in CHECKS.values():
        assert f"\n  {check.code}" in out
    assert "…" not in out
    out = cli("run", "blackwell/swizzled", "--m", 64, "--n", 64, "--k", 64).out
    assert "…" not in out.split("\n", 1)[1]
    for whole in ("0x4000404000010000", "0x08200490", "ab_full at 32768, 8 bytes"):
        assert whole in out
    assert all(len(line) <= 30 for line in out.splitlines())


def test_tables_that_do_not_fit_are_folded(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    out = cli("sweep", "hopper-1", "stages=1,2", "swizzle=64B,128B", "--jobs", 0).out
    lines = out.splitlines()
    assert all(len(line) <= 30 for line in lines), out
    assert [line.split() for line in lines if line.startswith(("stages ", "swizzle "))] == [
        ["stages", "1"], ["swizzle", "64B"], ["stages", "1"], ["swizzle", "128B"],
        ["stages", "2"], ["swizzle", "64B"], ["stages", "2"], ["swizzle", "128B"],
    ]  # fmt: skip
    assert sum(line.startswith("registers ") for line in lines) == 4
    for words in (
        ["smem", "0x4000404000010000"],
        ["0x4000404000010000"],
        ["--diff", "0x4000404000010000", "0x8000404000020000"],
    ):
        out = cli("explain", *words).out
        assert "\n  swizzle\n    bits 61-63\n" in out
        assert "\n  leading_byte_offset\n    bits 16-29\n" in out
        assert all(len(line) <= 30 for line in out.splitlines() if not line.startswith(("drawn by: ", "no legal "))), (
            out
        )


def test_a_listing_says_how_wide_it_is() -> None:
    shown = in_terminal("sass", "hopper-1", COLUMNS="30").output
    assert re.search(r"note: the listing is \d+ columns wide, this terminal 30; --summary has none", shown)
    assert "note: the listing" not in in_terminal("sass", "hopper-1", "--summary", COLUMNS="30").output


@pytest.mark.parametrize("name", terminal_page.LOOKS)
def test_the_recorded_looks_are_fresh(name: str) -> None:
    def form(text: str) -> str:
        """The text, without the figures of a certain ptxas."""
        head, ptxas, rest = text.partition("\nptxas\n")
        figures, result, end = rest.partition("\nresult\n")
        return head + ptxas + re.sub(r"\d", "0", figures) + result + end

    page = terminal_page.PAGE.read_text(encoding="utf-8")
    shown = terminal_page.look(name)
    assert form(terminal_page.recorded(page, name)) == form(terminal_page.fenced(shown)), "make docs"
    commands = ("drawn by: ",)  # whole, to be copied
    assert all(len(each) <= terminal_page.COLUMNS for each in shown.splitlines() if not each.startswith(commands))


def test_no_color() -> None:
    def shown(no_color: str) -> str:
        commands = (("check", "nothing.ptx"), ("explain", "ld"))
        return "".join(in_terminal(*command, NO_COLOR=no_color).output for command in commands)

    colored, plain = shown(""), shown("1")
    assert "\x1b[1;31merror:" in colored
    assert "\x1b[36m" in colored
    assert not any(f"\x1b[{code}m" in plain for code in ("1;31", "36", "31", "32", "1;33"))


def test_check_as_json(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(BROKEN)
    outcome = cli("check", path, "--json")
    assert (outcome.code, outcome.err) == (1, "")
    found = json.loads(outcome.out)
    assert (found["file"], found["target"], found["ok"]) == (str(path), "sm_90a", False)
    [row] = found["diagnostics"]
    assert (row["line"], row["column"], row["severity"], row["nearest"]) == (7, 8, "error", "add.u32")
    path.write_text(BROKEN.replace("u33", "u32"))
    assert json.loads(cli("check", path, "--json").out)["diagnostics"] == []
    assert cli("check", path, "--json").code == 0


def test_assemble_as_json(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(BROKEN)
    outcome = cli("assemble", path, "--json")
    assert outcome.code == 1
    found = json.loads(outcome.out)
    assert not found["ok"]
    assert found["diagnostics"][0]["line"] == 7
    path.write_text(BROKEN.replace("u33", "u32"))
    found = json.loads(cli("assemble", path, "--json").out)
    assert found["ok"]
    assert found["bytes"] > 1000
    assert found["entries"][0]["name"] == "k"


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ptxgen ch", ["check"]),
        ("ptxgen check --ta", ["--target"]),
        ("ptxgen check --target sm_90", ["sm_90", "sm_90a"]),
        ("ptxgen kernels blackwell/sw", ["blackwell/swizzled"]),
        ("ptxgen build hopper/", ["hopper/wgmma"]),
        ("ptxgen explain tcgen05.l", ["tcgen05.ld"]),
        ("ptxgen explain shared-r", ["shared-race"]),
        ("ptxgen kernels modular-k", ["modular-k8"]),
        ("ptxgen run blackwell/clc --set st", ["stages="]),
        ("ptxgen run blackwell/clc --set epilogue=", ["tma", "direct"]),
        ("ptxgen run blackwell/clc --set=epilogue=t", ["tma"]),
        ("ptxgen run hopper-1 --set st", ["stages=", "stages=24"]),
        ("ptxgen run hopper-1 --set stages=2", ["2", "20", "24"]),
        ("ptxgen run hopper-1 --set alpha=", ["false", "true"]),
        ("ptxgen run --dtype=e4", ["e4m3"]),
        ("ptxgen run mine#none --set st", []),
        ("ptxgen sweep blackwell/clc st", ["stages="]),
        ("ptxgen run --schedule l", ["late"]),
        ("ptxgen run --device ", ["emulator", "gpu"]),
        ("ptxgen run --dtype e4", ["e4m3"]),
        ("ptxgen plan --machine ", ["b200", "h200"]),
        ("ptxgen layout sw", ["swizzle"]),
        ("ptxgen sass blackwell/cl", ["blackwell/clc"]),
        ("ptxgen explain smem 1 --use ", ["mma", "cp", "scales"]),
    ],
)
def test_completion(line: str, expected: list[str]) -> None:
    words = [each for word in line.split(" ") for each in re.split("(=)", word) if each or not word]
    made = subprocess.run(
        [sys.executable, "-m", "ptxgen"],
        env=environment(_PTXGEN_COMPLETE="complete_bash", COMP_WORDS="\n".join(words), COMP_CWORD=str(len(words) - 1)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert set(expected) <= set(made.stdout.split()), made.stderr


@pytest.mark.parametrize(("shell", "line"), [("zsh", "_arguments"), ("fish", "blackwell/swizzled\t")])
def test_completion_of_other_shells_is_one_line_a_word(shell: str, line: str) -> None:
    more = {"_TYPER_COMPLETE_ARGS": "ptxgen kernels blackwell/s", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    made = subprocess.run(
        [sys.executable, "-m", "ptxgen"],
        env=environment(_PTXGEN_COMPLETE=f"complete_{shell}", **more),
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.stdout.startswith(line), made.stderr
    assert made.stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("shell", "line"), [("bash", "complete -o default"), ("zsh", "compdef"), ("fish", "complete ")]
)
def test_completion_is_shown_for_a_shell(shell: str, line: str) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "ptxgen", "--show-completion", shell],
        env=environment(_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1"),
        capture_output=True,
        text=True,
    )
    assert "_PTXGEN_COMPLETE" in made.stdout
    assert line in made.stdout


@pytest.mark.parametrize("delay", [0.2, 2.0])
def test_ctrl_c_ends_a_run_soon_and_without_a_traceback(delay: float) -> None:
    sizes = ["--m", "4096", "--n", "4096", "--k", "4096"]
    command = [sys.executable, "-m", "ptxgen", "run", "blackwell/swizzled", *sizes]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(delay)
        assert process.poll() is None
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
        # Half a second on a machine of its own; tests share theirs.
        assert time.monotonic() - began < 2
    finally:
        process.kill()
    if process.returncode != -signal.SIGINT:  # Python itself was not up yet
        assert process.returncode == 130
        assert "Traceback" not in errors


def test_ctrl_c_ends_a_long_call_of_numpy_too(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import numpy as np\nx = np.ones(1 << 26)\nprint('now', flush=True)\nnp.sort(np.random.rand(1 << 28))\n"
    )
    session = in_terminal("run", str(tmp_path / "slow.py"), interrupt=6.0)
    assert session.code == 130
    assert "Traceback" not in session.output
    # Half a second on a machine of its own; tests share theirs.
    assert session.seconds < 2


@pytest.mark.parametrize("command", ["sweep blackwell/pipelined stages=3,4,5 --run", "run blackwell/clc --schedules 8"])
def test_ctrl_c_ends_the_workers_too(command: str) -> None:
    size = "--m 4096 --n 4096 --k 4096"  # no machine has finished when Ctrl-C is typed
    session = in_terminal(*command.split(), *size.split(), interrupt=4.0)
    assert session.code == 130
    assert "Traceback" not in session.output
    assert session.seconds < 2


def seconds(code: str) -> float:
    """CPU seconds of a Python process that runs this, less those of one that runs nothing; the least of five."""

    def least(what: str) -> float:
        probe = f"{what}\nimport resource; usage = resource.getrusage(resource.RUSAGE_SELF); "
        probe += "print('\\n', usage.ru_utime + usage.ru_stime)"
        runs = [
            subprocess.run([sys.executable, "-c", probe], env=environment(), capture_output=True, text=True, check=True)
            for _ in range(5)
        ]
        return min(float(run.stdout.split()[-1]) for run in runs)

    return least(code) - least("pass")


def test_importing_takes_less_than_50_ms() -> None:
    assert seconds("import ptxgen") < 0.05


def test_help_takes_less_than_400_ms() -> None:
    assert seconds("import ptxgen.cli.main as m; m.execute(['--help'])") < 0.4


def test_importing_needs_no_heavy_module() -> None:
    code = "import sys, ptxgen; print(*(sys.modules.keys() & {'numpy', 'jinja2', 'rich', 'typer', 'ml_dtypes'}))"
    made = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert made.stdout.split() == []
    code = "import sys, ptxgen.cli.main as m; m.execute(['--help']); print(*(sys.modules.keys() & {'numpy', 'rich'}))"
    made = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert made.stdout.splitlines()[-1] == ""


@pytest.mark.parametrize("words", [("check", "kernel.ptx"), ("explain", "SBO"), ("explain", "facts", "fp8")])
def test_what_runs_nothing_does_not_import_the_emulator(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "kernel.ptx").write_text(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { // ptxgen: accept unused\nret; }\n"
    )
    code = (
        "import sys, ptxgen.cli.main as m; m.execute(sys.argv[1:]); "
        "print(sorted(sys.modules.keys() & {'ptxgen.emulator.device', 'ptxgen.emulator.schedule.scheduler'}))"
    )
    command = [sys.executable, "-c", code, *words]
    made = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True, cwd=tmp_path)
    assert made.stdout.splitlines()[-1] == "[]", made.stdout
