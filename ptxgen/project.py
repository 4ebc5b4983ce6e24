"""The table `[tool.ptxgen]` of a project's pyproject.toml: defaults of the command's options and of the pytest plugin.

    [tool.ptxgen]
    target = "sm_100a"               # --target; in pytest that of the emulator
    schedules = 5                    # --schedules of run; eager, late and three seeds of random in pytest
    accept = "accepted.toml"         # --accept, relative to this file
    fail-on = "advice"               # --fail-on: error, advice or never

    [tool.ptxgen.sass]
    fail-on = "registers+2,spills"   # --fail-on of sass diff

`schedule = "late"` is for one schedule instead of several. What a command line says goes before.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

Schedule = Literal["eager", "late", "random"]
SCHEDULES: tuple[Schedule, ...] = ("eager", "late", "random")
#: Schedules that a run tries at most.
MOST_SCHEDULES = 100_000
FAIL_ON = ("error", "advice", "never")
_FILE = "pyproject.toml"


class ProjectError(ValueError):
    """A table of a pyproject.toml cannot be used; the message names the file, the key and what it takes."""


@dataclass(frozen=True)
class Project:
    """The table of a project; None or empty: not given."""

    path: Path
    target: str | None = None
    schedule: Schedule | None = None
    schedules: int | None = None
    accept: Path | None = None
    fail_on: Literal["error", "advice", "never"] | None = None
    sass_fail_on: str | None = None

    @property
    def runs(self) -> list[tuple[Schedule, int]]:
        """The schedules with their seeds that the table asks for; empty if it asks for none."""
        if self.schedule is not None:
            return [(self.schedule, 0)]
        count = self.schedules or 0
        first: list[tuple[Schedule, int]] = [("eager", 0), ("late", 0)]
        return [*first[:count], *(("random", seed) for seed in range(count - 2))]


def find_project(start: Path | None = None) -> Project | None:
    """The nearest pyproject.toml with the table, from a folder (the working directory) upward. Raises ProjectError."""
    import tomllib

    here = (start or Path.cwd()).absolute()
    for folder in (here, *here.parents):
        path = folder / _FILE
        try:
            data = path.read_bytes() if path.is_file() else b""
        except OSError:
            continue
        if b"ptxgen" not in data.replace(b"\0", b""):  # most are of other tools, and need not be read
            continue
        try:
            table = tomllib.loads(data.decode())
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise ProjectError(f"{path}:{line} is not text in UTF-8: byte {data[error.start]:#04x}") from None
        except tomllib.TOMLDecodeError as error:
            raise ProjectError(f"{path} is not TOML: {error}") from None
        tools = table.get("tool", {})
        if isinstance(tools, dict) and "ptxgen" in tools:
            return _project(path, tools["ptxgen"])
    return None


def _project(path: Path, table: object) -> Project:
    where = f"{path}, [tool.ptxgen]"
    given = _table(where, table, ("target", "schedule", "schedules", "accept", "fail-on", "sass"))
    sass = _table(f"{path}, [tool.ptxgen.sass]", given.get("sass", {}), ("fail-on",))
    if "schedule" in given and "schedules" in given:
        raise ProjectError(f"{where}: schedule is for one schedule, schedules for several; leave out one of them")
    accept = _text(where, given, "accept")
    schedule = _chosen(where, given, "schedule", SCHEDULES)
    fail_on = _chosen(where, given, "fail-on", FAIL_ON)
    return Project(
        path,
        _target(where, given),
        cast("Schedule | None", schedule),
        _count(where, given),
        path.parent / accept if accept is not None else None,
        cast("Literal['error', 'advice', 'never'] | None", fail_on),
        _text(f"{path}, [tool.ptxgen.sass]", sass, "fail-on"),
    )


def _table(where: str, table: object, known: Collection[str]) -> Mapping[str, object]:
    if not isinstance(table, dict):
        raise ProjectError(f"{where} must be a table, not {table!r}")
    for key in table:
        if key not in known:
            raise ProjectError(f"{where} has the unknown key {key!r}{_nearest(key, known)}; it takes {_listed(known)}")
    return table


def _text(where: str, table: Mapping[str, object], key: str) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise ProjectError(f"{where}: {key} must be a string, not {value!r}")
    if value is not None and not value.strip():
        raise ProjectError(f"{where}: {key} is empty")
    return value


def _chosen(where: str, table: Mapping[str, object], key: str, allowed: Collection[str]) -> str | None:
    value = table.get(key)
    if value is None or (isinstance(value, str) and value in allowed):
        return value
    near = _nearest(value, allowed) if isinstance(value, str) else ""
    *others, last = allowed
    raise ProjectError(f"{where}: {key} must be {', '.join(others)} or {last}, not {value!r}{near}")


def _count(where: str, table: Mapping[str, object]) -> int | None:
    value = table.get("schedules")
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_SCHEDULES:
        raise ProjectError(f"{where}: schedules must be a number from 1 to {MOST_SCHEDULES}, not {value!r}")
    return value


def _target(where: str, table: Mapping[str, object]) -> str | None:
    value = _text(where, table, "target")
    if value is not None:
        from ptxgen.instr.model.targets import TARGETS

        if value not in TARGETS:
            near = _nearest(value, TARGETS)
            raise ProjectError(f"{where}: target must be an architecture such as sm_100a, not {value!r}{near}")
    return value


def _nearest(word: str, known: Collection[str]) -> str:
    found = difflib.get_close_matches(word.replace("_", "-") if word not in known else word, known, n=1, cutoff=0.5)
    found = found or difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean {found[0]}?" if found else ""


def _listed(words: Collection[str]) -> str:
    return ", ".join(words)
