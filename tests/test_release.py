"""What a release promises: the public names, the changelog, caches and locales of other people's machines."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ptxgen.driver import build
from ptxgen.sass import cache
from tests.support.paths import ROOT
from tests.support.public_api import RECORD, public_names

LEGAL = ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n    bar.synk 0;\n    ret;\n}\n"


def test_no_public_name_or_parameter_is_gone() -> None:
    """CONTRIBUTING.md, "What is public", says what a removal needs; then `python -m tests.support.public_api`."""
    recorded, now = json.loads(RECORD.read_text(encoding="utf-8")), public_names()
    assert sorted(recorded.keys() - now.keys()) == []
    changed = {name: (each, now[name]) for name, each in recorded.items() if not still_takes(each, now[name])}
    assert changed == {}


def still_takes(before: str, now: str) -> bool:
    """Whether calls of a signature work with another: parameters keep their order, new ones are optional."""
    if before == now or not (before.startswith("(") and now.startswith("(")):
        return before == now
    old, new = (re.split(r", (?![^\[{(]*[\]})])", text[1:-1]) for text in (before, now))
    left = iter(new)
    required = [each for each in new if "=" not in each and not each.startswith("*") and each not in old]
    return not required and all(each in left for each in old if each)


@pytest.mark.parametrize(
    ("now", "right"),
    [
        ("(a, b=1, *, c=(1, 2))", True),
        ("(a, b=1, d=3, *, c=(1, 2), e=None)", True),
        ("(a, b=1, *, c=(1, 2), e)", False),
        ("(a, *, c=(1, 2))", False),
        ("(b=1, a, *, c=(1, 2))", False),
        ("(a, b=2, *, c=(1, 2))", False),
        ("function", False),
    ],
)
def test_what_counts_as_gone(now: str, right: bool) -> None:
    assert still_takes("(a, b=1, *, c=(1, 2))", now) == right


def test_the_changelog_has_this_version_first() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[0].startswith(f"{version} (")
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \((\d{4}-\d\d-\d\d|unreleased)\)", each) for each in headings)


def test_contributing_names_every_folder() -> None:
    named = set(re.findall(r"`([\w/]+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    packages = {f"ptxgen/{each.parent.name}" for each in (ROOT / "ptxgen").glob("*/__init__.py")}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folders = {each.split("/")[0] for each in tracked.splitlines() if "/" in each}
    assert (packages | {each for each in folders if each[0] != "."}) - named - {"ptxgen"} == set()
    assert {each for each in named if each.startswith("ptxgen/") and not (ROOT / each).exists()} == set()


def test_a_locale_without_utf_8_and_no_home(tmp_path: Path) -> None:
    folder = tmp_path / "zwei wörter"
    folder.mkdir()
    (folder / "ü x.ptx").write_text(LEGAL)
    environment = {
        name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME", "LANG", "LC_CTYPE")
    }
    environment |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "ptxgen", "check", ".", "--format", "github", "--format", "sarif=ö.sarif"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
    assert done.stdout.decode("utf-8").startswith("::error file=ü x.ptx,line=6,col=8,")
    log = json.loads((folder / "ö.sarif").read_text(encoding="utf-8"))
    location = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "%C3%BC%20x.ptx"


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("PTXGEN_CACHE", str(blocked / "cache"))
    monkeypatch.delenv("PTXGEN_CACHE_DIR", raising=False)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    folder = build.cache_folder()
    assert folder == tmp_path / f"ptxgen-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert build.cache_folder() == folder
    folder.chmod(0o777)  # anybody could put a library there
    with pytest.raises(build.BuildError, match="must be a folder of this user alone"):
        build.cache_folder()
    path = cache.place("x", b"1")
    cache.keep(path, ["value"])
    assert cache.kept(path) is None


def test_without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("PTXGEN_CACHE", "PTXGEN_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pathlib.Path.home", no_home)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert build.cache_folder().parent == tmp_path
    assert cache.place("x", b"1") is None


def test_processes_share_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every reader sees a whole value, whoever writes meanwhile."""
    monkeypatch.setenv("PTXGEN_CACHE", str(tmp_path))
    path = cache.place("shared", b"1")
    assert path is not None
    code = (
        "import sys; from pathlib import Path; from ptxgen.sass.cache import keep\n"
        "for n in range(60): keep(Path(sys.argv[1]), [n % 10] * 20000)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path)], env=environment) for _ in range(2)]
    seen = 0
    while any(each.poll() is None for each in writers) or not seen:
        value = cache.kept(path)
        if value is not None:
            assert isinstance(value, list)
            assert (len(value), len(set(value))) == (20000, 1)
            seen += 1
    assert all(each.returncode == 0 for each in writers)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
