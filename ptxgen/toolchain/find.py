"""Where ptxas, nvdisasm and nvcc are: an explicit path, an environment variable, NVIDIA's wheels, then PATH."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path


class ToolNotFoundError(RuntimeError):
    """A command-line tool is in none of the places that are searched, or not where the caller said."""


class ToolNotInstalledError(ToolNotFoundError):
    """The tool is in none of the places that are searched, and nobody has said where it is."""


@dataclass(frozen=True)
class _Tool:
    name: str
    variable: str
    distributions: tuple[str, ...]  # wheels that carry it, the preferred one first


_TOOLS = {
    tool.name: tool
    for tool in (
        _Tool("ptxas", "PTXGEN_PTXAS", ("nvidia-cuda-nvcc", "nvidia-cuda-nvcc-cu13", "nvidia-cuda-nvcc-cu12")),
        _Tool("nvcc", "PTXGEN_NVCC", ("nvidia-cuda-nvcc", "nvidia-cuda-nvcc-cu13")),
        _Tool("nvdisasm", "PTXGEN_NVDISASM", ("nvidia-cuda-nvdisasm", "nvidia-cuda-nvdisasm-cu13")),
    )
}


def find_tool(name: str, explicit: str | os.PathLike[str] | None = None) -> Path:
    """The absolute path of the tool called `name` ("ptxas", "nvdisasm" or "nvcc").

    Searched in order: `explicit` (a path, or a command name on PATH), the environment variable
    (PTXGEN_PTXAS, PTXGEN_NVDISASM, PTXGEN_NVCC), the installed NVIDIA wheels, PATH. A place that was named but holds no
    such program is an error: nothing else is tried in its stead. Raises ToolNotFoundError.
    """
    tool = _TOOLS.get(name)
    if tool is None:
        raise ValueError(f"no tool called {name!r} is known; known are {', '.join(sorted(_TOOLS))}")
    named = explicit if explicit is not None else os.environ.get(tool.variable) or None
    if named is not None:
        found = shutil.which(os.fspath(named))
        if found is None:
            origin = "the given path" if explicit is not None else f"the environment variable {tool.variable}"
            raise ToolNotFoundError(
                f"{origin} says that {name} is {os.fspath(named)!r}, but no executable file is there; "
                f"correct it, or leave it out and install {name} with: pip install 'ptxgen[tools]'"
            )
        return Path(found).absolute()
    in_wheel = _find_in_wheels(name)
    if in_wheel is not None:
        return in_wheel
    on_path = shutil.which(name)
    if on_path is not None:
        return Path(on_path).absolute()
    raise ToolNotInstalledError(
        f"{name} was found neither in an NVIDIA wheel nor on PATH; "
        f"install it with: pip install 'ptxgen[tools]' (or set {tool.variable} to its path)"
    )


def find_ptxas(explicit: str | os.PathLike[str] | None = None) -> Path:
    """The absolute path of ptxas; see `find_tool` for the order of the search."""
    return find_tool("ptxas", explicit)


def find_nvdisasm(explicit: str | os.PathLike[str] | None = None) -> Path:
    """The absolute path of nvdisasm; see `find_tool` for the order of the search."""
    return find_tool("nvdisasm", explicit)


@functools.cache
def _find_in_wheels(name: str) -> Path | None:
    candidates = [*_listed_by_wheels(name), *_beside_other_wheels(name)]
    return next((path for path in candidates if path.is_file() and os.access(path, os.X_OK)), None)


def _listed_by_wheels(name: str) -> list[Path]:
    found: list[Path] = []
    for distribution in _TOOLS[name].distributions:
        try:
            files = importlib.metadata.files(distribution) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found += [Path(str(file.locate())) for file in files if file.name in (name, f"{name}.exe")]
    return [path.resolve() for path in found]


def _beside_other_wheels(name: str) -> list[Path]:
    """nvidia/cu<N>/bin of every installed copy of the `nvidia` name space, the newest CUDA first."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(root) for root in (spec.submodule_search_locations or [])] if spec is not None else []
    folders = [folder for root in roots for folder in root.glob("cu*") if re.fullmatch(r"cu\d+", folder.name)]
    folders.sort(key=lambda folder: int(folder.name[2:]), reverse=True)
    return [folder / "bin" / file for folder in folders for file in (name, f"{name}.exe")]
