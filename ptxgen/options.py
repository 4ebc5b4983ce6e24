"""Options of a config: fields of a frozen dataclass with their values and help, the only list of what can be chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import Field, field, fields
from numbers import Integral
from typing import Any


class PlanError(ValueError):
    """A config or problem that cannot be planned: the rule and the numbers."""


_SWITCH = {"true": True, "false": False}


def as_text(value: Any) -> str:
    """A value as `--set` takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def option(
    default: Any,
    help: str,
    *,
    choices: tuple[Any, ...] | None = None,
    range: tuple[int, int, int] | None = None,
    on: Mapping[str, tuple[Any, ...]] | None = None,
) -> Any:
    """A field of the config: its default, what it is, and its values: `choices`, or `range` (first, last, step).

    `on` has the targets that take other ones.
    """
    metadata = {"help": help, "choices": choices, "range": range, "on": on or {}}
    return field(default=default, metadata=metadata)


def values_of(each: Field[Any], target: str) -> dict[str, tuple[Any, ...]]:
    """The values of an option on a target: its `choices`, or its `range` (first, last, step), by that name."""
    key = "choices" if each.metadata["range"] is None else "range"
    return {key: each.metadata["on"].get(target, each.metadata[key])}


def require(config: Any, names: Iterable[str], target: str = "") -> None:
    """Raises PlanError for a value that is not among an option's, on this target."""
    for each in fields(config):
        if each.name in names:
            _require(each.name, getattr(config, each.name), **values_of(each, target))


def chosen(config: Any) -> list[str]:
    """What differs from the defaults of a config, as `--set` takes it."""
    values = [(each, getattr(config, each.name)) for each in fields(config)]
    return [f"{each.name}={as_text(value)}" for each, value in values if value != each.default]


def _require(name: str, value: Any, choices: tuple[Any, ...] = (), range: tuple[Any, ...] = ()) -> None:
    if choices and value not in choices:
        shown = [as_text(choice) or "empty" for choice in choices]
        raise PlanError(f"{name} must be {', '.join(shown[:-1])} or {shown[-1]}, not {value}")
    if range:
        first, last, step = range
        if not isinstance(value, Integral):
            raise PlanError(f"{name} must be a whole number, not {value!r}")
        if not first <= value <= last or (value - first) % step:
            raise PlanError(f"{name} must be {first} to {last}{f' in steps of {step}' * (step > 1)}, not {value}")


def parse(config: type[Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Options of a class of configs as text, as the type of their field. Raises PlanError."""
    known = {each.name: each for each in fields(config)}
    made: dict[str, Any] = {}
    for name, text in given.items():
        if name in known and isinstance(known[name].default, bool):
            if text not in _SWITCH:
                raise PlanError(f"{name} must be true or false, not {text!r}")
            made[name] = _SWITCH[text]
        elif name in known and isinstance(known[name].default, int):
            try:
                made[name] = int(text)
            except ValueError:
                raise PlanError(f"{name} must be a whole number, not {text!r}") from None
        else:
            made[name] = text
    return made
