"""GPU targets and PTX versions: which of them have a feature.

PTX ISA 11.1.2 (.target): a plain target runs on all later ones, an `f` target on its family, an `a` target on
itself alone. Family membership is the table of that section.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache


class TargetError(ValueError):
    """A target or PTX version that cannot be read."""


@dataclass(frozen=True, slots=True, order=True)
class Target:
    """An architecture: `sm_100a` is Target(100, "a")."""

    number: int
    suffix: str = ""

    def __str__(self) -> str:
        return f"sm_{self.number}{self.suffix}"

    @property
    def major(self) -> int:
        return self.number // 10


@lru_cache(maxsize=256)
def parse_target(text: str) -> Target:
    """Target of a name such as `sm_90a`."""
    match = re.fullmatch(r"sm_(\d{2,3})([af]?)", text)
    if match is None:
        raise TargetError(f"{text!r} is not a target; write it like sm_90a, sm_100a or sm_120f")
    return Target(int(match[1]), match[2])


@lru_cache(maxsize=256)
def parse_version(text: str) -> tuple[int, int]:
    """(major, minor) of a PTX ISA version such as `8.6`."""
    match = re.fullmatch(r"(\d+)\.(\d+)", text)
    if match is None:
        raise TargetError(f"{text!r} is not a PTX ISA version; write it like 8.6")
    return int(match[1]), int(match[2])


@lru_cache(maxsize=4096)
def _has(pattern: str, target: Target) -> bool:
    match = re.fullmatch(r"(sm_\d+)([af]?)(\+?)", pattern)
    if match is None:
        raise TargetError(f"{pattern!r} is not a target pattern")
    wanted = parse_target(match[1] + match[2])
    if match[2] == "" and match[3]:
        return target.number >= wanted.number
    if match[2] == "f":  # family: the f and a targets of the same major version, from this number on
        return target.suffix != "" and target.major == wanted.major and target.number >= wanted.number
    return target == wanted


@dataclass(frozen=True, slots=True)
class Availability:
    """Since which PTX version, and on which targets, a form or a modifier exists.

    `targets` is a list of patterns: `sm_80+` (this and all later), `sm_100f` (the family's f and a targets),
    `sm_90a` (only this one).
    """

    ptx: str
    targets: str

    def has_target(self, target: Target) -> bool:
        return any(_has(pattern, target) for pattern in self.targets.split())

    def has_version(self, version: tuple[int, int]) -> bool:
        return version >= parse_version(self.ptx)


ALL = "sm_20+"
