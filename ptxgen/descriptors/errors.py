"""What a format forbids, and how that is said."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import NoReturn


class DescriptorError(ValueError):
    """A value or a bit pattern that the format forbids; the message names the rule and the value."""


def show(value: object) -> str:
    """Return `value` as error messages print it: numbers bare, anything else with its type."""
    if type(value) is int:
        return str(value) if value.bit_length() <= 128 else f"a number of {value.bit_length()} bits"
    if type(value) is str:
        return repr(value if len(value) <= 40 else value[:40] + "...")
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:60] + '...'} (a {type(value).__name__})"


def require(condition: bool, what: str, rule: str, value: object) -> None:
    """Raise DescriptorError "`what` must be `rule`, not `value`" unless `condition` holds."""
    if not condition:
        refuse(what, rule, value)


def refuse(what: str, rule: str, value: object) -> NoReturn:
    """Raise DescriptorError "`what` must be `rule`, not `value`"."""
    raise refused(what, rule, value)


def refused(what: str, rule: str, value: object) -> DescriptorError:
    """The error that `refuse` raises."""
    return DescriptorError(f"{what} must be {rule}, not {show(value)}")


def as_int(value: object) -> int | None:
    """Return an integer (Python's or NumPy's, no bool) as an int, anything else as None."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def choices(names: Iterable[object]) -> str:
    """Return the legal names as a readable list: "a", "a or b", "one of a, b, c"."""
    listed = [str(name) for name in names]
    if len(listed) < 3:
        return " or ".join(listed)
    return "one of " + ", ".join(listed)
