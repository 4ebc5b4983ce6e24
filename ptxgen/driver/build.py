"""The stand-in driver as a library: that of the wheel, or compiled from `native/` at first use."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

#: Sources, and where the wheel has the compiled files.
NATIVE = Path(__file__).with_name("native")
PREBUILT = Path(__file__).with_name("prebuilt")
#: The library has the name of the driver, so that what links to that finds it loaded.
LIBRARY, WRAPPER = "libcuda.so.1", "ptxgen-ptxas"
_FLAGS = ("-O2", "-g1", "-fPIC", "-std=gnu11", "-fvisibility=hidden", "-Wall", "-Wextra")
_LINK = ("-shared", f"-Wl,-soname,{LIBRARY}", "-Wl,-Bsymbolic-functions", "-Wl,-z,nodelete", "-lpthread", "-ldl")
#: Other names under which programs look for the driver, the runtime and NVML, and the version that symbols of the
#: runtime have: libraries without symbols of their own, which need the stand-in.
_ALIASES = {
    "libcuda.so": "",
    "libcudart.so.12": "libcudart.so.12",
    "libcudart.so.13": "libcudart.so.13",
    "libnvidia-ml.so.1": "",
}


class BuildError(RuntimeError):
    """The stand-in driver cannot be compiled here; the message says what to do."""


def cache_folder() -> Path:
    """Where ptxgen keeps what can be made again: the user's cache, else a temporary folder."""
    from ptxgen.toolchain import cache  # not above: the wheel's build loads this module where ptxgen is not installed

    folder = cache.cache_folder()
    with contextlib.suppress(OSError):  # it cannot be made
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    return _own_temporary_folder()


def _own_temporary_folder() -> Path:
    """A folder for this user alone below that of temporary files, the same for all processes. Raises BuildError."""
    folder = Path(tempfile.gettempdir(), f"ptxgen-{os.getuid()}")
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise BuildError(f"{folder} must be a folder of this user alone; set PTXGEN_CACHE_DIR to another one")
    return folder


def library_folder() -> Path:
    """The folder with the library, its other names, and the wrapper of ptxas. Raises BuildError."""
    if (PREBUILT / LIBRARY).is_file():
        return PREBUILT
    folder = cache_folder() / "driver" / _digest()
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            made = Path(temporary, "made")
            made.mkdir()
            compile_into(made)
            try:
                made.rename(folder)
            except OSError:  # another process was first
                if not folder.is_dir():
                    raise
    return folder


def compile_into(folder: Path) -> None:
    """Compile the library and the wrapper. Raises BuildError."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        raise BuildError(
            "this installation (a checkout, or from the sdist) has no compiled stand-in driver, and ptxgen exec cannot "
            "compile it: there is no C compiler; install one (apt install gcc), set CC, or install ptxgen's wheel for "
            "Linux, which has it"
        )
    sources = sorted(map(str, NATIVE.glob("*.c")))
    _compile([compiler, *_FLAGS, "-o", str(folder / LIBRARY), *sources, *_LINK])
    _compile([compiler, "-O2", "-Wall", "-Wextra", "-o", str(folder / WRAPPER), str(NATIVE / "ptxas/ptxas.c")])
    for name, version in _ALIASES.items():
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".map") as script:
            script.write(f"{version} {{ }};\n" if version else "{ local: *; };\n")
            script.flush()
            link = ["-shared", f"-Wl,-soname,{name}", f"-Wl,--version-script={script.name}", "-Wl,-rpath,$ORIGIN"]
            library = ["-Wl,--no-as-needed", f"-L{folder}", f"-l:{LIBRARY}"]
            _compile([compiler, *link, "-o", str(folder / name), "-x", "c", os.devnull, *library])


def _compile(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildError(f"cannot run the C compiler {command[0]}: {error.strerror}") from None
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
        raise BuildError(f"the stand-in driver of ptxgen exec does not compile with {command[0]}: {first}")


def _digest() -> str:
    """A name for what is compiled: it changes with the sources."""
    digest = hashlib.sha256(" ".join(_FLAGS + _LINK).encode())
    for file in sorted(NATIVE.rglob("*.[ch]")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
