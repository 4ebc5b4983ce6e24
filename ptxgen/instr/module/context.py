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


def non_ascii(string: str) -> Iterator[Problem]:
    """That a string, such as a file's path, is not ASCII (PTX ISA 4.1); comments may be anything (ptxas 13.5)."""
    if not string.isascii():
        wrong = next(each for each in string if not each.isascii())
        yield Problem("non-ascii", f"{wrong!r} in {string} is not ASCII; only comments may have such characters")


def power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0
