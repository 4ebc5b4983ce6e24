"""Usage errors of typer in this project's words: an unknown option, a missing argument, a value that is no number."""

from __future__ import annotations

import difflib
import re
from typing import Any

#: What the libraries below typer say of a value, and what the value must be.
_KINDS = (("valid integer", "a whole number"), ("valid number", "a number"), ("valid float", "a number"))


def sentence(error: Any) -> str:
    """One sentence about a usage error."""
    found = _no_such_option(error) or _no_number(error)
    if found is not None:
        return found
    words = " ".join(str(error.format_message()).split()).rstrip(".")
    words = re.sub(r"\. Did you mean '([^']*)'\?", r"; did you mean \1?", words)
    words = re.sub(r"^Got unexpected extra argument(?:\(s\)|s|) \((.*)\)$", r"unexpected argument: \1", words)
    return f"{words[:1].lower()}{words[1:]}"


def _no_such_option(error: Any) -> str | None:
    if type(error).__name__ != "NoSuchOption":
        return None
    context = error.ctx
    parameters = context.command.get_params(context) if context is not None else []
    known = {each.lstrip("-"): each for of in parameters if of.param_type_name == "option" for each in of.opts}
    near = difflib.get_close_matches(error.option_name.lstrip("-").lower(), known, n=1)
    return f"no such option: {error.option_name}" + "".join(f"; did you mean {known[each]}?" for each in near)


def _no_number(error: Any) -> str | None:
    """None where the value need not be a number, or is not known."""
    parameter, message = getattr(error, "param", None), str(getattr(error, "message", ""))
    kind = next((kind for words, kind in _KINDS if words in message), None)
    if parameter is None or kind is None:
        return None
    details = getattr(error.__cause__, "errors", None)  # pydantic's, which typer takes from 0.28 on
    old = re.match(r"'(.*)' is not a valid", message, re.DOTALL)
    value = error.__cause__.errors()[0]["input"] if callable(details) else old[1] if old else None
    if value is None:
        return None
    if parameter.param_type_name == "option":
        return f"{max(parameter.opts, key=len)} must be {kind}, not {str(value)!r}"
    *others, name = (parameter.metavar or parameter.name.upper()).strip("[]").split()
    several = f"{', '.join(others)} and {name} must be {kind.removeprefix('a ')}s"
    return f"{several if others else f'{name} must be {kind}'}, not {str(value)!r}"
