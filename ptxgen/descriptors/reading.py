"""What the bits of a descriptor mean, as a value: a table to print, to compare field by field, or to give as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ptxgen.descriptors.evidence import Evidence
from ptxgen.descriptors.facts import fact


class Row(NamedTuple):
    """One field of a descriptor. `value` is None where the raw number is illegal; `problem` then says why."""

    bits: str
    name: str
    raw: int
    value: Any
    unit: str
    meaning: str
    evidence: Evidence
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "name": self.name,
            "bits": self.bits,
            "raw": self.raw,
            "value": self.value,
            "unit": self.unit,
            "meaning": self.meaning,
            "problem": self.problem,
            "evidence": {"kind": self.evidence.kind, "source": self.evidence.source},
        }


@dataclass(frozen=True, slots=True)
class Reading:
    """A bit pattern read field by field. `problems` is empty where the pattern is legal for its `context`."""

    format: str
    title: str
    bits: str
    context: Mapping[str, Any]
    rows: tuple[Row, ...]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    facts: tuple[str, ...]

    def text(self, *, narrow: bool = False) -> str:
        """A table of bits, field, raw number and meaning; then problems, warnings, notes, evidence and facts.

        `narrow`: no table, but these of a field one below the other.
        """
        table = [("bits", "field", "raw", "meaning")]
        table += [(row.bits, row.name, f"{row.raw:#x}", row.meaning) for row in self.rows]
        lines = [self.title, *(_folded(table) if narrow else _columns(table))]
        lines += [f"error: {text}" for text in self.problems]
        lines += [f"warning: {text}" for text in self.warnings]
        lines += [f"note: {text}" for text in self.notes]
        known: dict[Evidence, list[str]] = {}
        for row in self.rows:
            if row.evidence.kind != "documented":
                known.setdefault(row.evidence, []).append(row.name.partition("[")[0])
        if known:
            lines += ["not from the manual:"]
            lines += [f"  {', '.join(dict.fromkeys(names))}: {evidence}" for evidence, names in known.items()]
        for each in map(fact, self.facts):
            lines.append(f"fact {each.name} ({each.evidence.kind}): {each.statement}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "format": self.format,
            "bits": self.bits,
            "legal": not self.problems,
            "context": dict(self.context),
            "fields": [row.as_dict() for row in self.rows],
            "problems": list(self.problems),
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "facts": [fact(name).as_dict() for name in self.facts],
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """A field whose bits differ between two readings; None where one of them does not have it."""

    name: str
    first: Row | None
    second: Row | None


def differences(first: Reading, second: Reading) -> tuple[Difference, ...]:
    """The fields that differ, in the order of the first reading, then those that the second has alone."""
    left = {row.name: row for row in first.rows}
    right = {row.name: row for row in second.rows}
    names = [*left, *(name for name in right if name not in left)]
    pairs = (Difference(name, left.get(name), right.get(name)) for name in names)
    return tuple(pair for pair in pairs if _shown(pair.first) != _shown(pair.second))


def _shown(row: Row | None) -> tuple[int, Any] | None:
    return None if row is None else (row.raw, row.value)


def diff_text(first: Reading, second: Reading, *, narrow: bool = False) -> str:
    """Two readings side by side: the fields that differ, then the problems and warnings that only one has.

    `narrow` as for `Reading.text`.
    """
    found = differences(first, second)
    lines = [f"- {first.title}", f"+ {second.title}"]
    if not found:
        lines.append("the same in every field")
    table = [("bits", "field", "-", "+")]
    for each in found:
        row = each.first or each.second
        assert row is not None
        table.append((row.bits, each.name, _side(each.first), _side(each.second)))
    if found:
        lines += _folded(table) if narrow else _columns(table)
        same = len({row.name for row in (*first.rows, *second.rows)}) - len(found)
        lines.append(f"{len(found)} of {len(found) + same} fields differ")
    for mark, one, other in (("-", first, second), ("+", second, first)):
        for kind, mine, theirs in (
            ("error", one.problems, other.problems),
            ("warning", one.warnings, other.warnings),
        ):
            lines += [f"{mark} {kind}: {text}" for text in mine if text not in theirs]
    return "\n".join(lines)


def diff_dict(first: Reading, second: Reading) -> dict[str, Any]:
    """The same for JSON."""
    return {
        "first": first.as_dict(),
        "second": second.as_dict(),
        "differences": [
            {
                "name": each.name,
                "first": None if each.first is None else each.first.as_dict(),
                "second": None if each.second is None else each.second.as_dict(),
            }
            for each in differences(first, second)
        ],
    }


def _side(row: Row | None) -> str:
    return "" if row is None else f"{row.raw:#x}  {row.meaning.partition('  (')[0]}"


def _folded(rows: Sequence[tuple[str, str, *tuple[str, ...]]]) -> Iterable[str]:
    """Rows below the first as paragraphs: the field, its bits, and the other cells with their heads."""
    (_, _, *heads), *others = rows
    for bits, name, *cells in others:
        yield f"  {name}"
        yield f"    {bits}"
        yield from (f"    {head} {cell}" for head, cell in zip(heads, cells, strict=True))


def _columns(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Rows in columns of equal width, indented by two; the last column is free."""
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    line = "  " + "".join(f"{{:<{width}}}  " for width in widths) + "{}"
    return [line.format(*row).rstrip() for row in rows]
