"""Build the sdist and the wheel, and use the wheel in fresh environments of every Python that is there.

    make wheels PYTHONS='python3.12 ~/.pyenv/versions/3.13.0/bin/python'

Each environment gets the wheel with what it requires from the package index; then a kernel runs, a file is checked, and
a program runs below `ptxgen exec`. One more environment builds its wheel from the sdist.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: What `make wheels` looks for on PATH.
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
_USE = """
import sys
import numpy as np
import ptxgen
text = '''.version 8.7
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
assert not ptxgen.check(text)
emulator = ptxgen.Emulator("sm_100a", schedule="random")
data = emulator.array(np.arange(32, dtype=np.uint32))
report = emulator.launch(ptxgen.Kernel.from_ptx(text), 1, 32, [data])
assert report.ok, report.summary()
assert (data.numpy() == 2 * np.arange(32)).all()
print("Python", sys.version.split()[0], "numpy", np.__version__, "ptxgen", ptxgen.__version__)
"""


def run(command: list[str | Path], folder: Path) -> str:
    """What a command prints; raises CalledProcessError where it fails."""
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def install(python: str, folder: Path, *words: str | Path) -> Path:
    """The programs of a fresh environment with a package installed."""
    run([python, "-m", "venv", folder], folder.parent)
    scripts = folder / "bin"
    run([scripts / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words], folder)
    return scripts


def main(pythons: list[str]) -> None:
    """Build and use; prints one line for each Python."""
    found = [path for each in pythons or PYTHONS if (path := shutil.which(Path(each).expanduser()))]
    with tempfile.TemporaryDirectory(prefix="ptxgen wheels ü ") as name:
        folder = Path(name)
        run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", folder], ROOT)
        (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
        for each in (wheel, source):
            print(f"{each.name}: {each.stat().st_size / 1e6:.1f} MB")
        for number, python in enumerate(found):
            scripts = install(python, folder / f"environment {number}", wheel)
            said = run([scripts / "python", "-W", "error", "-c", _USE], folder)
            program = [scripts / "ptxgen", "exec", "--quiet", "--", scripts / "python", "-c", "pass"]
            warned = subprocess.run(program, cwd=folder, check=True, stderr=subprocess.PIPE, text=True).stderr
            if warned:  # such as by the loader, of a library that it does not find
                raise SystemExit(f"{said}: ptxgen exec: {warned}")
            print(f"{said}: right", flush=True)
        scripts = install(found[0], folder / "from the sdist", "--no-deps", source)
        print(f"from the sdist: {run([scripts / 'python', '-m', 'pip', 'show', 'ptxgen'], folder).splitlines()[1]}")


if __name__ == "__main__":
    main(sys.argv[1:])
