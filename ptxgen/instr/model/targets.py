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
    """Target of a name such as `sm_90a`, or its synonym `compute_90a`."""
    match = re.fullmatch(r"(?:sm|compute)_(\d{2,3})([af]?)", str(text))
    if match is None:
        raise TargetError(f"{text!r} is not a target; write it like sm_90a, sm_100a or sm_120f")
    return Target(int(match[1]), match[2])


#: PTX versions, up to the newest that is modeled.
VERSIONS = tuple(
    (major, minor)
    for major, last in {1: 5, 2: 3, 3: 2, 4: 3, 5: 1, 6: 5, 7: 8, 8: 8, 9: 5}.items()
    for minor in range(last + 1)
)

#: The PTX version that brought each target (measured, ptxas 13.5). The `f` targets of the first Blackwell chips came
#: later than their plain ones; sm_101 is the name of sm_110 before PTX ISA 9.0.
_SINCE = {
    "sm_10": "1.0", "sm_11": "1.0", "sm_12": "1.2", "sm_13": "1.2", "sm_20": "2.0", "sm_21": "2.0", "sm_30": "3.0",
    "sm_32": "4.0", "sm_35": "3.1", "sm_37": "4.1", "sm_50": "4.0", "sm_52": "4.1", "sm_53": "4.2", "sm_60": "5.0",
    "sm_61": "5.0", "sm_62": "5.0", "sm_70": "5.1", "sm_72": "6.1", "sm_75": "6.3", "sm_80": "7.0", "sm_82": "6.2",
    "sm_86": "7.1", "sm_87": "7.4", "sm_88": "9.0", "sm_89": "7.8", "sm_90": "7.8", "sm_90a": "8.0", "sm_100": "8.6",
    "sm_100f": "8.8", "sm_101": "8.6", "sm_101f": "8.8", "sm_103": "8.8", "sm_107": "9.4", "sm_110": "9.0",
    "sm_120": "8.7", "sm_120f": "8.8", "sm_121": "8.8",
}  # fmt: skip


def version_problem(version: tuple[int, int]) -> str | None:
    """Why there is no such PTX version; a later one is not ours to refuse."""
    if version in VERSIONS or version > VERSIONS[-1]:
        return None
    series = max(version[0], 1)
    last = max(minor for major, minor in VERSIONS if major == series)
    return f".version {version[0]}.{version[1]} does not exist; the last {series}.x is {series}.{last}"


def target_problem(target: Target, version: tuple[int, int]) -> str | None:
    """Why a module of this PTX version cannot have this `.target`; a later one is not ours to refuse."""
    if (target.suffix == "a" and target.number < 90) or (target.suffix == "f" and target.number < 100):
        return f".target {target} does not exist; the a targets begin with sm_90a, the f targets with sm_100f"
    since = _SINCE.get(str(target)) or _SINCE.get(f"sm_{target.number}")
    if since is None and target.number < max(parse_target(name).number for name in TARGETS):
        near = min(TARGETS, key=lambda name: abs(parse_target(name).number - target.number))
        return f".target {target} does not exist; the nearest is {near}"
    if since is not None and version < parse_version(since):
        return f".target {target} requires PTX ISA {since} or later, .version is {version[0]}.{version[1]}"
    return None


@lru_cache(maxsize=256)
def parse_version(text: str) -> tuple[int, int]:
    """(major, minor) of a PTX ISA version such as `8.6`."""
    match = re.fullmatch(r"(\d+)\.(\d+)", text)
    if match is None:
        raise TargetError(f"{text!r} is not a PTX ISA version; write it like 8.6")
    return int(match[1]), int(match[2])


def _renamed(target: Target) -> Target:
    """sm_101 under its name since PTX ISA 9.0, sm_110."""
    return Target(110, target.suffix) if target.number == 101 else target


def runs_on(target: Target, device: Target) -> bool:
    """Whether a device of an architecture runs what was written for a target (PTX ISA 11.1.2)."""
    target, device = _renamed(target), _renamed(device)
    if target.suffix == "a":
        return target.number == device.number
    return target.number <= device.number and (target.suffix == "" or target.major == device.major)


@lru_cache(maxsize=4096)
def _has(pattern: str, target: Target) -> bool:
    match = re.fullmatch(r"(sm_\d+)([af]?)(\+?)", pattern)
    if match is None:
        raise TargetError(f"{pattern!r} is not a target pattern")
    wanted, target = _renamed(parse_target(match[1] + match[2])), _renamed(target)
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

    @property
    def where(self) -> str:
        """The targets in words."""
        words = []
        for pattern in self.targets.split():
            if pattern.endswith("+"):
                words.append(f"{pattern[:-1]} or later")
            elif pattern.endswith("f"):
                words.append(f"the family of {pattern}")
            else:
                words.append(pattern)
        return " or ".join(words)


ALL = "sm_10+"

#: Architectures of `.target` (PTX ISA 11.1.2) that current tools accept; ptxas has the last word.
TARGETS = (
    "sm_50", "sm_52", "sm_53", "sm_60", "sm_61", "sm_62", "sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87",
    "sm_88", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f", "sm_101", "sm_101a", "sm_101f", "sm_103",
    "sm_103a", "sm_103f", "sm_107", "sm_107a", "sm_107f", "sm_110", "sm_110a", "sm_110f", "sm_120", "sm_120a",
    "sm_120f", "sm_121", "sm_121a", "sm_121f",
)  # fmt: skip
