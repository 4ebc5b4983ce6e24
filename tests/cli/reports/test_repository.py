"""A repository of three kernels takes the hooks, the action, pyproject.toml and the pytest plugin, as a user would.

The transcript (commands, exit codes, what they print) is compared as a whole.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

from tests.cli.launch.test_cuda import needs_nvcc
from tests.cli.reports.test_formats import SCHEMA
from tests.support.command_line import Cli, Outcome
from tests.support.json_schema import problems
from tests.support.paths import ROOT

HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"
BODY = """.visible .entry {name}(.param .u64 y)
.reqntid 64
{{
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    .shared .align 4 .b8 row[256];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, row;
    mad.lo.u32 %r3, %r1, 4, %r2;
    st.shared.u32 [%r3], %r1;
    {barrier}
    xor.b32 %r3, %r3, 128;
    ld.shared.u32 %r4, [%r3];{comment}
    ld.param.u64 %rd1, [y];
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r4;
    ret;
}}
"""
TEST = """import numpy as np
import pytest
from ptxgen import Kernel
from ptxgen.testing import assert_allclose, assert_ok


@pytest.mark.parametrize("name", ["swap", "racy", "loop"])
def test_kernel(emulator, name):
    y = emulator.empty(64, "u32")
    assert_ok(emulator.launch(Kernel.from_file(f"kernels/{name}.ptx"), 1, 64, [emulator.array(np.zeros(64, "u4"))]))


def test_machine_code(sass_snapshot):
    sass_snapshot("kernels/loop.ptx")
"""


def kernel(name: str, barrier: str = "bar.sync 0;", comment: str = "") -> str:
    return HEAD + BODY.format(name=name, barrier=barrier, comment=comment)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three kernels: one right, one with a race that is accepted in place, one with a loop that is illegal at first."""
    folder = tmp_path / "three kernels"
    (folder / "kernels").mkdir(parents=True)
    (folder / "kernels/swap.ptx").write_text(kernel("swap"))
    accepted = "  // ptxgen: accept shared-race: readers take any of the values"
    (folder / "kernels/racy.ptx").write_text(kernel("racy", "", accepted))
    loop = "bar.sync 0;\n    mov.u32 %r5, 0;\nagain:\n    add.u32 %r5, %r5, 1;\n"
    loop += "    st.volatile.shared.u32 [%r3], %r5;\n"
    loop += "    setp.lt.u32 %p1, %r5, %r1;\n    @%p1 bra again;\n    bar.synk 0;"
    (folder / "kernels/loop.ptx").write_text(
        kernel("loop", loop).replace(".reg .b32", ".reg .pred %p<2>;\n    .reg .b32")
    )
    (folder / "test_kernels.py").write_text(TEST)
    (folder / "pyproject.toml").write_text(
        '[tool.ptxgen]\ntarget = "sm_90a"\nschedules = 2\n\n[tool.ptxgen.sass]\nfail-on = "registers,loop-stalls"\n'
    )
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PTXGEN_CACHE", str(tmp_path / "cache"))
    for words in ("init -q", "add .", "-c user.name=a -c user.email=a@b -c commit.gpgsign=false commit -qm first"):
        subprocess.run(["git", *shlex.split(words)], cwd=folder, check=True, capture_output=True)
    return folder


def run(folder: Path, command: list[str], **variables: str) -> tuple[int, str]:
    """The exit code, and what both streams show, with this machine's paths and times left out."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PTXGEN_CACHE": str(folder.parent / "cache"), **variables}
    environment |= {"COLUMNS": "100", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return done.returncode, re.sub(r"\d+\.\d+s", "N s", done.stdout.decode().replace(str(folder), "."))


def hook(cli: Cli, name: str, *files: str) -> Outcome:
    """What pre-commit does for a hook whose language is python: its entry, with the files that match."""
    (found,) = [each for each in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text()) if each["id"] == name]
    entry = shlex.split(found["entry"])
    assert entry[0] == "ptxgen"
    assert all(re.search(found["files"], each) for each in files)
    return cli(*entry[1:], *files)


def action(folder: Path, script: str, **inputs: str) -> tuple[int, str]:
    """What the runner does for the step of the action that runs a script: its variables are the inputs."""
    made = yaml.safe_load((ROOT / "action/action.yml").read_text())
    (step,) = [each for each in made["runs"]["steps"] if each.get("run", "").endswith(f'/{script}"')]
    values = {name: str(each.get("default", "")) for name, each in made["inputs"].items()} | inputs
    assert values.keys() == made["inputs"].keys()
    variables = {name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: values[found[1]], text)
                 for name, text in step["env"].items()}  # fmt: skip
    return run(folder, ["bash", str(ROOT / "action" / script)], **variables)


def fix(folder: Path) -> None:
    file = folder / "kernels/loop.ptx"
    file.write_text(file.read_text().replace("bar.synk", "bar.sync"))


def pytest_of(folder: Path, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "ptxgen.pytest_plugin", "-p", "no:cacheprovider", *words]
    return run(folder, command)


def test_the_check_hook_and_the_action(cli: Cli, repository: Path) -> None:
    files = ["kernels/loop.ptx", "kernels/racy.ptx", "kernels/swap.ptx"]
    assert hook(cli, "ptxgen-check", *files) == Outcome(
        1,
        "kernels/loop.ptx:22:8: error: illegal modifier: .synk of bar must be .sync: PTX has no .synk; the nearest "
        "legal form is bar.sync [unknown-modifier]\n"
        "> 22 │     bar.synk 0;\n"
        "     │        ^~~~~\n"
        "kernels/loop.ptx: 1 error\n"
        "kernels/racy.ptx: legal for sm_90a\n"
        "kernels/swap.ptx: legal for sm_90a\n"
        "3 files: 1 error\n",
        "",
    )
    code, said = action(repository, "check.sh", check="kernels\n", python=sys.executable)
    assert code == 1
    assert said == (
        "::error file=kernels/loop.ptx,line=22,col=8,endColumn=13,title=illegal modifier [unknown-modifier]::illegal "
        "modifier: .synk of bar must be .sync: PTX has no .synk; the nearest legal form is bar.sync%0Afix: use "
        "bar.sync\n"
    )
    log = json.loads((repository / "ptxgen-sarif/check.sarif").read_text())
    assert list(problems(log, SCHEMA)) == []
    assert [each["ruleId"] for each in log["runs"][0]["results"]] == ["unknown-modifier"]
    fix(repository)
    assert action(repository, "check.sh", check="kernels", python=sys.executable) == (0, "")
    assert action(repository, "check.sh", check="kernls", python=sys.executable)[0] == 2


def test_each_report_of_the_action_is_uploaded_in_its_category() -> None:
    """Code scanning refuses two runs of a tool in one category (github/codeql-action, issue 3051)."""
    steps = yaml.safe_load((ROOT / "action/action.yml").read_text())["runs"]["steps"]
    uploads = [each for each in steps if "upload-sarif" in each.get("uses", "")]
    assert len({each["with"]["category"] for each in uploads}) == len(uploads) == 2
    for script, each in zip(("check", "run"), uploads, strict=True):
        written = re.findall(r"sarif=\$PTXGEN_SARIF/([\w.]+)", (ROOT / "action" / f"{script}.sh").read_text())
        assert each["with"]["sarif_file"] == "${{ inputs.sarif }}/" + written[0]
        assert f"inputs.{script} != ''" in each["if"]


def test_the_gate_of_the_machine_code(cli: Cli, repository: Path) -> None:
    fix(repository)
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "2"], cwd=repository, check=True
    )
    assert hook(cli, "ptxgen-sass-gate", "kernels/loop.ptx").out == "kernels/loop.ptx: unchanged\n"
    file = repository / "kernels/loop.ptx"
    file.write_text(file.read_text().replace("again:\n", "again:\n    st.volatile.shared.u32 [%r3], %r1;\n"))
    (repository / "kernels/new.ptx").write_text(kernel("new"))
    outcome = hook(cli, "ptxgen-sass-gate", "kernels/loop.ptx", "kernels/new.ptx")
    assert (outcome.code, outcome.err) == (1, "")
    assert re.search(r"kernels/loop.ptx: .*loop-stalls: .*more than loop-stalls allows", outcome.out)
    assert outcome.out.endswith("kernels/new.ptx: new\n")
    assert cli("sass", "gate", "kernels/loop.ptx", "--fail-on", "registers+99").code == 0
    annotated = cli("sass", "gate", "kernels/loop.ptx", "--format", "github").out
    assert annotated.startswith("::error file=kernels/loop.ptx,title=SASS changed [sass-changed]::the SASS exceeds a ")
    assert cli("sass", "gate", "kernels/loop.ptx", "--base", "none").err == "error: git has no revision 'none'\n"
    swap = repository / "kernels/swap.ptx"
    swap.write_text(swap.read_text().replace("bar.sync", "bar.synk"))
    outcome = cli("sass", "gate", "kernels/swap.ptx", "kernels/none.ptx", "kernels/loop.ptx")  # all are compared
    assert outcome.code == 2
    assert outcome.err.startswith("error: kernels/swap.ptx: ptxas refused the PTX for sm_90a\n")
    assert "error: cannot read kernels/none.ptx: no such file or directory" in outcome.err
    assert re.search(r"kernels/loop.ptx: .*loop-stalls: .*more than loop-stalls allows", outcome.out)
    annotated = cli("sass", "gate", "kernels/swap.ptx", "--format", "github").out
    assert annotated.startswith("::error file=kernels/swap.ptx,title=unusable input::kernels/swap.ptx: ptxas refused")
    for words, sentence in (("nonsense", "--fail-on 'nonsense': known are registers, "), ("", "--fail-on names no ")):
        outcome = cli("sass", "gate", "kernels/new.ptx", "--fail-on", words)  # also where nothing is compared
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err.startswith(f"error: {sentence}")
    assert cli("sass", "gate").err == (
        "error: ptxgen sass gate takes files of kernels: ptxgen sass gate FILE.ptx FILE.cu FILE.py...\n"
    )


def commit(repository: Path) -> None:
    words = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "sources"]
    subprocess.run(["git", "add", "-A"], cwd=repository, check=True)
    subprocess.run(words, cwd=repository, check=True)


@needs_nvcc
def test_the_gate_of_cuda_and_its_headers(cli: Cli, repository: Path) -> None:
    header, source = repository / "kernels/step.cuh", repository / "kernels/sum.cu"
    header.write_text("__device__ float step(float x) { return x + 1; }\n")
    source.write_text(
        '#include "step.cuh"\n'
        "__global__ void sum(const float* x, float* y, int n) {\n"
        "    float total = 0;\n    for (int i = 0; i < n; ++i) total += step(x[i]);\n    *y = total;\n}\n"
    )
    commit(repository)
    words = ("sass", "gate", "kernels/sum.cu", "--target", "sm_90a")
    assert (cli(*words).code, cli(*words).out) == (0, "kernels/sum.cu: within the thresholds\n")
    header.write_text("__device__ float step(float x) { return sqrtf(x) + expf(x); }\n")
    outcome = cli(*words)
    assert (outcome.code, outcome.err) == (1, "")
    assert "loop-stalls: loop at sum.cu:4: " in outcome.out
    source.write_text("__global__ void sum() { nothing }\n")
    assert "nvcc refused kernels/sum.cu" in cli(*words).err


def test_the_gate_of_a_builder(cli: Cli, repository: Path) -> None:
    file = repository / "kernels/build.py"
    file.write_text(
        "from ptxgen.builder import KernelBuilder\nfrom ptxgen.instr import control, memory\n"
        'k = KernelBuilder("sums", "sm_90a", threads=32)\n'
        'y, n, value = k.pointer("y"), k.scalar("u32", "n"), k.reg("b32", "value")\n'
        "for i in k.range(n):\n"
        '    k(memory.ld(value, y, space="global", type="b32"))\n'
        "    value += i  # more\n"
        '    k(memory.st(y, value, space="global", type="b32"))\n'
        "k(control.ret())\nkernel = k.kernel()\n"
    )
    commit(repository)
    assert cli("sass", "gate", "kernels/build.py").out == "kernels/build.py: within the thresholds\n"
    file.write_text(file.read_text().replace("value += i  # more", "value += i\n    value += value // (i + 3)"))
    outcome = cli("sass", "gate", "kernels/build.py")
    assert (outcome.code, outcome.err) == (1, "")
    assert "loop-stalls: loop at build.py:" in outcome.out


def test_the_plugin_takes_the_table(repository: Path) -> None:
    fix(repository)
    code, said = pytest_of(repository, "--update-sass", "--junitxml=junit.xml")
    assert code == 0, said
    cases = list(ET.parse(repository / "junit.xml").iter("testcase"))
    assert sorted(each.attrib["name"] for each in cases) == sorted(
        [*(f"test_kernel[{schedule}-{name}]" for schedule in ("eager", "late") for name in ("swap", "racy", "loop")),
         "test_machine_code"]
    )  # fmt: skip
    launches = [each for case in cases for each in case.iter("property")]
    reports = [json.loads(each.attrib["value"]) for each in launches]
    assert {each.attrib["name"] for each in launches} == {"ptxgen.launch.1"}
    assert {(each["kernel"], each["schedule"], each["status"]) for each in reports} == {
        (name, schedule, "ok") for name in ("swap", "racy", "loop") for schedule in ("eager", "late")
    }
    file = repository / "kernels/racy.ptx"
    file.write_text(file.read_text().replace("    xor", "    bar.sync 0;\n    xor"))
    loop = repository / "kernels/loop.ptx"
    loop.write_text(loop.read_text().replace("again:\n", "again:\n    st.volatile.shared.u32 [%r3], %r1;\n"))
    code, said = pytest_of(repository, "-k", "late-racy or machine")
    assert code == 1
    assert "ptxgen: accepted, but not found any more: [shared-race] by the comment in line 17" in said
    assert re.search(r"E +AssertionError: the SASS is not that of \./__snapshots__/test_kernels.sass.json", said)
    assert re.search(r"E +loop: loop-(stalls|instructions)(?: of loop 1)?: \d+ -> \d+, more than \d+%? allows", said)
