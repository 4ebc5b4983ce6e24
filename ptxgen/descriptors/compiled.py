"""Straight-line code for a descriptor's fields, generated from their declarations when the class is made.

`pack` and `unpack` serve values and bit patterns that are right as they stand; for all others they decline, and the
general code of `bits` finds canonical values or the words for what is wrong. So they hold no rule of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ptxgen.descriptors.bits import BitStruct
from ptxgen.descriptors.fields import BitField

Pack = Callable[[Any, dict[str, Any]], int | None]
Unpack = Callable[[int, dict[str, Any]], bool]


class Compiled:
    """The generated functions of a class."""

    def __init__(self, cls: type[BitStruct]) -> None:
        self._class = cls
        self._fields = cls.bit_fields
        self.pack: Pack = self._pack()
        self.unpack: Unpack = self._unpack()

    # Encoding.

    def _pack(self) -> Pack:
        start = sum(c.value << c.low for c in self._class.constants.values())
        code, known = _Code("pack(self, d)"), {}
        code.line(f"e = {start}")
        for name, field in self._fields.items():
            code.line(f"v = d[{name!r}]")
            if field.length:
                self._pack_array(code, name, field)
                continue
            if field.derive is not None:
                known[f"derive_{name}"] = field.derive
                code.line(f"if v is None: v = d[{name!r}] = derive_{name}(self)")
            if field.flag:
                code.line("if v is not True and v is not False: return None")
                code.line(f"if v: e |= {field.place(1)}")
            elif field.values is not None:
                known[f"table_{name}"] = field.values
                table = f"table_{name}[d[{field.by!r}]]" if field.by else f"table_{name}"
                # Names only: numbers may be spelled as NumPy's, or mean a name.
                code.line("if type(v) is not str: return None")
                code.line(f"r = {table}.get(v)")
                code.line("if r is None: return None")
                code.line(f"e |= {_placed(field, 0)}")
            else:
                self._pack_number(code, field, 0)
        code.line("return e")
        return code.function(known)

    def _pack_array(self, code: _Code, name: str, field: BitField) -> None:
        code.line(f"n = d[{field.length!r}] + {field.length_bias}")
        code.line("if type(v) is not tuple or len(v) != n: return None")
        code.line("a = v")
        for count in sorted(field.layouts or ()):
            code.line(f"{'if' if count == min(field.layouts or ()) else 'elif'} n == {count}:")
            with code:
                for item in range(count):
                    code.line(f"v = a[{item}]")
                    self._pack_number(code, field.of(count), item)
        if not field.layouts:
            for item in range(len(field.items)):
                code.line(f"if n > {item}:")
                with code:
                    code.line(f"v = a[{item}]")
                    self._pack_number(code, field, item)

    @staticmethod
    def _pack_number(code: _Code, field: BitField, item: int) -> None:
        code.line(f"if type(v) is not int or not {field.smallest()} <= v <= {field.largest()}: return None")
        if field.align > 1:
            code.line(f"if v % {field.align}: return None")
        if field.signed:
            code.line(f"r = v & {(1 << field.width()) - 1}")
        elif field.scale > 1:
            code.line(f"r, s = divmod(v - {field.bias}, {field.scale})")
            code.line("if s: return None")
        else:
            code.line(f"r = v - {field.bias}" if field.bias else "r = v")
        code.line(f"e |= {_placed(field, item)}")

    # Decoding.

    def _unpack(self) -> Unpack:
        code, known = _Code("unpack(b, d)"), {}
        fixed = sum(((1 << (c.high - c.low + 1)) - 1) << c.low for c in self._class.constants.values())
        value = sum(c.value << c.low for c in self._class.constants.values())
        code.line(f"if b & {self._class.reserved_mask | fixed} != {value}: return False")
        for name, field in self._fields.items():
            if field.length:
                self._unpack_array(code, name, field)
                continue
            code.line(f"r = {_taken(field, 0)}")
            if field.flag:
                code.line("v = r == 1")
            elif field.values is not None:
                known[f"names_{name}"] = _names(field)
                table = f"names_{name}[d[{field.by!r}]]" if field.by else f"names_{name}"
                code.line(f"v = {table}.get(r)")
                code.line("if v is None: return False")
            else:
                self._unpack_number(code, field)
            code.line(f"d[{name!r}] = v")
        code.line("return True")
        return code.function(known)

    def _unpack_array(self, code: _Code, name: str, field: BitField) -> None:
        code.line(f"n = d[{field.length!r}] + {field.length_bias}")
        for count in sorted(field.layouts or range(len(field.items) + 1)):
            layout = field.of(count)
            used = sum(_mask(layout, item) for item in range(count))
            code.line(f"if n == {count}:")
            with code:
                if unused := field.mask() & ~used:
                    code.line(f"if b & {unused}: return False")
                for item in range(count):
                    code.line(f"r = {_taken(layout, item)}")
                    self._unpack_number(code, layout)
                    code.line(f"v{item} = v")
                code.line(f"d[{name!r}] = ({''.join(f'v{item}, ' for item in range(count))})")
        known = tuple(sorted(field.layouts or range(len(field.items) + 1)))
        code.line(f"if n not in {known}: return False")

    @staticmethod
    def _unpack_number(code: _Code, field: BitField) -> None:
        if field.signed:
            code.line(f"v = r - (r >> {field.width() - 1} << {field.width()})")
            return
        code.line(f"v = r * {field.scale} + {field.bias}" if field.scale > 1 or field.bias else "v = r")
        if field.largest() < ((1 << field.width()) - 1) * field.scale + field.bias:
            code.line(f"if v > {field.largest()}: return False")
        if field.align > 1:
            code.line(f"if v % {field.align}: return False")


def _mask(field: BitField, item: int) -> int:
    return sum(((1 << (high - low + 1)) - 1) << low for low, high in field.items[item])


def _placed(field: BitField, item: int) -> str:
    """The expression that puts `r` where the item's bits are."""
    parts, shift, spans = [], 0, field.items[item]
    for low, high in spans:
        width = high - low + 1
        part = f"r >> {shift}" if shift else "r"
        parts.append(f"({part} & {(1 << width) - 1}) << {low}" if len(spans) > 1 else f"{part} << {low}")
        shift += width
    return " | ".join(parts)


def _taken(field: BitField, item: int) -> str:
    """The expression that takes the item's bits out of `b`."""
    parts, shift = [], 0
    for low, high in field.items[item]:
        width = high - low + 1
        parts.append(f"(b >> {low} & {(1 << width) - 1}) << {shift}" if shift else f"b >> {low} & {(1 << width) - 1}")
        shift += width
    return " | ".join(parts)


def _names(field: BitField) -> Any:
    """The first name of each code, by the other field's value where the table depends on one."""

    def turned(table: Mapping[Any, int]) -> dict[int, Any]:
        return {code: name for name, code in reversed(list(table.items()))}

    assert field.values is not None
    return {key: turned(table) for key, table in field.values.items()} if field.by else turned(field.values)


class _Code:
    """The text of one function; `with` indents."""

    def __init__(self, head: str) -> None:
        self._name = head.partition("(")[0]
        self._lines, self._depth = [f"def {head}:"], 1

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1

    def function(self, known: dict[str, Any]) -> Any:
        exec("\n".join(self._lines), known)
        return known[self._name]
