"""A text for each code of `ptxgen.check` that fires it alone, made of those of the tests by `tools.code_examples`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

PATH = Path(__file__).with_name("code_examples.json")


@cache
def examples() -> dict[str, str]:
    """PTX by code."""
    made: dict[str, str] = json.loads(PATH.read_text(encoding="utf-8"))
    return made


def shown(code: str) -> str:
    """The example of a code, and below it what `check` says of it."""
    from ptxgen.instr.model.check import check

    text = examples()[code]
    said = "".join(
        f"{each.line}:{each.column}: {each.severity}: {each.message} [{each.code}]\n" for each in check(text)
    )
    return f"{text}\n\n{said}".replace("\0", "\\0")
