"""The CUDA sources of the corpus, each for its targets and options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.corpus import wrappers

ROOT = Path(__file__).parents[2]
SMALL = ROOT / "tests" / "data" / "cuda"
LARGE = Path(__file__).parent / "cuda"
TARGETS = ("sm_90a", "sm_100a")
#: Sources that are compiled with debug information too, and without optimization.
DEBUGGED = ("cooperation", "language", "textures")
#: The wrappers of these headers make too much PTX for a quick look.
MANY = ("ld", "multimem_ld_reduce", "multimem_red", "tcgen05_ld", "tcgen05_mma", "tcgen05_mma_ws")


@dataclass(frozen=True)
class Source:
    """What is compiled: a file, or the wrappers of headers, for a target and with options."""

    stem: str
    target: str
    options: tuple[str, ...] = ()
    file: Path | None = None
    headers: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        return ".".join([self.stem, self.target, *(option.strip("-") for option in self.options)])

    def text(self) -> str:
        """The CUDA source."""
        if self.file is not None:
            return self.file.read_text()
        return wrappers.source(self.headers, self.target)


def _files(folder: Path, names: tuple[str, ...] | None = None) -> Iterator[Path]:
    return (path for path in sorted(folder.glob("*.cu")) if names is None or path.stem in names)


def small_sources(include: Path) -> list[Source]:
    """The sources that compile in seconds; `include` is the folder of CUDA's headers."""
    found = [Source(path.stem, target, file=path) for path in _files(SMALL) for target in TARGETS]
    found += [Source(path.stem, TARGETS[0], ("-G",), path) for path in _files(SMALL, DEBUGGED)]
    found += [Source(path.stem, TARGETS[1], ("-lineinfo",), path) for path in _files(SMALL, DEBUGGED)]
    few = tuple(header for header in wrappers.headers(include) if header.stem not in MANY)
    return [*found, *(Source("wrappers", target, headers=few) for target in TARGETS)]


def sources(include: Path) -> list[Source]:
    """All sources."""
    found = small_sources(include)
    found += [Source(path.stem, target, file=path) for path in _files(LARGE) for target in TARGETS]
    found += [Source(path.stem, TARGETS[0], ("-lineinfo",), path) for path in _files(LARGE)]
    return found + [
        Source(f"wrappers_{header.stem}", target, headers=(header,))
        for header in wrappers.headers(include)
        if header.stem in MANY
        for target in TARGETS
        if target in wrappers.targets(header, TARGETS)
    ]
