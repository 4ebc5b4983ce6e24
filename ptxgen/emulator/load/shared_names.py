"""Names of a CTA's shared memory: declared variables, and regions of the dynamic shared memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from ptxgen.device import SharedRegion
from ptxgen.emulator.load.variables import Variables

#: Bytes of an mbarrier: a ring of parts of this size is one of mbarriers.
_MBARRIER = 8


@dataclass(frozen=True, slots=True)
class SharedPart:
    """A named part of shared memory, in bytes from the start of the CTA's; `element` are the bytes of each of its equal
    parts: elements of an array, or stages of a `ring`.
    """

    start: int
    size: int
    name: str
    element: int
    ring: bool = False

    def name_of(self, offset: int) -> tuple[str, int | None]:
        """(`full[2]`, 2), (`smem_a stage 1`, 1), (`data+0x40`, None)."""
        number, rest = divmod(offset - self.start, self.element)
        if self.ring:
            barriers = self.element == _MBARRIER
            return f"{self.name}[{number}]" if barriers else f"{self.name} stage {number}", number
        if self.size > self.element > 1 and not rest:
            return f"{self.name}[{number}]", None
        past = offset - self.start
        return f"{self.name}+{past:#x}" if past else self.name, None


class SharedNames:
    """The names of a launch. A region hides the `.extern` variable that names all dynamic shared memory."""

    def __init__(self, variables: Variables, regions: Iterable[SharedRegion], end: int) -> None:
        parts = [SharedPart(place.address, place.size, name, element) for name, place, element in variables.shared]
        base = variables.shared_end
        named = [
            SharedPart(base + each.offset, each.bytes, each.name, each.bytes // each.stages, ring=each.stages > 1)
            for each in regions
        ]
        self._regions = sorted(named, key=lambda each: each.start)
        self._variables = sorted((each for each in parts if each.size), key=lambda each: each.start)
        self._dynamic_bytes = end - base
        #: An array without a size: all of the dynamic shared memory.
        self._dynamic = [SharedPart(base, end - base, each.name, end - base) for each in parts if not each.size][:1]

    @property
    def parts(self) -> list[SharedPart]:
        """All named parts, by address."""
        return sorted([*self._regions, *self._variables, *self._dynamic], key=lambda each: each.start)

    @property
    def bounding(self) -> list[SharedPart]:
        """The named parts that bound what begins in them: not the last variable before dynamic shared memory.

        Without regions nothing says where what begins there ends.
        """
        open_ended = self._variables[-1:] if self._dynamic_bytes and not self._regions else []
        return [each for each in self.parts if each not in open_ended]

    def past(self, offset: int) -> str:
        """How far an offset lies past the last named part, as a sentence; empty where it does not."""
        last = max(self.parts, key=lambda each: each.start + each.size, default=None)
        if last is None or offset < last.start + last.size:
            return ""
        beyond = offset - last.start - last.size
        return f"{offset:#x} is {f'{beyond} bytes' if beyond else 'right'} past the end of {last.name}, the last there"

    def name(self, offset: int) -> tuple[str, int | None]:
        """The name of an offset, and its stage in a ring; an empty name where it has none."""
        for parts in (self._regions, self._variables, self._dynamic):
            index = bisect_right(parts, offset, key=lambda each: each.start) - 1
            if index >= 0 and offset < parts[index].start + parts[index].size:
                return parts[index].name_of(offset)
        return "", None
