"""The public names of the package with their signatures; `python -m tests.support.public_api` records them."""

from __future__ import annotations

import importlib
import inspect
import json
import re

import ptxgen
from tests.support.paths import ROOT
from tools.site import api

RECORD = ROOT / "tests/data/public_api.json"
#: Instructions have a signature per declaration, which tests/instr holds; there are thousands.
LEFT_OUT = {"instr"}
#: Their parameters are those of the timing model, which each release fits anew.
NAMES_ALONE = ("ptxgen.timing.Machine",)


def signature(value: object) -> str:
    """`(text, target=None)` of what can be called, without annotations; its kind of everything else."""
    if not callable(value):
        return type(value).__name__
    try:
        parameters = inspect.signature(value).parameters.values()
    except (ValueError, TypeError):
        return "callable"
    shown = [str(each.replace(annotation=inspect.Parameter.empty)) for each in parameters]
    return f"({', '.join(re.sub(r' at 0x[0-9a-f]+', '', each) for each in shown)})"


def public_names() -> dict[str, str]:
    """Every public name with its signature."""
    made = {f"ptxgen.{name}": signature(getattr(ptxgen, name)) for name in ptxgen.__all__}
    for package in sorted(ptxgen._PACKAGES - LEFT_OUT):
        module = importlib.import_module(f"ptxgen.{package}")
        for name in getattr(module, "__all__", ()):
            made[f"ptxgen.{package}.{name}"] = signature(getattr(module, name))
    for module in api.modules():  # those that the site documents
        for name, value in api.public(importlib.import_module(module)).items():
            made[f"{module}.{name}"] = signature(value)
    made |= dict.fromkeys(NAMES_ALONE, "type")
    return dict(sorted(made.items()))


if __name__ == "__main__":
    RECORD.write_text(json.dumps(public_names(), indent=1) + "\n", encoding="utf-8")
