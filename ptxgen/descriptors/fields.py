"""Fields of descriptors: where their bits are, what values they take, and how numbers become bits and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from typing import Any

from ptxgen.descriptors.errors import as_int, choices, refuse, refused
from ptxgen.descriptors.evidence import Evidence, documented

Span = tuple[int, int]
"""First and last bit, both included."""


DOCUMENTED = documented("the manual's table of the format")


@dataclass(frozen=True, slots=True)
class BitField:
    """One declared field: where its bits are, and what a raw number in them means.

    A numeric value is `raw * scale + bias`, in `unit`; `align` and `maximum` narrow it further. A named value
    is a key of `values` (or of `values[context field by]`). An array has one tuple of spans an item, and its
    length is the value of the field `length` plus `length_bias`; with `layouts` the spans depend on that length.
    Signed numbers are in two's complement.
    """

    items: tuple[tuple[Span, ...], ...]
    values: Mapping[Any, Any] | None = None
    by: str = ""
    flag: bool = False
    scale: int = 1
    bias: int = 0
    align: int = 1
    maximum: int | None = None
    unit: str = ""
    #: The words for the legal numbers, or names, by the fields that decide: kind, group.
    rule: str | Callable[[Mapping[str, Any]], str] = ""
    label: Callable[[int], str] | None = None
    length: str = ""
    length_bias: int = 0
    signed: bool = False
    layouts: Mapping[int, BitField] | None = None
    derive: Callable[[Any], int] | None = None
    doc: str = ""
    evidence: Evidence = DOCUMENTED

    def of(self, count: int) -> BitField:
        """Return this array as it is laid out when it has `count` items."""
        return self.layouts[count] if self.layouts is not None and count in self.layouts else self

    def width(self, item: int = 0) -> int:
        """Return the number of bits of one item."""
        return sum(high - low + 1 for low, high in self.items[item])

    def mask(self) -> int:
        """Return the bits that this field owns, in any layout."""
        owned = sum(((1 << (high - low + 1)) - 1) << low for spans in self.items for low, high in spans)
        for layout in (self.layouts or {}).values():
            owned |= layout.mask()
        return owned

    def table(self, context: Mapping[str, Any]) -> Mapping[Any, int]:
        """Return the names that are legal in this context, with their codes."""
        assert self.values is not None
        return self.values[context[self.by]] if self.by else self.values

    def range_rule(self, context: Mapping[str, Any]) -> str:
        """Return the words for the legal numbers in this context."""
        if self.rule:
            return self.rule if isinstance(self.rule, str) else self.rule(context)
        step = max(self.scale, self.align)
        top = self.largest()
        unit = f" {self.unit}" if self.unit else ""
        multiple = f"a multiple of {step} " if step > 1 else "an integer "
        return f"{multiple}from {self.smallest()} to {top}{unit}"

    def smallest(self) -> int:
        """Return the smallest legal number."""
        return -(1 << (self.width() - 1)) if self.signed else self.bias

    def largest(self) -> int:
        """Return the largest legal number."""
        if self.signed:
            return (1 << (self.width() - 1)) - 1
        top = ((1 << self.width()) - 1) * self.scale + self.bias
        return top if self.maximum is None else min(top, self.maximum)

    def to_raw(self, what: str, value: object, context: Mapping[str, Any]) -> tuple[Any, int]:
        """Return the canonical form of `value` and its raw number, or raise DescriptorError."""
        if self.flag:
            if isinstance(value, bool) or type(value).__name__ == "bool":  # NumPy's bool too
                return bool(value), int(bool(value))
            refuse(what, "True or False", value)
        if self.values is not None:
            return self._named(what, value, context)
        number = as_int(value)
        if number is None or not self.smallest() <= number <= self.largest():
            refuse(what, self.range_rule(context), value)
        if self.signed:
            return number, number & ((1 << self.width()) - 1)
        raw, rest = divmod(number - self.bias, self.scale)
        if rest or number % self.align:
            refuse(what, self.range_rule(context), value)
        return number, raw

    def _named(self, what: str, value: object, context: Mapping[str, Any]) -> tuple[Any, int]:
        table = self.table(context)
        if isinstance(value, str):
            if value in table:
                return value, table[value]
            for name, raw in table.items():
                if isinstance(name, str) and name.lower() == value.lower():
                    return name, raw
        number = as_int(value)
        if number is not None and number in table:
            return number, table[number]
        if self.rule:
            refuse(what, self.range_rule(context), value)
        where = f" for {self.by} {context[self.by]}" if self.by else ""
        raise refused(what, choices(table) + where, value)

    def from_raw(self, raw: int, context: Mapping[str, Any]) -> Any:
        """Return the value that `raw` means; None when the number is reserved."""
        if self.flag:
            return bool(raw)
        if self.values is not None:
            return next((name for name, code in self.table(context).items() if code == raw), None)
        if self.signed:
            return raw - (raw >> (self.width() - 1) << self.width())
        value = raw * self.scale + self.bias
        return value if value <= self.largest() and value % self.align == 0 else None

    def place(self, raw: int, item: int = 0) -> int:
        """Return `raw` at this field's position."""
        placed = 0
        for low, high in self.items[item]:
            placed |= (raw & ((1 << (high - low + 1)) - 1)) << low
            raw >>= high - low + 1
        return placed

    def extract(self, bits: int, item: int = 0) -> int:
        """Return the raw number that stands in `bits`."""
        raw = shift = 0
        for low, high in self.items[item]:
            raw |= (bits >> low & ((1 << (high - low + 1)) - 1)) << shift
            shift += high - low + 1
        return raw


@dataclass(frozen=True, slots=True)
class Constant:
    """Bits that the format fixes."""

    low: int
    high: int
    value: int
    doc: str

    def extract(self, bits: int) -> int:
        """Return the raw number that stands in `bits`."""
        return bits >> self.low & ((1 << (self.high - self.low + 1)) - 1)


def field(
    low: int,
    high: int,
    *,
    default: Any = MISSING,
    also: Sequence[Span] = (),
    values: Mapping[Any, Any] | None = None,
    by: str = "",
    flag: bool = False,
    scale: int = 1,
    bias: int = 0,
    align: int = 1,
    maximum: int | None = None,
    unit: str = "",
    rule: str | Callable[[Mapping[str, Any]], str] = "",
    derive: Callable[[Any], int] | None = None,
    doc: str = "",
    evidence: Evidence = DOCUMENTED,
) -> Any:
    """Declare a field in bits `low`..`high`; more significant bits may continue in the spans `also`.

    `derive` computes the value from the instance (the fields declared before it) where None is given.
    """
    declared = BitField(
        items=(((low, high), *also),),
        values=values,
        by=by,
        flag=flag,
        scale=scale,
        bias=bias,
        align=align,
        maximum=maximum,
        unit=unit,
        rule=rule,
        derive=derive,
        doc=doc,
        evidence=evidence,
    )
    return dataclasses.field(default=default, metadata={"bits": declared})


def array(
    items: Sequence[Sequence[Span]] | Mapping[int, Sequence[Sequence[Span]]],
    *,
    length: str,
    length_bias: int = 0,
    label: Callable[[int], str],
    default: Any = MISSING,
    scale: int = 1,
    bias: int = 0,
    signed: bool = False,
    unit: str = "",
    rule: str | Callable[[Mapping[str, Any]], str] = "",
    doc: str = "",
    evidence: Evidence = DOCUMENTED,
) -> Any:
    """Declare a tuple of numbers, one item's spans each; `length` names the field that holds their count.

    A mapping gives the spans for each count.
    """
    by_count = items if isinstance(items, Mapping) else {}
    declared = BitField(
        items=tuple(tuple(spans) for spans in (by_count[max(by_count)] if isinstance(items, Mapping) else items)),
        scale=scale,
        bias=bias,
        unit=unit,
        rule=rule,
        label=label,
        length=length,
        length_bias=length_bias,
        signed=signed,
        doc=doc,
        evidence=evidence,
    )
    layouts = {
        count: dataclasses.replace(declared, items=tuple(tuple(spans) for spans in each))
        for count, each in by_count.items()
    }
    if layouts:
        declared = dataclasses.replace(declared, layouts=layouts)
    return dataclasses.field(default=default, metadata={"bits": declared})


def context(*, default: Any, values: Iterable[Any], doc: str = "") -> Any:
    """Declare a fact that is not encoded but decides what is legal, such as the MMA kind."""
    return dataclasses.field(default=default, metadata={"context": tuple(values), "doc": doc})


def constant(low: int, high: int, value: int, doc: str) -> Constant:
    """Declare bits that the format fixes."""
    return Constant(low, high, value, doc)
