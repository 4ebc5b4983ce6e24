"""What the rules of declarations depend on besides the declaration itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxgen.instr.model.symbols import Problem, TextureMode, unavailable
from ptxgen.instr.model.targets import Availability, Target


@dataclass(frozen=True, slots=True)
class Context:
    """The target and PTX version of a module, and where its samplers are."""

    target: Target | None
    version: tuple[int, int]
    texture_mode: TextureMode = "unified"

    def lacks(self, what: str, availability: Availability) -> Iterator[Problem]:
        """Why this target or PTX version does not have it."""
        return unavailable(what, availability, self.target, self.version)

    def removed(self, what: str, since: tuple[int, int], instead: str = "") -> Iterator[Problem]:
        """That a version has given something up."""
        if self.version >= since:
            remedy = f"; {instead}" if instead else ""
            found = f"{self.version[0]}.{self.version[1]}"
            message = f"{what} does not exist since PTX ISA {since[0]}.{since[1]}, .version is {found}{remedy}"
            yield Problem("removed", message)


def power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0
