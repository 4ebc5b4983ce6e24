"""What a point query reads: a table with a row for each element; columns are indexes, addresses, threads, registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptxgen.descriptors.errors import DescriptorError
from ptxgen.layouts.banks import BANK_BYTES, BANKS
from ptxgen.pictures.kinds import Declared, declared, made

Numbers = NDArray[np.int64]

Index: TypeAlias = "int | range"
"""What a query gives for a column: a number, or a range of them."""
Needs: TypeAlias = tuple[range, ...]
"""The index that a map must contain, an axis each; empty where the query gives other columns."""


def last(needs: Needs, axis: int) -> int:
    """The largest number that a query needs along an axis, 0 where it does not say."""
    return needs[axis].stop - 1 if axis < len(needs) else 0


@dataclass(frozen=True)
class Map:
    """A layout as a table. `at` names the columns that `at=` gives, `columns` are arrays of any shapes that broadcast.

    `title` says which layout this is. `bits` is the width of an element where a column `bit` has its lowest bit.
    `notes` are what holds for every row, such as the formula.
    """

    title: str
    at: tuple[str, ...]
    columns: Mapping[str, Numbers]
    bits: int = 0
    notes: tuple[str, ...] = ()

    def rows(self) -> dict[str, Numbers]:
        """The columns at full length."""
        whole = np.broadcast_arrays(*self.columns.values())
        return {name: np.asarray(each).ravel() for name, each in zip(self.columns, whole, strict=True)}


@dataclass(frozen=True)
class Located(Declared):
    """One kind of layout that can be asked. `make` takes `needs`, the index that is asked for, and its parameters.

    `names` are the columns that queries may give, `sized` the parameters that an error of a number out of range names.
    `grows` are the indexes along which the map becomes as large as a column of the answer needs.
    """

    make: Callable[..., Map]
    names: tuple[str, ...]
    sized: tuple[str, ...] = ()
    grows: tuple[str, ...] = ()


MAPS: dict[str, Located] = {}


def points(
    name: str, *names: str, sized: tuple[str, ...] = (), grows: tuple[str, ...] = ()
) -> Callable[[Callable[..., Map]], Callable[..., Map]]:
    """Register a function that makes a map, with the fields of `Located`; `needs` is no parameter."""

    def register(make: Callable[..., Map]) -> Callable[..., Map]:
        summary, parameters = declared(make)
        kept = tuple(each for each in parameters if each.name != "needs")
        MAPS[name] = Located(name, summary, kept, make, names, sized, grows)
        return make

    return register


@dataclass(frozen=True)
class Answer:
    """The rows that a query has found; `given` are the columns that it named."""

    map: Map
    given: tuple[str, ...]
    rows: tuple[dict[str, int], ...]

    def lines(self) -> list[str]:
        """One line for each row: what was asked, then what it is."""
        return [self._line(row) for row in self.rows]

    def _line(self, row: Mapping[str, int]) -> str:
        asked = ", ".join(_words(name, row[name], self.map.bits) for name in self.given)
        rest = ", ".join(_words(name, number, self.map.bits) for name, number in row.items() if name not in self.given)
        return f"{asked}: {rest}"


def _words(name: str, number: int, bits: int) -> str:
    if name == "bit":
        return f"bit {number}" if bits == 1 else f"bits {number}-{number + bits - 1}"
    return f"{name} {number:#x}" if name.endswith("address") else f"{name} {number}"


def layout_map(kind: str, words: Sequence[str] = (), needs: Needs = ()) -> Map:
    """A layout as a table of all its elements, large enough for the index `needs`. Raises DescriptorError."""
    if kind not in MAPS:
        raise DescriptorError(f"there is no layout {kind[:40]!r} to ask (known: {', '.join(MAPS)})")
    located = MAPS[kind]
    values = located.values(words)
    values["needs"] = needs
    return made(located.make, values)


def answer(kind: str, words: Sequence[str] = (), at: Sequence[Index] | None = None, **given: Index) -> Answer:
    """The rows of a layout in which columns have these values, with the map that they are of. Raises DescriptorError.

    `kind` and `words` are those of `ptxgen layout`, `at` the index of an element, such as (row, column).
    """
    found = layout_map(kind, words, tuple(map(_range, at or ())))
    if at is None and all(name in given for name in found.at):  # the index, by name
        found = layout_map(kind, words, tuple(_range(given[name]) for name in found.at))
    elif at is None and MAPS[kind].grows:
        found = _grown(found, kind, words, given)
    if at is not None:
        if len(at) != len(found.at):
            raise DescriptorError(f"at of {kind} must be {','.join(found.at).upper()}, not {len(at)} numbers")
        given = dict(zip(found.at, at, strict=True)) | given
    if not given:
        raise DescriptorError(f"a query needs at={','.join(found.at).upper()}, or one of {', '.join(found.columns)}")
    rows = found.rows()
    for name in given:
        if name not in rows:
            raise DescriptorError(f"{kind} has no {name!r} to ask for; it has {', '.join(rows)}")
    chosen = np.ones(len(next(iter(rows.values()))), np.bool_)
    for name, number in given.items():
        _require(found, kind, name, number, rows[name])
        wanted = _range(number)
        chosen &= (rows[name] >= wanted.start) & (rows[name] < wanted.stop)
    if not chosen.any():
        words_of = ", ".join(f"{name} {_spelled(number)}" for name, number in given.items())
        raise DescriptorError(f"{found.title} has nothing at {words_of}")
    order = np.flatnonzero(chosen)
    made_rows = [{name: int(each[index]) for name, each in rows.items()} for index in order]
    return Answer(found, tuple(given), tuple({tuple(row.values()): row for row in made_rows}.values()))


def _range(number: Index) -> range:
    return number if isinstance(number, range) else range(number, number + 1)


def _spelled(number: Index) -> str:
    return f"{number.start}-{number.stop - 1}" if isinstance(number, range) else str(number)


def _grown(found: Map, kind: str, words: Sequence[str], given: Mapping[str, Index]) -> Map:
    """The map, or a larger one where a column that is given has larger numbers, as far as the layout goes."""
    largest = found
    while any(last((_range(number),), 0) > _highest(largest, name) for name, number in given.items()):
        sizes = (_doubled(largest, name) if name in MAPS[kind].grows else 1 for name in largest.at)
        needs = tuple(map(range, sizes))
        try:
            larger = layout_map(kind, words, needs)
        except DescriptorError:
            return found
        if all(_highest(larger, name) == _highest(largest, name) for name in MAPS[kind].grows):
            return found
        largest = larger
    return largest


def _doubled(found: Map, name: str) -> int:
    """The size of an axis with twice the numbers that it has now."""
    high = _highest(found, name)
    return 2 * high + 2 - int(found.columns[name].min()) if name in found.columns else high


def _highest(found: Map, name: str) -> int:
    """The largest number of a column; of one that the map lacks, more than anyone asks for."""
    return int(found.columns[name].max()) if name in found.columns else 1 << 64


def _require(found: Map, kind: str, name: str, number: Index, column: Numbers) -> None:
    low, high, wanted = int(column.min()), int(column.max()), _range(number)
    if not wanted:
        raise DescriptorError(f"{name} must be a number or FIRST-LAST, not {_spelled(number)}")
    if not (low <= wanted.start and wanted.stop - 1 <= high):
        larger = MAPS[kind].sized if wanted.start >= 0 else ()
        advice = f" ({' and '.join(f'{each}=' for each in larger)} say how large it is)" if larger else ""
        raise DescriptorError(f"{name} must be {low} to {high} in {found.title}, not {_spelled(number)}{advice}")


def locate(
    kind: str, words: Sequence[str] = (), at: Sequence[Index] | None = None, **given: Index
) -> list[dict[str, int]]:
    """The places of an element, or the elements at a place, one dictionary each. Raises DescriptorError.

        >>> from ptxgen.pictures.points import locate
        >>> locate("operand", ["k", "128B"], at=(3, 9))
        [{'row': 3, 'k': 9, 'address': 418, 'bank': 8}]

    - `kind`, `words`: the layout, as `ptxgen layout` takes it: "ld", ["16x256b", "num=2"].
    - `at`: the index of an element, such as (row, column); a range for several of them: (range(32, 64), 0).
    - `given`: columns of the answer instead: thread=7, register=2, or address=0x440.
    """
    return list(answer(kind, words, at, **given).rows)


def bank(address: Numbers) -> Numbers:
    """The shared-memory banks of byte addresses."""
    return address // BANK_BYTES % BANKS
