"""The stand-in driver is compiled at first use."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import pytest

from ptxgen.driver import BuildError, build
from tests.driver.programs import require_compiler


def test_a_clear_sentence_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXGEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(BuildError, match=r"or from the sdist\).* there is no C compiler; install one"):
        build.library_folder()
    monkeypatch.setenv("CC", "/bin/false")
    with pytest.raises(BuildError, match="does not compile with /bin/false"):
        build.library_folder()
    assert not [each for each in (tmp_path / "driver").iterdir() if each.is_dir()]


def test_warnings_are_errors(tmp_path: Path) -> None:
    flags = [each for each in build._FLAGS if each != "-O2"]
    command = [require_compiler(), *flags, "-O1", "-Werror", "-c", *map(str, sorted(build.NATIVE.glob("*.c")))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_only_public_names_are_exported() -> None:
    require_compiler()
    library = build.library_folder() / build.LIBRARY
    from elftools.elf.elffile import ELFFile

    with library.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        assert table is not None
        names = {
            each.name
            for each in table.iter_symbols()  # type: ignore[attr-defined]
            if each["st_shndx"] != "SHN_UNDEF" and each["st_info"]["bind"] != "STB_LOCAL"
        }
    ours = {name for name in names if not name.startswith(("cu", "__cuda", "nvml"))}
    hooks = {"dlopen", "dlsym", "execve", "execv", "execvp", "execvpe", "posix_spawn", "posix_spawnp"}
    nvrtc = {"nvrtcCompileProgram", "nvrtcGetCUBIN", "nvrtcGetCUBINSize"}
    assert ours == hooks | nvrtc | {"ptxgen_replace_function", "ptxgen_ptx_folder", "ptxgen_say"}


ALIASES = ("libcuda.so", "libcudart.so.12", "libcudart.so.13", "libnvidia-ml.so.1")


def test_a_second_user_finds_the_library_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_compiler()
    monkeypatch.setenv("PTXGEN_CACHE_DIR", str(tmp_path))
    folder = build.library_folder()
    monkeypatch.setenv("CC", "/bin/false")
    assert build.library_folder() == folder
    assert sorted(os.listdir(tmp_path / "driver")) == [folder.name]
    assert {build.LIBRARY, build.WRAPPER, *ALIASES} == set(os.listdir(folder))


def test_without_the_emulator_there_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    require_compiler()
    monkeypatch.delenv("PTXGEN_EXEC_SOCKET", raising=False)
    code = f"import ctypes; print(ctypes.CDLL({str(build.library_folder() / build.LIBRARY)!r}).cuInit(0))"
    done = subprocess.run(["python3", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "100\n"
    assert ctypes.sizeof(ctypes.c_void_p) == 8


@pytest.mark.parametrize("name", ["k.ptx", "tempfile-1234"])
def test_the_wrapper_of_ptxas_adds_the_text(tmp_path: Path, name: str) -> None:
    """XLA's files of PTX have no suffix, and the value of an option is no file of PTX."""
    require_compiler()
    text = ".version 8.0\n.target sm_90a\n.address_size 64\n"
    (tmp_path / name).write_text(text)
    ptxas = tmp_path / "ptxas"
    ptxas.write_text("#!/bin/sh\nprintf '\\177ELF' > out.cubin; head -c 60 /dev/zero >> out.cubin\n")
    ptxas.chmod(0o755)
    words = [str(ptxas), name, "-o", "out.cubin", "-arch", "sm_90a", "-v"]
    wrapper = build.library_folder() / build.WRAPPER
    subprocess.run(words, executable=wrapper, cwd=tmp_path, check=True)
    assert f"//ptxgen-ptx\n{text}\0".encode() in (tmp_path / "out.cubin").read_bytes()
