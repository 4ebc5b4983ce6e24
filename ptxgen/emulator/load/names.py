"""Names of a scope of a program: registers, variables, and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxgen.emulator.load.registers import Register
from ptxgen.emulator.load.variables import Location
from ptxgen.instr.model.scope import Scope

#: The components of vectors, by both of their names.
_AXES = {**{axis: axis for axis in "xyzw"}, **dict(zip("rgba", "xyzw", strict=True))}


class Names:
    """Registers, variables and labels of a scope; labels map to instruction indexes."""

    def __init__(self, outer: Names | None, scope: Scope) -> None:
        self.outer = outer
        #: Scope in which `ptxgen.check` resolves names.
        self.scope = scope
        self.registers: dict[str, Register] = {}
        self.ranges: dict[str, tuple[int, Callable[[], Register]]] = {}
        #: The lengths of vector registers, whose elements are registers of the name with `.x` and so on.
        self.vectors: dict[str, int] = {}
        self.vector_ranges: dict[str, tuple[int, int, Callable[[], Register]]] = {}
        self.locations: dict[str, Location] = {}
        self.labels: dict[str, int] = {}
        #: The labels of .branchtargets.
        self.lists: dict[str, list[str]] = {}
        #: The registers that were made, those of inner scopes too.
        self.made: list[Register] = outer.made if outer is not None and outer.outer is not None else []

    def __call__(self, name: str) -> Register | Location | None:
        scope: Names | None = self
        known = self.registers.get(name)
        if known is not None:
            return known
        base, _, component = name.partition(".")
        if component in _AXES and self.vector(base):
            name = f"{base}.{_AXES[component]}"
        prefix = name.rstrip("0123456789")
        number = name[len(prefix) :]
        while scope is not None:
            found = scope.registers.get(name)
            if found is not None:
                return found
            numbered = scope.ranges.get(prefix)
            if numbered and 0 < len(number) < 12 and int(number) < numbered[0]:
                made = scope.registers[name] = numbered[1]()
                return made
            location = scope.locations.get(name)
            if location is not None:
                return location
            scope = scope.outer
        return None

    def vector(self, name: str) -> int | None:
        """The length of a vector register; its elements are made where it is a numbered one."""
        prefix = name.rstrip("0123456789")
        number = name[len(prefix) :]
        for scope in self._outwards():
            if name in scope.vectors:
                return scope.vectors[name]
            if name in scope.registers or name in scope.locations:
                return None
            numbered = scope.vector_ranges.get(prefix)
            if numbered and 0 < len(number) < 12 and int(number) < numbered[0]:
                _, length, make = numbered
                scope.vectors[name] = length
                scope.registers.update({f"{name}.{axis}": make() for axis in "xyzw"[:length]})
                return length
        return None

    def in_scope(self) -> dict[str, Register]:
        """All registers by name, those of outer scopes that are not hidden too."""
        found: dict[str, Register] = {}
        for scope in self._outwards():
            found = {**scope.registers, **found}
        return found

    def label(self, name: str) -> int | None:
        """Where a label is."""
        return next((scope.labels[name] for scope in self._outwards() if name in scope.labels), None)

    def list(self, name: str) -> list[str] | None:
        """The labels of a list."""
        return next((scope.lists[name] for scope in self._outwards() if name in scope.lists), None)

    def _outwards(self) -> Iterator[Names]:
        scope: Names | None = self
        while scope is not None:
            yield scope
            scope = scope.outer
