"""Local clones of repositories: their files at HEAD, with or without a work tree."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Clone:
    """A clone: a git directory, or a plain folder of files."""

    folder: Path
    is_git: bool

    def commit(self) -> str:
        """The commit at HEAD; for a plain folder, the line in its file COMMIT."""
        if self.is_git:
            return _git(self.folder, "rev-parse", "HEAD").decode().strip()
        note = self.folder / "COMMIT"
        return note.read_text().strip() if note.is_file() else "unknown"

    def paths(self, patterns: Sequence[str]) -> list[str]:
        """Paths that match one of the patterns, in which `*` matches slashes too."""
        if self.is_git:
            names = _git(self.folder, "ls-tree", "-r", "-z", "--name-only", "HEAD").decode(errors="replace").split("\0")
        else:
            names = [str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()]
        return sorted(name for name in names if name and any(fnmatch(name, pattern) for pattern in patterns))

    def files(self, patterns: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Paths and contents of the files that match."""
        names = self.paths(patterns)
        if not self.is_git:
            yield from ((name, (self.folder / name).read_bytes()) for name in names)
            return
        asked = "".join(f"HEAD:{name}\n" for name in names)
        answer = _git(self.folder, "cat-file", "--batch", text=asked.encode())
        at = 0
        for name in names:
            end = answer.index(b"\n", at)
            head = answer[at:end]
            at = end + 1
            if head.endswith(b" missing"):
                continue
            size = int(head.rsplit(b" ", 1)[1])
            yield name, answer[at : at + size]
            at += size + 1


def find(clones: Path, repository: str) -> Clone | None:
    """The clone of a repository: CLONES/owner/name, CLONES/owner+name or CLONES/name, itself or its folder `repo`."""
    owner, name = repository.split("/")
    for each in (clones / owner / name, clones / f"{owner}+{name}", clones / name):
        for folder in (each / ".git", each, each / "repo" / ".git", each / "repo"):
            if (folder / "HEAD").is_file() and (folder / "objects").is_dir():
                return Clone(folder, True)
        if each.is_dir():
            return Clone(each, False)
    return None


def _git(folder: Path, *words: str, text: bytes | None = None) -> bytes:
    command = ["git", f"--git-dir={folder}", *words]
    return subprocess.run(command, input=text, capture_output=True, check=True).stdout
