"""`ptxgen explain FORMAT` without a number: the bits of the format, or the number that its fields make."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ptxgen.cli.errors import OK, InputError, nearest
from ptxgen.descriptors.errors import DescriptorError

if TYPE_CHECKING:
    from ptxgen.descriptors.bits import BitStruct
    from ptxgen.descriptors.fields import BitField

#: Short names of fields, as the manual and people have them.
_SHORT = {
    "address": "start_address", "start": "start_address", "lbo": "leading_byte_offset", "sbo": "stride_byte_offset",
    "a": "a_type", "b": "b_type", "d": "d_type", "sf": "scale_type", "k": "dense_k",
}  # fmt: skip


def _classes(format: str, kind: str) -> list[type[BitStruct]]:
    """The descriptors of a format: two of idesc, unless the kind says which. Raises InputError."""
    from ptxgen import descriptors
    from ptxgen.descriptors.mma_kinds import KINDS, SCALED_KINDS

    if format == "idesc":
        found = {"": [descriptors.InstructionDescriptor, descriptors.BlockScaledInstructionDescriptor]}
        found |= dict.fromkeys(KINDS, found[""][:1]) | dict.fromkeys(SCALED_KINDS, found[""][1:])
        if kind not in found:
            raise InputError(f"kind must be {', '.join([*KINDS, *SCALED_KINDS])}, not {kind!r}{nearest(kind, found)}")
        return found[kind]
    named: dict[str, type[BitStruct]] = {
        "smem": descriptors.SmemDescriptor,
        "wgmma": descriptors.WgmmaDescriptor,
        "zero-mask": descriptors.ZeroColumnMask,
        "policy": descriptors.CachePolicy,
        "tmem": descriptors.TensorAddress,
    }
    if format not in named:
        raise InputError(
            f"explain {format} needs a VALUE: 256 hex digits or a file of 128 bytes; TensorMap.tiled makes one"
        )
    return [named[format]]


def show_fields(format: str, options: Mapping[str, Any], as_json: bool) -> int:
    """The bits of a format: each field with what it takes. Raises InputError."""
    kind = str(options.get("kind", ""))
    classes = _classes(format, kind)
    facts = {name.replace("-", "_"): each for name, each in options.items()}
    tables = {each.__name__: list(_rows(each, facts)) for each in classes}
    if as_json:
        keys = ("bits", "field", "takes", "meaning")
        print(json.dumps({name: [dict(zip(keys, row, strict=True)) for row in rows] for name, rows in tables.items()}))
        return OK
    from rich.text import Text

    from ptxgen.cli.common.terminal import grid, output

    with output() as out:
        for index, (name, rows) in enumerate(tables.items()):
            if index:
                out.print()
            title = f"{name}, {classes[index].total_bits} bits"
            out.print(Text(title if not kind else f"{title} (kind::{kind})", style="bold"))
            table = grid("dim", "cyan", "")
            for bits, field, takes, meaning in rows:
                table.add_row(
                    f"  {bits}", field, Text(f"{takes}; {meaning}" if takes and meaning else takes or meaning)
                )
            out.print(table)
        example = _EXAMPLES[format]
        out.print(Text(f"ptxgen explain {format} {example} makes a value; ptxgen explain {format} VALUE reads one"))
    return OK


#: Fields that make a plausible value.
_EXAMPLES = {
    "idesc": "m=128 n=256 a=bf16 b=bf16 d=f32 --kind f16",
    "smem": "address=0x400 lbo=16 sbo=1024 swizzle=128B",
    "wgmma": "address=0x400 lbo=16 sbo=1024 swizzle=128B",
    "zero-mask": "use_span=4 skip_span=4",
    "policy": "primary=evict_first",
    "tmem": "column=128 lane=32",
}


def _rows(cls: type[BitStruct], given: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Bits, name, what it takes and what it means, of each field and constant, by their bits."""
    rows = [(each.low, cls.range_name(each.low, each.high), name, f"{each.value:#b}", each.doc)
            for name, each in cls.constants.items()]  # fmt: skip
    for name, each in cls.bit_fields.items():
        bits = ", ".join(cls.range_name(low, high) for low, high in each.items[0])
        rows.append((each.items[0][0][0], bits, name, _takes(each, cls, given), each.doc))
    for _, bits, name, takes, meaning in sorted(rows):
        yield bits, name, takes, meaning


def _takes(field: BitField, cls: type[BitStruct], given: Mapping[str, Any]) -> str:
    """The numbers or names of a field, with the code of each name."""
    if field.flag:
        return "0 or 1"
    if field.values is not None:
        if not field.by:
            return _codes(field.values)
        if field.by in given:
            return _codes(field.values[given[field.by]])
        kinds: dict[str, list[str]] = {}
        for name, values in field.values.items():
            kinds.setdefault(_codes(values), []).append(name)
        return "; ".join(f"{codes} ({', '.join(names)})" if len(kinds) > 1 else codes for codes, names in kinds.items())
    contexts = {name: legal[0] for name, legal in cls.contexts.items()} | dict(given)
    words = field.range_rule(contexts).partition(" (")[0]
    if field.scale > 1:
        return f"{words}; stored divided by {field.scale}"
    return f"{words}; stored less one" if field.bias == 1 else words


def _codes(values: Mapping[Any, Any]) -> str:
    return ", ".join(f"{name} {code}" for name, code in sorted(values.items(), key=lambda each: each[1]))


def encoded(format: str, words: Sequence[str], options: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """The number that `field=value` words make, and the options that read it.

    Without a kind an idesc is of the first kind that has such values. Raises InputError, and DescriptorError of values
    that are illegal.
    """
    given: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise InputError(f"{format} takes FIELD=VALUE after the first one, not {word!r}")
        given[_SHORT.get(key, key) if (key := name.strip().lower().replace("-", "_")) else ""] = _value(text.strip())
    kind = str(options.get("kind") or given.pop("kind", ""))
    facts = {name.replace("-", "_"): each for name, each in options.items()} | ({"kind": kind} if kind else {})
    refused: DescriptorError | None = None
    for each in [kind] if kind or format != "idesc" else _kinds(given):
        cls = _classes(format, each)[0]
        try:
            made = _made(format, cls, given, facts | ({"kind": each} if each else {}))
        except DescriptorError as error:
            refused = refused or error
            continue
        found = {name: getattr(made, name) for name in cls.contexts}
        return made.encode(), {
            name.replace("_", "-"): value for name, value in found.items() if value not in ("", False)
        }
    assert refused is not None
    raise refused


def _kinds(given: Mapping[str, Any]) -> list[str]:
    """The kinds that a descriptor with these fields may be of."""
    from ptxgen import descriptors
    from ptxgen.descriptors.mma_kinds import KINDS, SCALED_KINDS

    plain, scaled = descriptors.InstructionDescriptor, descriptors.BlockScaledInstructionDescriptor
    only = scaled.bit_fields.keys() | scaled.contexts.keys()
    return [*(SCALED_KINDS if given.keys() & (only - plain.bit_fields.keys() - plain.contexts.keys()) else KINDS)]


def _made(format: str, cls: type[BitStruct], given: Mapping[str, Any], facts: Mapping[str, Any]) -> Any:
    from ptxgen.descriptors.mma_kinds import SCALED_KINDS

    names = [*cls.bit_fields, *cls.contexts]
    for name in given:
        if name not in names:
            raise InputError(f"{format} has no field {name!r}{nearest(name, names)}; it has {', '.join(names)}")
    flags = {name: bool(value) for name, value in given.items() if _is_flag(cls, name) and value in (0, 1)}
    values = {**facts, **given, **flags}
    if "dense_k" in names and values.get("kind") in SCALED_KINDS:
        values.setdefault("dense_k", min(SCALED_KINDS[values["kind"]].k))
    if missing := [each.name for each in _members(cls) if _is_needed(each) and each.name not in values]:
        raise InputError(f"{format} also needs {', '.join(missing)}: ptxgen explain {format} {_EXAMPLES[format]}")
    return cls(**values)


def _is_flag(cls: type[BitStruct], name: str) -> bool:
    return cls.bit_fields[name].flag if name in cls.bit_fields else False in cls.contexts[name]


def _members(cls: type[BitStruct]) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(cls)  # type: ignore[arg-type]


def _is_needed(member: dataclasses.Field[Any]) -> bool:
    return "bits" in member.metadata and member.default is dataclasses.MISSING


def _value(text: str) -> int | str | bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return int(text, 0)
    except ValueError:
        return text
