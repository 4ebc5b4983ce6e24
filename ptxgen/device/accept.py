"""Reviewed findings: a TOML file of entries that name what is accepted, and why.

[[accept]]
code = "missing-tcgen05-fence"
instruction = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%value}, [%taddr];"
kernel = "gemm"                  # optional: the entry's name
reason = "the bar.sync before it orders the MMA"

Or a comment in the PTX or in its source, at the line or in a line of its own before it (`ptxgen.device.inline`):

    // ptxgen: accept shared-race: all warps store the same value
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ptxgen.files import read_file

_KEYS = ("code", "instruction", "reason", "kernel")


class AcceptError(ValueError):
    """A file of accepted findings cannot be used; the message says which entry and why."""


@dataclass(frozen=True)
class Accept:
    """A finding that somebody has reviewed: of a code, at an instruction (its text; white space does not matter), in a
    kernel (empty: in any).

    One of a comment has `place` (`k.cu:12`, `line 12` of the PTX) and the `lines` of the PTX that it is for instead of
    an instruction; one in a source has the `path` of that file.
    """

    code: str
    instruction: str
    reason: str
    kernel: str = ""
    place: str = ""
    lines: tuple[int, ...] = ()
    path: str = ""

    def __post_init__(self) -> None:
        if not self.code or not self.reason.strip():
            raise AcceptError("an accepted finding needs a code and a reason")

    def matches(self, code: str, instruction: str, kernel: str, lines: Iterable[int | None] = ()) -> bool:
        """Whether it is about a finding of this code at this instruction of a kernel, or at one of these lines."""
        if self.code != code or self.kernel not in ("", kernel):
            return False
        if self.place:
            return any(line in self.lines for line in lines)
        return _normalized(self.instruction) == _normalized(instruction)

    def __str__(self) -> str:
        if self.place:
            return f"[{self.code}] by the comment in {self.place}"
        where = f" in {self.kernel}" if self.kernel else ""
        return f"[{self.code}] {self.instruction}{where}"


def _normalized(text: str) -> str:
    return "".join(text.rstrip("; \t\n").split())


def read_accepts(path: str | Path) -> tuple[Accept, ...]:
    """The entries of a file. Raises AcceptError where it cannot be read, or an entry says too little or too much."""
    if not str(path):
        raise AcceptError("the name of the file of accepted findings is empty")
    try:
        table = tomllib.loads(read_file(path).decode())
    except OSError as error:
        raise AcceptError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise AcceptError(f"{path} is not text in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise AcceptError(f"{path} is not TOML: {error}") from None
    entries = table.pop("accept", [])
    if table or not isinstance(entries, list):
        other = f"{next(iter(table))!r}" if table else "accept"
        raise AcceptError(f"{path} must hold [[accept]] entries alone, not {other}")
    return tuple(_entry(path, number, each) for number, each in enumerate(entries, 1))


def _entry(path: str | Path, number: int, entry: object) -> Accept:
    where = f"{path}, entry {number}"
    if not isinstance(entry, dict):
        raise AcceptError(f"{where} must be a table with code, instruction and reason")
    for key, value in entry.items():
        if key not in _KEYS:
            raise AcceptError(f"{where} has the unknown key {key!r}; it takes {', '.join(_KEYS)}")
        if not isinstance(value, str):
            raise AcceptError(f"{where}: {key} must be a string, not {value!r}")
    for key in ("code", "instruction", "reason"):
        if key not in entry or (key != "instruction" and not entry[key].strip()):
            raise AcceptError(f"{where} needs {'an' if key == 'instruction' else 'a'} {key}")
    return Accept(entry["code"], entry["instruction"], entry["reason"], entry.get("kernel", ""))
