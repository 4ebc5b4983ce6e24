"""The base of all descriptors: a frozen dataclass whose fields are declared once with their bit ranges.

A class body reads like the manual's table. `encode`, `decode`, `explain`, the reserved bits and the error
messages all come from that declaration. What a format means to hardware is left to the modules that declare
it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING
from typing import Any, ClassVar, Self, dataclass_transform

from ptxgen.descriptors.errors import DescriptorError, as_int, choices, refuse, refused
from ptxgen.descriptors.fields import DOCUMENTED, BitField, Constant, array, context, field
from ptxgen.descriptors.reading import Reading, Row


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field, array, context))
class BitStruct:
    """Base of descriptors: subclass with `bits=<total>` and declare fields in the body.

    Bits that no field or constant claims are reserved and must be zero. Instances are frozen, hashable, and
    their repr evaluates back to an equal value.
    """

    total_bits: ClassVar[int]
    word_bits: ClassVar[int] = 0
    bit_fields: ClassVar[dict[str, BitField]]
    contexts: ClassVar[dict[str, tuple[Any, ...]]]
    constants: ClassVar[dict[str, Constant]]
    reserved_mask: ClassVar[int]
    _positions: ClassVar[dict[tuple[str, int, int], str]]
    _defaults: ClassVar[dict[str, Any]]
    #: Numbers that people compute too large: set reserved bits above one are taken for its own.
    _overflowing: ClassVar[tuple[str, ...]] = ()
    _encoded: int

    def __init_subclass__(cls, *, bits: int, word_bits: int = 0) -> None:
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)
        members = dataclasses.fields(cls)  # type: ignore[arg-type]
        cls.total_bits, cls.word_bits = bits, word_bits
        cls.bit_fields = {m.name: m.metadata["bits"] for m in members if "bits" in m.metadata}
        cls.contexts = {m.name: m.metadata["context"] for m in members if "context" in m.metadata}
        cls.constants = {name: c for name, c in vars(cls).items() if isinstance(c, Constant)}
        claimed = 0
        masks = [(name, f.mask()) for name, f in cls.bit_fields.items()]
        masks += [(n, ((1 << (c.high - c.low + 1)) - 1) << c.low) for n, c in cls.constants.items()]
        for name, mask in masks:
            if claimed & mask or mask >> bits:
                raise TypeError(f"{cls.__name__}.{name} overlaps another field or passes bit {bits - 1}")
            claimed |= mask
        cls.reserved_mask = (1 << bits) - 1 & ~claimed
        cls._positions = {
            (name, i, count): ", ".join(cls.range_name(low, high) for low, high in spans)
            for name, f in cls.bit_fields.items()
            for count in f.layouts or (0,)
            for i, spans in enumerate(f.of(count).items)
        }
        cls._defaults = {m.name: m.default for m in members if m.default is not MISSING}

    def __post_init__(self) -> None:
        store = object.__setattr__
        for name, legal in self.contexts.items():
            store(self, name, _legal_context(name, getattr(self, name), legal))
        known = self.__dict__
        encoded = sum(c.value << c.low for c in self.constants.values())
        for name, declared in self.bit_fields.items():
            if declared.length:
                encoded |= self._store_array(name, declared)
                continue
            given = known[name]
            computed = declared.derive(self) if given is None and declared.derive else given
            value, raw = declared.to_raw(name, computed, known)
            if value is not given:
                store(self, name, value)
            encoded |= declared.place(raw)
        store(self, "_encoded", encoded)
        self._check()

    def _store_array(self, name: str, declared: BitField) -> int:
        values = self.__dict__[name]
        count = self.__dict__[declared.length] + declared.length_bias
        items = tuple(values) if isinstance(values, Iterable) and not isinstance(values, str) else None
        if items is None or len(items) != count:
            refuse(
                name,
                f"a sequence of {count} numbers ({declared.length} {count - declared.length_bias})",
                values,
            )
        declared = declared.of(count)
        assert declared.label is not None
        encoded, canonical = 0, []
        for i, item in enumerate(items):
            value, raw = declared.to_raw(declared.label(i), item, self.__dict__)
            canonical.append(value)
            encoded |= declared.place(raw, i)
        object.__setattr__(self, name, tuple(canonical))
        return encoded

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the instance of these fields, defaults for the others: as the constructor, and faster."""
        made = object.__new__(cls)
        made.__dict__.update(cls._defaults)
        made.__dict__.update(values)
        made.__post_init__()
        return made

    def _check(self) -> None:
        """Check the rules that tie fields together; subclasses raise DescriptorError."""

    def warnings(self) -> tuple[str, ...]:
        """Return remarks on legal but suspicious or ignored values."""
        return ()

    def notes(self) -> tuple[str, ...]:
        """Return informational remarks, such as consequences of the values."""
        return ()

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed; checks run again."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def _encode(self) -> int:
        return self._encoded

    @classmethod
    def _name(cls) -> str:
        """Return how messages and readings call the format."""
        return cls.__name__

    @classmethod
    def _decode(cls, encoded: object, **facts: Any) -> Self:
        """Return the value of a bit pattern; raise DescriptorError that lists every illegal part of it."""
        bits = cls._bits(encoded)
        values = cls._context(facts)
        values, problems = cls._parse(bits, facts)
        if problems:
            raise DescriptorError(f"illegal {cls._name()} {cls._spell(bits)}: " + "; ".join(problems.values()))
        return cls(**values)

    @classmethod
    def read(cls, encoded: int | bytes, **facts: Any) -> Reading:
        """Return what every bit of a pattern means, legal or not: fields, problems, warnings, evidence.

        `facts` are those of `decode`. Raises DescriptorError only for a number of another width, or other facts.
        """
        bits = cls._bits(int.from_bytes(encoded, "little") if isinstance(encoded, bytes) else encoded)
        values, problems = cls._parse(bits, facts)
        made = None
        if problems.keys() <= {*cls.constants, "reserved"}:  # the fields themselves are legal
            try:
                made = cls(**values)
            except DescriptorError as error:
                if not problems:
                    problems[""] = str(error)
        reading = cls._reading(bits, values, problems, None if problems else made)
        return reading if made is None or not problems else dataclasses.replace(reading, warnings=made.warnings())

    @classmethod
    def problem_count(cls, encoded: int, **facts: Any) -> int:
        """Return how many things are illegal in a pattern, as `read` would list them. Raises as `read` does."""
        values, problems = cls._parse(cls._bits(encoded), facts)
        if problems:
            return len(problems)
        try:
            cls(**values)
        except DescriptorError:
            return 1
        return 0

    @classmethod
    def _reading(cls, bits: int, values: Mapping[str, Any], problems: Mapping[str, str], value: Self | None) -> Reading:
        return Reading(
            format=cls._name(),
            title=value._title() if value else f"{cls._name()} {cls._spell(bits)}{cls._facts(values)}",
            bits=cls._spell(bits),
            context={name: values[name] for name in cls.contexts},
            rows=tuple(cls._read_rows(bits, values, problems)),
            problems=tuple(problems.values()),
            warnings=value.warnings() if value else (),
            notes=value.notes() if value else (),
            facts=cls._concerns(values) if value else (),
        )

    @classmethod
    def _bits(cls, encoded: object) -> int:
        bits = as_int(encoded)
        if bits is None or not 0 <= bits < 1 << cls.total_bits:
            refuse(cls._name(), f"an unsigned {cls.total_bits}-bit number", encoded)
        return bits

    @classmethod
    def _spell(cls, bits: int) -> str:
        return f"{bits:#0{cls.total_bits // 4 + 2}x}"

    @classmethod
    def _context(cls, facts: Mapping[str, Any]) -> dict[str, Any]:
        values: dict[str, Any] = {**{name: cls._defaults[name] for name in cls.contexts}, **facts}
        for name, legal in cls.contexts.items():
            values[name] = _legal_context(name, values[name], legal)
        return values

    @classmethod
    def _parse(cls, bits: int, facts: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the values of the fields (None: reserved), and what is illegal by the name of a field or constant."""
        values = cls._context(facts)
        problems: dict[str, str] = {}
        for name, c in cls.constants.items():
            found = c.extract(bits)
            if found != c.value:
                problems[name] = f"{cls.range_name(c.low, c.high)} must be {c.value:#b} ({c.doc}), not {found:#b}"
        reserved = bits & cls.reserved_mask
        for name, mask, number in cls._overflows(bits):
            rule = cls.bit_fields[name].range_rule(values)
            above = _bit_list(mask & bits, cls.range_name).removeprefix("1 in ")
            problems[name] = f"{name} must be {rule}, not {number}, which takes {above} above its field"
            reserved &= ~mask
        if reserved:
            problems["reserved"] = (
                f"reserved bits must be 0, not {_bit_list(reserved, cls.range_name)}{cls._reserved_hint(bits)}"
            )
        for name, declared in cls.bit_fields.items():
            if not declared.length:
                raw = declared.extract(bits)
                values[name] = declared.from_raw(raw, values)
                if values[name] is None:
                    hint = cls._code_hint(name, raw)
                    problems[name] = f"{name} must be {_codes(declared, values)}, not {raw}{hint}"
        for name, declared in cls.bit_fields.items():
            if declared.length:
                values[name] = _decode_array(name, declared, bits, values, problems, cls.range_name)
        return values, problems

    @classmethod
    def _reserved_hint(cls, bits: int) -> str:
        """Return what may have set reserved bits, as the end of a sentence; empty where nothing is likely."""
        return ""

    @classmethod
    def _code_hint(cls, name: str, raw: int) -> str:
        """Return where the illegal code of a field may come from, as the end of a sentence; empty where not known."""
        return ""

    @classmethod
    def _overflows(cls, bits: int) -> Iterator[tuple[str, int, int]]:
        """Yield fields whose number was too large, if the reserved bits above are its: name, their mask, number."""
        for name in cls._overflowing:
            declared = cls.bit_fields[name]
            above = declared.items[0][-1][1] + 1
            count = 0
            while cls.reserved_mask >> (above + count) & 1:
                count += 1
            over = bits >> above & (1 << count) - 1
            if over:
                raw = declared.extract(bits) | over << declared.width()
                yield name, (1 << count) - 1 << above, raw * declared.scale + declared.bias

    @classmethod
    def _read_rows(cls, bits: int, values: Mapping[str, Any], problems: Mapping[str, str]) -> list[Row]:
        rows: list[tuple[int, Row]] = []
        for name, declared in cls.bit_fields.items():
            items = values[name] if declared.length else (values[name],)
            count = len(items) if declared.layouts else 0
            declared = declared.of(count)
            for i, value in enumerate(items):
                label = f"{name}[{i}]" if declared.length else name
                meaning = "illegal" if value is None else _meaning(declared, value, cls._remark(name, values))
                raw = declared.extract(bits, i)
                row = Row(
                    cls._positions[name, i, count],
                    label,
                    raw,
                    value,
                    declared.unit,
                    meaning,
                    declared.evidence,
                    problems.get(label, ""),
                )
                rows.append((declared.items[i][0][0], row))
        for name, c in cls.constants.items():
            found, problem = c.extract(bits), problems.get(name, "")
            row = Row(
                cls.range_name(c.low, c.high),
                name,
                found,
                found,
                "",
                "illegal" if problem else c.doc,
                DOCUMENTED,
                problem,
            )
            rows.append((c.low, row))
        if wrong := bits & cls.reserved_mask:
            first = (wrong & -wrong).bit_length() - 1
            where = _bit_list(wrong, cls.range_name).removeprefix("1 in ")
            said = problems.get("reserved") or "; ".join(problems[name] for name, _, _ in cls._overflows(bits))
            row = Row(where, "reserved", wrong >> first, wrong >> first, "", "illegal", DOCUMENTED, said)
            rows.append((first, row))
        if not cls.word_bits:  # a format of many words is declared in the order in which a person thinks of it
            rows.sort(key=lambda pair: pair[0])
        return [row for _, row in rows]

    @classmethod
    def _remark(cls, name: str, values: Mapping[str, Any]) -> str:
        """Return the words beside a field's value; they may depend on the other fields."""
        return cls.bit_fields[name].doc

    @classmethod
    def _concerns(cls, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of the facts (`ptxgen.descriptors.facts`) behind these values."""
        return ()

    @classmethod
    def range_name(cls, low: int, high: int) -> str:
        """Return how the manual names a bit range of this format, e.g. "bits 61-63"."""
        if not cls.word_bits:
            return f"bit {low}" if low == high else f"bits {low}-{high}"
        word, start = divmod(low, cls.word_bits)
        last, end = divmod(high, cls.word_bits)
        if start == 0 and end == cls.word_bits - 1:
            return f"word {word}" if word == last else f"words {word}-{last}"
        name = f"bit {start}" if start == end else f"bits {start}-{end}"
        return f"word {word} {name}" if word == last else f"word {word} bit {start} to word {last} bit {end}"

    def explain(self) -> str:
        """Return a table of bits, field, raw number and meaning, then warnings and evidence."""
        return self.reading.text()

    @property
    def reading(self) -> Reading:
        """What every bit means, as data."""
        return self._reading(self._encoded, vars(self), {}, self)

    def _title(self) -> str:
        return f"{self._name()} {self._spell(self._encoded)}{self._facts(vars(self))}"

    @classmethod
    def _facts(cls, values: Mapping[str, Any]) -> str:
        facts = ", ".join(f"{name}={values[name]}" for name in cls.contexts if values[name] != "")
        return f" ({facts})" if facts else ""


def _legal_context(name: str, value: object, legal: tuple[Any, ...]) -> Any:
    number = as_int(value)
    canonical = value if number is None else number
    if type(canonical) is type(legal[0]) and canonical in legal:
        return canonical
    raise refused(name, choices(each if each != "" else '""' for each in legal), value)


def _members(cls: type[BitStruct]) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(cls)  # type: ignore[arg-type]


def _decode_array(
    name: str,
    declared: BitField,
    bits: int,
    values: Mapping[str, Any],
    problems: dict[str, str],
    range_name: Callable[[int, int], str],
) -> tuple[int | None, ...]:
    """Return the items, as many as the length says (all where that is illegal); note what is illegal."""
    length = values[declared.length]
    count = len(declared.items) if length is None else length + declared.length_bias
    if declared.layouts is not None:
        layout = declared.of(count)
        if unused := bits & declared.mask() & ~layout.mask():
            problems[name] = f"reserved bits must be 0, not {_bit_list(unused, range_name)}"
        declared = layout
    label = declared.label or str
    for i in range(count, len(declared.items)):
        if raw := declared.extract(bits, i):
            problems[f"{name}[{i}]"] = f"{label(i)} must be 0 beyond {declared.length} {length}, not {raw}"
    found = tuple(declared.from_raw(declared.extract(bits, i), values) for i in range(count))
    for i, value in enumerate(found):
        if value is None:
            problems[f"{name}[{i}]"] = f"{label(i)} must be {declared.range_rule(values)}"
    return found


def _codes(declared: BitField, values: Mapping[str, Any]) -> str:
    if declared.values is None:
        return declared.range_rule(values)
    return choices(f"{code} ({name})" for name, code in declared.table(values).items())


def _meaning(declared: BitField, value: Any, remark: str) -> str:
    text = f"{value} {declared.unit}".rstrip() if declared.values is None and not declared.flag else str(value)
    return f"{text}  ({remark})" if remark else text


def _bit_list(mask: int, range_name: Callable[[int, int], str]) -> str:
    """Return the set bits of `mask` as ranges: "1 in bits 14-15"."""
    ranges: list[str] = []
    bit = 0
    while mask >> bit:
        if mask >> bit & 1:
            end = bit
            while mask >> (end + 1) & 1:
                end += 1
            ranges.append(range_name(bit, end))
            bit = end
        bit += 1
    return "1 in " + ", ".join(ranges)
