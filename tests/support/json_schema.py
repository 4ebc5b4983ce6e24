"""A small validator of JSON Schema (draft 4): the keywords that tests/data/sarif/schema-part.json has."""

from __future__ import annotations

import re
from collections.abc import Iterator

Json = object

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_KNOWN = {"$ref", "$comment", "$schema", "definitions", "type", "enum", "pattern", "minimum", "maximum", "anyOf"} | {
    *("properties", "required", "additionalProperties", "items", "minItems", "uniqueItems"),
}


def problems(value: Json, schema: dict[str, Json], root: dict[str, Json] | None = None, at: str = "$") -> Iterator[str]:
    """What of a value breaks a schema, with its path."""
    root = schema if root is None else root
    assert schema.keys() <= _KNOWN, schema.keys() - _KNOWN
    if isinstance(reference := schema.get("$ref"), str):
        definitions = root["definitions"]
        assert isinstance(definitions, dict)
        yield from problems(value, definitions[reference.rsplit("/", 1)[1]], root, at)
    kind = schema.get("type")
    if isinstance(kind, str) and not _is(value, kind):
        yield f"{at} must be {kind}"
        return
    if "enum" in schema and isinstance(allowed := schema["enum"], list) and value not in allowed:
        yield f"{at} must be one of {allowed}, not {value!r}"
    yield from _scalar(value, schema, at)
    if isinstance(value, dict):
        yield from _object(value, schema, root, at)
    if isinstance(value, list):
        yield from _array(value, schema, root, at)
    options = _list(schema, "anyOf")
    if options and all(any(problems(value, each, root, at)) for each in options):
        yield f"{at} fits none of anyOf"


def _is(value: Json, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _list(schema: dict[str, Json], word: str) -> list[dict[str, Json]]:
    found = schema.get(word, [])
    assert isinstance(found, list)
    return found


def _scalar(value: Json, schema: dict[str, Json], at: str) -> Iterator[str]:
    if isinstance(value, str) and isinstance(pattern := schema.get("pattern"), str) and not re.search(pattern, value):
        yield f"{at} must match {pattern}, not {value!r}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum"), schema.get("maximum")
        if isinstance(low, int | float) and value < low:
            yield f"{at} must be {low} or more, not {value}"
        if isinstance(high, int | float) and value > high:
            yield f"{at} must be {high} or less, not {value}"


def _object(value: dict[str, Json], schema: dict[str, Json], root: dict[str, Json], at: str) -> Iterator[str]:
    known = schema.get("properties", {})
    more = schema.get("additionalProperties", True)
    required = schema.get("required", [])
    assert isinstance(known, dict)
    assert isinstance(required, list)
    yield from (f"{at} lacks {name}" for name in required if name not in value)
    for name, each in value.items():
        if name in known:
            yield from problems(each, known[name], root, f"{at}.{name}")
        elif more is False:
            yield f"{at} must not have {name}"
        elif isinstance(more, dict):
            yield from problems(each, more, root, f"{at}.{name}")


def _array(value: list[Json], schema: dict[str, Json], root: dict[str, Json], at: str) -> Iterator[str]:
    if isinstance(least := schema.get("minItems"), int) and len(value) < least:
        yield f"{at} must have {least} items or more"
    if schema.get("uniqueItems") and len({repr(each) for each in value}) < len(value):
        yield f"{at} has the same item twice"
    if isinstance(items := schema.get("items"), dict):
        for number, each in enumerate(value):
            yield from problems(each, items, root, f"{at}[{number}]")
