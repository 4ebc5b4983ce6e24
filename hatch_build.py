"""The wheel's build: on Linux it carries the stand-in driver of `ptxgen exec` and the emulator's machine code."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    """Compiles what is in C into the wheel, which names its platform; without a compiler the wheel is pure.

    `exec` needs a compiler then, and the emulator executes everything by NumPy.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        platform = sysconfig.get_platform()
        if version != "standard" or platform not in ("linux-x86_64", "linux-aarch64"):
            return
        build = _load(Path(self.root, "ptxgen/driver/build.py"))
        folder = Path(self.directory, "driver")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            build.compile_into(folder)
        except build.BuildError as error:
            self.app.display_warning(f"the wheel has no stand-in driver: {error}")
            return
        build_data["force_include"][str(folder)] = "ptxgen/driver/prebuilt"
        lanes = Path(self.directory, "native")
        shutil.rmtree(lanes, ignore_errors=True)
        lanes.mkdir()
        if _load(Path(self.root, "ptxgen/emulator/native/build.py")).compile_into(lanes):
            build_data["force_include"][str(lanes)] = "ptxgen/emulator/native/prebuilt"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform_tag([*folder.iterdir(), *lanes.iterdir()], platform)}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        for folder in ("driver", "native"):
            shutil.rmtree(Path(self.directory, folder), ignore_errors=True)


def _load(path: Path) -> ModuleType:
    """A module of the project without the packages that the project needs."""
    spec = importlib.util.spec_from_file_location(f"ptxgen_{path.parent.name}_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _platform_tag(files: list[Path], platform: str) -> str:
    """`manylinux_2_34_x86_64`: the newest glibc whose symbols are used (PEP 600)."""
    newest = max(
        (int(found[1]) for file in files for found in re.finditer(rb"\bGLIBC_2\.(\d+)", file.read_bytes())),
        default=17,
    )
    return f"manylinux_2_{newest}_{platform.removeprefix('linux-')}"
