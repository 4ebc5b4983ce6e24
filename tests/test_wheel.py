"""The built wheel, installed into a fresh environment and used from an empty directory."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from tests.support.guide import agrees, follow
from tests.support.paths import ROOT

LAUNCH = """
import numpy as np
import ptxgen

text = '''
.version 8.7
.target sm_100a
.address_size 64
.visible .entry twice(.param .u64 data)
{
    .reg .b32 %lane, %x;
    .reg .b64 %data, %at;
    ld.param.u64 %data, [data];
    mov.u32 %lane, %tid.x;
    mad.wide.u32 %at, %lane, 4, %data;
    ld.global.u32 %x, [%at];
    add.u32 %x, %x, %x;
    st.global.u32 [%at], %x;
    ret;
}
'''
emulator = ptxgen.Emulator("sm_100a")
data = emulator.array(np.arange(32, dtype=np.uint32))
report = emulator.launch(ptxgen.Kernel.from_ptx(text), 1, 32, [data])
assert report.status == "ok", report.summary()
assert (data.numpy() == 2 * np.arange(32)).all()
print(ptxgen.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the backend that pyproject.toml names."""
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], ROOT, isolated=False)
    (made,) = folder.glob("ptxgen-*.whl")
    return made


def purelib(folder: Path) -> str:
    return sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})["purelib"]


def environment(folder: Path, wheel: Path) -> Path:
    """The Python of a fresh environment that has the wheel and nothing else."""
    venv.create(folder, with_pip=False)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    python = Path(paths["scripts"]) / "python"
    install = ["-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "--quiet", str(wheel)]
    run([sys.executable, *install, "--disable-pip-version-check"], folder, isolated=False)
    return python


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands of a fresh environment are, which has the wheel; its dependencies are those of this one."""
    folder = tmp_path_factory.mktemp("environment")
    python = environment(folder, wheel)
    # A path in a .pth file does not bring the .pth files there, such as that of the editable ptxgen, along.
    (Path(purelib(folder)) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


def run(command: list[str], folder: Path, *, isolated: bool = True) -> str:
    """What a command prints, which must succeed; isolated, it finds nothing by this process's PYTHONPATH."""
    environment = {name: value for name, value in os.environ.items() if not (isolated and name == "PYTHONPATH")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def test_the_build_needs_no_installed_package() -> None:
    """pip builds a wheel where only hatchling is installed: what hatch_build.py loads must not import ptxgen."""
    modules = re.findall(r'"(ptxgen/[^"]*build\.py)"', Path(ROOT, "hatch_build.py").read_text(encoding="utf-8"))
    assert len(modules) == 2
    for each in modules:
        code = f"import runpy; runpy.run_path({str(ROOT / each)!r})"
        done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_wheel_has_the_data(wheel: Path) -> None:
    names = set(ZipFile(wheel).namelist())
    assert {
        "ptxgen/py.typed",
        "ptxgen/microtested.json",
        "ptxgen/instr/model/certified.json",
        "ptxgen/emulator/arithmetic/interpolator.csv",
        "ptxgen/concepts/mbarriers.toml",
    } <= names
    data = {f"ptxgen/{path.relative_to(ROOT)}" for path in (ROOT / "kernels").rglob("*") if path.is_file()}
    assert {"ptxgen/kernels/blackwell/ladder.toml", "ptxgen/kernels/blocks/mma.j2"} <= data
    assert data <= names
    assert not any(name.startswith(("tests/", "tools/", "bench/")) for name in names)


@pytest.mark.skipif(not sys.platform.startswith("linux") or not shutil.which("cc"), reason="the wheel is pure here")
def test_exec_needs_no_compiler(wheel: Path, scripts: Path, tmp_path: Path) -> None:
    assert "-py3-none-manylinux_2_" in wheel.name
    python = scripts / "python"
    code = "from ptxgen.driver import build; print(build.library_folder())"
    folder = Path(run([str(python), "-c", code], tmp_path).strip())
    assert folder.name == "prebuilt"
    code = "from ptxgen.emulator.native import library; print(library._place(), library.library())"
    assert re.search(r"prebuilt/ptxgen-lanes-\w+.so <ptxgen", run([str(python), "-c", code], tmp_path))
    assert os.access(folder / "ptxgen-ptxas", os.X_OK)
    cuda = "import ctypes; cuda = ctypes.CDLL('libcuda.so'); n = ctypes.c_int(); "
    call = "assert cuda.cuInit(0) == 0; cuda.cuDeviceGetCount(ctypes.byref(n)); print(n.value, 'device')"
    assert "1 device" in run([str(scripts / "ptxgen"), "exec", "-q", str(python), "-c", cuda + call], tmp_path)


def test_the_commands_work(scripts: Path, tmp_path: Path) -> None:
    command = str(scripts / "ptxgen")
    assert "explain" in run([command, "--help"], tmp_path)
    run([command, "build", "blackwell/swizzled", "-o", "k.ptx"], tmp_path)
    assert ".target sm_100a" in (tmp_path / "k.ptx").read_text()
    assert "9.7.16" in run([command, "explain", "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%r1];"], tmp_path)


def test_the_plugin_is_found_by_pytest(scripts: Path, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(emulator):\n    assert emulator.target\n")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nfilterwarnings = error\naddopts = --strict-markers --strict-config\n"
    )
    pytest_command = [str(scripts / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    assert "3 passed" in run(pytest_command, tmp_path)
    options = ["--emulator-schedules", "random", "--emulator-seeds", "2"]
    assert "2 passed" in run([*pytest_command, *options], tmp_path)


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, with what `pip install ptxgen` installs without extras: links to those packages of this environment."""
    folder = tmp_path_factory.mktemp("bare")
    python = environment(folder, wheel)
    site = Path(purelib(folder))
    (made,) = importlib.metadata.distributions(name="ptxgen", path=[str(site)])
    names, left = set[str](), [made]
    while left:
        for text in left.pop().requires or []:
            wanted = Requirement(text)
            if wanted.name not in names and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
                names.add(wanted.name)
                left.append(importlib.metadata.distribution(wanted.name))
    for name in names:
        files = importlib.metadata.distribution(name).files or []
        for first in {file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}:
            (site / first).symlink_to(Path(str(importlib.metadata.distribution(name).locate_file(first))))
    assert {"numpy", "jinja2"} <= names
    assert not any(name.startswith(("nvidia", "cuda", "torch", "pygls")) for name in names)
    return python.parent


def test_the_emulator_needs_no_tool_of_nvidia(bare: Path, tmp_path: Path) -> None:
    """Without extras: kernels run, and commands that need more say which extra has it."""
    alone = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    (tmp_path / "k.ptx").write_text(LAUNCH.split("'''")[1])

    def ptxgen(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(bare / "ptxgen"), *arguments]
        return subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, text=True, check=False)

    assert run([str(bare / "python"), "-c", LAUNCH], tmp_path)
    for arguments in (["check", "k.ptx"], ["explain", "ld"], ["build", "blackwell/swizzled"], ["coverage"], ["--help"]):
        assert (done := ptxgen(*arguments)).returncode == 0, done.stderr
    shape = ["--m", "128", "--n", "128", "--k", "64"]
    launched = ptxgen("run", "blackwell/swizzled", *shape)
    assert launched.returncode == 0, launched.stderr
    assert "not installed; registers and spills are unknown" in launched.stdout
    assert "pip install 'ptxgen[tools]'" in " ".join(launched.stdout.split())
    for command, extra in (
        (["assemble", "k.ptx"], "tools"),
        (["sass", "k.ptx"], "tools"),
        (["sweep", "blackwell/clc", "stages=4", *shape], "tools"),
        (["run", "blackwell/swizzled", *shape, "--device", "gpu"], "gpu"),
        (["run", "blackwell/swizzled", *shape, "--trace", "t"], "trace"),
        (["language-server"], "lsp"),
    ):
        done = ptxgen(*command)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), (command, done.stderr)
        assert f"pip install 'ptxgen[{extra}]'" in done.stderr


def test_a_launch_works(scripts: Path, tmp_path: Path) -> None:
    found = Path(run([str(scripts / "python"), "-c", LAUNCH], tmp_path).strip())
    assert found.is_relative_to(scripts.parent)


def shell_of(scripts: Path) -> Callable[[str, Path], str]:
    """Runs a command of a page with the wheel, and gives what it prints."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "COLUMNS")}
    environment["PATH"] = f"{scripts}{os.pathsep}{environment['PATH']}"

    def shell(command: str, folder: Path) -> str:
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        return done.stdout

    return shell


def test_the_guide_happens_as_it_is_written(scripts: Path, tmp_path: Path) -> None:
    """Your own kernel in an hour: every file written, every command run, with the wheel and in an empty folder."""
    assert follow((ROOT / "docs" / "your-own-kernel.md").read_text(), tmp_path, shell_of(scripts)) > 10


def test_the_tutorial_happens_as_it_is_written(scripts: Path, tmp_path: Path) -> None:
    """A kernel from an empty folder: the same, its last section only where there is PyTorch."""
    page = (ROOT / "docs" / "tutorial.md").read_text()
    if importlib.util.find_spec("torch") is None:
        page = page[: page.index("## 5. Call it from PyTorch")]
    assert follow(page, tmp_path, shell_of(scripts)) > 10


def test_the_blackwell_tutorial_happens_as_it_is_written(scripts: Path, tmp_path: Path) -> None:
    """An attention head: the pieces on the page are the example that ships."""
    page = (ROOT / "docs" / "tutorial-blackwell.md").read_text(encoding="utf-8")
    assert follow(page, tmp_path, shell_of(scripts)) == 9
    example = (ROOT / "docs" / "examples" / "attention.py").read_text(encoding="utf-8")
    assert (tmp_path / "attention.py").read_text(encoding="utf-8") == example


def test_what_a_page_shows_is_compared() -> None:
    assert agrees(("a 1.5 ms", "...", "c"), ["a 20 ms", "b", "b", "c"])
    assert agrees((), [])
    for shown in (("a",), ("a", "...", "d"), ("...", "b"), ("a", "c")):
        assert not agrees(shown, ["a", "b", "c"])
